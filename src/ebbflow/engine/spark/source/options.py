"""What can be asked of the data source `ebbflow`, as options of a reader of Spark's.

output                what is read: an output, by name; not needed where there is one
input                 or the rows of an input
node                  or what operators keep, those whose label has this text in it, as text
epoch                 at the end of which epoch: one that is kept; the newest without it
weights               "true": each row once, and how often it is there in `__weight`
changes               "true": what the epochs that are kept changed, with `__weight`, `__epoch`
startingEpoch         the first epoch whose change is read
endingEpoch           the last one
maxEpochsPerTrigger   how many epochs a stream takes at once
partitions            in how many parts it is read
unpickle              "true": load pickled values, of a writer who is trusted
program               "module:name": the program, where reading an output calls a function of it
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from ebbflow.errors import CompositionError, Text

KNOWN = (
    "path", "output", "input", "node", "epoch", "weights", "changes", "startingEpoch",
    "endingEpoch", "maxEpochsPerTrigger", "partitions", "unpickle", "program",
)  # fmt: skip
_TRUTHS = {"true": True, "1": True, "false": False, "0": False}


@dataclass(frozen=True)
class SourceOptions:
    """The options of one reader; see the module.

    >>> SourceOptions.of({"path": "state/", "startingepoch": "7"})
    SourceOptions(path='state/', changes=True, starting=7)
    >>> SourceOptions.of({"path": "state/", "epcoh": "7"})
    Traceback (most recent call last):
    ebbflow.errors.CompositionError: option 'epcoh': there is no such option
        options    path, output, input, node, epoch, weights, changes, startingEpoch, \
endingEpoch, maxEpochsPerTrigger, partitions, unpickle, program
        try        .option("epoch", ...)
    """

    path: str
    output: str | None = None
    input: str | None = None
    node: str | None = None
    epoch: int | None = None
    weights: bool = False
    changes: bool = False
    starting: int | None = None
    ending: int | None = None
    per_trigger: int | None = None
    partitions: int | None = None
    unpickle: bool = False
    program: str | None = None

    @staticmethod
    def of(given: Mapping[str, str]) -> SourceOptions:
        """What was given to a reader. Spark's own options have a dot in their names."""
        names = {name.lower(): name for name in KNOWN}
        for name in given:
            if name.lower() not in names and "." not in name:
                meant = get_close_matches(name.lower(), names, 1)
                raise CompositionError(
                    f"option {name!r}: there is no such option",
                    options=Text(", ".join(KNOWN)),
                    remedy=f'.option("{names[meant[0]]}", ...)' if meant else "one of these",
                )
        asked = _Asked({name.lower(): value for name, value in given.items()})
        if "path" not in asked.given:
            raise CompositionError(
                "there is no path",
                remedy='spark.read.format("ebbflow").load("state/"), the folder of a view',
            )
        found = SourceOptions(
            asked.given["path"],
            asked.given.get("output"),
            asked.given.get("input"),
            asked.given.get("node"),
            epoch=asked.number("epoch"),
            weights=asked.truth("weights"),
            changes=asked.truth("changes") or asked.has("startingEpoch", "endingEpoch"),
            starting=asked.number("startingEpoch"),
            ending=asked.number("endingEpoch"),
            per_trigger=asked.number("maxEpochsPerTrigger", 1),
            partitions=asked.number("partitions", 1),
            unpickle=asked.truth("unpickle"),
            program=asked.given.get("program"),
        )
        found._check()
        return found

    def _check(self) -> None:
        several = [name for name in ("output", "input", "node") if getattr(self, name) is not None]
        if len(several) > 1:
            raise _together(several[0], several[1], "one of them")
        for name in ("input", "node"):
            if self.changes and getattr(self, name) is not None:
                raise _together(name, "changes", "the changes of an output")
        if self.changes and self.epoch is not None:
            raise _together("epoch", "changes", "startingEpoch and endingEpoch, both included")
        if self.ending is not None and self.ending < (self.starting or 0):
            raise _refused("endingEpoch", str(self.ending), f"{self.starting}, or more")

    def __repr__(self) -> str:
        default = SourceOptions("")
        shown = [
            f"{name}={value!r}"
            for name, value in vars(self).items()
            if value != getattr(default, name)
        ]
        return f"SourceOptions({', '.join(shown)})"


@dataclass(frozen=True)
class _Asked:
    """Options as Spark gives them: texts by names of small letters."""

    given: Mapping[str, str]

    def has(self, *names: str) -> bool:
        return any(name.lower() in self.given for name in names)

    def number(self, name: str, least: int = 0) -> int | None:
        text = self.given.get(name.lower())
        if text is None:
            return None
        if not text.isdecimal() or int(text) < least:
            raise _refused(name, text, f"a whole number from {least} on")
        return int(text)

    def truth(self, name: str) -> bool:
        text: Any = self.given.get(name.lower(), "false")
        if text.lower() not in _TRUTHS:
            raise _refused(name, text, '"true" or "false"')
        return _TRUTHS[text.lower()]


def _refused(name: str, text: str, remedy: str) -> CompositionError:
    return CompositionError(f"option {name!r} cannot be {text!r}", remedy=remedy)


def _together(one: str, other: str, remedy: str) -> CompositionError:
    return CompositionError(f"options {one!r} and {other!r} cannot be had together", remedy=remedy)
