"""Files on HDFS: what is asked of WebHDFS, with answers that are lost or cut."""

from __future__ import annotations

import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from getpass import getuser
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.hdfs_server import HdfsServer, on, place, server

import ebbflow as ef
from ebbflow.cli import main
from ebbflow.errors import CompositionError, InUse, Lost, StateError
from ebbflow.state.spine import bucket as asked
from ebbflow.state.spine import hdfs

__all__ = ["place", "server"]


class Order(NamedTuple):
    id: int
    city: str
    price: int


TOTALS = ef.Input("orders", Order).group_by("city").agg(total=ef.sum("price"))


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asked, "sleep", lambda seconds: None)


def bucket(place: Any) -> Any:
    return place.files().bucket


def test_a_view_is_opened_again_read_by_others_and_taken_over(place: Any) -> None:
    view = TOTALS.run(path=place, readable=True)
    for each in range(9):
        view.step(orders=[Order(each, "Rome", 10), Order(each, "Oslo", 1)])
        if each % 3 == 0:
            view.step(orders={Order(each, "Oslo", 1): -1})
    reader = ef.open(place)
    assert sorted(reader.value) == sorted(view.value)
    with pytest.raises(InUse, match=r"(?s)open already.*take_over=True"):
        TOTALS.run(path=place)
    sent = pickle.loads(pickle.dumps(place))
    mine = TOTALS.run(path=replace(sent, take_over=True), readable=True)
    with pytest.raises(Lost, match="taken over"):
        view.step(orders=[Order(99, "Rome", 1)])
    mine.step(orders=[Order(99, "Rome", 1)])
    mine.verify()
    view.close()
    mine.close()
    with TOTALS.run(path=place, readable=True) as again:
        assert sorted(again.value) == [("Oslo", 6), ("Rome", 91)]
        again.verify()


@pytest.mark.parametrize("operation", ["CREATE", "CREATE data", "RENAME", "GETFILESTATUS"])
@pytest.mark.parametrize("fault", ["lost", "drop", "standby"])
def test_a_file_that_must_be_new_is_so_once_whatever_becomes_of_answers(
    server: HdfsServer, place: Any, operation: str, fault: str
) -> None:
    with server.faulty(on(operation, fault, times=2)):
        made = bucket(place).create("a", b"mine", 4)
    assert bucket(place).tail("a", 2) == (b"ne", bucket(place).head("a"))
    assert bucket(place).head("a").tag == made.tag
    with server.faulty(on(operation, fault)), pytest.raises(FileExistsError):
        bucket(place).create("a", b"them", 4)
    assert bucket(place).get("a")[0] == b"mine"
    assert list(bucket(place).listed()) == ["a"]


@pytest.mark.parametrize("fault", ["lost", "cut"])
def test_what_is_cut_is_asked_for_again(server: HdfsServer, place: Any, fault: str) -> None:
    content, found = os.urandom(300_000), bucket(place)
    known = found.put("part", content, len(content))
    with server.faulty(on("OPEN data", fault, times=2)):
        assert found.part("part", known, 7, 1000) == content[7:1000]
    path = Path(place.cache)
    with server.faulty(on("OPEN data", fault, times=2)), path.open("w+b") as into:
        found.download("part", known, into)
    assert path.read_bytes() == content


def test_of_those_who_replace_one_version_one_does(place: Any) -> None:
    found = bucket(place)
    now = found.create("note", b"0", 1)
    for round in range(5):

        def put(writer: int, now: Any = now) -> Any:
            try:
                return bucket(place).put("note", b"%d" % writer, 1, over=now)
            except FileExistsError:
                return None

        with ThreadPoolExecutor(4) as threads:
            done = list(threads.map(put, range(4)))
        winners = [writer for writer, each in enumerate(done) if each is not None]
        assert len(winners) == 1, round
        content, now = found.get("note")
        assert content == b"%d" % winners[0]
        assert now.tag == done[winners[0]].tag


def test_who_saw_an_old_version_replaces_nothing_though_the_next_is_gone(
    server: HdfsServer, place: Any
) -> None:
    found = bucket(place)
    first = found.create("note", b"0", 1)
    second = found.put("note", b"1", 1, over=first)
    for each in range(3):
        second = found.put("note", b"%d" % (each + 2), 1, over=second)
    inside = f"/{place.url.split('/', 3)[3]}/.replaced/note/"
    assert [path for path in server.files if path.startswith(inside)] == [f"{inside}4"]
    for old in (first, first._replace(number="1"), first._replace(number="2")):
        with pytest.raises(FileExistsError):
            found.put("note", b"9", 1, over=old)
        assert found.get("note")[0] == b"4"
    found.delete(["note"])
    assert found.get("note") is None
    assert not [path for path in server.files if path.startswith(inside)]


def test_what_was_written_and_never_renamed_goes_after_a_day(
    server: HdfsServer, place: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = bucket(place)
    found.put(".writing/left", b"x", 1)
    found.delete(["none"])
    assert [path for path in server.files if path.endswith("/left")]
    monkeypatch.setattr(hdfs, "OLD", timedelta(days=-1))
    found.delete(["none"])
    assert not [path for path in server.files if path.endswith("/left")]


def test_the_command_line_looks_after_state_on_hdfs(
    server: HdfsServer, place: Any, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    server.allowed.add(getuser())
    with TOTALS.run(path=place, keep_epochs=2) as view:
        for each in range(3):
            view.step(orders=[Order(each, "Rome", 10)])
    assert main(["state", place.url]) == 0
    assert "epoch 3, of 2, 3 that can be read" in capsys.readouterr().out
    assert main(["state", "verify", place.url]) == 0
    assert main(["state", "compact", place.url]) == 0
    assert main(["state", "copy", place.url, f"{place.url}-2"]) == 0
    with TOTALS.run(path=f"{place.url}-2") as view:
        assert list(view.value) == [("Rome", 30)]
        view.verify()


def test_tasks_that_run_as_another_user_ask_as_the_driver(
    server: HdfsServer, place: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.allowed.add("driver")
    monkeypatch.setenv("LOGNAME", "driver")
    sent = pickle.dumps(ef.object_store(place.url).files())
    monkeypatch.setenv("LOGNAME", "worker")
    files = pickle.loads(sent)
    assert files.names() == []
    files.bucket.create("a", b"1", 1)
    assert pickle.loads(pickle.dumps(files)).folder("b").place.options == {"user": "driver"}


def test_who_may_not_is_told_so_and_options_are_checked(server: HdfsServer, place: Any) -> None:
    with pytest.raises(StateError, match=r"(?s)cannot be kept here.*Permission denied"):
        TOTALS.run(path=ef.object_store(place.url, user="you"))
    with pytest.raises(CompositionError, match=r"(?s)no option 'endpoint'.*delegation"):
        ef.object_store(place.url, endpoint="http://x").files()
    with pytest.raises(CompositionError, match=r"(?s)cannot be kept on hdfs.*webhdfs://namenode"):
        TOTALS.run(path="hdfs://n:8020/state")


def test_a_server_that_is_not_there_is_named() -> None:
    with pytest.raises(StateError, match=r"(?s)cannot be kept here.*webhdfs://127.0.0.1:1/x"):
        TOTALS.run(path="webhdfs://127.0.0.1:1/x")
