"""Which feature is on for whom: targeting rules times users, then overrides by hand.

Every rule meets every user in a cross join; a user who matches several rules of a flag has it
once. Overrides beat rules: what is forced off is taken out with `except_`, what is forced on is
put in with `union`. `intersect` finds the overrides that say what the rules say anyway and can go.

Who is in a share of 50 % is decided by a checksum. Python's `hash` of a text would not do: it
differs from process to process, and a function in a program has to give the same answer each time.

    python examples/feature_flags.py
"""

from __future__ import annotations

from typing import Any, NamedTuple
from zlib import crc32

import ebbflow as ef


class User(NamedTuple):
    name: str
    country: str
    plan: str


class Rule(NamedTuple):
    flag: str
    audience: str  # a country, a plan, or "all"
    percent: int


class Override(NamedTuple):
    flag: str
    user: str
    on: bool


class On(NamedTuple):
    flag: str
    user: str


def matches(pair: Any) -> bool:
    share = crc32(f"{pair.flag}:{pair.name}".encode()) % 100
    return pair.audience in ("all", pair.country, pair.plan) and share < pair.percent


def matched(pair: Any) -> On:
    return On(pair.flag, pair.name)


def forced(override: Override) -> On:
    return On(override.flag, override.user)


users = ef.Input("users", User, key="name")
rules = ef.Input("rules", Rule)
overrides = ef.Input("overrides", Override, key=("flag", "user"))

by_rule = rules.cross(users).filter(matches).map(matched)
forced_on = overrides.filter(lambda override: override.on).map(forced)
forced_off = overrides.filter(lambda override: not override.on).map(forced)

enabled = by_rule.except_(forced_off).union(forced_on)
program = ef.program(
    enabled=enabled,
    reach=enabled.group_by("flag").agg(users=ef.count()),
    redundant=by_rule.intersect(forced_on),
)

start = {
    "users": [
        User("ann", "Italy", "pro"),
        User("bob", "Norway", "free"),
        User("cat", "Italy", "free"),
        User("dan", "Peru", "pro"),
    ],
    "rules": [Rule("dark", "all", 50), Rule("dark", "pro", 100), Rule("beta", "Italy", 100)],
    "overrides": [
        Override("beta", "cat", True),
        Override("beta", "dan", True),
        Override("dark", "dan", False),
    ],
}


def main() -> None:
    view = program.run()

    def tell(what: str, changes: dict[str, ef.ZSet]) -> None:
        print(what)
        for row, weight in sorted(changes["enabled"].items()):
            print(f"  {row.flag} is {'on' if weight > 0 else 'off'} for {row.user}")
        for row in sorted(changes["redundant"].positive()):
            print(f"  the override of {row.flag} for {row.user} can go: a rule says the same")

    tell("at first", view.step(start))
    tell("'beta' for all of the pros too", view.step(rules=[Rule("beta", "pro", 100)]))
    tell("dan moves to the free plan", view.input("users").upsert(User("dan", "Peru", "free")))
    wider = {Rule("dark", "all", 50): -1, Rule("dark", "all", 100): 1}
    tell("'dark' for everyone: dan is still held back", view.step(rules=wider))
    tell("until his override goes", view.input("overrides").delete(("dark", "dan")))
    for flag, count in sorted(view["reach"].value):
        print(f"{flag} reaches {count}")


if __name__ == "__main__":
    main()
