"""Reports of a view: the work it did so far, and whether its outputs are right.

What an epoch did is `EpochStats`: one record of the logger "ebbflow" for each epoch, with the same
fields as attributes of the record. There is nothing of a row in it. `ViewMetrics` is how a view is
doing, for those who watch it (`ebbflow.metrics`); both are made when somebody asks.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from ebbflow.errors import LawBroken, Text, value_text
from ebbflow.notebook import Preformatted, table
from ebbflow.zset import ZSet

LISTED = 5
LOG = logging.getLogger("ebbflow")


@dataclass(frozen=True)
class Verified:
    """A view was found equal to recomputing: at which epoch, and with how many rows."""

    epoch: int
    rows: Mapping[str, int]


def compare(epoch: int, found: Mapping[str, ZSet[Any]], right: Mapping[str, ZSet[Any]]) -> Verified:
    """Whether the outputs of a view are those computed from scratch; an error where not.

    >>> compare(7, {"n": ZSet.of([1, 2])}, {"n": ZSet.of([2, 1])})
    Verified(epoch=7, rows={'n': 2})
    """
    for name, rows in right.items():
        wrong = found[name] - rows
        if wrong:
            raise LawBroken(
                f"output {name!r} is not what recomputing it gives",
                epoch=epoch,
                missing=_listed(-wrong),
                extra=_listed(wrong),
                remedy="look for a function that gives another answer for the same row or changes "
                "one, and for a reducer whose remove does not undo its add (`ebbflow check`)",
            )
    return Verified(epoch, {name: len(rows) for name, rows in found.items()})


def _listed(rows: ZSet[Any]) -> Text:
    """The first few rows that are there."""
    there = {row: weight for row, weight in rows.items() if weight > 0}
    first = [
        value_text(row) if weight == 1 else f"{value_text(row)} ({weight} times)"
        for row, weight in list(there.items())[:LISTED]
    ]
    rest = [f"and {len(there) - LISTED} more"] if len(there) > LISTED else []
    return Text(", ".join(first + rest) or "none")


@dataclass(frozen=True, repr=False)
class ViewStats(Preformatted):
    """The work of a view so far.

    `nodes` are those of the machine: label, place, rows in and out, rows of state, seconds.
    `inputs` and `outputs` say how many different rows are kept for each; None where none are.
    `recomputed` says in how many epochs most rows went, and all was computed again from the rest.
    """

    epochs: int
    seconds: float
    inputs: Mapping[str, int | None]
    outputs: Mapping[str, int | None]
    nodes: Sequence[Any]
    recomputed: int = 0

    def __repr__(self) -> str:
        head = ("", "rows in", "rows out", "state rows", "ms", "place")
        lines = [
            *(_kept_line("input", name, kept) for name, kept in self.inputs.items()),
            *(
                (
                    "  " * node.depth + str(node.label),
                    f"{node.rows_in:,}",
                    f"{node.rows_out:,}",
                    f"{node.state_rows:,}",
                    f"{node.seconds * 1e3:,.1f}",
                    str(node.place),
                )
                for node in self.nodes
            ),
            *(_kept_line("output", name, kept) for name, kept in self.outputs.items()),
        ]
        again = f", {self.recomputed:,} of them computed again" if self.recomputed else ""
        did = f"{self.epochs:,} epochs{again}, {self.seconds:,.3f} s"
        return "\n".join([did, *table(head, lines, (0, 5))])


def _kept_line(what: str, name: str, kept: int | None) -> tuple[str, ...]:
    return (f"{what} {name}", "", "", "not kept" if kept is None else f"{kept:,}", "", "")


# ---- epochs ----


@dataclass(frozen=True)
class EpochStats:
    """One epoch: its number, how it ran, how many rows went in and came out, and the time it took;
    on Spark, of that in the job, and committing. Rows out are None where everything was new and is
    derived.
    """

    epoch: int
    mode: str
    rows_in: int
    rows_out: Mapping[str, int | None]
    seconds: float
    job_seconds: float | None = None
    commit_seconds: float | None = None

    def log(self, level: int, view: str, path: str | None) -> None:
        """Tell the logger of it."""
        out = sum(rows or 0 for rows in self.rows_out.values())
        LOG.log(
            level, "%s: epoch %d, %s, %d rows in, %d out, %.3f s",
            view, self.epoch, self.mode, self.rows_in, out, self.seconds,
            extra={"view": view, "path": path, **asdict(self), "rows_out": dict(self.rows_out)},
        )  # fmt: skip


# ---- how it is doing ----


class Measure(NamedTuple):
    """A number to watch: its name, what it is, and of what."""

    name: str
    help: str
    value: float
    labels: Mapping[str, str]


class NodeWork(NamedTuple):
    """What a node did since the view was opened."""

    label: str
    place: str
    rows_in: int
    rows_out: int
    seconds: float


class StateSize(NamedTuple):
    """How much is kept under one label: entries, and bytes where it is on disk."""

    label: str
    entries: int
    bytes: int | None


@dataclass(frozen=True)
class ViewMetrics:
    """How a view is doing: its last epoch, the time of all since it was opened and of the last, the
    work of its nodes, what it keeps, in how many files and bytes, and the last epoch that each of
    its sinks has had."""

    view: str
    path: str | None
    epoch: int
    seconds: float
    last_seconds: float
    nodes: tuple[NodeWork, ...]
    state: tuple[StateSize, ...]
    files: int | None
    bytes: int | None
    sinks: Mapping[str, int]


def added_up(sizes: Iterable[StateSize]) -> tuple[StateSize, ...]:
    """Sizes by label, each label once.

    >>> added_up([StateSize("a", 1, 10), StateSize("b", 2, 20), StateSize("a", 3, 30)])
    (StateSize(label='a', entries=4, bytes=40), StateSize(label='b', entries=2, bytes=20))
    """
    found: dict[str, StateSize] = {}
    for label, entries, size in sizes:
        _, before, had = found.get(label, StateSize(label, 0, None))
        whole = had if size is None else (had or 0) + size
        found[label] = StateSize(label, before + entries, whole)
    return tuple(found.values())


def stored_sizes(info: Mapping[str, Any], labels: Mapping[str, str]) -> tuple[StateSize, ...]:
    """What a store keeps, by the labels of its parts."""
    return added_up(
        StateSize(labels.get(each["operator"], each["operator"]), each["entries"], each["bytes"])
        for each in info["spines"]
    )
