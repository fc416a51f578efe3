"""Methods of texts and dates that are written down are traced, and compute what Python does."""

from __future__ import annotations

import pickle
import re
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

import pytest

import ebbflow as ef
from ebbflow.expression import trace
from ebbflow.expression.bytecode import Instruction
from ebbflow.expression.node import METHODS, SEARCHES, Row
from ebbflow.expression.trace import Reading
from ebbflow.flow.plan import Plan
from ebbflow.flow.rewrite import optimise
from ebbflow.flow.rewrite.total import computes, never_raises
from ebbflow.fn import Fn
from ebbflow.record import record


class Part(NamedTuple):
    name: str
    size: int
    made: date
    note: str | None
    any: Any


class Maybe(NamedTuple):
    name: str | None


KINDS = ("STEEL", "BRASS")
TEXTS = ["", " ", "STEEL rod", "a BRASS", "İstanbul", "straße", "ŉ", "x\x1c", " \tA ", "\U0001f600"]

TRACED = [
    (lambda p: p.name.startswith("STEEL"), "name.startswith('STEEL')"),
    (lambda p: p.name.endswith(KINDS), "name.endswith(('STEEL', 'BRASS'))"),
    (lambda p: not p.name.lower().startswith("s"), "not name.lower().startswith('s')"),
    (lambda p: p.name.upper() == "A", "name.upper() == 'A'"),
    (lambda p: p.name.strip() + p.name.strip("x"), "name.strip() + name.strip('x')"),
    (lambda p: p.name[:2].upper(), "name[:2].upper()"),
    (lambda p: str(p.size).startswith("1"), "str(size).startswith('1')"),
    (lambda p: "STEEL".startswith(p.name), "'STEEL'.startswith(name)"),
    (lambda p: p.made >= date(1994, 1, 1), "made >= datetime.date(1994, 1, 1)"),
    (lambda p: p.made < date(year=1994, month=2, day=1), "made < datetime.date(1994, 2, 1)"),
    (lambda p: p.made + timedelta(days=3), "made + datetime.timedelta(days=3)"),
    (lambda p: datetime(2020, 1, 1), "datetime.datetime(2020, 1, 1, 0, 0)"),
    (lambda p: p.size > Decimal("1.50"), "size > Decimal('1.50')"),
]


@pytest.mark.parametrize(("call", "shown"), TRACED)
def test_methods_of_texts_and_dates_are_traced_and_give_what_python_gives(
    call: Any, shown: str
) -> None:
    fn = Fn.of(call, Part)
    assert fn.expression is not None
    assert fn.text == shown
    bound: dict[str, Any] = {"datetime": __import__("datetime")}

    def bind(value: Any) -> str:
        bound[f"v{len(bound)}"] = value
        return f"v{len(bound) - 1}"

    compiled = eval(f"lambda row: {fn.source(bind, 'row')}", bound)
    for name in TEXTS:
        row = Part(name, 17, date(1994, 1, 31), None, name)
        assert compiled(row) == call(row)
        assert type(compiled(row)) is type(call(row))


@pytest.mark.parametrize(
    "call",
    [
        lambda p: p.note.lower(),
        lambda p: p.any.startswith("a"),
        lambda p: p.size.startswith("a"),
        lambda p: p.name.replace("a", "b"),
        lambda p: p.name.startswith("a", 1),
        lambda p: p.name.startswith(p.size),
        lambda p: p.name.startswith(p.note),
        lambda p: p.name.strip(None),
        lambda p: p.name.lower("a"),
        lambda p: p.name.startswith((1, "a")),
        lambda p: p.made >= date(p.size, 1, 1),
        lambda p: p.made >= date(1994, 13, 1),
        lambda p: p.made >= date.today(),
    ],
)
def test_what_may_be_something_else_is_not_traced(call: Any) -> None:
    assert trace(call, [Part]) is None


@pytest.mark.parametrize("name", METHODS)
def test_a_method_of_a_text_never_raises(name: str) -> None:
    given = '"a"' if METHODS[name] is bool else ""
    fn = Fn.of(eval(f"lambda p: p.name.{name}({given})"), Part)
    assert fn.expression is not None
    assert computes(fn.expression, [Part])
    assert never_raises(fn.expression, [Part])
    assert not computes(fn.expression, [Maybe])


STEEL = re.compile("S.*l" + " of a kind" * 30)


@pytest.mark.parametrize("name", SEARCHES)
def test_what_a_regular_expression_finds_is_traced_and_never_raises(name: str) -> None:
    fn = Fn.of(eval(f"lambda p: STEEL.{name}(p.name) is None", {"STEEL": STEEL}), Part)
    assert fn.expression is not None
    made = Part("Steel" + " of a kind" * 30 + "s", 1, date(2000, 1, 1), None, None)
    assert fn(made) is (name == "fullmatch")
    assert fn(made._replace(name="no S"))
    assert never_raises(fn.expression, [Part])
    assert pickle.loads(pickle.dumps(fn.expression)) == fn.expression


def test_regular_expressions_are_equal_where_all_of_them_is() -> None:
    longer, ignoring = re.compile(STEEL.pattern + "y"), re.compile(STEEL.pattern, re.IGNORECASE)
    made = [Fn.of(lambda p, of=of: of.search(p.name), Part) for of in (STEEL, longer, ignoring)]
    again = re.compile(STEEL.pattern)
    assert made[0].expression == Fn.of(lambda p: again.search(p.name), Part).expression
    assert len({each.expression for each in made}) == len({each.fingerprint for each in made}) == 3


@pytest.mark.parametrize(
    "call",
    [
        lambda p: STEEL.sub("", p.name),
        lambda p: STEEL.search(p.name, 1),
        lambda p: STEEL.search(p.size),
        lambda p: STEEL.pattern in p.name,
        lambda p: STEEL,
    ],
)
def test_other_uses_of_a_regular_expression_are_not_traced(call: Any) -> None:
    assert trace(call, [Part]) is None


def test_the_type_of_what_a_method_gives_is_known() -> None:
    parts = ef.Input("parts", Part)
    found = parts.select(low=lambda p: p.name.lower(), steel=lambda p: p.name.startswith("S"))
    assert found.node.type.__annotations__ == {"low": str, "steel": bool}


def test_the_bytecode_of_newer_versions_is_read_too() -> None:
    listing = [
        ("LOAD_FAST", 0, "p", "p"),
        ("LOAD_ATTR", 0, "name", "name"),
        ("LOAD_ATTR", 3, "startswith", "startswith + NULL|self"),
        ("LOAD_CONST", 1, "S", "'S'"),
        ("CALL", 1, 1, ""),
        ("RETURN_VALUE", None, None, ""),
    ]
    steps = [Instruction(2 * i, *each) for i, each in enumerate(listing)]
    assert Reading(steps, {"p": Row(0)}, [Part], {}).whole().text() == "name.startswith('S')"


def test_a_filter_by_a_method_goes_before_a_join() -> None:
    parts, others = ef.Input("parts", Part), ef.Input("others", Part)
    both = parts.join(others, on="size", suffixes=("", "_too"))
    steel = both.filter(lambda row: row.name.startswith("S"))
    verbs = [node.verb for node in optimise(Plan({"steel": steel.node})).nodes()]
    assert verbs.index("filter") < verbs.index("join")


def test_methods_of_texts_in_columns_are_those_in_rows() -> None:
    pytest.importorskip("numba")
    names = ef.Input("names", record("Name", id=int, name=str))
    found = (
        names.filter(lambda row: not row.name.endswith("d"))
        .select("id", up=lambda row: row.name.upper(), s=lambda row: row.name.startswith(" "))
        .group_by("up", "s")
        .agg(n=ef.count())
    )
    rows, columns = found.run(), found.run(columns=True)
    for given in (TEXTS, ["d", *TEXTS[2:], "ß"]):
        batch = {"id": list(range(len(given))), "name": given}
        assert rows.step(names=batch) == columns.step(names=batch)
    assert "in columns" in str(columns.explain())
    assert rows.value == columns.value
