"""The command line: `ebbflow check module:name` tests the laws of what a module defines."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

from ebbflow.errors import CheckError, EbbflowError, LawBroken

EPILOG = """\
examples:
  ebbflow check shop.pricing:discounts            one thing
  ebbflow check shop.pricing                      every monoid, processor, ... the module defines
  ebbflow check shop:totals --examples 2000 --seed 7
  ebbflow check shop:totals --elements shop:sample_orders

exit status: 0 all laws hold, 1 a law is broken, 2 it could not be checked
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and give its exit status."""
    parser = argparse.ArgumentParser(prog="ebbflow", description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    checking = commands.add_parser(
        "check",
        help="test the laws of a monoid, processor, change structure, ...",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    checking.add_argument("things", nargs="+", metavar="module[:name]")
    checking.add_argument("--examples", type=_positive, default=200, metavar="N")
    checking.add_argument("--seed", type=int, default=0, metavar="N")
    checking.add_argument("--elements", metavar="module:name", help="what to draw inputs from")
    checking.add_argument("--changes", metavar="module:name", help="from a value to its changes")
    asked = parser.parse_args(arguments)
    sys.path.insert(0, os.getcwd())
    try:
        return _check(asked)
    except EbbflowError as error:
        print(f"ebbflow: {error}", file=sys.stderr)
        return 2


def _check(asked: argparse.Namespace) -> int:
    from ebbflow.laws import check

    elements = _load(asked.elements) if asked.elements else None
    changes = _load(asked.changes) if asked.changes else None
    status = 0
    for name, thing in [found for spec in asked.things for found in _things(spec)]:
        try:
            report = check(
                thing,
                elements=elements,
                changes=changes,
                examples=asked.examples,
                seed=asked.seed,
            )
            print(f"ok      {name}: {report}")
        except LawBroken as broken:
            status = 1
            print(f"BROKEN  {name}: {broken}")
    return status


def _things(spec: str) -> list[tuple[str, Any]]:
    """The named thing, or everything in a module that owes laws."""
    if ":" in spec:
        return [(spec, _load(spec))]
    from ebbflow.laws import owed

    module = _import(spec)
    kinds = tuple(kind for kind in owed.registry if kind is not object)
    ours = {id(thing) for own in _own_modules(spec) for thing in vars(own).values()}
    found = [
        (f"{spec}:{name}", thing)
        for name, thing in vars(module).items()
        if not name.startswith("_") and isinstance(thing, kinds) and id(thing) not in ours
    ]
    if not found:
        raise CheckError(
            f"{spec} defines nothing that owes laws",
            remedy="name one thing as module:name, or define a Monoid, Processor, ... there",
        )
    return found


def _own_modules(spec: str) -> list[Any]:
    """The modules of ebbflow, whose things a user's module only imports."""
    return [module for name, module in sys.modules.items()
            if name.split(".")[0] == "ebbflow" and name != spec]


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


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return number
