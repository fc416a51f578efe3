"""`spark`: the engine to give to `run`."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from ebbflow.engine.runtime.batches import KEEP
from ebbflow.engine.spark.checks import check_session, require_shared
from ebbflow.engine.spark.connect import is_connect
from ebbflow.engine.spark.options import SMALL, Mode, Options
from ebbflow.engine.spark.session import require_packages, session
from ebbflow.errors import CompositionError, place
from ebbflow.flow.plan import Plan
from ebbflow.flow.rewrite import narrow_inputs
from ebbflow.keywords import checked

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ebbflow.engine.spark.view import SparkView
    from ebbflow.state.spine import Place


class Engine:
    """Runs programs on Spark; made by `spark`."""

    def __init__(self, session: SparkSession | None, options: Options) -> None:
        self.session, self.options = session, options

    def run(self, plan: Plan, *, check_input: bool = True, **options: Any) -> SparkView:
        """Run a plan: begin with empty inputs, or with the state that is at the path."""
        if options:
            raise CompositionError(
                f"run({', '.join(f'{name}=...' for name in options)}): not with an engine",
                remedy="spark(path=..., ...) takes the options of this engine",
            )
        require_packages()
        from ebbflow.engine.runtime.table.untyped import require_types
        from ebbflow.engine.spark.view import SparkView

        plan = narrow_inputs(plan) if self.options.narrow else plan
        require_types(plan)
        running = session() if self.session is None else check_session(self.session)
        view: SparkView = SparkView(plan, running, self.options, check_input)
        try:
            require_shared(running, view.path)
        except BaseException:
            view.close()
            raise
        return view

    def __repr__(self) -> str:
        return f"spark(path={self.options.path!r})"


@checked
def spark(
    session: SparkSession | None = None, path: Place | None = None, *, buckets: int | None = None,
    mode: Mode = "auto", small: int = SMALL, in_driver: bool = False, keep_epochs: int = 3,
    keep_for: timedelta = timedelta(0), strict: bool = False, memory: str = "256MB",
    progress: bool | None = None, permissions: int | None = None, unpickle: bool = True,
    keep_batches: int = KEEP, readable: bool = False, narrow: bool = False,
) -> Engine:  # fmt: skip
    """The Spark engine, for `run`: the same program, with its state in a folder at `path`.

    Without a `session` a local one is used, started if need be. On a cluster, and with a session of
    Spark Connect, the path must be one that this process and the workers see: a shared folder, or
    an object store (`s3://bucket/folder`, or `ebbflow.object_store`). The options:

    - `buckets`: in how many ranges the keys are divided for tasks; Spark's shuffle partitions;
    - `small`: a change of at most so many rows goes through one task, and a larger one does not.
      Unless it is given, it is 20,000 rows, and a larger change goes the way that should be fastest
      (`view.stats()` says which, and why). In a large one, what a stage of a loop does with so few
      rows in a round is done by the driver;
    - `in_driver`: such a change goes through the driver's own process, which is fastest;
    - `mode`: "driver", "single_task", "staged" or "bulk", instead of what the size of a change
      suggests;
    - `keep_epochs`: for how many epochs what `value` and `step` gave can be read;
    - `keep_for`: for how long at least, as `timedelta(hours=1)`, however many epochs that are; each
      of them takes some bytes in every later manifest, so this is for hours of epochs by the
      minute, not for days of epochs by the second;
    - `keep_batches`: how many names of batches are remembered, 10,000 unless told otherwise;
    - `progress`: whether to show how far a long epoch is; by default, on a terminal;
    - `strict`: an error where a changed program would have its state computed again, or where a
      change could go unseen (`view.assumed`);
    - `permissions`: of the folder, 0o700 unless told otherwise; 0o770 lets a group read and write,
      as when workers run as another user;
    - `unpickle`: False reads pickles of plain values only; any others could run code;
    - `readable`: keep the rows of all outputs, so that `ebbflow.open` reads them without the
      program;
    - `narrow`: inputs keep, and tasks are sent, only keys and the fields that the program reads, as
      `run(narrow=True)` says.

    >>> spark(path="state/")
    spark(path='state/')
    """
    if session is not None and not (is_connect(session) or hasattr(session, "sparkContext")):
        raise CompositionError(
            f"spark({session!r}): that is not a Spark session",
            created=place(),
            remedy=_instead_of(session),
        )
    if path is None:
        raise CompositionError(
            "spark(): the state needs a place", remedy='spark(path="state/"), or another folder'
        )
    return Engine(session, Options(
        path, buckets, mode, small, in_driver, keep_epochs, keep_for, strict, memory, progress,
        permissions, unpickle, keep_batches, readable, narrow,
    ))  # fmt: skip


def _instead_of(given: Any) -> str:
    """What to give instead of what is no session."""
    if not isinstance(given, str):
        return "a SparkSession, as SparkSession.builder.getOrCreate() gives it"
    if re.match(r"local\b|[\w-]+://|yarn", given):
        return f"SparkSession.builder.master({given!r}).getOrCreate(), or none for a local one"
    return f"spark(path={given!r})"
