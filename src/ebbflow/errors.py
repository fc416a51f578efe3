"""Every exception ebbflow raises: what happened, the value, the place, the remedy.

An error is read by someone who did not write the code that failed. So its first line says what
happened in terms of what they wrote, the lines below give the values and where the thing was
created, and the last line says what to do about it:

    ebbflow.errors.ChangeError: Delete(at=3, count=4) is not a valid change of this text
        value      'abcd'
        try        a Delete that ends at or before position 4

The text of an error can always be made, is short, and is made in little time, whatever the values
are: lists without end, rows of a megabyte, objects whose repr fails. Where rows must not come into
logs, `redact` has their types shown instead; it holds for everything that a row may be part of:
facts, the messages of exceptions that a user's function raised, and these exceptions themselves.

Every exception that a user may catch is here, whatever module raises it; `docs/errors.md` has them
in a table.
"""

from __future__ import annotations

import os
import sys
from collections import namedtuple
from collections.abc import Iterable, Mapping
from itertools import islice
from types import MappingProxyType
from typing import Any

from ebbflow.places import cell_of, located

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_DEMO = os.path.join(_PACKAGE, "demo") + os.sep
_WIDTH = 400
_LONGEST = 4000
"""How long one line of an error can be at most."""
_DEEPEST = 40
_ABOUT = {
    "columns", "created", "epoch", "epochs", "fields", "format", "inputs", "known", "last", "node",
    "outputs", "path", "process", "scheme", "segment", "stored", "token", "types", "wanted",
}  # fmt: skip
"""Facts that speak of a program or of its state, and are never redacted."""
_NAMEDTUPLE = namedtuple("_NAMEDTUPLE", "").__repr__.__code__


class EbbflowError(Exception):
    """The base of every error here.

    >>> print(EbbflowError("no such row", row=("Rome", 3), remedy="add it first"))
    no such row
        row        ('Rome', 3)
        try        add it first
    """

    def __init__(self, what: str, /, *, remedy: str = "", **facts: object) -> None:
        super().__init__(what)
        self.what = what
        self.remedy = remedy
        self.facts = facts

    def __str__(self) -> str:
        rows = [*self._shown().items(), *([("try", self.remedy)] if self.remedy else [])]
        lines = [self.what, *(f"    {name:<10} {value}" for name, value in rows)]
        return "\n".join(cut(line, _LONGEST) for line in lines)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as text: the values it shows may be anything, also what cannot be sent."""
        return _rebuild, (type(self), self.what, self.remedy, self._shown())

    def _shown(self) -> dict[str, Text]:
        return {
            name: value
            if isinstance(value, Text)
            else Text(shown(value) if name in _ABOUT else value_text(value))
            for name, value in self.facts.items()
        }


class ChangeError(EbbflowError):
    """A change is not valid for its input."""


class AbsentRow(EbbflowError):
    """A change removes a row that is not in the input, or removes it too often."""


class AlgebraError(EbbflowError):
    """A structure lacks a required operation, such as an inverse."""


class CompositionError(EbbflowError):
    """Parts of a program do not fit."""


class UnknownField(CompositionError):
    """The rows do not have a field with this name."""


class UnknownVerb(CompositionError, AttributeError):
    """A name that a collection, a view, another object or the module does not have."""


class UnknownArgument(CompositionError, TypeError):
    """A call has an unknown, a missing or a superfluous argument."""


class FunctionFailed(EbbflowError):
    """A function of the user's raised on a row; the epoch changed nothing. Its cause is chained."""


class NotDeterministic(EbbflowError):
    """A row was taken back and what had been made of it could not be found: a function gave
    another answer than before, or changed a row."""


class NoFixedPoint(EbbflowError):
    """A loop still changed after as many rounds as it may have; the epoch changed nothing."""


class MayNotEnd(UserWarning):
    """A program has a loop that may never end."""


class RepeatedBatch(UserWarning):
    """A view ignored a batch with a name that it applied before."""


class ViewClosed(EbbflowError):
    """A view was used after it was closed."""


class StateError(EbbflowError):
    """State on disk could not be read or written."""


class Damaged(StateError):
    """A file of the state is not what was written, or is not there."""


class InUse(StateError):
    """The state is open in another place."""


class Lost(StateError):
    """The state is not that of this process any more: it cannot write to it."""


class Unsure(StateError):
    """The object store did not confirm whether it wrote an epoch."""


class SchemaMismatch(EbbflowError):
    """A row does not fit the columns of its type."""


class SinkError(EbbflowError):
    """A sink cannot go on from where it is, or its files cannot be written."""


class BrokerError(EbbflowError):
    """Kafka refused a request or does not answer."""


class DatabaseError(EbbflowError):
    """PostgreSQL refused a statement."""


class SparkError(EbbflowError):
    """Spark cannot be used as it is."""


class CheckError(EbbflowError):
    """A check could not be run, so it says nothing about the law."""


class LawBroken(EbbflowError, AssertionError):
    """A law does not hold; `case` is the smallest counter-example found, by variable name.

    `law.test(thing, **case)` shows the same failure again. One that was pickled has its text only.
    """

    law: Any = None
    thing: Any = None
    case: Mapping[str, Any] = MappingProxyType({})
    left: Any = None
    right: Any = None


class Text(str):
    """A fact that is printed as it is, not as a repr."""


def place() -> Text:
    """Where the user's code is: the nearest frame outside this package, as `file:line`, or in a
    notebook as `cell [5], line 3`."""
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_ours(frame.f_code.co_filename):
        frame = frame.f_back
    return Text(located(frame.f_code.co_filename, frame.f_lineno))


def _is_ours(file: str) -> bool:
    """Whether code is of this package; its demo is a program as a user writes one."""
    return file.startswith(_PACKAGE) and not file.startswith(_DEMO)


def install(*extras: str) -> str:
    """What to do where a package is missing, as a remedy: it works from a clone.

    >>> install("laws", "durable")
    "pip install '.[laws,durable]' in a clone of ebbflow"
    """
    return f"pip install '.[{','.join(extras)}]' in a clone of ebbflow"


# ---- values as text ----

_redacted = [os.environ.get("EBBFLOW_REDACT", "") not in ("", "0")]


def redact(on: bool = True) -> None:
    """Leave values of rows out of the texts of errors from now on; their types stand there instead.
    The environment variable `EBBFLOW_REDACT=1` does it from the start.

    What a user's function raised is then not chained to our error, only named with its place. The
    values themselves are still in `error.facts`, for those who handle errors.

    >>> redact(True)
    >>> print(EbbflowError("no such row", row=("Rome", 3)))
    no such row
        row        <tuple>
    >>> redact(False)
    """
    _redacted[0] = bool(on)


def is_redacted() -> bool:
    """Whether values are left out of the texts of errors."""
    return _redacted[0]


def value_text(value: object, *, width: int = _WIDTH) -> str:
    """A value that may be part of a row, as text for an error; only its type if rows are redacted.

    >>> value_text({"b", "a"})
    "{'a', 'b'}"
    """
    if not _redacted[0]:
        return shown(value, width=width)
    name = type(value).__name__
    if isinstance(value, OSError) and value.strerror:
        return f"{name}: {value.strerror}"
    return name if isinstance(value, BaseException) else f"<{name}>"


def type_name(thing: object) -> str:
    """The type of a thing, with its article, as errors say it.

    >>> type_name(3), type_name("x")
    ('an int', 'a str')
    """
    name = type(thing).__name__
    return f"an {name}" if name[0] in "aeiouAEIOU" else f"a {name}"


def error_text(error: BaseException, *, width: int = 1000) -> str:
    """An exception as text: its class and its message, which is left out if rows are redacted.

    >>> error_text(KeyError("city")), error_text(ValueError())
    ("KeyError: 'city'", 'ValueError')
    """
    if _redacted[0] and not isinstance(error, EbbflowError):
        return value_text(error) + _raised_at(error)
    try:
        said = str(error)
    except Exception:
        said = "(it cannot say what)"
    return cut(f"{type(error).__name__}: {said}" if said else type(error).__name__, width)


def cause_of(error: BaseException) -> BaseException | None:
    """What to chain to an error of ours: what a user's function raised, unless rows are redacted,
    as it may say anything. `raise ours from cause_of(error)`"""
    return None if _redacted[0] else error


def _raised_at(error: BaseException) -> str:
    trace, found = error.__traceback__, ""
    while trace is not None:
        code = trace.tb_frame.f_code
        if not _is_ours(code.co_filename) and not code.co_filename.startswith("<ebbflow"):
            file = code.co_filename
            file = file if cell_of(file) else os.path.basename(file)
            found = f" at {located(file, trace.tb_lineno)}"
        trace = trace.tb_next
    return found


def shown(value: object, *, width: int = _WIDTH) -> str:
    """A repr cut in the middle when it is long.

    >>> shown("ab" * 1000, width=20)
    "'ababab...bababab'"
    """
    return cut(canonical(value, limit=4 * width), width)


def cut(text: str, width: int) -> str:
    """A text without its middle when it is long."""
    if len(text) <= width:
        return text
    keep = (width - 3) // 2
    return f"{text[: keep - 1]}...{text[-keep:]}"


def canonical(value: object, *, limit: int = 1 << 20) -> str:
    """A repr that is the same in every run: sets are shown in order. It never raises. What comes
    after about `limit` characters is left out.

    >>> canonical(({"b", "a"}, [frozenset({"d", "c"})]))
    "({'a', 'b'}, [frozenset({'c', 'd'})])"
    """
    try:
        return _Writer(limit).text(value, 0)
    except Exception:
        return f"<{type(value).__name__} that cannot be shown>"


class _Writer:
    """Writes a value as text, up to a number of characters and of levels; the rest is `...`."""

    def __init__(self, limit: int) -> None:
        self.limit = self.left = limit

    def text(self, value: Any, depth: int) -> str:
        cls = type(value)
        self.left -= 2
        if depth > _DEEPEST:
            return "..."
        if cls in (set, frozenset) and value:
            parts = self.parts(islice(value, self.limit), depth)
            inside = "{" + ", ".join(sorted(parts)) + "}"
            return inside if cls is set else f"frozenset({inside})"
        if cls is list:
            return f"[{', '.join(self.parts(value, depth))}]"
        if cls is tuple:
            return f"({', '.join(self.parts(value, depth))}{',' if len(value) == 1 else ''})"
        if cls is dict:
            return f"{{{', '.join(self.parts(value.items(), depth, self.entry))}}}"
        if isinstance(value, tuple) and _is_plain_record(cls):
            names = iter(cls._fields)
            fields = self.parts(value, depth, lambda x, d: f"{next(names)}={self.text(x, d)}")
            return f"{cls.__name__}({', '.join(fields)})"
        if hasattr(cls, "__shown__"):  # as ZSet has, which may be large
            return f"{cls.__name__}({self.text(cls.__shown__(value), depth + 1)})"
        return self.leaf(value, cls)

    def parts(self, values: Iterable[Any], depth: int, write: Any = None) -> list[str]:
        found: list[str] = []
        for value in values:
            if self.left <= 0:
                return [*found, "..."]
            found.append((write or self.text)(value, depth + 1))
        return found

    def entry(self, entry: tuple[Any, Any], depth: int) -> str:
        return f"{self.text(entry[0], depth)}: {self.text(entry[1], depth)}"

    def leaf(self, value: Any, cls: type) -> str:
        limit = self.limit
        if cls in (str, bytes, bytearray) and len(value) > 2 * limit:
            value = value[:limit] + value[-limit:]
        try:
            large = cls is int and value.bit_length() > 10_000
            made = f"<int of {value.bit_length():,} bits>" if large else repr(value)
        except Exception as error:
            made = f"<{cls.__name__} that cannot be shown: {error_text(error, width=80)}>"
        self.left -= len(made)
        return cut(made, limit)


def _is_plain_record(cls: Any) -> bool:
    """Whether the repr of a class is the one that every NamedTuple has."""
    return getattr(getattr(cls, "__repr__", None), "__code__", None) is _NAMEDTUPLE


def _rebuild(cls: type[EbbflowError], what: str, remedy: str, facts: dict[str, object]) -> Any:
    return cls(what, remedy=remedy, **facts)
