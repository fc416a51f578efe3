"""Verbs on two collections whose rows meet by their places in an order."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, overload

from ebbflow.flow import aligned
from ebbflow.flow.parts import Part
from ebbflow.flow.verbs.base import Verbs
from ebbflow.typevars import T_co, U, X

if TYPE_CHECKING:
    from ebbflow.flow.collection import Collection


class AlignedVerbs(Verbs[T_co]):
    """What is made of the rows of two collections in an order. A row that comes late, on either
    side, changes exactly what it would have changed had it been there in time."""

    @overload
    def asof_join(
        self, other: Collection[U], on: Part[T_co | U] | None = None, *,
        left_on: Part[T_co] | None = None, right_on: Part[U] | None = None,
        order: Part[T_co | U] | None = None, left_order: Part[T_co] | None = None,
        right_order: Part[U] | None = None, direction: str = "backward", tolerance: Any = None,
        allow_exact: bool = True, how: str = "left", select: Callable[[T_co, U], X],
        type: Any = None,
    ) -> Collection[X]: ...  # fmt: skip
    @overload
    def asof_join(
        self, other: Collection[U], on: Part[T_co | U] | None = None, *,
        left_on: Part[T_co] | None = None, right_on: Part[U] | None = None,
        order: Part[T_co | U] | None = None, left_order: Part[T_co] | None = None,
        right_order: Part[U] | None = None, direction: str = "backward", tolerance: Any = None,
        allow_exact: bool = True, how: str = "left", select: None = None,
        suffixes: tuple[str, str] | None = None,
    ) -> Collection[Any]: ...  # fmt: skip
    def asof_join(
        self, other: Any, on: Any = None, *, left_on: Any = None, right_on: Any = None,
        order: Any = None, left_order: Any = None, right_order: Any = None,
        direction: str = "backward", tolerance: Any = None, allow_exact: bool = True,
        how: str = "left", select: Any = None, type: Any = None, suffixes: Any = None,
    ) -> Collection[Any]:  # fmt: skip
        """Every row with the one row of `other` that was there as of its place in the order: of the
        same key, the last whose place is not behind its own. (ASOF JOIN, `merge_asof`.)

        `direction` "forward" is the first whose place is not before its own, and "nearest" the
        nearer of the two; where both are as far, the one before. It is at most `tolerance` away,
        and without `allow_exact` at another place. Of several rows at one place the last is taken
        backward and the first forward, in the order of the rows themselves; a row that is there
        twice is taken once. A row whose place is None meets nothing.

        Rows that find none are kept with None for the fields of the other side; with `how="inner"`
        they are left out. Rows are merged as `join` merges them, and with `order="at"` there is one
        field `at`, that of the left. Without a key, all rows of `other` are looked at.

        >>> import ebbflow as ef
        >>> from ebbflow.record import record
        >>> Trade = record("Trade", stock=str, at=int, size=int)
        >>> Quote = record("Quote", stock=str, at=int, bid=int)
        >>> trades, quotes = ef.Input("trades", Trade), ef.Input("quotes", Quote)
        >>> view = trades.asof_join(quotes, on="stock", order="at").run()
        >>> view.step(trades=[Trade("a", 5, 10)], quotes=[Quote("a", 1, 70), Quote("a", 9, 73)])
        ZSet({TradeQuote(stock='a', at=5, size=10, bid=70): 1})
        >>> view.step(quotes=[Quote("a", 4, 71)])
        ZSet({TradeQuote(stock='a', at=5, size=10, bid=70): -1, TradeQuote(stock='a', at=5, \
size=10, bid=71): 1})
        """
        keys, orders = (on, left_on, right_on), (order, left_order, right_order)
        given = (keys, orders, direction, tolerance, allow_exact, how, select, type, suffixes)
        return self._with("asof_join", other, aligned.asof_joined, *given)

    @overload
    def interval_join(
        self, other: Collection[U], on: Part[T_co | U] | None = None, *, low: Any, high: Any,
        left_on: Part[T_co] | None = None, right_on: Part[U] | None = None,
        order: Part[T_co | U] | None = None, left_order: Part[T_co] | None = None,
        right_order: Part[U] | None = None, how: Literal["semi", "anti"],
    ) -> Collection[T_co]: ...  # fmt: skip
    @overload
    def interval_join(
        self, other: Collection[U], on: Part[T_co | U] | None = None, *, low: Any, high: Any,
        left_on: Part[T_co] | None = None, right_on: Part[U] | None = None,
        order: Part[T_co | U] | None = None, left_order: Part[T_co] | None = None,
        right_order: Part[U] | None = None, how: str = "inner", select: Callable[[T_co, U], X],
        type: Any = None,
    ) -> Collection[X]: ...  # fmt: skip
    @overload
    def interval_join(
        self, other: Collection[U], on: Part[T_co | U] | None = None, *, low: Any, high: Any,
        left_on: Part[T_co] | None = None, right_on: Part[U] | None = None,
        order: Part[T_co | U] | None = None, left_order: Part[T_co] | None = None,
        right_order: Part[U] | None = None, how: str = "inner", select: None = None,
        suffixes: tuple[str, str] | None = None,
    ) -> Collection[Any]: ...  # fmt: skip
    def interval_join(
        self, other: Any, on: Any = None, *, low: Any, high: Any, left_on: Any = None,
        right_on: Any = None, order: Any = None, left_order: Any = None, right_order: Any = None,
        how: str = "inner", select: Any = None, type: Any = None, suffixes: Any = None,
    ) -> Collection[Any]:  # fmt: skip
        """Every row with every row of `other` that has the same key and is near it in the order:
        `low <= right place - left place <= high`.

        `how` is "inner", "left" (rows that meet nothing are kept, with None for the other side),
        "semi" or "anti" (the rows of the left that meet something, or nothing). Rows are merged as
        `join` merges them; a row whose place is None meets nothing.

        >>> import ebbflow as ef
        >>> from ebbflow.record import record
        >>> Ad, Buy = record("Ad", user=str, shown=int), record("Buy", user=str, bought=int)
        >>> ads, buys = ef.Input("ads", Ad), ef.Input("buys", Buy)
        >>> soon = ads.interval_join(buys, on="user", left_order="shown", right_order="bought",
        ...                          low=0, high=60)
        >>> soon.run().step(ads=[Ad("ann", 100)], buys=[Buy("ann", 130), Buy("ann", 170)])
        ZSet({AdBuy(user='ann', shown=100, bought=130): 1})
        """
        keys, orders = (on, left_on, right_on), (order, left_order, right_order)
        given = (keys, orders, low, high, how, select, type, suffixes)
        return self._with("interval_join", other, aligned.interval_joined, *given)
