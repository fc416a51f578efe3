"""Two results beside each other: what one has that the other has not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ebbflow.errors import Text, canonical
from ebbflow.zset import ZSet


@dataclass(frozen=True)
class Difference:
    """What one collection lacks of another, and what it has too much. True when there is any.

    >>> print(difference(expected=ZSet({"a": 2, "b": 1}), found=ZSet({"a": 1, "c": 1})))
    missing  'a'
    missing  'b'
    extra    'c'
    """

    missing: ZSet[Any]
    extra: ZSet[Any]
    limit: int = 10

    def __bool__(self) -> bool:
        return bool(self.missing) or bool(self.extra)

    def __str__(self) -> str:
        return "\n".join([*self._lines("missing", self.missing), *self._lines("extra", self.extra)])

    def _lines(self, word: str, rows: ZSet[Any]) -> Iterator[str]:
        shown = sorted((canonical(row), weight) for row, weight in rows.items())
        for row, weight in shown[: self.limit]:
            yield f"{word:<8} {row}" + (f"  × {weight}" if weight > 1 else "")
        if len(shown) > self.limit:
            yield f"{word:<8} and {len(shown) - self.limit} more"


def difference(expected: ZSet[Any], found: ZSet[Any], *, limit: int = 10) -> Difference:
    """How `found` differs from `expected`; shown, at most `limit` rows of each kind.

    >>> bool(difference(ZSet.of("ab"), ZSet.of("ba")))
    False
    """
    gap = expected - found
    return Difference(gap.positive(), gap.negative(), limit)


def mismatch(expected: Mapping[str, ZSet[Any]], found: Mapping[str, ZSet[Any]]) -> Text | None:
    """None when all outputs agree; else a text that shows by output how they differ.

    >>> print(mismatch({"n": ZSet.of("ab")}, {"n": ZSet.of("a")}))
    n
        missing  'b'
    """
    lines: list[str] = []
    for name in dict.fromkeys((*expected, *found)):
        gap = difference(expected.get(name, ZSet()), found.get(name, ZSet()))
        if gap:
            lines += [name, *(f"    {line}" for line in str(gap).splitlines())]
    return Text("\n".join(lines)) if lines else None
