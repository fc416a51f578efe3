"""The forms that a value has in the types of a union, and the one of them that a row holds."""

from __future__ import annotations

from contextlib import suppress
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Any

from ebbflow.engine.runtime.values.rules import RULES, WIDEST, Rule, WrongValue

ABSENT: Any = object()
"""Stands for the form of a value that no type of a union takes."""


class Forms:
    """The forms that a value has in types of these rules."""

    def __init__(self, rules: list[Rule]) -> None:
        self.rules = rules
        self.numbers = all(rule in _NUMBERS for rule in rules)

    def chosen(self, value: Any) -> Any:
        """The form of a value that has the fewest others; of several the first, in the order of the
        types. Equal values lead to the same one, whichever of them is given."""
        first = self.rules[0]
        if self.numbers and first.is_canonical(value):
            return value
        found = self._reached(value)
        if len(found) < 2:
            return found[0] if found else ABSENT
        return min(found, key=lambda form: len(self._reached(form)))

    def _reached(self, value: Any) -> list[Any]:
        """All forms of a value: the types convert it, and then convert each form that they made."""
        found: list[Any] = []
        rest = [value]
        while rest:
            form = rest.pop(0)
            for other in (form, *_equal_numbers(form)) if found else (form,):
                for rule in self.rules:
                    with suppress(WrongValue):
                        made = rule.convert(other)
                        if not any(_is_alike(made, each) for each in found):
                            found.append(made)
                            rest.append(made)
        return sorted(found, key=self._place)

    def _place(self, form: Any) -> int:
        return next(at for at, rule in enumerate(self.rules) if rule.is_canonical(form))


_NUMBERS = [RULES[cls] for cls in (*WIDEST, complex)]


def _equal_numbers(value: Any) -> list[Any]:
    """The numbers of other classes that are equal to a number."""
    if isinstance(value, Enum) or not isinstance(value, (bool, int, float, Decimal, Fraction)):
        return []
    found = []
    for cls in (int, float, Decimal, Fraction):
        with suppress(ArithmeticError, ValueError, TypeError):
            made: Any = cls(value)  # type: ignore[arg-type]
            if made == value:
                found.append(made)
    return found


def _is_alike(one: Any, other: Any) -> bool:
    return one is other or (type(one) is type(other) and repr(one) == repr(other))
