"""Who may read what: groups in groups, bans, and folders in folders. (Roles, with negation.)

Three questions, one after the other, and two of them are loops:

    members   who is in a group: those put there, and the members of the groups in it
    banned    whom a ban of a person or of a group means
    may       who was granted a folder by a group and is not banned from it; and from there on
              down, who may read a folder may read what is in it, unless banned from that

"Not" is asked of something that is finished: bans are known before the second loop begins, and
nothing in it can change them. So there is one answer, and it does not depend on who asks first. A
right that is held in two ways is one right; a ban removes it as long as it is there, with all that
follows from it, and lifting it brings back exactly what is still granted.

    python examples/permissions.py
    python examples/permissions.py --explain
"""

from __future__ import annotations

import sys
from typing import NamedTuple

import ebbflow as ef


class Member(NamedTuple):
    name: str
    group: str


class Rule(NamedTuple):
    group: str
    folder: str


class Folder(NamedTuple):
    path: str
    parent: str


class Right(NamedTuple):
    user: str
    folder: str


def in_outer(member: Member, outer: Member) -> Member:
    return Member(member.name, outer.group)


def for_member(rule: Rule, member: Member) -> Right:
    return Right(member.name, rule.folder)


def in_inner(right: Right, inner: Folder) -> Right:
    return Right(right.user, inner.path)


people = ef.Input("people", str)
put = ef.Input("members", Member)
folders = ef.Input("folders", Folder)
grants = ef.Input("grants", Rule)
bans = ef.Input("bans", Rule)


def outwards(members: ef.Collection) -> ef.Collection:
    return members.union(members.join(put, left_on="group", right_on="name", select=in_outer))


members = people.map(lambda name: Member(name, name)).iterate(outwards)
banned = bans.join(members, on="group", select=for_member)


def unless_banned(rights: ef.Collection) -> ef.Collection:
    return rights.join(banned, on=("user", "folder"), how="anti")


def downwards(may: ef.Collection) -> ef.Collection:
    inner = may.join(folders, left_on="folder", right_on="parent", select=in_inner)
    return may.union(unless_banned(inner))


granted = grants.join(members, on="group", select=for_member)
may = unless_banned(granted).iterate(downwards)
program = ef.program(
    may=may,
    readers=may.group_by("folder").agg(users=ef.string_agg("user")),
    unread=folders.map("path").except_(may.map("folder")),
)

start = {
    "people": ["ann", "bob", "eve"],
    "members": [
        Member("ann", "board"),
        Member("bob", "sales"),
        Member("eve", "interns"),
        Member("interns", "sales"),
        Member("sales", "staff"),
        Member("board", "staff"),
    ],
    "folders": [
        Folder("/news", "/"),
        Folder("/deals", "/"),
        Folder("/deals/2025", "/deals"),
        Folder("/deals/2025/acme", "/deals/2025"),
    ],
    "grants": [Rule("staff", "/news"), Rule("sales", "/deals"), Rule("ann", "/deals/2025")],
    "bans": [Rule("interns", "/deals/2025")],
}


def tell(change: ef.ZSet) -> None:
    for right, weight in sorted(change.items()):
        print(f"  {right.user} {'may' if weight > 0 else 'may not'} read {right.folder}")


def main() -> None:
    if "--explain" in sys.argv:
        print(program.explain())
        return
    view = program.run()
    view.step(start)
    for folder, users in sorted(view["readers"].value):
        print(f"{folder:<18}{users}")
    view["may"].on_change(tell)

    print("the ban of the interns is lifted")
    view.input("bans").remove(Rule("interns", "/deals/2025"))
    print("bob is banned from the deals of 2025")
    view.input("bans").add(Rule("bob", "/deals/2025"))
    print("the interns leave sales; as they are in nothing else, eve is nobody")
    view.input("members").remove(Member("interns", "sales"))
    print("sales joins the interns, and by a slip the interns sales: each is in the other")
    view.input("members").add(Member("sales", "interns"), Member("interns", "sales"))
    print("sales leaves staff: for all that they are in each other, nobody in them is")
    view.input("members").remove(Member("sales", "staff"))
    print("ann is banned from acme, and eve leaves the company")
    view.step(bans=[Rule("ann", "/deals/2025/acme")], people={"eve": -1})
    print("read by nobody:", *sorted(view["unread"].value))


if __name__ == "__main__":
    main()
