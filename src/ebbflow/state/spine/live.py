"""Live: snapshots of a state that somebody else is writing, without a lock and in nobody's way.

The writer removes files that no retained epoch needs, also while another process is about to read
them. A file that is mapped can be read after it was removed; so a reader maps all it will need when
it opens a snapshot, and where one of the files is gone by then, begins again with a newer epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from time import sleep

from ebbflow.errors import Damaged, StateError
from ebbflow.state.spine.files import Files
from ebbflow.state.spine.manifest import Manifest, epochs
from ebbflow.state.spine.place import Place, files_at
from ebbflow.state.spine.snapshot import Snapshot

TRIES = 200
Wanted = Callable[[Snapshot], Iterable[str]]
"""The names of the spines that a reader will need of a snapshot."""


def newest_name(files: Files) -> str:
    """The name of the newest manifest; empty where there is none."""
    known = epochs(files.names())
    return Manifest(*known[-1]).name if known else ""


def live_snapshot(
    place: Place,
    epoch: int | None = None,
    *,
    unpickle: bool = False,
    wanted: Wanted = lambda _: (),
) -> Snapshot:
    """A snapshot of the newest epoch, or of one that is retained, of which the wanted spines stay
    readable whatever the writer removes. Where a file is missing though the writer has written
    nothing since, it is damaged, and that is said."""
    files = files_at(place)
    was = ""
    for tries in range(TRIES):
        try:
            found = Snapshot(files, epoch, unpickle=unpickle)
            found.hold(set(wanted(found)))
            return found
        except (Damaged, FileNotFoundError):
            now = newest_name(files)
            if now == was and tries > 3:
                raise
            was = now
            sleep(0.001 * tries)
    raise StateError(
        "the state is written faster than it can be opened: the files of an epoch are gone before "
        "they are found",
        remedy="a larger keep_epochs where it is written",
    )
