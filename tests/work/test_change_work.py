"""How much work changes make: calls counted, and sizes at which quadratic cost would show."""

from __future__ import annotations

from typing import Any

import pytest

from ebbflow.change import (
    BAG,
    NUMBER,
    TEXT,
    Delete,
    First,
    Insert,
    Patch,
    Second,
    mapping,
    pair,
    sequence,
)
from ebbflow.zset import ZSet

N = 10_000


@pytest.fixture
def composed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of what `TEXT.compose` made, one per call."""
    sizes: list[int] = []
    compose = type(TEXT).compose

    def counted(self: Any, first: Any, second: Any) -> Any:
        result = compose(self, first, second)
        sizes.append(sum(len(edit.text) for edit in result if isinstance(edit, Insert)))
        return result

    monkeypatch.setattr(type(TEXT), "compose", counted)
    return sizes


def test_004_O12_typing_compresses_to_one_insert_with_one_compose_per_letter(
    composed: list[int],
) -> None:
    letters = [Insert(at, chr(97 + at % 26)) for at in range(N)]
    assert TEXT.compress(letters) == (Insert(0, "".join(edit.text for edit in letters)),)
    assert len(composed) == N - 1
    assert sum(composed) < 20 * N


def test_004_O12_backspacing_everything_leaves_nothing(composed: list[int]) -> None:
    typed = [Insert(at, "x") for at in range(N)]
    back = [Delete(at, 1) for at in reversed(range(N))]
    assert TEXT.compress(typed + back) == ()
    assert len(composed) < 2 * N


def test_004_O12_edits_that_never_merge_cost_a_bounded_number_of_calls(composed: list[int]) -> None:
    apart = [Insert(3 * at, "x") for at in range(N)]
    assert TEXT.compress(apart) == tuple(apart)
    assert len(composed) <= N


def test_004_O12_any_mixture_needs_at_most_four_calls_per_change(composed: list[int]) -> None:
    edits: list[Any] = []
    for n in range(N):
        at = n * 7919 % 13
        edits.append(Insert(at, "ab") if n % 3 else Delete(at, 1 + n % 4))
    shorter = TEXT.compress(edits)
    assert len(composed) <= 4 * N
    start = "z" * (4 * N)
    assert TEXT.patch_all(start, shorter) == TEXT.patch_all(start, edits)


def test_004_O12_rows_that_come_one_by_one_compress_to_one_change() -> None:
    (change,) = BAG.compress(ZSet({n: 1}) for n in range(N))
    assert change == ZSet.of(range(N))


def test_004_O12_structures_made_of_others_compress_part_by_part(composed: list[int]) -> None:
    typed = [Insert(at, "x") for at in range(N)]
    written = Insert(0, "x" * N)
    assert sequence(TEXT).compress((edit,) for edit in typed) == ((written,),)
    assert len(composed) == N - 1
    composed.clear()
    mixed = [change for edit in typed for change in (First(edit), Second(1))]
    (both,) = pair(TEXT, NUMBER).compress(mixed)
    assert (both.first, both.second) == (written, N)
    assert len(composed) == N - 1
    composed.clear()
    assert mapping(TEXT).compress({"k": Patch(edit)} for edit in typed) == ({"k": Patch(written)},)
    assert len(composed) == N - 1


def test_004_O1_validity_of_a_bag_change_looks_at_its_rows_only() -> None:
    class Row:
        looked = 0

        def __hash__(self) -> int:
            Row.looked += 1
            return id(self)

    rows = [Row() for _ in range(100_000)]
    bag = ZSet.of(rows)
    change = ZSet({rows[0]: -1})
    Row.looked = 0
    assert BAG.valid(change, bag)
    assert Row.looked == 1


def test_004_O1_the_edits_of_large_texts_compare_no_single_letters() -> None:
    middle = 1_000_000
    old = "ab" * middle
    new = old[:middle] + "X" + old[middle + 1 :]
    assert sequence(TEXT).diff(new, old) == (Delete(middle, 1), Insert(middle, "X"))
