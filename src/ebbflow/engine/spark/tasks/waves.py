"""Waves: which stages of a plan run together in tasks, and what goes from task to task.

Every stage with state looks at the rows of one key together, so it can run in many tasks, each with
the keys whose hashes are in its *range* (003 Lemma 3.62). Between two stages with different keys
rows must change tasks; so an epoch is a chain of waves:

    wave 0     rows come in, wherever they are
    wave 1…    rows arrive by key; every task runs the stages of the wave on the keys it has

Steps on one row at a time are linear: they run at once, on whatever part of the rows a task has.
A *port* is where rows change tasks: the rows of one slot, by one key, for one wave. Indexes, guards
and orders by key belong to the stages that read them: they run in every wave that has such a stage.
The state they keep is written by the first of these; the others only bring up to date what they
read. A reduce that can add up the rows of every task apart is sent what they add up to, instead of
the rows (003: a homomorphism). Inputs that keep rows to check a change, and outputs that keep rows,
take part as stages do. A loop reads all of its rows together: they go to the driver, who leads it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ebbflow.engine.runtime.machine import Machine
from ebbflow.engine.runtime.stage import Stage, by_row

Key = Callable[[Any], Any]


class Port(NamedTuple):
    """The rows of a slot, by key, for the tasks of a wave; for an input or an output, its name; for
    a reduce that is sent what rows add up to, its slot."""

    slot: int
    key: Key
    wave: int
    end: str = ""
    adds: int | None = None


class From(NamedTuple):
    """Where a stage finds what it reads: at a port, or where a stage before it has put it."""

    port: bool
    at: int


class Act(NamedTuple):
    """A stage to run, and where it finds what it reads."""

    stage: Stage
    reads: tuple[From, ...]


@dataclass
class Wave:
    """What the tasks of one wave do. Inputs that check a change, inputs that look up the rows a
    change is about, and outputs that keep rows, are there by the number of their port."""

    acts: list[Act] = field(default_factory=list)
    loops: list[Act] = field(default_factory=list)
    """Loops, which run before the rest of the wave, led by the driver (`rounds`)."""
    checks: dict[int, str] = field(default_factory=dict)
    lookups: dict[int, str] = field(default_factory=dict)
    keeps: dict[int, str] = field(default_factory=dict)
    writes: set[int] = field(default_factory=set)
    """The containers, by id, whose state this wave writes."""

    @property
    def in_tasks(self) -> bool:
        """Whether there is something for tasks to do besides the rounds of loops."""
        return bool(self.acts or self.checks or self.lookups or self.keeps)


class Waves:
    """The waves of a machine. `inputs` are those that keep rows, with their keys; those `given` by
    key have to look their rows up first. `outputs` are those whose changes come together by row.

    Slots that are `provided` come in whole, as if they were inputs; what makes them does not run.
    Containers that are `written`, by id, are written by others. A reduce that is `summed`, by slot,
    is sent what its rows add up to by others.
    """

    def __init__(
        self,
        machine: Machine,
        inputs: Mapping[str, Key],
        outputs: Iterable[str],
        given: Iterable[str] = (),
        provided: Iterable[int] = (),
        written: Iterable[int] = (),
        summed: Iterable[int] = (),
    ) -> None:
        self.machine = machine
        self.ports: list[Port] = []
        self.waves: list[Wave] = [Wave()]
        self.looked_up: dict[str, int] = {}
        """For each input given by key, the port it is given at."""
        self.readers: dict[int, Stage] = {}
        """For each port the first stage that reads what arrives there."""
        self._numbers: dict[Port, int] = {}
        self._stages = {stage.slot: stage for stage in machine.stages}
        self.provided = frozenset(provided)
        self._made = dict.fromkeys([*machine.inputs.values(), *self.provided], 0)
        """In which wave a slot is filled, at the latest."""
        self._written = set(written)
        for name, key in inputs.items():
            self._input(name, key, name in set(given))
        for stage in machine.stages:
            if stage.slot in self.provided:
                continue
            if stage.linear:
                self._made[stage.slot] = max((self._made[slot] for slot in stage.reads), default=0)
            elif not stage.arranges:
                self._act(stage)
        for name in outputs:
            slot = machine.outputs[name]
            port = self._port(Port(slot, by_row, self._made[slot] + 1, name))
            self.waves[self.ports[port].wave].keeps[port] = name
        self.routes: dict[int, list[int]] = {}
        """The ports that the rows of a slot go to."""
        for number, each in enumerate(self.ports):
            if number not in self.looked_up.values() and each.adds not in set(summed):
                self.routes.setdefault(each.slot, []).append(number)

    def __len__(self) -> int:
        return len(self.waves)

    @property
    def entered(self) -> list[int]:
        """The slots that rows come in by: inputs and those provided, if somebody reads them."""
        steps = [
            stage.reads
            for stage in self.machine.stages
            if stage.linear and stage.slot not in self.provided
        ]
        read = {*self.routes, *(slot for reads in steps for slot in reads)}
        return [slot for slot, wave in self._made.items() if not wave and slot in read
                and (slot in self.provided or slot in self.machine.inputs.values())]  # fmt: skip

    def _port(self, port: Port) -> int:
        while len(self.waves) <= port.wave:
            self.waves.append(Wave())
        if port not in self._numbers:
            self._numbers[port] = len(self.ports)
            self.ports.append(port)
        return self._numbers[port]

    def _input(self, name: str, key: Key, given: bool) -> None:
        slot = self.machine.inputs[name]
        port = self._port(Port(slot, key, 1, name))
        if given:
            self.waves[1].lookups[port] = name
            self.looked_up[name] = port
            self._made[slot] = 1
        else:
            self.waves[1].checks[port] = name

    def _act(self, stage: Stage) -> None:
        wave = 1 + max(self._made[raw_slot(self._stages, slot)] for slot in stage.reads)
        acts: list[Act] = []
        reads = tuple(self._from(slot, stage, wave, acts) for slot in stage.reads)
        acts.append(Act(stage, reads))
        for act in acts:
            for each in act.reads:
                if each.port:
                    self.readers.setdefault(each.at, act.stage)
        here = self.waves[wave]
        if stage.looping:
            here.loops += acts
        else:
            here.acts += [act for act in dict.fromkeys(acts) if act not in here.acts]
        self._made[stage.slot] = wave
        new = {id(container) for act in acts for container in act.stage.containers}
        here.writes |= new - self._written
        self._written |= new

    def _from(self, slot: int, reader: Stage, wave: int, acts: list[Act]) -> From:
        """Where a stage finds a slot that it reads. Stages that arrange it are put into `acts`."""
        stage = self._stages.get(slot)
        if stage is None or not stage.arranges:
            adds = None if reader.partial is None else reader.slot
            return From(True, self._port(Port(slot, reader.partition_key, wave, adds=adds)))
        acts.append(Act(stage, (self._from(stage.reads[0], stage, wave, acts),)))
        return From(False, slot)


def raw_slot(stages: Mapping[int, Stage], slot: int) -> int:
    """The slot whose rows are arranged in this one."""
    while slot in stages and stages[slot].arranges:
        (slot,) = stages[slot].reads
    return slot
