"""Arrays at addresses, for compiled loops: memory that a loop is told of by a number.

Nobody keeps that memory but who gives the number: it has to be there as long as the loop runs.
"""

from __future__ import annotations

from typing import Any

from numba.core import cgutils, types
from numba.extending import intrinsic
from numba.np import arrayobj

_pack: Any = cgutils.pack_array
_populate: Any = arrayobj.populate_array


def _array_at(number: Any, dimensions: int) -> Any:
    """What makes an array of an address and a shape."""

    def typed(typing: Any, address: Any, *shape: Any) -> Any:
        made = types.Array(number, dimensions, "C")
        size = number.bitwidth // 8

        def build(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            array = context.make_array(made)(context, builder)
            word = context.get_value_type(types.intp)
            strides = [word(size)]
            for length in reversed(given[2:]):
                strides.insert(0, builder.mul(strides[0], length))
            pointer = builder.inttoptr(given[0], array.data.type)
            _populate(
                array, data=pointer, shape=_pack(builder, given[1:]),
                strides=_pack(builder, strides), itemsize=word(size), meminfo=None,
            )  # fmt: skip
            return array._getvalue()

        return made(types.int64, *[types.int64] * dimensions), build

    return typed


def _of_words(typing: Any, address: Any, length: Any) -> Any:
    return _array_at(types.int64, 1)(typing, address, length)


def _of_halves(typing: Any, address: Any, length: Any) -> Any:
    return _array_at(types.int32, 1)(typing, address, length)


def _of_shorts(typing: Any, address: Any, length: Any) -> Any:
    return _array_at(types.int16, 1)(typing, address, length)


def _of_bytes(typing: Any, address: Any, length: Any) -> Any:
    return _array_at(types.uint8, 1)(typing, address, length)


def _of_floats(typing: Any, address: Any, length: Any) -> Any:
    return _array_at(types.float64, 1)(typing, address, length)


def _of_rows(typing: Any, address: Any, length: Any, width: Any) -> Any:
    return _array_at(types.int64, 2)(typing, address, length, width)


_intrinsic: Any = intrinsic
words_at, halves_at, shorts_at, bytes_at = map(
    _intrinsic, (_of_words, _of_halves, _of_shorts, _of_bytes)
)
floats_at, rows_at = map(_intrinsic, (_of_floats, _of_rows))
