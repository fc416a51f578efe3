"""Functions made of other functions: a field, several parts together, one after the other.

Each is a value: it can be called, compared and pickled. Their parts are anything with `call`,
`source` and `reads`, as an `ebbflow.fn.Fn` has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from ebbflow.errors import Text, UnknownField, place
from ebbflow.expression.build import attribute
from ebbflow.expression.node import (
    Bind,
    Constant,
    Expression,
    Get,
    Operation,
    Record,
    Row,
    made_text,
    new,
)
from ebbflow.expression.trace import DEPTH
from ebbflow.expression.value import constant_key, is_plain, is_simple, plain_fields, tuple_text
from ebbflow.record import hints_of_items


class Field:
    """A field of a row by name: an attribute, or an entry of a mapping.

    >>> Field("imag")(3 + 4j), Field("price")({"price": 7})
    (4.0, 7)
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, row: Any) -> Any:
        try:
            if isinstance(row, tuple):  # asked first: whether it is a mapping takes longer to tell
                return getattr(row, self.name)
            return row[self.name] if isinstance(row, Mapping) else getattr(row, self.name)
        except (AttributeError, KeyError) as error:
            fields = getattr(row, "_fields", None) or (row if isinstance(row, Mapping) else ())
            raise unknown_field(self.name, type(row).__name__, tuple(fields), row=row) from error

    def reads(self, arity: int) -> tuple[frozenset[str] | None, ...]:
        return (frozenset([self.name]),)

    def __repr__(self) -> str:
        return f"Field({self.name!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Field) and self.name == other.name

    def __hash__(self) -> int:
        return hash((Field, self.name))


def unknown_field(
    name: str, rows: str, fields: Sequence[Any], verb: str = "", **facts: Any
) -> UnknownField:
    """The error for a field that rows do not have, with the nearest that they have."""
    near = get_close_matches(name, [str(each) for each in fields], n=1)
    other = "a field that the rows have, or a function of a row"
    asked = f'{verb}("{name}"): ' if verb else ""
    remedy = (f'{verb}("{near[0]}")' if verb else repr(near[0])) if near else other
    known = {"fields": Text(", ".join(map(str, fields)))} if fields else {}
    return UnknownField(
        f"{asked}rows of {rows} have no field {name!r}",
        **facts,
        **known,
        **({} if facts else {"created": place()}),
        remedy=remedy,
    )


class Always:
    """The same value, whatever the rows.

    >>> Always(3)("a", "b")
    3
    """

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __call__(self, *rows: Any) -> Any:
        return self.value

    def reads(self, arity: int) -> tuple[frozenset[str] | None, ...]:
        return (frozenset(),) * arity

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Always) and _same(self.value, other.value)

    def __hash__(self) -> int:
        return hash((Always, type(self.value)))


def _same(one: Any, other: Any) -> bool:
    if is_simple(one) and is_simple(other):
        return bool(constant_key(one) == constant_key(other))
    return one is other


class WritesItself:
    """A callable that says how it is written inside a loop, of one row."""

    def written(self, bind: Bind, row: str) -> str:
        """Python text that gives what a call gives, with one NaN."""
        raise NotImplementedError


class Parts:
    """Several functions of the same rows together: a tuple, or a row of a NamedTuple class.

    >>> Parts(tuple, [abs, float])(-2)
    (2, -2.0)
    """

    __slots__ = ("cls", "make", "parts")

    def __init__(self, cls: Any, parts: Sequence[Any]) -> None:
        self.cls = cls
        self.parts = tuple(parts)
        self.make = cls is tuple or is_plain(cls)

    def __call__(self, *rows: Any) -> Any:
        values = [part(*rows) for part in self.parts]
        return new(self.cls, values) if self.make else self.cls(*values)

    def source(self, bind: Bind, rows: Sequence[str]) -> str:
        """Python text, with the parts inline that can be."""
        return self._made(bind, [part.source(bind, *rows) for part in self.parts])

    def kept(self, bind: Bind, rows: Sequence[str]) -> str:
        """Python text whose result has one NaN; see `ebbflow.nan`."""
        parts = zip(self.parts, hints_of_items(self.cls, len(self.parts)), strict=True)
        return self._made(bind, [part.kept(bind, *rows, hint=hint) for part, hint in parts])

    def _made(self, bind: Bind, parts: Sequence[str]) -> str:
        if not self.make:
            return f"{bind(self.cls)}({', '.join(parts)})"
        return made_text(bind, self.cls, tuple_text(parts))

    @property
    def text(self) -> str:
        inside = [part.text for part in self.parts]
        plain = self.cls is tuple
        return tuple_text(inside) if plain else f"{self.cls.__name__}({', '.join(inside)})"

    def reads(self, arity: int) -> tuple[frozenset[str] | None, ...]:
        found: list[frozenset[str] | None] = [frozenset()] * arity
        for part in self.parts:
            for i, fields in enumerate(part.reads[:arity]):
                so_far = found[i]
                found[i] = None if fields is None or so_far is None else so_far | fields
        return tuple(found)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Parts) and self.cls is other.cls and self.parts == other.parts

    def __hash__(self) -> int:
        return hash((self.cls, self.parts))

    def __reduce__(self) -> tuple[Any, ...]:
        return Parts, (self.cls, self.parts)


class Then:
    """One function after another.

    >>> Then(abs, float)(-2)
    2.0
    """

    __slots__ = ("after", "first")

    def __init__(self, first: Any, after: Any) -> None:
        self.first = first
        self.after = after

    def __call__(self, *rows: Any) -> Any:
        return self.after(self.first(*rows))

    def source(self, bind: Bind, rows: Sequence[str]) -> str:
        """Python text: the first as the argument of a call of the other."""
        return f"{bind(self.after.call)}({self.first.source(bind, *rows)})"

    def reads(self, arity: int) -> tuple[frozenset[str] | None, ...]:
        found: tuple[frozenset[str] | None, ...] = self.first.reads
        return found

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Then) and (self.first, self.after) == (other.first, other.after)

    def __hash__(self) -> int:
        return hash((Then, self.first, self.after))

    def __reduce__(self) -> tuple[Any, ...]:
        return Then, (self.first, self.after)


# ---- one expression after another ----


_SKIPS = ("if", "and", "or")


def limited(expression: Expression) -> Expression | None:
    """The expression, unless it is too deep to be written down."""
    return expression if expression.depth <= DEPTH else None


def composed(
    first: Expression, types: Sequence[Any], after: Expression, after_types: Sequence[Any]
) -> Expression | None:
    """`after` applied to what `first` gives, or None where that would not be exact.

    >>> g = Operation("+", (Row(0), Constant(1)))
    >>> composed(g, [int], g, [int]).text("x")
    'x + 1 + 1'
    """
    items = first.items if isinstance(first, Record) else None
    risky = [i for i, part in enumerate(items or (first,)) if not part.total]
    used: list[int] = []
    for each in after.walk():
        if isinstance(each, Get) and items is not None:
            used += [each.index] if each.index in risky else []
        elif isinstance(each, (Row, Get)):
            used += risky
        elif isinstance(each, Operation) and risky and (each.op in _SKIPS or used != risky):
            return None
    if used != risky:
        return None

    def put(leaf: Row | Get) -> Expression:
        if isinstance(leaf, Row):
            return first
        if items is not None:
            if first.type is not after_types[0]:  # type: ignore[attr-defined]
                raise LookupError
            return items[leaf.index]
        if isinstance(first, Row):
            if plain_fields(types[first.arg] if types else None) is None:
                raise LookupError
            return attribute(first, leaf.name, types)
        return Operation(".", (first, Constant(leaf.name)))

    try:
        return limited(after.substitute(put))
    except Exception:
        return None
