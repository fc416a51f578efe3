"""The first rows of each key in an order: alone, with those that tie, and with their numbers.

Two of these are made of other nodes. Rows *tie* with a row at the top when they are of its key and
have the same place in the order; so all that tie are the rows that meet one of the top by both.
Numbers are given to the rows of a key as one sorted list: of the top, so it is short.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ebbflow.errors import Text, place
from ebbflow.flow.parts import Part, field_names, part, plain, refuse, row_with
from ebbflow.flow.plan import FlatMap, Node, Reduce, Semi, TopK
from ebbflow.flow.results import likely
from ebbflow.fn import Fn
from ebbflow.nan import one_nan
from ebbflow.operator.along import with_values
from ebbflow.record import fields_of, record
from ebbflow.reducer.placed import collect
from ebbflow.reducer.row import itself


def top(
    node: Node, call: str, n: int, order: Part | None, per: Part | None, *, smallest: bool,
    ties: bool, number: str | None,
) -> Node:  # fmt: skip
    """The node of `top_k`, with what is behind it where ties or numbers are wanted."""
    found: Node = first_rows(f"{call}({n!r}", node, n, 0, order, per, smallest=smallest)
    assert isinstance(found, TopK)
    key, placed = found.key, found.by
    order = itself if order is None else order
    if ties:
        both = part(f"{call}(order={{}})", node, order if per is None else (per, order))
        found = Semi(
            left=node, right=found, left_key=both, right_key=both, type=node.type, place=place()
        )
    return found if number is None else _numbered(found, call, key, placed, number, smallest)


def first_rows(
    call: str, node: Node, n: int, offset: int, order: Any, per: Any, *, smallest: bool
) -> TopK:
    """The node of `top_k` and `limit`. `call` is how the user's call begins."""
    verb = call.partition("(")[0]
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        refuse(f"{call}): it gives a positive number of rows", f"{verb}(1, order=...)")
    if isinstance(offset, bool) or not isinstance(offset, int) or offset < 0:
        refuse(f"{call}, offset={offset!r}): so many rows cannot be left out", "offset=0, or more")
    if order is None and fields_of(node.type) is not None:
        refuse(
            f"{call}): nothing says by what rows are compared",
            f"{call}, order={likely(node)})",
            fields=Text(", ".join(fields_of(node.type) or ())),
        )
    order = itself if order is None else order
    for each in (order, per):
        plain(f"{verb}(order={{}})", each)
    return TopK(
        parent=node, n=n, by=part(f"{verb}(order={{}})", node, order), smallest=smallest,
        offset=offset, key=None if per is None else part(f"{verb}(per={{}})", node, per),
        type=node.type, place=place(),
    )  # fmt: skip


# ---- numbers ----


def _numbered(
    node: Node, call: str, key: Fn | None, order: Fn, number: str, smallest: bool
) -> FlatMap:
    if not isinstance(number, str):
        refuse(f"{call}(number={number!r}): it is the name of a field", 'number="place"')
    field_names(f"{call}(number={{}})", {number: int})
    row = row_with(f"{call}(number={{!r}})", node, {number: int})
    width = 0 if key is None else 1
    sorted_rows = Reduce(
        parent=node, key=key, width=width, reducer=collect(RowWithPlace(order)), spread=False,
        type=record("Group", **({"key": Any} if width else {}), value=Any), place=place(),
    )  # fmt: skip
    fn = Fn(Numbered(row, smallest), sorted_rows.type, name=number)
    pair = tuple[node.type, int]  # type: ignore[name-defined]
    return FlatMap(parent=sorted_rows, fn=fn, type=row or pair, place=place())


@dataclass(frozen=True)
class RowWithPlace:
    """A row behind its place in the order."""

    order: Fn

    def __call__(self, row: Any) -> Any:
        return one_nan(self.order(row)), row


@dataclass(frozen=True)
class Numbered:
    """The rows of a sorted group, each with its number, from 1 on."""

    type: Any
    smallest: bool

    def __call__(self, group: Any) -> list[Any]:
        rows = [row for _, row in group[-1]]
        numbers = enumerate(rows if self.smallest else reversed(rows), start=1)
        merge = with_values(type(rows[0]) if rows else tuple, self.type)
        return [merge(row, (number,)) for number, row in numbers]
