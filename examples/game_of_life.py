"""Game of Life: the eighth generation, kept up to date while the first is edited.

A cell lives in the next generation with three living neighbours, or with two if it lives now. Let
each living cell give 2 to each of its eight neighbours and 1 to itself; then those with 5, 6 or 7
live. The loop runs `rounds` generations and leaves after the last.

To edit one cell of the first generation is to edit history: the view follows what becomes of it
through the generations, and looks at no cell that it does not reach.

    python examples/game_of_life.py
"""

from __future__ import annotations

from typing import NamedTuple

import ebbflow as ef

GENERATIONS = 8


class Cell(NamedTuple):
    x: int
    y: int


class Gift(NamedTuple):
    x: int
    y: int
    amount: int


def gifts(cell: Cell) -> list[Gift]:
    around = [(x, y) for x in (-1, 0, 1) for y in (-1, 0, 1)]
    return [Gift(cell.x + x, cell.y + y, 2 if x or y else 1) for x, y in around]


def next_generation(living: ef.Collection) -> ef.Collection:
    given = living.flat_map(gifts).group_by("x", "y").agg(total=ef.sum("amount"))
    return given.filter(lambda cell: 5 <= cell.total <= 7).map(lambda cell: Cell(cell.x, cell.y))


cells = ef.Input("cells", Cell)

first = cells.distinct()
last = first.iterate(next_generation, rounds=GENERATIONS)
program = ef.program(first=first, last=last)

glider = [Cell(1, 0), Cell(2, 1), Cell(0, 2), Cell(1, 2), Cell(2, 2)]
start = {"cells": [*glider, Cell(8, 1), Cell(9, 1), Cell(10, 1)]}


def drawn(cells: ef.ZSet) -> list[str]:
    return ["".join("■" if Cell(x, y) in cells else "·" for x in range(12)) for y in range(6)]


def main() -> None:
    view = program.run()

    def tell(title: str) -> None:
        print(title)
        for one, other in zip(drawn(view["first"].value), drawn(view["last"].value), strict=True):
            print(f"  {one}  →  {other}")

    view.step(start)
    tell(f"a glider and a blinker, and what they are after {GENERATIONS} generations")
    change = view.input("cells").remove(Cell(10, 1))
    tell("without one cell of the blinker")
    print(f"  {len(change['last'])} cells of the last generation differ")
    change = view.input("cells").add(Cell(3, 2))
    tell("with one more beside the glider")
    print(f"  {len(change['last'])} cells of the last generation differ")


if __name__ == "__main__":
    main()
