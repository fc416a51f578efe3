"""The local engine: a plan runs in this process, and every change costs what it changes."""

from __future__ import annotations

from ebbflow.engine.local.view import View
from ebbflow.flow.plan import Plan

__all__ = ["View", "run"]


def run(plan: Plan, *, check_input: bool = True) -> View:
    """Run a plan here, starting from empty inputs.

    With `check_input=False` inputs without a key are trusted: nothing is checked, their rows are
    not kept, which saves their memory, and `verify()` is not to be had.

    >>> from ebbflow.flow.plan import Distinct, Source
    >>> view = run(Plan({"words": Distinct(parent=Source(name="said"))}))
    >>> view.step(said=["ebb", "flow", "ebb"])
    ZSet({'ebb': 1, 'flow': 1})
    """
    from ebbflow.engine.local.machine import Machine

    return View(plan, Machine(plan), check_input=check_input)
