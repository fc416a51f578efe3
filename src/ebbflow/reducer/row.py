"""Parts of rows: wherever one is asked for, a field name, several, or a function will do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ebbflow.algebra.value import function_name
from ebbflow.errors import CompositionError
from ebbflow.fn import Field, Fn
from ebbflow.typevars import V

Key = str | Callable[[V], Any]


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
    if isinstance(of, Fn) and of.is_function:
        return of.name
    return function_name(of) if callable(of) and not hasattr(of, "fold") else repr(of)
