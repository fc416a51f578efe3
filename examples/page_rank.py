"""Which pages matter, by the pages that link to them. (PageRank, in ten rounds.)

In every round a page gives 85% of its rank away, in equal shares to the pages it links to, and gets
15% of one page's rank for nothing. This loop has no end of its own: it stops after `rounds` rounds.

The ranks are whole numbers, in millionths. Rounding is the same wherever it happens, so the view is
exactly what computing it again would give, digit by digit, and where a share did not change nothing
is sent on. With floats, sums in another order would differ in their last digits, and all of these
would travel through the rounds.

    python examples/page_rank.py
"""

from __future__ import annotations

from typing import NamedTuple

import ebbflow as ef

ROUNDS = 10
ONE = 1_000_000


class Link(NamedTuple):
    page: str
    to: str


class Rank(NamedTuple):
    page: str
    rank: int


class Share(NamedTuple):
    page: str
    to: str
    links: int


def passed_on(rank: Rank, share: Share) -> Rank:
    return Rank(share.to, rank.rank * 85 // (100 * share.links))


links = ef.Input("links", Link)

distinct_links = links.distinct()
pages = distinct_links.flat_map(lambda link: [link.page, link.to], type=str).distinct()
outgoing = distinct_links.group_by("page").agg(links=ef.count())
shares = distinct_links.join(outgoing, on="page").map(lambda row: Share(*row))
base = pages.map(lambda page: Rank(page, ONE * 15 // 100))


def one_round(ranks: ef.Collection) -> ef.Collection:
    given = base + ranks.join(shares, on="page", select=passed_on)
    return given.group_by("page").agg(rank=ef.sum("rank"))


def ranked(rounds: int) -> ef.Collection:
    return pages.map(lambda page: Rank(page, ONE)).iterate(one_round, rounds=rounds)


ranks = ranked(ROUNDS)
program = ef.program(ranks=ranks, best=ranks.top_k(3, order="rank"))

start = {
    "links": [
        Link("home", "news"),
        Link("home", "shop"),
        Link("news", "home"),
        Link("shop", "home"),
        Link("shop", "help"),
        Link("help", "shop"),
        Link("blog", "home"),
    ]
}


def main() -> None:
    view = program.run()

    def show(title: str, changes: dict[str, ef.ZSet]) -> None:
        before = {row.page: row.rank for row in changes["ranks"].negative()}
        print(title)
        for row in sorted(changes["ranks"].positive(), key=lambda row: -row.rank):
            was = f", was {before[row.page] / ONE:.3f}" if row.page in before else ""
            print(f"  {row.page:<5}{row.rank / ONE:.3f}{was}")

    show("the site", view.step(start))
    show("the blog links to the shop, not to the home page",
         view.step(links={Link("blog", "home"): -1, Link("blog", "shop"): 1}))  # fmt: skip
    show("the blog is closed", view.input("links").remove(Link("blog", "shop")))
    print("best:", *(row.page for row in sorted(view["best"].value, key=lambda row: -row.rank)))


if __name__ == "__main__":
    main()
