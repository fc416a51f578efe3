"""Operators on sequences of changes: of the whole input, or of a side of a pair."""

from __future__ import annotations

from typing import Any

from ebbflow.change import Both, ChangeStructure, First, Second, pair, sequence
from ebbflow.operator.operator import Operator

AnyOperator = Operator[Any, Any, Any, Any]


class Lifted(Operator[Any, Any, Any, Any]):
    """An operator that computes what an `inner` one does, from other changes."""

    inner: AnyOperator

    def f(self, x: Any) -> Any:
        return self.inner.f(x)

    def init(self, x: Any) -> Any:
        return self.inner.init(x)

    def invariant(self, x: Any, state: Any) -> bool:
        return self.inner.invariant(x, state)

    @property
    def recomputes(self) -> bool:
        return self.inner.recomputes


class Each(Lifted):
    """An operator on sequences of changes; see `each`."""

    def __init__(self, inner: AnyOperator) -> None:
        self.inner = inner
        self.input: ChangeStructure[Any, Any] = sequence(inner.input)
        self.output: ChangeStructure[Any, Any] = sequence(inner.output)
        self._nested = inner.output.built is not None and inner.output.built[0] is sequence
        if self._nested:
            self.output = inner.output

    def step(self, state: Any, change: Any) -> tuple[Any, Any]:
        if len(change) == 1:
            state, output = self.inner.step(state, change[0])
            return state, output if self._nested else (output,)
        return self._run(self.inner.step, state, change)

    def checked(self, state: Any, change: Any) -> tuple[Any, Any]:
        if not self.input.is_change(change):
            raise self.input.stranger(change)
        return self._run(self.inner.checked, state, change)

    def _run(self, step: Any, state: Any, change: Any) -> tuple[Any, Any]:
        outputs = []
        for each_one in change:
            state, output = step(state, each_one)
            if self._nested:
                outputs += output
            else:
                outputs.append(output)
        return state, tuple(outputs)

    def accepts(self, state: Any, change: Any) -> bool:
        return self.input.is_change(change) and (not change or self.inner.accepts(state, change[0]))

    def __repr__(self) -> str:
        return f"each({self.inner!r})"


class EachSide(Lifted):
    """An operator on pairs, where a side changes by sequences of what the operator takes."""

    def __init__(self, inner: AnyOperator, input: ChangeStructure[Any, Any]) -> None:
        self.inner = inner
        self.input = input
        self.each = Each(inner)
        self.output = self.each.output
        self._nested = self.each._nested
        wanted, given = _sides(inner.input), _sides(input)
        self._many = [one != other for one, other in zip(wanted, given, strict=True)]
        self._on_first: Any = getattr(inner, "on_first", None) or _OneSide(inner, First)
        self._on_second: Any = getattr(inner, "on_second", None) or _OneSide(inner, Second)

    def step(self, state: Any, change: Any) -> tuple[Any, Any]:
        return self.each.step(state, self._one_by_one(change))

    def on_first(self, state: Any, change: Any) -> tuple[Any, Any]:
        changes = change if self._many[0] else (change,)
        if self._nested and len(changes) == 1:
            return self._on_first(state, changes[0])  # type: ignore[no-any-return]
        return self.each._run(self._on_first, state, changes)

    def on_second(self, state: Any, change: Any) -> tuple[Any, Any]:
        changes = change if self._many[1] else (change,)
        if self._nested and len(changes) == 1:
            return self._on_second(state, changes[0])  # type: ignore[no-any-return]
        return self.each._run(self._on_second, state, changes)

    def checked(self, state: Any, change: Any) -> tuple[Any, Any]:
        if not self.input.is_change(change):
            raise self.input.stranger(change)
        return self.each.checked(state, self._one_by_one(change))

    def accepts(self, state: Any, change: Any) -> bool:
        return self.input.is_change(change) and self.each.accepts(state, self._one_by_one(change))

    def _one_by_one(self, change: Any) -> tuple[Any, ...]:
        left, right = self._many
        match change:
            case First(c):
                return tuple(map(First, c)) if left else (change,)
            case Second(d):
                return tuple(map(Second, d)) if right else (change,)
            case Both(c, d):
                return (*map(First, c if left else (c,)), *map(Second, d if right else (d,)))
        raise self.input.stranger(change)

    def __repr__(self) -> str:
        return repr(self.inner)


class _OneSide:
    """The step of an operator on pairs, with the change of one side."""

    def __init__(self, operator: AnyOperator, side: Any) -> None:
        self.operator = operator
        self.side = side

    def __call__(self, state: Any, change: Any) -> tuple[Any, Any]:
        return self.operator.step(state, self.side(change))


def _sides(structure: ChangeStructure[Any, Any]) -> tuple[Any, ...]:
    made = structure.built
    return made[1] if made is not None and made[0] is pair else ()


def sides_fit(given: ChangeStructure[Any, Any], wanted: ChangeStructure[Any, Any]) -> bool:
    sides = list(zip(_sides(given), _sides(wanted), strict=False))
    return bool(sides) and all(one in (other, sequence(other)) for one, other in sides)


def each(operator: AnyOperator) -> AnyOperator:
    """The same operator on sequences of changes, one after the other. (The paper's Map.)

    >>> from ebbflow.change import NUMBER
    >>> from ebbflow.operator import on_input
    >>> square = on_input(lambda n: n * n, lambda n, k: 2 * n * k + k * k,
    ...                   input=NUMBER, output=NUMBER, name="square")
    >>> each(square).open(1).send((1, 1))
    (3, 5)
    """
    return Each(operator)
