"""Requests: what is asked to be done to an input, where that is not said by rows with weights.

A change of an input is a ZSet, a mapping from row to weight, or rows to add. With a key more can be
said: put these rows in the place of those that have their keys, take away the rows of these keys,
follow a feed of what happened elsewhere. And of any input: have these rows, and no others. Each of
these is a *request*, a value that stands where a change may stand, so that one epoch can do
anything to several inputs at once:

    view.step(orders=ef.upsert(rows), customers=ef.delete(keys), prices={row: -1})

What a request does depends on the rows that are there, so it is the input that finds out; see
`ebbflow.engine.runtime.events` and `ebbflow.engine.runtime.replaced`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

from ebbflow.errors import ChangeError, shown
from ebbflow.keywords import checked

Order = str | Callable[[Any], Any] | tuple[Any, ...]
"""What says which of two events is the newer one: a field, several, or a function of the row."""
ERROR, IGNORE, LAST = "error", "ignore", "last"


class Request:
    """What is asked to be done to an input; `verb` is the method of the input that does it."""

    verb: ClassVar[str]

    def taking(self, rows: Any) -> Self:
        """The same, to be done with these rows."""
        return replace(self, rows=rows)  # type: ignore[type-var]

    def __repr__(self) -> str:
        found = [(each, getattr(self, each.name)) for each in fields(self)]  # type: ignore[arg-type]
        (_, first), *others = found
        options = [f"{each.name}={shown(x)}" for each, x in others if x is not each.default]
        return f"{self.verb}({', '.join([shown(first), *options])})"


@dataclass(frozen=True, eq=False, repr=False)
class Upsert(Request):
    """See `upsert`."""

    verb = "upsert"
    rows: Any
    delete: Any = ()
    missing: str = ERROR
    duplicates: str = ERROR
    order: Order | None = None
    parse: bool = False


@dataclass(frozen=True, eq=False, repr=False)
class DeleteKeys(Request):
    """See `delete`."""

    verb = "delete"
    rows: Any
    at: Any = None
    missing: str = ERROR
    parse: bool = False


@dataclass(frozen=True, eq=False, repr=False)
class ReplaceRows(Request):
    """See `replace_rows`."""

    verb = "replace"
    rows: Any
    where: Any = None
    parse: bool = False


@dataclass(frozen=True, eq=False, repr=False)
class Feed(Request):
    """See `feed`."""

    verb = "feed"
    rows: Any
    op: str | None = None
    insert: Any = ()
    update: Any = ()
    delete: Any = ()
    order: Order | None = None
    missing: str = ERROR
    parse: bool = False


@dataclass(frozen=True, eq=False, repr=False)
class Forget(Request):
    """See `forget`."""

    verb = "forget"
    before: Any

    def taking(self, rows: Any) -> Self:
        return self


@checked
def upsert(
    rows: Any,
    delete: Any = (),
    *,
    missing: str = ERROR,
    duplicates: str = ERROR,
    order: Order | None = None,
    parse: bool = False,
) -> Upsert:
    """Put rows in, each in the place of the row that has its key, and take away the rows of the
    keys in `delete`. For an input with a key, given to `step`.

    Rows may be a table too, and so may the keys. `missing="ignore"`: a key to delete need not be
    there. Two different rows of one key are refused, unless `duplicates="last"`: then the last one
    counts; or unless there is an `order`, a field or a function of the row: then the newest one
    counts, of equally new ones the last, and none that is older than the row that is there. An
    input with a `sequence` has that order always; see `Input`.

    `parse=True` reads texts that stand for numbers, times and truth values, as `ebbflow.read_csv`
    reads them; without it, a text in such a field is refused. Every request takes it.

    >>> import ebbflow as ef
    >>> from typing import NamedTuple
    >>> class Order(NamedTuple):
    ...     id: int
    ...     price: int
    >>> view = ef.Input("orders", Order, key="id").run()
    >>> view.step(orders=ef.upsert([Order(1, 10), Order(2, 20)]))
    ZSet({Order(id=1, price=10): 1, Order(id=2, price=20): 1})
    >>> view.step(orders=ef.upsert([Order(1, 11), Order(3, 30)], delete=[2]))
    ZSet({Order(id=1, price=10): -1, Order(id=1, price=11): 1, Order(id=3, price=30): 1, Order(id=2, price=20): -1})
    """  # noqa: E501
    require_bool("upsert", "parse", parse)
    _one_of("upsert", "missing", missing, (ERROR, IGNORE))
    _one_of("upsert", "duplicates", duplicates, (ERROR, LAST))
    return Upsert(rows, delete, missing, duplicates, order, parse)


@checked
def delete(keys: Any, *, at: Any = None, missing: str = ERROR, parse: bool = False) -> DeleteKeys:
    """Take away the rows that have these keys; a key of several fields is a tuple. For an input
    with a key, given to `step`.

    `keys` may be a table whose columns are the fields of the key. `missing="ignore"`: a key need
    not be there. For an input with a `sequence`, `at` says when it happened, unless a column of the
    table does: what is older than the row that is there is left out, and rows that come later and
    are older do not bring it back.

    >>> import ebbflow as ef
    >>> view = ef.Input("words", str, key=len).run()
    >>> view.step(words=["ebb", "flow"])
    ZSet({'ebb': 1, 'flow': 1})
    >>> view.step(words=ef.delete([4, 5], missing="ignore"))
    ZSet({'flow': -1})
    """
    require_bool("delete", "parse", parse)
    _one_of("delete", "missing", missing, (ERROR, IGNORE))
    return DeleteKeys(keys, at, missing, parse)


@checked
def replace_rows(
    rows: Any,
    where: Mapping[str, Any] | Callable[[Any], bool] | None = None,
    *,
    parse: bool = False,
) -> Any:
    """Have the input hold exactly these rows; what differs is found, and only that flows. With
    `where`, a mapping from fields to values or a function of the row, only rows of which it is true
    are replaced, a day or a range of keys, and all new rows must be such.

    The difference is that of two bags: diff(new, old) of 004 §3.1. To find it takes a look at every
    row that is there.

    >>> import ebbflow as ef
    >>> view = ef.Input("words", str).run()
    >>> view.step(words=["ebb", "flow", "sea"])
    ZSet({'ebb': 1, 'flow': 1, 'sea': 1})
    >>> view.step(words=ef.replace(["ebb", "tide"]))
    ZSet({'tide': 1, 'flow': -1, 'sea': -1})
    >>> view.step(words=ef.replace(["moon"], where=lambda word: len(word) == 4))
    ZSet({'moon': 1, 'tide': -1})
    """
    require_bool("replace", "parse", parse)
    return ReplaceRows(rows, where, parse)


@checked
def feed(
    rows: Any,
    *,
    op: str | None = None,
    insert: Any = (),
    update: Any = (),
    delete: Any = (),
    order: Order | None = None,
    missing: str = ERROR,
    parse: bool = False,
) -> Feed:
    """Follow a feed of inserts, updates and deletes that happened to a table elsewhere, each with
    the row as it is afterwards. For an input with a key, given to `step`.

    `rows` are dicts or a table, with the columns of a row and one that says what happened to it:
    `_change_type` as in the change feed of a Delta table; `op` with `before` and `after`, or `op`,
    `__op` or `__deleted` beside the row, as Debezium writes them; or any column `op`, with the
    values that say `insert`, `update` and `delete`, one or several each. A delete needs the key
    alone; its other columns may be null.

    Events count in the order of the rows, or in an `order`: a field, a function of the row, or a
    column of the table that is no field, where texts of numbers count as numbers. A table of Spark
    has no order, so it needs one if it has several events of one key. For an input with a
    `sequence`, that is the order.

    >>> import ebbflow as ef
    >>> from typing import NamedTuple
    >>> class Order(NamedTuple):
    ...     id: int
    ...     price: int
    >>> view = ef.Input("orders", Order, key="id").run()
    >>> view.step(orders=ef.feed([{"op": "c", "before": None, "after": {"id": 1, "price": 10}},
    ...                           {"op": "u", "before": None, "after": {"id": 1, "price": 12}}]))
    ZSet({Order(id=1, price=12): 1})
    >>> gone = [{"kind": "D", "id": 1, "price": None}]
    >>> view.step(orders=ef.feed(gone, op="kind", insert="I", update="U", delete="D"))
    ZSet({Order(id=1, price=12): -1})
    """
    require_bool("feed", "parse", parse)
    _one_of("feed", "missing", missing, (ERROR, IGNORE))
    values = _several(insert), _several(update), _several(delete)
    if op is None and any(values):
        raise ChangeError(
            "feed: the values are named, and not the column they are in",
            remedy='feed(rows, op="kind", insert="I", update="U", delete="D")',
        )
    if op is not None and not any(values):
        raise ChangeError(
            f"feed: the column {op!r} is named, and not what its values mean",
            remedy=f'feed(rows, op={op!r}, insert="I", update="U", delete="D")',
        )
    return Feed(rows, op, *values, order, missing, parse)


@checked
def forget(before: Any) -> Forget:
    """Forget when rows were deleted whose `sequence` is less than `before`: no older event will
    come any more. For an input with a `sequence`, given to `step`.

    >>> import ebbflow as ef
    >>> from typing import NamedTuple
    >>> class Order(NamedTuple):
    ...     id: int
    ...     version: int
    >>> view = ef.Input("orders", Order, key="id", sequence="version").run()
    >>> view.step(orders=ef.delete([1], at=7))
    ZSet({})
    >>> view.step(orders=ef.upsert([Order(1, 5)]))
    ZSet({})
    >>> view.step(orders=ef.forget(before=8))
    ZSet({})
    >>> view.step(orders=ef.upsert([Order(1, 5)]))
    ZSet({Order(id=1, version=5): 1})
    """
    return Forget(before)


def _several(given: Any) -> tuple[Any, ...]:
    """One value, or several of them."""
    several = isinstance(given, Iterable) and not isinstance(given, (str, bytes))
    return tuple(given) if several else (given,)


def _one_of(verb: str, option: str, given: Any, known: tuple[str, ...]) -> None:
    if given not in known:
        raise ChangeError(
            f"{verb}: {option} is {' or '.join(map(repr, known))}",
            given=given,
            remedy=f"{option}={known[-1]!r}",
        )


def require_bool(verb: str, option: str, given: Any) -> None:
    """Refuse a value that is neither True nor False for an option."""
    if type(given) is not bool:
        raise ChangeError(
            f"{verb}: {option} is True or False", given=given, remedy=f"{option}=True"
        )
