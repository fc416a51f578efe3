"""Random reducers as somebody would write them, whose steps can be read: sums of what is computed
of a row, in one number or several, with all that can be put around them."""

from __future__ import annotations

from operator import add, sub, xor
from random import Random
from typing import Any, NamedTuple

from tests.oracle.column_programs import TESTS, Sale

import ebbflow as ef
from ebbflow.reducer import Reducer


class Totals(NamedTuple):
    n: int
    total: int
    odd: bool


INTS = [
    "r.price", "r.price * r.id - 3", "r.price ** 2", "(r.price // 2 if r.price > 0 else -r.price)",
    "(0 if r.tax is None else r.tax)", "(r.city == 'Rome')", "(r.rate > 0.5)", "r.price % 7",
    "abs(r.price)", "max(r.price, r.id, 3)", "(r.price & 6) + (r.id ^ 5)", "len(r.city)",
    "(r.rate < r.price) * 2", "int(r.rate)", "bool(r.tax) - 1", "(r.price and r.id)",
    "(6 // r.price if r.price and r.city else 1)", "(r.day.year - 2000)", "min(r.price, -r.id)",
    "(r.price == r.tax)", "(-r.price if not r.paid else ~r.price)",
]  # fmt: skip
"""What may be added up: of a sale, or with a bare x of its price."""
SHOWN: dict[str, Any] = {
    "a[0] / a[1] if a[1] else None": float | None, "a[0] * 2 + a[1]": int, "a[0] > a[1]": bool,
    "max(a[0], a[1])": int, "a[0] / (a[1] + 1) if a[1] >= 0 else 0": float,
    "a[1] and a[0] // a[1]": int, "abs(a[0]) % 1000 / 8": float, "float(a[0])": float,
    "None if a[1] > 3 else a[0]": int | None, "0.5 * a[0] - a[1]": float,
}  # fmt: skip
"""What may be shown of two sums, and of which type it is."""


def reducer(random: Random) -> Any:
    """One of rows that are sales."""
    shown = random.choice(list(SHOWN))
    first, second = (f"({random.choice(INTS)})" for _ in range(2))
    shape = random.randrange(9)
    start = random.choice([0, 0, 7, -1])
    named: dict[str, Any] = {"partial": random.choice([None, False])}
    if shape == 0:
        return _made(start, f"a + {first}", f"a - {first}", type=int, **named)
    if shape == 1:
        return Reducer(start, add, sub, **named, type=int).on(eval(f"lambda r: {first}"))
    if shape == 2:
        return Reducer(start, xor, xor, **named).on("price").then(float)
    if shape == 3:
        odd = f"a ^ ({first} % 2 == 1)"
        return _made(random.choice([True, False]), odd, odd, **named)
    if shape == 4:
        times = eval("lambda a, x, n: a + x * n * 3")
        steps = eval("lambda a, x: a + x * 3"), eval("lambda a, x: a - x * 3")
        return Reducer(start, *steps, repeat=times, **named).on("price")
    if shape == 5:
        return _made(
            Totals(0, start, False),
            f"Totals(a.n + 1, a.total + {first}, a.odd ^ r.paid)",
            f"Totals(a.n - 1, a.total - {first}, a.odd ^ r.paid)",
            random.choice(["a.total", "a.total if a.odd else -a.n", "a.n - a.total"]),
            type=int, **named,
        )  # fmt: skip
    if shape == 6:
        several = eval("lambda a, x: (a[0] + x[0] * x[1], a[1] + x[1])")
        less = eval("lambda a, x: (a[0] - x[0] * x[1], a[1] - x[1])")
        result = eval(f"lambda a: {shown}")
        named["type"] = SHOWN[shown]
        return Reducer((0, start), several, less, result=result, **named).on("price", "id")
    if shape == 7:
        some = random.choice(["r.price > 2", "r.tax is not None", "r.city in ('Rome', '')"])
        steps = f"(a[0] + {first}, a[1] + 1)", f"(a[0] - {first}, a[1] - 1)"
        found = _made((0, 0), *steps, shown, type=SHOWN[shown], **named)
        return found.where(eval(f"lambda r: {some}")).where(lambda r: r.id != 3)
    guarded = [f"(a[0] {s} {first}, a[1] {s} {second}) if r.paid else a" for s in "+-"]
    return _made((start, 0), *guarded, shown, type=SHOWN[shown], **named)


def _made(init: Any, more: str, less: str, shown: str = "", **named: Any) -> Any:
    result = eval(f"lambda a: {shown}", {"Totals": Totals}) if shown else None
    steps = [eval(f"lambda a, r: {each}", {"Totals": Totals}) for each in (more, less)]
    return Reducer(init, *steps, result=result, **named)


def written(random: Random) -> Any:
    """A program with such reducers."""
    rows: Any = ef.Input("sales", Sale)
    return grouped(random, rows.filter(random.choice(TESTS)) if random.random() < 0.4 else rows)


def grouped(random: Random, rows: Any) -> Any:
    """A group-by with such reducers, and others beside them."""
    chosen = [reducer(random) for _ in range(random.randrange(1, 3))]
    others = [ef.count(), ef.sum("price"), ef.max("price"), ef.min("rate")]
    chosen += random.sample([*others, ef.stddev("price")], random.randrange(3))
    named = {f"x{at}": each for at, each in enumerate(chosen)}
    key = random.choice([["city"], ["city", "paid"], []])
    return rows.group_by(*key).agg(**named) if key else rows.agg(**named)
