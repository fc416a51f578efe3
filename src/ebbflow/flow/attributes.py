"""What functions ask rows for, read off their code before there are rows.

`lambda order: order.prcie > 3` has a name in it that no row of this type has. That is seen in the
instructions of the function, also of one that is too much to be traced: wherever an argument is
loaded and an attribute of it is asked for, the type of the row says whether there is one. Nothing
is said of rows whose fields are not known, nor of a function that looks first, by `hasattr`,
`isinstance` or `try`, nor of what a subclass has: a row may be of one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import is_dataclass
from difflib import get_close_matches
from operator import attrgetter
from types import FunctionType
from typing import Any

from ebbflow.algebra.value import function_name
from ebbflow.errors import Text, UnknownField, place
from ebbflow.expression.bytecode import ATTRIBUTE, steps
from ebbflow.flow.types import without_none
from ebbflow.record import attributes_of, fields_of, name_of

PLAIN = {int, float, complex, bool, str, bytes, tuple, frozenset, type(None)}
_LOOKS_FIRST = {"hasattr", "getattr", "isinstance", "issubclass", "type"}
_PUT = ("STORE_", "DELETE_")


def check(shape: str, f: Any, rows: Sequence[tuple[Any, str]]) -> None:
    """Refuse a function that asks a row for a field that it has not. For each argument, `rows` are
    its type, and how an error speaks of it.

    >>> from ebbflow.record import record
    >>> Order = record("Order", city=str, price=int)
    >>> check("filter({})", lambda order: order.prcie > 3, [(Order, "rows of orders")])
    Traceback (most recent call last):
    ebbflow.errors.UnknownField: filter(<lambda>): rows of orders have no field 'prcie'
        fields     city, price
        created    <doctest ebbflow.flow.attributes.check[2]>:1
        try        order.price
    """
    for at, path in _asked(f, len(rows)):
        row_type, spoken = rows[at]
        for i, name in enumerate(path[1:], start=1):
            if i > 1 and fields_of(row_type) is None:
                break
            if not _has(row_type, name):
                call = shape.format(function_name(f).rpartition(".")[2])
                have = spoken if i == 1 else f"values of {'.'.join(path[:i])}"
                raise _unknown(f"{call}: {have}", row_type, path[: i + 1])
            row_type = without_none((fields_of(row_type) or {}).get(name, Any))


def _asked(f: Any, count: int) -> Iterator[tuple[int, tuple[str, ...]]]:
    """The attributes that a function asks its arguments for: which argument, and the names from it
    on, its own first."""
    if type(f) is attrgetter:
        for each in f.__reduce__()[1]:
            yield 0, ("row", *each.split("."))
        return
    if type(f) is not FunctionType:
        return
    code = f.__code__
    if getattr(code, "co_exceptiontable", b"") or _LOOKS_FIRST & set(code.co_names):
        return
    read = steps(code)
    given = list(code.co_varnames[: min(count, code.co_argcount)])
    put = {each.argval for each in read if each.opname.startswith(_PUT)}
    path: tuple[str, ...] = ()
    for each in (*read, None):
        if each is not None and path and each.opname in ATTRIBUTE:
            path = (*path, each.argval)
            continue
        if len(path) > 1:
            yield given.index(path[0]), path
        name = _loaded(each)
        path = (name,) if name in given and name not in put else ()


def _loaded(step: Any) -> Any:
    """The name that an instruction leaves on top of the stack."""
    if step is None or not step.opname.startswith("LOAD_FAST"):
        return None
    return step.argval[-1] if isinstance(step.argval, tuple) else step.argval


def _has(row_type: Any, name: str) -> bool:
    """Whether rows of a type have an attribute, or may have it."""
    if (
        not isinstance(row_type, type)
        or hasattr(row_type, name)
        or hasattr(row_type, "__getattr__")
    ):
        return True
    if type(row_type.__getattribute__) is FunctionType:
        return True
    if is_dataclass(row_type):
        made = row_type.__dataclass_params__.init and not hasattr(row_type, "__post_init__")  # type: ignore[attr-defined]
        lacks = made and name not in (attributes_of(row_type) or ())
    else:
        lacks = row_type in PLAIN or fields_of(row_type) is not None
    return not lacks or _below(row_type, name)


def _below(row_type: type, name: str) -> bool:
    """Whether a class made of one has an attribute."""
    classes: list[type] = type.__subclasses__(row_type)
    return any(
        hasattr(e, name) or name in (attributes_of(e) or ()) or _below(e, name) for e in classes
    )


def _unknown(what: str, row_type: Any, path: tuple[str, ...]) -> UnknownField:
    *before, name = path
    names = list(attributes_of(row_type) or ())
    near = get_close_matches(name, names or dir(row_type), n=1, cutoff=0.5)
    return UnknownField(
        f"{what} have no field {name!r}",
        **({"fields": Text(", ".join(names))} if names else {"type": Text(name_of(row_type))}),
        created=place(),
        remedy=".".join([*before, *near]) if near else "one of its fields",
    )
