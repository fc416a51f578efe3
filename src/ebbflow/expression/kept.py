"""Expressions whose result is kept, as a row or as a key: with one NaN (see `ebbflow.nan`).

Fields of rows have that NaN already. So only what is computed is looked at, and only where it may
be a float: `price * 2` of an `int` field is written as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ebbflow.expression.node import (
    COMPARISONS,
    Bind,
    Constant,
    Expression,
    Get,
    Operation,
    Record,
    Row,
    Tuple,
    made_text,
)
from ebbflow.expression.value import tuple_text
from ebbflow.nan import WAYS, is_number, may_hold, one_nan
from ebbflow.record import fields_of, hints_of_items

_NO_FLOAT = COMPARISONS | {"not", "bool", "int", "len", "str"}
_EITHER = ("and", "or", "if")


def kept(
    of: Expression, types: Sequence[Any], bind: Bind, rows: Sequence[str], hint: Any = Any
) -> str:
    """Python text that computes an expression over rows of these types, with one NaN. `hint` is
    what is known of the result.

    >>> kept(Operation("*", (Get(0, "price", 2), Constant(2))), [Any], lambda _: "one", ["row"])
    '(_x if (_x := (row[2] * 2)) == _x else one(_x))'
    """
    if isinstance(of, (Tuple, Record)):
        cls = of.type if isinstance(of, Record) else tuple
        pairs = zip(of.items, hints_of_items(cls, len(of.items)), strict=True)
        items = tuple_text([kept(each, types, bind, rows, own) for each, own in pairs])
        return made_text(bind, cls, items)
    if isinstance(of, Constant):
        return Constant(one_nan(of.value)).source(bind, rows)
    source = of.source(bind, rows)
    if not _computed(of, types) or not may_hold(hint):
        return source
    return one_of(source, bind, hint, whole=_is_number(of))


def one_of(source: str, bind: Bind, hint: Any = Any, whole: bool = False) -> str:
    """Python text of what `source` computes, with one NaN; `whole` says that it is a number, or
    holds none.

    >>> one_of("f(row)", lambda _: "one", float)
    '(_x if (_x := f(row)) == _x else one(_x))'
    """
    if not may_hold(hint):
        return source
    if whole or is_number(hint):
        return f"(_x if (_x := {source}) == _x else {bind(one_nan)}(_x))"
    return f"(_x if {bind(WAYS)}[type(_x := {source})] is None else {bind(one_nan)}(_x))"


def _computed(of: Expression, types: Sequence[Any]) -> bool:
    """Whether an expression may give a NaN, or a value with one, that its arguments have not."""
    if not isinstance(of, Operation):
        return any(_computed(part, types) for part in of.parts)
    if of.op in _NO_FLOAT:
        return False
    if of.op in _EITHER:
        return any(_computed(each, types) or isinstance(each, Constant) for each in of.args[-2:])
    if of.op in ("[]", "[:]"):
        return _computed(of.args[0], types)
    return of.op in (".", "float") or any(_float(each, types) for each in of.args)


def _float(of: Expression, types: Sequence[Any]) -> bool:
    """Whether an expression may give a float, or a value that holds one."""
    match of:
        case Row():
            return may_hold(types[of.arg] if of.arg < len(types) else Any)
        case Get():
            known = fields_of(types[of.arg]) if of.arg < len(types) else None
            return may_hold((known or {}).get(of.name, Any))
        case Constant():
            return may_hold(type(of.value))
        case Operation():
            return of.op not in _NO_FLOAT and (
                of.op in (".", "float") or any(_float(each, types) for each in of.args)
            )
    return any(_float(each, types) for each in of.parts)


def _is_number(of: Expression) -> bool:
    """Whether an expression is arithmetic, whose result is a NaN or holds none."""
    return isinstance(of, Operation) and of.op not in (*_EITHER, "[]", "[:]", ".", "max", "min")
