"""What a view on Spark says about itself: how its nodes run, what they keep, what epochs did."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import ebbflow as ef
from ebbflow.engine.spark.report import REMEMBERED
from ebbflow.errors import CompositionError


class Order(NamedTuple):
    id: int
    city: str
    price: int


class City(NamedTuple):
    city: str
    country: str


def shouted(order: Order) -> str:
    return f"{order.city!a}!"


orders = ef.Input("orders", Order)
cities = ef.Input("cities", City, key="city")
refunds = ef.Input("refunds", Order)
big = orders.filter(lambda order: order.price > 10)
placed = big.join(cities, "city")
totals = placed.group_by("country").agg(n=ef.count(), total=ef.sum("price"))
program = ef.program(
    totals=totals,
    placed=placed,
    loud=orders.map(shouted, type=str).filter(lambda text: text != "a"),
    back=refunds.join(cities, "city"),
)
ORDERS = [Order(i, "ab"[i % 2], i) for i in range(100)]
CITIES = [City("a", "X"), City("b", "Y")]


@pytest.fixture
def view(spark: Any, tmp_path: Path) -> Any:
    with program.run(ef.spark(spark, path=tmp_path / "state", in_driver=True)) as view:
        yield view


def facts(view: Any) -> dict[str, str]:
    """What is said of each node, by its verb and what it does."""
    found = json.loads(view.explain("json"))
    return {f"{n['verb']} {n['details']}".strip(): n["facts"] for n in found["nodes"]}


def jobs(spark: Any) -> list[int]:
    return sorted(spark.sparkContext.statusTracker().getJobIdsForGroup(None))


def test_explain_says_of_every_node_how_it_runs_and_what_it_keeps(view: Any) -> None:
    view.step(orders=ORDERS, cities=CITIES)
    said = facts(view)
    assert said["filter price > 10"].startswith("bulk: native · wave 0")
    reduce = said["reduce by country: n = count(), total = sum('price')"]
    assert "bulk: native · wave 2 · in columns · state 2 entries, " in reduce
    assert reduce.endswith("output totals read from its state")
    assert re.search(r"^100 entries, [\d.]+ KB$", said["input orders"])
    assert re.search(r"^2 entries, [\d.]+ KB$", said["input cities, key city"])
    assert re.search(r"kept in the index of join city: 0 entries", said["input refunds"])


def test_a_step_that_is_not_native_says_why_and_so_do_those_behind_it(view: Any) -> None:
    said = facts(view)
    why = "bulk: Arrow function (why not native: it is not traced) · wave 0"
    assert said["map shouted"].startswith(why)
    behind = said["filter text != 'a'"]
    assert "why not native: it comes after such a step" in behind
    assert "output loud kept: 0 entries" in behind


def test_what_runs_in_a_task_says_why(spark: Any, tmp_path: Path) -> None:
    keyed = orders.group_by(key=ef.typed(str, shouted)).agg(n=ef.count())
    late = orders.agg(n=ef.count()).map(lambda row: row.n + 1)
    with ef.program(keyed=keyed, late=late).run(ef.spark(spark, path=tmp_path / "s")) as view:
        said = facts(view)
    why = {
        "reduce by shouted: n = count()": "it is not traced",
        "reduce n = count()": "all rows are one group",
        "map n + 1": "what it reads is not a query",
    }
    for node, reason in why.items():
        assert said[node].startswith(f"bulk: operator in task (why not native: {reason}) · wave 1")


def test_explain_counts_what_is_on_disk_and_adds_up(view: Any) -> None:
    view.step(orders=ORDERS, cities=CITIES)
    found = json.loads(view.explain("json"))
    (join,) = [n for n in found["nodes"] if "output placed" in (n["facts"] or "")]
    assert "state 91 entries" in join["facts"], "89 orders above 10, and two cities"
    assert "output placed derived by a native query" in join["facts"]
    disk = sum(file.stat().st_size for file in Path(view.path).glob("epoch-*"))
    assert 0 < found["engine"]["bytes"] <= disk
    assert found["engine"]["epoch"] == 1
    assert found["engine"]["last"] == "driver"


def test_all_formats_have_what_holds_for_the_whole(view: Any) -> None:
    view.step(orders=ORDERS[:3])
    text, mermaid, dot = (view.explain(each) for each in ("text", "mermaid", "dot"))
    first = text.splitlines()[0]
    assert re.fullmatch(
        r"Spark · epoch 1 · last epoch driver · 2 tasks · \d+(\.\d)? KB on disk in .*state", first
    )
    assert mermaid.splitlines()[:2] == [f"%% {first}", "flowchart LR"]
    assert dot.splitlines()[:2] == [f"// {first}", "digraph plan {"]
    with pytest.raises(CompositionError, match="cannot be explained as 'xml'"):
        view.explain("xml")


def test_explain_shows_the_python_that_tasks_run_for_each_node(view: Any) -> None:
    view.step(orders=ORDERS[:3], cities=CITIES)
    text = view.explain("python")
    compile(text, "explained", "exec")
    assert text.startswith("# Spark · epoch 1 · ")
    headers = re.findall(r"^# (\d+ \w+.*)\n(?:#   .*\n)*def (\w+)", text, re.MULTILINE)
    found = [(header.split()[1], title) for header, title in headers]
    assert ("join", "join_delta") in found
    assert [title for verb, title in found if verb == "reduce"] == ["partial", "merge"]
    assert ("filter", "gather") in found
    assert "shouted(row)" in text


@pytest.mark.classic
def test_explain_and_stats_run_no_job(spark: Any, view: Any) -> None:
    view.step(orders=ORDERS)
    before = jobs(spark)
    view.explain()
    view.stats()
    assert jobs(spark) == before
    spark.range(1).count()
    assert jobs(spark) != before


def test_stats_have_rows_and_times_of_every_epoch(view: Any) -> None:
    view.step(orders=ORDERS, cities=CITIES)
    view.step(orders=[Order(100, "a", 50)])
    found = view.stats()
    first, last = found.epochs
    assert [(each.epoch, each.mode, each.rows_in) for each in found.epochs] == [
        (1, "driver", 102), (2, "driver", 1)
    ]  # fmt: skip
    assert first.rows_out == {"totals": 2, "placed": 89, "loud": 2}
    assert last.rows_out == {"totals": 2, "placed": 1, "loud": 1}
    for each in found.epochs:
        assert 0 < each.job_seconds < each.seconds
        assert 0 < each.commit_seconds < each.seconds
    assert found.seconds == pytest.approx(first.seconds + last.seconds)
    assert found.epoch == view.epoch == 2


def test_stats_have_the_work_of_every_stage_in_the_last_epoch_and_in_all(view: Any) -> None:
    view.step(orders=ORDERS, cities=CITIES)
    view.step(orders=[Order(100, "a", 50)])
    (reduce,) = [node for node in view.stats().nodes if node.label == "reduce"]
    assert (reduce.last.rows_in, reduce.last.rows_out, reduce.last.written) == (1, 2, 1)
    assert (reduce.total.rows_in, reduce.total.rows_out, reduce.total.written) == (90, 4, 3)
    assert 0 < reduce.last.seconds < reduce.total.seconds
    indices = [node.last.written for node in view.stats().nodes if node.label == "index"]
    assert sorted(indices) == [0, 0, 1]
    lines = repr(view.stats()).splitlines()
    assert lines[0].startswith("epoch 2, ")
    assert lines[3].split()[:4] == ["2", "driver", "1", "4"]
    assert max(map(len, lines)) <= 120


def test_only_the_last_epochs_are_remembered(view: Any) -> None:
    for _ in range(REMEMBERED + 1):
        view.step()
    found = view.stats()
    assert (len(found.epochs), found.epochs[0].epoch) == (REMEMBERED, 2)


def test_a_bulk_load_is_told_from_an_epoch(spark: Any, tmp_path: Path) -> None:
    only = orders.filter(lambda order: order.price > 10)
    with only.run(ef.spark(spark, path=tmp_path, mode="bulk")) as view:
        view.step(orders=ORDERS)
        assert view.stats().epochs[0].mode == "bulk"
        assert view.stats().epochs[0].rows_in == 100
        assert "last epoch bulk" in view.explain()


def test_a_loop_is_a_block_and_tasks_tell_of_its_rounds(spark: Any, tmp_path: Path) -> None:
    links = ef.Input("links", tuple[str, str])
    reached = ef.Input("homes", str).iterate(
        lambda reached: reached.union(
            reached.join(
                links, left_on=lambda home: home, right_on=lambda link: link[0],
                select=lambda home, link: link[1],
            )
        )
    )  # fmt: skip
    with reached.run(ef.spark(spark, path=tmp_path / "state", mode="single_task")) as view:
        view.step(homes=["a"], links=[("a", "b"), ("b", "a")])
        (loop,) = (n["loop"] for n in json.loads(view.explain("json"))["nodes"] if n["loop"])
        last = "2 rounds · facts that came: 0 → 1, 1 → 1 · 0 suspended · 3 derivations"
        assert loop["words"].keys() == {"runs", "last"}
        assert loop["words"]["last"] == last
        assert loop["words"]["runs"].startswith("lazy rounds · monotone: distinct over a join")
        assert "┃ reached" in view.explain()
        assert "def consequences(facts, groups, rounds):" in view.explain("python")
