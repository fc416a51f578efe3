"""Upper and lower case, for all of Unicode.

Two things make this more than mapping what is inserted. **Lengths change**: "ß" becomes "SS", "ŉ"
becomes "ʼN", "İ" becomes "i" and a dot above it. So a position in the text is not the same position
in the output. It is moved by what the characters before it have grown. **Neighbours matter**: the
capital sigma "Σ" is lowered to "ς" where it ends a word and to "σ" elsewhere. So an edit can change
how a Σ *beside* it is written.

    operator    state                                            cost of an edit
    upper       the length; a rope of the text as soon as it     O(log n) and the edit's own text;
                holds a character that grows, kept from then     O(n) once, for the first character
                on                                               that grows
    lower       a rope of the text                               the same

How a Σ is lowered depends on the nearest characters to both sides of it that are *solid*. (Unicode
calls the others case-ignorable: accents, apostrophes, full stops and such are passed over.) It is
"ς" if the one before is a cased letter and the one after is not. A Σ is itself solid, so an edit
changes at most two that were there before: the nearest solid character on each side of it.

What is solid and what is cased is not looked up in a table here: `str.lower` is asked, with a Σ put
beside the character. So the answers are always those of the Python that runs.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ebbflow.change import TEXT, Delete, Edit, Insert
from ebbflow.change.rope import Hit, Rope
from ebbflow.operator.text.basic import EDITS, Edited, TextConstant


def _grown(state: Any, piece: str) -> tuple[Any, int]:
    """Reads by how much a piece becomes longer in upper case."""
    return state, 0 if piece.isascii() else len(piece.upper()) - len(piece)


class _Uppered:
    """The length, by how much the output is longer, and the text if it ever was longer.

    The rope stays when the last character that grows is deleted: it took a pass over the text to
    make, and typing a "ß" and deleting it again must not make it each time. What was there before
    the first character that grows is held as "\\0": it does not grow either.
    """

    __slots__ = ("extra", "rope", "size")

    def __init__(self, size: int, extra: int, rope: Rope | None) -> None:
        self.size = size
        self.extra = extra
        self.rope = rope

    def before(self, at: int) -> int:
        """By how much the output is longer before position `at`."""
        return self.rope.upto(at)[1] if self.rope is not None and self.extra else 0

    def __repr__(self) -> str:
        return f"<{self.size} code points, {self.size + self.extra} in upper case>"


class _Upper(TextConstant):
    """`text.upper()`. The state is the length, and a rope of the text once lengths changed in it.

    >>> live = upper.open("straße")
    >>> live.send(Insert(6, "n")), live.send(Delete(5, 1))
    (Insert(at=7, text='N'), Delete(at=6, count=1))
    """

    output = TEXT
    name = "upper"

    def f(self, x: str) -> str:
        return x.upper()

    def init(self, x: str) -> _Uppered:
        extra = _grown(None, x)[1]
        return _Uppered(len(x), extra, Rope(x, _grown) if extra else None)

    def step(self, state: _Uppered, change: Edit) -> tuple[_Uppered, Edit]:
        at = change.at
        if isinstance(change, Insert):
            text = change.text
            loud = text.upper()
            more = len(loud) - len(text)
            if more and state.rope is None:
                state.rope = Rope("\0" * state.size, _grown)
            if state.rope is not None:
                at += state.before(at)
                state.rope.insert(change.at, text)
                state.extra += more
            state.size += len(text)
            return state, Insert(at, loud)
        state.size -= change.count
        if state.rope is None:
            return state, change
        before = state.before(at)
        less = state.before(at + change.count) - before
        state.rope.delete(at, change.count)
        state.extra -= less
        return state, Delete(at + before, change.count + less)

    def invariant(self, x: str, state: _Uppered) -> bool:
        counts = state.size, state.extra
        if state.rope is None:
            return counts == (len(x), 0) and len(x.upper()) == len(x)
        same = [len(c.upper()) for c in str(state.rope)] == [len(c.upper()) for c in x]
        return same and counts == (len(x), len(x.upper()) - len(x))


upper = _Upper()


# ---- lower ----


@lru_cache(maxsize=4096)
def _is_solid(c: str) -> bool:
    """Whether a Σ looks no further than this character."""
    return not _all_ignorable(c)


def _all_ignorable(piece: str) -> bool:
    """Whether a Σ after the piece sees the "a" before it, or nothing where there is no "a"."""
    return (f"a{piece}Σ".lower()[-1], f"{piece}Σ".lower()[-1]) == ("ς", "σ")


def _counted(state: str, piece: str) -> tuple[str, int]:
    """Reads how often the character `state` occurs or, in the state "", whether one is solid."""
    if state:
        return state, piece.count(state)
    solid = any(map(_is_solid, piece[:4])) or not (len(piece) <= 4 or _all_ignorable(piece))
    return state, int(solid)


class _Lowered(Edited):
    """The text, and how many Σ and İ it has."""

    __slots__ = ("dots", "sigmas")

    def __init__(self, text: str) -> None:
        super().__init__(Rope(text, _counted))
        self.sigmas = text.count("Σ")
        self.dots = text.count("İ")

    def before(self, at: int, c: str) -> int:
        """How many of the character there are before position `at`."""
        return self.rope.upto(at, c)[1] if (self.sigmas if c == "Σ" else self.dots) else 0

    def solid_before(self, at: int) -> tuple[int, str]:
        """The nearest solid character before `at` and where it is; -1 and "" if there is none."""
        hit = self.rope.last(at, "")
        return _last_solid(hit.piece, hit.at) if hit else (-1, "")

    def solid_from(self, at: int) -> tuple[int, str]:
        """The nearest solid character from `at` on and where it is; -1 and "" if there is none."""
        hit = self.rope.first(at, "")
        return _first_solid(hit) if hit else (-1, "")

    def __repr__(self) -> str:
        return f"<{self.rope!r}, {self.sigmas} Σ, {self.dots} İ>"


def _first_solid(hit: Hit) -> tuple[int, str]:
    """Bisection by `str.lower`, after a look at the first few."""
    piece = hit.piece
    for i, c in enumerate(piece[:8]):
        if _is_solid(c):
            return hit.at + i, c
    low, high = 0, len(piece)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _all_ignorable(piece[:middle]) else (low, middle)
    return hit.at + low, piece[low]


def _last_solid(piece: str, at: int) -> tuple[int, str]:
    for i in range(len(piece) - 1, max(len(piece) - 9, -1), -1):
        if _is_solid(piece[i]):
            return at + i, piece[i]
    low, high = 0, len(piece)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _all_ignorable(piece[middle:]) else (middle, high)
    return at + low, piece[low]


def _between(before: str, text: str, after: str) -> str:
    """`text` in lower case, with these solid characters as its neighbours."""
    lowered = f"{before}{text}{after}".lower()
    return lowered[len(before.lower()) : len(lowered) - len(after.lower())]


class _Lower(TextConstant):
    """`text.lower()`. The state is a rope of the text.

    An edit gives several where it changes a Σ beside it:

    >>> live = lower.open("ΟΔΟΣ")
    >>> live.send(Insert(4, " A"))
    (Insert(at=4, text=' a'),)
    >>> live.send(Delete(4, 1))
    (Delete(at=4, count=1), Delete(at=3, count=1), Insert(at=3, text='σ'))
    """

    output = EDITS
    name = "lower"

    def f(self, x: str) -> str:
        return x.lower()

    def init(self, x: str) -> _Lowered:
        return _Lowered(x)

    def step(self, state: _Lowered, change: Edit) -> tuple[_Lowered, tuple[Edit, ...]]:
        rope = state.rope
        if not (state.sigmas or state.dots):
            if not isinstance(change, Insert):
                rope.delete(change.at, change.count)
                return state, (change,)
            text = change.text
            if text.isascii() or not ("Σ" in text or "İ" in text):
                rope.insert(change.at, text)
                return state, (Insert(change.at, text.lower()),)
            return state, self._inserted(state, change.at, text)
        if isinstance(change, Insert):
            return state, self._inserted(state, change.at, change.text)
        return state, self._deleted(state, change.at, change.at + change.count)

    def _inserted(self, state: _Lowered, at: int, text: str) -> tuple[Edit, ...]:
        place = at + state.before(at, "İ")
        sides = _Sides(state, at, at, text) if state.sigmas or "Σ" in text else None
        new = _between(sides.left, text, sides.right) if sides else text.lower()
        state.rope.insert(at, text)
        state.dots += text.count("İ")
        state.sigmas += text.count("Σ")
        return (Insert(place, new), *(sides.flips(place, len(new)) if sides else ()))

    def _deleted(self, state: _Lowered, at: int, end: int) -> tuple[Edit, ...]:
        before = state.before(at, "İ")
        dots = state.before(end, "İ") - before
        sigmas = state.before(end, "Σ") - state.before(at, "Σ")
        sides = _Sides(state, at, end, "") if state.sigmas else None
        state.rope.delete(at, end - at)
        state.dots -= dots
        state.sigmas -= sigmas
        place = at + before
        return (Delete(place, end - at + dots), *(sides.flips(place, 0) if sides else ()))

    def invariant(self, x: str, state: _Lowered) -> bool:
        counts = state.sigmas, state.dots
        return str(state.rope) == x and counts == (x.count("Σ"), x.count("İ"))


class _Sides:
    """What an edit of `[start, end)` has beside it: the solid characters and, where one is a Σ that
    will be written in the other way, its distance from the edit and how. (What lies between is not
    solid, so no İ, and as long in the output.)"""

    def __init__(self, state: _Lowered, start: int, end: int, text: str) -> None:
        at, self.left = state.solid_before(start)
        to, self.right = state.solid_from(end)
        first = _first_solid(Hit(0, "", text))[1] if _counted("", text)[1] else ""
        last = _last_solid(text, 0)[1] if first else ""
        self.before: tuple[int, str] | None = None
        self.after: tuple[int, str] | None = None
        if self.left == "Σ":
            beyond = state.solid_before(at)[1]
            old = _between(beyond, "Σ", state.solid_from(start)[1])
            new = _between(beyond, "Σ", first or self.right)
            self.before = (start - at, new) if old != new else None
        if self.right == "Σ":
            beyond = state.solid_from(to + 1)[1]
            old = _between(state.solid_before(end)[1], "Σ", beyond)
            new = _between(last or self.left, "Σ", beyond)
            self.after = (to - end, new) if old != new else None

    def flips(self, place: int, size: int) -> tuple[Edit, ...]:
        """The edits that rewrite each Σ, when the output of the edit is `size` long at `place`."""
        found: list[Edit] = []
        if self.before is not None:
            gap, new = self.before
            found += Delete(place - gap, 1), Insert(place - gap, new)
        if self.after is not None:
            gap, new = self.after
            found += Delete(place + size + gap, 1), Insert(place + size + gap, new)
        return tuple(found)


lower = _Lower()
