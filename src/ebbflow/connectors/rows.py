"""The rows of a change, whichever engine it comes from, some at a time.

What an epoch changed is a ZSet of a local view, and a DataFrame with `__weight` of a view on Spark;
of a program with several outputs, one for each. A connector is told of one output, and reads its
rows here in *blocks*: lists of rows with weights, of which one at a time is in memory. What is made
for blocks serves both engines. In the blocks of one change a row may come more than once, and the
old and the new row of a key may be in different blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from ebbflow.engine.runtime.lookup import key_columns
from ebbflow.engine.runtime.sinks.sink import Sink
from ebbflow.engine.runtime.table.column_types import columns_of
from ebbflow.errors import CompositionError, Text
from ebbflow.record import type_text
from ebbflow.zset import ZSet

Block = list[tuple[Any, int]]
"""Some rows with their weights."""
BLOCK = 10_000
"""How many rows there are in a block at most."""


def blocks(change: Any, row_type: Any, size: int = BLOCK) -> Iterator[Block]:
    """The rows of a change with their weights, at most `size` at a time; none where there is none.

    >>> list(blocks(ZSet({"ebb": 1, "flow": -1, "sea": 2}), str, size=2))
    [[('ebb', 1), ('flow', -1)], [('sea', 2)]]
    """
    if not isinstance(change, ZSet):
        yield from _from_spark(change, row_type, size)
        return
    items = iter(change.items())
    while block := list(islice(items, size)):
        yield block


def _from_spark(frame: Any, row_type: Any, size: int) -> Iterator[Block]:
    """The same of a DataFrame: workers pack blocks, and one partition at a time comes here."""
    import pyarrow as pa

    from ebbflow.engine.runtime.table.arrow import from_arrow

    packed = frame.mapInArrow(Packed(size), "block binary")
    for row in packed.toLocalIterator():
        for batch in pa.ipc.open_stream(row.block):
            yield list(zip(*from_arrow(batch, row_type), strict=True))


class Packed:
    """What packs the rows of a partition into blocks, each of them bytes; runs on workers."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __call__(self, given: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for batch in given:
            for first in range(0, batch.num_rows, self.size):
                out = pa.BufferOutputStream()
                with pa.ipc.new_stream(out, batch.schema) as writer:
                    writer.write_batch(batch.slice(first, self.size))
                block = pa.array([out.getvalue().to_pybytes()], pa.binary())
                yield pa.RecordBatch.from_arrays([block], ["block"])


class OutputSink(Sink):
    """A sink of one output of a view: the only one, or the one that is named."""

    output: str | None = None
    node: Any = None
    """The node of the plan that is the output; known when the sink is added to a view."""

    def attach(self, view: Any) -> None:
        """Know the output; an error where there is none of that name, or it could be several."""
        known: Mapping[str, Any] = view.plan.outputs
        if self.output is None and len(known) > 1:
            raise CompositionError(
                f"the sink {self.name!r} is for one output, and the program has several",
                outputs=Text(", ".join(known)),
                remedy=f"output={next(iter(known))!r}",
            )
        name = next(iter(known)) if self.output is None else self.output
        view._require("output", name, known)
        self.node, self.outputs = known[name], [name]
        self._among = None if len(known) == 1 else name

    def blocks(self, change: Any, size: int = BLOCK) -> Iterator[Block]:
        """What a change has of the output, in blocks."""
        mine = change if self._among is None else change[self._among]
        return blocks(mine, self.node.type, size)


def required_key(
    call: str, node: Any, given: str | Sequence[str] | None, otherwise: str
) -> tuple[str, ...]:
    """The fields that tell the rows of an output apart: those that are given, or that the program
    shows. `otherwise` is what to do with rows that have none."""
    found = (given,) if isinstance(given, str) else given or key_columns(node)
    if not found:
        raise CompositionError(
            f"{call}: the rows of the output have no key that the program shows",
            rows=Text(type_text(node.type)),
            created=node.place,
            remedy=f'key="id", fields of which no two rows have the same; or {otherwise}',
        )
    names = [name for name, _ in columns_of(node.type)]
    if unknown := [each for each in found if each not in names]:
        raise CompositionError(
            f"{call}: the rows of the output have no field {unknown[0]!r}",
            fields=Text(", ".join(names)),
            created=node.place,
            remedy=f"key={names[0]!r}",
        )
    return tuple(found)
