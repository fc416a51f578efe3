"""Representations: what stands for an input does what the input does, to the state as well."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbflow.algebra import ADD, BYTES, LIST, TUPLE
from ebbflow.errors import AlgebraError
from ebbflow.stream import defunctionalise, elementwise, processor, reduce_in_processes, tabulate
from ebbflow.stream.represent import BLOCK, _reduce_part


def switch(on: bool, letter: str) -> tuple[bool, list[str]]:
    """Letters that say nothing and differ only in the state they leave; `?` tells it."""
    match letter:
        case "keep":
            return on, []
        case "flip":
            return not on, []
        case "off":
            return False, []
    return on, ["on" if on else "off"]


LETTERS = ["keep", "flip", "off", "?", "stay"]
switching = elementwise(
    lambda on, letter: switch(on, "keep" if letter == "stay" else letter), state=False
)
words = st.lists(st.sampled_from(LETTERS), max_size=6)


def test_003_H12_letters_that_differ_only_in_a_later_state_have_different_codes() -> None:
    short = defunctionalise(switching, LETTERS, states=[False, True])
    codes = [short.encode([letter])[0] for letter in LETTERS]
    assert codes == [0, 1, 2, 3, 0], "keep and stay do the same in every state, and no others do"
    assert [short.letters[code] for code in range(4)] == LETTERS[:4]
    assert short.decode(short.encode(["flip", "?"]))(False) == (True, ["on"])


def test_003_H12_letters_that_differ_in_one_state_only_have_different_codes() -> None:
    short = defunctionalise(switching, ["flip", "off"], states=[True])
    assert short.codes == {"flip": 0, "off": 0}, "from on, both lead to off"
    short = defunctionalise(switching, ["flip", "off"], states=[True, False])
    assert short.codes == {"flip": 0, "off": 1}


@given(words, st.booleans())
def test_003_H12_codes_and_tables_do_to_every_state_what_the_letters_do(
    word: list[str], on: bool
) -> None:
    expected = switching.step(on, word)
    for encoded in (
        defunctionalise(switching, LETTERS, states=[False, True]),
        defunctionalise(switching, LETTERS),
        tabulate(switching, [False, True]),
    ):
        assert encoded.decode(encoded.encode(word))(on) == expected
        cut = len(word) // 2
        both = encoded.monoid.combine(encoded.encode(word[:cut]), encoded.encode(word[cut:]))
        assert both == encoded.encode(word)


def test_without_states_no_two_letters_share_a_code_and_one_given_twice_has_one() -> None:
    assert defunctionalise(switching, [*LETTERS, "keep"]).codes == {
        "keep": 0, "flip": 1, "off": 2, "?": 3, "stay": 4,
    }  # fmt: skip


def test_a_byte_is_enough_for_256_codes_and_no_more() -> None:
    assert defunctionalise(switching, range(256)).monoid is BYTES
    assert defunctionalise(switching, range(257)).monoid is TUPLE
    assert defunctionalise(switching, range(256)).encode([255]) == b"\xff"
    assert defunctionalise(switching, range(257)).encode([0, 256]) == (0, 256)


def test_a_letter_that_is_not_in_the_alphabet_is_named() -> None:
    with pytest.raises(AlgebraError, match="'blink' is not in the alphabet"):
        defunctionalise(switching, LETTERS).encode(["keep", "blink"])


counting = elementwise(lambda n, x: (min(n + x, 3), n), state=0, target=ADD)


@pytest.mark.parametrize("alphabet", [None, [0, 1]], ids=["as they are", "as codes"])
@pytest.mark.parametrize("size", [0, 1, 5, BLOCK + 1])
def test_003_H12_parts_are_strung_together_in_order_also_where_the_output_is_no_list(
    alphabet: Any, size: int
) -> None:
    given_list = [1, 0, 1, 1, 0] * (size // 5 + 1)
    with ThreadPoolExecutor(2) as pool:
        found = reduce_in_processes(
            counting, given_list[:size], states=range(4), alphabet=alphabet, workers=3, pool=pool
        )
    assert found == counting.step(0, given_list[:size])


def test_003_H12_what_is_said_before_any_input_comes_first() -> None:
    greeting = processor(lambda n, xs: (n, xs), state=0, source=LIST, target=LIST, output=["hello"])
    with ThreadPoolExecutor(1) as pool:
        assert reduce_in_processes(greeting, ["a", "b"], states=[0], workers=2, pool=pool) == (
            0,
            ["hello", "a", "b"],
        )


@pytest.mark.parametrize("alphabet", [None, [0, 1]], ids=["as they are", "as codes"])
def test_003_H12_a_state_that_is_reached_and_not_listed_is_named(alphabet: Any) -> None:
    with (
        ThreadPoolExecutor(1) as pool,
        pytest.raises(AlgebraError, match="reaches state 2, which is not among"),
    ):
        reduce_in_processes(
            counting, [1, 1, 0], states=[0, 1], alphabet=alphabet, workers=2, pool=pool
        )


def test_003_H12_every_state_has_a_run_of_its_own_until_they_meet() -> None:
    table = tabulate(counting, range(4))
    runs = _reduce_part((table, None, [1, 1]))
    assert {first: state for first, (state, _) in runs.items()} == {0: 2, 1: 3, 2: 3, 3: 3}
    assert {first: said for first, (_, said) in runs.items()} == {0: [1], 1: [3], 2: [5], 3: [6]}
