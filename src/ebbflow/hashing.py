"""A hash that is the same in every process, for whatever is cut or sampled by it.

Python's own is not: that of a string differs from run to run, and state that was cut by it could
not be resumed elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import blake2b
from numbers import Number
from typing import Any

from ebbflow.change import List, Text
from ebbflow.errors import AlgebraError
from ebbflow.nan import is_nan
from ebbflow.ordering import printed
from ebbflow.record import compared_fields


def stable_hash(x: Any, *, in_memory: bool = False) -> int:
    """64 bits of a value, the same in every process, and the same for equal values.

    Of numbers, texts, tuples, frozensets and the fields of dataclasses, and of everything else by
    its repr. An object that prints as its address is refused, unless `in_memory` says that it never
    leaves this process.

    >>> stable_hash("Rome"), stable_hash((1, None)) == stable_hash((True, None))
    (13927231675940883418, True)
    """
    return int.from_bytes(blake2b(_bytes(x, in_memory), digest_size=8).digest(), "big")


def _bytes(x: Any, in_memory: bool) -> bytes:
    if isinstance(x, (str, Text)):
        return b"s" + str(x).encode(errors="surrogatepass")
    if isinstance(x, Number):
        return b"n%d" % (0 if is_nan(x) else hash(x))
    if isinstance(x, (tuple, List)):
        parts = [_bytes(part, in_memory) for part in x]
        return b"t" + b"".join(b"%d:%b" % (len(part), part) for part in parts)
    if isinstance(x, frozenset):
        return b"f" + b"".join(sorted(_bytes(each, in_memory) for each in x))
    if isinstance(x, Mapping):
        return b"m" + b"".join(sorted(_bytes(pair, in_memory) for pair in x.items()))
    if isinstance(x, range):
        return b"r" + _bytes((len(x), *x[:2]), in_memory)
    if isinstance(x, datetime) and x.utcoffset() is not None:
        x = x.astimezone(UTC)
    cls: Any = type(x)
    names = compared_fields(cls, "__eq__")
    if names is not None:
        values = tuple([getattr(x, name) for name in names])
        return b"d" + _bytes((cls.__qualname__, values), in_memory)
    if cls.__repr__ is object.__repr__ and not in_memory:
        raise AlgebraError(
            f"a {cls.__name__} has no hash that is the same in every process",
            value=x,
            remedy="a function from it to an int, a text or a tuple, or a __repr__ that tells what "
            "it is (a dataclass has one)",
        )
    return b"o" + printed(x).encode(errors="surrogatepass")
