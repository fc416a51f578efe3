"""Files on an object store, against a server that enforces puts that must be the first."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.object_server import SECRET, ObjectServer, Request, on, place, server

import ebbflow as ef
from ebbflow.errors import CompositionError, InUse, Lost, StateError
from ebbflow.state.spine import bucket as buckets
from ebbflow.state.spine import files_at

__all__ = ["place", "server"]


@pytest.fixture
def files(place: Any) -> Iterator[Any]:
    found = place.files()
    found.lock()
    yield found
    found.unlock()


def write(files: Any, name: str, content: bytes) -> None:
    writer = files.create(name)
    try:
        writer.write(content)
        writer.sync()
    finally:
        writer.close()


# ---- files ----


def test_a_file_is_there_when_it_is_synced_and_has_its_final_name_when_it_is_published(
    files: Any, server: ObjectServer, place: Any
) -> None:
    write(files, "part-1", b"piece")
    write(files, "a.tmp", b"whole")
    assert server.names(place) == ["owner", "part-1"]
    files.publish("a.tmp", "a")
    other = place.files()
    assert other.names() == ["a", "part-1"]
    assert (bytes(other.map("a")), bytes(other.map("part-1")), other.size("a")) == (
        b"whole", b"piece", 5,
    )  # fmt: skip
    files.remove("part-1")
    assert (files.size("part-1"), files.read("part-1")) == (None, None)
    with pytest.raises(FileNotFoundError):
        place.files().map("part-1")


def test_a_final_name_is_taken_once(files: Any, place: Any) -> None:
    write(files, "a.tmp", b"mine")
    files.publish("a.tmp", "a")
    write(files, "b.tmp", b"yours")
    with pytest.raises(InUse, match="a is there already"):
        files.publish("b.tmp", "a")
    assert (files.published("b.tmp", "a"), bytes(place.files().map("a"))) == (False, b"mine")


@pytest.mark.parametrize("fault", ["lost", "late", "drop", 500, 503, -500])
def test_a_put_whose_answer_is_lost_is_known_to_be_ours(
    files: Any, server: ObjectServer, place: Any, fault: Any
) -> None:
    write(files, "a.tmp", b"mine")
    with server.faulty(on("PUT", fault, times=2, name="a")):
        files.publish("a.tmp", "a")
    assert files.published("a.tmp", "a")
    assert bytes(place.files().map("a")) == b"mine"


def test_a_put_of_another_is_not_taken_for_ours_when_an_answer_is_lost(
    files: Any, server: ObjectServer, place: Any
) -> None:
    other = place.files()
    other.bucket.put("a", b"them", 4)
    write(files, "a.tmp", b"mine")
    with server.faulty(on("PUT", "lost", name="a")), pytest.raises(InUse):
        files.publish("a.tmp", "a")
    assert not files.published("a.tmp", "a")


def test_a_download_that_is_cut_is_begun_again(
    files: Any, server: ObjectServer, place: Any
) -> None:
    content = os.urandom(300_000)
    write(files, "part-1", content)
    fresh = server.again(place, cache=place.cache + "2").files()
    with server.faulty(on("GET", "cut", times=2, name="part-1")):
        assert bytes(fresh.map("part-1")) == content


def test_an_upload_that_is_torn_leaves_nothing(
    files: Any, server: ObjectServer, place: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(buckets, "PART", 5 << 20)

    def torn(request: Request) -> Any:
        return 500 if "partNumber=2" in request.query else None

    with server.faulty(torn), pytest.raises(OSError, match="part-1"):
        write(files, "part-1", bytes(11 << 20))
    assert server.names(place) == ["owner"]
    write(files, "part-1", bytes(11 << 20))
    assert place.files().size("part-1") == 11 << 20


def test_a_short_file_is_replaced_as_a_whole_and_only_by_who_has_seen_it(
    files: Any, server: ObjectServer, place: Any
) -> None:
    with server.faulty(on("PUT", "lost", name="note")):
        files.replace("note", "1")
    with server.faulty(on("PUT", -500, name="note")):
        files.replace("note", "2")
    other = server.again(place, take_over=True, cache=place.cache).files()
    other.lock()
    assert other.read("note") == "2"
    other.replace("note", "3")
    with pytest.raises(Lost, match="taken over"):
        files.replace("note", "9")
    assert place.files().read("note") == "3"
    other.unlock()


# ---- who may write ----


def owned(place: Any, **said: Any) -> None:
    """Have an owner of whom this is said."""
    known = {"owner": "x", "generation": 7, "process": 1, "host": "far", "boot": "", "lease": 60}
    content = json.dumps(known | said).encode()
    place.files().bucket.put("owner", content, len(content))


def test_an_owner_who_is_there_keeps_others_out(server: ObjectServer, place: Any) -> None:
    owned(place)
    with pytest.raises(InUse, match=r"(?s)open already.*far.*in \d\d seconds.*take_over=True"):
        place.files().lock()
    assert server.names(place) == ["owner"]


@pytest.mark.parametrize(
    "said",
    [{"lease": -1}, {"owner": ""}, {"host": "here", "process": 2**30}],
    ids=["expired", "released", "dead"],
)
def test_an_owner_who_is_gone_is_replaced(place: Any, said: dict[str, Any]) -> None:
    if said.get("host"):
        from ebbflow.state.spine.cache import boot_of_machine

        said = said | {"host": os.uname().nodename, "boot": boot_of_machine()}
    owned(place, **said)
    files = place.files()
    files.lock()
    assert files.owner.generation == 8
    files.unlock()


def test_who_was_taken_over_learns_it_from_the_store_at_the_next_publish_or_renewal(
    files: Any, server: ObjectServer, place: Any
) -> None:
    files.owner.renew()
    files.require()
    other = server.again(place, take_over=True).files()
    other.lock()
    files.require()
    write(files, "a.tmp", b"mine")
    with pytest.raises(Lost, match=f"(?s)taken over.*{os.getpid()}"):
        files.publish("a.tmp", "a")
    with pytest.raises(Lost):
        files.require()
    assert "a" not in server.names(place)
    third = server.again(place, take_over=True).files()
    third.lock()
    other.owner.renew()
    with pytest.raises(Lost):
        other.require()
    third.unlock()


@pytest.mark.parametrize("fault", ["lost", -500])
def test_an_owner_is_not_lost_with_an_answer(server: ObjectServer, place: Any, fault: Any) -> None:
    files = place.files()
    with server.faulty(on("PUT", fault, name="owner")):
        files.lock()
    with server.faulty(on("PUT", fault, name="owner")):
        files.owner.renew()
    files.require()
    files.owner.confirm()
    files.unlock()
    with pytest.raises(Lost, match="closed"):
        files.require()


def test_an_owner_who_could_not_ask_after_a_lost_answer_is_one_still(
    files: Any, server: ObjectServer
) -> None:
    lost = iter(["lost", "drop"])
    with server.faulty(lambda request: next(lost, None)), pytest.raises(OSError):
        files.owner.renew()
    files.owner.renew()
    files.owner.confirm()


def test_an_owner_object_of_somebody_else_is_left_alone(server: ObjectServer, place: Any) -> None:
    place.files().bucket.put("owner", b"hello", 5)
    with pytest.raises(StateError, match="'owner' is something else"):
        place.files().lock()


def test_a_bucket_that_is_not_there_is_named(server: ObjectServer) -> None:
    with pytest.raises(StateError, match=r"(?s)cannot be kept here.*s3://nowhere/x.*NoSuchBucket"):
        server.place("nowhere/x").files().lock()


# ---- the cache ----


def test_what_is_in_the_cache_is_not_downloaded_again(
    files: Any, server: ObjectServer, place: Any
) -> None:
    write(files, "part-1", b"content")
    server.made()
    for _ in range(2):
        other = place.files()
        other.names()
        assert bytes(other.map("part-1")) == b"content"
    assert [request.what for request in server.made()] == ["LIST", "LIST"]
    folder = files.cache.path
    assert folder.stat().st_mode & 0o077 == 0
    (cached,) = [path for path in folder.iterdir() if len(path.name) == 64]
    assert cached.stat().st_mode & 0o077 == 0
    cached.write_bytes(b"torn")
    assert bytes(other.map("part-1")) == b"content"


def test_many_objects_are_fetched_at_once_and_known_by_one_list(
    files: Any, server: ObjectServer, place: Any, tmp_path: Path
) -> None:
    for number in range(6):
        write(files, f"part-{number}", bytes([number]))
    other = server.again(place, cache=tmp_path / "other").files()
    server.made()
    other.fetch([f"part-{number}" for number in range(6)] + ["part-9"])
    asked = sorted(request.what for request in server.made())
    assert asked == ["GET"] * 6 + ["HEAD", "LIST"]
    assert [bytes(other.map(f"part-{number}")) for number in (0, 5)] == [b"\0", b"\5"]
    assert server.made() == []


def test_an_object_that_was_replaced_is_another_one_to_the_cache(files: Any, place: Any) -> None:
    write(files, "part-1", b"first")
    assert bytes(files.map("part-1")) == b"first"
    place.files().bucket.put("part-1", b"other", 5)
    assert bytes(place.files().map("part-1")) == b"other"
    assert bytes(server_seen(files).map("part-1")) == b"other"


def server_seen(files: Any) -> Any:
    """Files that know an older version, and have no copy of it."""
    for path in files.cache.path.iterdir():
        path.unlink()
    return files


def test_the_cache_is_bounded_and_keeps_what_was_used_last(
    server: ObjectServer, place: Any
) -> None:
    small = server.again(place, cache=place.cache, cache_size=200_000)
    files = small.files()
    files.lock()
    for number in range(6):
        write(files, f"part-{number}", bytes([number]) * 60_000)
        view = files.map("part-0")
    assert bytes(view[:3]) == bytes(3)
    kept = [path for path in files.cache.path.iterdir() if len(path.name) == 64]
    assert sum(path.stat().st_size for path in kept) <= 200_000
    server.made()
    files.map("part-0")
    files.map("part-5")
    assert server.made() == []
    assert bytes(files.map("part-1"))[:2] == b"\1\1"
    files.unlock()


def test_those_who_ask_at_once_share_one_download(
    files: Any, server: ObjectServer, place: Any, tmp_path: Path
) -> None:
    write(files, "part-1", os.urandom(1 << 20))
    sent = server.again(place, cache=tmp_path / "shared").files()
    sent.names()
    server.made()
    with ThreadPoolExecutor(4) as threads:
        asked = [pickle.loads(pickle.dumps(sent)) for _ in range(4)]
        assert set(threads.map(lambda each: len(each.map("part-1")), asked)) == {1 << 20}
    assert [request.what for request in server.made()] == ["GET"]


# ---- what is given ----


def test_secrets_are_shown_nowhere(files: Any, server: ObjectServer, place: Any) -> None:
    assert SECRET not in repr(place) + repr(files) + str(place.files().address)
    with ef.Input("n", int).run(path=server.place(cache=place.cache)) as view:
        view.step(n=[1])
        found = view._storage.files
        texts = [bytes(found.bucket.get(name)[0]) for name in [*found.names(), "owner"]]
        assert not any(SECRET.encode() in text for text in texts)
    assert pickle.loads(pickle.dumps(files)).place == place


def test_an_address_alone_takes_the_rest_from_the_environment(
    server: ObjectServer, place: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "t")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "t")
    monkeypatch.setattr("ebbflow.state.spine.cache.own_cache", lambda: tmp_path)
    numbers = ef.Input("n", int)
    with numbers.run(path=place.url) as view:
        view.step(n=[1])
    assert dict(ef.open(place.url).value.items()) == {1: 1}
    assert (tmp_path / "state").exists() is False


def test_an_option_that_there_is_not_is_named(server: ObjectServer) -> None:
    with pytest.raises(CompositionError, match="s3://b/x cannot be used"):
        ef.object_store("s3://b/x", colour="red").files()
    with pytest.raises(CompositionError, match="that is a folder of this machine"):
        ef.object_store("state/")
    with pytest.raises(CompositionError, match="too little"):
        ef.object_store("s3://b/x", lease=0)
    with pytest.raises(CompositionError, match="those of a folder"):
        files_at("s3://b/x", 0o770)
