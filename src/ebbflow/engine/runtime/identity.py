"""Names for state: digests of what it holds.

State on disk is found again by a *name* that says what it is: a digest of the node that made it, of
the functions of that node with everything they can reach, and of all nodes before it. Two programs
that mean the same have the same names, whatever file, line or process they are in. A node that was
changed has another name, and so has everything that depends on it. What keeps rows compares and
adds their values, so classes of the program that say how that is done are part of it.

Steps on one row at a time are named as if each were a node of its own, however they are fused: a
new reader in the middle of them changes no name. Operators and reducers are known by what they hold
and by the code of the classes that the user wrote, never by the place where they were made.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from hashlib import blake2b
from typing import Any

from ebbflow.errors import shown
from ebbflow.expression import Fingerprints
from ebbflow.expression.schema import schema, undeclared, with_operators
from ebbflow.flow.plan import (
    ADDED_LATER,
    Filter,
    FlatMap,
    Fused,
    Iterate,
    Map,
    Node,
    Plan,
    Source,
    row_steps,
)
from ebbflow.fn import Fn

_STEPS = (Map, Filter, FlatMap, Fused)
_ASIDE = ("place", "parts", "type", "starts", "imports", "body", "limit")


class Names:
    """The names of the nodes of plans; what several of them use is looked into once.

    >>> words = Source(name="words", type=str)
    >>> one = Filter(parent=words, fn=Fn(lambda word: len(word) > 3))
    >>> other = Filter(parent=words, fn=Fn(lambda said: len(said) > 3))
    >>> names = Names().of(Plan({"one": one, "other": other}))
    >>> names[id(one)] == names[id(other)], names[id(one)] == names[id(words)]
    (True, False)
    """

    def __init__(self) -> None:
        self._prints = Fingerprints()

    def of(self, plan: Plan) -> dict[int, str]:
        """For each node a digest of what it means: its own fields, and those of all before it."""
        found: dict[int, str] = {}
        for node in plan.nodes():
            before = [found[id(parent)] for parent in node.parents]
            if isinstance(node, Source):
                found[id(node)] = digest("source", self.of_input(node))
            elif isinstance(node, _STEPS):
                (name,) = before
                for step in row_steps(node):
                    name = digest("step", step.verb, self.of_value(step.fn), name)
                found[id(node)] = name
            else:
                own = [type(node).__name__]
                if isinstance(node, Iterate):
                    inside = self.of(node.body)
                    own += [inside[id(each)] for each in node.body.outputs.values()]
                for each, value in _fields(node):
                    own.append(f"{each}={self.of_value(value)}")
                    if not isinstance(value, Fn) and self._prints.runs_code(value):
                        own += [self.of_value(parent.type) for parent in node.parents]
                for parent in node.parents:
                    own += map(self.of_value, dict.fromkeys(with_operators(parent.type)))
                found[id(node)] = digest(*own, schema(node.type), *before)
        return found

    def of_input(self, source: Source) -> str:
        """The name of the rows of an input: its own, its type, its key."""
        key = "" if source.key is None else self.of_value(source.key)
        return digest("input", source.name, schema(source.type), key)

    def of_value(self, value: Any) -> str:
        """A digest of a function, an operator, a reducer, or any value that is in a node."""
        return self._prints.of(value)

    def assumed(self, plan: Plan) -> dict[str, tuple[str, ...]]:
        """For each function, operator and reducer the reasons why a change of it could go unseen;
        and for each input whose rows do not say what they hold.

        >>> letters = (letter for letter in "ab")
        >>> def ask(word): return next(letters)
        >>> asked = Map(parent=Source(name="words"), fn=Fn(ask))
        >>> Names().assumed(Plan({"": asked}))
        {'map(ask)': ('letters: a generator',)}
        """
        found: dict[str, tuple[str, ...]] = {}
        for node in plan.nodes():
            if isinstance(node, Source):
                unsaid = dict.fromkeys(undeclared(node.type))
                reasons = tuple(f"{name}: a class without declared fields" for name in unsaid)
                found[f"input {node.name}"] = reasons
            if isinstance(node, Iterate):
                found |= self.assumed(node.body)
            for what, value, place in _code(node):
                label = f"{what} {place}".strip()
                found[label] = (*found.get(label, ()), *self._prints.assumed(value))
        return {what: tuple(dict.fromkeys(why)) for what, why in found.items() if why}


def _fields(node: Node) -> Iterator[tuple[str, Any]]:
    """The fields of a node that say what it does, by name."""
    parents = {id(parent) for parent in node.parents}
    for each in fields(node):
        value = getattr(node, each.name)
        if each.metadata == ADDED_LATER and value == each.default:
            continue
        if each.name not in _ASIDE and id(value) not in parents:
            yield each.name, value


def _code(node: Node) -> Iterator[tuple[str, Any, Any]]:
    """The functions, operators and reducers of a node: the text of each, itself, and the place
    where it was given."""
    for step in row_steps(node):
        yield f"{step.verb}({step.fn.text})", step.fn, step.place
    for _, value in () if isinstance(node, _STEPS) else _fields(node):
        if isinstance(value, Fn):
            yield f"{node.verb}({value.text})", value, node.place
        elif value is not None and not isinstance(value, (int, str, tuple)):
            yield f"{node.verb}({shown(value, width=60)})", value, node.place


def digest(*parts: str) -> str:
    """A short digest of texts."""
    told_apart = "".join(f"{len(part)}:{part}" for part in parts)
    return blake2b(told_apart.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
