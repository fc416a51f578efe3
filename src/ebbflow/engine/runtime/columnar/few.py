"""A few rows for a kernel, without columns.

To make arrays of one row, and to compute on them, costs more than the kernel does. So the words of
a few rows are computed as the row path computes values, in a generated loop, and written where the
kernel reads them, into arrays that are there already.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from struct import Struct
from typing import Any, NamedTuple

import numpy as np

from ebbflow.chain import Chain
from ebbflow.codegen import GeneratedLoop
from ebbflow.fn import Fn
from ebbflow.kernel import DoesNotFit
from ebbflow.kernel.columns import HEAVIEST, WEIGHT
from ebbflow.kernel.few import FEW
from ebbflow.kernel.words import LARGEST, NULL, Texts, WordForm, forms_of, value_of, word_of
from ebbflow.nan import NAN
from ebbflow.record import fields_of
from ebbflow.zset import ZSet


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
_ROWS = """
    found = {}
    words = $unpacked[room](words)
    for at in range(count):
        $words, weight = words[at::room]
        found[new($row_type, ($values,))] = weight
    return found
"""


_ARRAYS = """
    if len(change) != $width:
        return None
    try:
        $fetched
        if not ($are_arrays) or not 0 < len(weights) <= $few:
            return None
        $read
    except (KeyError, TypeError, ValueError):
        return None
"""
_GIVEN = """
    found = $given()
    for $values, weight in zip($lists, strict=True):
        $nan
        if $unfit or not weight or not -$most <= weight <= $most:
            return None
        found[new($row_type, ($values,))] = weight
    return found if len(found) == $count else None
"""


_ROWS_GIVEN = dict, list, ZSet


class GivenAsColumns(dict[Any, int]):
    """A few rows, all different, that were given as columns; so what is made of them is columns."""

    __slots__ = ()
    canonical = False

    def consolidated(self) -> dict[Any, int]:
        """The same rows as an output gives them."""
        return dict(self)


def few_rows(change: Any) -> dict[Any, int] | None:
    """The rows of a change, where they are few and need not be made; else None."""
    if len(change) > FEW:
        return None
    rows: dict[Any, int] | None = (
        change if isinstance(change, dict) else change.__dict__.get("rows")
    )
    return rows


def is_few(change: Any, row_type: Any) -> bool:
    """Whether what is given to an input is a few rows, and no table."""
    if type(change) in _ROWS_GIVEN and len(change) <= FEW:
        for first in change:
            return type(first) is row_type
    return False


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
        arrays: Any = keys, found, weights
        self.room = [memoryview(each.reshape(-1)) for each in arrays]
        loop = GeneratedLoop("words", "change, keys, values, weights")
        write = partial(_write, loop, before.last_row, key, forms, values, texts)
        loop.template(
            _LOOP, steps=partial(before.write, loop), words=write, row_type=row_type,
            most=str(HEAVIEST), error=DoesNotFit,
        )  # fmt: skip
        self.loop = loop.function()

    def __call__(self, change: dict[Any, int]) -> tuple[Any, Any, Any]:
        return self.given[self.write(change)]

    def write(self, change: dict[Any, int]) -> int:
        """Have the words of some rows in the arrays, and say of how many."""
        try:
            count: int = self.loop(change, *self.room)
            return count
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
    parts = ["key"] if len(forms) == 1 else [f"key[{at}]" for at in range(len(forms))]
    _write_words(loop, "keys", list(zip(parts, forms, strict=True)), texts)
    found = [(value.source(loop.bind, row), value.form) for value in values]
    _write_words(loop, "values", found, texts)


def _write_words(
    loop: GeneratedLoop, name: str, parts: Sequence[tuple[str, WordForm]], texts: Texts
) -> None:
    """Write the lines that have the words of these values in an array."""
    place = "count" if len(parts) == 1 else f"count * {len(parts)}"
    for at, (value, form) in enumerate(parts):
        word = f"{loop.bind(word_of(form, texts), 'word')}(value)"
        if form.name == "int":
            word = f"value if type(value) is int and -{LARGEST} <= value <= {LARGEST} else {word}"
        loop.write(f"value = {value}")
        loop.write(f"{name}[{place}{f' + {at}' if at else ''}] = {word}")


def array_reader(row_type: Any, dtypes: Sequence[Any]) -> Callable[[Any], dict[Any, int] | None]:
    """What makes rows with weights of a dict of arrays of a few, one of each field and one of
    weights, which are of these types; it gives None for any other.

    >>> from ebbflow.record import record
    >>> read = array_reader(record("Sum", total=int), [np.dtype("int64")] * 2)
    >>> read({"total": np.array([7]), "__weight": np.array([-1])}), read({"total": [7]})
    ({Sum(total=7): -1}, None)
    """
    names = [*(fields_of(row_type) or ()), WEIGHT]
    arrays = [*[f"field{at}" for at in range(len(names) - 1)], "weights"]
    loop = GeneratedLoop("rows", "change")
    array, types = loop.bind(np.ndarray), [loop.bind(each, "dtype") for each in dtypes]
    flat = [each for each, dtype in zip(arrays, dtypes, strict=True) if dtype.kind != "i"]
    tests = [
        " is ".join([f"type({each})" for each in arrays] + [array]),
        *[f"{each}.dtype is {type}" for each, type in zip(arrays, types, strict=True)],
        *[f"{each}.ndim == 1" for each in flat],  # an int that is a list is told by comparing it
    ]

    def fetch() -> None:
        for each, name in zip(arrays, names, strict=True):
            loop.write(f"{each} = change[{name!r}]")

    lists = [f"{each}.tolist()" for each in arrays]
    loop.template(
        _ARRAYS, width=str(len(names)), fetched=fetch, are_arrays=" and ".join(tests), few=str(FEW),
        read=partial(_write_given, loop, row_type, lists, "len(weights)"),
    )  # fmt: skip
    return loop.function()


def number_reader(row_type: Any) -> Callable[[Any, int], dict[Any, int] | None]:
    """What makes rows with weights of numbers: those of each field one after the other, and last
    the weights, of so many rows; it gives None where some do not fit.

    >>> from ebbflow.record import record
    >>> read = number_reader(record("Sum", key=int, total=float))
    >>> read((7, 8, 0.5, 1.5, 1, -1), 2), read((7, 7, 0.5, 0.5, 1, 1), 2)
    ({Sum(key=7, total=0.5): 1, Sum(key=8, total=1.5): -1}, None)
    """
    width = len(fields_of(row_type) or ())
    parts = [f"numbers[{at} * count : {at + 1} * count]" for at in range(width + 1)]
    loop = GeneratedLoop("rows", "numbers, count")
    _write_given(loop, row_type, parts, "count")
    return loop.function()


def _write_given(loop: GeneratedLoop, row_type: Any, lists: Sequence[str], count: str) -> None:
    """Write the lines that go through lists of the values of each field, and of weights."""
    forms = forms_of(row_type) or ()
    values = [f"value{at}" for at in range(len(forms))]
    floats = [v for v, form in zip(values, forms, strict=True) if form.name == "float"]
    ints = [v for v, form in zip(values, forms, strict=True) if form.name == "int"]

    def one_nan() -> None:
        for value in floats:
            loop.write(f"if {value} != {value}: {value} = {loop.bind(NAN, 'nan')}")

    loop.template(
        _GIVEN, values=", ".join(values), lists=", ".join(lists), nan=one_nan, count=count,
        unfit=" or ".join(f"{each} <= {NULL}" for each in ints) or "False", given=GivenAsColumns,
        most=str(HEAVIEST), row_type=row_type,
    )  # fmt: skip


def rows_reader(row_type: Any, texts: Texts) -> Callable[[Any, int, int], dict[Any, int]]:
    """What makes rows that are all different of words: those of each field are one after the other,
    and last their weights, each with so much room, at most for the change of a few.

    >>> from ebbflow.record import record
    >>> read = rows_reader(record("Sum", key=int, total=float), Texts())
    >>> read(np.array([7, 8, 0, 4607182418800017408, 1, -1]), 2, 2)
    {Sum(key=7, total=0.0): 1, Sum(key=8, total=1.0): -1}
    """
    loop = GeneratedLoop("rows", "words, count, room")
    forms = forms_of(row_type) or ()
    words = [f"word{at}" for at in range(len(forms))]
    values = [
        word if form == WordForm("int") else f"{loop.bind(value_of(form, texts), 'value')}({word})"
        for form, word in zip(forms, words, strict=True)
    ]
    height = len(forms) + 1
    unpacked = [Struct(f"={height * room}q").unpack_from for room in range(2 * FEW + 1)]
    loop.template(
        _ROWS, row_type=row_type, words=", ".join(words), values=", ".join(values),
        unpacked=unpacked,
    )  # fmt: skip
    return loop.function()
