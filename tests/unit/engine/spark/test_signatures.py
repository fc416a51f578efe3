"""One method has the same arguments, in the same order, wherever it is."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

pytest.importorskip("pyspark")

import ebbflow as ef
from ebbflow.engine.local.handles import LocalInput, LocalOutput
from ebbflow.engine.runtime.handles import InputHandle
from ebbflow.engine.runtime.reader.reader import Reader
from ebbflow.engine.spark.handles import SparkInput, SparkOutput
from ebbflow.engine.spark.view import SparkView

FREE = {inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL}
OWN = {"self", "output", "permissions", "program"}
"""Parameters that only one of the two can have: an output of a view has no other outputs."""


def arguments(method: Any) -> list[tuple[str, Any, Any]]:
    given = inspect.signature(method).parameters.values()
    return [
        (each.name, each.kind, each.default)
        for each in given if each.kind not in FREE and each.name not in OWN
    ]  # fmt: skip


def methods(cls: Any) -> set[str]:
    return {
        name for name in dir(cls)
        if not name.startswith("_") and inspect.isfunction(inspect.getattr_static(cls, name))
    }  # fmt: skip


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (ef.View, SparkView), (ef.View, LocalOutput), (SparkView, SparkOutput),
        (LocalOutput, SparkOutput), (LocalInput, SparkInput),
    ],
    ids=str,
)  # fmt: skip
def test_methods_of_two_classes_have_the_same_arguments(one: Any, other: Any) -> None:
    both = methods(one) & methods(other)
    assert both
    for name in both:
        assert arguments(getattr(one, name)) == arguments(getattr(other, name)), name


def test_readers_and_views_have_no_positional_argument_of_two_meanings() -> None:
    for name in methods(ef.View) & methods(Reader):
        places = [
            {each for each, kind, _ in arguments(getattr(cls, name)) if kind <= 1}
            for cls in (ef.View, Reader)
        ]
        assert places[0] <= places[1] or places[1] <= places[0], name


@pytest.mark.parametrize("request_name", ["upsert", "feed", "delete", "forget", "replace"])
def test_methods_of_inputs_have_the_keywords_of_the_requests(request_name: str) -> None:
    ours = {each[0] for each in arguments(getattr(InputHandle, request_name))}
    requests = inspect.signature(getattr(ef, request_name)).parameters.values()
    assert ours >= {
        each.name for each in requests if each.default is not each.empty or each.kind > 1
    }
