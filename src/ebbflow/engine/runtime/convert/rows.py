"""The rows of an input that are stored, converted to the type that it has now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from ebbflow.engine.runtime.convert.described import described, described_text
from ebbflow.engine.runtime.convert.plan import CannotConvert, ConversionPlan, Inexact
from ebbflow.engine.runtime.convert.stand_in import PickleReader, TupleStandIn
from ebbflow.engine.runtime.identity import Names
from ebbflow.engine.runtime.inputs import InputState
from ebbflow.engine.runtime.keyed_input import KeyedInput
from ebbflow.engine.runtime.table.stored import stored_type
from ebbflow.engine.runtime.values.rules import WrongValue
from ebbflow.errors import StateError, Text, cause_of
from ebbflow.flow.plan import Source
from ebbflow.flow.plan.time import ClockSource
from ebbflow.state.spine import Store
from ebbflow.state.spine.hashing import same

UNREAD = "unread"


def schema_of(source: Source, names: Names) -> dict[str, Any]:
    """What a state has to say of an input, so that its rows can be converted later, and read by
    those who have no program: its type, its columns, its key as text and as a digest, and which
    fields of the rows that are given it does not keep."""
    key = source.key
    unread = {UNREAD: sorted(source.unread)} if source.narrow is not None else {}
    return unread | {
        "type": described(source.type),
        "row": stored_type(source.type),
        "key": None if key is None else key.text,
        "by": None if key is None else names.of_value(key),
    }


def schema_text(said: Mapping[str, Any]) -> str:
    """What is said of an input, for people."""
    return described_text(said["type"]) + ("" if said["key"] is None else f", key {said['key']}")


class ConvertedRows(Protocol):
    """The rows of an input that become others when a state is opened."""

    said: str

    def rows(self, store: Store, part: str, state: InputState) -> dict[Any, int]:
        """The rows that a part holds, as rows of the input, with their weights."""


class Conversion:
    """What becomes of the rows of an input; `said` is that in one line."""

    def __init__(self, source: Source, stored: Mapping[str, Any], now: Mapping[str, Any]) -> None:
        alike = stored["type"] == now["type"] and stored["by"] != now["by"]
        if alike or (stored["key"] is None) != (now["key"] is None):
            raise CannotConvert(
                f"its key was {stored['key']} and is {now['key']}",
                "the key it had, or another path and loading the rows again",
            )
        if isinstance(source, ClockSource):
            raise CannotConvert("it is a clock", "the type it had, or another path")
        lost = frozenset(stored.get(UNREAD, ()))
        plan = ConversionPlan(dict(source.renamed), source.unread, lost)
        change = plan.change(stored["type"], source.type)
        self.source = source
        self.change = change or (lambda row: row)
        self.said = (
            f"input {source.name}: {', '.join(plan.said) or 'its type is written otherwise'}"
        )
        self._type: Any = type("Stored", (TupleStandIn,), {"load": PickleReader(plan.classes)})

    def rows(self, store: Store, part: str, state: InputState) -> dict[Any, int]:
        """The rows that a part holds, as rows of the input, with their weights. Where it has a key,
        each row must have the key that it had."""
        spine = store.reading(part, self._type)
        by_row = spine.layout == "value" and self.source.key is None
        keyed = isinstance(state, KeyedInput)
        found: dict[Any, int] = {}
        keys: list[tuple[Any, Any]] = []
        for key, value, weight in spine.scan():
            old, count = (key, value) if by_row else (value, weight)
            row = self._converted(old)
            found[row] = found.get(row, 0) + count
            if keyed:
                keys.append((key, row))
        if isinstance(state, KeyedInput):
            self._require_keys(state, keys)
        return found

    def _converted(self, row: Any) -> Any:
        try:
            return self.change(row)
        except Inexact as error:
            raise StateError(
                f"input {self.source.name!r}: a number of a row that is stored would lose digits "
                "as a float",
                number=error.args[0],
                row=tuple(row) if isinstance(row, tuple) else row,
                created=self.source.place,
                remedy="int as before, or Decimal in a new field",
            ) from cause_of(error)
        except WrongValue as wrong:
            raise StateError(
                f"input {self.source.name!r}: a value of a row that is stored {wrong.why}",
                value=wrong.value,
                row=tuple(row) if isinstance(row, tuple) else row,
                created=self.source.place,
                remedy="a type of the field that holds the value, or another path and loading the "
                "rows again",
            ) from wrong.__cause__

    def _require_keys(self, state: KeyedInput, keys: list[tuple[Any, Any]]) -> None:
        found = state.keys([row for _, row in keys])
        for (was, row), now in zip(keys, found, strict=True):
            if not same(was, now):
                raise StateError(
                    f"input {self.source.name!r}: a row that is stored has another key now",
                    row=row,
                    stored=was,
                    now=now,
                    key=Text(self.source.key.text if self.source.key else ""),
                    created=self.source.place,
                    remedy="a key that gives the same for every row, or another path and loading "
                    "the rows again",
                )
