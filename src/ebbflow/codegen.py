"""Generated loops: Python source made from a program, and compiled.

A general loop over rows has to call a function for every key, every condition and every new row; a
call costs more than what it does. So loops that run for every row are generated, with what is known
of those functions inline, and compiled once. A loop is ordinary Python and can be read: `loop.text`
while it is made, `source_of(function)` afterwards, and `explain("python")` for a whole program.

A loop is a *template* with *holes*, `$name`, or lines one after the other. Values that are no text
are *bound*: in the text they have the name of the function or the class that they are.

When something raises inside a generated loop, `blame` says who wrote the line and which rows it was
looking at, so nothing has to be remembered for that while the loop runs.
"""

from __future__ import annotations

import builtins
import inspect
import keyword
import linecache
import re
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain, count
from typing import Any, NamedTuple
from weakref import finalize

_numbers = count(1)
_free: list[str] = []
"""Names of files whose loops are gone, for the next ones. They stay in `linecache`: who goes over
it, as every traceback does, must not find one missing, and loops go whenever memory is tidied."""

_HOLE = re.compile(r"\$(\w+)")
_BOUND = re.compile("\0(\\d+)\0")
_RESERVED = frozenset((*keyword.kwlist, *dir(builtins)))


class Blame(NamedTuple):
    """Whose line raised, and the rows it was looking at."""

    owner: Any
    rows: tuple[Any, ...]


class GeneratedLoop:
    """A Python function being written.

    >>> loop = GeneratedLoop("sizes", "rows")
    >>> loop.template('''
    ...     out = []
    ...     for row in rows:
    ...         out.append($size)
    ...     return out
    ... ''', size=f"{loop.bind(abs)}(row)")
    >>> print(loop.text, end="")
    def sizes(rows):
        out = []
        for row in rows:
            out.append(abs(row))
        return out
    >>> loop.function()([1, -2])
    [1, 2]
    """

    def __init__(self, title: str, parameters: str) -> None:
        self.title = title
        self.lines = [f"def {title}({parameters}):"]
        self.depth = 1
        self.bound: list[tuple[str, Any]] = []
        self.known: dict[int, str] = {id(tuple.__new__): "new"}
        self.owners: dict[int, tuple[Any, tuple[str, ...]]] = {}

    def bind(self, value: Any, name: str = "") -> str:
        """What stands in a line for a value that is not text: a function, a type, a constant.

        In the text of the loop it becomes `name`, by default the name of the value; with a number
        where another word of the text is the same.
        """
        mark = self.known.get(id(value))
        if mark is None:
            mark = self.known[id(value)] = f"\0{len(self.bound)}\0"
            self.bound.append((name or name_of(value), value))
        return mark

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

    def template(self, text: str, owner: Any = None, *rows: str, **holes: Any) -> None:
        """Lines with holes; `owner` and `rows` are to blame for each of them.

        A hole is filled with a text; a line that holds nothing else may be filled with "", and is
        left out then, or by a function that writes lines: what it opens stays open for the lines
        below, to the end of their block. Any other value is bound, by the name of the hole.
        """
        outer = self.depth
        blocks = [(0, outer)]
        for line in textwrap.dedent(text).strip().splitlines():
            code = line.lstrip()
            indent = (len(line) - len(code)) // 4
            while blocks[-1][0] > indent:
                blocks.pop()
            at, depth = blocks[-1]
            self.depth = depth + indent - at
            alone = holes.get(code[1:]) if code.startswith("$") else None
            if callable(alone):
                alone()
                blocks.append((indent, self.depth))
            elif filled := _HOLE.sub(partial(self._filled, holes), code):
                self.write(filled, owner, *rows)
        self.depth = outer

    def _filled(self, holes: dict[str, Any], hole: re.Match[str]) -> str:
        value = holes[hole[1]]
        return value if isinstance(value, str) else self.bind(value, hole[1])

    # ---- what has been written ----

    @property
    def text(self) -> str:
        """The source of the function."""
        return self._named()[0]

    def function(self) -> Callable[..., Any]:
        """The function, compiled."""
        try:
            file = _free.pop()
        except IndexError:
            file = f"<ebbflow loop {next(_numbers)}>"
        text, names = self._named()
        scope = {**names, "new": tuple.__new__, "__owners__": self.owners}
        exec(compile(text, file, "exec"), scope)
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
        function: Callable[..., Any] = scope[self.title]
        finalize(function, _free.append, file)
        return function

    def _named(self) -> tuple[str, dict[str, Any]]:
        """The text with a name for each bound value that no other word in it has, and the values
        by these names."""
        text = "\n".join(self.lines) + "\n"
        words = {*re.findall(r"\w+", _BOUND.sub(" ", text)), "new", *_RESERVED}
        names: dict[str, Any] = {}
        for name, value in self.bound:
            own = words - {name} if getattr(builtins, name, words) is value else words
            tries = chain([name], (f"{name}_{i}" for i in count(1)))
            names[next(each for each in tries if each not in own and each not in names)] = value
        order = list(names)
        return _BOUND.sub(lambda mark: order[int(mark[1])], text), names


def name_of(value: Any) -> str:
    """A name for a value in generated code: of the function or class that it is, or of its class.

    >>> name_of(len), name_of(str.upper), name_of(lambda row: row), name_of((1, 2))
    ('len', 'upper', 'function', 'tuple')
    """
    name = getattr(value, "__name__", None) or type(value).__name__.strip("_").lower()
    return name if isinstance(name, str) and name.isidentifier() else "function"


def source_of(function: Callable[..., Any]) -> str:
    """The source of a generated loop, or of any other function whose source can be found.

    >>> loop = GeneratedLoop("double", "row")
    >>> loop.write("return row * 2")
    >>> print(source_of(loop.function()))
    def double(row):
        return row * 2
    """
    try:
        return textwrap.dedent(inspect.getsource(function)).rstrip()
    except (OSError, TypeError):
        return f"# the source of {function!r} is not there"


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
