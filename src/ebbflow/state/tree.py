"""A sorted multiset that never changes: every edit gives a new tree and leaves the old one alone.

Elements are kept in the order of `key`, each with how often it is there. With `merge` a tree also
knows the *total* of all its elements and, for every part of itself, the total of that part; so
after an edit only the totals on the way from the edit to the root are merged again. (The aggregate
tree of incremental Datalog; balanced, so that the way is short.) The old tree stays valid, which
makes undoing an edit as cheap as not having made it.

It is a B+ tree of tuples. A *node* is six things:

    tokens    what the items are ordered by: for a child, the token of its first element
    items     elements in a leaf, children above
    counts    how often each element is there; for a child, how many elements it holds
    values    the value of each element, merged `count` times; for a child, its total
    size      the sum of the counts
    total     all values merged, from left to right

so leaves and the nodes above them are cut, joined and summed by the same few lines. Every node but
the root is between half full and full. Nodes are wide, because a tuple is copied faster than a
Python function is called, and narrower where a `merge` has to be called for every item of a node.

**Order.** `(key(x), x)`: where keys are equal, the elements decide. The order is the total one of
`ebbflow.ordering`, which has a place for values of any types. As long as all elements are
`comparable`, they are their own tokens; when another comes, the tree is made anew with the keys of
that order as tokens. A tree with a `ranking` is ordered by what this gives for an element, and by
nothing else.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice, pairwise, repeat
from typing import Any, Generic, TypeVar

from ebbflow.algebra.value import function_name
from ebbflow.errors import AlgebraError
from ebbflow.ordering import all_comparable, comparable, total_order_key
from ebbflow.state.node import EMPTY, NARROW, WIDE, Edit, Node, TreeForm, Way
from ebbflow.state.walk import items_between, reach, repeated, walk

T = TypeVar("T")


class Tree(Generic[T]):
    """Elements in order, with counts and, where `merge` is given, a total.

    >>> t = Tree.of([5, 1, 3, 3])
    >>> t.first, t.last, t.at(1), t.rank(5), len(t), t.distinct
    (1, 5, 3, 3, 4, 3)
    >>> t.remove(3).add(9)
    Tree.counted([(1, 1), (3, 1), (5, 1), (9, 1)])
    >>> list(t)
    [(1, 1), (3, 2), (5, 1)]

    `merge` need only be associative: values are merged in order, an element that is there `n` times
    with about `log n` calls. `value(x)` is what an element counts for, by default itself.

    >>> words = Tree.of(["pear", "fig", "apple"], key=len, merge=lambda a, b: f"{a} {b}")
    >>> words.total, words.remove("pear").total
    ('fig pear apple', 'fig apple')

    `width` is how many items a node may hold, and `leaf` how many one without nodes below it may,
    where that is another number; they change the speed and nothing else. With `memos` every node
    has a *memo* instead of a total, for who walks through it from left to right: a list of one
    tuple, in which is what was found before the first item, and then behind each. It is empty in
    a new node, put in whole, and no part of what the node means.
    """

    __slots__ = ("_form", "distinct", "root")

    def __init__(
        self,
        *,
        key: Callable[[T], Any] | None = None,
        value: Callable[[T], Any] | None = None,
        merge: Callable[[Any, Any], Any] | None = None,
        width: int | None = None,
        leaf: int | None = None,
        ranking: Callable[[T], Any] | None = None,
        memos: bool = False,
    ) -> None:
        if width is not None and width < 4:
            raise AlgebraError("a node holds at least 4 items", width=width, remedy="width=16")
        above = width or (NARROW if merge else WIDE)
        self._form = TreeForm(key, value, merge, (leaf or above, above), ranking, memos=memos)
        self.root: tuple[Node, int] = EMPTY, 0
        """The topmost node and how many levels are below it, for who walks through the tree."""
        self.distinct = 0
        """How many different elements there are."""

    @classmethod
    def of(cls, elements: Iterable[T], **form: Any) -> Tree[T]:
        """A tree of these elements; the keyword arguments are those of `Tree`.

        >>> Tree.of("banana", key=str.upper)
        Tree.counted([('a', 3), ('b', 1), ('n', 2)], key=str.upper)
        """
        return cls.counted(zip(elements, repeat(1)), **form)

    @classmethod
    def counted(cls, pairs: Iterable[tuple[T, int]], **form: Any) -> Tree[T]:
        """A tree of elements with how often each is there.

        >>> Tree.counted([("b", 1), ("a", 2)]).smallest(2)
        ['a', 'a']
        """
        return cls(**form).update(pairs)

    # ---- edits ----

    def add(self, x: T, count: int = 1) -> Tree[T]:
        """The tree with `x` in it, once more or `count` times more."""
        return self.update(((x, count),))

    def remove(self, x: T, count: int = 1) -> Tree[T]:
        """The tree with `x` in it once less, or `count` times less.

        >>> Tree.of("ab").remove("c")
        Traceback (most recent call last):
        ebbflow.errors.AbsentRow: 'c' cannot be taken away 1 times: it is there 0 times
            try        remove at most what was added
        """
        return self.update(((x, -count),))

    def update(self, changes: Iterable[tuple[T, int]]) -> Tree[T]:
        """The tree after many edits, `(x, count)` or `(x, -count)`; cheaper than one by one.

        Only the sum of the edits of an element counts, not their order.

        >>> Tree.of("aab").update([("a", -2), ("c", 1)])
        Tree.counted([('b', 1), ('c', 1)])
        """
        return self.edited(changes)[0]

    def edited(self, changes: Iterable[tuple[T, int]]) -> tuple[Tree[T], Way]:
        """The same, and the way from the root of this tree to the place of the edit, where it is
        one, and has made new nodes on this way and nowhere else."""
        pairs = changes if type(changes) is list else list(changes)
        if len(pairs) != 1 or not pairs[0][1]:
            pairs = [pair for pair in pairs if pair[1]]
        if len(pairs) == 1:
            found = self._edited_once(*pairs[0])
            if found is not None:
                return found
        return self._edited_often(pairs) if pairs else self, ()

    def _edited_once(self, x: T, count: int) -> tuple[Tree[T], Way] | None:
        """The tree after one edit; None where that takes more than new items on the way to it."""
        form = self._form
        token: Any = x
        try:
            if not form.native:
                token = form.token(x)
            elif not comparable(x):
                return None
            elif form.key is not None:
                key = form.key(x)
                if not comparable(key):
                    return None
                token = key, x
            found = form.edited(*self.root, token, x, count)
        except TypeError:  # from `<`, `merge` or `value`: it comes again, or the order is another
            return None
        if found is None:
            return None
        node, more, way = found
        new: Tree[T] = Tree.__new__(Tree)
        new._form, new.root, new.distinct = form, (node, self.root[1]), self.distinct + more
        return new, way

    def _edited_often(self, pairs: list[tuple[T, int]]) -> Tree[T]:
        form, rows = self._form, [pair[0] for pair in pairs]
        if not form.native:
            return self._edited(pairs, list(map(form.token, rows)))
        keys = rows if form.key is None else list(map(form.key, rows))
        try:
            if all_comparable(rows) and (keys is rows or all_comparable(keys)):
                tokens = rows if keys is rows else list(zip(keys, rows, strict=True))
                return self._edited(pairs, tokens)
        except TypeError:  # from `<`; where it came from `merge` or `value`, it comes again
            pass
        tree = self._totally()
        return tree._edited(pairs, list(map(tree._form.token, rows)))

    def _edited(self, pairs: list[tuple[T, int]], tokens: list[Any]) -> Tree[T]:
        form = self._form
        new: Tree[T] = Tree.__new__(Tree)
        new._form = form
        edit = Edit(form, form.columns(pairs, tokens))
        new.root = edit.run(*self.root)
        new.distinct = self.distinct + edit.more
        return new

    def _totally(self) -> Tree[T]:
        """The same tree, with the keys of the total order as tokens."""
        empty: Tree[T] = Tree()
        empty._form = self._form.totally()
        return empty.update(self)

    @property
    def native(self) -> bool:
        """Whether `<` on the elements is the order of the tree."""
        return self._form.native

    @property
    def ranking(self) -> Any:
        """What ranks the elements, if something does. It is not pickled with the tree."""
        return self._form.ranking

    # ---- reading ----

    def token(self, x: T) -> Any:
        """What `x` is ordered by in this tree."""
        return self._form.token(x)

    def items(self) -> Iterator[tuple[T, int]]:
        """The elements with their counts, in order: a tree is a bag, as a dict of counts is."""
        return iter(self)

    def get(self, x: T, default: int = 0) -> int:
        """How often `x` is there, `default` for not at all."""
        return self.count(x) or default

    def between(self, start: int, stop: int) -> Iterator[tuple[T, int]]:
        """The elements from one place to before another, in order, each with how often.

        >>> list(Tree.of([1, 2, 2, 2, 3]).between(2, 5))
        [(2, 2), (3, 1)]
        """
        node, height = self.root
        start, stop = max(start, 0), min(stop, self.size)
        while height and start < stop:
            i, inside = reach(node, start)
            if stop - start > node[2][i] - inside:
                break
            node, start, stop, height = node[1][i], inside, stop - start + inside, height - 1
        if not height and node[4] == len(node[1]):
            return zip(node[1][start:stop], repeat(1))
        return items_between(node, height, start, stop)

    @property
    def size(self) -> int:
        """How many there are. `len` says the same, and refuses what is more than an index."""
        size: int = self.root[0][4]
        return size

    def __len__(self) -> int:
        return self.size

    def count(self, x: T) -> int:
        """How often `x` is there.

        >>> Tree.of("banana").count("a")
        3
        """
        return self._place(x)[1]

    def rank(self, x: T) -> int:
        """How many are before `x` in the order of the tree, whether `x` is there or not.

        >>> Tree.of([10, 20, 20, 30]).rank(25)
        3
        """
        return self._place(x)[0]

    @property
    def total(self) -> Any:
        """The values of all elements merged in order, each as often as it is there."""
        if self._form.merge is None:
            raise AlgebraError("this tree has no total", remedy="Tree(merge=...)")
        if not self.root[0][4]:
            raise AlgebraError("an empty tree has no total", remedy="ask len(tree) first")
        return self.root[0][5]

    @property
    def first(self) -> T:
        """The first in the order."""
        return self._end(0)

    @property
    def last(self) -> T:
        """The last in the order."""
        return self._end(-1)

    def _end(self, i: int) -> T:
        node, height = self.root
        if not node[1]:
            return self.at(i)
        for _ in range(height):
            node = node[1][i]
        end: T = node[1][i]
        return end

    def at(self, i: int) -> T:
        """The `i`-th in the order, counting each as often as it is there; -1 is the last.

        >>> Tree.of([10, 20, 20, 30]).at(2), Tree.of("abc").at(-3)
        (20, 'a')
        """
        return self.spot(i)[0]

    def spot(self, i: int) -> tuple[T, int, int]:
        """The `i`-th in the order, where the first like it is, and how many like it there are.

        >>> Tree.of([10, 20, 20, 30]).spot(2)
        (20, 1, 2)
        """
        node, height = self.root
        size = node[4]
        place = i + size if i < 0 else i
        if not 0 <= place < size:
            raise AlgebraError(
                f"there is no element at {i} in a tree of {size}",
                remedy=f"a position from {-size} to {size - 1}" if size else "ask len(tree) first",
            )
        at = place
        for _ in range(height):
            i, place = reach(node, place)
            node = node[1][i]
        i, place = reach(node, place)
        return node[1][i], at - place, node[2][i]

    def smallest(self, n: int) -> list[T]:
        """The first `n`, in order.

        >>> Tree.of([4, 1, 1, 3]).smallest(3)
        [1, 1, 3]
        """
        return list(islice(repeated(self, n), n))

    def largest(self, n: int) -> list[T]:
        """The last `n`, the very last first.

        >>> Tree.of([4, 1, 1, 3]).largest(3)
        [4, 3, 1]
        """
        return list(islice(repeated(reversed(self), n), n))

    def __iter__(self) -> Iterator[tuple[T, int]]:
        return walk(*self.root, iter)

    def __reversed__(self) -> Iterator[tuple[T, int]]:
        return walk(*self.root, reversed)

    def __contains__(self, x: T) -> bool:
        return self.count(x) > 0

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tree):
            return NotImplemented
        same_size = (self.size, self.distinct) == (other.size, other.distinct)
        return same_size and all(a == b for a, b in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        form = self._form
        functions = {"key": form.key, "value": form.value, "merge": form.merge}
        given = [f"{name}={function_name(f)}" for name, f in functions.items() if f is not None]
        return f"Tree.counted({', '.join([repr(list(iter(self))), *given])})"

    def __reduce__(self) -> tuple[Any, ...]:
        form = self._form
        elements = list(iter(self))  # a list of the tree itself would have room for every copy
        return _again, (elements, form.key, form.value, form.merge, form.widths, form.memos)

    def invariant(self) -> bool:
        """Whether order, balance, counts and totals are all as they should be. For tests."""
        form, elements = self._form, list(iter(self))
        tokens = [form.token(x) for x, _ in elements]
        return (
            self.distinct == len(elements)
            and all(a < b for a, b in pairwise(tokens))
            and (not elements or form.is_right(*self.root, top=True))
        )

    def __copy__(self) -> Tree[T]:
        return self

    def _place(self, x: T) -> tuple[int, int]:
        """How many are before `x`, and how often it is there."""
        token = self._form.token(x)
        if self.native:
            try:
                if comparable(token):
                    return self.search(token, bisect_left, bisect_right)
            except TypeError:
                pass
            return self.search(total_order_key(token), total_left, total_right)
        return self.search(token, bisect_left, bisect_right)

    def search(self, token: Any, left: Any, right: Any) -> tuple[int, int]:
        """How many are before a token, and how often its element is there."""
        (node, height), before = self.root, 0
        for _ in range(height):
            i = right(node[0], token) - 1
            if i > 0:
                before += sum(node[2][:i])
            node = node[1][max(i, 0)]
        i = left(node[0], token)
        found = i < len(node[0]) and right(node[0], token, i, i + 1) > i
        return before + sum(node[2][:i]), node[2][i] if found else 0


total_left = partial(bisect_left, key=total_order_key)
total_right = partial(bisect_right, key=total_order_key)


def _again(
    pairs: Any, key: Any, value: Any, merge: Any, widths: tuple[int, int], memos: bool = False
) -> Tree[Any]:
    leaf, width = widths
    return Tree.counted(
        pairs, key=key, value=value, merge=merge, width=width, leaf=leaf, memos=memos
    )
