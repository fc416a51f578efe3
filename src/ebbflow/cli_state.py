"""`ebbflow state`: what a view keeps on disk, shown, verified, compacted, copied and repaired."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ebbflow.errors import CheckError, install
from ebbflow.notebook import amount
from ebbflow.paths import state_path

EPILOG = """\
examples:
  ebbflow state DIR                      the epoch, what each operator keeps, how far sinks are
  ebbflow state verify DIR               read every file of every epoch that is retained
  ebbflow state compact DIR              merge what was written in many epochs; no view has it open
  ebbflow state copy DIR OTHER           a copy of a state, also of one that a view is writing
  ebbflow state copy DIR OTHER --epoch 7 --sinks
  ebbflow state repair DIR               set right what can be without a loss, and say what cannot
  ebbflow state repair DIR --back        go back to the last epoch that is whole
  ebbflow state restart-sink DIR NAME    rewrite the target of a sink when it is added again
  ebbflow state end-sink DIR NAME        keep nothing any more for a sink that is gone

exit status: 0 all is well, 1 something is damaged, 2 it could not be done
"""

Say = Callable[[Any], None]


def add_state(commands: Any) -> None:
    """Add the command to those of the command line."""
    parser = commands.add_parser(
        "state", help="show, verify, compact, copy or repair what a view keeps on disk",
        epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    for name, (_, text) in ACTIONS.items():
        action = actions.add_parser(name, help=text)
        action.add_argument("folder", metavar="DIR", help="the path of the view: run(path=DIR)")
        action.add_argument("--json", action="store_true", help="the same for programs")
        if name == "copy":
            action.add_argument("other", metavar="OTHER", help="an empty folder, or a new one")
            action.add_argument("--epoch", type=int, metavar="N", help="one that is retained")
            action.add_argument("--sinks", action="store_true", help="how far sinks are, too")
        elif name == "repair":
            action.add_argument("--back", action="store_true", help="to an older epoch, if need be")
        elif name in ("end-sink", "restart-sink"):
            action.add_argument("name", metavar="NAME", help="as `ebbflow state DIR` shows it")


def with_action(arguments: Sequence[str]) -> list[str]:
    """Arguments that say what to do: without it, the state is shown.

    >>> with_action(["state", "shop/"]), with_action(["state", "verify", "shop/"])
    (['state', 'show', 'shop/'], ['state', 'verify', 'shop/'])
    """
    found = list(arguments)
    if found[:1] == ["state"] and len(found) > 1 and found[1] not in (*ACTIONS, "-h", "--help"):
        found.insert(1, "show")
    return found


def run_state(asked: argparse.Namespace) -> int:
    """Do what is asked to a folder of state; gives the exit status."""
    try:
        from ebbflow.state.spine.place import files_at, object_store
    except ModuleNotFoundError as error:
        raise CheckError(f"reading state needs {error.name}", remedy=install("durable")) from error
    if not isinstance(state_path(asked.folder, "DIR"), Path):
        with TemporaryDirectory(prefix="ebbflow-") as cache:  # what is read is what the store has
            return _run(files_at(object_store(asked.folder, cache=cache)), asked)
    return _run(files_at(asked.folder, what="DIR"), asked)


def _run(files: Any, asked: argparse.Namespace) -> int:
    if not files.names():
        folder = "://" not in asked.folder and not Path(asked.folder).is_dir()
        raise CheckError(
            f"there is no folder {asked.folder!r}" if folder
            else f"there is no state in {asked.folder!r}",
            remedy="the path that was given to run(path=...)",
        )  # fmt: skip
    said, lines, status = ACTIONS[asked.action][0](files, asked)
    if asked.json:
        print(json.dumps(said, indent=2))
    else:
        for line in lines:
            print(line)
    return status


Answer = tuple[dict[str, Any], list[str], int]


def _show(files: Any, asked: argparse.Namespace) -> Answer:
    info = _figures_of(files, asked.folder)
    retained = ", ".join(map(str, info["epochs"]))
    several = len(info["epochs"]) > 1
    lines = [f"epoch {info['epoch']}" + (f", of {retained} that can be read" if several else "")]
    table = [("", "entries", "size", "segments")]
    for each in info["parts"]:
        table.append((each["label"], *_figures(each)))
    total = {name: sum(each[name] for each in info["parts"]) for name in _FIGURES}
    table.append(("total", *_figures(total)))
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for label, *figures in table:
        cells = [each.rjust(width) for each, width in zip(figures, widths[1:], strict=True)]
        lines.append("  ".join([label.ljust(widths[0]), *cells]))
    lines.append(f"{amount(info['bytes'])} on disk, in {info['files']} files")
    for name, had in info["sinks"].items():
        behind = info["epoch"] - had
        late = f", {behind:,} behind: what it has not had is kept for it" if behind else ""
        if name in info["restarting"]:
            late = f"{late}, begins again with everything when it is added"
        lines.append(f"sink {name!r}: epoch {had}{late}")
    return info, lines, 0


_FIGURES = ("entries", "bytes", "segments")


def _figures(found: dict[str, Any]) -> tuple[str, str, str]:
    return f"{found['entries']:,}", amount(found["bytes"]), f"{found['segments']:,}"


def _figures_of(files: Any, folder: str) -> dict[str, Any]:
    """The figures of the newest snapshot. A view may be writing to it meanwhile."""
    from ebbflow.engine.runtime.sinks.log import PREFIX
    from ebbflow.engine.runtime.sinks.sink import noted, restarting
    from ebbflow.state.spine import live_snapshot

    found = live_snapshot(files)
    if found.epoch < 0:
        raise CheckError(
            f"there is no state in {folder!r}", remedy="the path that was given to run(path=...)"
        )
    info = found.info()
    labels = dict(found.notes.get("parts", {}))
    parts: dict[str, dict[str, Any]] = {name: {} for name in labels}
    for spine in info.pop("spines"):
        name = spine["operator"]
        logged = name.startswith(PREFIX)
        part = parts.setdefault("changes" if logged else name, {})
        part.setdefault("label", "what epochs changed" if logged else labels.get(name, name))
        part.setdefault("layout", spine["layout"])
        for figure in _FIGURES:
            part[figure] = part.get(figure, 0) + spine[figure]
    info["parts"] = [part for part in parts.values() if part]
    info["sinks"] = noted(files)
    info["restarting"] = sorted(restarting(files))
    return {"folder": folder, **info}


def _verify(files: Any, asked: argparse.Namespace) -> Answer:
    from ebbflow.engine.runtime.upkeep.inspect import inspect

    found = inspect(files)
    said = {
        "epoch": found.epoch, "whole": found.epochs, "leftovers": list(found.leftovers),
        "problems": [asdict(each) for each in found.problems],
        "files": found.files, "bytes": found.bytes,
    }  # fmt: skip
    lines = [f"DAMAGED  {each}" for each in found.problems]
    if found.leftovers:
        lines.append(f"{len(found.leftovers)} files belong to no epoch; the next view removes them")
    whole = ", ".join(map(str, found.epochs)) or "none"
    lines.append(f"read {amount(found.bytes)} in {found.files} files: whole epochs: {whole}")
    return said, lines, 1 if found.problems else 0


def _compact(files: Any, asked: argparse.Namespace) -> Answer:
    from ebbflow.engine.runtime.upkeep.copies import compact

    before, after = compact(files)
    return {"before": before, "after": after}, [f"{before:,} segments became {after:,}"], 0


def _copy(files: Any, asked: argparse.Namespace) -> Answer:
    from ebbflow.engine.runtime.upkeep.copies import copy
    from ebbflow.state.spine.place import files_at

    folder = "://" not in asked.other
    other = files_at(asked.other, getattr(files, "permissions", None) if folder else None, "OTHER")
    made = copy(files, other, asked.epoch, sinks=asked.sinks)
    size = other.size(made.name) or 0
    line = f"epoch {made.epoch} is in {asked.other}, {amount(size)}"
    return {"epoch": made.epoch, "bytes": size}, [line], 0


def _repair(files: Any, asked: argparse.Namespace) -> Answer:
    from ebbflow.engine.runtime.upkeep.repair import repair

    found = repair(files, back=asked.back)
    lines = [*found.done, *(f"LOST     {each}" for each in found.lost)]
    if found.aside:
        lines.append(f"what was taken away is in {found.aside}")
    return asdict(found), lines or ["there is nothing to repair"], 0


def _restart_sink(files: Any, asked: argparse.Namespace) -> Answer:
    from ebbflow.engine.runtime.upkeep.repair import restart_sink

    epoch = restart_sink(files, asked.name)
    line = f"the sink {asked.name!r} begins again with everything when it is added the next time"
    return {"restarting": asked.name, "epoch": epoch}, [line], 0


def _end_sink(files: Any, asked: argparse.Namespace) -> Answer:
    from ebbflow.engine.runtime.upkeep.repair import end_sink

    end_sink(files, asked.name)
    return {"ended": asked.name}, [f"nothing is kept for the sink {asked.name!r} any more"], 0


ACTIONS: dict[str, tuple[Callable[[Any, argparse.Namespace], Answer], str]] = {
    "show": (_show, "what is there; what `ebbflow state DIR` does"),
    "verify": (_verify, "read everything, and say what is damaged"),
    "compact": (_compact, "merge the segments of every part into one"),
    "copy": (_copy, "have an epoch in another folder"),
    "repair": (_repair, "set right what can be"),
    "restart-sink": (_restart_sink, "rewrite the target of a sink when it is added again"),
    "end-sink": (_end_sink, "keep nothing any more for a sink that is gone"),
}
