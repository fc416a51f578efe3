"""What one process has checked, others that share it do not check again."""

from __future__ import annotations

import os
import zlib
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")

from ebbflow.state.spine import StateError, Store
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


def test_damage_is_found_by_who_reads_it_first(tmp_path: Path, shared: Checked) -> None:
    with Store(tmp_path) as store:
        store.spine("a", layout="value").append(dict.fromkeys(range(1000), "x" * 100))
        store.commit(0)
    (file,) = [each for each in tmp_path.iterdir() if each.stat().st_size > 50_000]
    blob = bytearray(file.read_bytes())
    blob[len(blob) // 2] ^= 1
    file.write_bytes(blob)
    for _ in range(2):
        with pytest.raises(StateError, match="damaged"):
            opened(tmp_path)
