"""The generators of programs and changes, and the comparison: would they find a wrong engine?"""

from __future__ import annotations

import re
from collections import Counter
from itertools import islice
from random import Random
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st
from tests.oracle.doubles import WRONG, Recomputing
from tests.oracle.looped import every_node

from ebbflow.engine.batch import evaluate
from ebbflow.errors import AlgebraError, CheckError
from ebbflow.flow import plan as nodes
from ebbflow.flow.plan import Filter, Node, Plan, Reduce, Semi
from ebbflow.flow.program import Program, program
from ebbflow.flow.source import Input
from ebbflow.laws import check
from ebbflow.record import fields_of
from ebbflow.reducer import RECOMPUTE, count
from ebbflow.testing import (
    ALL_NAMES,
    VERB_NAMES,
    changes,
    follow,
    plans,
    random_epochs,
    random_program,
)
from ebbflow.testing.functions import Choices, RowShape, function
from ebbflow.testing.loops import LOOP_NAMES
from ebbflow.testing.programs import Measurement, Moment, Recipe, Stock, grow
from ebbflow.testing.reducers import MAKERS, SORTS
from ebbflow.zset import ZSet, trusted

QUICK = settings(
    database=None,
    derandomize=True,
    max_examples=100,
    suppress_health_check=list(HealthCheck),
)
SEEDS = range(300)


@pytest.fixture(scope="module")
def programs() -> list[Program]:
    return [random_program(seed) for seed in SEEDS]


# ---- what is generated ----


def everything(made: Program) -> list[Node]:
    return made.plan.nodes()


def test_programs_with_loops_hold_every_kind_of_node_that_others_do_not() -> None:
    made = [random_program(seed, verbs=ALL_NAMES) for seed in range(60)]
    seen = Counter(type(node).__name__ for each in made for node in every_node(each.plan))
    assert min(seen["Iterate"], seen["LoopInput"]) >= 20


@pytest.mark.parametrize("kind", LOOP_NAMES)
def test_every_kind_of_loop_can_be_asked_for_alone(kind: str) -> None:
    made = [random_program(seed, verbs=[kind], size=2) for seed in range(10)]
    assert any(isinstance(node, nodes.Iterate) for each in made for node in everything(each))


def test_300_programs_hold_every_kind_of_node(programs: list[Program]) -> None:
    seen = Counter(type(node).__name__ for made in programs for node in everything(made))
    concrete = {
        name
        for name, each in vars(nodes).items()
        if isinstance(each, type) and issubclass(each, Node) and "verb" in vars(each)
    }
    concrete -= {"Fused", "Iterate", "LoopInput"}
    assert concrete <= set(seen)
    assert min(seen[name] for name in concrete) >= 20


@pytest.mark.parametrize("kind", VERB_NAMES)
def test_every_kind_of_step_can_be_asked_for_alone(kind: str) -> None:
    made = [random_program(seed, verbs=[kind], size=3) for seed in range(30)]
    assert max(len(everything(each)) for each in made) >= 2


def test_300_programs_hold_every_sort_of_reducer(programs: list[Program]) -> None:
    seen: Counter[str] = Counter()
    for node in (node for made in programs for node in everything(made)):
        if isinstance(node, Reduce):
            reducer = node.reducer
            user = reducer.made is None
            has = (reducer.remove is not None, reducer.merge is not None)
            seen[f"{user} {has}"] += 1
            seen[f"spread {node.spread}"] += 1
            seen[f"width {node.width}"] += 1
    user = {f"True {has}" for has in ((True, False), (True, True), (False, True), (False, False))}
    assert user | {"spread True", "width 0", "width 1", "width 2"} <= set(seen)


def test_300_programs_hold_diamonds_self_joins_negative_parts_and_several_outputs(
    programs: list[Program],
) -> None:
    seen: Counter[str] = Counter()
    for made in programs:
        readers = Counter(id(parent) for node in everything(made) for parent in node.parents)
        seen["shared"] += max(readers.values(), default=0) > 1
        seen["outputs"] += len(made.plan.outputs) > 1
        for node in everything(made):
            seen["self-join"] += isinstance(node, nodes.Join) and node.left is node.right
            seen["minus"] += isinstance(node, nodes.Concat) and -1 in node.signs
            seen["keyed input"] += isinstance(node, nodes.Source) and node.key is not None
            seen["untyped"] += fields_of(node.type) is None
            seen["anti"] += isinstance(node, Semi) and node.anti
            seen["negative in a set"] += isinstance(node, nodes.Distinct) and not node.parent.bag
            beside = re.search(r"\.n (>|==|<=|!=) r\.x", repr(getattr(node, "fn", "")))
            seen["big beside float"] += beside is not None
            for each in (Measurement, Moment):
                seen[each.__name__] += isinstance(node, nodes.Source) and node.type is each
            seen["smallest"] += isinstance(node, nodes.TopK) and node.smallest
    rare = [word for word, times in seen.items() if times < (1 if "big" in word else 10)]
    assert rare == []
    assert len(seen) == 12


def test_most_programs_give_rows_that_are_what_the_types_say(programs: list[Program]) -> None:
    full = 0
    for seed, made in enumerate(programs):
        found = evaluate(made.plan, _after(made, seed))
        full += any(found.values())
        for name, rows in found.items():
            fields = fields_of(made.plan.outputs[name].type)
            if fields is not None:
                assert {getattr(row, "_fields", None) for row in rows} <= {tuple(fields)}
    assert full > 0.75 * len(programs)


def test_nothing_that_needs_a_bag_has_a_negative_row_before_it() -> None:
    kinds = ["minus", "minus", "flat_map", "plus", "reduce", "top_k", "session", "through"]
    negative = 0
    for seed in range(200):
        made = random_program(seed, verbs=kinds, types=[int], size=5)
        found = evaluate(made.plan, _after(made, seed))
        negative += not all(rows.is_bag for rows in found.values())
    assert negative >= 10


def _after(made: Program, seed: int) -> dict[str, ZSet[Any]]:
    inputs: dict[str, ZSet[Any]] = {name: ZSet() for name in made.plan.sources}
    for epoch in random_epochs(made, seed, 6):
        for name, change in epoch.items():
            inputs[name] += change
    return inputs


def test_a_program_follows_from_its_seed() -> None:
    kinds = [
        kind for kind in VERB_NAMES if not kind.startswith("through")
    ]  # operators are not equal to each other
    made, again, other = (random_program(seed, verbs=kinds) for seed in (5, 5, 6))
    assert made.plan == again.plan != other.plan
    assert random_epochs(made, 1, 5) == random_epochs(made, 1, 5) != random_epochs(made, 2, 5)


def test_an_unknown_kind_of_step_is_refused() -> None:
    with pytest.raises(CheckError, match="'sort' is no kind of step"):
        plans(verbs=["sort"])


class Order(NamedTuple):
    city: str
    price: int
    paid: frozenset[str]


@given(st.data())
@QUICK
def test_programs_are_made_over_given_inputs(data: st.DataObject) -> None:
    orders = Input("orders", Order)
    made = data.draw(plans([orders], size=4))
    clocks = {name for name in made.plan.sources if name.startswith("now_")}
    assert set(made.plan.sources) - clocks == {"orders"}
    rows = st.builds(Order, st.sampled_from("ab"), st.integers(0, 3), st.just(frozenset({"now"})))
    follow(Recomputing, made, data.draw(changes(made, rows={"orders": rows})))


def test_a_type_without_known_values_asks_for_rows() -> None:
    with pytest.raises(CheckError, match="no rows are known for input 'orders'") as error:
        changes(Input("orders", Order))
    assert "paid" in str(error.value)


@pytest.mark.parametrize("sort", SORTS)
def test_generated_reducers_are_well_formed(sort: str) -> None:
    shape = RowShape(("int", "maybe", "str"), ("k", "w", "s"))
    dice, tried = Random(sort), set()

    class Row(NamedTuple):
        k: int
        w: int | None
        s: str

    rows = [Row(k, w, s) for k in (0, 1, -2) for w in (None, 3) for s in ("a", "")]
    for _ in range(40):
        made, _ = MAKERS[sort](shape, Choices(dice.randrange(1 << 48)))
        if repr(made) not in tried:
            tried.add(repr(made))
            verdict = check(made, elements=rows, examples=20).verdict
            assert verdict == sort or sort == "library"
    assert len(tried) >= 3


def test_partial_reducers_decline_in_some_calls_only() -> None:
    shape, answers = RowShape(("int",), whole=True), set()
    for number in range(12):
        made, _ = MAKERS["partial"](shape, Choices(number))
        for x in range(4):
            answers.add(made.remove(made.fold([0, 1, 2, 3]), x) is RECOMPUTE)
    assert answers == {True, False}


def test_functions_are_the_same_object_for_the_same_text() -> None:
    assert function("r + 1") is function("r + 1")
    assert function("r + 1") is not function("r + 2")


# ---- changes ----


@given(st.data())
@QUICK
def test_changes_are_valid_for_what_is_there(data: st.DataObject) -> None:
    inputs = [Input("a", Stock), Input("b", Stock, key="k"), Input("c", int), Input("d")]
    made = program(**{each.node.name: each for each in inputs})
    so_far: dict[str, ZSet[Any]] = {}
    for epoch in data.draw(changes(made, steps=8, size=8)):
        for name, change in epoch.items():
            so_far[name] = so_far.get(name, ZSet()) + change
            assert so_far[name].is_bag
    assert evaluate(made.plan, so_far) is not None
    rows = list(so_far.get("b", ZSet()).rows())
    assert len(rows) == len({row.k for row in rows})


def test_changes_do_everything_that_changes_do() -> None:
    made = program(a=Input("a", Stock), b=Input("b", Stock, key="k"))
    seen: Counter[str] = Counter()
    for seed in range(100):
        there: dict[str, ZSet[Any]] = {}
        for epoch in random_epochs(made, seed, 8):
            seen["empty"] += not epoch
            seen["both inputs"] += len(epoch) == 2
            for name, change in epoch.items():
                weights = [weight for _, weight in change.items()]
                old = there.get(name, ZSet())
                there[name] = old + change
                seen["deletes"] += min(weights, default=0) < 0
                seen["deletes first"] += len(weights) > 1 and weights[0] < 0 < weights[-1]
                seen["deletes last"] += len(weights) > 1 and weights[0] > 0 > weights[-1]
                seen["duplicates"] += max((w for _, w in there[name].items()), default=0) > 1
                seen["big weights"] += max(weights, default=0) >= 20
                seen["back to nothing"] += bool(old) and not there[name]
                gone = {row.k for row in change.negative()}
                seen["updates"] += name == "b" and bool(gone & {r.k for r in change.positive()})
    assert len(seen) == 9
    assert min(seen.values()) >= 10, seen


# ---- the comparison ----


@given(st.data())
@settings(QUICK, max_examples=60)
def test_recomputing_is_found_right(data: st.DataObject) -> None:
    made = data.draw(plans())
    follow(Recomputing, made, data.draw(changes(made)))


def test_recomputing_is_found_right_on_seeds(programs: list[Program]) -> None:
    for seed, made in enumerate(programs[:100]):
        view = follow(Recomputing, made, random_epochs(made, seed, 5))
        assert view.plan is made.plan


def wrong(spoil: Any, case: Any) -> bool:
    """Whether a case shows what is wrong."""
    try:
        follow(lambda plan: Recomputing(plan, spoil), *case)
    except AssertionError:
        return True
    return False


@pytest.mark.parametrize("spoil", WRONG, ids=lambda spoil: spoil.__name__)
def test_a_wrong_engine_is_found_in_many_of_300_programs(
    spoil: Any, programs: list[Program]
) -> None:
    cases = ((made, random_epochs(made, seed, 6)) for seed, made in enumerate(programs))
    found = (case for case in cases if wrong(spoil, case))
    assert len([*islice(found, 10)]) == 10


@pytest.mark.parametrize("spoil", WRONG[2:5], ids=lambda spoil: spoil.__name__)
def test_what_a_wrong_engine_fails_on_is_shrunk_to_a_few_nodes_and_rows(spoil: Any) -> None:
    cases = plans().flatmap(lambda made: st.tuples(st.just(made), changes(made)))
    search = settings(QUICK, max_examples=500, phases=[Phase.generate, Phase.shrink])
    found = find(cases, lambda case: wrong(spoil, case), settings=search, random=Random(3))
    made, epochs = found
    assert len(everything(made)) <= 7
    assert len(epochs) <= 2
    assert sum(len(change) for epoch in epochs for change in epoch.values()) <= 2


def broken(spoil: Any) -> str:
    words = Input("words", str).filter(len).distinct()
    epochs = [{"words": ZSet.of("ab")}, {}, {"words": ZSet({"a": -1, "c": 2})}]
    with pytest.raises(AssertionError) as error:
        follow(lambda plan: Recomputing(plan, spoil), words, epochs)
    return str(error.value)


def test_the_error_shows_the_rows_the_epochs_and_the_plan() -> None:
    def loses_a_row(node: Node, view: Any, given: Any, rows: dict[Any, int]) -> dict[Any, int]:
        return {row: weight for row, weight in rows.items() if row != "c"}

    text = broken(loses_a_row)
    assert text.startswith(
        "after epoch 3 the changes do not add up to what batch computes\n"
        "    output\n"
        "        missing  'c'\n\n"
        "epoch 1: words ZSet({'a': 1, 'b': 1})\n"
        "epoch 2: nothing\n"
        "epoch 3: words ZSet({'a': -1, 'c': 2})\n"
    )
    for word in ("distinct", "filter", "input words"):
        assert word in text


class View(Recomputing):
    """A view that is right until a test makes it wrong."""


def test_a_value_that_disagrees_with_the_changes_is_found() -> None:
    class Stale(View):
        value = ZSet()

    with pytest.raises(AssertionError, match="after epoch 1 the value is not what batch computes"):
        follow(Stale, Input("a", int), [{"a": ZSet.of([1])}])


def test_a_wrong_first_value_is_found() -> None:
    class Full(View):
        value = ZSet.of("x")

    with pytest.raises(AssertionError, match=r"^the first value"):
        follow(Full, Input("a", int), [])


def test_rows_of_weight_zero_are_found() -> None:
    class Zeros(View):
        def step(self, changes: Any) -> Any:
            return trusted({**dict(super().step(changes).items()), "x": 0})

    with pytest.raises(AssertionError, match="rows of weight zero"):
        follow(Zeros, Input("a"), [{"a": ZSet.of([1])}])


def test_rows_that_have_lost_their_fields_are_found() -> None:
    class Plain(View):
        def step(self, changes: Any) -> Any:
            return super().step(changes).map(tuple)

    with pytest.raises(AssertionError, match="have other fields"):
        follow(Plain, Input("a", Stock), [{"a": ZSet.of([Stock(1, 2, "a")])}])


@pytest.mark.parametrize("given", [{"b": ZSet.of([1])}, 7], ids=str)
def test_what_is_no_change_of_the_outputs_is_found(given: Any) -> None:
    class Strange(View):
        def step(self, changes: Any) -> Any:
            return given

    with pytest.raises(AssertionError, match="is given"):
        follow(Strange, Input("a"), [{"a": ZSet.of([1])}])


def test_an_engine_must_refuse_what_batch_refuses_and_stay_as_it_was() -> None:
    rows = (Input("a", int) - Input("b", int)).group_by(function("r % 2")).reduce(count())
    epochs = [{"a": ZSet.of([1, 2])}, {"b": ZSet.of([3])}, {"b": ZSet.of([1])}]
    assert follow(Recomputing, rows, epochs).value == ZSet.of([(0, 1)])

    class Lenient(View):
        def step(self, changes: Any) -> Any:
            try:
                return super().step(changes)
            except Exception:
                return ZSet()

    with pytest.raises(AssertionError, match="takes what batch refuses"):
        follow(Lenient, rows, epochs)


def test_an_engine_that_raises_is_found_with_the_plan() -> None:
    class Refuses(View):
        def step(self, changes: Any) -> Any:
            raise AlgebraError("no")

    class Crashes(View):
        def step(self, changes: Any) -> Any:
            raise KeyError("no")

    epochs = [{"a": ZSet.of([1])}]
    with pytest.raises(AssertionError, match="the engine refuses what batch does not"):
        follow(Refuses, Input("a"), epochs)
    with pytest.raises(KeyError) as error:
        follow(Crashes, Input("a"), epochs)
    assert "input a" in error.value.__notes__[0]


def test_several_outputs_are_compared_by_name() -> None:
    a = Input("a", int)
    both = program(all=a, odd=a.filter(function("r % 2 == 1")))

    class Swapped(View):
        def step(self, changes: Any) -> Any:
            found = super().step(changes)
            return {"all": found.get("odd", ZSet()), "odd": found.get("all", ZSet())}

    assert follow(Recomputing, both, [{"a": ZSet.of([1, 2])}]).value["odd"] == ZSet.of([1])
    with pytest.raises(AssertionError, match=r"all\n +missing +2"):
        follow(Swapped, both, [{"a": ZSet.of([1, 2])}])


def test_a_recipe_shrinks_by_leaving_steps_out() -> None:
    steps = (("map", 100), ("filter", 0), ("reduce", 200))
    for at in range(len(steps)):
        made = grow(Recipe(((0, False),), steps[:at] + steps[at + 1 :]))
        assert isinstance(made.plan, Plan)
    assert isinstance(grow(Recipe(((0, False),), steps[1:2])).plan.outputs["out"], Filter)
