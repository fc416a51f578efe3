"""What a view on Spark does for its streams: `view.stream`, and what may be given to it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame

from ebbflow.change.requests import DeleteKeys, Feed, Request, Upsert
from ebbflow.engine.runtime.changes import merged
from ebbflow.engine.runtime.requested import are_none
from ebbflow.engine.spark.output.frames import file_uri
from ebbflow.engine.spark.streams.running import RunningStream
from ebbflow.engine.spark.tasks.asked import input_change
from ebbflow.engine.spark.tasks.epochs import InputChange
from ebbflow.errors import ChangeError, CompositionError, Text
from ebbflow.flow.plan import Source
from ebbflow.paths import file_name, local_path
from ebbflow.public import Public
from ebbflow.state.spine import Folder

FOLDER = "streams"
"""The folder of the state with the checkpoints of streams that were given none."""
TRIGGERS = ("processingTime", "availableNow", "once")


class ViewWithStreams(Public):
    """The part of a view on Spark that has to do with streams."""

    _streams: dict[str, RunningStream]

    def stream(
        self,
        changes: Mapping[str, Any] | None = None,
        /,
        *,
        trigger: str | Mapping[str, Any] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        name: str | None = None,
        **named: Any,
    ) -> RunningStream:
        """Change inputs by streaming DataFrames from now on: every batch is one epoch, which
        happens exactly once, also when this process is killed and the stream is started again.

        A change is a streaming DataFrame with columns as `step` has them (`weight`, `op`, ...), or
        a request with one, such as `ebbflow.upsert(frame)`. Several inputs that are given together
        change together, in one epoch; for epochs of their own, call this for each.

        - `trigger`: how often, as in "10 seconds", or what Spark's `trigger` takes:
          {"availableNow": True} takes what is there and ends; see `wait`. As soon as the last batch
          is done, unless told otherwise;
        - `checkpoint`: a folder where Spark notes how far it is; inside the folder of the state,
          unless told otherwise. It belongs to the state, and is as dear;
        - `name`: that of the stream among others of this view; those of its inputs, unless told
          otherwise.

        What comes back has `wait`, `stop`, `progress`, `error` and Spark's `query`. Closing the
        view stops it. ::

            stream = view.stream(orders=ef.upsert(frame), trigger={"availableNow": True})
            stream.wait()
        """
        view: Any = self
        given = merged(changes or {}, named)
        if not hasattr(view.session, "_jsparkSession"):
            raise CompositionError(
                "stream: with Spark Connect, batches are handed to a process of the server, which "
                "does not have the view",
                remedy="a session of this process; or step(..., batch=(source, number)) here",
            )
        if not given:
            raise CompositionError(
                "stream: no input is given", remedy="view.stream(orders=streaming_dataframe)"
            )
        with view._lock:
            view._require_open()
            found = {each: _streamed(view, each, change) for each, change in given.items()}
            name = "+".join(found) if name is None else name
            before = self._streams.get(name)
            if before is not None and before.active:
                raise CompositionError(
                    f"stream: the stream {name!r} of this view is running already",
                    remedy="stop() it first, or another name=",
                )
        if before is not None:
            before.stop()
        made = RunningStream(view, name, found)
        made.start(_checkpoint(view, name, checkpoint), _trigger(trigger))
        self._streams[name] = made
        return made

    @property
    def streams(self) -> dict[str, RunningStream]:
        """The streams that were started, by name."""
        return dict(self._streams)

    def _stop_streams(self) -> None:
        for stream in self._streams.values():
            stream.stop()


def _streamed(view: Any, name: str, change: Any) -> InputChange:
    """The change of an input by a streaming DataFrame, for all its batches."""
    view._require("input", name, view.plan.sources)
    source: Source = view.plan.sources[name]
    rows = getattr(change, "rows", None) if isinstance(change, Request) else change
    if not isinstance(rows, DataFrame) or not rows.isStreaming:
        raise ChangeError(
            f"stream: input {name!r} is given what is no streaming DataFrame",
            given=Text(type(rows).__name__),
            created=source.place,
            remedy="spark.readStream...load(); what has an end is given to step",
        )
    if isinstance(change, Request) and not isinstance(change, (Upsert, DeleteKeys, Feed)):
        raise ChangeError(
            f"stream: {change.verb} needs all rows at once, and a batch has some",
            created=source.place,
            remedy="upsert, delete or feed with a stream; replace with step",
        )
    if isinstance(change, Upsert) and not are_none(change.delete):
        raise ChangeError(
            "stream: upsert(..., delete=) has two tables, and a stream brings one",
            created=source.place,
            remedy="feed(stream, ...), with a column that says what happens to a row",
        )
    return input_change(view._replica.inputs[name], change, streaming=True)


def _trigger(given: str | Mapping[str, Any] | None) -> dict[str, Any]:
    if given is None:
        return {"processingTime": "0 seconds"}
    found = {"processingTime": given} if isinstance(given, str) else dict(given)
    if len(found) != 1 or not set(found) <= set(TRIGGERS):
        raise CompositionError(
            f"stream: trigger={given!r} is none that runs in batches",
            remedy='trigger="10 seconds", or {"availableNow": True}',
        )
    return found


def _checkpoint(view: Any, name: str, given: str | os.PathLike[str] | None) -> str:
    if given is not None:
        text = os.fspath(given)
        return text if "://" in text else file_uri(local_path(text, "checkpoint"))
    files = view._storage.files
    if not isinstance(files, Folder):
        raise CompositionError(
            "stream: the state is not in a folder where Spark can have a checkpoint",
            remedy='checkpoint="s3a://bucket/checkpoint", or where else Spark writes',
        )
    return file_uri(files.path / FOLDER / file_name(name))
