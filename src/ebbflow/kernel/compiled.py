"""How loops over words are compiled: once for each form of argument, and kept on disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

F = TypeVar("F", bound=Callable[..., Any])
_OPTIONS: dict[str, Any] = {"nogil": True, "_nrt": False}
"""Loops make no arrays, and so nobody needs to count who has one: with these counts, which Numba
keeps wherever a function is given an array, looking up a key takes ten times as long."""


def compiled(loop: F) -> F:
    """A function that Numba compiles when it is first called. Its file in the cache is read after
    that, in every process; nothing in it may be a Python object.

    >>> @compiled
    ... def twice(n): return n + n
    >>> twice(21)
    42
    """
    jit: Any = numba.njit(cache=_has_file(loop), **_OPTIONS)
    made: F = jit(loop)
    return made


def inlined(loop: F) -> F:
    """A function that is compiled into those that call it."""
    jit: Any = numba.njit(forceinline=True, **_OPTIONS)
    made: F = jit(loop)
    return made


def _has_file(loop: Callable[..., Any]) -> bool:
    """Whether a function is in a file, beside which the compiled one can be kept."""
    return not loop.__code__.co_filename.startswith("<")
