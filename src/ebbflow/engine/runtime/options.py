"""What `run` and the engines can be told: options, refused where they make no sense."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any

from ebbflow.errors import CompositionError, EbbflowError, Text, place, shown

UNITS = {"": 1, "B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}


def require_known(
    call: str, given: Iterable[str], known: Sequence[str], *, near: str, otherwise: str
) -> None:
    """Refuse an option that a call does not have, such as a misspelt one. The remedy is `near`,
    with the option that is meant, or `otherwise`, where none is."""
    for name in given:
        if name not in known:
            meant = get_close_matches(name, known, 1)
            raise CompositionError(
                f"{call}({name}=...): there is no such option",
                options=Text(", ".join(known)),
                created=place(),
                remedy=near.format(meant[0]) if meant else otherwise,
            )


def in_bytes(memory: int | str) -> int:
    """An amount of memory in bytes.

    >>> in_bytes("512MB"), in_bytes("1.5 GB"), in_bytes(1000)
    (536870912, 1610612736, 1000)
    """
    text = str(memory).strip().upper()
    number = text.rstrip("KMGTB ")
    unit = text[len(number) :].strip()
    try:
        found = int(float(number) * UNITS[unit])
    except (KeyError, ValueError, OverflowError):
        found = -1
    if found < 0:
        raise EbbflowError(
            f"memory={memory!r} is no amount of memory", remedy='"512MB", "2GB", or bytes as an int'
        )
    return memory if isinstance(memory, int) else found


def require_count(name: str, given: Any, of: str = "epochs") -> None:
    if type(given) is not int or given < 1:
        raise CompositionError(
            f"run({name}={shown(given, width=40)}): that is no number of {of}",
            remedy=f"run({name}=1), or more",
        )
