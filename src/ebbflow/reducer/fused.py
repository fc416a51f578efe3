"""The step of a reduce as one generated loop.

A reducer that can be generated says how in an `Inline`. Where all parts can, and are groups, rows
need not be sorted into removals and additions, nor by key, nor added up before: `step`. Otherwise
rows come by key, `step_groups`, and what cannot be generated is called once for each group, beside
the rest.

The step can also be taken in two: what a change adds to every cell, which does not depend on the
cells, and then that added to them. So cells need not be there before their keys are known, and
where rows and cells are in different places, only what they add up to has to travel.

    step(change, cells)  ==  merge(partial(change), cells)
    partial(a + b)       ==  partial(a), partial(b)             one after the other
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count
from typing import Any

from ebbflow.chain import Chain, key_source
from ebbflow.codegen import GeneratedLoop, name_of
from ebbflow.reducer.inline import PlacedPart
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


_GROUPS = """
    for key, pairs in found.items():
        was = get(key)
        $cell, before = $NO_ROWS if was is None else was
        $open
        for row, n in pairs:
            size += n
            $add
        if size < 0: $refuse_negative_size(key, size)
        $rows
        $close
        old[key] = $ABSENT if was is None else was
        if size:
            after = $made
            values[key] = ($cell, after)
            if before != after:
                if was is not None: out[before] = -1
                out[after] = 1
            continue
        if ($cell,) != $EMPTY: $require_empty(key, ($cell,))
        if was is not None:
            del values[key]
            out[before] = -1
    return out
"""


class FusedReduce:
    """The loops of a reduce.

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
        self.inlines: list[Any] = [part.inline for part in parts]
        self.names = _slot_names(parts)
        self.slots = [name for several in self.names for name in several]
        self.cells = {
            "cell": ", ".join(["size", *self.slots]),
            "changed": ", ".join(["size + n", *self.slots]),
            "NO_ROWS": (0, *(value for part in parts for value in part.slots)),
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

    def step_groups(self, require_empty: Callable[[Any, Any], None]) -> Callable[..., Any]:
        """A loop like `step`, of rows by key, and of all rows by key, where they are kept. A cell
        has the row that was given for it at its end."""
        loop = GeneratedLoop("step_groups", "found, groups, values, old")
        loop.write("out, get = {}, values.get")
        lists = [self._seen(i) for i, inline in enumerate(self.inlines) if inline and inline.close]
        kept = any(part.keeps_rows for part in self.parts)
        loop.template(
            _GROUPS, self.owner, cell=self.cells["cell"], NO_ROWS=(*self.cells["NO_ROWS"], None),
            EMPTY=self.cells["NO_ROWS"], ABSENT=ABSENT, refuse_negative_size=refuse_negative_size,
            require_empty=require_empty, rows="rows = groups.get(key)" if kept else "",
            open=f"{', '.join(lists)} = {', '.join(['[]'] * len(lists))}" if lists else "",
            add=partial(self._add_row, loop, "row"), close=partial(self._close, loop, kept),
            made=self.shape.source(loop, "key", self._results(loop)),
        )  # fmt: skip
        return loop.function()

    # ---- what they are made of ----

    def _seen(self, number: int) -> str:
        return f"seen_{number}"

    def _close(self, loop: GeneratedLoop, kept: bool) -> None:
        """What each part does once for a group."""
        for i, (part, inline, own) in enumerate(
            zip(self.parts, self.inlines, self.names, strict=True)
        ):
            blamed = self.owner or part.reducer
            rows = "rows" if kept and part.keeps_rows else "None"
            if inline is None:
                loop.write(f"{own[0]} = {loop.bind(part.update)}({own[0]}, pairs, {rows})", blamed)
                continue
            for line in inline.close:
                text = inline.text(loop, line, own, seen=self._seen(i), rows=rows)
                loop.write(text, blamed)

    def _results(self, loop: GeneratedLoop) -> list[str]:
        return [
            f"{loop.bind(part.result)}({own[0]})" if inline is None
            else inline.text(loop, inline.result, own, size="size")
            for part, inline, own in zip(self.parts, self.inlines, self.names, strict=True)
        ]  # fmt: skip

    def _add_rows(self, loop: GeneratedLoop) -> None:
        """Every row is added to the cell of its key in `fresh`."""
        row = self.before.last_row
        loop.template(
            _ADD_ROWS, self.owner or self.key, row, **self.cells,
            key=key_source(loop, self.key, row), before=partial(self.before.write, loop),
            add=partial(self._add_row, loop, row),
        )  # fmt: skip

    def _add_row(self, loop: GeneratedLoop, row: str) -> None:
        """What each part looks at is computed once, and added to its slots. Parts that ask the same
        of a row stand together under one question."""
        known: dict[str, str] = {}
        names = map("x{}".format, count())
        asked: dict[tuple[str, ...], list[int]] = {}
        for i, inline in enumerate(self.inlines):
            if inline is not None:
                asked.setdefault(self._questions(loop, inline, row), []).append(i)
        depth = loop.depth
        for questions, numbers in asked.items():
            if questions:
                blamed = self.owner or self.parts[numbers[0]].reducer
                loop.write(f"if {' and '.join(questions)}:", blamed, row)
                loop.depth += 1
            inside = known if not questions else dict(known)
            for i in numbers:
                self._add_value(loop, row, i, inside, names)
            loop.depth = depth

    def _questions(self, loop: GeneratedLoop, inline: Any, row: str) -> tuple[str, ...]:
        return tuple([part_of_row(w, self.row_type).source(loop.bind, row) for w in inline.when])

    def _add_value(
        self, loop: GeneratedLoop, row: str, i: int, known: dict[str, str], names: Iterator[str]
    ) -> None:
        part, inline, own = self.parts[i], self.inlines[i], self.names[i]
        blamed = self.owner or part.reducer

        def value(of: Any) -> str:
            """The variable with a part of the row, of which one NaN is kept where that matters."""
            if of is None:
                return row
            fn = part_of_row(of, self.row_type)
            source = fn.kept(loop.bind, row) if inline.close else fn.source(loop.bind, row)
            if source not in known:
                known[source] = next(names)
                loop.write(f"{known[source]} = {source}", blamed, row)
            return known[source]

        if isinstance(inline.of, PlacedPart):
            place, shown = value(inline.of.by), value(inline.of.part)
            holes = {"placed": place, "x": f"({place}, {shown})"}
        else:
            x = value(inline.of)
            holes = {"placed": x, "x": x}
        for line in inline.step:
            text = inline.text(loop, line, own, n="n", seen=self._seen(i), **holes)
            loop.write(text, blamed, row)

    def _merge_slots(self, loop: GeneratedLoop) -> None:
        for inline, own in zip(self.inlines, self.names, strict=True):
            more = {f"m{j}": f"more_{name}" for j, name in enumerate(own)}
            for line in inline.merge:
                loop.write(inline.text(loop, line, own, **more), self.owner)

    def _give(self, loop: GeneratedLoop) -> None:
        """The cells in `fresh` become the state, and what changed is returned."""
        made = self.shape.source(loop, "key", self._results(loop))
        loop.template(
            _GIVE, self.owner, **self.cells, made=made, ABSENT=ABSENT,
            refuse_negative_size=refuse_negative_size, refuse_leftover=refuse_leftover,
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
        found.append([f"{front}_{j}" for j in range(len(part.slots))])
    return found
