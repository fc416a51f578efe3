"""Packages that depend on packages: who is affected by an advisory. (Transitive closure.)

A package needs what it says, and what that needs, and so on: `needs` joined with itself until no
round adds a pair. The same bad package can be reached in several ways; a pair is there once, and
an upgrade that removes one way of several helps nobody: the view says so by saying nothing. Two
packages that need each other both need themselves, until one of them thinks better of it.
Leaf packages are all names that occur, except those that need something.

The mail robot reads changes with `async for`. It may fall behind: with room for one change only,
what happens meanwhile is added up, and of what came and went it never hears.

    python examples/packages.py
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import NamedTuple

import ebbflow as ef


class Needs(NamedTuple):
    package: str
    needs: str


class Advisory(NamedTuple):
    id: str
    package: str
    severity: int


def chained(near: Needs, far: Needs) -> Needs:
    return Needs(near.package, far.needs)


def both_names(needs: Needs) -> tuple[str, str]:
    return needs.package, needs.needs


needs = ef.Input("needs", Needs)
advisories = ef.Input("advisories", Advisory, key="id")


def one_step_more(known: ef.Collection) -> ef.Collection:
    return known.union(known.join(needs, left_on="needs", right_on="package", select=chained))


closure = needs.iterate(one_step_more)
affected = closure.join(
    advisories, left_on="needs", right_on="package", select=lambda r, a: (r.package, a.id)
)
program = ef.program(
    closure=closure,
    affected=affected,
    dependents=needs.group_by("needs").agg(n=ef.count(), who=ef.collect("package")),
    leaves=needs.flat_map(both_names).except_(needs.map("package")),
)

start = {
    "needs": [
        Needs("shop", "site"),
        Needs("site", "web"),
        Needs("site", "auth"),
        Needs("web", "http"),
        Needs("auth", "http"),
        Needs("auth", "crypto"),
        Needs("http", "sockets"),
    ],
    "advisories": [Advisory("A-1", "crypto", 9)],
}


def report(affected: ef.ZSet) -> None:
    for (package, advisory), weight in sorted(affected.items()):
        print(f"  {package} {'is affected by' if weight > 0 else 'is safe from'} {advisory}")


async def mail(changes: AsyncIterator[ef.ZSet]) -> None:
    async for affected in changes:
        print("the mail robot, which was busy since the first advisory:")
        report(affected)


def main() -> None:
    view = program.run()

    def tell(what: str, changes: dict[str, ef.ZSet]) -> None:
        print(what)
        report(changes["affected"])

    tell("crypto has a hole", view.step(start))
    waiting = view["affected"].changes(limit=1)
    tell("so has sockets", view.input("advisories").add(Advisory("A-2", "sockets", 5)))
    tell("web drops http: site still gets it from auth",
         view.step(needs={Needs("web", "http"): -1}))  # fmt: skip
    tell("http begins to need auth, which needs it", view.input("needs").add(Needs("http", "auth")))
    tell("site drops auth: the two that need each other are out of its reach",
         view.input("needs").remove(Needs("site", "auth")))  # fmt: skip
    tell("A-1 is withdrawn", view.input("advisories").delete("A-1"))
    print("leaves:", *sorted(view["leaves"].value))
    for row in sorted(view["dependents"].value):
        print(f"{row.needs} is needed by {', '.join(row.who)}")
    view.close()
    asyncio.run(mail(waiting))


if __name__ == "__main__":
    main()
