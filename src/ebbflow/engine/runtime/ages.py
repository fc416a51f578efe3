"""Ages: when the epochs of a state were committed, and so which are too young to go.

How many epochs are kept is a number (`keep_epochs`); with `keep_for` those are kept as well that
were committed since then. So that a view that is opened again knows, the times are noted with every
manifest.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from time import time
from typing import Any

from ebbflow.errors import CompositionError, shown

TIMES = "times"


class Ages:
    """The times of the epochs that are kept for their age, by number."""

    def __init__(self, keep_for: timedelta, notes: Mapping[str, Any]) -> None:
        self.seconds = keep_for.total_seconds()
        noted = notes.get(TIMES, {}) if self.seconds else {}
        self.times: dict[int, float] = {int(epoch): at for epoch, at in noted.items()}

    def young(self, epoch: int) -> range:
        """The epochs that are kept for their age when `epoch` is committed now: up to this one, or
        none. Of those whose time was not noted, as they were written together, it is that of the
        next."""
        if not self.seconds:
            return range(0)
        now = time()
        for each in range(max((n for n in self.times if n < epoch), default=epoch - 1) + 1, epoch):
            self.times[each] = now
        self.times[epoch] = now
        first = min(each for each, at in self.times.items() if at >= now - self.seconds)
        self.times = {each: self.times[each] for each in sorted(self.times) if each >= first}
        return range(first, epoch + 1)

    def noted(self) -> dict[str, Any]:
        """What a manifest says of them."""
        return {TIMES: {str(each): at for each, at in self.times.items()}} if self.seconds else {}


def require_age(call: str, keep_for: Any) -> None:
    """Refuse what is no time to keep epochs for.

    >>> require_age("run", timedelta(hours=1))
    """
    if not isinstance(keep_for, timedelta) or keep_for < timedelta(0):
        raise CompositionError(
            f"{call}(keep_for={shown(keep_for, width=40)}): it must be a time",
            remedy="timedelta(hours=1)",
        )
