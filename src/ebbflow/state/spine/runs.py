"""Runs: segments that one epoch brought and that follow each other in the order of hashes.

An epoch that is computed by many tasks brings as many segments, each over a range of hashes of its
own. To a lookup and to a merge these are like one segment in several files: only one of them can
know a key. That they are of one epoch is told by the names of their files, so segments of different
epochs are never taken for a run, however their hashes lie, and a run is no longer than its epoch
had tasks.
"""

from __future__ import annotations

from collections.abc import Iterable

from ebbflow.state.spine.manifest import piece_epoch
from ebbflow.state.spine.segment import Segment


def follows(one: Segment, other: Segment) -> bool:
    """Whether these are pieces of one epoch, and `other` begins where `one` is over."""
    if one.ref is None or other.ref is None:
        return False
    epoch = piece_epoch(one.ref.file)
    together = epoch is not None and epoch == piece_epoch(other.ref.file)
    return together and bool(one.lasts[-1] < other.firsts[0])


def broods(segments: Iterable[Segment]) -> list[list[Segment]]:
    """The same segments in the same order, those that one epoch brought as pieces together. Merging
    them with each other would save nothing but lookups, so it waits for what comes later."""
    found: list[list[Segment]] = []
    last: int | None = None
    for segment in segments:
        epoch = None if segment.ref is None else piece_epoch(segment.ref.file)
        if found and epoch is not None and epoch == last:
            found[-1].append(segment)
        else:
            found.append([segment])
        last = epoch
    return found


def runs(segments: Iterable[Segment]) -> list[list[Segment]]:
    """The same segments in the same order, run by run."""
    found: list[list[Segment]] = []
    for segment in segments:
        if found and follows(found[-1][-1], segment):
            found[-1].append(segment)
        else:
            found.append([segment])
    return found
