"""Exact sums of Decimals: kept as one number where they have one scale, and stored as a Decimal."""

from __future__ import annotations

from decimal import Decimal
from random import Random
from typing import Any

from ebbflow.reducer import exact


def test_decimals_are_added_the_short_way_as_any_other() -> None:
    random = Random(4)
    numbers: list[Any] = [
        *map(Decimal, ("1.50", "-0.25", "0.00", "1.5", "1E+2", "7", "1E-7")), 3, Decimal("NaN"),
    ]  # fmt: skip
    for _ in range(300):
        short: tuple[int, Any] = (0, 0)
        long = exact.NOTHING
        for _ in range(random.randrange(12)):
            x = random.choice(random.choice([numbers[:3], numbers[:3], numbers]))
            n = random.choice([1, 1, 2, -1])
            short, long = exact.spread_plus(*short, x, n), exact.plus(long, x, n)
            assert short == exact.spread(long)
            assert exact.restored(exact.stored(short)) == short
            assert type(short[1]) is type(exact.spread(long)[1])


def test_a_sum_of_decimals_of_one_scale_is_stored_as_a_decimal() -> None:
    for texts, stored in (
        (["1.50", "2.25"], (2, Decimal("3.75"))),
        (["1.50", "-1.50"], (2, Decimal("0.00"))),
        (["7"], (1, Decimal("7"))),
        (["0.00000001"], (1, Decimal("1E-8"))),
    ):
        total = exact.NOTHING
        for text in texts:
            total = exact.plus(total, Decimal(text), 1)
        assert str(exact.stored(exact.spread(total))) == str(stored)
    both = exact.spread(
        exact.plus(exact.plus(exact.NOTHING, Decimal("1.5"), 1), Decimal("1.25"), 1)
    )
    assert exact.stored(both) == both
