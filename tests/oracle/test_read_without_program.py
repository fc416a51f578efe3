"""What a reader without the program computes is what the view has: from the cells of operators, and
from the rows of inputs."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import pytest

import ebbflow as ef
from ebbflow.engine.batch import evaluate
from ebbflow.engine.runtime.machine import Machine
from ebbflow.engine.runtime.reader.noted import node_of, stored_node
from ebbflow.errors import EbbflowError, StateError
from ebbflow.flow.plan import Plan
from ebbflow.testing import random_epochs, random_program
from ebbflow.zset import ZSet


class Order(NamedTuple):
    id: int
    city: str
    price: int
    paid: bool
    cost: Annotated[Decimal, (10, 2)]
    ratio: float | None


def order(i: int) -> Order:
    city = ("Rome", "Oslo", "Bern")[i % 3]
    return Order(i, city, i * 7 % 11, i % 2 == 0, Decimal(i) / 4, None if i % 4 else i / 8)


orders = ef.Input("orders", Order, key="id")
by_city = orders.group_by("city")


REDUCERS: dict[str, Any] = {
    "count": ef.count(), "prices": ef.count("ratio"), "sum": ef.sum("price"),
    "cost": ef.sum("cost"), "ratio": ef.sum("ratio"), "mean": ef.mean("price"),
    "max": ef.max("price"), "min": ef.min(lambda row: row.price * 2), "median": ef.median("price"),
    "quantile": ef.quantile(0.9, "price"), "rank": ef.rank(5, "price"),
    "top": ef.top_k(2, "price", smallest=True), "distinct": ef.count_distinct("price"),
    "histogram": ef.histogram("price"), "set": ef.set_of("price"), "and": ef.bool_and("paid"),
    "or": ef.bool_or("paid"), "xor": ef.bit_xor("price"), "variance": ef.variance("price"),
    "stddev": ef.stddev("price", ddof=0), "product": ef.product("price"),
    "covariance": ef.covariance("price", "id"), "weighted": ef.weighted_mean("price", "id"),
    "first": ef.first("price", order="id"), "last": ef.last("price", order="id"),
    "best": ef.arg_max("price", "id"), "worst": ef.arg_min("price", "id"),
    "mode": ef.mode("price"), "text": ef.string_agg("city", order="id"),
    "collect": ef.collect("price"), "approx": ef.approx_count_distinct("price"),
    "some": ef.sum("price").where(lambda row: row.paid), "then": ef.sum("price").then(str),
    "traced": ef.sum("price").then(lambda total: total * 2),
    "on": ef.sum().on("price"), "by": ef.sum("price").by("paid"),
    "both": ef.sum("price") & ef.count(),
}  # fmt: skip


@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("name", REDUCERS)
def test_every_reducer_of_the_library_is_read_from_its_cells(
    name: str, columns: bool, tmp_path: Path
) -> None:
    program = ef.program(
        named=orders.group_by("city", "paid").agg(x=REDUCERS[name]),
        some=by_city.agg(x=REDUCERS[name], n=ef.count()), all=orders.agg(x=REDUCERS[name]),
    )  # fmt: skip
    with program.run(path=tmp_path, columns=columns, keep_epochs=3) as view:
        view.step(orders=[order(i) for i in range(40)])
        before = view.value
        view.step(orders={order(i): -1 for i in range(0, 40, 3)})
        reader = ef.open(tmp_path, unpickle=True)
        assert reader.value == view.value
        assert reader.at(1) == before


@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("n", [1, 3])
def test_first_rows_and_distinct_rows_are_read_from_cells(
    columns: bool, n: int, tmp_path: Path
) -> None:
    program = ef.program(
        top=orders.top_k(n, order="price", per="city"),
        least=orders.limit(n, order="ratio", offset=1),
        cities=orders.select("city").distinct(),
        windows=orders.sliding("price", 6, 3).group_by("window_start").agg(n=ef.count()),
    )  # fmt: skip
    with program.run(path=tmp_path, columns=columns) as view:
        view.step(orders=[order(i) for i in range(40)])
        view.step(orders={order(i): -1 for i in range(0, 40, 3)})
        assert ef.open(tmp_path).value == view.value


@pytest.mark.parametrize("n", [1, 3])
def test_an_order_of_the_programs_own_is_read_from_cells(n: int, tmp_path: Path) -> None:
    with orders.top_k(n, order=lambda row: str(row).count("1")).run(path=tmp_path) as view:
        view.step(orders=[order(i) for i in range(40)])
        assert ef.open(tmp_path, unpickle=True).value == view.value
        with pytest.raises(StateError, match=r"pickled .*Order(?s:.*)unpickle=True"):
            _ = ef.open(tmp_path).value


def test_a_function_that_reading_calls_takes_the_program(tmp_path: Path) -> None:
    highest = ef.Reducer(0, lambda acc, row: acc + row.price, lambda acc, row: acc - row.price)
    mine = by_city.agg(x=highest)
    with mine.run(path=tmp_path) as view:
        view.step(orders=[order(1)])
        with pytest.raises(StateError, match=r"takes the program(?s:.*)open\(path, program\)"):
            _ = ef.open(tmp_path).value
        assert ef.open(tmp_path, mine).value == view.value


@pytest.mark.parametrize(
    "seed", [2, 3, *[pytest.param(i, marks=pytest.mark.slow) for i in range(4, 120)]]
)
def test_oracle_random_programs_are_read_as_they_are(seed: int, tmp_path: Path) -> None:
    """Read from cells; and what can be noted of the whole program computes what batch does."""
    program = random_program(seed)
    several = len(program.plan.outputs) > 1
    with program.run(path=tmp_path) as view:
        for epoch in random_epochs(program, seed, 4):
            view.step(epoch)
        inputs = {name: view.input(name).value for name in program.plan.sources}
        value = view.value if several else {next(iter(program.plan.outputs)): view.value}
    reader = ef.open(tmp_path, unpickle=True)
    for name, output in reader.known(reader.glance()).items():
        try:
            assert ZSet(output.read(reader.snapshot())) == value[name]
        except StateError as refused:
            assert "takes the program" in str(refused)  # noqa: PT017
    for name, node in Machine(program.plan, apart=True).plan.outputs.items():
        noted = json.loads(json.dumps(stored_node(node, whole=True)))
        if noted is not None:
            plan = Plan({name: node_of(noted)})
            given = {each: inputs[each] for each in plan.sources if each}
            if given.keys() == plan.sources.keys():
                assert evaluate(plan, given)[name] == value[name]


def test_nothing_of_a_note_becomes_python_text() -> None:
    """A note comes from whoever can write to the folder; what it says is built, or refused."""
    good = stored_node(orders.filter(lambda row: row.price > 3).plan.outputs["output"], whole=True)
    assert node_of(json.loads(json.dumps(good))).verb == "filter"
    bad: list[Any] = [
        ["op", "> 3 or __import__('os').system('x') or 1 >", ["row", 0], ["row", 0]],
        ["op", ".", ["row", 0], ["value", stored_constant("real if quit() else 1")]],
        ["op", ".", ["row", 0], ["value", stored_constant("__class__")]],
        ["get", 0, "x); quit(", 0], ["get", 0, "x", "0] or quit() or [0"], ["row", "quit()"],
        ["row", 1], ["call", "quit"],
    ]  # fmt: skip
    for each in bad:
        wrong = {**good, "fn": {**good["fn"], "fn": each}}
        with pytest.raises(EbbflowError, match="what is noted of the program cannot be read"):
            node_of(wrong)
    group = stored_node(by_city.agg(x=ef.sum("price")).plan.outputs["output"])
    for reducer in ("eval", "counted", "Reducer", "ready"):
        with pytest.raises(EbbflowError, match="cannot be read"):
            node_of({**group, "reducer": {"reducer": reducer, "given": [], "named": {}}})
    with pytest.raises(EbbflowError, match="cannot be read"):
        node_of({**good, "node": "Through"})


def stored_constant(value: Any) -> str:
    from ebbflow.engine.runtime.reader.noted import _constant

    return str(_constant(value)["value"])
