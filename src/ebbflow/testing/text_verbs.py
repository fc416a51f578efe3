"""Operators on edited fields in generated programs: what is computed from a text in a row.

The texts are short ones, and their fields may be declared as `str`: what an operator makes of them
is a `Text`, and then goes on through the program as any other field does.
"""

from __future__ import annotations

from typing import Any

from ebbflow.operator import lists, text
from ebbflow.testing.functions import Choices
from ebbflow.testing.grown import Grown, Pool, Verb, one

VALUES: list[tuple[Any, str]] = [
    (text.length, "int"),
    (text.count("a"), "int"),
    (text.upper, "any"),
    (text.index_of("b"), "int"),
    (text.replace("a", "bb") >> text.trim, "any"),
    (text.substring(1, 3), "any"),
    (text.lines, "any"),
    (text.starts_with("a"), "any"),
]
"""Operators that give one value, with the dtype of what they give."""


def on_text(pool: Pool, choices: Choices) -> Grown | None:
    """One more field made of a text, or a row for each word or line of it."""
    of = one(pool, choices, _texts)
    if of is None:
        return None
    field = choices.pick(_texts(of))
    if not choices.pick((1, 1, 0)) and of.bag:
        operator = choices.pick((text.words, text.lines >> lists.items))
        key = of.shape.key(choices)
        per = key.given if key.name and key.name != "value" else None
        rows = of.rows.through(operator(field), per=per, type=None if per else str)
        return of.then(rows, [key.dtype, "str"]) if per else of.then(rows, ("str",), whole=True)
    operator, dtype = choices.pick(VALUES)
    if "x" in of.shape.names:
        return of.then(of.rows.select(x=operator(field)), (dtype,))
    others = [name for name in of.shape.names if name != field]
    return of.then(
        of.rows.select(*others, x=operator(field)),
        [of.shape.dtypes[of.shape.names.index(name)] for name in others] + [dtype],
    )


def _texts(each: Grown) -> list[str]:
    named = zip(each.shape.names, each.shape.dtypes, strict=False)
    return [name for name, dtype in named if dtype == "str"]


TEXT_VERBS: dict[str, Verb] = {"text": on_text}
