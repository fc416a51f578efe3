"""The rows of a change in blocks, and sinks that begin with everything."""

from __future__ import annotations

from typing import Any

import pytest

import ebbflow as ef
from ebbflow.connectors.rows import OutputSink
from ebbflow.errors import CompositionError
from ebbflow.zset import ZSet


class Blocks(OutputSink):
    name = "blocks"

    def __init__(self, output: str | None = None, known: int | None = None) -> None:
        self.output, self.known = output, known
        self.begun: list[int] = []
        self.rows: ZSet[Any] = ZSet({})
        self.sizes: list[int] = []

    def had(self, known: int | None, first: int, last: int) -> int | None:
        return self.known

    def begin(self, epoch: int, value: Any) -> None:
        self.begun.append(epoch)
        self.publish(epoch, value)

    def publish(self, epoch: int, change: Any) -> None:
        for block in self.blocks(change, 2):
            self.sizes.append(len(block))
            self.rows = self.rows + ZSet(block)


def test_a_sink_that_has_nothing_begins_with_everything_and_goes_on_with_changes(
    tmp_path: Any,
) -> None:
    view = ef.Input("words", str).run(path=tmp_path / "state")
    view.step(words=["ebb", "flow", "ebb"])
    view.step(words=["sea"])
    sink = Blocks()
    view.add_sink(sink)
    assert (sink.begun, sink.rows) == ([2], view.value)
    view.step(words={"ebb": -1, "tide": 1})
    assert (sink.begun, sink.rows, max(sink.sizes)) == ([2], view.value, 2)
    view.close()


def test_a_sink_is_of_one_output() -> None:
    words = ef.Input("words", str)
    view = ef.program(words=words, sizes=words.map(len)).run()
    sink = Blocks("sizes")
    view.add_sink(sink)
    view.step(words=["ebb", "sea"])
    assert sink.rows == ZSet({3: 2})
    view.end_sink("blocks")
    with pytest.raises(CompositionError, match="the program has several"):
        view.add_sink(Blocks())
    with pytest.raises(ef.EbbflowError, match="'size'"):
        view.add_sink(Blocks("size"))
