"""What each node of a plan means, on literal rows."""

from __future__ import annotations

import ast
import math
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ebbflow.change import BAG, NATURAL
from ebbflow.engine import batch
from ebbflow.engine.batch import evaluate
from ebbflow.engine.batch.difference import difference, mismatch
from ebbflow.errors import ChangeError, CompositionError, FunctionFailed, Text
from ebbflow.flow.plan import (
    Concat,
    Distinct,
    Filter,
    FlatMap,
    Fused,
    FusedStep,
    Join,
    Map,
    Node,
    Plan,
    Reduce,
    Semi,
    Sessions,
    Source,
    Through,
    TopK,
)
from ebbflow.fn import Fn
from ebbflow.operator import map_rows, stateless
from ebbflow.record import record
from ebbflow.reducer import Reducer, count, sum
from ebbflow.zset import ZSet

A = Source(name="a")
B = Source(name="b")
HERE = Text("app.py:7")


class Order(NamedTuple):
    city: str
    price: int


FIRST = Fn(lambda row: row[0])
SECOND = Fn(lambda row: row[1])


def value(node: Node, a: Any = (), b: Any = ()) -> dict[Any, int]:
    """The rows of one node; inputs are rows, or rows with weights."""
    inputs = {"a": _zset(a), "b": _zset(b)}
    return dict(evaluate(Plan({"out": node}), inputs)["out"].items())


def _zset(rows: Any) -> ZSet[Any]:
    return ZSet(rows) if isinstance(rows, dict) else ZSet.of(rows)


def raises(_: Any) -> Any:
    raise ZeroDivisionError("by nothing")


# ---- one row at a time ----


def test_an_input_that_is_not_given_is_empty() -> None:
    assert evaluate(Plan({"out": A}), {}) == {"out": ZSet()}


def test_map_adds_up_rows_that_become_equal() -> None:
    assert value(Map(parent=A, fn=Fn(abs)), {1: 2, -1: 1, 2: 1, -2: -1}) == {1: 3}


def test_filter_keeps_weights_and_takes_any_true_value() -> None:
    assert value(Filter(parent=A, fn=Fn(lambda x: x % 3)), {1: 2, 3: 1, 4: -1}) == {1: 2, 4: -1}


def test_flat_map_counts_an_image_as_often_as_it_is_given() -> None:
    assert value(FlatMap(parent=A, fn=Fn(list)), {"aab": 2, "": 1}) == {"a": 4, "b": 2}


def test_fused_does_its_steps_first_to_last() -> None:
    steps = (
        FusedStep(verb="map", fn=Fn(lambda x: x + 1)),
        FusedStep(verb="filter", fn=Fn(lambda x: x > 1)),
        FusedStep(verb="flat_map", fn=Fn(lambda x: [x, 10 * x])),
    )
    assert value(Fused(parent=A, steps=steps), {0: 1, 1: 1, 2: 2}) == {2: 1, 20: 1, 3: 2, 30: 2}


# ---- whole collections ----


def test_concat_adds_and_takes_away() -> None:
    node = Concat(parts=(A, B, A), signs=(1, -1, 1))
    assert value(node, {1: 1, 2: 1}, {2: 2, 3: 1}) == {1: 2, 3: -1}


def test_distinct_drops_what_is_negative() -> None:
    assert value(Distinct(parent=A), {1: 3, 2: -1}) == {1: 1}


def join(left: Node = A, right: Node = B, merge: Any = lambda x, y: (x, y)) -> Join:
    return Join(left=left, right=right, left_key=FIRST, right_key=SECOND, merge=Fn(merge))


def test_join_multiplies_weights_also_negative_ones() -> None:
    found = value(join(), {"xa": 2, "ya": 1}, {"1x": 3, "2x": -1, "3z": 1})
    assert found == {("xa", "1x"): 6, ("xa", "2x"): -2}


def test_join_adds_up_merged_rows() -> None:
    assert value(join(merge=lambda x, y: x[0]), {"xa": 1, "xb": 2}, {"1x": 1, "2x": 1}) == {"x": 6}


def test_a_join_with_itself_meets_both_ways() -> None:
    node = Join(left=A, right=A, left_key=FIRST, right_key=FIRST, merge=Fn(lambda x, y: x + y))
    assert value(node, ["xa", "xb"]) == {"xaxa": 1, "xaxb": 1, "xbxa": 1, "xbxb": 1}


@pytest.mark.parametrize(("anti", "rows"), [(False, {"xa": 2}), (True, {"ya": -1, "za": 1})])
def test_semi_asks_whether_the_right_rows_of_a_key_add_up_to_something(
    anti: bool, rows: dict[str, int]
) -> None:
    node = Semi(left=A, right=B, left_key=FIRST, right_key=SECOND, anti=anti)
    right = {"1x": 2, "2x": -1, "1y": 1, "2y": -1, "1z": 1, "2z": -2}
    assert value(node, {"xa": 2, "ya": -1, "za": 1}, right) == rows


# ---- rows of one key ----


def test_reduce_gives_one_row_of_its_type_for_each_key_with_rows() -> None:
    Out = record("Out", city=str, total=int, n=int)
    node = Reduce(
        parent=A, key=Fn(lambda o: o.city), reducer=sum("price") & count(), width=1, spread=True
    )
    typed = replace(node, type=Out)
    rows = {Order("Rome", 3): 2, Order("Rome", 1): 1, Order("Oslo", 5): 1}
    assert value(typed, rows) == {("Rome", 7, 3): 1, ("Oslo", 5, 1): 1}
    assert {type(row) for row in value(typed, rows)} == {Out}
    assert {type(row) for row in value(node, rows)} == {tuple}


def test_reduce_spreads_a_key_of_several_parts() -> None:
    node = Reduce(parent=A, key=Fn(lambda o: (o[0], o[1])), reducer=count(), width=2, spread=False)
    assert value(node, ["xa", "xa", "ya"]) == {("x", "a", 2): 1, ("y", "a", 1): 1}


def test_reduce_without_a_key_has_one_row_or_none() -> None:
    node = Reduce(parent=A, reducer=count(), width=0, spread=False)
    assert value(node, "aab") == {(3,): 1}
    assert value(node) == {}


def test_rows_that_cancel_make_no_group() -> None:
    nothing = Concat(parts=(A, A), signs=(1, -1))
    assert value(Reduce(parent=nothing, reducer=count(), width=0, spread=False), "aab") == {}
    assert value(top(1, parent=nothing), ["a1"]) == {}


def test_a_result_that_is_a_tuple_is_one_value_unless_it_is_spread() -> None:
    pair = sum() & count()
    node = Reduce(parent=A, reducer=pair, width=0, spread=False)
    assert value(node, [3, 4]) == {((7, 2),): 1}


def top(n: int, **rest: Any) -> TopK:
    return TopK(n=n, **{"parent": A, "by": SECOND, **rest})


def test_top_k_counts_repeated_rows() -> None:
    assert value(top(3), {"a9": 2, "b8": 5, "c7": 1}) == {"a9": 2, "b8": 1}


def test_top_k_decides_ties_by_the_rows_in_the_same_direction() -> None:
    rows = ["c5", "a5", "d9", "b5"]
    assert value(top(2), rows) == {"d9": 1, "c5": 1}
    assert value(top(2, smallest=True), rows) == {"a5": 1, "b5": 1}


def test_top_k_per_key() -> None:
    assert value(top(1, key=FIRST), ["a1", "a2", "b1"]) == {"a2": 1, "b1": 1}


def test_top_k_orders_values_of_mixed_types() -> None:
    rows = [("a", None), ("b", 3), ("c", "x"), ("d", 2.5)]
    assert value(top(2), rows) == {("c", "x"): 1, ("b", 3): 1}
    assert value(top(2, smallest=True), rows) == {("a", None): 1, ("d", 2.5): 1}


def test_top_k_has_a_place_for_nan_and_for_rows_of_mixed_types() -> None:
    by = Fn(lambda row: math.nan if row == "x" else 1.0)
    assert value(top(2, by=by), [2, "x", None]) == {"x": 1, 2: 1}


def session(gap: Any = 2, **rest: Any) -> Sessions:
    merge = Fn(lambda row, start, end: (row, start, end))
    return Sessions(parent=A, time=Fn(lambda row: row[1]), gap=gap, merge=merge, **rest)


def test_a_session_goes_on_as_long_as_neighbours_are_no_further_apart_than_the_gap() -> None:
    rows = [("a", 1), ("b", 3), ("a", 6), ("a", 8)]
    spans = {(start, end) for _, start, end in value(session(), rows)}
    assert spans == {(1, 5), (6, 10)}


def test_sessions_keep_weights_and_keys_apart() -> None:
    found = value(session(key=FIRST), {("a", 1): 2, ("b", 2): 1, ("a", 3): 1})
    assert found == {
        (("a", 1), 1, 5): 2,
        (("a", 3), 1, 5): 1,
        (("b", 2), 2, 4): 1,
    }


def through(operator: Any, **rest: Any) -> Through:
    return Through(parent=A, operator=operator, **{"width": 0, **rest})


def test_through_a_bag_operator_gives_its_rows() -> None:
    assert value(through(map_rows(str.upper)), {"a": 2, "b": 1}) == {"A": 2, "B": 1}


def test_through_a_bag_operator_per_key_puts_the_key_in_front() -> None:
    node = through(map_rows(str.upper), key=FIRST, width=1)
    assert value(node, {"ax": 2, "bx": 1}) == {("a", "AX"): 2, ("b", "BX"): 1}


def test_through_another_operator_gives_its_value_while_there_are_rows() -> None:
    size = stateless(len, len, input=BAG, output=NATURAL)
    assert value(through(size), {"a": 2, "b": 1}) == {(2,): 1}
    assert value(through(size)) == {}
    assert value(through(size, key=FIRST, width=1), ["ax", "ay"]) == {("a", 2): 1}


# ---- programs ----


def test_a_part_used_twice_is_computed_once() -> None:
    calls = []
    shared = Map(parent=A, fn=Fn(lambda x: calls.append(x) or x))
    evaluate(
        Plan({"x": Concat(parts=(shared, shared), signs=(1, 1)), "y": shared}), {"a": _zset("a")}
    )
    assert calls == ["a"]


def test_a_plan_of_thousands_of_nodes_is_evaluated() -> None:
    node: Node = A
    for _ in range(3000):
        node = Map(parent=node, fn=Fn(lambda x: x + 1))
    assert value(node, [0]) == {3000: 1}


def test_every_output_is_given_by_name() -> None:
    plan = Plan({"all": A, "once": Distinct(parent=A)})
    assert evaluate(plan, {"a": _zset("aa")}) == {"all": ZSet({"a": 2}), "once": ZSet({"a": 1})}


# ---- errors ----


@pytest.mark.parametrize(
    "node",
    [
        Reduce(parent=A, reducer=count(), width=0, spread=False, place=HERE),
        TopK(parent=A, n=1, by=FIRST, place=HERE),
        session(place=HERE),
        through(map_rows(str), place=HERE),
    ],
    ids=lambda node: node.verb,
)
def test_what_needs_a_bag_refuses_a_row_that_is_negative(node: Any) -> None:
    with pytest.raises(ChangeError, match="a row is negative") as error:
        value(node, {("a", 1): 1, ("b", 2): -1})
    text = str(error.value)
    assert text.startswith(node.verb)
    assert "('b', 2)" in text
    assert "-1" in text
    assert "app.py:7" in text


@pytest.mark.parametrize(
    "node",
    [
        Map(parent=A, fn=Fn(raises), place=HERE),
        Filter(parent=A, fn=Fn(raises), place=HERE),
        FlatMap(parent=A, fn=Fn(raises), place=HERE),
        Fused(parent=A, steps=(FusedStep(verb="map", fn=Fn(raises), place=HERE),)),
        Join(left=A, right=A, left_key=Fn(raises), right_key=FIRST, merge=Fn(raises), place=HERE),
        Join(left=A, right=A, left_key=FIRST, right_key=FIRST, merge=Fn(raises), place=HERE),
        Semi(left=A, right=A, left_key=FIRST, right_key=Fn(raises), place=HERE),
        Reduce(parent=A, key=Fn(raises), reducer=count(), width=1, spread=False, place=HERE),
        Reduce(
            parent=A, reducer=Reducer(0, lambda acc, _: raises(acc)), width=0, spread=False,
            place=HERE,
        ),
        TopK(parent=A, n=1, by=Fn(raises), place=HERE),
        Sessions(parent=A, time=Fn(raises), gap=1, merge=FIRST, place=HERE),
        Sessions(parent=A, time=SECOND, gap=1, merge=Fn(raises), place=HERE),
        through(stateless(raises, raises, input=BAG, output=BAG), place=HERE),
    ],
    ids=lambda node: node.verb,
)  # fmt: skip
def test_a_function_that_raises_is_named_with_its_place_and_row(node: Any) -> None:
    with pytest.raises(FunctionFailed) as error:
        value(node, [("Rome", 3)])
    text = str(error.value)
    assert "app.py:7" in text
    assert "('Rome', 3)" in text
    assert isinstance(error.value.__cause__, Exception)


def test_values_without_an_order_are_an_error_of_the_node_that_orders() -> None:
    with pytest.raises(FunctionFailed, match="session: the rows of one key cannot be put in order"):
        value(session(), [("a", 1), ("b", "x")])
    with pytest.raises(FunctionFailed, match="TypeError"):
        value(session(gap="long"), [("a", 1), ("b", 2)])


def test_a_row_that_cannot_be_hashed_is_an_error_of_the_node_that_made_it() -> None:
    with pytest.raises(FunctionFailed, match="map: rows and keys must be hashable, and a list"):
        value(Map(parent=A, fn=Fn(list), place=HERE), ["ab"])


@pytest.mark.parametrize("rows", [["ax", "ay"], ["ax", "ax"], {"ax": -1}], ids=str)
def test_an_input_with_a_key_has_one_row_of_each(rows: Any) -> None:
    keyed = Source(name="a", key=FIRST, place=HERE)
    assert value(keyed, ["ax", "by"]) == {"ax": 1, "by": 1}
    with pytest.raises(ChangeError, match="one row of each key") as error:
        value(keyed, rows)
    assert "app.py:7" in str(error.value)


def test_an_unknown_node_is_an_error() -> None:
    with pytest.raises(CompositionError, match="cannot evaluate a Node"):
        value(Node())


# ---- reports ----


def test_a_difference_shows_at_most_ten_rows_of_each_kind() -> None:
    text = str(difference(ZSet.of(range(12)), ZSet({"x": 2})))
    assert text.splitlines()[9:] == ["missing  7", "missing  and 2 more", "extra    'x'  × 2"]


def test_outputs_agree_or_are_named() -> None:
    assert mismatch({"a": ZSet.of("x"), "b": ZSet()}, {"a": ZSet.of("x")}) is None
    assert mismatch({"a": ZSet.of("x")}, {"b": ZSet.of("x")}) == (
        "a\n    missing  'x'\nb\n    extra    'x'"
    )


def test_batch_shares_no_code_with_what_it_judges() -> None:
    files = sorted(Path(batch.__file__).parent.glob("*.py"))
    assert len(files) > 1
    names = [
        name
        for file in files
        for node in ast.walk(ast.parse(file.read_text()))
        for name in (
            [f"{node.module}.{each.name}" for each in node.names]
            if isinstance(node, ast.ImportFrom)
            else [each.name for each in node.names]
            if isinstance(node, ast.Import)
            else []
        )
    ]
    here = "ebbflow.engine.batch."
    own = [name for name in names if name.startswith("ebbflow") and not name.startswith(here)]
    judged = ("operator", "state", "stream", "reducer", "engine")
    assert own
    found = {name for name in own if name.split(".")[1] in judged}
    found = {name for name in found if not name.startswith("ebbflow.engine.batch")}
    assert found == {"ebbflow.operator.window"}  # the classes of window functions, which are data
