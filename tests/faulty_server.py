"""What the stores for tests have in common: faults for a while, and a place for each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

Fault = Callable[..., Any]
"""What goes wrong with a request, if anything."""


def nothing(*request: Any) -> None:
    """The fault of a server that behaves."""


class FaultyServer:
    """A server that asks `fault` about every request."""

    fault: Fault = staticmethod(nothing)

    @contextmanager
    def faulty(self, fault: Fault) -> Iterator[None]:
        """Misbehave for a while."""
        self.fault = fault
        try:
            yield
        finally:
            self.fault = nothing


def first(times: int, fault: Any, asked: Callable[..., bool]) -> Fault:
    """A fault for so many of the requests that `asked` is true of, the first ones."""
    left = [times]

    def decide(*request: Any) -> Any:
        if left[0] and asked(*request):
            left[0] -= 1
            return fault
        return None

    return decide


@pytest.fixture
def place(server: Any, tmp_path: Any) -> Any:
    """A new folder on the server, with a cache of its own."""
    return server.place(cache=tmp_path / "cache", patience=5.0)
