"""What pointers may point to, as a compiler's analysis keeps it. (Points-to, with a lattice.)

Four kinds of statements say what flows where:

    p = &x      p may point to x                       p = q       p to whatever q points to
    p = *q      p to whatever the objects of q do      *p = q      the objects of p to what q does

So `flows`, from variable to variable, depend on what pointers point to, and `points` on the flows:
two collections that need each other, in one `fixpoint`. What `points` has for a variable is an
element of a *lattice*: a set of at most two objects, or ANYTHING, which is any object whose address
is taken. Two elements are joined by the union; a union of more is ANYTHING. `join` is a reducer of
our own; it has no way to take a row out, so what lost one is joined again from what is left. From
round to round elements only rise, and nothing is above ANYTHING: the loop comes to an end. When
statements go, elements fall again, also those that held each other up in a circle.

    python examples/points_to.py
"""

from __future__ import annotations

from typing import NamedTuple

import ebbflow as ef

Element = tuple[str, ...]
MOST = 2
ANYTHING: Element = ("*",)


class Statement(NamedTuple):
    line: int
    target: str
    kind: str
    source: str


class Points(NamedTuple):
    variable: str
    to: Element


class Refers(NamedTuple):
    pointer: str
    object: str


class Flow(NamedTuple):
    target: str
    source: str


def joined(one: Element, other: Element) -> Element:
    both = {*one, *other}
    return ANYTHING if "*" in both or len(both) > MOST else tuple(sorted(both))


join = ef.Reducer(
    (), joined, merge=joined, name="join", elements=[("x",), ("y",), ("x", "z"), ANYTHING]
)


def each_object(points: Points) -> list[Refers]:
    return [Refers(points.variable, name) for name in points.to]


def also_as_anything(name: str) -> list[Refers]:
    return [Refers(name, name), Refers("*", name)]


def meant(by: Refers, name: Refers) -> Refers:
    return Refers(by.pointer, name.object)


def from_object(load: Statement, pointer: Refers) -> Flow:
    return Flow(load.target, pointer.object)


def into_object(store: Statement, pointer: Refers) -> Flow:
    return Flow(pointer.object, store.source)


def at_target(flow: Flow, points: Points) -> Points:
    return Points(flow.target, points.to)


statements = ef.Input("statements", Statement, key="line")
addresses = statements.filter(lambda s: s.kind == "address")
copies = statements.filter(lambda s: s.kind == "copy")
loads = statements.filter(lambda s: s.kind == "load")
stores = statements.filter(lambda s: s.kind == "store")

objects = addresses.map("source").distinct().flat_map(also_as_anything)
known = addresses.map(lambda s: Points(s.target, (s.source,)))
copied = copies.map(lambda s: Flow(s.target, s.source))


def analysed(points: ef.Collection, flows: ef.Collection) -> dict[str, ef.Collection]:
    refers = points.flat_map(each_object).join(
        objects, left_on="object", right_on="pointer", select=meant
    )
    loaded = loads.join(refers, left_on="source", right_on="pointer", select=from_object)
    stored = stores.join(refers, left_on="target", right_on="pointer", select=into_object)
    received = flows.join(points, left_on="source", right_on="variable", select=at_target)
    return {
        "points": (known + received).group_by("variable").agg(to=join.on("to")),
        "flows": (copied + loaded + stored).distinct(),
    }


program = ef.program(**ef.fixpoint(analysed, points=known, flows=copied))

start = {
    "statements": [
        Statement(1, "p", "address", "x"),
        Statement(2, "q", "address", "y"),
        Statement(3, "pp", "address", "p"),
        Statement(4, "pp", "store", "q"),
        Statement(5, "r", "load", "pp"),
        Statement(6, "a", "copy", "b"),
        Statement(7, "b", "copy", "a"),
    ]
}


def main() -> None:
    view = program.run()

    def tell(change: ef.ZSet) -> None:
        now = {row.variable: row.to for row in change.positive()}
        for variable in sorted({row.variable for row in change}):
            to = now.get(variable, ("nothing",))
            print(f"  {variable} → {'anything' if to == ANYTHING else ' or '.join(to)}")

    view["points"].on_change(tell)
    lines = view.input("statements")
    print("p = &x; q = &y; pp = &p; *pp = q; r = *pp; a = b; b = a")
    view.step(start)
    print("and  a = r: b follows a, and a follows b")
    lines.upsert(Statement(8, "a", "copy", "r"))
    print("and  q = &z: three objects are too many to tell apart")
    lines.upsert(Statement(9, "q", "address", "z"))
    print("without  *pp = q")
    lines.delete(4)
    print("without  a = r: that a and b held each other up does not count")
    lines.delete(8)
    print("flows:", ", ".join(sorted(f"{f.source} → {f.target}" for f in view["flows"].value)))


if __name__ == "__main__":
    main()
