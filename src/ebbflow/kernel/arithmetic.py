"""What Python computes of values, on words: which instructions compute it.

The forms of values decide that (`ebbflow.kernel.words`): ints are compared otherwise than floats,
and what may be None is looked at first. What has no exact form on words is `NotInColumns`.
`expressions` makes functions of columns of these.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ebbflow.kernel.instructions import (
    ABSENT,
    ADD,
    AND,
    AT_MOST,
    BOTH,
    CHOICE,
    EITHER,
    EXACT_FLOAT,
    FALSE,
    FLOAT_ADD,
    FLOAT_AT_MOST,
    FLOAT_DIVIDE,
    FLOAT_LESS,
    FLOAT_MAGNITUDE,
    FLOAT_MULTIPLY,
    FLOAT_NEGATE,
    FLOAT_OTHER,
    FLOAT_SAME,
    FLOAT_SUBTRACT,
    FLOOR_DIVIDE,
    GIVEN,
    LESS,
    MAGNITUDE,
    MULTIPLY,
    NEAR_FLOAT,
    NEGATE,
    NOT,
    ONE_FLOAT,
    ONE_OF,
    OR,
    OTHER,
    PRESENT,
    REMAINDER,
    SAME,
    SUBTRACT,
    TRUE_FLOAT,
    TRUE_INT,
    WORD,
    Instruction,
    Instructions,
    Sides,
)
from ebbflow.kernel.words import NULL, WordForm

ORDERED = {"<": LESS, "<=": AT_MOST, ">": LESS, ">=": AT_MOST}
EQUALS = {"==": SAME, "!=": OTHER}
BITS = {"and": AND, "or": OR, "&": BOTH, "|": EITHER, "^": ONE_OF}
_ON_FLOATS = {
    LESS: FLOAT_LESS, AT_MOST: FLOAT_AT_MOST, SAME: FLOAT_SAME, OTHER: FLOAT_OTHER,
    "+": FLOAT_ADD, "-": FLOAT_SUBTRACT, "*": FLOAT_MULTIPLY, "/": FLOAT_DIVIDE,
    NEGATE: FLOAT_NEGATE, MAGNITUDE: FLOAT_MAGNITUDE,
}  # fmt: skip
_ON_INTS = {"+": ADD, "-": SUBTRACT, "*": MULTIPLY, "//": FLOOR_DIVIDE, "%": REMAINDER}
_NUMBERS = ("int", "bool", "float")


class NotInColumns(Exception):
    """Why an expression is not computed on columns."""


class Computed(NamedTuple):
    """An expression that can be computed: of which form its values are, and how."""

    form: WordForm
    how: Instruction

    @property
    def field(self) -> tuple[int, int] | None:
        """Which field of which argument it is, where it is one as it is."""
        return self.how[1] if self.how[0] == GIVEN and type(self.how[1]) is tuple else None

    @property
    def _is_float_field(self) -> bool:
        return self.form.name == "float" and self.field is not None

    def as_words(self, form: WordForm) -> Instruction:
        """What gives the words of its values, as those of a field of this form."""
        if form.name != "float" or self.form.optional or self._is_float_field:
            return self.how
        return (ONE_FLOAT, _exactly(self).how)

    def words(self, sides: Sides, count: int, form: WordForm) -> Any:
        """The words of its values, as those of a field of this form."""
        return Instructions([self.as_words(form)]).fields(sides, count)[0]


def constant(form: WordForm, word: int) -> Computed:
    """The same value for all rows."""
    return Computed(form, (WORD, word))


NONE = constant(WordForm("none", True), NULL)
MATCH = WordForm("match", True)
"""The form of what a regular expression finds in a text, which nobody looks into."""
TRUE = constant(WordForm("bool"), 1)


def required(of: Computed) -> Computed:
    """The same, wrong where it is None."""
    return Computed(of.form.required, (PRESENT, of.how)) if of.form.optional else of


def truth(of: Computed) -> Computed:
    """Whether it is true, for numbers, and for what a regular expression finds."""
    if of.form == MATCH:
        return negation(Computed(WordForm("bool"), (ABSENT, of.how)))
    if of.form.name not in (*_NUMBERS, "decimal") or of.form.optional:
        raise NotInColumns(f"whether a {of.form.name} is true")
    if of.form.name == "bool":
        return of
    op = TRUE_FLOAT if of.form.name == "float" else TRUE_INT
    return Computed(WordForm("bool"), (op, of.how))


def negation(of: Computed) -> Computed:
    return Computed(WordForm("bool"), (NOT, truth(of).how))


def both(op: str, one: Computed, other: Computed) -> Computed:
    if one.form != WordForm("bool") or other.form != WordForm("bool"):
        raise NotInColumns(f"{op} of what is no bool")
    return Computed(WordForm("bool"), (BITS[op], one.how, other.how))


def identity(op: str, one: Computed, other: Computed) -> Computed:
    if other.form.name != "none":
        raise NotInColumns("is, but for None")
    return absent(one) if op == "is" else negation(absent(one))


def absent(of: Computed) -> Computed:
    """Whether it is None."""
    return Computed(WordForm("bool"), (ABSENT if of.form.optional else FALSE, of.how))


def choice(test: Computed, then: Computed, other: Computed) -> Computed:
    form = _either_form(then.form, other.form)
    parts = [_as_form(each, form).how for each in (then, other)]
    return Computed(form, (CHOICE, truth(test).how, *parts))


def _either_form(one: WordForm, other: WordForm) -> WordForm:
    """The form of values of which some have one form and some another."""
    names = {one.name, other.name} - {"none"} or {"none"}
    if "decimal" in names:
        digits = {each.digits for each in (one, other) if each.name != "none"}
        if len(names) > 1 or len(digits) > 1:
            raise NotInColumns("if, of numbers of different digits")
        return WordForm("decimal", one.optional or other.optional, digits.pop())
    if len(names) > 1:
        if not names <= set(_NUMBERS):
            raise NotInColumns("if, of two types")
        names = {"float" if "float" in names else "int"}
    return WordForm(names.pop(), one.optional or other.optional)


def _as_form(of: Computed, form: WordForm) -> Computed:
    """The same values, where None is a word if there may be one, and all others are words then."""
    if of.form.name == "none" or of.form == form:
        return of
    if of.form.optional:
        if of.form.encoding == form.encoding:
            return of
        raise NotInColumns(f"a {of.form.name} that may be None, and a {form.name}")
    if form.name != "float":
        return Computed(form, of.how)
    plain = _exactly(of)
    return Computed(form, (ONE_FLOAT, plain.how)) if form.optional else plain


# ---- comparing ----


def compared(op: str, one: Computed, other: Computed) -> Computed:
    """Whether one value compares so with another; Decimals are words of one scale."""
    forms = {one.form.name, other.form.name}
    found = EQUALS.get(op) or ORDERED[op]
    if op in EQUALS and "float" not in forms and len(forms - {"none"}) <= 1:
        if one.form.name == other.form.name == "bool" and one.form.optional != other.form.optional:
            raise NotInColumns("bools, of which one may be None, compared")
    elif forms <= set(_NUMBERS) or (op in ORDERED and forms in ({"date"}, {"time"}, {"decimal"})):
        if op in EQUALS and (one.form.optional or other.form.optional):
            raise NotInColumns("numbers of two types, of which one may be None, compared")
        one, other = required(one), required(other)
        if "float" in forms:
            one, other, found = _exactly(one), _exactly(other), _ON_FLOATS[found]
    else:
        raise NotInColumns(f"{op} of {' and '.join(sorted(forms))}")
    if op in (">", ">="):
        one, other = other, one
    return Computed(WordForm("bool"), (found, one.how, other.how))


def _exactly(of: Computed) -> Computed:
    """Numbers as floats, wrong where no float equals them."""
    return of if of.form.name == "float" else Computed(WordForm("float"), (EXACT_FLOAT, of.how))


# ---- numbers ----


def arithmetic(op: str, one: Computed, other: Computed) -> Computed:
    forms = {one.form.name, other.form.name}
    if not forms <= set(_NUMBERS):
        raise NotInColumns(f"{op} of {' and '.join(sorted(forms))}")
    one, other = required(one), required(other)
    if "float" in forms or op == "/":
        if op in ("//", "%"):
            raise NotInColumns(f"{op} of floats")
        parts = _exactly(one).how, _exactly(other).how
        return Computed(WordForm("float"), (_ON_FLOATS[op], *parts))
    return Computed(WordForm("int"), (_ON_INTS[op], one.how, other.how))


def of_one(op: str, of: Computed) -> Computed:
    if op == "bool":
        return truth(of)
    if op == "float" and of.form.digits is not None:
        units = Computed(WordForm("int", of.form.optional), of.how)
        return arithmetic("/", units, constant(WordForm("int"), 10**of.form.scale))
    if of.form.name not in _NUMBERS:
        raise NotInColumns(f"{op} of {of.form.name}")
    of = required(of)
    floats = of.form.name == "float"
    if op == "float":
        return of if floats else Computed(WordForm("float"), (NEAR_FLOAT, of.how))
    form = WordForm("float" if floats else "int")
    if op == "+":
        return Computed(form, of.how)
    found: Any = {"-": NEGATE, "abs": MAGNITUDE}[op]
    return Computed(form, (_ON_FLOATS[found] if floats else found, of.how))
