"""Costs: about how long an epoch would take in each mode, and so which one to take.

    one task   a row is handed from Spark to Python, and goes through every stage, one after the
               other; stages in columns take less
    waves      the same in many tasks, of which as many run as there are cores; rows that change
               tasks are packed and unpacked, and every wave is a shuffle
    bulk       stages that are queries cost little for each row, and much to begin with; the others
               run in waves, behind one more hop; where there is state, what joins read is read

The seconds that these need for a row and a stage are processor time on one machine, as
`benchmarks/modes.py` and `benchmarks/bench_tasks.py` find it. What epochs took here
corrects them: the *ratio* of a mode is how many times as long its rows took as was thought. A mode
that was not tried yet has the ratio of those that were, as another machine, or rows that are wide,
slow down all of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

GIVEN, ROW, COLUMN = 1e-5, 1.5e-6, 1e-6
"""Seconds for a row to be handed to Python and its state to be written, and in each stage there, or
in one that a task runs in columns."""
PACKED, QUERY, READ = 2.0, 1.5e-6, 1e-6
"""How many times as much a stage takes where rows change tasks; seconds for a row in a stage that
is a query, and for a row that is read from the state."""
TASK, WAVE, QUERIES = 0.3, 0.2, 0.3
"""Seconds to begin with: for a job, for each wave of it, and for each stage that is a query."""
LEARNED = 5_000
"""From so many rows on, what an epoch took says something about its rows."""
ONE_TASK, WAVES, LOAD = "single_task", "staged", "bulk"


@dataclass
class Costs:
    """What is known of a program: how many stages Python runs in an epoch and in how many waves,
    how many of them are queries in a bulk load, how many cores there are, and how many stages one
    task runs in columns.

    >>> costs = Costs(stages=9, waves=4, queries=1, cores=2)
    >>> costs.best(300_000, ["single_task", "staged", "bulk"])
    ('single_task', '300,000 rows: single_task 7.4 s, staged 8.2 s, bulk 9.0 s')
    >>> Costs(stages=2, waves=1, queries=2, cores=2).best(300_000, ["single_task", "bulk"])[0]
    'bulk'
    """

    stages: int
    waves: int
    queries: int
    cores: int
    columns: int = 0
    ratios: dict[str, float] = field(default_factory=dict)

    def seconds(self, mode: str, rows: int, read: int = 0) -> float:
        """About how long so many rows take, of which `read` others are looked at."""
        begin, each = self._parts(mode)
        known = self.ratios.values()
        ratio = self.ratios.get(mode, sum(known) / len(known) if known else 1.0)
        more = read * READ / self.cores if mode == LOAD else 0.0
        return begin + ratio * (rows * each + more)

    def _parts(self, mode: str) -> tuple[float, float]:
        """The seconds to begin with, and those for a row."""
        if mode == ONE_TASK:
            return TASK, GIVEN + ROW * (self.stages - self.columns) + COLUMN * self.columns
        if mode == WAVES:
            return TASK + WAVE * self.waves, GIVEN + PACKED * ROW * self.stages / self.cores
        rest = self.stages - self.queries
        begin = TASK + WAVE * self.waves + QUERIES * (1 + self.queries)
        native = QUERY * self.queries / self.cores
        if not rest:
            return begin, native
        return begin, GIVEN + PACKED * ROW * (rest + 1) / self.cores + native

    def learn(self, mode: str, rows: int, seconds: float) -> None:
        """An epoch of so many rows took so long. Half of what is known is what was known before."""
        if rows < LEARNED or mode not in (ONE_TASK, WAVES, LOAD):
            return
        begin, each = self._parts(mode)
        now = max(seconds - begin, 0.1 * seconds) / (rows * each)
        self.ratios[mode] = (self.ratios.get(mode, now) + now) / 2

    def best(self, rows: int, modes: Iterable[str], read: int = 0) -> tuple[str, str]:
        """The mode for so many rows, and why it is that."""
        found = {mode: self.seconds(mode, rows, read) for mode in modes}
        said = ", ".join(f"{mode} {seconds:,.1f} s" for mode, seconds in found.items())
        return min(found, key=lambda mode: found[mode]), f"{rows:,} rows: {said}"

    def most_in_one_task(self, few: int, limit: int) -> int:
        """Up to how many rows one task is not slower than waves; from `few` to `limit`."""
        while few < limit and self.seconds(ONE_TASK, 2 * few) <= self.seconds(WAVES, 2 * few):
            few *= 2
        return min(few, limit)
