"""Every rewrite keeps every output, change by change, on random programs; wrong ones are refuted.

Two roads: the plan as it was written and the plan after the rewrite, by batch from scratch after
every epoch. `agree` is the whole law; the planted bugs at the end go through the same `agree`.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ebbflow as ef
from ebbflow.engine.batch import evaluate
from ebbflow.errors import EbbflowError
from ebbflow.flow.plan import Filter, Node, Plan
from ebbflow.flow.rewrite import (
    ALL,
    LOCAL,
    filters,
    fuse,
    narrow_joins,
    optimise,
    projections,
    push_filters,
    push_projections,
    reduce_sessions,
    share,
)
from ebbflow.flow.show import explain
from ebbflow.testing import VERB_NAMES, changes, plans, random_epochs, random_program
from ebbflow.zset import ZSet

Rewrite = Callable[[Plan], Plan]

REWRITES: dict[str, Rewrite] = {
    "share": share,
    "fuse": fuse,
    "reduce_sessions": reduce_sessions,
    "push_filters": push_filters,
    "push_projections": push_projections,
    "narrow_joins": narrow_joins,
    "optimise": optimise,
    "optimise ALL": lambda plan: optimise(plan, ALL),
    "ALL without share": lambda plan: optimise(plan, (push_filters, push_projections, fuse)),
}
# Filters and what they are pushed through, more often than the rest.
OFTEN = ("join", "left", "select", "reduce", "top_k", "semi", "anti")
MORE = (*VERB_NAMES, *["filter"] * 12, *["session_reduce"] * 2, *OFTEN, *OFTEN)


def agree(plan: Plan, rewrite: Rewrite, epochs: Iterable[Mapping[str, ZSet[Any]]]) -> Plan:
    """The rewritten plan, checked to give the same in every epoch, or to fail as well."""
    return all_agree(plan, [rewrite], epochs)[0]


def all_agree(
    plan: Plan, rewrites: Iterable[Rewrite], epochs: Iterable[Mapping[str, ZSet[Any]]]
) -> list[Plan]:
    """The plan rewritten in several ways. What is not rewritten at all is not computed again."""
    others = [rewrite(plan) for rewrite in rewrites]
    for other in others:
        assert list(other.outputs) == list(plan.outputs), both(plan, other)
        types = [[node.type for node in each.outputs.values()] for each in (other, plan)]
        assert types[0] == types[1], both(plan, other)
    new = [other for other in others if not is_same(plan, other)]
    inputs: dict[str, ZSet[Any]] = {}
    for epoch in epochs if new else ():
        inputs |= {name: inputs.get(name, ZSet()) + change for name, change in epoch.items()}
        expected = outcome(plan, inputs)
        for other in new:
            assert outcome(other, inputs) == expected, f"{inputs}\n\n{both(plan, other)}"
    return others


def is_same(plan: Plan, other: Plan) -> bool:
    """Whether all outputs of a plan are the very nodes of another."""
    return all(other.outputs[name] is node for name, node in plan.outputs.items())


def both(plan: Plan, other: Plan) -> str:
    return f"{explain(plan)}\n\nbecame\n\n{explain(other)}"


def outcome(plan: Plan, inputs: Mapping[str, ZSet[Any]]) -> Any:
    """What a plan gives, with the fields of its rows; or that it fails."""
    try:
        found = evaluate(plan, inputs)
    except EbbflowError as error:
        return type(error)
    fields = {getattr(row, "_fields", None) for rows in found.values() for row in rows}
    return found, fields


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_003_H5_a_rewritten_program_gives_the_same_change_by_change(data: st.DataObject) -> None:
    program = data.draw(plans(verbs=MORE, size=9))
    epochs = data.draw(changes(program, steps=4))
    all_agree(program.plan, REWRITES.values(), epochs)


def test_rewrites_do_something_to_many_random_programs_and_keep_their_places() -> None:
    changed: Counter[str] = Counter()
    for seed in range(90):
        plan = random_program(seed, size=9, verbs=MORE).plan
        places, shown = {node.place for node in plan.nodes()}, explain(plan)
        rewritten = all_agree(plan, REWRITES.values(), random_epochs(plan, seed, 2))
        for name, other in zip(REWRITES, rewritten, strict=True):
            assert {node.place for node in other.nodes()} <= places
            changed[name] += not is_same(plan, other) and explain(other) != shown
    assert changed["share"] >= 1  # few random programs have equal parts
    del changed["share"], changed["narrow_joins"]  # wide rows are in `test_narrow_joins`
    assert all(count >= 2 for count in changed.values()), changed


@pytest.mark.parametrize("rewrites", [LOCAL, ALL], ids=["LOCAL", "ALL"])
def test_optimising_again_changes_nothing(rewrites: tuple[Rewrite, ...]) -> None:
    for seed in range(80):
        plan = random_program(seed, size=9, verbs=MORE).plan
        once = optimise(plan, rewrites)
        again = optimise(once, rewrites)
        assert explain(again) == explain(once)
        assert is_same(once, again)


def test_a_rewrite_leaves_the_plan_it_was_given_as_it_is() -> None:
    for seed in range(20):
        plan = random_program(seed, size=9, verbs=MORE).plan
        before, nodes = explain(plan), plan.nodes()
        for rewrite in REWRITES.values():
            rewrite(plan)
        assert explain(plan) == before
        assert all(a is b for a, b in zip(plan.nodes(), nodes, strict=True))


# ---- functions that fail ----


class Order(NamedTuple):
    id: int
    customer: int
    city: str
    price: int


class Person(NamedTuple):
    customer: int
    name: str
    limit: int


orders = ef.Input("orders", Order)
people = ef.Input("people", Person)

FAILING: dict[str, ef.Collection] = {
    "a filter behind a join": orders.join(people, on="customer").filter(
        lambda o: 100 // o.price > 3
    ),
    "a filter behind a semijoin": orders.join(people, on="customer", how="semi").filter(
        lambda o: 100 % o.price == 0
    ),
    "a filter behind a filter": orders.filter(lambda o: o.price != 0).filter(
        lambda o: 100 // o.price > 3
    ),
    "and": orders.join(people, on="customer").filter(
        lambda o: o.price != 0 and 100 // o.price > 3 and o.name == "a"
    ),
    "&": orders.join(people, on="customer").filter(
        lambda o: (100 // o.price > 3) & (o.name == "a") & (o.city == "Rome")
    ),
    "what a filter passes": orders.select("city", part=lambda o: 100 // o.price).filter(
        lambda o: o.city == "Rome"
    ),
    "a merge that a filter passes": orders.join(
        people, on="customer", select=lambda o, p: Order(o.id, o.customer, p.name, 100 // o.price),
        type=Order,
    ).filter(lambda o: o.id == 1),
    "a key that a filter passes": orders.join(
        people, left_on=lambda o: 6 // o.price, right_on="customer", how="semi"
    ).filter(lambda o: o.city == "Rome"),
    "a reducer that a filter passes": orders.group_by("city").reduce(
        ef.sum(lambda o: 100 // o.price)
    ).filter(lambda o: o.city == "Rome"),
    "an order that a filter passes": orders.top_k(
        1, order=lambda o: 6 // o.price, per="city"
    ).filter(lambda o: o.city == "Rome"),
    "a field that nobody reads": orders.select("city", "price", part=lambda o: 100 // o.price)
    .group_by("city").agg(total=ef.sum("price")),
    "maps one after the other": orders.select("city", part=lambda o: 100 // o.price).select("city"),
    "rows that are negative": (orders - orders.filter(lambda o: o.price > 1) - orders)
    .group_by("city").agg(n=ef.count()).filter(lambda o: o.city == "Rome"),
    "rows that cancel": (orders - orders.map(lambda o: o, type=Order)).filter(
        lambda o: 100 // o.price > 3
    ),
}  # fmt: skip

ROWS: list[dict[str, ZSet[Any]]] = [
    {"orders": ZSet({Order(1, 1, "Rome", 3): 1})},
    {"people": ZSet({Person(1, "a", 0): 1})},
    {"orders": ZSet({Order(2, 2, "Oslo", 0): 1})},
    {"people": ZSet({Person(2, "b", 0): 2})},
    {"orders": ZSet({Order(2, 2, "Oslo", 0): -1})},
    {"orders": ZSet({Order(3, 1, "Rome", 0): 1})},
]


@pytest.mark.parametrize("rewrite", REWRITES)
@pytest.mark.parametrize("case", FAILING)
def test_a_rewritten_program_fails_in_the_same_epochs(case: str, rewrite: str) -> None:
    agree(ef.program(out=FAILING[case]).plan, REWRITES[rewrite], ROWS)


def test_the_failing_programs_do_fail_and_do_not_always() -> None:
    for case, rows in FAILING.items():
        plan, inputs, seen = ef.program(out=rows).plan, {}, set()
        for epoch in [{}, *ROWS]:
            inputs |= {name: inputs.get(name, ZSet()) + z for name, z in epoch.items()}
            seen.add(isinstance(outcome(plan, inputs), type))
        assert True in seen or case in ("a filter behind a filter", "and", "rows that cancel"), case
        assert False in seen, case


# ---- planted: wrong rewrites, refuted by the same law ----


def refuted(rows: ef.Collection, rewrite: Rewrite, *, epochs: Any = None) -> bool:
    plan = ef.program(out=rows).plan
    for seed in range(40):
        try:
            agree(plan, rewrite, epochs or random_epochs(plan, seed, 6))
        except (AssertionError, LookupError, AttributeError):
            return True
    return False


best = orders.top_k(1, order="price", per="city")


def test_planted_a_filter_pushed_into_the_wrong_side_of_an_anti_join(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    others = ef.Input("others", Order)
    rows = orders.join(others, on="customer", how="anti").filter(lambda o: o.price > 1)
    assert not refuted(rows, push_filters)
    passing = filters._passing

    def wrong(node: Node, fn: Any) -> Any:
        return [(1, fn)] if node.verb == "semi" else passing(node, fn)

    monkeypatch.setattr(filters, "_passing", wrong)
    assert refuted(rows, push_filters)


def test_planted_a_filter_pushed_into_the_wrong_side_of_a_join(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = orders.cross(ef.Input("others", Order), select=lambda a, b: a, type=Order).filter(
        lambda o: o.price > 1
    )
    assert not refuted(rows, push_filters)
    passing = filters._passing

    def wrong(node: Node, fn: Any) -> Any:
        found = passing(node, fn)
        return [(1 - i, moved) for i, moved in found] if found and node.verb == "join" else found

    monkeypatch.setattr(filters, "_passing", wrong)
    assert refuted(rows, push_filters)


def test_planted_a_filter_that_may_fail_counts_as_total(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = FAILING["a filter behind a join"]
    assert not refuted(rows, push_filters, epochs=ROWS)
    monkeypatch.setattr(filters, "total", lambda fn: True)
    assert refuted(rows, push_filters, epochs=ROWS)


def test_planted_what_a_filter_passes_counts_as_total(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = FAILING["what a filter passes"]
    assert not refuted(rows, push_filters, epochs=ROWS)
    monkeypatch.setattr(filters, "certain", lambda fn: True)
    assert refuted(rows, push_filters, epochs=ROWS)


def test_planted_a_filter_on_any_field_passes_top_k(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = best.filter(lambda o: o.id == 1)
    assert not refuted(rows, push_filters)
    monkeypatch.setattr(filters, "of_key", lambda fn, key: fn)
    assert refuted(rows, push_filters)


def test_planted_a_filter_passes_what_others_read(monkeypatch: pytest.MonkeyPatch) -> None:
    both = orders.distinct()
    rows = both.filter(lambda o: o.price > 1) + both
    assert not refuted(rows, push_filters)
    monkeypatch.setattr(filters, "consumers", lambda plan: dict.fromkeys(map(id, plan.nodes()), 1))
    assert refuted(rows, push_filters)


def test_planted_top_k_loses_a_field_that_decides_between_equals(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    swapped = orders.map(lambda o: Order(o.customer, o.id, o.city, 0), type=Order)
    rows = swapped.top_k(1, order="price", per="city").group_by("city").agg(n=ef.sum("customer"))
    assert not refuted(rows, push_projections)
    monkeypatch.setattr(projections, "_first_fields", lambda kind, names: names)
    assert refuted(rows, push_projections)


def test_planted_a_reducer_reads_more_than_it_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = orders.group_by("city").agg(total=ef.sum("price"))
    assert not refuted(rows, push_projections)
    monkeypatch.setattr(projections, "reducer_reads", lambda reducer, kind: frozenset())
    assert refuted(rows, push_projections)


def test_planted_nodes_of_one_kind_are_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = orders.filter(lambda o: o.price > 1) + orders.filter(lambda o: o.price < 1)
    assert not refuted(rows, share)
    module = sys.modules["ebbflow.flow.rewrite.share"]
    monkeypatch.setattr(module, "_equal", lambda a, b: type(a) is type(b))
    monkeypatch.setattr(module, "hash", lambda node: 0, raising=False)
    assert refuted(rows, share)


def test_planted_steps_fused_in_the_wrong_order() -> None:
    rows = orders.map(lambda o: Order(o.id, o.customer, o.city, o.price * 2), type=Order).filter(
        lambda o: o.price > 3
    )

    def wrong(plan: Plan) -> Plan:
        filter = plan.outputs["out"]
        assert isinstance(filter, Filter)
        mapped: Any = filter.parent
        early = Filter(parent=mapped.parent, fn=filter.fn, type=mapped.parent.type)
        return Plan({"out": type(mapped)(parent=early, fn=mapped.fn, type=mapped.type)})

    assert not refuted(rows, fuse)
    assert refuted(rows, wrong)
