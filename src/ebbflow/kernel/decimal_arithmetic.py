"""Operations on Decimals with digits, as instructions on their words.

The digits of each result are known before (`ebbflow.decimals`). An operand is brought to the scale
that the operation needs, and the result to the digits of its type: rounded half up, and wrong where
it has more of them. What needs more than 64 bits on the way is wrong too, but for products and
quotients, which have 128 bits before they are rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ebbflow.decimals import Digits
from ebbflow.expression.node import DecimalOperation
from ebbflow.kernel.arithmetic import Computed, NotInColumns, absent, required
from ebbflow.kernel.decimal_words import MOST_PLACES, POWERS
from ebbflow.kernel.forms import LARGEST, WordForm, decimal_form
from ebbflow.kernel.instructions import (
    ADD,
    CHOICE,
    MAGNITUDE,
    MULTIPLY,
    NEGATE,
    SUBTRACT,
    WORD,
    Instruction,
)
from ebbflow.kernel.scaled import EXACT_QUOTIENT, REST, SCALE, TRUNCATE, WITHIN
from ebbflow.kernel.words import NULL

_ONE: Instruction = (WORD, 1)
_WITH_SCALE = ("int", "bool", "decimal")


def on_decimals(of: DecimalOperation, parts: Sequence[Computed]) -> Computed:
    """Return the result of an operation on Decimals and ints."""
    for part in parts:
        if part.form.name not in _WITH_SCALE:
            raise NotInColumns(f"{of.op} of a {part.form.name} in {of.text()}")
    if of.op == "decimal":
        return _brought(parts[0], of.digits)
    parts = [required(part) for part in parts]
    if of.op == "round":
        return _rounded(parts[0], of.places, of.digits)
    found = _OF_ONE.get(of.op) if len(parts) == 1 else _OF_TWO.get(of.op)
    if found is None:
        raise NotInColumns(f"{of.op} of Decimals in {of.text()}")
    return found(_form(of.digits), *parts)


def same_scale(one: Computed, other: Computed) -> tuple[Computed, Computed]:
    """Two numbers as words of one scale."""
    scale = max(one.form.scale, other.form.scale)
    return _at_scale(one, scale), _at_scale(other, scale)


def _at_scale(of: Computed, scale: int) -> Computed:
    """The same, as words of a scale that is no less; None stays None."""
    if of.form.name == "none" or of.form.encoding == ("decimal", scale):
        return of
    form = WordForm("decimal", of.form.optional, (MOST_PLACES, scale))
    how = _more(of.how, scale - of.form.scale)
    if of.form.optional and how != of.how:
        how = (CHOICE, absent(of).how, (WORD, NULL), how)
    return Computed(form, how)


def whole_part(of: Computed) -> Computed:
    """Return a Decimal without the digits after the point, as an int."""
    return Computed(WordForm("int"), (TRUNCATE, required(of).how, _power(of.form.scale)))


# ---- scales ----


def _form(digits: Digits) -> WordForm:
    form = decimal_form(digits)
    if form is None:
        shown = "any scale" if digits is None else f"{digits[1]} digits after the point"
        raise NotInColumns(f"it computes a Decimal of {shown}, which is no word")
    return form


def _power(places: int) -> Instruction:
    if places > MOST_PLACES:
        raise NotInColumns(f"a Decimal is computed with {places} more digits, which is no word")
    return WORD, POWERS[places]


def _more(how: Instruction, places: int) -> Instruction:
    """Return words with `places` more digits after the point."""
    if places == 0:
        return how
    if how[0] == WORD:
        word = how[1] * 10**places
        if abs(word) > LARGEST:
            raise NotInColumns("a constant of more than 64 bits")
        return WORD, word
    return MULTIPLY, how, _power(places)


def _fewer(how: Instruction, places: int) -> Instruction:
    """Return words with `places` fewer digits, rounded half up."""
    return how if places == 0 else (SCALE, how, _ONE, _power(places))


def _fitted(form: WordForm, how: Instruction, scale: int) -> Computed:
    """Words of a scale as values of a form."""
    places = form.scale - scale
    how = _more(how, places) if places > 0 else _fewer(how, -places)
    if form.largest < LARGEST:
        how = WITHIN, how, (WORD, form.largest + 1)
    return Computed(form, how)


def _brought(of: Computed, digits: Digits) -> Computed:
    """A number with these digits, wrong where some would be lost; None stays None."""
    form, scale = _form(digits), of.form.scale
    if scale > form.scale:
        how: Instruction = EXACT_QUOTIENT, of.how, _power(scale - form.scale)
    else:
        how = _more(of.how, form.scale - scale)
    found = _fitted(form, how, form.scale)
    if not of.form.optional:
        return found
    return Computed(form.or_none, (CHOICE, absent(of).how, (WORD, NULL), found.how))


def _rounded(of: Computed, places: int | None, digits: Digits) -> Computed:
    scale = of.form.scale
    at = 0 if places is None else places
    how = of.how
    if at < scale:
        how = _more(_fewer(how, scale - at), max(-at, 0))
        scale = max(at, 0)
    if places is None:
        return Computed(WordForm("int"), how)
    return _fitted(_form(digits), how, scale)


# ---- operators ----


def _sum(op: int) -> Callable[[WordForm, Computed, Computed], Computed]:
    def computed(form: WordForm, one: Computed, other: Computed) -> Computed:
        one, other = same_scale(one, other)
        return _fitted(form, (op, one.how, other.how), one.form.scale)

    return computed


def _product(form: WordForm, one: Computed, other: Computed) -> Computed:
    scale = one.form.scale + other.form.scale
    if scale > form.scale:
        how: Instruction = SCALE, one.how, other.how, _power(scale - form.scale)
        return _fitted(form, how, form.scale)
    return _fitted(form, (MULTIPLY, one.how, other.how), scale)


def _quotient(form: WordForm, one: Computed, other: Computed) -> Computed:
    places = form.scale - one.form.scale + other.form.scale
    if places < 0:
        bottom, places = _more(other.how, -places), 0
    else:
        bottom = other.how
    return _fitted(form, (SCALE, one.how, _power(places), bottom), form.scale)


def _whole(form: WordForm, one: Computed, other: Computed) -> Computed:
    one, other = same_scale(one, other)
    return _fitted(form, (TRUNCATE, one.how, other.how), 0)


def _rest(form: WordForm, one: Computed, other: Computed) -> Computed:
    one, other = same_scale(one, other)
    return _fitted(form, (REST, one.how, other.how), one.form.scale)


def _sign(op: int) -> Callable[[WordForm, Computed], Computed]:
    return lambda form, of: _fitted(form, (op, of.how), of.form.scale)


_OF_ONE: dict[str, Callable[[WordForm, Computed], Computed]] = {
    "-": _sign(NEGATE), "abs": _sign(MAGNITUDE),
    "+": lambda form, of: _fitted(form, of.how, of.form.scale),
}  # fmt: skip
_OF_TWO: dict[str, Callable[[WordForm, Computed, Computed], Computed]] = {
    "+": _sum(ADD), "-": _sum(SUBTRACT), "*": _product, "/": _quotient, "//": _whole, "%": _rest,
}  # fmt: skip
