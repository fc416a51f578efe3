"""Programs: several collections together, by name.

All outputs of one program move in the same epochs, and what they have in common is computed once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, overload

from ebbflow.flow import joins, loops
from ebbflow.flow.collection import Collection
from ebbflow.flow.grouped import NEXT, Grouped
from ebbflow.flow.parts import Part, refuse, row_type
from ebbflow.flow.plan import Node, Plan
from ebbflow.flow.rewrite.tighten import leaving
from ebbflow.flow.running import explain, named_options, node_text, plan_html, planned, run
from ebbflow.keywords import checked
from ebbflow.names import PROGRAM
from ebbflow.public import PublicByName
from ebbflow.typevars import T, U
from ebbflow.zset import ZSet

if TYPE_CHECKING:
    from ebbflow.engine.local import View
    from ebbflow.engine.spark.engine import Engine
    from ebbflow.engine.spark.output.frames import Frames
    from ebbflow.engine.spark.view import SparkView
    from ebbflow.state.spine import Place


@dataclass(frozen=True, repr=False)
class Program(PublicByName):
    """Named outputs, ready to run; see `program`."""

    _spoken, _instead = "a program", PROGRAM
    plan: Plan

    @overload
    def run(
        self, engine: None = None, *, path: Place | None = None, check_input: bool = True,
        narrow: bool = False, columns: bool | None = None, freeze: bool = True,
        readable: bool = False, memory: int | str | None = None, keep_epochs: int = 1,
        keep_for: timedelta = timedelta(0), flush_every: int = 1, strict: bool = False,
        permissions: int | None = None, unpickle: bool = True, keep_batches: int = 10_000,
    ) -> View[Any, dict[str, ZSet[Any]]]: ...  # fmt: skip
    @overload
    def run(self, engine: Engine, *, check_input: bool = True) -> SparkView[Frames]: ...
    @overload
    def run(self, engine: Any, **options: Any) -> Any: ...
    @named_options
    def run(self, engine: Any = None, **options: Any) -> Any:
        """Keep the outputs up to date and return a view of them: in this process, or on an
        `engine`, such as `run(ef.spark(path="state/"))`. The options are those of this process. An
        engine has its own, and `run` takes `check_input` beside it. `docs/options.md` has both in
        tables.

        >>> import ebbflow as ef
        >>> words = ef.Input("words", str)
        >>> view = program(loud=words.map(str.upper), n=words.agg(n=ef.count())).run()
        >>> view.step(words=["to", "be"])
        {'loud': ZSet({'TO': 1, 'BE': 1}), 'n': ZSet({Group(n=2): 1})}
        """
        return run(self.plan, engine, **options)

    def explain(self, format: str = "text") -> str:
        """The plan, with what every node keeps as state: "text", "mermaid", "dot" or "json"; or
        the loops that would run in this process: "python"."""
        return explain(self.plan, format)

    def _repr_html_(self) -> str:
        return plan_html(self)

    def __repr__(self) -> str:
        outputs = self.plan.outputs.items()
        return f"<program of {', '.join(f'{name}: {node_text(node)}' for name, node in outputs)}>"


@checked
def program(**outputs: Collection[Any]) -> Program:
    """Several collections as one program, each output under its name.

    >>> import ebbflow as ef
    >>> words = ef.Input("words", str)
    >>> program(sizes=words.map(len, type=int), last=words.reduce(ef.max()))
    <program of sizes: int: words → map, last: Group(value): words → reduce>
    """
    if not outputs:
        refuse("program(): no output is given", "program(name=collection, ...)")
    for name, each in outputs.items():
        _checked_output(f"program({name}=...)", "an output is", each)
    return Program(planned({name: each.node for name, each in outputs.items()}))


@overload
def empty(type: type[T]) -> Collection[T]: ...
@overload
def empty(type: object = ...) -> Collection[Any]: ...
@checked
def empty(type: Any = Any) -> Collection[Any]:
    """A collection of this type that has no rows, ever.

    >>> import ebbflow as ef
    >>> (ef.Input("words", str) + ef.empty(str)).type
    <class 'str'>
    """
    return Collection(joins.nothing(row_type("empty({})", type)))


@checked
def iterate(
    start: Collection[T], body: Callable[[Collection[T]], Collection[U]], *,
    rounds: int | None = None, limit: int = loops.LIMIT, priority: Part[T] | None = None,
) -> Collection[T | U]:  # fmt: skip
    """What `body` makes of `start`, of that, and so on: `start.iterate(body, ...)`.

    >>> import ebbflow as ef
    >>> view = ef.iterate(ef.Input("n", int), lambda n: n.map(lambda n: n // 2), rounds=2).run()
    >>> view.step(n=[12])
    ZSet({3: 1})
    """
    _checked_output("iterate(...)", "it starts as", start)
    return start.iterate(body, rounds=rounds, limit=limit, priority=priority)


@checked
def fixpoint(
    body: Callable[..., Mapping[str, Collection[Any]]], /, *, rounds: int | None = None,
    limit: int = loops.LIMIT, priority: Mapping[str, Part] | None = None, **starts: Collection[Any],
) -> dict[str, Collection[Any]]:  # fmt: skip
    """Collections that are computed from each other, round after round, by name.

    `body` is called with a collection for each variable, in the order of the `starts`, and gives a
    dict with what each of them is in the next round; see `Collection.iterate`, which this is for
    several.

    >>> import ebbflow as ef
    >>> steps = ef.Input("steps", tuple[int, int])
    >>> def moved(side):
    ...     return side.join(steps, left_on=lambda n: n, right_on=lambda s: s[0],
    ...                      select=lambda n, s: s[1])
    >>> found = ef.fixpoint(
    ...     lambda even, odd: {"even": even.union(moved(odd)), "odd": odd.union(moved(even))},
    ...     even=ef.Input("starts", int), odd=ef.empty(int))
    >>> view = found["odd"].run()
    >>> view.step(starts=[0], steps=[(0, 1), (1, 2), (2, 3)])
    ZSet({1: 1, 3: 1})
    """
    call = f"fixpoint({', '.join(f'{name}=...' for name in starts)})"
    if not starts:
        refuse("fixpoint(): no variable is given", "fixpoint(lambda a: {...}, a=collection)")
    for name, each in starts.items():
        _checked_output(f"fixpoint({name}=...)", "a variable starts as", each)

    loops.checked_body(call, body, starts)

    def several(*nodes: Node) -> dict[str, Node]:
        found = body(*map(Collection, nodes))
        if not isinstance(found, Mapping) or set(found) != set(starts):
            refuse(
                f"{call}: the body gives a dict with a collection for each variable",
                "lambda "
                + ", ".join(starts)
                + ": {"
                + ", ".join(f"{name!r}: ..." for name in starts)
                + "}",
                given=found,
            )
        for name, each in found.items():
            _checked_output(f"{call}: {name!r} of the body", "it gives", each)
        return {name: each.node for name, each in found.items()}

    nodes = {name: each.node for name, each in starts.items()}
    priorities = {} if priority is None else priority
    made = loops.looped(call, nodes, several, rounds, limit, priorities)
    return {name: Collection(node) for name, node in leaving(made).items()}


def _checked_output(call: str, what: str, given: Any) -> None:
    if isinstance(given, Grouped):
        refuse(f"{call}: group_by(...) alone is not a collection yet", NEXT)
    if not isinstance(given, Collection):
        refuse(f"{call}: {what} a collection", "an Input or what is made of one", given=given)
