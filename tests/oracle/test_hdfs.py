"""State on HDFS itself: a name node and a data node, killed and started again, equal batch."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from time import sleep
from typing import Any
from uuid import uuid4

import pytest
from tests.oracle import kept_shop
from tests.oracle.stepping import SAID
from tests.servers.hdfs import DATA, NAME, Hdfs

import ebbflow as ef

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("hdfs")]
SHOP = kept_shop.SHOP
advance, right = kept_shop.advance, kept_shop.right
SCRIPT = Path(__file__).with_name("stepping.py")


@pytest.fixture(scope="module")
def hdfs() -> Iterator[Hdfs]:
    found = Hdfs()
    yield found
    found.remove()


@pytest.fixture
def place(hdfs: Hdfs, tmp_path: Path) -> Any:
    return hdfs.place(f"tests/{uuid4().hex}", cache=tmp_path / "cache")


def test_oracle_a_view_on_hdfs_equals_batch(place: Any) -> None:
    with SHOP.run(path=place, keep_epochs=3) as view:
        advance(view, 12, lambda _: right(view))
    with SHOP.run(path=place, keep_epochs=3) as view:
        assert (view.epoch, view.rebuilt) == (12, ())
        right(view)
        view.verify()
        assert ef.open(place, SHOP, unpickle=True).value == view.value


@pytest.mark.parametrize("server", [NAME, DATA], ids=["name node", "data node"])
def test_a_server_that_is_killed_and_comes_back_has_what_was_acknowledged(
    hdfs: Hdfs, place: Any, server: str
) -> None:
    with SHOP.run(path=place) as view:
        advance(view, 4)
        hdfs.kill(server)
        hdfs.start(server)
        hdfs.wait()
        advance(view, 8, lambda _: right(view))
    with SHOP.run(path=replace(place, cache=f"{place.cache}2")) as view:
        assert view.epoch == 8
        right(view)
        view.verify()


def test_processes_killed_at_many_moments_leave_what_they_have_acknowledged(
    place: Any, tmp_path: Path
) -> None:
    dice, known = Random(7), 0
    for life in range(8):
        command = [sys.executable, str(SCRIPT), place.url, "", str(tmp_path), f"{life}"]
        process = subprocess.Popen([*command, "1000", "once"], stdout=-1, text=True)
        assert process.stdout is not None
        said = [process.stdout.readline()]
        sleep(dice.random() * 2)
        process.kill()
        said += process.stdout.readlines()
        process.stdout.close()
        process.wait()
        last = max(int(line.split()[2]) for line in said if len(line.split()) == 3)
        with SAID.run(path=place) as view:
            rows = {row: weight for row, weight in view.value.items() if row[0] == f"{life}"}
            assert last <= len(rows) <= last + 1
            assert set(rows.values()) == {1}
            known += len(rows)
            assert sum(weight for _, weight in view.value.items()) == known


def test_two_processes_at_once_acknowledge_every_epoch_once(place: Any, tmp_path: Path) -> None:
    steps = 15
    command = [sys.executable, str(SCRIPT), place.url, "", str(tmp_path)]
    both = [subprocess.Popen([*command, name, str(steps), "1"], stdout=-1, stderr=-1)
            for name in "ab"]  # fmt: skip
    said = [each.communicate() for each in both]
    assert all(each.returncode == 0 for each in both), said[0][1] + said[1][1]
    lines = [line.split() for out, _ in said for line in out.decode().splitlines()]
    assert len({epoch for epoch, _, _ in lines}) == len(lines)
    assert Counter(name for _, name, _ in lines) == {"a": steps, "b": steps}
    with SAID.run(path=replace(place, take_over=True)) as view:
        assert dict(view.value.items()) == {(n, i): 1 for n in "ab" for i in range(steps)}
        view.verify()
