"""Operators on a field of a row: a text, a list or a mapping that is edited inside its row.

`text.upper("body")` is an operator *applied* to a field. It means `upper` of what the field holds,
row by row, so it may stand wherever a function of a row may. Yet it does not compute from scratch:
a `Text` remembers which text it was made from, and by which edits (see `ebbflow.change.remember`).
Where the operator has a state for the old text, it steps from there.

    the state of the old text  --step(edits)-->  the state of the new text
    the value for the old text --patch------->   the value for the new text

What is found out about a text is noted with the text, and goes when the text goes. It can be lost
at any time, and is then computed again: by `init` and `f`, from the whole text. So it is no part of
the state of a program; an epoch that is undone, a view that is opened again and a task on another
machine have nothing to take back, to store or to send.

A state that `step` may alter in place is copied first, because the old text may still be needed:
the row that holds it goes only if the epoch succeeds. To copy a rope takes a few steps, whatever
its size; whoever writes an operator that keeps a large dict of its own pays for a copy of it.
"""

from __future__ import annotations

from typing import Any
from weakref import ref

from ebbflow.change import ChangeStructure, First, List, Second, Text
from ebbflow.change.compose import sequence
from ebbflow.change.remember import Remembering
from ebbflow.frozen import Frozen, apart
from ebbflow.state.tree import Tree
from ebbflow.zset import ZSet

_FROZEN = (int, float, str, bytes, ZSet, Tree, Remembering)


class Following:
    """An operator as a function of one value that follows how the value was made.

    >>> from ebbflow.change import Insert
    >>> from ebbflow.operator import text
    >>> upper, old = Following(text.upper), Text("ebb")
    >>> upper(old), upper(old.edited(Insert(3, " and flow")))
    (Text('EBB'), Text('EBB AND FLOW'))
    """

    __slots__ = ("operator",)

    def __init__(self, operator: Any) -> None:
        self.operator = operator

    def __call__(self, value: Any) -> Any:
        operator = self.operator
        if not isinstance(value, Remembering):
            return lifted(operator.f(plain(value)))
        note = note_of(operator, value)
        if note.value is _UNKNOWN:
            note.value = lifted(operator.f(plain(value)))
        return note.value

    @property
    def __name__(self) -> str:
        return repr(self.operator)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and bool(self.operator == other.operator)

    def __hash__(self) -> int:
        return hash((type(self), type(self.operator)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.operator!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.operator,)

    def __identity__(self) -> Any:
        return self.operator


class FollowingPair(Following):
    """An operator on pairs as a function of two values, each of which is followed.

    The first value has the notes, by the second; those of the last two, the old and the new.

    >>> from ebbflow.change import Insert
    >>> from ebbflow.operator import text
    >>> concat, one, two = FollowingPair(text.concat), Text("ebb"), Text(" and flow")
    >>> concat((one, two)), concat((one, two.edited(Insert(9, "s"))))
    (Text('ebb and flow'), Text('ebb and flows'))
    """

    __slots__ = ()

    def __call__(self, value: Any) -> Any:
        operator, (one, two) = self.operator, value
        both = isinstance(one, Remembering) and isinstance(two, Remembering)
        by_second: dict[Any, FieldNote] = one.notes.setdefault(operator, {}) if both else {}
        note = by_second.get(two)
        if note is None:
            note = self._followed(one, two) if both else None
            if note is None:
                whole = plain(one), plain(two)
                note = FieldNote(operator.init(whole), lifted(operator.f(whole)))
            by_second[two] = note
            for old in list(by_second)[:-2]:
                del by_second[old]
        return note.value

    def _followed(self, one: Any, two: Any) -> FieldNote | None:
        """A step from the two that these were made from, or from one of these and an older one."""
        operator = self.operator
        structure = each_change(operator.input)
        for old, first in _origins(one, structure.first):
            known = old.notes.get(operator, {})
            for other, second in _origins(two, structure.second):
                if other in known:
                    changes = (*map(First, first), *map(Second, second))
                    return stepped(operator, known[other], old, changes)
        return None


def _origins(value: Any, structure: Any) -> list[tuple[Any, tuple[Any, ...]]]:
    """What a side of a pair may be followed from, with the changes from there to the value."""
    made_from = value.made_from(each_change(structure))
    here: list[tuple[Any, tuple[Any, ...]]] = [(value, ())]
    if made_from is None:
        return here
    old, changes = made_from
    return [*here, (old, (changes,) if is_sequence(structure) else changes)]


_UNKNOWN: Any = object()


class FieldNote:
    """What an operator has found out about a value: its state there, its value if that was asked
    for and, where it followed from an older value, that one and the changes in between."""

    __slots__ = ("changes", "old", "state", "value")

    def __init__(self, state: Any, value: Any, old: Any = None, changes: tuple[Any, ...] = ()):
        self.state = state
        self.value = value
        self.old: Any = None if old is None else ref(old)
        self.changes = changes

    def since(self, old: Any) -> tuple[Any, ...] | None:
        """The changes of the output since that value; None where they are not known."""
        return self.changes if self.old is not None and self.old() is old else None


def note_of(operator: Any, value: Any) -> FieldNote:
    """What an operator knows of a value: noted before, or followed from an older one, or from
    scratch."""
    note: FieldNote | None = value.notes.get(operator)
    if note is None:
        note = _followed(operator, value) or FieldNote(operator.init(plain(value)), _UNKNOWN)
        value.notes[operator] = note
    return note


def _followed(operator: Any, value: Any) -> FieldNote | None:
    """One step from the value that this one was made from, if the operator has a state there."""
    made_from = value.made_from(each_change(operator.input))
    before = made_from and made_from[0].notes.get(operator)
    return stepped(operator, before, *made_from) if made_from and before else None


def stepped(operator: Any, before: FieldNote, old: Any, changes: tuple[Any, ...]) -> FieldNote:
    """What an operator knows after changes, from what it knew before."""
    state = apart(before.state, _FROZEN)
    found = []
    for change in (changes,) if is_sequence(operator.input) else changes:
        state, out = operator.step(state, change)
        found.append(out)
    out_one = each_change(operator.output)
    outs = tuple(c for out in found for c in out) if is_sequence(operator.output) else tuple(found)
    outs = tuple(out for out in outs if not out_one.is_nothing(out))
    now = _UNKNOWN if before.value is _UNKNOWN else patched(out_one, before.value, outs)
    return FieldNote(state, now, old, outs)


def patched(structure: Any, value: Any, changes: tuple[Any, ...]) -> Any:
    """A value of a row after changes, which it remembers where it can."""
    if isinstance(value, Remembering):
        return value.patched(structure, *changes)
    for change in changes:
        value = lifted(structure.apply(value, change))
    return value


def each_change(structure: ChangeStructure[Any, Any]) -> Any:
    """The structure of one change where changes come in sequences, else the structure itself.

    >>> from ebbflow.change import TEXT
    >>> each_change(sequence(TEXT)), each_change(TEXT)
    (TEXT, TEXT)
    """
    return structure.inner if is_sequence(structure) else structure  # type: ignore[attr-defined]


def is_sequence(structure: ChangeStructure[Any, Any]) -> bool:
    """Whether changes come in sequences: `sequence(...)`.

    >>> from ebbflow.change import TEXT
    >>> is_sequence(sequence(TEXT)), is_sequence(TEXT)
    (True, False)
    """
    return structure.built is not None and structure.built[0] is sequence


def plain(value: Any) -> Any:
    """What `init` and `f` of an operator are given: a str for a Text, a list for a List or a tuple,
    a dict for a `Frozen` one.

    >>> plain(Text("ebb")), plain(List([1])), plain(3)
    ('ebb', [1], 3)
    """
    if isinstance(value, Text):
        return str(value)
    if isinstance(value, (List, tuple)):
        return list(value)
    return dict(value) if isinstance(value, Frozen) else value


def lifted(value: Any) -> Any:
    """A value of an operator as a row holds it: a Text for a str, a List for a list, a `Frozen`
    dict for a dict; also inside a tuple.

    >>> lifted(("ebb", 3)), lifted(["a", "b"])
    ((Text('ebb'), 3), List(['a', 'b']))
    """
    if isinstance(value, str):
        return Text(value)
    if isinstance(value, list):
        return List(value)
    if isinstance(value, dict) and not isinstance(value, Frozen):
        return Frozen(value)
    return tuple(map(lifted, value)) if type(value) is tuple else value
