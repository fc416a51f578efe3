"""Verdicts on reducers: what follows from their laws, and how a failure is shown.

The verdict is one of five:

    invertible   `remove` undoes `add`, always
    partial      `remove` undoes `add`, or says RECOMPUTE
    tree         there is no `remove`, but an associative `merge`: O(log n) for a removal
    refold       neither: a removal folds its group again
    refuted      a law is broken, and here is the case

A reducer follows every change correctly exactly when `add` commutes and `remove` undoes it. So what
breaks a law also breaks a view, and a refutation shows both: the case, and the update that gives
another value than recomputing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, cycle, islice
from typing import Any

from ebbflow.errors import LawBroken, Text, shown
from ebbflow.laws.law import Law, Report, alike
from ebbflow.laws.reducers import (
    ADD_KEEPS,
    ALWAYS_ANSWERS,
    FOLD_REPEATS,
    INCREMENTAL,
    REMOVE_ADD_COMMUTE,
    AnyReducer,
    Rows,
)
from ebbflow.laws.rows import Pool, contains
from ebbflow.reducer import RECOMPUTE
from ebbflow.zset import ZSet

Search = Callable[[Law], LawBroken | None]

WHY = {
    "invertible": "remove undoes add on every accumulator that rows lead to",
    "tree": "there is no remove; merge puts parts together, so a tree of the rows answers",
    "refold": "there is neither remove nor merge: a removal folds its group again",
}
COSTS = {
    "invertible": "one call of add or remove for each row that comes or goes",
    "partial": "one call of add or remove for each row; the whole group again when remove asks",
    "tree": "O(log n) merges for each row that comes or goes",
    "refold": "one call of add for each row that comes, the whole group again when one goes",
}


@dataclass(frozen=True)
class Judgement(Report):
    """The verdict on a reducer, the reason, and the evidence.

    >>> from ebbflow.laws import check
    >>> from ebbflow.reducer import count
    >>> check(count()).verdict
    'invertible'
    """

    verdict: str = "refuted"
    why: str = ""
    aggregate: str = ""
    cost: str = ""
    notes: tuple[str, ...] = ()
    proof: Any = None
    broken: LawBroken | None = None
    doubt: str = ""

    def __str__(self) -> str:
        if self.broken is not None:
            return str(self.broken)
        tested = f"tested: {len(self.laws)} laws on up to {self.examples} examples each"
        evidence = [tested] if self.proof is None else [str(self.proof), tested]
        rows = [("because", self.why), ("class", self.aggregate), ("cost", self.cost)]
        rows += zip(("evidence", ""), evidence, strict=False)
        rows += [("note", note) for note in self.notes]
        lines = [f"    {name:<10} {text}" for name, text in rows]
        return "\n".join([f"{shown(self.thing, width=160)}: {self.verdict}", *lines])


def decided(
    r: AnyReducer, laws: Sequence[Law], examples: int, search: Search, rows: Pool
) -> Judgement:
    """The verdict on a reducer that keeps all its laws."""
    verdict, why = _verdict(r, search)
    notes = []
    if r.remove is not None:
        apart = search(REMOVE_ADD_COMMUTE)
        notes.append(
            "removing and adding commute (not required)" if apart is None else
            f"removing before adding is not removing after it (not required): {apart.case}"
        )  # fmt: skip
    calculated = set(_floats(r.fold(rows))) - set(_floats(tuple(rows)))
    if any(map(math.isfinite, calculated)):
        notes.append("its accumulator holds floats, which round: right on these examples only")
    if verdict == "invertible" and r.partial is None:
        notes.append("partial=False would save the engines from keeping its rows")
    known = f"{r.cost} a row, state {r.size}" if r.cost and r.size else COSTS[verdict]
    aggregate = r.aggregate or measured_class(r, rows)
    notes += rows.doubts
    doubt = rows.doubts[0] if rows.doubts else ""
    return Judgement(
        r, tuple(laws), examples, verdict, why, aggregate, known, tuple(notes), doubt=doubt
    )


def _verdict(r: AnyReducer, search: Search) -> tuple[str, str]:
    if r.remove is None:
        verdict = "refold" if r.merge is None else "tree"
        return verdict, WHY[verdict]
    asks = search(ALWAYS_ANSWERS)
    if asks is None and r.partial:
        return "partial", "it is declared partial: remove undoes add, or may say RECOMPUTE"
    if asks is None:
        return "invertible", WHY["invertible"]
    rows, value = asks.case["rows"], asks.case["value"]
    return "partial", (
        f"remove undoes add or asks to recompute, "
        f"for example when {value!r} leaves {shown([*rows, value])}"
    )


def weighed(found: Judgement, proof: Any, elements: Any) -> Judgement:
    """A judgement with what a proof adds.

    A counter-example of z3's refutes the reducer when its rows are among the elements that were
    asked about. Else it is a note, and a doubt where that could not be found out.
    """
    if proof.broken is None:
        return replace(found, proof=proof)
    case, law = proof.broken.case, proof.broken.law
    rows: list[Any] = []
    for name, role in law.variables.items():
        rows += case[name] if role == "rows" else [case[name]]
    inside = {contains(elements, row) for row in dict.fromkeys(rows)}
    if inside <= {True}:
        return refuted(explained(proof.broken), found.examples)
    where = "outside" if False in inside else "possibly outside"
    note = f"z3 finds that it breaks {law.name} for rows {where} its elements: {shown(case)}"
    doubt = "" if False in inside else note
    return replace(found, notes=(*found.notes, note), doubt=doubt)


def measured_class(r: AnyReducer, rows: Sequence[Any]) -> str:
    """Holistic where the accumulator grows with the rows; else by whether there is a result.

    >>> from ebbflow.reducer import Reducer
    >>> measured_class(Reducer((), lambda rows, x: (*rows, x)), range(20))
    'holistic (measured: the accumulator grows with the rows)'
    """
    many = list(islice(cycle(dict.fromkeys(rows)), 24))
    if _parts(r.fold(many)) > 1.5 * _parts(r.fold(many[::2])):
        return "holistic (measured: the accumulator grows with the rows)"
    return "distributive" if r.result is None else "algebraic"


def _parts(acc: Any) -> int:
    """How many numbers and letters an accumulator holds."""
    if isinstance(acc, (str, bytes)):
        return len(acc) + 1
    if isinstance(acc, Mapping):
        return 1 + sum(map(_parts, acc.items()))
    return 1 + sum(map(_parts, acc)) if isinstance(acc, (tuple, list, set, frozenset)) else 1


def _floats(value: Any) -> Iterator[float]:
    """The floats in an accumulator or in rows."""
    if isinstance(value, (tuple, list)):
        yield from chain.from_iterable(map(_floats, value))
    elif isinstance(value, float):
        yield value


def refuted(broken: LawBroken, examples: int) -> Judgement:
    """The judgement on a reducer that breaks a law."""
    return Judgement(broken.thing, (broken.law,), examples, why=broken.what, broken=broken)


# ---- the same failure as a view shows it ----


def telling(broken: LawBroken, search: Search) -> LawBroken:
    """The law that tells most: what folds differently may do so because it was changed in place."""
    compared = any("__eq__" in vars(base) for base in type(broken.left).__mro__[:-1])
    if broken.law is FOLD_REPEATS and compared:
        return explained(search(ADD_KEEPS) or broken)
    return explained(broken)


def explained(broken: LawBroken) -> LawBroken:
    """The broken law with the update that goes wrong beside the case. (Theorem 2.)"""
    if isinstance(broken.left, Text) and broken.left.startswith("raised "):
        error = broken.left.partition("\n")[0].removeprefix("raised ")
        broken.what = f"{shown(broken.thing, width=160)} fails for some rows: {error}"
        broken.remedy = "mend it, or pass elements= that are rows it is meant for"
    elif broken.law.name in _SHOWN:
        again = broken.facts.pop("again", None)
        broken.facts.update(_SHOWN[broken.law.name](broken.thing, **broken.case))
        if again is not None:
            broken.facts["again"] = again
        if alike(broken.left, broken.right) and broken.thing.result is not None:
            broken.facts["left side"] = _said(broken.thing, lambda: broken.left)
            broken.facts["right side"] = _said(broken.thing, lambda: broken.right)
            broken.remedy = ORDER_SHOWN
        elif _lost(broken.left) and _lost(tuple(broken.case.values())):
            broken.remedy = LOST
        elif _only_rounded(broken.left, broken.right):
            broken.remedy = "floats round: " + ROUNDING
    return broken


ORDER_SHOWN = (
    "the accumulators are equal and are shown differently: let result depend neither on the order "
    "in a dict or set (sort there) nor on what equal= leaves out"
)
LOST = (
    "what was added to NaN or infinity cannot be had back from it: use ebbflow.reducer.sum or "
    "mean, which count them apart, or elements= without them"
)


ROUNDING = (
    "use ebbflow.reducer.sum or mean, which round only the result, keep ints, Fractions or "
    "Decimals, or accept the drift with equal=ebbflow.laws.close()"
)


def _only_rounded(a: Any, b: Any) -> bool:
    """Whether two accumulators of the same shape differ in the last digits of floats alone."""
    if isinstance(a, (tuple, list)) and isinstance(b, (tuple, list)) and len(a) == len(b):
        pairs = zip(a, b, strict=True)
        return bool(a != b) and all(x == y or _only_rounded(x, y) for x, y in pairs)
    return isinstance(a, float) and isinstance(b, float) and math.isclose(a, b, rel_tol=1e-6)


def _lost(acc: Any) -> bool:
    """Whether there is a float in an accumulator that is not finite."""
    return not all(map(math.isfinite, _floats(acc)))


def _said(r: AnyReducer, make: Callable[[], Any]) -> Text:
    """An accumulator and its result as text, or the error that was raised instead."""
    try:
        acc = make()
        if acc is RECOMPUTE or r.result is None:
            return Text(shown(acc))
        return Text(f"{shown(acc)}, shown as {shown(r.finish(acc))}")
    except Exception as error:
        return Text(f"raised {type(error).__name__}: {error}")


def _as_update(r: AnyReducer, rows: Rows, value: Any) -> dict[str, Text]:
    there = [*rows, value]
    updated = _said(r, lambda: r.removed(r.fold(there), value))
    return {
        "update": Text(f"{value!r} leaves {shown(there)}: the view says {updated}"),
        "recomputed": Text(f"the rows {shown(list(rows))} give {_said(r, lambda: r.fold(rows))}"),
    }


def _as_orders(r: AnyReducer, rows: Rows, x: Any, y: Any) -> dict[str, Text]:
    one, other = [*rows, x, y], [*rows, y, x]
    return {
        "one order": Text(f"{shown(one)} give {_said(r, lambda: r.fold(one))}"),
        "another": Text(f"{shown(other)} give {_said(r, lambda: r.fold(other))}"),
    }


def _as_updates(r: AnyReducer, rows: Rows, updates: Sequence[ZSet[Any]]) -> dict[str, Text]:
    left = list(sum(updates, ZSet.of(rows)).rows())
    updated = _said(r, lambda: INCREMENTAL.sides(r, rows, updates)[0])
    again = _said(r, lambda: INCREMENTAL.sides(r, rows, updates)[1])
    return {
        "update": Text(f"the view says {updated}"),
        "recomputed": Text(f"the rows {shown(left)} give {again}"),
    }


_SHOWN: dict[str, Callable[..., dict[str, Text]]] = {
    "REMOVE_INVERTS": _as_update,
    "ADD_COMMUTES": _as_orders,
    "INCREMENTAL": _as_updates,
}
