"""The first rows in an order: `top_k` and `limit`."""

from __future__ import annotations

from typing import Any

from ebbflow.errors import Text, place
from ebbflow.flow.parts import part, plain, refuse
from ebbflow.flow.plan import Node, TopK
from ebbflow.flow.results import likely
from ebbflow.record import fields_of
from ebbflow.reducer.row import itself


def first_rows(
    call: str, node: Node, n: int, offset: int, by: Any, per: Any, *, smallest: bool, order: str
) -> TopK:
    """The node of `top_k` and `limit`. `call` is how the user's call begins, and `order` what it
    calls the part that rows are ordered by.

    >>> import ebbflow as ef
    >>> first_rows("limit(3", ef.Input("words", str).node, 3, 1, len, None, smallest=True,
    ...            order="order").offset
    1
    """
    verb = call.partition("(")[0]
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        refuse(f"{call}): it gives a positive number of rows", f"{verb}(1, {order}=...)")
    if isinstance(offset, bool) or not isinstance(offset, int) or offset < 0:
        refuse(f"{call}, offset={offset!r}): so many rows cannot be left out", "offset=0, or more")
    if by is None and fields_of(node.type) is not None:
        refuse(
            f"{call}): nothing says by what rows are compared",
            f"{call}, {order}={likely(node)})",
            fields=Text(", ".join(fields_of(node.type) or ())),
        )
    by = itself if by is None else by
    for each in (by, per):
        plain(f"{verb}({order}={{}})", each)
    return TopK(
        parent=node, n=n, by=part(f"{verb}({order}={{}})", node, by), smallest=smallest,
        offset=offset, key=None if per is None else part(f"{verb}(per={{}})", node, per),
        type=node.type, place=place(),
    )  # fmt: skip
