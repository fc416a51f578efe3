"""Errors can always be shown, whatever they are about."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from ebbflow.change import NATURAL
from ebbflow.errors import ChangeError, EbbflowError, LawBroken, canonical, shown


class Broken:
    def __repr__(self) -> str:
        raise RuntimeError("no")


def test_what_cannot_be_shown_is_said_to_be_so() -> None:
    assert "cannot be shown: no" in shown(Broken())
    assert "cannot be shown" in str(EbbflowError("x", value=[Broken(), 1]))
    with pytest.raises(ChangeError):
        NATURAL.patch(1, -(10**5000))


def test_sets_are_shown_in_order_at_any_depth() -> None:
    assert canonical({"a": (frozenset({"y", "x"}),)}) == "{'a': (frozenset({'x', 'y'}),)}"
    assert canonical((set(), frozenset(), (), [], {})) == "(set(), frozenset(), (), [], {})"


def test_long_values_are_cut_in_the_middle() -> None:
    text = shown(list(range(10_000)))
    assert len(text) <= 400
    assert text.startswith("[0, 1")
    assert text.endswith("9999]")


def test_a_law_that_was_broken_elsewhere_still_has_its_attributes() -> None:
    assert LawBroken("x").case == {}
    assert LawBroken("x").law is None


def test_things_can_be_made_where_there_is_no_folder(tmp_path: object) -> None:
    code = (
        "import os, tempfile; d = tempfile.mkdtemp(); os.chdir(d); os.rmdir(d)\n"
        "from ebbflow.algebra import Monoid; Monoid(0, max)"
    )
    done = subprocess.run([sys.executable, "-c", code], env=dict(os.environ), check=False)
    assert done.returncode == 0
