"""Reports of a view: the work it did so far, and whether its outputs are right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ebbflow.errors import LawBroken, Text, value_text
from ebbflow.notebook import Preformatted, table
from ebbflow.zset import ZSet

LISTED = 5


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
    """

    epochs: int
    seconds: float
    inputs: Mapping[str, int | None]
    outputs: Mapping[str, int | None]
    nodes: Sequence[Any]

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
        return "\n".join(
            [f"{self.epochs:,} epochs, {self.seconds:,.3f} s", *table(head, lines, (0, 5))]
        )


def _kept_line(what: str, name: str, kept: int | None) -> tuple[str, ...]:
    return (f"{what} {name}", "", "", "not kept" if kept is None else f"{kept:,}", "", "")
