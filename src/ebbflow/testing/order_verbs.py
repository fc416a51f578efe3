"""Verbs of generated programs that look at rows in an order."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import ebbflow as ef
from ebbflow.operator.window import NthValue
from ebbflow.stream import Processor, elementwise
from ebbflow.testing.functions import ORDERED, Choices, function
from ebbflow.testing.grown import Grown, Pool, Verb, one
from ebbflow.testing.reducers import reducer
from ebbflow.testing.verbs import a_bag

ORDERS = ("int", "str", "maybe", *ORDERED)
STATES = 4


def _over(pool: Pool, choices: Choices) -> Grown | None:
    def fits(each: Grown) -> bool:
        return each.bag and not {"w1", "w2"} & {*each.shape.names}

    of = one(pool, choices, fits)
    if of is None:
        return None
    order, unit = _order(of, choices)
    per = of.shape.key(choices).given if choices.pick((1, 0)) else None
    frame = _frame(choices, unit)
    made = [_function(of, choices, unit) for _ in range(choices.pick((1, 2)))]
    functions = {f"w{i + 1}": each for i, (each, _) in enumerate(made)}
    if any(isinstance(each, NthValue) for each in functions.values()):
        frame = {}
    rows = of.rows.over(per=per, order=order, **frame).with_fields(**functions)
    dtypes = of.shape.dtypes if of.shape.names else ("any",)
    return of.then(rows, [*dtypes, *(dtype for _, dtype in made)])


def _order(of: Grown, choices: Choices) -> tuple[Any, Any]:
    """What rows are ordered by, and a unit of distance in it; None where there are no distances."""
    clocks = [each for each in ("int", "time", "zoned") if each in of.shape.dtypes]
    if clocks and bool(choices.pick((1, 0))):
        dtype = choices.pick(clocks)
        return of.shape.key(choices, dtype).given, 1 if dtype == "int" else timedelta(hours=5)
    if of.shape.paths(*ORDERS) and bool(choices.pick((0, 1))):
        return of.shape.key(choices, *ORDERS).given, None
    return function(of.shape.number(choices)), 1


def _frame(choices: Choices, unit: Any) -> dict[str, Any]:
    frames: list[dict[str, Any]] = [{}, {"rows": 2}, {"rows": (-1, 1)}, {"rows": (0, 2)},
                                    {"rows": None}]  # fmt: skip
    if unit is not None:
        frames += [{"range": unit}, {"range": (-unit, 2 * unit)}]
    return choices.pick(frames)


def _function(of: Grown, choices: Choices, unit: Any) -> tuple[Any, str]:
    """A window function or a reducer, and the dtype of its values."""
    window, text = ef.window, of.shape.number(choices)
    part: Any = function(text)
    makers: list[Callable[[], tuple[Any, str]]] = [
        lambda: (window.row_number(), "int"),
        lambda: (window.lag(part), "maybe"),
        lambda: (window.lead(part, 2, 0), "int"),
        lambda: reducer(of.shape, choices),
        lambda: reducer(of.shape, choices),
        lambda: (window.rank(), "int"),
        lambda: (window.dense_rank(), "int"),
        lambda: (window.percent_rank(), "float"),
        lambda: (window.ntile(choices.pick((2, 3))), "int"),
        lambda: (window.lag(part, 2, -1), "int"),
        lambda: (window.first_value(part), "int"),
        lambda: (window.last_value(part), "int"),
        lambda: (window.nth_value(part, choices.pick((2, -2))), "maybe"),
        lambda: (window.fill_forward(function(f"None if ({text}) % 3 == 0 else {text}")), "maybe"),
    ]
    if unit is not None:
        makers += [
            lambda: (window.island(unit), "any"),
            lambda: (window.island_number(unit), "int"),
            lambda: (window.decay(part, unit), "float"),
        ]
    return choices.pick(makers)()


def _scan(pool: Pool, choices: Choices) -> Grown | None:
    of = a_bag(pool, choices)
    if of is None:
        return None
    order, unit = _order(of, choices)
    per = of.shape.key(choices).given if choices.pick((1, 0)) else None
    text = of.shape.number(choices)
    options: dict[str, Any] = {}
    machine = f"((s + {text}) % {STATES} if ({text}) % 3 else 0)"
    match choices.pick(("sum", "machine", "tabulated", "composed", "processor")):
        case "sum":
            step: Any = function(f"(s + {text}, [s + {text}])", "s, r")
        case "machine":
            step = function(f"({machine}, [s] * (s == 3))", "s, r")
        case "tabulated":
            step = function(f"({machine}, [s] * (s > 1))", "s, r")
            options = {"states": range(STATES)}
        case "composed":
            step = function(f"(s + {text}, [s, s + {text}])", "s, r")
            options = {"of": function(text), "merge": _ADD, "act": _ADD}
        case _:
            step = function(f"({text}, [s - {text}])", "s, r")
            step = elementwise(step, state=0)
    start = None if isinstance(step, Processor) else 0
    if per is None or choices.pick((0, 1)):
        rows = of.rows.scan(step, start, order=order, per=per, type=int)
        return of.then(rows, ["int"], whole=True)
    key = of.shape.key(choices)
    by = function(key.text) if key.name == "value" else key.given
    if options and unit == 1:
        options["cuts"] = choices.pick(((), (1,), (0, 2)))
    rows = of.rows.fold(step, start, order=order, per=by, type=int, **options)
    return of.then(rows, [key.dtype, "int"], degree=1)


_ADD = function("a + b", "a, b")

ORDER_VERBS: dict[str, Verb] = {"over": _over, "scan": _scan}
