"""Rows of another shape: fields added, renamed or filled, lists unfolded, some of them taken.

All of them are combinations of what there is: `map`, `filter`, `flat_map`, `+` and `group_by`. They
keep the fields they do not touch as expressions, so that an engine can run them as columns.

    with_fields   all fields, and some more, or others in their place      map
    rename        the same fields under other names                        map
    fill_null     a value where a field is None                            map
    explode       one row for each item of a field                         flat_map
    sample        some of the rows, the same ones every time               filter
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from hashlib import blake2b
from typing import Any

from ebbflow import decimals
from ebbflow.errors import AlgebraError, Text, place
from ebbflow.expression.build import either
from ebbflow.expression.decimals import number_of
from ebbflow.expression.node import Constant, Expression, Operation
from ebbflow.expression.value import is_simple
from ebbflow.flow import types
from ebbflow.flow.parts import (
    Part,
    field,
    field_names,
    part,
    part_type,
    plain,
    refuse,
    row_type,
    rows_of,
)
from ebbflow.flow.plan import Filter, FlatMap, Map, Node
from ebbflow.fn import Fn
from ebbflow.hashing import stable_hash
from ebbflow.record import name_of, taken_apart
from ebbflow.reducer.row import itself

WHOLE = 1 << 64
"""One more than the greatest number that a row's part can have in a sample."""


# ---- fields ----


def extended(node: Node, named: Mapping[str, Part]) -> Map:
    """The node of `with_fields`."""
    fields = named_fields("with_fields(...)", node)
    if not named:
        refuse("with_fields(): no field is given", "with_fields(total=lambda row: ...)")
    field_names("with_fields({}=...)", named)
    for name, each in named.items():
        plain(f"with_fields({name}={{}})", each)
    parts = {**dict(zip(fields, fields, strict=True)), **named}
    return _made("with_fields", node, parts)


def renamed(node: Node, named: Mapping[str, str]) -> Map:
    """The node of `rename`: new names, each with the old one."""
    fields = named_fields("rename(...)", node)
    if not named:
        refuse("rename(): no field is given", 'rename(new="old")')
    field_names("rename({}=...)", named)
    new: dict[Any, str] = {}
    for name, old in named.items():
        if not isinstance(old, str):
            refuse(
                f"rename({name}={old!r}): it gives a field another name",
                f'rename({name}="field"), or with_fields({name}=lambda row: ...)',
            )
        field(f"rename({name}={{}})", node, old)
        if old in new:
            refuse(
                f"rename({new[old]}={old!r}, {name}={old!r}): one field cannot have two names",
                f'with_fields({name}="{old}") for a second one',
            )
        new[old] = name
    parts: dict[str, Part] = {}
    for each in fields:
        name = new.get(each, each)
        if name in parts:
            other = name if name in new.values() else each
            refuse(
                f"rename({other}=...): there is a field {other!r} already",
                "another name, or rename that one as well",
                fields=Text(", ".join(fields)),
            )
        parts[name] = each
    return _made("rename", node, parts)


def filled(node: Node, values: Mapping[str, Any]) -> Map:
    """The node of `fill_null`."""
    fields = named_fields("fill_null(...)", node)
    if not values:
        refuse("fill_null(): no field is given", "fill_null(price=0)")
    for name, value in values.items():
        field("fill_null({})", node, name)
        if value is None or callable(value):
            refuse(
                f"fill_null({name}={value!r}): a value takes the place of None",
                f"fill_null({name}=0), or with_fields({name}=lambda row: ...)",
            )
        known = types.without_none(part_type(node, name))
        if types.common(known, _hint_of(value, known)) is None:
            refuse(
                f"fill_null({name}={value!r}): the field holds {name_of(known)}",
                f"a value of type {name_of(known)}",
            )
    parts: dict[str, Any] = {}
    hints: dict[str, Any] = {}
    for name in fields:
        of, hint = part("fill_null({})", node, name), part_type(node, name)
        parts[name] = of
        hints[name] = hint
        if name in values:
            value = values[name]
            parts[name] = traced(Filled(of, value), node, of, value, _unless_none)
            known = types.without_none(hint)
            hints[name] = types.common(known, _hint_of(value, known))
    return _record("fill_null", node, parts, hints)


def _hint_of(value: Any, beside: Any) -> Any:
    """The type of a value beside those of a field; a number beside Decimals has their digits, or
    more if it needs more."""
    number = number_of(beside)
    if number is not None and number.is_decimal and type(value) in (int, Decimal):
        return decimals.hint_of(decimals.literal_digits(value))
    return type(value)


@dataclass(frozen=True)
class Filled:
    """A part of a row; where that is None, a value."""

    of: Fn
    value: Any

    def __call__(self, row: Any) -> Any:
        found = self.of(row)
        return self.value if found is None else found


def _unless_none(of: Expression, value: Expression) -> Expression:
    return either(Operation("is", (of, Constant(None))), value, of)


def traced(
    call: Any, node: Node, of: Fn, value: Any, write: Callable[[Expression, Expression], Expression]
) -> Fn:
    """A function of a part and a value, with its expression where both have one."""
    fn = Fn.of(call, node.type)
    if of.expression is not None and is_simple(value):
        fn.expression = write(of.expression, Constant(value))
    return fn


# ---- one row for many, and many for one ----


def exploded(
    node: Node, name: str, into: str | None, position: str | None, keep_empty: bool
) -> FlatMap:
    """The node of `explode`."""
    fields = named_fields("explode(...)", node)
    if not isinstance(name, str):
        refuse(f"explode({name!r}): it asks for one field", 'explode("field"), or flat_map(f)')
    field("explode({})", node, name)
    hint = types.without_none(part_type(node, name))
    inside = types.iterated(hint)
    whole = types.classes(hint) or ()
    if inside is None or any(issubclass(each, (str, bytes, Mapping)) for each in whole):
        refuse(
            f"explode({name!r}): the field holds {name_of(hint)}, which is no list of items",
            "a field that holds a list, a tuple or a set; or flat_map(lambda row: ...)",
        )
    at, new = list(fields).index(name), into or name
    hints = {(new if each == name else each): part_type(node, each) for each in fields}
    hints[new] = types.optional(inside) if keep_empty else inside
    if position is not None:
        hints[position] = types.optional(int) if keep_empty else int
    for each in filter(None, (into, position)):
        field_names("explode({})", {each: each})
        if (each in fields and each != name) or new == position:
            refuse(
                f"explode({name!r}): there is a field {each!r} already",
                "another name for it",
                fields=Text(", ".join(fields)),
            )
    checked = row_type("explode({})", types.row(node.type.__name__, hints))
    fn = Fn.of(Exploded(checked, at, position is not None, keep_empty), node.type)
    fn.name = f"{name} of each row"
    return FlatMap(parent=node, fn=fn, type=checked, place=place())


@dataclass(frozen=True)
class Exploded:
    """A row for each item of the field at a place, which the item takes."""

    type: Any
    at: int
    positions: bool
    keep_empty: bool

    def __call__(self, row: Any) -> list[Any]:
        at, made = self.at, tuple.__new__
        if not isinstance(row, tuple):
            row = taken_apart(type(row))(row)
        before, held, after = row[:at], row[at], row[at + 1 :]
        items = () if held is None else held
        if not items and self.keep_empty:
            return [made(self.type, (*before, None, *after, *((None,) * self.positions)))]
        if self.positions:
            items = enumerate(items)
            return [made(self.type, (*before, each, *after, i)) for i, each in items]
        return [made(self.type, (*before, each, *after)) for each in items]


# ---- some of the rows ----


def sampled(node: Node, fraction: float, per: Part | None, seed: int) -> Filter:
    """The node of `sample`."""
    if isinstance(fraction, bool) or not isinstance(fraction, (int, float)):
        refuse(f"sample({fraction!r}): it gives a part of the rows", "sample(0.1)")
    if not 0 <= fraction <= 1:
        refuse(f"sample({fraction!r}): it gives a part of the rows", "a number from 0 to 1")
    plain("sample(per={})", per)
    of = Fn.of(itself, node.type) if per is None else part("sample(per={})", node, per)
    fn = Fn.of(Sampled(of, round(fraction * WHOLE), seed), node.type)
    fn.name = f"{fraction:g} of {rows_of(node) if per is None else 'each ' + of.text}"
    return Filter(parent=node, fn=fn, type=node.type, place=place())


@dataclass(frozen=True)
class Sampled:
    """Whether a part of a row is among those that are taken: when its number, which is the same in
    every process, is below a limit."""

    of: Fn
    below: int
    seed: int

    def __call__(self, row: Any) -> bool:
        found = self.of(row)
        try:
            number = stable_hash(found)
        except AlgebraError as error:
            raise AlgebraError(error.what, remedy="sample(per=...) a field that has one") from error
        text = f"{self.seed} {number}"
        return int.from_bytes(blake2b(text.encode(), digest_size=8).digest()) < self.below


# ---- parts of the above ----


def named_fields(call: str, node: Node) -> dict[str, Any]:
    """The fields of the rows of a node, refused where they are not known."""
    fields = types.fields_held(node.type)
    if fields is None:
        refuse(
            f"{call}: {rows_of(node)} are of type {name_of(node.type)}, without named fields",
            "select(name=lambda row: ...), or a NamedTuple as the type of the rows",
        )
    return fields


def _made(verb: str, node: Node, parts: Mapping[str, Part]) -> Map:
    """Rows of these parts, under the name that the rows have."""
    made = {
        name: part(f"{verb}({{}})" if name == each else f"{verb}({name}={{}})", node, each)
        for name, each in parts.items()
    }
    return _record(verb, node, made, {n: part_type(node, each) for n, each in parts.items()})


def _record(verb: str, node: Node, parts: Mapping[str, Fn], hints: Mapping[str, Any]) -> Map:
    checked = row_type(f"{verb}({{}})", types.row(node.type.__name__, hints))
    fn = Fn.record(checked, list(parts.values()))
    return Map(parent=node, fn=fn, type=checked, place=place())
