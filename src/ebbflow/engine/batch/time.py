"""What nodes on rows with a time mean, beside sessions."""

from __future__ import annotations

from typing import Any

from ebbflow.engine import batch
from ebbflow.engine.batch import Weights, rows_of
from ebbflow.errors import ChangeError
from ebbflow.flow.plan.time import SessionReduce, Within


@rows_of.register
def _session_reduce(node: SessionReduce, rows: Weights) -> Weights:
    out = []
    for key, group in batch._bags(node, rows):
        timed = sorted(((batch._call(node, node.time, row), row) for row in group), key=_time)
        while timed:
            size = 1
            while size < len(timed) and timed[size][0] - timed[size - 1][0] <= node.gap:
                size += 1
            session, timed = timed[:size], timed[size:]
            bag = {row: group[row] for _, row in session}
            value = batch._call_on_group(node, node.reducer, key, bag)
            parts = (session[0][0], session[-1][0] + node.gap, *batch._key_parts(key, node.width))
            front = [parts[i] for i in node.front]
            out.append((batch._record(node, (*front, *(value if node.spread else (value,)))), 1))
    return batch._total(node, out)


@rows_of.register
def _within(node: Within, pairs: Weights) -> Weights:
    times = [value for (tag, value), _ in pairs.items() if tag == Within.NOW]
    if len(times) > 1:
        raise ChangeError(
            "within: a clock has one row, and here are more",
            times=times,
            created=node.place,
            remedy="ebbflow.clock(name), or one row: agg(now=ebbflow.max(field))",
        )
    found: Weights = {}
    for (tag, row), weight in pairs.items():
        if tag == Within.ROW and times:
            at = batch._call(node, node.time, row)
            if times[0] - node.span < at <= times[0]:
                found[row] = weight
    return found


def _time(timed: tuple[Any, Any]) -> Any:
    return timed[0]
