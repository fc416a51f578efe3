"""A type, written down so that rows of it can be read when the type is gone.

The *description* of a type is made of what JSON has. A class is its name; one that declares fields
is a dict of its name, where it was defined, and its fields, as deep as they go; anything else is a
list of its form and its parts: `["|", "int", "None"]`.
"""

from __future__ import annotations

from types import UnionType
from typing import Annotated, Any, Literal, NewType, Union, get_args, get_origin

from ebbflow.expression.schema import class_name, declared
from ebbflow.flow.types import held

Description = Any
EITHER, ANNOTATED, LITERAL = "|", "Annotated", "Literal"


def described(hint: Any, within: tuple[Any, ...] = ()) -> Description:
    """The description of a type; a class that is inside itself is its name there.

    >>> described(int | None), described(list[int])
    (['|', 'int', 'None'], ['tuple', 'int', '...'])
    """
    hint = held(unwrapped(hint))
    origin, given = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        parts = [described(each, within) for each in given]
        return [EITHER, *sorted(parts, key=lambda part: (part == "None", described_text(part)))]
    if origin is Literal:
        return [LITERAL, *[[class_name(type(value)), repr(value)] for value in given]]
    if origin is Annotated:
        notes = [list(each) if isinstance(each, tuple) else repr(each) for each in given[1:]]
        return [ANNOTATED, described(given[0], within), *notes]
    if origin is not None:
        return [
            class_name(origin),
            *["..." if each is ... else described(each, within) for each in given],
        ]
    fields = None if hint in within else declared(hint)
    if fields is None:
        return class_name(hint)
    return {
        "name": class_name(hint),
        "module": hint.__module__,
        "qualname": hint.__qualname__,
        "tuple": issubclass(hint, tuple),
        "fields": [[name, described(each, (*within, hint))] for name, each in fields.items()],
    }


def unwrapped(hint: Any) -> Any:
    """The type that a `NewType` is made of."""
    while isinstance(hint, NewType):
        hint = hint.__supertype__
    return hint


def described_text(said: Description) -> str:
    """A description as `schema` would write the type.

    >>> from ebbflow.record import record
    >>> described_text(described(record("City", name=str, people=int | None)))
    'City(name: str, people: int | None)'
    """
    if isinstance(said, str):
        return said
    if isinstance(said, dict):
        inside = [f"{name}: {described_text(each)}" for name, each in said["fields"]]
        begin, end = "()" if said["tuple"] else "{}"
        return f"{said['name']}{begin}{', '.join(inside)}{end}"
    form, *parts = said
    if form == EITHER:
        return " | ".join(map(described_text, parts))
    if form == LITERAL:
        return f"Literal[{', '.join(text for _, text in parts)}]"
    if form == ANNOTATED:
        notes = [str(tuple(each)) if isinstance(each, list) else each for each in parts[1:]]
        return f"Annotated[{', '.join([described_text(parts[0]), *notes])}]"
    return f"{form}[{', '.join(map(described_text, parts))}]"
