"""Verbs on rows that happen at some time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ebbflow.flow import windows
from ebbflow.flow.parts import Part
from ebbflow.flow.verbs.base import Verbs

if TYPE_CHECKING:
    from ebbflow.flow.collection import Collection


class TimeVerbs(Verbs):
    """What is made of rows with a time."""

    def tumbling(self, time: Part, size: Any, *, origin: Any = None) -> Collection:
        """Every row with the window of this size that its time is in: `window_start`, `window_end`.

        >>> import ebbflow as ef
        >>> from ebbflow.record import record
        >>> ef.Input("hits", record("Hit", page=str, at=int)).tumbling("at", 60).type._fields
        ('page', 'at', 'window_start', 'window_end')
        """
        return self.with_node(windows.tumbled(self.node, time, size, origin))

    def sliding(self, time: Part, size: Any, every: Any, *, origin: Any = None) -> Collection:
        """Every row once for each window that its time is in; a new window starts every `every`.

        >>> import ebbflow as ef
        >>> ef.Input("hits", int).sliding(lambda hit: hit, 60, 30)
        <tuple[int, Any, Any]: hits → flat_map>
        """
        return self.with_node(windows.slid(self.node, time, size, every, origin))

    def session(self, time: Part, gap: Any, *, per: Part | None = None) -> Collection:
        """Every row with its session: rows of one `per` that follow each other within `gap`.

        The session starts with its first row and ends `gap` after its last.

        >>> import ebbflow as ef
        >>> from ebbflow.record import record
        >>> hits = ef.Input("hits", record("Hit", user=str, at=int))
        >>> hits.session("at", 600, per="user")
        <Hit(user, at, window_start, window_end): hits → session>
        """
        return self.with_node(windows.in_sessions(self.node, time, gap, per))
