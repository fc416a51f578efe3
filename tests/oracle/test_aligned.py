"""As-of joins, one row at a time, against batch: in memory and on disk, with what is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

import ebbflow as ef
from ebbflow.engine.batch import evaluate
from ebbflow.errors import EbbflowError


class Trade(NamedTuple):
    stock: str
    at: float | None
    size: int


class Quote(NamedTuple):
    stock: str
    at: float | None
    bid: int


TRADES, QUOTES = ef.Input("trades", Trade), ef.Input("quotes", Quote)
PLACES: dict[str, tuple[Any, ...]] = {
    "few": (1, 2, 3),
    "many": tuple(range(90)),
    "hard": (None, 0.0, -0.0, float("nan"), 2**62, -(2**63), float("inf"), 1),
}


def changed(dice: Random, there: Counter[Any], make: Callable[[], Any]) -> dict[Any, int]:
    """One row that comes, once or twice, or goes, once or altogether."""
    if there and dice.random() < 0.5:
        row = dice.choice(sorted(there, key=repr))
        return {row: -dice.choice((1, there[row]))}
    return {make(): dice.choice((1, 1, 2))}


@pytest.mark.parametrize("places", PLACES)
@pytest.mark.parametrize("keyed", [False, True], ids=["all rows", "by key"])
@pytest.mark.parametrize(("direction", "exact", "how"), [
    ("backward", True, "left"), ("backward", False, "inner"), ("forward", True, "inner"),
    ("forward", False, "left"),
])  # fmt: skip
def test_as_of_joins_follow_batch_one_row_at_a_time(
    tmp_path: Path, direction: str, exact: bool, how: str, keyed: bool, places: str
) -> None:
    joined = TRADES.asof_join(
        QUOTES, on="stock" if keyed else None, order="at", direction=direction,
        allow_exact=exact, how=how, suffixes=None if keyed else ("", "_of_quote"),
    )  # fmt: skip
    dice = Random(f"{direction}{exact}{keyed}{places}")
    there: dict[str, Counter[Any]] = {"trades": Counter(), "quotes": Counter()}
    types: dict[str, Any] = {"trades": Trade, "quotes": Quote}
    checked, trusted = joined.run(), joined.run(check_input=False)
    stored = joined.run(path=tmp_path / "state")
    for number in range(120 if places == "many" else 40):
        name = dice.choice(("trades", "quotes", "quotes"))

        def row(of: str = name) -> Any:
            return types[of](dice.choice("ab"), dice.choice(PLACES[places]), dice.randrange(3))

        change = changed(dice, there[name], row)
        there[name].update(change)
        there[name] = +there[name]
        found = checked.step({name: change})
        assert found == trusted.step({name: change})
        if number % 10 == 0:
            [now] = evaluate(joined.plan, there).values()
            assert found == stored.step({name: change})
            assert checked.value == now == stored.value
            if number > 20:  # it is computed when it is first asked for, and then kept
                assert trusted.value == now
            for view in (checked, stored, trusted):
                absent = types[name]("a", 7.5, 9)
                with pytest.raises(EbbflowError):
                    view.step({name: {absent: -1, row(): 1}})
            stored.close()
            stored = joined.run(path=tmp_path / "state")
        else:
            assert found == stored.step({name: change})
    stored.close()
