"""What a function computes, as far as its type goes.

A trace is something to be run, so it must mean exactly what the function means. To find the type of
what a function returns, less will do: `lambda order: order.day.strftime("%Y-%m")` is no trace, but
plainly a text. An *outline* is read off the bytecode as a trace is, with more in it: calls of
methods, of functions and classes from outside, and f-strings. It is never run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from ebbflow.expression.build import attribute, value_of
from ebbflow.expression.bytecode import Instruction, Missing, enclosed
from ebbflow.expression.node import Constant, Expression, Operation, Row
from ebbflow.expression.trace import NULL, Reading, argument_names, readable, take
from ebbflow.expression.value import is_simple, plain_fields

CALL = "call"
"""The operation of a call: what is called, its arguments, and the names of the last of them."""
TEXT = "text"
"""The operation of an f-string, or of a piece of one."""


@dataclass(frozen=True, slots=True, eq=False)
class Outside(Expression):
    """A value that is no constant: a function, a class, a module."""

    value: Any


def outline(f: Any, types: Sequence[Any]) -> Expression | None:
    """The outline of a plain function of rows of these types; None where it is not understood.

    >>> from ebbflow.record import record
    >>> outline(lambda o: o.city.upper(), [record("Order", city=str)]).op
    'call'
    """
    if type(f) is not FunctionType:
        return None
    try:
        return _Outline(f, types).whole()
    except Exception:  # not understood in any way
        return None


class _Outline(Reading):
    """One function being read for its type."""

    def __init__(self, f: FunctionType, types: Sequence[Any]) -> None:
        code, defaults = f.__code__, f.__defaults__ or ()
        names = dict(
            zip(code.co_varnames[code.co_argcount - len(defaults) :], defaults, strict=False)
        )
        names |= {**(f.__kwdefaults__ or {}), **dict(enclosed(f))}
        found = {name: _value(held) for name, held in names.items()}
        found |= argument_names(code, len(types))
        super().__init__(readable(code), found, types, f.__globals__)

    def simple(self, step: Instruction, stack: list[Any]) -> None:
        name = step.opname
        if name == "LOAD_METHOD" or (name == "LOAD_ATTR" and step.argrepr != step.argval):
            stack += [self.attribute(value_of(stack.pop()), step.argval), NULL]
        elif name == "LOAD_ATTR":
            stack.append(self.attribute(value_of(stack.pop()), step.argval))
        else:
            super().simple(step, stack)

    def attribute(self, of: Expression, name: str) -> Expression:
        if isinstance(of, Outside):
            return _value(getattr(of.value, name))
        if isinstance(of, Row) and name in (plain_fields(self.types[of.arg]) or ()):
            return attribute(of, name, self.types)
        return Operation(".", (of, Constant(name)))

    def operate(self, step: Instruction, stack: list[Any]) -> None:
        name = step.opname
        if name in ("FORMAT_VALUE", "FORMAT_SIMPLE", "FORMAT_WITH_SPEC", "CONVERT_VALUE"):
            spec = name == "FORMAT_WITH_SPEC" or (name == "FORMAT_VALUE" and step.arg & 4)
            stack.append(Operation(TEXT, tuple(take(stack, 2 if spec else 1))))
        elif name == "BUILD_STRING":
            stack.append(Operation(TEXT, tuple(take(stack, step.arg))))
        else:
            super().operate(step, stack)

    def known(self, value: Any) -> Any:
        return None if value is Missing else _value(value)

    def call(self, count: int, keywords: tuple[str, ...], stack: list[Any]) -> None:
        values = [value_of(each) for each in take(stack, count)]
        (target,) = [each for each in take(stack, 2) if each is not NULL]
        stack.append(Operation(CALL, (value_of(target), *values, Constant(tuple(keywords)))))


def _value(value: Any) -> Expression:
    return Constant(value) if is_simple(value) else Outside(value)
