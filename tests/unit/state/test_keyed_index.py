"""Keyed indices, by hand."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from ebbflow.errors import NotDeterministic
from ebbflow.fn import Fn
from ebbflow.state.backing import ABSENT
from ebbflow.state.keyed_index import KeyedIndex


class Line(NamedTuple):
    order: int
    number: int
    part: int


ONE, TWO, OTHER = Line(1, 1, 7), Line(1, 2, 7), Line(1, 1, 8)
OWN = Fn.of(("order", "number"), Line)


def by_part() -> KeyedIndex:
    return KeyedIndex(Fn.of("part", Line), OWN)


def by_own() -> KeyedIndex:
    return KeyedIndex(OWN, OWN)


def test_rows_are_held_as_they_are() -> None:
    index, one = by_part(), Line(1, 1, 7)
    index.apply({one: 1, TWO: 1})
    assert index.groups == {7: {(1, 1): ONE, (1, 2): TWO}}
    assert index.groups[7][1, 1] is one
    assert len(index) == 2


def test_by_their_own_key_there_is_one_row_of_each() -> None:
    index = by_own()
    index.apply({ONE: 1, TWO: 1})
    index.apply({OTHER: 1, ONE: -1})
    assert index.groups == {(1, 1): OTHER, (1, 2): TWO}
    assert list(index.rows(index.groups[1, 2])) == [TWO]
    assert len(index) == 2


@pytest.mark.parametrize("made", [by_part, by_own])
def test_what_an_epoch_did_can_be_undone_and_told(made: Any) -> None:
    index = made()
    index.apply({ONE: 1, TWO: 1})
    before = {at: index.apart(held) for at, held in index.groups.items()}
    index.begin()
    index.apply({OTHER: 1, ONE: -1})
    index.apply({TWO: -1})
    told = index.before()
    assert {at: held for at, held in told.items() if held is not ABSENT} == before
    assert told.keys() == before.keys() | index.groups.keys()
    index.rollback()
    assert index.groups == before


@pytest.mark.parametrize("made", [by_part, by_own])
def test_a_row_that_is_not_there_is_refused_and_the_rest_undone(made: Any) -> None:
    index = made()
    index.apply({ONE: 1})
    for change in ({ONE: -1, TWO: -1}, {TWO: -1, OTHER: 1}, {Line(2, 1, 7): 1, TWO: -1}):
        index.begin()
        with pytest.raises(NotDeterministic, match="not there"):
            index.apply(change)
        index.rollback()
        assert list(index.groups.values()) == ([{(1, 1): ONE}] if made is by_part else [ONE])


@pytest.mark.parametrize("made", [by_part, by_own])
@pytest.mark.parametrize("done", range(3))
def test_the_way_back_does_not_ask_how_far_a_change_came(made: Any, done: int) -> None:
    index = made()
    index.apply({ONE: 1, TWO: 1})
    before = {at: index.apart(held) for at, held in index.groups.items()}
    change = {ONE: -1, OTHER: 1, TWO: -1}
    part = dict([*change.items()][:done]) if done != 1 else {ONE: -1}
    index.begin()
    index.apply(part)
    index.journal = [index.grouped(change)]
    index.rollback()
    assert index.groups == before


def test_rows_before_a_change_of_them() -> None:
    index = by_part()
    index.apply({ONE: 1, TWO: 1})
    rest, old = index.rows_before({(1, 2): TWO, (2, 1): Line(2, 1, 7)}, [(ONE, -1), (TWO, 1)])
    assert (list(rest), old) == ([Line(2, 1, 7)], [(ONE, 1)])
    one = by_own()
    assert one.rows_before(ONE, ()) == ((ONE,), [])
    assert one.rows_before(OTHER, [(ONE, -1), (OTHER, 1)]) == ((), [(ONE, 1)])
    assert one.rows_before(None, ()) == ((), [])
