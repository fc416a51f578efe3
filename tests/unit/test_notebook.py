"""What a notebook shows: escaped, short, and never an error."""

from __future__ import annotations

import inspect
import pickle
import sys
import threading
from dataclasses import dataclass
from html.parser import HTMLParser
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

import ebbflow as ef
from ebbflow import notebook
from ebbflow.laws import check
from ebbflow.notebook import COLUMNS, ROWS, WIDTH, html_of, text_of
from ebbflow.record import record

SCRIPT = "<script>alert('x')</script>"


class Order(NamedTuple):
    id: int
    city: str


@dataclass(frozen=True)
class Point:
    x: int
    y: int


class Broken:
    def __repr__(self) -> str:
        raise RuntimeError(SCRIPT)


class Read(HTMLParser):
    """The tags of a page and the text between them; an error where a tag is not closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.text: list[str] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def html(value: Any) -> Read:
    return Read(value._repr_html_())


orders = ef.Input("orders", Order, key="id")
dangerous = ef.Input(SCRIPT, str)


# ---- rows ----


def test_rows_with_fields_are_a_table_with_a_column_for_each() -> None:
    rows = ef.ZSet({Order(1, "Rome"): 1, Order(2, "Oslo"): 1})
    assert html(rows).text == ["id", "city", "1", "Rome", "2", "Oslo", "2 rows"]
    assert text_of(rows) == "id  city\n 1  Rome\n 2  Oslo\n2 rows"
    assert text_of(ef.ZSet.of([Point(1, 2)])) == "x  y\n1  2\n1 row"


def test_a_change_shows_its_weights() -> None:
    rows = ef.ZSet({Order(1, "Rome"): -1, Order(1, "Oslo"): 1})
    assert text_of(rows) == "id  city  weight\n 1  Rome      -1\n 1  Oslo       1\n2 rows"


def test_rows_of_several_types_are_one_column() -> None:
    rows = ef.ZSet.of([Order(1, "Rome"), "ebb", None])
    assert text_of(rows) == "row\nOrder(id=1, city='Rome')\nebb\nNone\n3 rows"


def test_nothing_is_no_table() -> None:
    assert ef.ZSet()._repr_html_() == "<p>0 rows</p>"
    assert text_of(ef.ZSet()) == "0 rows"
    assert text_of(ef.ZSet.of("abc"), 0) == "0 of 3 rows"


def test_what_rows_hold_is_text() -> None:
    Odd = record("Odd", text=str, more=tuple[str, ...])
    found = html(ef.ZSet.of([Odd(SCRIPT, (SCRIPT,)), Odd("&amp;", ())]))
    assert set(found.tags) == {"table", "thead", "tbody", "tr", "th", "td", "p"}
    assert SCRIPT in found.text
    assert "&amp;" in found.text


def test_of_many_rows_the_first_are_shown_with_the_number_of_all() -> None:
    rows = ef.ZSet.of(range(1_000_000))
    found = html(rows)
    assert found.tags.count("td") == ROWS
    assert found.text[-1] == "20 of 1,000,000 rows"
    assert text_of(rows, 2) == "row\n  0\n  1\n2 of 1,000,000 rows"


def test_a_long_value_is_cut() -> None:
    rows = ef.ZSet.of([Order(1, "x" * 10_000_000), Order(2, "two\nlines")])
    assert len(html_of(rows)) < 1000
    assert max(map(len, text_of(rows).splitlines())) <= WIDTH + 10
    assert "'two\\nlines'" in text_of(rows)


def test_rows_of_very_many_fields_are_one_column() -> None:
    Wide = record("Wide", **{f"f{i}": int for i in range(COLUMNS + 1)})
    assert text_of(ef.ZSet.of([Wide(*range(COLUMNS + 1))])).startswith("row\nWide(f0=0, ")


def test_a_value_that_cannot_be_shown_says_so() -> None:
    found = html(ef.ZSet.of([Broken()]))
    assert any("<Broken that cannot" in text for text in found.text)
    assert "script" not in found.tags


# ---- programs and views ----


def test_a_collection_shows_what_it_is_and_its_plan() -> None:
    found = html(dangerous.filter(lambda word: word > "<b>").map(len))
    assert set(found.tags) == {"p", "details", "summary", "pre"}
    assert f"<int: {SCRIPT} → filter → map>" in found.text
    assert any("input " + SCRIPT in text for text in found.text)
    both = html(ef.program(orders=orders, words=dangerous))
    assert set(both.tags) == {"p", "details", "summary", "pre"}


def test_a_collection_whose_plan_cannot_be_made_shows_why() -> None:
    two = ef.Input("rows", int).map(str) + ef.Input("rows", str)
    assert "two inputs are called" in " ".join(html(two).text)


def test_a_plan_keeps_its_columns() -> None:
    plans = orders.explain(), orders.run().explain(), orders.explain("json")
    for plan in plans:
        assert isinstance(plan, str)
        assert html(plan).tags == ["pre"]
        assert html(plan).text == [str(plan)]


def test_a_view_shows_its_rows_or_those_of_each_output() -> None:
    view = orders.run()
    assert html(view).text == ["<View of output: epoch 0>", "0 rows"]
    view.step(orders=[Order(1, SCRIPT)])
    assert html(view).text == ["<View of output: epoch 1>", "id", "city", "1", SCRIPT, "1 row"]
    both = ef.program(orders=orders, words=dangerous).run()
    both.step({SCRIPT: ["ebb"]})
    title = "<View of orders, words: epoch 1>"
    assert html(both).text == [title, "orders", "0 rows", "words", "row", "ebb", "1 row"]
    assert html(both["words"]).text == [f"<output words of {title}>", "row", "ebb", "1 row"]


def test_a_closed_view_says_so() -> None:
    view = orders.run()
    output = view["output"]
    view.close()
    assert html(view).text == ["<View of output: epoch 0, closed>"]
    assert "the view is closed" in " ".join(html(output).text)
    with pytest.raises(ef.EbbflowError):
        view.show()


def test_a_view_can_be_shown_in_the_middle_of_an_epoch() -> None:
    seen = []

    def look(word: str) -> str:
        seen.append(view._repr_html_())
        return word

    view = ef.Input("words", str).map(look).run()
    view.step(words=["ebb"])
    assert [Read(each).text for each in seen] == [["<View of output: epoch 0, running>"]]


def test_another_thread_sees_whole_epochs() -> None:
    view, seen = orders.run(), []
    thread = threading.Thread(target=lambda: seen.append(html(view).text[-1]))
    view.step(orders=[Order(1, "Rome")])
    thread.start()
    thread.join()
    assert seen == ["1 row"]


def test_show_prints_the_first_rows_of_each_output(capsys: pytest.CaptureFixture[str]) -> None:
    view = ef.program(orders=orders, n=orders.agg(n=ef.count())).run()
    view.step(orders=[Order(1, "Rome"), Order(2, "Oslo")])
    view.show(1)
    assert capsys.readouterr().out == (
        "orders:\nid  city\n 1  Rome\n1 of 2 rows\nn:\nn\n2\n1 row\n"
    )


def test_a_durable_view_is_shown_like_any_other(tmp_path: Any) -> None:
    pytest.importorskip("pyarrow")
    with orders.run(path=tmp_path) as view:
        view.step(orders=[Order(1, "Rome")])
        assert html(view).text[-1] == "1 row"
    assert html(view).text == ["<View of output: epoch 1, closed>"]


def test_reports_keep_their_columns() -> None:
    report = check(
        ef.Reducer(0, lambda n, x: n + x, lambda n, x: n - x, name="<sum>"), elements=range(9)
    )
    view = orders.run()
    for each in (report, view.stats()):
        assert html(each).tags == ["pre"]
        assert html(each).text == [str(each)]


def test_change_and_value_of_several_outputs_are_a_table_for_each(tmp_path: Any) -> None:
    pytest.importorskip("pyarrow")
    both = ef.program(orders=orders, words=dangerous)
    expected = ["orders", "0 rows", "words", "row", "ebb", "1 row"]
    with both.run(path=tmp_path, readable=True) as view:
        heard: list[Any] = []
        view.on_change(heard.append)
        shown = [
            view.step({SCRIPT: ["ebb"]}), view.value, view.at(1), heard[0],
            ef.open(tmp_path).value, view.branch().value,
        ]  # fmt: skip
        for each in shown:
            assert html(each).text == expected
            assert type(each) is not dict
            assert each == dict(each) == {"orders": ef.ZSet(), "words": ef.ZSet.of(["ebb"])}
            assert repr(each) == repr(dict(each))
            assert pickle.loads(pickle.dumps(each)) == each
        assert view.step(view.branch().step({SCRIPT: ["ebb"]}) and {SCRIPT: ["sea"]})


# ---- cells ----


class Compiler:
    """What IPython knows of the files it has made for cells."""

    def format_code_name(self, name: str) -> tuple[str, str] | None:
        return ("Cell", "In[5]") if name == "/tmp/ipykernel_123/456.py" else None


IPYTHON = SimpleNamespace(get_ipython=lambda: SimpleNamespace(compile=Compiler()))


@pytest.mark.parametrize(
    ("file", "ipython", "place"),
    [
        ("/tmp/ipykernel_123/456.py", IPYTHON, "cell [5], line 3"),
        ("/tmp/ipykernel_123/789.py", IPYTHON, "a notebook cell, line 3"),
        ("/tmp/ipykernel_123/456.py", None, "a notebook cell, line 3"),
        ("/tmp/ipykernel_123/456.py", SimpleNamespace(), "a notebook cell, line 3"),
        ("<ipython-input-7-0123abc>", None, "cell [7], line 3"),
        ("/app/ipykernel_123.py", IPYTHON, "/app/ipykernel_123.py:3"),
        ("/app/shop.py", IPYTHON, "/app/shop.py:3"),
    ],
)
def test_place_in_a_notebook_is_the_cell(
    file: str, ipython: Any, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    source = "import ebbflow as ef\nwords = ef.Input('words', str)\nmade = words.map(fail)\n"
    names: dict[str, Any] = {"fail": lambda word: 1 // 0}
    exec(compile(source, file, "exec"), names)
    assert str(names["made"].node.place) == place
    with pytest.raises(ef.EbbflowError) as error:
        names["made"].run().step(words=["ebb"])
    assert f"created    {place}\n" in str(error.value)
    with pytest.raises(ef.EbbflowError) as error:
        exec(compile("\n\nwords.fliter(fail)", file, "exec"), names)
    assert f"created    {place}\n" in str(error.value)


def test_warning_in_a_notebook_names_the_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "IPython", IPYTHON)
    view = ef.Input("words", str).run()
    view.step(words=["ebb"], batch="monday")
    step = compile(
        "\n\nview.step(words=['ebb'], batch='monday')", "/tmp/ipykernel_123/456.py", "exec"
    )
    with pytest.warns(ef.errors.RepeatedBatch) as said:
        exec(step, {"view": view})
    assert (said[0].filename, said[0].lineno) == ("cell [5]", 3)


# ---- completion ----


def test_dir_of_the_package_has_what_is_there_when_asked_for() -> None:
    assert set(ef.__all__) <= set(dir(ef))
    assert {each for each in dir(ef) if not each.startswith("__")} <= set(ef.__all__)
    for name in ef.__all__:
        assert getattr(ef, name) is not None


@pytest.mark.parametrize("value", [orders, orders.run(), ef.ZSet(), orders.run()["output"]])
def test_completion_shows_what_can_be_done_and_nothing_else(value: Any) -> None:
    for name in dir(value):
        if not name.startswith("_"):
            made = inspect.getattr_static(type(value), name, None)
            known = name in ("node", "name", "view", "plan")
            assert known or inspect.isfunction(made) or hasattr(made, "__get__"), name


def test_an_object_that_cannot_say_what_it_is_has_a_page() -> None:
    def fail() -> str:
        raise RuntimeError(SCRIPT)

    found = Read(notebook.page(Broken(), {"": fail}))
    assert found.tags == ["p", "p"]
    assert found.text[-1] == f"RuntimeError: {SCRIPT}"
