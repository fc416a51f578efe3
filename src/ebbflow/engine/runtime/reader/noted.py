"""Noted nodes: as much of a program as it takes to read an output without the program.

An output that keeps no rows is computed: by the last node of the program from what that node keeps,
or by all nodes from the rows of inputs. The manifest notes these nodes as JSON, and a reader builds
them again. It notes data only: traced functions as expressions, reducers of the library as the
calls that made them, row types by their columns. A function that is not traced is noted by its
text. Reading what a group keeps calls no key and no part of a row, so most of them are never
called; where one has to be, the node is not noted.

What is built from a note runs no code but that of this package: whatever is written into generated
Python is checked here, as the note may come from anybody who can write to the folder.
"""

from __future__ import annotations

import pickle
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from typing import Any

from ebbflow.engine.runtime.table.stored import row_type_of, stored_type
from ebbflow.errors import StateError, Text
from ebbflow.expression import Constant, Expression, Get, Operation, Record, Row, Tuple
from ebbflow.expression.node import BINARY, COMPARISONS, FUNCTIONS, METHODS
from ebbflow.expression.value import is_plain, is_simple
from ebbflow.flow.plan import (
    Concat,
    Distinct,
    Filter,
    Fused,
    FusedStep,
    Join,
    Map,
    Node,
    Reduce,
    Semi,
    Source,
    TopK,
)
from ebbflow.flow.rewrite.traced import written
from ebbflow.fn import Fn
from ebbflow.reducer import (
    Reducer,
    combine,
    library,
    numeric,
    ordered,
    placed,
    sketch,
)
from ebbflow.state.spine import plain

READ = Reduce, Distinct, TopK
"""Nodes whose output is read from what they keep."""
_NODES = {each.__name__: each for each in (*READ, Source, Map, Filter, Fused, Concat, Join, Semi)}
_ASIDE = {"place", "sequence", "renamed", "time", "lateness", "narrow"}
_MAKERS: dict[str, Callable[..., Any]] = {
    name: getattr(module, name)
    for module, names in {
        library: "bit_xor bool_and bool_or count count_distinct histogram mean naive_sum set_of "
        "sum",
        numeric: "covariance product stddev variance weighted_mean",
        ordered: "max median min quantile rank top_k",
        placed: "arg_max arg_min collect first last mode string_agg",
        sketch: "approx_count_distinct approx_quantile",
        combine: "by on then together where",
    }.items()
    for name in names.split()
}
_OPERATORS = {
    *BINARY, *COMPARISONS, *FUNCTIONS, *METHODS, "**", "~", "not", "and", "or", "if", "[]", "[:]",
    ".",
}  # fmt: skip


class _Unsaid(Exception):
    """There is something that cannot be noted."""


class NotNoted:
    """What stands for a function that is not noted, known by its text; nobody may call it."""

    def __init__(self, text: str) -> None:
        self.text = self.__name__ = text

    def __call__(self, *rows: Any) -> Any:
        raise StateError(
            f"the function {self.text} is not in the state", remedy="read it with the program"
        )


def stored_node(node: Node, *, whole: bool = False) -> Any:
    """A node as JSON, to read its rows from what it keeps, or as a `whole`, with all nodes before
    it, to compute them; None where that calls a function that cannot be noted."""
    try:
        return _node(node, whole)
    except _Unsaid:
        return None


def node_of(stored: Any) -> Node:
    """The node that was noted."""
    try:
        return _node_of(stored)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise StateError(
            "what is noted of the program cannot be read",
            cause=error,
            remedy="read it with the program; or the version of ebbflow that wrote it",
        ) from error


# ---- noting ----
# With `whole`, every function is called, and has to be noted as an expression.


def _node(node: Node, whole: bool) -> Any:
    name = type(node).__name__
    if _NODES.get(name) is not type(node):
        raise _Unsaid(name)
    found: dict[str, Any] = {"node": name, "type": stored_type(node.type)}
    for each in fields(node):
        value = getattr(node, each.name)
        if each.name in _ASIDE or each.name == "type" or value == each.default:
            continue
        if each.name == "parent" and not whole:
            value = Source(name="", type=value.type)
        found[each.name] = _said(value, whole and type(node) is not Source)
    return found


def _said(value: Any, whole: bool) -> Any:
    match value:
        case None | bool() | int() | str():
            return value
        case Node():
            return _node(value, whole)
        case Fn():
            return _fn(value, whole)
        case Reducer():
            return _reducer(value, whole)
        case FusedStep():
            return {"step": value.verb, "fn": _fn(value.fn, whole)}
        case tuple():
            return {"items": [_said(each, whole) for each in value]}
    return _constant(value)


def _constant(value: Any) -> Any:
    if not is_simple(value):
        raise _Unsaid(repr(value))
    return {"value": b64encode(pickle.dumps(value)).decode()}


def _fn(fn: Fn, called: bool) -> Any:
    try:
        if fn.expression is None:
            raise _Unsaid(fn.text)
        types = [stored_type(each) for each in fn.types]
        return {"fn": _expression(fn.expression), "types": types}
    except _Unsaid:
        if called:
            raise
        return {"unseen": fn.text}


def _reducer(reducer: Reducer[Any, Any, Any], whole: bool) -> Any:
    if reducer.made is None:
        raise _Unsaid(repr(reducer))
    make, given, named = reducer.made
    if _MAKERS.get(make.__name__) is not make:
        raise _Unsaid(repr(reducer))
    arguments = [_argument(each, whole) for each in given]
    if make is combine.then:
        arguments[1] = _shown(given[1])
    return {"reducer": make.__name__, "given": arguments,
            "named": {name: _argument(each, whole) for name, each in named.items()}}  # fmt: skip


def _argument(value: Any, whole: bool) -> Any:
    """An argument of a reducer: a constant, or a part of a row, which is not called to read
    results."""
    if isinstance(value, (Fn, Reducer)) or not callable(value):
        return _said(value, whole)
    if whole:
        raise _Unsaid(repr(value))
    return {"unseen": getattr(value, "__name__", repr(value))}


def _shown(function: Any) -> Any:
    """A function of results, which is called."""
    name = getattr(function, "__name__", "")
    if FUNCTIONS.get(name) is function:
        return {"builtin": name}
    return _fn(function if isinstance(function, Fn) else Fn(function, Any), True)


def _expression(expression: Expression) -> Any:
    match expression:
        case Row():
            return ["row", expression.arg]
        case Get():  # also of an attribute: what a reader has is a tuple
            return ["get", expression.arg, expression.name, expression.index]
        case Constant():
            return ["value", _constant(expression.value)["value"]]
        case Operation():
            return ["op", expression.op, *map(_expression, expression.args)]
        case Tuple():
            return ["tuple", *map(_expression, expression.items)]
        case Record() if is_plain(expression.type):
            return ["record", stored_type(expression.type), *map(_expression, expression.items)]
    raise _Unsaid(repr(expression))


# ---- building ----


def _node_of(stored: Mapping[str, Any]) -> Node:
    cls = _NODES[stored["node"]]
    given: dict[str, Any] = {"type": row_type_of(stored["type"])}
    for each in fields(cls):
        if each.name in stored and each.name not in ("type", *_ASIDE):
            given[each.name] = _value(stored[each.name])
        elif each.name != "type" and each.default is MISSING:
            raise ValueError(f"{stored['node']} without {each.name}")
    return cls(**given)


def _value(stored: Any) -> Any:
    if not isinstance(stored, dict):
        return stored
    if "node" in stored:
        return _node_of(stored)
    if "items" in stored:
        return tuple([_value(each) for each in stored["items"]])
    if "step" in stored:
        return FusedStep(verb=str(stored["step"]), fn=_fn_of(stored["fn"]))
    if "reducer" in stored:
        make = _MAKERS[stored["reducer"]]
        named = {name: _value(each) for name, each in stored["named"].items()}
        return make(*[_value(each) for each in stored["given"]], **named)
    if "builtin" in stored:
        return FUNCTIONS[stored["builtin"]]
    if "value" in stored:
        return _simple(stored["value"])
    return _fn_of(stored)


def _fn_of(stored: Mapping[str, Any]) -> Any:
    if "unseen" in stored:
        return Fn(NotNoted(str(stored["unseen"])), Any)
    types = [row_type_of(each) for each in stored["types"]]
    return written(_expression_of(stored["fn"], len(types)), *types)


def _simple(stored: str) -> Any:
    value = plain.loads(b64decode(stored))
    if not is_simple(value):
        raise ValueError("it is no constant")
    return value


def _expression_of(stored: Any, arity: int) -> Expression:
    form, *rest = stored
    if form == "row":
        return Row(_number(rest[0], arity))
    if form == "get":
        return Get(_number(rest[0], arity), _name(rest[1]), _number(rest[2]))
    if form == "value":
        return Constant(_simple(rest[0]))
    first, *parts = rest if form in ("op", "record") else (None, *rest)
    inside = tuple([_expression_of(each, arity) for each in parts])
    if form == "op" and first in _OPERATORS:
        if first == ".":
            _name(inside[1].value)  # type: ignore[attr-defined]
        return Operation(first, inside)
    if form == "record":
        return Record(row_type_of(first), inside)
    if form == "tuple":
        return Tuple(inside)
    raise ValueError(f"no expression {Text(str(stored))}")


def _number(stored: Any, below: int = 1 << 16) -> int:
    if type(stored) is not int or not 0 <= stored < below:
        raise ValueError(f"{stored!r} is no number of a row or a field")
    return stored


def _name(stored: Any) -> str:
    if type(stored) is not str or not stored.isidentifier() or stored.startswith("__"):
        raise ValueError(f"{stored!r} is no name of a field")
    return stored
