"""Programs behind inputs that put late rows aside, random changes for them, and their meaning."""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

import ebbflow as ef
from ebbflow.engine.batch import evaluate
from ebbflow.zset import ZSet


class Hit(NamedTuple):
    """A visit to a page."""

    page: str
    at: int
    size: int


LATENESS = 7
HITS = ef.Input("hits", Hit, time="at", lateness=LATENESS)
FREE = ef.Input("hits", Hit)
"""The same input, which lets everything in."""


def program(hits: Any) -> Any:
    """What is computed of hits: all that forgets something, and what is behind it."""
    per_ten = hits.tumbling("at", 10).group_by("page", "window_end")
    counts = per_ten.agg(n=ef.count(), total=ef.sum("size"), best=ef.max("size"))
    sliding = hits.filter(lambda hit: hit.size > 0).sliding("at", 12, 4)
    visits = hits.session("at", 3, per="page")
    renamed = hits.select("page", when="at").tumbling("when", 10)
    return ef.program(
        counts=counts,
        pages=hits.tumbling("at", 10).group_by("window_start").agg(n=ef.count_distinct("page")),
        sums=sliding.group_by("window_end").agg(total=ef.sum("size")),
        medians=sliding.group_by("window_start", "page").agg(middle=ef.median("size")),
        visits=visits.group_by("page", "window_start", "window_end").agg(n=ef.count()),
        listed=visits.group_by("page", "window_start", "window_end").agg(all=ef.collect("size")),
        best=counts.top_k(1, order="n", per="window_end"),
        seen=renamed.select("page", "window_end").distinct(),
        both=(hits + hits).tumbling("at", 10).group_by("window_end").agg(n=ef.count()),
        total=counts.group_by("page").agg(n=ef.sum("n")),
    )


class Feed:
    """Changes as they come: most of rows near to now, some late, some that take rows back; and what
    an input with a lateness lets in, said once more, in the plainest way."""

    def __init__(self, seed: Any, most: int = 6) -> None:
        self.dice, self.most = Random(seed), most
        self.now = self.count = 0
        self.latest: int | None = None
        self.let_in: ZSet[Any] = ZSet()
        self.given: list[Hit] = []

    def change(self) -> ZSet[Any]:
        """The next change. What is taken back was given once; perhaps it was late, or is by now."""
        dice, pairs = self.dice, list[tuple[Any, int]]()
        self.now += dice.randint(0, 3)
        closing = None if self.latest is None else self.latest - LATENESS
        for _ in range(dice.randint(1, self.most)):
            old = [hit for hit in self.given if self.let_in.weight(hit) > 0]
            if closing is not None:
                old += [hit for hit in self.given if hit.at < closing]
            if old and dice.random() < 0.25:
                row, weight = dice.choice(old), -1
                if any(pair[0] == row for pair in pairs):
                    continue
            else:
                at = max(0, self.now - dice.choice([0, 0, 1, 2, 3, 6, 9, 15]))
                row, weight = Hit(dice.choice("ab"), at, dice.randrange(4)), 1
                self.given = [*self.given, row][-60:]
            pairs.append((row, weight))
        change = ZSet(pairs)
        late = [] if closing is None else [row for row in change if row.at < closing]
        inside = ZSet({row: n for row, n in change.items() if row not in late})
        self.count += sum(abs(change.weight(row)) for row in late)
        self.let_in += inside
        times = [row.at for row, _ in inside.items()]
        self.latest = max([*times, *([] if self.latest is None else [self.latest])], default=None)
        return change

    def right(self) -> dict[str, ZSet[Any]]:
        """The outputs, from scratch, of all that was ever let in."""
        return evaluate(program(FREE).plan, {"hits": self.let_in})
