"""All values of groups as bytes: what columns write, rows and columns read."""

from __future__ import annotations

import math
import pickle
from collections import Counter
from datetime import date, datetime
from random import Random
from typing import Any

import pytest

np = pytest.importorskip("numpy")
pa = pytest.importorskip("pyarrow")

from ebbflow.engine.runtime.columnar.packed import GroupValues, pack, unpack  # noqa: E402
from ebbflow.kernel import DoesNotFit  # noqa: E402
from ebbflow.kernel.words import Texts, WordForm, decoded, encoded  # noqa: E402
from ebbflow.nan import NAN  # noqa: E402
from ebbflow.reducer.hashed import Map  # noqa: E402
from ebbflow.state.packed import unpacked  # noqa: E402
from ebbflow.state.tree import Tree  # noqa: E402

VALUES: dict[str, list[Any]] = {
    "int": [0, -1, 7, 2**63 - 1, -(2**63) + 1, None],
    "float": [0.0, 1.5, -2.5, math.inf, -math.inf, NAN, 5e-324, None],
    "bool": [True, False, None],
    "text": ["", "ebb", "Łódź", "\0", "a longer text than eight bytes", None],
    "date": [date(1970, 1, 1), date.min, date.max, None],
    "time": [datetime(1970, 1, 1), datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59), None],
}
Groups = list[dict[tuple[Any, ...], int]]


def random_groups(dice: Random, forms: list[WordForm]) -> Groups:
    return [
        {
            tuple(dice.choice(VALUES[form.name]) for form in forms): dice.randrange(1, 1000)
            for _ in range(dice.choice([0, 1, 3, 9]))
        }
        for _ in range(dice.randrange(6))
    ]


def as_words(groups: Groups, forms: list[WordForm], texts: Texts) -> GroupValues:
    pairs = [(at, *pair) for at, group in enumerate(groups) for pair in group.items()]
    columns = zip(*(value for _, value, _ in pairs), strict=True) if pairs else [()] * len(forms)
    words = [encoded(form, each, texts) for form, each in zip(forms, columns, strict=True)]
    owners, times = (np.array([pair[i] for pair in pairs], np.int64) for i in (0, 2))
    return GroupValues(owners, np.stack(words, axis=1), times)


def as_groups(found: GroupValues, count: int, forms: list[WordForm], texts: Texts) -> Groups:
    parts = [decoded(form, found.words[:, at], texts) for at, form in enumerate(forms)]
    groups: Groups = [{} for _ in range(count)]
    rows = zip(found.owners.tolist(), zip(*parts, strict=True), found.times.tolist(), strict=True)
    for owner, value, times in rows:
        groups[owner][value] = times
    return groups


@pytest.mark.parametrize("seed", range(60))
def test_what_columns_pack_rows_and_columns_unpack(seed: int) -> None:
    dice = Random(seed)
    forms = [WordForm(name, True) for name in dice.choices(list(VALUES), k=dice.randrange(1, 5))]
    texts, groups = Texts(), random_groups(dice, forms)
    column = pack(forms, as_words(groups, forms, texts), len(groups), texts)
    assert [dict(unpacked(each)) for each in column.to_pylist()] == groups
    begin = dice.randrange(1 + len(groups))
    some, fresh = groups[begin:], Texts()
    pieces = [("bytes64", column.slice(begin)), ("bytes", column.slice(begin).cast(pa.binary()))]
    again = [each if dice.random() < 0.5 else Tree().update(unpacked(each)) for each in
             column.slice(begin).to_pylist()]  # fmt: skip
    pieces.append(("any", pa.array([pickle.dumps(each) for each in again], pa.large_binary())))
    for piece in pieces:
        found = unpack(forms, piece, fresh)
        assert as_groups(found, len(some), forms, fresh) == some
        assert found.owners.tolist() == sorted(found.owners.tolist())


def test_a_mapping_that_rows_have_stored_is_read() -> None:
    stored = pa.array([pickle.dumps(Map(Counter("banana")))], pa.large_binary())
    texts = Texts()
    found = unpack([WordForm("text")], ("any", stored), texts)
    assert as_groups(found, 1, [WordForm("text")], texts) == [{("b",): 1, ("a",): 3, ("n",): 2}]


def test_values_of_another_form_do_not_fit() -> None:
    texts = Texts()
    column = pack([WordForm("int")], as_words([{(1,): 1}], [WordForm("int")], texts), 1, texts)
    for forms in ([WordForm("float")], [WordForm("int"), WordForm("int")]):
        with pytest.raises(DoesNotFit):
            unpack(forms, ("bytes64", column), texts)
    large = pa.array([pickle.dumps(Map({2**70: 1}))], pa.large_binary())
    with pytest.raises(DoesNotFit):
        unpack([WordForm("int")], ("any", large), texts)
