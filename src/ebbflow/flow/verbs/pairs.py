"""Verbs on two collections."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, NoReturn, overload

from ebbflow.flow import joins
from ebbflow.flow.parts import Part
from ebbflow.flow.verbs.base import Verbs, no_collection
from ebbflow.typevars import T_co, U, X

if TYPE_CHECKING:
    from ebbflow.flow.collection import Collection


class PairVerbs(Verbs[T_co]):
    """What is made of the rows of two collections."""

    @overload
    def join(
        self, other: Collection[U], on: Part[T_co | U] | None = None, *,
        left_on: Part[T_co] | None = None, right_on: Part[U] | None = None,
        how: Literal["semi", "anti"], where: Any = None,
    ) -> Collection[T_co]: ...  # fmt: skip
    @overload
    def join(
        self, other: Collection[U], on: Part[T_co | U] | None = None, *,
        left_on: Part[T_co] | None = None, right_on: Part[U] | None = None, how: str = "inner",
        select: Callable[[T_co, U], X], type: Any = None, where: Any = None,
    ) -> Collection[X]: ...  # fmt: skip
    @overload
    def join(
        self, other: Collection[U], on: Part[T_co | U] | None = None, *,
        left_on: Part[T_co] | None = None, right_on: Part[U] | None = None, how: str = "inner",
        select: None = None, suffixes: tuple[str, str] | None = None, where: Any = None,
    ) -> Collection[Any]: ...  # fmt: skip
    def join(
        self, other: Any, on: Any = None, *, left_on: Any = None, right_on: Any = None,
        how: str = "inner", select: Any = None, type: Any = None, suffixes: Any = None,
        where: Any = None,
    ) -> Collection[Any]:  # fmt: skip
        """Every row with every row of `other` that has the same key.

        `on` is a field of both, several in a tuple, or a function of a row of either; or give the
        sides different keys, `left_on` and `right_on`. A merged row has the fields of the left,
        then those of the right; a key field that has the same name on both sides is there once.
        Other fields that both sides have are told apart by `suffixes`, such as `("", "_right")`.
        Where fields are not known, it is the pair. Or say how: `select=lambda left, right: ...`.

        `how` is "inner", "left", "right" or "full" (the rows that meet nothing are kept, with None
        for the fields of the other side, or for the other row of `select`); "semi" and "anti" give
        the rows of the left that meet something, or nothing.

        `where` asks for inequalities as well: `ef.lt("at", "end")` and its like (`le`, `gt`, `ge`,
        `ne`, `between`), several in a tuple; then there need be no key. Rows are kept in the order
        of what is compared, and a changed row costs the rows that it meets.

        Keys are equal as Python says, so a key that is None meets None, other than in SQL.

        >>> import ebbflow as ef
        >>> from ebbflow.record import record
        >>> orders = ef.Input("orders", record("Order", id=int, customer=str))
        >>> people = ef.Input("people", record("Person", customer=str, city=str))
        >>> orders.join(people, on="customer", how="left")
        <OrderPerson(id, customer, city): (orders, people) → concat>
        """
        given = (on, left_on, right_on, how, select, type, suffixes, where)
        return self._with("join", other, joins.joined, *given)

    @overload
    def cross(
        self, other: Collection[U], *, select: Callable[[T_co, U], X], type: Any = None
    ) -> Collection[X]: ...
    @overload
    def cross(
        self, other: Collection[U], *, select: None = None,
        suffixes: tuple[str, str] | None = None,
    ) -> Collection[Any]: ...  # fmt: skip
    def cross(
        self, other: Any, *, select: Any = None, type: Any = None, suffixes: Any = None
    ) -> Collection[Any]:
        """Every row with every row of `other`.

        >>> import ebbflow as ef
        >>> ef.Input("words", str).cross(ef.Input("numbers", int)).type
        tuple[str, int]
        """
        return self._with("cross", other, joins.crossed, select, type, suffixes)

    def __add__(self, other: Collection[U]) -> Collection[T_co | U]:
        """The rows of both, each as often as in both together. (UNION ALL.)"""
        return self._with("+", other, joins.concatenated, 1, "a + b")

    def __sub__(self, other: Collection[U]) -> Collection[T_co | U]:
        """The rows with those of `other` taken away, each as often as it is there.

        This is the difference of Z-sets: what `other` has more often then has a negative weight.
        `except_` has the meaning of sets.
        """
        return self._with("-", other, joins.concatenated, -1, "a - b")

    def __neg__(self) -> Collection[T_co]:
        """The rows with their weights negated: `a + -b` is `a - b`."""
        return self.with_node(joins.negated(self.node))

    def __radd__(self, other: object) -> NoReturn:
        no_collection("+", other)

    def __rsub__(self, other: object) -> NoReturn:
        no_collection("-", other)

    def union(self, other: Collection[U]) -> Collection[T_co | U]:
        """The rows that are in either, every one once.

        >>> import ebbflow as ef
        >>> ef.Input("a", int).union(ef.Input("b", int))
        <int: (a, b) → concat → distinct>
        """
        return self._with("union", other, joins.united)

    def intersect(self, other: Collection[Any]) -> Collection[T_co]:
        """The rows that are in both, every one once.

        >>> import ebbflow as ef
        >>> ef.Input("a", int).intersect(ef.Input("b", int))
        <int: (a, b) → semi>
        """
        return self._with("intersect", other, joins.compared, "intersect", False)

    def except_(self, other: Collection[Any]) -> Collection[T_co]:
        """The rows that are not in `other`, every one once.

        >>> import ebbflow as ef
        >>> ef.Input("a", int).except_(ef.Input("b", int))
        <int: (a, b) → anti>
        """
        return self._with("except_", other, joins.compared, "except_", True)
