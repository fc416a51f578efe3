"""Pieces: what one task of many adds to an epoch, written by the task itself.

An epoch may be computed by several tasks, in other processes or on other machines. Each writes its
segments into one file of its own, a *piece*, and sends only the refs of them to the one who holds
the store. There `Store.adopt` stages the refs, and one `commit` makes all of them part of the state
together. A piece has no manifest: it means nothing until a manifest names it, and is removed by the
store if none ever does.

A piece is flushed when `finish` returns. Its name in the folder is made safe by the store, once for
all pieces of an epoch, before the manifest that names them gets its own name; so a task need not
wait for the folder. Nobody looks at a piece before its refs are known, and these are known when it
is complete; so it has its name from the start, as a merge has.
"""

from __future__ import annotations

import re
from contextlib import suppress

from ebbflow.errors import AlgebraError
from ebbflow.state.spine.files import FileWriter
from ebbflow.state.spine.manifest import pad, piece_name
from ebbflow.state.spine.place import Place, files_at
from ebbflow.state.spine.segment import Ref, SegmentWriter
from ebbflow.state.spine.spine import Spine

_TOKEN = re.compile(r"[0-9a-f]+(-[0-9a-f]+)*")


class Piece:
    """The segments that one task adds to `epoch`. No other attempt at it may have this `token`,
    which is made of digits, the letters a to f, and hyphens between them.

    >>> import tempfile
    >>> from ebbflow.state.spine.store import Store
    >>> path = tempfile.mkdtemp()
    >>> with Store(path) as store:
    ...     spine = Spine("value")
    ...     spine.append({"Rome": 3})
    ...     piece = Piece(path, 0, "7a")
    ...     piece.add("total", spine)
    ...     for name, layout, ref in piece.finish():
    ...         store.adopt(name, ref, layout=layout)
    ...     store.commit(0)
    ...     ref.file, store.spine("total", layout="value").probe(["Rome"])
    ('part-000000000000-7a', {'Rome': 3})
    """

    def __init__(self, place: Place, epoch: int, token: str) -> None:
        if not _TOKEN.fullmatch(token):
            raise AlgebraError(
                "this is no token for a piece", token=token, remedy="such as uuid4().hex"
            )
        self.name = piece_name(epoch, token)
        self._files = files_at(place)
        self._writer: FileWriter | None = None
        self._found: list[tuple[str, str, Ref]] = []

    def add(self, spine_name: str, spine: Spine) -> None:
        """Write all that is staged in a spine, as one segment."""
        out: SegmentWriter | None = None
        for part in spine.merged(spine.staged, last=False):
            if out is None:
                if self._writer is None:
                    self._writer = self._files.create(self.name)
                pad(self._writer)
                out = SegmentWriter(part, self._writer)
            out.add(part)
        if out is not None:
            self._found.append((spine_name, spine.layout, out.finish()))

    def finish(self) -> list[tuple[str, str, Ref]]:
        """Return when all is safe: of each segment the spine, its layout, and where it is. Where
        nothing was added, there is no file.
        """
        if self._writer is not None:
            self._writer.sync()
            self._writer.close()
        return list(self._found)

    def abandon(self) -> None:
        """Leave nothing behind."""
        if self._writer is not None:
            self._writer.close()
            with suppress(OSError):
                self._files.remove(self.name)
        self._writer = None
        self._found = []
