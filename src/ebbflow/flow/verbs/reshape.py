"""Verbs that give rows another shape."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ebbflow.flow import pivot, reshape
from ebbflow.flow.grouped import ONE_GROUP, aggregated
from ebbflow.flow.parts import Part, key
from ebbflow.flow.verbs.base import Verbs
from ebbflow.reducer import Reducer
from ebbflow.typevars import T_co

if TYPE_CHECKING:
    from ebbflow.flow.collection import Collection


class ReshapeVerbs(Verbs[T_co]):
    """What gives rows other fields, or makes several of one, or one of several."""

    def with_fields(self, /, **named: Part[T_co]) -> Collection[Any]:
        """Rows of all their fields, and of these; one that is there already is replaced. All are
        made of the row as it was.

        >>> import ebbflow as ef
        >>> from ebbflow.record import record
        >>> orders = ef.Input("orders", record("Order", id=int, price=int))
        >>> orders.with_fields(tax=lambda order: order.price // 5)
        <Order(id, price, tax): orders → map>
        """
        return self.with_node(reshape.extended(self.node, named))

    def rename(self, /, **names: str) -> Collection[Any]:
        """The same rows with other names for some fields: `rename(new="old")`.

        >>> import ebbflow as ef
        >>> from ebbflow.record import record
        >>> ef.Input("orders", record("Order", id=int, price=int)).rename(cost="price")
        <Order(id, cost): orders → map>
        """
        return self.with_node(reshape.renamed(self.node, names))

    def fill_null(self, /, **values: Any) -> Collection[Any]:
        """A value in the place of None, for each of these fields. (COALESCE.)

        >>> import ebbflow as ef
        >>> from ebbflow.record import record
        >>> Sale = record("Sale", city=str, price=int | None)
        >>> view = ef.Input("sales", Sale).fill_null(price=0).run()
        >>> view.step(sales=[Sale("Rome", None)])
        ZSet({Sale(city='Rome', price=0): 1})
        """
        return self.with_node(reshape.filled(self.node, values))

    def explode(
        self, field: str, *, into: str | None = None, position: str | None = None,
        keep_empty: bool = False,
    ) -> Collection[Any]:  # fmt: skip
        """One row for each item of a field that holds a list, a tuple or a set: the item takes the
        field's place. (UNNEST.) `into` is another name for it, `position` a field for where in the
        list it was, from 0. A row without items gives none; with `keep_empty`, one with None.

        >>> import ebbflow as ef
        >>> from ebbflow.record import record
        >>> Post = record("Post", id=int, tags=tuple[str, ...])
        >>> view = ef.Input("posts", Post).explode("tags", into="tag").run()
        >>> view.step(posts=[Post(1, ("new", "old"))])
        ZSet({Post(id=1, tag='new'): 1, Post(id=1, tag='old'): 1})
        """
        return self.with_node(reshape.exploded(self.node, field, into, position, keep_empty))

    def unpivot(self, *fields: str, name: str = "name", value: str = "value") -> Collection[Any]:
        """One row for each of these fields, with its name and its value behind the other fields. A
        value that is None is kept, other than in SQL.

        >>> import ebbflow as ef
        >>> from ebbflow.record import record
        >>> Pay = record("Pay", of=str, q1=int, q2=int)
        >>> view = ef.Input("pay", Pay).unpivot("q1", "q2", name="at").run()
        >>> view.step(pay=[Pay("ann", 3, 4)])
        ZSet({Pay(of='ann', at='q1', value=3): 1, Pay(of='ann', at='q2', value=4): 1})
        """
        return self.with_node(pivot.unpivoted(self.node, fields, name, value))

    def pivot(
        self, on: Part[T_co], values: Iterable[Any] | Mapping[Any, str], *, using: Reducer[T_co],
        per: Part[T_co] | None = None,
    ) -> Collection[Any]:  # fmt: skip
        """One row for each `per`, with a field for each of these values of `on`: `using` of the
        rows that have it. Without `per`, one row of all.

        The values are told beforehand, since fields do not come and go; as a mapping, with the
        names that their fields have. Rows with other values are in no field.

        >>> import ebbflow as ef
        >>> from ebbflow.record import record
        >>> Sale = record("Sale", city=str, year=int, price=int)
        >>> by_year = ef.Input("sales", Sale).pivot(
        ...     "year", {2024: "last", 2025: "this"}, using=ef.sum("price"), per="city")
        >>> by_year.run().step(sales=[Sale("Rome", 2024, 3), Sale("Rome", 2025, 4),
        ...                           Sale("Oslo", 2025, 7)])
        ZSet({Group(city='Rome', last=3, this=4): 1, Group(city='Oslo', last=None, this=7): 1})
        """
        by = ONE_GROUP if per is None else key("pivot(per={})", self.node, (per,), {})
        reducers = pivot.pivoted(self.node, on, values, using, by.fields)
        return self.with_node(aggregated(self.node, by, (), reducers))

    def sample(
        self, fraction: float, *, per: Part[T_co] | None = None, seed: int = 0
    ) -> Collection[T_co]:
        """About this part of the rows, or of the groups `per`: rows with equal `per` are in
        together, or out together. The row (or that part of it) and the seed alone decide, so every
        process draws the same sample, and a removed row was in or out as when it was added.

        >>> import ebbflow as ef
        >>> view = ef.Input("numbers", int).sample(0.25).run()
        >>> len(view.step(numbers=range(1000)))
        263
        """
        return self.with_node(reshape.sampled(self.node, fraction, per, seed))
