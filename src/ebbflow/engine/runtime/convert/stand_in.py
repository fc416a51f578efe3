"""What stands for rows of a class that has changed, while they are read.

Where a row was stored as columns, its values are there by place, whatever class it had. Where it
was pickled, as one in a field of another, the pickle names the class, which may be gone or have
other fields now. Then a *stand-in* is read instead: the values in the order in which the class had
them, and nothing else. Pickled again, while segments are merged, it is a plain tuple of them.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping
from io import BytesIO
from typing import Any

from ebbflow import nan


class TupleStandIn(tuple[Any, ...]):
    """Stands for a row that was a NamedTuple."""

    def __new__(cls, *values: Any) -> Any:
        return tuple.__new__(cls, values)

    def __reduce__(self) -> Any:
        return tuple, (tuple(self),)


class ObjectStandIn:
    """Stands for a row that was an object with `names`: its state is that of the object.

    >>> Stored = stand_in({"tuple": False, "fields": [["id", "int"], ["city", "str"]]})
    >>> one = Stored(); one.__setstate__({"id": 1, "city": "Rome"}); one[1]
    'Rome'
    """

    names: tuple[str, ...] = ()
    values: tuple[Any, ...] = ()

    def __setstate__(self, state: Any) -> None:
        if isinstance(state, tuple):  # of an object with slots: its dict, and its slots
            state = {**(state[0] or {}), **(state[1] or {})}
        if isinstance(state, Mapping):
            state = [state.get(name) for name in self.names]
        self.values = tuple(state)

    def __getitem__(self, i: int) -> Any:
        return self.values[i]

    def __eq__(self, other: object) -> bool:
        found = other.values if isinstance(other, ObjectStandIn) else other
        return isinstance(found, tuple) and self.values == found

    def __hash__(self) -> int:
        return hash(self.values)

    def __reduce__(self) -> Any:
        return tuple, (self.values,)


def stand_in(said: Mapping[str, Any]) -> type:
    """A class that stands for one that is described."""
    if said["tuple"]:
        return type("StandIn", (TupleStandIn,), {})
    return type("StandIn", (ObjectStandIn,), {"names": tuple(name for name, _ in said["fields"])})


class PickleReader:
    """Reads pickles, with stand-ins for some classes."""

    def __init__(self, classes: Mapping[tuple[str, str], type]) -> None:
        known = dict(classes)

        class Finding:
            def find_class(self, module: str, name: str) -> Any:
                found = known.get((module, name))
                return super().find_class(module, name) if found is None else found  # type: ignore[misc]

        self._plain: Any = type("Reading", (Finding, pickle.Unpickler), {})
        self._careful: Any = type("Reading", (Finding, nan.Unpickler), {})

    def __call__(self, blobs: Iterable[bytes | None]) -> list[Any]:
        """The values of many pickles, with one NaN; a missing one stays None."""
        return [None if blob is None else self._load(blob) for blob in blobs]

    def _load(self, blob: bytes) -> Any:
        return (self._careful if nan.marked(blob) else self._plain)(BytesIO(blob)).load()
