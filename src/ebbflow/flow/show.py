"""Explain: a plan as text, as a graph for Mermaid or DOT, as JSON, and as the Python that runs.

In all of them a node has the same number, in the order in which it is met from the outputs down. In
the text a node stands above what it reads:

    by_city
    └─ 1 reduce by city: total = sum('price')    City(city, total)       shop.py:9
         keeps    an accumulator for each city
         follows  invertible · distributive · O(1) a row
       2 filter price > 10                       Order(id, city, price)  shop.py:8
       3 input orders                            Order(id, city, price)  shop.py:7
         keeps    its rows, to check what is taken away

Here 1 reads 2, and 2 reads 3. Where a node reads several, they branch off below it. A node that is
read more than once is drawn once, and `↑ 3` stands for it everywhere else.

The JSON is `{"outputs": {name: id}, "nodes": [...], "indices": [...]}`. A node has `id`, `verb`,
`details`, `steps` (of a fused one), `parents` (ids), `type`, `place`, `state` (what is kept for
it), `verdict`, `aggregate` and `cost` (of a reducer, else null), `shared` (whether it is read more
than once) and `facts` (what an engine adds, else null). An index has `of` (the id of the node
whose rows it holds), `key` and `readers` (ids). All of them are always there.

The Python is the code of an engine, each function below the node that it runs for.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ebbflow.errors import CompositionError, place
from ebbflow.flow.describe import details, fn_text, kept, steps, verb, verdict
from ebbflow.flow.plan import Node, Plan, Reduce
from ebbflow.flow.rewrite.graph import consumers
from ebbflow.flow.rewrite.share import indices
from ebbflow.flow.types import name_of
from ebbflow.record import fields_of, type_text

Judge = Callable[[Any], str]
Facts = Mapping[Node, object]


class Code(NamedTuple):
    """A function that runs for a node: what it does there, where that is not the node's verb, and
    its Python source."""

    node: Node
    label: str
    source: str


WIDTH = 100


def explain(
    plan: Plan, format: str = "text", *, facts: Facts | None = None, judge: Judge = verdict,
    code: Iterable[Code] = (),
) -> str:  # fmt: skip
    """What a plan does and keeps, in the format text, mermaid, dot, json or python.

    `facts` are words that an engine adds to some nodes, and `code` is what it runs for them.
    `judge` gives the verdict on a reducer; the default is what the reducer declares.

    >>> from ebbflow.flow.plan import Distinct, Source
    >>> print(explain(Plan({"words": Distinct(parent=Source(name="said", type=str))})))
    words
    └─ 1 distinct    Any
         keeps    a weight for each row
       2 input said  str
         keeps    its rows, to check what is taken away
    """
    if format not in (*_FORMATS, "python"):
        raise CompositionError(
            f"a plan cannot be explained as {format!r}",
            created=place(),
            remedy=" or ".join(map(repr, (*_FORMATS, "python"))),
        )
    described = _described(plan, facts or {}, judge)
    return _python(described, code) if format == "python" else _FORMATS[format](described)


# ---- what is shown, whatever the format ----


@dataclass(frozen=True)
class PlanItem:
    """One node, as it is shown."""

    id: int
    node: Node
    verb: str
    details: str
    steps: list[str]
    parents: list[int]
    type: str
    place: str
    state: list[str]
    verdict: str | None
    aggregate: str | None
    cost: str | None
    readers: list[int]
    shared: bool
    facts: str | None

    @property
    def label(self) -> str:
        return f"{self.verb} {self.details}".rstrip()


@dataclass(frozen=True)
class Arranged:
    """An index, as it is shown: whose rows, by which key, for whom."""

    of: int
    key: str
    readers: list[int]


@dataclass(frozen=True)
class Described:
    """A plan, as it is shown."""

    outputs: dict[str, int]
    items: list[PlanItem]
    indices: list[Arranged]

    def __getitem__(self, id: int) -> PlanItem:
        return self.items[id - 1]


def _described(plan: Plan, facts: Facts, judge: Judge) -> Described:
    nodes = _from_outputs_down(plan)
    ids = {id(node): i for i, node in enumerate(nodes, 1)}
    count = consumers(plan)
    readers: dict[int, list[int]] = {}
    for node in nodes:
        for parent in node.parents:
            readers.setdefault(id(parent), []).append(ids[id(node)])
    arranged = [
        Arranged(ids[id(of)], fn_text(key), sorted(ids[id(node)] for node in by))
        for (of, key), by in indices(plan).items()
    ]
    items = []
    for node in nodes:
        reducer = node.reducer if isinstance(node, Reduce) else None
        item = PlanItem(
            id=ids[id(node)],
            node=node,
            verb=verb(node),
            details=details(node),
            steps=steps(node),
            parents=[ids[id(parent)] for parent in node.parents],
            type=_type(node.type),
            place=str(node.place),
            state=kept(node),
            verdict=None if reducer is None else str(judge(reducer)),
            aggregate=getattr(reducer, "aggregate", None) or None,
            cost=getattr(reducer, "cost", None) or None,
            readers=sorted(set(readers.get(id(node), []))),
            shared=count[id(node)] > 1,
            facts=str(facts[node]) if node in facts else None,
        )
        items.append(item)
    outputs = {name: ids[id(node)] for name, node in plan.outputs.items()}
    return Described(outputs, items, sorted(arranged, key=lambda index: (index.of, index.key)))


def _type(hint: Any) -> str:
    return name_of(hint) if fields_of(hint) is None else type_text(hint)


def _from_outputs_down(plan: Plan) -> list[Node]:
    seen: dict[int, Node] = {}
    stack = list(plan.outputs.values())[::-1]
    while stack:
        node = stack.pop()
        if id(node) not in seen:
            seen[id(node)] = node
            stack.extend(reversed(node.parents))
    return list(seen.values())


# ---- text ----


@dataclass(frozen=True)
class TextLine:
    """A line of the text; those of a node have its type and its place in columns of their own.

    It begins with `start`; where it does not fit, it goes on below, after `below`.
    """

    start: str
    text: str = ""
    below: str = ""
    type: str = ""
    place: str = ""


def _text(plan: Described) -> str:
    drawn: set[int] = set()
    lines: list[TextLine] = []
    for name, top in plan.outputs.items():
        lines.append(TextLine(name))
        stack = [(top, "└─ ", "   ")]
        while stack:
            id, mark, indent = stack.pop()
            item = plan[id]
            number = f"{id:>{len(str(len(plan.items)))}} "
            if id in drawn:
                lines.append(TextLine(f"{mark}↑ {id} ", item.label, f"{indent}    "))
                continue
            drawn.add(id)
            branches = len(item.parents) > 1
            below = indent + ("│" if branches else " ").ljust(len(number))
            start, more = f"{mark}{number}", f"{below}  "
            lines.append(TextLine(start, item.label, more, item.type, item.place))
            for name, words in _notes(plan, item):
                lines.append(TextLine(f"{below}{name:<8} ", words, below + " " * 9))
            marks = [("├─ ", "│  ")] * (len(item.parents) - 1) + [("└─ ", "   ")]
            for parent, (own, rest) in zip(item.parents[::-1], marks[::-1], strict=False):
                own, rest = (own, rest) if branches else ("", "")
                stack.append((parent, indent + own, indent + rest))
    return _laid_out(lines)


def _notes(plan: Described, item: PlanItem) -> list[tuple[str, str]]:
    """The lines below a node."""
    found = [("steps" if i == 0 else "", step) for i, step in enumerate(item.steps)]
    if item.state:
        found.append(("keeps", " · ".join(item.state)))
    if item.verdict is not None:
        cost = f"{item.cost} a row" if item.cost else None
        words = [word for word in (item.verdict, item.aggregate, cost) if word]
        found.append(("follows", " · ".join(words)))
    for index in plan.indices:
        if item.id in index.readers and len(index.readers) > 1:
            others = " and ".join(str(id) for id in dict.fromkeys(index.readers) if id != item.id)
            whose = f"the same as for {others}" if others else "the same for both sides"
            found.append(("index", f"rows of {index.of} by {index.key}, {whose}"))
    if item.shared:
        named = [name for name, top in plan.outputs.items() if top == item.id]
        found.append(("shared", f"read by {', '.join([*named, *map(str, item.readers)])}"))
    if item.facts is not None:
        found.append(("now", item.facts))
    return found


def _laid_out(lines: list[TextLine]) -> str:
    """Lines in columns. What is too long goes on below; a type that is too long is cut."""
    nodes = [line for line in lines if line.type]
    place_width = max((len(line.place) for line in nodes), default=0)
    type_width = min(max((len(line.type) for line in nodes), default=0), 34)
    widest = max((len(line.start + line.text) for line in nodes), default=0)
    text_width = min(widest, max(WIDTH - type_width - place_width - 4, 40))
    shown = []
    for line in lines:
        width = (text_width if line.type else WIDTH) - len(line.start)
        first, *more = textwrap.wrap(line.text, max(width, 20), break_long_words=False) or [""]
        row = line.start + first
        if line.type:
            row = f"{row:<{text_width}}  {_cut(line.type, type_width):<{type_width}}  {line.place}"
        shown += [row.rstrip(), *(f"{line.below}{each}" for each in more)]
    return "\n".join(shown)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"


# ---- graphs ----


def _mermaid(plan: Described) -> str:
    """A flowchart from the inputs to the outputs; nodes with state are drawn as drums."""
    lines = ["flowchart LR"]
    for item in plan.items:
        words = "<br/>".join(map(_mermaid_text, _words(item)))
        left, right = ("[(", ")]") if item.state else ("[", "]")
        lines.append(f'    n{item.id}{left}"{words}"{right}')
    for i, name in enumerate(plan.outputs, 1):
        lines.append(f'    out{i}(["{_mermaid_text(name)}"])')
    return "\n".join([*lines, *(f"    {one} --> {other}" for one, other in _edges(plan))])


def _mermaid_text(text: str) -> str:
    for sign, entity in (("&", "&amp;"), ('"', "&quot;"), ("<", "&lt;"), (">", "&gt;")):
        text = text.replace(sign, entity)
    return text


def _dot(plan: Described) -> str:
    """The same for Graphviz."""
    lines = ["digraph plan {", "    rankdir=LR;", '    node [shape=box, fontname="monospace"];']
    for item in plan.items:
        shape = ", shape=cylinder" if item.state else ""
        lines.append(f"    n{item.id} [label={_dot_text(_words(item))}{shape}];")
    for i, name in enumerate(plan.outputs, 1):
        lines.append(f"    out{i} [label={_dot_text([name])}, shape=oval];")
    lines += [f"    {one} -> {other};" for one, other in _edges(plan)]
    return "\n".join([*lines, "}"])


def _edges(plan: Described) -> list[tuple[str, str]]:
    """The names of two nodes, the second of which reads the first, or of a node and an output."""
    inside = [(f"n{parent}", f"n{item.id}") for item in plan.items for parent in item.parents]
    return inside + [(f"n{top}", f"out{i}") for i, top in enumerate(plan.outputs.values(), 1)]


def _dot_text(lines: list[str]) -> str:
    escaped = [line.replace("\\", "\\\\").replace('"', '\\"') for line in lines]
    return '"' + "\\n".join(escaped) + '"'


def _words(item: PlanItem) -> list[str]:
    words = [f"{item.id} {item.label}", *item.steps]
    if item.verdict is not None:
        words.append(item.verdict)
    return words if item.facts is None else [*words, item.facts]


# ---- JSON ----


def _json(plan: Described) -> str:
    hidden = {"node", "readers"}
    nodes = [
        {name: value for name, value in vars(item).items() if name not in hidden}
        for item in plan.items
    ]
    whole = {"outputs": plan.outputs, "nodes": nodes, "indices": [*map(vars, plan.indices)]}
    return json.dumps(whole, indent=2, ensure_ascii=False)


# ---- Python ----


def _python(plan: Described, code: Iterable[Code]) -> str:
    """Functions, each below a comment with the number, the words and the place of its node."""
    items = {id(item.node): item for item in plan.items}
    shown = []
    for each in code:
        item = items[id(each.node)]
        words = [f"{item.id} {item.label}", each.label, item.place, item.facts or ""]
        start = " · ".join(filter(None, words))
        comment = textwrap.wrap(start, WIDTH, initial_indent="# ", subsequent_indent="#   ")
        shown.append("\n".join([*comment, each.source]))
    return "\n\n".join(shown) or "# no code: the inputs are the outputs"


_FORMATS: dict[str, Callable[[Described], str]] = {
    "text": _text,
    "mermaid": _mermaid,
    "dot": _dot,
    "json": _json,
}
