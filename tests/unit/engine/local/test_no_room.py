"""A disk without room: an error of ours that names the place, a state that stays, and a view that
goes on when there is room. The limit on the size of files stands for a full disk."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("resource")

LIMITED = """
import json, resource, signal, sys, traceback
from typing import NamedTuple
import ebbflow as ef

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
path, options = sys.argv[1], json.loads(sys.argv[2])

class Order(NamedTuple):
    id: int
    city: str

def limited(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

def refused(call, *words):
    try:
        call()
    except ef.EbbflowError as error:
        said = str(error)
        assert all(word in said for word in (path, *words)), said
        assert error.remedy, said
    else:
        raise AssertionError("there was room")

orders = ef.Input("orders", Order, key="id")
program = orders.group_by("city").agg(n=ef.count())
few = [Order(n, "Rome") for n in range(50)]
many = [Order(n, f"city {n}") for n in range(1000, 6000)]
"""

STEPS = """
limited(10)
refused(lambda: program.run(path=path, **options))
limited(-1)
with program.run(path=path, **options) as view:
    view.step(orders=few)
    before, epoch = view.value, view.epoch
    limited(2000)
    for _ in range(2):
        refused(lambda: view.step(orders=many), "File too large")
        assert (view.value, view.epoch) == (before, epoch)
    limited(-1)
    view.step(orders=many)
    assert len(view.value) == 5001
    view.verify()
with program.run(path=path, **options) as view:
    assert len(view.value) == 5001
    view.verify()
"""

SINKS = """
with program.run() as view:
    view.step(orders=few)
    view.write_changes(path + "/log", format=options["format"])
    limited(10)
    refused(lambda: view.write_snapshot(path + "/now", format=options["format"]), "write_snapshot")
    refused(lambda: view.step(orders=many), "write_changes: epoch 2", "epoch=2")
    assert len(view.value) == 5001
    limited(-1)
    view.deliver()
    assert view.sinks == {name: 2 for name in view.sinks}
    view.write_snapshot(path + "/now", format=options["format"])
"""

LOOPS = """
from ebbflow.kernel.compiled import generated
twice = generated("twice", "def twice(n): return n + n", {})
limited(10)
assert twice(21) == 42
"""


def run(text: str, path: Path, options: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", LIMITED + text, str(path), options],
        capture_output=True, text=True, env=os.environ | environment, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.mark.parametrize("options", ["{}", '{"readable": true}', '{"memory": "1MB"}'])
def test_epoch_without_room_changes_nothing_and_can_be_repeated(
    tmp_path: Path, options: str
) -> None:
    run(STEPS, tmp_path, options)


@pytest.mark.parametrize("format", ["parquet", "csv", "jsonl"])
def test_sink_without_room_gets_its_epoch_when_there_is_room(tmp_path: Path, format: str) -> None:
    run(SINKS, tmp_path, f'{{"format": "{format}"}}')


def test_compiled_loop_runs_without_room_to_keep_it(tmp_path: Path) -> None:
    pytest.importorskip("numba")
    said = run(LOOPS, tmp_path, "{}", NUMBA_CACHE_DIR=str(tmp_path))
    assert "a compiled loop could not be kept: " in said


def test_path_that_is_a_file_is_named(tmp_path: Path) -> None:
    import ebbflow as ef

    file = tmp_path / "file"
    file.write_text("x")
    view: Any = ef.Input("words", str).run()
    for path in (file, file / "below"):
        with pytest.raises(ef.EbbflowError) as error:
            view.write_snapshot(path)
        assert str(path) in str(error.value)
        assert error.value.remedy
