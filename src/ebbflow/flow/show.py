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
read more than once is drawn once, and `↑ 3` stands for it everywhere else. The body of a loop is a
block below the loop, behind a line of its own, with the variables as its outputs:

    output
    └─ 1 iterate to the fixed point, limit 10,000  Node(node)            graph.py:9
       ┃ reached
       ┃ └─ 2 distinct                             Node(node)            graph.py:9
       ┃    3 concat + +                           Node(node)            graph.py:9
       ┃    ├─ 4 variable reached ← 8              Node(node)
       ┃    └─ 5 map Node(node=target)             Node(node)            graph.py:10
       ┃       6 join node = source                NodeEdge(node, targ…  graph.py:10
       ┃       ├─ ↑ 4 variable reached
       ┃       └─ 7 outside edges ← 9              Edge(source, target)
       ├─ 8 input roots                            Node(node)            graph.py:7
       └─ 9 input edges                            Edge(source, target)  graph.py:8

The JSON is `{"outputs": {name: id}, "nodes": [...], "indices": [...]}`. A node has `id`, `verb`,
`details`, `steps` (of a fused one), `parents` (ids), `type`, `place`, `state` (what is kept for
it), `verdict`, `aggregate` and `cost` (of a reducer, else null; `verdict` also of a user's operator
that computes everything again), `shared` (whether it is read more than once), `facts` (what an
engine adds, else null), `inside` (the id of the loop in whose body it is, else null), `reads` (of
an input of a body the id of what it reads outside, else null) and `loop` (of a loop, else null):
its `variables`, each with the ids of its `start` and its `result` and its `priority`; the ids of
what it reads from `outside`; its `rounds` and its `limit`; and in `words` what an engine says about
running it. An index has `of` (the id of the node whose rows it holds), `key` and `readers` (ids).
All of them are always there.

The Python is the code of an engine, each function below the node that it runs for.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ebbflow.errors import CompositionError, place
from ebbflow.flow.describe import verdict
from ebbflow.flow.items import Described, Facts, Judge, LoopRun, PlanItem, described
from ebbflow.flow.plan import Node, Plan
from ebbflow.notebook import Explained


class Code(NamedTuple):
    """A function that runs for a node: what it does there, where that is not the node's verb, and
    its Python source."""

    node: Node
    label: str
    source: str


WIDTH = 100


def explain(
    plan: Plan, format: str = "text", *, facts: Facts | None = None, judge: Judge = verdict,
    code: Iterable[Code] = (), loops: Mapping[Node, LoopRun] | None = None,
) -> str:  # fmt: skip
    """What a plan does and keeps, in the format text, mermaid, dot, json or python.

    `facts` are words that an engine adds to some nodes, `code` is what it runs for them, and
    `loops` say how it runs loops. `judge` gives the verdict on a reducer; the default is what the
    reducer declares.

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
    found = described(plan, facts or {}, judge, loops or {})
    return Explained(_python(found, code) if format == "python" else _FORMATS[format](found))


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
        _draw(plan, top, "", drawn, lines)
    return _laid_out(lines)


def _draw(plan: Described, top: int, margin: str, drawn: set[int], lines: list[TextLine]) -> None:
    """The lines of a node and of all below it, behind a margin."""
    stack = [(top, f"{margin}└─ ", f"{margin}   ")]
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
        for name, variable in item.loop.variables.items() if item.loop else ():
            entering = f" enters in round {variable['priority']}" if variable["priority"] else ""
            lines.append(TextLine(f"{below}┃ {name}{entering}"))
            _draw(plan, variable["result"], f"{below}┃ ", drawn, lines)
        marks = [("├─ ", "│  ")] * (len(item.parents) - 1) + [("└─ ", "   ")]
        for parent, (own, rest) in zip(item.parents[::-1], marks[::-1], strict=False):
            own, rest = (own, rest) if branches else ("", "")
            stack.append((parent, indent + own, indent + rest))


def _notes(plan: Described, item: PlanItem) -> list[tuple[str, str]]:
    """The lines below a node."""
    found = [("steps" if i == 0 else "", step) for i, step in enumerate(item.steps)]
    way, *ran = item.loop.words.items() if item.loop and item.loop.words else [("", "")]
    found += [way] if way[1] else []
    if item.state:
        found.append(("keeps", " · ".join(item.state)))
    found += ran
    if item.verdict is not None:
        cost = f"{item.cost} a row" if item.cost else None
        words = [word for word in (item.verdict, item.aggregate, cost) if word]
        found.append(("follows", " · ".join(words)))
    for index in plan.indices:
        if item.id in index.readers and len(index.readers) > 1:
            others = " and ".join(str(id) for id in dict.fromkeys(index.readers) if id != item.id)
            whose = f"the same as for {others}" if others else "the same for both sides"
            found.append(("index", f"rows of {index.of} by {index.key}, {whose}"))
    if item.shared and item.reads is None:
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
    for item, depth in _nested(plan):
        pad = "    " * depth
        if item is None:
            lines.append(f"{pad}end")
            continue
        words = "<br/>".join(map(_mermaid_text, _words(item)))
        left, right = ("[(", ")]") if item.state else ("[", "]")
        lines.append(f'{pad}n{item.id}{left}"{words}"{right}')
        if item.loop is not None:
            lines.append(f'{pad}subgraph loop{item.id}["rounds of {item.id}"]')
    for i, name in enumerate(plan.outputs, 1):
        lines.append(f'    out{i}(["{_mermaid_text(name)}"])')
    arrows = {False: "-->", True: "-. next round .->"}
    return "\n".join(
        [*lines, *(f"    {one} {arrows[back]} {other}" for one, other, back in _edges(plan))]
    )


def _mermaid_text(text: str) -> str:
    for sign, entity in (("&", "&amp;"), ('"', "&quot;"), ("<", "&lt;"), (">", "&gt;")):
        text = text.replace(sign, entity)
    return text


def _dot(plan: Described) -> str:
    """The same for Graphviz."""
    lines = ["digraph plan {", "    rankdir=LR;", '    node [shape=box, fontname="monospace"];']
    for item, depth in _nested(plan):
        pad = "    " * depth
        if item is None:
            lines.append(f"{pad}}}")
            continue
        shape = ", shape=cylinder" if item.state else ""
        lines.append(f"{pad}n{item.id} [label={_dot_text(_words(item))}{shape}];")
        if item.loop is not None:
            label = _dot_text([f"rounds of {item.id}"])
            lines.append(f"{pad}subgraph cluster_{item.id} {{ label={label};")
    for i, name in enumerate(plan.outputs, 1):
        lines.append(f"    out{i} [label={_dot_text([name])}, shape=oval];")
    back = ' [style=dashed, label="next round"]'
    lines += [f"    {one} -> {other}{back * again};" for one, other, again in _edges(plan)]
    return "\n".join([*lines, "}"])


def _nested(plan: Described) -> Iterator[tuple[PlanItem | None, int]]:
    """The nodes of a plan with their depth: one more in the body of a loop, after which None comes.
    The numbers of a body follow that of its loop."""
    around: list[int] = []
    for item in plan.items:
        while around and item.inside != around[-1]:
            around.pop()
            yield None, len(around) + 1
        yield item, len(around) + 1
        if item.loop is not None:
            around.append(item.id)
    while around:
        around.pop()
        yield None, len(around) + 1


def _edges(plan: Described) -> list[tuple[str, str, bool]]:
    """The names of two nodes, the second of which reads the first, or of a node and an output; and
    whether it is read in the next round."""
    found = []
    for item in plan.items:
        if item.loop is not None:
            results = [each["result"] for each in item.loop.variables.values()]
            found += [(result, item.id, False) for result in results]
        elif item.reads is not None:
            found.append((item.reads, item.id, False))
            assert item.inside is not None
            loop = plan[item.inside].loop
            if loop is not None and item.verb == "variable":
                found.append((loop.variables[item.details]["result"], item.id, True))
        else:
            found += [(parent, item.id, False) for parent in item.parents]
    inside = [(f"n{one}", f"n{other}", back) for one, other, back in found]
    outputs = enumerate(plan.outputs.values(), 1)
    return inside + [(f"n{top}", f"out{i}", False) for i, top in outputs]


def _dot_text(lines: list[str]) -> str:
    escaped = [line.replace("\\", "\\\\").replace('"', '\\"') for line in lines]
    return '"' + "\\n".join(escaped) + '"'


def _words(item: PlanItem) -> list[str]:
    words = [f"{item.id} {item.label}", *item.steps]
    words += item.loop.words.values() if item.loop else ()
    if item.verdict is not None:
        words.append(item.verdict)
    return words if item.facts is None else [*words, item.facts]


# ---- JSON ----


def _json(plan: Described) -> str:
    hidden = {"node", "readers"}
    nodes = [
        {name: value for name, value in vars(item).items() if name not in hidden}
        | {"loop": item.loop and vars(item.loop)}
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
