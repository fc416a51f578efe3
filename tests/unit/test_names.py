"""Names of other libraries, answered with ours; every answer names what there is."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pytest

import ebbflow as ef
from ebbflow import names
from ebbflow.engine.runtime.handles import InputHandle
from ebbflow.errors import CompositionError, UnknownVerb


class Order(NamedTuple):
    id: int
    city: str
    price: int


ORDERS: Any = ef.Input("orders", Order, key="id")
BAG: Any = ef.Input("hits", int)
VIEW: Any = ORDERS.run()
OF_BAG: Any = BAG.run()
TWO: Any = ef.program(a=ORDERS, b=BAG)
BOTH: Any = TWO.run()

OBJECTS: dict[str, tuple[Any, Mapping[str, str]]] = {
    "module": (ef, names.MODULE),
    "view": (VIEW, names.VIEW),
    "two outputs": (BOTH, names.VIEW),
    "input": (VIEW.input("orders"), names.INPUT),
    "bag": (OF_BAG.input("hits"), names.INPUT),
    "output": (BOTH["b"], names.OUTPUT),
    "program": (TWO, names.PROGRAM),
    "zset": (ef.ZSet({1: 2}), names.ZSET),
}
"""Objects, each with the table of the names it is asked for."""
NAMED = r'\b(ebbflow|view|zset|collection)((?:\["\w+"\]|\.input\("\w+"\))?)((?:\.\w+)+)'
"""What an answer names, and how it is reached."""


@pytest.mark.parametrize("of", OBJECTS)
def test_every_name_of_a_table_is_answered_at_the_line_of_the_user(of: str) -> None:
    thing, table = OBJECTS[of]
    for name in table:
        with pytest.raises(UnknownVerb) as error:
            getattr(thing, name)
        assert error.value.remedy
        assert "{" not in error.value.remedy.replace("{old: -1, new: 1}", "")
        assert "test_names.py" in str(error.value)
        assert not hasattr(thing, name)


@pytest.mark.parametrize("of", OBJECTS)
def test_answers_name_what_there_is(of: str) -> None:
    thing, table = OBJECTS[of]
    view = OF_BAG if of == "bag" else BOTH if of in ("two outputs", "output") else VIEW
    roots = {"ebbflow": ef, "view": view, "zset": ef.ZSet(), "collection": ORDERS}
    checked = 0
    for name in table:
        with pytest.raises(UnknownVerb) as error:
            getattr(thing, name)
        remedy = error.value.remedy
        if "before run()" in remedy or "connectors" in remedy or "program." in remedy:
            continue
        for root, picked, rest in re.findall(NAMED, remedy):
            found: Any = eval(f"root{picked}", {"root": roots[root]})
            for each in rest.split(".")[1:]:
                found = getattr(found, each)
                checked += 1
    assert checked or of == "program"


def test_names_are_those_of_collections_views_and_inputs() -> None:
    assert all(hasattr(ef.Collection, each) for each in names.VERBS)
    assert all(hasattr(ef.View, each) for each in names.VIEWS)
    assert all(hasattr(InputHandle, each) for each in names.INPUTS)
    assert all(hasattr(ef, ours) for ours in names.REDUCERS.values())


@pytest.mark.parametrize(
    ("ask", "remedy"),
    [
        (lambda: ef.avg, "ebbflow.mean(...)"),  # type: ignore[attr-defined]
        (lambda: ef.maen, "mean"),  # type: ignore[attr-defined]
        (lambda: ef.nothing_like_it, "a name in dir(ebbflow)"),  # type: ignore[attr-defined]
        (lambda: ef.table, 'ebbflow.Input("orders", Order), then view.step(orders=rows)'),  # type: ignore[attr-defined]
        (lambda: ef.left_join, 'for a collection c: join(other, on="field", how="left")'),  # type: ignore[attr-defined]
        (lambda: ef.cast, "a field name, or a function of the row: lambda row: row.price * 2"),  # type: ignore[attr-defined]
        (lambda: ef.write_parquet, "view.write_snapshot(path)"),  # type: ignore[attr-defined]
        (lambda: VIEW.remove_sink, "view.end_sink(name)"),
        (lambda: VIEW.history, "view.at(epoch) with run(path=..., keep_epochs=n), or view.epoch"),
        (lambda: VIEW.clear, 'view.input("orders").replace([])'),
        (lambda: BOTH["b"].add_sink, 'view["b"].on_change(function), or view.add_sink(sink)'),
        (lambda: ORDERS.full_join, 'join(other, on="field", how="full")'),
        (lambda: ORDERS.hop, "tumbling(time, size), sliding(...) or session(...), then group_by"),
        (lambda: VIEW.subscribe, "view.on_change(print)"),
        (lambda: VIEW.insert, 'view.input("orders").add(row), or view.step(orders=[row])'),
        (lambda: VIEW.update, 'view.input("orders").upsert(row)'),
        (lambda: OF_BAG.update, 'view.input("hits").apply({old: -1, new: 1})'),
        (lambda: OF_BAG.discard, 'view.input("hits").remove(row)'),
        (lambda: VIEW.to_pandas, "view.value.to_pandas()"),
        (lambda: BOTH.to_pandas, 'view.value["a"].to_pandas()'),
        (lambda: BOTH["b"].to_df, 'view.value["b"].to_pandas()'),
        (lambda: VIEW.filter, "a verb of collections: write collection.filter(...) before run()"),
        (lambda: TWO.explian, "explain"),
        (lambda: ORDERS.fliter, "filter(...)"),
        (lambda: VIEW.input("orders").insert, 'view.input("orders").add(row)'),
        (lambda: TWO.step, "view = program.run(), then view.step"),
        (lambda: ORDERS.subscribe, "view = c.run(), then view.on_change"),
    ],
)
def test_remedy_for_a_name(ask: Callable[[], object], remedy: str) -> None:
    with pytest.raises(UnknownVerb) as error:
        ask()
    assert error.value.remedy == remedy
    assert isinstance(error.value, AttributeError)
    assert isinstance(error.value, CompositionError)


def test_misspelt_names_are_left_to_python_where_attributes_must_be_fast() -> None:
    """A class with `__getattr__` has slow attributes; Python suggests the near name itself."""
    for thing in (VIEW, VIEW.input("orders"), VIEW["output"], ef.ZSet()):
        assert not hasattr(type(thing), "__getattr__")
        assert not {"subscribe", "insert", "to_df", "group_by"} & {*dir(thing)}
        assert not hasattr(type(thing), "insert")
        with pytest.raises(AttributeError) as error:
            thing.vaule
        assert not isinstance(error.value, UnknownVerb)


def test_module_that_is_not_imported_yet_says_how(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(ef, "cli_compile", raising=False)
    with pytest.raises(UnknownVerb) as error:
        ef.cli_compile
    assert error.value.remedy == "import ebbflow.cli_compile"


def test_names_with_underscores_are_asked_for_as_python_does() -> None:
    for thing, _ in OBJECTS.values():
        with pytest.raises(AttributeError) as error:
            thing._ipython_display_
        assert not isinstance(error.value, UnknownVerb)


def test_error_of_a_property_is_not_taken_for_a_wrong_name() -> None:
    class Failing(ef.View):  # type: ignore[type-arg]
        @property
        def value(self) -> Any:
            raise AttributeError("inside")

    view: Any = object.__new__(Failing)
    with pytest.raises(AttributeError, match=r"^inside$"):
        view.value


PACKAGES = (
    "algebra", "change", "connectors.delta", "connectors.kafka", "connectors.postgres",
    "flow", "laws", "metrics", "operator", "reducer", "stream", "testing", "window",
)  # fmt: skip


@pytest.mark.parametrize("package", PACKAGES)
def test_dir_of_a_package_has_the_public_names_only(package: str) -> None:
    pytest.importorskip("pyarrow")
    module = importlib.import_module(f"ebbflow.{package}")
    shown = {each for each in dir(module) if not each.startswith("__")}
    assert shown == {each for each in module.__all__ if not each.startswith("__")}
