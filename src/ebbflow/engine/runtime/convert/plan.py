"""How values of a type that is described become values of the type that is asked for.

A *change* is a function of a value, or None where the value stays as it is. What can be changed:

    int                    to float, where no digit is lost
    T                      to T | None, to a wider union, to Any
    Any                    to T, if every value is one
    Decimal of some digits to more of them, before the point and after it
    a record               fields in another order, under other names, and new ones with a default
    tuples, sets, dicts    when what is in them can

Everything else is `CannotConvert`: a field that is gone, a type that is narrower, text to number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from functools import partial
from types import NoneType
from typing import Annotated, Any, get_args, get_origin

from ebbflow.engine.runtime.convert.described import (
    ANNOTATED,
    EITHER,
    LITERAL,
    Description,
    described,
    described_text,
    unwrapped,
)
from ebbflow.engine.runtime.convert.stand_in import stand_in
from ebbflow.engine.runtime.values.hints import rule_of
from ebbflow.expression.schema import class_name
from ebbflow.flow.types import DIGITS, digits, held
from ebbflow.frozen import frozen
from ebbflow.record import attributes_of, defaults_of, maker

Change = Callable[[Any], Any]
NONE: frozenset[str] = frozenset()


class CannotConvert(Exception):
    """What cannot be converted, and what to do about it."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(what)
        self.what, self.remedy = what, remedy


class ConversionPlan:
    """What becomes of the rows of an input. `said` is what is done, in words; `classes` are those
    of the stored type that are read as something that stands for them, as they are others now.
    `unread` are fields that are no longer kept, and `lost` those that were not before."""

    def __init__(
        self, renamed: Mapping[str, str], unread: Set[str] = NONE, lost: Set[str] = NONE
    ) -> None:
        self.renamed = renamed
        self.unread, self.lost = unread, lost
        self.said: list[str] = []
        self.classes: dict[tuple[str, str], type] = {}

    def change(self, old: Description, hint: Any, at: str = "") -> Change | None:
        """The change that makes a value of a type that was described one of a hint; `at` is the
        path to the field that has it."""
        hint = held(unwrapped(hint))
        if hint is Any or old == described(hint):
            return None
        if isinstance(old, dict) and attributes_of(hint) is not None:
            return self._record(old, hint, at)
        if old == "Any":
            return rule_of(hint).convert
        ours, theirs = _members(old), _members_of(hint)
        if len(ours) > 1 or len(theirs) > 1:
            return self._either(old, ours, hint, theirs, at)
        if old == "int" and hint is float:
            return as_float
        if isinstance(old, list):
            return self._within(old, hint, at)
        if get_origin(hint) is Annotated:
            return self._within([ANNOTATED, old], hint, at)
        raise _other(old, hint, at)

    # ---- one of several types ----

    def _either(
        self, old: Description, ours: list[Description], hint: Any, theirs: list[Any], at: str
    ) -> Change | None:
        if "None" in ours and NoneType not in theirs:
            raise _other(old, hint, at)
        some = [each for each in ours if each != "None"]
        changes = [self._into_one(old, each, hint, theirs, at) for each in some]
        needed = [change for change in changes if change is not None]
        if not needed:
            return None
        if len(some) == 1:
            return partial(_unless_none, needed[0])
        if all(change is as_float for change in needed):
            return as_float
        raise _other(old, hint, at)

    def _into_one(
        self, old: Description, one: Description, hint: Any, theirs: list[Any], at: str
    ) -> Change | None:
        """The change for one member of a union, to the member of another that it fits best."""
        for exactly in (True, False):
            for other in theirs:
                try:
                    if other is not NoneType and (not exactly or one == described(other)):
                        return self.change(one, other, at)
                except CannotConvert:
                    continue
        raise _other(old, hint, at)

    # ---- what has parts ----

    def _within(self, old: list[Any], hint: Any, at: str) -> Change | None:
        form, *parts = old
        origin, inside = get_origin(hint), get_args(hint)
        if form == LITERAL:
            self._require_values(old, hint, at)
            return None
        if ANNOTATED in (form, class_name(origin)):
            return self._annotated(old, hint, at)
        forms = {"tuple": tuple, "frozenset": frozenset, "Frozen": dict}
        if form not in forms or form != class_name(origin) or len(parts) != len(inside):
            raise _other(old, hint, at)
        if ("..." in parts) != (... in inside):
            raise _other(old, hint, at)
        changes = [
            None if each is ... else self.change(part, each, at)
            for part, each in zip(parts, inside, strict=True)
        ]
        if not any(changes):
            return None
        if form == "Frozen":
            return partial(_entries, *changes)
        if form == "frozenset" or ... in inside:
            return partial(_elements, forms[form], changes[0])
        return partial(_items, changes)

    def _require_values(self, old: list[Any], hint: Any, at: str) -> None:
        known = described(hint)
        wide = isinstance(known, list) and known[0] == LITERAL
        for each in old[1:]:
            if (each not in known[1:]) if wide else (each[0] != known):
                raise _other(old, hint, at)

    def _annotated(self, old: list[Any], hint: Any, at: str) -> Change | None:
        base, *notes = old[1:]
        plain = get_args(hint)[0] if get_origin(hint) is Annotated else hint
        if base == "Decimal" == described(plain):
            (size, after), (new_size, new_after) = (
                next((note for note in notes if isinstance(note, list)), DIGITS),
                digits(hint),
            )
            if new_after >= after and new_size - new_after >= size - after:
                return None
        elif base != "datetime":
            return self.change(base, plain, at)
        raise _other(old, hint, at)

    # ---- records ----

    def _record(self, old: dict[str, Any], hint: Any, at: str) -> Change:
        stored, fields = dict(old["fields"]), attributes_of(hint) or {}
        came = self._names(stored, list(fields), top=not at)
        gone = [name for name in stored if name not in came.values()]
        defaults = defaults_of(hint)
        if not at:
            for name in self._names(dict.fromkeys(self.lost), list(fields), top=True):
                raise _not_kept(name)
            self.said += [f"{name} is kept no longer" for name in gone if name in self.unread]
            gone = [name for name in gone if name not in self.unread]
        for name in fields:
            if name not in came and name not in defaults:
                raise _no_default(_path(at, name), gone, hint, top=not at)
        if gone:
            raise _gone(_path(at, gone[0]), described_text(stored[gone[0]]))
        places = list(stored)
        parts: list[tuple[int | None, Any]] = []
        if old["name"] != class_name(hint):
            self.said.append(f"{old['name']} is {class_name(hint)}")
        for name, each in fields.items():
            path = _path(at, name)
            if name not in came:
                self.said.append(f"{path} added as {frozen(defaults[name]())!r}")
                parts.append((None, defaults[name]))
                continue
            was = stored[came[name]]
            if came[name] != name:
                self.said.append(f"{_path(at, came[name])} renamed {path}")
            change = self.change(was, each, path)
            now = described(each)
            if was != now and not (isinstance(was, dict) and isinstance(now, dict)):
                self.said.append(f"{path} {described_text(was)} to {described_text(now)}")
            parts.append((places.index(came[name]), change))
        known = [i for i, _ in parts if i is not None]
        if known != sorted(known):
            self.said.append(f"the fields of {at or class_name(hint)} in another order")
        if old["tuple"] != issubclass(hint, tuple):
            now = "a dataclass" if old["tuple"] else "a NamedTuple"
            self.said.append(f"{class_name(hint)} is {now} now")
        self.classes[old["module"], old["qualname"]] = stored_as = stand_in(old)
        return partial(_made, stored_as, maker(hint), parts)

    def _names(self, stored: Mapping[str, Any], fields: list[str], *, top: bool) -> dict[str, str]:
        """For each field that was there before, what it was called."""
        came = {}
        for name in stored:
            now = name
            while top and now in self.renamed and self.renamed[now] not in stored:
                now = self.renamed[now]
            if now in fields:
                came[now] = name
        return came


# ---- what is done to a value ----


class Inexact(ValueError):
    """A number that would lose digits."""


def as_float(value: Any) -> Any:
    """An integer as a float, which must be the same number.

    >>> as_float(3), as_float(None)
    (3.0, None)
    """
    if type(value) is not int:
        return value
    try:
        made = float(value)
    except OverflowError:
        made = 0.5
    if made != value:
        raise Inexact(value)
    return made


def _same(value: Any) -> Any:
    return value


def _unless_none(change: Change, value: Any) -> Any:
    return None if value is None else change(value)


def _elements(make: Any, change: Any, value: Any) -> Any:
    return make(map(change, value)) if isinstance(value, make) else value


def _items(changes: list[Change | None], value: Any) -> Any:
    if not isinstance(value, tuple) or len(value) != len(changes):
        return value
    return tuple(x if f is None else f(x) for f, x in zip(changes, value, strict=True))


def _entries(key: Change | None, item: Change | None, value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    key, item = key or _same, item or _same
    return type(value)({key(k): item(v) for k, v in value.items()})


def _made(
    cls: Any, make: Callable[[list[Any]], Any], parts: list[tuple[int | None, Any]], value: Any
) -> Any:
    if not isinstance(value, (cls, tuple)):
        return value
    return make(
        [
            frozen(part()) if i is None else value[i] if part is None else part(value[i])
            for i, part in parts
        ]
    )


# ---- what cannot be ----

ANOTHER = "another path and loading the rows again"


def _path(at: str, name: str) -> str:
    return f"{at}.{name}" if at else name


def _members(old: Description) -> list[Description]:
    return old[1:] if isinstance(old, list) and old[0] == EITHER else [old]


def _members_of(hint: Any) -> list[Any]:
    said = described(hint)
    return list(get_args(hint)) if isinstance(said, list) and said[0] == EITHER else [hint]


def _other(old: Description, hint: Any, at: str) -> CannotConvert:
    what = f"field {at!r}" if at else "a row"
    return CannotConvert(
        f"{what} was {described_text(old)}, which is not always {described_text(described(hint))}",
        f"a new field beside it, with a default; or {ANOTHER}"
        if at
        else f"the type it had, or {ANOTHER}",
    )


def _gone(path: str, was: str) -> CannotConvert:
    return CannotConvert(
        f"field {path!r} is not there any more",
        f"keep `{path}: {was}`; or {ANOTHER}",
    )


def _not_kept(name: str) -> CannotConvert:
    return CannotConvert(
        f"field {name!r} is read now, and was not kept as nobody read it",
        f"the program as it was, or {ANOTHER}; without narrow=True all fields are kept",
    )


def _no_default(path: str, gone: list[str], hint: Any, *, top: bool) -> CannotConvert:
    renamed = f"renamed={{{gone[0]!r}: {path!r}}} if that is its new name; " if gone and top else ""
    return CannotConvert(
        f"field {path!r} is new and has no default",
        f"{renamed}a default in {class_name(hint)}, for the rows that are there; or {ANOTHER}",
    )
