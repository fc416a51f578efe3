"""The columns of a table, fitted to those of a row type: widened, where nothing is lost.

`int32` becomes `int64`, and a dictionary its values; what would lose something is refused. What is
wrong with a column is told once, not once for each row: what it is, in which row it is first so,
and what to do. A column of the wrong type is wrong as a whole.

A column is *loose* when pandas made it: pandas does not tell NaN from what is missing, and makes
floats of integers where some are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, Literal, get_args, get_origin

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as is_

from ebbflow.engine.runtime.table.arrow import arrow_type
from ebbflow.engine.runtime.table.column_types import VALUE, Column, columns_of
from ebbflow.engine.runtime.table.layout import cast, refused, type_mismatch
from ebbflow.engine.runtime.table.mismatch import row_at, shown
from ebbflow.engine.runtime.table.ranges import exact_floats, has_times, one_form, out_of_range
from ebbflow.engine.runtime.values.hints import rule_of
from ebbflow.engine.runtime.values.rules import IN_RANGE, PARSE
from ebbflow.errors import ChangeError, Text, value_text
from ebbflow.flow.plan import Source
from ebbflow.nan import NAN
from ebbflow.record import fields_of
from ebbflow.state.spine.arrow_decimals import decimals_of, may_overflow

PARSED = frozenset({"int", "float", "bool", "decimal", "date", "time", "instant"})
"""Forms of columns whose values `parse=True` reads from texts."""
_EXACT = 1 << 53
"""Integers up to here are all told apart by floats."""


class WrongColumn(Exception):
    """What is wrong with a column, and in which row `at` first; None where all of it is. `why` is
    what is wrong with the value there."""

    def __init__(self, what: str, remedy: str, at: int | None = None, why: str = "") -> None:
        super().__init__(what)
        self.what, self.remedy, self.at, self.why = what, remedy, at, why or what


def fitted(
    source: Source, table: Any, loose: frozenset[str] = frozenset(),
    some: Sequence[str] | None = None, *, from_user: bool = False,
) -> list[Any]:  # fmt: skip
    """The columns of a row, in their order, or `some` of them; an error that names all that do not
    fit. A table that comes `from_user` may have no NaN in a key: it is what pandas has for a value
    that is missing."""
    arrays, wrong = [], []
    keys = fields_of_key(source) if from_user else ()
    columns = dict(columns_of(source.type))
    for name, column in columns.items() if some is None else ((n, columns[n]) for n in some):
        try:
            arrays.append(fit(source, name, column, table.column(name), name in loose))
            if column.form == "float" and name in keys:
                require_keys(name, arrays[-1])
        except WrongColumn as error:
            wrong.append(error)
    if wrong:
        raise refused_columns(source, table, wrong)
    return arrays


def refused_columns(source: Source, table: Any, wrong: list[WrongColumn]) -> ChangeError:
    """The error for the columns of a table that do not fit. It names all of them."""
    first = wrong[0]
    facts: dict[str, Any] = {}
    if first.at is not None:
        facts["row"] = row_at(table, first.at)
    if wrong[1:]:
        facts["also"] = Text("; ".join(each.what for each in wrong[1:]))
    return refused(source, first.what, **facts, remedy=first.remedy)


def fit(source: Source, name: str, column: Column, array: Any, loose: bool = False) -> Any:
    """A column as one of a row type; a WrongColumn where it is none."""
    if loose and column.form != "float" and array.null_count == len(array):
        array = pa.nulls(len(array))  # floats, for pandas
    if not _castable(array.type, column, loose):
        raise _wrong_type(source, name, array, column)
    if loose and column.form == "float" and not column.optional and is_.is_floating(array.type):
        array = array.fill_null(NAN)
    if array.null_count and not _may_be_null(source, name, column):
        raise WrongColumn(
            f"column {name!r} is null in {_first_of(array.is_null())}, and its hint is {column}",
            f"{column} | None as the hint, where None may be; or leave those rows out",
            array.is_null().index(True).as_py(),
            f"it is missing, and its hint is {column}",
        )
    if column.form == "int" and is_.is_floating(array.type):
        _require_exact(name, array)
    made = _cast(source, name, column, array)
    if has_times(column):
        _require_range(name, column, made)
    choices = choices_of((fields_of(source.type) or {VALUE: source.type})[name])
    if choices:
        _require_chosen(name, made, choices)
    return made


def _may_be_null(source: Source, name: str, column: Column) -> bool:
    if column.form != "any":
        return column.optional
    hint = (fields_of(source.type) or {VALUE: source.type})[name]
    return rule_of(hint).is_canonical(None)


def require_keys(name: str, made: Any) -> None:
    """Refuse NaN in a column that is part of the key."""
    nans = pc.fill_null(pc.is_nan(made), False)
    if pc.any(nans).as_py():
        raise WrongColumn(
            f"column {name!r} is part of the key, and NaN in {_first_of(nans)}",
            "leave those rows out, or give them a key",
            nans.index(True).as_py(),
            "it is part of the key, and NaN",
        )


def _wrong_type(source: Source, name: str, array: Any, column: Column) -> WrongColumn:
    found = str(array.type)
    texts = is_.is_string(array.type) or is_.is_large_string(array.type)
    remedy = cast(source, name, found, column)
    if texts and column.form in PARSED:
        remedy = f"{remedy}; {PARSE}"
    return WrongColumn(type_mismatch(source, name, found, column), remedy)


def _first_of(mask: Any) -> str:
    count, at = pc.sum(mask).as_py(), mask.index(True).as_py()
    return f"row {at}" if count == 1 else f"{count:,} rows, of which row {at} is the first"


def _require_exact(name: str, array: Any) -> None:
    """Floats that pandas made of integers are what these were, up to a point."""
    large = pc.fill_null(pc.greater_equal(pc.abs(array), float(_EXACT)), False)
    if pc.any(large).as_py():
        raise WrongColumn(
            f"column {name!r} has floats of 2**53 and more, which may have been other integers",
            'integers that may be missing: .astype("Int64") before some are',
            large.index(True).as_py(),
        )


def _cast(source: Source, name: str, column: Column, array: Any) -> Any:
    wanted = arrow_type(column)
    if array.type == wanted:
        return one_form(array) if column.form == "float" else array
    if is_.is_dictionary(array.type):
        return _decoded(source, name, column, array)

    def made(some: Any) -> Any:
        if column.form == "decimal" and is_.is_integer(
            some.type
        ):  # Arrow asks for room for any int
            scale = column.digits[1]
            some = some.cast(pa.decimal128(min(20 + scale, 38), scale))
        if column.form == "float":
            return exact_floats(some) if is_.is_integer(some.type) else one_form(some.cast(wanted))
        return decimals_of(some, wanted) if may_overflow(some.type, wanted) else some.cast(wanted)

    try:
        return made(array)
    except pa.ArrowException as error:
        at = first_bad(array, made)
        if at is None:
            raise _wrong_type(source, name, array, column) from error
        raise WrongColumn(
            f"column {name!r}, which is {array.type}, has {shown(array[at])} in row {at}, which is "
            f"no {column}",
            _value_remedy(name, column, array.type),
            at,
            f"{shown(array[at])} is no {column}",
        ) from error


def _decoded(source: Source, name: str, column: Column, array: Any) -> Any:
    """The values of a column that is written with a dictionary of them."""
    wanted = arrow_type(column)
    chunks = array.chunks if isinstance(array, pa.ChunkedArray) else [array]
    made = [_cast(source, name, column, each.dictionary).take(each.indices) for each in chunks]
    return pa.chunked_array(made, wanted)


def _require_range(name: str, column: Column, array: Any) -> None:
    """Refuse times that no row can hold."""
    if not out_of_range(array, column):
        return

    def within(some: Any) -> None:
        if out_of_range(some, column):
            raise pa.ArrowInvalid("out of range")

    at = first_bad(array, within) or 0
    why = f"is outside the years 1 to 9999: {shown(array[at])}"
    raise WrongColumn(f"column {name!r} {why}, in row {at}", IN_RANGE, at, f"it {why}")


def _value_remedy(name: str, column: Column, found: Any) -> str:
    if column.form in ("time", "instant"):
        return f'times of whole microseconds, as in table["{name}"].dt.floor("us")'
    if column.form == "decimal":
        return f"round the values, or Annotated[Decimal, (precision, scale)] for {name!r}"
    if column.form == "int" and is_.is_floating(found):
        return f"round the values, or the hint float for {name!r}"
    return f"another hint for the field {name!r}, or other values"


def first_bad(array: Any, made: Callable[[Any], Any]) -> int | None:
    """Where the first value is of which `made` makes an error, when all are given to it."""
    start, size = 0, len(array)
    while size > 1:
        half = size // 2
        if _fails(array.slice(start, half), made):
            size = half
        else:
            start, size = start + half, size - half
    return start if size and _fails(array.slice(start, 1), made) else None


def all_bad(array: Any, made: Callable[[Any], Any], start: int = 0) -> Iterator[int]:
    """Where all such values are."""
    if not _fails(array, made):
        return
    if len(array) == 1:
        yield start
        return
    half = len(array) // 2
    yield from all_bad(array.slice(0, half), made, start)
    yield from all_bad(array.slice(half), made, start + half)


def _fails(array: Any, made: Callable[[Any], Any]) -> bool:
    try:
        made(array)
    except (pa.ArrowException, WrongColumn):
        return True
    return False


# ---- what a row type says beside the types of its columns ----


@cache
def choices_of(hint: Any) -> tuple[Any, ...]:
    """The values that a field may have, where its hint is a Literal; else none."""
    inside = get_args(hint)
    if get_origin(hint) is Literal:
        return inside
    if len(inside) == 2 and type(None) in inside:
        found = choices_of(next(each for each in inside if each is not type(None)))
        return (*found, None) if found else ()
    return ()


def _require_chosen(name: str, array: Any, allowed: tuple[Any, ...]) -> None:
    others = pc.invert(pc.is_in(array, pa.array(allowed, array.type)))
    if pc.any(others).as_py():
        at = others.index(True).as_py()
        raise WrongColumn(
            f"column {name!r} has {shown(array[at])} in row {at}, which its Literal has not",
            "one of " + ", ".join(value_text(each) for each in allowed),
            at,
            f"{shown(array[at])} is not one of {', '.join(map(value_text, allowed))}",
        )


def fields_of_key(source: Source) -> frozenset[str]:
    """The fields that the key of an input reads; none where that is not known."""
    if source.key is None:
        return frozenset()
    if fields_of(source.type) is None:
        return frozenset([VALUE])
    return source.key.reads[0] or frozenset()


# ---- which type can become which ----


def _castable(found: Any, column: Column, loose: bool) -> bool:
    """Whether a column of this type can be cast, as long as every value fits."""
    if is_.is_dictionary(found):
        found = found.value_type
    if is_.is_null(found):
        return True
    match column.form:
        case "int":
            fits = is_.is_integer(found) or is_.is_boolean(found)
            fits = fits or (loose and is_.is_floating(found))
        case "float":
            fits = is_.is_floating(found) or is_.is_integer(found)
        case "list" | "set":
            fits = _is_list(found) and _castable(found.value_type, column.parts[0][1], loose)
        case "map":
            fits = is_.is_map(found) and all(
                _castable(inner, part, loose)
                for inner, (_, part) in zip(
                    (found.key_type, found.item_type), column.parts, strict=True
                )
            )
        case "record":
            fields = {field.name: field.type for field in found} if is_.is_struct(found) else {}
            fits = fields.keys() == dict(column.parts).keys() and all(
                _castable(fields[name], part, loose) for name, part in column.parts
            )
        case form:
            fits = form in _ALIKE and any(is_it(found) for is_it in _ALIKE[form])
    return bool(fits)


def _is_list(found: Any) -> bool:
    return bool(is_.is_list(found) or is_.is_large_list(found) or is_.is_fixed_size_list(found))


_ALIKE: dict[str, tuple[Callable[[Any], bool], ...]] = {
    "bool": (is_.is_boolean,),
    "text": (is_.is_string, is_.is_large_string, is_.is_string_view),
    "bytes": (is_.is_binary, is_.is_large_binary, is_.is_fixed_size_binary, is_.is_binary_view),
    "date": (is_.is_date,),
    "time": (lambda found: is_.is_timestamp(found) and found.tz is None,),
    "instant": (lambda found: is_.is_timestamp(found) and found.tz is not None,),
    "decimal": (is_.is_decimal, is_.is_integer),
}
