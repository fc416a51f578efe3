"""Groups: the rows of each key together, waiting for what is to be made of them.

`group_by` alone is not a collection yet. `reduce` and `agg` make it one, with a row for each key
that has rows; the row has the key's fields first. A group whose last row goes is gone.
"""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from types import FunctionType
from typing import TYPE_CHECKING, Any, Generic, NoReturn

from ebbflow.errors import CompositionError, place
from ebbflow.flow.parts import GroupKey, field_names, refuse, row_type, rows_of
from ebbflow.flow.plan import Node, Reduce
from ebbflow.flow.result_types import result_type
from ebbflow.flow.results import AnyReducer, given, named_results
from ebbflow.flow.types import row
from ebbflow.flow.verbs.unknown import unknown_of_groups
from ebbflow.public import PublicByName
from ebbflow.reducer import Reducer
from ebbflow.reducer.combine import together
from ebbflow.reducer.row import itself
from ebbflow.typevars import T_co

if TYPE_CHECKING:
    from ebbflow.flow.collection import Collection
    from ebbflow.flow.verbs.base import Verbs

ONE_GROUP = GroupKey(None, {})


class Grouped(PublicByName, Generic[T_co]):
    """The rows of a collection by key; see `Collection.group_by`.

    >>> import ebbflow as ef
    >>> ef.Input("words", str).group_by(len)
    <rows of "words" by key: .reduce(reducer) or .agg(name=reducer, ...) makes them a collection>
    """

    __slots__ = ("_key", "_of")

    def __init__(self, of: Verbs[T_co], key: GroupKey) -> None:
        self._of = of
        self._key = key

    def reduce(self, reducer: Reducer[T_co], *, type: Any = None) -> Collection[Any]:
        """Keep `reducer(rows)` up to date for every group: rows `(key…, value)`. `type` is that of
        the value, where the code of the reducer does not tell.

        Equals `{key: reducer(rows) for key, rows in groups}`, with the touched groups alone
        recomputed.

        >>> import ebbflow as ef
        >>> ef.Input("words", str).group_by(size=len).reduce(ef.count())
        <Group(size, value): words → reduce>
        """
        return self._of.with_node(reduced(self._of.node, self._key, reducer, type))

    def agg(self, /, *unnamed: Any, **reducers: Reducer[T_co]) -> Collection[Any]:
        """Keep several reducers up to date for every group: rows `(key…, one field for each)`.

        >>> import ebbflow as ef
        >>> ef.Input("words", str).group_by(size=len).agg(n=ef.count(), last=ef.max())
        <Group(size, n, last): words → reduce>
        """
        return self._of.with_node(aggregated(self._of.node, self._key, unnamed, reducers))

    def __repr__(self) -> str:
        by = ", ".join(self._key.fields)
        return (
            f"<{rows_of(self._of.node)} by {by}: .reduce(reducer) or .agg(name=reducer, ...) "
            "makes them a collection>"
        )

    def _unknown(self, name: str) -> CompositionError:
        verb = getattr(type(self._of), name, None)
        if verb is not None:
            what = f".{name} is for collections, and group_by(...) alone is none"
            takes_groups = callable(verb) and "per" in signature(verb).parameters
            return _not_yet(
                what, f'collection.{name}(..., per="field"), without group_by' * takes_groups
            )
        return unknown_of_groups(name, NEXT)

    def __iter__(self) -> NoReturn:
        raise _not_yet("group_by(...) alone cannot be iterated")

    def __bool__(self) -> bool:
        raise _not_yet("group_by(...) alone is neither true nor false")


NEXT = "group_by(...).reduce(reducer), or group_by(...).agg(n=ebbflow.count())"


def _not_yet(what: str, remedy: str = "") -> CompositionError:
    return CompositionError(what, created=place(), remedy=remedy or NEXT)


def reduced(node: Node, key: GroupKey, reducer: Any, hint: Any = None) -> Reduce:
    """The node of `reduce`."""
    reducer = given("reduce(...)", node, reducer)
    if "value" in key.fields:
        refuse(
            "reduce(...): the key has a field 'value', which is the name of the result's field",
            f"agg(total={reducer!r}), where the result has a name of your choice",
        )
    value = result_type(reducer, node.type) if hint is None else hint
    return _node(node, key, {"value": value}, reducer, spread=False)


def aggregated(
    node: Node, key: GroupKey, unnamed: tuple[Any, ...], reducers: Mapping[str, Any]
) -> Reduce:
    """The node of `agg`."""
    if unnamed:
        one = unnamed[0]
        said = one.__name__ if isinstance(one, FunctionType) else repr(one)
        remedy = named_results(one, node) or f"agg(name={said})"
        refuse(f"agg({said}): every result needs a name", remedy)
    if not reducers:
        refuse("agg(): no reducer is given", "agg(n=ebbflow.count())")
    field_names("agg({}=...)", reducers)
    for name in reducers:
        if name in key.fields:
            refuse(
                f"agg({name}=...): {name!r} is already a field of the key",
                "another name for the result, or for the key: group_by(name=...)",
                key=tuple(key.fields),
            )
    checked = {name: given(f"agg({name}=...)", node, each) for name, each in reducers.items()}
    types = {name: result_type(each, node.type) for name, each in checked.items()}
    if len(checked) == 1:
        return _node(node, key, types, next(iter(checked.values())), spread=False)
    return _node(node, key, types, together(*map(_whole, checked.values())), spread=True)


def _whole(reducer: AnyReducer) -> AnyReducer:
    """A reducer that is itself `a & b` kept in one piece: its result is one field, a tuple."""
    pieces = reducer.made is not None and reducer.made[0] is together
    return reducer.then(itself) if pieces else reducer


def _node(
    node: Node, key: GroupKey, results: dict[str, Any], reducer: AnyReducer, *, spread: bool
) -> Reduce:
    checked = row_type("reduce({})", row("Group", {**key.fields, **results}))
    return Reduce(
        parent=node, key=key.fn, width=key.width, reducer=reducer, spread=spread, type=checked,
        place=place(),
    )  # fmt: skip
