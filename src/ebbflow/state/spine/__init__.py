"""State on disk: sorted immutable segments, and one manifest per epoch.

It needs `pyarrow` and `numpy`, which `import ebbflow` does not load: install `ebbflow[durable]`.
"""

from ebbflow.state.cells import ABSENT
from ebbflow.state.spine.files import Files, FileWriter
from ebbflow.state.spine.folder import Folder
from ebbflow.state.spine.live import live_snapshot
from ebbflow.state.spine.piece import Piece
from ebbflow.state.spine.place import Place, files_at, object_store
from ebbflow.state.spine.segment import Ref
from ebbflow.state.spine.snapshot import Snapshot
from ebbflow.state.spine.spine import Spine
from ebbflow.state.spine.store import Store

__all__ = [
    "ABSENT", "FileWriter", "Files", "Folder", "Piece", "Place", "Ref", "Snapshot", "Spine",
    "Store", "files_at", "live_snapshot", "object_store",
]  # fmt: skip
