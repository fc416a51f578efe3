"""How loops run, in the words of `explain`: which way and why, and the rounds of the last epoch.

    runs     lazy rounds · monotone: distinct over a join with outside edges
    last     2 rounds · facts that came: 0 → 3, 1 → 1 · 2 suspended · 9 derivations
    state    23 rows

What is told of the last epoch is of the last one that reached the loop. Where a loop ran in another
process, that one can tell (`last_epoch`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from ebbflow.engine.runtime.lazy import LazyLoopStage
from ebbflow.engine.runtime.loop import LoopStage
from ebbflow.engine.runtime.stage import Stage
from ebbflow.flow.describe import fn_text
from ebbflow.flow.items import LoopRun
from ebbflow.flow.plan import Iterate, Node
from ebbflow.flow.rewrite.terms import Term
from ebbflow.state.keyed_index import KeyedIndex
from ebbflow.state.tree import Tree

NOTHING: Mapping[int, str] = {}
FIRST, LAST = 8, 3
"""So many rounds are listed, of those in the beginning and at the end."""


def loops_of(
    stages: Iterable[Stage], ran: bool = True, known: Mapping[int, str] = NOTHING
) -> dict[Node, LoopRun]:
    """How the loops among some stages run, and those inside them, by node. `ran` says that the last
    epoch ran in these stages; of others of the same plan, `known` is what `last_epoch` says, by the
    number of the stage."""
    found: dict[Node, LoopRun] = {}
    for number, stage in enumerate(stages):
        node = stage.node
        if isinstance(stage, LazyLoopStage):
            assert isinstance(node, Iterate)
            found[node] = LoopRun(
                node.body,
                _words(stage, _lazy(stage), ran, known.get(number, "")),
                _lazy_keeps(stage),
                {},
            )
        elif isinstance(stage, LoopStage):
            words = _words(
                stage, f"exact rounds · not monotone: {stage.why}", ran, known.get(number, "")
            )
            found[node] = LoopRun(stage.body.plan, words, None, loops_of(stage.inside, ran))
    return found


def rows_in(container: Any) -> int:
    """How many rows of state a container holds."""
    groups = getattr(container, "groups", None)
    if groups is not None and not isinstance(container, KeyedIndex):
        return sum(map(len, groups.values()))
    if not hasattr(container, "values"):
        return len(container)
    return sum([each.distinct if type(each) is Tree else 1 for each in container.values.values()])


def last_epoch(stage: LoopStage | LazyLoopStage) -> str:
    """What the rounds of a loop did in the last epoch; nothing before the first."""
    rounds = stage.rows_per_round
    if rounds is None:
        return ""
    last = [f"{len(rounds):,} round{'' if len(rounds) == 1 else 's'}"]
    lazy = isinstance(stage, LazyLoopStage)
    if any(rounds.values()):
        last.append(f"{'facts that came' if lazy else 'rows that changed'}: {_listed(rounds)}")
    if isinstance(stage, LazyLoopStage):
        last += [f"{stage.suspended:,} suspended", f"{stage.derived:,} derivations"]
    if stage.exact:
        last.append("computed again")
    return " · ".join(last)


def _words(stage: LoopStage | LazyLoopStage, way: str, ran: bool, known: str) -> dict[str, str]:
    last = last_epoch(stage) if ran else known
    words = {"runs": way}
    if last:
        words["last"] = last
    if last and ran:
        state = sum(map(rows_in, stage.containers))
        words["state"] = f"{state:,} row{'' if state == 1 else 's'}"
    return words


def _listed(rounds: Mapping[int, int]) -> str:
    """`0 → 3, 2 → 2`: in which rounds there were rows, and how many; of many rounds, the first and
    the last."""
    each = [f"{number:,} → {rows:,}" for number, rows in sorted(rounds.items()) if rows]
    if len(each) > FIRST + LAST:
        each = [*each[:FIRST], "…", *each[-LAST:]]
    return ", ".join(each)


def _lazy(stage: LazyLoopStage) -> str:
    choice = stage.start.choice
    if choice is None:
        kept = "distinct"
    else:
        least = "greatest" if choice.greatest else "least"
        kept = f"the {least} {choice.value} by {fn_text(choice.reduce.key)}"
    ways = dict.fromkeys(_way(each.term) for each in stage.terms)
    over = f" over {' and '.join(ways)}" if ways else ""
    return f"lazy rounds · monotone: {kept}{over}"


def _way(term: Term) -> str:
    if term.join is None or term.other is None:
        return "steps on one row"
    other = term.other.name
    return "a join with itself" if other == term.input.name else f"a join with outside {other}"


def _lazy_keeps(stage: LazyLoopStage) -> Sequence[str]:
    """A fact has its round, which is an upper bound, and how many derivations in which round."""
    indices = chain.from_iterable(
        [
            *([f"facts by {fn_text(term.my_key)}"] if term.mine is not None else []),
            f"{'facts' if term.itself else _other(term.term)} by {fn_text(term.their_key)}",
        ]
        for term in stage.terms
        if term.theirs is not None
    )
    return ["facts with a round", "their derivations by round", *dict.fromkeys(indices)]


def _other(term: Term) -> str:
    return "" if term.other is None else f"outside {term.other.name}"
