"""Verbs of generated programs that give rows another shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ebbflow.reducer import count, max, sum
from ebbflow.testing.functions import Choices, function
from ebbflow.testing.grown import Grown, Pool, Verb, one

FILLING = {"int": 7, "maybe": 7, "str": "z"}


def _named(pool: Pool, choices: Choices, *dtypes: str, least: int = 1) -> Grown | None:
    """A collection whose rows have fields, at least so many of these dtypes."""

    def fits(each: Grown) -> bool:
        there = [dtype for dtype in each.shape.dtypes if not dtypes or dtype in dtypes]
        return bool(each.shape.names) and len(there) >= least

    return one(pool, choices, fits)


def _fields(of: Grown) -> dict[str, str]:
    return dict(zip(of.shape.names, of.shape.dtypes, strict=True))


def _free(of: Grown, *wanted: str) -> list[str]:
    """Names like these that no field of the rows has."""
    found: list[str] = []
    for each in wanted:
        while each in of.shape.names or each in found:
            each += "x"
        found.append(each)
    return found


def _with_fields(of: Grown, choices: Choices) -> Grown:
    text, dtype = of.shape.term(choices)
    name = choices.pick((*_free(of, "x"), choices.pick(of.shape.names)))
    fields = {**_fields(of), name: dtype}
    return of.then(of.rows.with_fields(**{name: function(text)}), list(fields.values()))


def _rename(of: Grown, choices: Choices) -> Grown:
    old = choices.pick(of.shape.names)
    (new,) = _free(of, "y")
    return of.then(of.rows.rename(**{new: old}), of.shape.dtypes)


def _fill_null(of: Grown, choices: Choices) -> Grown | None:
    fields = _fields(of)
    names = [name for name, dtype in fields.items() if dtype in FILLING]
    if not names:
        return None
    name = choices.pick([*[n for n in names if fields[n] == "maybe"], *names])
    rows = of.rows.fill_null(**{name: FILLING[fields[name]]})
    fields[name] = "int" if fields[name] == "maybe" else fields[name]
    return of.then(rows, list(fields.values()))


def _explode(of: Grown, choices: Choices) -> Grown:
    (text, dtype), n = of.shape.term(choices), of.shape.number(choices)
    items, item, at = _free(of, "items", "item", "at")
    position, keep = choices.pick((None, at)), choices.pick((False, True))
    held = of.rows.with_fields(**{items: function(f"({text}, {text}, {text})[:({n}) % 4]")})
    rows = held.explode(items, into=item, position=position, keep_empty=keep)
    optional = {"int": "maybe", "maybe": "maybe"}.get(dtype, "any") if keep else dtype
    dtypes = [*of.shape.dtypes, optional]
    if position is not None:
        dtypes.append("maybe" if keep else "int")
    return of.then(rows, ["any" if each == optional and keep else each for each in dtypes])


def _unpivot(of: Grown, choices: Choices) -> Grown | None:
    alike = [n for n, dtype in _fields(of).items() if dtype == "int"]
    if not alike:
        return None
    chosen = list(dict.fromkeys((choices.pick(alike), choices.pick(alike))))
    name, value = _free(of, "of", "is_")
    rest = [dtype for n, dtype in _fields(of).items() if n not in chosen]
    rows = of.rows.unpivot(*chosen, name=name, value=value)
    return of.then(rows, [*rest, "str", "int"])


def _sample(of: Grown, choices: Choices) -> Grown:
    by = of.shape.key(choices).given
    return of.then(of.rows.sample(choices.pick((0.5, 0.8)), per=by, seed=choices.pick((0, 1))))


def _pivot(of: Grown, choices: Choices) -> Grown | None:
    if not of.bag:
        return None
    n = of.shape.number(choices)
    using: Any = choices.pick((count(), sum(function(n)), max(function(n))))
    numbers = choices.pick(((0, 1), (1, 2, 3)))
    values = dict(zip(numbers, _free(of, "one", "two", "three"), strict=False))
    per = of.shape.key(choices) if choices.pick((1, 0)) else None
    given = None if per is None else per.given
    rows = of.rows.pivot(function(n), values, using=using, per=given)
    front = [] if per is None else [per.dtype]
    what = "int" if using.made[0] is count else "maybe"
    return of.then(rows, [*front, *[what] * len(values)], degree=1)


SHAPES: tuple[Callable[[Grown, Choices], Grown | None], ...] = (
    _with_fields, _rename, _fill_null, _explode, _unpivot, _sample, _pivot,
)  # fmt: skip


def _reshape(pool: Pool, choices: Choices) -> Grown | None:
    of = _named(pool, choices)
    return None if of is None else choices.pick(SHAPES)(of, choices)


RESHAPE_VERBS: dict[str, Verb] = {"reshape": _reshape}
