"""What can be set of the Spark engine."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, get_args

from ebbflow.engine.runtime.ages import require_age
from ebbflow.engine.runtime.batches import KEEP
from ebbflow.errors import CompositionError
from ebbflow.paths import checked_permissions, state_path

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ebbflow.state.spine import Place

SMALL = 20_000
Mode = Literal["auto", "driver", "single_task", "staged", "bulk"]
MODES = get_args(Mode)


@dataclass(frozen=True)
class Options:
    """See `ebbflow.spark`."""

    path: Place
    buckets: int | None = None
    mode: Mode = "auto"
    small: int = SMALL
    in_driver: bool = False
    keep_epochs: int = 3
    keep_for: timedelta = timedelta(0)
    strict: bool = False
    memory: str = "256MB"
    progress: bool | None = None
    permissions: int | None = None
    unpickle: bool = True
    keep_batches: int = KEEP
    readable: bool = False
    narrow: bool = False

    def __post_init__(self) -> None:
        path: Any = self.path
        if not hasattr(path, "files"):
            state_path(path, "spark(): path")
        checked_permissions(self.permissions)
        if self.mode not in MODES:
            raise CompositionError(
                f"spark(mode={self.mode!r}): there is no such mode",
                remedy="one of " + ", ".join(map(repr, MODES)),
            )
        require_age("spark", self.keep_for)
        if self.buckets is not None and self.buckets < 1:
            raise CompositionError(
                f"spark(buckets={self.buckets!r}): there must be one at least", remedy="buckets=8"
            )

    @property
    def measures(self) -> bool:
        """Whether changes that are not small go the way that should be fastest."""
        return self.small == SMALL

    def tasks(self, session: SparkSession) -> int:
        """In how many ranges the keys are divided."""
        if self.buckets is not None:
            return self.buckets
        found: Any = session.conf.get("spark.sql.shuffle.partitions", "8")
        return int(found)
