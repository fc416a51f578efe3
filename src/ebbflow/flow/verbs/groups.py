"""Verbs on rows of one key together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ebbflow.errors import Text, place
from ebbflow.flow.grouped import ONE_GROUP, Grouped, aggregated, reduced
from ebbflow.flow.parts import Part, key, part, plain, refuse
from ebbflow.flow.plan import Distinct, TopK
from ebbflow.flow.results import AnyReducer, likely
from ebbflow.flow.verbs.base import Verbs
from ebbflow.record import fields_of
from ebbflow.reducer.row import itself

if TYPE_CHECKING:
    from ebbflow.flow.collection import Collection


class GroupVerbs(Verbs):
    """What is made of rows together: of all, or of those of each key."""

    def distinct(self) -> Collection:
        """Every row once, however often it is there.

        >>> import ebbflow as ef
        >>> ef.Input("words", str).distinct()
        <str: words → distinct>
        """
        return self.with_node(Distinct(parent=self.node, type=self.type, place=place()))

    def group_by(self, /, *fields: Part, **named: Part) -> Grouped:
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

    def reduce(self, reducer: AnyReducer) -> Collection:
        """Keep `reducer(rows)` of all rows up to date: one row `(value,)`, none when there are no
        rows.

        >>> import ebbflow as ef
        >>> ef.Input("words", str).reduce(ef.max())
        <Group(value): words → reduce>
        """
        return self.with_node(reduced(self.node, ONE_GROUP, reducer))

    def agg(self, /, *unnamed: Any, **reducers: AnyReducer) -> Collection:
        """Keep several reducers of all rows up to date: one row, none when there are no rows.

        >>> import ebbflow as ef
        >>> ef.Input("words", str).agg(n=ef.count(), last=ef.max())
        <Group(n, last): words → reduce>
        """
        return self.with_node(aggregated(self.node, ONE_GROUP, unnamed, reducers))

    def top_k(
        self, n: int, *, by: Part | None = None, per: Part | None = None, smallest: bool = False
    ) -> Collection:
        """The `n` rows with the greatest `by`, of all or of each `per`; repeated rows count. Rows
        without fields are compared themselves where no `by` is given.

        >>> import ebbflow as ef
        >>> ef.Input("words", str).top_k(3, by=len)
        <str: words → top_k>
        """
        if isinstance(n, bool) or not isinstance(n, int) or n < 1:
            refuse(f"top_k({n!r}): it gives a positive number of rows", "top_k(1, by=...)")
        if by is None and fields_of(self.type) is not None:
            refuse(
                f"top_k({n}): nothing says by what rows are compared",
                f"top_k({n}, by={likely(self.node)})",
                fields=Text(", ".join(fields_of(self.type) or ())),
            )
        by = itself if by is None else by
        for each in (by, per):
            plain("top_k(by={})", each)
        return self.with_node(TopK(
            parent=self.node, n=n, by=part("top_k(by={})", self.node, by), smallest=smallest,
            key=None if per is None else part("top_k(per={})", self.node, per),
            type=self.type, place=place(),
        ))  # fmt: skip
