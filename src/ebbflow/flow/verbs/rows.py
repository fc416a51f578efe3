"""Verbs on one row at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, overload

from ebbflow.errors import place
from ebbflow.flow import joins, types
from ebbflow.flow.parts import Part, named_parts, part, part_type, plain, refuse, row_type
from ebbflow.flow.plan import Filter, FlatMap, Map
from ebbflow.flow.verbs.base import Verbs
from ebbflow.fn import Fn
from ebbflow.record import name_of
from ebbflow.typevars import T_co, U

if TYPE_CHECKING:
    from ebbflow.flow.collection import Collection


class RowVerbs(Verbs[T_co]):
    """What is made of each row by itself."""

    @overload
    def map(self, f: Callable[[T_co], U] | str | tuple[Any, ...]) -> Collection[U]: ...
    @overload
    def map(self, f: Part[T_co], type: type[U]) -> Collection[U]: ...
    @overload
    def map(self, f: Part[T_co], type: object) -> Collection[Any]: ...
    def map(self, f: Any, type: Any = None) -> Collection[Any]:
        """`f(row)` instead of every row, of the type that `f` says, or is seen, to return.

        >>> import ebbflow as ef
        >>> def size(word: str) -> int: return len(word)
        >>> ef.Input("words", str).map(size).type
        <class 'int'>
        """
        plain("map({})", f)
        fn = part("map({})", self.node, f)
        checked = row_type("map({})", part_type(self.node, f) if type is None else type)
        return self.with_node(Map(parent=self.node, fn=fn, type=checked, place=place()))

    @overload
    def filter(self, f: Part[T_co]) -> Collection[T_co]: ...
    @overload
    def filter(
        self, f: Callable[[T_co, U], object], other: Collection[U], *,
        on: Part[T_co | U] | None = None, left_on: Part[T_co] | None = None,
        right_on: Part[U] | None = None,
    ) -> Collection[T_co]: ...  # fmt: skip
    def filter(
        self, f: Any, other: Any = None, *, on: Any = None, left_on: Any = None,
        right_on: Any = None,
    ) -> Collection[Any]:  # fmt: skip
        """The rows for which `f(row)` is true.

        >>> import ebbflow as ef
        >>> ef.Input("words", str).filter(lambda word: len(word) > 3).type
        <class 'str'>

        With another collection, of which there is one row, those for which `f(row, one)` is true: a
        scalar sub-query. With a key, `on` as in `join`, there is one row for each key. Where there
        is none, no row passes; more than one is an error. When `f` compares a value of the row with
        a value of the one row, a change of that moves only the rows in between.

        >>> numbers = ef.Input("numbers", int)
        >>> view = numbers.filter(lambda n, all: n > all.mean, numbers.agg(mean=ef.mean())).run()
        >>> view.step(numbers=[1, 2, 6]), view.step(numbers=[7])
        (ZSet({6: 1}), ZSet({7: 1}))
        """
        if other is not None:
            return self._with("filter", other, joins.one_row_filtered, f, on, left_on, right_on)
        if (on, left_on, right_on) != (None, None, None):
            refuse("filter(on=...): a key is for filter(f, other)", "filter(f, other, on=...)")
        plain("filter({})", f)
        fn = part("filter({})", self.node, f)
        return self.with_node(Filter(parent=self.node, fn=fn, type=self.type, place=place()))

    @overload
    def flat_map(
        self, f: Callable[[T_co], Iterable[U]] | str | tuple[Any, ...]
    ) -> Collection[U]: ...
    @overload
    def flat_map(self, f: Part[T_co], type: type[U]) -> Collection[U]: ...
    @overload
    def flat_map(self, f: Part[T_co], type: object) -> Collection[Any]: ...
    def flat_map(self, f: Any, type: Any = None) -> Collection[Any]:
        """All of `f(row)` instead of every row.

        >>> import ebbflow as ef
        >>> def letters(word: str) -> list[str]: return list(word)
        >>> ef.Input("words", str).flat_map(letters).type
        <class 'str'>
        """
        fn = part("flat_map({})", self.node, f)
        said = part_type(self.node, f)
        inside = types.iterated(said)
        if inside is None:
            refuse(
                f"flat_map(...): it gives {name_of(said)}, which holds no rows",
                "map(...), or a function that returns a list of rows",
            )
        checked = row_type("flat_map({})", inside if type is None else type)
        return self.with_node(FlatMap(parent=self.node, fn=fn, type=checked, place=place()))

    def select(self, /, *fields: str, **named: Part[T_co]) -> Collection[Any]:
        """Rows of these fields: fields of the row, and new ones made by a function or renamed.

        >>> import ebbflow as ef
        >>> words = ef.Input("words", str).select(word=lambda word: word, size=len)
        >>> words.type.__name__, words.type._fields
        ('Row', ('word', 'size'))
        """
        parts = named_parts("select({})", self.node, fields, named)
        if not parts:
            refuse("select(): no field is given", 'select("field", other=lambda row: ...)')
        chosen = {name: part_type(self.node, each) for name, each in parts.items()}
        checked = row_type("select({})", types.row("Row", chosen))
        made = Fn.record(checked, [part("select({})", self.node, each) for each in parts.values()])
        return self.with_node(Map(parent=self.node, fn=made, type=checked, place=place()))
