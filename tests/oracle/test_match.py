"""Patterns of events against batch, and against regular expressions, which find the same matches
where a row is a letter."""

from __future__ import annotations

import re
from random import Random
from typing import Any

import pytest

import ebbflow as ef
from ebbflow.engine.local import run
from ebbflow.testing import follow
from ebbflow.zset import ZSet

LETTERS = ef.Input("letters", tuple[int, int, str])


def is_(which: str) -> Any:
    return lambda row: row[2] in which


def at(row: Any) -> Any:
    return row[1]


PATTERNS: list[tuple[dict[str, Any], bool, str]] = [
    ({"a": is_("a"), "b": is_("b")}, True, "(a)(b)"),
    ({"a": is_("a"), "b": is_("b"), "c": is_("c")}, False, "(a)[^b]*(b)[^c]*(c)"),
    ({"a": is_("a"), "b": ef.once(is_("b"), unless=is_("x"))}, False, "(a)[^bx]*(b)"),
    ({"a": is_("a"), "n": ef.many(is_("b")), "c": is_("c")}, True, "(a)(b+)(c)"),
    ({"n": ef.many(is_("ab"))}, True, "([ab]+)"),
    ({"a": is_("a"), "n": ef.many(is_("b"))}, True, "(a)(b+)"),
    ({"n": ef.many(is_("a")), "m": ef.many(is_("bc"))}, True, "(a+)([bc]+)"),
    ({"a": is_("a")}, False, "(a)"),
]


@pytest.mark.parametrize(("steps", "adjacent", "pattern"), PATTERNS, ids=lambda x: str(x)[:30])
def test_matches_are_those_of_a_regular_expression(
    steps: Any, adjacent: bool, pattern: str
) -> None:
    dice = Random(pattern)
    found = LETTERS.match(steps, order=at, adjacent=adjacent)
    view, text = found.run(), dict[int, str]()
    for _ in range(40):
        place = dice.randrange(30)
        change = {(0, place, text.pop(place)): -1} if place in text else {}
        if not change or dice.random() < 0.5:
            text[place] = dice.choice("aabbcx")
            new = (0, place, text[place])
            change = {row: n for row, n in {**change, new: change.get(new, 0) + 1}.items() if n}
        view.step(letters=change)
        places = sorted(text)
        whole = "".join(text[place] for place in places)
        expected = []
        for each in re.finditer(pattern, whole):
            values = [
                len(each[i + 1]) if isinstance(step, ef.flow.match.Awaited) and step.reducer
                else (0, places[each.start(i + 1)], each[i + 1])
                for i, step in enumerate(steps.values())
            ]  # fmt: skip
            expected.append(tuple(values))
        assert view.value == ZSet.of(expected)


@pytest.mark.parametrize("adjacent", [False, True])
def test_oracle_patterns_equal_batch_under_late_and_withdrawn_rows(adjacent: bool) -> None:
    for seed in range(40):
        dice = Random(f"{adjacent} {seed}")
        steps = {}
        for name in "pqr"[: dice.randint(1, 3)]:
            which = "".join(dice.sample("abc", dice.randint(1, 2)))
            unless = is_("x") if dice.random() < 0.3 else None
            many = dice.random() < 0.4
            steps[name] = (ef.many if many else ef.once)(is_(which), unless=unless)
        within = dice.choice([None, 3, 8])
        found = LETTERS.match(
            steps, per=lambda row: row[0], order=at, within=within, adjacent=adjacent
        )
        there, epochs = ZSet[Any](), []
        for number in range(8):
            new = [
                (dice.randrange(2), dice.randrange(15), dice.choice("aabbcxy"))
                for _ in range(12 if not number else dice.randrange(3))
            ]
            gone = dice.sample(sorted(there), min(len(list(there)), dice.randrange(3)))
            epochs.append({"letters": ZSet.of(new) - ZSet.of(gone)})
            there = there + epochs[-1]["letters"]
        follow(run, found, epochs)
