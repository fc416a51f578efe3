"""The command line: `ebbflow check` tests the laws of what a module defines, `ebbflow state` looks
after what a view keeps on disk, `ebbflow compile` compiles the kernels before a program needs them,
`ebbflow demo` keeps a shop up to date beside computing it again.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from importlib.util import find_spec
from typing import Any

import ebbflow
from ebbflow.cli_compile import run_compile
from ebbflow.cli_state import add_state, run_state, with_action
from ebbflow.errors import CheckError, EbbflowError, LawBroken, install, shown
from ebbflow.paths import own_cache

EPILOG = """\
examples:
  ebbflow check shop.pricing:discounts            one thing
  ebbflow check shop.pricing                      every monoid, processor, ... the module defines
  ebbflow check shop:totals --examples 2000 --seed 7
  ebbflow check shop:totals --elements shop:sample_orders
  ebbflow check shop.pricing --all                a line for each reducer: its verdict, and why

exit status: 0 all laws hold, 1 a law is broken, 2 it could not be checked
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and give its exit status."""
    parser = argparse.ArgumentParser(prog="ebbflow", description=__doc__.partition(": ")[2])
    parser.add_argument("--version", action="version", version=f"ebbflow {ebbflow.__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    checking = commands.add_parser(
        "check",
        help="test the laws of a monoid, processor, change structure, reducer, ...",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    checking.add_argument("things", nargs="+", metavar="module[:name]")
    checking.add_argument("--examples", type=_positive, default=200, metavar="N")
    checking.add_argument("--seed", type=int, default=0, metavar="N")
    checking.add_argument("--elements", metavar="module:name", help="what to draw inputs from")
    checking.add_argument("--changes", metavar="module:name", help="from a value to its changes")
    checking.add_argument("--all", action="store_true", help="a line for each reducer")
    add_state(commands)
    commands.add_parser("compile", help="compile all kernels now, as for an image")
    trying = commands.add_parser("demo", help="a shop kept up to date, beside computing it again")
    trying.add_argument("--engine", choices=["spark", "local"], default="spark")
    trying.add_argument(
        "--rows", type=_positive, metavar="N", help="order lines (100000; 1000000 with local)"
    )
    trying.add_argument("--epochs", type=_positive, default=4, metavar="N")
    trying.add_argument("--seed", type=int, default=0, metavar="N")
    trying.add_argument("--path", metavar="DIR", help="where the state goes, and stays")
    trying.add_argument("--explain", action="store_true", help="print the plan too")
    trying.add_argument("--json", action="store_true", help="the same for programs")
    asked = parser.parse_args(with_action(sys.argv[1:] if arguments is None else arguments))
    sys.path.insert(0, os.getcwd())
    os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", own_cache())
    try:
        run = {"check": _check, "state": run_state, "compile": run_compile, "demo": _demo}
        return run[asked.command](asked)
    except EbbflowError as error:
        print(f"ebbflow: {error}", file=sys.stderr)
        return 2


def _check(asked: argparse.Namespace) -> int:
    things = [found for spec in asked.things for found in _things(spec)]
    elements = _load(asked.elements) if asked.elements else None
    changes = _load(asked.changes) if asked.changes else None
    options = {"elements": elements, "examples": asked.examples, "seed": asked.seed}
    if asked.all:
        return _verdicts(things, options)
    status = 0
    for name, thing in things:
        try:
            print(f"ok      {name}: {_report(thing, changes, options)}")
        except LawBroken as broken:
            status = 1
            print(f"BROKEN  {name}: {broken}")
        except CheckError as error:
            status = status or 2
            print(f"unknown {name}: {error}")
    return status


def _report(thing: Any, changes: Any, options: dict[str, Any]) -> Any:
    """What a check found, with a proof where there may be one."""
    from ebbflow.laws import check
    from ebbflow.reducer import Reducer

    if not isinstance(thing, Reducer):
        return check(thing, changes=changes, **options)
    judged = _judged(thing, options)
    if judged.broken is not None:
        raise judged.broken
    return judged


def _judged(thing: Any, options: dict[str, Any]) -> Any:
    from ebbflow.laws import judge

    return judge(thing, prove=find_spec("z3") is not None, **options)


def _verdicts(things: list[tuple[str, Any]], options: dict[str, Any]) -> int:
    """Print a line for each reducer. The exit status is 1 if one is refuted, 2 if one could not be
    checked."""
    from ebbflow.reducer import Reducer

    reducers = [(name, thing) for name, thing in things if isinstance(thing, Reducer)]
    if not reducers:
        raise CheckError("there is no reducer to judge", remedy="a module that defines reducers")
    width = max(len(name) for name, _ in reducers)
    status = 0
    for name, reducer in reducers:
        try:
            judged = _judged(reducer, options)
            verdict, why = judged.verdict, _short(judged)
            status = 1 if verdict == "refuted" else status
        except CheckError as error:
            verdict, why, status = "unchecked", error.what, status or 2
        print(f"{verdict:<11} {name:<{width}}  {why}")
    return status


def _short(judged: Any) -> str:
    if judged.broken is not None:
        broken = judged.broken
        case = ", ".join(f"{name}={shown(value, width=80)}" for name, value in broken.case.items())
        return f"{broken.what.partition(' breaks a law: ')[2] or broken.what}: {case}"
    proved = judged.proof is not None and judged.proof.answer == "proved"
    evidence = f"proved for {judged.proof.domain}" if proved else (
        f"tested on {judged.examples} examples"
    )  # fmt: skip
    doubt = f"; but {judged.doubt}" if judged.doubt else ""
    return f"{judged.aggregate.split()[0]}; {evidence}{doubt}"


def _things(spec: str) -> list[tuple[str, Any]]:
    """The named thing, or everything in a module that owes laws."""
    if ":" in spec:
        return [(spec, _load(spec))]
    from ebbflow.laws import lawful

    found = [(f"{spec}:{name}", thing) for name, thing in lawful(_import(spec))]
    if not found:
        raise CheckError(
            f"{spec} defines nothing that owes laws",
            remedy="name one thing as module:name, or define a Monoid, Processor, ... there",
        )
    return found


def _load(spec: str) -> Any:
    module_name, _, path = spec.partition(":")
    thing: Any = _import(module_name)
    if not path:
        raise CheckError(f"{spec!r} names no thing", remedy="write it as module:name")
    for name in path.split("."):
        if not hasattr(thing, name):
            near = get_close_matches(name, dir(thing), n=3)
            raise CheckError(
                f"{module_name} has no {path!r}",
                remedy=" or ".join(near) if near else f"a name that {module_name} defines",
            )
        thing = getattr(thing, name)
    return thing


def _import(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise CheckError(
            f"no module {error.name!r}",
            remedy="name it as Python imports it from here: shop.pricing, not shop/pricing.py",
        ) from error
    except Exception as error:
        raise CheckError(
            f"importing {name!r} raised {type(error).__name__}: {error}",
            remedy=f"make `python -c 'import {name}'` work first",
        ) from error


# ---- demo ----


def _demo(asked: argparse.Namespace) -> int:
    """Run the demo. 1 if a view was not what computing it again gives."""
    try:
        from ebbflow.demo.run import run
        from ebbflow.demo.show import Printer, Silent
    except ModuleNotFoundError as error:
        raise CheckError(
            f"the demo needs {error.name}", remedy=install("laws", "durable", "spark")
        ) from error

    found = run(
        Silent() if asked.json else Printer(explain=asked.explain),
        engine=asked.engine,
        rows=asked.rows,
        epochs=asked.epochs,
        seed=asked.seed,
        path=asked.path,
    )
    if asked.json:
        print(json.dumps(found, indent=2))
    return 0 if found["verified"] else 1


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return number
