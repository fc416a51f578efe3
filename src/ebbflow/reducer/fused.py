"""The step of a reduce as one loop, for reducers whose steps can be generated.

Such a reducer says how in an `Inline`. Then rows need not be sorted into removals and additions,
nor added up before.

The step can also be taken in two: what a change adds to every cell, which does not depend on the
cells, and then that added to them. So cells need not be there before their keys are known, and
where rows and cells are in different places, only what they add up to has to travel.

    step(change, cells)  ==  merge(partial(change), cells)
    partial(a + b)       ==  partial(a), partial(b)             one after the other
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ebbflow.chain import Chain, key_source
from ebbflow.codegen import GeneratedLoop, name_of
from ebbflow.reducer.shape import ResultShape
from ebbflow.reducer.strategy import (
    GroupStrategy,
    part_of_row,
    refuse_leftover,
    refuse_negative_size,
)
from ebbflow.state.cells import ABSENT

_ADD_ROWS = """
    for row, n in change.items():
        $before
        key = $key
        if key in fresh:
            $cell, = fresh[key]
        else:
            $cell, = get(key, $NO_ROWS)
        $add
        fresh[key] = ($changed,)
"""

_MERGE = """
    for key, added in pairs:
        if key in fresh:
            $cell, = fresh[key]
        else:
            $cell, = get(key, $NO_ROWS)
        $added, = added
        $merge
        fresh[key] = ($changed,)
"""

_GIVE = """
    for key, cell in fresh.items():
        was = get(key)
        if was is None:
            old[key] = $ABSENT
            $cell, = cell
            if size > 0:
                values[key] = cell
                out[$made] = 1
                continue
        else:
            old[key] = was
            if was == cell: continue
            $cell, = was
            before = $made
            $cell, = cell
            if size > 0:
                values[key] = cell
                after = $made
                if before != after:
                    out[before] = -1
                    out[after] = 1
                continue
            if not size:
                del values[key]
                out[before] = -1
        if size: $refuse_negative_size(key, size)
        if cell != $NO_ROWS: $refuse_leftover(key, cell[1:])
    return out
"""


class FusedReduce:
    """The loops of a reduce whose parts can all be generated.

    In them a cell is spread over variables: `size`, the number of rows of the group, and the slots
    of each part, called after its reducer.
    """

    def __init__(
        self,
        parts: Sequence[GroupStrategy],
        key: Any,
        shape: ResultShape,
        row_type: Any,
        before: Chain,
        owner: Any,
    ) -> None:
        self.parts, self.key, self.shape, self.row_type = parts, key, shape, row_type
        self.before, self.owner = before, owner
        self.inlines = [part.reducer.inline for part in parts]
        self.names = _slot_names(parts)
        self.slots = [name for several in self.names for name in several]
        self.cells = {
            "cell": ", ".join(["size", *self.slots]),
            "changed": ", ".join(["size + n", *self.slots]),
            "NO_ROWS": (0, *(value for inline in self.inlines for value in inline.slots)),
        }

    @property
    def can_merge(self) -> bool:
        """Whether what is added can be computed apart."""
        return all(inline.can_merge for inline in self.inlines)

    def step(self) -> Callable[..., Any]:
        """A loop of a change, the cells' values, and a dict that gets the old ones; it gives the
        change of the results."""
        loop = GeneratedLoop("step", "change, values, old")
        loop.write("fresh, out, get = {}, {}, values.get")
        self._add_rows(loop)
        self._give(loop)
        return loop.function()

    def partial(self) -> Callable[..., Any]:
        """A loop of a change that gives, for every key, what it adds to its cell."""
        loop = GeneratedLoop("partial", "change")
        loop.write("fresh, get = {}, {}.get")
        self._add_rows(loop)
        loop.write("return fresh")
        return loop.function()

    def merge(self) -> Callable[..., Any]:
        """A loop like `step`, of pairs of a key and what is added to its cell."""
        loop = GeneratedLoop("merge", "pairs, values, old")
        loop.write("fresh, out, get = {}, {}, values.get")
        added = ", ".join(["n", *(f"more_{name}" for name in self.slots)])
        loop.template(
            _MERGE, self.owner or self.key, **self.cells, added=added,
            merge=partial(self._merge_slots, loop),
        )  # fmt: skip
        self._give(loop)
        return loop.function()

    # ---- what they are made of ----

    def _add_rows(self, loop: GeneratedLoop) -> None:
        """Every row is added to the cell of its key in `fresh`."""
        row = self.before.last_row
        loop.template(
            _ADD_ROWS, self.owner or self.key, row, **self.cells,
            key=key_source(loop, self.key, row), before=partial(self.before.write, loop),
            add=partial(self._add_row, loop, row),
        )  # fmt: skip

    def _add_row(self, loop: GeneratedLoop, row: str) -> None:
        """What each part looks at is computed once, and added to its slots."""
        known: dict[str, str] = {}
        for part, inline, own in zip(self.parts, self.inlines, self.names, strict=True):
            blamed = self.owner or part.reducer
            x = row
            if inline.of is not None:
                source = part_of_row(inline.of, self.row_type).source(loop.bind, row)
                x = known.get(source, "")
                if not x:
                    x = known[source] = f"x{len(known)}"
                    loop.write(f"{x} = {source}", blamed, row)
            for line in inline.step:
                loop.write(inline.text(loop, line, own, x=x, n="n"), blamed, row)

    def _merge_slots(self, loop: GeneratedLoop) -> None:
        for inline, own in zip(self.inlines, self.names, strict=True):
            more = {f"m{j}": f"more_{name}" for j, name in enumerate(own)}
            for line in inline.merge:
                loop.write(inline.text(loop, line, own, **more), self.owner)

    def _give(self, loop: GeneratedLoop) -> None:
        """The cells in `fresh` become the state, and what changed is returned."""
        results = [
            inline.text(loop, inline.result, own, size="size")
            for inline, own in zip(self.inlines, self.names, strict=True)
        ]
        loop.template(
            _GIVE, self.owner, **self.cells, made=self.shape.source(loop, "key", results),
            ABSENT=ABSENT, refuse_negative_size=refuse_negative_size,
            refuse_leftover=refuse_leftover,
        )  # fmt: skip


def _slot_names(parts: Sequence[GroupStrategy]) -> list[list[str]]:
    """The variables of each part: `sum_0, sum_1`, those of a second sum `sum2_0, sum2_1`."""
    seen: Counter[str] = Counter()
    found = []
    for part in parts:
        made = part.reducer.made
        name = "part" if made is None else name_of(made[0])
        seen[name] += 1
        front = name if seen[name] == 1 else f"{name}{seen[name]}"
        found.append([f"{front}_{j}" for j in range(len(part.reducer.inline.slots))])
    return found
