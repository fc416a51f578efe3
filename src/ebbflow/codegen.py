"""Loops written for one purpose: Python source made from a program, and compiled.

A general loop over rows has to call a function for every key, every condition and every new row; a
call costs more than what it does. So loops that run for every row are written out, with what is
known of those functions inline, and compiled once. What is written is ordinary Python and can be
read: `loop.text`.

When something raises inside such a loop, `blame` says who wrote the line and which rows it was
looking at, so nothing has to be remembered for that while the loop runs.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any, NamedTuple
from weakref import finalize

_numbers = count(1)
_free: list[str] = []
"""Names of files whose loops are gone, for the next ones. They stay in `linecache`: who goes over
it, as every traceback does, must not find one missing, and loops go whenever memory is tidied."""


class Blame(NamedTuple):
    """Whose line raised, and the rows it was looking at."""

    owner: Any
    rows: tuple[Any, ...]


class GeneratedLoop:
    """A Python function being written.

    >>> loop = GeneratedLoop("double", "rows")
    >>> loop.write("out = []")
    >>> with loop.inside("for row in rows:"):
    ...     loop.write(f"out.append({loop.bind(abs)}(row))")
    >>> loop.write("return out")
    >>> loop.function()([1, -2])
    [1, 2]
    """

    def __init__(self, title: str, parameters: str) -> None:
        self.title = title
        self.lines = [f"def {title}({parameters}):"]
        self.depth = 1
        self.names: dict[str, Any] = {"new": tuple.__new__}
        self.known: dict[int, str] = {id(tuple.__new__): "new"}
        self.owners: dict[int, tuple[Any, tuple[str, ...]]] = {}

    @property
    def text(self) -> str:
        """What has been written."""
        return "\n".join(self.lines) + "\n"

    def bind(self, value: Any) -> str:
        """A name for a value that is not text: a function, a type, a constant."""
        name = self.known.get(id(value))
        if name is None:
            name = self.known[id(value)] = f"_{len(self.names)}"
            self.names[name] = value
        return name

    def write(self, line: str, owner: Any = None, *rows: str) -> None:
        """One more line; if it raises, `owner` is to blame, for what is in the variables `rows`.

        They must not be those of a comprehension, which are gone when it has raised.
        """
        self.lines.append("    " * self.depth + line)
        if owner is not None:
            self.owners[len(self.lines)] = (owner, rows)

    @contextmanager
    def inside(self, line: str, owner: Any = None, *rows: str) -> Iterator[None]:
        """A line with a block; whatever is opened inside is closed with it."""
        depth = self.depth
        self.write(line, owner, *rows)
        self.depth += 1
        yield
        self.depth = depth

    def function(self) -> Callable[..., Any]:
        """What has been written, compiled."""
        try:
            file = _free.pop()
        except IndexError:
            file = f"<ebbflow loop {next(_numbers)}>"
        names = {**self.names, "__owners__": self.owners}
        exec(compile(self.text, file, "exec"), names)
        linecache.cache[file] = (len(self.text), None, self.text.splitlines(True), file)
        function: Callable[..., Any] = names[self.title]
        finalize(function, _free.append, file)
        return function


def blame(error: BaseException) -> Blame | None:
    """Whose line raised, when it was raised inside a generated loop.

    >>> loop = GeneratedLoop("halves", "rows")
    >>> with loop.inside("for row in rows:"):
    ...     loop.write("1 / row", "the user", "row")
    >>> try:
    ...     loop.function()([2, 0])
    ... except ZeroDivisionError as error:
    ...     print(blame(error))
    Blame(owner='the user', rows=(0,))
    """
    found = None
    trace = error.__traceback__
    while trace is not None:
        owners = trace.tb_frame.f_globals.get("__owners__")
        if owners is not None and trace.tb_lineno in owners:
            owner, names = owners[trace.tb_lineno]
            there = trace.tb_frame.f_locals
            found = Blame(owner, tuple(there[name] for name in names if name in there))
        trace = trace.tb_next
    return found
