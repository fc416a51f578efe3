"""Every row, key and value that enters an input, brought to the types that its row type states.

`canonical_rows` tests a change as a whole, in a loop generated for the row type, and changes
nothing if all its values are canonical, as most are. Otherwise each row is converted by the rules
of its fields, or refused with an error that names the field, the value, the row, the input and what
to do.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import cache, partial
from itertools import chain
from typing import Any

from ebbflow.codegen import GeneratedLoop
from ebbflow.engine.runtime.tables import refuse_table
from ebbflow.engine.runtime.values.hints import field_rules, rule_of
from ebbflow.engine.runtime.values.rules import ANY, KNOWN, PARSE, Rule, WrongValue
from ebbflow.errors import ChangeError, Text
from ebbflow.expression.node import Get, Tuple
from ebbflow.expression.value import plain_fields
from ebbflow.flow.parts import part_type
from ebbflow.flow.plan import Node, Source
from ebbflow.nan import mapped
from ebbflow.record import attributes_of, fields_of, type_text

Weights = dict[Any, int]


def canonical_rows(source: Source, weights: Weights, *, parse: bool = False) -> Weights:
    """A change with canonical rows; the weights of rows that become equal are added up.

    >>> from ebbflow.record import record
    >>> orders = Source(name="orders", type=record("Order", id=int, price=float))
    >>> canonical_rows(orders, {orders.type(1, 2): 1})
    {Order(id=1, price=2.0): 1}
    """
    if tester(source.type)(weights):
        return weights
    return mapped(partial(canonical_row, source, parse=parse), weights)


def canonical_row(source: Source, row: Any, *, parse: bool = False) -> Any:
    """A row with canonical values; an error that names what is wrong with it.

    >>> from ebbflow.record import record
    >>> orders = Source(name="orders", type=record("Order", id=int, price=float))
    >>> canonical_row(orders, orders.type("7", 2.5))
    Traceback (most recent call last):
    ebbflow.errors.ChangeError: input 'orders': field 'id' must be an int, not the str '7'
        value      '7'
        row        Order(id='7', price=2.5)
        created    ...
        try        parse=True reads texts, as in ebbflow.upsert(rows, parse=True), and so does ebbflow.read_csv(path, Row)
    """  # noqa: E501
    row_type = source.type
    if type(row) is not row_type and fields_of(row_type) is not None:
        require_type(source, row)
    try:
        return rule_of(row_type, parse).convert(row)
    except WrongValue as wrong:
        what = f"field {wrong.path.lstrip('.')!r}" if wrong.path else "a row"
        raise wrong_value(source, what, wrong, row=row) from wrong.__cause__


def require_type(source: Source, row: Any) -> None:
    """Refuse a row that is not of the type of its input."""
    row_type: Any = source.type
    own: Any = type(row)
    if isinstance(row, row_type) and plain_fields(own) == plain_fields(row_type):
        return
    refuse_table(source, row, as_row=True)
    name = row_type.__name__
    fits = isinstance(row, tuple) and len(row) == len(fields_of(row_type) or ())
    raise ChangeError(
        f"input {source.name!r}: a row must be of type {name}, not {type(row).__name__}",
        row=row,
        fields=Text(type_text(row_type)),
        created=source.place,
        remedy=f"{name}(*row)"
        if fits
        else f"{source.name}=[{{...}}], a list of dicts"
        if row in (fields_of(row_type) or ())
        else f"give rows made by {name}(...)",
    )


def wrong_value(source: Source, what: str, wrong: WrongValue, **facts: Any) -> ChangeError:
    """The error for a value that an input refuses."""
    return ChangeError(
        f"input {source.name!r}: {what} {wrong.why}",
        value=wrong.value,
        **facts,
        created=source.place,
        remedy=PARSE if wrong.unread else wrong.remedy,
    )


# ---- keys, and other parts of rows ----


def canonical_key(source: Source, key: Any, *, parse: bool | None = None) -> Any:
    """A key of an input, as its rows hold it. `parse` is None where no request can read texts.

    >>> from ebbflow.fn import Fn
    >>> from ebbflow.record import record
    >>> Order = record("Order", id=int)
    >>> orders = Source(name="orders", type=Order, key=Fn.of("id", Order))
    >>> canonical_key(orders, True), canonical_key(orders, "7", parse=True)
    (1, 7)
    """
    assert source.key is not None
    return canonical_part(source, source.key, "a key", key, parse=parse)


def canonical_part(
    source: Source, part: Any, what: str, value: Any, *, parse: bool | None = None
) -> Any:
    """A value of a part of the rows of an input, such as its key or its sequence."""
    try:
        return rule_of(hint_of_part(source, part), bool(parse)).convert(value)
    except WrongValue as wrong:
        found = _field_at(part, wrong.path)
        named = f"{what} {wrong.why}" if found is None else f"{what}: field {found!r} {wrong.why}"
        raise ChangeError(
            f"input {source.name!r}: {named}",
            value=value,
            created=source.place,
            remedy=PARSE if wrong.unread and parse is not None else wrong.remedy,
        ) from wrong.__cause__


def canonical_output_key(node: Node, fields: tuple[str, ...], key: Any) -> Any:
    """A key of the rows of an output, whose fields these are."""
    hints = fields_of(node.type) or {}
    known = [hints[name] for name in fields]
    hint = known[0] if len(known) == 1 else tuple[tuple(known)]  # type: ignore[misc]
    try:
        return rule_of(hint).convert(key)
    except WrongValue as wrong:
        at = wrong.path[1 : wrong.path.find("]")] if len(fields) > 1 else "0"
        what = f"field {fields[int(at)]!r}" if at.isdigit() else f"the key {', '.join(fields)}"
        raise ChangeError(
            f"get: {what} {wrong.why}",
            key=key,
            created=node.place,
            remedy=wrong.remedy,
        ) from wrong.__cause__


@cache
def hint_of_part(source: Source, part: Any) -> Any:
    """The type of a part of a row, as far as it is known."""
    found = getattr(part, "expression", None)
    if isinstance(found, Get):
        return (fields_of(source.type) or {}).get(found.name, Any)
    if isinstance(found, Tuple):
        names = [each.name for each in found.items if isinstance(each, Get)]
        if len(names) == len(found.items):
            hints = fields_of(source.type) or {}
            return tuple[tuple([hints.get(name, Any) for name in names])]  # type: ignore[misc]
    return part_type(source, getattr(part, "_given", part))


def _field_at(part: Any, path: str) -> str | None:
    """The field of a part that consists of several, at this path."""
    found = getattr(part, "expression", None)
    if isinstance(found, Get):
        return found.name
    if isinstance(found, Tuple) and path.startswith("["):
        item = found.items[int(path[1 : path.index("]")])]
        return item.name if isinstance(item, Get) else None
    return None


# ---- the test of many rows ----


Tester = Callable[[Collection[Any]], bool]


@cache
def tester(row_type: Any) -> Tester:
    """A function that tells whether all values of all rows are canonical.

    >>> tester(int)([1, 2]), tester(int)([1, True])
    (True, False)
    """
    rule = rule_of(row_type)
    if fields_of(row_type) is None:
        return _are_known if rule is ANY else _test_of_values(rule)
    return _test_of_rows(row_type, field_rules(row_type))


def _test_of_values(rule: Rule) -> Tester:
    loop = GeneratedLoop("canonical", "rows")
    with loop.inside("for row in rows:"):
        loop.write(f"if not {rule.text(loop.bind, 'row')}: return False")
    loop.write("return True")
    return loop.function()


def _test_of_rows(row_type: Any, rules: list[Rule]) -> Tester:
    """One loop: the class of each row, and then each of its fields."""
    loop = GeneratedLoop("canonical", "rows")
    names = [f"x{at}" for at in range(len(rules))]
    fields = attributes_of(row_type) or {}
    with loop.inside("for row in rows:"):
        loop.write(f"if type(row) is not {loop.bind(row_type)}: return False")
        if issubclass(row_type, tuple):
            if names:
                loop.write(f"{', '.join(names)}, = row")
        else:
            for name, field in zip(names, fields, strict=True):
                loop.write(f"{name} = row.{field}")
        tests = [rule.text(loop.bind, name) for rule, name in zip(rules, names, strict=True)]
        if tests:
            loop.write(f"if not ({' and '.join(tests)}): return False")
    loop.write("return True")
    return loop.function()


def _are_known(rows: Collection[Any]) -> bool:
    """Whether rows without a type are canonical: looked at by their classes, all at once."""
    classes = set(map(type, rows))
    if classes <= KNOWN:
        return True
    if classes == {tuple} and set(map(type, chain.from_iterable(rows))) <= KNOWN:
        return True
    return all(map(ANY.is_canonical, rows))


def converts(hint: Any) -> Mapping[str, str]:
    """What `explain` says of the rules of a type: by field, the name of its rule."""
    fields = fields_of(hint)
    return {name: rule_of(each).name for name, each in (fields or {"value": hint}).items()}
