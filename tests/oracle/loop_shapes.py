"""Loops that someone thought of: each is a way in which an engine could be wrong.

A case is a function that builds a program over `edges`, `roots` and a few more; its name says what
is special. `SHAPES` has them by name.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import ebbflow as ef
from ebbflow.errors import MayNotEnd


class Edge(NamedTuple):
    a: int
    b: int


class Road(NamedTuple):
    a: int
    b: int
    d: int


class Far(NamedTuple):
    a: int
    d: int


class Speed(NamedTuple):
    a: int
    x: float


class Link(NamedTuple):
    a: int
    b: int
    x: float


class Name(NamedTuple):
    a: int
    name: str


class Person(NamedTuple):
    id: int
    boss: int | None


edges, roots = ef.Input("edges", Edge), ef.Input("roots", int)
roads = ef.Input("roads", Road).filter(lambda road: road.d >= 0)
speeds = ef.Input("speeds", Speed)
links = ef.Input("links", Link).filter(lambda link: link.x >= 0.0)
people = ef.Input("people", Person, key="id")
SHAPES: dict[str, Callable[[], Any]] = {}


def shape(build: Callable[[], Any]) -> Callable[[], Any]:
    SHAPES[build.__name__] = build
    return build


def built(name: str) -> Any:
    """The program of a shape, whatever its loops may do."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MayNotEnd)
        return SHAPES[name]()


def moved(rows: Any, over: Any = edges) -> Any:
    """The ends of the edges that begin at these nodes."""
    return rows.join(over, left_on=lambda n: n, right_on="a", select=lambda n, e: e.b)


def composed(first: Any, second: Any) -> Any:
    """The pairs of edges that meet, each as one edge."""
    return first.join(second, left_on="b", right_on="a", select=lambda a, b: Edge(a.a, b.b))


# ---- monotone ----


@shape
def reachability() -> Any:
    return roots.iterate(lambda x: x.union(moved(x)))


@shape
def closure_of_itself_with_itself() -> Any:
    return edges.iterate(lambda t: t.union(composed(t, t)))


@shape
def closure_to_the_left() -> Any:
    return edges.iterate(lambda t: t.union(composed(edges, t)))


@shape
def closure_to_the_right_and_with_itself_and_turned_round() -> Any:
    return edges.iterate(
        lambda t: (
            t + composed(t, t) + composed(t, edges) + t.map(lambda e: Edge(e.b, e.a))
        ).distinct()
    )


@shape
def two_joins_with_itself() -> Any:
    return edges.iterate(
        lambda t: (
            t + composed(t, t) + t.join(t, on="a", select=lambda a, b: Edge(a.b, b.b))
        ).distinct()
    )


@shape
def a_join_with_itself_that_counts_twice() -> Any:
    def body(t: Any) -> Any:
        more = composed(t, t)
        return (t + more + more).distinct()

    return edges.iterate(body)


@shape
def a_start_that_is_also_outside() -> Any:
    return roots.iterate(lambda x: (roots + moved(x)).distinct())


@shape
def a_start_made_of_the_edges() -> Any:
    ends = edges.map(lambda e: e.a)
    return ends.iterate(lambda x: (ends + moved(x) + moved(x)).distinct())


@shape
def an_empty_start_and_constants() -> Any:
    return ef.empty(int).iterate(
        lambda x: (roots + roots.map(lambda n: n + 1) + moved(x)).distinct()
    )


@shape
def nothing_but_constants() -> Any:
    return ef.empty(int).iterate(lambda x: (roots + edges.map(lambda e: e.a)).distinct())


@shape
def an_outside_collection_used_three_times() -> Any:
    return roots.iterate(
        lambda x: (
            x
            + moved(x)
            + moved(x.filter(lambda n: n > 1))
            + x.join(edges, left_on=lambda n: n, right_on="b", select=lambda n, e: e.a)
        ).distinct()
    )


@shape
def rows_that_come_twice_before_a_join() -> Any:
    return roots.iterate(
        lambda x: x.union(moved(x.flat_map(lambda n: [n, n, (n + 1) % 4], type=int)))
    )


@shape
def rows_that_come_twice_behind_a_join() -> Any:
    return roots.iterate(
        lambda x: x.union(moved(x).flat_map(lambda n: [n, n, (n + 1) % 4], type=int))
    )


@shape
def none_among_the_rows() -> Any:
    return roots.iterate(
        lambda x: x.union(
            x.join(
                edges, left_on=lambda n: n, right_on="a",
                select=lambda n, e: None if e.b > 2 else e.b,
            )
        )
    )  # fmt: skip


@shape
def every_pair_of_itself() -> Any:
    return roots.iterate(lambda x: x.union(x.cross(x, select=lambda n, m: (n * m) % 7)))


@shape
def every_pair_with_outside() -> Any:
    return roots.iterate(lambda x: x.union(x.cross(edges, select=lambda n, e: (n + e.b) % 5)))


@shape
def a_key_of_two_parts() -> Any:
    return edges.iterate(
        lambda t: t.union(t.join(edges, on=("a", "b"), select=lambda a, b: Edge(b.b, a.a)))
    )


@shape
def a_reduce_outside() -> Any:
    most = edges.group_by("a").agg(b=ef.max("b"))
    return edges.iterate(lambda t: t.union(composed(t, most)))


@shape
def an_input_with_a_key() -> Any:
    return people.iterate(
        lambda x: x.union(
            x.join(
                people, left_on="boss", right_on="id", select=lambda a, b: Person(a.id, b.boss)
            )
        )
    )  # fmt: skip


@shape
def the_same_loop_twice() -> Any:
    one, other = reachability(), reachability()
    same = one.join(other, left_on=lambda n: n, right_on=lambda n: n, select=lambda a, b: a)
    return ef.program(one=one, other=other, both=one + other, same=same)


@shape
def a_loop_of_a_loop() -> Any:
    return reachability().iterate(lambda y: y.union(y.map(lambda n: (n + 1) % 5)))


@shape
def a_reduce_of_a_loop() -> Any:
    kept = reachability().filter(lambda n: n > 1)
    return kept.group_by(lambda n: n % 2).agg(n=ef.count(), m=ef.max(lambda n: n))


@shape
def a_limit_that_is_just_reached() -> Any:
    return ef.program(**{
        f"after_{limit}": edges.iterate(lambda t: t.union(composed(t, edges)), limit=limit)
        for limit in (2, 3)
    })  # fmt: skip


# ---- the least and the greatest ----


def starts() -> Any:
    return roots.map(lambda n: Far(n, n % 2), type=Far)


def best(rows: Any, over: Any, made: Any, reducer: Any, field: str, **options: Any) -> Any:
    """The best value of each node, of those that it has and those that it is given over edges."""
    return rows.iterate(
        lambda x: (
            (x + x.join(over, on="a", select=made)).group_by("a").agg(**{field: reducer(field)})
        ),
        **options,
    )


@shape
def shortest_paths() -> Any:
    return best(starts(), roads, lambda a, b: Far(b.b, a.d + b.d), ef.min, "d")


@shape
def shortest_paths_of_all_pairs() -> Any:
    return roads.iterate(
        lambda x: (
            x
            + x.join(
                roads, left_on="b", right_on="a", select=lambda a, b: Road(a.a, b.b, a.d + b.d)
            )
        ).group_by("a", "b").agg(d=ef.min("d"))
    )  # fmt: skip


@shape
def widest_paths() -> Any:
    return best(starts(), roads, lambda a, b: Far(b.b, min(a.d, b.d)), ef.max, "d")


@shape
def a_limit_of_bottlenecks() -> Any:
    return ef.program(**{
        f"after_{n}": best(
            starts(), roads, lambda a, b: Far(b.b, max(a.d, b.d)), ef.min, "d", limit=n
        )
        for n in (3, 4)
    })  # fmt: skip


def least_sum(over: Any) -> Any:
    return best(speeds, over, lambda a, b: Speed(b.b, a.x + b.x), ef.min, "x")


@shape
def least_floats() -> Any:
    return least_sum(links.filter(lambda link: link.x < 1e300))


@shape
def greatest_floats() -> Any:
    return best(speeds, links, lambda a, b: Speed(b.b, min(a.x, b.x)), ef.max, "x")


@shape
def an_empty_start_and_the_least() -> Any:
    return ef.empty(Far).iterate(
        lambda x: (
            starts() + x.join(edges, on="a", select=lambda a, b: Far(b.b, a.d + 1))
        ).group_by("a").agg(d=ef.min("d"))
    )  # fmt: skip


def handed_on(reducer: Any) -> Any:
    names = ef.Input("names", Name)
    return best(names, edges, lambda a, b: Name(b.b, a.name), reducer, "name")


@shape
def least_texts() -> Any:
    return handed_on(ef.min)


# ---- by versions ----


@shape
def floats_that_may_be_infinite() -> Any:
    return least_sum(links)


@shape
def greatest_texts() -> Any:
    return handed_on(ef.max)


@shape
def a_body_that_is_the_variable() -> Any:
    return roots.iterate(lambda x: x)


@shape
def a_body_that_ignores_the_variable() -> Any:
    return roots.iterate(lambda x: edges.map(lambda e: e.b))


@shape
def a_body_that_gives_nothing() -> Any:
    return roots.iterate(lambda x: ef.empty(int))


@shape
def rounds_of_none_one_and_many() -> Any:
    return ef.program(**{
        f"after_{rounds}": roots.iterate(lambda x: x.union(moved(x)), rounds=rounds)
        for rounds in (0, 1, 50)
    })  # fmt: skip


@shape
def pairs_of_rows_that_come_and_go() -> Any:
    def body(x: Any) -> Any:
        pairs = moved(x).join(x, left_on=lambda n: n % 2, right_on=lambda n: n % 2)
        return pairs.distinct().map(lambda pair: (pair[0] + pair[1]) % 4)

    return roots.iterate(body, rounds=6)


@shape
def rounds_that_lose_rows() -> Any:
    return roots.iterate(moved, rounds=2)


@shape
def same_generation() -> Any:
    return edges.iterate(
        lambda s: s.union(
            composed(edges, s).join(
                edges, left_on="b", right_on="b", select=lambda a, b: Edge(a.a, b.a)
            )
        )
    )


@shape
def a_semijoin_with_outside() -> Any:
    degrees = edges.group_by("a").agg(n=ef.count()).filter(lambda row: row.n > 1)
    return roots.iterate(
        lambda x: x.union(moved(x).join(degrees, left_on=lambda n: n, right_on="a", how="semi"))
    )


@shape
def what_the_variable_leaves_out() -> Any:
    return roots.iterate(
        lambda x: (roots + moved(x)).distinct().join(
            x, left_on=lambda n: (n + 1) % 4, right_on=lambda n: n, how="anti"
        ),
        rounds=5,
    )  # fmt: skip


@shape
def a_left_join_inside() -> Any:
    return roots.iterate(
        lambda x: x.union(
            x.join(
                edges, left_on=lambda n: n, right_on="a", how="left",
                select=lambda n, e: 9 if e is None else e.b,
            )
        )
    )  # fmt: skip


@shape
def sums_over_rounds() -> Any:
    return edges.iterate(
        lambda x: (
            edges
            + x.group_by("a")
            .agg(b=ef.sum("b"))
            .map(lambda row: Edge((row.a + 1) % 3, row.b % 5), type=Edge)
        ),
        rounds=4,
    )


@shape
def a_negative_start() -> Any:
    return (roots - edges.map(lambda e: e.a)).iterate(lambda x: x + moved(x), rounds=3)


@shape
def a_sign_that_turns() -> Any:
    return roots.iterate(lambda x: -x, rounds=3)


@shape
def a_loop_in_a_loop() -> Any:
    def body(x: Any) -> Any:
        inner = x.iterate(lambda y: y.union(moved(y)))
        back = inner.join(edges, left_on=lambda n: n, right_on="b", select=lambda n, e: e.a)
        return x.union(back)

    return roots.iterate(body)


@shape
def a_loop_in_a_loop_in_a_loop() -> Any:
    def inner(y: Any) -> Any:
        found = y.iterate(lambda z: z.union(moved(z).filter(lambda n: n != 2)))
        return y.union(found.map(lambda n: (n * 2) % 5))

    def body(x: Any) -> Any:
        even = x.iterate(inner).filter(lambda n: n % 2 == 0)
        return x.union(even.map(lambda n: (n + 1) % 5))

    return roots.iterate(body)


@shape
def rounds_in_rounds() -> Any:
    return roots.iterate(
        lambda x: (
            x.iterate(lambda y: y.union(moved(y)), rounds=2).map(lambda n: (n + 1) % 5).distinct()
        ),
        rounds=3,
    )


@shape
def priorities() -> Any:
    def loop(**options: Any) -> Any:
        return roots.iterate(
            lambda x: (x + moved(x)).distinct(), priority=lambda n: n % 4, **options
        )

    return ef.program(ended=loop(), after=loop(rounds=6), early=loop(limit=3))


@shape
def priorities_in_priorities() -> Any:
    return roots.iterate(
        lambda x: x.union(
            x.iterate(
                lambda y: (y + moved(y)).distinct(), rounds=4, priority=lambda n: n % 3
            )
        ),
        priority=lambda n: n % 2,
    )  # fmt: skip


@shape
def variables_that_need_each_other() -> Any:
    return ef.program(**ef.fixpoint(
        lambda p, q: {"p": p.union(moved(q)), "q": q.union(p.map(lambda n: (n + 1) % 4))},
        p=roots, q=ef.empty(int),
    ))  # fmt: skip


@shape
def variables_that_nobody_reads() -> Any:
    return ef.program(**ef.fixpoint(
        lambda p, q, s: {"p": p.union(moved(p)), "q": roots, "s": s},
        p=roots, q=ef.empty(int), s=edges,
    ))  # fmt: skip
