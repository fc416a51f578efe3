"""The step of a reduce as one loop, for reducers whose steps can be written out.

Such a reducer says how in an `Inline`. Then rows need not be sorted into removals and additions,
nor added up before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ebbflow.chain import Chain
from ebbflow.fn import Fn
from ebbflow.loop import Loop
from ebbflow.reducer.parts import Part, owing, part_of, spoilt
from ebbflow.reducer.shape import Shape
from ebbflow.state.cells import ABSENT


def written(
    parts: Sequence[Part], key: Any, shape: Shape, kind: Any, before: Chain, owner: Any
) -> Callable[..., Any] | None:
    """The loop, or None when a part cannot be written out.

    Its arguments are a change, the cells' values, and a dict that gets the old ones.
    """
    inlines = [part.reducer.inline for part in parts]
    if None in inlines:
        return None
    names = [[f"a{i}_{j}" for j in range(len(inline.slots))] for i, inline in enumerate(inlines)]
    slots = [name for several in names for name in several]
    cell = ", ".join(["size", *slots])
    start = (0, *(value for inline in inlines for value in inline.slots))
    results = []

    loop = Loop("step", "change, values, old")
    loop.write("fresh, out, get = {}, {}, values.get")
    with loop.inside("for row, n in change.items():"):
        row = before.write(loop, "row")
        if key is None:
            loop.write("key = ()")
        else:
            fn = key if isinstance(key, Fn) else Fn(key)
            loop.write(f"key = {fn.source(loop.bind, row)}", owner or fn, row)
        with loop.inside("if key in fresh:", owner or key, row):
            loop.write(f"{cell}, = fresh[key]")
        with loop.inside("else:"):
            loop.write(f"{cell}, = get(key, {loop.bind(start)})")
        known: dict[str, str] = {}
        for part, inline, own in zip(parts, inlines, names, strict=True):
            blamed = owner or part.reducer
            x = row
            if inline.of is not None:
                source = part_of(inline.of, kind).source(loop.bind, row)
                x = known.get(source, "")
                if not x:
                    x = known[source] = f"x{len(known)}"
                    loop.write(f"{x} = {source}", blamed, row)
            for line in inline.step:
                loop.write(inline.text(loop, line, own, x=x, n="n"), blamed, row)
            results.append(inline.text(loop, inline.result, own, size="size"))
        loop.write(f"fresh[key] = ({', '.join(['size + n', *slots])},)")
    made = shape.source(loop, "key", results)
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
        loop.write(f"if size: {loop.bind(owing)}(key, size)", owner)
        loop.write(f"if cell != {loop.bind(start)}: {loop.bind(spoilt)}(key, cell[1:])", owner)
    loop.write("return out")
    return loop.function()
