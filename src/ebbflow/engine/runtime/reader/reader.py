"""A reader: what a view has written, read by another process while the view goes on.

A reader takes no lock, writes nothing, and never holds up the one who writes; it sees whole epochs,
and only those that are safe. `value` is the newest one. `changes` follows: it gives what each epoch
changed, as the writer keeps that for sinks or by `keep_epochs`, and where nothing is kept, the
difference between the epochs it found, which may have several in one.

The types of rows come from the state. A row is what `ebbflow.record` makes, with the name and the
fields of the class that the writer has; it equals the writer's. A pickled value is not loaded
unless that is asked for: loading one can run code.
"""

from __future__ import annotations

from typing import Any

from ebbflow.engine.runtime.reader.follow import LiveChanges, Values, shown
from ebbflow.engine.runtime.reader.logged import change_spines
from ebbflow.engine.runtime.reader.stored import StoredOutput, stored_outputs
from ebbflow.errors import CompositionError, StateError
from ebbflow.flow.plan import Plan
from ebbflow.keywords import checked
from ebbflow.public import PublicByName
from ebbflow.state.spine import Place, Snapshot, files_at, live_snapshot
from ebbflow.state.spine.live import Wanted
from ebbflow.zset import from_view


class Reader(PublicByName):
    """The state at a path, to be read; made by `ebbflow.open`."""

    _spoken = "a reader"

    def __init__(self, path: Place, plan: Plan | None, *, unpickle: bool) -> None:
        self.files, self.plan, self.unpickle = files_at(path), plan, unpickle
        self._noted: tuple[Any, dict[str, StoredOutput]] = None, {}
        self.known(self.glance())

    # ---- reading ----

    @property
    def epoch(self) -> int:
        """The newest epoch that is safe."""
        return self.glance().epoch

    @property
    def outputs(self) -> dict[str, Any]:
        """The row type of each output, by name."""
        return {name: each.type for name, each in self.known(self.glance()).items()}

    @property
    def value(self) -> Any:
        """The output at the newest epoch, as a ZSet; with several outputs, a dict of ZSets by name,
        all of the same epoch."""
        return shown(self.values(self.snapshot()))

    def at(self, epoch: int) -> Any:
        """The output at the end of an older epoch that the writer keeps; see `keep_epochs`."""
        return shown(self.values(self.snapshot(epoch)))

    def changes(
        self, since: int | None = None, *, wait: float | None = None, every: float | None = None
    ) -> LiveChanges:
        """What epochs after `since` changed, as pairs of an epoch and its change, now and as the
        writer goes on; for `for` and for `async for`. Without `since`, the first is all there is,
        as one change from nothing; so whoever adds up has the value, at every moment.

        An epoch that changed nothing is given too, as it is to a sink. It ends when there was
        nothing new for `wait` seconds; without it, never. It looks `every` so many seconds: 20
        times a second in a folder, and once on an object store, unless told otherwise.
        Where the writer keeps no changes (`keep_epochs`), those of several epochs may come in one,
        under the number of the last. A reader that is further behind than what is kept gets an
        error; without `since` it begins anew.
        """
        for name, given, classes in (
            ("since", since, (int,)), ("wait", wait, (int, float)), ("every", every, (int, float)),
        ):  # fmt: skip
            if given is not None and type(given) not in classes:
                raise CompositionError(
                    f"changes({name}={given!r}): that is not a number",
                    remedy="changes(since=epoch, wait=seconds, every=seconds)",
                )
        return LiveChanges(self, since, wait, self.files.every if every is None else every)

    def __repr__(self) -> str:
        return f"<Reader of {', '.join(self.outputs)}: epoch {self.epoch}>"

    # ---- inside ----

    def snapshot(self, epoch: int | None = None, wanted: Wanted | None = None) -> Snapshot:
        """A snapshot of which the spines that are wanted stay readable; unless told otherwise,
        those of the outputs, and of the changes that are kept."""
        wanted = self._wanted if wanted is None else wanted
        found = live_snapshot(self.files, epoch, unpickle=self.unpickle, wanted=wanted)
        if "parts" not in found.notes:
            raise StateError(
                f"there is no state of a view in {self.files.address!r}",
                remedy="the path that was given to run(path=...) or to spark(path=...)",
            )
        return found

    def glance(self, epoch: int | None = None) -> Snapshot:
        """A snapshot to look at what there is; nothing of it may be readable a moment later."""
        return self.snapshot(epoch, lambda _: ())

    def _wanted(self, snapshot: Snapshot) -> set[str]:
        parts = {part for output in self.known(snapshot).values() for part in output.parts}
        return {*parts, *change_spines(snapshot)}

    def known(self, snapshot: Snapshot) -> dict[str, StoredOutput]:
        """The outputs of a snapshot. Another program may write them by now."""
        noted = {key: snapshot.notes.get(key) for key in ("outputs", "parts", "rows")}
        if noted != self._noted[0]:
            self._noted = noted, stored_outputs(snapshot, self.plan)
        return self._noted[1]

    def values(self, snapshot: Snapshot) -> Values:
        """The rows of every output."""
        known = self.known(snapshot).items()
        return {name: from_view(each.read(snapshot), (each.type, False)) for name, each in known}


@checked
def open(path: Place, program: Any = None, *, unpickle: bool = False) -> Reader:
    """Read the state that a view keeps at a path, from this or another process, while it is
    written. See `ebbflow.engine.runtime.reader.reader`.

    It has `epoch`, `outputs`, `value`, `at(epoch)` and `changes(since=epoch)`. No program is needed
    where the view keeps the rows of its outputs, as it does for all of them when it is run with
    `readable=True`; else give the program. Pickled values are refused unless `unpickle=True`, which
    is for a state whose writer you trust.

    >>> import ebbflow as ef, tempfile
    >>> path = tempfile.mkdtemp()
    >>> totals = ef.Input("prices", int).agg(total=ef.sum())
    >>> view = totals.run(path=path, readable=True)
    >>> _ = view.step(prices=[10, 20])
    >>> reader = ef.open(path)
    >>> reader.epoch, reader.value
    (1, ZSet({Group(total=30): 1}))
    >>> following = reader.changes(since=1)
    >>> _ = view.step(prices=[5])
    >>> next(following)
    (2, ZSet({Group(total=35): 1, Group(total=30): -1}))
    """
    plan = getattr(program, "plan", None)
    if program is not None and not isinstance(plan, Plan):
        raise CompositionError(
            f"open(path, {program!r}): that is not a program",
            remedy="the collection or the program that was run, or none",
        )
    return Reader(path, plan, unpickle=unpickle)
