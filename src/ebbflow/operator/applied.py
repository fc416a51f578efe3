"""Operators applied to fields of rows: `text.upper("body")`, `text.concat("title", "body")`.

Applied to a field, an operator is a function of a row; one that gives rows is an operator on the
rows of a collection. Both follow how the field is edited (`ebbflow.operator.follow`).
"""

from __future__ import annotations

from typing import Any

from ebbflow.change import BAG, BOOL, LIST, NATURAL, TEXT, ZSET, List, Text
from ebbflow.change.compose import pair
from ebbflow.change.remember import Remembering
from ebbflow.errors import CompositionError, place
from ebbflow.operator.compose import Beside, Fork, Seq
from ebbflow.operator.follow import (
    FieldNote,
    Following,
    FollowingPair,
    each_change,
    note_of,
    plain,
)
from ebbflow.operator.lift import Each
from ebbflow.operator.operator import Operator
from ebbflow.zset import ZSet


class Applied:
    """An operator applied to a field of the rows, or one on pairs to two.

    >>> from ebbflow.operator import text
    >>> text.count("ebb")("body"), text.concat("title", "body")
    (count('ebb')('body'), concat('title', 'body'))
    """

    __slots__ = ("fields", "operator")

    def __init__(self, operator: Any, *fields: str) -> None:
        self.operator = operator
        self.fields = fields

    @property
    def of_value(self) -> Following:
        """The operator as a function of what the field holds, or of a pair."""
        return (Following if len(self.fields) == 1 else FollowingPair)(self.operator)

    @property
    def structures(self) -> tuple[Any, ...]:
        """The change structures of what the fields hold."""
        one = each_change(self.operator.input)
        sides = (one.first, one.second) if _on_pairs(self.operator) else (one,)
        return tuple(map(each_change, sides))

    def __call__(self, row: Any) -> Any:
        values = [getattr(row, field) for field in self.fields]
        return self.of_value(values[0] if len(values) == 1 else tuple(values))

    def __repr__(self) -> str:
        return f"{_named(self.operator)}({', '.join(map(repr, self.fields))})"


def _on_pairs(operator: Any) -> bool:
    built = each_change(operator.input).built
    return built is not None and built[0] is pair


def applied(operator: Any, *fields: Any) -> Applied:
    """The operator applied to a field, or one on pairs to two, given by their names."""
    wanted = 2 if _on_pairs(operator) else 1
    if len(fields) != wanted or not all(isinstance(field, str) for field in fields):
        count = "two fields, by their names" if wanted == 2 else "one field, by its name"
        raise CompositionError(
            f"{_named(operator)}(...): this operator is applied to {count}",
            given=fields,
            created=place(),
            remedy=f'{_named(operator)}("title", "body")'
            if wanted == 2
            else f'{_named(operator)}("body")',
        )
    return Applied(operator, *fields)


def _named(operator: Any) -> str:
    return f"({operator!r})" if isinstance(operator, (Seq, Fork, Beside)) else repr(operator)


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
        self.operator, (self.field,) = applied.operator, applied.fields
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
