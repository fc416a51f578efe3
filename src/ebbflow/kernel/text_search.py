"""What is in a text, found by a loop over its bytes, where Arrow has them.

`"ebb" in text`, `text.startswith("ebb")`, and what some regular expressions find, are the same kind
of question: whether some *pieces* come one after the other in a text, the first at its beginning,
or the last at its end, if that is asked. In UTF-8 the letters of a piece are nowhere but where
their bytes are, so the bytes are compared. No text gets a number, and no object is made of it.

A regular expression is taken apart where it consists of letters that stand for themselves and of
`.*`. Where `.` does not stand for the end of a line, the loop leaves texts of several lines to
Python.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ebbflow.expression.node import Constant, Operation
from ebbflow.kernel.addresses import bytes_at, halves_at
from ebbflow.kernel.compiled import compiled, inlined
from ebbflow.kernel.hashing import Words
from ebbflow.kernel.pending import TextMemory

_PLAIN_FLAGS = re.UNICODE | re.DOTALL
_SPECIAL = set("\\.^$*+?{}[]|()")
UNKNOWN = 2
"""Found where the loop does not tell."""
_ALL = np.empty(0, np.int64)


class Pieces(NamedTuple):
    """Pieces that come one after the other in a text. `begins` says that the first is at its
    beginning, `ends` that the last is at its end, and `one_line` that there is no end of a line
    between two of them."""

    pieces: tuple[str, ...]
    begins: bool = False
    ends: bool = False
    one_line: bool = False


def pieces_of(of: Operation) -> tuple[Pieces, ...] | None:
    """What an operation looks for in a text: it is true where one of these is there. None where it
    does not look for pieces.

    >>> from ebbflow.expression.node import Get
    >>> pieces_of(Operation("search", (Constant(re.compile("ebb.*flow")), Get(0, "text", 0))))
    (Pieces(pieces=('ebb', 'flow'), begins=False, ends=False, one_line=True),)
    """
    constant = next((each.value for each in of.args if isinstance(each, Constant)), None)
    if of.op == "in" and type(constant) is str:
        return (Pieces((constant,)),)
    if of.op in ("startswith", "endswith"):
        several = constant if type(constant) is tuple else (constant,)
        begins = of.op == "startswith"
        return tuple([Pieces((each,), begins, not begins) for each in several])
    if isinstance(constant, re.Pattern):
        found = _of_pattern(constant, of.op)
        return None if found is None else (found,)
    return None


def _of_pattern(pattern: re.Pattern[str], method: str) -> Pieces | None:
    """The pieces of a regular expression, if it has nothing else."""
    if pattern.flags & ~_PLAIN_FLAGS:
        return None
    text = pattern.pattern
    begins, ends = method != "search", method == "fullmatch"
    if text.startswith("^"):
        text, begins = text[1:], True
    pieces = tuple(text.split(".*"))
    if any(_SPECIAL & set(piece) for piece in pieces):
        return None
    return Pieces(pieces, begins, ends, len(pieces) > 1 and not pattern.flags & re.DOTALL)


class TextSearch:
    """Whether one of several `Pieces` is in texts.

    >>> import pyarrow as pa
    >>> from ebbflow.kernel.pending import ArrowColumn
    >>> from ebbflow.kernel.words import Texts, WordForm
    >>> column = ArrowColumn(WordForm("text"), pa.array(["ebb and flow", "flow, ebb"]), Texts().now)
    >>> TextSearch([Pieces(("ebb", "flow"))], lambda text: False)(column.in_memory()).tolist()
    [1, 0]
    """

    __slots__ = ("bytes_of", "function", "spans", "wanted")

    def __init__(self, wanted: Sequence[Pieces], function: Callable[[str], bool]) -> None:
        self.function = function
        """What tells where the loop does not."""
        pieces = [piece.encode() for each in wanted for piece in each.pieces]
        self.bytes_of: Words = np.frombuffer(b"".join(pieces) or b"\0", np.uint8).copy()
        """The bytes of all pieces."""
        ends = np.cumsum([0, *map(len, pieces)], dtype=np.int64)
        self.spans: Words = np.stack([ends[:-1], ends[1:]], axis=1)
        """Where the bytes of each begin and end."""
        firsts = np.cumsum([0, *[len(each.pieces) for each in wanted]], dtype=np.int64)
        flags = [(each.begins, each.ends, each.one_line) for each in wanted]
        columns = [firsts[:-1], firsts[1:], *np.array(flags, np.int64).reshape(-1, 3).T]
        self.wanted: Words = np.stack(columns, axis=1)
        """Of each of those that are looked for: its first piece and the one behind its last, and
        what is asked of it."""

    def __call__(self, parts: Sequence[TextMemory]) -> Words:
        """For each text 1 or 0."""
        found = np.empty(sum(part.size for part in parts), np.int64)
        at = 0
        for part in parts:
            out = found[at : at + part.size]
            rows = _ALL if part.rows is None else part.rows
            if part.size and _search(
                part.starts, part.texts, rows, self.bytes_of, self.spans, self.wanted, out
            ):
                self._tell(part, out)
            at += part.size
        return found

    def _tell(self, part: TextMemory, out: Words) -> None:
        column = part.column()
        for at in np.flatnonzero(out == UNKNOWN).tolist():
            row = at if part.rows is None else int(part.rows[at])
            out[at] = self.function(column[row].as_py())


@compiled
def _search(
    starts_at: int, texts_at: int, rows: Words, pieces: Words, spans: Words, wanted: Words,
    out: Words,
) -> int:  # fmt: skip
    """Look for pieces in the texts of some rows, or of all; gives how many are unknown."""
    every = len(rows) == 0
    last = len(out) - 1
    if not every:
        last = 0
        for i in range(len(out)):
            last = max(last, rows[i])
    starts = halves_at(starts_at, last + 2)
    texts = bytes_at(texts_at, np.int64(starts[last + 1]))
    unknown = 0
    for i in range(len(out)):
        row = i if every else rows[i]
        begin, end = np.int64(starts[row]), np.int64(starts[row + 1])
        found = 0
        for k in range(len(wanted)):
            if found != 1 and _is_there(texts, begin, end, pieces, spans, wanted, k):
                found = 1
                if wanted[k, 4] and _several_lines(texts, begin, end):
                    found = UNKNOWN
        out[i] = found
        unknown += found == UNKNOWN
    return unknown


@inlined
def _is_there(
    texts: Words, begin: Any, end: Any, pieces: Words, spans: Words, wanted: Words, k: int
) -> bool:
    """Whether the pieces of one that is looked for come one after the other."""
    first, last = wanted[k, 0], wanted[k, 1]
    at = begin
    if wanted[k, 2]:
        size = spans[first, 1] - spans[first, 0]
        if end - at < size or not _same(texts, at, pieces, spans[first, 0], size):
            return False
        at += size
        first += 1
        if first == last:
            return bool(not wanted[k, 3] or at == end)
    if wanted[k, 3]:
        last -= 1
        size = spans[last, 1] - spans[last, 0]
        end -= size
        if end < at or not _same(texts, end, pieces, spans[last, 0], size):
            return False
    for j in range(first, last):
        at = _behind(texts, at, end, pieces, spans[j, 0], spans[j, 1] - spans[j, 0])
        if at == -1:
            return False
    return True


@inlined
def _same(texts: Words, at: Any, pieces: Words, start: Any, size: Any) -> bool:
    j = 0
    while j < size and texts[at + j] == pieces[start + j]:
        j += 1
    return bool(j == size)


@inlined
def _behind(texts: Words, at: Any, end: Any, pieces: Words, start: Any, size: Any) -> Any:
    """Where the first place of a piece ends, or -1."""
    if size == 0:
        return at
    first = pieces[start]
    while at + size <= end:
        if texts[at] == first and _same(texts, at, pieces, start, size):
            return at + size
        at += 1
    return np.int64(-1)


@inlined
def _several_lines(texts: Words, begin: Any, end: Any) -> bool:
    at = begin
    while at < end and texts[at] != 10:
        at += 1
    return bool(at < end)
