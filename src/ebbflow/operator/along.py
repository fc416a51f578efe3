"""Window functions that look back alone, as one transition.

One state for all of them goes from row to row. What is computed of it is known when a program is
made: so the loops that take it through many rows are generated, with the step of each function
written out in them (see `ebbflow.codegen`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, is_dataclass
from functools import cached_property, partial
from itertools import chain
from typing import Any

from ebbflow.codegen import GeneratedLoop
from ebbflow.fn import Fn
from ebbflow.operator.ordered import place_of
from ebbflow.operator.window import Along
from ebbflow.record import taken_apart
from ebbflow.stream.transition import Transition, same_state


@dataclass(frozen=True)
class WithValues:
    """A row with more values: more fields, or a longer tuple where fields are not known.

    >>> WithValues(None)("row", (1, 2))
    ('row', 1, 2)
    """

    type: Any

    def __call__(self, row: Any, values: tuple[Any, ...]) -> Any:
        if self.type is None:
            return (row, *values)
        return tuple.__new__(self.type, (*row, *values))

    def source(self, loop: GeneratedLoop, values: list[str]) -> str:
        """Python text that makes the row."""
        if self.type is None:
            return f"(row, {', '.join(values)})"
        return f"new({loop.bind(self.type)}, row + ({', '.join(values)},))"


class WithFields(WithValues):
    """The same for a row that is no tuple."""

    def __call__(self, row: Any, values: tuple[Any, ...]) -> Any:
        return super().__call__(taken_apart(type(row))(row), values)

    def source(self, loop: GeneratedLoop, values: list[str]) -> str:
        names = self.type._fields[: -len(values)]
        inside = ", ".join([*(f"row.{name}" for name in names), *values])
        return f"new({loop.bind(self.type)}, ({inside},))"


def with_values(row_type: Any, made: Any) -> WithValues:
    """What makes a row of the type `made` of one of `row_type` and more values."""
    return (WithFields if is_dataclass(row_type) and made is not None else WithValues)(made)


PLAIN = WithValues(None)


class AlongRows(Transition):
    """Functions that go from row to row, as one transition. What it says of a row is the row with
    their values, as `merge_row` makes it, or nothing without. The state is a tuple of their
    variables, and all that goes through many rows is a generated loop."""

    def __init__(
        self, functions: tuple[Along, ...], order: Any, merge_row: WithValues | None = PLAIN,
        row_type: Any = Any,
    ) -> None:  # fmt: skip
        self.functions, self.order, self.row_type = functions, order, row_type
        self.merge_row = merge_row
        self.first, self.name = [], "over"

    @cached_property
    def start(self) -> Any:
        return tuple(chain.from_iterable(each.starts() for each in self.functions))

    @property
    def certain(self) -> bool:
        order = self.order
        traced = isinstance(order, Fn) and order.expression is not None
        return traced and all(each.certain(self.row_type) for each in self.functions)

    def step(self, state: Any, row: Any) -> tuple[Any, list[Any]]:
        out: dict[Any, int] = {}
        return self.said((row,), state, out, 1), list(out)

    def after(self, state: Any, row: Any) -> Any:
        return self.through((row,), state)

    @cached_property
    def through(self) -> Any:
        loop = GeneratedLoop("through", "rows, state")
        loop.template(
            """
            $state = state
            for row in rows:
                $next
            return $state
            """,
            state=self._state("state"), next=partial(self._next, loop, "state"),
        )  # fmt: skip
        return loop.function()

    @cached_property
    def said(self) -> Any:
        loop = GeneratedLoop("said", "rows, state, out, sign")
        loop.template(
            """
            $state = state
            get = out.get
            for row in rows:
                $next
                made = $row
                out[made] = get(made, 0) + sign
            return $state
            """,
            state=self._state("state"), next=partial(self._next, loop, "state"),
            row=self._row(loop, self._values(loop, "state")),
        )  # fmt: skip
        return loop.function()

    @cached_property
    def apart(self) -> Any:
        loop = GeneratedLoop("apart", "rows, old, new_state, out")
        olds, news = self._names("old"), self._names("now")
        values = list(zip(self._names("was", 1), self._names("is", 1), strict=True))
        loop.template(
            """
            $olds = old
            $news = new_state
            get = out.get
            for row in rows:
                $next_old
                $next_new
                $say
                if ($identical) or ($equal and $same(($olds), ($news))):
                    both = ($news)
                    return both, both
            return ($olds), ($news)
            """,
            olds=self._state("old"), news=self._state("now"), same=same_state,
            next_old=partial(self._next, loop, "old"), next_new=partial(self._next, loop, "now"),
            say=partial(self._say, loop, values), equal=_equal(zip(olds, news, strict=True)),
            identical=" and ".join(map("{} is {}".format, olds, news)) or "True",
        )  # fmt: skip
        return loop.function()

    def _say(self, loop: GeneratedLoop, values: list[tuple[str, str]]) -> None:
        if self.merge_row is None:
            return
        for names, state in zip(zip(*values, strict=True), ("old", "now"), strict=True):
            for name, value in zip(names, self._values(loop, state), strict=True):
                loop.write(f"{name} = {value}")
        loop.write(f"if not ({_equal(values)}):")
        for which, sign in enumerate("-+"):
            loop.write(f"    made = {self._row(loop, [pair[which] for pair in values])}")
            loop.write(f"    out[made] = get(made, 0) {sign} 1")

    @cached_property
    def shown(self) -> Any:
        """The values of a row, from the state after it and the one behind the last row."""
        loop = GeneratedLoop("shown", "state, last")
        loop.template(
            """
            $state = state
            $last = last
            return ($values)
            """,
            state=self._state("state"), last=self._state("last"),
            values="".join(f"{each}, " for each in self._values(loop, "state", "last")),
        )  # fmt: skip
        return loop.function()

    # ---- its text ----

    def _names(self, what: str, each: int = 0) -> list[str]:
        counts = [each or len(function.starts()) for function in self.functions]
        return [f"{what}{i}_{j}" for i, count in enumerate(counts) for j in range(count)]

    def _state(self, what: str) -> str:
        names = self._names(what)
        return f"{', '.join(names)}," if names else "()"

    def _own(self, what: str, i: int) -> list[str]:
        return [name for name in self._names(what) if name.startswith(f"{what}{i}_")]

    def _next(self, loop: GeneratedLoop, what: str) -> None:
        if not self.functions:
            loop.write("pass")
        if what != "now":  # the new state goes behind the old one
            if any(each.by_place for each in self.functions):
                loop.write(f"place = {loop.bind(place_of(self.order), 'order')}(row)")
            for i, each in enumerate(self.functions):
                part = each.part_source(loop, self.row_type)
                if part:
                    loop.write(f"part{i} = {part}")
        for i, each in enumerate(self.functions):
            part = each.part_source(loop, self.row_type)
            each.write_next(loop, self._own(what, i), part and f"part{i}", self.row_type)

    def _values(self, loop: GeneratedLoop, what: str, last: str = "") -> list[str]:
        return [
            each.show_source(loop, self._own(what, i), self._own(last or what, i))
            for i, each in enumerate(self.functions)
        ]

    def _row(self, loop: GeneratedLoop, values: list[str]) -> str:
        return "row" if self.merge_row is None else self.merge_row.source(loop, values)


def _equal(pairs: Iterable[tuple[str, str]]) -> str:
    """Python text that tells whether variables are equal, two by two; NaN is itself."""
    return " and ".join(f"({a} is {b} or {a} == {b})" for a, b in pairs) or "True"
