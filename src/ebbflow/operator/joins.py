"""Operators on two bags that meet where their keys are equal.

`join` and `product` are linear in each side alone. With an index of both sides, where `l` and `r`
are the changes and `L` and `R` hold the rows after them,

    change of L ⋈ R  ==  l ⋈ R + (L - l) ⋈ r

Taking `L` instead of `L - l`, the left as it was before, would count twice what both changes make
together. Both indices are brought up to date first, so that one index can serve several joins.

`semi` gives the rows of the left whose key the right has, or has not. It is linear in the left
only: a key of the right counts once, however many rows have it.

The work of a step follows the change and the rows that it meets, never what else is there.
`keys(change)` are the keys of the state that a step will touch.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cached_property, partial
from typing import Any, NamedTuple

from ebbflow.algebra.value import function_name
from ebbflow.chain import Chain, grouping
from ebbflow.change import BAG
from ebbflow.codegen import GeneratedLoop
from ebbflow.errors import place
from ebbflow.fn import Fn
from ebbflow.operator.operator import Operator
from ebbflow.operator.relation import TWO_BAGS, Bag, sides
from ebbflow.state.cells import ABSENT, Cells
from ebbflow.state.index import Grouped, Index, not_there
from ebbflow.zset import trusted, without_zeros


class OnKeys(Operator[tuple[Bag, Bag], Any, Bag, Bag]):
    """An operator on two bags by a key of each."""

    input = TWO_BAGS
    output = BAG

    def __init__(self, left_key: Any, right_key: Any) -> None:
        self.left_key, self.right_key = left_key, right_key
        self.created = place()

    @cached_property
    def by_left(self) -> Callable[[Any], Grouped]:
        """The rows of the left by key."""
        return grouping(self.left_key)

    @cached_property
    def by_right(self) -> Callable[[Any], Grouped]:
        """The rows of the right by key."""
        return grouping(self.right_key)

    def keys(self, change: Any) -> set[Any]:
        """The keys whose state, on both sides, a step with this change touches."""
        left, right = sides(change)
        return {*self.by_left(left.items()), *self.by_right(right.items())}


class BothIndexed(OnKeys):
    """One whose state is an index of each side; it says what `update_groups` does with the rows of
    a change by key."""

    def update_groups(self, state: Any, left: Grouped, right: Grouped) -> dict[Any, int]:
        """Take the changes of both sides in, by key, and give the change of the output."""
        raise NotImplementedError

    def step(self, state: Any, change: Any) -> tuple[Any, Bag]:
        left, right = sides(change)
        found = self.by_left(left.items()), self.by_right(right.items())
        return state, trusted(self.update_groups(state, *found))

    def accepts(self, state: Any, change: Any) -> bool:
        if not self.input.is_change(change):
            return False
        left, right = sides(change)
        return bool(state[0].holds(left) and state[1].holds(right))


class Straight(NamedTuple):
    """What a join does with a pair of rows: it looks at the conditions `where`, makes a row of a
    type by `merge`, and then the row goes through the steps of `after`."""

    where: tuple[Fn, ...]
    merge: Any
    after: Chain
    type: Any


class Held(NamedTuple):
    """How an index holds the rows of a key, as a loop over them is written: the variables of the
    loop, what it goes over, and how often a row is there. `before` gives the rows as they were
    before a change of them, and `rest` is what a loop over those of them goes over that the change
    leaves alone."""

    variables: str
    rows: str
    times: str
    before: Callable[..., Any]
    rest: str

    def loop(self, side: str, rows: str) -> tuple[str, str]:
        """The variables of a loop over these rows, of this side, and what it goes over."""
        return self.variables.format(side), self.rows.format(rows)


class Join(OnKeys):
    """Rows of both sides with equal keys; see `join`.

    `merge` makes the new row, and `after` are steps that it still goes through. `one_to_one` says
    that no two pairs of rows make the same new row. `straight` is the same from the pair straight
    away, where that is known. `held` says how the indices of both sides hold rows. With `listed`
    it gives pairs of a row and a weight, of which several may be of the same row.
    """

    def __init__(
        self,
        left_key: Any,
        right_key: Any,
        merge: Any = None,
        *,
        after: Chain | None = None,
        one_to_one: bool = False,
        owner: Any = None,
        straight: Straight | None = None,
        held: tuple[Held, Held] | None = None,
        listed: bool = False,
    ) -> None:
        self.merge, self.after, self.owner = merge, after or Chain(), owner
        self.held, self.listed = held or (WEIGHED, WEIGHED), listed
        self.straight = straight or Straight((), merge, self.after, getattr(owner, "type", Any))
        self.one_to_one = (one_to_one or merge is None) and self.after.one_to_one
        super().__init__(left_key, right_key)

    @cached_property
    def join_delta(self) -> Callable[..., dict[Any, int]]:
        """The loop from the changes of both sides by key, and all rows by key after them, to the
        change of the output."""
        return _join_loop(self.straight, self.one_to_one, self.owner, self.held, self.listed)

    def f(self, x: tuple[Bag, Bag]) -> Bag:
        pairs = x[0].join(x[1], self.left_key, self.right_key, self.merge)
        return pairs.flat_map(self.after.rows) if self.after.steps else pairs

    def init(self, x: tuple[Bag, Bag]) -> tuple[Index[Any, Any], Index[Any, Any]]:
        left, right = x
        return (
            Index(self.left_key, left, self.by_left),
            Index(self.right_key, right, self.by_right),
        )

    def step(self, state: Any, change: Any) -> tuple[Any, Bag]:
        left, right = state
        left_change, right_change = sides(change)
        found = left.apply(left_change), right.apply(right_change)
        return state, trusted(self.join_delta(*found, left.groups, right.groups))

    def read(self, state: Any) -> dict[Any, int]:
        """The whole output, from the state."""
        left, right = state[0].everything(), state[1].everything()
        return self.join_delta({k: g.items() for k, g in left.items()}, {}, left, right)

    def accepts(self, state: Any, change: Any) -> bool:
        if not self.input.is_change(change):
            return False
        left, right = sides(change)
        return bool(state[0].holds(left) and state[1].holds(right))

    def __repr__(self) -> str:
        functions = [self.left_key, self.right_key]
        merge = f", merge={function_name(self.merge)}" if self.merge else ""
        return f"join({', '.join(map(function_name, functions))}{merge})"


_JOIN = """
    out = $nothing
    $get = out.$get
    for key, pairs in from_left.items():
        if key in rights:
            there = $rights
            for left, weight in pairs:
                for $right in there:
                    $emit_right
    for key, pairs in from_right.items():
        if key in from_left:
            rest, old = $rows_before(lefts.get(key), from_left[key])
            there = $rest
            for right, weight in pairs:
                for $left in there:
                    $emit_left
            for right, weight in pairs:
                for left, count in old:
                    $emit_again
        elif key in lefts:
            there = $lefts
            for right, weight in pairs:
                for $left in there:
                    $emit_left
    return $out
"""


def _join_loop(
    straight: Straight, one_to_one: bool, owner: Any, held: tuple[Held, Held], listed: bool
) -> Callable[..., Any]:
    """The loop of a join. Where it is one to one, only pairs of two changed rows can meet twice."""
    where, merge, after, row_type = straight
    fn = merge if merge is None or isinstance(merge, Fn) else Fn(merge)
    blamed = fn if owner is None else owner
    loop = GeneratedLoop("join_delta", "from_left, from_right, lefts, rights")
    made = "(left, right)"
    if fn is not None:
        made = fn.kept(loop.bind, "left", "right", hint=row_type)
    asked = [each.source(loop.bind, "left", "right") for each in where]

    def emit(times: str, alone: bool) -> None:
        """Write how a pair is given; `alone` says that nothing was given for it before."""
        row, weight = made, "weight" if times == "1" else f"weight * {times}"
        for each in asked:
            loop.write(f"if not {each}: continue")
        if after.steps or not alone:
            loop.write(f"row = {made}", blamed, "left", "right")
            after.write(loop)
            row = after.last_row
        if listed:
            loop.write(f"append(({row}, {weight}))", blamed, "left", "right")
            return
        total = weight if alone else f"get({row}, 0) + {weight}"
        loop.write(f"out[{row}] = {total}", blamed, "left", "right")
        if one_to_one and not alone:
            loop.write(f"if not out[{row}]: del out[{row}]")

    lefts, rights = held
    left, all_lefts = lefts.loop("left", "lefts[key]")
    right, all_rights = rights.loop("right", "rights[key]")
    alone = one_to_one or listed
    loop.template(
        _JOIN, left=left, lefts=all_lefts, right=right, rights=all_rights, rest=lefts.rest,
        emit_left=partial(emit, lefts.times, alone), emit_right=partial(emit, rights.times, alone),
        emit_again=partial(emit, "count", listed), rows_before=lefts.before,
        nothing="[]" if listed else "{}", get="append" if listed else "get",
        out="out" if alone else f"{loop.bind(without_zeros)}(out)",
    )  # fmt: skip
    return loop.function()


def rows_before(
    rows: dict[Any, int] | None, changed: Any
) -> tuple[dict[Any, int], list[tuple[Any, int]]]:
    """The rows of a key as they were before a change of them: those that it leaves alone, and those
    that it does not."""
    rest, old = {} if rows is None else rows.copy(), []
    for row, weight in changed:
        weight = rest.pop(row, 0) - weight
        if weight:
            old.append((row, weight))
    return rest, old


WEIGHED = Held("{}, count", "{}.items()", "count", rows_before, "rest.items()")
"""As an `Index` holds them."""


def join(
    left_key: Callable[[Any], Hashable],
    right_key: Callable[[Any], Hashable] | None = None,
    merge: Callable[[Any, Any], Hashable] | None = None,
) -> Operator[tuple[Bag, Bag], Any, Bag, Bag]:
    """Every row of the first with every row of the second that has the same key; counts multiply.

    One key function serves both sides. The new row is `merge(left, right)`, by default the pair.

    >>> from ebbflow import ZSet
    >>> from ebbflow.change import Both
    >>> by_name = join(lambda row: row[0], merge=lambda a, b: (*a, b[1]))
    >>> live = by_name.open((ZSet.of([("ann", "Rome")]), ZSet.of([("ann", 30)])))
    >>> live.send(Both(ZSet({("bob", "Oslo"): 1}), ZSet({("ann", 30): -1, ("bob", 25): 1})))
    ZSet({('bob', 'Oslo', 25): 1, ('ann', 'Rome', 30): -1})
    """
    return Join(left_key, left_key if right_key is None else right_key, merge)


class CrossProduct(Join):
    """Every row of one with every row of the other; see `product`."""

    def __init__(self) -> None:
        super().__init__(None, None)

    def f(self, x: tuple[Bag, Bag]) -> Bag:
        return x[0].product(x[1])

    def __repr__(self) -> str:
        return "product()"


def product() -> Operator[tuple[Bag, Bag], Any, Bag, Bag]:
    """Every row of the first with every row of the second; counts multiply.

    >>> from ebbflow import ZSet
    >>> from ebbflow.change import Second
    >>> product().open((ZSet.of("ab"), ZSet.of([1]))).send(Second(ZSet({2: 1})))
    ZSet({('a', 2): 1, ('b', 2): 1})
    """
    return CrossProduct()


_SEMI = """
    there, totals, out = counts.values, {}, $nothing
    $open
    for key, pairs in from_right.items():
        more = 0
        for _, weight in pairs:
            more += weight
        if not more: continue
        old = there.get(key, 0)
        now = old + more
        totals[key] = now or $ABSENT
        $check
        if (old > 0) is not (now > 0):
            if now $passes:
                $come
            else:
                rest, changed = $rows_before(lefts.get(key), from_left.get(key, ()))
                $go
    for key, pairs in from_left.items():
        old = there.get(key, 0)
        now = totals.get(key, old)
        if now is $ABSENT: now = 0
        if old $passes and now $passes:
            $change
    if totals:
        counts.swap(totals)
    return $out
"""

_WHOLE_ROWS = {
    "nothing": "{}",
    "open": "",
    "come": "out.update(lefts.get(key, ()))",
    "go": "out.update({row: -weight for row, weight in (*rest.items(), *changed)})",
    "change": "out.update(pairs)",
    "out": "out",
}


class Semi(OnKeys):
    """The rows of the left whose key the right has, or has not; see `semi`.

    The state is an index of the left, and for each key of the right how many rows have it. Unless
    the right is a `bag`, that may be negative. `held` says how the index holds the rows of the
    left, and `made` are steps that those that are given still go through. With `listed` it gives
    pairs of a row and a weight, of which several may be of the same row.
    """

    def __init__(
        self,
        left_key: Any,
        right_key: Any,
        anti: bool = False,
        bag: bool = False,
        *,
        held: Held | None = None,
        made: Chain | None = None,
        listed: bool = False,
    ) -> None:
        self.anti, self.bag, self.listed = anti, bag, listed
        self.held, self.made = held or WEIGHED, made or Chain()
        super().__init__(left_key, right_key)

    def f(self, x: tuple[Bag, Bag]) -> Bag:
        left, right = x
        counts = right.map(self.right_key)
        return left.filter(lambda row: (counts.weight(self.left_key(row)) > 0) is not self.anti)

    def init(self, x: tuple[Bag, Bag]) -> tuple[Index[Any, Any], Cells[Any, int]]:
        left, right = x
        return Index(self.left_key, left, self.by_left), Cells(right.map(self.right_key).items())

    def step(self, state: Any, change: Any) -> tuple[Any, Bag]:
        index, counts = state
        left, right = sides(change)
        found = index.apply(left)
        return state, trusted(
            self.join_delta(found, self.by_right(right.items()), index.groups, counts)
        )

    @cached_property
    def join_delta(self) -> Callable[..., dict[Any, int]]:
        """The loop from the changes of both sides by key, and the rows of the left by key after
        them, to the change of the output. The counts are brought up to date in it."""
        loop = GeneratedLoop("semi_delta", "from_left, from_right, lefts, counts")
        check = f"if now < 0: raise {loop.bind(not_there)}(next(r for r, n in pairs if n < 0))"
        loop.template(
            _SEMI, passes="<= 0" if self.anti else "> 0", check=check if self.bag else "",
            ABSENT=ABSENT, rows_before=self.held.before, **(
                _WHOLE_ROWS if self.held is WEIGHED and not self.made.steps and not self.listed
                else self._made_rows(loop)
            ),
        )  # fmt: skip
        return loop.function()

    def _made_rows(self, loop: GeneratedLoop) -> dict[str, Any]:
        """How rows are given one by one: what is made of different ones may be equal."""
        held, row = self.held, self.made.last_row
        variables = held.variables.format("row")

        def give(rows: str, weight: str, variables: str) -> None:
            with loop.inside(f"for {variables} in {rows}:"):
                self.made.write(loop)
                loop.write(
                    f"append(({row}, {weight}))" if self.listed
                    else f"out[{row}] = get({row}, 0) + {weight}"
                )  # fmt: skip

        def go() -> None:
            give(held.rest, f"-{held.times}", variables)
            give("changed", "-weight", "row, weight")

        come = f"{held.rows.format('lefts[key]')} if key in lefts else ()"
        return {
            "nothing": "[]" if self.listed else "{}",
            "open": "append = out.append" if self.listed else "get = out.get",
            "come": partial(give, come, held.times, variables), "go": go,
            "change": partial(give, "pairs", "weight", "row, weight"),
            "out": "out" if self.listed else f"{loop.bind(without_zeros)}(out)",
        }  # fmt: skip

    def accepts(self, state: Any, change: Any) -> bool:
        if not self.input.is_change(change):
            return False
        left, right = sides(change)
        counts, there = self.by_right(right.items()), state[1].values
        return bool(state[0].holds(left)) and all(
            there.get(key, 0) + sum(weight for _, weight in pairs) >= 0
            for key, pairs in counts.items()
        )

    def __repr__(self) -> str:
        functions = ", ".join(map(function_name, (self.left_key, self.right_key)))
        return f"semi({functions}{', anti=True' if self.anti else ''})"


def semi(
    left_key: Callable[[Any], Hashable],
    right_key: Callable[[Any], Hashable] | None = None,
    *,
    anti: bool = False,
) -> Operator[tuple[Bag, Bag], Any, Bag, Bag]:
    """The rows of the first whose key some row of the second has; with `anti`, none has.

    >>> from ebbflow import ZSet
    >>> from ebbflow.change import Second
    >>> unpaid = semi(lambda order: order[0], lambda payment: payment, anti=True)
    >>> live = unpaid.open((ZSet.of([(1, "pen"), (2, "ink")]), ZSet.of([2])))
    >>> live.send(Second(ZSet({1: 2}))), live.send(Second(ZSet({1: -1, 2: -1})))
    (ZSet({(1, 'pen'): -1}), ZSet({(2, 'ink'): 1}))
    """
    return Semi(left_key, left_key if right_key is None else right_key, anti)
