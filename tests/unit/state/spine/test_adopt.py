"""Segments that somebody else wrote: pieces, how a store adopts them, and what becomes of those
that it does not.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from ebbflow.errors import AlgebraError, Damaged, StateError
from ebbflow.state.spine import ABSENT, Folder, Piece, Ref, Snapshot, Spine
from ebbflow.state.spine.hashing import hashes
from ebbflow.state.spine.runs import runs
from ebbflow.state.spine.store import Store


def write(place: Any, epoch: int, token: str, **changes: Any) -> list[tuple[str, str, Ref]]:
    """A piece with one spine per name: bags, or values when the name begins with "cells"."""
    piece = Piece(place, epoch, token)
    for name, change in changes.items():
        spine = Spine("value" if name.startswith("cells") else "bag", chunk=64)
        spine.append(change)
        piece.add(name, spine)
    return piece.finish()


def take(store: Store, found: list[tuple[str, str, Ref]]) -> None:
    for name, layout, ref in found:
        store.adopt(name, ref, layout=layout)


def bag(store: Snapshot) -> Spine:
    return store.spine("rows", layout="bag")


def pieces(path: Path) -> list[str]:
    return [name for name in Folder(path).names() if name.startswith("part-")]


def ones(*keys: int) -> dict[int, list[tuple[Any, int]]]:
    return {key: [((key, "x"), 1)] for key in keys}


def test_what_a_task_wrote_is_the_state_after_commit(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        found = write(tmp_path, 0, "a1", rows=ones(1, 2), cells={"k": 5})
        assert pickle.loads(pickle.dumps(found)) == found
        assert [(name, layout) for name, layout, _ in found] == [
            ("rows", "bag"),
            ("cells", "value"),
        ]
        assert {ref.file for *_, ref in found} == {"part-000000000000-a1"}
        assert all(ref.offset % 64 == 0 for *_, ref in found)
        take(store, found)
        assert bag(store).probe([1]) == {1: {(1, "x"): 1}}
        store.commit(0)
        assert [segment.ref for segment in bag(store).segments] == [found[0][2]]
    with Store(tmp_path, verify=True) as store:
        assert bag(store).probe([1, 2, 3]) == {1: {(1, "x"): 1}, 2: {(2, "x"): 1}}
        assert store.spine("cells", layout="value").probe(["k"]) == {"k": 5}
        file = "part-000000000000-a1"
        assert store.manifest.sizes == {file: (tmp_path / file).stat().st_size}


def test_a_piece_makes_one_segment_of_all_that_is_staged(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        spine = Spine("bag")
        spine.append(ones(1, 2, 3))
        spine.append({1: [((1, "x"), -1)], 4: [((4, "x"), 2)]})
        gone = Spine("bag")
        gone.append(ones(1))
        gone.append({1: [((1, "x"), -1)]})
        cells = Spine("value")
        cells.append({1: "a"})
        cells.append({1: ABSENT})
        piece = Piece(tmp_path, 0, "0")
        piece.add("rows", spine)
        piece.add("gone", gone)
        piece.add("cells", cells)
        (_, _, rows), (name, _, ref) = piece.finish()
        assert (rows.entries, name, ref.entries) == (3, "cells", 1)
        store.spine("cells", layout="value").append({1: "old"})
        store.adopt("cells", ref, layout="value")
        assert store.spine("cells", layout="value").probe([1]) == {}


def test_an_empty_piece_has_no_file(tmp_path: Path) -> None:
    assert write(tmp_path, 0, "0", rows={}) == []
    assert list(tmp_path.iterdir()) == []


def test_an_abandoned_piece_leaves_nothing(tmp_path: Path) -> None:
    piece = Piece(tmp_path, 0, "0")
    spine = Spine("bag")
    spine.append(ones(1))
    piece.add("rows", spine)
    assert pieces(tmp_path)
    piece.abandon()
    assert pieces(tmp_path) == []
    assert piece.finish() == []


@pytest.mark.parametrize("token", ["", "x", "../1", "1-", "A"])
def test_a_token_that_does_for_no_name_is_refused(tmp_path: Path, token: str) -> None:
    with pytest.raises(AlgebraError, match="no token"):
        Piece(tmp_path, 0, token)


def test_adopted_and_appended_changes_are_one_epoch(tmp_path: Path) -> None:
    with Store(tmp_path, chunk=64) as store:
        bag(store).append(ones(*range(300)))
        store.commit(0)
        bag(store).append({1: [((1, "x"), 1)]})
        take(store, write(tmp_path, 1, "0", rows={1: [((1, "x"), 5)]}))
        bag(store).append({1: [((1, "x"), 10)]})
        assert bag(store).probe([1]) == {1: {(1, "x"): 17}}
        store.commit(1)
        assert bag(store).probe([1]) == {1: {(1, "x"): 17}}
    with Store(tmp_path, verify=True) as store:
        assert bag(store).probe([1]) == {1: {(1, "x"): 17}}


def test_values_keep_their_order_around_an_adopted_segment(tmp_path: Path) -> None:
    with Store(tmp_path, chunk=64) as store:
        cells = store.spine("cells", layout="value")
        cells.append(dict.fromkeys(range(500), "old"))
        store.commit(0)
        cells.append(dict.fromkeys(range(5), "before"))
        take(store, write(tmp_path, 1, "0", cells=dict.fromkeys(range(1, 400), "adopted")))
        cells.append({2: "after", 3: ABSENT, 451: ABSENT})
        expected = {0: "before", 1: "adopted", 2: "after", 450: "old"}
        assert cells.probe([0, 1, 2, 3, 450, 451]) == expected
        store.commit(1)
        assert cells.probe([0, 1, 2, 3, 450, 451]) == expected
        files = [segment.ref.file[:4] for segment in cells.segments if segment.ref]
        assert files == ["epoc", "epoc", "part", "epoc"]


def test_a_rollback_forgets_and_the_next_commit_removes(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        take(store, write(tmp_path, 0, "0", rows=ones(1)))
        store.rollback()
        assert bag(store).probe([1]) == {}
        assert pieces(tmp_path) == ["part-000000000000-0"]
        store.commit(0)
        assert pieces(tmp_path) == []


def test_pieces_of_attempts_that_lost_are_removed_with_the_epoch(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        write(tmp_path, 0, "dead", rows=ones(1))
        write(tmp_path, 1, "0", rows=ones(1))
        take(store, write(tmp_path, 0, "0", rows=ones(1)))
        (tmp_path / "part-of-something").write_text("not ours")
        store.commit(0)
        assert pieces(tmp_path) == [
            "part-000000000000-0", "part-000000000001-0", "part-of-something"
        ]  # fmt: skip
    with Store(tmp_path):
        assert pieces(tmp_path) == ["part-000000000000-0", "part-of-something"]


def test_a_failed_epoch_can_be_discarded_at_once(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        take(store, write(tmp_path, 0, "0", rows=ones(1)))
        store.commit(0)
        found = write(tmp_path, 1, "0", rows=ones(1))
        other = write(tmp_path, 1, "1", rows=ones(2))
        take(store, found)
        names = [ref.file for *_, ref in [*found, *other]]
        with pytest.raises(StateError, match="cannot be discarded"):
            store.discard(names)
        assert len(pieces(tmp_path)) == 3
        store.rollback()
        for wrong in ("part-000000000000-0", "newest", store.manifest.name):
            with pytest.raises(StateError, match="cannot be discarded"):
                store.discard([wrong])
        store.discard([*names, "part-000000000001-2"])
        assert pieces(tmp_path) == ["part-000000000000-0"]
        store.commit(1)
        assert bag(store).probe([1, 2]) == {1: {(1, "x"): 1}}


def test_what_cannot_be_adopted_is_refused(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        ((_, _, ref),) = found = write(tmp_path, 0, "0", rows=ones(1))
        with pytest.raises(StateError, match="cannot be adopted"):
            store.adopt("other", ref, layout="value")
        take(store, found)
        with pytest.raises(StateError, match="cannot be adopted"):
            take(store, found)
        with pytest.raises(Damaged, match="part-000000000000-1 is missing"):
            store.adopt(
                "rows", Ref("part-000000000000-1", *list(vars(ref).values())[1:]), layout="bag"
            )
        (tmp_path / ref.file).rename(tmp_path / "part-000000000000-2")
        (tmp_path / "part-000000000000-3").write_bytes(
            (tmp_path / "part-000000000000-2").read_bytes()[:-1]
        )
        with pytest.raises(Damaged, match="its directory"):
            store.adopt(
                "rows", Ref("part-000000000000-3", *list(vars(ref).values())[1:]), layout="bag"
            )
        (tmp_path / "part-000000000000-2").rename(tmp_path / ref.file)
        store.commit(0)
        for file in (ref.file, store.manifest.name):
            with pytest.raises(StateError, match="no piece of an epoch that is open"):
                store.adopt("rows", Ref(file, *list(vars(ref).values())[1:]), layout="bag")
        assert bag(store).probe([1]) == {1: {(1, "x"): 1}}


def test_pieces_stay_as_long_as_an_epoch_that_needs_them(tmp_path: Path) -> None:
    with Store(tmp_path, keep_epochs=2, chunk=4096) as store:
        for epoch in range(6):
            take(store, write(tmp_path, epoch, "0", rows=ones(epoch)))
            store.commit(epoch)
            with store.at(max(0, epoch - 1)) as old:
                assert len(bag(old).probe(range(9))) == max(1, epoch)
        pinned = store.at(4)
        store.compact()
        for epoch in range(6, 9):
            store.commit(epoch)
        assert len(bag(pinned).probe(range(9))) == 5
        pinned.close()
        store.commit(9)
        assert pieces(tmp_path) == []
        assert len(bag(store).probe(range(9))) == 6


def test_adopted_segments_wait_with_grouped_epochs(tmp_path: Path) -> None:
    with Store(tmp_path, group=3, chunk=64) as store:
        for epoch in range(5):
            bag(store).append({7: [((7, "x"), 1)]})
            take(store, write(tmp_path, epoch, "0", rows=ones(*range(epoch, 100))))
            bag(store).append({7: [((7, "x"), 1)]})
            store.commit(epoch)
            assert bag(store).probe([7, 99]) == {
                7: {(7, "x"): 3 * epoch + 3}, 99: {(99, "x"): epoch + 1}
            }  # fmt: skip
        assert (store.safe, store.epoch) == (2, 4)
        waiting = [
            s.ref.file for s in bag(store).segments if s.ref and s.ref.file in pieces(tmp_path)
        ]
        assert waiting[-2:] == ["part-000000000003-0", "part-000000000004-0"]
        take(store, write(tmp_path, 5, "0", rows=ones(7)))
        store.flush()
        assert bag(store).probe([7]) == {7: {(7, "x"): 16}}
        assert "part-000000000005-0" in pieces(tmp_path)
        store.rollback()
        assert bag(store).probe([7]) == {7: {(7, "x"): 15}}
    with Store(tmp_path, verify=True) as store:
        assert (store.epoch, bag(store).probe([7])) == (4, {7: {(7, "x"): 15}})
        assert "part-000000000005-0" not in pieces(tmp_path)


def test_epochs_that_wait_do_not_merge_what_is_adopted(tmp_path: Path) -> None:
    with Store(tmp_path, group=20, chunk=4096) as store:
        for epoch in range(9):
            bag(store).append(ones(epoch))
            take(store, write(tmp_path, epoch, "0", rows=ones(*range(200))))
            store.commit(epoch)
        adopted = [segment.ref.file for segment in bag(store).segments if segment.ref]
        assert adopted == [f"part-{epoch:012d}-0" for epoch in range(9)]
        assert bag(store).probe([5, 50]) == {5: {(5, "x"): 10}, 50: {(50, "x"): 9}}
    with Store(tmp_path, verify=True) as store:
        assert bag(store).probe([5, 50]) == {5: {(5, "x"): 10}, 50: {(50, "x"): 9}}


def split(keys: range, count: int) -> list[list[int]]:
    """Keys by ranges of their hashes, as tasks have them."""
    found: list[list[int]] = [[] for _ in range(count)]
    for key, hashed in zip(keys, hashes(keys).tolist(), strict=True):
        found[hashed * count >> 64].append(key)
    return found


def load(store: Store, path: Path, epoch: int, keys: range, tasks: int) -> None:
    """One epoch by several tasks, which end in some other order than they began."""
    found = [
        write(path, epoch, f"{i:02x}", rows=ones(*some))
        for i, some in enumerate(split(keys, tasks))
    ]
    for some in [*found[::2], *reversed(found[1::2])]:
        take(store, some)
    store.commit(epoch)


def test_the_pieces_of_one_epoch_are_one_run_and_are_not_merged_at_once(tmp_path: Path) -> None:
    with Store(tmp_path, chunk=64) as store:
        load(store, tmp_path, 0, range(4_000), 32)
        spine = bag(store)
        assert len(spine.segments) == 32
        ends = [(int(s.firsts[0]), int(s.lasts[-1])) for s in spine.segments]
        assert ends == sorted(ends)
        assert spine.due(spine.segments, first=True) is None
        assert not store.work()
        for epoch in range(1, 4):
            spine.append(ones(epoch))
            store.commit(epoch)
        assert len(spine.segments) == 35
        assert spine.due(spine.segments, first=True) is None
        assert len(spine.probe(range(4_000))) == 4_000
        assert spine.probe([1, 9]) == {1: {(1, "x"): 2}, 9: {(9, "x"): 1}}


def test_a_merge_begins_where_a_run_begins(tmp_path: Path) -> None:
    with Store(tmp_path, chunk=64) as store:
        load(store, tmp_path, 0, range(4_000), 16)
        store._jobs._pause = 9
        for epoch in range(1, 5):
            load(store, tmp_path, epoch, range(epoch * 100, epoch * 100 + 200), 3)
        spine = bag(store)
        assert [len(run) for run in runs(spine.segments)] == [16, 3, 3, 3, 3]
        assert spine.due(spine.segments, first=True) == 16
        while store.work():
            pass
        assert len(spine.segments) == 17
        expected = dict.fromkeys(range(4_000), 1)
        for epoch in range(1, 5):
            for key in range(epoch * 100, epoch * 100 + 200):
                expected[key] += 1
        assert {key: weight for key, _, weight in spine.scan()} == expected
        store.compact()
        assert {key: weight for key, _, weight in spine.scan()} == expected
        assert pieces(tmp_path) == []


def test_a_small_run_of_many_pieces_becomes_one_segment(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        for epoch in range(3):
            load(store, tmp_path, epoch, range(epoch, epoch + 100), 16)
            assert len(bag(store).segments) <= epoch + 1
        assert len(bag(store).probe(range(200))) == 102


def test_segments_of_different_epochs_are_no_run(tmp_path: Path) -> None:
    keys = sorted(range(64), key=lambda key: int(hashes([key])[0]))
    with Store(tmp_path) as store:
        for epoch, key in enumerate(keys):
            take(store, write(tmp_path, epoch, "0", rows=ones(key)))
            store.commit(epoch)
            segments = bag(store).segments
            assert len(segments) <= 8
            assert len(runs(segments)) == len(segments)
        assert len(bag(store).probe(keys)) == 64


def test_merges_are_paid_by_what_is_adopted_as_by_what_is_appended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paid: list[int] = []
    with Store(tmp_path) as store:
        monkeypatch.setattr(store._jobs, "pay", lambda entries, spines: paid.append(entries))
        for epoch in range(2):
            bag(store).append(ones(1, 2))
            take(store, write(tmp_path, epoch, "0", rows=ones(*range(300))))
            store.commit(epoch)
        store.commit(2)
    assert paid == [302, 302, 0]


def test_a_task_that_has_some_of_anothers_keys_is_still_right(tmp_path: Path) -> None:
    with Store(tmp_path, chunk=64) as store:
        for token in ("0", "1", "2"):
            take(store, write(tmp_path, 0, token, rows=ones(*range(200)), cells={1: token}))
        store.commit(0)
        assert bag(store).probe([5]) == {5: {(5, "x"): 3}}
        assert store.spine("cells", layout="value").probe([1]) == {1: "2"}
        assert len(runs(bag(store).segments)) == len(bag(store).segments)


def test_merges_that_are_under_way_are_not_taken_for_what_tasks_have_left(tmp_path: Path) -> None:
    with Store(tmp_path, chunk=64) as store:
        for epoch in range(40):
            store.spine("a", layout="value").append({40 * epoch + i: epoch for i in range(40)})
            mine = Spine("value")
            mine.append({f"k{epoch}": epoch})
            piece = Piece(tmp_path, epoch, f"{epoch:x}")
            piece.add("b", mine)
            for name, layout, ref in piece.finish():
                store.adopt(name, ref, layout=layout)
            store.commit(epoch)
        assert store._jobs.error is None
        assert store.trouble is None
