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

from copy import deepcopy
from typing import Any
from weakref import ref

from ebbflow.change import BAG, BOOL, LIST, NATURAL, TEXT, ZSET, ChangeStructure, List, Text
from ebbflow.change.compose import sequence
from ebbflow.change.remember import Remembering
from ebbflow.errors import CompositionError, place
from ebbflow.frozen import Frozen
from ebbflow.operator.compose import Beside, Fork, Seq
from ebbflow.operator.lift import Each
from ebbflow.operator.operator import Operator
from ebbflow.state.tree import Tree
from ebbflow.zset import ZSet

_FROZEN = (type(None), bool, int, float, str, bytes, frozenset, ZSet, Tree, Remembering)


class Applied:
    """An operator applied to a field of the rows: `text.upper("body")`.

    >>> from ebbflow.operator import text
    >>> text.count("ebb")("body")
    count('ebb')('body')
    """

    __slots__ = ("field", "operator")

    def __init__(self, operator: Any, field: str) -> None:
        self.operator = operator
        self.field = field

    @property
    def of_value(self) -> Following:
        """The operator as a function of what the field holds."""
        return Following(self.operator)

    def __call__(self, row: Any) -> Any:
        return self.of_value(getattr(row, self.field))

    def __repr__(self) -> str:
        return f"{_named(self.operator)}({self.field!r})"


def applied(operator: Any, field: Any, *more: Any) -> Applied:
    """The operator applied to a field, which is given by its name."""
    if not isinstance(field, str) or more:
        raise CompositionError(
            f"{_named(operator)}(...): an operator is applied to one field, by its name",
            given=(field, *more),
            created=place(),
            remedy=f'{_named(operator)}("body")',
        )
    return Applied(operator, field)


def _named(operator: Any) -> str:
    return f"({operator!r})" if isinstance(operator, (Seq, Fork, Beside)) else repr(operator)


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
        return isinstance(other, Following) and bool(self.operator == other.operator)

    def __hash__(self) -> int:
        return hash((Following, type(self.operator)))

    def __repr__(self) -> str:
        return f"Following({self.operator!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Following, (self.operator,)

    def __identity__(self) -> Any:
        return self.operator


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
    one = each_change(operator.input)
    made_from = value.made_from(one)
    before = made_from and made_from[0].notes.get(operator)
    if made_from is None or before is None:
        return None
    old, changes = made_from
    state = apart(before.state)
    if one is not operator.input:
        state, out = operator.step(state, changes)
        found = [out]
    else:
        found = []
        for change in changes:
            state, out = operator.step(state, change)
            found.append(out)
    out_one = each_change(operator.output)
    outs = tuple(found) if out_one is operator.output else tuple(c for out in found for c in out)
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

    >>> each_change(sequence(TEXT)), each_change(TEXT)
    (TEXT, TEXT)
    """
    many = structure.built is not None and structure.built[0] is sequence
    return structure.inner if many else structure  # type: ignore[attr-defined]


def apart(state: Any) -> Any:
    """A state that can be stepped while the old one stays as it is: a copy, where `step` might
    alter it."""
    return state if _is_frozen(state) else deepcopy(state)


def _is_frozen(state: Any) -> bool:
    if isinstance(state, tuple):
        return all(map(_is_frozen, state))
    return isinstance(state, _FROZEN)


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


def result_type(operator: Operator[Any, Any, Any, Any], hint: Any = Any) -> Any:
    """The type of what a row holds for the value of an operator, when its field has the type
    `hint`; of an operator that gives rows, the type of these. It is what the operator says, in
    `result_type` or `type_of(hint)`, or what its change structure tells.

    >>> from ebbflow.operator import lists, text
    >>> result_type(text.trim >> text.upper, Text), result_type(text.index_of("a"))
    (<class 'ebbflow.change.edited.Text'>, <class 'int'>)
    >>> result_type(text.lines >> lists.items, Text)
    <class 'str'>
    """
    for stage in getattr(operator, "stages", (operator,)):
        stage = stage.inner if isinstance(stage, Each) else stage
        if hasattr(stage, "type_of"):
            hint = stage.type_of(hint)
        else:
            known = _RESULTS.get(each_change(stage.output), Any)
            hint = getattr(stage, "result_type", known)
    return hint


_RESULTS: dict[Any, Any] = {TEXT: Text, NATURAL: int, BOOL: bool, LIST: List}


def gives_rows(operator: Any) -> bool:
    """Whether what an operator gives is a bag, so many rows and not one value."""
    return each_change(operator.output) in (BAG, ZSET)


class OfField(Operator[Any, Any, Any, Any]):
    """An operator that gives rows, applied to a field, as an operator on rows: all that it gives
    for the field of each row, added up. It has no state of its own.

    Where the text of a row that goes is the one from which the text of a row that comes was made,
    only what the edit changes is given.

    >>> from ebbflow.change import Delete
    >>> from ebbflow.operator import text
    >>> from ebbflow.record import record
    >>> Doc = record("Doc", body=Text)
    >>> old = Doc(Text("to be or not to be"))
    >>> new = Doc(old.body.edited(Delete(2, 1)))
    >>> live = OfField(text.words("body")).open(ZSet.of([old]))
    >>> live.send(ZSet({old: -1, new: 1}))
    ZSet({'to': -1, 'be': -1, 'tobe': 1})
    """

    input = BAG

    def __init__(self, applied: Applied) -> None:
        self.operator, self.field = applied.operator, applied.field
        self.output = each_change(self.operator.output)

    def f(self, x: Any) -> ZSet[Any]:
        return self._added([(getattr(row, self.field), weight) for row, weight in x.items()])

    def _added(self, values: Any) -> ZSet[Any]:
        out: dict[Any, int] = {}
        for value, weight in values:
            _add(out, self.operator.f(plain(value)), weight)
        return ZSet(out)

    def init(self, x: Any) -> None:
        for row in x:
            self._note(getattr(row, self.field))

    def _note(self, value: Any) -> FieldNote | None:
        return note_of(self.operator, value) if isinstance(value, Remembering) else None

    def step(self, state: Any, change: Any) -> tuple[Any, ZSet[Any]]:
        total: dict[Any, int] = {}
        for row, weight in change.items():
            value = getattr(row, self.field)
            total[value] = total.get(value, 0) + weight
        out: dict[Any, int] = {}
        for value in [value for value, weight in total.items() if weight > 0]:
            note = self._note(value)
            old = note and note.old and note.old()
            times = min(total[value], -total.get(old, 0)) if old is not None else 0
            if note is not None and times > 0:
                for each in note.changes:
                    _add(out, each, times)
                total[value] -= times
                total[old] += times
        whole = self._added([(value, weight) for value, weight in total.items() if weight])
        return None, whole + ZSet(out)

    def __repr__(self) -> str:
        return f"{_named(self.operator)}({self.field!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return OfField, (Applied(self.operator, self.field),)


def _add(out: dict[Any, int], rows: Any, times: int) -> None:
    for row, weight in rows.items():
        out[row] = out.get(row, 0) + weight * times
