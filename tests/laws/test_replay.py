"""What the nodes of a tree remember of states is right, however rows come and go."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

import pytest

from ebbflow.operator.replay import rows_of
from ebbflow.operator.scan import scan_rows
from ebbflow.state.tree import Tree
from ebbflow.stream import elementwise
from ebbflow.stream.transition import Transition, same_state, transition
from ebbflow.zset import ZSet


@dataclass(frozen=True)
class Holding:
    """A dataclass that is frozen, while the dict in it is not."""

    seen: dict[int, int]


def recent(seen: dict[int, None], x: int) -> dict[int, None]:
    """A dict of rows, the last one at the end."""
    seen.pop(x, None)
    seen[x] = None
    return seen


MACHINES: dict[str, Any] = {
    "a sum, which never is the old one again": transition(lambda n, x: (n + x, [(x, n + x)]), 0),
    "the last row": transition(lambda last, x: (x, [(last, x)]), None),
    "steps since a multiple of five": transition(
        lambda n, x: (0, [("again", x)]) if x % 5 == 0 else (min(n + 1, 9), [(x, n)]), 0
    ),
    "a maximum": transition(lambda top, x: (max(top, x % 17), [(top, x)]), -1),
    "a state that tells apart what is equal": transition(
        lambda n, x: ((1.0, 1, True)[x % 3], [(x, repr(n))]), 1
    ),
    "a list that tells apart what is equal": transition(
        lambda n, x: ([(1.0, 1, True)[x % 3]], [(x, repr(n))]), [1]
    ),
    "a dict whose order is told": transition(
        lambda seen, x: (recent(seen, x % 3), [(x, tuple(seen))]), {}
    ),
    "a list in a tuple, altered": transition(
        lambda s, x: (s[0].append(x % 7) or (s[0], s[1] + 1), [(x, *s[0][-3:])]), ([], 0)
    ),
    "a dict in a frozen dataclass, altered": transition(
        lambda s, x: (s.seen.update({x % 5: x}) or s, [(x, len(s.seen))]), Holding({})
    ),
    "processors one after the other, of which the first keeps a list": transition(
        elementwise(lambda s, x: (s.append(x) or s, [sum(s[-2:])]), state=[])
        >> elementwise(lambda n, x: (n + 1, [(n, x)]), state=0)
    ),
}


def remembered(machine: Transition, node: Any, height: int) -> None:
    """Every state that a node remembers is the one that its rows lead to from the first."""
    memo = node[5][0]
    if memo:
        state = memo[0]
        parts = node[1] if height else [node]
        assert len(memo) <= len(parts) + 1
        for part, known in zip(parts, memo[1:], strict=False):
            state = machine.through(every(part, height - 1 if height else 0), state)
            assert same_state(state, known)
    for child in node[1] if height else ():
        remembered(machine, child, height - 1)


def every(node: Any, height: int) -> list[Any]:
    if not height:
        return list(rows_of(node, 0, len(node[1])))
    return [row for child in node[1] for row in every(child, height - 1)]


@pytest.mark.parametrize("machine", MACHINES.values(), ids=list(MACHINES))
@pytest.mark.parametrize("seed", range(6))
def test_003_H3_states_are_remembered_as_they_are(machine: Transition, seed: int) -> None:
    rng = Random(seed)
    scan = scan_rows(machine, lambda x: x)
    scan.empty = Tree(key=lambda x: x, memos=True, leaf=4, width=4)
    there = ZSet.of(rng.sample(range(300), 120))
    live = scan.open(there)

    def changed() -> ZSet[int]:
        rows = rng.sample(range(300), rng.choice([1, 1, 1, 2, 5, 20]))
        return ZSet({row: -1 if there.weight(row) else rng.choice([1, 1, 2]) for row in rows})

    for _ in range(120):
        if rng.random() < 0.4:  # an epoch that is refused: its nodes, and what they remember, stay
            live.state.begin()
            scan.update(live.state, changed())
            live.state.rollback()
        change = changed()
        before, there = there, there + change
        assert live.send(change) == scan.f(there) - scan.f(before)
        tree = live.state.groups.get((), scan.empty)
        assert tree.invariant()
        remembered(machine, *tree.root)


def test_what_the_rows_of_two_keys_say_is_added_up() -> None:
    """In both the first row goes, and the next one says what it said."""
    numbered = transition(lambda n, x: (n + 1, ["first"] if not n else [x]), 0)
    scan = scan_rows(numbered, lambda x: x, lambda x: x % 2)
    live = scan.open(ZSet.of([1, 2, 3, 4]))
    assert live.send(ZSet({1: -1, 2: -1})) == ZSet({3: -1, 4: -1})
    assert live.send(ZSet({1: 1, 5: 1, 2: 1})) == ZSet({3: 1, 4: 1, 5: 1})
