"""Backing: a dict of which only some keys are here, the others on disk.

A container keeps its state in a plain dict, for the loops' sake. When there is more of it than
memory, the dict holds some of the keys, and a *backing* knows which: those are *resident*. Before a
step reads or alters keys it fetches them, all at once; after an epoch is safe the backing may let
go of keys, those that came first first. A key that is resident and not in the dict is not there at
all. Without a limit everything is resident from the start, and fetching is nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from types import FunctionType
from typing import Any, Protocol

SAMPLE = 64
LEAST = 100
"""About what a key takes by being resident, in bytes."""


class Absent:
    """The type of `ABSENT`: what stands for a value that is not there.

    >>> ABSENT
    ABSENT
    """

    def __repr__(self) -> str:
        return "ABSENT"

    def __reduce__(self) -> str:
        return "ABSENT"


ABSENT: Any = Absent()


class KeyStore(Protocol):
    """Where the keys are that are not here; `ebbflow.state.spine.Spine` is one."""

    layout: str

    def probe(self, keys: Iterable[Any]) -> dict[Any, Any]: ...
    def weights(self, asked: Sequence[tuple[Any, Any]]) -> list[int]: ...
    def append(self, change: Any) -> None: ...
    def scan(self) -> Iterator[tuple[Any, Any, int]]: ...


class Codec(Protocol):
    """How a value is written, where it holds what should not be, such as functions."""

    def dump(self, key: Any, value: Any, /) -> Any: ...
    def load(self, key: Any, stored: Any, /) -> Any: ...


class Backing:
    """What is known of the keys of `held`.

    >>> class Far:
    ...     layout = "value"
    ...     def probe(self, keys): return {key: key.upper() for key in keys if key < "c"}
    >>> held = {}
    >>> backing = Backing(held, Far(), limited=True)
    >>> backing.fetch(["a", "x"]); held
    {'a': 'A'}
    >>> backing.release(1); held, list(backing.resident)
    ({}, ['x'])
    """

    keeps = False
    """Whether changes stay here: then every key that changes has to be fetched."""

    def __init__(
        self, held: dict[Any, Any], kept: KeyStore, *, limited: bool, codec: Codec | None = None
    ) -> None:
        self.held = held
        self.kept = kept
        self.codec = codec
        self.resident: dict[Any, None] | None = {} if limited else None
        self.average = LEAST
        self.measured = 0
        self.altered = 0
        if not limited:
            self.held.update(self.everything())

    def fetch(self, keys: Iterable[Any]) -> None:
        """Have these keys here."""
        resident = self.resident
        if resident is None:
            return
        missing = [key for key in keys if key not in resident]
        if missing:
            self.held.update(self._loaded(self.kept.probe(missing)))
            resident.update(dict.fromkeys(missing))

    def reload(self) -> None:
        """Be as of the last epoch, whatever an interrupt has left here."""
        self.held.clear()
        if self.resident is None:
            self.held.update(self.everything())
        else:
            self.resident.clear()

    def load(self) -> None:
        """Have all keys here, as of the last epoch."""
        self.resident = None
        self.reload()

    def append(self, change: Any) -> None:
        """Have a change of these keys written with the next epoch."""
        codec = self.codec
        if codec is not None:
            dump = codec.dump
            change = {at: x if x is ABSENT else dump(at, x) for at, x in change.items()}
        self.altered += len(change)
        self.kept.append(change)

    def _loaded(self, found: dict[Any, Any]) -> dict[Any, Any]:
        codec = self.codec
        return found if codec is None else {at: codec.load(at, x) for at, x in found.items()}

    def everything(self) -> dict[Any, Any]:
        """All keys, as of the last epoch: the dict itself, or a new one read from disk."""
        if self.resident is None and self.held:
            return self.held
        found: dict[Any, Any] = {}
        if self.kept.layout == "value":
            return self._loaded({key: value for key, value, _ in self.kept.scan()})
        for key, row, weight in self.kept.scan():
            found.setdefault(key, {})[row] = weight
        return self._loaded(found)

    def release(self, count: int) -> None:
        """Let go of the `count` keys that came first."""
        assert self.resident is not None
        for key in list(islice(self.resident, count)):
            del self.resident[key]
            self.held.pop(key, None)

    def bytes(self) -> int:
        """About how much memory the resident keys take; measured on some of them."""
        if self.resident is None:
            return 0
        size = len(self.resident)
        grown = self.altered > size or size > 2 * self.measured or size < self.measured // 4
        if grown and self.held:
            half = SAMPLE // 2
            some = [*islice(self.held.items(), half), *islice(reversed(self.held.items()), half)]
            self.average = sum(map(weigh, some)) // len(some) + LEAST
            self.measured, self.altered = size, 0
        return size * self.average


def weigh(x: Any) -> int:
    """About how many bytes a value takes, with what is in it.

    >>> weigh(("a", 1)) > weigh("a") > 0
    True
    """
    size = sys.getsizeof(x)
    if isinstance(x, dict):
        return size + sum(weigh(key) + weigh(value) for key, value in x.items())
    if isinstance(x, (tuple, list, set, frozenset)):
        return size + sum(map(weigh, x))
    if type(x).__module__ == "builtins" or isinstance(x, (type, FunctionType)):
        return size
    slots = [name for cls in type(x).__mro__ for name in getattr(cls, "__slots__", ())]
    inside = [getattr(x, name, None) for name in slots if name != "__weakref__"]
    return size + sum(map(weigh, [*inside, *getattr(x, "__dict__", {}).values()]))
