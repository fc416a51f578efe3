"""What a view on an object store asks of it: how many requests, of what sort, what it leaves."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import pytest
from tests.object_server import ObjectServer, place, server

import ebbflow as ef
from ebbflow.state.spine import Snapshot, Store, cache, objects

__all__ = ["place", "server"]


class Order(NamedTuple):
    id: int
    city: str
    price: int


TOTALS = ef.Input("orders", Order).group_by("city").agg(total=ef.sum("price"))


def asked(server: ObjectServer) -> Counter[str]:
    return Counter(
        f"{request.what} {request.name.split('-')[0]}".strip() for request in server.made()
    )


@pytest.mark.parametrize("size", [100, 10_000])
def test_an_epoch_is_one_get_and_one_put_however_large_the_state_is(
    server: ObjectServer, place: Any, size: int
) -> None:
    with TOTALS.run(path=place) as view:
        view.step(orders=[Order(n, f"city {n % 997}", n) for n in range(size)])
        server.made()
        for n in range(33):
            view.step(orders=[Order(-n, f"city {n}", n)])
        made = asked(server)
    assert (made.pop("GET owner"), made.pop("PUT epoch")) == (33, 33)
    lists, removals, merges = made.pop("LIST"), made.pop("DELETE"), made.pop("PUT merge", 0)
    assert (lists, merges) == (2, 0)
    assert removals == 1
    assert not made


def test_what_a_process_has_written_or_read_it_does_not_download(
    server: ObjectServer, place: Any
) -> None:
    with TOTALS.run(path=place) as view:
        for n in range(20):
            view.step(orders=[Order(n, f"city {n}", n)])
    server.made()
    with TOTALS.run(path=place) as view:
        view.step(orders=[Order(-1, "Rome", 1)])
    made = asked(server)
    assert made == {
        "GET owner": 2, "PUT owner": 2, "LIST": 3, "HEAD epoch": 2, "PUT epoch": 1,
    }  # fmt: skip
    elsewhere = server.again(place, cache=f"{place.cache}-of-another-machine")
    with TOTALS.run(path=elsewhere) as view:
        files = len(view._storage.store.manifest.files())
        made = asked(server)
        assert made["GET epoch"] == files < 12


def test_of_a_large_object_a_machine_downloads_the_blocks_with_the_keys_it_looks_up(
    server: ObjectServer, place: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(objects, "WHOLE", 1 << 16)
    monkeypatch.setattr(cache, "BLOCK", 1 << 14)
    with Store(place, chunk=1 << 10) as store:
        store.spine("totals", layout="value", key_type=int).append({n: n for n in range(60_000)})
        store.commit(0)
    elsewhere = server.again(place, cache=f"{place.cache}-of-another-machine").files()
    server.made()
    spine = Snapshot(elsewhere).spine("totals", layout="value", key_type=int)
    assert spine.probe([7, 8]) == {7: 7, 8: 8}
    size = elsewhere.size(Snapshot(elsewhere).manifest.name)
    blocks = asked(server)["GET epoch"]
    assert size is not None
    assert size > 30 * (1 << 14)
    assert blocks <= 6


def test_objects_that_no_epoch_needs_are_removed(server: ObjectServer, place: Any) -> None:
    with TOTALS.run(path=place) as view:
        for n in range(50):
            view.step(orders=[Order(n, f"city {n % 7}", n)])
        needed = view._storage.store.manifest.files()
    assert set(server.names(place)) == {*needed, "owner"}
    assert len(needed) < 12


def test_a_reader_who_waits_asks_for_one_list_each_time(server: ObjectServer, place: Any) -> None:
    with TOTALS.run(path=place, keep_epochs=3, readable=True) as view:
        view.step(orders=[Order(1, "Rome", 1)])
        following = ef.open(place).changes(since=1, wait=0.05, every=0.01)
        list(following)
        server.made()
        list(following)
        assert set(asked(server)) == {"LIST"}
