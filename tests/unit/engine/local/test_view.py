"""A view: epochs that happen or do not, outputs, those who listen, and what it says of itself."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from runpy import run_path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbflow.engine.local import run
from ebbflow.engine.local.view import View
from ebbflow.engine.runtime.outputs import may_be_negative
from ebbflow.engine.runtime.report import Verified, ViewStats
from ebbflow.errors import (
    AbsentRow,
    CheckError,
    CompositionError,
    EbbflowError,
    FunctionFailed,
    LawBroken,
    NotDeterministic,
    ViewClosed,
)
from ebbflow.flow.plan import (
    Concat,
    Distinct,
    Filter,
    FlatMap,
    Join,
    Map,
    Plan,
    Semi,
    Source,
    TopK,
)
from ebbflow.flow.source import Input
from ebbflow.fn import Fn
from ebbflow.operator import select
from ebbflow.zset import ZSet

recomputing: Any = SimpleNamespace(**run_path(str(Path(__file__).parents[1] / "recomputing.py")))
view_of, everything, words_view = (
    recomputing.view_of,
    recomputing.everything,
    recomputing.words_view,
)
WORDS, LENGTHS, MINUS = recomputing.WORDS, recomputing.LENGTHS, recomputing.MINUS
two_outputs = recomputing.two_outputs


# ---- epochs ----


def test_a_step_gives_the_change_of_the_output_and_the_value_is_their_sum() -> None:
    view = words_view()
    assert view.step(words=["ebb", "flow", "tide"]) == ZSet({3: 1, 4: 2})
    assert view.step(words={"flow": -1, "sea": 1}) == ZSet({3: 1, 4: -1})
    assert view.value == ZSet({3: 2, 4: 1})
    assert view.epoch == 2


def test_a_program_with_several_outputs_gives_every_one_by_name() -> None:
    view = two_outputs()
    assert view.step(words=["ebb"]) == {"words": ZSet({"ebb": 1}), "long": ZSet()}
    assert view.value == {"words": ZSet({"ebb": 1}), "long": ZSet()}
    assert view.step(words=["flow"])["long"] == ZSet({"flow": 1})
    assert list(view) == ["words", "long"]
    assert len(view) == 2
    assert view["long"].value == ZSet({"flow": 1})


def test_an_unknown_output_is_refused_with_the_names_and_the_nearest() -> None:
    with pytest.raises(CompositionError) as caught:
        two_outputs()["lnog"]
    assert "no output 'lnog'" in str(caught.value)
    assert "outputs    words, long" in str(caught.value)
    assert caught.value.remedy == "long"


def test_a_value_is_a_snapshot_and_the_same_until_it_changes() -> None:
    view = two_outputs()
    view.step(words=["flow"])
    words, long = view["words"].value, view["long"].value
    view.step(words=["ebb"])
    assert words == ZSet({"flow": 1})
    assert view["words"].value == ZSet({"flow": 1, "ebb": 1})
    assert view["long"].value is long
    assert view["words"].value is view["words"].value


def test_the_change_that_a_step_gave_does_not_change_with_the_view() -> None:
    view = view_of(words=WORDS)
    first = view.step(words=["a"])
    view.step(words=["a", "b"])
    assert first == ZSet({"a": 1})


@pytest.mark.parametrize("reads", [False, True])
def test_an_output_is_kept_by_the_view_or_read_from_the_machine(reads: bool) -> None:
    view = view_of(lengths=LENGTHS, reads=reads)
    view.step(words=["ebb", "flow"])
    asked = view._program.machine.calls["read"]
    assert view.value is view.value
    assert view.value == ZSet({3: 1, 4: 1})
    assert view._program.machine.calls["read"] - asked == (1 if reads else 0)
    view.step(words={"ebb": -1})
    assert view.value == ZSet({4: 1})
    assert view.stats().outputs == {"lengths": None if reads else 1}


MOMENTS = ["begin", "run", "ran"]


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt(), SystemExit()])
def test_an_epoch_that_fails_leaves_everything_as_it_was_and_may_be_tried_again(
    moment: str, error: BaseException
) -> None:
    view = two_outputs()
    view.step(words=["ebb", "flow"])
    before, heard = everything(view), []
    view.on_change(heard.append)
    view._program.machine.fail[moment] = error
    with pytest.raises(type(error)):
        view.step(words={"ebb": -1, "tide": 1})
    assert everything(view) == before
    assert heard == []
    assert view._program.machine.calls["rollback"] == 1
    change = view.step(words={"ebb": -1, "tide": 1})
    assert change == {"words": ZSet({"ebb": -1, "tide": 1}), "long": ZSet({"tide": 1})}
    assert heard == [change]
    assert view.epoch == 2
    view.verify()


@pytest.mark.parametrize("error", [MemoryError(), KeyboardInterrupt()])
def test_an_epoch_that_is_interrupted_after_its_end_is_done_altogether(
    error: BaseException,
) -> None:
    view = two_outputs()
    view.step(words=["ebb", "flow"])
    view._program.machine.fail["commit"] = error
    with pytest.raises(type(error)):
        view.step(words={"ebb": -1, "tide": 1})
    assert view.epoch == 2
    assert view.value["words"] == ZSet({"flow": 1, "tide": 1})
    assert view._program.machine.calls["rollback"] == 0
    view.verify()
    view.input("words").remove("tide")
    with pytest.raises(AbsentRow):
        view.input("words").remove("ebb")


def interrupted_at(moment: int, act: Any) -> bool:
    """Do it, but with an interrupt when that call begins or ends; whether there was one.

    No interrupt comes between a statement and the call that it makes, so `c_call` is left out.
    """
    left = moment

    def watch(frame: Any, event: str, argument: Any) -> None:
        nonlocal left
        left -= event != "c_call"
        if left < 0:
            raise KeyboardInterrupt

    sys.setprofile(watch)
    try:
        act()
    except KeyboardInterrupt:
        return left < 0
    finally:
        sys.setprofile(None)
    return False


@pytest.mark.parametrize("machine", ["recomputing", "local"])
def test_an_interrupt_at_any_moment_leaves_an_epoch_done_or_not_done(machine: str) -> None:
    plan = Plan({"minus": MINUS, "lengths": LENGTHS, "set": Distinct(parent=WORDS)})
    view: View = run(plan) if machine == "local" else view_of(**plan.outputs)
    change = {"words": ZSet({"ebb": -1, "flow": -1, "tide": 1}), "stop": ZSet({"sea": 1})}
    hit = {True: 0, False: 0}
    for moment in range(10_000):
        view.step(words=["ebb", "flow", "flow"], stop=["ebb"])
        stream, before = view.changes(), view.epoch
        if not interrupted_at(moment, lambda: view.step(change)):
            break
        done = view.epoch > before
        hit[done] += 1
        words = ZSet({"flow": 1, "tide": 1} if done else {"ebb": 1, "flow": 2})
        stop = ZSet({"ebb": 1, "sea": 1} if done else {"ebb": 1})
        right = {"minus": words - stop, "lengths": words.map(len), "set": words.distinct()}
        assert view.value == right
        assert len(stream._buffer) == view.epoch - before
        assert view.verify().epoch == view.epoch
        view.step(words=-words, stop=-stop)
        assert view.value == {"minus": ZSet(), "lengths": ZSet(), "set": ZSet()}
    assert hit[False] > 10
    assert hit[True] > 10


def test_what_is_told_of_an_interrupted_epoch_is_told_once() -> None:
    view, heard = words_view(), []
    full = view.changes(limit=1)
    view.step(words=["tide"])
    view.on_change(heard.append)
    stream, posted = view.changes(), view._subscribers.post

    class Cut(type(view._subscribers)):  # type: ignore[misc]
        __slots__ = ()
        cut = True

        def post(self, epoch: int, moved: Any) -> Any:
            letter = posted(epoch, moved)
            if Cut.cut:
                Cut.cut = False
                raise KeyboardInterrupt
            return letter

    view._subscribers.__class__ = Cut
    with pytest.raises(KeyboardInterrupt):
        view.step(words=["ebb"])
    assert view.epoch == 2
    assert list(stream._buffer) == [{"lengths": {3: 1}}]
    assert list(full._buffer) == [{"lengths": {4: 1, 3: 1}}]
    view.step(words=["flow"])
    assert heard == [ZSet({3: 1}), ZSet({4: 1})]


def test_a_view_whose_rollback_fails_says_that_it_is_of_no_use() -> None:
    view = words_view()
    view._program.machine.fail = {"run": ValueError("first"), "rollback": OSError("second")}
    with pytest.raises(OSError, match="second"):
        view.step(words=["ebb"])
    for _ in range(2):
        view._program.machine.fail = {"rollback": OSError("third")}
        with pytest.raises(ViewClosed, match="no use any more"):
            view.step(words=["ebb"])
    view._program.machine.fail = {"rollback": OSError("fourth")}
    assert repr(view) == "<View of lengths: epoch 0, broken>"
    view.close()


@pytest.mark.parametrize("cut", [KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize("use", ["step", "value", "epoch"])
def test_a_rollback_that_is_interrupted_goes_on_when_the_view_is_used(
    cut: type[BaseException], use: str
) -> None:
    view = words_view()
    view.step(words=["tide"])
    view._program.machine.fail = {"ran": ValueError("refused"), "rollback": cut()}
    with pytest.raises(cut):
        view.step(words=["ebb"])
    if use == "step":
        assert view.step(words=["flow"]) == ZSet({4: 1})
        assert view.value == ZSet({4: 2})
    else:
        assert getattr(view, use) in (1, ZSet({4: 1}))
        assert view.value == ZSet({4: 1})
    assert view._program.machine.calls["rollback"] == 2


def test_a_function_that_fails_stops_the_epoch() -> None:
    view = words_view()
    with pytest.raises(FunctionFailed):
        view.step(words=["ebb", 3])
    assert view.value == ZSet()
    assert view.epoch == 0
    assert view.step(words=["ebb"]) == ZSet({3: 1})


@pytest.mark.parametrize(
    "use", [lambda view: view.step(), lambda view: view.value, lambda view: view.close()]
)
def test_a_function_that_uses_its_own_view_is_refused(use: Any) -> None:
    view = view_of(words=Map(parent=WORDS, fn=Fn(lambda word: use(view))))
    with pytest.raises(EbbflowError) as caught:
        view.step(words=["a"])
    cause = caught.value.__cause__ or caught.value
    assert "by a function of its own program" in str(cause)
    assert view.value == ZSet()


# ---- outputs that cannot be ----


def test_a_function_that_changes_its_mind_is_found_where_a_retraction_does_not_cancel() -> None:
    view = view_of(words=WORDS)
    view._program.machine.wrong = lambda delta: delta.map(lambda word: word + "!")
    view.step(words=["ebb", "flow"])
    view._program.machine.wrong = lambda delta: delta.map(lambda word: word + "?")
    before = everything(view)
    with pytest.raises(NotDeterministic) as caught:
        view.step(words={"ebb": -1})
    assert "output 'words': a row is taken back that is not there" in str(caught.value)
    assert "row        'ebb?'" in str(caught.value)
    assert everything(view) == before
    view._program.machine.wrong = lambda delta: delta.map(lambda word: word + "!")
    assert view.step(words={"ebb": -1}) == ZSet({"ebb!": -1})


def test_an_output_of_a_difference_may_owe_rows() -> None:
    view = view_of(minus=MINUS)
    assert view.step(stop=["a", "a"]) == ZSet({"a": -2})
    assert view.step(words=["a", "b"]) == ZSet({"a": 1, "b": 1})
    assert view.value == ZSet({"a": -1, "b": 1})
    view.verify()


def same(fn: Any = None) -> Fn:
    return Fn(fn or (lambda row: row))


A, B = Source(name="a"), Source(name="b")
KEYS = {"left_key": same(), "right_key": same()}
DIFFERENCE = Concat(parts=(A, B), signs=(1, -1))


@pytest.mark.parametrize(
    ("node", "negative"),
    [
        (A, False),
        (DIFFERENCE, True),
        (Concat(parts=(A, B), signs=(1, 1)), False),
        (Concat(parts=(A, DIFFERENCE), signs=(1, 1)), True),
        (Map(parent=DIFFERENCE, fn=same()), True),
        (Filter(parent=DIFFERENCE, fn=same()), True),
        (FlatMap(parent=DIFFERENCE, fn=same()), True),
        (Map(parent=A, fn=same()), False),
        (Distinct(parent=DIFFERENCE), False),
        (Map(parent=Distinct(parent=DIFFERENCE), fn=same()), False),
        (TopK(parent=DIFFERENCE, n=1, by=same()), False),
        (Join(left=DIFFERENCE, right=A, merge=same(), **KEYS), True),
        (Join(left=A, right=DIFFERENCE, merge=same(), **KEYS), True),
        (Join(left=A, right=B, merge=same(), **KEYS), False),
        (Semi(left=DIFFERENCE, right=A, **KEYS), True),
        (Semi(left=A, right=DIFFERENCE, anti=True, **KEYS), False),
    ],
)
def test_rows_may_be_negative_behind_a_minus_until_something_makes_a_bag(
    node: Any, negative: bool
) -> None:
    assert may_be_negative(Plan({"x": node})) == {"x": negative}


# ---- closing ----

USES = {
    "step": lambda view: view.step(),
    "step an input": lambda view: view.step(words=["a"]),
    "value": lambda view: view.value,
    "input": lambda view: view.input("words"),
    "output": lambda view: view["lengths"],
    "on_change": lambda view: view.on_change(print),
    "changes": lambda view: view.changes(),
    "stats": lambda view: view.stats(),
    "explain": lambda view: view.explain(),
    "verify": lambda view: view.verify(),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_closed_view_can_only_be_closed_again(use: Any) -> None:
    view = words_view()
    view.step(words=["ebb"])
    view.close()
    view.close()
    with pytest.raises(ViewClosed):
        use(view)
    assert repr(view) == "<View of lengths: epoch 1, closed>"


def test_handles_of_a_closed_view_are_closed() -> None:
    view = words_view()
    words, lengths = view.input("words"), view["lengths"]
    view.close()
    with pytest.raises(ViewClosed):
        words.add("ebb")
    with pytest.raises(ViewClosed):
        lengths.value
    with pytest.raises(ViewClosed):
        lengths.on_change(print)


def test_a_view_is_a_context_that_closes_it() -> None:
    with words_view() as view:
        view.step(words=["ebb"])
    with pytest.raises(ViewClosed):
        view.value


def test_a_callback_may_close_the_view() -> None:
    view, heard = words_view(), []
    view.on_change(lambda change: view.close())
    view.on_change(heard.append)
    assert view.step(words=["ebb"]) == ZSet({3: 1})
    assert heard == [ZSet({3: 1})]


# ---- about itself ----


def test_verify_reports_what_it_compared() -> None:
    view = two_outputs()
    view.step(words=["ebb", "flow", "flow"])
    assert view.verify() == Verified(1, {"words": 2, "long": 1})


def test_verify_shows_what_is_missing_and_what_is_too_much() -> None:
    view = view_of(words=WORDS)
    view._program.machine.wrong = lambda delta: (
        delta.filter(lambda word: word != "ebb") + ZSet({"eb": 2})
    )
    view.step(words=["ebb", "flow"])
    with pytest.raises(LawBroken) as caught:
        view.verify()
    text = str(caught.value)
    assert "output 'words' is not what recomputing it gives" in text
    assert "epoch      1" in text
    assert "missing    'ebb'\n" in text
    assert "extra      'eb' (2 times)\n" in text


def test_verify_lists_only_the_first_rows() -> None:
    view = view_of(words=WORDS)
    view._program.machine.wrong = lambda delta: ZSet()
    view.step(words=list("abcdefgh"))
    with pytest.raises(LawBroken, match="'e', and 3 more") as caught:
        view.verify()
    assert "extra      none" in str(caught.value)


def test_verify_needs_the_input_rows() -> None:
    view = view_of(words=WORDS, check_input=False)
    view.step(words=["a"])
    with pytest.raises(CheckError, match="keeps no input rows") as caught:
        view.verify()
    assert "check_input=False" in caught.value.remedy


def test_stats_count_epochs_rows_and_time_and_read_as_a_table() -> None:
    view = view_of(words=WORDS, lengths=LENGTHS)
    view.step(words=["ebb", "flow", "sea"])
    view.step()
    stats = view.stats()
    assert (stats.epochs, stats.inputs, stats.outputs) == (
        2,
        {"words": 3},
        {"words": 3, "lengths": 2},
    )
    assert 0 < stats.seconds < 10
    assert stats.nodes[0].label == "recompute"
    shown = repr(ViewStats(2, 1.5, {"words": 3, "more": None}, stats.outputs, stats.nodes))
    assert shown == (
        "2 epochs, 1.500 s\n"
        "                rows in  rows out  state rows     ms  place\n"
        "input words                                 3\n"
        "input more                           not kept\n"
        "recompute            12         3       4,567  250.0  here.py:1\n"
        "output words                                3\n"
        "output lengths                              2"
    )


def test_a_step_that_was_refused_counts_in_no_figure() -> None:
    view = words_view()
    view.step(words=["ebb"])
    before = view.stats()
    with pytest.raises(AbsentRow):
        view.step(words={"flow": -1})
    assert view.stats() == before


def test_explain_shows_the_plan_with_what_is_kept_now() -> None:
    view = words_view()
    view.step(words=["ebb", "flow"])
    assert "2 rows" in view.explain()
    assert json.loads(view.explain("json"))["outputs"]
    trusting = view_of(words=WORDS, check_input=False)
    assert "not kept" in trusting.explain()


# ---- against the sum of what was put in ----


@st.composite
def histories(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Changes of two inputs, each of which leaves bags."""
    there: dict[str, ZSet[Any]] = {"words": ZSet(), "stop": ZSet()}
    steps = []
    for _ in range(draw(st.integers(0, 6))):
        step = {}
        for name in draw(st.sets(st.sampled_from(["words", "stop"]))):
            after = ZSet(
                draw(st.dictionaries(st.sampled_from(["a", "bb", "ccc"]), st.integers(0, 2)))
            )
            step[name] = after - there[name]
            there[name] = after
        steps.append(step)
    return steps


def sums(steps: list[dict[str, Any]]) -> Iterator[dict[str, ZSet[Any]]]:
    total = {"words": ZSet[Any](), "stop": ZSet[Any]()}
    for step in steps:
        total = {name: rows + step.get(name, ZSet()) for name, rows in total.items()}
        yield total


@given(histories(), st.booleans())
def test_the_value_is_the_sum_of_the_changes_and_equals_recomputing(
    steps: list[dict[str, Any]], reads: bool
) -> None:
    view: View = view_of(minus=MINUS, lengths=LENGTHS, reads=reads)
    heard = {"minus": ZSet[Any](), "lengths": ZSet[Any]()}
    told: list[Any] = []
    view.on_change(told.append)
    for step, total in zip(steps, sums(steps), strict=True):
        change = view.step(step)
        heard = {name: rows + change[name] for name, rows in heard.items()}
        assert view.value == heard
        assert view.value["minus"] == total["words"] - total["stop"]
        assert view.value["lengths"] == total["words"].map(len)
        assert (change in told) == any(change.values())
        told.clear()
    view.verify()


# ---- on the machine of the local engine ----


def test_the_local_engine_rolls_back_an_epoch_in_which_a_function_fails() -> None:
    view = run(Plan({"lengths": LENGTHS, "set": Distinct(parent=WORDS)}))
    view.step(words=["ebb", "flow"])
    before = view.value
    with pytest.raises(FunctionFailed) as caught:
        view.step(words={"ebb": -1, "tide": 1, 3: 1})
    assert isinstance(caught.value.__cause__, TypeError)
    assert view.value == before
    assert view.epoch == 1
    assert view.step(words={"ebb": -1, "tide": 1})["set"] == ZSet({"ebb": -1, "tide": 1})
    view.verify()


def test_the_local_engine_finds_a_function_that_changes_its_mind() -> None:
    answers = iter(range(100))
    view = run(Plan({"numbered": Map(parent=WORDS, fn=Fn(lambda word: (word, next(answers))))}))
    view.step(words=["ebb"])
    with pytest.raises(NotDeterministic):
        view.step(words={"ebb": -1})
    assert view.value == ZSet({("ebb", 0): 1})
    assert view.epoch == 1


def test_the_local_engine_may_trust_its_inputs() -> None:
    view = run(Plan({"lengths": LENGTHS}), check_input=False)
    assert view.step(words=["ebb"]) == ZSet({3: 1})
    assert view.stats().inputs == {"words": None}
    with pytest.raises(CheckError):
        view.verify()


def test_a_function_that_raises_inside_an_operator_is_reported_with_its_row() -> None:
    view = Input("numbers", int).through(select(lambda row: 1 / row > 0)).run()
    with pytest.raises(FunctionFailed, match="through raised ZeroDivisionError") as caught:
        view.step(numbers=[0])
    assert "row        0" in str(caught.value)
    assert view.epoch == 0
