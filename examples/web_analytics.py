"""Web analytics that can forget: visits, bounce rates and a sales funnel.

Page views of one visitor, each within thirty minutes of the last, are a visit. A visit of one page
is a bounce, and `where` counts those beside all visits in the same pass. The funnel is a chain of
semi joins: who paid among those who filled a cart among those who saw a product. When a visitor
asks to be forgotten, or turns out to be a robot, every number is what it would have been without
them.

A dashboard reads the changes of the funnel with `async for`. `astep` waits until it has room for
another one; `step` would not wait, and a slow dashboard would get fewer and larger changes.

    python examples/web_analytics.py
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import ebbflow as ef


class Hit(NamedTuple):
    visitor: str
    minute: int
    page: str


class Robot(NamedTuple):
    visitor: str


hits = ef.Input("hits", Hit)
robots = ef.Input("robots", Robot)

human = hits.join(robots, on="visitor", how="anti")
visits = (
    human.session("minute", 30, per="visitor")
    .group_by("visitor", "window_start")
    .agg(
        pages=ef.count(),
        entry=ef.first("page", order="minute"),
        exit=ef.last("page", order="minute"),
    )
)
bounces = visits.group_by("entry").agg(
    visits=ef.count(),
    bounces=ef.count().where(lambda visit: visit.pages == 1),
    left_at=ef.mode("exit"),
)


def saw(page: str) -> ef.Collection:
    return human.filter(lambda hit: hit.page == page).select("visitor").distinct()


looked = saw("product")
filled = saw("cart").join(looked, on="visitor", how="semi")
paid = saw("thanks").join(filled, on="visitor", how="semi")
steps = (
    looked.map(lambda _: "1 saw a product", type=str)
    + filled.map(lambda _: "2 filled a cart", type=str)
    + paid.map(lambda _: "3 paid", type=str)
)
program = ef.program(bounces=bounces, funnel=steps.group_by(lambda step: step).reduce(ef.count()))

start = {
    "hits": [
        Hit("v1", 0, "home"),
        Hit("v1", 4, "product"),
        Hit("v1", 9, "cart"),
        Hit("v1", 12, "thanks"),
        Hit("v1", 90, "home"),
        Hit("v2", 3, "home"),
        Hit("v3", 5, "product"),
        Hit("v3", 7, "cart"),
        Hit("v4", 8, "thanks"),
    ],
    "robots": [Robot("crawler")],
}


story = {
    "the first hits": start,
    "v3 pays": {"hits": [Hit("v3", 20, "thanks")]},
    "v1 asks to be forgotten": {"hits": {hit: -1 for hit in start["hits"] if hit.visitor == "v1"}},
    "v3 is a robot": {"robots": [Robot("v3")]},
}


async def dashboard(changes: AsyncIterator[ef.ZSet]) -> None:
    titles = iter(story)
    async for change in changes:
        print(next(titles))
        before, after = dict(change.negative()), dict(change.positive())
        for step in sorted({*before, *after}):
            print(f"  {step}: {before.get(step, 0)} → {after.get(step, 0)}")


async def play(view: Any) -> None:
    watching = asyncio.create_task(dashboard(view["funnel"].changes(limit=1)))
    for change in story.values():
        await view.astep(change)
    view.close()
    await watching


def main() -> None:
    asyncio.run(play(program.run()))


if __name__ == "__main__":
    main()
