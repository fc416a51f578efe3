"""Decimals of 128 bits, made of Arrow's texts and of decimals with other digits.

Arrow's own cast brings a number to its scale first, and looks at its size then. A number that has
become larger than 128 bits looks like a smaller one, so the cast gives a wrong number without an
error. `decimals_of` looks at what it made of such numbers again.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as is_

_MOST = 38
"""So many digits always fit into 128 bits."""


def decimals_of(array: Any, wanted: Any) -> Any:
    """The numbers of an array as decimals of a type; an ArrowInvalid if one does not fit.

    >>> decimals_of(pa.array(["1.5", "-20"]), pa.decimal128(12, 2)).to_pylist()
    [Decimal('1.50'), Decimal('-20.00')]
    >>> decimals_of(pa.array(["675830517640746643005476088844"]), pa.decimal128(38, 18))
    Traceback (most recent call last):
    pyarrow.lib.ArrowInvalid: 675830517640746643005476088844 does not fit decimal128(38, 18)
    """
    made = array.cast(wanted)
    if not may_overflow(array.type, wanted):
        return made
    given, found = array, made
    if _is_text(array.type):
        far = _far(array, _MOST - wanted.scale)
        given, found = array.filter(far), made.filter(far)
    for one, other in zip(given.to_pylist(), found.to_pylist(), strict=True):
        if not _equal(one, other):
            raise pa.ArrowInvalid(f"{one} does not fit {wanted}")
    return made


def may_overflow(found: Any, wanted: Any) -> bool:
    """Whether a cast from a type makes decimals, at any depth, of texts, or of decimals that may
    need more than 128 bits at the wanted scale.

    >>> may_overflow(pa.decimal128(12, 2), pa.decimal128(12, 4))
    False
    >>> may_overflow(pa.list_(pa.decimal128(38, 0)), pa.list_(pa.decimal128(38, 18)))
    True
    """
    if wanted is None:
        return False
    if is_.is_decimal128(wanted):
        if is_.is_decimal128(found):
            return bool(found.precision - found.scale + wanted.scale > _MOST)
        return _is_text(found)
    if is_.is_struct(found) and is_.is_struct(wanted):
        parts = {field.name: field.type for field in wanted}
        return any(may_overflow(each.type, parts.get(each.name)) for each in found)
    if is_.is_map(found) and is_.is_map(wanted):
        return may_overflow(found.item_type, wanted.item_type)
    inside = getattr(found, "value_type", None), getattr(wanted, "value_type", None)
    return None not in inside and may_overflow(*inside)


def _far(texts: Any, digits: int) -> Any:
    """Which texts may stand for numbers of more digits before the point, or have an exponent."""
    point = pc.find_substring(texts, ".")
    whole = pc.if_else(pc.less(point, 0), pc.utf8_length(texts), point)
    whole = pc.subtract(whole, pc.starts_with(texts, "-").cast(whole.type))
    exponent = pc.match_substring(texts, "e", ignore_case=True)
    return pc.fill_null(pc.or_(pc.greater(whole, digits), exponent), False)


def _is_text(found: Any) -> bool:
    return bool(is_.is_string(found) or is_.is_large_string(found))


def _equal(given: Any, found: Any) -> bool:
    """Whether a value holds the decimals that were given."""
    if isinstance(found, Decimal):
        return Decimal(given) == found
    if isinstance(found, dict):
        return all(_equal(given[name], each) for name, each in found.items())
    if isinstance(found, (list, tuple)):
        return all(map(_equal, given, found))
    return True
