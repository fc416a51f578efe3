"""Reading a function as an expression, without running it.

Tracing follows the bytecode of a plain Python function on a stack of expressions instead of values:
where Python would add two numbers, it writes down an addition. So no code of the user's runs, and
whatever is not understood ends the attempt: the function is simply called then, as ever. What is
understood is what has no effect: fields of rows, arithmetic, comparisons, `and`, `or`, `if … else`,
elements and slices, tuples, a few built-in functions and methods of texts, what a regular
expression finds in a text, dates and Decimals that are written down, calls of plain row types, and
calls of other functions that are understood, with rows, fields and constants.

Names from outside the function must stand for simple values; they are taken as they are now.

An expression evaluates what the function evaluates, in the same order, with one freedom: what was
found out by a test may be computed again. Where the order would change, and a part could raise,
there is no expression.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from operator import attrgetter, itemgetter
from re import Pattern
from types import CodeType, FunctionType
from typing import Any, NamedTuple

from ebbflow.expression.build import (
    NotTraced,
    Slice,
    attribute,
    constant,
    either,
    element,
    identical,
    made,
    method,
    searched,
    value_of,
)
from ebbflow.expression.bytecode import Instruction, Missing, enclosed, steps
from ebbflow.expression.node import (
    COMPARISONS,
    FUNCTIONS,
    Constant,
    Expression,
    Get,
    Operation,
    Row,
    Tuple,
)
from ebbflow.expression.value import is_plain, is_simple

INSTRUCTIONS = 200
STEPS = 600
DEPTH = 40

_SKIPPED = {"RESUME", "NOP", "CACHE", "PRECALL", "NOT_TAKEN", "COPY_FREE_VARS", "EXTENDED_ARG"}
_UNARY = {"UNARY_NEGATIVE": "-", "UNARY_POSITIVE": "+", "UNARY_INVERT": "~", "UNARY_NOT": "not"}
_LOADS = {"LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW", "LOAD_DEREF"}
_LOADS_TWO = {"LOAD_FAST_LOAD_FAST", "LOAD_FAST_BORROW_LOAD_FAST_BORROW"}
_ARITHMETIC = {"+", "-", "*", "/", "//", "%", "**", "@", "<<", ">>", "&", "|", "^", "[]"}
_GENERATES = 0x20 | 0x80 | 0x100 | 0x200
_STARS = 0x04 | 0x08
_WRITTEN = (date, datetime, timedelta, Decimal)
"""Classes whose values may be written down by calling them with constants."""


class _Callee(NamedTuple):
    """On the stack: something that may be called."""

    target: Any


class _Searching(NamedTuple):
    """On the stack: a regular expression, whose methods may be called."""

    pattern: Pattern[str]


NULL = object()
"""On the stack: nothing, beside what is called."""


def trace(call: Any, types: Sequence[Any]) -> Expression | None:
    """What `call` computes from rows of these types; None when it is not simple enough.

    >>> from ebbflow.record import record
    >>> Order = record("Order", city=str, price=int)
    >>> trace(lambda o: (o.city, o.price * 2), [Order]).text()
    '(city, price * 2)'
    >>> trace(lambda o: print(o), [Order]) is None
    True
    """
    try:
        if type(call) is FunctionType:
            found = _function(call, types)
        elif type(call) is attrgetter or type(call) is itemgetter:
            found = _getter(call, types)
        else:
            return None
        return found if found.depth <= DEPTH else None
    except Exception:  # not understood in any way, also one that no version of Python had so far
        return None


def _function(call: FunctionType, types: Sequence[Any]) -> Expression:
    code = call.__code__
    return Reading(readable(code), _names(call, code, len(types)), types, call.__globals__).whole()


def readable(code: CodeType) -> Sequence[Instruction]:
    """The instructions of a function that computes one value, and catches nothing."""
    if code.co_flags & (_GENERATES | _STARS) or len(code.co_code) > 8 * INSTRUCTIONS:
        raise NotTraced
    if getattr(code, "co_exceptiontable", b""):
        raise NotTraced
    return steps(code)


def _names(call: FunctionType, code: CodeType, arity: int) -> dict[str, Any]:
    """What the local and enclosing names of a function stand for."""
    positional = code.co_varnames[: code.co_argcount]
    names = argument_names(code, arity)
    defaults = call.__defaults__ or ()
    first = len(positional) - len(defaults)
    if first > arity:
        raise NotTraced
    for name, value in zip(positional[arity:], defaults[arity - first :], strict=True):
        names[name] = _known(value)
    for name, value in (call.__kwdefaults__ or {}).items():
        names[name] = _known(value)
    for name, value in enclosed(call):
        names[name] = _known(value)
    return names


def argument_names(code: CodeType, arity: int) -> dict[str, Any]:
    """The names of the rows that a function is given."""
    positional = code.co_varnames[: code.co_argcount]
    if arity > len(positional):
        raise NotTraced
    return {name: Row(i) for i, name in enumerate(positional[:arity])}


def _known(value: Any) -> Any:
    """A value from outside as it is put on the stack; None when it cannot be."""
    if is_simple(value):
        return Constant(value)
    function = value is getattr or any(value is each for each in FUNCTIONS.values())
    function = function or any(value is each for each in _WRITTEN)
    if function or type(value) is FunctionType or (isinstance(value, type) and is_plain(value)):
        return _Callee(value)
    if type(value) is Pattern and type(value.pattern) is str:
        return _Searching(value)
    return None


class Reading:
    """One function being read: its instructions, and what its names stand for."""

    def __init__(
        self,
        steps: Sequence[Instruction],
        names: dict[str, Any],
        types: Sequence[Any],
        outside: dict[str, Any],
    ) -> None:
        self.steps = steps
        self.names = names
        self.types = types
        self.outside = outside
        self.at = {step.offset: i for i, step in enumerate(steps)}
        self.left = STEPS

    def whole(self) -> Expression:
        """The expression the function returns."""
        return self.rest(0, [], frozenset())

    def rest(self, i: int, stack: list[Any], tested: frozenset[Expression]) -> Expression:
        """The expression that is returned from instruction `i` on. The expressions `tested` were
        evaluated on the way here."""
        keywords: tuple[str, ...] = ()
        while i < len(self.steps):
            self.left -= 1
            if self.left < 0:
                raise NotTraced
            step = self.steps[i]
            name = step.opname
            if "JUMP" in name:
                if name != "JUMP_FORWARD":
                    return self.fork(i, stack, tested)
                i = self.target(i)
                continue
            if name == "RETURN_VALUE":
                return self.finished(value_of(stack.pop()), stack, tested)
            if name == "RETURN_CONST":
                return self.finished(constant(step.argval), stack, tested)
            if name == "KW_NAMES":
                keywords = step.argval
            elif name in ("CALL", "CALL_KW"):
                if name == "CALL_KW":
                    keywords = value_of(stack.pop()).value  # type: ignore[attr-defined]
                self.call(step.arg, keywords, stack)
                keywords = ()
            elif name == "POP_TOP":
                _droppable(stack.pop(), tested)
            elif name not in _SKIPPED:
                if name != "TO_BOOL":
                    self.simple(step, stack)
                if _makes_bool(step) and not self.is_asked(i + 1):
                    stack.append(Operation("bool", (value_of(stack.pop()),)))
            i += 1
        raise NotTraced

    def is_asked(self, i: int) -> bool:
        """Whether the next instruction only asks if a value is true."""
        names = (step.opname for step in self.steps[i:] if step.opname not in _SKIPPED)
        following = next(names, "")
        return following == "UNARY_NOT" or following.startswith("POP_JUMP")

    def finished(
        self, result: Expression, stack: list[Any], tested: frozenset[Expression]
    ) -> Expression:
        for each in stack:
            _droppable(each, tested)
        return result

    # ---- one instruction ----

    def simple(self, step: Instruction, stack: list[Any]) -> None:
        """An instruction that only moves expressions about, or makes one."""
        name = step.opname
        if name in _LOADS:
            stack.append(self.named(step.argval))
        elif name in _LOADS_TWO:
            stack += [self.named(each) for each in step.argval]
        elif name == "LOAD_CONST" or name == "LOAD_SMALL_INT":
            stack.append(constant(step.argval))
        elif name == "LOAD_GLOBAL":
            self.load_global(step, stack)
        elif name == "PUSH_NULL":
            stack.append(NULL)
        elif name == "LOAD_METHOD" or (name == "LOAD_ATTR" and step.argrepr != step.argval):
            of = stack.pop()
            stack += [_Callee(step.argval), of if type(of) is _Searching else value_of(of)]
        elif name == "LOAD_ATTR":
            stack.append(attribute(value_of(stack.pop()), step.argval, self.types))
        elif name == "SWAP":
            stack[-1], stack[-step.arg] = stack[-step.arg], stack[-1]
        elif name == "COPY":
            stack.append(stack[-step.arg])
        else:
            self.operate(step, stack)

    def operate(self, step: Instruction, stack: list[Any]) -> None:
        name = step.opname
        if name in _UNARY:
            stack.append(Operation(_UNARY[name], (value_of(stack.pop()),)))
        elif name == "CALL_INTRINSIC_1" and step.argrepr == "INTRINSIC_UNARY_POSITIVE":
            stack.append(Operation("+", (value_of(stack.pop()),)))
        elif name == "BINARY_SUBSCR" or (name == "BINARY_OP" and step.argrepr == "[]"):
            index, of = stack.pop(), value_of(stack.pop())
            stack.append(element(of, index, self.types))
        elif name == "BINARY_OP" and step.argrepr in _ARITHMETIC:
            stack.append(Operation(step.argrepr, _two(stack)))
        elif name == "COMPARE_OP" and step.argval in COMPARISONS:
            stack.append(Operation(step.argval, _two(stack)))
        elif name == "CONTAINS_OP":
            stack.append(Operation("not in" if step.arg else "in", _two(stack)))
        elif name == "IS_OP":
            stack.append(identical("is not" if step.arg else "is", *_two(stack)))
        elif name == "BUILD_SLICE" and step.arg == 2:
            stack.append(Slice(*_two(stack)))
        elif name == "BINARY_SLICE":
            limits = Slice(*_two(stack))
            stack.append(element(value_of(stack.pop()), limits, self.types))
        elif name == "BUILD_TUPLE":
            stack.append(Tuple(tuple(map(value_of, take(stack, step.arg)))))
        else:
            raise NotTraced

    def named(self, name: str) -> Any:
        found = self.names.get(name)
        if found is None:
            raise NotTraced
        return found

    def load_global(self, step: Instruction, stack: list[Any]) -> None:
        name = step.argval
        found = self.known(self.outside.get(name, getattr(builtins, name, Missing)))
        if found is None:
            raise NotTraced
        if step.argrepr == name:
            stack.append(found)
        else:
            stack += [NULL, found] if step.argrepr.startswith("NULL") else [found, NULL]

    def known(self, value: Any) -> Any:
        """A value from outside as it is put on the stack; None when it cannot be."""
        return _known(value)

    def call(self, count: int, keywords: tuple[str, ...], stack: list[Any]) -> None:
        values = [value_of(each) for each in take(stack, count)]
        pair = [each for each in take(stack, 2) if each is not NULL]
        if len(pair) == 2 and isinstance(pair[0], _Callee) and not keywords:
            if type(pair[1]) is _Searching:
                stack.append(searched(pair[1].pattern, pair[0].target, values, self.types))
                return
            stack.append(method(value_of(pair[1]), pair[0].target, values, self.types))
            return
        if len(pair) != 1 or not isinstance(pair[0], _Callee):
            raise NotTraced
        target = pair[0].target
        if any(target is each for each in _WRITTEN):
            known = [each.value for each in values if isinstance(each, Constant)]
            first = len(values) - len(keywords)
            named = dict(zip(keywords, known[first:], strict=True))
            if len(known) < len(values):
                raise NotTraced
            stack.append(constant(target(*known[:first], **named)))
        elif isinstance(target, type) and target not in FUNCTIONS.values():
            stack.append(made(target, values, keywords))
        elif keywords or not values:
            raise NotTraced
        elif type(target) is FunctionType:
            stack.append(self.inlined(target, values))
        elif target is getattr:
            of, name = values
            if not isinstance(name, Constant) or type(name.value) is not str:
                raise NotTraced
            stack.append(attribute(of, name.value, self.types))
        else:
            stack.append(Operation(target.__name__, tuple(values)))

    def inlined(self, function: FunctionType, values: Sequence[Expression]) -> Expression:
        """What a function gives for values that nobody misses when it does not read them."""
        if not all(isinstance(each, (Row, Get, Constant)) for each in values):
            raise NotTraced
        code = function.__code__
        names = _names(function, code, len(values))
        names |= dict(zip(code.co_varnames, values, strict=False))
        inner = type(self)(readable(code), names, self.types, function.__globals__)
        inner.left = self.left - 1
        found = inner.whole()
        self.left = inner.left
        return found

    # ---- two ways on ----

    def fork(self, i: int, stack: list[Any], tested: frozenset[Expression]) -> Expression:
        step = self.steps[i]
        name = step.opname.replace("_FORWARD", "")
        test = value_of(stack.pop())
        for each in stack:
            if each != test:
                _droppable(each, tested)
        jumped = self.target(i)
        inside = tested | {test}
        on = self.rest(i + 1, list(stack), inside)
        if name in ("JUMP_IF_FALSE_OR_POP", "JUMP_IF_TRUE_OR_POP"):
            stack = [*stack, test]
        away = self.rest(jumped, list(stack), inside)
        if name in ("POP_JUMP_IF_NONE", "POP_JUMP_IF_NOT_NONE"):
            test = Operation("is", (test, Constant(None)))
            return either(test, *((away, on) if name == "POP_JUMP_IF_NONE" else (on, away)))
        if name in ("POP_JUMP_IF_FALSE", "JUMP_IF_FALSE_OR_POP"):
            return either(test, on, away)
        if name in ("POP_JUMP_IF_TRUE", "JUMP_IF_TRUE_OR_POP"):
            return either(test, away, on)
        raise NotTraced

    def target(self, i: int) -> int:
        place = self.at.get(self.steps[i].argval, -1)
        if place <= i:
            raise NotTraced
        return place


def _makes_bool(step: Instruction) -> bool:
    """Whether a value becomes True or False: from Python 3.13 on `not not x` is this alone."""
    return step.opname == "TO_BOOL" or (
        step.opname == "COMPARE_OP" and step.argrepr != step.argval and bool(step.argrepr)
    )


# ---- what is on the stack ----


def _droppable(each: Any, tested: frozenset[Expression]) -> None:
    """Refuse to drop a value from the stack whose evaluation could raise and was not tested."""
    if isinstance(each, Slice):
        raise NotTraced
    if isinstance(each, Expression) and not each.total and each not in tested:
        raise NotTraced


def take(stack: list[Any], count: int) -> list[Any]:
    """The last `count` things on the stack, which lose their place there."""
    if len(stack) < count:
        raise NotTraced
    taken = stack[len(stack) - count :]
    del stack[len(stack) - count :]
    return taken


def _two(stack: list[Any]) -> tuple[Expression, Expression]:
    left, right = take(stack, 2)
    return value_of(left), value_of(right)


# ---- attrgetter and itemgetter ----


def _getter(call: Any, types: Sequence[Any]) -> Expression:
    if len(types) != 1:
        raise NotTraced
    asked = call.__reduce__()[1]
    parts: list[Expression] = []
    for each in asked:
        part: Expression = Row(0)
        if type(call) is itemgetter:
            if type(each) is not int and type(each) is not str:
                raise NotTraced
            part = element(part, Constant(each), types)
        else:
            for name in each.split("."):
                part = attribute(part, name, types)
        parts.append(part)
    return parts[0] if len(parts) == 1 else Tuple(tuple(parts))
