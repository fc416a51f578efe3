"""Parts of rows: wherever one is asked for, a field name, several, or a function will do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any

from ebbflow.algebra.value import function_name
from ebbflow.errors import CompositionError

Key = str | Callable[[Any], Any]


class Field:
    """A field of a row by name: an attribute, or an entry of a mapping.

    >>> Field("imag")(3 + 4j), Field("price")({"price": 7})
    (4.0, 7)
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, row: Any) -> Any:
        try:
            return row[self.name] if isinstance(row, Mapping) else getattr(row, self.name)
        except (AttributeError, KeyError) as error:
            raise self._unknown(row) from error

    def _unknown(self, row: Any) -> CompositionError:
        fields = getattr(row, "_fields", None) or (tuple(row) if isinstance(row, Mapping) else ())
        near = get_close_matches(self.name, map(str, fields), n=1)
        return CompositionError(
            f"a row has no field {self.name!r}",
            row=row,
            **({"fields": fields} if fields else {}),
            remedy=repr(near[0]) if near else "a field that the rows have, or a function of a row",
        )

    def __repr__(self) -> str:
        return repr(self.name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Field) and self.name == other.name

    def __hash__(self) -> int:
        return hash((Field, self.name))


class Fields:
    """Several parts of a row, as a tuple.

    >>> Fields(Field("real"), Field("imag"))(3 + 4j)
    (3.0, 4.0)
    """

    __slots__ = ("parts",)

    def __init__(self, *parts: Callable[[Any], Any]) -> None:
        self.parts = parts

    def __call__(self, row: Any) -> tuple[Any, ...]:
        return tuple([part(row) for part in self.parts])

    def __reduce__(self) -> tuple[Any, ...]:
        return Fields, self.parts


def itself(row: Any) -> Any:
    """The row.

    >>> itself(3)
    3
    """
    return row


def getter(*of: Key | None) -> Callable[[Any], Any]:
    """What `of` asks for as a function: nothing is the row itself, several are a tuple.

    >>> getter("real", "imag")(3 + 4j), getter(abs)(-2), getter()(5)
    ((3.0, 4.0), 2, 5)
    """
    parts = [_one(each) for each in of if each is not None]
    if not parts:
        return itself
    return parts[0] if len(parts) == 1 else Fields(*parts)


def _one(of: Key) -> Callable[[Any], Any]:
    if isinstance(of, str):
        return Field(of)
    if callable(of):
        return of
    raise CompositionError(
        f"{of!r} is no part of a row", remedy="a field name, or a function of a row"
    )


def key_text(of: Any) -> str:
    """How a part is written in a repr.

    >>> key_text("price"), key_text(len)
    ("'price'", 'len')
    """
    return function_name(of) if callable(of) and not hasattr(of, "fold") else repr(of)
