"""Every relational operator through every axiom, on long runs, and with bugs that must be found."""

from __future__ import annotations

import operator
import pickle
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebbflow.change import BAG, KEEP, NUMBER, Both, ChangeStructure, First, Replace, Second, pair
from ebbflow.errors import ChangeError, CompositionError, LawBroken
from ebbflow.laws import FROM_SCRATCH, STEP, check
from ebbflow.operator import (
    Operator,
    aggregate,
    count,
    difference,
    distinct,
    flat_map_rows,
    group_aggregate,
    join,
    map_rows,
    product,
    project,
    select,
    union,
)
from ebbflow.operator.joins import Join
from ebbflow.state.cells import Cells
from ebbflow.state.node import TreeForm
from ebbflow.state.top_buffer import Ranking
from ebbflow.zset import ZSet

AnyOperator = Operator[Any, Any, Any, Any]


def odd(x: int) -> bool:
    return x % 2 == 1


def half(x: int) -> int:
    return x // 2


def third(x: int) -> int:
    return x % 3


def divisors(x: int) -> list[int]:
    return [d for d in range(1, 5) if x % d == 0]


def alone(x: Any) -> tuple[Any, ...]:
    return (x,)


def greater(a: Any, b: Any) -> Any:
    return a if a > b else b


def nearer(a: int, b: int) -> int:
    """The one nearer to a multiple of seven; of equally near ones the first."""
    return a if a % 7 <= b % 7 else b


def greatest(a: Any, b: Any) -> Any:
    """What `greater` gives, but that it is one of both cannot be seen: a tree is kept for it."""
    return sorted([a, b])[-1]


JOINS: list[AnyOperator] = [
    union(),
    product(),
    join(third),
    join(third, half),
    join(odd, third, merge=operator.add),
    join(third, merge=operator.sub),
]
ROWS: list[AnyOperator] = [
    select(odd),
    map_rows(half),
    flat_map_rows(divisors),
    count(),
]
WITH_WEIGHTS: list[AnyOperator] = [distinct(), difference()]
AGGREGATES: list[AnyOperator] = [
    aggregate(max),
    aggregate(min, empty=0, output=NUMBER),
    aggregate(greater),
    aggregate(greatest),
    aggregate(nearer),
    aggregate(nearer, order=operator.neg),
    aggregate(max, order=third),
    aggregate(operator.add, value=alone, order=operator.neg),
    aggregate(operator.add, empty=0, output=NUMBER),
    group_aggregate(third, max),
    group_aggregate(third, min),
    group_aggregate(third, nearer),
    group_aggregate(third, operator.add, value=alone),
    group_aggregate(odd, operator.or_, value=partial(operator.and_, 3)),
]
EVERY = JOINS + ROWS + WITH_WEIGHTS + AGGREGATES

Q1 = (select(odd) * select(half)) >> join(third, half)
Q2 = Q1 >> aggregate(max)
NETWORKS: list[AnyOperator] = [
    Q1,
    Q2,
    Q1 >> aggregate(greater),
    (map_rows(half) * distinct()) >> difference() >> group_aggregate(odd, max),
    select(odd) >> (distinct() & map_rows(half)) >> union() >> count(),
]


# ---- the axioms ----


@pytest.mark.parametrize("relational", [*JOINS, *ROWS], ids=repr)
def test_004_O6_linear_and_bilinear_operators_fulfil_every_axiom(relational: AnyOperator) -> None:
    check(relational, examples=15)


@pytest.mark.parametrize("relational", WITH_WEIGHTS, ids=repr)
def test_004_O6_operators_that_keep_weights_fulfil_every_axiom(relational: AnyOperator) -> None:
    check(relational, examples=15)


@pytest.mark.parametrize("relational", AGGREGATES, ids=repr)
def test_004_O7_aggregates_fulfil_every_axiom(relational: AnyOperator) -> None:
    check(relational, examples=15)


@pytest.mark.parametrize("network", NETWORKS, ids=repr)
def test_004_O9_networks_of_relational_operators_fulfil_every_axiom(network: AnyOperator) -> None:
    check(network, examples=10)


# ---- long runs ----


def random_change(of: ChangeStructure[Any, Any], value: Any, random: Random) -> Any:
    """A valid change of a bag or a pair of bags: some rows go, some come, some of them twice."""
    if of == pair(BAG, BAG):
        left, right = (random_change(BAG, side, random) for side in value)
        return random.choice([First(left), Second(right), Both(left, right)])
    rows = sorted(value)
    gone = random.sample(rows, random.randint(0, min(len(rows), 6)))
    change = {row: -random.randint(1, value.weight(row)) for row in gone}
    for _ in range(random.randint(0, 6)):
        row = random.randint(0, 60)
        change[row] = change.get(row, 0) + random.randint(1, 2)
    return ZSet(change)


@pytest.mark.parametrize("relational", [*EVERY, *NETWORKS], ids=repr)
def test_004_O6_O7_O9_sixty_changes_in_a_row_lead_where_recomputing_does(
    relational: AnyOperator,
) -> None:
    random = Random(4)
    start = ZSet.of(random.sample(range(60), 30))
    x: Any = (start, start) if relational.input == pair(BAG, BAG) else start
    state, y = relational.init(x), relational.f(x)
    for step in range(60):
        change = random_change(relational.input, x, random)
        assert relational.accepts(state, change)
        state, moved = relational.step(state, change)
        x = relational.input.patch(x, change)
        y = relational.output.patch(y, moved)
        assert y == relational.f(x)
        if step % 10 == 9:
            assert relational.invariant(x, state)


@pytest.mark.parametrize("merge", [max, min])
def test_004_O7_the_outermost_rows_are_picked_anew_when_they_run_out(merge: Any) -> None:
    """A group large enough for its tree to hold a part only, drained from the end and refilled."""
    relational = aggregate(merge)
    x = ZSet.of(range(1500))
    state = relational.init(x)
    values = list(range(1500)) if merge is min else list(range(1499, -1, -1))
    for at in range(0, 1500, 30):
        gone = ZSet(dict.fromkeys(values[at : at + 30], -1))
        state, moved = relational.step(state, gone)
        x = x + gone
        assert moved == Replace(values[at + 30] if at < 1470 else None)
        assert relational.invariant(x, state) if at % 300 == 0 else True
    for at in range(0, 1500, 30):
        back = ZSet.of(values[1470 - at : 1500 - at])
        state, moved = relational.step(state, back)
        x = x + back
        assert moved == Replace(values[1470 - at])
    assert relational.invariant(x, state)


# ---- what each computes, against plain Python ----

bags = st.dictionaries(st.integers(0, 9), st.integers(1, 3), max_size=6).map(ZSet)
some = settings(max_examples=60)


@some
@given(bags, bags)
def test_004_O6_what_is_kept_up_to_date_is_what_lists_would_give(
    left: ZSet[int], right: ZSet[int]
) -> None:
    a, b = list(left.rows()), list(right.rows())
    rest = list(a)
    for row in b:
        if row in rest:
            rest.remove(row)
    assert select(odd).f(left) == ZSet.of(filter(odd, a))
    assert map_rows(half).f(left) == ZSet.of(map(half, a))
    assert flat_map_rows(divisors).f(left) == ZSet.of(d for row in a for d in divisors(row))
    assert count().f(left) == len(a)
    assert distinct().f(left) == ZSet.of(set(a))
    assert union().f((left, right)) == ZSet.of(a + b)
    assert difference().f((left, right)) == ZSet.of(rest)
    assert product().f((left, right)) == ZSet.of((x, y) for x in a for y in b)
    equal = [(x, y) for x in a for y in b if third(x) == half(y)]
    assert join(third, half).f((left, right)) == ZSet.of(equal)
    assert aggregate(max, empty=-1).f(left) == max(a, default=-1)
    assert aggregate(operator.add, value=alone, empty=()).f(left) == tuple(sorted(a))
    best = {key: max(row for row in a if third(row) == key) for key in map(third, a)}
    assert group_aggregate(third, max).f(left) == ZSet.of(best.items())


def test_004_O6_a_difference_of_bags_remembers_what_the_second_has_too_often() -> None:
    live = difference().open((ZSet({"a": 1}), ZSet({"a": 3})))
    assert live.send(First(ZSet({"a": 3}))) == ZSet({"a": 1})
    assert live.send(Both(ZSet({"a": -4}), ZSet({"a": -1}))) == ZSet({"a": -1})
    assert live.send(Second(ZSet({"a": -2}))) == ZSet()
    assert live.send(First(ZSet({"a": 1}))) == ZSet({"a": 1})


def test_004_O6_rows_that_change_on_both_sides_at_once_meet_each_other() -> None:
    live = join(third).open((ZSet({0: 1}), ZSet({3: 1})))
    both = Both(ZSet({0: -1, 6: 1}), ZSet({3: -1, 9: 2}))
    assert live.send(both) == ZSet({(0, 3): -1, (6, 9): 2})
    assert live.send(Both(ZSet({6: 1}), ZSet({9: -1}))) == ZSet()
    assert live.send(Both(ZSet({6: -2}), ZSet({9: -1}))) == ZSet({(6, 9): -2})


def test_004_O6_fields_are_projected_by_position_or_by_name() -> None:
    class Row(NamedTuple):
        city: str
        price: int

    rows = ZSet.of([Row("Rome", 3), Row("Rome", 4)])
    assert project(0).f(rows) == project("city").f(rows) == ZSet({"Rome": 2})
    assert project("price", "city").f(rows) == ZSet.of([(3, "Rome"), (4, "Rome")])
    for fields in ((), (0, "city"), (odd,)):
        with pytest.raises(CompositionError, match="positions or names"):
            project(*fields)


def test_004_O7_an_aggregate_that_stays_says_so() -> None:
    live = aggregate(max).open(ZSet.of([1, 9]))
    assert live.send(ZSet({1: -1, 2: 1})) is KEEP
    grouped = group_aggregate(third, max).open(ZSet.of([3, 9]))
    assert grouped.send(ZSet({3: -1, 6: 1})) == ZSet()


@pytest.mark.parametrize(
    "relational", [distinct(), aggregate(max), aggregate(greater), group_aggregate(third, max)],
    ids=repr,
)  # fmt: skip
def test_004_O6_O7_a_change_that_takes_away_what_is_not_there_is_refused(
    relational: AnyOperator,
) -> None:
    live = relational.open(ZSet.of([1, 2]))
    before = repr(live.state)
    with pytest.raises(ChangeError, match="cannot take this change"):
        live.send(ZSet({1: -1, 7: -1}))
    assert repr(live.state) == before


def test_004_O6_both_sides_are_asked_for_what_a_change_takes_away() -> None:
    for relational in (join(third), product(), difference()):
        state = relational.init((ZSet.of([1]), ZSet.of([2])))
        assert relational.accepts(state, Both(ZSet({1: -1}), ZSet({2: -1})))
        assert not relational.accepts(state, Both(ZSet({1: -1}), ZSet({1: -1})))
        assert not relational.accepts(state, First(ZSet({2: -1})))
        with pytest.raises(ChangeError, match="no change of a pair"):
            relational.step(state, ZSet({1: 1}))


# ---- keys, epochs, repr, pickle ----


def test_004_O6_an_operator_says_which_keys_a_change_touches() -> None:
    both = Both(ZSet({4: 1}), ZSet({8: -1}))
    assert join(third, half).keys(both) == {1, 4}  # type: ignore[attr-defined]
    assert product().keys(both) == {()}  # type: ignore[attr-defined]
    assert difference().keys(both) == {4, 8}  # type: ignore[attr-defined]
    assert distinct().keys(ZSet({4: 1})) == {4}  # type: ignore[attr-defined]
    assert group_aggregate(third, max).keys(ZSet({4: 1, 7: 1, 5: -1})) == {1, 2}  # type: ignore[attr-defined]


def containers(state: Any) -> list[Any]:
    return list(state) if isinstance(state, tuple) else [state]


KEYED = [join(third), join(odd, merge=operator.add), product(), *WITH_WEIGHTS, *AGGREGATES]


@pytest.mark.parametrize("relational", KEYED, ids=repr)
def test_004_O6_O7_a_step_in_an_epoch_that_is_undone_leaves_no_trace(
    relational: AnyOperator,
) -> None:
    random = Random(7)
    start = ZSet.of(range(40))
    x: Any = (start, start) if relational.input == pair(BAG, BAG) else start
    state = relational.init(x)
    for container in containers(state):
        container.begin()
    value = x
    for _ in range(5):
        change = random_change(relational.input, value, random)
        state, _ = relational.step(state, change)
        value = relational.input.patch(value, change)
    assert relational.invariant(value, state)
    for container in containers(state):
        container.rollback()
    assert relational.invariant(x, state)


def touched_only(relational: Any, state: Any, change: Any) -> Any:
    """The state with the touched keys alone, as an engine fetches it."""
    few = relational.init(relational_nothing(relational))
    keys = relational.keys(change)
    for part, whole in zip(containers(few), containers(state), strict=True):
        source = whole.values if isinstance(whole, Cells) else whole.groups
        into = part.values if isinstance(part, Cells) else part.groups
        into.update({key: source[key] for key in keys if key in source})
    return few


def relational_nothing(relational: AnyOperator) -> Any:
    return (ZSet(), ZSet()) if relational.input == pair(BAG, BAG) else ZSet()


@pytest.mark.parametrize("relational", [r for r in KEYED if hasattr(r, "keys")], ids=repr)
def test_004_O6_O7_the_state_of_the_touched_keys_is_all_a_step_needs(
    relational: AnyOperator,
) -> None:
    random = Random(9)
    start = ZSet.of(range(30))
    x: Any = (start, start) if relational.input == pair(BAG, BAG) else start
    for _ in range(10):
        change = random_change(relational.input, x, random)
        few = touched_only(relational, relational.init(x), change)
        _, from_few = relational.step(few, change)
        assert from_few == relational.step(relational.init(x), change)[1]
        x = relational.input.patch(x, change)


@pytest.mark.parametrize("relational", [*EVERY, project(0, 1), *NETWORKS[:3]], ids=repr)
def test_004_O6_O7_operators_survive_the_trip_to_a_worker(relational: AnyOperator) -> None:
    again = pickle.loads(pickle.dumps(relational))
    assert repr(again) == repr(relational)
    if relational.input == BAG and "project" not in repr(relational):
        x, change = ZSet.of(range(9)), ZSet({3: -1, 12: 2})
        assert again.open(x).send(change) == relational.open(x).send(change)
        state = relational.step(relational.init(x), change)[0]
        assert relational.invariant(x + change, pickle.loads(pickle.dumps(state)))


def test_004_O6_O7_a_repr_pastes_back() -> None:
    names: dict[str, Callable[..., Any]] = {
        "select": select, "map_rows": map_rows, "join": join, "product": product, "union": union,
        "difference": difference, "distinct": distinct, "count": count, "aggregate": aggregate,
        "group_aggregate": group_aggregate, "project": project, "flat_map_rows": flat_map_rows,
    }  # fmt: skip
    functions = {
        f.__name__: f for f in (odd, half, third, divisors, alone, greater, greatest, nearer)
    }
    functions |= {"add": operator.add, "sub": operator.sub, "neg": operator.neg}
    for one in [*EVERY[:-1], project(1, 0), project("a")]:
        again = eval(repr(one), {**names, **functions, "max": max, "min": min, "NUMBER": NUMBER})
        assert repr(again) == repr(one)


# ---- planted bugs ----


class StaleJoin(Join):
    """Joins the right change with the left side as it was: forgets what both changes make."""

    def step(self, state: Any, change: Any) -> tuple[Any, Any]:
        _, from_left = super().step(self._copy(state), self._side(change, First))
        _, from_right = super().step(self._copy(state), self._side(change, Second))
        return super().step(state, change)[0], from_left + from_right

    def _copy(self, state: Any) -> Any:
        return pickle.loads(pickle.dumps(state))

    def _side(self, change: Any, side: Any) -> Any:
        if isinstance(change, Both):
            return side(change.first if side is First else change.second)
        return change if isinstance(change, side) else side(ZSet())


def test_004_O6_a_join_that_uses_the_old_index_when_both_sides_change_is_refuted() -> None:
    sides = [ZSet(), ZSet({3: 1}), ZSet({1: 1, 6: 2})]
    changes = [First(side) for side in sides] + [Both(a, b) for a in sides for b in sides]
    with pytest.raises(LawBroken) as caught:
        check(StaleJoin(third, third), inputs=[(a, b) for a in sides for b in sides],
              changes=changes, examples=60)  # fmt: skip
    assert caught.value.law is FROM_SCRATCH
    (change,) = caught.value.case["changes"]
    assert isinstance(change, Both)
    assert len(change.first) == len(change.second) == 1


class Forgetful(TreeForm):
    """Gives the root a new child and leaves its totals as they were: one spine is not updated."""

    __slots__ = ()

    def edited(self, node: Any, height: int, token: Any, x: Any, count: int) -> Any:
        found = super().edited(node, height, token, x, count)
        if found is None or not height:
            return found
        right, more = found
        return (*right[:3], node[3], right[4], node[5]), more


LARGER = [ZSet.of(range(size)) for size in (6, 9, 20)]
SINGLE = [ZSet({row: weight}) for row in (0, 4, 8, 19, 25) for weight in (1, -1)]


@pytest.mark.parametrize("law", [FROM_SCRATCH, STEP], ids=lambda law: law.name)
@pytest.mark.parametrize("grouped", [False, True], ids=["all rows", "by key"])
def test_004_O7_an_aggregate_tree_that_forgets_to_update_one_spine_is_refuted(
    law: Any, grouped: bool
) -> None:
    def planted(form: type[TreeForm]) -> Any:
        one: Any = group_aggregate(bool, greatest) if grouped else aggregate(greatest)
        one.groups.empty._form = form(None, None, greatest, (4, 4))
        return one

    with pytest.raises(LawBroken) as caught:
        check(planted(Forgetful), inputs=LARGER, changes=SINGLE, laws=[law], examples=60)
    assert caught.value.law is law
    check(planted(TreeForm), inputs=LARGER, changes=SINGLE, laws=[law], examples=60)


class NeverPicks(Ranking):
    """Forgets that there are rows behind the outermost ones."""

    __slots__ = ()

    def picked(self, elements: Any, room: int, complete: bool = True) -> Any:
        return super().picked(dict(list(elements.items())[:1]), room, complete)


def test_004_O7_a_maximum_that_forgets_the_rows_behind_it_is_refuted() -> None:
    planted: Any = aggregate(max)
    planted.groups.ranking = NeverPicks(up=True)
    with pytest.raises(LawBroken):
        check(planted, inputs=[ZSet.of([1, 2]), ZSet.of([5])], changes=SINGLE, examples=60)
