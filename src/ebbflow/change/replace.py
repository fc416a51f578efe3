"""Replacing and combining: two change structures that work for values of any kind.

`REPLACE` knows nothing about its values: the change is the new value, or `KEEP`. It is always
possible and never small, so it is what to fall back on.

`group` takes a monoid, and the change is combined onto the end of the value. Where the monoid is a
group there is a difference of every two values; where it can only cancel (lists, strings), there is
one when the new value begins with the old.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ebbflow.algebra import Monoid
from ebbflow.change.structure import ChangeStructure, ConstantStructure, Why
from ebbflow.errors import ChangeError, cause_of, error_text, type_name, value_text

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Replace(Generic[T]):
    """The change to `value`, whatever was there before.

    >>> REPLACE.patch("old", Replace("new"))
    'new'
    """

    value: T


class Keep:
    """The type of `KEEP`, the change of REPLACE that changes nothing.

    >>> REPLACE.patch("old", KEEP)
    'old'
    """

    def __repr__(self) -> str:
        return "KEEP"

    def __reduce__(self) -> str:
        return "KEEP"


KEEP = Keep()


class _Replace(ConstantStructure[Any, "Replace[Any] | Keep"]):
    """Any value; the change is the new value, or KEEP.

    >>> REPLACE.compress([Replace(1), KEEP, Replace(2)])
    (Replace(value=2),)
    >>> REPLACE.diff("new", "old"), REPLACE.diff("old", "old")
    (Replace(value='new'), KEEP)
    """

    takes = "Replace(new value), or KEEP"

    def valid(self, change: object, value: Any) -> bool:
        return self.is_change(change)

    def is_change(self, change: object) -> bool:
        return isinstance(change, (Replace, Keep))

    def apply(self, value: Any, change: Replace[Any] | Keep) -> Any:
        return change.value if isinstance(change, Replace) else value

    def diff(self, new: Any, old: Any) -> Replace[Any] | Keep:
        return KEEP if new is old or new == old else Replace(new)

    @property
    def nothing(self) -> Keep:
        return KEEP

    def is_nothing(self, change: object) -> bool:
        return isinstance(change, Keep)

    def merge(self, first: Replace[Any] | Keep, second: Replace[Any] | Keep) -> Replace[Any] | Keep:
        self.require(first, second)
        return second

    def why(self, change: object, value: Any) -> Why:
        reason = f"{type_name(change)} does not say what to replace it with"
        return Why(reason, self.takes, {"value": value})


REPLACE: ChangeStructure[Any, Replace[Any] | Keep] = _Replace(name="REPLACE")


def group(
    monoid: Monoid[T], *, elements: Any = None, changes: Callable[[T], Any] | None = None
) -> ChangeStructure[T, T]:
    """The elements of a monoid; the change is combined onto the value.

    A monoid does not know what its elements are, so a change is valid when `combine` takes it.

    >>> from ebbflow.algebra import ADD, LIST, dict_of
    >>> group(LIST).patch(["a"], ["b", "c"])
    ['a', 'b', 'c']
    >>> group(dict_of(ADD)).diff({"Rome": 3}, {"Rome": 1, "Oslo": 2})
    {'Rome': 2, 'Oslo': -2}
    """
    drawn = monoid.elements if elements is None else elements
    return _Group(monoid, built=(group, (monoid,)), elements=drawn, changes=changes)


class _Group(ChangeStructure[T, T]):
    takes = "a change that the monoid's combine(value, change) takes"
    acting_on_itself = True

    def __init__(self, monoid: Monoid[T], **rest: Any) -> None:
        super().__init__(**rest)
        self._monoid = monoid
        self.noun = f"element of {monoid!r}"

    @property
    def monoid(self) -> Monoid[T]:
        return self._monoid

    @property
    def empty(self) -> T:
        return self._monoid.zero

    def from_empty(self, value: T) -> T:
        return value

    def valid(self, change: object, value: T) -> bool:
        return self._trouble(change, value) is None

    def apply(self, value: T, change: T) -> T:
        return self.monoid.combine(value, change)

    def patch(self, value: T, change: T) -> T:
        """The value after the change, with one `combine`: `valid` would have to call it too."""
        try:
            return self.monoid.combine(value, change)
        except Exception as trouble:
            raise self.refusal(change, value) from cause_of(trouble)

    @property
    def has_diff(self) -> bool:
        return self.monoid.is_group

    def diff(self, new: T, old: T) -> T:
        if not self.monoid.is_left_cancellative:
            return super().diff(new, old)
        try:
            change = self.monoid.cancel(old, new)
        except Exception as trouble:
            raise self._unreachable(new, old) from cause_of(trouble)
        if not self.monoid.equal(self.apply(old, change), new):
            raise self._unreachable(new, old)
        return change

    @property
    def nothing(self) -> T:
        return self.monoid.zero

    def is_nothing(self, change: object) -> bool:
        try:
            return bool(self.monoid.is_zero(change))  # type: ignore[arg-type]
        except Exception:
            return False

    def merge(self, first: T, second: T) -> T:
        try:
            return self.monoid.combine(first, second)
        except Exception as trouble:
            raise ChangeError(
                f"{self!r}: {value_text(second)} can never follow {value_text(first)}",
                remedy=self.takes,
            ) from cause_of(trouble)

    def why(self, change: object, value: T) -> Why:
        trouble = self._trouble(change, value)
        reason = "combine(value, change) raised " + (error_text(trouble) if trouble else "nothing")
        return Why(reason, self.takes, {"value": value})

    def _trouble(self, change: object, value: T) -> Exception | None:
        """What `combine` raises. Anything may be thrown at it, so anything may come back."""
        try:
            self.monoid.combine(value, change)  # type: ignore[arg-type]
        except Exception as trouble:
            return trouble
        return None

    def _unreachable(self, new: T, old: T) -> ChangeError:
        return ChangeError(
            f"{self!r}.diff: nothing combined onto the old value gives the new one",
            new=new,
            old=old,
            remedy="values that begin with the old one, a monoid with negate=, or REPLACE",
        )
