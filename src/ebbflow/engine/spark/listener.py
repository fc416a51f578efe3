"""A listener to streaming queries, those that feed a view among them: what they do goes where what
views do goes, to the logger "ebbflow" and into metrics (`ebbflow.metrics`).

    spark.streams.addListener(listener := ef.metrics.listener())
    print(ef.metrics.prometheus(view, listener))
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from threading import Lock
from typing import Any

from pyspark.sql.streaming.listener import StreamingQueryListener

from ebbflow.engine.runtime.report import LOG, Measure


class QueryListener(StreamingQueryListener):
    """Logs what streaming queries do, and keeps what each of them did last."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._last: dict[str, dict[str, Any]] = {}
        """By the id of a run: its name, its last batch, rows and seconds in all."""

    def onQueryStarted(self, event: Any) -> None:
        """A query begins."""
        self._note(event.runId, _called(event.name, event.id), running=1)
        LOG.info("query %s started", _called(event.name, event.id), extra=_about(event))

    def onQueryProgress(self, event: Any) -> None:
        """A batch is done, or there was nothing to do for a while."""
        done = event.progress
        took = float((done.durationMs or {}).get("triggerExecution", 0)) / 1000
        rows = max(done.numInputRows or 0, 0)
        name = _called(done.name, done.id)
        self._note(
            done.runId, name, batch=done.batchId, rows=rows, seconds=took, behind=_behind(done)
        )
        LOG.info(
            "query %s: batch %d, %d rows in, %.3f s", name, done.batchId, rows, took,
            extra=_about(done) | {"batch": done.batchId, "rows_in": rows, "seconds": took},
        )  # fmt: skip

    def onQueryIdle(self, event: Any) -> None:
        """There is nothing to do."""

    def onQueryTerminated(self, event: Any) -> None:
        """A query ended, or failed."""
        with self._lock:
            said = self._last.get(str(event.runId))
            if said is not None:
                said["running"] = 0
                said["failed"] = int(event.exception is not None)
        name = said["query"] if said is not None else str(event.id)
        if event.exception is None:
            LOG.info("query %s ended", name, extra=_about(event))
        else:
            words = str(event.exception).partition("\n")[0]
            LOG.error("query %s failed: %s", name, words, extra=_about(event))

    def _note(self, run: Any, name: str, **now: Any) -> None:
        with self._lock:
            said = self._last.setdefault(
                str(run), {"query": name, "running": 1, "failed": 0, "rows": 0, "seconds": 0.0}
            )
            for each in ("rows", "seconds"):
                now[each] = said[each] + now.get(each, 0)
            said.update(now)

    def measures(self) -> Iterator[Measure]:
        """What there is to watch of each query."""
        with self._lock:
            runs = [dict(each) for each in self._last.values()]
        for each in {each["query"]: each for each in runs}.values():
            labels = {"query": each["query"]}
            yield Measure(
                "query_running", "Whether a streaming query runs", each["running"], labels
            )
            yield Measure(
                "query_failed", "Whether a streaming query failed", each["failed"], labels
            )
            yield Measure("query_rows_in_total", "Rows that it read", each["rows"], labels)
            yield Measure("query_seconds_total", "Seconds of its batches", each["seconds"], labels)
            if "batch" in each:
                yield Measure("query_batch", "The number of its last batch", each["batch"], labels)
            if each.get("behind") is not None:
                words = "Epochs of a view that it has not read"
                yield Measure("query_epochs_behind", words, each["behind"], labels)


def _called(name: str | None, query: Any) -> str:
    return name or str(query)


def _about(event: Any) -> dict[str, Any]:
    found = {"query_id": str(event.id), "run_id": str(event.runId)}
    name = getattr(event, "name", None)
    return found | ({"query": name} if name else {})


def _behind(progress: Any) -> int | None:
    """How many epochs a query that reads a view is behind it."""
    found = []
    for source in progress.sources:
        end, newest = _epoch(source.endOffset), _epoch(source.latestOffset)
        if end is not None and newest is not None:
            found.append(newest - end)
    return max(found, default=None)


def _epoch(offset: Any) -> int | None:
    """The epoch of an offset of ours."""
    try:
        said = json.loads(offset) if isinstance(offset, str) else offset
    except ValueError:
        return None
    return said.get("epoch") if isinstance(said, Mapping) and set(said) == {"epoch"} else None
