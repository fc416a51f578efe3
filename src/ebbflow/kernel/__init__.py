"""Kernels: the steps of operators on columns, compiled.

A row of ints, floats, texts, dates and truth values is a few *words* of 64 bits (`words`), and a
change of many rows one array of words for each field with an array of weights (`columns`). On
these the steps of a filter, a map, a group-by and a join are loops over machine words, which Numba
compiles: no row is a Python object.

    words, texts     values as words, and back
    columns          a change as columns; rows are made of it where somebody asks for rows
    expressions      traced expressions on columns, of the arithmetic of arrays (arithmetic)
    hashing          the hash table that the others are made of: words to a slot
    groups           the cells of groups: counts and sums by key; their loops are in group_loops
    values           how often each value of a group is there: minimum, maximum, different values
    chained          rows by key: an index as columns
    rows             rows with weights, consolidated; the rows of an input

Each kernel stands for an operator, and is equal to it: "kernel = operator on every change" is what
`tests/oracle/test_columns.py` checks. Where a value does not fit (an int of more than 64 bits, a
sum that would overflow), a kernel raises `DoesNotFit` and has changed nothing: rows can go on.

It needs the extra `fast`: Numba, NumPy and Arrow.
"""

from __future__ import annotations

from importlib.util import find_spec

NEEDED = ("numba", "numpy", "pyarrow")


class DoesNotFit(Exception):
    """A value that columns do not hold, or a step that they cannot take: rows can."""


def missing() -> list[str]:
    """What is not installed of what kernels need.

    >>> set(missing()) <= set(NEEDED)
    True
    """
    return [name for name in NEEDED if find_spec(name) is None]
