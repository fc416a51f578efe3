"""Hashes of which only some bits are stored: where these are so few that most keys have the same,
all answers are as before; and state whose hashes are whole, as older versions have written it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

from ebbflow.state.spine import ABSENT, Spine, Store, manifest, part, segment
from ebbflow.state.spine.hashing import Words, hashes
from ebbflow.state.spine.segment import END

DAY = date(1970, 1, 1)


class Visit(NamedTuple):
    """Who came when."""

    id: int
    day: date | None
    name: str


@pytest.fixture(autouse=True)
def two_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every segment is short, and has two bits of each hash."""

    def short(self: segment.Entry, hashes: Words) -> Words:
        spare = max(0, (self.last - self.first).bit_length() - 2)
        return ((hashes - np.uint64(self.first)) >> np.uint64(spare)).astype(np.uint32)

    monkeypatch.setattr(part, "MANY", 1)
    monkeypatch.setattr(segment.Entry, "short", short)


KEYS: dict[str, Any] = {
    "int": lambda dice: dice.choice([dice.randrange(60), 2**62 + dice.randrange(4), None]),
    "equal": lambda dice: dice.choice([dice.randrange(9), float(dice.randrange(9)), True, "1"]),
    "date": lambda dice: DAY + timedelta(dice.choice([dice.randrange(40), 32767, 32768, -32769])),
    "tuple": lambda dice: (dice.randrange(8), dice.choice(["a", "é", "", None])),
    "float": lambda dice: dice.choice([0.0, -0.0, 1.5, float("inf"), float(dice.randrange(30))]),
}


def a_visit(dice: Random) -> Visit:
    return Visit(dice.randrange(5), dice.choice([None, DAY, date.max]), dice.choice("xyz"))


class Both:
    """A bag and values in a store, and what they should have."""

    def __init__(self, path: Path, chunk: int) -> None:
        self.path, self.chunk = path, chunk
        self.rows: dict[Any, dict[Any, int]] = {}
        self.values: dict[Any, Any] = {}
        self.epoch = -1
        self.open()

    def open(self) -> None:
        self.store = Store(self.path)
        self.bag, self.value = (
            self.store.spine(layout, layout=layout, row_type=Visit) for layout in ("bag", "value")
        )
        self.bag.chunk = self.value.chunk = self.chunk

    def step(self, dice: Random, key: Any) -> None:
        values = {key(dice): dice.choice([ABSENT, a_visit(dice), a_visit(dice)]) for _ in range(40)}
        rows: dict[Any, list[Any]] = {}
        for _ in range(80):
            rows.setdefault(key(dice), []).append((a_visit(dice), dice.choice([1, 1, 2, -1])))
        self.value.append(values)
        self.bag.append(rows)
        self.values |= values
        for each, pairs in rows.items():
            group = self.rows.setdefault(each, {})
            for row, weight in pairs:
                group[row] = group.get(row, 0) + weight
        self.epoch += 1
        self.store.commit(self.epoch)

    def check(self, asked: list[Any], dice: Random) -> None:
        values = {key: row for key, row in self.values.items() if row is not ABSENT}
        rows = {(k, row): n for k, group in self.rows.items() for row, n in group.items() if n}
        assert self.value.probe(asked) == {key: values[key] for key in asked if key in values}
        found = self.bag.probe(asked)
        assert {(k, r): n for k, group in found.items() for r, n in group.items()} == {
            (k, r): n for (k, r), n in rows.items() if k in asked
        }
        pairs = [(key, a_visit(dice)) for key in asked]
        assert self.bag.weights(pairs) == [rows.get(pair, 0) for pair in pairs]
        assert {key: row for key, row, _ in self.value.scan()} == values
        middle = dice.randrange(END)
        some = [*self.bag.scan(0, middle), *self.bag.scan(middle, END)]
        assert {(key, row): weight for key, row, weight in some} == rows
        assert len(some) == len(rows)


@pytest.fixture
def made(tmp_path: Path) -> Iterator[list[Both]]:
    found: list[Both] = []
    yield found
    for each in found:
        each.store.close()


@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("chunk", [16, 1000])
def test_keys_that_are_stored_with_one_hash_stay_apart(
    kind: str, chunk: int, tmp_path: Path, made: list[Both]
) -> None:
    dice, key = Random(f"{kind} {chunk}"), KEYS[kind]
    made.append(both := Both(tmp_path, chunk))
    for epoch in range(6):
        both.step(dice, key)
        if epoch % 2:
            both.store.close()
            both.open()
        both.check([key(dice) for _ in range(40)], dice)
    (*_, last) = both.bag.segments
    assert last.form.short == (kind != "equal")


def test_state_of_format_3_is_read_and_goes_on(
    tmp_path: Path, made: list[Both], monkeypatch: pytest.MonkeyPatch
) -> None:
    dice, key = Random(3), KEYS["int"]
    with monkeypatch.context() as patch:
        patch.setattr(manifest, "FORMAT", 3)
        patch.setattr(part, "LIVE", pa.uint8())
        patch.setattr(part, "MANY", 1 << 60)
        made.append(both := Both(tmp_path, 16))
        both.step(dice, key)
        both.step(dice, key)
        both.store.close()
    both.open()
    assert not any(each.form.short for each in (*both.bag.segments, *both.value.segments))
    both.check([key(dice) for _ in range(40)], dice)
    for _ in range(6):  # segments of both formats are read, and merged
        both.step(dice, key)
        both.check([key(dice) for _ in range(40)], dice)


def test_a_change_on_spark_looks_at_entries_of_its_own_keys(tmp_path: Path) -> None:
    correction = pytest.importorskip("ebbflow.engine.spark.bulk.correction")

    class Looking(correction.ChangeRows):  # type: ignore[misc, name-defined]
        row_type = Visit
        spine: Spine

        def __init__(self, spine: Spine) -> None:
            object.__setattr__(self, "spine", spine)

        def _stored(self) -> Spine:
            return self.spine

        def owner(self) -> Any:
            return correction.KeyedInput.__new__(correction.KeyedInput)

    with Store(tmp_path) as store:
        spine = store.spine("visits", layout="value", row_type=Visit)
        there = {key: Visit(key, None, "x") for key in range(200)}
        spine.append(there)
        store.commit(0)
        spine.append({**dict.fromkeys(range(100, 200), ABSENT), 500: Visit(500, None, "y")})
        store.commit(1)
        found = Looking(spine)._found(hashes([*range(300)]))
        assert found is not None
        assert found.there.tolist() == [key < 100 for key in range(300)]
        rows = found.table.take(pa.array(found.at[:100])).to_pylist()
        assert [row["id"] for row in rows] == [*range(100)]
