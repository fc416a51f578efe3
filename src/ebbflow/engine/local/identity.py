"""Names for state: digests of what it holds.

State on disk is found again by a *name* that says what it is: a digest of the node that made it, of
the functions of that node, and of all nodes before it. Two programs that mean the same have the
same names, whatever file, line or process they are in. A node that was changed has another name,
and so has everything that depends on it.

Steps on one row at a time are named as if each were a node of its own, however they are fused: a
new reader in the middle of them changes no name. Operators and reducers are known by what they hold
and by the code of the classes that the user wrote, never by the place where they were made.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import fields
from functools import cached_property, partial
from hashlib import blake2b
from types import FunctionType, MethodType
from typing import Any

from ebbflow.expression import fingerprint
from ebbflow.expression.bytecode import enclosed, used_globals
from ebbflow.flow.plan import Filter, FlatMap, Fused, Map, Plan, Source
from ebbflow.fn import Fn
from ebbflow.operator import Operator
from ebbflow.record import fields_of, type_text
from ebbflow.reducer import Reducer

_BY_NAME = sys.stdlib_module_names | {"ebbflow"}
_LIBRARIES = ("site-packages", "dist-packages")
_NOT_TOLD = {"created", "elements", "name", "size", "cost", "owner"}


def identities(plan: Plan) -> dict[int, str]:
    """For each node a digest of what it means: its own fields, and those of all before it.

    >>> words = Source(name="words", type=str)
    >>> one = Filter(parent=words, fn=Fn(lambda word: len(word) > 3))
    >>> other = Filter(parent=words, fn=Fn(lambda said: len(said) > 3))
    >>> names = identities(Plan({"one": one, "other": other}))
    >>> names[id(one)] == names[id(other)], names[id(one)] == names[id(words)]
    (True, False)
    """
    found: dict[int, str] = {}
    for node in plan.nodes():
        before = [found[id(parent)] for parent in node.parents]
        if isinstance(node, Source):
            found[id(node)] = digest("source", input_name(node))
        elif isinstance(node, (Map, Filter, FlatMap, Fused)):
            (name,) = before
            for step in node.steps if isinstance(node, Fused) else (node,):
                name = digest("step", step.verb, told(step.fn), name)
            found[id(node)] = name
        else:
            parents = {id(parent) for parent in node.parents}
            own = [type(node).__name__]
            for each in fields(node):
                value = getattr(node, each.name)
                if each.name not in ("place", "parts", "type") and id(value) not in parents:
                    own.append(f"{each.name}={told(value)}")
            found[id(node)] = digest(*own, type_name(node.type), *before)
    return found


def input_name(source: Source) -> str:
    """The name of the rows of an input: its own, its type, its key."""
    key = "" if source.key is None else told(source.key)
    return digest("input", source.name, type_name(source.type), key)


def type_name(kind: Any) -> str:
    """A row type with its fields and their types.

    >>> from ebbflow.record import record
    >>> type_name(record("City", city=str, n=int | None)), type_name(int)
    ('City(city: str, n: int | None)', 'int')
    """
    known = fields_of(kind)
    if known is None:
        return type_text(kind)
    parts = [f"{name}: {type_text(each)}" for name, each in known.items()]
    return f"{kind.__name__}({', '.join(parts)})"


def digest(*parts: str) -> str:
    """A short digest of texts."""
    told_apart = "".join(f"{len(part)}:{part}" for part in parts)
    return blake2b(told_apart.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def told(value: Any) -> str:
    """A digest of a function, an operator, a reducer, or any value that is in a node."""
    if isinstance(value, Fn):
        if value.expression is not None:
            return value.fingerprint
        return digest(value.fingerprint, *_behaviour(value))
    if isinstance(value, (Operator, Reducer)):
        return _parts(value)
    if type(value) in (tuple, list):
        return digest(type(value).__name__, *map(told, value))
    if type(value) is dict:
        return digest("dict", *sorted(digest(told(k), told(v)) for k, v in value.items()))
    if fields_of(value) is not None:
        return type_name(value)
    return digest(fingerprint(value), *_behaviour(value))


def _parts(value: Any) -> str:
    """What an operator or a reducer holds, and the code of its class."""
    made = getattr(value, "made", None)
    if isinstance(value, Reducer) and made is not None:
        return digest("made", told(made))
    kind = type(value)
    own = [f"{kind.__module__}.{kind.__qualname__}", *_behaviour(kind)]
    for name, held in sorted(_held(value).items()):
        if name not in _NOT_TOLD:
            own += [name, told(held)]
    return digest(*own)


def _held(value: Any) -> dict[str, Any]:
    """The attributes that an object would be pickled with."""
    try:
        state = value.__getstate__()
    except Exception:
        state = getattr(value, "__dict__", {})
    found: dict[str, Any] = {}
    for part in state if isinstance(state, tuple) else (state,):
        if isinstance(part, dict):
            found.update(part)
    return found


# ---- the code of classes ----


def _behaviour(value: Any) -> list[str]:
    """The methods of the user's classes that a value may call, as texts."""
    classes: dict[int, type] = {}
    _gather(value, classes, {})
    found = []
    for kind in classes.values():
        for name, member in vars(kind).items():
            for each in _functions(member):
                if each.__module__ == kind.__module__:
                    found.append(f"{kind.__qualname__}.{name} {fingerprint(each)}")
            if type(member) in (int, float, str, bool, bytes) and not name.startswith("__"):
                found.append(f"{kind.__qualname__}.{name} = {member!r}")
    return sorted(found)


def _functions(member: Any) -> Iterator[FunctionType]:
    if isinstance(member, (staticmethod, classmethod)):
        member = member.__func__
    parts = [member]
    if isinstance(member, property):
        parts = [member.fget, member.fset]
    elif isinstance(member, cached_property):
        parts = [member.func]
    return (part for part in parts if isinstance(part, FunctionType))


def _gather(value: Any, classes: dict[int, type], seen: dict[int, Any]) -> None:
    """Find the user's classes in a value: its own, and those in what it holds or uses."""
    todo = [value]
    while todo:
        value = todo.pop()
        if id(value) in seen:
            continue
        seen[id(value)] = value
        if isinstance(value, type):
            for kind in value.__mro__:
                if _is_the_users(kind) and id(kind) not in classes:
                    classes[id(kind)] = kind
                    todo += [f for member in vars(kind).values() for f in _functions(member)]
        elif isinstance(value, Fn):
            todo += [value.call, *value.types]
        elif isinstance(value, FunctionType):
            if _is_the_users(value):
                todo += [held for _, held in (*enclosed(value), *used_globals(value))]
                todo += [*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()]
        elif isinstance(value, MethodType):
            todo += [value.__func__, value.__self__]
        elif isinstance(value, partial):
            todo += [value.func, value.args, value.keywords]
        elif isinstance(value, (tuple, list, set, frozenset)):
            todo += [type(value), *value]
        elif isinstance(value, dict):
            todo += value.values()
        elif isinstance(value, (Operator, Reducer)) or _is_the_users(type(value)):
            todo += [type(value), *_held(value).values()]


def _is_the_users(thing: Any) -> bool:
    """Whether a class or a function is written in the program, not in a library."""
    module = getattr(thing, "__module__", None) or "builtins"
    if module.partition(".")[0] in _BY_NAME and module != "__main__":
        return False
    file = getattr(sys.modules.get(module), "__file__", None) or ""
    return not any(name in file for name in _LIBRARIES)
