"""Operations on Decimals in traced functions, with the digits of their results.

Python computes Decimals with as many digits as the context of the thread has. A traced function has
one meaning wherever it runs, so `with_decimals` puts a `DecimalOperation` where an operand is known
to be a Decimal. It follows types, as far as they are known: fields of rows, constants, and what
operators give.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from types import NoneType, UnionType
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin

from ebbflow import decimals
from ebbflow.decimals import Digits
from ebbflow.expression.node import (
    Constant,
    DecimalOperation,
    Expression,
    Get,
    Operation,
    Record,
    Row,
    Tuple,
)
from ebbflow.record import fields_of


class NumberType(NamedTuple):
    """Which number a value is: a Decimal or an int, of so many digits."""

    is_decimal: bool
    digits: Digits


_INT = NumberType(False, decimals.int_digits())
_NONE = NumberType(False, decimals.PLAIN)
"""None, which has no digits."""
_ON_INTS = {"+", "-", "*", "//", "%"}
_Args = tuple[Expression, ...]
_Found = tuple[Expression, NumberType | None]


def with_decimals(expression: Expression, types: Sequence[Any]) -> Expression:
    """The expression over rows of these types with `DecimalOperation` where it computes Decimals.

    >>> from ebbflow.record import record
    >>> Order = record("Order", price=decimals.decimal(12, 2), n=int)
    >>> price, n = Get(0, "price", 0), Get(0, "n", 1)
    >>> with_decimals(Operation("*", (price, Constant(2))), [Order]).digits
    (14, 2)
    >>> with_decimals(Operation("*", (n, Constant(2))), [Order]).text()
    'n * 2'
    """
    return _settled(*_Reading(types)(expression))


def computes_decimals(expression: Expression | None) -> bool:
    """Whether an expression has an operation on Decimals."""
    return expression is not None and any(
        isinstance(each, DecimalOperation) for each in expression.walk()
    )


def number_of(hint: Any) -> NumberType | None:
    """Which number the values of a type are, besides None.

    >>> number_of(decimals.decimal(12, 2) | None), number_of(str)
    (NumberType(is_decimal=True, digits=(12, 2)), None)
    """
    if hint is Decimal:
        return NumberType(True, decimals.PLAIN)
    if hint is int:
        return _INT
    if hasattr(hint, "__supertype__"):
        return number_of(hint.__supertype__)
    origin = get_origin(hint)
    if origin is Annotated:
        inside = number_of(get_args(hint)[0])
        return (
            NumberType(True, decimals.digits_of(hint)) if inside and inside.is_decimal else inside
        )
    if origin in (Union, UnionType):
        rest = [each for each in get_args(hint) if each is not NoneType]
        return number_of(rest[0]) if len(rest) == 1 else None
    return None


class _Reading:
    """An expression being read from the inside to the outside."""

    def __init__(self, types: Sequence[Any]) -> None:
        self.types = types

    def __call__(self, of: Expression) -> _Found:
        match of:
            case Row():
                return of, number_of(self.types[of.arg]) if of.arg < len(self.types) else None
            case Get():
                known = fields_of(self.types[of.arg]) if of.arg < len(self.types) else None
                return of, number_of((known or {}).get(of.name))
            case Constant():
                return of, _of_constant(of.value)
            case DecimalOperation():
                whole = of.op == "round" and of.places is None
                return of, NumberType(not whole, of.digits)
            case Operation():
                return self.operation(of)
            case Tuple():
                items = tuple([_settled(*self(each)) for each in of.items])
                return of.rebuilt(items), None
            case Record():
                return self.record(of), None
        return of, None

    def record(self, of: Record) -> Expression:
        """A row, whose fields take their values without loss."""
        fields = list((fields_of(of.type) or {}).values())
        items = []
        for at, each in enumerate(of.items):
            found, number = self(each)
            declared = number_of(fields[at]) if at < len(fields) else None
            if number is not None and declared is not None and declared.is_decimal:
                items.append(_brought(found, number, declared.digits))
            else:
                items.append(_settled(found, number))
        return of.rebuilt(tuple(items))

    def operation(self, of: Operation) -> _Found:
        found = [self(each) for each in of.args]
        args = tuple([each for each, _ in found])
        numbers = [number for _, number in found]
        known = [number for number in numbers if number is not None]
        here = of.rebuilt(args)
        if len(known) < len(numbers) and of.op != "if":
            return here, None
        read = _BY_OP.get(of.op)
        if read is not None:
            return read(of.op, args, numbers) or (here, None)
        if of.op in ("int", "len"):
            return here, _INT
        return _arithmetic(of.op, args, known) or (here, None)


def _of_constant(value: Any) -> NumberType | None:
    if value is None:
        return _NONE
    if type(value) is int:
        return NumberType(False, decimals.literal_digits(value))
    if type(value) is Decimal and value.is_finite():
        return NumberType(True, decimals.literal_digits(value))
    return None


def _settled(of: Expression, number: NumberType | None) -> Expression:
    """An expression as a value of a row: a constant has the form of a plain Decimal."""
    if isinstance(of, Constant) and number is not None and number.is_decimal:
        return Constant(decimals.plain(of.value))
    return of


def _brought(of: Expression, number: NumberType, digits: Digits) -> Expression:
    """An expression whose value has these digits."""
    same = number.is_decimal and number.digits == digits and not isinstance(of, Constant)
    if same or number == _NONE:
        return of
    return DecimalOperation("decimal", (of,), digits)


def _arithmetic(op: str, args: _Args, numbers: list[NumberType]) -> _Found | None:
    if _NONE in numbers:
        return None
    if not any(number.is_decimal for number in numbers):
        return (Operation(op, args), _INT) if op in _ON_INTS else None
    if len(args) == 1 and op in ("+", "-", "abs"):
        digits = numbers[0].digits
    elif len(args) == 2 and (op in decimals.RESULTS or op == "**"):
        digits = decimals.result(op, numbers[0].digits, numbers[1].digits)
    else:
        return None
    return DecimalOperation(op, args, digits), NumberType(True, digits)


def _rounded(op: str, args: _Args, numbers: Sequence[NumberType | None]) -> _Found | None:
    of = numbers[0]
    if of is None or not of.is_decimal:
        return None
    if len(args) == 1:
        return DecimalOperation(op, args, decimals.rounded(of.digits, 0)), _INT
    if len(args) != 2 or not isinstance(args[1], Constant) or type(args[1].value) is not int:
        return None
    digits = decimals.rounded(of.digits, args[1].value)
    return DecimalOperation(op, args, digits), NumberType(True, digits)


def _one_of(op: str, args: _Args, numbers: Sequence[NumberType | None]) -> _Found | None:
    """One of several values: all of them have the digits that hold each."""
    first = 1 if op == "if" else 0
    ways = numbers[first:]
    present = [number for number in ways if number is not None and number != _NONE]
    some = any(number.is_decimal for number in present)
    if None in ways or not some or (op in ("min", "max") and len(args) < 2):
        return None
    digits = present[0].digits
    for number in present[1:]:
        digits = decimals.wider(digits, number.digits)
    pairs = zip(args[first:], ways, strict=True)
    brought = tuple([_brought(each, number, digits) for each, number in pairs])  # type: ignore[arg-type]
    return Operation(op, (*args[:first], *brought)), NumberType(True, digits)


_BY_OP: dict[str, Callable[..., _Found | None]] = {
    "round": _rounded, **dict.fromkeys(("if", "and", "or", "min", "max"), _one_of),
}  # fmt: skip
