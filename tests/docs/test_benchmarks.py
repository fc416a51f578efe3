"""Every benchmark runs, and says what it found as JSON; those that take long, in the slow suite."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from multiprocessing import Pipe
from pathlib import Path
from threading import Thread
from typing import Any
from unittest.mock import MagicMock

import pytest

pytestmark = pytest.mark.xdist_group("benchmarks")  # so that none runs in two processes
FOLDER = Path(__file__).parents[2] / "benchmarks"
SOON = {"bench_adder.py", "bench_fn.py", "bench_zset.py"}
QUESTIONS = [
    pytest.param(path, id=path.name, marks=() if path.name in SOON else pytest.mark.slow)
    for path in sorted(FOLDER.glob("bench_*.py"))
]


def run(path: Path) -> Any:
    done = subprocess.run(
        [sys.executable, str(path), "--quick", "--json"], cwd=FOLDER,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("path", QUESTIONS)
def test_a_benchmark_asks_one_question_and_answers_it(path: Path) -> None:
    found = run(path)
    assert found["question"].endswith(("?", "."))
    assert found["rows"]


SIZES = [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000]
TIMES = ["Q1 ms", "recompute", "hand", "list", "Q2 ms", "Q2 recompute", "merged", "tree"]
KINDS = [1, 2, 3, 4, 5]
RELATIVE = [(2_000, 20), (2_000, 100), (2_000, 200),
            (200_000, 2_000), (200_000, 10_000), (200_000, 20_000)]  # fmt: skip
SMALL = [500, 1_000, 4_000, 8_000, 16_000, 32_000]


@pytest.fixture(scope="module")
def paper_004() -> Any:
    return run(FOLDER / "paper_004.py")


@pytest.mark.slow
def test_004_O10_the_papers_figures_are_printed(paper_004: Any) -> None:
    """Figure 6: both times of both queries at every size. Figure 7 is looked at below."""
    assert [name for name in paper_004 if name.startswith("figure")] == [
        "figure 6", "figure 7", "figure 7 expected",
    ]  # fmt: skip
    figure, equal = paper_004["figure 6"], paper_004["equal changes"]
    assert [row["size"] for row in figure] == [row["pairs"] for row in equal] == SIZES
    for row in figure:
        assert all(row[name] > 0 for name in [*TIMES, "MB", "Q2 MB"]), row
        assert row["faster"] == pytest.approx(row["recompute"] / row["Q1 ms"])
        assert row["Q2 faster"] == pytest.approx(row["Q2 recompute"] / row["Q2 ms"])
    assert all(row[f"{name} µs"] > 0 for row in equal for name in ("max", "merged", "tree"))
    large, small = figure[-1], figure[0]
    assert (large["paper"], large["paper's recompute"]) == (0.16, 76.8)
    assert large["faster"] > small["faster"]
    assert large["faster"] > 10


@pytest.mark.slow
def test_004_O10_figure_7_has_every_kind_at_every_size(paper_004: Any) -> None:
    figure = paper_004["figure 7"]
    wanted = [(size, "plain", edit, kind) for size, edit in RELATIVE for kind in KINDS]
    wanted += [(1_000_000, text, 20, kind) for text in ("plain", "accented") for kind in KINDS]
    wanted += [(size, "plain", 20, 2) for size in SMALL]
    assert [(r["size"], r["text"], r["edit"], r["kind"]) for r in figure] == wanted
    for row in figure:
        for time, ratio in (
            ("edit_us", "speedup"),
            ("sustained_us", "sustained_speedup"),
            ("apart_us", "apart_speedup"),
        ):
            assert row[time] > 0
            assert row[ratio] == pytest.approx(row["recompute_us"] / row[time], rel=0.05, abs=0.01)
        assert row["size"] < 1_000_000 or row["speedup"] > 3, row
    expected = paper_004["figure 7 expected"]
    assert [row["kind"][:3] for row in expected] == [f"({kind})" for kind in KINDS]
    assert [row["the paper expects"].split()[0] for row in expected] == [
        "constant", "linear", "constant", "linear", "linear",
    ]  # fmt: skip
    for row in expected:
        assert [value > 0 for name, value in row.items() if name.startswith("ours")] == [True] * 2


@pytest.mark.slow
def test_004_O10_every_target_says_what_was_found_and_wanted(paper_004: Any) -> None:
    targets = paper_004["targets"]
    for row in targets:
        assert set(row) == {"target", "found", "", "wanted", "met"}
        assert row["found"] > 0
        holds = row["found"] >= row["wanted"] if row[""] == ">=" else row["found"] <= row["wanted"]
        name = row["target"]
        unasked = "1,000,000" in name or name.endswith("apart") or name.startswith("the program")
        assert row["met"] == ("not asked" if unasked else "yes" if holds else "NO"), row
    about = [(row["target"].split(",")[0], row["wanted"]) for row in targets]
    assert len([name for name, _ in about if name.startswith(("Q1", "Q2", "its"))]) == 8
    assert about.count(("1 % of 200", 10.0)) == 3
    assert about.count(("20 code points in 1", 1000.0)) == 12
    worst = min(row["speedup"] for row in paper_004["figure 7"]
                if (row["size"], row["edit"]) == (200_000, 2_000) and row["kind"] < 5)  # fmt: skip
    found = {row["target"]: row["found"] for row in targets}
    assert found["1 % of 200,000, kinds 1-4, per edit"] == worst


@pytest.mark.slow
def test_004_O10_figure_7_is_drawn_with_all_its_bars(
    paper_004: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without matplotlib: what it would be asked to draw."""
    monkeypatch.syspath_prepend(str(FOLDER))
    strings = importlib.import_module("paper_004_strings")
    pyplot = MagicMock()
    panels = [MagicMock() for _ in range(3)]
    pyplot.subplots.return_value = chart, _ = MagicMock(), panels
    strings.draw(pyplot, paper_004["figure 7"], "figure7.png")
    assert [axes.bar.call_count for axes in panels] == [3, 3, 1]
    for axes in panels:
        for call in axes.bar.call_args_list:
            assert len(call.args[0]) == len(call.args[1]) == len(KINDS)
    chart.savefig.assert_called_once_with("figure7.png", dpi=150)


WORKS = ["a", "e", "b", "q1", "q2", "l-a", "l-b", "m-a", "m-b"]
HELD = {"dict", "dict kept", "engine trusting", "engine"}


@pytest.fixture(scope="module")
def local() -> Any:
    return run(FOLDER / "local.py")


def part(name: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module(name)


@pytest.mark.slow
def test_the_engine_and_its_floors_take_every_work(local: Any) -> None:
    by_work = {work: [r for r in local["rows"] if r["work"] == work] for work in WORKS}
    assert sum(map(len, by_work.values())) == len(local["rows"])
    for work, rows in by_work.items():
        found = {row["contestant"]: row for row in rows}
        assert set(found) >= HELD, work
        unit = {"l": "rows/s", "m": "MB"}.get(work[0], "µs")
        assert all(found[name][unit] > 0 for name in HELD)
        assert found["dict"]["/ dict"] == found["dict kept"]["/ dict kept"] == 1
        if unit == "µs":
            for row in rows:
                assert 0 < row["µs"] <= row["wall µs"]
                assert row["least µs"] <= row["wall µs"] <= row["p95 µs"] <= row["max µs"]


@pytest.mark.slow
def test_targets_at_small_sizes_are_shown_and_not_judged(local: Any) -> None:
    assert {row["met"] for row in local["targets"]} == {"not asked"}
    about = [row["target"] for row in local["targets"] if " of " in row["target"]]
    assert about == [
        "e: µs of engine trusting", "e: µs of engine",
        "l-a: rows/s of engine", "l-b: rows/s of engine",
    ]  # fmt: skip
    held = [row["target"] for row in local["targets"] if "/ dict" in row["target"]]
    assert held == [f"{work}: {pair}" for work in ("a", "b", "q1", "q2", "m-a", "m-b")
                    for pair in ("engine trusting / dict", "engine / dict kept")]  # fmt: skip


def test_a_target_is_judged_by_its_own_two_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    judge = part("local_targets", monkeypatch).targets
    times = {"dict": 2.0, "dict kept": 4.0, "engine trusting": 3.0, "engine": 6.1,
             "Pathway": 61.0, "Polars": 60.0}  # fmt: skip
    rows = [{"work": "a", "contestant": name, "µs": time} for name, time in times.items()]
    assert [(row["target"], row["found"], row["met"]) for row in judge(rows, False)] == [
        ("a: engine trusting / dict", 1.5, "yes"),
        ("a: engine / dict kept", pytest.approx(1.525), "NO"),
        ("a: Pathway / engine", pytest.approx(10.0), "yes"),
        ("a: Polars / engine", pytest.approx(9.836, abs=1e-3), "NO"),
    ]


def test_contestants_that_do_different_work_are_not_compared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    same = part("local", monkeypatch).same
    same("the result", {"dict": {(1, 2): 1}, "engine": {(1, 2): 1}})
    with pytest.raises(AssertionError, match="the result of engine is not that of dict"):
        same("the result", {"dict": {(1, 2): 1}, "engine": {(1, 3): 1}})


@pytest.mark.parametrize("kind", ["PLAIN", "NAMED"])
def test_floors_keep_what_recomputing_gives(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine is held to them, so they must be right: also where groups come and go."""
    floors, data = part("floors", monkeypatch), part("local_data", monkeypatch)
    recompute = part("paper_004", monkeypatch).recompute

    def group(orders: dict[Any, int]) -> dict[Any, int]:
        keys = {order.key for order in orders}
        prices = {key: [o.price for o in orders if o.key == key] for key in keys}
        return {(key, sum(found), len(found)): 1 for key, found in prices.items()}

    def join(clicks: dict[Any, int], sales: dict[Any, int]) -> dict[Any, int]:
        return {(*c, s.sale, s.price): 1 for c in clicks for s in sales if c.user == s.user}

    def greatest(left: dict[Any, int], right: dict[Any, int]) -> dict[Any, int]:
        return {(max(recompute(left, right)),): 1}

    for query, source, size, again in [
        ("group", data.orders(30, 20), 10, group), ("group", data.orders(30, 20), 1, group),
        ("join", data.sides(40), 20, join), ("q1", data.Numbers(2_000), 200, recompute),
        ("q2", data.Numbers(2_000), 200, greatest),
    ]:  # fmt: skip
        floor = floors.Whole(floors.Kept(getattr(floors, kind)[query]()))
        now: dict[str, dict[Any, int]] = {name: {} for name in source.load}
        for change in [source.load, *(source.change(size) for _ in range(30))]:
            floor.step(change)
            for name, bag in change.items():
                now[name] = {r: 1 for r in now[name] | bag if bag.get(r, 1) > 0}
            wanted = again(*now.values())
            assert floor.value() == floor.floor.value() == wanted, query


@pytest.mark.parametrize("kind", ["PLAIN", "NAMED"])
def test_a_group_whose_row_stays_the_same_gives_no_change(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    floors, data = part("floors", monkeypatch), part("local_data", monkeypatch)
    floor = getattr(floors, kind)["group"]()
    floor.step({"orders": {data.Order(1, 1, 10): 1}})
    assert floor.step({"orders": {data.Order(1, 1, 10): -1, data.Order(2, 1, 10): 1}}) == {}


def test_a_floor_that_keeps_its_input_refuses_what_is_not_there_and_stays_as_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    floors, data = part("floors", monkeypatch), part("local_data", monkeypatch)
    one, two, three = (data.Order(n, 1, 10 * n) for n in (1, 2, 3))
    floor = floors.Kept(floors.NamedGroups())
    assert floor.step({"orders": {one: 1, two: 1}}) == {(1, 30, 2): 1}
    with pytest.raises(ValueError, match="is not there"):
        floor.step({"orders": {one: -1, three: -1, two: -1}})
    assert floor.rows == {"orders": {one: 1, two: 1}}
    assert floor.step({"orders": {one: -1, two: -1}}) == {(1, 30, 2): -1}


# ---- loops ----

LOOPS = ["by hand", "engine trusting", "engine", "networkx", "SciPy", "DuckDB"]


@pytest.mark.slow
def test_every_contestant_takes_the_loops_or_is_said_to_be_missing() -> None:
    found = run(FOLDER / "loops.py")
    works = [f"{query} {size}" for query in ("reachability", "components") for size in
             ("load", "1", "10")]  # fmt: skip
    assert list(dict.fromkeys(row["work"] for row in found["rows"])) == works
    slow = {row["contestant"] for row in found["rows"] if "remark" in row}
    for work in works:
        rows = [row for row in found["rows"] if row["work"] == work and "remark" not in row]
        there = {row["contestant"] for row in rows} | slow
        assert there | set(found["not installed"]) >= {*LOOPS, "Pathway", "differential"}
        assert {"by hand", "engine trusting", "engine"} <= there
        assert all(row["s" if work.endswith("load") else "µs"] > 0 for row in rows)
        assert [row["/ engine"] for row in rows if row["contestant"] == "engine"] == [1]
    assert {row["met"] for row in found["targets"]} == {"not asked"}


def test_a_rival_that_does_not_load_in_time_takes_no_further_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loops, data = part("loops", monkeypatch), part("loops_data", monkeypatch)

    class Slow:
        patience, closed = 7, False

        def prepare(self, change: Any) -> Any:
            return change

        def step(self, ready: Any) -> None:
            raise TimeoutError

        def close(self) -> None:
            self.closed = True

    slow, sizes = Slow(), data.Sizes(nodes=20, edges=30, steps=((1, 2, 1),))
    made = loops.contestants("reachability", sizes, {"slow": lambda *_: slow}, [])
    graph = data.Graph("reachability", sizes)
    rows = loops.ratios(loops.updates("reachability", made, graph, sizes, 1))
    (left,) = [row for row in rows if row["contestant"] == "slow"]
    assert left == {
        "work": "reachability load", "contestant": "slow", "remark": "not done after 7 s"
    }  # fmt: skip
    assert slow.closed
    assert {row["contestant"] for row in rows if row["work"] == "reachability 1"} == {
        "by hand", "engine trusting", "engine"
    }  # fmt: skip


def test_a_rival_in_a_process_of_its_own_is_asked_over_a_pipe(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rivals = part("loops_rivals", monkeypatch)

    class Total:
        def __init__(self, query: str, sizes: Any) -> None:
            self.query, self.total = query, 0

        def prepare(self, change: Any) -> int:
            return sum(change["edges"].values())

        def step(self, ready: int) -> None:
            self.total += ready

        def value(self) -> Any:
            return {self.query: self.total}

    monkeypatch.setattr(rivals, "Pathway", Total)
    here, there = Pipe()
    serving = Thread(target=rivals._serve, args=(there, "components", None))
    serving.start()
    assert here.recv() == (0.0, 0.0)
    for change in ({"a": 1, "b": 1}, {"a": -1}):
        here.send({"edges": change})
        wall, used = here.recv()
        assert min(wall, used) >= 0
    here.send("value")
    assert here.recv() == {"components": 1}
    here.send(None)
    serving.join(60)
    assert not serving.is_alive()


def test_the_loops_are_held_to_recomputing_and_to_differential_dataflow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    judge = part("loops_targets", monkeypatch).targets
    times = {
        "reachability 100": {"engine": 2.0, "differential": 4.0},
        "reachability 1": {"engine": 101.0},
        "components 100": {"engine": 1.0, "SciPy": 9.0, "networkx": 50.0},
    }
    rows = [{"work": work, "contestant": name, "µs": time}
            for work, each in times.items() for name, time in each.items()]  # fmt: skip
    rows += [{"work": "components load", "contestant": name, "s": s}
             for name, s in (("engine", 3.0), ("Pathway", 2.0))]  # fmt: skip
    assert [(row["target"], row["found"], row["met"]) for row in judge(rows, False)] == [
        ("reachability 100: differential / engine", 2.0, "yes"),
        ("reachability 1: µs of engine", 101.0, "NO"),
        ("components 100: fastest recomputing / engine", 9.0, "NO"),
        ("components load: engine / Pathway", 1.5, "yes"),
    ]


@pytest.mark.parametrize("query", ["reachability", "components"])
def test_loops_by_hand_keep_what_recomputing_gives(
    query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where nodes are cut off, and where components fall apart."""
    data, by_hand = (part(f"loops_{name}", monkeypatch) for name in ("data", "floors"))
    for edges in (8, 20, 40):
        graph = data.Graph(query, data.Sizes(nodes=20, edges=edges))
        floor = by_hand.by_hand(query)
        (root, *_) = graph.load["nodes"]
        for size in [0, *[1, 2, 6] * 20]:
            before = floor.value()
            given = floor.step(graph.change(size) if size else graph.load)
            ways: dict[int, list[int]] = {}
            for one, other in graph.edges.rows:
                ways.setdefault(one, []).append(other)
                if query == "components":
                    ways.setdefault(other, []).append(one)
            if query == "reachability":
                wanted = dict.fromkeys(data.reached(root, ways), 1)
            else:
                wanted = {(node, min(data.reached(node, ways))): 1 for node in range(20)}
            assert floor.value() == wanted
            assert given == {
                row: (row in wanted) - (row in before) for row in wanted.keys() ^ before.keys()
            }


# ---- columns ----

ENGINES = ["rows", "rows, Arrow", "columns, rows", "columns, Arrow", "columns, arrays"]


def test_columns_are_measured_beside_rows_loops_by_hand_and_others() -> None:
    found = run(FOLDER / "columns.py")
    works = ["load group", "group 100", "group 2000", "one", "load join", "join 100"]
    assert list(dict.fromkeys(row["work"] for row in found["rows"])) == [*works, "most"]
    trusting = [" trusting,".join(name.split(",")) if "," in name else f"{name} trusting"
                for name in ENGINES]  # fmt: skip
    for work in works:
        rows = [row for row in found["rows"] if row["work"] == work]
        there = {row["contestant"] for row in rows}
        assert there >= {"kernels", "dict", "dict kept", *ENGINES, *trusting}
        others = {"Pathway", "DuckDB", "Polars", "differential"}
        assert there | set(found["not installed"]) >= others
        assert all(row["s" if work.startswith("load") else "µs"] > 0 for row in rows)
        assert [r["/ rows"] for r in rows if r["contestant"] == "rows"] == [1]
    most = [row for row in found["rows"] if row["work"] == "most"]
    assert len(most) == 4
    assert all(row["µs, loading the rest"] > 0 for row in most)
    judged = {row["target"]: row["met"] for row in found["targets"]}
    assert {"group 100: rows / columns, rows", "join 100: rows / columns, rows"} <= set(judged)
    assert set(judged.values()) == {"not asked"}


@pytest.mark.parametrize("query", ["group", "join"])
def test_kernels_by_hand_keep_what_recomputing_gives(
    query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine in columns is held to them: also where keys come and go, and tables grow."""
    columns, data = part("columns", monkeypatch), part("local_data", monkeypatch)
    for size in (8, 3_000):
        source = data.orders(size, size) if query == "group" else data.sides(size)
        live, result = columns.Kernels(query), {}
        for change in [source.load, *(source.change(min(size, 200)) for _ in range(20))]:
            columns.KNOWN.clear()
            for row, weight in live.bag(live.step(live.prepare(change))).items():
                result[row] = result.get(row, 0) + weight
        wanted = {tuple(row): 1 for row in columns.recomputed(query, source.tables).tolist()}
        assert {row: weight for row, weight in result.items() if weight} == wanted
        assert {tuple(row) for row in live.value().tolist()} == set(wanted)
        by_hand = columns.ByHand(columns.floors.NAMED[query]())
        by_hand.step({name: dict.fromkeys(t.rows, 1) for name, t in source.tables.items()})
        found, other = columns.fingerprint(by_hand.value()), columns.fingerprint(live.value())
        assert (
            found == other == columns.fingerprint(columns.matrix(wanted, len(next(iter(wanted)))))
        )


def test_columns_are_held_to_others_by_their_own_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    judge = part("columns", monkeypatch).targets
    times = {
        "group 1000": {"columns trusting, arrays": 2.0, "kernels": 1.0, "differential": 9.0,
                       "columns, rows": 3.0, "rows": 6.0},
        "join 1000": {"columns, Arrow": 2.0, "DuckDB": 41.0, "Polars": 39.0},
        "one": {"columns, rows": 9.0, "rows": 8.0},
    }  # fmt: skip
    rows = [{"work": work, "contestant": name, "µs": time}
            for work, each in times.items() for name, time in each.items()]  # fmt: skip
    rows += [{"work": "load join", "contestant": "columns trusting, arrays", "rows/s": 4e6}]
    assert [(row["target"], row["found"], row["met"]) for row in judge(rows, False)] == [
        ("group 1000: differential / columns trusting, arrays", 4.5, "NO"),
        ("group 1000: columns trusting, arrays / kernels", 2.0, "yes"),
        ("group 1000: rows / columns, rows", 2.0, "yes"),
        ("join 1000: DuckDB / columns, Arrow", 20.5, "yes"),
        ("join 1000: Polars / columns, Arrow", 19.5, "NO"),
        ("one: columns, rows / rows", 1.125, "NO"),
        ("load join: rows/s of columns trusting, arrays", 4e6, "yes"),
    ]


@pytest.mark.slow
def test_the_papers_queries_are_measured_in_columns() -> None:
    """What they give is compared with pairs by hand where it is measured."""
    found = run(FOLDER / "paper_004_columns.py")
    engines = ["rows trusting", "rows", "columns trusting, arrays", "columns, arrays"]
    for work in ("pairs", "greatest"):
        rows = {row["contestant"]: row for row in found["rows"] if row["work"] == work}
        assert list(rows)[:4] == engines
        assert all(row["µs"] > 0 for row in rows.values())
        assert ("differential" in rows) != ("differential" in found["not installed"])


@pytest.mark.slow
def test_a_keystroke_is_measured_in_texts_of_several_sizes() -> None:
    found = run(FOLDER / "text.py")
    assert [row["characters"] for row in found["rows"]] == [100_000, 1_000_000]
    for row in found["rows"]:
        assert row["scratch / keystroke"] == pytest.approx(row["scratch ms"] / row["keystroke ms"])
