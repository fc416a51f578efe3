"""Steps of reducers as text, to be put into a loop instead of a call."""

from __future__ import annotations

from typing import Any, NamedTuple

from ebbflow.loop import Loop


class Inline(NamedTuple):
    """How a reducer's step and result are written, and the functions that the text names.

    In the text `{acc}` is the accumulator, `{x}` the part of the row that the reducer looks at
    (`of`), and `{n}` how often the row comes, or goes when negative. The reducer must be a group:
    whatever comes and goes, in whatever order, only the sum counts.

    >>> Inline(None, ("{acc} += {n}",), "{acc}").text(Loop("f", ""), "{acc} += {n}", acc="a", n="n")
    'a += n'
    """

    of: Any
    step: tuple[str, ...]
    result: str
    names: tuple[tuple[str, Any], ...] = ()

    def text(self, loop: Loop, template: str, **holes: str) -> str:
        """The template with its holes filled."""
        return template.format(**holes, **{name: loop.bind(f) for name, f in self.names})
