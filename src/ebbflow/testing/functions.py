"""What a generated program does to its rows: parts of rows, and functions of them as texts.

A generator knows of every collection the *dtypes* of its parts: `int`, `str`, `maybe` (an int or
None), `float`, `big` (an int that floats cannot tell from its neighbours), `time` and `zoned` (a
datetime without and with a zone), `decimal`, or `any`, of which only equality is used. From dtypes
it writes expressions over the row `r`, such as `r.k + 1`, and from expressions functions. All of
them are total and deterministic, and give equal answers for equal rows. Some are simple enough to
be traced to columns, some are not.

What is chosen is given from outside as one number, so a number always means the same function, and
small numbers mean simple ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from decimal import Decimal
from functools import cache
from typing import (
    Annotated,
    Any,
    NamedTuple,
    NewType,
    TypeVar,
    get_args,
    get_origin,
)

from ebbflow.errors import CheckError
from ebbflow.record import fields_of
from ebbflow.reducer import RECOMPUTE

T = TypeVar("T")
Serial = NewType("Serial", int)
"""Ints that are compared and never computed with, so that they may be as large as 64 bits allow."""
ORDERED = ("float", "big", "time", "zoned", "decimal")
"""Kinds that have an order and nothing else that an expression needs."""
EVERY = ("int", "str", "maybe", "any", *ORDERED)
NOON = datetime(2024, 3, 31, 12)
NOON_UTC = datetime(2024, 3, 31, 12, tzinfo=UTC)


class Choices:
    """A number that decides, digit by digit; the first of all options when it is used up.

    >>> choices = Choices(7)
    >>> choices.pick("abc"), choices.pick("abc"), choices.pick("abc")
    ('b', 'c', 'a')
    """

    def __init__(self, number: int) -> None:
        self.number = number

    def pick(self, options: Sequence[T]) -> T:
        """One of the options."""
        self.number, at = divmod(self.number, len(options))
        return options[at]


class Pair(NamedTuple):
    """Two ints: what generated functions make of typed rows."""

    k: int
    v: int


class Scored(NamedTuple):
    """An int and a float, as loops have them that take the best of each key."""

    k: int
    v: float


@cache
def function(text: str, rows: str = "r") -> Callable[..., Any]:
    """The function of `rows` that an expression writes; the same text gives the same function.

    >>> function("r + 1")(2), function("l * r", "l, r")(2, 3)
    (3, 6)
    >>> function("r + 1").__qualname__
    'lambda r: r + 1'
    """
    whole = f"lambda {rows}: {text}"
    made: Any = eval(whole, {
        "Pair": Pair, "Scored": Scored, "RECOMPUTE": RECOMPUTE, "NOON": NOON, "NOON_UTC": NOON_UTC,
    })  # fmt: skip
    made.__name__ = made.__qualname__ = whole
    return made  # type: ignore[no-any-return]


@dataclass(frozen=True)
class RowShape:
    """The dtypes of the parts of a row, and the names of those parts where the row has fields.

    A row that is not a tuple has one part, which is the row itself: `whole`.
    """

    dtypes: tuple[str, ...]
    names: tuple[str, ...] = ()
    whole: bool = False

    @classmethod
    def of(cls, dtypes: Sequence[str], row_type: Any) -> RowShape:
        """The shape of rows of type `row_type` with these parts."""
        fields = fields_of(row_type)
        if fields is not None and len(fields) != len(dtypes):
            raise CheckError("these are not the parts of such a row", parts=dtypes, type=row_type)
        return cls(tuple(dtypes), tuple(fields or ()))

    @classmethod
    def of_type(cls, row_type: Any) -> RowShape:
        """What can be told from a type alone.

        >>> [RowShape.of_type(each).dtypes for each in (Pair, int, Any)]
        [('int', 'int'), ('int',), ('any',)]
        """
        fields = fields_of(row_type)
        if fields is None:
            return cls((dtype_of(row_type),), whole=True)
        return cls(tuple(map(dtype_of, fields.values())), tuple(fields))

    def path(self, at: int, row: str = "r") -> str:
        """The expression for a part."""
        if self.whole:
            return row
        return f"{row}.{self.names[at]}" if self.names else f"{row}[{at}]"

    def paths(self, *dtypes: str, row: str = "r") -> list[str]:
        """The expressions for all parts of these dtypes."""
        return [self.path(at, row) for at, dtype in enumerate(self.dtypes) if dtype in dtypes]

    # ---- expressions and functions ----

    def number(self, choices: Choices, row: str = "r") -> str:
        """An expression that is an int, whatever the row has."""
        options = self.paths("int", row=row)
        options += [f"len({path})" for path in self.paths("str", row=row)]
        options += [f"(0 if {p} is None else {p})" for p in self.paths("maybe", row=row)]
        return choices.pick(options or ["1"])

    def condition(self, choices: Choices) -> str:
        """An expression that is true or false."""
        tests = []
        for p in self.paths("int"):
            tests += [f"{p} > 1", f"{p} % 2 == 0", f"{p} <= 2 and {p} != 0"]
        for p in self.paths("str"):
            tests += [f"{p} == 'a'", f"{p} < 'b'", f"{p}.startswith('a')"]
        for p in self.paths("maybe"):
            tests += [f"{p} is None", f"{p} == 1", f"{p} is not None and {p} > 0"]
        for p in self.paths("any"):
            tests += [f"{p} is not None"]
        for p in self.paths("float"):
            tests += [f"{p} > 0.5", f"{p} <= 1"]
        for p in self.paths("big"):
            tests += [f"{p} > {2**53}"]
            signs = (">", "==", "<=", "!=") * 2
            tests += [f"{p} {sign} {x}" for x in self.paths("float") for sign in signs]
        tests += [f"{p} < NOON" for p in self.paths("time")]
        tests += [f"{p} < NOON_UTC" for p in self.paths("zoned")]
        tests += [f"{p} > 1" for p in self.paths("decimal")]
        return choices.pick(tests)

    def term(self, choices: Choices) -> tuple[str, str]:
        """An expression of any dtype, with its dtype."""
        terms: list[tuple[str, str]] = []
        for p in self.paths("int"):
            terms += [(p, "int"), (f"{p} + 1", "int"), (f"{p} * 2", "int"), (f"{p} % 2", "int")]
            terms += [
                (f"-{p}", "int"),
                (f"abs({p})", "int"),
                (f"{p} if {p} > 1 else None", "maybe"),
            ]
        for p in self.paths("str"):
            terms += [(p, "str"), (f"{p} + 'a'", "str"), (f"len({p})", "int")]
        for p in self.paths("maybe"):
            terms += [(p, "maybe"), (f"0 if {p} is None else {p}", "int")]
        terms += [(p, "any") for p in self.paths("any")]
        for p in self.paths("float"):
            terms += [(f"{p} * 2", "float"), (f"-{p}", "float")]
        terms += [(p, dtype) for dtype in ORDERED for p in self.paths(dtype)]
        return choices.pick(terms)

    def key(self, choices: Choices, *dtypes: str) -> RowKey:
        """A part with few values, where rows meet; of one of these dtypes, if any are given."""
        wanted = dtypes or EVERY
        parts = [RowKey(self, self.path(at), k) for at, k in enumerate(self.dtypes) if k in wanted]
        if "int" in wanted:
            parts += [RowKey(self, f"{path} % 2", "int") for path in self.paths("int")]
        return choices.pick(parts)


@dataclass(frozen=True)
class RowKey:
    """A part of rows by which they are brought together: its expression and its dtype."""

    shape: RowShape
    text: str
    dtype: str

    @property
    def name(self) -> str:
        """The name of the field it is; nothing when it is none."""
        name = self.text.removeprefix("r.")
        return name if name in self.shape.names else ""

    @property
    def given(self) -> Any:
        """The key as a program asks for it: the name of a field if it is one, else a function."""
        return self.name or function(self.text)


def dtype_of(hint: Any) -> str:
    """The dtype of values of a type.

    >>> dtype_of(int), dtype_of(int | None), dtype_of(str), dtype_of(bytes)
    ('int', 'maybe', 'str', 'any')
    >>> dtype_of(datetime), dtype_of(Annotated[datetime, UTC])
    ('time', 'zoned')
    """
    if get_origin(hint) is Annotated:
        base, *notes = get_args(hint)
        zoned = base is datetime and any(isinstance(note, tzinfo) for note in notes)
        return "zoned" if zoned else dtype_of(base)
    found = [name for name, each in TYPES.items() if hint == each and name != "any"]
    return found[0] if found else "any"


TYPES: dict[str, Any] = {
    "int": int, "str": str, "maybe": int | None, "any": Any, "float": float, "big": Serial,
    "time": datetime, "zoned": Annotated[datetime, UTC], "decimal": Decimal,
}  # fmt: skip
