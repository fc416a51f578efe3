"""The local engine: a plan runs in this process, and every change costs what it changes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from ebbflow.engine.local.view import View
from ebbflow.engine.runtime.columnar.program import FirstStep, require_columns, use_columns
from ebbflow.engine.runtime.gc_paused import Freezer
from ebbflow.engine.runtime.in_memory import use_memory
from ebbflow.engine.runtime.machine import Machine
from ebbflow.engine.runtime.options import require_known
from ebbflow.errors import CompositionError, install
from ebbflow.flow.plan import Plan
from ebbflow.flow.rewrite import narrow_inputs

if TYPE_CHECKING:
    from ebbflow.state.spine import Place

__all__ = ["View", "run"]
OPTIONS = ("path", "check_input", "narrow", "columns", "freeze", "readable", "memory",
           "keep_epochs", "keep_for", "flush_every", "strict", "permissions", "unpickle",
           "keep_batches")  # fmt: skip
"""What `run` can be told; `path`, and from `readable` on, is about state that is stored."""


def run(
    plan: Plan,
    *,
    check_input: bool = True,
    narrow: bool = False,
    columns: bool | None = None,
    freeze: bool = True,
    path: Place | None = None,
    readable: bool = False,
    **options: Any,
) -> View:
    """Run a plan here, starting from empty inputs, or from the state at `path`.

    With `check_input=False` inputs without a key are trusted: nothing is checked, their rows are
    not kept, which saves their memory, and `verify()` is not to be had.

    With `narrow=True` inputs keep their keys and the fields that the program reads, and no others,
    which saves much where tables are wide. Rows are given whole, or as tables without some of these
    columns; `view.input(name)` gives what is kept. Rows that differ only in fields that nobody
    reads are equal then. An output that is added later and reads more needs another path, and the
    rows again. Of an input that is an output itself, or whose rows a function takes that cannot be
    looked into, all fields are read.

    With `columns=True` stages of typed rows keep their state in columns and take tables without
    making rows of them; it needs the extra `fast`. Unless told otherwise, a view in memory does so
    when the first change is a large table. With a `path`, all of the state is in memory then, from
    the first epoch on, and is stored as columns.

    What a load, of 250,000 rows or more, and large epochs that follow each other closely have
    brought is kept out of the way of the garbage collector, which would otherwise take up to two
    fifths of the time, and some hundred milliseconds in a later step; with `freeze=False` it is
    not. See `ebbflow.engine.runtime.gc_paused`.

    With a `path` the state is kept in that folder, or on an object store (`s3://bucket/folder`, or
    `ebbflow.object_store`), and every epoch is safe there when `step` returns. Opened again, the
    view goes on with the last epoch. The options then are:

    - `memory`: at most about so much of the state in memory, such as "512MB"; without it, all;
    - `keep_epochs`: how many epochs can be read back by `view.at(epoch)`, and, where it is more
      than one, what they changed, by sinks that are new and by readers (`ebbflow.open`);
    - `keep_for`: for how long at least, as `timedelta(hours=1)`, however many epochs that are, with
      what they changed; each takes some bytes in every later manifest;
    - `readable`: keep the rows of all outputs, also of those that can be computed from the state of
      an operator, so that `ebbflow.open` reads them without the program;
    - `flush_every`: write only every so many epochs. Those that wait are written by `close()`, when
      the view is dropped, and at exit; a crash, or a process that is killed, loses them;
    - `strict`: an error where a changed program would have its state computed again, or where a
      change could go unseen, as a function uses what cannot be looked into (`view.assumed`);
    - `keep_batches`: how many names of batches are remembered, 10,000 unless told otherwise;
    - `permissions`: of the folder, 0o700 unless told otherwise; 0o770 lets a group read and write;
    - `unpickle`: False reads pickles of plain values only; any others could run code.

    When an interrupt ends a `step`, `view.epoch` tells whether the epoch happened.

    A path holds the state of one program. Where its functions or steps have changed since, what
    they make is computed again from the rows of the inputs; `view.rebuilt` says what that was. It
    needs the extra `durable`. The state may hold pickled values: open only what you trust, or with
    `unpickle=False`.

    >>> from ebbflow.flow.plan import Distinct, Source
    >>> view = run(Plan({"words": Distinct(parent=Source(name="said"))}))
    >>> view.step(said=["ebb", "flow", "ebb"])
    ZSet({'ebb': 1, 'flow': 1})
    """
    require_known(
        "run", options, OPTIONS,
        near="did you mean {}?", otherwise="one of these, or an engine: run(engine)",
    )  # fmt: skip
    plan = narrow_inputs(plan) if narrow else plan
    stored = path is not None
    machine = Machine(plan, trusting=not check_input, stored=stored, narrow=bool(columns))
    machine.freezer = freezer = Freezer() if freeze else None
    if readable:
        machine.readers = {}
    if path is None:
        options |= {"readable": True} if readable else {}
        if options:
            raise CompositionError(
                f"run({', '.join(f'{name}=...' for name in options)}): only with a path=",
                remedy='run(path="state/", ...)',
            )
        view = View(plan, machine, check_input=check_input, freezer=freezer)
        if columns:
            require_columns()
            use_columns(view._program)
        elif columns is None:
            view._storage.advance = FirstStep(view._storage)
        else:
            use_memory(view._program)
        return view
    if columns:
        require_columns()
        if options.get("memory") is not None:
            raise CompositionError(
                "run(columns=True, memory=...): columns are in memory as a whole",
                remedy="run(columns=True, path=...), or run(path=..., memory=...)",
            )
    try:
        from ebbflow.engine.runtime.durable import Disk

        disk: Callable[..., Any] = Disk
        if columns:
            from ebbflow.engine.runtime.columnar.disk import ColumnDisk

            disk = ColumnDisk
    except ModuleNotFoundError as error:
        raise CompositionError(
            f"run(path=...) needs {error.name}", remedy=install("durable")
        ) from error
    return View(
        plan, machine, check_input=check_input, storage=partial(disk, path, **options),
        freezer=freezer,
    )  # fmt: skip
