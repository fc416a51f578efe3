"""What makes a value itself, in this process and in any other: a *fingerprint*.

It is a digest of everything that can be reached from a value (`reached`): the same in every
process as long as the value means the same, whatever the order of its sets and the names of its
files. Bytecode differs between versions of Python, and then so does the fingerprint of a function;
that of a traced function is the one of its expression, which does not.

Values that can be reached from each other, as a class and its methods, are told apart in rounds:
each one starts with what it is by itself, and learns in every round what its neighbours knew, until
no more of them can be told apart.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from ebbflow.expression.reached import Opaque, parts_of
from ebbflow.expression.value import is_simple


def fingerprint(value: Any) -> str:
    """A digest of what a value is: of a function, a reducer, a row type, a constant.

    >>> fingerprint(lambda x: x + 1) == fingerprint(lambda x: x + 1)
    True
    >>> fingerprint(lambda x: x + 1) == fingerprint(lambda x: x + 2)
    False
    """
    return Fingerprints().of(value)


def assumed(value: Any) -> tuple[str, ...]:
    """The reasons why a change of a value could go unseen: the parts that its fingerprint knows by
    the name of their type only.

    >>> letters = (letter for letter in "ab")
    >>> assumed(lambda x: x + 1), assumed(lambda x: next(letters))
    ((), ('letters: a generator',))
    """
    return Fingerprints().assumed(value)


class _Node:
    """A value of the graph: its form, its texts with gaps, and the values that fill the gaps."""

    __slots__ = ("content", "digest", "form", "inner", "labels", "low", "number", "value", "why")

    def __init__(self, value: Any, number: int) -> None:
        self.value = value  # kept, so that no other value gets its id
        self.number = self.low = number
        self.form = self.why = ""
        self.content: list[bytes | None] = []
        self.inner: list[Any] = []
        self.labels: list[str] = []
        self.digest: bytes | None = None
        try:
            self._look(value)
        except Opaque as reason:
            self.form, self.why = "name only", str(reason)
            self.content, self.inner, self.labels = [_text(self.why)], [], []

    def _look(self, value: Any) -> None:
        parts = iter(parts_of(value))
        self.form, label = next(parts), ""
        for part in parts:
            if isinstance(part, str):
                self.content.append(_text(part))
                label = part
            elif is_simple(part[0]):
                self.content.append(_constant(part[0]))
                label = part[0] if type(part[0]) is str else ""
            else:
                self.content.append(None)
                self.inner.append(part[0])
                self.labels.append(label)
                label = ""

    def filled(self, inner: list[bytes]) -> bytes:
        """The digest of this value, given the digests of the values in its gaps."""
        rest = iter(inner)
        content = [next(rest) if each is None else each for each in self.content]
        if self.form == "unordered":
            content = [content[0], *sorted(content[1:])]
        return _hashed(self.form, content)


class Fingerprints:
    """Fingerprints that are taken together: a value that is reached twice is looked into once."""

    def __init__(self) -> None:
        self._nodes: dict[int, _Node] = {}

    def of(self, value: Any) -> str:
        """The fingerprint of a value."""
        return self._digest(value)[1:].hex()

    def assumed(self, value: Any) -> tuple[str, ...]:
        """The reasons why a change of this value could go unseen."""
        self._digest(value)
        reasons = [f"{label}: {node.why}" if label else node.why
                   for label, node in self._reached(value) if node.why]  # fmt: skip
        return tuple(dict.fromkeys(reasons))

    def runs_code(self, value: Any) -> bool:
        """Whether a function or a class of the program can be reached from a value."""
        self._digest(value)
        return any(node.form in ("function", "class") for _, node in self._reached(value))

    def _digest(self, value: Any) -> bytes:
        if is_simple(value):
            return _hashed("constant", [_constant(value)])
        if id(value) not in self._nodes:
            self._explore(value)
        found = self._nodes[id(value)].digest
        assert found is not None
        return found

    def _reached(self, value: Any) -> Iterator[tuple[str, _Node]]:
        """Everything that can be reached from a value, with the name it is reached by."""
        todo, seen = [("", value)], set[int]()
        while todo:
            label, each = todo.pop()
            node = self._nodes.get(id(each))
            if node is not None and id(each) not in seen:
                seen.add(id(each))
                yield label, node
                inside = zip(node.labels, node.inner, strict=True)
                todo += [(own or label, inner) for own, inner in inside][::-1]

    def _explore(self, root: Any) -> None:
        """Look into a value and all it leads to; whatever leads back to itself is one group."""
        nodes = self._nodes
        first = nodes[id(root)] = _Node(root, len(nodes))
        path, group = [(first, iter(first.inner))], [first]
        while path:
            node, inner = path[-1]
            for each in inner:
                known = nodes.get(id(each))
                if known is None:
                    known = nodes[id(each)] = _Node(each, len(nodes))
                    path.append((known, iter(known.inner)))
                    group.append(known)
                    break
                if known.digest is None:
                    node.low = min(node.low, known.number)
            else:
                path.pop()
                if path:
                    path[-1][0].low = min(path[-1][0].low, node.low)
                if node.low == node.number:
                    self._close(_cut(group, node))

    def _close(self, group: list[_Node]) -> None:
        """The digests of values that lead to each other, all others they lead to being done."""
        known = dict.fromkeys((node.number for node in group), b"")
        told_apart = 0
        while True:
            known = {node.number: node.filled(self._known(node, known)) for node in group}
            if len(set(known.values())) <= told_apart or len(group) == 1:
                break
            told_apart = len(set(known.values()))
        everyone = [] if len(group) == 1 else sorted(known.values())
        for node in group:
            node.digest = _hashed("", [known[node.number], *everyone])

    def _known(self, node: _Node, known: dict[int, bytes]) -> list[bytes]:
        inner = [self._nodes[id(each)] for each in node.inner]
        return [known[each.number] if each.digest is None else each.digest for each in inner]


def _cut(group: list[_Node], first: _Node) -> list[_Node]:
    """Take the last ones off, from the first of them on."""
    found = [group.pop()]
    while found[-1] is not first:
        found.append(group.pop())
    return found


# ---- bytes ----


def _constant(value: Any) -> bytes:
    return b"c" + _constant_text(value).encode("utf-8", "surrogatepass")


def _constant_text(value: Any) -> str:
    if type(value) is frozenset:
        return f"frozenset({sorted(map(_constant_text, value))})"
    if type(value) is tuple:
        return f"({', '.join(map(_constant_text, value))})"
    return f"{type(value).__name__} {value!r}"


def _text(text: str) -> bytes:
    return b"t" + text.encode("utf-8", "surrogatepass")


def _hashed(form: str, parts: list[bytes]) -> bytes:
    digest = hashlib.sha256(form.encode())
    for part in parts:
        digest.update(str(len(part)).encode() + b":" + part)
    return b"d" + digest.digest()
