"""Reducers that somebody wrote, as loops: an accumulator of a few numbers for each group, and a
step for each row.

The text of the loop is written of the expressions of `add`, `remove` and `result` (`scalars`), and
compiled when it is first run. It does what the row path does: rows that go are removed first, in
their order, then those that come are added, each as often as its weight says. Then the result of
every group that was touched is put into a cell.

In a cell a number of an accumulator is kept as what is different from the accumulator of no rows,
bit by bit. So a group that is new has zeros, as every group here has. A group without rows must
have zeros again: if it has not, `remove` does not undo `add`, and rows tell so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ebbflow.kernel.compiled import generated
from ebbflow.kernel.scalars import NAMES, Scalar, as_form
from ebbflow.kernel.words import WordForm

MANY = 1000
"""How often a row may come or go at once: no loop takes long for a single row."""
_FOLD = """
def fold(slots, values, reals, weights, touched, cells, shown, first, at):
    for i in range(len(slots)):
        weight = weights[i]
        if weight < 0:
            if weight < -{many}: return False
            slot = slots[i]
            {row}
            {load}
            {times_removed}
            {remove}
            {store}
    for i in range(len(slots)):
        weight = weights[i]
        if weight > 0:
            if weight > {many}: return False
            slot = slots[i]
            {row}
            {load}
            {times_added}
            {add}
            {store}
    for i in range(len(touched)):
        slot = touched[i]
        if cells[slot, 0] == 0:
            {left}
        elif cells[slot, 0] > 0:
            {load}
            {result}
    return True
"""


class Accumulator(NamedTuple):
    """The forms of the numbers of an accumulator, and their words for no rows."""

    forms: tuple[str, ...]
    words: tuple[int, ...]

    @property
    def names(self) -> list[str]:
        """The variables that the numbers are in."""
        return [f"a{at}" for at in range(len(self.forms))]


class FoldText(NamedTuple):
    """What the text of a loop is made of: the lines of each step, the values that they leave in the
    accumulator, and the result. `forms` are those of the columns of a row, `guarded` says that the
    first one tells whether the row counts, and `repeats` that a step is told how often."""

    accumulator: Accumulator
    forms: Sequence[WordForm]
    guarded: bool
    repeats: bool
    remove: Sequence[str]
    add: Sequence[str]
    result: Sequence[str]
    shown: Scalar

    def text(self) -> str:
        """The loop."""
        forms, words = self.accumulator
        names, last = self.accumulator.names, len(forms)
        row = [line for at, form in enumerate(self.forms) for line in _loaded(at, form)]
        load, store = [], []
        for at, (name, form, word) in enumerate(zip(names, forms, words, strict=True)):
            kept = f"cells[slot, at + {at}]"
            number = f"{kept} ^ {word}" if word else kept
            load.append(f"{name} = {number}" if form == "int" else f"{name} = ({number}) != 0")
            number = as_form(Scalar(form, name), "int")
            store.append(f"{kept} = {number} ^ {word}" if word else f"{kept} = {number}")
        left = " or ".join(f"cells[slot, at + {at}] != 0" for at in range(last))
        place = f"[slot, at + {last}]"
        parts: dict[str, Sequence[str]] = {
            "row": [*row, *(["if not x0: continue"] if self.guarded else ())],
            "load": load, "store": store,
            "remove": self._repeated(self.remove), "add": self._repeated(self.add),
            "times_removed": () if self.repeats else ["for _ in range(-weight):"],
            "times_added": () if self.repeats else ["for _ in range(weight):"],
            "left": [f"if {left}: return False"],
            "result": [*self.result, *_put(self.shown, place)],
        }  # fmt: skip
        return _filled(_FOLD, parts)

    def _repeated(self, lines: Sequence[str]) -> Sequence[str]:
        return lines if self.repeats else [f"    {line}" for line in lines]

    def loop(self) -> Callable[..., bool]:
        """The loop, compiled when it is first run."""
        return generated("fold", self.text(), NAMES, __file__)


def _loaded(at: int, form: WordForm) -> list[str]:
    """The lines that have a column of a row in variables."""
    place = f"[i, first + {at}]"
    value = {"int": f"values{place}", "float": f"reals{place}", "bool": f"values{place} != 0"}
    if form.name not in value:
        return []
    lines = [f"x{at} = {value[form.name]}"]
    return [*lines, f"null{at} = values{place} == NULL"] if form.optional else lines


def _put(shown: Scalar, place: str) -> list[str]:
    """The lines that put the word of a result into a cell."""
    if shown.form == "none":
        return [f"cells{place} = NULL"]
    lines = [f"cells{place} = {as_form(shown, 'int')}"]
    if shown.form == "float":
        lines = [f"real = {shown.text} + 0.0", "if real != real: real = np.nan"]
        lines.append(f"shown{place} = real")
    return lines if not shown.null else [*lines, f"if {shown.null}: cells{place} = NULL"]


def _filled(text: str, parts: dict[str, Sequence[str]]) -> str:
    """A text with lines for each name in braces, as far to the right as the name is."""
    made: list[str] = []
    for line in text.strip().splitlines():
        name = line.strip()[1:-1]
        if line.strip() == f"{{{name}}}":
            made += [line.replace(f"{{{name}}}", each) for each in parts[name]]
        else:
            made.append(line.replace("{many}", str(MANY)))
    return "\n".join(made) + "\n"


class GroupFold(NamedTuple):
    """A loop, the first of its columns, and the first of its cells."""

    loop: Callable[..., bool]
    first: int
    at: int

    def step(self, slots: Any, values: Any, weights: Any, touched: Any, cells: Any) -> bool:
        """Take rows in, whose groups are `slots`, and have the results of those that were touched;
        says whether all is fine."""
        reals, shown = values.view(np.float64), cells.view(np.float64)
        return self.loop(slots, values, reals, weights, touched, cells, shown, self.first, self.at)
