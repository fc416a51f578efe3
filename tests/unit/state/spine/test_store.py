"""Stores and their manifests: epochs, what damage is found, locks, and what fails well."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ebbflow.errors import Damaged, InUse, StateError
from ebbflow.state.spine import Folder, Snapshot, Store
from ebbflow.state.spine.manifest import Listed, Manifest, read
from ebbflow.state.spine.segment import Ref


class City(NamedTuple):
    name: str


def cells(store: Snapshot) -> Any:
    return store.spine("cells", layout="value")


def filled(path: Path, epochs: int = 3, **options: Any) -> None:
    """A store in which epoch n has put n under every key from n on, beside some others."""
    with Store(path, **options) as store:
        cells(store).append({f"other {i}": None for i in range(300)})
        for epoch in range(store.epoch + 1, store.epoch + 1 + epochs):
            cells(store).append(dict.fromkeys(range(epoch, 40), epoch))
            store.commit(epoch)


def expected(epoch: int) -> dict[int, int]:
    return {key: min(key, epoch) for key in range(40)} if epoch >= 0 else {}


# ---- manifests ----


def test_a_manifest_is_read_as_it_was_written(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    ref = Ref("epoch-000000000003-0000", 0, 5, 2, 77, 1)
    manifest = Manifest(3, 0, (Listed("é", 2, "bag", "int", "Any", (ref,)),), {}, {}, {"a": [1]})
    writer = folder.create(manifest.name)
    writer.write(b"12345")
    manifest.write(writer)
    writer.close()
    assert read(folder, manifest.name) == manifest
    assert manifest.files() == {manifest.name}


def test_an_epoch_file_is_documented_json_behind_its_segments(tmp_path: Path) -> None:
    filled(tmp_path, 1)
    data = (tmp_path / "epoch-000000000000-0000").read_bytes()
    assert data[-8:] == b"EBBFLOW\n"
    length = int.from_bytes(data[-16:-8], "little")
    said = json.loads(data[-24 - length : -24])
    assert int.from_bytes(data[-20:-16], "little") == 4
    assert said["spines"][0][:5] == ["cells", 0, "value", "Any", "Any"]


def test_another_format_is_refused(tmp_path: Path) -> None:
    filled(tmp_path, 1)
    path = tmp_path / "epoch-000000000000-0000"
    data = bytearray(path.read_bytes())
    data[-20] = 1
    path.write_bytes(data)
    with pytest.raises(StateError, match="another format") as caught:
        Store(tmp_path)
    assert "format     1" in str(caught.value)


# ---- damage ----


def damage(path: Path, data: bytes | None) -> None:
    if data is None:
        path.unlink()
    else:
        path.write_bytes(data)


def found(path: Path, name: str) -> bool:
    """Whether damage is noticed and named; if not, the answer must be right."""
    try:
        with Store(path) as store:
            spine = cells(store)
            assert spine.probe(range(40)) == expected(store.epoch) != {}
            scanned = {key: value for key, value, _ in spine.scan() if value is not None}
            assert scanned == expected(store.epoch)
            store.verify()
    except StateError as error:
        return name in str(error) or pytest.fail(f"{name} is not named: {error}")
    return False


def test_every_missing_file_is_named(tmp_path: Path) -> None:
    filled(tmp_path, 6)
    files = [file for file in tmp_path.iterdir() if file.name.startswith(("epoch", "merge"))]
    assert len(files) > 1
    for file in files:
        data = file.read_bytes()
        damage(file, None)
        assert found(tmp_path, file.name)
        damage(file, data)
    assert not found(tmp_path, "")


def test_every_cut_or_longer_file_is_named(tmp_path: Path) -> None:
    filled(tmp_path, 6)
    for file in [file for file in tmp_path.iterdir() if file.name.startswith("epoch")]:
        data = file.read_bytes()
        for length in [0, 1, 23, 24, 25, len(data) // 2, len(data) - 1]:
            damage(file, data[:length])
            assert found(tmp_path, file.name), (file.name, length)
        damage(file, data + b"\0")
        assert found(tmp_path, file.name)
        damage(file, data)


def test_a_flipped_bit_is_named_or_does_no_harm(tmp_path: Path) -> None:
    """Harmless are the bytes that only fill up, and old manifests in files that are still used."""
    filled(tmp_path, 6)
    for file in [file for file in tmp_path.iterdir() if file.name.startswith("epoch")]:
        data = file.read_bytes()
        seen = [
            at
            for at in range(0, len(data), 61)
            if damage(file, data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1 :])
            or found(tmp_path, file.name)
        ]
        assert len(seen) > 10
        damage(file, data)


def test_a_copy_under_another_name_is_refused(tmp_path: Path) -> None:
    filled(tmp_path)
    newest = tmp_path / "epoch-000000000002-0000"
    (tmp_path / "epoch-000000000009-0000").write_bytes(newest.read_bytes())
    with pytest.raises(Damaged, match="epoch-000000000009-0000 is damaged: it is a copy of"):
        Store(tmp_path)


def test_damage_in_one_spine_leaves_the_others(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        for name in "ab":
            store.spine(name, layout="value").append({"key": name * 50})
        store.commit(0)
    file = tmp_path / "epoch-000000000000-0000"
    data = file.read_bytes()
    at = data.index(b"a" * 50)
    file.write_bytes(data[:at] + b"b" + data[at + 1 :])
    with Store(tmp_path) as store:
        assert store.spine("b", layout="value").probe(["key"]) == {"key": "b" * 50}
        spine = store.spine("a", layout="value")
        for read_it in (lambda: spine.probe(["key"]), lambda: list(spine.scan()), store.verify):
            with pytest.raises(Damaged, match=file.name):
                read_it()
    with pytest.raises(Damaged, match=file.name):
        Store(tmp_path, verify=True)
    Store(tmp_path).close()


# ---- leftovers and locks ----


def test_leftovers_are_removed_and_other_files_left_alone(tmp_path: Path) -> None:
    filled(tmp_path)
    left = ["epoch-000000000003-0000.tmp", "merge-000000000001-0000-0007"]
    for name in [*left, "README", "data.tmp"]:
        (tmp_path / name).write_bytes(b"half")
    with Store(tmp_path) as store:
        assert cells(store).probe(range(40)) == expected(2)
        names = {file.name for file in tmp_path.iterdir()}
        assert names.isdisjoint(left)
        assert {"README", "data.tmp"} <= names


def test_a_second_store_is_refused(tmp_path: Path) -> None:
    with Store(tmp_path):
        with pytest.raises(InUse, match="open already") as caught:
            Store(tmp_path)
        assert str(tmp_path) in str(caught.value)
    Store(tmp_path).close()


def test_a_second_process_is_refused_and_told_by_whom(tmp_path: Path) -> None:
    code = f"from ebbflow.state.spine import Store; Store({str(tmp_path)!r})"
    with Store(tmp_path):
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=False
        )
    assert "InUse: this state is open already" in done.stderr
    assert f"process    '{os.getpid()}'" in done.stderr


def test_a_place_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(StateError, match="state cannot be kept here"):
            Store(place)
    Store(tmp_path / "a" / "b").close()


def test_a_snapshot_needs_no_lock(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        cells(store).append({1: 1})
        store.commit(0)
        assert cells(Snapshot(tmp_path)).probe([1]) == {1: 1}
    assert Snapshot(tmp_path / "none").epoch == -1


# ---- epochs ----


def test_an_epoch_is_all_or_nothing_and_seen_at_once(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        cells(store).append({1: "a"})
        assert cells(store).probe([1]) == {1: "a"}
        store.rollback()
        assert cells(store).probe([1]) == {}
        cells(store).append({1: "b"})
        store.commit(4, notes={"plan": "xyz"})
        cells(store).append({1: "lost"})
    with Store(tmp_path) as store:
        assert (store.epoch, store.safe, store.notes) == (4, 4, {"plan": "xyz"})
        assert cells(store).probe([1]) == {1: "b"}
        with pytest.raises(StateError, match="epoch 4 is over"):
            store.commit(4)
        store.commit(5)
        assert store.notes == {"plan": "xyz"}


def test_older_epochs_can_be_read_while_they_are_retained(tmp_path: Path) -> None:
    filled(tmp_path, 9, keep_epochs=3)
    with Store(tmp_path, keep_epochs=3) as store:
        assert store.info()["epochs"] == [6, 7, 8]
        for epoch in (6, 7, 8):
            with store.at(epoch) as old:
                assert cells(old).probe(range(40)) == expected(epoch)
                assert old.epoch == epoch
        with pytest.raises(StateError, match="epoch 5 is not there") as caught:
            store.at(5)
        assert "[6, 7, 8]" in str(caught.value)
        old = store.at(6)
        for epoch in range(9, 15):
            cells(store).append({"more": epoch})
            store.commit(epoch)
        store.compact()
        assert store.info()["epochs"] == [12, 13, 14]
        assert cells(old).probe(range(40)) == expected(6)
        old.close()
        store.commit(15)
    assert Snapshot(tmp_path, 13).epoch == 13


def test_grouped_epochs_are_written_together(tmp_path: Path) -> None:
    with Store(tmp_path, group=4) as store:
        for epoch in range(6):
            cells(store).append(dict.fromkeys(range(epoch, 40), epoch))
            store.commit(epoch)
            assert cells(store).probe(range(40)) == expected(epoch)
        assert (store.epoch, store.safe) == (5, 3)
        assert cells(Snapshot(tmp_path)).probe(range(40)) == expected(3)
        cells(store).append({0: "staged"})
        store.flush()
        assert store.safe == 5
        assert cells(store).probe([0]) == {0: "staged"}
        store.rollback()
        store.commit(6)
        assert (store.epoch, store.safe) == (6, 5)
    with Store(tmp_path) as store:
        assert (store.epoch, cells(store).probe(range(40))) == (6, expected(5))


def test_state_of_another_kind_is_refused_and_can_be_dropped(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.spine("a", layout="value", row_type=City).append({1: City("Rome")})
        store.spine("b", layout="value").append({1: 1})
        store.commit(0)
    with Store(tmp_path) as store:
        for wrong in ({"layout": "bag", "row_type": City}, {"layout": "value"}):
            with pytest.raises(StateError, match="the state of 'a' is of another kind"):
                store.spine("a", **wrong)
        store.drop("a")
        assert store.spine("a", layout="bag").probe([1]) == {}
        store.rollback()
        assert store.spine("a", layout="value", row_type=City).probe([1]) == {1: City("Rome")}
        store.drop("a")
        with pytest.raises(StateError, match="an epoch is open"):
            store.compact()
        store.spine("a", layout="bag").append({1: [("x", 1)]})
        store.commit(1)
    with Store(tmp_path) as store:
        assert store.names() == [("a", 0), ("b", 0)]
        assert store.spine("a", layout="bag").probe([1]) == {1: {"x": 1}}
        assert store.spine("b", layout="value").probe([1]) == {1: 1}


def test_spines_that_are_not_asked_for_are_kept(tmp_path: Path) -> None:
    filled(tmp_path)
    with Store(tmp_path) as store:
        for epoch in range(3, 9):
            store.spine("other", 1, layout="bag").append({epoch: [("x", 1)]})
            store.commit(epoch)
        store.compact()
    with Store(tmp_path) as store:
        assert cells(store).probe(range(40)) == expected(2)
        rows = [(s["operator"], s["bucket"], s["entries"]) for s in store.info()["spines"]]
        assert rows == [("cells", 0, 300 + 40 + 39 + 38), ("other", 1, 6)]


# ---- failures ----


class Failing(Folder):
    """A folder in which some calls fail when they are told to."""

    fails: frozenset[str] = frozenset()

    def _try(self, what: str) -> None:
        if what in self.fails:
            raise OSError(errno.ENOSPC, "No space left on device")

    def create(self, name: str) -> Any:
        self._try("create")
        writer = super().create(name)
        if "write" in self.fails or "sync" in self.fails:
            write, sync = writer.write, writer.sync
            writer.write = lambda data: (self._try("write"), write(data))[1]  # type: ignore
            writer.sync = lambda: (self._try("sync"), sync())[1]  # type: ignore
        return writer

    def settle(self) -> None:
        self._try("settle")
        super().settle()

    def remove(self, name: str) -> None:
        self._try("remove")
        super().remove(name)


@pytest.mark.parametrize("what", ["create", "write", "sync"])
def test_an_epoch_that_fails_changes_nothing_and_can_be_tried_again(
    tmp_path: Path, what: str
) -> None:
    folder = Failing(tmp_path)
    with Store(folder) as store:
        cells(store).append({1: "a"})
        store.commit(0)
        before = folder.names()
        cells(store).append({1: "b"})
        folder.fails = frozenset({what})
        with pytest.raises(StateError, match="epoch 1 could not be written") as caught:
            store.commit(1)
        assert "No space left" in str(caught.value)
        assert isinstance(caught.value.__cause__, OSError)
        assert (store.epoch, folder.names()) == (0, before)
        assert cells(store).probe([1]) == {1: "b"}
        folder.fails = frozenset()
        store.commit(1)
    with Store(tmp_path) as store:
        assert (store.epoch, cells(store).probe([1])) == (1, {1: "b"})


@pytest.mark.parametrize("again", [True, False])
def test_an_epoch_that_may_not_be_safe_is_taken_back_before_anything_else(
    tmp_path: Path, again: bool
) -> None:
    folder = Failing(tmp_path)
    with Store(folder) as store:
        store.commit(0)
        cells(store).append({1: "a"})
        folder.fails = frozenset({"settle"})
        for _ in range(2):
            with pytest.raises(StateError, match="epoch 1 could not be written"):
                store.commit(1)
            assert store.epoch == Snapshot(tmp_path).epoch == 0
        folder.fails = frozenset()
        if again:
            store.commit(1)
    with Store(tmp_path) as store:
        assert (store.epoch, cells(store).probe([1])) == ((1, {1: "a"}) if again else (0, {}))


def test_an_epoch_that_cannot_be_taken_back_has_happened(tmp_path: Path) -> None:
    folder = Failing(tmp_path)
    with Store(folder) as store:
        store.commit(0)
        cells(store).append({1: "a"})
        folder.fails = frozenset({"settle", "remove"})
        with pytest.raises(StateError, match="epoch 1 is written"):
            store.commit(1)
        assert store.epoch == Snapshot(tmp_path).epoch == 1
        cells(store).append({2: "b"})
        with pytest.raises(StateError, match="epoch 2 could not be written"):
            store.commit(2)
        folder.fails = frozenset()
        store.commit(2)
    with Store(tmp_path) as store:
        assert (store.epoch, cells(store).probe([1, 2])) == (2, {1: "a", 2: "b"})


def test_files_that_cannot_be_removed_do_not_fail_an_epoch(tmp_path: Path) -> None:
    folder = Failing(tmp_path)
    with Store(folder) as store:
        folder.fails = frozenset({"remove"})
        for epoch in range(6):
            cells(store).append({1: epoch})
            store.commit(epoch)
        many = len(folder.names())
        folder.fails = frozenset()
        store.commit(6)
        assert len(folder.names()) < many


def test_a_merge_that_fails_raises_when_asked_for(tmp_path: Path) -> None:
    folder = Failing(tmp_path)
    with Store(folder) as store:
        for epoch in range(2):
            cells(store).append(dict.fromkeys(range(1000 >> 4 * epoch), epoch))
            store.commit(epoch)
        folder.fails = frozenset({"create"})
        with pytest.raises(StateError, match="the merge could not be written"):
            store.compact()
        folder.fails = frozenset()
        assert cells(store).probe([1, 900]) == {1: 1, 900: 0}
        store.compact()
        assert len(cells(store).segments) == 1


def test_damage_met_by_a_merge_does_not_fail_the_epoch(tmp_path: Path) -> None:
    """It was there before, and is named where it is touched."""
    with Store(tmp_path, chunk=64) as store:
        store.spine("a", layout="value").append(dict.fromkeys(range(300), "x" * 50))
        store.commit(0)
    file = tmp_path / "epoch-000000000000-0000"
    data = file.read_bytes()
    at = data.rindex(b"x" * 50)
    file.write_bytes(data[:at] + b"y" + data[at + 1 :])
    with Store(tmp_path, chunk=64) as store:
        spine = store.spine("a", layout="value")
        for epoch in range(1, 6):
            spine.append(dict.fromkeys(range(100 * epoch, 100 * epoch + 100), epoch))
            store.commit(epoch)
            assert store.epoch == store.safe == epoch
        with pytest.raises(StateError, match="could not be written") as caught:
            store.compact()
        assert file.name in str(caught.value)
        with pytest.raises(Damaged, match=file.name):
            list(spine.scan())
        assert spine.probe([450]) == {450: 4}


def test_importing_state_does_not_load_arrow() -> None:
    code = "import sys, ebbflow, ebbflow.state; print({'numpy', 'pyarrow'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
