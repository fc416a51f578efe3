"""What an epoch makes of a spine: the segments it keeps, and those it writes.

What is only in memory is written, merged with its neighbours that are also in memory. A merge that
is due and small is done on the way. Segments that are on disk, those adopted in this epoch among
them, stay where they are, unless such a merge takes them in, or their file is nearly empty.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from ebbflow.state.spine.files import FileWriter
from ebbflow.state.spine.manifest import pad
from ebbflow.state.spine.mapped import need
from ebbflow.state.spine.segment import Ref, Segment, SegmentWriter
from ebbflow.state.spine.spine import Spine

RELOCATED = 1 << 20
"""How many bytes of old segments an epoch copies, at most, to give back the space around them."""


@dataclass
class SpinePlan:
    """The segments of a spine after an epoch, those of them that were open before, and how many
    entries are new.
    """

    refs: list[Ref] = field(default_factory=list)
    kept: dict[Ref, Segment] = field(default_factory=dict)
    entries: int = 0


def planned(
    writer: FileWriter,
    name: str,
    spine: Spine,
    *,
    segments: Sequence[Segment],
    free: int,
    adopted: Collection[str],
) -> SpinePlan:
    """Write what is new in a spine into the file that will be called `name`. No merge is at work on
    the segments from `free` on; `adopted` are the files that no epoch has yet.
    """
    at = spine.due(segments[free:], first=not free)
    begin = len(segments)
    if at is not None and sum(map(len, segments[free + at :])) <= spine.chunk:
        begin = free + at
    fresh = (s for s in segments if s.ref is None or s.ref.file in adopted)
    plan = SpinePlan(entries=sum(map(len, fresh)))
    places = range(len(segments))
    for new, run in groupby(places, lambda i: i >= begin or segments[i].ref is None):
        group = list(run)
        if new:
            ref = _written(writer, spine, [segments[i] for i in group], last=group[0] == 0)
            plan.refs += [] if ref is None else [replace(ref, file=name)]
            continue
        for i in group:
            ref = segments[i].ref
            assert ref is not None
            plan.refs.append(ref)
            plan.kept[ref] = segments[i]
    return plan


def _written(
    writer: FileWriter, spine: Spine, segments: list[Segment], *, last: bool
) -> Ref | None:
    out: SegmentWriter | None = None
    for part in spine.merged(segments, last=last):
        if out is None:
            pad(writer)
            out = SegmentWriter(part, writer)
        out.add(part)
    return None if out is None else out.finish()


def relocated(
    writer: FileWriter,
    name: str,
    refs: list[Ref],
    *,
    busy: Collection[str],
    size: Callable[[str], int],
    content: Callable[[str], memoryview],
) -> dict[Ref, Ref]:
    """Copy segments out of files that hold little else that is still needed, when such files take
    more room than the state. `busy` are files that merges read.
    """
    live: dict[str, int] = {}
    for ref in refs:
        live[ref.file] = live.get(ref.file, 0) + ref.length
    live.pop(name, None)
    if sum(map(size, live)) <= 2 * sum(live.values()) + RELOCATED:
        return {}
    sparse = [file for file in live if file not in busy and 2 * live[file] < size(file)]
    found: dict[Ref, Ref] = {}
    room = RELOCATED
    for file in sorted(sparse, key=lambda file: live[file]):
        room -= live[file]
        if room < 0:
            break
        for ref in (ref for ref in refs if ref.file == file):
            pad(writer)
            found[ref] = replace(ref, file=name, offset=writer.at)
            begin, end = ref.offset, ref.offset + ref.length
            need(content(file), begin, end)
            writer.write(bytes(content(file)[begin:end]))
    return found
