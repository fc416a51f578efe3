"""What one process has checked, others that share it do not check again."""

from __future__ import annotations

import os
import shutil
import time
import zlib
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")

from ebbflow.errors import StateError
from ebbflow.state.spine import Store
from ebbflow.state.spine import segment as segments
from ebbflow.state.spine.checked import NEAR, SLOTS, Checked


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> Checked:
    found = Checked()
    monkeypatch.setattr(segments, "SHARED", [found])
    return found


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_sees_what_was_added_before_and_after_it() -> None:
    checked = Checked()
    checked.add(checked.at(("before",)))
    child = os.fork()
    if not child:
        known = checked.at(("before",)) in checked
        checked.add(checked.at(("in the child",)))
        os._exit(0 if known else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert checked.at(("in the child",)) in checked
    assert checked.at(("never",)) not in checked


def test_a_full_place_forgets_and_never_makes_up() -> None:
    checked = Checked()
    marks = [SLOTS * i + 5 for i in range(1, 3 * NEAR)]
    for mark in marks:
        checked.add(mark)
        assert mark in checked
    assert sum(mark in checked for mark in marks) <= NEAR
    assert SLOTS * 1000 + 5 not in checked


def opened(path: Path) -> dict[int, object]:
    with Store(path) as store:
        spine = store.spine("a", layout="value")
        return dict(spine.probe(range(100)))


def test_a_chunk_is_checked_once_and_a_new_one_for_itself(
    tmp_path: Path, shared: Checked, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store(tmp_path) as store:
        store.spine("a", layout="value").append({i: str(i) for i in range(100)})
        store.commit(0)
    summed: list[int] = []
    count = zlib.crc32
    monkeypatch.setattr(segments.zlib, "crc32", lambda *a: summed.append(len(a[0])) or count(*a))
    first = opened(tmp_path)
    times = len(summed)
    assert opened(tmp_path) == first
    assert len(summed) - times == times - 1, "directory and footer are, the chunk is not"


def stored(path: Path) -> Path:
    """A state, and its only large file."""
    with Store(path) as store:
        store.spine("a", layout="value").append(dict.fromkeys(range(1000), "x" * 100))
        store.commit(0)
    (file,) = [each for each in path.iterdir() if each.stat().st_size > 50_000]
    return file


def damage(file: Path) -> None:
    """Flip a bit, in place, with the times of the file as they were as far as that can be done."""
    was = file.stat()
    time.sleep(0.02)  # the clock of a file system may stand still for so long
    with open(file, "r+b") as raw:
        raw.seek(was.st_size // 2)
        (byte,) = raw.read(1)
        raw.seek(was.st_size // 2)
        raw.write(bytes([byte ^ 1]))
    os.utime(file, ns=(was.st_atime_ns, was.st_mtime_ns))


def test_damage_is_found_by_who_reads_it_first(tmp_path: Path, shared: Checked) -> None:
    damage(stored(tmp_path))
    for _ in range(2):
        with pytest.raises(StateError, match="damaged"):
            opened(tmp_path)


def test_damage_that_comes_later_is_found_though_the_chunk_was_checked(
    tmp_path: Path, shared: Checked
) -> None:
    file = stored(tmp_path)
    assert opened(tmp_path)
    damage(file)
    with pytest.raises(StateError, match="damaged"):
        opened(tmp_path)


def test_damage_between_opening_and_reading_is_found(tmp_path: Path, shared: Checked) -> None:
    file = stored(tmp_path)
    assert opened(tmp_path)
    with Store(tmp_path) as store:
        spine = store.spine("a", layout="value")
        damage(file)
        with pytest.raises(StateError, match="damaged"):
            spine.probe(range(100))


def test_a_damaged_copy_is_not_taken_for_what_it_was_copied_from(
    tmp_path: Path, shared: Checked
) -> None:
    file = stored(tmp_path / "one")
    assert opened(tmp_path / "one")
    shutil.copytree(tmp_path / "one", tmp_path / "other")
    damage(tmp_path / "other" / file.name)
    with pytest.raises(StateError, match="damaged"):
        opened(tmp_path / "other")
    assert opened(tmp_path / "one")


def test_a_worker_opens_again_what_was_written_to(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    from ebbflow.engine.spark.tasks.task import _snapshot
    from ebbflow.state.spine import Folder

    file = stored(tmp_path)
    read = [_snapshot(Folder(tmp_path), 0, True, "").spine("a", layout="value") for _ in range(2)]
    assert read[0].segments[0] is read[1].segments[0]
    assert read[1].probe(range(100))
    damage(file)
    with pytest.raises(StateError, match="damaged"):
        _snapshot(Folder(tmp_path), 0, True, "").spine("a", layout="value").probe(range(100))
