"""Row types: what the rows of a collection are, and types made for the rows of derived ones.

A row is any hashable value. Rows that are `NamedTuple`s or frozen dataclasses have named, typed
fields, which can be asked for by name and become the columns of a table elsewhere. A program makes
such types itself: the rows of `orders.group_by("city").agg(n=count())` have the fields `city` and
`n`. Two types made with the same name and fields are the same type, in every process, so they and
their rows can be pickled.

A row type is a NamedTuple class, a frozen dataclass, any other class (`int`, `str`), or `Any` where
nothing is known.
"""

from __future__ import annotations

import copyreg
import keyword
import sys
from collections import namedtuple
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import MISSING, is_dataclass
from dataclasses import fields as dataclass_fields
from datetime import tzinfo
from decimal import Decimal
from functools import partial, reduce
from operator import attrgetter, is_, or_
from threading import Lock
from types import NoneType, SimpleNamespace, UnionType
from typing import (
    Annotated,
    Any,
    NotRequired,
    Required,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)
from weakref import WeakKeyDictionary

from ebbflow.errors import CompositionError, Text, place

Fields = tuple[tuple[str, Any], ...]

_made: dict[tuple[str, Fields], type[Any]] = {}
_named: dict[str, type[Any]] = {}
_lock = Lock()
_fields: WeakKeyDictionary[type, dict[str, Any]] = WeakKeyDictionary()
"""The fields of types that were asked for: a type of many fields is asked for each of them."""


class RecordType(type):
    """The class of the types made here; it makes them travel as how they were made."""

    recipe: tuple[str, Fields]

    def __identity__(cls) -> Any:
        return vars(cls).get("recipe", NotImplemented)


def record(name: str, /, **fields: Any) -> type[Any]:
    """A NamedTuple type with these fields.

    >>> City = record("City", city=str, n=int)
    >>> City("Rome", 3)
    City(city='Rome', n=3)
    >>> City is record("City", city=str, n=int)
    True
    """
    return _type(name, tuple(fields.items()))


def record_of(hint: Any) -> Any:
    """The record that a TypedDict declares, of its name; any other type as it is. A key that is not
    required may be None.

    >>> from typing import TypedDict
    >>> class City(TypedDict):
    ...     name: str
    >>> record_of(City)("Rome")
    City(name='Rome')
    """
    if not is_typeddict(hint):
        return hint
    fields = {}
    for name, each in get_type_hints(hint, include_extras=True).items():
        needed = name in hint.__required_keys__  # but for hints that are texts, see PEP 655
        if get_origin(each) in (Required, NotRequired):
            needed = get_origin(each) is Required
            (each,) = get_args(each)
        each = as_stored(each)
        needed = needed or each is Any
        fields[name] = record_of(each) if needed else record_of(each) | None
    return record(hint.__name__, **fields)


def _type(name: str, fields: Fields) -> type[Any]:
    try:
        found = _made.get((name, fields))
    except TypeError as error:
        raise CompositionError(
            f"the type of a field of {name} cannot be used: {error}",
            fields=Text(", ".join(field for field, _ in fields)),
            created=place(),
            remedy="a class, or what typing makes of classes",
        ) from error
    if found is not None:
        return found
    _check(name, [field for field, _ in fields])
    with _lock:
        return _made.setdefault((name, fields), _new(name, fields))


def _check(name: str, fields: list[str]) -> None:
    for each in (name, *fields):
        if each.isidentifier() and not keyword.iskeyword(each):
            if each is name or not each.startswith("_"):
                continue
            better = each.lstrip("_") or "value"
        else:
            better = "".join(c if f"a{c}".isidentifier() else "_" for c in each).strip("_")
            better = f"{better}_" if keyword.iskeyword(better) else better or "value"
            better = better if better.isidentifier() else f"n{better}"
        what = "row type" if each is name else "field"
        raise CompositionError(
            f"{each!r} cannot be the name of a {what}",
            fields=Text(", ".join(fields)),
            created=place(),
            remedy=f"{better!r}: letters, digits and underscores, no keyword of Python's, "
            "and no underscore in front",
        )


def _new(name: str, fields: Fields) -> type[Any]:
    plain = namedtuple(name, [field for field, _ in fields])  # type: ignore[misc]
    inside = {k: v for k, v in vars(plain).items() if k not in ("__annotations__", "__doc__")}
    made: Any = RecordType(name, (tuple,), {**inside, "__module__": __name__})
    made.__annotations__ = dict(fields)
    made.recipe = (name, fields)
    text = ", ".join([f"{field}: {name_of(hint)}" for field, hint in fields])
    made.__qualname__ = _free(f"{name}({text})")
    _named[made.__qualname__] = made
    return made  # type: ignore[no-any-return]


def _free(text: str) -> str:
    return text if text not in _named else _free(f"{text}'")


def _recipe(hint: RecordType) -> tuple[Any, ...]:
    return _type, hint.recipe


copyreg.pickle(RecordType, _recipe)


def __getattr__(name: str) -> Any:
    """A type made here by its qualified name: so it counts as one of this module, and is never
    taken apart to be sent elsewhere."""
    try:
        return _named[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None


def fields_of(hint: Any) -> dict[str, Any] | None:
    """The fields of a row type with their types, or None when its rows have no known fields.

    >>> fields_of(record("City", city=str, n=int))
    {'city': <class 'str'>, 'n': <class 'int'>}
    >>> fields_of(int) is None
    True
    """
    if not isinstance(hint, type):
        return None
    known = _fields.get(hint)
    if known is not None:
        return dict(known)
    names = getattr(hint, "_fields", None) if issubclass(hint, tuple) else _attributes(hint)
    if names is None:
        return None
    hints = hints_of(hint)
    if hints:
        found = _fields[hint] = {name: hints.get(name, Any) for name in names}
        return dict(found)
    some = _hints_found(hint)  # the others may be found later
    return {name: some.get(name, Any) for name in names}


def _attributes(hint: type) -> list[str] | None:
    """The names of the fields of a dataclass that is a row type: one that never changes, and whose
    rows are equal where their fields are."""
    if not is_dataclass(hint) or no_row_type(hint):
        return None
    return [each.name for each in dataclass_fields(hint)]


def no_row_type(hint: type) -> str:
    """Why a dataclass is no type of rows with fields, in words; nothing where it is one.

    >>> from dataclasses import make_dataclass
    >>> no_row_type(make_dataclass("City", ["name"])), no_row_type(int)
    ('it is not frozen', '')
    """
    if not is_dataclass(hint):
        return ""
    options = hint.__dataclass_params__  # type: ignore[attr-defined]
    if not options.frozen:
        return "it is not frozen"
    if not options.eq:
        return "its rows are not equal where their fields are (eq=False)"
    for each in hint.__dataclass_fields__.values():
        if each._field_type.name == "_FIELD_INITVAR":  # type: ignore[attr-defined]
            return f"its InitVar {each.name!r} is no field of a row"
    for each in dataclass_fields(hint):
        if not each.compare or each.hash is False:
            return f"its field {each.name!r} is not compared"
    for name in ("__eq__", "__hash__"):
        if not _generated(getattr(hint, name)):
            return f"it has an {name} of its own"
    return ""


def _generated(method: Any) -> bool:
    """Whether a method of a dataclass was written by `dataclass`."""
    code = getattr(method, "__code__", None)
    return code is not None and code.co_filename == "<string>"


def compared_fields(cls: type, method: str) -> list[str] | None:
    """The fields by which `__eq__` or `__lt__` of a dataclass compares values; None for a method
    that somebody wrote, and for any other class.

    >>> from dataclasses import field, make_dataclass
    >>> City = make_dataclass("City", ["name", ("seen", int, field(compare=False))])
    >>> compared_fields(City, "__eq__"), compared_fields(City, "__lt__")
    (['name'], None)
    """
    owner = next(base for base in cls.__mro__ if method in vars(base))
    if "__dataclass_params__" not in vars(owner) or not _generated(vars(owner)[method]):
        return None
    return [each.name for each in dataclass_fields(owner) if each.compare]


def taken_apart(cls: Any) -> Callable[[Any], tuple[Any, ...]]:
    """A function that gives the values of the fields of a row of this type, in order.

    >>> taken_apart(record("City", city=str, n=int))(("Rome", 3))
    ('Rome', 3)
    """
    if issubclass(cls, tuple):
        return tuple
    names = [each.name for each in dataclass_fields(cls)]
    if len(names) > 1:
        return attrgetter(*names)
    return lambda row: tuple([getattr(row, name) for name in names])


def hints_of_items(cls: Any, count: int) -> list[Any]:
    """The types of the `count` items of a tuple class: of its fields, if it has so many.

    >>> hints_of_items(record("City", city=str), 1), hints_of_items(tuple, 2)
    ([<class 'str'>], [typing.Any, typing.Any])
    """
    known = list((fields_of(cls) or {}).values())
    return known if len(known) == count else [Any] * count


def attributes_of(hint: Any) -> dict[str, Any] | None:
    """The fields of a NamedTuple or a dataclass with their types; None for any other type.

    >>> attributes_of(record("City", city=str)), attributes_of(int)
    ({'city': <class 'str'>}, None)
    """
    if not is_dataclass(hint):
        return fields_of(hint)
    hints = hints_of(hint) or _hints_found(hint)  # type: ignore[arg-type]
    return {each.name: hints.get(each.name, Any) for each in dataclass_fields(hint)}


def maker(cls: Any) -> Callable[[Iterable[Any]], Any]:
    """A function that makes a row of a type of the values of its fields, in order; a row that was
    taken apart comes out as it was.

    >>> maker(record("City", city=str, n=int))(["Rome", 3])
    City(city='Rome', n=3)
    """
    if issubclass(cls, tuple):
        return partial(tuple.__new__, cls)
    names = [each.name for each in dataclass_fields(cls)]
    first = [each.name for each in dataclass_fields(cls) if each.init]
    new, put = object.__new__, object.__setattr__
    begun = hasattr(cls, "__post_init__")

    def make(values: Iterable[Any]) -> Any:
        found = dict(zip(names, values, strict=True))
        row = cls(**{name: found[name] for name in first}) if begun else new(cls)
        for name, value in found.items():
            put(row, name, value)
        return row

    return make


def defaults_of(hint: Any) -> dict[str, Callable[[], Any]]:
    """The fields of a row type that have a default, each with what gives it; in a type that was
    made here, None for those that may be None.

    >>> from typing import NamedTuple
    >>> class Order(NamedTuple):
    ...     id: int
    ...     note: str = "none"
    >>> {name: default() for name, default in defaults_of(Order).items()}
    {'note': 'none'}
    """
    if isinstance(hint, RecordType):
        optional = [name for name, each in hint.recipe[1] if NoneType in get_args(each)]
        return {name: partial(_same, None) for name in optional}
    if issubclass(hint, tuple):
        return {name: partial(_same, value) for name, value in hint._field_defaults.items()}
    return {
        each.name: each.default_factory
        if each.default_factory is not MISSING
        else partial(_same, each.default)
        for each in dataclass_fields(hint)
        if each.default is not MISSING or each.default_factory is not MISSING
    }


def _same(value: Any) -> Any:
    return value


def hints_of(thing: Any) -> dict[str, Any]:
    """The hints of a class or a function, `as_stored`; none where one of them cannot be found.

    >>> hints_of(record("Hit", place=Annotated[str, "where it was seen"]))
    {'place': <class 'str'>}
    """
    try:
        hints = get_type_hints(thing, include_extras=True)
    except Exception:  # a name in a hint that cannot be found from here
        return {}
    return {name: as_stored(hint) for name, hint in hints.items()}


def _hints_found(cls: type) -> dict[str, Any]:
    """The hints of a class that can be evaluated. A name that only type checkers import cannot, and
    the other hints do not depend on it."""
    found = {}
    for base in reversed(cls.__mro__):
        names = getattr(sys.modules.get(base.__module__), "__dict__", {})
        for name, hint in _annotations(base).items():
            alone = SimpleNamespace(__annotations__={name: hint})
            with suppress(Exception):
                hints = get_type_hints(alone, names, dict(vars(base)), include_extras=True)
                found[name] = as_stored(hints[name])
    return found


def _annotations(cls: type) -> dict[str, Any]:
    """The annotations of a class without those of its bases; Python 3.14 evaluates them late."""
    if sys.version_info >= (3, 14):
        from annotationlib import Format, get_annotations

        return get_annotations(cls, format=Format.FORWARDREF)
    found: dict[str, Any] = vars(cls).get("__annotations__", {})
    return found


def as_stored(hint: Any) -> Any:
    """The hint with those notes of `Annotated` that say how a value is stored, and no others: the
    zone of a time and the digits of a Decimal.

    >>> from datetime import UTC, datetime
    >>> as_stored(Annotated[datetime, UTC, "when it was seen"])
    typing.Annotated[datetime.datetime, datetime.timezone.utc]
    """
    if type(hint).__name__ == "TypeAliasType":  # `type Price = int`
        return as_stored(hint.__value__)
    origin, inside = get_origin(hint), get_args(hint)
    if origin is Annotated:
        notes = [note for note in inside[1:] if _is_stored(note)]
        return with_notes(as_stored(inside[0]), tuple(notes))
    if origin not in (tuple, list, dict, set, frozenset, Union, UnionType):
        return hint
    parts = tuple(as_stored(part) for part in inside)
    if all(map(is_, parts, inside)):
        return hint
    return reduce(or_, parts) if origin in (Union, UnionType) else origin[parts]


def with_notes(hint: Any, notes: tuple[Any, ...]) -> Any:
    """`Annotated[hint, *notes]`.

    >>> with_notes(int, ())
    <class 'int'>
    """
    annotated: Any = Annotated
    return annotated[(hint, *notes)] if notes else hint


def _is_stored(note: Any) -> bool:
    """Whether a note says how values are stored: in a zone, or with so many digits."""
    return isinstance(note, tzinfo) or (isinstance(note, tuple) and len(note) == 2)


def name_of(hint: Any) -> str:
    """A type by its name alone, and by the names of its parts.

    >>> name_of(record("City", city=str)), name_of(Any), name_of(int | None)
    ('City', 'Any', 'int | None')
    >>> name_of(Annotated[Decimal, (12, 2)] | None), name_of(dict[str, tuple[int, ...]])
    ('decimal(12, 2) | None', 'dict[str, tuple[int, ...]]')
    """
    origin, inside = get_origin(hint), get_args(hint)
    if hint in (None, NoneType, Ellipsis):
        return "..." if hint is Ellipsis else "None"
    if origin is Annotated:
        base, note = inside[:2]
        if base is Decimal and isinstance(note, tuple):
            return f"decimal{note}"
        return f"Annotated[{name_of(base)}, {note}]"
    if origin in (Union, UnionType):
        return " | ".join(map(name_of, inside))
    if isinstance(origin, type) and inside and not isinstance(inside[0], list):
        return f"{origin.__name__}[{', '.join(map(name_of, inside))}]"
    if isinstance(hint, type) and origin is None:
        return hint.__name__
    return str(hint).replace("typing.", "")


def type_text(hint: Any) -> str:
    """A row type as it is shown: with its fields, if it has any.

    >>> type_text(record("City", city=str, n=int)), type_text(int), type_text(int | None)
    ('City(city, n)', 'int', 'int | None')
    """
    fields = fields_of(hint)
    name = hint.__name__ if isinstance(hint, type) else str(hint).replace("typing.", "")
    return name if fields is None else f"{name}({', '.join(fields)})"
