"""Long texts on disk are stored in pieces: what is read is what was written, whatever happens, an
edit writes the edit, and no piece stays that nobody has."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest
from tests.oracle.disk import Crash, Disk
from tests.spark.simulated import Driver

import ebbflow as ef
from ebbflow.change import Delete, DeleteItems, Insert, InsertItems
from ebbflow.change.rope import ItemRope, Rope
from ebbflow.errors import StateError
from ebbflow.operator import text
from ebbflow.state.spine import Snapshot, texts
from ebbflow.zset import ZSet


class Doc(NamedTuple):
    """A document."""

    id: int
    body: ef.Text
    items: ef.List[int]


DOCS = ef.Input("docs", Doc, key="id")
PROGRAM = ef.program(sizes=DOCS.select("id", size=text.length("body")), docs=DOCS)
LETTERS = "abc\n déß"


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have leaves of a few letters, so that short texts have many."""
    monkeypatch.setattr(texts, "LEAST", 2)
    monkeypatch.setattr(Rope, "chunk", 8)
    monkeypatch.setattr(ItemRope, "chunk", 4)


class Life:
    """Documents that come, go and are edited; and the plain rows beside."""

    def __init__(self, seed: Any) -> None:
        self.dice = Random(seed)
        self.rows: dict[int, tuple[str, tuple[int, ...]]] = {}

    def text(self, most: int = 60) -> str:
        return "".join(self.dice.choices(LETTERS, k=self.dice.randint(0, most)))

    def step(self, view: Any) -> None:
        """One epoch."""
        dice, rows, docs = self.dice, self.rows, view.input("docs")
        key = dice.randrange(4)
        if key not in rows or dice.random() < 0.1:
            rows[key] = self.text(), tuple(range(dice.randrange(30)))
            docs.upsert(Doc(key, ef.Text(rows[key][0]), ef.List(rows[key][1])))
        elif dice.random() < 0.1:
            del rows[key]
            docs.delete(key)
        elif dice.random() < 0.1:  # the same text in two rows: pieces belong to one
            rows[key + 10] = rows[key]
            docs.upsert(docs.get(key)._replace(id=key + 10))
        elif dice.random() < 0.5:
            body, items = rows[key]
            at = dice.randint(0, len(body))
            less, more = dice.randint(0, min(9, len(body) - at)), self.text(12)
            rows[key] = body[:at] + more + body[at + less :], items
            docs.edit(key, "body", Delete(at, less), Insert(at, more))
        else:
            body, items = rows[key]
            at = dice.randint(0, len(items))
            less = dice.randint(0, min(3, len(items) - at))
            rows[key] = body, (*items[:at], 7, *items[at + less :])
            docs.edit(key, "items", DeleteItems(at, less), InsertItems(at, (7,)))

    def right(self) -> dict[str, ZSet[Any]]:
        docs = [Doc(key, ef.Text(body), ef.List(items)) for key, (body, items) in self.rows.items()]
        return {
            "docs": ZSet.of(docs),
            "sizes": ZSet.of([(key, len(body)) for key, (body, _) in self.rows.items()]),
        }


def no_garbage(place: Any) -> int:
    """Every piece belongs to one row, and every row has its pieces; gives how many there are."""
    found = Snapshot(place, unpickle=True)
    part = found.notes["rows"]["docs"]
    rows = found.spine(part, layout="value", row_type=Doc)
    rows.texts = None
    wanted = [n for _, row, _ in rows.scan() for each in texts.pieces_in(row) for n in each]
    there = [number for number, _, _ in found.spine(texts.TEXTS, layout="value").scan()]
    assert sorted(wanted) == sorted(there)
    return len(there)


@pytest.mark.parametrize(
    "options", [{}, {"memory": 1}, {"flush_every": 3}, {"keep_epochs": 4}], ids=str
)
def test_what_is_read_is_what_was_written(
    options: dict[str, Any], tmp_path: Path, short: None
) -> None:
    life, most = Life(str(options)), 0
    view = PROGRAM.run(path=tmp_path, **options)
    values = {0: view.value}
    for epoch in range(1, 45):
        life.step(view)
        assert view.value == life.right()
        values[view.epoch] = view.value
        if "keep_epochs" in options and epoch > 4:
            assert view.at(view.epoch - 3) == values[view.epoch - 3]
        if epoch % 10 == 0:
            with pytest.raises(ef.EbbflowError):  # refused, with pieces that were to be written
                view.step(docs={Doc(99, ef.Text("x" * 99), ef.List()): 1, Doc(98, "", ()): -1})
            view.close()
            most = max(most, no_garbage(tmp_path))
            view = PROGRAM.run(path=tmp_path, **options)
            assert view.verify()
    assert most > 20
    view.close()


def doc_after(epochs: int) -> dict[str, ZSet[Any]]:
    """The outputs after so many epochs of the life that crashes."""
    life, view = Life(5), PROGRAM.run()
    for _ in range(epochs):
        life.step(view)
    return life.right()


def test_a_crash_at_any_call_leaves_a_whole_text(short: None) -> None:
    def life(disk: Disk, known: list[Any], epochs: int = 14) -> None:
        doc, view = Life(5), PROGRAM.run(path=disk)
        end = view._storage._end
        try:
            for _ in range(epochs):
                known.append(doc.right())
                doc.step(view)
            known.append(doc.right())
            view.close()
        finally:
            end.detach()  # what has crashed closes nothing

    whole = Disk()
    life(whole, [])
    for at in range(3, whole.calls, whole.calls // 12):
        broken, known = Disk(crash_at=at), list[Any]()
        with pytest.raises(Crash):
            life(broken, known)
        left = broken.after(["lost", "kept", "torn"][at % 3], Random(at))
        with PROGRAM.run(path=left) as view:
            assert known == [] or view.value in (known[-1], doc_after(len(known)))
            view.input("docs").upsert(Doc(50, ef.Text("again and again " * 5), ef.List()))
            view.input("docs").edit(50, "body", Insert(3, "!"))
            assert view.verify()
        no_garbage(left)


def test_an_edit_writes_the_edit_and_not_the_text(tmp_path: Path) -> None:
    body = "tide and time " * 50_000
    sizes = DOCS.select("id", size=text.length("body"))
    with sizes.run(path=tmp_path) as view:
        view.step(docs=[Doc(1, ef.Text(body), ef.List())])
        first = view._storage.store.written
        for at in range(20):
            view.input("docs").edit(1, "body", Insert(300_000 + at, "x"))
        assert first > len(body)
        assert view._storage.store.written - first < len(body)
    with sizes.run(path=tmp_path) as view:  # what was read again has the pieces that are stored
        assert view.input("docs").get(1).body == body[:300_000] + "x" * 20 + body[300_000:]
        first = view._storage.store.written
        view.input("docs").edit(1, "body", Insert(100_000, "y"))
        assert view._storage.store.written - first < len(body) / 10
        after = body[:100_000] + "y" + body[100_000:300_000] + "x" * 20 + body[300_000:]
        assert view.input("docs").get(1).body == after


@pytest.mark.parametrize("mode", ["driver", "single_task", "staged"])
def test_tasks_of_spark_store_texts_in_pieces(mode: str, tmp_path: Path, short: None) -> None:
    life = Life(mode)
    view = Driver(PROGRAM.plan, mode, str(tmp_path))
    for _ in range(30):
        life.step(view)
    assert view.zset() == life.right()
    with pytest.raises(ef.EbbflowError):  # refused, with pieces that were to be written
        view.step(docs={Doc(99, ef.Text("x" * 99), ef.List()): 1, Doc(98, "", ()): -1})
    view.close()
    assert no_garbage(tmp_path) > 10
    with PROGRAM.run(path=tmp_path) as local:  # what tasks have written is read here
        assert local.value == life.right()


@pytest.mark.parametrize("mode", ["driver", "single_task", "staged"])
def test_an_edit_on_spark_writes_the_edit_and_not_the_text(mode: str, tmp_path: Path) -> None:
    body = "tide and time " * 20_000
    sizes = DOCS.select("id", size=text.length("body"))
    plan = ef.program(sizes=sizes, more=sizes.filter(lambda row: row.size > 9)).plan
    view = Driver(plan, mode, str(tmp_path))

    def written() -> int:
        before = {each.name for each in tmp_path.iterdir()}
        view.input("docs").edit(1, "body", Insert(100_000, "x"))
        new = [each for each in tmp_path.iterdir() if each.name not in before]
        return sum(each.stat().st_size for each in new)

    view.step(docs=[Doc(1, ef.Text(body), ef.List())])
    assert max(written() for _ in range(3)) < len(body) / 10
    assert view.zset()["sizes"] == ZSet.of([(1, len(body) + 3)])
    view.close()


def test_state_is_read_without_the_program_and_with_another_type(
    tmp_path: Path, short: None
) -> None:
    class Wider(NamedTuple):
        id: int
        body: ef.Text
        items: ef.List[int]
        n: int = 3

    long = ef.Text("ebb and flow " * 9)
    with DOCS.run(path=tmp_path, readable=True) as view:
        view.step(docs=[Doc(1, long, ef.List(range(50)))])
        reader = ef.open(tmp_path)
        assert [tuple(row) for row in reader.value] == [(1, long, ef.List(range(50)))]
    pieces = no_garbage(tmp_path)
    assert pieces > 10
    with ef.Input("docs", Wider, key="id").run(path=tmp_path, readable=True) as view:
        assert view.converted
        assert view.value == ZSet.of([Wider(1, long, ef.List(range(50)), 3)])
    there = Snapshot(tmp_path, unpickle=True).spine(texts.TEXTS, layout="value").scan()
    assert len(list(there)) == pieces  # those of the rows before are gone


def test_a_piece_that_is_not_there_is_an_error(tmp_path: Path, short: None) -> None:
    with DOCS.run(path=tmp_path) as view:
        view.step(docs=[Doc(1, ef.Text("ebb and flow " * 9), ef.List())])
        spine = view._storage.store.spine(texts.TEXTS, layout="value")
        spine.append({next(spine.scan())[0]: texts.ABSENT})
        view._storage.store.commit(view.epoch + 1)
    with pytest.raises((StateError, ef.EbbflowError), match="a piece of a text is not"):
        DOCS.run(path=tmp_path)
