"""Metrics of views, for those who watch them: Prometheus, JSON lines, listeners of Spark's.

All of it is read off `view.metrics()` when somebody asks; nothing is counted for it. What an epoch
did is a record of the logger "ebbflow", with its fields as attributes, which `JsonLines` writes as
a line of JSON each.

    logging.getLogger("ebbflow").setLevel("INFO")
    handler.setFormatter(ef.metrics.JsonLines())     a line for each epoch
    ef.metrics.prometheus(view)                      text, as a Prometheus server reads it
    ef.metrics.serve(view, port=9464)                the same, at /metrics
    spark.streams.addListener(ef.metrics.listener()) streaming queries, in both places
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ebbflow.engine.runtime.report import Measure, ViewMetrics

if TYPE_CHECKING:
    from http.server import ThreadingHTTPServer

    from ebbflow.engine.spark.listener import QueryListener

__all__ = ["JsonLines", "MetricsServer", "listener", "prometheus", "serve"]


def __dir__() -> list[str]:
    """The public names."""
    return sorted(__all__)


_OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonLines(logging.Formatter):
    """Writes a record as one line of JSON: when, at which level, what is said, and every field that
    came with it. It is a formatter for any handler of `logging`.

    >>> said = {"msg": "epoch 7", "levelname": "INFO", "epoch": 7, "created": 0}
    >>> JsonLines().format(logging.makeLogRecord(said))
    '{"time": "1970-01-01T00:00:00+00:00", "level": "INFO", "message": "epoch 7", "epoch": 7}'
    """

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        time = datetime.fromtimestamp(record.created, UTC).isoformat()
        said = {"time": time, "level": record.levelname, "message": record.getMessage()}
        more = {name: value for name, value in vars(record).items() if name not in _OWN}
        if record.exc_info:
            more["error"] = self.formatException(record.exc_info)
        return json.dumps({**said, **more}, default=str)


def prometheus(*watched: Any) -> str:
    """What there is to watch of views, and of listeners to queries, in the text format of
    Prometheus.

    >>> import ebbflow as ef
    >>> view = ef.Input("words", str).group_by(size=len).agg(n=ef.count()).run()
    >>> _ = view.step(words=["ebb", "flow", "sea"])
    >>> print(prometheus(view))  # doctest: +ELLIPSIS
    # HELP ebbflow_epoch The number of the last epoch
    # TYPE ebbflow_epoch gauge
    ebbflow_epoch{view="output"} 1
    ...
    # HELP ebbflow_state_entries Rows and other entries that are kept
    # TYPE ebbflow_state_entries gauge
    ebbflow_state_entries{view="output",part="input words"} 3
    ebbflow_state_entries{view="output",part="reduce"} 2
    """
    found: dict[str, list[Measure]] = {}
    for each in watched:
        for measure in each.measures() if hasattr(each, "measures") else of_view(each.metrics()):
            found.setdefault(measure.name, []).append(measure)
    return "\n".join(line for some in found.values() for line in _lines(some))


def _lines(measures: list[Measure]) -> Iterator[str]:
    first = measures[0]
    name = f"ebbflow_{first.name}"
    yield f"# HELP {name} {first.help}"
    yield f"# TYPE {name} {'counter' if name.endswith('_total') else 'gauge'}"
    for each in measures:
        labels = ",".join(f'{label}="{_escaped(value)}"' for label, value in each.labels.items())
        yield f"{name}{{{labels}}} {each.value}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def of_view(now: ViewMetrics) -> Iterable[Measure]:
    """What there is to watch of a view."""
    view = {"view": now.view} | ({"path": now.path} if now.path else {})
    yield Measure("epoch", "The number of the last epoch", now.epoch, view)
    yield Measure("seconds_total", "Seconds of all epochs since it was opened", now.seconds, view)
    yield Measure("last_epoch_seconds", "Seconds of the last epoch", now.last_seconds, view)
    for number, (label, place, rows_in, rows_out, seconds) in enumerate(now.nodes):
        node = {**view, "node": label, "place": place, "number": str(number)}
        yield Measure("node_rows_in_total", "Rows that reached a node", rows_in, node)
        yield Measure("node_rows_out_total", "Rows that a node gave", rows_out, node)
        yield Measure("node_seconds_total", "Seconds of a node", seconds, node)
    for label, entries, size in now.state:
        part = {**view, "part": label}
        yield Measure("state_entries", "Rows and other entries that are kept", entries, part)
        if size is not None:
            yield Measure("state_bytes", "Bytes of what is kept", size, part)
    if now.files is not None:
        yield Measure("state_files", "Files of the newest epoch", now.files, view)
    for name, epoch in now.sinks.items():
        sink = {**view, "sink": name}
        yield Measure("sink_epochs_behind", "Epochs a sink has not had", now.epoch - epoch, sink)


# ---- over HTTP ----


class MetricsServer:
    """Gives metrics at `/metrics`, in a thread of its own, until it is closed; made by `serve`."""

    def __init__(self, server: ThreadingHTTPServer) -> None:
        from threading import Thread

        self._server = server
        self.url = f"http://{server.server_address[0]!s}:{server.server_address[1]}/metrics"
        self._thread = Thread(target=server.serve_forever, name="ebbflow metrics", daemon=True)
        try:
            self._thread.start()
        except BaseException:  # where there are no threads
            server.server_close()
            raise

    def close(self) -> None:
        """Stop."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> MetricsServer:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def serve(*watched: Any, port: int = 9464, host: str = "127.0.0.1") -> MetricsServer:
    """Give `prometheus(...)` to whoever asks `http://host:port/metrics`, from a thread of this
    process. Port 0 is any that is free; `url` says which.

    >>> import ebbflow as ef
    >>> from urllib.request import urlopen
    >>> view = ef.Input("words", str).run()
    >>> with serve(view, port=0) as server, urlopen(server.url) as answer:
    ...     print(answer.read().decode().splitlines()[2])
    ebbflow_epoch{view="output"} 0
    """
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path.partition("?")[0] != "/metrics":
                self.send_error(404)
                return
            try:
                body = (prometheus(*watched) + "\n").encode()
            except Exception as error:  # a view that was closed, for one
                self.send_error(503, str(error).partition("\n")[0])
                return
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *given: Any) -> None:
            """Who asks is not told to anybody."""

    return MetricsServer(ThreadingHTTPServer((host, port), Handler))


def listener() -> QueryListener:
    """A listener for `spark.streams.addListener`: what streaming queries do is logged as epochs
    are, and `prometheus(view, listener)` has it too. It needs PySpark."""
    from ebbflow.engine.spark.listener import QueryListener

    return QueryListener()
