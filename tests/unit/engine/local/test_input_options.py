"""Methods of an input take rows, lists of rows and tables, and the options of the requests."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

import ebbflow as ef
from ebbflow.engine.runtime.handles import InputHandle
from ebbflow.errors import AbsentRow, ChangeError, UnknownArgument


class Order(NamedTuple):
    id: int
    city: str
    at: int = 0


ROME, OSLO, BARI = Order(1, "Rome"), Order(2, "Oslo"), Order(3, "Bari")


def orders(**options: Any) -> Any:
    return ef.Input("o", Order, **{"key": "id", **options}).run().input("o")


FORMS: dict[str, Callable[[list[Order]], tuple[Any, ...]]] = {
    "arguments": lambda rows: (*rows,),
    "a list": lambda rows: (rows,),
    "dicts": lambda rows: tuple(row._asdict() for row in rows),
    "a list of dicts": lambda rows: ([row._asdict() for row in rows],),
    "a dict of columns": lambda rows: (
        {name: [getattr(row, name) for row in rows] for name in Order._fields},
    ),
    "an iterator": lambda rows: (iter(rows),),
    "a generator": lambda rows: ((row for row in rows),),
    "a set": lambda rows: ({*rows},),
    "a ZSet": lambda rows: (ef.ZSet.of(rows),),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("count", [1, 2])
def test_add_upsert_and_remove_take_rows_in_the_same_forms(form: str, count: int) -> None:
    rows = [ROME, OSLO][:count]
    given = FORMS[form]
    added = ef.ZSet.of(rows)
    for verb in ("add", "upsert"):
        handle = orders()
        assert getattr(handle, verb)(*given(rows)) == added
        assert handle.remove(*given(rows)) == -added
        assert len(handle) == 0


def test_plain_values_are_rows_and_lists_of_them_are_several() -> None:
    words = ef.Input("w", str).run().input("w")
    assert words.add("ebb") == ef.ZSet({"ebb": 1})
    assert words.add(["flow", "sea"]) == ef.ZSet({"flow": 1, "sea": 1})
    assert words.remove(["ebb", "sea"]) == ef.ZSet({"ebb": -1, "sea": -1})
    pairs = ef.Input("p", tuple[int, int]).run().input("p")
    assert pairs.add((1, 2)) == ef.ZSet({(1, 2): 1})
    assert pairs.add([(3, 4), (5, 6)]) == ef.ZSet({(3, 4): 1, (5, 6): 1})


def test_a_change_that_takes_rows_away_is_not_added() -> None:
    handle = orders()
    handle.add(ROME)
    with pytest.raises(ChangeError, match="a change was given that takes a row away"):
        handle.add(ef.ZSet({ROME: -1}))
    assert handle.value == ef.ZSet({ROME: 1})


def test_delete_takes_keys_a_list_of_keys_a_table_and_missing() -> None:
    handle = orders()
    handle.add(ROME, OSLO, BARI)
    with pytest.raises(AbsentRow) as error:
        handle.delete(77)
    assert 'missing="ignore"' in error.value.remedy
    assert handle.delete(77, missing="ignore") == ef.ZSet({})
    assert handle.delete([1, 77], missing="ignore") == ef.ZSet({ROME: -1})
    assert handle.delete(2) == ef.ZSet({OSLO: -1})
    assert handle.delete({"id": [3]}) == ef.ZSet({BARI: -1})


def test_upsert_takes_the_options_of_the_request() -> None:
    handle = orders()
    assert handle.upsert(ROME, ROME._replace(city="Bonn")) == ef.ZSet({Order(1, "Bonn"): 1})
    twice = [OSLO, OSLO._replace(city="Bari")]
    with pytest.raises(ChangeError, match="several rows of one key"):
        handle.upsert(twice)
    assert handle.upsert(twice, duplicates="last") == ef.ZSet({Order(2, "Bari"): 1})
    late = [Order(2, "new", 9), Order(2, "old", 5)]
    assert handle.upsert(late, order="at", delete=[1, 7], missing="ignore") == ef.ZSet(
        {Order(2, "Bari"): -1, Order(2, "new", 9): 1, Order(1, "Bonn"): -1}
    )
    with pytest.raises(UnknownArgument) as error:
        handle.upsert(late, by="at")
    assert error.value.remedy == "order='at'"


def test_a_sequence_is_told_by_at_and_forgotten_by_forget() -> None:
    handle = orders(sequence="at")
    handle.upsert(Order(1, "Rome", 3))
    assert handle.delete(1, at=7) == ef.ZSet({Order(1, "Rome", 3): -1})
    assert handle.upsert(Order(1, "late", 5)) == ef.ZSet({})
    handle.forget(before=8)
    assert handle.upsert(Order(1, "again", 5)) == ef.ZSet({Order(1, "again", 5): 1})


def test_feed_and_replace_are_methods_too() -> None:
    handle = orders()
    events = [{"kind": "I", "id": 1, "city": "Rome", "at": 0}, {"kind": "D", "id": 7}]
    said = {"op": "kind", "insert": "I", "update": "U", "delete": "D"}
    assert handle.feed(events, **said, missing="ignore") == ef.ZSet({ROME: 1})
    assert handle.replace([OSLO]) == ef.ZSet({ROME: -1, OSLO: 1})
    assert handle.replace([], where={"city": "Bonn"}) == ef.ZSet({})


@pytest.mark.parametrize("verb", ["upsert", "delete", "feed", "replace", "forget"])
def test_a_method_has_every_option_of_its_request(verb: str) -> None:
    method = inspect.signature(getattr(InputHandle, verb)).parameters
    request = inspect.signature(getattr(ef, verb)).parameters
    options = [name for name, each in request.items() if each.default is not each.empty]
    assert [each for each in options if each not in method] == []
