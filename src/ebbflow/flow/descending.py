"""A descending order, wherever an order is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ebbflow.fn import Fn
from ebbflow.keywords import checked
from ebbflow.ordering import Reversed


@dataclass(frozen=True)
class Descending:
    """A part of a row in the reverse of its order; see `desc`."""

    part: Any

    def __call__(self, row: Any) -> Reversed:
        return Reversed(Fn.of(self.part)(row))

    def of(self, part: Fn) -> Fn:
        """The part, found already, in the reverse of its order."""
        made = part.then(Fn.of(Reversed, Any))
        made.name = f"desc({part.text})"
        return made

    def __repr__(self) -> str:
        return f"desc({self.part!r})"


@checked
def desc(part: Any) -> Descending:
    """A part of a row in descending order: the greatest first, also among texts, and beside parts
    that ascend. It goes wherever an order is asked for: `limit(order=...)`, `top_k(order=...)`.

    >>> import ebbflow as ef
    >>> from ebbflow.record import record
    >>> Sale = record("Sale", city=str, price=int)
    >>> view = ef.Input("sales", Sale).limit(2, order=("city", ef.desc("price"))).run()
    >>> view.step(sales=[Sale("Rome", 5), Sale("Oslo", 1), Sale("Oslo", 3), Sale("Bern", 2)])
    ZSet({Sale(city='Bern', price=2): 1, Sale(city='Oslo', price=3): 1})
    """
    return Descending(part)
