"""Batch: what a plan means, computed from scratch.

One short function per node says which rows it has, given the rows of its parents. It is slow and
plain on purpose: whatever else runs a plan must give, after every change, what is computed here
from all the input so far. So nothing is taken from the operators, from their state, or from the
running form of reducers; a reducer means its fold over the rows of a group.

Whatever a function gives has one NaN (`ebbflow.nan`), so NaN is one row and one key.

Rows are held with their *weights*, in a dict without zeros. A *bag* is a dict without negative
weights: what a reducer, a ranking, a session or a user's operator can be given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import singledispatch
from typing import Any

from ebbflow.change import BAG, ZSET
from ebbflow.change.fields import remembering_nothing
from ebbflow.decimals import usual_context
from ebbflow.errors import (
    ChangeError,
    CompositionError,
    FunctionFailed,
    cause_of,
    error_text,
)
from ebbflow.flow.endless import no_fixed_point
from ebbflow.flow.plan import (
    Concat,
    Distinct,
    Filter,
    FlatMap,
    Fused,
    FusedStep,
    Iterate,
    Join,
    Keyed,
    Map,
    Node,
    Plan,
    Reduce,
    Semi,
    Sessions,
    Source,
    Through,
    TopK,
)
from ebbflow.nan import one_nan
from ebbflow.ordering import total_order_key
from ebbflow.record import fields_of
from ebbflow.zset import ZSet

Weights = dict[Any, int]
Pairs = Iterable[tuple[Any, int]]


def evaluate(plan: Plan, inputs: Mapping[str, ZSet[Any]]) -> dict[str, ZSet[Any]]:
    """The outputs of a plan for these inputs, by name. An input that is not given is empty.

    >>> from ebbflow.fn import Fn
    >>> words = Source(name="words")
    >>> long = Filter(parent=words, fn=Fn(lambda word: len(word) > 2))
    >>> evaluate(Plan({"long": long}), {"words": ZSet.of(["to", "flow", "flow"])})
    {'long': ZSet({'flow': 2})}
    """
    found: dict[int, Weights] = {}
    with usual_context():
        for node in plan.nodes():
            if isinstance(node, Source):
                found[id(node)] = _given(node, inputs.get(node.name, ZSet()))
            else:
                found[id(node)] = rows_of(node, *(found[id(parent)] for parent in node.parents))
    return {name: ZSet(found[id(node)]) for name, node in plan.outputs.items()}


def _given(node: Source, rows: ZSet[Any]) -> Weights:
    """The rows of an input; where it has a key, at most one of each key."""
    given = remembering_nothing(dict(rows.items()), node.type)
    if node.key is not None:
        owners: dict[Any, Any] = {}
        for row, weight in given.items():
            key = _call(node, node.key, row)
            if weight != 1 or key in owners:
                raise ChangeError(
                    f"input {node.name!r} has one row of each key, and here are more, or fewer",
                    key=key,
                    rows=ZSet({row: weight}) + ZSet.of([owners[key]] if key in owners else []),
                    created=node.place,
                    remedy="each key once, and each row once",
                )
            owners[key] = row
    return given


# ---- one function per node ----


@singledispatch
def rows_of(node: Node, *parents: Weights) -> Weights:
    """The rows of a node with their weights, given those of its parents.

    >>> rows_of(Distinct(parent=Source(name="words")), {"to": 2, "be": -1})
    {'to': 1}
    """
    raise CompositionError(
        f"batch cannot evaluate a {type(node).__name__}",
        created=node.place,
        remedy="register a function for it with ebbflow.engine.batch.rows_of.register",
    )


@rows_of.register
def _map(node: Map, rows: Weights) -> Weights:
    return _total(node, _stepped(node, rows.items()))


@rows_of.register
def _filter(node: Filter, rows: Weights) -> Weights:
    return _total(node, _stepped(node, rows.items()))


@rows_of.register
def _flat_map(node: FlatMap, rows: Weights) -> Weights:
    return _total(node, _stepped(node, rows.items()))


@rows_of.register
def _fused(node: Fused, rows: Weights) -> Weights:
    for step in node.steps:
        rows = _total(step, _stepped(step, rows.items()))
    return rows


def _stepped(step: Map | Filter | FlatMap | FusedStep, rows: Pairs) -> Iterator[tuple[Any, int]]:
    for row, weight in rows:
        if step.verb == "map":
            yield _call(step, step.fn, row), weight
        elif step.verb == "filter":
            if _call(step, lambda row: bool(step.fn(row)), row):
                yield row, weight
        else:
            for image in map(one_nan, _call(step, lambda row: list(step.fn(row)), row)):
                yield image, weight


@rows_of.register
def _concat(node: Concat, *parts: Weights) -> Weights:
    signed = zip(parts, node.signs, strict=True)
    return _total(
        node, ((row, weight * sign) for part, sign in signed for row, weight in part.items())
    )


@rows_of.register
def _distinct(node: Distinct, rows: Weights) -> Weights:
    return {row: 1 for row, weight in rows.items() if weight > 0}


@rows_of.register
def _join(node: Join, left: Weights, right: Weights) -> Weights:
    lefts, rights = _groups(node, node.left_key, left), _groups(node, node.right_key, right)
    return _total(
        node,
        (
            (_call(node, node.merge, l_row, r_row), l_weight * r_weight)
            for key, l_rows in lefts.items()
            for l_row, l_weight in l_rows.items()
            for r_row, r_weight in rights.get(key, {}).items()
        ),
    )


@rows_of.register
def _semi(node: Semi, left: Weights, right: Weights) -> Weights:
    lefts, rights = _groups(node, node.left_key, left), _groups(node, node.right_key, right)
    return {
        row: weight
        for key, rows in lefts.items()
        for row, weight in rows.items()
        if (sum(rights.get(key, {}).values()) > 0) != node.anti
    }


@rows_of.register
def _reduce(node: Reduce, rows: Weights) -> Weights:
    out = []
    for key, group in _bags(node, rows):
        value = _call_on_group(node, node.reducer, key, group)
        values = tuple(value) if node.spread else (value,)
        out.append((_record(node, (*_key_parts(key, node.width), *values)), 1))
    return _total(node, out)


@rows_of.register
def _top_k(node: TopK, rows: Weights) -> Weights:
    out = []
    for key, group in _bags(node, rows):

        def place(row: Any) -> Any:
            return total_order_key(_call(node, node.by, row)), total_order_key(row)

        last = node.offset + node.n
        every = [row for row, weight in group.items() for _ in range(min(weight, last))]
        ranked = _sorted(node, every, place, key)
        best = ranked if node.smallest else ranked[::-1]
        out += [(row, 1) for row in best[node.offset : last]]
    return _total(node, out)


@rows_of.register
def _sessions(node: Sessions, rows: Weights) -> Weights:
    out = []
    for key, group in _bags(node, rows):
        sessions: list[list[tuple[Any, Any]]] = []
        last: Any = None
        timed = [(_call(node, node.time, row), row) for row in group]
        for time, row in _sorted(node, timed, lambda pair: pair[0], key):
            if sessions and _call(node, lambda new, last: new - last <= node.gap, time, last):
                sessions[-1].append((time, row))
            else:
                sessions.append([(time, row)])
            last = time
        for session in sessions:
            start, end = session[0][0], _call(node, lambda at: at + node.gap, session[-1][0])
            out += [(_call(node, node.merge, row, start, end), group[row]) for _, row in session]
    return _total(node, out)


@rows_of.register
def _through(node: Through, rows: Weights) -> Weights:
    out = []
    for key, group in _bags(node, rows):
        value = _call_on_group(node, node.operator.f, key, group)
        front = _key_parts(key, node.width)
        if node.operator.output not in (BAG, ZSET):
            out.append((_record(node, (*front, value)), 1))
        elif front:
            out += [(_record(node, (*front, row)), weight) for row, weight in value.items()]
        else:
            out += value.items()
    return _total(node, out)


@rows_of.register
def _loop(node: Iterate, *parents: Weights) -> Weights:
    names, cut = node.variables, len(node.starts)
    outside = dict(zip(node.outside, map(ZSet, parents[cut:]), strict=True))
    entering = [
        _entering(node, rows, priority)
        for rows, priority in zip(parents[:cut], node.priorities, strict=True)
    ]
    come = {at for each in entering for at in each}
    now = {name: ZSet(rows.get(0, {})) for name, rows in zip(names, entering, strict=True)}
    number = 0
    while number != node.rounds:
        number += 1
        new = evaluate(node.body, {**now, **outside})
        new = {name: new[name] + ZSet(rows.get(number, {}))
               for name, rows in zip(names, entering, strict=True)}  # fmt: skip
        if node.rounds is None and new != now and number >= node.limit:
            changing = {name: dict((new[name] - now[name]).items()) for name in names}
            raise no_fixed_point(node, number, changing)
        if node.rounds is None and new == now and number not in come:
            later = [at for at in come if at > number]
            if not later:
                break
            number = min(later) - 1  # until then every round is like this one
        now = new
    return dict(_labelled(names, now).items())


def _entering(node: Iterate, rows: Weights, priority: Any) -> dict[int, Weights]:
    """The rows that enter a loop, by round."""
    found: dict[int, Weights] = {}
    for row, weight in rows.items():
        at = 0 if priority is None else _call(node, priority, row)
        if type(at) is not int or at < 0:
            raise FunctionFailed(
                f"iterate: a priority is a round, 0 or more, and not {at!r}",
                row=row,
                created=node.place,
                remedy="a whole number",
            )
        found.setdefault(at, {})[row] = weight
    return found


def _labelled(names: tuple[str, ...], values: Mapping[str, ZSet[Any]]) -> ZSet[Any]:
    """The rows of one variable, or those of several, each with the name of its own."""
    if len(names) == 1:
        return values[names[0]]
    return ZSet({(name, row): n for name in names for row, n in values[name].items()})


# ---- parts of the above ----


def _groups(node: Node, key: Callable[[Any], Any] | None, rows: Weights) -> dict[Any, Weights]:
    """The rows of each key; without a key, all under None."""
    groups: dict[Any, Weights] = {}
    for row, weight in rows.items():
        at = None if key is None else _call(node, key, row)
        groups.setdefault(_hashable(node, at), {})[row] = weight
    return groups


def _bags(node: Keyed, rows: Weights) -> Iterable[tuple[Any, Weights]]:
    """The rows of each key, after a check that none of them is negative."""
    _never_negative(node, rows)
    return _groups(node, node.key, rows).items()


def _never_negative(node: Node, rows: Weights) -> None:
    for row, weight in rows.items():
        if weight < 0:
            raise ChangeError(
                f"{node.verb}: a row is negative: it was taken away more often than it was there",
                row=row,
                weight=weight,
                created=node.place,
                remedy="distinct() after the -, or except_ instead of it",
            )


def _key_parts(key: Any, width: int) -> tuple[Any, ...]:
    if width == 0:
        return ()
    return (key,) if width == 1 else tuple(key)


def _record(node: Node, parts: tuple[Any, ...]) -> Any:
    """A row of the node's type; a plain tuple where the type has no such fields."""
    fields = fields_of(node.type)
    if fields is None or len(fields) != len(parts):
        return parts
    return tuple.__new__(node.type, parts)


def _total(node: Node | FusedStep, pairs: Pairs) -> Weights:
    """Equal rows added up, those of weight zero left out."""
    total: Weights = {}
    for row, weight in pairs:
        total[row] = total.get(_hashable(node, row), 0) + weight
    return {row: weight for row, weight in total.items() if weight}


def _sorted(node: Node, rows: list[Any], by: Callable[[Any], Any], key: Any) -> list[Any]:
    try:
        return sorted(rows, key=by)
    except TypeError as error:
        raise FunctionFailed(
            f"{node.verb}: the rows of one key cannot be put in order: {error_text(error)}",
            key=key,
            created=node.place,
            remedy="order by values that can be compared with each other",
        ) from cause_of(error)


def _call(node: Node | FusedStep, f: Callable[..., Any], *rows: Any) -> Any:
    """`f(*rows)`; when it raises, an error that says where and on what."""
    try:
        return one_nan(f(*rows))
    except Exception as error:
        facts = {"row": rows[0]} if len(rows) == 1 else {"rows": rows}
        raise _failed(node, error, facts) from cause_of(error)


def _call_on_group(node: Keyed, f: Callable[..., Any], key: Any, group: Weights) -> Any:
    bag = ZSet(group)
    try:
        return one_nan(f(bag))
    except Exception as error:
        facts = {"rows": bag} if node.key is None else {"key": key, "rows": bag}
        raise _failed(node, error, facts) from cause_of(error)


def _failed(
    node: Node | FusedStep, error: Exception, facts: Mapping[str, object]
) -> FunctionFailed:
    return FunctionFailed(
        f"{node.verb}: a function raised {error_text(error).partition(chr(10))[0]}",
        **facts,  # type: ignore[arg-type]
        created=node.place,
    )


def _hashable(node: Node | FusedStep, value: Any) -> Any:
    try:
        hash(value)
    except TypeError as error:
        raise FunctionFailed(
            f"{node.verb}: rows and keys must be hashable, and a {type(value).__name__} is not",
            value=value,
            created=node.place,
            remedy="tuples for lists, frozensets for sets, a NamedTuple for a dict",
        ) from cause_of(error)
    return value


from ebbflow.engine.batch import aligned as aligned  # noqa: E402
from ebbflow.engine.batch import compare as compare  # noqa: E402
from ebbflow.engine.batch import order as order  # noqa: E402  (it registers what its nodes mean)
from ebbflow.engine.batch import time as _time  # noqa: E402, F401
