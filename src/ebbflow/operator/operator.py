"""Differential operators: functions that turn a change of their input into a change of their
output.

An operator knows the function `f` it keeps up to date. It is given the whole input once (`init`),
keeps a state of its own choosing, and from then on sees only changes: `step` takes a change of the
input and gives the change of the output. What the state has to do with the input is said by
`invariant`. The laws:

    invariant(x, init(x))
    invariant(x, s) and valid(dx, x)  imply, with s', dy = step(s, dx):
        accepts(s, dx)                             the state can take every change that is valid
        invariant(patch(x, dx), s')                and stays in step with the input
        valid(dy, f(x))                            what comes out is a change of the old output
        patch(f(x), dy) == f(patch(x, dx))         and leads to what f would compute from scratch

An operator is a stream processor (`ebbflow.stream.Processor`) whose pieces are changes: it starts
from the empty input, and what it says first is how its output differs from the empty one. The law
of processors follows from those above wherever changes can be put together: a change cut in two
moves the output as the whole does. And a processor is an operator, for a monoid acts on itself:
`operator_of` in `ebbflow.operator.streams`. So `>>`, `*` and `&` mix the two.

`step` may reuse the state object it was given. `ebbflow.laws.check` tests all of it on sequences of
changes and shows the shortest that fails.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from ebbflow.algebra import Monoid
from ebbflow.algebra.value import function_name
from ebbflow.change import ChangeStructure
from ebbflow.errors import ChangeError, Text, place
from ebbflow.state.cells import Journalled
from ebbflow.stream.processor import Processor, Running

X = TypeVar("X")
DX = TypeVar("DX")
Y = TypeVar("Y")
DY = TypeVar("DY")


class Operator(Processor[DX, DY], Generic[X, DX, Y, DY]):
    """A function kept up to date: `f`, `init`, `step`, and the change structures of both ends.

    Write a subclass, or use `stateless`, `on_input` or `of` where less is needed. Compose operators
    with `>>` (one after the other), `*` (side by side on pairs) and `&` (both on the same input);
    stream processors may be among them.
    """

    differential = True

    input: ChangeStructure[X, DX]
    output: ChangeStructure[Y, DY]
    created: Text | None = None

    @abstractmethod
    def f(self, x: X) -> Y:
        """What the operator computes, from scratch."""

    @abstractmethod
    def init(self, x: X) -> Any:
        """The state for an initial input."""

    @abstractmethod
    def step(self, state: Any, change: DX) -> tuple[Any, DY]:
        """The state after a change of the input, and the change of the output."""

    def invariant(self, x: X, state: Any) -> bool:
        """What the state has to do with the input; by default it is the one that `init` makes."""
        return bool(state == self.init(x))

    def accepts(self, state: Any, change: DX) -> bool:
        """Whether the state can take a change. It must take every change valid for the input.

        An operator that does not keep the input cannot tell whether a change is valid for it; by
        default it takes whatever is a change at all.
        """
        return self.input.is_change(change)

    @property
    def recomputes(self) -> bool:
        """Whether a change makes it compute something again from its whole input."""
        return False

    def recalled(self, state: Any) -> Any:
        """The whole output, where the state holds it; else NotImplemented."""
        return NotImplemented

    # ---- everything below is written with these ----

    def checked(self, state: Any, change: DX) -> tuple[Any, DY]:
        """`step`, after asking every part whether it can take what comes to it."""
        if not self.accepts(state, change):
            raise ChangeError(
                f"{self!r} cannot take this change",
                change=change,
                remedy="a change that is valid for the input as it is now",
            )
        return self.step(state, change)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def __call__(self, *given: Any) -> Any:
        """The operator applied to a field of the rows, for `select` and `through`; one on pairs is
        applied to two. Of a whole change, what it does to the output for the empty input, as with
        any processor.

        >>> from ebbflow.operator import text
        >>> text.upper("body")
        upper('body')
        """
        from ebbflow.operator.applied import applied

        whole: Any = given[0] if len(given) == 1 else ""
        a_change = not isinstance(whole, (str, int)) or (
            whole != "" and self.input.is_change(whole)
        )
        return super().__call__(whole) if a_change else applied(self, *given)

    def open(self, *given: X) -> Live[X, DX, Y, DY]:
        """Start from an input, or from the empty one: a run that takes changes and gives
        changes."""
        return Live(self, *given)

    # ---- as a processor ----

    @property
    def source(self) -> Monoid[DX]:  # type: ignore[override]
        """The changes of the input, as the pieces of a stream."""
        return self.input.monoid

    @property
    def target(self) -> Monoid[DY]:  # type: ignore[override]
        """The changes of the output, as the pieces of a stream."""
        return self.output.monoid

    def start(self) -> tuple[Any, DY]:
        """The state for the empty input, and how the output for it differs from the empty one."""
        x = self.input.empty
        return self.init(x), self.output.from_empty(self.f(x))

    def __rshift__(self, after: Processor[Any, Any]) -> Any:
        from ebbflow.operator.compose import seq

        return seq(self, after) if isinstance(after, Processor) else NotImplemented

    def __rrshift__(self, before: Processor[Any, Any]) -> Any:
        from ebbflow.operator.compose import seq

        return seq(before, self) if isinstance(before, Processor) else NotImplemented

    def __mul__(self, other: Processor[Any, Any]) -> Any:
        from ebbflow.operator.compose import beside

        return beside(self, other) if isinstance(other, Processor) else NotImplemented

    def __rmul__(self, other: Processor[Any, Any]) -> Any:
        from ebbflow.operator.compose import beside

        return beside(other, self) if isinstance(other, Processor) else NotImplemented

    def __and__(self, other: Processor[Any, Any]) -> Any:
        from ebbflow.operator.compose import fork

        return fork(self, other) if isinstance(other, Processor) else NotImplemented

    def __rand__(self, other: Processor[Any, Any]) -> Any:
        from ebbflow.operator.compose import fork

        return fork(other, self) if isinstance(other, Processor) else NotImplemented


class Live(Running[DX, DY], Generic[X, DX, Y, DY]):
    """An operator with its state: send it changes.

    >>> from ebbflow.change import NATURAL, TEXT
    >>> delta = lambda edit: len(edit.text) if isinstance(edit, Insert) else -edit.count
    >>> live = stateless(len, delta, input=TEXT, output=NATURAL).open("abc")
    >>> from ebbflow.change import Insert, Delete
    >>> live.send(Insert(1, "xyz")), live.send(Delete(0, 4))
    (3, -4)

    `output` is what a run from the empty input says first; None where it was opened on another.
    """

    __slots__ = ()

    processor: Operator[X, DX, Y, DY]

    def __init__(self, operator: Operator[X, DX, Y, DY], *given: X) -> None:
        self.processor = operator
        self.output: Any = None
        if given:
            self.state = operator.init(*given)
        else:
            self.state, self.output = operator.start()

    @property
    def operator(self) -> Operator[X, DX, Y, DY]:
        """The operator that runs."""
        return self.processor

    def send(self, change: DX) -> DY:
        """Take one change of the input and give the change of the output.

        All or nothing: when a part refuses the change or raises, the state is what it was, wherever
        it is kept in an `Index`, in `Cells`, or in values that are not altered in place.
        """
        self.state, output = all_or_nothing(self.processor.checked, self.state, change)
        return output

    def feed(self, changes: Iterable[DX]) -> Iterator[DY]:
        """Take changes one by one, lazily, and give one output change for each."""
        return map(self.send, changes)


def all_or_nothing(
    step: Callable[[Any, DX], tuple[Any, DY]], state: Any, change: DX
) -> tuple[Any, DY]:
    """`step(state, change)`; when it raises, the containers of the state are what they were."""
    held = journalled(state)
    for container in held:
        container.begin()
    try:
        made = step(state, change)
    except BaseException:
        for container in held:
            container.rollback()
        raise
    for container in held:
        container.commit()
    return made


def journalled(state: Any) -> list[Journalled[Any]]:
    """The containers that a state is made of.

    >>> from ebbflow.state.cells import Cells
    >>> journalled((Cells({"a": 1}), 3))
    [Cells({'a': 1})]
    """
    if isinstance(state, tuple):
        return [container for part in state for container in journalled(part)]
    return [state] if isinstance(state, Journalled) else []


class OfFunction(Operator[X, DX, Y, DY]):
    """An operator that is given the function that it keeps up to date."""

    def __init__(
        self,
        f: Callable[[X], Y],
        input: ChangeStructure[X, DX],
        output: ChangeStructure[Y, DY],
        name: str,
    ) -> None:
        self._f = f
        self.input = input
        self.output = output
        self.name = name
        self.created = place()

    def f(self, x: X) -> Y:
        return self._f(x)

    def __identity__(self) -> Any:
        return {k: v for k, v in super().__identity__().items() if k != "name"}


class ByFunctions(OfFunction[X, DX, Y, DY]):
    """An operator given by its functions `f` and `delta`, which say what changes, and how."""

    made_by: str

    def __init__(
        self,
        f: Callable[[X], Y],
        delta: Callable[..., DY],
        input: ChangeStructure[X, DX],
        output: ChangeStructure[Y, DY],
        name: str,
    ) -> None:
        super().__init__(f, input, output, name)
        self.delta = delta

    def __repr__(self) -> str:
        functions = f"{function_name(self._f)}, {function_name(self.delta)}"
        ends = f"input={self.input!r}, output={self.output!r}"
        return self.name or f"{self.made_by}({functions}, {ends})"


class Stateless(ByFunctions[X, DX, Y, DY]):
    """An operator whose output change depends on nothing but the input change; see `stateless`."""

    made_by = "stateless"

    def init(self, x: X) -> None:
        return None

    def step(self, state: Any, change: DX) -> tuple[Any, DY]:
        return None, self.delta(change)


def stateless(
    f: Callable[[X], Y],
    delta: Callable[[DX], DY],
    *,
    input: ChangeStructure[X, DX],
    output: ChangeStructure[Y, DY],
    name: str = "",
) -> Operator[X, DX, Y, DY]:
    """An operator without state: `f(patch(x, dx)) == patch(f(x), delta(dx))`.

    >>> from ebbflow.change import NUMBER
    >>> stateless(lambda n: 3 * n, lambda dn: 3 * dn, input=NUMBER, output=NUMBER).open(5).send(2)
    6
    """
    return Stateless(f, delta, input, output, name)


class OnInput(ByFunctions[X, DX, Y, DY]):
    """An operator whose state is the input itself; see `on_input`."""

    made_by = "on_input"

    def init(self, x: X) -> X:
        return x

    def step(self, state: Any, change: DX) -> tuple[Any, DY]:
        return self.input.patch(state, change), self.delta(state, change)

    def accepts(self, state: Any, change: DX) -> bool:
        return self.input.valid(change, state)


def on_input(
    f: Callable[[X], Y],
    delta: Callable[[X, DX], DY],
    *,
    input: ChangeStructure[X, DX],
    output: ChangeStructure[Y, DY],
    name: str = "",
) -> Operator[X, DX, Y, DY]:
    """An operator that needs the input so far: `f(patch(x, dx)) == patch(f(x), delta(x, dx))`.

    (The incremental λ-calculus has only these; they pay for a copy of the input.)

    >>> from ebbflow.change import NUMBER
    >>> square = on_input(lambda n: n * n, lambda n, k: 2 * n * k + k * k,
    ...                   input=NUMBER, output=NUMBER)
    >>> square.open(10).send(1)
    21
    """
    return OnInput(f, delta, input, output, name)
