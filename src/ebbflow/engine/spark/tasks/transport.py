"""How a program gets to the workers, and rows from task to task.

A program is pickled once, with its functions and classes, and compiled once in every worker. Its
classes are put where `pickle` looks for them, so that a row of a class that the user's script
defines can be pickled and unpickled in workers, which have never seen that script.

Rows go from task to task as pickles of plain tuples with the class said once: nothing is lost, and
nothing has to fit into columns. Columns go as Arrow streams. A *blob* is either.
"""

from __future__ import annotations

import importlib
import pickle
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from io import BytesIO
from types import ModuleType
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
from pyspark import cloudpickle

from ebbflow.engine.runtime.stages import Partial
from ebbflow.engine.spark.tasks.replica import Replica
from ebbflow.errors import CompositionError, Text, cause_of, error_text, is_redacted, redact
from ebbflow.flow.plan import Plan
from ebbflow.nan import loads
from ebbflow.record import fields_of, maker, taken_apart
from ebbflow.state.spine.columns import PICKLE
from ebbflow.state.spine.hashing import hashes
from ebbflow.zset import without_zeros

Delta = dict[Any, int]
_MAIN = "__main__"
_STREAM = b"\xff\xff\xff\xff"
"""How an Arrow stream begins, and no pickle."""


@dataclass(frozen=True)
class PackedProgram:
    """A program on its way: what a worker needs to make a replica of it."""

    payload: bytes = field(repr=False)
    token: str

    def __getstate__(self) -> tuple[Any, ...]:
        return self.payload, self.token, is_redacted()

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        """In a worker, errors show as much of rows as where the program came from."""
        payload, token, redacted = state
        vars(self).update(payload=payload, token=token)
        redact(redacted)


def pack_program(replica: Replica, check_input: bool) -> PackedProgram:
    """Pack the program of a replica."""
    plan = replica.plan
    classes = _classes(plan)
    try:
        kept = replica.derived, replica.readable
        program = _dumps((plan, replica.names, check_input, *kept, classes))
    except Exception as error:
        raise CompositionError(
            "this program cannot be sent to Spark's workers",
            cause=Text(error_text(error)),
            remedy="functions that do not hold connections, locks, open files or a Spark session",
        ) from cause_of(error)
    token = uuid4().hex
    _known[token] = classes
    return PackedProgram(pickle.dumps((list(sys.path), program), PICKLE), token)


def _classes(plan: Plan) -> list[type]:
    """The classes of the user's script that can be sent, and the row types of the program."""
    main = sys.modules.get(_MAIN)
    found = [cls for cls in vars(main).values() if isinstance(cls, type)] if main else []
    ours = [cls for cls in found if cls.__module__ == _MAIN and _can_be_sent(cls)]
    rows = [node.type for node in plan.nodes() if fields_of(node.type) is not None]
    return list(dict.fromkeys([*ours, *rows]))


def _can_be_sent(cls: type) -> bool:
    try:
        _dumps(cls)
    except Exception:
        return False
    return True


def _dumps(thing: Any) -> bytes:
    made: bytes = cloudpickle.dumps(thing, PICKLE)  # type: ignore[no-untyped-call]
    return made


_replicas: dict[str, Replica] = {}
_KEPT = 8


def replica_of(packed_program: PackedProgram) -> Replica:
    """The replica of a program in this process; made when it is first asked for."""
    found = _replicas.get(packed_program.token)
    if found is None:
        path, program = pickle.loads(packed_program.payload)
        sys.path += [each for each in path if each not in sys.path]
        plan, names, check_input, derived, readable, classes = pickle.loads(program)
        for cls in classes:
            _install(cls)
        while len(_replicas) >= _KEPT:
            _replicas.pop(next(iter(_replicas)))
        _known[packed_program.token] = classes
        found = Replica(
            plan, check_input=check_input, names=names, derived=derived, readable=readable
        )
        found.token = packed_program.token
        _replicas[packed_program.token] = found
    return found


def _install(cls: type) -> None:
    """Put a class where `pickle` looks for it, unless it is there."""
    name = cls.__qualname__
    if "." in name or "<" in name or "(" in name:
        return
    try:
        module: Any = importlib.import_module(cls.__module__)
    except ImportError:
        module = sys.modules[cls.__module__] = ModuleType(cls.__module__)
    if getattr(module, name, None) is not cls:
        setattr(module, name, cls)


# ---- rows from task to task ----


_known: dict[str, list[type]] = {}


def class_at(token: str, number: int) -> type:
    """A class of a program by its number."""
    return _known[token][number]


class Pickler(pickle.Pickler):
    """Pickles the classes of a program by their number: some cannot be found by name."""

    def __init__(self, file: BytesIO, token: str) -> None:
        super().__init__(file, PICKLE)
        self.token = token
        self.numbers = {cls: i for i, cls in enumerate(_known.get(token, ()))}

    def reducer_override(self, thing: Any) -> Any:
        if isinstance(thing, type) and thing in self.numbers:
            return class_at, (self.token, self.numbers[thing])
        return NotImplemented


def packed(rows: Iterable[Any], weights: Iterable[int], token: str = "") -> bytes:
    """Rows with their weights, to be sent to where the program of this token is.

    >>> unpacked([packed(["a", "b"], [1, -2]), packed(["b"], [2])])
    {'a': 1}
    """
    rows = list(rows)
    classes = set(map(type, rows))
    cls = classes.pop() if len(classes) == 1 else None
    if cls is None or fields_of(cls) is None:
        cls = None
    else:
        rows = list(map(taken_apart(cls), rows))
    out = BytesIO()
    try:
        Pickler(out, token).dump((cls, rows, list(weights)))
    except Exception as error:
        raise CompositionError(
            "a row cannot be sent to Spark's workers, as it cannot be pickled",
            row=next((row for row in rows if not _can_be_pickled(row, token)), None),
            cause=Text(error_text(error)),
            remedy="rows made of plain values, and classes at the top of a module",
        ) from cause_of(error)
    return out.getvalue()


def _can_be_pickled(row: Any, token: str) -> bool:
    try:
        Pickler(BytesIO(), token).dump(row)
    except Exception:
        return False
    return True


def unpacked(blobs: Iterable[bytes]) -> Delta:
    """The rows of what was sent, with their weights added up."""
    total: Delta = {}
    for blob in blobs:
        add(total, *opened(blob))
    return without_zeros(total)


def partials(blobs: Iterable[bytes]) -> Partial:
    """The pairs of what was sent: keys, with what is added to their cells."""
    return Partial(pairs(blobs))


def pairs(blobs: Iterable[bytes]) -> Iterator[tuple[Any, Any]]:
    """The rows of what was sent, each with what was sent as its weight."""
    for blob in blobs:
        yield from zip(*opened(blob), strict=True)


def opened(blob: bytes) -> tuple[list[Any], list[Any]]:
    """The rows of one blob, and their weights."""
    cls, rows, weights = loads(blob)
    if cls is not None:
        rows = list(map(maker(cls), rows))
    return rows, weights


def add(total: Delta, rows: list[Any], weights: list[int]) -> None:
    """Add rows to a change; some weights may be zero then."""
    if not total:
        total.update(zip(rows, weights, strict=True))
        if len(total) == len(rows):
            return
        total.clear()
    get = total.get
    for row, weight in zip(rows, weights, strict=True):
        total[row] = get(row, 0) + weight


def in_stream(table: Any) -> bytes:
    """A table as a blob; `of_stream` reads it."""
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, table.schema) as stream:
        stream.write_table(table)
    blob: bytes = out.getvalue().to_pybytes()
    return blob


def of_stream(blob: bytes) -> Any:
    """The table in a blob; None where it holds rows, which are pickled."""
    if not blob.startswith(_STREAM):
        return None
    with pa.ipc.open_stream(blob) as stream:
        return stream.read_all()


def routed(delta: Delta, key: Any, tasks: int, token: str = "") -> Iterable[tuple[int, bytes]]:
    """The rows of a change, packed for the task that has the hash of their key."""
    rows = list(delta)
    keys = rows if tasks == 1 else list(map(key, rows))
    return sent(keys, rows, list(delta.values()), tasks, token)


def sent(
    keys: list[Any], rows: list[Any], weights: list[Any], tasks: int, token: str = ""
) -> Iterator[tuple[int, bytes]]:
    """Rows with their weights, packed for the task that has the hash of their key."""
    if tasks == 1:
        yield 0, packed(rows, weights, token)
        return
    places = ranges(hashes(keys), tasks)
    for task in np.unique(places).tolist():
        at = np.flatnonzero(places == task).tolist()
        yield task, packed([rows[i] for i in at], [weights[i] for i in at], token)


def ranges(words: Any, tasks: int) -> Any:
    """Which of so many equal ranges each hash is in.

    >>> ranges(np.array([0, 2**63, 2**64 - 1], np.uint64), 4).tolist()
    [0, 2, 3]
    """
    return ((words >> np.uint64(32)) * np.uint64(tasks) >> np.uint64(32)).astype(np.int64)


def limits(task: int, tasks: int) -> tuple[int, int]:
    """The hashes that a task has: from the first, to before the second.

    >>> limits(0, 2), limits(1, 2)
    ((0, 9223372036854775808), (9223372036854775808, 18446744073709551616))
    """
    low, high = (-(-(i << 32) // tasks) << 32 for i in (task, task + 1))
    return low, high
