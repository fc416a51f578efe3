"""Random inputs of the example programs with loops: rows that come and go.

`size` is how many names, places or lines there are to draw from; about so many rows are there at a
time, or twice as many where rows are edges. Graphs are then neither empty nor all in one piece.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from types import ModuleType
from typing import Any, NamedTuple

from tests.docs.test_examples import Rows as Kept

import ebbflow as ef

Draw = Callable[[ModuleType, Random, int], Any]


class Rows(NamedTuple):
    """How rows of one input are drawn, and how many there are for each of `size`."""

    draw: Draw
    share: float = 1.5


def node(dice: Random, size: int) -> str:
    return f"n{dice.randrange(size):02}"


def edge(name: str, share: float = 1.5) -> Rows:
    """Rows of this type, from one node to another."""
    return Rows(
        lambda module, dice, size: getattr(module, name)(node(dice, size), node(dice, size)), share
    )


def some(draw: Callable[[Random, int], Any], share: float) -> Rows:
    """Rows that are values themselves."""
    return Rows(lambda _, dice, size: draw(dice, size), share)


def file(module: ModuleType, dice: Random, size: int) -> Any:
    def calls() -> str:
        return "; ".join(f"{node(dice, size)}()" for _ in range(dice.randint(1, 2)))

    defined = [f"def {node(dice, size)}(): {calls()}" for _ in range(dice.randint(0, 4))]
    loose = [calls()] if dice.random() < 0.3 else []
    return module.File(f"{dice.randrange(size)}.py", "\n".join([*defined, *loose]))


def statement(module: ModuleType, dice: Random, size: int) -> Any:
    kind = dice.choice(["address", "copy", "copy", "load", "store"])
    return module.Statement(dice.randrange(3 * size), node(dice, size), kind, node(dice, size))


def employee(module: ModuleType, dice: Random, size: int) -> Any:
    boss = None if dice.random() < 0.1 else dice.randrange(size)
    return module.Employee(
        dice.randrange(size), f"e{dice.randrange(size)}", boss, dice.randrange(9)
    )


def flight(module: ModuleType, dice: Random, size: int) -> Any:
    departs = 60 * dice.randrange(20)
    return module.Flight(
        f"F{dice.randrange(3 * size)}", node(dice, size), node(dice, size), departs,
        departs + 30 * dice.randint(1, 6), dice.randrange(5),
    )  # fmt: skip


INPUTS: dict[str, dict[str, Rows]] = {
    "power_grid": {
        "plants": Rows(lambda m, dice, size: m.Town(node(dice, size)), 0.1), "lines": edge("Line"),
    },
    "packages": {
        "needs": edge("Needs", 1.2),
        "advisories": Rows(
            lambda m, dice, size: m.Advisory(f"A-{dice.randrange(size)}", node(dice, size), 1), 0.3
        ),
    },
    "same_customer": {
        "accounts": Rows(
            lambda m, dice, size: m.Account(
                dice.randrange(2 * size), dice.choice(["", f"mail{dice.randrange(size)}"]),
                dice.choice(["", f"call{dice.randrange(size)}"]),
            )
        )
    },
    "import_cycles": {"imports": edge("Import")},
    "roads": {
        "depots": some(node, 0.1),
        "roads": Rows(
            lambda m, dice, size: m.Road(node(dice, size), node(dice, size), dice.randint(-1, 9))
        ),
    },
    "party": {"friends": edge("Friends", 1.2)},
    "page_rank": {"links": edge("Link")},
    "family": {"parents": edge("Parent", 1)},
    "points_to": {"statements": Rows(statement)},
    "permissions": {
        "people": some(node, 0.3), "members": edge("Member"), "folders": edge("Folder"),
        "grants": edge("Rule", 0.3), "bans": edge("Rule", 0.3),
    },
    "dead_code": {"files": Rows(file, 0.7)},
    "game_of_life": {
        "cells": Rows(lambda m, dice, size: m.Cell(dice.randrange(size), dice.randrange(size)), 2)
    },
    "bill_of_materials": {
        "prices": Rows(lambda m, dice, size: m.Price(node(dice, size), dice.randint(1, 99)), 0.5),
        "uses": Rows(
            lambda m, dice, size: m.Use(node(dice, size), node(dice, size), dice.randint(1, 4)), 1
        ),
    },
    "org_chart": {"staff": Rows(employee, 0.8)},
    "flights": {
        "flights": Rows(flight),
        "cancelled": Rows(lambda m, dice, size: m.Cancelled(f"F{dice.randrange(3 * size)}"), 0.2),
    },
}  # fmt: skip


class History:
    """The rows of a program's inputs so far, and random changes of them. Rows may be there twice,
    where the input has no key."""

    def __init__(self, name: str, module: ModuleType, seed: int, size: int) -> None:
        self.rows, self.module, self.size = INPUTS[name], module, size
        self.dice = Random(f"{name} {seed}")
        keys = {each: source.key for each, source in module.program.plan.sources.items()}
        self.kept = {each: Kept(keys[each], [], self.dice) for each in self.rows}

    @property
    def there(self) -> dict[str, Counter[Any]]:
        """The rows that are there, by input."""
        return {name: each.there for name, each in self.kept.items()}

    def change(self, most: int) -> dict[str, ef.ZSet[Any]]:
        """Up to so many rows come or go, in some of the inputs."""
        before = {name: ef.ZSet(rows) for name, rows in self.there.items()}
        for _ in range(self.dice.randint(1, most)):
            name = self.dice.choice(sorted(self.rows))
            kept, rows = self.kept[name], self.rows[name]
            full = kept.there.total() / (2 * max(1, rows.share * self.size))
            if kept.there and self.dice.random() < full:
                kept.there -= Counter([self.dice.choice(sorted(kept.there))])
            else:
                kept.put(rows.draw(self.module, self.dice, self.size))
        after = {name: ef.ZSet(rows) - before[name] for name, rows in self.there.items()}
        return {name: change for name, change in after.items() if change}
