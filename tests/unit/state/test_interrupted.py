"""Containers of rows: an epoch that is cut short anywhere, and then its rollback, is taken back."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from tests.oracle.interrupts import dice_of, instants, interrupted

from ebbflow.errors import ViewClosed
from ebbflow.fn import Fn
from ebbflow.operator.keyed import States
from ebbflow.state.cells import ABSENT, Cells
from ebbflow.state.index import Index
from ebbflow.state.keyed_index import KeyedIndex
from ebbflow.state.ordered import OrderedIndex
from ebbflow.state.spots import SpotIndex
from ebbflow.state.tallies import Tallies
from ebbflow.state.tree import Tree

FIRST = {1: [("a", 1), ("c", 1), ("e", 1)], 2: [("x", 1)], 3: [("z", 1)]}
THEN = {1: [("a", 1), ("b", 2), ("c", -1)], 2: [("x", 1)], 3: [("z", -1)]}
LAST = {1: [("a", -2), ("d", 1)], 4: [("q", 2)]}


class Puts:
    """Rows that are put into an index twice in an epoch."""

    def __init__(self, index: Any) -> None:
        self.container = index
        index.put(FIRST)

    def step(self) -> None:
        self.container.put(THEN)
        self.container.put(LAST)

    def held(self) -> Any:
        return {key: dict(group) for key, group in self.container.groups.items()}


class KeyedRows(Puts):
    def __init__(self) -> None:
        self.container = KeyedIndex(Fn(len), Fn(str.lower))
        self.container.apply(dict.fromkeys(["fig", "pear", "kiwi"], 1))

    def step(self) -> None:
        self.container.apply({"FIG": 1, "fig": -1, "plum": 1, "pear": -1})
        self.container.apply({"FIG": -1, "kiwi": -1, "Plum": 1, "plum": -1, "banana": 1})


class Swaps(Puts):
    def __init__(self, cells: Any) -> None:
        self.container = cells
        cells.swap({"a": 1, "b": 2})

    def step(self) -> None:
        self.container.swap({"a": 5, "b": ABSENT, "c": 1})
        self.container.swap({"a": ABSENT, "b": 4, "c": 2, "d": 1})

    def held(self) -> Any:
        return deepcopy(self.container.values)


class CellsOfCells(Swaps):
    """Cells whose values are containers of their own."""

    def __init__(self) -> None:
        self.container = States()
        self.container.swap({key: Cells({"x": 1}) for key in "ab"})

    def step(self) -> None:
        values, touch = self.container.values, self.container.touch
        for key in "ab":
            touch(values[key]).swap({"x": 2, "y": 3})
        self.container.swap({"b": ABSENT, "c": Cells({"x": 9})})


class Counts(Swaps):
    def __init__(self) -> None:
        self.container = Tallies({"a": {1: 2, 2: 1}, "b": {1: 1}})

    def step(self) -> None:
        self.container.count([("a", 1, -2), ("b", 1, 1), ("c", 1, 1)])
        self.container.discount([("b", 1, 2), ("a", 2, 1)])
        self.container.drop_empty()


MAKERS = {
    "index": lambda: Puts(Index()),
    "spots": lambda: Puts(SpotIndex(None, lambda row: (row,))),
    "trees": lambda: Puts(OrderedIndex(Tree())),
    "keyed": KeyedRows,
    "cells": lambda: Swaps(Cells()),
    "states": CellsOfCells,
    "tallies": Counts,
}


def taken_back(made: Any, apart: int) -> tuple[int, int]:
    """Interrupt a step at instants, and most times its rollback as well. Gives the number of
    rollbacks, and of those that two interrupts at once have spoilt."""
    tries = spoilt = 0
    dice = dice_of("the second", apart)
    for point in instants(1, 100_000, apart):
        each = made()
        was, container = each.held(), each.container
        second = dice.choice([0, dice.randint(1, 9), dice.randint(1, 150)])
        container.begin()

        def epoch(each: Any = each, second: int = second) -> None:
            try:
                each.step()
            finally:
                if second:
                    each.container.rollback()

        tries += 1
        try:
            cut = interrupted(epoch, *((point, second) if second else (point,)), published=False)
            if container.journal is not None:
                container.rollback()
        except ViewClosed:
            spoilt += 1
            continue
        assert each.held() == was, (point, second)
        if not cut:
            break
    return tries, spoilt


@pytest.mark.parametrize("name", MAKERS)
def test_an_epoch_that_is_cut_short_anywhere_is_taken_back(name: str) -> None:
    tries, spoilt = taken_back(MAKERS[name], 5)
    assert tries > 20
    assert 6 * spoilt < tries  # two interrupts within a few instructions


@pytest.mark.slow
@pytest.mark.parametrize("name", MAKERS)
def test_an_epoch_that_is_cut_short_at_every_instruction_is_taken_back(name: str) -> None:
    tries, spoilt = taken_back(MAKERS[name], 1)
    assert tries > 100
    assert 6 * spoilt < tries


def test_a_view_says_so_where_nobody_knows_what_two_interrupts_have_left() -> None:
    index: Index[Any, Any] = Index()
    index.begin()
    index.journal = [None]  # an interrupt before `put` could note where the one before has come
    for _ in range(2):
        with pytest.raises(ViewClosed, match="two interrupts came at once"):
            index.rollback()
