"""`ebbflow compile` calls every kernel there is, so that no program has to wait for one."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from ebbflow import cli, cli_compile

FOR_TESTS = {
    "fixed.root", "fixed.quotient", "scaled.quotient_half_up", "text_order._is_behind",
}  # fmt: skip
"""What is inside of other loops, and is called by itself in tests alone."""
CALLED = """
from ebbflow.cli_compile import compile_kernels
from ebbflow.kernel.compiled import LOOPS

compile_kernels()
print(*(f"{loop.__module__}.{loop.__name__}" for loop in LOOPS if not loop.signatures))
"""


def test_every_kernel_is_compiled() -> None:
    pytest.importorskip("numba")
    done = subprocess.run([sys.executable, "-c", CALLED], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    left = {name.removeprefix("ebbflow.kernel.") for name in done.stdout.split()}
    inside = {"group_loops._add"}  # when it is kept already, it is read as a part of another
    assert left - inside <= FOR_TESTS, f"a program of ebbflow.cli_compile should call {left}"


def test_what_the_command_says(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(cli_compile, "compile_kernels", lambda: None)
    monkeypatch.setattr(cli_compile, "missing", list)
    assert cli.main(["compile"]) == 0
    assert capsys.readouterr().out == "all kernels are compiled\n"
    monkeypatch.setattr(cli_compile, "missing", lambda: ["numba"])
    assert cli.main(["compile"]) == 2
    said = capsys.readouterr().err
    assert "there are no kernels to compile: numba is not installed" in said
    assert "pip install '.[fast]' in a clone" in said
