"""What is looked for in texts, in columns: against batch, on tables small and large, and where
texts have numbers already."""

from __future__ import annotations

import os
import re
from collections import Counter
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

import ebbflow as ef
from ebbflow.engine.runtime.columnar import inputs
from ebbflow.expression.node import SEARCHES, Operation
from ebbflow.fn import Fn
from ebbflow.kernel.pending import ArrowColumn, TakenRows
from ebbflow.kernel.text_search import TextSearch, pieces_of
from ebbflow.kernel.words import Texts, WordForm
from ebbflow.zset import ZSet

MORE = int(os.environ.get("EBBFLOW_MORE", "1"))
pytestmark = pytest.mark.xdist_group("columns")  # kernels are compiled once


class Note(NamedTuple):
    id: int
    text: str
    other: str


LETTERS = ["a", "b", "ab", "\n", "é", "💧", "\0", ".", "ü"]


def text(random: Random, most: int = 8) -> str:
    return "".join(random.choice(LETTERS) for _ in range(random.randrange(most)))


def pattern(random: Random) -> Any:
    """A regular expression of pieces, or nearly one."""
    pieces = [
        re.escape(text(random, 3)).replace("\\\n", "\n") for _ in range(random.randrange(1, 4))
    ]
    made = ".*".join(pieces)
    made = random.choice(["", "", "^"]) + made + random.choice(["", "", "", "$", "+", ".", "|a"])
    flags = random.choice([0, re.DOTALL, re.DOTALL, re.IGNORECASE, re.MULTILINE])
    try:
        return re.compile(made, flags)
    except re.error:
        return re.compile(made.rstrip("+"))


def condition(random: Random) -> Any:
    p, x, y = pattern(random), text(random, 3), text(random, 3)
    method, either = random.choice(SEARCHES), (x, y)
    found = {
        "search": lambda row: p.search(row.text) is None,
        "match": lambda row: p.match(row.text) is not None,
        "fullmatch": lambda row: p.fullmatch(row.text),
    }[method]
    return random.choice([
        found, found, found,
        lambda row: x in row.text,
        lambda row: x not in row.text and row.id > 3,
        lambda row: row.text.startswith(x),
        lambda row: row.text.endswith(either),
        lambda row: row.text.startswith(either) or row.text.endswith(y),
        lambda row: p.search(row.text) is None or x in row.other,
        lambda row: p.search(row.text) and row.id > 2,
        lambda row: not (p.match(row.text) or row.id > 2),
    ])  # fmt: skip


def program(random: Random) -> Any:
    notes = ef.Input("notes", Note)
    found: Any = notes.filter(condition(random))
    shape = random.randrange(5)
    if shape == 0:
        return found
    if shape == 1:
        found = found.filter(condition(random))
    if shape == 2:
        found = notes.select("id", "text", "other").filter(lambda row: row.id > 2)
        return found.filter(condition(random)).group_by("text").agg(n=ef.count())
    if shape == 3:
        return notes.group_by("id").agg(n=ef.count().where(condition(random)), m=ef.count())
    return found.group_by("id").agg(n=ef.count())


def rows(random: Random, count: int) -> list[Note]:
    return [Note(random.randrange(9), text(random), text(random)) for _ in range(count)]


def test_oracle_what_is_in_texts_of_tables_is_found_as_in_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kinds: Counter[str] = Counter()
    for seed in range(60 * MORE):
        random = Random(seed)
        monkeypatch.setattr(inputs, "SMALL_TABLE", random.choice([0, 1 << 12]))
        made = program(random)
        view, expected = made.run(columns=True), made.run(columns=False)
        there: ZSet[Any] = ZSet()
        for _ in range(6):
            gone = random.sample(list(there), random.randrange(1 + len(there)))
            change = ZSet.of(rows(random, random.choice([0, 1, 20, 60]))) - ZSet.of(gone)
            there += change
            table = change.to_arrow(Note)
            if random.random() < 0.3 and len(table) > 2:
                table = pa.concat_tables([table.slice(0, 2), table.slice(2)])
            assert view.step(notes=table) == expected.step(notes=change), seed
        assert view.value == expected.value
        kinds.update(type(stage).__name__ for stage in view._program.machine.stages)
    assert kinds["ColumnLinearStage"] + kinds["ColumnReduceStage"] > 50 * MORE, kinds
    assert not {"LinearStage", "FusedReduceStage"} & {*kinds}, kinds


def test_oracle_pieces_are_found_where_python_finds_them() -> None:
    looked = Counter[str]()
    for seed in range(1500 * MORE):
        random = Random(seed)
        fn = Fn.of(condition(random), Note)
        assert fn.expression is not None
        for each in fn.expression.walk():
            wanted = pieces_of(each) if isinstance(each, Operation) else None
            if wanted is None:
                continue
            looked[each.op] += 1  # type: ignore[attr-defined]
            bound = Bound()
            code = each.source(bound.bind, ["row"])
            whole = eval(f"lambda row: bool({code})", bound)
            function = lambda one, whole=whole: whole(Note(0, one, one))
            given = [text(random) for _ in range(12)]
            column = pa.array(["before", *given]).slice(1)
            pending = ArrowColumn(WordForm("text"), column, Texts().now)
            found = TextSearch(wanted, function)(pending.in_memory() or ())
            assert found.tolist() == list(map(function, given)), (code, given)
    for op in (*SEARCHES, "in", "startswith", "endswith"):
        assert looked[op] > 20, looked


class Bound(dict[str, Any]):
    """Values by names that are made for them."""

    def bind(self, value: Any) -> str:
        name = f"v{len(self)}"
        self[name] = value
        return name


@pytest.mark.parametrize(
    ("pattern", "flags", "pieces"),
    [
        ("special.*requests", re.DOTALL, (("special", "requests"), False, False, False)),
        ("special.*requests", 0, (("special", "requests"), False, False, True)),
        ("^ebb", 0, (("ebb",), True, False, False)),
        ("", 0, (("",), False, False, False)),
        ("ebb|flow", 0, None),
        ("ebb$", 0, None),
        ("e.b", 0, None),
        ("ebb.*?flow", 0, None),
        ("ebb", re.IGNORECASE, None),
        ("^ebb", re.MULTILINE, None),
        (r"\d", 0, None),
    ],
)
def test_a_regular_expression_is_taken_apart_where_it_is_pieces(
    pattern: str, flags: int, pieces: Any
) -> None:
    compiled = re.compile(pattern, flags)
    expression = Fn.of(lambda row: compiled.search(row.text), Note).expression
    found = pieces_of(expression)  # type: ignore[arg-type]
    assert (None if found is None else tuple(found[0])) == pieces


def test_texts_that_are_only_looked_into_get_no_numbers() -> None:
    special = re.compile("b.*a")
    notes = ef.Input("notes", Note).filter(lambda row: special.search(row.text) is None)
    view = notes.group_by("id").agg(n=ef.count()).run(columns=True, check_input=False)
    for size in (40, 9000):
        given = [Note(at % 7, f"{at} ab", "") for at in range(size)]
        view.step(notes=ZSet.of(given).to_arrow(Note))
    (texts,) = {stage.texts for stage in view._program.machine.stages if stage.in_columns}
    assert texts.known == []


def test_a_join_in_columns_keeps_the_fields_that_are_read() -> None:
    notes, others = ef.Input("notes", Note), ef.Input("others", Note)
    both = notes.join(others, on="id", suffixes=("", "_too")).filter(lambda row: row.id > 1)
    counted = both.group_by("id").agg(n=ef.count(), last=ef.max("text_too"))
    view, expected = counted.run(columns=True), counted.run(columns=False)
    there: dict[str, ZSet[Any]] = {"notes": ZSet(), "others": ZSet()}
    for seed in range(20):
        random = Random(seed)
        change = {
            name: ZSet.of(rows(random, 9)) - ZSet.of(random.sample(list(old), len(old) // 2))
            for name, old in there.items()
        }
        there = {name: there[name] + change[name] for name in there}
        tables = {name: each.to_arrow(Note) for name, each in change.items()}
        assert view.step(tables) == expected.step(change)
    arranged = [each for each in view._program.machine.stages if hasattr(each, "chained")]
    assert [each.chained.rows.width for each in arranged] == [
        1,
        2,
        2,
    ]  # of a join, and of a maximum


def test_rows_that_were_taken_know_where_their_texts_are() -> None:
    column = ArrowColumn(WordForm("text"), pa.array(["a", "ab", "b", "ba"]), Texts().now)
    some = TakenRows([column], 0, np.array([1, 3]))
    fewer = TakenRows([some], 0, np.array([1]))
    search = TextSearch(
        pieces_of(Fn.of(lambda row: row.text.endswith("a"), Note).expression) or (), bool
    )  # type: ignore[arg-type]
    assert search(some.in_memory() or ()).tolist() == [0, 1]
    assert search(fewer.in_memory() or ()).tolist() == [1]
    assert TakenRows([column], 0, np.array([True, False, True, True])).in_memory() is None
    column()
    assert column.in_memory() is some.in_memory() is None
    several = ArrowColumn(WordForm("text"), pa.chunked_array([["a"], [], ["b", "a"]]), Texts().now)
    assert search(several.in_memory() or ()).tolist() == [1, 0, 1]
    assert TakenRows([several], 0, np.array([1])).in_memory() is None
