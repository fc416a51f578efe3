"""Pickles of plain values, read without running anything.

To load a pickle is to run what it says, and it may call any function. `loads` reads only those that
are made of plain values: numbers, texts, bytes, tuples, lists, dicts and sets, dates and times,
decimals and fractions, edited texts and lists, and what our own reducers keep. Anything else is
refused by name before it is made. Attributes are given to values only: a class or a function is as
it was.
"""

from __future__ import annotations

import pickle
from io import BytesIO
from types import FunctionType
from typing import Any, ClassVar

from ebbflow import nan
from ebbflow.errors import StateError

_PLAIN = {
    "builtins": "complex range slice bytearray",
    "datetime": "date datetime time timedelta timezone",
    "decimal": "Decimal",
    "fractions": "Fraction",
    "uuid": "UUID",
    "ebbflow.change.edited": "List Text",
    "ebbflow.frozen": "Frozen",
    "ebbflow.operator.top": "Element",
    "ebbflow.ordering": "Reversed",
    "ebbflow.reducer.exact": "Total",
    "ebbflow.reducer.hashed": "Map",
    "ebbflow.reducer.moments": "Exact Moments",
    "ebbflow.state.spine.texts": "InPieces",
    "ebbflow.state.top_buffer": "TopBuffer",
    "ebbflow.state.tree": "_again",
}
_KNOWN = {(module, name) for module, names in _PLAIN.items() for name in names.split()}


class _Plain:
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _KNOWN:
            raise StateError(
                f"this state holds a pickled {module}.{name}, which is not read unless asked for",
                remedy="unpickle=True if you trust who wrote the folder: a pickle can run code",
            )
        return super().find_class(module, name)  # type: ignore[misc]


class _Unpickler(_Plain, pickle.Unpickler):
    """Reads what holds no NaN, and gives nothing an attribute."""


def _build(unpickler: Any) -> None:
    if isinstance(unpickler.stack[-2], (type, FunctionType)):
        raise StateError(
            "this state holds a pickle that changes a class or a function",
            remedy="another folder: no program of ours has written this",
        )
    nan.Unpickler.dispatch[pickle.BUILD[0]](unpickler)


class _Careful(_Plain, nan.Unpickler):
    """Reads what may do either, slowly."""

    dispatch: ClassVar[dict[int, Any]] = {**nan.Unpickler.dispatch, pickle.BUILD[0]: _build}


def loads(data: bytes) -> Any:
    """The plain value that was pickled, with one NaN (see `ebbflow.nan`).

    >>> loads(pickle.dumps((1, {"a"}, [2.5])))
    (1, {'a'}, [2.5])
    >>> loads(pickle.dumps(print))
    Traceback (most recent call last):
    ebbflow.errors.StateError: this state holds a pickled builtins.print, which is not \
read unless asked for
        try        unpickle=True if you trust who wrote the folder: a pickle can run code
    """
    careful = pickle.BUILD in data or nan.marked(data)
    try:
        return (_Careful if careful else _Unpickler)(BytesIO(data)).load()
    except StateError:
        raise
    except Exception as error:
        raise StateError(
            "a value of this state cannot be read as a plain one",
            cause=error,
            remedy="unpickle=True if you trust who wrote the folder: a pickle can run code",
        ) from error
