"""Keys on disk are one exactly where they are one key of a dict: equal, with equal hashes."""

from __future__ import annotations

import enum
import math
import warnings
from collections import Counter, UserString, namedtuple
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from ipaddress import IPv4Address, ip_address
from itertools import combinations
from pathlib import Path, PurePosixPath
from typing import Any
from uuid import UUID, SafeUUID
from zoneinfo import ZoneInfo

import numpy as np
import pytest

import ebbflow as ef
from ebbflow.engine.runtime.values.rules import to_any
from ebbflow.nan import one_nan
from ebbflow.state.spine.hashing import hashes, same
from ebbflow.state.spine.store import Store


class One(enum.IntEnum):
    IS = 1


class Letter(enum.StrEnum):
    A = "a"


class Text(str):
    __slots__ = ()


Point = namedtuple("Point", "x y")
EAST, NEW_YORK = timezone(timedelta(hours=2)), ZoneInfo("America/New_York")
EARLY, LATE = datetime(2020, 11, 1, 1, 30, tzinfo=NEW_YORK), datetime(2020, 3, 8, 2, 30)

ZOO: list[Any] = [
    # numbers
    0, -0.0, 0.0, False, np.bool_(False), Decimal("-0"), Decimal("0.00"),
    1, 1.0, True, np.bool_(True), Decimal("1.0"), Decimal(1), Fraction(1), One.IS, 1 + 0j,
    np.float32(1), np.complex128(1), -1, -2, -1.0, np.int64(-2), 2**61 - 1, 2**70, float(2**70),
    Decimal(2**70), 0.1, Decimal("0.1"), np.float32(0.1), Fraction(1, 3), 1j, math.inf,
    Decimal("inf"), -math.inf, float("nan"), np.float64("nan"), -math.nan, 0.0 * math.inf,
    Decimal("nan"), complex(math.nan, 0), np.float32("nan"),
    # texts
    "", "a", Text("a"), Letter.A, np.str_("a"), UserString("a"), b"", b"a", np.bytes_(b"a"), "b",
    # dates, times and spans
    date(2020, 1, 1), datetime(2020, 1, 1), datetime(2020, 1, 1, tzinfo=UTC),
    datetime(2020, 1, 1, 2, tzinfo=EAST), datetime(2019, 12, 31, 19, tzinfo=NEW_YORK),
    EARLY, EARLY.replace(fold=1), datetime(2020, 11, 1, 5, 30, tzinfo=UTC), LATE,
    LATE.replace(tzinfo=NEW_YORK), LATE.replace(tzinfo=NEW_YORK, fold=1), LATE.replace(fold=1),
    time(12), time(12, fold=1), time(12, tzinfo=UTC), time(14, tzinfo=EAST),
    time(12, tzinfo=NEW_YORK), time(0, 30, tzinfo=EAST), time(22, 30, tzinfo=UTC),
    time(23, 59, 30, tzinfo=timezone(timedelta(seconds=-30))), time(0, tzinfo=UTC),
    timedelta(days=1), timedelta(hours=24), timedelta(microseconds=1), timedelta(0),
    np.timedelta64(24, "h"), np.timedelta64(86400, "s"), np.timedelta64(86400 * 10**9, "ns"),
    np.timedelta64(12, "M"), np.timedelta64(1, "Y"), np.timedelta64(0, "s"),
    np.datetime64("1999-01-01"), np.datetime64("1999-01-01T00"), np.datetime64("1999"),
    np.datetime64("1999-01-01T00:00:00.000000000"), np.datetime64("1999-01-01T00:00:00.000000001"),
    np.datetime64("NaT"), np.datetime64("NaT", "s"), np.datetime64("-9999-01-01"),
    # the rest
    None, (), (1, 2), Point(1, 2), (True, 2.0), (1, "2"), (np.bool_(True), 2), ((1,), 2),
    frozenset(), frozenset([1]), frozenset([True]), frozenset([1, 2]),
    range(0), range(1, 1), range(5, 0), range(0, 3, 2), range(0, 4, 2), range(3), range(2, -1, -1),
    range(5, 6), range(5, 9, 10), range(5, 4, -1),
    UUID(int=1), UUID(int=1, is_safe=SafeUUID.safe), UUID(int=2),
    ip_address("1.2.3.4"), IPv4Address(0x01020304), PurePosixPath("/a/b"), PurePosixPath("/a//b"),
    UTC, timezone(timedelta(0)), int, Ellipsis,
]  # fmt: skip


def one_key(a: Any, b: Any) -> bool:
    """Whether a dict has one entry for both."""
    a, b = one_nan(a), one_nan(b)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return a is b or (hash(a) == hash(b) and bool(a == b))


def one_on_disk(a: Any, b: Any, words: Any) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return bool(words[0] == words[1]) and same(one_nan(a), one_nan(b))


def test_two_values_are_one_key_on_disk_exactly_where_they_are_in_a_dict() -> None:
    words = hashes(list(map(one_nan, ZOO)))
    alone = [hashes([one_nan(value)])[0] for value in ZOO]
    assert words.tolist() == alone
    for (i, a), (j, b) in combinations(enumerate(ZOO), 2):
        assert one_on_disk(a, b, (words[i], words[j])) is one_key(a, b), (a, b)


@pytest.mark.parametrize(
    "inside", [lambda x: (1, x), lambda x: frozenset([x]), lambda x: Point(x, "y")]
)
def test_and_so_are_values_that_hold_them(inside: Any) -> None:
    held = [inside(one_nan(value)) for value in ZOO]
    words = hashes(held)
    for (i, a), (j, b) in combinations(enumerate(held), 2):
        if one_key(a, b):
            assert one_on_disk(a, b, (words[i], words[j])), (a, b)


def test_a_probe_finds_what_was_stored_under_an_equal_key(tmp_path: Path) -> None:
    stored = {key: i for i, key in enumerate(dict.fromkeys(map(one_nan, ZOO)))}
    with Store(tmp_path) as store:
        store.spine("keys", layout="value").append(stored)
        store.commit(0)
    with Store(tmp_path) as store:
        spine = store.spine("keys", layout="value")
        for value in ZOO:
            (found,) = spine.probe([one_nan(value)]).values()
            assert one_key(value, list(stored)[found]), value


def months(value: Any) -> bool:
    return isinstance(value, np.timedelta64) and np.datetime_data(value.dtype)[0] in "MY"


def is_refused(value: Any) -> bool:
    """Months of NumPy have no fixed length, and a time of day has no zone."""
    return months(value) or (isinstance(value, time) and value.utcoffset() is not None)


def test_equal_keys_are_one_group_before_and_after(tmp_path: Path) -> None:
    """Each value comes to a view that was opened anew, and leaves as an equal one."""
    values = [x for x in ZOO if not isinstance(x, (datetime, np.datetime64)) and not is_refused(x)]
    groups: Counter[Any] = Counter(map(to_any, values))
    program = ef.Input("values").group_by(value=lambda v: v[1]).agg(n=ef.count())
    for i, part in enumerate(np.array_split(np.arange(len(values)), 4)):
        with program.run(path=tmp_path) as view:
            view.step(values=[(int(at), values[at]) for at in part])
            assert i < 3 or sorted(r.n for r in view.value) == sorted(groups.values())
    with program.run(path=tmp_path, memory=1) as view:
        view.step(values=dict.fromkeys(enumerate(values), -1))
        assert not view.value
