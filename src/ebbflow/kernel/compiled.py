"""How loops over words are compiled: once for each form of argument, and kept on disk.

What is kept is read again as long as neither its file nor one that it imports is another: a loop
has those of other files in it. (Loops that hash a key in different ways would not find each other's
keys; how a key is hashed is in a file that they all import.) A loop that was generated is kept
beside these, by its text.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Callable, Mapping
from functools import cache, partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar

import numba
from llvmlite import ir
from numba.core import types
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.extending import intrinsic

from ebbflow.kernel import undisturbed

F = TypeVar("F", bound=Callable[..., Any])
_OPTIONS: dict[str, Any] = {"nogil": True, "_nrt": False}
"""Loops make no arrays, and so nobody needs to count who has one: with these counts, which Numba
keeps wherever a function is given an array, looking up a key takes ten times as long."""

_log = logging.getLogger("ebbflow")
LOOPS: list[Any] = []
"""Those that are in files."""


def compiled(loop: F) -> F:
    """A function that Numba compiles when it is first called. Its file in the cache is read after
    that, in every process; nothing in it may be a Python object.

    >>> @compiled
    ... def twice(n): return n + n
    >>> twice(21)
    42
    """
    has_file = _has_file(loop)
    jit: Any = numba.njit(cache=has_file, **_OPTIONS)
    made: Any = jit(loop)
    made._compile_for_args = partial(undisturbed, made._compile_for_args)
    if has_file:
        file: Any = made._cache._cache_file
        file._source_stamp = file._source_stamp, _stamp(Path(loop.__code__.co_filename))
        LOOPS.append(made)
        made._cache.save_overload = partial(_kept, made._cache.save_overload)
    found: F = made
    return found


def _kept(save: Callable[[Any, Any], None], signature: Any, made: Any) -> None:
    """Keep a compiled loop on disk; without room there it is compiled again by each process."""
    try:
        save(signature, made)
    except OSError as error:
        _log.warning("a compiled loop could not be kept: %s", error)


def stamp_of(file: Path) -> str:
    """What stands for the text of a file of kernels and of those that it imports, and that they
    do; Numba itself looks at the file of a loop alone."""
    found, todo = {file: file.read_text()}, [file]
    while todo:
        for each in _imported(file.parent, found[todo.pop()]) - found.keys():
            found[each] = each.read_text()
            todo.append(each)
    texts = "".join(found[each] for each in sorted(found))
    return blake2b(texts.encode(), digest_size=16).hexdigest()


_stamp = cache(stamp_of)


@cache
def _imported(folder: Path, text: str) -> frozenset[Path]:
    """The files of a folder that a text imports."""
    names = set(re.findall(r"(?:from|import) +ebbflow\.kernel\.(\w+)", text))
    for listed in re.findall(r"from +ebbflow\.kernel +import +(\([^)]*\)|.*)", text):
        names |= {"__init__", *re.findall(r"\w+", listed)}
    return frozenset(path for name in names if (path := folder / f"{name}.py").exists())


def generated(
    name: str, text: str, names: Mapping[str, Any], file: str = __file__
) -> Callable[..., Any]:
    """The function of this name in a text, which may use `names`, things of the kernels that the
    `file` imports; compiled when it is first called. It is made once for a text.

    >>> generated("twice", "def twice(n): return n + n", {})(21)
    42
    """
    return _generated(name, text, tuple(names.items()), Path(file))


@cache
def _generated(
    name: str, text: str, names: tuple[tuple[str, Any], ...], file: Path
) -> Callable[..., Any]:
    inside: dict[str, Any] = {**dict(names), "__name__": __name__}
    exec(compile(text, f"<{name}>", "exec"), inside)
    made: Any = compiled(inside[name])
    made._cache = _TextCache(inside[name], text, _stamp(file))
    made._cache.save_overload = partial(_kept, made._cache.save_overload)
    found: Callable[..., Any] = made
    return found


_Cache: Any = FunctionCache
_File: Any = IndexDataCacheFile


class _TextCache(_Cache):  # type: ignore[misc]
    """Where what was compiled of a text is kept: with what is kept of the loops in this folder."""

    def __init__(self, loop: Callable[..., Any], text: str, stamp: str) -> None:
        beside = _Cache(stamp_of)
        self._name, self._py_func, self._impl = repr(loop), loop, beside._impl
        self._cache_path = beside.cache_path
        number = blake2b(text.encode(), digest_size=16).hexdigest()
        name = f"generated.{number}.py{sys.version_info[0]}{sys.version_info[1]}"
        self._cache_file = _File(self._cache_path, name, (text, stamp))
        self.enable()


def inlined(loop: F) -> F:
    """A function that is compiled into those that call it."""
    jit: Any = numba.njit(forceinline=True, **_OPTIONS)
    made: F = jit(loop)
    return made


def _has_file(loop: Callable[..., Any]) -> bool:
    """Whether a function is in a file, beside which the compiled one can be kept."""
    return not loop.__code__.co_filename.startswith("<")


def _asking(ends: int) -> Any:
    """How it is asked for the memory of a row of an array: where it begins, or at both ends."""

    def typed(typing: Any, rows: Any, at: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            array = context.make_array(signature.args[0])(context, builder, given[0])
            number, flag, pointer = ir.IntType(64), ir.IntType(32), ir.IntType(8).as_pointer()
            length = builder.extract_value(array.strides, 0)
            begin = builder.add(builder.ptrtoint(array.data, number), builder.mul(length, given[1]))
            asked = ir.FunctionType(ir.VoidType(), [pointer, flag, flag, flag])
            asks = builder.module.declare_intrinsic("llvm.prefetch", (pointer,), asked)
            for place in (begin, builder.add(begin, builder.sub(length, number(1))))[:ends]:
                at = builder.inttoptr(place, pointer)
                builder.call(asks, [at, flag(0), flag(3), flag(1)])
            return context.get_dummy_value()

        return types.void(rows, types.int64), build

    return typed


def _of_begin(typing: Any, rows: Any, at: Any) -> Any:
    return _asking(1)(typing, rows, at)


def _of_both_ends(typing: Any, rows: Any, at: Any) -> Any:
    return _asking(2)(typing, rows, at)


_intrinsic: Any = intrinsic
prefetched: Callable[[Any, int], None] = _intrinsic(_of_begin)
"""Ask for the memory of a row of an array, and go on: a loop that will read many rows here and
there asks for them first, and does not wait for each."""
prefetched_whole: Callable[[Any, int], None] = _intrinsic(_of_both_ends)
"""The same for a row that may be in two lines of memory."""
