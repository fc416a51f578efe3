"""Generated loops: what they run, whom they blame, and the two that sort and gather rows."""

from __future__ import annotations

import gc
import linecache
import traceback
from typing import Any

import pytest

from ebbflow.chain import Chain, RowStep, gather, grouping
from ebbflow.codegen import Blame, GeneratedLoop, blame, source_of
from ebbflow.fn import Fn


def caught(function: Any, *arguments: Any) -> BaseException:
    with pytest.raises(Exception) as info:
        function(*arguments)
    return info.value


class Broken(Exception):
    """What a user's function raises."""


def breaks(row: Any) -> Any:
    raise Broken(row)


def breaks_later(row: Any) -> Any:
    yield row
    raise Broken(row)


# ---- loops ----


def test_a_loop_is_the_text_that_was_written() -> None:
    loop = GeneratedLoop("evens", "rows")
    loop.write("out = []")
    with loop.inside("for row in rows:"):
        with loop.inside("if row % 2 == 0:"):
            loop.write("out.append(row)")
        with loop.inside("else:"):
            loop.write("continue")
    loop.write("return out")
    assert loop.text == (
        "def evens(rows):\n"
        "    out = []\n"
        "    for row in rows:\n"
        "        if row % 2 == 0:\n"
        "            out.append(row)\n"
        "        else:\n"
        "            continue\n"
        "    return out\n"
    )
    assert loop.function()([1, 2, 3, 4]) == [2, 4]


def test_a_block_closes_what_was_opened_inside_it() -> None:
    loop = GeneratedLoop("f", "rows")
    loop.write("out = []")
    with loop.inside("for row in rows:"):
        loop.write("for each in row:")
        loop.depth += 1
        loop.write("out.append(each)")
    loop.write("return out")
    assert loop.function()(["ab", "c"]) == ["a", "b", "c"]


def test_a_value_is_bound_once_and_two_values_never_share_a_name() -> None:
    loop = GeneratedLoop("f", "")
    one, other = [1], [1]
    names = [loop.bind(one), loop.bind(other), loop.bind(one)]
    assert names[0] == names[2] != names[1]
    assert loop.bind(tuple.__new__) == "new"
    loop.write(f"return {names[0]} is {names[1]}, new(tuple, [3])")
    assert loop.function()() == (False, (3,))


def price_of(row: Any) -> Any:
    return row[1]


class Amount(int):
    pass


def test_bound_values_have_their_own_names_in_the_text() -> None:
    loop = GeneratedLoop("f", "row")
    names = [loop.bind(each) for each in (price_of, Amount, len, lambda row: row, {1: 2})]
    made = f"{names[1]}({names[0]}(row))"
    loop.write(f"return {made}, {names[2]}(row), {names[3]}(row), {names[4]}, {loop.bind(3, 'N')}")
    assert loop.text.splitlines()[1] == (
        "    return Amount(price_of(row)), len(row), function(row), dict_1, N"
    )
    assert loop.function()((1, 2)) == (2, 2, (1, 2), {1: 2}, 3)


def test_a_bound_name_never_hides_a_variable_a_builtin_or_another_bound_value() -> None:
    def row(x: Any) -> str:
        return f"called {x}"

    def len(x: Any) -> str:
        return f"measured {x}"

    loop = GeneratedLoop("f", "row")
    other = GeneratedLoop("row", "x")
    other.write("return x")
    two = [loop.bind(row), loop.bind(other.function())]
    loop.write("later = len(row)")
    loop.write(f"return {two[0]}(row), {two[1]}(row), {loop.bind(len)}(row), later, {'_1 row_1'!r}")
    assert loop.function()("ab") == ("called ab", "ab", "measured ab", 2, "_1 row_1")


def test_a_template_has_holes_for_texts_values_and_writers() -> None:
    def opens() -> None:
        loop.write("for each in row:", "opener", "row")
        loop.depth += 1
        loop.write("if each < 0: continue")

    loop = GeneratedLoop("f", "rows")
    loop.template(
        """
        $comment
        out = []
        for row in rows:
            $each
            out.append($LIMIT / $value)
        return out
        """,
        "the template", "row", comment="", each=opens, value="each", LIMIT=12.0,
    )  # fmt: skip
    assert loop.text == (
        "def f(rows):\n"
        "    out = []\n"
        "    for row in rows:\n"
        "        for each in row:\n"
        "            if each < 0: continue\n"
        "            out.append(LIMIT / each)\n"
        "    return out\n"
    )
    assert loop.function()([[1, -2], [4]]) == [12.0, 3.0]
    assert blame(caught(loop.function(), [[1, 0]])) == Blame("the template", ([1, 0],))
    assert blame(caught(loop.function(), [3])) == Blame("opener", (3,))


def test_the_source_of_a_function_can_be_found() -> None:
    loop = GeneratedLoop("f", "row")
    loop.write("return row")
    assert source_of(loop.function()) == "def f(row):\n    return row"
    assert source_of(price_of) == "def price_of(row: Any) -> Any:\n    return row[1]"
    assert source_of(len).startswith("# ")


def test_the_text_of_a_loop_is_in_its_traceback() -> None:
    loop = GeneratedLoop("f", "row")
    loop.write("return 1 / row")
    error = caught(loop.function(), 0)
    assert "return 1 / row" in "".join(traceback.format_exception(error))
    linecache.checkcache()
    assert "return 1 / row" in "".join(traceback.format_exception(error))


def test_a_loop_that_goes_takes_nothing_from_under_a_traceback() -> None:
    def made() -> str:
        loop = GeneratedLoop("f", "row")
        loop.write("return row")
        return loop.function().__code__.co_filename

    gc.collect()
    file = made()
    gc.collect()
    assert file in linecache.cache
    files = {made() for _ in range(300)}
    gc.collect()
    again = {made() for _ in range(300)}
    assert len(again - files) < 10
    assert files <= linecache.cache.keys()


# ---- blame ----


def test_blame_names_the_owner_of_the_line_and_its_rows() -> None:
    loop = GeneratedLoop("f", "left, rights")
    with loop.inside("for right in rights:"):
        loop.write("sum = left + right", "adder", "left", "right")
        loop.write("half = sum / right", "divider", "right", "nowhere")
    function = loop.function()
    assert blame(caught(function, 1, [2, "a"])) == Blame("adder", (1, "a"))
    assert blame(caught(function, 1, [2, 0])) == Blame("divider", (0,))


def test_nobody_is_blamed_for_a_line_without_an_owner_or_outside_a_loop() -> None:
    loop = GeneratedLoop("f", "row")
    loop.write("return 1 / row")
    assert blame(caught(loop.function(), 0)) is None
    assert blame(caught(breaks, 1)) is None
    assert blame(Broken()) is None


def test_of_loops_inside_one_another_the_innermost_is_blamed() -> None:
    inner = GeneratedLoop("inner", "row")
    inner.write("return 1 / row", "inner", "row")
    outer = GeneratedLoop("outer", "rows")
    outer.write(f"return [{outer.bind(inner.function())}(row) for row in rows]", "outer", "rows")
    assert blame(caught(outer.function(), [1, 0])) == Blame("inner", (0,))


def test_loops_with_the_same_title_do_not_answer_for_one_another() -> None:
    functions = []
    for name in ("one", "two"):
        loop = GeneratedLoop("f", "row")
        loop.write("return 1 / row", name, "row")
        functions.append(loop.function())
    assert [blame(caught(function, 0)) for function in functions] == [
        Blame("one", (0,)), Blame("two", (0,)),
    ]  # fmt: skip


# ---- gather ----


def test_gather_gives_a_single_change_without_steps_as_it_is() -> None:
    change = {"a": 1}
    assert gather([Chain()])(change) is change


def test_gather_adds_up_what_becomes_equal_and_drops_zeros() -> None:
    lower = Chain([RowStep("map", Fn(str.lower))])
    assert gather([lower])({"a": 1, "A": 2, "B": 1, "b": -1}) == {"a": 3}
    assert gather([lower, Chain(sign=-1)])({"A": 2}, {"a": 1, "c": 1}) == {"a": 1, "c": -1}
    assert gather([Chain(), Chain(), Chain(sign=-1)])({"a": 1}, {"a": 1}, {"a": 2}) == {}
    assert gather([Chain(sign=-1)])({"a": 2, "b": -1}) == {"a": -2, "b": 1}


def test_gather_takes_filters_maps_and_flat_maps_in_their_order() -> None:
    chain = Chain([
        RowStep("flat_map", Fn(str.split)), RowStep("filter", Fn(str.isalpha)),
        RowStep("map", Fn(len)), RowStep("flat_map", Fn(range)), RowStep("filter", Fn(bool)),
    ])  # fmt: skip
    change = {"to be 2": 1, "known": -1, "": 5}
    expected: dict[int, int] = {}
    for row, weight in change.items():
        for new in chain.rows(row):
            expected[new] = expected.get(new, 0) + weight
    assert chain.compiled()(change) == {row: n for row, n in expected.items() if n}
    assert chain.compiled()(change) == {1: 1, 2: -1, 3: -1, 4: -1}


@pytest.mark.parametrize("verb", ["filter", "map", "flat_map"])
@pytest.mark.parametrize("owner", [None, "the node"])
def test_gather_blames_the_step_that_raised_for_the_row_before_it(verb: str, owner: Any) -> None:
    step = RowStep(verb, Fn(breaks), owner)
    loop = gather([Chain([RowStep("map", Fn(abs)), step])])
    assert blame(caught(loop, {-3: 1})) == Blame(owner or step, (3,))


def test_gather_blames_a_generator_that_raises_later() -> None:
    step = RowStep("flat_map", Fn(breaks_later))
    assert blame(caught(gather([Chain([step])]), {3: 1})) == Blame(step, (3,))


def test_gather_blames_the_step_that_made_what_cannot_be_hashed() -> None:
    step = RowStep("map", Fn(lambda row: [row]), "maker")
    later = RowStep("filter", Fn(bool), "keeper")
    found = blame(caught(gather([Chain([step, later])]), {3: 1}))
    assert found is not None
    assert found.owner == "maker"


# ---- grouping ----


def test_grouping_sorts_pairs_by_key() -> None:
    change = {"fig": 1, "nut": -1, "pear": 2}
    assert grouping(len)(change.items()) == {3: [("fig", 1), ("nut", -1)], 4: [("pear", 2)]}
    assert {key: list(pairs) for key, pairs in grouping(None)(change.items()).items()} == {
        (): [("fig", 1), ("nut", -1), ("pear", 2)]
    }
    assert grouping(None)({}.items()) == grouping(len)({}.items()) == {}


def test_grouping_leaves_out_what_the_filters_before_it_leave_out() -> None:
    short = Chain([RowStep("filter", Fn(lambda row: len(row) < 4))])
    change = {"fig": 1, "pear": 2}
    assert grouping(len, short)(change.items()) == {3: [("fig", 1)]}
    assert grouping(None, short)(change.items()) == {(): [("fig", 1)]}
    assert grouping(None, short)({"pear": 1}.items()) == {}


def test_grouping_blames_its_owner_or_the_key() -> None:
    key = Fn(breaks)
    assert blame(caught(grouping(key), {3: 1}.items())) == Blame(key, (3,))
    assert blame(caught(grouping(breaks, None, "node"), {3: 1}.items())) == Blame("node", (3,))
    lists = Fn(lambda row: [row])
    assert blame(caught(grouping(lists), {3: 1}.items())) == Blame(lists, (3,))
    keeper = RowStep("filter", Fn(breaks), "keeper")
    found = blame(caught(grouping(len, Chain([keeper]), "node"), {3: 1}.items()))
    assert found == Blame("keeper", (3,))
