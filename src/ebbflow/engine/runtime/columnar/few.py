"""A few rows for a kernel, without columns.

To make arrays of one row, and to compute on them, costs more than the kernel does. So the words of
a few rows are computed as the row path computes values, in a generated loop, and written where the
kernel reads them, into arrays that are there already.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ebbflow.chain import Chain
from ebbflow.codegen import GeneratedLoop
from ebbflow.fn import Fn
from ebbflow.kernel import DoesNotFit
from ebbflow.kernel.columns import HEAVIEST, Columns
from ebbflow.kernel.words import Texts, WordForm, word_of
from ebbflow.zset import ZSet

FEW = 8
"""More rows than these are columns."""


class Part(NamedTuple):
    """A value of a row: what a function gives, or True; None where one of the tests in `when` does
    not hold. Its words have this form."""

    fn: Fn | None
    form: WordForm
    when: tuple[Fn, ...] = ()

    def source(self, bind: Any, row: str) -> str:
        """The value of the row that is written so."""
        value = "True" if self.fn is None else self.fn.source(bind, row)
        tests = " and ".join(f"({test.source(bind, row)})" for test in self.when)
        return f"({value}) if {tests} else None" if tests else value


_LOOP = """
    count = 0
    for row, weight in change.items():
        if type(row) is not $row_type or not -$most <= weight <= $most:
            raise $error("a row of another type, or a weight of more than 31 bits")
        $steps
        $words
        weights[count] = weight
        count += 1
    return count
"""


def few_rows(change: Any) -> dict[Any, int] | None:
    """The rows of a change, where they are few and need not be made; else None."""
    if len(change) > FEW:
        return None
    rows: dict[Any, int] | None = (
        change.__dict__.get("rows") if isinstance(change, Columns) else change
    )
    return rows


def is_few(change: Any, row_type: Any) -> bool:
    """Whether what is given to an input is a few rows, and no table."""
    few = type(change) in (dict, list, ZSet) and 0 < len(change) <= FEW
    return few and type(next(iter(change))) is row_type


class FewRows:
    """The keys, the values and the weights of a few rows, behind the steps of a chain. The arrays
    that it gives are good until the next time."""

    def __init__(
        self, row_type: Any, before: Chain, key: Fn | None, forms: Sequence[WordForm],
        values: Sequence[Part], texts: Texts,
    ) -> None:  # fmt: skip
        keys = np.zeros((FEW, len(forms)), np.int64)
        found = np.zeros((FEW, len(values)), np.int64)
        weights = np.zeros(FEW, np.int64)
        self.given: list[tuple[Any, Any, Any]] = [
            (keys[:n], found[:n], weights[:n]) for n in range(FEW + 1)
        ]
        loop = GeneratedLoop("words", "change, keys, values, weights")
        write = partial(_write, loop, before.last_row, key, forms, values, texts)
        loop.template(
            _LOOP, steps=partial(before.write, loop), words=write, row_type=row_type,
            most=str(HEAVIEST), error=DoesNotFit,
        )  # fmt: skip
        self.loop = loop.function()

    def __call__(self, change: dict[Any, int]) -> tuple[Any, Any, Any]:
        try:
            count: int = self.loop(change, *self.given[-1])
            return self.given[count]
        except DoesNotFit:
            raise
        except Exception as error:
            raise DoesNotFit("a row that is refused") from error


def _write(
    loop: GeneratedLoop, row: str, key: Fn | None, forms: Sequence[WordForm],
    values: Sequence[Part], texts: Texts,
) -> None:  # fmt: skip
    """Write the lines that have the words of a row."""
    if key is not None:
        loop.write(f"key = {key.kept(loop.bind, row)}")
    for at, form in enumerate(forms):
        part = "key" if len(forms) == 1 else f"key[{at}]"
        loop.write(f"keys[count, {at}] = {loop.bind(word_of(form, texts), 'word')}({part})")
    for at, value in enumerate(values):
        word = loop.bind(word_of(value.form, texts), "word")
        loop.write(f"values[count, {at}] = {word}({value.source(loop.bind, row)})")
