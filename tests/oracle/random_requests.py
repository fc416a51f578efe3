"""Random requests, and what the inputs hold after them.

An epoch asks something of some inputs: changes with weights, upserts, deletes, feeds, that all rows
or some be replaced. What each input holds then is computed here by the plain rule, one event after
the other on a dict, by nothing that an engine uses. Now and then an epoch asks of one input what
must be refused; then nothing may happen to any.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple

from ebbflow.change.requests import delete, feed, forget, replace_rows, upsert
from ebbflow.flow.plan import Source
from ebbflow.flow.plan.time import ClockSource
from ebbflow.testing.epochs import plan_of, row_maker
from ebbflow.zset import ZSet

Rows = Counter[Any]
NEVER = object()


def number(row: Any) -> int:
    """A number that is the same for equal rows, in every process."""
    first = row[0] if isinstance(row, tuple) else row
    return first if isinstance(first, int) else len(str(first))


class AskedEpoch(NamedTuple):
    """What is asked of inputs in an epoch, in words too, and whether it must be refused."""

    changes: Mapping[str, Any]
    verbs: tuple[str, ...]
    refused: bool = False


@dataclass
class Held:
    """What an input holds: its rows, each as often as it is there, and for an input with a sequence
    the last one of every key."""

    rows: Rows
    times: dict[Any, Any]

    def copy(self) -> Held:
        return Held(Counter(self.rows), dict(self.times))


class RandomRequests:
    """Random requests to the inputs of a program; `held` is what they hold by then."""

    def __init__(self, program: Any, seed: int | str | Random, refused: float = 0.1) -> None:
        self.dice = seed if isinstance(seed, Random) else Random(seed)
        sources = plan_of(program).sources
        self.sources = {n: each for n, each in sources.items() if not isinstance(each, ClockSource)}
        self.held = {name: Held(Counter(), {}) for name in self.sources}
        self.refused = refused

    def contents(self) -> dict[str, ZSet[Any]]:
        """The rows of every input."""
        return {name: ZSet(held.rows) for name, held in self.held.items()}

    def epoch(self) -> AskedEpoch:
        """One epoch, of some inputs at once."""
        dice = self.dice
        names = dice.sample(sorted(self.sources), dice.randint(1, len(self.sources)))
        before = {name: held.copy() for name, held in self.held.items()}
        asked = {name: self._asked(name) for name in names}
        changes = {name: change for name, (_, change) in asked.items()}
        verbs = tuple(verb for verb, _ in asked.values())
        if dice.random() >= self.refused:
            return AskedEpoch(changes, verbs)
        self.held = before
        wrong = dice.choice(names)
        return AskedEpoch({**changes, wrong: self._wrong(wrong)}, verbs, True)

    # ---- what is asked ----

    def _row(self, name: str) -> Any:
        return row_maker(self.sources[name])(self.dice.randrange(1 << 20))

    def _some(self, name: str, least: int = 1) -> list[Any]:
        return [self._row(name) for _ in range(self.dice.randint(least, 5))]

    def _asked(self, name: str) -> tuple[str, Any]:
        source, held = self.sources[name], self.held[name]
        verbs: dict[str, Callable[[Source, Held], Any]] = {
            "weights": self._weights, "replace": self._replace, "where": self._where,
        }  # fmt: skip
        if source.key is not None:
            verbs |= {
                "upsert": self._upsert, "delete": self._delete, "feed": self._feed,
                "again": self._upsert, "more": self._feed,
            }  # fmt: skip
        if source.sequence is not None:
            verbs["forget"] = self._forget
        verb = self.dice.choice([*verbs, "weights"])
        return verb, verbs[verb](source, held)

    def _weights(self, source: Source, held: Held) -> ZSet[Any]:
        gone = self.dice.sample([*held.rows], min(len(held.rows), self.dice.randint(0, 2)))
        change = Counter({row: -self.dice.randint(1, held.rows[row]) for row in gone})
        for row in self._some(source.name, 0):
            if source.key is None:
                change[row] += 1
                continue
            taken = {source.key(each) for each, n in (held.rows + change).items() if n > 0}
            if source.key(row) not in taken:
                change[row] += 1
        self._weigh(source, held, change)
        return ZSet(change)

    def _weigh(self, source: Source, held: Held, change: Rows) -> None:
        old = Counter(held.rows)
        held.rows.update(change)
        held.rows = Counter({row: n for row, n in held.rows.items() if n > 0})
        for row in old | held.rows if source.sequence is not None else ():
            assert source.key is not None
            assert source.sequence is not None
            if row not in held.rows or row not in old:
                key = source.key(row)
                there = [each for each in held.rows if source.key(each) == key]
                held.times[key] = source.sequence((there or [row])[0])

    def _replace(self, source: Source, held: Held) -> Any:
        return self._replaced(source, held, None, lambda row: True)

    def _where(self, source: Source, held: Held) -> Any:
        field = None if not hasattr(source.type, "_fields") else source.type._fields[0]
        if field is not None and self.dice.random() < 0.5:
            value = self._row(source.name)[0]
            return self._replaced(
                source, held, {field: value},
                lambda row: row[0] is value or row[0] == value,
            )  # fmt: skip
        odd = self.dice.choice([0, 1])
        return self._replaced(source, held, *[lambda row: number(row) % 2 == odd] * 2)

    def _replaced(self, source: Source, held: Held, where: Any, inside: Any) -> Any:
        old = Counter({row: n for row, n in held.rows.items() if inside(row)})
        new = [row for row in [*self._some(source.name, 0), *old] if inside(row)]
        self.dice.shuffle(new)
        new = new[: self.dice.randint(0, len(new))]
        if source.key is not None:
            apart = {source.key(row) for row in held.rows if not inside(row)}
            latest = {source.key(row): row for row in new if source.key(row) not in apart}
            new = list(latest.values())
        change = Counter(new)
        change.subtract(old)
        self._weigh(source, held, change)
        return replace_rows(new, where)

    def _upsert(self, source: Source, held: Held) -> Any:
        rows = self._some(source.name)
        by = self._order(source)
        gone = self._gone(source, held, rows)
        events = [(source.key(row), row, by and by(row)) for row in rows]  # type: ignore[misc]
        missing = self.dice.choice(["ignore", "ignore", "error"])
        if missing == "error":
            there = {source.key(row) for row in held.rows}  # type: ignore[misc]
            gone = [key for key in gone if key in there]
        self._happen(source, held, by, [*events, *((key, None, None) for key in gone)])
        named = None if source.sequence is not None else by
        last = "last" if by is None else "error"
        return upsert(rows, delete=gone, missing=missing, duplicates=last, order=named)

    def _gone(self, source: Source, held: Held, rows: list[Any]) -> list[Any]:
        """Some keys that are there or not, and none of these rows."""
        assert source.key is not None
        both = [*held.rows, *self._some(source.name)]
        some = self.dice.sample(both, min(len(both), self.dice.randint(0, 2)))
        keys = dict.fromkeys(map(source.key, some))
        return [key for key in keys if key not in map(source.key, rows)]

    def _delete(self, source: Source, held: Held) -> Any:
        keys = self._gone(source, held, [])
        if source.sequence is None or self.dice.random() < 0.3:
            self._happen(source, held, None, [(key, None, None) for key in keys])
            return delete(keys, missing="ignore")
        at = source.sequence(self._row(source.name))
        self._happen(source, held, source.sequence, [(key, None, at) for key in keys])
        return delete(keys, at=at)

    def _order(self, source: Source) -> Any:
        if source.sequence is not None or self.dice.random() < 0.5:
            return source.sequence
        return self.dice.choice([number, lambda row: -number(row)])

    def _feed(self, source: Source, held: Held) -> Any:
        fields = getattr(source.type, "_fields", None)
        if fields is None:
            return self._upsert(source, held)
        assert source.key is not None
        by, events, given = source.sequence, [], []
        for row in self._some(source.name):
            put = self.dice.random() < 0.6
            at = None if by is None else by(row)
            events.append((source.key(row), row if put else None, at))
            given.append(("U" if put else "D", row))
        self._happen(source, held, by, events)
        return self._written(fields, given)

    def _written(self, fields: tuple[str, ...], given: list[tuple[str, Any]]) -> Any:
        """A feed in one of its layouts."""
        rows = [(op, dict(zip(fields, row, strict=True))) for op, row in given]
        match self.dice.randrange(4):
            case 0:
                marks = {"U": ("update_postimage", "insert"), "D": ("delete",)}
                found = [{**row, "_change_type": self.dice.choice(marks[op])} for op, row in rows]
                return feed(found, missing="ignore")
            case 1:
                images = [
                    {"op": "d", "before": row, "after": None} if op == "D" else
                    {"op": self.dice.choice("cru"), "before": None, "after": row}
                    for op, row in rows
                ]  # fmt: skip
                return feed(images, missing="ignore")
            case 2:
                found = [{**row, "__deleted": str(op == "D").lower()} for op, row in rows]
                return feed(found, missing="ignore")
        found = [{**row, "what": op} for op, row in rows]
        return feed(found, op="what", insert="I", update="U", delete="D", missing="ignore")

    def _forget(self, source: Source, held: Held) -> Any:
        assert source.sequence is not None
        assert source.key is not None
        before = source.sequence(self._row(source.name))
        there = {source.key(row) for row in held.rows}
        held.times = {
            key: at for key, at in held.times.items() if key in there or not at < before
        }  # fmt: skip
        return forget(before)

    # ---- the plain rule ----

    def _happen(self, source: Source, held: Held, by: Any, events: list[Any]) -> None:
        """Events, one after the other: what is older than the last of its key is left out."""
        assert source.key is not None
        rows = {source.key(row): row for row in held.rows}
        times = dict(held.times) if source.sequence is not None else {}
        if source.sequence is None and by is not None:
            times = {key: by(row) for key, row in rows.items()}
        for key, row, at in events:
            if at is not None and times.get(key, NEVER) is not NEVER and at < times[key]:
                continue
            if at is not None:
                times[key] = at
            rows.pop(key, None)
            if row is not None:
                rows[key] = row
        held.rows = Counter(rows.values())
        held.times = times if source.sequence is not None else {}

    def _wrong(self, name: str) -> Any:
        """What must be refused."""
        source, held = self.sources[name], self.held[name]
        row = self._row(name)
        wrong = [replace_rows([row], where=lambda row: False), {row: -held.rows[row] - 1}]
        if source.key is None:
            wrong += [upsert([row]), delete([1])]
        else:
            there = {source.key(each) for each in held.rows}
            keys = [key for key in map(source.key, self._some(name)) if key not in there]
            wrong += [delete(keys)] if keys else []
            wrong += [upsert([row], delete=[source.key(row)])]
        return self.dice.choice(wrong)
