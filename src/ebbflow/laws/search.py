"""Looking for values of a strategy with Hypothesis: always the same ones, and nothing is stored.

All that the laws use of Hypothesis is imported here, so there is one error where it is missing.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from ebbflow.errors import CheckError, install

try:
    from hypothesis import HealthCheck, Phase, find, settings
    from hypothesis import strategies as st
    from hypothesis.errors import Flaky, NoSuchExample, Unsatisfiable
    from hypothesis.strategies import SearchStrategy
except ImportError as error:  # pragma: no cover
    raise CheckError("checking laws needs Hypothesis", remedy=install("laws")) from error

__all__ = ["Flaky", "NoSuchExample", "SearchStrategy", "Unsatisfiable", "first_found", "st"]


def first_found(
    source: SearchStrategy[Any],
    wanted: Callable[[Any], bool],
    *,
    examples: int,
    seed: int = 0,
    shrink: bool = True,
) -> Any:
    """The simplest value of `source` for which `wanted` is true, of so many that are tried; without
    `shrink`, the first one. Raises `NoSuchExample` where there is none."""
    quiet = settings(
        max_examples=examples,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink) if shrink else (Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    return find(source, wanted, settings=quiet, random=Random(seed))
