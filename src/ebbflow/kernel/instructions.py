"""Expressions as instructions, which one loop carries out for all rows.

What an expression computes is a tree of *instructions*: the words of a field, a constant, or an
operation on what others give. Those of several expressions are put in order, each once and each
after those that it needs. The loop carries out one after the other for a block of rows, whose words
stay in the caches of the processor.

An instruction gives a word for every row, and some tell rows that are *wrong*: those for which
Python would raise, or an int would not fit. `a and b` forgets what is wrong with `b` where `a` is
false, as Python does not look there. If a row is still wrong in the end, `DoesNotFit` is raised:
rows then tell what, and where.

Nothing here rounds or overflows where Python does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ebbflow.kernel import DoesNotFit
from ebbflow.kernel.addresses import words_at
from ebbflow.kernel.compiled import compiled, inlined
from ebbflow.kernel.hashing import Words
from ebbflow.kernel.scaled import EXACT_QUOTIENT, REST, SCALE, TRUNCATE, WITHIN, on_scaled
from ebbflow.kernel.words import LARGEST, NULL, one_float

(
    GIVEN, WORD, LESS, AT_MOST, SAME, OTHER, FLOAT_LESS, FLOAT_AT_MOST, FLOAT_SAME, FLOAT_OTHER,
    PRESENT, AND, OR, BOTH, EITHER, ONE_OF, NOT, ABSENT, FALSE, CHOICE, ADD, SUBTRACT, MULTIPLY,
    FLOOR_DIVIDE, REMAINDER,
) = range(25)  # fmt: skip
(
    FLOAT_ADD, FLOAT_SUBTRACT, FLOAT_MULTIPLY, FLOAT_DIVIDE, EXACT_FLOAT, NEAR_FLOAT, NEGATE,
    MAGNITUDE, FLOAT_NEGATE, FLOAT_MAGNITUDE, TRUE_INT, TRUE_FLOAT, ONE_FLOAT, YEAR, MONTH, DAY,
) = range(30, 46)  # fmt: skip
_MAY_BE_WRONG = {
    PRESENT, ADD, SUBTRACT, MULTIPLY, FLOOR_DIVIDE, REMAINDER, SCALE, EXACT_QUOTIENT, TRUNCATE,
    REST, WITHIN, FLOAT_DIVIDE, EXACT_FLOAT,
}  # fmt: skip
BLOCK = 1 << 9
"""For so many rows an instruction is carried out before the next one is."""
EXACT = 1 << 53
"""Up to here every int is a float."""
NOWHERE = np.empty((0, 2), np.int64)
"""Where fields are that are among the words already: those of one block of rows are copied there,
which takes less than to ask an array for its address."""
ONE_NAN = int(one_float(np.array([np.nan]))[0])

Sides = Sequence[Any]
"""The arguments of an expression: each gives the words of a field by its number."""
Instruction = tuple[Any, ...]
"""Which operation it is, and then the instructions that give what it takes; GIVEN a field (the
number of its side, and its own) or a function of sides, and WORD a word."""


class Instructions:
    """Instructions that give the words of several results.

    >>> price, twice = (GIVEN, (0, 0)), (WORD, 2)
    >>> program = Instructions([(MULTIPLY, price, twice), (LESS, price, twice)])
    >>> program.fields([lambda at: np.array([1, 30])], 2).tolist()
    [[2, 60], [1, 0]]
    >>> Instructions([(LESS, price, twice)]).chosen([lambda at: np.array([1, 30])], 2).tolist()
    [0]
    """

    def __init__(self, results: Sequence[Instruction]) -> None:
        self.given: list[Any] = []
        self.code: list[list[int]] = []
        self._places: dict[Instruction, int] = {}
        self.results = np.array([self._place(each) for each in results], np.int64)
        self.code_of: Words = np.array(self.code, np.int64).reshape(-1, 5)
        self.places_given = [at for at, line in enumerate(self.code) if line[0] == GIVEN]

    def _place(self, of: Instruction) -> int:
        """The number of an instruction, behind those of what it needs."""
        found = self._places.get(of)
        if found is not None:
            return found
        op, *rest = of
        if op == GIVEN:
            line = [op, len(self.given), 0, 0, 0]
            self.given.append(rest[0])
        elif op == WORD:
            line = [op, int(rest[0]), 0, 0, 0]
        else:
            places = [self._place(each) for each in rest]
            wrong = op in _MAY_BE_WRONG or any(self.code[at][4] for at in places)
            line = [op, *[*places, 0, 0][:3], int(wrong)]
        at = self._places[of] = len(self.code)
        self.code.append(line)
        return at

    def fields(self, sides: Sides, count: int) -> Words:
        """The words of each result, one result after the other."""
        out = np.empty((len(self.results), count), np.int64)
        self._run(sides, count, out.reshape(-1), count, 1)
        return out

    def rows(self, sides: Sides, count: int) -> Words:
        """The same, one row after the other."""
        out = np.empty((count, len(self.results)), np.int64)
        self._run(sides, count, out.reshape(-1), 1, len(self.results))
        return out

    def chosen(self, sides: Sides, count: int) -> Words:
        """The rows for which the one result is true."""
        out = np.empty(count, np.int64)
        return out[: self._run(sides, count, out, 0, 0)]

    def _run(self, sides: Sides, count: int, out: Words, field: int, row: int) -> int:
        arrays = [
            sides[each[0]](each[1]) if type(each) is tuple else each(sides) for each in self.given
        ]
        shape = len(self.code), min(count, BLOCK)
        words, wrong = np.empty(shape, np.int64), np.empty(shape, np.bool_)
        where = NOWHERE
        if count <= BLOCK:
            for at, each in zip(self.places_given, arrays, strict=True):
                words[at] = each
        else:
            where = np.array(
                [(each.__array_interface__["data"][0], each.strides[0] >> 3) for each in arrays],
                np.int64,
            ).reshape(-1, 2)
        found: int = _carry_out(
            self.code_of, self.results, where, count, words, wrong, out, field, row
        )
        if found < 0:
            raise DoesNotFit("a row that Python would refuse, or an int of more than 64 bits")
        return found


@compiled
def _carry_out(
    code: Words, results: Words, where: Words, count: int, words: Words, wrong: Any, out: Words,
    field: int, row: int,
) -> int:  # fmt: skip
    """Carry out all instructions, block by block. The words of results are put where `field` and
    `row` say how far those of the next field and of the next row are; or, where both are 0, the
    numbers of rows whose result is true, one after the other, and their number is given. Gives -1
    where a row is wrong."""
    done = 0
    for begin in range(0, count, BLOCK):
        size = min(BLOCK, count - begin)
        for k in range(len(code)):
            _instruction(code, k, where, begin, size, words, wrong)
        for j in range(len(results)):
            at = results[j]
            if code[at, 4]:
                for i in range(size):
                    if wrong[at, i]:
                        return -1
            if row == 0:
                for i in range(size):
                    out[done] = begin + i
                    done += words[at, i] != 0
            else:
                start = j * field + begin * row
                for i in range(size):
                    out[start + i * row] = words[at, i]
    return done


@inlined
def _instruction(
    code: Words, k: int, where: Words, begin: int, size: int, words: Words, wrong: Any
) -> None:
    """Carry out one instruction for the rows of a block."""
    op, a, b, c = code[k, 0], code[k, 1], code[k, 2], code[k, 3]
    if op == GIVEN:
        if len(where) == 0:
            return
        step = where[a, 1]
        given = words_at(where[a, 0], (begin + size) * max(step, 1))
        for i in range(size):
            words[k, i] = given[(begin + i) * step]
        return
    if op == WORD:
        for i in range(size):
            words[k, i] = a
        return
    if code[k, 4]:
        _wrong(code, k, op, a, b, c, size, words, wrong)
    if op <= OTHER:
        _compared(op, words[a], words[b], words[k], size)
    elif op <= FLOAT_OTHER:
        _floats_compared(op, words[a].view(np.float64), words[b].view(np.float64), words[k], size)
    elif op <= CHOICE:
        _logic(op, words[a], words[b], words[c], words[k], wrong[k], size)
    elif op <= REMAINDER:
        _ints(op, words[a], words[b], words[k], wrong[k], size)
    elif op <= WITHIN:
        on_scaled(op, words[a], words[b], words[c], words[k], wrong[k], size)
    elif op <= FLOAT_DIVIDE:
        _floats(
            op, words[a].view(np.float64), words[b].view(np.float64), words[k].view(np.float64),
            wrong[k], size,
        )  # fmt: skip
    elif op <= TRUE_FLOAT:
        _of_number(
            op, words[a], words[a].view(np.float64), words[k], words[k].view(np.float64), wrong[k],
            size,
        )  # fmt: skip
    elif op == ONE_FLOAT:
        for i in range(size):
            word = words[a, i]
            if word & np.int64(0x7FFFFFFFFFFFFFFF) > np.int64(0x7FF0000000000000):
                word = np.int64(ONE_NAN)
            words[k, i] = np.int64(0) if word == NULL else word
    else:
        for i in range(size):
            words[k, i] = _part_of_day(op, words[a, i])


@inlined
def _wrong(
    code: Words, k: int, op: int, a: int, b: int, c: int, size: int, words: Words, wrong: Any
) -> None:
    """Which rows are wrong because what an instruction takes is."""
    for i in range(size):
        wrong[k, i] = False
    if code[a, 4]:
        for i in range(size):
            wrong[k, i] = wrong[a, i]
    if op > FLOAT_DIVIDE or op in (PRESENT, NOT, ABSENT, FALSE):
        return
    if code[b, 4]:
        for i in range(size):
            seen = True
            if op in (AND, CHOICE):
                seen = words[a, i] != 0
            elif op == OR:
                seen = words[a, i] == 0
            if seen and wrong[b, i]:
                wrong[k, i] = True
    if op in (CHOICE, SCALE) and code[c, 4]:
        for i in range(size):
            if (op == SCALE or words[a, i] == 0) and wrong[c, i]:
                wrong[k, i] = True


@inlined
def _compared(op: int, a: Words, b: Words, out: Words, size: int) -> None:
    if op == LESS:
        for i in range(size):
            out[i] = a[i] < b[i]
    elif op == AT_MOST:
        for i in range(size):
            out[i] = a[i] <= b[i]
    elif op == SAME:
        for i in range(size):
            out[i] = a[i] == b[i]
    else:
        for i in range(size):
            out[i] = a[i] != b[i]


@inlined
def _floats_compared(op: int, a: Any, b: Any, out: Words, size: int) -> None:
    for i in range(size):
        if op == FLOAT_LESS:
            out[i] = a[i] < b[i]
        elif op == FLOAT_AT_MOST:
            out[i] = a[i] <= b[i]
        elif op == FLOAT_SAME:
            out[i] = a[i] == b[i]
        else:
            out[i] = a[i] != b[i]


@inlined
def _logic(op: int, a: Words, b: Words, c: Words, out: Words, wrong: Any, size: int) -> None:
    if op in (AND, BOTH):
        for i in range(size):
            out[i] = a[i] & b[i]
    elif op in (OR, EITHER):
        for i in range(size):
            out[i] = a[i] | b[i]
    elif op == ONE_OF:
        for i in range(size):
            out[i] = a[i] ^ b[i]
    elif op == NOT:
        for i in range(size):
            out[i] = a[i] == 0
    elif op == ABSENT:
        for i in range(size):
            out[i] = a[i] == NULL
    elif op == CHOICE:
        for i in range(size):
            out[i] = b[i] if a[i] != 0 else c[i]
    elif op == PRESENT:
        for i in range(size):
            out[i] = a[i]
            wrong[i] |= a[i] == NULL
    else:
        for i in range(size):
            out[i] = 0


@inlined
def _ints(op: int, a: Words, b: Words, out: Words, wrong: Any, size: int) -> None:
    if op == MULTIPLY:
        for i in range(size):
            x, y = a[i], b[i]
            out[i] = x * y
            small = abs(x) < 1 << 31 and abs(y) < 1 << 31
            if not small and x != 0 and (x == NULL or abs(y) > LARGEST // abs(x) or y == NULL):
                wrong[i] = True
    elif op == ADD:
        for i in range(size):
            total = a[i] + b[i]
            wrong[i] |= ((a[i] ^ total) & (b[i] ^ total)) < 0 or total == NULL
            out[i] = total
    elif op == SUBTRACT:
        for i in range(size):
            total = a[i] - b[i]
            wrong[i] |= ((a[i] ^ b[i]) & (a[i] ^ total)) < 0 or total == NULL
            out[i] = total
    else:
        for i in range(size):
            x, y = a[i], b[i]
            if y == 0:
                wrong[i] = True
                out[i] = 0
            elif y == -1:
                out[i] = -x if op == FLOOR_DIVIDE else 0
            else:
                out[i] = x // y if op == FLOOR_DIVIDE else x % y


@inlined
def _floats(op: int, a: Any, b: Any, out: Any, wrong: Any, size: int) -> None:
    if op == FLOAT_ADD:
        for i in range(size):
            out[i] = a[i] + b[i]
    elif op == FLOAT_SUBTRACT:
        for i in range(size):
            out[i] = a[i] - b[i]
    elif op == FLOAT_MULTIPLY:
        for i in range(size):
            out[i] = a[i] * b[i]
    else:
        for i in range(size):
            none = b[i] == 0
            wrong[i] |= none
            out[i] = 0.0 if none else a[i] / b[i]


@inlined
def _of_number(
    op: int, a: Words, float_a: Any, out: Words, float_out: Any, wrong: Any, size: int
) -> None:
    for i in range(size):
        if op == EXACT_FLOAT:
            wrong[i] |= a[i] > EXACT or a[i] < -EXACT
            float_out[i] = a[i]
        elif op == NEAR_FLOAT:
            float_out[i] = a[i]
        elif op == NEGATE:
            out[i] = -a[i]
        elif op == MAGNITUDE:
            out[i] = abs(a[i])
        elif op == FLOAT_NEGATE:
            float_out[i] = -float_a[i]
        elif op == FLOAT_MAGNITUDE:
            float_out[i] = abs(float_a[i])
        elif op == TRUE_INT:
            out[i] = a[i] != 0
        else:
            out[i] = float_a[i] != 0


@inlined
def _part_of_day(op: int, days: Any) -> Any:
    """The year, the month or the day of the month of a day since 1970, by the calendar in which
    years begin in March and the day that is added is their last."""
    day = days + 719468
    era = day // 146097
    of_era = day - era * 146097
    years = (of_era - of_era // 1460 + of_era // 36524 - of_era // 146096) // 365
    of_year = of_era - (365 * years + years // 4 - years // 100)
    month = (5 * of_year + 2) // 153
    if op == DAY:
        return of_year - (153 * month + 2) // 5 + 1
    in_next = month >= 10
    if op == MONTH:
        return month - 9 if in_next else month + 3
    return years + era * 400 + (1 if in_next else 0)
