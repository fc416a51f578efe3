"""Texts and lists to be edited have the hash, on disk, of the str and the tuple that they equal."""

from __future__ import annotations

import random
from typing import Any

import pytest

from ebbflow.change import List, Text
from ebbflow.state.spine import hashing
from ebbflow.state.spine.hashing import hashes, same


@pytest.mark.parametrize("plain", ["", "ebb", "x" * 64, "é" * 100, "tide " * 2000])
def test_a_text_has_the_hash_of_its_str(plain: str) -> None:
    assert hashes([Text(plain)]) == hashes([plain])
    assert hashes([(1, Text(plain))]) == hashes([(1, plain)])
    assert same(Text(plain), plain)


def test_a_long_tuple_is_hashed_by_itself_as_it_is_beside_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rnd = random.Random(1)
    parts: list[Any] = [1, -1, "a", None, 2.5, ("x", 1), b"b"]
    tuples = [tuple(rnd.choices(parts, k=k)) for k in (15, 16, 17, 18, 40, 300)]
    by_itself = [hashes([each])[0] for each in tuples]
    as_lists = [hashes([List(each)])[0] for each in tuples]
    monkeypatch.setattr(hashing, "WIDE", 10_000)
    assert by_itself == as_lists == [hashes([each])[0] for each in tuples]
