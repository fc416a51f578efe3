"""Operators that look at the rows of one key together."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any

from ebbflow.chain import grouping
from ebbflow.change import BAG
from ebbflow.errors import place
from ebbflow.operator.operator import Operator
from ebbflow.operator.relation import Bag
from ebbflow.state.index import Grouped
from ebbflow.zset import trusted


class ByKey(Operator[Bag, Bag, Bag, Bag]):
    """An operator on the rows of each key; without a key, on all rows.

    `owner` is to blame when the key raises.
    """

    input = BAG
    output = BAG

    def __init__(self, key: Any, owner: Any) -> None:
        self.key = key
        self.owner = owner
        self.created = place()

    @abstractmethod
    def update(self, state: Any, change: Any) -> dict[Any, int]:
        """Take a change in, and give the change of the output."""

    # ---- everything below is written with this ----

    def step(self, state: Any, change: Bag) -> tuple[Any, Bag]:
        return state, trusted(self.update(state, change))

    @cached_property
    def by_key(self) -> Callable[[Any], Grouped]:
        """The generated loop that groups rows by key."""
        return grouping(self.key, None, self.owner)

    def keys(self, change: Bag) -> set[Any]:
        """The keys whose state a step with this change touches."""
        return set(self.by_key(change.items()))
