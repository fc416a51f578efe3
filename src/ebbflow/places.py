"""Places in the code of users, as errors and reports name them: `app.py:14`, `cell [5], line 3`."""

from __future__ import annotations

import os
import re
import sys


def file_and_line(where: str) -> tuple[str, int]:
    """The file and the line of a place, for a warning.

    >>> file_and_line("app.py:14"), file_and_line("cell [5], line 3"), file_and_line("?")
    (('app.py', 14), ('cell [5]', 3), ('?', 0))
    """
    found = re.fullmatch(r"(.*)(?::|, line )(\d+)", where, re.DOTALL)
    return (found[1], int(found[2])) if found else (where, 0)


def located(file: str, line: int) -> str:
    """A line of a file, as a reader finds it: a notebook has its cells in temporary files."""
    cell = cell_of(file)
    if cell:
        return f"{cell}, line {line}"
    try:
        relative = os.path.relpath(file) if os.path.isabs(file) else file
    except OSError:
        relative = file
    return f"{file if relative.startswith('..') else relative}:{line}"


def cell_of(file: str) -> str:
    """The cell of a notebook that a file was made for, by its number; "" for any other file."""
    ipython = sys.modules.get("IPython")
    if ipython is not None:
        try:
            _, name = ipython.get_ipython().compile.format_code_name(file)
            return f"cell {name.removeprefix('In')}"
        except Exception:  # no session, no such cell, or another version
            pass
    old = re.match(r"<ipython-input-(\d+)-", file)
    if old:
        return f"cell [{old[1]}]"
    return "a notebook cell" if re.search(r"[\\/]ipykernel_\d+[\\/]\d+\.py$", file) else ""
