"""The rule of any type: those of `RULES`, composed for optional fields, unions, lists and records.

`rule_of(hint)` is what all inputs ask. Lists become tuples, dicts `Frozen` dicts and sets
frozensets, as rows are hashable; a field of `Text` or `List` holds one. What no rule knows, such as
`Any`, holds any value, and the scalars of other libraries become Python's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, tzinfo
from decimal import Decimal
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, NewType, Union, get_args, get_origin

from ebbflow import decimals
from ebbflow.change import List, Text
from ebbflow.engine.runtime.values.rules import (
    ANY,
    INSTANT,
    NOTHING,
    RULES,
    WIDEST,
    Bind,
    Convert,
    Rule,
    WrongValue,
    decimal_rule,
    python_value,
    refusal,
    tested,
    with_article,
)
from ebbflow.engine.runtime.values.union import ABSENT, Forms
from ebbflow.errors import value_text
from ebbflow.expression.value import plain_fields
from ebbflow.flow.types import held
from ebbflow.frozen import Frozen, frozen
from ebbflow.nan import one_nan
from ebbflow.record import fields_of, maker, name_of, taken_apart


@cache
def rule_of(hint: Any, parse: bool = False) -> Rule:
    """The rule of a type. With `parse`, a text that stands for a value of another type is read.

    >>> rule_of(int | None).convert(None), rule_of(list[float]).convert([1, 2])
    (None, (1.0, 2.0))
    >>> rule_of(int, parse=True).convert("12")
    12
    """
    return _rule(hint, Enclosing((), parse))


class Enclosing(NamedTuple):
    """Where a type stands: the records that it is in, and whether texts are read."""

    records: tuple[Any, ...] = ()
    parse: bool = False


def _rule(hint: Any, enclosing: Enclosing) -> Rule:
    with suppress(TypeError):  # a hint that cannot be hashed
        if hint in RULES:
            return _reading(RULES[hint], enclosing)
    if hint is None:
        return NOTHING
    if hint is Text:
        return Rule("str", lambda bind, x: f"type({x}) is {bind(Text)}", _to_text)
    if isinstance(hint, NewType):
        return _rule(hint.__supertype__, enclosing)
    if fields_of(hint) is not None:
        if hint in enclosing.records:
            return _recursive(hint, enclosing.parse)
        return _record(hint, Enclosing((*enclosing.records, hint), enclosing.parse))
    origin, inside = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _noted(hint, inside, enclosing)
    if origin in (Union, UnionType):
        return _union(hint, inside, enclosing)
    if origin is Literal:
        return _literal(hint, inside, enclosing)
    made = _CONTAINERS.get(origin or hint)
    if made is not None:
        return made(held(hint) if made is not _list else hint, enclosing)
    if origin is None and isinstance(hint, type) and hint not in (Any, object):
        return _class(hint)
    return ANY


def _noted(hint: Any, inside: tuple[Any, ...], enclosing: Enclosing) -> Rule:
    if inside[0] is datetime and any(isinstance(note, tzinfo) for note in inside[1:]):
        return _reading(INSTANT, enclosing)
    if inside[0] is Decimal:
        return _reading(decimal_rule(decimals.digits_of(hint)), enclosing)
    return _rule(inside[0], enclosing)


def _recursive(hint: Any, parse: bool) -> Rule:
    """A record inside itself."""
    return tested(name_of(hint), lambda value: rule_of(hint, parse).convert(value))


# ---- one class ----


def _class(cls: type) -> Rule:
    """A class without a rule of its own holds its instances. An enum of another type, such as
    `str`, also takes the value of a member, as the two are equal."""
    name = name_of(cls)
    mixed = issubclass(cls, Enum) and getattr(cls, "_member_type_", object) is not object

    def convert(value: Any) -> Any:
        try:
            if isinstance(value, cls):
                return one_nan(value)
        except TypeError:  # a protocol
            return value
        found = python_value(value)
        if mixed:
            with suppress(ValueError):
                member = cls(found)
                if member == found:
                    return member
        if found is not value and isinstance(found, cls):
            return found
        raise refusal(value if found is not None else None, name, f"{name}(...)")

    if issubclass(cls, Enum):
        return Rule(name, lambda bind, x: f"type({x}) is {bind(cls)}", convert)
    return tested(name, convert)


def _literal(hint: Any, allowed: tuple[Any, ...], enclosing: Enclosing) -> Rule:
    texts = ", ".join(map(value_text, allowed))

    def converting(parse: bool) -> Convert:
        rules = [_rule(type(value), Enclosing((), parse)) for value in allowed]

        def convert(value: Any) -> Any:
            for rule, choice in zip(rules, allowed, strict=True):
                with suppress(WrongValue):
                    if rule.convert(value) == choice:
                        return value if value is choice or type(value) is type(choice) else choice
            raise WrongValue(value, f"must be one of {texts}, not {value_text(value)}", texts)

        return convert

    rule = tested(name_of(hint), converting(False))
    return _or_read(rule, [converting(True)]) if enclosing.parse else rule


def _to_text(value: Any) -> Any:
    if isinstance(value, Text):
        return value
    return Text(RULES[str].convert(value))


# ---- one of several types ----


def _union(hint: Any, inside: tuple[Any, ...], enclosing: Enclosing) -> Rule:
    """A value is of the type that holds it; if several do, each value that is equal to it is of
    the same one: of numbers the widest that holds them without loss, else the first."""
    choices = [each for each in inside if each not in (None, NoneType)]
    if len(choices) == 1:
        return _optional(_rule(choices[0], enclosing), enclosing)
    rules = [_rule(each, Enclosing(enclosing.records)) for each in choices]
    optional = len(choices) < len(inside)
    if ANY in rules:
        return ANY
    name = name_of(hint)
    numbers = [RULES[cls] for cls in WIDEST if RULES[cls] in rules]
    rules.sort(key=lambda rule: numbers.index(rule) if rule in numbers else -1)
    forms = Forms(rules)

    def convert(value: Any) -> Any:
        if value is None and optional:
            return None
        found = forms.chosen(value)
        if found is not ABSENT:
            return found
        if optional and python_value(value) is None:
            return None
        raise refusal(value, name)

    plain = {rule.cls for rule in rules}
    classes = frozenset({*plain, *({NoneType} if optional else ())})
    rule = tested(name, convert)
    if None not in plain and len(numbers) < 2:
        rule = replace(rule, test=lambda bind, x: f"type({x}) in {bind(classes)}")
    readers = [_rule(each, enclosing).convert for each in choices]
    return _or_read(rule, readers) if enclosing.parse else rule


def _optional(rule: Rule, enclosing: Enclosing) -> Rule:
    def test(bind: Bind, x: str) -> str:
        return f"({x} is None or {rule.text(bind, x)})"

    def convert(value: Any) -> Any:
        if value is None:
            return None
        try:
            return rule.convert(value)
        except WrongValue:
            if python_value(value) is None or (enclosing.parse and value == ""):
                return None
            raise

    return Rule(f"{rule.name} | None", test, convert)


# ---- several values ----


def _each(rule: Rule, values: Any) -> list[Any]:
    made = []
    for at, value in enumerate(values):
        try:
            made.append(rule.convert(value))
        except WrongValue as wrong:
            raise wrong.inside(f"[{at}]") from wrong.__cause__
    return made


def _same(made: Any, given: Any) -> bool:
    return all(new is old for new, old in zip(made, given, strict=True))


def _tuple(hint: Any, enclosing: Enclosing) -> Rule:
    """`tuple[T, ...]` of any length, and `tuple[A, B]` of two."""
    inside = get_args(hint)
    if inside and inside[-1] is not ...:
        return _fixed(hint, [_rule(each, enclosing) for each in inside])
    rule = _rule(inside[0], enclosing) if inside else ANY
    name = name_of(hint)

    def convert(value: Any) -> Any:
        if not isinstance(value, (tuple, list, List)):
            raise refusal(value, name)
        made = _each(rule, value)
        return value if type(value) is tuple and _same(made, value) else tuple(made)

    if rule.cls is None:
        return tested(name, convert)
    classes = frozenset({rule.cls})
    return Rule(
        name,
        lambda bind, x: f"(type({x}) is tuple and {bind(classes)}.issuperset(map(type, {x})))",
        convert,
    )


def _fixed(hint: Any, rules: list[Rule]) -> Rule:
    name = name_of(hint)

    def convert(value: Any) -> Any:
        if not isinstance(value, (tuple, list)) or len(value) != len(rules):
            raise refusal(value, name)
        made = _values(rules, [f"[{at}]" for at in range(len(rules))], value)
        return value if type(value) is tuple and _same(made, value) else tuple(made)

    def test(bind: Bind, x: str) -> str:
        tests = [rule.text(bind, f"{x}[{at}]") for at, rule in enumerate(rules)]
        return f"({' and '.join([f'type({x}) is tuple', f'len({x}) == {len(rules)}', *tests])})"

    return Rule(name, test, convert)


def _values(rules: list[Rule], paths: list[str], values: Any) -> list[Any]:
    made = []
    for rule, path, value in zip(rules, paths, values, strict=True):
        try:
            made.append(rule.convert(value))
        except WrongValue as wrong:
            raise wrong.inside(path) from wrong.__cause__
    return made


def _set(hint: Any, enclosing: Enclosing) -> Rule:
    rule, name = _item(hint, enclosing), name_of(hint)

    def convert(value: Any) -> Any:
        if not isinstance(value, (frozenset, set)):
            raise refusal(value, name)
        made = _each(rule, value)
        return value if type(value) is frozenset and _same(made, value) else frozenset(made)

    return tested(name, convert)


def _list(hint: Any, enclosing: Enclosing) -> Rule:
    rule, name = _item(hint, enclosing), name_of(hint)

    def convert(value: Any) -> Any:
        if not isinstance(value, (tuple, list, List)):
            raise refusal(value, name)
        made = _each(rule, value)
        return value if isinstance(value, List) and _same(made, value) else List(frozen(made))

    return tested(name, convert)


def _item(hint: Any, enclosing: Enclosing) -> Rule:
    inside = get_args(hint)
    return _rule(inside[0], enclosing) if inside else ANY


def _mapping(hint: Any, enclosing: Enclosing) -> Rule:
    keys, items = [_rule(each, enclosing) for each in get_args(hint) or (Any, Any)]
    name = name_of(hint)

    def convert(value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise refusal(value, name)
        new = [keys.convert(key) for key in value]
        paths = [f"[{value_text(key)}]" for key in new]
        made = _values([items] * len(paths), paths, value.values())
        if type(value) is Frozen and _same(new, value) and _same(made, value.values()):
            return value
        held = Frozen(zip(new, made, strict=True))
        if len(held) < len(new):
            raise WrongValue(value, f"has one key twice: {value_text(value)}", "one of them")
        return held

    return tested(name, convert)


_CONTAINERS: dict[Any, Callable[[Any, Enclosing], Rule]] = {
    tuple: _tuple, list: _tuple, List: _list, set: _set, frozenset: _set, dict: _mapping,
    Frozen: _mapping,
}  # fmt: skip


# ---- records ----


def _record(hint: Any, enclosing: Enclosing) -> Rule:
    """A record has its own class. A row of a subclass without further fields becomes one, and a
    tuple or a dict inside of another value does."""
    fields = fields_of(hint) or {}
    rules = [_rule(each, enclosing) for each in fields.values()]
    paths, make, apart = [f".{name}" for name in fields], maker(hint), taken_apart(hint)
    name = name_of(hint)

    def convert(value: Any) -> Any:
        own: Any = type(value)
        if own is hint or (isinstance(value, hint) and plain_fields(own) == plain_fields(hint)):
            given = apart(value)
        elif type(value) is tuple and len(value) == len(rules):
            given = value
        elif isinstance(value, Mapping) and value.keys() == fields.keys():
            given = tuple([value[name] for name in fields])
        else:
            raise refusal(value, name, f"{name}(...)")
        made = _values(rules, paths, given)
        return value if type(value) is hint and _same(made, given) else make(made)

    return tested(name, convert)


def field_rules(row_type: Any) -> list[Rule]:
    """The rules of the fields of a row type, in their order."""
    return [_rule(hint, Enclosing((row_type,))) for hint in (fields_of(row_type) or {}).values()]


# ---- texts that stand for values ----


def _reading(rule: Rule, enclosing: Enclosing) -> Rule:
    """The rule of one type, which reads texts as well if that is asked for."""
    read, name = rule.parse, rule.name
    if not enclosing.parse or read is None:
        return rule

    def convert(value: Any) -> Any:
        if not isinstance(value, str):
            return rule.convert(value)
        try:
            found = read(str.__str__(value))
        except (ValueError, OverflowError):
            why = f"must be {with_article(name)}, and the text {value_text(value)} is none"
            raise WrongValue(value, why, "another text, or leave the row out") from None
        return rule.convert(found)

    return tested(name, convert)


def _or_read(rule: Rule, readers: list[Convert]) -> Rule:
    """A rule that reads the texts which are no values of it: by the first of `readers` that can."""

    def convert(value: Any) -> Any:
        try:
            return rule.convert(value)
        except WrongValue:
            if not isinstance(value, str):
                raise
            if not value and rule.is_canonical(None):
                return None
            for read in readers:
                with suppress(WrongValue):
                    return rule.convert(read(value))
            raise

    return tested(rule.name, convert)
