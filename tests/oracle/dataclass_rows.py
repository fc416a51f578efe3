"""The row types of generated inputs as frozen dataclasses: `plans(types=DATACLASSES)`."""

from __future__ import annotations

from dataclasses import make_dataclass
from typing import Any

from ebbflow.record import fields_of
from ebbflow.testing.programs import TYPES


def as_dataclass(cls: Any) -> Any:
    """A frozen dataclass with the fields of a NamedTuple, which pickles find here; any other type
    as it is."""
    fields = fields_of(cls)
    if fields is None:
        return cls
    made = make_dataclass(cls.__name__, list(fields.items()), frozen=True)
    made.__module__ = __name__
    return globals().setdefault(cls.__name__, made)


DATACLASSES = tuple(map(as_dataclass, TYPES))
