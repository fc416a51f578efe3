"""Verbs on rows of one key together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from ebbflow.errors import place
from ebbflow.flow.grouped import ONE_GROUP, Grouped, aggregated, reduced
from ebbflow.flow.parts import Part, key, refuse
from ebbflow.flow.plan import Distinct
from ebbflow.flow.top import first_rows, top
from ebbflow.flow.verbs.base import Verbs
from ebbflow.reducer import Reducer
from ebbflow.typevars import T_co

if TYPE_CHECKING:
    from ebbflow.flow.collection import Collection


class GroupVerbs(Verbs[T_co]):
    """What is made of rows together: of all, or of those of each key."""

    def distinct(self) -> Collection[T_co]:
        """Every row once, however often it is there.

        >>> import ebbflow as ef
        >>> ef.Input("words", str).distinct()
        <str: words → distinct>
        """
        return self.with_node(Distinct(parent=self.node, type=self.type, place=place()))

    def group_by(self, /, *fields: Part[T_co], **named: Part[T_co]) -> Grouped[T_co]:
        """The rows of each key together, to be reduced.

        The key's parts become fields: those named here, or `key` for one function without a name.

        >>> import ebbflow as ef
        >>> ef.Input("words", str).group_by(len).reduce(ef.count()).type._fields
        ('key', 'value')
        """
        if not fields and not named:
            refuse(
                "group_by(): no key is given",
                "a field or a function; for one group of all rows: .agg(n=ebbflow.count())",
            )
        return Grouped(self, key("group_by({})", self.node, fields, named))

    def reduce(self, reducer: Reducer[T_co], *, type: Any = None) -> Collection[Any]:
        """Keep `reducer(rows)` of all rows up to date: one row `(value,)`, none when there are no
        rows. `type` is that of the value, where the code of the reducer does not tell.

        >>> import ebbflow as ef
        >>> ef.Input("words", str).reduce(ef.max())
        <Group(value): words → reduce>
        """
        return self.with_node(reduced(self.node, ONE_GROUP, reducer, type))

    def agg(self, /, *unnamed: Any, **reducers: Reducer[T_co]) -> Collection[Any]:
        """Keep several reducers of all rows up to date: one row, none when there are no rows.

        >>> import ebbflow as ef
        >>> ef.Input("words", str).agg(n=ef.count(), last=ef.max())
        <Group(n, last): words → reduce>
        """
        return self.with_node(aggregated(self.node, ONE_GROUP, unnamed, reducers))

    @overload
    def top_k(
        self, n: int, *, order: Part[T_co] | None = None, per: Part[T_co] | None = None,
        smallest: bool = False, ties: bool = False, number: None = None,
    ) -> Collection[T_co]: ...  # fmt: skip
    @overload
    def top_k(
        self, n: int, *, order: Part[T_co] | None = None, per: Part[T_co] | None = None,
        smallest: bool = False, ties: bool = False, number: str,
    ) -> Collection[Any]: ...  # fmt: skip
    def top_k(
        self, n: int, *, order: Any = None, per: Any = None, smallest: bool = False,
        ties: bool = False, number: str | None = None,
    ) -> Collection[Any]:  # fmt: skip
        """The `n` rows at the top of an order, those with the greatest `order`: of all, or of each
        `per`; repeated rows count. Rows without fields need no order: they are compared.

        Rows at the same place of the order are told apart by comparing the rows. With `ties`, the
        result has every row that ties with the last. (FETCH FIRST n ROWS WITH TIES.) With
        `number="place"` a field of that name has the number of the row, the best being 1.

        >>> import ebbflow as ef
        >>> ef.Input("words", str).top_k(3, order=len)
        <str: words → top_k>
        >>> view = ef.Input("words", str).top_k(1, order=len, ties=True).run()
        >>> view.step(words=["ebb", "sea", "to"])
        ZSet({'ebb': 1, 'sea': 1})
        """
        given: dict[str, Any] = {"smallest": smallest, "ties": ties, "number": number}
        return self.with_node(top(self.node, "top_k", n, order, per, **given))

    @overload
    def last(
        self, n: int = 1, *, order: Part[T_co], per: Part[T_co] | None = None, number: None = None
    ) -> Collection[T_co]: ...
    @overload
    def last(
        self, n: int = 1, *, order: Part[T_co], per: Part[T_co] | None = None, number: str
    ) -> Collection[Any]: ...
    def last(
        self, n: int = 1, *, order: Any, per: Any = None, number: str | None = None
    ) -> Collection[Any]:
        """The last `n` rows of an order, of all or of each `per`: `top_k` for what comes
        one after the other. With `number="place"` rows are numbered, the last being 1.

        >>> import ebbflow as ef
        >>> from ebbflow.record import record
        >>> Hit = record("Hit", user=str, at=int)
        >>> view = ef.Input("hits", Hit).last(2, order="at", per="user").run()
        >>> view.step(hits=[Hit("ann", 3), Hit("ann", 9), Hit("ann", 5)])
        ZSet({Hit(user='ann', at=9): 1, Hit(user='ann', at=5): 1})
        """
        given: dict[str, Any] = {"smallest": False, "ties": False, "number": number}
        return self.with_node(top(self.node, "last", n, order, per, **given))

    def limit(
        self, n: int, *, order: Part[T_co] | None = None, offset: int = 0,
        per: Part[T_co] | None = None, descending: bool = False,
    ) -> Collection[T_co]:  # fmt: skip
        """The first `n` rows in this order, behind the first `offset`: of all, or of each `per`;
        repeated rows count. (ORDER BY, LIMIT, OFFSET.) The order ascends unless it is `descending`,
        or a part of it is: `order=("city", ef.desc("price"))`. None is before all; the rows
        themselves decide between those with an equal place, so it is the same ones every time.

        >>> import ebbflow as ef
        >>> view = ef.Input("words", str).limit(2, order=len, offset=1).run()
        >>> view.step(words=["flow", "a", "ebbing", "sea"])
        ZSet({'sea': 1, 'flow': 1})
        """
        return self.with_node(first_rows(
            f"limit({n!r}", self.node, n, offset, order, per, smallest=not descending
        ))  # fmt: skip
