"""The state of an input with a key: its rows by their keys, and what is asked of it by key."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from typing import Any

from ebbflow.algebra.value import function_name
from ebbflow.change.fields import edited_fields, follower
from ebbflow.change.requests import IGNORE, LAST, Feed, Forget, Request, Upsert
from ebbflow.change.requests import DeleteKeys as Delete
from ebbflow.engine.runtime.changes import read
from ebbflow.engine.runtime.edits import edited_row, other_key
from ebbflow.engine.runtime.events import (
    DELETE_ONCE,
    Deleted,
    Edits,
    Events,
    is_older,
    known_time,
    newest,
    no_row,
)
from ebbflow.engine.runtime.inputs import FEW, InputState, absent
from ebbflow.engine.runtime.requested import (
    are_none,
    deleted,
    fed,
    rows_given,
    upserted,
)
from ebbflow.engine.runtime.rows import Weights
from ebbflow.engine.runtime.values.check import canonical_key, canonical_part
from ebbflow.errors import (
    ChangeError,
    FunctionFailed,
    Text,
    cause_of,
    error_text,
)
from ebbflow.flow.plan import Source
from ebbflow.nan import one_nan
from ebbflow.state.backing import Backing
from ebbflow.state.cells import ABSENT
from ebbflow.zset import ZSet

NOT_THERE: Any = object()
NEVER: Mapping[Any, Any] = {}


class KeyedInput(InputState):
    """An input with a key: at most one row of each, found by it.

    >>> from ebbflow.fn import Fn
    >>> words = KeyedInput(Source(name="words", key=Fn(lambda word: word[0])))
    >>> words.apply(["ebb", "flow"]); words.keep()
    {'ebb': 1, 'flow': 1}
    >>> words.request(Upsert(["east", "flow"])); words.keep()
    {'ebb': -1, 'east': 1}
    """

    __slots__ = ("_added", "_gone", "_key", "_keys", "backing", "beside", "rows", "store")

    beside: Deleted | None

    keeps = True

    def __init__(self, source: Source, checks: bool = True) -> None:
        super().__init__(source, checks)
        assert source.key is not None
        self._key, self._keys = source.key.keeping(), source.key.of_all()
        self.rows: dict[Any, Any] = {}
        self.backing: Backing | None = None
        self.store = self
        self.beside = None if source.sequence is None else Deleted()
        self._added: dict[Any, Any] = {}
        self._gone: Mapping[Any, Any] = {}

    def apply(self, change: Any) -> Weights:
        """Be ready to apply a change; it must leave at most one row of each key."""
        weights = read(self.source, change, check=self.checks)
        if len(weights) > FEW and self._in_one(weights):
            return weights
        rows = self.rows
        added: dict[Any, Any] = {}
        gone: dict[Any, Any] = {}
        keys = self.keys(weights)
        self._fetch(keys)
        for at, (row, weight) in zip(keys, weights.items(), strict=True):
            if weight > 0:
                if weight > 1 or at in added:
                    raise self._crowded(at, row, f"{weight} times" if weight > 1 else added[at])
                added[at] = row
            else:
                old = rows.get(at, NOT_THERE)
                there = 1 if old is not NOT_THERE and old == row else 0
                if there + weight < 0:
                    raise absent(self.source, row, there, -weight)
                gone[at] = row
        for at, row in added.items():
            if at in rows and at not in gone:
                raise self._crowded(at, row, rows[at])
        if edited_fields(self.source.type):
            weights = self._followed(weights, added, gone)
        self._prepare(added, {at: row for at, row in gone.items() if at not in added})
        return weights

    def _in_one(self, weights: Weights) -> bool:
        """Be ready to apply a change, if it is seen to be right when all of its rows are looked at
        together; what is wrong with it is for who looks at one after the other."""
        source, rows = self.source, self.rows
        if edited_fields(source.type) or not {1, -1}.issuperset(weights.values()):
            return False
        with suppress(Exception):
            if -1 not in weights.values():
                return self.add_new(list(weights))
            plus = [row for row, weight in weights.items() if weight > 0]
            minus = [row for row, weight in weights.items() if weight < 0]
            added = dict(zip(self._keys(plus), plus, strict=True))
            gone = dict(zip(self._keys(minus), minus, strict=True))
            self._fetch({**added, **gone})
            if len(added) + len(gone) < len(weights) or [*map(rows.get, gone)] != minus:
                return False
            if added and not rows.keys().isdisjoint(added.keys() - gone.keys()):
                return False
            left = {at: row for at, row in gone.items() if at not in added} if added else gone
            self._prepare(added, left)
            return True
        return False

    def add_new(self, rows: list[Any]) -> bool:
        """Be ready to add rows, if their keys are different and new; they are not hashed."""
        with suppress(Exception):  # `apply` says what is wrong
            keys = self._keys(rows)
            new = dict(zip(keys, rows, strict=True))
            self._fetch(new)
            if len(new) == len(keys) and self.rows.keys().isdisjoint(new):
                self._prepare(new, {})
                return True
        return False

    def _followed(self, weights: Weights, added: dict[Any, Any], gone: dict[Any, Any]) -> Weights:
        """The change with the rows that are there in the place of equal ones that go, and those
        that take their places made from them: what is known of their texts is not lost."""
        rows, following = self.rows, follower(self.source.type)
        there = {id(row): rows[at] for at, row in gone.items()}
        for at, row in added.items():
            if at in gone:
                added[at] = there[id(row)] = following(row, rows[at])
        return {there.get(id(row), row): weight for row, weight in weights.items()}

    def request(self, request: Request) -> Weights:
        found: Weights = getattr(self, request.verb)(request)
        return found

    def upsert(self, request: Upsert) -> Weights:
        """Be ready to put rows in, each in place of the row that has its key, and to take away the
        rows of some keys."""
        if request.order is None and self.beside is None and are_none(request.delete):
            found = rows_given(self, request.rows, parse=request.parse)
            latest = dict(zip(found.keys, found.rows, strict=True))
            if len(latest) == len(found.rows) or (found.ordered and request.duplicates == LAST):
                self._fetch(latest)
                return self._replaced(latest)
            return self.events(upserted(self, request, found))
        return self.events(upserted(self, request))

    def delete(self, request: Delete) -> Weights:
        """Be ready to take away the rows that have these keys."""
        return self.events(deleted(self, request))

    def feed(self, request: Feed) -> Weights:
        """Be ready to follow a feed."""
        return self.events(fed(self, request))

    def events(self, request: Events) -> Weights:
        """Be ready for events: the newest of each key, where it is not older than what is there."""
        source, rows, part, memory = self.source, self.rows, request.by, self.beside
        latest = newest(source, request.rows, request.ordered)
        self._fetch(latest)
        added: dict[Any, Any] = {}
        gone: dict[Any, Any] = {}
        times: dict[Any, Any] = {}
        for key, event in latest.items():
            old, known = rows.get(key, NOT_THERE), ABSENT
            if event.at is not None and part is not None:
                if old is not NOT_THERE:
                    known = known_time(source, part, old)
                elif memory is not None:
                    known = memory.rows.get(key, ABSENT)
                if known is not ABSENT and is_older(source, event.at, known):
                    continue
            if event.row is not ABSENT:
                added[key] = event.row
                continue
            if event.at is not None and memory is not None:
                times[key] = event.at
            if old is not NOT_THERE:
                gone[key] = old
            elif not event.follows and request.missing != IGNORE and key not in times:
                raise no_row(source, key, DELETE_ONCE)
        weights = self._replaced(added)
        weights.update(dict.fromkeys(gone.values(), -1))
        self._prepare(self._added, gone, times)
        return weights

    def forget(self, request: Forget) -> Weights:
        """Be ready to forget when rows were deleted, of those that are long gone."""
        before = self.forgotten_before(request)
        self._prepare({}, {})
        assert self.beside is not None
        self.beside.before(self.source, before)
        return {}

    def forgotten_before(self, request: Forget) -> Any:
        """The time of a `forget`, in its canonical form."""
        if self.beside is None:
            raise ChangeError(
                f"forget: input {self.name!r} has no sequence, and remembers nothing",
                created=self.source.place,
                remedy=f"Input({self.name!r}, ..., key=..., sequence=...)",
            )
        return canonical_part(self.source, self.source.sequence, "before", request.before)

    def _prepare(
        self, added: dict[Any, Any], gone: Mapping[Any, Any], times: Mapping[Any, Any] = NEVER
    ) -> None:
        """Have these rows be what `keep` puts in and takes away, by key; `times` say when keys were
        deleted, where that is known."""
        self._added, self._gone = added, gone
        memory, part = self.beside, self.source.sequence
        if memory is None or part is None:
            return
        source = self.source
        waiting = dict(times)
        for key, row in gone.items():
            if key not in waiting:
                at = known_time(source, part, row)
                if at is not ABSENT:
                    waiting[key] = at
        memory.fetch(added)
        waiting.update(dict.fromkeys([key for key in added if key in memory.rows], ABSENT))
        memory.waiting = waiting

    def _replaced(self, latest: dict[Any, Any]) -> Weights:
        """Be ready to have these rows, by key, in the place of those that are there."""
        rows = self.rows
        following = follower(self.source.type) if edited_fields(self.source.type) else None
        added: dict[Any, Any] = {}
        weights: Weights = {}
        for at, row in latest.items():
            old = rows.get(at, NOT_THERE)
            if old is not NOT_THERE:
                if old == row:
                    continue
                row = row if following is None else following(row, old)
                weights[old] = -1
            weights[row] = 1
            added[at] = row
        self._prepare(added, {})
        return weights

    def edit(self, request: Edits) -> Weights:
        """Be ready to change fields of rows from inside, one edit after the other."""
        edits = tuple(request.rows)
        keys = [self.key_given(each.key) for each in edits]
        self._fetch(keys)
        new: dict[Any, Any] = {}
        for at, each in zip(keys, edits, strict=True):
            if at not in self.rows:
                raise no_row(self.source, at, "edit rows that are there; upsert puts new ones in")
            row = edited_row(self.source, new.get(at, self.rows[at]), each.field, each.changes)
            if self._key(row) != at:
                raise other_key(self.source, each.field, at)
            new[at] = row
        return self._replaced(new)

    def get(self, key: Any) -> Any:
        at = self.key_given(key)
        self._fetch([at])
        return self.rows.get(at)

    def has(self, row: Any) -> bool:
        return self.get(row) is not None

    def keep(self) -> None:
        rows = self.rows
        rows.update(self._added)
        for at in self._gone:
            rows.pop(at, None)
        self._added, self._gone = {}, {}

    def changed(self) -> dict[Any, Any]:
        """The rows that `keep` will write, by key; ABSENT for keys that go."""
        return {**self._added, **dict.fromkeys(self._gone, ABSENT)}

    def _fetch(self, keys: Iterable[Any]) -> None:
        if self.backing is not None:
            self.backing.fetch(keys)
        if self.beside is not None:
            self.beside.fetch(keys)

    def snapshot(self) -> ZSet[Any]:
        here = self.rows if self.backing is None else self.backing.everything()
        return ZSet.of(here.values())

    def __len__(self) -> int:
        return len(self.rows)

    def keys(self, rows: Collection[Any]) -> list[Any]:
        """The keys of rows."""
        key = self._key
        with suppress(Exception):  # which row it is, is found out below
            keys = self._keys(rows)
            hash(tuple(keys))
            return keys
        keys = []
        for row in rows:
            try:
                at = key(row)
            except Exception as error:
                raise FunctionFailed(
                    f"input {self.name!r}: its key failed on a row",
                    key=Text(function_name(key)),
                    row=row,
                    error=Text(error_text(error)),
                    created=self.source.place,
                    remedy="make the key work for every row of this input",
                ) from cause_of(error)
            keys.append(self.require_key(at))
        return keys

    def key_given(self, key: Any, *, parse: bool | None = None) -> Any:
        """The key in the form of the rows. A lookup leaves `parse` None: it cannot read texts."""
        key = self.require_key(key)
        if not self.checks and not parse:
            return one_nan(key)
        return canonical_key(self.source, key, parse=parse)

    def require_key(self, at: Any) -> Any:
        """A key that a row may have: hashable."""
        try:
            hash(at)
            return at
        except TypeError as error:
            raise ChangeError(
                f"input {self.name!r}: a key must be hashable, and a {type(at).__name__} is not",
                key=at,
                created=self.source.place,
                remedy="use a tuple for a list, a frozenset for a set",
            ) from cause_of(error)

    def _crowded(self, at: Any, row: Any, also: Any) -> ChangeError:
        return ChangeError(
            f"input {self.name!r}: there would be more than one row of a key",
            key=at,
            row=row,
            also=Text(also) if isinstance(also, str) else also,
            created=self.source.place,
            remedy=f"view.input({self.name!r}).upsert(row) replaces the row that has this key",
        )
