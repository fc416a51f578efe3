"""What all verbs of collections are written with."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, NoReturn

from ebbflow.flow.grouped import NEXT, Grouped
from ebbflow.flow.parts import refuse
from ebbflow.flow.plan import Node
from ebbflow.public import PublicByName
from ebbflow.typevars import T_co

if TYPE_CHECKING:
    from ebbflow.flow.collection import Collection


class Verbs(PublicByName, Generic[T_co]):
    """Verbs of a collection: each makes one node of the plan, and gives the collection of it."""

    node: Node

    @property
    def type(self) -> Any:
        """The type of the rows."""
        return self.node.type

    def with_node(self, node: Node) -> Collection[Any]:
        """A collection of what a node gives."""
        raise NotImplementedError

    def _with(
        self, call: str, other: Any, make: Callable[..., Node], *given: Any
    ) -> Collection[Any]:
        """What `make` gives for both nodes, and what else was given."""
        if not isinstance(other, Verbs):
            no_collection(call, other)
        return self.with_node(make(self.node, other.node, *given))


def no_collection(call: str, other: object, what: str = "the other side") -> NoReturn:
    """Refuse an argument that is no collection."""
    if isinstance(other, Grouped):
        refuse(f"{call}: group_by(...) alone is not a collection yet", NEXT)
    remedy = "an Input or what is made of one; rows themselves come in by view.step(...)"
    if other == 0:
        remedy = "functools.reduce(operator.add, collections), which starts with no 0"
    of_type = f"is of type {type(other).__name__}"
    refuse(f"{call}: {what} must be a collection, and {of_type}", remedy, given=other)
