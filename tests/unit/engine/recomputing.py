"""A machine that computes everything again at every step: what any machine must equal."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

from ebbflow.engine.batch import evaluate
from ebbflow.engine.local.view import View
from ebbflow.flow.plan import Concat, Filter, Map, Plan, Source
from ebbflow.fn import Fn
from ebbflow.zset import ZSet


class Order(NamedTuple):
    id: int
    city: str
    price: int


class Person(NamedTuple):
    id: int
    name: str


class NodeStats(NamedTuple):
    label: str
    place: str
    rows_in: int
    rows_out: int
    state_rows: int
    seconds: float
    depth: int = 0


class Recomputing:
    """The machine. `calls` counts what was asked of it; `fail` is raised where it says."""

    def __init__(self, plan: Plan, *, reads: bool = False, wrong: Any = None) -> None:
        self.plan = plan
        self.reads = reads
        self.wrong = wrong
        self.inputs: dict[str, ZSet[Any]] = {}
        self.outputs = evaluate(plan, {})
        self.saved: Any = None
        self.calls: Counter[str] = Counter()
        self.fail: dict[str, BaseException] = {}
        self.listed: frozenset[str] = frozenset()

    def _at(self, moment: str) -> None:
        self.calls[moment] += 1
        if moment in self.fail:
            raise self.fail.pop(moment)

    def begin(self) -> None:
        self.saved = self.inputs, self.outputs
        self._at("begin")

    def run(self, changes: dict[str, dict[Any, int]]) -> dict[str, dict[Any, int]]:
        self.begin()
        self._at("run")
        self.inputs = dict(self.inputs)
        for name, change in changes.items():
            assert change
            assert 0 not in change.values()
            self.inputs[name] = self.inputs.get(name, ZSet()) + ZSet(change)
        new = evaluate(self.plan, self.inputs)
        moved = {name: new[name] - old for name, old in self.outputs.items()}
        self.outputs = new
        self._at("ran")
        if self.wrong is not None:
            moved = {name: self.wrong(delta) for name, delta in moved.items()}
        return {name: dict(delta.items()) for name, delta in moved.items() if delta}

    def commit(self) -> None:
        self._at("commit")
        self.saved = None

    def rollback(self) -> None:
        self._at("rollback")
        if self.saved is not None:
            self.inputs, self.outputs = self.saved
        self.saved = None

    def read(self, name: str) -> dict[Any, int] | None:
        self.calls["read"] += 1
        return dict(self.outputs[name].items()) if self.reads else None

    def stats(self) -> list[NodeStats]:
        return [NodeStats("recompute", "here.py:1", 12, 3, 4567, 0.25)]


ORDERS = Source(name="orders", type=Order)
PEOPLE = Source(name="people", type=Person, key=Fn(lambda person: person.id))
WORDS = Source(name="words")

CHEAP = Filter(parent=ORDERS, fn=Fn(lambda order: order.price < 10))
CITIES = Map(parent=ORDERS, fn=Fn(lambda order: order.city))
LENGTHS = Map(parent=WORDS, fn=Fn(len))
MINUS = Concat(parts=(WORDS, Source(name="stop")), signs=(1, -1))


def view_of(*, check_input: bool = True, reads: bool = False, **outputs: Any) -> View:
    """A view of these nodes on the machine that recomputes."""
    plan = Plan(outputs)
    return View(plan, Recomputing(plan, reads=reads), check_input=check_input)


def words_view() -> View:
    return view_of(lengths=LENGTHS)


def two_outputs() -> View:
    return view_of(words=WORDS, long=Filter(parent=WORDS, fn=Fn(lambda word: len(word) > 3)))


def everything(view: View) -> Any:
    """All that an epoch may change: what must be the same after one that was refused."""
    machine: Any = view._program.machine
    return (
        view.epoch,
        {name: state.snapshot() for name, state in view._program.inputs.items()},
        {name: state.value() for name, state in view._program.outputs.items()},
        {name: rows for name, rows in machine.inputs.items() if rows},
        machine.outputs,
    )
