"""Gaps: the changes of a program that sinks cannot receive, as the manifest notes them.

    {epoch: {"outputs": {output: reason}, "was": [line, ...], "now": [line, ...]}}

`was` and `now` are the lines of the old program and the new one. See `sinks.changed`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from difflib import ndiff
from typing import Any

from ebbflow.errors import Text

GAPS = "gaps"


def last_gap(notes: Mapping[str, Any], outputs: Collection[str] | None) -> int:
    """The last epoch whose change in one of these outputs is not known; -1 if there is none.

    >>> last_gap({GAPS: {"3": {"outputs": {"a": "..."}}, "7": {"outputs": {"b": "..."}}}}, ["a"])
    3
    """
    gaps = notes.get(GAPS, {}).items()
    return max((int(epoch) for epoch, gap in gaps if _among(gap, outputs)), default=-1)


def gap_facts(
    notes: Mapping[str, Any], epoch: int, outputs: Collection[str] | None
) -> dict[str, Any]:
    """What an error says of the gap of an epoch: the reasons, and how the program changed."""
    gap = notes[GAPS][str(epoch)]
    why = "; ".join(gap["outputs"][name] for name in _among(gap, outputs))
    facts: dict[str, Any] = {"changed": Text(f"the program, in epoch {epoch}"), "why": Text(why)}
    if gap["was"] is None:
        return facts
    lines = [line for line in ndiff(gap["was"], gap["now"]) if line[0] in "+-"]
    was = [line[2:] for line in lines if line[0] == "-"]
    now = [line[2:] for line in lines if line[0] == "+"]
    if was or now:
        facts["was"] = Text("; ".join(was) or "nothing")
        facts["now"] = Text("; ".join(now) or "nothing")
    else:
        facts["now"] = Text("the same steps; a function or a class that they use differs")
    return facts


def with_gap(
    gaps: Mapping[str, Any], first: int, epoch: int, unknown: Mapping[str, str],
    was: list[str] | None, now: list[str],
) -> dict[str, Any]:  # fmt: skip
    """The gaps from the `first` epoch on, and that of an epoch, if its change in some outputs is
    `unknown`."""
    found = {each: gap for each, gap in gaps.items() if int(each) >= first}
    if unknown:
        found[str(epoch)] = {"outputs": dict(unknown), "was": was, "now": now}
    return {GAPS: found} if found else {}


def _among(gap: Mapping[str, Any], outputs: Collection[str] | None) -> Iterable[str]:
    """The outputs of a gap that are among some; of None, all."""
    return [name for name in gap["outputs"] if outputs is None or name in outputs]
