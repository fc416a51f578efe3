"""The nodes of a tree, and how many edits at once make new ones; see `ebbflow.state.tree`."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import reduce
from itertools import islice, pairwise
from operator import eq, itemgetter
from typing import Any

from ebbflow.errors import AbsentRow, AlgebraError, value_text
from ebbflow.ordering import total_order_key

Node = tuple[Any, ...]
Way = Sequence[tuple[Node, int]]
"""The nodes from the root to a leaf, each with the place of the item that is next."""
Columns = tuple[Sequence[Any], Sequence[Any], Sequence[int]]

EMPTY: Node = ((), (), (), (), 0, None)
WIDE, NARROW = 64, 16
ONCE = (1,)
_FIRST = itemgetter(0)


# ---- how elements are ordered and merged ----


class TreeForm:
    """What the trees that come from one another share: key, value, merge, how many items a leaf and
    a node above one may hold, and what their elements are ordered by.

    That is one of three: with a `ranking`, what it gives for an element; where `total` is true, the
    keys of the total order; otherwise the elements themselves, with their keys before them, as long
    as all of them are `comparable`.
    """

    __slots__ = (
        "key", "least", "memos", "merge", "native", "ranking", "total", "value", "widths",
    )  # fmt: skip

    def __init__(
        self, key: Any, value: Any, merge: Any, widths: tuple[int, int], ranking: Any = None,
        total: bool = False, memos: bool = False,
    ) -> None:  # fmt: skip
        self.key, self.value, self.merge = key, value, merge
        self.widths, self.least = widths, (widths[0] // 2, widths[1] // 2)
        self.ranking, self.total, self.memos = ranking, total, memos
        self.native = ranking is None and not total

    def totally(self) -> TreeForm:
        """The same for any elements."""
        return type(self)(
            self.key, self.value, self.merge, self.widths, total=True, memos=self.memos
        )

    def token(self, x: Any) -> Any:
        """What an element is ordered by."""
        if self.ranking is not None:
            return self.ranking(x)
        token = x if self.key is None else (self.key(x), x)
        return total_order_key(token) if self.total else token

    def columns(self, pairs: list[tuple[Any, int]], tokens: list[Any]) -> Columns:
        """Edits in order, one per element, as tokens, elements and counts."""
        if self.native and self.key is None:
            elements, counts = zip(*sorted(pairs, key=_FIRST), strict=True)
            return _summed(elements, elements, counts)
        rows = [(token, x, count) for token, (x, count) in zip(tokens, pairs, strict=True)]
        found, elements, counts = zip(*sorted(rows, key=_FIRST), strict=True)
        return _summed(found, elements, counts)

    def power(self, x: Any, count: int) -> Any:
        """The value of `x` merged with itself `count` times, by doubling."""
        part = x if self.value is None else self.value(x)
        if count <= 1:
            return part
        merge = self.merge
        while not count & 1:
            part, count = merge(part, part), count >> 1
        total = part
        while count := count >> 1:
            part = merge(part, part)
            if count & 1:
                total = merge(total, part)
        return total

    def node(self, tokens: Any, items: Any, counts: Any, values: Any) -> Node:
        kept, total = tuple(items), reduce(self.merge, values) if values else self.blank()
        order = kept if tokens is items else tuple(tokens)
        return order, kept, tuple(counts), tuple(values), sum(counts), total

    def blank(self) -> Any:
        """The total of a node where values are not merged: nothing, or an empty memo."""
        return [()] if self.memos else None

    def patched(self, node: Node, children: list[Node], touched: list[int]) -> Node:
        """A node after several of its children were replaced."""
        lows, counts, values = list(node[0]), list(node[2]), list(node[3])
        for at in touched:
            child = children[at]
            lows[at], counts[at] = child[0][0], child[4]
            if values:
                values[at] = child[5]
        return self.node(lows, children, counts, values)

    def edited(
        self, node: Node, height: int, token: Any, x: Any, count: int
    ) -> tuple[Node, int, Way] | None:
        """A node after one edit, how many elements are new in it, and the way to it; None where it
        takes more than new items on this way: where a leaf is too full then, or not full enough."""
        way: list[tuple[Node, int]] = []
        while height:
            i = bisect_right(node[0], token, 1) - 1
            way.append((node, i))
            node = node[1][i]
            height -= 1
        tokens, items, counts, values, size, total = node
        shared = tokens is items and token is x
        i, full, there = bisect_left(tokens, token), len(items), 0
        if i < full and tokens[i] == token:
            if not shared and items[i] is not x and items[i] != x:
                raise alike(items[i], x)
            x, token, there = items[i], tokens[i], counts[i]
        left, single, more = there + count, size == full, 0
        if left < 0:
            raise absent(x, -count, there)
        if not left:
            if full <= (self.least[0] if way else 1):
                return None
            more = -1
            items = without(items, i)
            tokens = items if shared else without(tokens, i)
            counts = counts[1:] if single else without(counts, i)
            values = values and without(values, i)
        elif there:
            counts = replaced(counts, i, left)
            values = values and replaced(values, i, self.power(x, left))
        else:
            if full == self.widths[0]:
                return None
            more = 1
            items = inserted(items, i, x)
            tokens = items if shared else inserted(tokens, i, token)
            counts = counts + ONCE if single and left == 1 else inserted(counts, i, left)
            if self.merge is not None:
                values = inserted(values, i, self.power(x, left))
        memos = self.memos
        total = reduce(self.merge, values) if values else [()] if memos else None
        new = (tokens, items, counts, values, size + count, total)
        for (lows, items, counts, values, size, total), at in reversed(way):
            low = new[0][0]
            if lows[at] is not low:
                lows = replaced(lows, at, low)
            if values:
                values = replaced(values, at, new[5])
                total = reduce(self.merge, values)
            elif memos:
                total = [()]
            children = [*items]
            children[at] = new
            sizes = [*counts]
            sizes[at] = new[4]
            new = (lows, tuple(children), tuple(sizes), values, size + count, total)
        way.append((node, i))
        return new, more, way

    def over(self, nodes: Sequence[Node]) -> list[Node]:
        """The level above some nodes."""
        values = [node[5] for node in nodes] if self.merge else []
        tokens = [node[0][0] for node in nodes]
        return self.cut(tokens, nodes, [node[4] for node in nodes], values, 1)

    def cut(self, tokens: Any, items: Any, counts: Any, values: Any, above: int = 0) -> list[Node]:
        """A long run of items as nodes that are at least half full: leaves, or nodes above."""
        size, width = len(items), self.widths[above]
        if size <= width:
            return [self.node(tokens, items, counts, values)] if size else []
        full = width if size <= 2 * width else width * 3 // 4
        pieces = -(-size // full)
        ends = [size * n // pieces for n in range(pieces + 1)]
        shared = tokens is items
        return [
            self.node(part := items[a:b], part, counts[a:b], values[a:b])
            if shared
            else self.node(tokens[a:b], items[a:b], counts[a:b], values[a:b])
            for a, b in pairwise(ends)
        ]

    def mended(self, nodes: list[Node], height: int) -> list[Node]:
        """Neighbours joined where one of them is less than half full."""
        kept: list[Node] = []
        least = self.least[height > 0]
        for node in nodes:
            if kept and min(len(node[1]), len(kept[-1][1])) < least:
                kept[-1:] = self.joined(kept[-1], node, height)
            else:
                kept.append(node)
        return kept

    def joined(self, left: Node, right: Node, height: int) -> list[Node]:
        if height:
            return self.over(self.mended([*left[1], *right[1]], height - 1))
        items = left[1] + right[1]
        shared = left[0] is left[1] and right[0] is right[1]
        tokens = items if shared else left[0] + right[0]
        return self.cut(tokens, items, left[2] + right[2], left[3] + right[3])

    def is_right(self, node: Node, height: int, *, top: bool = False) -> bool:
        """Whether a node is what its items say, and full enough."""
        tokens, items, counts, values, _, _ = node
        fits = (2 if height else 1) if top else self.least[height > 0]
        if not fits <= len(items) <= self.widths[height > 0]:
            return False
        if height:
            made = self.over(items)
            below = all(self.is_right(child, height - 1) for child in items)
        else:
            powers = list(map(self.power, items, counts)) if self.merge else []
            made = self.cut(list(map(self.token, items)), items, counts, powers)
            below = min(counts) > 0 and len(tokens) == len(items)
        if self.memos:  # what is remembered is no part of what a node means
            made, node = [each[:5] for each in made], node[:5]
        return below and made == [node] and len(values) == len(items) * bool(self.merge)


# ---- many edits at once ----


class Edit:
    """Sorted edits on their way down a tree; `more` counts the elements that are new."""

    __slots__ = ("counts", "elements", "form", "more", "tokens")

    def __init__(self, form: TreeForm, columns: Columns) -> None:
        self.form = form
        self.tokens, self.elements, self.counts = columns
        self.more = 0

    def run(self, root: Node, height: int) -> tuple[Node, int]:
        """The new root and its height."""
        if not self.tokens:
            return root, height
        nodes = self.form.mended(self.at(root, height, 0, len(self.tokens)), height)
        while len(nodes) > 1:
            nodes, height = self.form.over(nodes), height + 1
        if not nodes:
            return EMPTY, 0
        root = nodes[0]
        while height and len(root[1]) == 1:
            root, height = root[1][0], height - 1
        return root, height

    def at(self, node: Node, height: int, start: int, end: int) -> list[Node]:
        """What becomes of a node under the edits from `start` to `end`."""
        if not height:
            return self.leaf(node, start, end)
        tokens, least = self.tokens, self.form.least[height > 1]
        lows, children = node[0], node[1]
        last, at, even = len(lows) - 1, 0, True
        new: list[Any] = list(children)
        touched = []
        while start < end:
            at = max(bisect_right(lows, tokens[start], at) - 1, 0)
            stop = end if at == last else bisect_left(tokens, lows[at + 1], start + 1, end)
            found = self.at(children[at], height - 1, start, stop)
            if len(found) == 1 and len(found[0][1]) >= least:
                new[at] = found[0]
            else:
                new[at], even = found, False
            touched.append(at)
            start = stop
        if even:
            return [self.form.patched(node, new, touched)]
        nodes = [n for item in new for n in (item if type(item) is list else (item,))]
        return self.form.over(self.form.mended(nodes, height - 1))

    def leaf(self, node: Node, start: int, end: int) -> list[Node]:
        if not node[1] or end - start > self.form.widths[0]:
            return self.crowd(node, start, end)
        form, merging = self.form, self.form.merge is not None
        shared = node[0] is node[1] and self.tokens is self.elements
        tokens, counts, values = list(node[0]), list(node[2]), list(node[3])
        items = tokens if shared else list(node[1])
        at = 0
        for n in range(start, end):
            token, x, count = self.tokens[n], self.elements[n], self.counts[n]
            at = bisect_left(tokens, token, at)
            if at == len(tokens) or tokens[at] != token:
                if count < 0:
                    raise absent(x, -count, 0)
                tokens.insert(at, token)
                counts.insert(at, count)
                if not shared:
                    items.insert(at, x)
                if merging:
                    values.insert(at, form.power(x, count))
                continue
            if not shared and items[at] is not x and items[at] != x:
                raise alike(items[at], x)
            count += counts[at]
            if count > 0:
                counts[at] = count
                if merging:
                    values[at] = form.power(items[at], count)
                continue
            if count < 0:
                raise absent(x, counts[at] - count, counts[at])
            del tokens[at], counts[at]
            if not shared:
                del items[at]
            if merging:
                del values[at]
        self.more += len(items) - len(node[1])
        if len(items) > form.widths[0]:
            return form.cut(tokens, items, counts, values)
        return [form.node(tokens, items, counts, values)] if items else []

    def crowd(self, node: Node, start: int, end: int) -> list[Node]:
        """More edits than a leaf holds: they are halved, and the leaf where they part."""
        if node[1]:
            middle = (start + end) // 2
            i = bisect_left(node[0], self.tokens[middle])
            one, two = _part(node, 0, i), _part(node, i, len(node[1]))
            return self.leaf(one, start, middle) + self.leaf(two, middle, end)
        form = self.form
        tokens, items = self.tokens[start:end], self.elements[start:end]
        counts = self.counts[start:end]
        if min(counts) < 0:
            raise absent(items[counts.index(min(counts))], -min(counts), 0)
        self.more += end - start
        values = list(map(form.power, items, counts)) if form.merge else ()
        return form.cut(items if self.tokens is self.elements else tokens, items, counts, values)


def inserted(items: tuple[Any, ...], i: int, x: Any) -> tuple[Any, ...]:
    """A tuple with one item more. (A list is made and edited faster than tuples are added up.)"""
    new = list(items)
    new.insert(i, x)
    return tuple(new)


def replaced(items: tuple[Any, ...], i: int, x: Any) -> tuple[Any, ...]:
    """A tuple with another item in the place of one."""
    new = list(items)
    new[i] = x
    return tuple(new)


def without(items: tuple[Any, ...], i: int) -> tuple[Any, ...]:
    """A tuple with one item less."""
    new = list(items)
    del new[i]
    return tuple(new)


def _part(leaf: Node, a: int, b: int) -> Node:
    """Some items of a leaf, for a moment: a node without its size and total."""
    items = leaf[1][a:b]
    tokens = items if leaf[0] is leaf[1] else leaf[0][a:b]
    return tokens, items, leaf[2][a:b], leaf[3][a:b], 0, None


def _summed(tokens: Sequence[Any], elements: Sequence[Any], counts: Sequence[int]) -> Columns:
    """Sorted edits with those of equal tokens added up."""
    if len(tokens) < 2 or not any(map(eq, tokens, islice(tokens, 1, None))):
        return tokens, elements, counts
    rows: list[list[Any]] = []
    for token, x, count in zip(tokens, elements, counts, strict=True):
        if not rows or rows[-1][0] != token:
            rows.append([token, x, count])
        elif rows[-1][1] is not x and rows[-1][1] != x:
            raise alike(rows[-1][1], x)
        else:
            rows[-1][2] += count
    columns = list(zip(*(row for row in rows if row[2]), strict=True)) or [(), (), ()]
    return columns[1] if tokens is elements else columns[0], columns[1], columns[2]


def absent(x: Any, wanted: int, there: int) -> AbsentRow:
    return AbsentRow(
        f"{value_text(x)} cannot be taken away {wanted} times: it is there {there} times",
        remedy="remove at most what was added",
    )


def alike(a: Any, b: Any) -> AlgebraError:
    return AlgebraError(
        "two different elements have the same place in the order",
        one=a,
        other=b,
        remedy="a key= that tells them apart",
    )
