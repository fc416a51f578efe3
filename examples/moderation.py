"""A moderation queue: the reported posts that most need a look, worst first.

A report stays in the queue until someone acts on its post (an anti join with the actions), and
comes back when the action is revoked on appeal. Ten reports by one angry user count once:
`count_distinct` of the reporters. The queue shows three posts; behind them `top_k` keeps the
others in order, so the next one moves up when a post is dealt with.

    python examples/moderation.py
"""

from __future__ import annotations

from typing import Any, NamedTuple

import ebbflow as ef

SEVERITY = {"spam": 1, "insult": 2, "threat": 5}


class Post(NamedTuple):
    id: int
    author: str
    text: str


class Report(NamedTuple):
    post: int
    reporter: str
    reason: str


class Action(NamedTuple):
    post: int
    verdict: str


def severity(report: Any) -> int:
    return SEVERITY.get(report.reason, 0)


posts = ef.Input("posts", Post, key="id")
reports = ef.Input("reports", Report)
actions = ef.Input("actions", Action)

pending = reports.join(actions, on="post", how="anti").join(posts, left_on="post", right_on="id")
items = pending.group_by("post", "text").agg(
    severity=ef.max(severity),
    reporters=ef.count_distinct("reporter"),
    reason=ef.mode("reason"),
)
program = ef.program(
    queue=items.top_k(3, order=lambda item: (item.severity, item.reporters)),
    backlog=items.group_by("severity").agg(posts=ef.count()),
    handled=posts.join(actions, left_on="id", right_on="post", how="semi"),
)

start = {
    "posts": [
        Post(1, "ann", "buy gold"),
        Post(2, "bob", "you fool"),
        Post(3, "cat", "i will find you"),
        Post(4, "dan", "cheap watches"),
        Post(9, "dan", "cheap chairs"),
    ],
    "reports": [
        Report(1, "eve", "spam"),
        Report(2, "eve", "insult"),
        Report(2, "fay", "spam"),
        Report(3, "gus", "threat"),
        Report(4, "eve", "spam"),
        Report(4, "eve", "spam"),
        Report(4, "gus", "spam"),
        Report(9, "gus", "spam"),
    ],
    "actions": [Action(9, "removed")],
}


def main() -> None:
    view = program.run()

    def show(what: str) -> None:
        print(what)
        urgent = lambda item: (-item.severity, -item.reporters)
        for item in sorted(view["queue"].value, key=urgent):
            print(f"  {item.severity} {item.text:<16}{item.reason}, reporters: {item.reporters}")

    view.step(start)
    show("the queue")
    view.input("actions").add(Action(3, "removed"))
    show("the threat is removed: the next post moves up")
    view.input("reports").add(*[Report(1, "eve", "spam")] * 5)
    show("eve reports the gold five times more: nothing moves")
    view.step(posts=[Post(5, "hal", "hello")], reports=[Report(5, "ivy", "insult")])
    show("a new post, reported at once")
    view.input("actions").remove(Action(3, "removed"))
    show("the author appeals: the action is taken back")
    view.input("reports").remove(Report(3, "gus", "threat"))
    show("and gus withdraws his report")
    backlog = sorted(view["backlog"].value, reverse=True)
    print("backlog by severity:", ", ".join(f"{n} of {level}" for level, n in backlog))


if __name__ == "__main__":
    main()
