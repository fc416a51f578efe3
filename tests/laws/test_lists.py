"""Edited lists: the laws of `LIST`, and every operator on lists against the plain function."""

from __future__ import annotations

import copy
import pickle
import random
from typing import Any

import pytest

from ebbflow.change import (
    LIST,
    Delete,
    DeleteItems,
    Insert,
    InsertItems,
    List,
    ReplaceItem,
    sequence,
)
from ebbflow.change.rope import Rope
from ebbflow.errors import ChangeError
from ebbflow.laws import check
from ebbflow.operator import lists, text


def odd(n: int) -> bool:
    return n % 2 == 1


def double(n: int) -> int:
    return 2 * n


OPERATORS = [lists.length, lists.items, lists.keep(odd), lists.each(double)]


@pytest.fixture(autouse=True)
def _small_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    for cls in Rope.__subclasses__():
        monkeypatch.setattr(cls, "chunk", 4)
    monkeypatch.setattr(Rope, "fan", 4)
    monkeypatch.setattr(Rope, "notes", 2)


def test_list_keeps_the_laws_of_a_change_structure() -> None:
    check(LIST, examples=10)
    check(sequence(LIST), examples=5)


@pytest.mark.parametrize("operator", OPERATORS, ids=repr)
def test_every_axiom_holds(operator: Any) -> None:
    check(operator, examples=5)


def change_of(rnd: random.Random, size: int) -> Any:
    at = rnd.randint(0, size)
    kind = rnd.choice("idr")
    if kind == "i" or (kind == "r" and at == size):
        return InsertItems(at, tuple(rnd.choices(range(6), k=rnd.randint(0, 9))))
    if kind == "d":
        return DeleteItems(at, rnd.randint(0, min(9, size - at)))
    return ReplaceItem(at, rnd.randrange(6))


@pytest.mark.parametrize("operator", [*OPERATORS, lists.keep(odd) >> lists.each(double)], ids=repr)
def test_long_runs_equal_the_plain_function_also_from_copies_of_a_state(operator: Any) -> None:
    for seed in range(6):
        rnd = random.Random(seed)
        value = [rnd.randrange(6) for _ in range(60)]
        state, output = operator.init(value), operator.f(value)
        for _ in range(80):
            change = change_of(rnd, len(value))
            old = copy.deepcopy(state)
            state, delta = operator.step(state, change)
            assert operator.invariant(value, old)
            value = LIST.patch(value, change)
            output = operator.output.patch(output, delta)
            assert output == operator.f(value)
        assert operator.invariant(value, state)


def test_a_list_is_the_list_after_every_change_and_its_old_values_stay() -> None:
    rnd, plain = random.Random(1), list(range(50))
    value: List[int] = List(plain)
    for _ in range(300):
        change = change_of(rnd, len(plain))
        new, after = value.edited(change), LIST.patch(plain, change)
        assert (list(new), list(value)) == (after, plain)
        assert new == after
        assert new == tuple(after)
        assert hash(new) == hash(tuple(after))
        value, plain = new, after
    assert pickle.loads(pickle.dumps(value)) == value


def test_operators_survive_pickling() -> None:
    for operator in OPERATORS:
        again = pickle.loads(pickle.dumps(operator))
        assert repr(again) == repr(operator)
        assert again == operator


@pytest.mark.parametrize("operator", OPERATORS, ids=repr)
def test_a_change_past_the_end_is_refused(operator: Any) -> None:
    for change in (InsertItems(4, (1,)), DeleteItems(1, 3), ReplaceItem(3, 1), "x"):
        with pytest.raises(ChangeError):
            operator.open([1, 2, 3]).send(change)


def test_lines_of_a_text_go_on_as_a_list() -> None:
    headings = text.lines >> lists.keep(lambda line: line.startswith("#"))
    live = headings.open("# one\ntwo\n# three")
    assert live.send(Insert(6, "# ")) == (InsertItems(1, ("# two",)),)
    assert live.send(Delete(0, 1)) == (DeleteItems(0, 1),)
