"""Kernels beside plain Python, with steps that are taken back."""

from __future__ import annotations

import ast
from collections import Counter
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.oracle.interrupts import instants, interrupted

np = pytest.importorskip("numpy")
pytest.importorskip("numba")

from ebbflow.kernel import DoesNotFit, chained, hashing  # noqa: E402
from ebbflow.kernel import groups as kernel_groups  # noqa: E402
from ebbflow.kernel import values as kernel_values  # noqa: E402
from ebbflow.kernel.chained import NOW, WAS, ChainedRows  # noqa: E402
from ebbflow.kernel.columns import Columns  # noqa: E402
from ebbflow.kernel.compiled import stamp_of  # noqa: E402
from ebbflow.kernel.few import FEW, FewSteps  # noqa: E402
from ebbflow.kernel.fixed import quotient, root  # noqa: E402
from ebbflow.kernel.groups import ADD, SEEN, TOTAL, Addend, Groups, Result  # noqa: E402
from ebbflow.kernel.hashing import EMPTY, WordTable  # noqa: E402
from ebbflow.kernel.only import OneRows, OtherValues  # noqa: E402
from ebbflow.kernel.rows import RowTable  # noqa: E402
from ebbflow.kernel.values import Looked  # noqa: E402
from ebbflow.kernel.word_order import WordOrder  # noqa: E402
from ebbflow.kernel.words import FEW_INTS, NULL, Texts, int_words  # noqa: E402
from ebbflow.record import record  # noqa: E402
from ebbflow.reducer import exact  # noqa: E402


def counting() -> Groups:
    orders = WordOrder("int", True), WordOrder("int", False), None
    looked = [Looked(0, 1 + at, order) for at, order in enumerate(orders)]
    results = [Result(TOTAL, 1 + at) for at in range(3)]
    return Groups(1, [Addend(SEEN, 0)] * 3, results, looked)


def expected(rows: Counter[tuple[int, int]]) -> dict[int, tuple[int, ...]]:
    found: dict[int, list[int]] = {}
    for key, value in rows:
        found.setdefault(key, []).append(value)
    shown = {}
    for key, there in found.items():
        real = [value for value in there if value != NULL]
        ends = (max(real), min(real)) if real else (NULL, NULL)
        shown[key] = (*ends, len(real))
    return shown


def stepped(groups: Groups, change: list[tuple[tuple[int, int], int]]) -> None:
    keys, values = (np.array([[row[at]] for row, _ in change], np.int64) for at in (0, 1))
    groups.step(keys, values, np.array([weight for _, weight in change], np.int64))


@pytest.mark.parametrize("seed", range(6))
def test_the_values_of_groups_are_those_that_are_there(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel_values, "FEW_GONE", 20)
    random, groups = Random(seed), counting()
    rows: Counter[tuple[int, int]] = Counter()
    for step in range(120):
        share = random.choice([0.1, 0.5, 0.9, 1.0])
        gone = [row for row in rows.elements() if random.random() < share * 0.7]
        new = [
            (random.randrange(4), random.choice([NULL, *range(-40, 40)]))
            for _ in range(random.randrange(30))
        ]
        change = [(row, -1) for row in gone] + [(row, 1) for row in new]
        random.shuffle(change)
        if not change:
            continue
        groups.begin()
        stepped(groups, change)
        if random.random() < 0.3:
            groups.rollback()
        else:
            groups.commit()
            rows += Counter(new)
            rows -= Counter(gone)
        now = {key: tuple(rest) for key, *rest in groups.read().T.tolist()}
        assert now == expected(rows), step
        assert groups.values is not None
        assert len(groups.values) <= 3 * len(rows) + 2 * 20 + 3 * 200
    stepped(groups, [(row, -count) for row, count in rows.items()])
    assert len(groups) == 0
    assert groups.values is not None
    assert len(groups.values) <= 20


def test_a_value_that_is_not_there_is_refused_and_nothing_is_changed() -> None:
    groups = counting()
    stepped(groups, [((1, 5), 1), ((1, 7), 1)])
    with pytest.raises(Exception, match="fewer rows than none"):
        stepped(groups, [((1, 7), -1), ((1, 9), 1), ((1, 8), -1)])
    assert groups.read().T.tolist() == [[1, 7, 5, 2]]
    stepped(groups, [((1, 7), -1)])
    assert groups.read().T.tolist() == [[1, 5, 5, 1]]


def test_the_rows_of_an_input_are_looked_up_and_kept() -> None:
    random, table = Random(3), RowTable(2)
    rows: Counter[tuple[int, int]] = Counter()
    for _ in range(200):
        change = [
            ((random.randrange(9), random.randrange(9)), random.choice([1, 1, 2, -1]))
            for _ in range(random.randrange(1, 25))
        ]
        words = np.array([row for row, _ in change], np.int64)
        total: Counter[tuple[int, int]] = Counter()
        for row, weight in change:
            total[row] += weight
        after = Counter(rows)
        after.update(total)
        found = table.prepare(words, np.array([weight for _, weight in change], np.int64))
        seen = [tuple(row) for row in words[found.first].tolist()]
        assert dict(zip(seen, found.weights.tolist(), strict=True)) == total
        assert dict(zip(seen, found.there.tolist(), strict=True)) == {r: rows[r] for r in total}
        assert (found.wrong != EMPTY) == any(weight < 0 for weight in after.values())
        assert len(table) == len(rows)
        if found.wrong == EMPTY and random.random() < 0.8:
            table.keep()
            table.keep()
            rows = Counter({row: weight for row, weight in after.items() if weight})
        there, weights = table.everything()
        assert dict(zip(map(tuple, there.tolist()), weights.tolist(), strict=True)) == rows
    assert rows


Rows = Counter[tuple[int, int]]


def applied(index: ChainedRows, change: list[tuple[tuple[int, int], int]]) -> Any:
    rows = np.array([row for row, _ in change], np.int64).reshape(-1, 2)
    weights = np.array([weight for _, weight in change], np.int64)
    return index.apply(np.ascontiguousarray(rows[:, :1]), rows, weights)


def met(index: ChainedRows, when: int) -> Rows:
    at, entries, weights, _ = index.meet(np.arange(-1, 6).reshape(-1, 1), np.full(7, 2), when)
    rows = [tuple(row) for row in index.rows.words(entries).tolist()]
    assert [row[0] for row in rows] == (at - 1).tolist()
    assert len(rows) == len({*rows})
    return Counter(dict(zip(rows, (weights // 2).tolist(), strict=True)))


def without_zeros(rows: Rows) -> Rows:
    return Counter({row: weight for row, weight in rows.items() if weight})


@pytest.mark.parametrize("seed", range(4))
def test_an_index_has_the_rows_of_every_key_as_they_are_and_as_they_were(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chained, "FEW", 40)
    random, index = Random(seed), ChainedRows(1, 2, bag=False)
    rows: Rows = Counter()
    for step in range(120):
        most = random.choice([3, 30, 300])
        index.begin()
        now = Counter(rows)
        for _ in range(random.choice([1, 1, 2])):
            change = [
                ((random.randrange(5), random.randrange(most)), random.choice([1, 1, 2, -1]))
                for _ in range(random.randrange(1, 50))
            ]
            if random.random() < 0.4:
                change += [(row, -weight) for row, weight in without_zeros(now).items()]
            touched, seen = applied(index, change), Counter(row for row, _ in change)
            if touched is not None:
                assert max(seen.values()) == 1
                for (row, _), (entry, before) in zip(change, touched.tolist(), strict=True):
                    assert tuple(index.rows.words(np.array([entry]))[0].tolist()) == row
                    assert before == rows[row]
            for row, weight in change:
                now[row] += weight
        assert met(index, NOW) == without_zeros(now), step
        assert met(index, WAS) == without_zeros(rows), step
        entries, more = index.changed()
        seen = [tuple(row) for row in index.rows.words(entries).tolist()]
        assert index.keys_of(entries)[:, 0].tolist() == [row[0] for row in seen]
        now.subtract(rows)
        assert dict(zip(seen, more.tolist(), strict=True)) == without_zeros(now)
        now.update(rows)
        for end in [index.rollback, index.commit][random.random() < 0.7 :][:1] * 2:
            end()
        rows = now if end == index.commit else rows
        rows = without_zeros(rows)
        there, weights = index.everything()
        assert dict(zip(map(tuple, there.tolist()), weights.tolist(), strict=True)) == rows
        assert (len(index), len(index.keys)) == (len(rows), len({row[0] for row in rows}))
        assert met(index, NOW) == met(index, WAS) == rows
    assert rows


def test_an_index_that_is_a_bag_refuses_to_lose_what_it_does_not_have() -> None:
    index = ChainedRows(1, 2, bag=True)
    applied(index, [((1, 1), 1), ((1, 2), 1)])
    for opened in (False, True):
        if opened:
            index.begin()
            applied(index, [((2, 1), 1)])
        with pytest.raises(DoesNotFit, match="not there"):
            applied(index, [((1, 1), -1), ((3, 3), 1), ((1, 2), -2)])
        if opened:
            assert met(index, NOW) == {(1, 1): 1, (1, 2): 1, (2, 1): 1}
            index.rollback()
        assert met(index, NOW) == {(1, 1): 1, (1, 2): 1}
        assert (len(index), len(index.keys)) == (2, 1)


def test_an_index_of_more_rows_than_it_has_numbers_for_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(chained, "MOST", 100)
    index = ChainedRows(1, 2, bag=True)
    index.begin()
    with pytest.raises(DoesNotFit, match="32 bits"):
        applied(index, [((1, at), 1) for at in range(30)] + [((2, at), 1) for at in range(90)])
    index.rollback()
    assert len(index) == 0


@pytest.mark.parametrize("large", [False, True])
def test_keys_are_found_while_others_come_and_go(
    large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, random = WordTable(2, beside=1), Random(5)
    known: dict[tuple[int, int], int] = {}
    remove = table.remove
    if large:  # a table of more places than a place has bits of a hash, in plain Python

        def remove(slots: Any) -> None:
            for slot in slots.tolist():
                hashing.taken_out.py_func(slot, table.places, table.keys, table.free, table.state)  # type: ignore[attr-defined]

        monkeypatch.setattr(hashing, "TAGS", 0)
    for _ in range(60):
        new = [(random.randrange(9), random.randrange(9)) for _ in range(random.randrange(1, 30))]
        slots = table.add(np.array(new, np.int64))
        for key, slot in zip(new, slots.tolist(), strict=True):
            assert known.setdefault(key, slot) == slot
        table.keys[slots, 2] = 7  # what is beside a key is no part of it
        gone = [key for key in known if random.random() < 0.4]
        remove(np.array([known.pop(key) for key in gone], np.int64))
        asked = [(a, b) for a in range(9) for b in range(9)]
        found = table.find(np.array(asked, np.int64)).tolist()
        assert found == [known.get(key, EMPTY) for key in asked]
        assert sorted(table.used().tolist()) == sorted(known.values())


HARD = [NULL, NULL + 1, -1, 0, 1, 2**63 - 1]


@pytest.mark.parametrize("seed", range(4))
def test_a_value_differs_from_some_other_of_its_key(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hashing, "MANY", 4)
    random, others = Random(seed), OtherValues(1)
    kernels = others.pairs, others.values
    rows: Counter[tuple[int, int]] = Counter()
    asked = [(key, value) for key in range(4) for value in HARD]

    def differing() -> list[bool]:
        return [
            value != NULL and any(k == key and v not in (NULL, value) for k, v in rows)
            for key, value in asked
        ]

    for _ in range(200):
        share = random.choice([0.1, 0.5, 1.0])
        gone = [row for row in rows.elements() if random.random() < share]
        new = [(random.randrange(3), random.choice(HARD)) for _ in range(random.randrange(4))]
        change = [(row, -1) for row in gone] + [(row, 1) for row in new]
        random.shuffle(change)
        keys, values = (np.array([row[at] for row, _ in change], np.int64) for at in (0, 1))
        weights = np.array([weight for _, weight in change], np.int64)
        for kernel in kernels:
            kernel.begin()
        before = differing()
        turned = others.step(keys.reshape(-1, 1), values, weights)
        undone = random.random() < 0.3
        for kernel in kernels:
            kernel.rollback() if undone else kernel.commit()
        if not undone:
            rows += Counter(new)
            rows -= Counter(gone)
            more: Counter[tuple[int, int]] = Counter()
            for (key,), sign in zip(turned.keys.tolist(), turned.signs.tolist(), strict=True):
                more.update({(key, value): sign for value in HARD if value != NULL})
            for (key, value), sign in zip(turned.pairs.tolist(), turned.less.tolist(), strict=True):
                more[key, value] += sign
            signs = zip(asked, before, differing(), strict=True)
            assert without_zeros(more) == without_zeros({at: now - was for at, was, now in signs})
        keys, values = np.array([[key] for key, _ in asked]), np.array([each for _, each in asked])
        found = others.differ(keys, values)
        assert found.tolist() == differing()


@pytest.mark.parametrize("seed", range(4))
def test_the_one_row_of_a_key_is_known_whatever_came_and_went(seed: int) -> None:
    random, ones = Random(seed), OneRows(1, 2)
    rows: dict[int, tuple[int, int]] = {}
    for _ in range(200):
        new = dict(rows)
        for key in random.sample(range(6), random.randrange(1, 5)):
            new.pop(key, None)
            if random.random() < 0.7:
                new[key] = (random.choice(HARD), random.choice(HARD))
        change = [(key, row, -1) for key, row in rows.items() if new.get(key) != row]
        change += [(key, row, 1) for key, row in new.items() if rows.get(key) != row]
        random.shuffle(change)
        ones.groups.begin()
        keys, was, now = ones.step(
            np.array([[key] for key, _, _ in change], np.int64).reshape(-1, 1),
            np.array([row for _, row, _ in change], np.int64).reshape(-1, 2),
            np.array([weight for *_, weight in change], np.int64),
        )
        made = [tuple(row) for row in ones.made.T.tolist()]
        told = {
            key: tuple(made[at] if at >= 0 else None for at in both)
            for (key,), *both in zip(keys.tolist(), was.tolist(), now.tolist(), strict=True)
        }
        assert told == {key: (rows.get(key), new.get(key)) for key, _, _ in change}
        if random.random() < 0.3:
            ones.groups.rollback()
        else:
            ones.groups.commit()
            rows = new
        there, slots = ones.found(np.arange(6).reshape(-1, 1))
        assert np.flatnonzero(there).tolist() == sorted(rows)
        words = zip(*(ones.column(at, slots).tolist() for at in (0, 1)), strict=True)
        assert list(words) == [rows[key] for key in sorted(rows)]


def test_a_second_row_of_a_key_that_is_to_have_one_is_refused() -> None:
    ones = OneRows(1, 1)
    ones.step(np.array([[7]]), np.array([[1]]), np.array([1]))
    for row, weight in ((2, 1), (1, 1)):
        ones.groups.begin()
        with pytest.raises(DoesNotFit, match="more than one row"):
            ones.step(np.array([[7]]), np.array([[row]]), np.array([weight]))
        ones.groups.rollback()
    assert ones.groups.cells[ones.found(np.array([[7]]))[1]].tolist() == [[1, 1]]


def test_a_table_grows_at_once_where_nearly_all_rows_of_a_load_are_new() -> None:
    for keys, size in ((np.arange(60_000), 1 << 16), (np.arange(60_000) % 20_000, 1 << 15)):
        groups, index = Groups(1, [], []), ChainedRows(1, 2, bag=True)
        rows = np.stack([keys, np.arange(60_000)], 1)
        ones = np.ones(60_000, np.int64)
        groups.step(keys.reshape(-1, 1), np.empty((60_000, 0), np.int64), ones)
        index.apply(keys.reshape(-1, 1), rows, ones)
        assert len(groups) == len(index.keys) == len(np.unique(keys))
        assert len(groups.table.keys) <= 4 * size


def test_quotients_are_rounded_once() -> None:
    random = Random(1)
    for _ in range(2000):
        top = random.getrandbits(random.randrange(1, 125)) * random.choice([1, -1])
        bottom = random.getrandbits(random.randrange(1, 63)) or 1
        if random.random() < 0.3:  # between two floats
            top, bottom = (2**53 + 2 * random.randrange(5) + 1) << random.randrange(5), 1
        high, low = divmod(top, 1 << 64)
        args: list[Any] = [np.int64(high), np.uint64(low).astype(np.int64), np.int64(bottom)]
        assert quotient(*args, np.int64(3)) == float(Fraction(top, bottom * 8))


def test_roots_are_rounded_once() -> None:
    random = Random(2)
    for _ in range(3000):
        found = random.getrandbits(random.randrange(1, 55)) | 1
        bottom = random.choice([1, 4**9, random.getrandbits(random.randrange(1, 62)) | 1])
        top = random.choice([found**2 * bottom, found**2, random.getrandbits(126)])
        top = min(max(0, top + random.choice([-1, 0, 1])), 2**126)  # beside squares, and ties
        high, low = divmod(top, 1 << 64)
        args: list[Any] = [np.int64(high), np.uint64(low).astype(np.int64), np.int64(bottom)]
        assert root(*args) == exact.root(Fraction(top, bottom))


def test_functions_that_are_compiled_into_loops_are_called_by_loops_alone() -> None:
    """Whoever else calls one has it compiled in every process: its result is kept nowhere."""
    inlined = 0
    for path in Path(hashing.__file__).parent.glob("*.py"):
        module = vars(import_module(f"ebbflow.kernel.{path.stem}"))
        made = {name for name, each in module.items() if options_of(each).get("forceinline")}
        loops = {name for name, each in module.items() if options_of(each)}
        inlined += len(made)
        for each in ast.parse(path.read_text()).body:
            if isinstance(each, ast.FunctionDef) and each.name in loops:
                continue
            calls = [call.func for call in ast.walk(each) if isinstance(call, ast.Call)]
            assert not made & {func.id for func in calls if isinstance(func, ast.Name)}, path
    assert inlined > 50


def options_of(thing: Any) -> dict[str, Any]:
    """How Numba compiles a function; nothing where it does not."""
    return getattr(thing, "targetoptions", None) or {}


def test_what_is_kept_of_compiled_loops_is_that_of_the_files_they_are_made_of(
    tmp_path: Path,
) -> None:
    texts = {
        "one": "from ebbflow.kernel.two import (\n    a,\n    b,\n)",
        "two": "from ebbflow.kernel import three",
        "three": "def late():\n    from ebbflow.kernel.one import a",
        "__init__": "",
        "apart": "",
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.py").write_text(text)
    for name in texts:
        before = stamp_of(tmp_path / "one.py")
        (tmp_path / f"{name}.py").write_text(texts[name] + "\n# another text")
        assert (stamp_of(tmp_path / "one.py") == before) == (name == "apart"), name
    for loop in (hashing._add, kernel_groups.step_of_groups, kernel_values._count):
        file = Path(loop.py_func.__code__.co_filename)
        assert stamp_of(file) in loop._cache._cache_file._source_stamp
    assert stamp_of(Path(hashing.__file__)) != stamp_of(Path(kernel_values.__file__))


@pytest.mark.parametrize("count", [1, 3, FEW_INTS, FEW_INTS + 1])
def test_ints_are_words_up_to_the_last_one_that_has_room(count: int) -> None:
    fine = [2**63 - 1, -(2**63) + 1, 0] * (count // 3) + [7] * (count % 3)
    assert int_words(fine).tolist() == fine
    for wrong in (2**63, -(2**63), -(2**63) - 1, 2**70):
        with pytest.raises(DoesNotFit):
            int_words([*fine[1:], wrong])


def test_items_of_columns_are_those_of_their_rows() -> None:
    row = record("Row", key=int, total=int)
    columns = Columns(row, np.array([[7, 8], [1, 2]]), np.array([1, -1]), Texts(), canonical=True)
    items = columns.items()
    assert "rows" not in columns.__dict__, "nothing is hashed before something is looked up"
    assert list(items) == [(row(7, 1), 1), (row(8, 2), -1)]
    assert len(items) == 2
    assert (row(8, 2), -1) in items
    assert (row(8, 2), 1) not in items
    assert items == {row(7, 1): 1, row(8, 2): -1}.items()
    assert [*columns.rows] == [made for made, _ in items]
    assert next(iter(columns.rows)) is next(iter(items))[0], "a row is made once"


def test_the_rows_of_an_input_forget_a_change_of_a_few_that_was_refused() -> None:
    rows = RowTable(1)
    rows.prepare(np.array([[7], [8]]), np.array([1, 2]))
    rows.keep()
    assert rows.prepare(np.array([[9], [7]]), np.array([1, -2])).wrong == 1
    assert len(rows) == 2
    assert rows.prepare(np.array([[7]]), np.array([-1])).wrong == EMPTY
    rows.keep()
    rows.keep()
    there, weights = rows.everything()
    assert (there.tolist(), weights.tolist()) == ([[8]], [2])


@pytest.mark.parametrize("seed", range(8))
def test_the_values_of_groups_are_found_from_the_groups(seed: int) -> None:
    dice, groups, there = Random(seed), counting(), Counter[tuple[int, int]]()
    for _ in range(12):
        change = [((dice.randrange(5), dice.randrange(9)), dice.randrange(1, 4)) for _ in range(9)]
        gone = dice.sample(sorted(there), min(len(there), 7))
        change += [(row, -there[row]) for row in gone]
        stepped(groups, change)
        there.update(dict.fromkeys((row for row, _ in change), 0))
        for row, weight in change:
            there[row] += weight
        there = +there
        slots = groups.slots()
        keys = groups.table.keys[slots, 0].tolist()
        for number in range(3):
            owners, words, times = groups.values.held(number, slots)
            rows = zip((keys[at] for at in owners), words[:, 0].tolist(), strict=True)
            assert dict(zip(rows, times.tolist(), strict=True)) == there


@pytest.mark.parametrize("dense", [False, True])
def test_a_table_has_room_for_what_was_reserved_and_finds_what_was_put_in(dense: bool) -> None:
    dice, table, there = Random(1), WordTable(1), dict[int, int]()
    table.dense = dense
    table.reserve(dice.choice([0, 3000]))
    for _ in range(40):
        keys = [dice.randrange(5000) for _ in range(300)]
        there.update(zip(keys, table.add(np.array(keys).reshape(-1, 1)).tolist(), strict=True))
        for key in dice.sample(sorted(there), min(len(there), 200)):
            table.remove(np.array([there.pop(key)]))
        asked = np.arange(5000).reshape(-1, 1)
        assert table.find(asked).tolist() == [there.get(key, EMPTY) for key in range(5000)]
        assert len(table.keys) <= len(table.places) * (3 if dense else 2) // 4


@pytest.mark.parametrize("dense", [False, True])
def test_a_table_has_its_size_however_often_its_growth_is_interrupted(dense: bool) -> None:
    keys, table, plain = np.arange(500).reshape(-1, 1), WordTable(1), WordTable(1)
    table.dense = plain.dense = dense
    for count in (8, 40, 200, 500):
        plain.add(keys[:count])
        for point in instants(1, 10_000, 3):
            if not interrupted(lambda count=count: table.add(keys[:count]), point, published=False):  # type: ignore[misc]
                break
        assert table.find(keys[:count]).tolist() == plain.find(keys[:count]).tolist()
        assert len(table.places) == len(plain.places), count
        assert len(table.keys) == len(plain.keys), count
    keys_before, following = len(table.keys), table.next_size
    for point in instants(1, 10_000):
        interrupted(table.grow, point, published=False)
        if len(table.keys) > keys_before:
            break
        assert table.next_size == following, point
    assert point > 20
    assert len(table.keys) == following


def test_an_interrupt_leaves_no_few_steps_on_arrays_that_groups_have_no_more() -> None:
    given = np.full((FEW, 1), 7), np.full((FEW, 1), 10), np.ones(FEW, np.int64)
    groups = Groups(1, [Addend(ADD, 0)], [Result(TOTAL, 1)])
    step, kept, had = FewSteps(groups, *given), [], 0
    for point in instants(1, 10_000):
        kept.append(groups.cells)  # where a step on the old ones would write
        groups.cells = groups.cells.copy()
        cut = interrupted(lambda: step(1), point, published=False)
        done = int(groups.cells[0, 0]) - had
        assert done in (0, 1), point
        step(1)
        had += done + 1
        assert groups.cells[0].tolist() == [had, 10 * had], point
        if not cut:
            break
    assert point > 50
