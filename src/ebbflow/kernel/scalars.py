"""Expressions as text of steps on single numbers, for Numba to compile.

`arithmetic` computes an expression for all rows at once. A fold cannot: what it computes for a row
depends on the row before. So its expressions are written as lines of Python in which every name is
an int of 64 bits, a float or a truth value, and Numba compiles these lines.

They mean what the expression means in Python. Where Python would raise, and where an int would have
more than 64 bits, they `return False`: rows can go on. What is written down is written once for
each way that leads there: a branch of the expression is a branch of the text.

    Scalar      an expression that was written: of which form, in which variable, and, where it may
                be None, the text that tells
    Scalars     the writer
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, isfinite
from typing import Any, NamedTuple

import numpy as np

from ebbflow.expression.node import Constant, Expression, Operation
from ebbflow.kernel.arithmetic import BITS, EQUALS, ORDERED, NotInColumns
from ebbflow.kernel.checked import EXACT, divided, minus, plus, times
from ebbflow.kernel.words import LARGEST, NULL

NAMES: dict[str, Any] = {
    "np": np, "NULL": NULL, "plus": plus, "minus": minus, "times": times, "divided": divided,
}  # fmt: skip
"""What the text names."""
MOST_TIMES = 8
"""The highest power that is written as a product."""
_CHECKED = {"+": "plus", "-": "minus", "*": "times"}
_ZERO = {"int": "0", "bool": "False", "float": "0.0", "none": "0"}


class Scalar(NamedTuple):
    """A value in the text: `form` is int, bool, float or none; `null` the text of whether it is
    None, where it may be. `mixed` says that some are ints in Python, all of them given as floats
    here: such a value can be shown, and not be computed with."""

    form: str
    text: str
    null: str = ""
    mixed: bool = False


class Scalars:
    """Writes expressions as lines; `leaf` gives those that are there already, or None.

    >>> from ebbflow.expression.node import Row
    >>> writer = Scalars(lambda each: Scalar("int", f"x{each.arg}") if type(each) is Row else None)
    >>> writer(Operation("+", (Row(0), Row(1))))
    Scalar(form='int', text='v1', null='', mixed=False)
    >>> print(*writer.lines, sep="\\n")
    v1, w1 = plus(x0, x1)
    if w1 or v1 == NULL: return False
    """

    def __init__(self, leaf: Callable[[Expression], Scalar | None], numbered: int = 0) -> None:
        self.leaf, self.numbered = leaf, numbered
        self.lines: list[str] = []
        self.known: dict[Expression, Scalar] = {}
        self.inside = 0
        """In how many branches it writes."""

    def __call__(self, of: Expression) -> Scalar:
        found = self.known.get(of)
        if found is None:
            found = self.leaf(of) or self._written(of)
            self.known[of] = found
        return found

    def _written(self, of: Expression) -> Scalar:
        if isinstance(of, Constant):
            return _constant(of)
        if not isinstance(of, Operation):
            raise NotInColumns(f"{of.text()}, which is no number")
        op, args = of.op, of.args
        if op == "if":
            return self._choice(*args)
        if op in ("and", "or"):
            one, other = args
            return self._choice(one, *((other, one) if op == "and" else (one, other)))
        if op in ("max", "min") and len(args) > 1:
            return self._extreme(op, args)
        parts = [self(each) for each in args]
        if op in ("is", "is not") and parts[1].form == "none":
            null = parts[0].null or "False"
            return self._new("bool", null if op == "is" else f"not ({null})")
        if op in ("not", "bool") and len(parts) == 1:
            test = self.truth(parts[0])
            return self._new("bool", f"not {test}") if op == "not" else Scalar("bool", test)
        if op in EQUALS or op in ORDERED:
            return self._compared(of, *parts)
        numbers = [self.required(each, of) for each in parts]
        if len(numbers) == 1:
            return self._of_one(op, numbers[0], of)
        if len(numbers) == 2:
            return self._of_two(of, *numbers)
        raise NotInColumns(f"{op} in {of.text()}")

    # ---- names ----

    def _new(self, form: str, text: str) -> Scalar:
        self.numbered += 1
        self.lines.append(f"v{self.numbered} = {text}")
        return Scalar(form, f"v{self.numbered}")

    def refuse(self, test: str) -> None:
        """Let rows go on where a test holds."""
        self.lines.append(f"if {test}: return False")

    def required(self, of: Scalar, where: Expression) -> Scalar:
        """A number, which is not None."""
        if of.form == "none" or of.mixed:
            raise NotInColumns(f"an int or a float in {where.text()}")
        if of.null:
            self.refuse(of.null)
        return of._replace(null="")

    def truth(self, of: Scalar) -> str:
        """The text of whether a value is true."""
        if of.form == "none":
            return "False"
        text = of.text if of.form == "bool" else f"{of.text} != {_ZERO[of.form]}"
        if of.null:
            text = f"not ({of.null}) and ({text})"
        return text if text.isidentifier() else self._new("bool", text).text

    # ---- branches ----

    def _branch(self, of: Expression) -> tuple[Scalar, list[str]]:
        """An expression on a way that is not always taken, and its lines."""
        lines, known = self.lines, self.known
        self.lines, self.known = [], dict(known)
        self.inside += 1
        try:
            return self(of), self.lines
        finally:
            self.lines, self.known = lines, known
            self.inside -= 1

    def tried(self, of: Expression) -> Scalar | None:
        """An expression as lines; None, and none are written, where it has no such form."""
        written, known = len(self.lines), dict(self.known)
        try:
            return self._written(of)
        except NotInColumns:
            del self.lines[written:]
            self.known = known
            return None

    def _choice(self, test: Expression, then: Expression, other: Expression) -> Scalar:
        asked = self.truth(self(test))
        ways = [self._branch(each) for each in (then, other)]
        scalars = [scalar for scalar, _ in ways]
        forms = {scalar.form for scalar in scalars} - {"none"} or {"none"}
        form = "float" if "float" in forms else "int" if "int" in forms else forms.pop()
        mixed = any(each.mixed for each in scalars) or (form == "float" and len(forms) > 1)
        optional = any(each.null or each.form == "none" for each in scalars)
        self.numbered += 1
        name, null = f"v{self.numbered}", f"n{self.numbered}"
        for word, (scalar, lines) in zip((f"if {asked}:", "else:"), ways, strict=True):
            self.lines += [word, *(f"    {line}" for line in lines)]
            if scalar.form in ("int", "bool") and form == "float":
                if scalar.null:
                    raise NotInColumns(f"a {scalar.form} that may be None, and a float")
                self.lines.append(f"    if {_inexact(scalar)}: return False")
            value = _ZERO[form] if scalar.form == "none" else as_form(scalar, form)
            self.lines.append(f"    {name} = {value}")
            if optional:
                absent = "True" if scalar.form == "none" else scalar.null or "False"
                self.lines.append(f"    {null} = {absent}")
        return Scalar(form, name, null if optional else "", mixed)

    def _extreme(self, op: str, args: tuple[Expression, ...]) -> Scalar:
        """What Python's `max` and `min` give: the first, unless a later one is beyond it."""
        numbers = [self.required(self(each), each) for each in args]
        forms = {each.form for each in numbers}
        if "float" in forms and len(forms) > 1:
            raise NotInColumns(f"{op} of ints and floats")
        form = "int" if "int" in forms else forms.pop()
        best = self._new(form, as_form(numbers[0], form))
        for each in numbers[1:]:
            beyond = ">" if op == "max" else "<"
            text = as_form(each, form)
            best = self._new(form, f"{text} if {text} {beyond} {best.text} else {best.text}")
        return best

    # ---- operations ----

    def _compared(self, where: Operation, one: Scalar, other: Scalar) -> Scalar:
        op = where.op
        if "none" in (one.form, other.form) or one.mixed or other.mixed:
            raise NotInColumns(f"{op} of what is no number")
        if op in ORDERED:
            one, other = self.required(one, where), self.required(other, where)
        form = "float" if "float" in (one.form, other.form) else "int"
        if form == "float" and one.form != other.form:
            if one.null or other.null:
                raise NotInColumns("numbers of two types, of which one may be None, compared")
            self.refuse(_inexact(other if one.form == "float" else one))
        text = f"{as_form(one, form)} {op} {as_form(other, form)}"
        if one.null or other.null:
            a, b = one.null or "False", other.null or "False"
            equal = text.replace("!=", "==")
            text = f"(({a}) and ({b})) or (not ({a}) and not ({b}) and {equal})"
            text = text if op == "==" else f"not ({text})"
        return self._new("bool", text)

    def _of_one(self, op: str, of: Scalar, where: Expression) -> Scalar:
        whole = of.form != "float"
        if op == "float":
            return self._new("float", as_form(of, "float")) if whole else of
        if op == "int" and not whole:
            self.refuse(f"not (-{2.0**63!r} < {of.text} < {2.0**63!r})")
            return self._new("int", f"np.int64({of.text})")
        number = as_form(of, "int") if whole else of.text
        if op in ("+", "int"):
            return Scalar("int" if whole else "float", number)
        if op == "-":
            return self._new("int" if whole else "float", f"-({number})")
        if op == "abs":
            return self._new("int" if whole else "float", f"abs({number})")
        if op == "~" and of.form == "int":
            return self._fits(f"~{number}")
        raise NotInColumns(f"{op} in {where.text()}")

    def _of_two(self, where: Operation, one: Scalar, other: Scalar) -> Scalar:
        op = where.op
        if op == "**":
            return self._power(one, where)
        if "float" in (one.form, other.form):
            if op not in ("+", "-", "*", "/"):
                raise NotInColumns(f"{op} of floats")
            a, b = as_form(one, "float"), as_form(other, "float")
            if op == "/":
                self.refuse(f"{b} == 0.0")
            return self._new("float", f"{a} {op} {b}")
        if op in BITS and one.form == other.form == "bool":
            return self._new("bool", f"{one.text} {op} {other.text}")
        a, b = as_form(one, "int"), as_form(other, "int")
        if op in _CHECKED:
            return self._checked(op, a, b)
        if op in BITS:
            return self._fits(f"{a} {op} {b}")
        if op in ("/", "//", "%"):
            self.refuse(f"{b} == 0")
            if op == "/":
                return self._new("float", f"divided({a}, {b})")
            return self._new("int", f"{a} {op} {b}")
        raise NotInColumns(f"{op} in {where.text()}")

    def _checked(self, op: str, a: str, b: str) -> Scalar:
        self.numbered += 1
        name, wrong = f"v{self.numbered}", f"w{self.numbered}"
        self.lines.append(f"{name}, {wrong} = {_CHECKED[op]}({a}, {b})")
        self.refuse(f"{wrong} or {name} == NULL")
        return Scalar("int", name)

    def _fits(self, text: str) -> Scalar:
        found = self._new("int", text)
        self.refuse(f"{found.text} == NULL")
        return found

    def _power(self, base: Scalar, where: Any) -> Scalar:
        by = where.args[1]
        known = isinstance(by, Constant) and type(by.value) is int and 0 < by.value <= MOST_TIMES
        if not known or base.form == "float":
            raise NotInColumns(f"** in {where.text()}")
        number = found = Scalar("int", as_form(base, "int"))
        for _ in range(by.value - 1):
            found = self._checked("*", found.text, number.text)
        return found


def as_form(of: Scalar, form: str) -> str:
    """The text of a number as one of another form, which has room for it."""
    if of.form == form:
        return of.text
    return f"np.float64({of.text})" if form == "float" else f"np.int64({of.text})"


def _inexact(of: Scalar) -> str:
    """The text of whether no float equals an int, or might not."""
    return f"{of.text} > {EXACT} or {of.text} < -{EXACT}"


def _constant(of: Constant) -> Scalar:
    value = of.value
    if value is None:
        return Scalar("none", "0", "True")
    if type(value) is bool:
        return Scalar("bool", repr(value))
    if type(value) is int and abs(value) <= LARGEST:
        return Scalar("int", f"np.int64({value})")
    if type(value) is float:
        text = repr(value) if isfinite(value) else "np.nan" if value != value else "np.inf"
        return Scalar("float", f"-{text}" if value == -inf else text)
    raise NotInColumns(f"the constant {of.text()}")
