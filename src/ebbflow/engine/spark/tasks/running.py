"""One wave of an epoch in a task, on the rows that the task has.

`WaveRunner` is what rows (`ebbflow.engine.spark.tasks.replica`) and columns
(`ebbflow.engine.spark.tasks.columns`) share: a wave takes what has arrived at its ports, checks and
looks up inputs, runs its stages, has steps on one row at a time run on what they give, and keeps
outputs. A change is a dict of rows, or columns; the stages of the machine know what to do with
either.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from ebbflow.change.requests import Request
from ebbflow.engine.runtime.machine import Machine, consolidated
from ebbflow.engine.runtime.program import Kept
from ebbflow.engine.runtime.stages import Partial
from ebbflow.engine.spark.tasks.waves import Act, Waves


class WaveRunner:
    """Runs waves on the stages of a machine."""

    machine: Machine

    @abstractmethod
    def entered(self, name: str, change: Any, keeping: list[Kept]) -> Any:
        """A change of an input, or a request, that is checked; who keeps something of it is put
        into `keeping`."""

    @abstractmethod
    def asked(self, name: str, request: Request | None, rows: Any) -> Any:
        """What is done to an input that looks rows up: a request with the rows that have
        arrived."""

    @abstractmethod
    def left(self, name: str, delta: Any, keeping: list[Kept]) -> Any:
        """A change of an output that keeps its rows, every row once."""

    @abstractmethod
    def stage_wave(self, keeping: list[Kept], deltas: dict[str, Any], writes: set[int]) -> None:
        """Stage what was done to the containers that this wave writes, by id."""

    # ---- everything below is written with these ----

    def enter(self, waves: Waves, slot: int, delta: Any) -> dict[int, Any]:
        """Wave 0: rows of a slot, and what steps on one row at a time make of them, by slot."""
        return self._spread(waves, {slot: delta})

    def wave(
        self, waves: Waves, number: int, arrived: Mapping[int, Any]
    ) -> tuple[dict[int, Any], dict[str, Any]]:
        """One wave, on what has arrived by port: rows by slot for later waves, and the changes of
        outputs that are whole. Changes of the state are staged."""
        wave, machine = waves.waves[number], self.machine
        pieces: dict[int, Any] = {}
        keeping: list[Kept] = []
        for port, name in wave.checks.items():
            if arrived.get(port):
                self.entered(name, arrived[port], keeping)
        for port, name in wave.lookups.items():
            if port in arrived:
                pieces[machine.inputs[name]] = self.entered(name, arrived[port], keeping)
        pieces |= self._executed(wave.acts, arrived, len(waves.ports))
        made = self._spread(waves, pieces)
        deltas = {
            name: found
            for name in machine.readers
            if (found := consolidated(made.get(machine.outputs[name])))
        }
        for port, name in wave.keeps.items():
            if arrived.get(port):
                deltas[name] = self.left(name, arrived[port], keeping)
        self.stage_wave(keeping, deltas, wave.writes)
        return made, deltas

    def _executed(
        self, wanted: Sequence[Act], arrived: Mapping[int, Any], ports: int
    ) -> dict[int, Any]:
        """Run stages on what has arrived, and give what they give."""
        machine = self.machine
        begin = machine.width  # where what has arrived is among the values
        values: list[Any] = [None] * begin
        values += [arrived.get(port) for port in range(ports)]
        sizes = [0 if isinstance(each, (Partial, Request)) else len(each or ()) for each in values]
        acts = [
            machine.act(
                machine.by_slot[stage.slot],
                [begin + each.at if each.port else each.at for each in reads],
            )
            for stage, reads in wanted
        ]
        machine.execute(acts, values, sizes)
        return {
            stage.slot: values[stage.slot]
            for stage, _ in wanted
            if values[stage.slot] and not stage.arranges
        }

    def _spread(self, waves: Waves, pieces: dict[int, Any]) -> dict[int, Any]:
        """Have the steps on one row at a time run on these pieces, and on what they give."""
        machine = self.machine
        steps = [each for each in waves.machine.stages if each.linear]
        slots = [each.slot for each in steps if each.slot not in waves.provided]
        values = [pieces.get(slot) for slot in range(machine.width)]
        sizes = [len(each or ()) for each in values]
        stages = [machine.by_slot[slot] for slot in slots]
        machine.execute([machine.act(stage, stage.reads) for stage in stages], values, sizes)
        return {slot: delta for slot in [*pieces, *slots] if (delta := values[slot])}
