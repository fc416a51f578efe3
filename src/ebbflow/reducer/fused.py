"""The step of a reduce as one loop, for reducers whose steps can be written out.

Such a reducer says how in an `Inline`. Then rows need not be sorted into removals and additions,
nor added up before.

The step can also be taken in two: what a change adds to every cell, which does not depend on the
cells, and then that added to them. So cells need not be there before their keys are known, and
where rows and cells are in different places, only what they add up to has to travel.

    step(change, cells)  ==  settle(partial(change), cells)
    partial(a + b)       ==  partial(a), partial(b)             one after the other
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ebbflow.chain import Chain
from ebbflow.codegen import GeneratedLoop
from ebbflow.fn import Fn
from ebbflow.reducer.shape import Shape
from ebbflow.reducer.strategy import Part, part_of, refuse_negative_size, spoilt
from ebbflow.state.cells import ABSENT


class FusedReduce:
    """The loops of a reduce whose parts can all be written out."""

    def __init__(
        self,
        parts: Sequence[Part],
        key: Any,
        shape: Shape,
        row_type: Any,
        before: Chain,
        owner: Any,
    ) -> None:
        self.parts, self.key, self.shape, self.row_type = parts, key, shape, row_type
        self.before, self.owner = before, owner
        self.inlines = [part.reducer.inline for part in parts]
        self.names = [
            [f"a{i}_{j}" for j in range(len(inline.slots))] for i, inline in enumerate(self.inlines)
        ]
        self.slots = [name for several in self.names for name in several]
        self.cell = ", ".join(["size", *self.slots])
        self.start = (0, *(value for inline in self.inlines for value in inline.slots))

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

    def settle(self) -> Callable[..., Any]:
        """A loop like `step`, of pairs of a key and what is added to its cell."""
        loop = GeneratedLoop("settle", "pairs, values, old")
        loop.write("fresh, out, get = {}, {}, values.get")
        with loop.inside("for key, added in pairs:"):
            self._look_up(loop)
            others = [f"b{name}" for name in self.slots]
            loop.write(f"{', '.join(['n', *others])}, = added")
            for inline, own in zip(self.inlines, self.names, strict=True):
                more = {f"m{j}": f"b{name}" for j, name in enumerate(own)}
                for line in inline.merge:
                    loop.write(inline.text(loop, line, own, **more), self.owner)
            self._put_back(loop)
        self._give(loop)
        return loop.function()

    # ---- what they are made of ----

    def _add_rows(self, loop: GeneratedLoop) -> None:
        """Every row to the cell of its key in `fresh`."""
        with loop.inside("for row, n in change.items():"):
            row = self.before.write(loop, "row")
            if self.key is None:
                loop.write("key = ()")
            else:
                fn = self.key if isinstance(self.key, Fn) else Fn(self.key)
                loop.write(f"key = {fn.kept(loop.bind, row)}", self.owner or fn, row)
            self._look_up(loop, row)
            known: dict[str, str] = {}
            for part, inline, own in zip(self.parts, self.inlines, self.names, strict=True):
                blamed = self.owner or part.reducer
                x = row
                if inline.of is not None:
                    source = part_of(inline.of, self.row_type).source(loop.bind, row)
                    x = known.get(source, "")
                    if not x:
                        x = known[source] = f"x{len(known)}"
                        loop.write(f"{x} = {source}", blamed, row)
                for line in inline.step:
                    loop.write(inline.text(loop, line, own, x=x, n="n"), blamed, row)
            self._put_back(loop)

    def _look_up(self, loop: GeneratedLoop, *row: str) -> None:
        with loop.inside("if key in fresh:", self.owner or self.key, *row):
            loop.write(f"{self.cell}, = fresh[key]")
        with loop.inside("else:"):
            loop.write(f"{self.cell}, = get(key, {loop.bind(self.start)})")

    def _put_back(self, loop: GeneratedLoop) -> None:
        loop.write(f"fresh[key] = ({', '.join(['size + n', *self.slots])},)")

    def _give(self, loop: GeneratedLoop) -> None:
        """The cells in `fresh` become the state, and what changed is returned."""
        cell, owner = self.cell, self.owner
        results = [
            inline.text(loop, inline.result, own, size="size")
            for inline, own in zip(self.inlines, self.names, strict=True)
        ]
        made = self.shape.source(loop, "key", results)
        with loop.inside("for key, cell in fresh.items():"):
            loop.write("was = get(key)")
            with loop.inside("if was is None:"):
                loop.write(f"old[key] = {loop.bind(ABSENT)}")
                loop.write(f"{cell}, = cell")
                with loop.inside("if size > 0:"):
                    loop.write("values[key] = cell")
                    loop.write(f"out[{made}] = 1", owner)
                    loop.write("continue")
            with loop.inside("else:"):
                loop.write("old[key] = was")
                loop.write("if was == cell: continue")
                loop.write(f"{cell}, = was")
                loop.write(f"before = {made}", owner)
                loop.write(f"{cell}, = cell")
                with loop.inside("if size > 0:"):
                    loop.write("values[key] = cell")
                    loop.write(f"after = {made}", owner)
                    with loop.inside("if before != after:"):
                        loop.write("out[before] = -1")
                        loop.write("out[after] = 1", owner)
                    loop.write("continue")
                with loop.inside("if not size:"):
                    loop.write("del values[key]")
                    loop.write("out[before] = -1")
            loop.write(f"if size: {loop.bind(refuse_negative_size)}(key, size)", owner)
            start = loop.bind(self.start)
            loop.write(f"if cell != {start}: {loop.bind(spoilt)}(key, cell[1:])", owner)
        loop.write("return out")
