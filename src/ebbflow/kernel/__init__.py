"""Kernels: the steps of operators on columns, compiled.

A row of ints, floats, texts, dates and truth values is a few *words* of 64 bits (`words`), and a
change of many rows one array of words for each field with an array of weights (`columns`). On
these the steps of a filter, a map, a group-by and a join are loops over machine words, which Numba
compiles: no row is a Python object.

    words, texts     values as words, and back
    columns          a change as columns; rows are made of it where somebody asks for rows
    pending          words that are made when somebody asks for them
    arrow_words      columns of Arrow and NumPy as words, and back; arrow_batches: small tables in
                     one loop, with few different texts (arrow_texts); messages: a few numbers
    expressions      traced expressions on columns, as instructions that one loop carries out
                     (instructions); arithmetic: what Python computes, in words
    hashing          the hash table that the others are made of: words to a slot
    groups           the cells of groups: counts and sums by key; their loops are in group_loops
    values           how often each value of a group is there: minimum, maximum, different values
    folds            reducers that somebody wrote, as generated loops (scalars, checked)
    ranked           values in an order, with a fence behind the first few; of heaps, ranked_loops
    firsts, top      what reducers show first or last; the first rows of each key: both of ranked
    word_order       the order of words; text_order: that of texts, which are numbers here
    chained          rows by key: an index as columns; joined: what two of them give
    rows             rows with weights, consolidated; the rows of an input
    pausing          many rows made at once, without the garbage collector

Each kernel stands for an operator, and is equal to it: "kernel = operator on every change" is what
`tests/oracle/test_columns.py` checks. Where a value does not fit (an int of more than 64 bits, a
sum that would overflow), a kernel raises `DoesNotFit` and has changed nothing: rows can go on.

It needs the extra `fast`: Numba, NumPy and Arrow.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from threading import Thread, current_thread, main_thread
from typing import Any, TypeVar

T = TypeVar("T")
NEEDED = ("numba", "numpy", "pyarrow")


class DoesNotFit(Exception):
    """A value that columns do not hold, or a step that they cannot take: rows can."""


def missing() -> list[str]:
    """What is not installed of what kernels need.

    >>> set(missing()) <= set(NEEDED)
    True
    """
    return [name for name in NEEDED if find_spec(name) is None]


def undisturbed(call: Callable[..., T], *args: Any) -> T:
    """What a call gives, made where no Ctrl-C comes: in a thread. Who waits for it here may be
    interrupted; it goes on. Numba that is cut short while it loads its tables, or is imported, is
    of no use to the process any more.

    >>> undisturbed(max, 3, 4)
    4
    """
    if current_thread() is not main_thread():
        return call(*args)
    given: list[T] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            given.append(call(*args))
        except BaseException as error:
            failed.append(error)

    thread = Thread(target=run, name="ebbflow kernels")
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return given[0]
