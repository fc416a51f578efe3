"""Who may do what: groups, direct grants, and bans that beat both.

A right that is held twice, through two groups or through a group and a direct grant, is still one
right. `union` has set meaning, so taking away one of the two ways changes nothing that anyone can
see, and taking away the last one does. A ban is an anti join: it removes rights as long as it is
there, and lifting it brings back exactly the rights that are still granted.

    python examples/permissions.py
    python examples/permissions.py --explain
"""

from __future__ import annotations

import sys
from typing import NamedTuple

import ebbflow as ef


class Member(NamedTuple):
    user: str
    group: str


class Grant(NamedTuple):
    group: str
    action: str


class Right(NamedTuple):
    user: str
    action: str


def right(member: Member, grant: Grant) -> Right:
    return Right(member.user, grant.action)


members = ef.Input("members", Member)
grants = ef.Input("grants", Grant)
direct = ef.Input("direct", Right)
bans = ef.Input("bans", Right)

granted = members.join(grants, on="group", select=right).union(direct)
may = granted.join(bans, on=("user", "action"), how="anti")
useless_bans = bans.join(granted, on=("user", "action"), how="anti").distinct()
program = ef.program(
    may=may,
    holders=may.group_by("action").agg(users=ef.string_agg("user")),
    useless_bans=useless_bans,
)

start = {
    "members": [
        Member("ann", "admins"),
        Member("ann", "editors"),
        Member("bob", "editors"),
        Member("eve", "readers"),
    ],
    "grants": [
        Grant("admins", "write"),
        Grant("admins", "delete"),
        Grant("editors", "write"),
        Grant("editors", "read"),
        Grant("readers", "read"),
    ],
    "direct": [Right("bob", "read")],
    "bans": [Right("eve", "delete")],
}


def tell(change: ef.ZSet) -> None:
    for right, weight in sorted(change.items()):
        print(f"  {right.user} {'may' if weight > 0 else 'may not'} {right.action}")


def main() -> None:
    if "--explain" in sys.argv:
        print(program.explain())
        return
    view = program.run()
    view.step(start)
    for action, users in sorted(view["holders"].value):
        print(f"{action:<7}{users}")
    view["may"].on_change(tell)

    print("ann leaves the editors: as an admin she may still write")
    view.input("members").remove(Member("ann", "editors"))
    print("bob leaves them too: by a direct grant he may still read")
    view.input("members").remove(Member("bob", "editors"))
    print("ann is banned from deleting, and from writing")
    view.input("bans").add(Right("ann", "delete"), Right("ann", "write"))
    print("the admins lose 'delete' while she is banned")
    view.input("grants").remove(Grant("admins", "delete"))
    print("both bans are lifted")
    view.input("bans").remove(Right("ann", "delete"), Right("ann", "write"))
    print("bans of what nobody granted:", *sorted(map(tuple, view["useless_bans"].value)))


if __name__ == "__main__":
    main()
