"""Ints of 64 bits that say where Python's would have more: what a generated step computes with.

The smallest int of 64 bits is the word of None, and so it is one too many as well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core import types
from numba.extending import intrinsic

from ebbflow.kernel.compiled import inlined
from ebbflow.kernel.fixed import ratio

EXACT = 1 << 53
"""Up to here every int is a float."""


_tuple: Any = types.Tuple


def _checked(name: str) -> Callable[..., Any]:
    """An operation of the processor's that tells whether its result has too many bits."""

    def typed(typing: Any, a: Any, b: Any) -> Any:
        made = _tuple([types.int64, types.boolean])

        def build(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            found = getattr(builder, name)(*given)
            parts = [builder.extract_value(found, at) for at in (0, 1)]
            return context.make_tuple(builder, made, parts)

        return made(types.int64, types.int64), build

    return typed


_intrinsic: Any = intrinsic
plus, minus, times = (
    _intrinsic(_checked(f"s{name}_with_overflow")) for name in ("add", "sub", "mul")
)
"""The result of two ints, and whether it is wrong."""


@inlined
def divided(a: Any, b: Any) -> Any:
    """The float nearest to `a / b`, where `b` is not zero."""
    if -EXACT <= a <= EXACT and -EXACT <= b <= EXACT:
        return a / b
    if b < 0:
        a, b = -a, -b
    return ratio(np.int64(-1 if a < 0 else 0), a, b, 0)
