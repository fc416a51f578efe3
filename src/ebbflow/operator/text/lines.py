"""The lines of an edited text: `str.splitlines`, kept up to date.

The value is a list of lines, without what ends them. It changes by `InsertLines`, `DeleteLines` and
`EditLine`, so that whoever works line by line sees which line an edit was in, and sees it as an
edit. `LINES` is that change structure, and `sequence(LINES)` what `split_lines` writes.

A line ends as Python has it: at \\n, \\r, \\v, \\f, \\x1c to \\x1e, \\x85, \\u2028 or \\u2029.
A \\r and the \\n after it end one line together, so an edit can make two ends of lines out of one
by coming between them, and one out of two by taking out what is between them. After the last end of
a line there is a line only if there is text.

The state is a rope of the text. An edit inside one line costs O(log n) and its own text, and any
other also the lines that it touches.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ebbflow.change import (
    LIST,
    TEXT,
    ChangeStructure,
    DeleteItems,
    Edit,
    Insert,
    InsertItems,
    List,
    ReplaceItem,
    sequence,
)
from ebbflow.change.items import common_ends, within
from ebbflow.change.rope import Rope
from ebbflow.change.structure import ConstantStructure, Why
from ebbflow.errors import type_name
from ebbflow.operator.text.basic import TextConstant, growth, shifted


@dataclass(frozen=True, slots=True)
class InsertLines:
    """Put `lines` in front of line `at`.

    >>> LINES.patch(["a", "c"], InsertLines(1, ("b",)))
    ['a', 'b', 'c']
    """

    at: int
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DeleteLines:
    """Take out `count` lines from line `at` on.

    >>> LINES.patch(["a", "b", "c"], DeleteLines(0, 2))
    ['c']
    """

    at: int
    count: int


@dataclass(frozen=True, slots=True)
class EditLine:
    """Edit the text of line `at`.

    >>> LINES.patch(["a", "b"], EditLine(1, Insert(1, "c")))
    ['a', 'bc']
    """

    at: int
    edit: Edit


LineChange = InsertLines | DeleteLines | EditLine


class _Lines(ConstantStructure[list[str], LineChange]):
    """Lists of lines, changed by InsertLines, DeleteLines and EditLine. Patching copies the list.

    >>> sequence(LINES).diff(["a", "x", "c"], ["a", "b", "c"])
    (DeleteLines(at=1, count=1), InsertLines(at=1, lines=('x',)))
    """

    noun, takes = "list of lines", "InsertLines, DeleteLines or EditLine within the list"

    def valid(self, change: object, value: list[str]) -> bool:
        match change:
            case InsertLines(at, tuple(lines)):
                return within(at, len(value)) and all(isinstance(line, str) for line in lines)
            case DeleteLines(at, count):
                return within(at, len(value)) and within(count, len(value) - at)
            case EditLine(at, edit):
                return within(at, len(value) - 1) and TEXT.valid(edit, value[at])
        return False

    def apply(self, value: Any, change: LineChange) -> Any:
        at = change.at
        match change:
            case InsertLines():
                return LIST.apply(value, InsertItems(at, change.lines))
            case DeleteLines():
                return LIST.apply(value, DeleteItems(at, change.count))
            case EditLine():
                line = TEXT.apply(value[at], change.edit)
                return LIST.apply(value, ReplaceItem(at, line))

    def edits(self, new: list[str], old: list[str]) -> tuple[LineChange, ...]:
        start, end = common_ends(new, old)
        gone = DeleteLines(start, len(old) - start - end)
        put = InsertLines(start, tuple(new[start : len(new) - end]))
        return tuple(change for change in (gone, put) if not self.is_nothing(change))

    @property
    def nothing(self) -> LineChange:
        return InsertLines(0, ())

    def is_nothing(self, change: object) -> bool:
        match change:
            case InsertLines():
                return not change.lines
            case DeleteLines():
                return not change.count
            case EditLine():
                return TEXT.is_nothing(change.edit)
        return False

    def why(self, change: object, value: list[str]) -> Why:
        reason = f"{type_name(change)} like this does not fit a list of {len(value)} lines"
        return Why(reason, self.takes, {"value": value})


LINES: ChangeStructure[list[str], LineChange] = _Lines(name="LINES")


# ---- reading lines ----


def _ends(state: str, piece: str) -> tuple[str, int]:
    """Reads how many ends of lines there are. The state is the last character, if it is a \\r."""
    if not piece:
        return state, 0
    found = len((piece + "|").splitlines()) - 1
    joined = state == "\r" and piece[0] == "\n"
    return ("\r" if piece[-1] == "\r" else ""), found - joined


def _end_of_line(rope: Rope, at: int) -> int:
    """The position after the first end of a line that is at `at` or later, or the size.

    A \\n in the next leaf is left out. It is on the same side of every edit before it as its \\r.
    """
    hit = rope.first(at, "")
    return rope.size if hit is None else hit.at + len(hit.piece.splitlines(keepends=True)[0])


def _start_of_line(rope: Rope, at: int) -> int:
    """The position after the last end of a line that is before `at`, or 0."""
    hit = rope.last(at, "")
    if hit is None:
        return 0
    *_, last = (hit.piece + "|").splitlines()
    return hit.at + len(hit.piece) + 1 - len(last)


class _SplitLines(TextConstant):
    """`text.splitlines()`, as changes of `sequence(LINES)`. The state is a rope of the text.

    >>> live = split_lines.open("one\\ntwo")
    >>> live.send(Insert(5, "x"))
    (EditLine(at=1, edit=Insert(at=1, text='x')),)
    >>> live.send(Insert(6, "\\n"))
    (EditLine(at=1, edit=Delete(at=2, count=2)), InsertLines(at=2, lines=('wo',)))
    """

    output = sequence(LINES)
    result_type = List[str]
    name = "split_lines"

    def f(self, x: str) -> list[str]:
        return x.splitlines()

    def init(self, x: str) -> Rope:
        rope = Rope(x, _ends)
        rope.total("")
        return rope

    def invariant(self, x: str, state: Rope) -> bool:
        return str(state) == x and state.total("")[1] == len((x + "|").splitlines()) - 1

    def step(self, state: Rope, change: Edit) -> tuple[Rope, tuple[Any, ...]]:
        at = change.at
        text, end = (change.text, at) if isinstance(change, Insert) else ("", at + change.count)
        after_return = at > 0 and state.slice(at - 1, at) == "\r"
        start = _start_of_line(state, at - after_return)
        stop = _end_of_line(state, end)
        line = state.upto(start, "")[1]
        inside = not _ends("", text)[1] and state.upto(end, "")[1] == line
        if inside and start < stop and stop - start + len(text) > end - at:
            return state, self._inside(state, change, line, start, stop)
        old = state.slice(start, stop).splitlines()
        state.edit(change)
        new = state.slice(start, stop + len(text) - (end - at)).splitlines()
        return state, self._across(line, old, new)

    def _inside(
        self, state: Rope, change: Edit, line: int, start: int, stop: int
    ) -> tuple[Any, ...]:
        """Edit inside one line, which is the text from `start` to `stop`."""
        state.edit(change)
        return (EditLine(line, shifted(change, -start)),)

    def _across(self, line: int, old: list[str], new: list[str]) -> tuple[Any, ...]:
        """The change from these lines, the first of which is number `line`, to those."""
        return _rewritten(line, old, new)


class _ListOfLines(_SplitLines):
    """`text.splitlines()`, as changes of `sequence(LIST)`: a line that is edited is replaced. The
    state is a rope of the text.

    >>> from ebbflow.change import Delete
    >>> live = lines.open("one\\ntwo")
    >>> live.send(Insert(5, "x"))
    (ReplaceItem(at=1, item='txwo'),)
    >>> live.send(Delete(0, 4))
    (DeleteItems(at=0, count=1),)
    """

    output = sequence(LIST)
    name = "lines"

    def _inside(
        self, state: Rope, change: Edit, line: int, start: int, stop: int
    ) -> tuple[Any, ...]:
        state.edit(change)
        new = state.slice(start, stop + growth(change)).splitlines()
        return (ReplaceItem(line, new[0]),)

    def _across(self, line: int, old: list[str], new: list[str]) -> tuple[Any, ...]:
        return tuple(replace(each, at=each.at + line) for each in LIST.edits(new, old))


lines = _ListOfLines()
split_lines = _SplitLines()


def _rewritten(at: int, old: list[str], new: list[str]) -> tuple[LineChange, ...]:
    """From these lines, the first of which is line `at`, to those: the first one is edited."""
    found: list[Any] = []
    both = 1 if old and new else 0
    if both:
        found += [EditLine(at, edit) for edit in TEXT.edits(new[0], old[0])]
    changes = LINES.edits(new[both:], old[both:])
    return (*found, *(_lower_down(change, at + both) for change in changes))


def _lower_down(change: Any, by: int) -> LineChange:
    """The insertion or deletion of lines, so many lines further down."""
    if isinstance(change, InsertLines):
        return InsertLines(change.at + by, change.lines)
    return DeleteLines(change.at + by, change.count)
