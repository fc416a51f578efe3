"""Batches of Arrow's as words, all columns in one loop.

To ask Arrow for a column, and that for its memory, takes Python longer than to copy a thousand of
its values. So a batch is asked once where all of its memory is, by the C data interface of Arrow,
and a loop reads the columns from there. Texts are left to others, who may never ask for them.

What the loop finds unfit (a null where there must be none, the smallest int, a weight that is zero)
is not told apart here: who is given nothing looks more closely.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ctypes import PYFUNCTYPE, c_void_p
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from ebbflow.kernel.addresses import bytes_at, halves_at, shorts_at, words_at
from ebbflow.kernel.compiled import compiled, inlined
from ebbflow.kernel.hashing import Words
from ebbflow.kernel.words import NULL, one_float

TEXT, INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, FLOAT, BOOL, WEIGHT, DECIMAL = range(12)
_LAYOUTS = {
    pa.utf8(): TEXT, pa.int8(): INT8, pa.int16(): INT16, pa.int32(): INT32, pa.int64(): INT64,
    pa.uint8(): UINT8, pa.uint16(): UINT16, pa.uint32(): UINT32, pa.float64(): FLOAT,
    pa.bool_(): BOOL, pa.date32(): INT32, pa.timestamp("us"): INT64,
}  # fmt: skip
ONE_NAN = int(one_float(np.array([np.nan]))[0])
STRUCT = 10
"""How many words Arrow's struct of an array has."""


def layout_of(types: Sequence[Any], most: Sequence[int], nulls: Sequence[bool]) -> Words | None:
    """How the columns of a batch are read, whose types are these: of each, how its values are in
    memory, the largest number, or 0 where every word is fit, and whether it may have `nulls`. If
    there is one type more, it is that of the weights. None where a type is none that can be read.

    >>> layout_of([pa.date32(), pa.int64()], [0], [True]).tolist()
    [[3, 0, 1], [10, 0, 0]]
    """
    found = [DECIMAL if pa.types.is_decimal128(each) else _LAYOUTS.get(each) for each in types]
    if None in found:
        return None
    if len(found) > len(most):
        found[-1] = WEIGHT
        most, nulls = [*most, 0], [*nulls, False]
    return np.array([found, most, nulls], np.int64).T.copy()


def batch_words(batch: Any, layout: Words, most: int) -> tuple[Words, Words] | None:
    """The words of each column of a batch that has rows, and last the weights; those of texts are
    undefined, and where these are is told beside it (see `TextColumn`). None where something is
    unfit, as is a weight larger than `most`.

    >>> batch = pa.record_batch({"day": pa.array([1, None], pa.date32())})
    >>> words, _ = batch_words(batch, layout_of(batch.schema.types, [0], [True]), 8)
    >>> words.tolist()
    [[1, -9223372036854775808], [1, 1]]
    """
    count = batch.num_rows
    weighted = layout[-1, 0] == WEIGHT
    words = np.empty((len(layout) + (not weighted), count), np.int64)
    struct, where = np.zeros(STRUCT, np.int64), np.zeros((len(layout), 4), np.int64)
    address = struct.__array_interface__["data"][0]
    batch._export_to_c(address)
    try:
        fine = _read(struct, count, layout, words, where, most)
    finally:
        _release_at(int(struct[8]))(address)
    return (words, where) if fine else None


@cache
def _release_at(address: int) -> Callable[[int], None]:
    """Arrow's function at an address that lets a struct go."""
    return PYFUNCTYPE(None, c_void_p)(address)


@compiled
def _read(struct: Words, count: int, layout: Words, words: Words, where: Words, most: int) -> bool:
    """Read all columns of a batch of so many rows; says whether everything is fit."""
    if struct[2] != 0 or struct[4] != len(layout):
        return False
    children = words_at(struct[6], struct[4])
    for k in range(len(layout)):
        child = words_at(children[k], 10)
        buffers, first = words_at(child[5], child[3]), child[2]
        how = layout[k, 0]
        out = words[k]
        if how == TEXT:
            where[k, 1], where[k, 2], where[k, 3] = buffers[1] + 4 * first, buffers[2], first
        else:
            _copy(buffers[1], first, count, how, out)
        largest = layout[k, 1]
        if largest != 0:
            for i in range(count):
                if out[i] > largest or out[i] < -largest:
                    return False
        if child[1] != 0 and buffers[0] != 0:
            present = bytes_at(buffers[0], (first + count + 7) >> 3)
            for i in range(count):
                at = first + i
                if not (present[at >> 3] >> (at & 7)) & 1:
                    if not layout[k, 2]:
                        return False
                    out[i] = NULL
                    where[k, 0] = buffers[0]
        if how == WEIGHT:
            for i in range(count):
                if out[i] == 0 or out[i] > most or out[i] < -most:
                    return False
    if len(words) > len(layout):
        for i in range(count):
            words[len(layout), i] = 1
    return True


@inlined
def _copy(address: int, first: int, count: int, how: int, out: Words) -> None:
    """Copy numbers, from the first one on, as words."""
    end = first + count
    if how in (INT64, WEIGHT):
        words = words_at(address, end)
        for i in range(count):
            out[i] = words[first + i]
    elif how == DECIMAL:
        words = words_at(address, 2 * end)
        for i in range(count):
            low = words[2 * (first + i)]
            out[i] = low if words[2 * (first + i) + 1] == low >> 63 else NULL
    elif how == INT32:
        halves = halves_at(address, end)
        for i in range(count):
            out[i] = halves[first + i]
    elif how == FLOAT:
        floats = words_at(address, end)
        for i in range(count):
            word = floats[first + i]
            if word & np.int64(0x7FFFFFFFFFFFFFFF) > np.int64(0x7FF0000000000000):
                word = np.int64(ONE_NAN)
            out[i] = np.int64(0) if word == NULL else word
    elif how == BOOL:
        bits = bytes_at(address, (end + 7) >> 3)
        for i in range(count):
            at = first + i
            out[i] = (bits[at >> 3] >> (at & 7)) & 1
    elif how == UINT32:
        halves = halves_at(address, end)
        for i in range(count):
            out[i] = np.int64(halves[first + i]) & np.int64(0xFFFFFFFF)
    elif how in (INT16, UINT16):
        shorts = shorts_at(address, end)
        for i in range(count):
            short = np.int64(shorts[first + i])
            out[i] = short if how == INT16 else short & np.int64(0xFFFF)
    else:
        small = bytes_at(address, end)
        for i in range(count):
            byte = np.int64(small[first + i])
            out[i] = byte - 256 if how == INT8 and byte > 127 else byte
