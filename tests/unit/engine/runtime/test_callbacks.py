"""Callbacks of a view: which changes they hear, in which order, and what happens when one fails."""

from __future__ import annotations

from pathlib import Path
from runpy import run_path
from types import SimpleNamespace
from typing import Any

import pytest

from ebbflow.zset import ZSet

recomputing: Any = SimpleNamespace(**run_path(str(Path(__file__).parents[1] / "recomputing.py")))
view_of, words_view = recomputing.view_of, recomputing.words_view
two_outputs, WORDS = recomputing.two_outputs, recomputing.WORDS


# ---- those who listen ----


def test_callbacks_hear_every_change_in_order_and_no_empty_one() -> None:
    view, heard = words_view(), []
    view.on_change(lambda change: heard.append(("first", change)))
    view.on_change(lambda change: heard.append(("second", change)))
    view.step(words=["ebb"])
    view.step(words={"ebb": -1, "sea": 1})
    view.step()
    view.step(words=["flow"])
    assert heard == [
        ("first", ZSet({3: 1})),
        ("second", ZSet({3: 1})),
        ("first", ZSet({4: 1})),
        ("second", ZSet({4: 1})),
    ]


def test_a_callback_of_several_outputs_gets_them_all_and_of_one_output_only_its_own() -> None:
    view, all_heard, heard = two_outputs(), [], []
    view.on_change(all_heard.append)
    view["long"].on_change(heard.append)
    view.step(words=["ebb"])
    view.step(words=["flow"])
    assert all_heard == [
        {"words": ZSet({"ebb": 1}), "long": ZSet()},
        {"words": ZSet({"flow": 1}), "long": ZSet({"flow": 1})},
    ]
    assert heard == [ZSet({"flow": 1})]


def test_a_callback_sees_the_view_after_the_change() -> None:
    view, seen = words_view(), []
    view.on_change(lambda change: seen.append((view.epoch, view.value)))
    view.step(words=["ebb"])
    assert seen == [(1, ZSet({3: 1}))]


def test_unsubscribing_ends_it_and_may_be_done_twice() -> None:
    view, heard = words_view(), []
    stop = view.on_change(heard.append)
    view.step(words=["ebb"])
    stop()
    stop()
    view.step(words=["flow"])
    assert heard == [ZSet({3: 1})]
    view.close()
    stop()


def test_the_same_callback_may_be_subscribed_twice_and_each_ended_alone() -> None:
    view, heard = words_view(), []
    stop = view.on_change(heard.append)
    view.on_change(heard.append)
    stop()
    view.step(words=["ebb"])
    assert heard == [ZSet({3: 1})]


def test_unsubscribing_and_subscribing_during_delivery_is_safe() -> None:
    view, heard = words_view(), []
    stops: dict[str, Any] = {}

    def first(change: Any) -> None:
        heard.append("first")
        stops["first"]()
        stops["second"]()
        view.on_change(lambda change: heard.append("new"))

    stops["first"] = view.on_change(first)
    stops["second"] = view.on_change(lambda change: heard.append("second"))
    view.on_change(lambda change: heard.append("third"))
    view.step(words=["ebb"])
    assert heard == ["first", "third"]
    view.step(words=["ebb"])
    assert heard == ["first", "third", "third", "new"]


def test_a_callback_that_fails_undoes_nothing_and_keeps_nobody_from_hearing() -> None:
    view, heard = words_view(), []

    def failing(change: Any) -> None:
        raise ValueError("no")

    stop = view.on_change(failing)
    view.on_change(heard.append)
    with pytest.raises(ValueError, match="no") as caught:
        view.step(words=["ebb"])
    assert "on_change callback" in caught.value.__notes__[0]
    assert "failing" in caught.value.__notes__[0]
    assert "after epoch 1" in caught.value.__notes__[0]
    assert heard == [ZSet({3: 1})]
    assert view.epoch == 1
    assert view.value == ZSet({3: 1})
    stop()
    view.step(words=["ebb"])
    assert heard == [ZSet({3: 1}), ZSet({3: 1})]


def test_callbacks_that_fail_together_are_raised_together() -> None:
    view = words_view()

    def failing(error: BaseException) -> Any:
        def callback(change: Any) -> None:
            raise error

        return callback

    view.on_change(failing(ValueError("a")))
    view.on_change(failing(KeyError("b")))
    with pytest.raises(ExceptionGroup) as caught:
        view.step(words=["ebb"])
    assert [type(error) for error in caught.value.exceptions] == [ValueError, KeyError]
    view.on_change(failing(KeyboardInterrupt()))
    with pytest.raises(BaseExceptionGroup):
        view.step(words=["ebb"])
    assert view.epoch == 2


def test_a_step_made_by_a_callback_is_heard_of_after_the_one_it_answers() -> None:
    view, heard = view_of(words=WORDS), []

    def answer(change: Any) -> None:
        if "ping" in change:
            assert view.step(words=["pong"]) == ZSet({"pong": 1})
            assert view.epoch == 2
            assert view.value == ZSet({"ping": 1, "pong": 1})

    view.on_change(answer)
    view.on_change(lambda change: heard.append(change))
    view.step(words=["ping"])
    assert heard == [ZSet({"ping": 1}), ZSet({"pong": 1})]
    assert view.epoch == 2


def test_what_fails_while_an_answer_is_heard_is_raised_by_the_step_that_was_answered() -> None:
    view = view_of(words=WORDS)

    def answer(change: Any) -> None:
        if "ping" in change:
            view.step(words=["pong"])

    def failing(change: Any) -> None:
        if "pong" in change:
            raise ValueError("no pong")

    view.on_change(answer)
    view.on_change(failing)
    with pytest.raises(ValueError, match="no pong"):
        view.step(words=["ping"])
    view.step(words=["other"])
