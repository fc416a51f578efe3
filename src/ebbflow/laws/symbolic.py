"""Running plain Python functions on unknowns.

A function is called with *symbols* instead of numbers. Arithmetic on a symbol gives a term of z3's;
a comparison gives a term that is true or false; and where Python asks which (`if`, `and`, `min`,
...), the run forks: the function is called again for each answer that is possible, and each call
is a *path* with the conditions that lead to it. All paths together are what the function does, for
every input there is.

That is only worth something if nothing escapes. What a symbol cannot follow (a hash, a string, a
float's digits) ends the attempt with `NotTraceable` and the reason; what leaves no trace
(`type(x)`, `x is y`, a call into C) is caught by `ebbflow.laws.purity`.
"""

from __future__ import annotations

import gc
import math
import numbers
import operator
import os
import sys
import time
from abc import ABCMeta
from collections.abc import Callable, Iterator
from fractions import Fraction
from importlib import import_module
from typing import Any, NamedTuple

from ebbflow.errors import CheckError, install
from ebbflow.laws.purity import MARKED, watcher

REALS = "real numbers"
PATHS = 100
QUESTIONS = 200
SECONDS = 5
"""So much processor time is spent on the paths: what is proved does not depend on how busy the
machine is."""
TIMEOUT = 3000
_used = getattr(time, "thread_time", time.process_time)
"""The processor time of this thread, or of the process where Python knows no other."""


def z3() -> Any:
    """The z3 module, or an error that says how to get it."""
    try:
        return import_module("z3")
    except ImportError as error:
        raise CheckError("proving laws needs z3", remedy=install("prove")) from error


class NotTraceable(BaseException):
    """The function does something that cannot be followed. Not caught by `except Exception`."""


class TracePath:
    """One path through a function: the answers given so far, and what follows from them."""

    def __init__(
        self, answers: tuple[bool, ...], end: float = math.inf, seen: set[str] | None = None
    ) -> None:
        self.end = end
        self.seen = set() if seen is None else seen
        self.answers = list(answers)
        self.asked = 0
        self.open: list[tuple[bool, ...]] = []
        self.conditions: list[Any] = []
        self.failed = ""
        self.solver = z3().Solver()
        self.solver.set("timeout", TIMEOUT)

    def assume(self, condition: Any) -> None:
        """Only look at inputs for which this holds."""
        self.conditions.append(condition)
        self.solver.add(condition)

    def fail(self, why: str) -> NotTraceable:
        self.failed = self.failed or why
        return NotTraceable(why)

    def ask(self, condition: Any) -> bool:
        """Whether a condition holds on this path; the other possibility is kept for later."""
        if self.asked > QUESTIONS or _used() > self.end:
            raise self.fail("it has too many paths to follow them all, or loops")
        if self.asked == len(self.answers):
            yes, no = self.possible(condition), self.possible(z3().Not(condition))
            if yes and no:
                self.open.append((*self.answers, False))
            self.answers.append(yes)
        answer = self.answers[self.asked]
        self.asked += 1
        self.assume(condition if answer else z3().Not(condition))
        return answer

    def possible(self, condition: Any) -> bool:
        return bool(self.solver.check(condition) != z3().unsat)


def paths(
    f: Callable[[TracePath], Any], seen: set[str] | None = None
) -> Iterator[tuple[list[Any], Any]]:
    """What `f` returns on every path, with the conditions of the path.

    `seen` is told when there are real numbers among the terms: a float would round there.
    """
    todo: list[tuple[bool, ...]] = [()]
    end = _used() + SECONDS
    for _ in range(PATHS):
        if not todo:
            return
        run = TracePath(todo.pop(), end, seen)
        before, collecting = sys.getprofile(), gc.isenabled()
        gc.disable()  # its callbacks would look like a part of `f`
        sys.setprofile(watcher(run, os.path.dirname(z3().__file__)))
        try:
            result = f(run)
        except ZeroDivisionError:
            result = Raised("ZeroDivisionError")
        except Exception as error:
            raise NotTraceable(f"it raised {type(error).__name__}: {error}") from error
        finally:
            sys.setprofile(before)
            if collecting:
                gc.enable()
        if run.failed:
            raise NotTraceable(run.failed)
        yield run.conditions, result
        todo += run.open
    raise NotTraceable("it has too many paths to follow them all")


class Raised(NamedTuple):
    """The result of a path that raised an exception: the name of its class."""

    name: str


# ---- symbols ----

# Only the code in these files may look into a symbol: a row may have any field.
OWN = (__file__, os.path.join(os.path.dirname(__file__), "shapes.py"))
_ABSTRACT = ABCMeta.__instancecheck__.__code__
_NUMBERS = (
    numbers.Number, numbers.Complex, numbers.Real, numbers.Rational, numbers.Integral
)  # fmt: skip


def _both_ways(method: Callable[..., Any], how: Any) -> tuple[Any, Any]:
    """An operator, and the same with the symbol on its right: `method(self, other, how, True)`."""

    def right(self: Symbol, other: Any) -> Any:
        return method(self, other, how, True)

    return _one_way(method, how), right


def _one_way(method: Callable[..., Any], how: Any) -> Any:
    def left(self: Symbol, other: Any) -> Any:
        return method(self, other, how)

    return left


class Symbol:
    """An unknown int, real or bool: a term on a path."""

    __slots__ = ("mixed", "run", "term", "value_type")

    def __init__(self, term: Any, run: TracePath, value_type: type, mixed: bool = False) -> None:
        self.term = term
        self.run = run
        self.value_type = value_type
        self.mixed = mixed

    def __getattribute__(self, name: str) -> Any:
        """A number has no attributes to look at, but for what isinstance asks."""
        caller = sys._getframe(1)
        if caller.f_code.co_filename in OWN:
            return object.__getattribute__(self, name)
        run = object.__getattribute__(self, "run")
        if name != "__class__":
            raise run.fail(f"it asks a number for .{name}")
        if object.__getattribute__(self, "mixed"):
            raise run.fail("it asks for the type of a number that may have one of several")
        if caller.f_code is _ABSTRACT and caller.f_locals.get("cls") not in _NUMBERS:
            raise run.fail("it asks whether a number is an instance of an abstract class")
        return object.__getattribute__(self, "value_type")

    # Asked by isinstance: a symbol for an int says that it is an int.
    __class__ = property(lambda self: self.value_type)

    def __bool__(self) -> bool:
        return self.run.ask(self.term if self.value_type is bool else self.term != 0)

    # ---- arithmetic ----

    def _with(self, other: Any, combine: Callable[[Any, Any], Any], turned: bool = False) -> Any:
        right = self._operand(other)
        a, b = aligned(number(self, self.run), right)
        return made(combine(b, a) if turned else combine(a, b), self.run, self._mixed_by(other))

    def _operand(self, other: Any) -> Any:
        found = number(other, self.run)
        if found is None:
            raise self.run.fail(f"it calculates with a number and a {type(other).__name__}")
        return found

    def _mixed_by(self, other: Any) -> bool:
        """Whether the type of a result is open: a Fraction is a real number, and no float."""
        return self.mixed or type(other) is Fraction or (type(other) is Symbol and other.mixed)

    __add__, __radd__ = _both_ways(_with, operator.add)
    __sub__, __rsub__ = _both_ways(_with, operator.sub)
    __mul__, __rmul__ = _both_ways(_with, operator.mul)

    def __neg__(self) -> Any:
        return 0 - self

    def __pos__(self) -> Any:
        return 0 + self

    def __abs__(self) -> Any:
        return -self if self < 0 else +self

    def __pow__(self, power: Any) -> Any:
        if type(power) is not int or not 1 <= power <= 8:
            raise self.run.fail("it takes a power that is not a small constant")
        product: Any = 1
        for _ in range(power):
            product = self * product
        return product

    def _shift(self, bits: Any) -> int:
        if type(bits) is not int or bits < 0:
            raise self.run.fail("it shifts by an unknown number of bits")
        if self.value_type is float:
            raise self.run.fail("it shifts the bits of a number that is no int")
        return int(2**bits)

    def __lshift__(self, bits: Any) -> Any:
        return self * self._shift(bits)

    def __rshift__(self, bits: Any) -> Any:
        return self // self._shift(bits)

    def _divided(self, other: Any, divide: Callable[..., Any], turned: bool = False) -> Any:
        a, b = number(self, self.run), self._operand(other)
        if turned:
            a, b = b, a
        if self.run.ask(b == 0):
            raise ZeroDivisionError
        return made(divide(self, a, b), self.run, self._mixed_by(other))

    def _floor(self, a: Any, b: Any) -> Any:
        if z3().is_real(a) or z3().is_real(b):
            raise self.run.fail("it uses // or % on numbers that are not ints")
        return z3().If(b > 0, a / b, (-a) / (-b))

    def _rest(self, a: Any, b: Any) -> Any:
        return a - b * self._floor(a, b)

    __truediv__, __rtruediv__ = _both_ways(_divided, lambda self, a, b: _real(a) / _real(b))
    __floordiv__, __rfloordiv__ = _both_ways(_divided, _floor)
    __mod__, __rmod__ = _both_ways(_divided, _rest)

    # ---- comparisons ----

    def _compared(self, other: Any, compare: Callable[[Any, Any], Any]) -> Any:
        if type(other) is float and math.isinf(other):
            return compare(0, other)
        right = number(other, self.run)
        if right is None:
            if other is None or type(other) in (str, bytes) or issubclass(type(other), tuple):
                return NotImplemented
            raise self.run.fail(f"it compares a number with a {type(other).__name__}")
        return Symbol(compare(*aligned(number(self, self.run), right)), self.run, bool)

    __lt__, __le__ = _one_way(_compared, operator.lt), _one_way(_compared, operator.le)
    __gt__, __ge__ = _one_way(_compared, operator.gt), _one_way(_compared, operator.ge)
    __eq__, __ne__ = _one_way(_compared, operator.eq), _one_way(_compared, operator.ne)

    # ---- truth values ----

    def _logic(self, other: Any, name: str) -> Any:
        ours = type(other) is bool or (type(other) is Symbol and other.value_type is bool)
        if self.value_type is not bool or not ours:
            raise self.run.fail("it works on the bits of ints, which z3's ints do not have")
        right = other.term if type(other) is Symbol else z3().BoolVal(other)
        return Symbol(getattr(z3(), name)(self.term, right), self.run, bool)

    __and__, __or__ = _one_way(_logic, "And"), _one_way(_logic, "Or")
    __xor__ = _one_way(_logic, "Xor")
    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__


MARKED.add(Symbol)


def _refusing(what: str) -> Callable[..., Any]:
    def refuse(self: Symbol, *_: Any) -> Any:
        raise self.run.fail(f"it {what}, which depends on more than the order and sum of numbers")

    return refuse


for _names, _what in {
    "__hash__": "hashes a number (a set, a dict)",
    "__index__ __int__ __float__ __complex__ __trunc__": "converts a number",
    "__round__ __floor__ __ceil__": "rounds a number",
    "__str__ __repr__ __format__ __bytes__": "makes a text of a number",
    "__divmod__ __rdivmod__ __rpow__ __invert__ __rlshift__ __rrshift__": "uses a rare operation",
}.items():
    for _name in _names.split():
        setattr(Symbol, _name, _refusing(_what))


def number(x: Any, run: TracePath) -> Any:
    """A number as a term; None for what is no number."""
    if type(x) is Symbol:
        return z3().If(x.term, 1, 0) if x.value_type is bool else x.term
    if type(x) in (bool, int):
        return z3().IntVal(int(x))
    if type(x) in (float, Fraction):
        if type(x) is float and not math.isfinite(x):
            raise run.fail("it calculates with infinity or NaN")
        exact = Fraction(x)
        run.seen.add(REALS)
        return z3().RealVal(f"{exact.numerator}/{exact.denominator}")
    return None


def _real(term: Any) -> Any:
    return term if z3().is_real(term) else z3().ToReal(term)


def aligned(a: Any, b: Any) -> tuple[Any, Any]:
    """Two terms of one sort."""
    return (_real(a), _real(b)) if z3().is_real(a) or z3().is_real(b) else (a, b)


def made(term: Any, run: TracePath, mixed: bool = False) -> Symbol:
    """A term as a symbol of its sort."""
    if z3().is_real(term):
        run.seen.add(REALS)
        return Symbol(term, run, float, mixed)
    return Symbol(term, run, int, mixed)
