"""What tasks tell the driver: a report each, as plain data.

A *report* is JSON, read by its types. An error in it is the name of a class from a fixed list with
its texts. Nothing of it is ever unpickled, as texts of rows are in it, and a row is not to be
trusted.

Every error that a task finds in a user's function, or in rows, gets to the driver in a report
(`TaskReport.error`), and `Epochs.stage_reports` raises it. There are two ways for a report:

    a line          next to the lines with rows, to the end of the job: the task has not failed, so
                    Spark does not run it again, to fail again
    an exception    where what a task gives are rows of a query, in the columns of their type, for
                    other tasks: no column could hold a report, so the task has to fail

An exception arrives inside a message of Spark's, among texts of rows. It is believed only behind
the *secret* of its job, which the driver draws and no row can know.
"""

from __future__ import annotations

import json
import re
import traceback
from dataclasses import dataclass, field
from typing import Any

from ebbflow import errors
from ebbflow.engine.spark.session import Remote
from ebbflow.errors import (
    Damaged,
    EbbflowError,
    InUse,
    SchemaMismatch,
    SparkError,
    StateError,
    Text,
)
from ebbflow.state.spine.manifest import piece_epoch
from ebbflow.state.spine.segment import Ref

REPORT = -1
"""The port of reports."""
CLASSES: dict[str, type[EbbflowError]] = {
    cls.__name__: cls
    for cls in (*vars(errors).values(), SparkError, SchemaMismatch, StateError, Damaged, InUse)
    if isinstance(cls, type) and issubclass(cls, EbbflowError)
}
_CHANGES = re.compile(r"\d{12,}-[0-9a-f]{32}-\d+\.parquet")

Line = tuple[int, int, bytes]


@dataclass
class TaskReport:
    """What a task tells the driver.

    >>> report = TaskReport(2, rows_in=7, error=EbbflowError("no such row", row=3))
    >>> TaskReport.read(report.line()[2])
    TaskReport(wave=2, ..., rows_in=7, error=EbbflowError('no such row'), ...)
    """

    wave: int = 0
    segments: list[tuple[str, str, Ref]] = field(default_factory=list)
    changes: list[tuple[str, str, int]] = field(default_factory=list)
    stats: list[tuple[int, int, int, float]] = field(default_factory=list)
    rows_in: int = 0
    error: EbbflowError | None = None
    trace: str = ""
    too_many: bool = False
    jobs: list[tuple[int, int]] = field(default_factory=list)
    """How many jobs the rounds of a loop have had, by the number of its stage."""
    rounds: list[tuple[int, str]] = field(default_factory=list)
    """What the rounds of a loop did, by the number of its stage."""
    why: str = ""
    """Why it ran in rows, where columns might have done it."""

    @staticmethod
    def failed(error: EbbflowError, wave: int) -> TaskReport:
        """The report of a task that found an error."""
        return TaskReport(wave, error=error, trace="".join(traceback.format_exception(error)))

    def raise_error(self) -> None:
        """Raise what went wrong, if something did."""
        if self.error is not None:
            raise self.error from (Remote(self.trace) if self.trace else None)

    def line(self) -> Line:
        """The report as a line."""
        said = {
            **vars(self),
            "segments": [(name, how, [*vars(ref).values()]) for name, how, ref in self.segments],
            "error": None if self.error is None else parts_of(self.error),
        }
        return 0, REPORT, json.dumps(said).encode()

    @staticmethod
    def read(blob: bytes) -> TaskReport:
        """The report in a line; ValueError where it is none."""
        said = json.loads(blob)
        _require(isinstance(said, dict) and set(said) == set(TaskReport.__dataclass_fields__))
        segments = [_typed(each, str, str, list) for each in said["segments"]]
        found = TaskReport(
            said["wave"],
            [(name, layout, _ref(ref)) for name, layout, ref in segments],
            [_typed(each, str, str, int) for each in said["changes"]],
            [_typed(each, int, int, int, float) for each in said["stats"]],
            said["rows_in"],
            None if said["error"] is None else error_of(said["error"]),
            said["trace"],
            said["too_many"],
            [_typed(each, int, int) for each in said["jobs"]],
            [_typed(each, int, str) for each in said["rounds"]],
            said["why"],
        )
        plain = [found.wave, found.rows_in, found.trace, found.too_many, found.why]
        _typed(plain, int, int, str, bool, str)
        _require(all(_CHANGES.fullmatch(file) for _, file, _ in found.changes))
        return found


def _ref(parts: list[Any]) -> Ref:
    found = Ref(*_typed(parts, str, int, int, int, int, int))
    _require(piece_epoch(found.file) is not None)
    return found


def _typed(parts: Any, *types: type) -> Any:
    """The parts as a tuple, where they are of these types."""
    _require(isinstance(parts, list) and tuple(map(type, parts)) == types)
    return tuple(parts)


def _require(holds: bool) -> None:
    if not holds:
        raise ValueError("this is not the note of a task")


# ---- errors ----


def parts_of(error: EbbflowError) -> dict[str, Any]:
    """An error as data: the nearest class that is in the list, and its texts."""
    cls = next(each for each in type(error).__mro__ if CLASSES.get(each.__name__) is each)
    facts = {name: str(text) for name, text in error._shown().items()}
    return {"kind": cls.__name__, "what": error.what, "remedy": error.remedy, "facts": facts}


def error_of(parts: Any) -> EbbflowError:
    """The error that this was; ValueError where it is none."""
    _require(isinstance(parts, dict) and set(parts) == {"kind", "what", "remedy", "facts"})
    cls, what, remedy, facts = (parts[name] for name in ("kind", "what", "remedy", "facts"))
    _require(type(cls) is type(what) is type(remedy) is str and type(facts) is dict)
    _require(cls in CLASSES and all(type(text) is str for text in facts.values()))
    return CLASSES[cls](what, remedy=remedy, **{name: Text(text) for name, text in facts.items()})


class TaskFailed(Exception):
    """An error that fails a task, in a form that Spark's own message carries."""


def task_failed(error: Exception, secret: str) -> Exception:
    """What to raise in a task so that the driver, who knows the secret, can raise `error`."""
    if not isinstance(error, EbbflowError):
        return error
    return TaskFailed(f"{error}\n{secret}{json.dumps(parts_of(error))}")


def error_in(text: str, secret: str) -> EbbflowError | None:
    """The error in a message of Spark's with which a task has failed.

    >>> said = task_failed(EbbflowError("no such row"), "5ec2e7")
    >>> error_in(f"Job aborted: {said} at java.lang.Thread", "5ec2e7")
    EbbflowError('no such row')
    >>> error_in(f"Job aborted: {said} at java.lang.Thread", "another")
    """
    _, found, rest = text.partition(secret)
    if not found:
        return None
    try:
        return error_of(json.JSONDecoder().raw_decode(rest)[0])
    except ValueError:
        return None
