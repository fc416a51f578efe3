"""Programs with many fields, aggregates or steps: twice as many take twice the work, not more."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

import ebbflow as ef
from ebbflow.codegen import GeneratedLoop
from ebbflow.flow.plan import Plan
from ebbflow.flow.rewrite import ALL, optimise
from ebbflow.flow.show import explain


class Row(NamedTuple):
    k: int
    v: int


def wide(n: int) -> Any:
    return NamedTuple("Wide", [(f"f{i}", int) for i in range(n)])  # type: ignore[misc]


def aggregates(n: int) -> Any:
    return ef.Input("a", Row).group_by("k").agg(**{f"f{i}": ef.sum("v") for i in range(n)})


def ends(n: int) -> Any:
    return ef.Input("a", Row).group_by("k").agg(**{f"f{i}": ef.max("v") for i in range(n)})


def key_of_fields(n: int) -> Any:
    return ef.Input("a", wide(n)).group_by(*[f"f{i}" for i in range(n)]).agg(n=ef.count())


def selected(n: int) -> Any:
    rows = ef.Input("a", wide(n)).filter(lambda row: row.f0 > 0)
    return rows.select(*[f"f{i}" for i in range(n)]).distinct()


def steps(n: int) -> Any:
    rows: Any = ef.Input("a", Row)
    for i in range(n):
        rows = rows.map(lambda row, i=i: Row(row.k, row.v + i), type=Row)
    return rows


def filters_on_a_long_way(n: int) -> Any:
    rows: Any = ef.Input("a", Row)
    for i in range(n):
        rows = rows.distinct().filter(lambda row, i=i: row.v != i)
    return rows


def joins(n: int) -> Any:
    rows: Any = ef.Input("a", Row)
    for i in range(n):
        rows = rows.join(ef.Input(f"b{i}", Row), on="k", select=lambda a, b: Row(a.k, b.v))
    return rows


def many_paths(n: int) -> Any:
    """2 ** n ways lead from the input to the output."""
    rows: Any = ef.Input("a", Row)
    for _ in range(n):
        rows = rows.distinct() + rows.distinct()
    return rows


def outputs(n: int) -> Any:
    rows = ef.Input("a", Row)
    made = {f"o{i}": rows.filter(lambda row, i=i: row.v > i) for i in range(n)}
    return ef.program(**made)  # type: ignore[arg-type]


def calls(work: Callable[[], Any]) -> int:
    """How many functions are called."""
    count = 0

    def counted(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize(
    ("program", "n"),
    [
        (aggregates, 250), (ends, 40), (key_of_fields, 60), (selected, 60), (steps, 60),
        (filters_on_a_long_way, 60), (joins, 30), (many_paths, 60), (outputs, 60),
    ],
)  # fmt: skip
def test_twice_as_many_take_twice_the_calls(program: Any, n: int) -> None:
    program(8).run().explain()  # what is done once is done
    one, two = (calls(lambda m=m: program(m).run().explain()) for m in (n, 2 * n))
    assert two < 2.3 * one


def test_rewriting_a_graph_with_many_paths_takes_calls_for_its_nodes_not_for_its_paths() -> None:
    def rewritten(n: int) -> None:
        explain(optimise(Plan({"out": many_paths(n).node}), ALL))

    one, two = (calls(lambda m=m: rewritten(m)) for m in (100, 200))
    assert two < 2.3 * one


def test_no_loop_is_written_that_takes_python_long_to_compile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sizes, function = [], GeneratedLoop.function
    monkeypatch.setattr(
        GeneratedLoop, "function", lambda loop: sizes.append(len(loop.text)) or function(loop)
    )
    view = aggregates(2000).run()
    assert max(sizes) < 100_000, "the compiler takes more than twice as long for twice as much"
    view.step(a=[Row(1, 2), Row(1, 3)])
    view.step(a={Row(1, 2): -1, Row(2, 7): 1})
    assert view.value == ef.ZSet.of([(1, *[3] * 2000), (2, *[7] * 2000)])


@pytest.mark.parametrize("n", [199, 200, 201])
def test_many_aggregates_are_what_few_are(n: int) -> None:
    view = aggregates(n).run()
    view.step(a=[Row(1, 2), Row(1, 3), Row(2, 7)])
    view.step(a={Row(1, 2): -1, Row(2, 7): -1})
    assert view.value == ef.ZSet.of([(1, *[3] * n)])
    view.verify()
