"""State with versions, by itself."""

from __future__ import annotations

from ebbflow.algebra.order import NATURALS, order_product
from ebbflow.engine.runtime.rounds import VersionedIndex
from ebbflow.flow.plan import Source


def test_differences_that_cancel_where_they_meet_are_not_met() -> None:
    index = VersionedIndex(None, order_product(NATURALS), False, Source(name="rows"))
    index.add((0,), {"key": [("row", 1), ("other", 1)]})
    index.add((1,), {"key": [("row", -1)]})
    assert dict(index.meeting(["key"], (0,))) == {
        (0,): {"key": {"row": 1, "other": 1}},
        (1,): {"key": {"row": -1}},
    }
    assert dict(index.meeting(["key"], (2,))) == {(2,): {"key": {"other": 1}}}
