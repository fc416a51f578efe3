"""The mapping behind counts: a dict that is replaced, not changed."""

from __future__ import annotations

import pickle
from typing import NamedTuple

import pytest

from ebbflow.reducer import Map

# ---- the mapping behind counts ----


def test_a_map_is_a_dict_that_is_replaced() -> None:
    plain: dict[int, int] = {}
    shared: Map[int, int] = Map()
    older = []
    for n in range(3000):
        key = n * 7919 % 1009
        if key in plain and n % 3 == 0:
            del plain[key]
            shared = shared.drop(key)
        else:
            plain[key] = n
            shared = shared.put(key, n)
        if n % 500 == 0:
            older.append((dict(plain), shared))
    assert shared == plain
    assert len(shared) == len(plain)
    assert sorted(shared) == sorted(plain)
    for then, version in older:
        assert version == then
    assert pickle.loads(pickle.dumps(shared)) == shared == Map(plain)
    assert hash(shared) == hash(Map(plain))
    for key in list(plain):
        shared = shared.drop(key)
    assert (len(shared), shared) == (0, Map())
    with pytest.raises(KeyError):
        shared.drop(1)
    with pytest.raises(KeyError):
        shared[1]
    assert shared != 3


def test_a_map_bears_keys_whose_hashes_are_all_the_same() -> None:
    class Same(NamedTuple):
        n: int

        def __hash__(self) -> int:
            return 7

    built = Map({Same(n): n for n in range(100)})
    assert built.put(Same(5), 0).drop(Same(7))[Same(5)] == 0
    assert len(built) == 100
