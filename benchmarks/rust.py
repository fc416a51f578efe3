"""The program in `differential/`, in Rust: built where `cargo` is there, and asked by lines."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent / "differential"
TARGET = Path(os.environ.get("CARGO_TARGET_DIR") or FOLDER / "target")
PROGRAM = TARGET / "release" / "differential"


def is_built(build: bool) -> bool:
    """Whether the program is there. It is built, if that is wanted, in minutes: the first time, and
    when its text has changed."""
    path = os.pathsep.join([os.environ.get("PATH", ""), str(Path.home() / ".cargo" / "bin")])
    if build and not _is_new() and (cargo := shutil.which("cargo", path=path)):
        print("building the program in Rust, once", file=sys.stderr, flush=True)
        subprocess.run([cargo, "build", "--release", "--quiet"], cwd=FOLDER, check=False)
    return PROGRAM.exists()


def _is_new() -> bool:
    changed = max(file.stat().st_mtime for file in (FOLDER / "src").iterdir())
    return PROGRAM.exists() and PROGRAM.stat().st_mtime >= changed


class RustProgram:
    """A query that runs in Rust, with one worker; `taken` is what it says that the last step took,
    in seconds on the clock and on the processor."""

    def __init__(self, query: str) -> None:
        self.query = query
        self.program = subprocess.Popen(
            [PROGRAM, query], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.program.stdin is not None
        assert self.program.stdout is not None
        self.tell, self.hear = self.program.stdin, self.program.stdout
        self.taken = 0.0, 0.0

    def step(self, ready: str) -> None:
        """Give lines of changes, and run."""
        self.tell.write(ready)
        self.tell.write("step\n")
        self.tell.flush()
        wall, used = map(int, self.hear.readline().split())
        self.taken = wall / 1e9, used / 1e9

    def rows(self) -> list[Any]:
        """The rows of the result, each with its weight behind it."""
        self.tell.write("value\n")
        self.tell.flush()
        count = int(self.hear.readline())
        return [tuple(map(int, self.hear.readline().split())) for _ in range(count)]

    def close(self) -> None:
        self.tell.close()
        self.program.wait(60)
        self.hear.close()
