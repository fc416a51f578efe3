"""Plans as text, graphs, JSON and the Python that runs.

The golden files beside this one hold what `explain` says about the programs beside them, and the
loops that are generated for those in `loops.py`. After a change that is meant:
`EBBFLOW_GOLDEN=write pytest tests/unit/flow/test_show.py`, and read the diff.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

import ebbflow as ef
from ebbflow.errors import CompositionError
from ebbflow.flow.describe import verb, verdict
from ebbflow.flow.plan import Distinct, Filter, Plan, Source
from ebbflow.flow.rewrite import ALL, LOCAL, optimise, share
from ebbflow.flow.show import explain
from ebbflow.fn import Fn

GOLDEN = Path(__file__).parent / "golden"


def scope(name: str) -> dict[str, Any]:
    """The names in a file beside the golden files; places in its programs are lines of it."""
    source = (GOLDEN / f"{name}.py").read_text()
    found: dict[str, Any] = {"__name__": name}
    exec(compile(source, f"{name}.py", "exec"), found)
    return found


def planned(name: str) -> Plan:
    """The plan of a program beside the golden files."""
    return scope(name)["program"].plan  # type: ignore[no-any-return]


def golden(name: str, found: str) -> None:
    path = GOLDEN / name
    if os.environ.get("EBBFLOW_GOLDEN") == "write":
        path.write_text(found + "\n")
    assert path.exists(), f"{name} is missing: EBBFLOW_GOLDEN=write pytest {__file__}"
    assert found + "\n" == path.read_text()


PROGRAMS = ["shop", "people", "words", "shared", "reducers", "everything", "rounds"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_as_it_was_written(name: str) -> None:
    golden(f"{name}.txt", explain(planned(name)))


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_as_it_runs_here(name: str) -> None:
    golden(f"{name}.local.txt", explain(optimise(planned(name), LOCAL)))


@pytest.mark.parametrize("name", ["people", "everything"])
def test_a_program_as_it_runs_where_rows_are_written_down(name: str) -> None:
    golden(f"{name}.all.txt", explain(optimise(planned(name), ALL)))


@pytest.mark.parametrize("format", ["mermaid", "dot", "json"])
@pytest.mark.parametrize("name", ["shop", "shared", "rounds"])
def test_a_program_in_the_other_formats(name: str, format: str) -> None:
    golden(f"{name}.{format}", explain(share(planned(name)), format))


@pytest.mark.parametrize(
    "name", ["join", "join_map", "semi", "anti", "reduce", "filter_map_reduce"]
)
def test_the_loops_that_run(name: str) -> None:
    made: Any = scope("loops")["LOOPS"]
    golden(f"loop_{name}.txt", made[name].explain("python"))


@pytest.mark.parametrize("name", ["reached", "near", "twice"])
def test_the_functions_of_a_loop_that_run(name: str) -> None:
    made = scope("rounds")[name].explain("python")
    compile(made, "explained", "exec")
    golden(f"rounds_{name}.txt", made)


def test_a_running_loop_says_which_way_it_runs_and_what_its_rounds_did() -> None:
    found = scope("rounds")
    view = found["program"].run()
    edges = [found["Edge"](n, n + 1, 1) for n in range(1, 4)]
    view.step(roots=[found["Stop"](1)], here=[found["Distance"](1, 0)], edges=edges)
    view.step(edges={edges[1]: -1})
    golden("rounds.view.txt", view.explain())
    golden("rounds.view.json", view.explain("json"))


# ---- what the text must keep ----


@pytest.mark.parametrize("name", PROGRAMS)
def test_lines_fit_a_page_and_columns_are_aligned(name: str) -> None:
    lines = explain(planned(name)).splitlines()
    assert max(map(len, lines)) <= 100
    places = {line.index(f"{name}.py:") for line in lines if f"{name}.py:" in line}
    assert len(places) == 1


def test_a_shared_node_is_drawn_once_and_referred_to_later() -> None:
    text = explain(share(planned("shared")))
    assert text.count("distinct  ") == 1
    assert text.count("↑ 2 distinct") == 2


def test_an_engine_adds_facts_to_nodes() -> None:
    words = Source(name="words", type=str)
    plan = Plan({"out": Distinct(parent=words, type=str)})
    facts = {words: "3 rows · 2 µs"}
    assert "     now      3 rows · 2 µs" in explain(plan, facts=facts).splitlines()
    assert [n["facts"] for n in json.loads(explain(plan, "json", facts=facts))["nodes"]] == [
        None, "3 rows · 2 µs",
    ]  # fmt: skip
    for format in ("mermaid", "dot"):
        assert "3 rows · 2 µs" in explain(plan, format, facts=facts)


def test_a_judge_gives_the_verdict() -> None:
    text = explain(planned("reducers"), judge=lambda reducer: f"judged {reducer!r}")
    assert "follows  judged mean('ms')" in text
    assert "invertible ·" not in text


def test_the_verdict_is_what_a_reducer_declares() -> None:
    def made(**given: object) -> str:
        return verdict(ef.Reducer(0, max, **given))  # type: ignore[arg-type]

    assert made() == "refold"
    assert made(merge=max) == "tree"
    assert made(remove=min) == "invertible or partial"
    assert made(remove=min, merge=max, partial=False) == "invertible"
    assert made(remove=min, partial=True) == "partial"


def test_json_has_the_same_keys_for_every_node_and_ids_that_fit_the_text() -> None:
    plan = optimise(planned("everything"))
    whole = json.loads(explain(plan, "json"))
    keys = (
        "id", "verb", "details", "steps", "parents", "type", "place", "state", "verdict",
        "aggregate", "cost", "shared", "facts", "inside", "reads", "loop",
    )  # fmt: skip
    assert {tuple(node) for node in whole["nodes"]} == {keys}
    assert [node["id"] for node in whole["nodes"]] == list(range(1, len(plan.nodes()) + 1))
    assert set(whole["outputs"]) == set(plan.outputs)
    text = explain(plan)
    for node in whole["nodes"]:
        assert f"{node['id']} {node['verb']}" in text
    assert {"of", "key", "readers"} == set(whole["indices"][0])


def test_text_in_graphs_is_quoted() -> None:
    odd = Filter(parent=Source(name='a "b" <c>', type=str), fn=Fn(len, str, name='"\\'), type=str)
    plan = Plan({'"out"': odd})
    assert '[("2 input a &quot;b&quot; &lt;c&gt;")]' in explain(plan, "mermaid")
    assert r'label="1 filter \"\\"' in explain(plan, "dot")


def test_another_format_is_an_error_that_says_which_there_are() -> None:
    with pytest.raises(CompositionError, match="cannot be explained as 'html'") as caught:
        explain(Plan({"out": Source(name="a")}), "html")
    assert caught.value.remedy == "'text' or 'mermaid' or 'dot' or 'json' or 'python'"


def test_python_shows_the_code_of_every_stage_with_its_node(tmp_path: Path) -> None:
    program = scope("everything")["program"]
    view = program.run()
    text = view.explain("python")
    compile(text, "explained", "exec")
    headers = [line for line in text.splitlines() if line.startswith("# ")]
    stages = view._program.machine.stages
    assert sum(line.startswith("def ") for line in text.splitlines()) == len(stages)
    for stage in stages:
        assert any(f" {verb(stage.node)}" in line for line in headers)
    functions = [line for line in text.splitlines() if not line.startswith("#")]
    planned = program.explain("python").splitlines()
    assert [line for line in planned if not line.startswith("#")] == functions
    with program.run(path=tmp_path) as durable:
        assert "def partial(change):" not in text
        assert "def join_delta(" in durable.explain("python")


def test_python_shows_the_two_loops_of_a_reduce_whose_cells_are_on_disk(tmp_path: Path) -> None:
    made = scope("loops")["LOOPS"]["reduce"]
    titles = re.compile(r"^def (\w+)", re.MULTILINE)
    assert titles.findall(made.explain("python")) == ["step"]
    with made.run(path=tmp_path) as durable:
        assert titles.findall(durable.explain("python")) == ["partial", "merge"]


def test_where_nothing_is_computed_there_is_no_code() -> None:
    assert ef.Input("words", str).explain("python") == "# no code: the inputs are the outputs"


def test_programs_and_collections_explain_themselves() -> None:
    words = ef.Input("words", str).distinct()
    assert words.explain().startswith("output\n└─ 1 distinct")
    assert ef.program(all=words).explain("dot").startswith("digraph")
