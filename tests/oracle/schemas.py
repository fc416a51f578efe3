"""Random row types, and what may become of them; with rows of both.

A `Version` is a row type and a list of rows of it. `grown` makes another version of it: fields
added with a default, widened, in another order, under other names, or the class renamed; and the
rows as they are then, made here without any help of what is tested.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import field, make_dataclass
from datetime import date, datetime
from random import Random
from typing import Any, NamedTuple

from ebbflow.frozen import Frozen

Make = Callable[[Random], Any]
DAY = date(2026, 11, 17)

KINDS: list[tuple[Any, Make]] = [
    (int, lambda dice: dice.randrange(-3, 4)),
    (int, lambda dice: dice.choice([-(2**53), 2**40, 0])),
    (str, lambda dice: dice.choice(["", "ebb", "flöw", "\x00"])),
    (float, lambda dice: dice.choice([0.5, -0.0, float("inf"), float("nan")])),
    (bool, lambda dice: dice.random() < 0.5),
    (date, lambda dice: DAY),
    (datetime, lambda dice: datetime(2026, 11, dice.randrange(1, 28))),
    (int | None, lambda dice: dice.choice([None, 1, 2])),
    (list[int], lambda dice: tuple(range(dice.randrange(3)))),
    (tuple[int, str], lambda dice: (dice.randrange(2), "x")),
    (dict[str, int], lambda dice: Frozen({"k": dice.randrange(3)})),
    (set[int], lambda dice: frozenset(range(dice.randrange(3)))),
]
WIDER: dict[Any, list[tuple[Any, Callable[[Any], Any]]]] = {
    int: [(float, float), (int | None, lambda x: x), (float | None, float), (int | str, int)],
    str: [(str | None, str), (str | int, str)],
    int | None: [(float | None, lambda x: None if x is None else float(x))],
    list[int]: [(list[float], lambda x: tuple(map(float, x)))],
    tuple[int, str]: [(tuple[float, str | None], lambda x: (float(x[0]), x[1]))],
    dict[str, int]: [(dict[str, float], lambda x: Frozen({k: float(v) for k, v in x.items()}))],
    set[int]: [(set[float], lambda x: frozenset(map(float, x)))],
}
DEFAULTS: list[tuple[Any, Any]] = [(int, 0), (str, ""), (float | None, None), (tuple[int, ...], ())]


class Column(NamedTuple):
    name: str
    hint: Any
    values: list[Any]
    default: Any = ...


class Version:
    """A row type and rows of it; `flavour` is "tuple", "frozen" or "slots"."""

    def __init__(self, name: str, columns: list[Column], flavour: str) -> None:
        self.name, self.columns, self.flavour = name, columns, flavour
        self.type = made(name, columns, flavour)
        names = [each.name for each in columns]
        rows = zip(*[each.values for each in columns], strict=True)
        self.rows = [self.type(**dict(zip(names, row, strict=True))) for row in rows]


def made(name: str, columns: list[Column], flavour: str) -> Any:
    """A class that pickles find where they look for it."""
    if flavour == "tuple":
        cls: Any = NamedTuple(name, [(each.name, each.hint) for each in columns])  # type: ignore[misc]
        defaults = [each.default for each in columns if each.default is not ...]
        if defaults:
            cls.__new__.__defaults__ = tuple(defaults)
            at = len(columns) - len(defaults)
            cls._field_defaults = {each.name: each.default for each in columns[at:]}
    else:
        fields: list[Any] = [
            (each.name, each.hint)
            if each.default is ...
            else (each.name, each.hint, field(default=each.default))
            for each in columns
        ]
        cls = make_dataclass(name, fields, frozen=True, slots=flavour == "slots")
    cls.__module__, cls.__qualname__ = __name__, name
    setattr(sys.modules[__name__], name, cls)
    return cls


def version(dice: Random, flavour: str, name: str = "Row", *, nested: bool = True) -> Version:
    """A row type with an `id`, and some rows."""
    count = dice.randrange(2, 9)
    columns = [Column("id", int, list(range(count)))]
    for i in range(dice.randrange(1, 5)):
        hint, make = dice.choice(KINDS)
        columns.append(Column(f"f{i}", hint, [make(dice) for _ in range(count)]))
    if nested and dice.random() < 0.4:
        inner = version(dice, flavour, f"{name}Part", nested=False)
        columns.append(Column("part", inner.type, [dice.choice(inner.rows) for _ in range(count)]))
        INNER[inner.type] = inner
    return Version(name, columns, flavour)


INNER: dict[Any, Version] = {}


def grown(dice: Random, old: Version) -> tuple[Version, dict[str, str]]:
    """Another version, and how fields of the old one are called in it."""
    columns, renamed = [], {}
    for each in old.columns:
        name = each.name
        if dice.random() < 0.3 and name != "id":
            renamed[name] = f"{name}_new"
            name = renamed[name]
        hint, values = each.hint, each.values
        if hint in INNER:
            inner = INNER[hint]
            later, _ = grown_columns(dice, inner)
            places = {row: i for i, row in enumerate(inner.rows)}
            values = [later.rows[places[value]] for value in values]
            hint = later.type
        elif dice.random() < 0.5 and hint in WIDER:
            hint, change = dice.choice(WIDER[hint])
            values = [change(value) for value in values]
        columns.append(Column(name, hint, values))
    if dice.random() < 0.4:
        dice.shuffle(columns)
    for i in range(dice.randrange(3)):
        hint, default = dice.choice(DEFAULTS)
        columns.append(Column(f"n{i}", hint, [default] * len(old.rows), default))
    name = dice.choice([old.name, f"{old.name}Later"])
    return Version(name, columns, old.flavour), renamed


def grown_columns(dice: Random, inner: Version) -> tuple[Version, dict[str, str]]:
    """The type of a nested record with a field more; its fields keep their names."""
    extra = Column("more", str, ["-"] * len(inner.rows), "-")
    return Version(f"{inner.name}Later", [*inner.columns, extra], inner.flavour), {}
