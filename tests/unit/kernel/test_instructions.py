"""Expressions on columns give what Python gives, row by row, or say that they cannot."""

from __future__ import annotations

import random
from datetime import date, timedelta
from typing import Any, NamedTuple

import numpy as np
import pytest

from ebbflow.expression.node import Constant, Expression, Get, Operation
from ebbflow.kernel import DoesNotFit
from ebbflow.kernel.arithmetic import NotInColumns
from ebbflow.kernel.columns import columns_of_rows
from ebbflow.kernel.expressions import on_columns
from ebbflow.kernel.instructions import BLOCK, GIVEN, LESS, WORD, Instructions
from ebbflow.kernel.words import Texts, decoded


class Row(NamedTuple):
    a: int
    b: int | None
    x: float
    y: float | None
    t: bool
    d: date
    s: str


NUMBERS = "+", "-", "*", "/", "//", "%"
COMPARED = "==", "!=", "<", "<=", ">", ">="
TRUTHS = "and", "or", "&", "|", "^"
HARD_INTS = 0, 1, -1, 3, -7, 2**31, -(2**31), 2**53, 2**53 + 1, 2**63 - 1, -(2**63) + 1
HARD_FLOATS = 0.0, -0.0, 1.5, -2.5, float("nan"), float("inf"), 1e300
TAME_INTS, TAME_FLOATS = (0, 1, -1, 3, -7, 40), (0.0, 1.5, -2.5, 8.0)


def a_row(draw: random.Random, tame: bool) -> Row:
    ints, floats = (TAME_INTS, TAME_FLOATS) if tame else (HARD_INTS, HARD_FLOATS)
    day = date(1970, 1, 1) + timedelta(days=draw.choice([0, -1, 59, 60, 365, -700_000, 2_900_000]))
    return Row(
        draw.choice(ints), draw.choice([None, *ints]), draw.choice(floats),
        draw.choice([None, *floats]), draw.random() < 0.5, day, draw.choice(["", "tide", "ebb"]),
    )  # fmt: skip


def a_number(draw: random.Random, depth: int) -> Expression:
    if depth == 0 or draw.random() < 0.2:
        at = draw.randrange(7)
        if at < 4:
            return Get(0, Row._fields[at], at)
        return Constant(draw.choice([0, 2, -3, 0.5, -0.0, 2**62]))
    op = draw.choice([*NUMBERS, *NUMBERS, "abs", "neg", "float", "if", "year", "len"])
    if op == "len":
        return Operation("len", (Get(0, "s", 6),))
    if op == "year":
        return Operation(".", (Get(0, "d", 5), Constant(draw.choice(["year", "month", "day"]))))
    if op == "if":
        parts = a_truth(draw, depth - 1), a_number(draw, depth - 1), a_number(draw, depth - 1)
        return Operation("if", parts)
    if op in ("abs", "float"):
        return Operation(op, (a_number(draw, depth - 1),))
    if op == "neg":
        return Operation("-", (a_number(draw, depth - 1),))
    return Operation(op, (a_number(draw, depth - 1), a_number(draw, depth - 1)))


def a_truth(draw: random.Random, depth: int) -> Expression:
    if depth == 0:
        return Get(0, "t", 4)
    op = draw.choice([*COMPARED, *TRUTHS, "not", "is", "is not", "text"])
    if op == "text":
        return Operation("==", (Get(0, "s", 6), Constant("tide")))
    if op == "not":
        return Operation(op, (a_truth(draw, depth - 1),))
    if op in ("is", "is not"):
        return Operation(op, (a_number(draw, depth - 1), Constant(None)))
    if op in TRUTHS:
        return Operation(op, (a_truth(draw, depth - 1), a_truth(draw, depth - 1)))
    return Operation(op, (a_number(draw, depth - 1), a_number(draw, depth - 1)))


def by_python(expression: Expression) -> Any:
    bound: dict[str, Any] = {}

    def bind(value: Any) -> str:
        name = f"v{len(bound)}"
        bound[name] = value
        return name

    return eval(f"lambda row: {expression.source(bind, ['row'])}", bound)


def same(one: Any, other: Any) -> bool:
    return bool(one == other or (one != one and other != other))


@pytest.mark.parametrize("seed", range(400))
def test_expressions_on_columns_are_those_of_python(seed: int) -> None:
    draw = random.Random(seed)
    make = a_truth if draw.random() < 0.4 else a_number
    expression, texts = make(draw, draw.randint(1, 4)), Texts()
    try:
        computed = on_columns(expression, [Row], texts)
    except NotInColumns:
        return
    program, function = Instructions([computed.as_words(computed.form)]), by_python(expression)
    tame = draw.random() < 0.5 and Constant(2**62) not in expression.walk()
    good: dict[Row, Any] = {}
    for _ in range(60):
        row = a_row(draw, tame)
        columns = columns_of_rows({row: 1}, Row, texts)
        try:
            words = program.fields([columns.words], 1)[0]
        except DoesNotFit:
            if tame:
                with pytest.raises((TypeError, ZeroDivisionError, AssertionError)):
                    assert abs(function(row)) < 2**53
            continue
        (good[row],) = decoded(computed.form, words, texts)
        assert same(good[row], function(row)), row
    if good:
        rows = list(good) * (2 * BLOCK // len(good) + 1)
        columns = columns_of_rows(dict.fromkeys(good, 1), Row, texts)
        many = columns.taken(np.arange(len(rows)) % len(good))
        found = decoded(computed.form, program.rows([many.words], len(rows))[:, 0], texts)
        assert all(map(same, found, [good[row] for row in rows]))


def test_the_rows_for_which_a_test_holds_are_chosen_over_all_blocks() -> None:
    numbers = np.arange(3 * BLOCK + 7)
    few = Instructions([(LESS, (GIVEN, (0, 0)), (WORD, BLOCK + 1))])
    assert few.chosen([lambda at: numbers], len(numbers)).tolist() == list(range(BLOCK + 1))
    assert few.chosen([lambda at: numbers[:0]], 0).tolist() == []


def test_words_that_are_not_side_by_side_are_read() -> None:
    numbers = np.arange(20).reshape(10, 2)
    program = Instructions([(GIVEN, (0, 1)), (GIVEN, (0, 0))])
    assert program.rows([lambda at: numbers[:, at]], 10).tolist() == numbers[:, ::-1].tolist()
