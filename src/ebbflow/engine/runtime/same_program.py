"""Whether a state is one that a program can go on with, and how it does.

What a manifest notes of a program (`Disk.notes`) is compared with the program that opens it. Inputs
must be there; rows of another type are converted; state of parts that are new is computed again
from the rows of the inputs. What cannot be done, and what `strict` forbids, is refused with what to
do instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ebbflow.engine.runtime.convert.plan import CannotConvert
from ebbflow.engine.runtime.convert.rows import Conversion, schema_of, schema_text
from ebbflow.engine.runtime.inputs import InputState
from ebbflow.errors import StateError, Text

if TYPE_CHECKING:
    from ebbflow.engine.runtime.durable import Disk

FORMAT, READ = 6, (5, 6)
"""What a view writes of its state, and which versions of that it reads."""


def conversions_to(disk: Disk, notes: Mapping[str, Any]) -> dict[str, Conversion]:
    """How rows of inputs that a state has become those of this program, where these are others."""
    if notes.get("format") not in READ:
        raise StateError(
            f"{disk.place!r} does not hold the state of a view, or of another version",
            format=notes.get("format"),
            remedy="another path",
        )
    stored: Mapping[str, str] = notes["inputs"]
    mine, inputs = disk.input_names, disk.program.inputs
    found: dict[str, Conversion] = {}
    gone = [name for name in stored if name not in mine]
    if gone:
        raise StateError(
            f"{disk.place!r} holds the state of another program: it has "
            f"{'inputs' if len(gone) > 1 else 'an input'} that this one does not have",
            stored=Text(", ".join(stored)),
            this=Text(", ".join(mine)),
            remedy="another path for this program, or the inputs it had",
        )
    for name, was in stored.items():
        kept = name in notes["rows"]
        if mine[name] != was:
            known = notes.get("schemas", {}).get(name)
            found[name] = _conversion(disk, inputs[name], known, kept)
        if inputs[name].keeps != kept:
            raise StateError(
                f"the rows of input {name!r} are kept in {disk.place!r}, and would be no "
                "longer" if kept else
                f"the rows of input {name!r} were not kept in {disk.place!r}",
                created=inputs[name].source.place,
                remedy=f"run(check_input={kept}) as before, or another path",
            )  # fmt: skip
    return found


def _conversion(
    disk: Disk, state: InputState, stored: Mapping[str, Any] | None, kept: bool
) -> Conversion:
    """How the rows of an input become rows of the type that it has now."""
    source = state.source
    now = schema_of(source, disk.program.identities)
    what = f"input {source.name!r} has another type or key than when its rows were stored"
    facts = {"now": Text(schema_text(now)), "created": source.place}
    if stored is None:
        raise StateError(f"{what}, by a version that did not note the type", **facts,
                         remedy="the type and key it had, or another path and loading the rows "
                         "again")  # fmt: skip
    facts = {"stored": Text(schema_text(stored)), **facts}
    try:
        found = Conversion(source, stored, now)
    except CannotConvert as error:
        raise StateError(f"{what}: {error.what}", **facts, remedy=error.remedy) from None
    if not kept:
        raise StateError(
            f"{what}, and they were not kept, so they cannot be converted",
            **facts,
            remedy="the type it had, or another path and loading the rows again",
        )
    if disk.strict:
        raise StateError(
            f"{what}, and they would be converted",
            **facts,
            conversion=Text(found.said),
            remedy="strict=False to have it done, or the type and key it had",
        )
    return found


def require_rebuildable(disk: Disk, new: set[str]) -> None:
    """Refuse to compute the state of these parts again where `strict` forbids it, or where the
    rows of an input are not kept."""
    labels = [part.label for part in disk.program.parts if part.name in new]
    if disk.strict:
        raise StateError(
            f"the program has changed since {disk.place!r} was written, and some of its state "
            "would be computed again",
            of=Text(", ".join(dict.fromkeys(labels))),
            remedy="strict=False to have it computed, the program as it was, or another path",
        )
    trusting = [name for name, state in disk.program.inputs.items() if not state.keeps]
    if trusting:
        raise StateError(
            f"the program has changed since {disk.place!r} was written, and what changed "
            "cannot be computed again: the rows of an input are not kept",
            inputs=Text(", ".join(trusting)),
            changed=Text(", ".join(labels)),
            remedy="the program as it was, or another path and loading the rows again",
        )
