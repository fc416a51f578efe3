"""Checking laws in a test suite: the fixture `check_laws`.

It is there wherever ebbflow is installed, and loads nothing until it is used.

    def test_our_reducers_survive_changes(check_laws):
        check_laws("shop.reducers")             every reducer and other lawful thing of a module
        check_laws(total, examples=1000)        one thing, with the options of `check`
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any

import pytest

from ebbflow.errors import CheckError, LawBroken


@pytest.fixture
def check_laws() -> Any:
    """Check one thing, or everything in a module that owes laws; fails with all that is wrong."""
    return _check_laws


def _check_laws(thing: Any, **options: Any) -> list[Any]:
    """The reports, one for each thing that was checked."""
    __tracebackhide__ = True
    from ebbflow.laws import check

    reports, refuted = [], []
    for name, each in _things(thing):
        try:
            reports.append(check(each, **options))
        except (LawBroken, CheckError) as trouble:
            refuted.append(f"{name}: {trouble}")
    if refuted:
        pytest.fail("\n\n".join(refuted), pytrace=False)
    return reports


def _things(thing: Any) -> list[tuple[str, Any]]:
    from ebbflow.laws import lawful

    module = import_module(thing) if isinstance(thing, str) else thing
    if not isinstance(module, ModuleType):
        return [(repr(thing), thing)]
    found = [(f"{module.__name__}.{name}", each) for name, each in lawful(module)]
    if not found:
        pytest.fail(f"{module.__name__} defines nothing that owes laws", pytrace=False)
    return found
