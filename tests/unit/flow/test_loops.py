"""Loops as they are built: their types, what is refused, and what may not come to an end."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import ebbflow as ef
from ebbflow.engine.batch import evaluate
from ebbflow.errors import CompositionError, FunctionFailed, MayNotEnd, NoFixedPoint, UnknownField
from ebbflow.flow.plan import Iterate
from ebbflow.flow.rewrite.monotone import Monotone, monotone
from ebbflow.flow.rewrite.terms import NotMonotone
from ebbflow.zset import ZSet


class Stop(NamedTuple):
    node: int


class Distance(NamedTuple):
    node: int
    far: int


class Road(NamedTuple):
    source: int
    target: int
    length: int


NUMBERS = ef.Input("numbers", int)
OTHERS = ef.Input("others", int)
STOPS = ef.Input("stops", Stop)
NEAR = ef.Input("near", Distance)
ROADS = ef.Input("roads", Road)
Build = Callable[[], Any]


def half(n: int) -> float:
    return n / 2


def perhaps(n: int) -> int | None:
    return n or None


def text_of(error: Exception) -> str:
    """An error without the lines of this file."""
    lines = str(error).splitlines()
    return "\n".join(line for line in lines if not line.strip().startswith(("created", "loop")))


# ---- types ----


@pytest.mark.parametrize(
    ("made", "type_"),
    [
        (NUMBERS.iterate(lambda n: n.distinct()), int),
        (NUMBERS.iterate(lambda n: n.map(half), rounds=2), float),
        (NUMBERS.iterate(lambda n: n.union(n.map(half)), rounds=2), float),
        (NUMBERS.iterate(lambda n: n.union(n.map(perhaps)), rounds=2), int | None),
        (NUMBERS.iterate(lambda n: n.map(lambda n: eval("n")), rounds=2), Any),
        (STOPS.iterate(lambda s: s.select(node=lambda s: s.node + 1), rounds=2), Stop),
        (NUMBERS.iterate(lambda n: n.iterate(lambda m: m.union(n))), int),
        (ef.iterate(NUMBERS, lambda n: n.distinct()), int),
        (ef.fixpoint(lambda a, b: {"a": a + b, "b": b.map(half)},
                     rounds=2, a=NUMBERS, b=ef.empty(int))["b"], float),
    ],
)  # fmt: skip
def test_002_D7_a_variable_has_the_type_of_its_start_and_of_what_a_round_makes(
    made: ef.Collection, type_: Any
) -> None:
    assert made.type == type_


def test_a_body_is_called_again_where_the_type_was_wider_and_is_used_once() -> None:
    called: list[Any] = []

    def body(n: ef.Collection) -> ef.Collection:
        called.append(n.type)
        return n.union(n.map(perhaps))

    view = NUMBERS.iterate(body).run()
    assert called == [int, int | None]
    assert view.step(numbers=[0, 1]) == ZSet.of([0, 1, None])


# ---- what is refused ----


REFUSED: dict[str, tuple[Build, str]] = {
    "no function": (
        lambda: NUMBERS.iterate(3),  # type: ignore[arg-type]
        "iterate(...): the body is a function that says one round\n"
        "    given      3\n"
        "    try        lambda rows: ...",
    ),
    "two arguments": (
        lambda: NUMBERS.iterate(lambda n, m: n),  # type: ignore[misc, arg-type]
        "iterate(...): the body is called with 1 collection, and takes (n, m)\n"
        "    try        lambda n: ...",
    ),
    "nothing given back": (
        lambda: NUMBERS.iterate(lambda n: None),  # type: ignore[arg-type, return-value]
        "iterate(...): what the body gives must be a collection, and is of type NoneType\n"
        "    given      None\n"
        "    try        an Input or what is made of one; rows themselves come in by view.step(...)",
    ),
    "groups given back": (
        lambda: STOPS.iterate(lambda s: s.group_by("node")),  # type: ignore[arg-type, return-value]
        "iterate(...): group_by(...) alone is not a collection yet\n"
        "    try        group_by(...).reduce(reducer), or group_by(...).agg(n=ebbflow.count())",
    ),
    "another type": (
        lambda: STOPS.iterate(lambda stops: stops.map(str)),
        "iterate(...): the body gives rows of another type than 'stops' has\n"
        "    rows       Stop(node: int)\n"
        "    given      str\n"
        "    try        select(...) or map(...) to the same fields at the end of the body",
    ),
    "another field": (
        lambda: STOPS.iterate(lambda stops: stops.select(name="node")),
        "iterate(...): the body gives rows of another type than 'stops' has\n"
        "    rows       Stop(node: int)\n"
        "    given      Row(name: int)\n"
        "    try        select(...) or map(...) to the same fields at the end of the body",
    ),
    "rounds as text": (
        lambda: NUMBERS.iterate(lambda n: n, rounds="3"),  # type: ignore[arg-type]
        "iterate(...): rounds='3' is not a number of rounds\n    try        rounds=10",
    ),
    "rounds below none": (
        lambda: NUMBERS.iterate(lambda n: n, rounds=-1),
        "iterate(...): rounds=-1 is less than none\n    try        rounds=0, or more",
    ),
    "rounds of true": (
        lambda: NUMBERS.iterate(lambda n: n, rounds=True),
        "iterate(...): rounds=True is not a number of rounds\n    try        rounds=10",
    ),
    "no limit": (
        lambda: NUMBERS.iterate(lambda n: n, limit=None),  # type: ignore[arg-type]
        "iterate(...): limit=None is not a number of rounds\n    try        limit=10",
    ),
    "limit of none": (
        lambda: NUMBERS.iterate(lambda n: n, limit=0),
        "iterate(...): limit=0 leaves no round\n    try        limit=1, or more",
    ),
    "priority of a text": (
        lambda: NUMBERS.iterate(lambda n: n, priority=str),
        "iterate(..., priority=str): a priority is a round, and no str\n"
        "    try        a whole number, 0 or more",
    ),
    "priority of a truth": (
        lambda: STOPS.iterate(lambda s: s, priority=lambda s: s.node > 3),
        "iterate(..., priority=<lambda>): a priority is a round, and no bool\n"
        "    try        a whole number, 0 or more",
    ),
    "start that is none": (
        lambda: ef.iterate([1], lambda n: n),  # type: ignore[arg-type]
        "iterate(...): it starts as a collection\n"
        "    given      [1]\n"
        "    try        an Input or what is made of one",
    ),
    "fixpoint of other names": (
        lambda: ef.fixpoint(lambda a: {"b": a}, a=NUMBERS),
        "fixpoint(a=...): the body gives a dict with a collection for each variable\n"
        "    given      {'b': <int: a>}\n"
        "    try        lambda a: {'a': ...}",
    ),
    "fixpoint of rows": (
        lambda: ef.fixpoint(lambda a: {"a": [3]}, a=NUMBERS),  # type: ignore[arg-type, dict-item]
        "fixpoint(a=...): 'a' of the body: it gives a collection\n"
        "    given      [3]\n"
        "    try        an Input or what is made of one",
    ),
    "fixpoint of more variables": (
        lambda: ef.fixpoint(lambda a: {"a": a}, a=NUMBERS, b=NUMBERS),
        "fixpoint(a=..., b=...): the body is called with 2 collections, and takes (a)\n"
        "    try        lambda a, b: ...",
    ),
    "priority of no variable": (
        lambda: ef.fixpoint(lambda a: {"a": a}, a=NUMBERS, priority={"b": abs}),
        "fixpoint(a=...): priority of 'b', and there is no such variable\n"
        "    try        priority={'a': ...}",
    ),
    "priority of which": (
        lambda: ef.fixpoint(lambda a: {"a": a}, a=NUMBERS, priority=abs),  # type: ignore[arg-type]
        "fixpoint(a=...): priority=<built-in function abs> does not say of which variable\n"
        "    try        priority={'a': ...}",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_002_D7_a_wrong_loop_is_refused_at_its_line(name: str) -> None:
    build, text = REFUSED[name]
    with pytest.raises(CompositionError) as error:
        build()
    assert text_of(error.value) == text
    line = build.__code__.co_firstlineno
    assert re.search(rf"created +\S*test_loops.py:{line}\b", str(error.value))


def test_a_priority_is_a_field_of_the_start() -> None:
    with pytest.raises(UnknownField, match="have no field 'nod'"):
        STOPS.iterate(lambda s: s, priority="nod")


@pytest.mark.parametrize("wrong", [-1, True, "1", None])
def test_a_priority_that_is_no_round_fails_the_step_and_changes_nothing(wrong: Any) -> None:
    rows = ef.Input("rows")
    view = rows.iterate(lambda r: r.distinct(), priority=lambda r: r).run()
    view.step(rows=[0])
    with pytest.raises(FunctionFailed, match="a priority is a round, 0 or more, and not"):
        view.step(rows=[2, wrong])
    assert view.value == ZSet.of([0])
    assert view.verify().epoch == 1


def test_a_variable_does_not_leave_its_body() -> None:
    leaked: list[ef.Collection] = []

    def body(n: ef.Collection) -> ef.Collection:
        leaked.append(n)
        return n.union(OTHERS)

    line = body.__code__.co_firstlineno + 5
    made = NUMBERS.iterate(body)
    for wrong in (
        leaked[0].map(half),
        leaked[0] + NUMBERS,
        OTHERS.iterate(lambda n: n.union(leaked[0])),
        OTHERS.iterate(lambda m: m.union(OTHERS.iterate(lambda n: n.union(leaked[0])))),
    ):
        for use in (wrong.run, wrong.explain, lambda wrong=wrong: ef.program(out=wrong, in_=made)):
            with pytest.raises(CompositionError) as error:
                use()
            assert str(error.value).splitlines()[0] == (
                "'n' is a variable of a loop, and is used outside of its body"
            )
            assert re.search(rf"loop +\S*test_loops.py:{line}\b", str(error.value))


def test_an_inner_body_reads_the_variables_of_the_loops_around_it() -> None:
    made = NUMBERS.iterate(
        lambda n: n.union(OTHERS.iterate(lambda m: m.union(n.join(OTHERS, on=abs, how="semi")))),
    )
    view = made.run()
    assert view.step(numbers=[1], others=[2]) == ZSet.of([1, 2])
    assert view.input("others").remove(2) == ZSet({2: -1})


# ---- loops that do not come to an end ----


def longer(near: ef.Collection) -> ef.Collection:
    return near.join(
        ROADS, left_on="node", right_on="source",
        select=lambda near, road: Distance(road.target, near.far + road.length),
    )  # fmt: skip


def sum_of(near: ef.Collection) -> ef.Collection:
    return (near + longer(near)).group_by("node").agg(far=ef.sum("far"))


MAY_NOT_END: dict[str, tuple[Build, str]] = {
    "difference": (
        lambda: NUMBERS.iterate(lambda n: OTHERS - n),
        "its body takes rows away that depend on it",
    ),
    "difference further on": (
        lambda: NUMBERS.iterate(lambda n: (OTHERS - n.map(abs)).distinct()),
        "its body takes rows away that depend on it",
    ),
    "except_": (
        lambda: NUMBERS.iterate(lambda n: OTHERS.except_(n)),
        "its body leaves out rows that meet what depends on it",
    ),
    "anti": (
        lambda: NUMBERS.iterate(lambda n: n.join(n.map(abs), on=abs, how="anti")),
        "its body leaves out rows that meet what depends on it",
    ),
    "left join": (
        lambda: NUMBERS.iterate(lambda n: OTHERS.join(n, on=abs, how="left", select=max)),
        "its body leaves out rows that meet what depends on it",
    ),
    "sum": (
        lambda: NEAR.iterate(sum_of),
        "its body takes sum('far') of rows that depend on it",
    ),
    "count": (
        lambda: STOPS.iterate(lambda s: s.union(s.agg(node=ef.count()))),
        "its body takes count() of rows that depend on it",
    ),
    "top_k": (
        lambda: NUMBERS.iterate(lambda n: n.union(n.map(abs)).top_k(3)),
        "its body takes top_k of rows that depend on it",
    ),
    "growing": (
        lambda: NUMBERS.iterate(lambda n: n + OTHERS),
        "each round adds to 'n', with no distinct() after it",
    ),
    "one of two": (
        lambda: ef.fixpoint(lambda a, b: {"a": a.union(b), "b": OTHERS - a}, a=NUMBERS, b=OTHERS),
        "its body takes rows away that depend on it",
    ),
    "by way of an inner loop": (
        lambda: NUMBERS.iterate(
            lambda n: OTHERS.iterate(lambda m: m.distinct() - n, rounds=3)),
        "its body takes rows away that depend on it",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MAY_NOT_END)
def test_a_loop_that_may_not_end_warns_at_its_line(name: str) -> None:
    build, reason = MAY_NOT_END[name]
    with pytest.warns(MayNotEnd) as caught:
        build()
    assert len(caught) == 1
    said = str(caught[0].message)
    assert re.match(r"(iterate|fixpoint)\(.*\): this loop may never come to an end: ", said)
    assert reason in said
    assert said.endswith("; try rounds=, or a limit= by which it surely ends")
    assert Path(caught[0].filename).name == Path(__file__).name
    assert build.__code__.co_firstlineno in (caught[0].lineno, caught[0].lineno - 1)


def at_least_three(n: ef.Collection) -> ef.Collection:
    often = n.group_by("node").agg(times=ef.count()).filter(lambda row: row.times >= 3)
    return n.join(often, on="node", how="semi")


MAY_END: dict[str, Build] = {
    "union": lambda: NUMBERS.iterate(lambda n: n.union(n.map(abs))),
    "negation of what is outside": lambda: NUMBERS.iterate(
        lambda n: n.union(n.map(abs).except_(OTHERS))
    ),
    "difference outside": lambda: NUMBERS.iterate(lambda n: n.union(NUMBERS - OTHERS)),
    "sum outside": lambda: STOPS.iterate(
        lambda s: s.union(STOPS.agg(node=ef.sum("node")))
    ),
    "outer join with what is outside": lambda: NUMBERS.iterate(
        lambda n: n.union(n.join(OTHERS, on=abs, how="left", select=lambda n, o: n))
    ),
    "least": lambda: NEAR.iterate(
        lambda n: (n + longer(n)).group_by("node").agg(far=ef.min("far"))
    ),
    "the best row": lambda: NEAR.iterate(
        lambda n: (n + longer(n)).top_k(1, order="far", per="node", smallest=True)
    ),
    "a reducer of one's own": lambda: NEAR.iterate(
        lambda n: n.group_by("node").agg(far=ef.Reducer(0, max).on("far"))
    ),
    "a count that has to be reached": lambda: STOPS.iterate(at_least_three),
    "rounds": lambda: NUMBERS.iterate(lambda n: OTHERS - n, rounds=3),
    "a limit": lambda: NEAR.iterate(sum_of, limit=50),
    "an inner loop that needs nothing of this one": lambda: NUMBERS.iterate(
        lambda n: n.union(OTHERS.iterate(lambda m: NUMBERS - m, rounds=3))
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MAY_END)
def test_a_loop_that_cannot_be_seen_to_go_on_warns_of_nothing(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MAY_END[name]()


ENDLESS: dict[str, ef.Collection] = {
    "exact": NUMBERS.iterate(lambda n: n.map(lambda n: n + 1), limit=7),
    "lazy": NUMBERS.iterate(lambda n: n.union(n.map(lambda n: n + 1)), limit=7),
    "least": NEAR.iterate(
        lambda near: (near + near.map(lambda row: Distance(row.node + 1, row.far + 1)))
        .group_by("node").agg(far=ef.min("far")),
        limit=7,
    ),
    "several": ef.fixpoint(lambda a, n: {"a": a, "n": n.map(lambda n: n + 1)},
                           a=OTHERS, n=NUMBERS, limit=7)["a"],
}  # fmt: skip


@pytest.mark.parametrize("name", ENDLESS)
def test_002_D10_no_fixed_point_names_the_loop_its_line_the_round_and_rows_in_both_engines(
    name: str,
) -> None:
    made = ENDLESS[name]
    change: dict[str, Any] = {"near": [Distance(5, 5)]} if name == "least" else {"numbers": [5]}
    inputs = {each: ZSet.of(rows) for each, rows in change.items()}
    view = made.run()
    with pytest.raises(NoFixedPoint) as batch:
        evaluate(made.plan, inputs)
    with pytest.raises(NoFixedPoint) as error:
        view.step(change)
    variable = "near" if name == "least" else "n"
    changing = {"lazy": {12: 1}, "least": {Distance(12, 12): 1}}.get(name, {11: -1, 12: 1})
    for each in (batch.value, error.value):
        what, shown, created, remedy = str(each).splitlines()
        assert what == f"iterate: after 7 rounds rows of {variable!r} still change"
        assert shown.startswith("    changing   ZSet({")
        assert each.facts["changing"] == ZSet(changing)
        assert re.match(r"    created    \S*test_loops.py:\d+$", created)
        assert remedy == "    try        " + (
            "rounds=, a higher limit=, or a body that comes to an end; the step changed nothing"
        )
    assert view.value == ZSet()
    assert view.epoch == 0


# ---- why a loop is not monotone ----


def loop_of(made: ef.Collection) -> Iterate:
    return next(node for node in made.plan.nodes() if isinstance(node, Iterate))


WHY: dict[str, tuple[Build, str]] = {
    "rounds": (
        lambda: NUMBERS.iterate(lambda n: n.distinct(), rounds=3),
        "it leaves after 3 rounds, not at the fixed point",
    ),
    "two variables": (
        lambda: ef.fixpoint(lambda a, b: {"a": a, "b": b}, a=NUMBERS, b=OTHERS)["a"],
        "it has 2 variables",
    ),
    "priority": (
        lambda: NUMBERS.iterate(lambda n: n.distinct(), priority=abs), "rows enter by priority",
    ),
    "no distinct": (
        lambda: NUMBERS.iterate(lambda n: n.map(abs)),
        "its body ends with a map, at AT, not with distinct, min or max",
    ),
    "as it is": (
        lambda: NUMBERS.iterate(lambda n: n),
        "its body ends with 'n' as it is, not with distinct, min or max",
    ),
    "negative weights": (
        lambda: (NUMBERS - OTHERS).iterate(lambda n: n.distinct()),
        "rows that enter may have a negative weight",
    ),
    "start left behind": (
        lambda: NUMBERS.iterate(lambda n: n.map(abs).distinct()),
        "rows of 'n' are not all in the next round: the body does not add to what there is",
    ),
    "an anti join": (
        lambda: NUMBERS.iterate(lambda n: n.union(n.join(OTHERS, on=abs, how="anti"))),
        "its body has an anti join, at AT",
    ),
    "a join of joins": (
        lambda: NUMBERS.iterate(lambda n: n.union(n.intersect(OTHERS).join(
            OTHERS, on=abs, select=max))),
        "a join in its body reads a semijoin, at AT",
    ),
    "another reducer": (
        lambda: NEAR.iterate(sum_of, limit=9),
        "its body ends with a reduce, at AT, that is not one min or max",
    ),
    "roads that may be shorter than nothing": (
        lambda: NEAR.iterate(lambda n: (n + longer(n)).group_by("node").agg(far=ef.min("far"))),
        "what is made of a 'far' may be smaller than it: nothing says that what is added is not "
        "negative, at AT",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WHY)
def test_a_loop_that_is_not_monotone_says_why(name: str) -> None:
    build, why = WHY[name]
    found = monotone(loop_of(build()))
    assert isinstance(found, NotMonotone)
    assert re.sub(r"at \S+test_loops.py:\d+", "at AT", found.why) == why


def test_what_explain_says_is_what_was_decided() -> None:
    lazy = NUMBERS.iterate(lambda n: n.union(n.map(abs)))
    assert isinstance(monotone(loop_of(lazy)), Monotone)
    assert "runs     lazy rounds · monotone: distinct over steps on one row" in lazy.run().explain()
    exact = NUMBERS.iterate(lambda n: n.map(abs).distinct())
    assert (
        "runs     exact rounds · not monotone: rows of 'n' are not all in the next round: the body"
        in exact.run().explain()
    )
    assert "runs" not in exact.explain()


def test_stats_have_the_stages_of_a_body_below_their_loop() -> None:
    view = NUMBERS.iterate(lambda n: n.distinct().map(abs), rounds=2).run()
    view.step(numbers=[-3, 3])
    found = [(node.label, node.depth, node.state_rows) for node in view.stats().nodes]
    assert found == [("iterate", 0, 7), ("distinct", 1, 7), ("map", 1, 0)]
    lines = [line.split("  ")[:2] for line in str(view.stats()).splitlines()]
    assert ["", "distinct"] in lines
