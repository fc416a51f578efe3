"""Arrow columns in types that have kernels.

Arrow has few kernels for its newer layouts: views of texts, bytes and lists, and values that are
encoded by runs. `plain_table` rewrites them in the older layouts, also inside lists, structs and
dictionaries.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as is_

_MARKS = ("_view", "run_end_encoded")


def plain_table(table: Any) -> Any:
    """A table whose columns are all in the older layouts.

    >>> runs = pa.RunEndEncodedArray.from_arrays([2, 3], ["ebb", "sea"])
    >>> plain_table(pa.table({"word": runs, "n": [1, 2, 3]})).to_pydict()
    {'word': ['ebb', 'ebb', 'sea'], 'n': [1, 2, 3]}
    """
    if not any(_is_new(each) for each in table.schema.types):
        return table
    return pa.table({name: plain_column(table.column(name)) for name in table.column_names})


def plain_column(column: Any) -> Any:
    """A column, in chunks or not, in an older layout."""
    if not _is_new(column.type):
        return column
    if isinstance(column, pa.Array):
        return _plain(column)
    chunks = [_plain(each) for each in column.chunks]
    return pa.chunked_array(chunks or [_plain(pa.array([], column.type))])


def _is_new(of: Any) -> bool:
    return any(mark in str(of) for mark in _MARKS)


def _plain(array: Any) -> Any:
    of = array.type
    if not _is_new(of):
        return array
    if is_.is_string_view(of):
        return array.cast(pa.large_string())
    if is_.is_binary_view(of):
        return array.cast(pa.large_binary())
    if is_.is_run_end_encoded(of):
        return _without_runs(array)
    if is_.is_dictionary(of):
        return pa.DictionaryArray.from_arrays(array.indices, _plain(array.dictionary))
    if is_.is_struct(of):
        parts = [_plain(each) for each in array.flatten()]
        names = [field.name for field in of]
        return pa.StructArray.from_arrays(parts, names, mask=array.is_null())
    if is_.is_map(of):  # refused later, as a column that does not fit
        return array
    sizes = np.asarray(pc.fill_null(pc.list_value_length(array), 0), np.int64)
    offsets = pa.array(np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)]))
    inside = _plain(array.flatten())
    return pa.LargeListArray.from_arrays(offsets, inside, mask=array.is_null())


def _without_runs(array: Any) -> Any:
    first, count = array.find_physical_offset(), array.find_physical_length()
    ends = np.asarray(array.run_ends)[first : first + count].astype(np.int64) - array.offset
    sizes = np.diff(np.minimum(ends, len(array)), prepend=0)
    values = _plain(array.values.slice(first, count))
    return values.take(pa.array(np.repeat(np.arange(count), sizes)))
