"""A spine equals a dict, whatever is appended, merged, rolled back, reopened or read at an older
epoch; also when different keys have the same hash.
"""

from __future__ import annotations

import importlib.util
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ebbflow.state.spine import ABSENT, Piece, Store, manifest, part
from ebbflow.state.spine import spine as module
from ebbflow.state.spine.hashing import hashes, same
from ebbflow.state.spine.segment import Entry

spec = importlib.util.spec_from_file_location("disk", Path(__file__).parents[1] / "oracle/disk.py")
assert spec is not None
assert spec.loader is not None
disk: Any = importlib.util.module_from_spec(spec)
sys.modules["disk"] = disk
spec.loader.exec_module(disk)


class Row(NamedTuple):
    number: int
    text: str | None
    any: Any


simple = st.one_of(
    st.integers(-3, 3),
    st.sampled_from(
        [1.0, True, False, 0.5, -0.0, Decimal(1), Decimal("1.0"), None, 2**70, math.inf]
    ),
    st.sampled_from(["", "a", "b", "a\0", b"a", date(2024, 1, 1), datetime(2024, 1, 1)]),
    st.sampled_from([datetime(2024, 1, 1, tzinfo=UTC), frozenset({1}), frozenset({1.0, "a"})]),
)
numbers = st.integers(0, 12)
keys = st.one_of(numbers, simple, st.tuples(simple, simple), st.just(math.nan))
typed = st.builds(Row, st.integers(-2, 2), st.sampled_from(["x", "y", None]), simple)
rows = st.one_of(numbers, simple, typed, st.tuples(st.integers(0, 2), st.sampled_from("ab")))
bags = st.dictionaries(keys, st.lists(st.tuples(rows, st.integers(-2, 2)), max_size=4), max_size=8)
values = st.dictionaries(
    keys, st.one_of(st.just(ABSENT), rows, st.lists(simple, max_size=2), typed), max_size=8
)
plain_bags = st.dictionaries(
    numbers, st.lists(st.tuples(typed, st.integers(-2, 2)), max_size=4), max_size=8
)
plain_values = st.dictionaries(numbers, st.one_of(st.just(ABSENT), numbers), max_size=8)

doings = st.lists(
    st.one_of(
        st.just("commit"),
        st.sampled_from(["commit", "rollback", "reopen", "work", "compact", "flush"]),
        st.tuples(st.just("bag"), st.one_of(bags, plain_bags)),
        st.tuples(st.just("value"), st.one_of(values, plain_values)),
    ),
    max_size=40,
)


def exact(value: Any) -> Any:
    """Types count: 1 is not True. NaN is NaN."""
    if isinstance(value, (list, tuple)):
        return type(value), [exact(item) for item in value]
    if isinstance(value, frozenset):
        return type(value), sorted(map(repr, value))
    return type(value), repr(value)


class Model:
    """Two dicts, and what is staged on top of them."""

    def __init__(self) -> None:
        self.bag: dict[Any, dict[Any, int]] = {}
        self.cells: dict[Any, Any] = {}

    def copy(self) -> Model:
        new = Model()
        new.bag = {key: dict(group) for key, group in self.bag.items()}
        new.cells = dict(self.cells)
        return new

    def add_rows(self, change: dict[Any, list[tuple[Any, int]]]) -> None:
        for key, pairs in change.items():
            group = self.bag.setdefault(key, {})
            for row, weight in pairs:
                group[row] = group.get(row, 0) + weight
            for row in [row for row, weight in group.items() if not weight]:
                del group[row]
            if not group:
                del self.bag[key]

    def put(self, change: dict[Any, Any]) -> None:
        for key, value in change.items():
            if value is ABSENT:
                self.cells.pop(key, None)
            else:
                self.cells[key] = value


def spines(store: Any) -> tuple[Any, Any]:
    return (
        store.spine("rows", layout="bag", row_type=Row),
        store.spine("cells", 1, layout="value", row_type=Row),
    )


def agree(store: Any, model: Model, asked: set[Any]) -> None:
    bag, cells = spines(store)
    assert bag.probe(asked) == model.bag
    found = cells.probe(asked)
    assert found == model.cells
    assert {k: exact(v) for k, v in found.items()} == {k: exact(v) for k, v in model.cells.items()}
    scanned = [*bag.scan()]
    assert len(scanned) == sum(map(len, model.bag.values()))
    for key, row, weight in scanned:
        assert model.bag[key][row] == weight
    assert {key: value for key, value, _ in cells.scan()} == model.cells
    assert bag.probe(["never"]) == cells.probe([("never", 1)]) == {}


def stage(store: Any, name: str, bucket: int, change: Any, token: int) -> None:
    """Two tasks write the change, the one with the larger hashes first."""
    layout = "bag" if name == "rows" else "value"
    for task in (1, 0):
        own = module.Spine(
            layout, None, Row, chunk=store.spine(name, bucket, layout=layout, row_type=Row).chunk
        )
        middle = 1 << (63 if token % 2 else 1)
        own.append(
            {k: v for k, v in change.items() if (int(module.hashes([k])[0]) >= middle) == task}
        )
        piece = Piece(store.files, store.epoch + 1, f"{token}-{task}")
        piece.add(name, own)
        for operator, _, ref in piece.finish():
            store.adopt(operator, ref, layout=layout, bucket=bucket, row_type=Row)


def follow(doing: list[Any], tasks: bool = False, **options: Any) -> None:
    """Do the same to a store and to a model, and compare after every commit."""
    path = disk.Disk()
    store = Store(path, **options)
    model = Model()
    epochs = {-1: model.copy()}
    asked: set[Any] = set()
    for token, what in enumerate([*doing, "commit", "reopen"]):
        if what == "commit":
            agree(store, model, asked)
            store.commit(store.epoch + 1)
            epochs[store.epoch] = model.copy()
        elif isinstance(what, str):
            model = epochs[store.epoch].copy()
            store.rollback()
            if what == "reopen":
                store.close()
                store = Store(path, verify=True, **options)
                spines(store)
            elif what != "rollback":
                getattr(store, what)()
        else:
            kind, change = what
            bag, cells = spines(store)
            asked |= change.keys()
            name, spine, bucket = ("rows", bag, 0) if kind == "bag" else ("cells", cells, 1)
            if tasks and token % 3:
                stage(store, name, bucket, change, token)
            else:
                spine.append(change)
            (model.add_rows if kind == "bag" else model.put)(change)
        agree(store, model, asked)
    if store.safe == store.epoch:
        for epoch in store.info()["epochs"]:
            with store.at(epoch) as snapshot:
                agree(snapshot, epochs[epoch], asked)
    store.close()


quietly = settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])


@quietly
@given(doings)
def test_a_store_equals_two_dicts(doing: list[Any]) -> None:
    follow(doing, chunk=4)


@quietly
@given(doings, st.integers(1, 4), st.integers(1, 3))
def test_a_store_that_groups_and_retains_epochs_equals_two_dicts(
    doing: list[Any], group: int, keep: int
) -> None:
    follow(doing, chunk=8, group=group, keep_epochs=keep)


@quietly
@given(doings, st.integers(1, 3), st.integers(1, 2), st.sampled_from([1, 3, None]))
def test_a_store_for_which_tasks_write_equals_two_dicts(
    doing: list[Any], group: int, keep: int, different: int | None
) -> None:
    with worse(lambda found: hashes(found) % np.uint64(different)) if different else nullcontext():
        follow(doing, tasks=True, chunk=8, group=group, keep_epochs=keep)


@contextmanager
def worse(hashing: Callable[[Any], Any]) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "hashes", hashing)
        yield


@quietly
@given(doings, st.sampled_from([1, 3]))
def test_a_store_equals_two_dicts_when_hashes_collide(doing: list[Any], different: int) -> None:
    with worse(lambda found: hashes(found) % np.uint64(different)):
        follow(doing, chunk=4)


@contextmanager
def short_hashes(bits: int = 32) -> Iterator[None]:
    """However few entries a segment has, write this many bits of their hashes."""
    whole = Entry.short
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(part, "MANY", 1)
        patch.setattr(Entry, "short", lambda *given: whole(*given) >> np.uint32(32 - bits))
        yield


@quietly
@given(doings, st.sampled_from([1, 2, 31, 32]))
def test_a_store_that_writes_hashes_short_equals_two_dicts(doing: list[Any], bits: int) -> None:
    with short_hashes(bits):
        follow(doing, tasks=True, chunk=8)


@pytest.mark.parametrize("bits", [1, 3, 32])
def test_many_rows_of_a_key_among_others_that_are_stored_alike(bits: int, tmp_path: Path) -> None:
    """Row hashes are in order only where keys are the same, and not their short hashes."""
    rows = {key: [((key, i), 1 + i % 3) for i in range(100 if key % 4 else 3)] for key in range(40)}
    with short_hashes(bits), Store(tmp_path) as store:
        store.spine("rows", layout="bag").append(rows)
        store.commit(0)
        bag = store.spine("rows", layout="bag")
        assert bag.segments[0].form.short
        asked = [(key, row) for key, pairs in rows.items() for row, _ in pairs]
        assert bag.weights([*asked, (1, (1, 100))]) == [1 + row[1] % 3 for _, row in asked] + [0]
        assert bag.probe([3, 41]) == {3: dict(rows[3])}


@quietly
@given(doings)
def test_state_of_the_format_before_is_read_and_goes_on(doing: list[Any]) -> None:
    """Hashes in full, and whether there is a value as a byte, as format 3 had them."""
    path, model, asked = disk.Disk(), Model(), set()
    changes = [each for each in doing if not isinstance(each, str)]
    with pytest.MonkeyPatch.context() as old:
        old.setattr(manifest, "FORMAT", 3)
        old.setattr(part, "LIVE", pa.uint8())
        for epoch, (kind, change) in enumerate(changes * 2):
            if epoch == len(changes):
                old.undo()
            with Store(path, chunk=8) as store, short_hashes() if epoch % 2 else nullcontext():
                agree(store, model, asked)
                asked |= change.keys()
                bag, cells = spines(store)
                (bag if kind == "bag" else cells).append(change)
                (model.add_rows if kind == "bag" else model.put)(change)
                store.commit(epoch)
                agree(store, model, asked)


@given(st.lists(st.one_of(keys, rows), min_size=1, max_size=20))
def test_what_is_equal_has_one_hash(found: list[Any]) -> None:
    hashed = hashes(found).tolist()
    for a, one in zip(found, hashed, strict=True):
        for b, other in zip(found, hashed, strict=True):
            assert same(a, b) == (a == b or a is b)
            assert one == other or not same(a, b)
