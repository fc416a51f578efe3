"""Every verdict that a reducer can have."""

from typing import NamedTuple

import ebbflow as ef


class Hit(NamedTuple):
    page: str
    ms: int


def least(a: int, b: int) -> int:
    return min(a, b)


def lower(acc: int, ms: int) -> object:
    return ef.RECOMPUTE if ms == acc else acc


hits = ef.Input("hits", Hit)
pages = hits.group_by("page")

program = ef.program(
    invertible=pages.reduce(ef.mean("ms")),
    partial=pages.reduce(ef.Reducer(10**6, least, lower, partial=True, name="lowest").on("ms")),
    undeclared=pages.reduce(ef.Reducer(10**6, least, lower, name="lowest").on("ms")),
    tree=pages.reduce(ef.Reducer(10**6, least, merge=least, name="lowest").on("ms")),
    refold=hits.reduce(ef.Reducer(10**6, least, name="lowest").on("ms")),
)
