"""Names that a view, its inputs and its outputs do not have, answered for the program that runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ebbflow.errors import UnknownVerb
from ebbflow.flow.plan import Plan, Source
from ebbflow.public import unknown


def unknown_of(
    what: str, name: str, instead: Mapping[str, str], known: Iterable[str], plan: Plan, *,
    input: str | None = None, output: str | None = None, zsets: str = "value",
) -> UnknownVerb:  # fmt: skip
    """Return the error for a name that a view or a part of it does not have. `zsets` is how the
    view gives its outputs as Z-sets.

    >>> from ebbflow.names import VIEW
    >>> plan = Plan({"totals": Source(name="orders")})
    >>> unknown_of("a view", "insert", VIEW, [], plan).remedy
    'view.input("orders").add(row), or view.step(orders=[row])'
    """
    rows = [each.name for each in plan.sources.values() if isinstance(each, Source)]
    of = input or next(iter(rows or plan.sources), "name")
    source = plan.sources.get(of)
    keyed = isinstance(source, Source) and source.key is not None
    part = f'["{output or next(iter(plan.outputs))}"]'
    here = f'view.input("{of}")'
    words = {
        "input": here,
        "output": f"view{part}",
        "value": f"view{part}.value" if len(plan.outputs) > 1 else "view.value",
        "zset": f"view.{zsets}{part if len(plan.outputs) > 1 else ''}",
        "step": f"view.step({of}=[row])" if of.isidentifier() else f'view.step({{"{of}": [row]}})',
        "update": f"{here}.upsert(row)" if keyed else f"{here}.apply({{old: -1, new: 1}})",
        "delete": f"{here}.delete(key)" if keyed else f"{here}.remove(row)",
    }
    shaped = {name: instead[name].format(**words)} if name in instead else {}
    return unknown(what, name, shaped, known)
