"""An engine beside DuckDB: random changes of a random program, and after each the same rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from random import Random
from typing import Any

from tests.oracle.duckdb_verbs import Writer, written
from tests.oracle.duckdb_witness import INPUTS, Table, Weights, Witness, alike, drawn

import ebbflow as ef
from ebbflow.zset import ZSet

OUTPUTS = 3
Done = tuple[str, str, Any]
"""What is done in an epoch: to which input, which verb, and with what."""


def asked(verb: str, given: Any) -> Any:
    """What is done to an input, as `step` takes it."""
    return {"apply": lambda rows: rows, "upsert": ef.upsert, "delete": ef.delete}[verb](given)


class History:
    """The inputs of a program so far, and random things done to them."""

    def __init__(self, writer: Writer, used: Iterable[str], dice: Random) -> None:
        self.inputs, self.used, self.dice = writer.inputs, sorted(used), dice
        self.there: dict[str, Counter[Any]] = {name: Counter() for name in writer.inputs}

    def epoch(self, by_key: bool = True) -> list[Done]:
        """Rows come, come again, go, or are replaced, in some of the inputs at once; or, unless not
        `by_key`, rows of one input by their keys."""
        names = self.dice.sample(self.used, self.dice.randint(1, len(self.used)))
        keyed = [name for name in names if self.inputs[name][1]]
        if by_key and keyed and self.dice.random() < 0.5:
            return [self._by_key(keyed[0])]
        return [(name, "apply", self._changed(name)) for name in names]

    def _row(self, name: str) -> Any:
        kind, _ = self.inputs[name]
        return kind(*(drawn(each, self.dice) for each in INPUTS[kind].values()))

    def _changed(self, name: str) -> ZSet[Any]:
        there, dice = self.there[name], self.dice
        keyed = self.inputs[name][1]
        moved: Counter[Any] = Counter()
        for _ in range(dice.randint(1, 5)):
            now = [row for row in there if there[row] > 0]
            if now and dice.random() < 0.4:
                row = dice.choice(now)
                weight = -dice.randint(1, there[row])
            else:
                row = dice.choice(now) if now and dice.random() < 0.2 else self._row(name)
                weight = 1 if keyed else dice.choice([1, 1, 1, 2, 3])
            if keyed and weight > 0 and any(row.k == each.k for each in now):
                continue
            moved[row] += weight
            there[row] += weight
        self.there[name] = Counter({row: n for row, n in there.items() if n})
        return ZSet(moved)

    def _by_key(self, name: str) -> Done:
        there, dice = self.there[name], self.dice
        if there and dice.random() < 0.4:
            row = dice.choice([*there])
            del there[row]
            return name, "delete", [row.k]
        rows = {row.k: row for row in (self._row(name) for _ in range(dice.randint(1, 3)))}
        for old in [old for old in there if old.k in rows]:
            del there[old]
        there.update(rows.values())
        return name, "upsert", list(rows.values())


class Beside:
    """A random program, ready to be run, with the witness of what it means."""

    def __init__(self, seed: Any, size: int = 6, **how: Any) -> None:
        self.seed, self.dice = seed, Random(seed)
        self.writer = written(self.dice, size, **how)
        pool = self.writer.pool
        self.outputs: list[Table] = [*pool[-OUTPUTS + 1 :][:-1], pool[-1]]
        self.witness = Witness(self.writer)
        self.names = [f"o{i}" for i in range(len(self.outputs))]
        self.program = ef.program(
            **{name: table.rows for name, table in zip(self.names, self.outputs, strict=True)}
        )
        self.history = History(self.writer, self.program.plan.sources, self.dice)
        self.seen: list[Any] = []

    def compare(self, value: Any) -> None:
        """The rows of the outputs, by name, against DuckDB's: of all now and then, else of one."""
        found = value if isinstance(value, dict) else {self.names[0]: value}
        self.witness.given(self.history.there)
        some = slice(None) if self.dice.random() < 0.25 else slice(-1, None)
        for name, table in list(zip(self.names, self.outputs, strict=True))[some]:
            given, rows = Weights(), self.witness.rows(table)
            for row, weight in found[name].items():
                given[alike((row,) if table.whole else tuple(row))] += weight
            assert given == rows, self.text(table, given, rows)

    def text(self, table: Table, given: Weights, rows: Weights) -> str:
        """Everything needed to see it again."""
        every = [row for row in {**given, **rows} if given[row] != rows[row]]
        return "\n".join([
            f"seed {self.seed!r}: DuckDB and the engine differ in {table.name}",
            *(f"    {row!r}: DuckDB {rows[row]}, engine {given[row]}" for row in every),
            *(f"epoch {i}: {done}" for i, done in enumerate(self.seen, 1)),
            *self.writer.ctes,
            self.program.explain(),
        ])  # fmt: skip

    def follow(
        self, act: Callable[[list[Done]], Any], value: Callable[[], Any], epochs: int,
        by_key: bool = True,
    ) -> None:  # fmt: skip
        """Some epochs by an engine, and the same rows as DuckDB has after each."""
        for _ in range(epochs):
            self.seen.append(done := self.history.epoch(by_key))
            act(done)
            self.compare(value())


def act_on(view: Any, done: list[Done]) -> None:
    """One epoch of a view."""
    if done[0][1] == "apply":
        view.step({name: change for name, _, change in done})
    else:
        ((name, verb, given),) = done
        getattr(view.input(name), verb)(*given)
