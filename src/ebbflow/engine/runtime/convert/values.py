"""State from before inputs checked values, brought to the values that their types say.

Such a state has no note `VALUES`. In a field of type `int` it may hold a truth value, a number of
NumPy or a text, and what it computed of decimals has other digits. Where all rows are canonical and
there are no decimals, it is used as it is. Else the rows of inputs are converted, and everything is
computed from them again; a row that cannot be converted is refused by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any, get_args

from ebbflow.engine.runtime.convert.rows import ConvertedRows
from ebbflow.engine.runtime.inputs import InputState
from ebbflow.engine.runtime.values.check import canonical_row, tester
from ebbflow.engine.runtime.values.hints import field_rules, rule_of
from ebbflow.errors import ChangeError, StateError, Text
from ebbflow.flow.plan import Source
from ebbflow.record import fields_of
from ebbflow.state.spine import Snapshot, Store
from ebbflow.state.spine.columns import decode
from ebbflow.state.spine.part import EntryBatch

if TYPE_CHECKING:
    from ebbflow.engine.runtime.durable import Disk

VALUES = "values"
"""The note of a state whose rows are canonical; its value is the version of the rules."""
VERSION = 1
_EXACT = {
    int: {"int8", "int16", "int32", "int"}, bool: {"bool"}, str: {"text", "text64"},
    bytes: {"bytes", "bytes64"},
}  # fmt: skip
"""Encodings of columns that hold nothing but canonical values of a class."""


class CanonicalRows:
    """The rows of an input, read from a state and converted; `said` is that in one line."""

    def __init__(self, source: Source, rows: dict[Any, int]) -> None:
        self.said = f"input {source.name}: its values are those of its types"
        self._rows = rows

    def rows(self, store: Store, part: str, state: InputState) -> dict[Any, int]:
        """The rows with their weights."""
        return dict(self._rows)


def conversions_of_values(
    disk: Disk, notes: Mapping[str, Any], conversions: Mapping[str, ConvertedRows]
) -> dict[str, CanonicalRows]:
    """How the rows of all inputs become canonical, where a state from before the rules has others
    or has computed with decimals; nothing where it can be used as it is. `conversions` are those of
    inputs whose type has changed."""
    if notes.get(VALUES) == VERSION:
        return {}
    inputs = {name: each for name, each in disk.program.inputs.items() if name in notes["rows"]}
    parts: Mapping[str, str] = notes["rows"]
    same = {n: each.source for n, each in inputs.items() if n not in conversions}
    old = [n for n, source in same.items() if not _is_canonical(disk.store, parts[n], source)]
    counted = [n for n, each in disk.program.inputs.items() if has_decimals(each.source.type)]
    if not old and not counted:
        return {}
    what = f"{disk.place!r} was written by a version that did not check values"
    facts = {"inputs": Text(", ".join(dict.fromkeys([*old, *counted])))}
    if len(inputs) < len(disk.program.inputs):
        raise StateError(
            f"{what}, and its rows were not kept, so they cannot be converted",
            **facts,
            remedy="another path and loading the rows again",
        )
    if disk.strict:
        raise StateError(
            f"{what}, and they would be converted",
            **facts,
            remedy="strict=False to have it done, or another path",
        )
    found = {}
    for name, state in inputs.items():
        rows: Iterable[tuple[Any, int]]
        if name in conversions:
            rows = conversions[name].rows(disk.store, parts[name], state).items()
        else:
            rows = _stored(disk.store, parts[name], state.source)
        found[name] = _converted(disk, state.source, rows)
    return found


def _converted(disk: Disk, source: Source, rows: Iterable[tuple[Any, int]]) -> CanonicalRows:
    weights: dict[Any, int] = {}
    for row, weight in rows:
        try:
            made = row if tester(source.type)((row,)) else canonical_row(source, row)
        except ChangeError as error:
            raise StateError(
                f"{disk.place!r} holds a row that is refused now: {error.what}",
                **error.facts,
                remedy="a type of the field that holds the value, or another path and loading the "
                "rows again",
            ) from None
        weights[made] = weights.get(made, 0) + weight
    return CanonicalRows(source, weights)


def _stored(store: Snapshot, part: str, source: Source) -> Iterator[tuple[Any, int]]:
    spine = _reading(store, part, source)
    by_row = spine.layout == "value" and source.key is None
    for key, value, weight in spine.scan():
        yield (key, value) if by_row else (value, weight)


def _is_canonical(store: Snapshot, part: str, source: Source) -> bool:
    """Whether all rows of an input are canonical; rows are made of those columns only that may hold
    something else."""
    spine = _reading(store, part, source)
    by_row = spine.layout == "value" and source.key is None
    rules = [rule_of(source.type)]
    if fields_of(source.type) is not None:
        rules = field_rules(source.type)
    exact = [_EXACT.get(rule.cls, set()) if rule.cls else set() for rule in rules]
    test = tester(source.type)

    def is_canonical(chunk: EntryBatch) -> bool:
        form = chunk.form
        shape, columns = (form.key, chunk.keys) if by_row else (form.row, chunk.rows)
        if by_row and form.within:
            columns = form.keys(chunk.rows)
        if len(shape.encodings) == len(exact) and all(
            encoding in known and not column.null_count
            for encoding, known, column in zip(shape.encodings, exact, columns, strict=True)
        ):
            return True
        return test(decode(shape, columns, spine.row_type))

    return all(map(is_canonical, spine.chunks()))


def _reading(store: Snapshot, part: str, source: Source) -> Any:
    row_type = source.type if fields_of(source.type) is not None else Any
    return store.reading(part, row_type)


def has_decimals(hint: Any) -> bool:
    """Whether values of a type hold decimals.

    >>> from ebbflow.record import record
    >>> has_decimals(record("Order", price=Decimal | None)), has_decimals(int)
    (True, False)
    """
    if hint is Decimal:
        return True
    inside = (fields_of(hint) or {}).values() if isinstance(hint, type) else ()
    return any(map(has_decimals, (*inside, *get_args(hint))))
