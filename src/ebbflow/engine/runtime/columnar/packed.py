"""The values of groups as bytes, those of one group together, and back: for all groups at once.

`ebbflow.state.packed` says what the bytes are, and reads them for rows. What rows have stored, a
mapping from values to how often they are there or the values in order, is read here as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ebbflow.kernel import DoesNotFit
from ebbflow.kernel.words import NULL, Texts, WordForm, encoded
from ebbflow.reducer.hashed import Map
from ebbflow.state.packed import DECIMAL, FORMS, unpacked
from ebbflow.state.spine.columns import ColumnShape, decode

BYTES = "bytes64"
"""The encoding of the column that they are stored in."""


class GroupValues(NamedTuple):
    """Values of some groups: of which of these groups each is, its words, and how often it is
    there. The values of one group are together, and groups in order."""

    owners: Any
    words: Any
    times: Any


def pack(forms: Sequence[WordForm], values: GroupValues, groups: int, texts: Texts) -> Any:
    """The values of so many groups as a column of bytes.

    >>> values = GroupValues(np.array([0, 0, 2]), np.array([[7], [8], [7]]), np.array([1, 4, 1]))
    >>> column = pack([WordForm("int")], values, 3, Texts())
    >>> [unpacked(each) for each in column.to_pylist()]
    [[((7,), 1), ((8,), 4)], [], [((7,), 1)]]
    """
    owners, words, times = values
    sizes = np.bincount(owners, minlength=groups)
    width = len(forms)
    written = [_encoded(form, words[:, at], texts) for at, form in enumerate(forms)]
    blobs = [blob for _, blob in written if blob is not None]
    before = np.cumsum(sizes) - sizes
    spaces = 2 + width + sizes * (width + 1)
    joined = [b""] * groups
    if blobs:
        for group, (begin, size) in enumerate(zip(before.tolist(), sizes.tolist(), strict=True)):
            joined[group] = b"".join(part for blob in blobs for part in blob[begin : begin + size])
    numbers_of = spaces.copy()
    lengths = np.fromiter(map(len, joined), np.int64, groups)
    spaces += (lengths + 7) // 8
    ends = np.cumsum(spaces)
    starts = ends - spaces
    made = np.zeros(int(ends[-1]) if groups else 0, "<i8")
    made[starts], made[starts + 1] = sizes, width
    for at, form in enumerate(forms):
        made[starts + 2 + at] = _number(form)
    place = np.arange(len(owners)) - before[owners] + starts[owners] + 2 + width
    made[place] = times
    for at, (numbers, _) in enumerate(written):
        made[place + (at + 1) * sizes[owners]] = numbers
    if blobs:
        _put_bytes(made, joined, 8 * (starts + numbers_of))
    offsets = np.concatenate([[0], 8 * ends]).astype(np.int64)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(made)]
    return pa.Array.from_buffers(pa.large_binary(), groups, buffers)


def _number(form: WordForm) -> int:
    """The number that stands for a form."""
    return FORMS.index(form.name) if form.digits is None else DECIMAL + form.scale


def _encoded(form: WordForm, words: Any, texts: Texts) -> tuple[Any, list[bytes] | None]:
    """The numbers of one part, and for texts their bytes."""
    if form.name != "text":
        return words, None
    known = texts.known
    blobs = [
        b"" if word == NULL else known[word].encode("utf-8", "surrogatepass")
        for word in words.tolist()
    ]
    lengths = np.fromiter(map(len, blobs), np.int64, len(blobs))
    return np.where(words == NULL, NULL, lengths), blobs


def _put_bytes(made: Any, joined: Sequence[bytes], places: Any) -> None:
    """Write the texts of each group behind its numbers."""
    raw = made.view(np.uint8)
    for blob, at in zip(joined, places.tolist(), strict=True):
        raw[at : at + len(blob)] = np.frombuffer(blob, np.uint8)


def unpack(
    forms: Sequence[WordForm], column: tuple[str, Any], texts: Texts
) -> GroupValues:  # fmt: skip
    """The values that are stored in a column, of bytes or of what rows have stored.

    >>> texts = Texts()
    >>> stored = [Map({"ebb": 2}), Map({})]
    >>> import pickle
    >>> column = pa.array([pickle.dumps(each) for each in stored], pa.large_binary())
    >>> owners, words, times = unpack([WordForm("text")], ("any", column), texts)
    >>> owners.tolist(), [texts.known[word] for word in words[:, 0]], times.tolist()
    ([0], ['ebb'], [2])
    """
    encoding, array = column
    if encoding not in ("bytes", BYTES):
        return _of_objects(forms, decode(ColumnShape("one", (encoding,)), [array]), texts)
    if not len(array):
        return _of_objects(forms, [], texts)
    if array.null_count:
        raise DoesNotFit("values that have no columns")
    _, offsets, data = array.buffers()
    offset = np.int64 if pa.types.is_large_binary(array.type) else np.int32
    begins = np.frombuffer(offsets, offset)[array.offset : array.offset + len(array) + 1]
    first = int(begins[0])
    words = np.frombuffer(data, "<i8", (int(begins[-1]) - first) // 8, first)
    starts = (begins[:-1].astype(np.int64) - first) // 8
    width = len(forms)
    names = [_number(form) for form in forms]
    if (words[starts + 1] != width).any() or any(
        (words[starts + 2 + at] != name).any() for at, name in enumerate(names)
    ):
        raise DoesNotFit("values that have no columns")
    sizes = words[starts]
    owners = np.repeat(np.arange(len(starts)), sizes)
    before = np.cumsum(sizes) - sizes
    place = np.arange(len(owners)) - before[owners] + starts[owners] + 2 + width
    found = np.empty((len(owners), width), np.int64)
    ends = first + 8 * (starts + 2 + width + sizes * (width + 1))
    raw = memoryview(data)
    for at, form in enumerate(forms):
        numbers = words[place + (at + 1) * sizes[owners]]
        if form.name != "text":
            found[:, at] = numbers
            continue
        lengths = np.where(numbers == NULL, 0, numbers)
        until = np.cumsum(lengths)
        passed = np.concatenate([[0], until])[before]
        begin = until - lengths - passed[owners] + ends[owners]
        pairs = zip(begin.tolist(), (begin + lengths).tolist(), strict=True)
        found[:, at] = texts.words([str(raw[a:b], "utf-8", "surrogatepass") for a, b in pairs])
        found[numbers == NULL, at] = NULL
        ends += np.bincount(owners, lengths, len(starts)).astype(np.int64)
    return GroupValues(owners, found, np.ascontiguousarray(words[place]))


def _of_objects(forms: Sequence[WordForm], stored: Sequence[Any], texts: Texts) -> GroupValues:
    """The values of groups as rows have stored them, or as bytes."""
    owners: list[int] = []
    values: list[Any] = []
    times: list[int] = []
    for owner, each in enumerate(stored):
        if type(each) is bytes:
            pairs: Any = unpacked(each)
        else:
            pairs = [((x,), n) for x, n in each.items()] if isinstance(each, Map) else each
        for value, count in pairs:
            owners.append(owner)
            values.append(value)
            times.append(count)
    columns = zip(*values, strict=True) if values else [()] * len(forms)
    parts = [encoded(form, part, texts) for form, part in zip(forms, columns, strict=True)]
    words = np.stack(parts, axis=1) if values else np.empty((0, len(forms)), np.int64)
    return GroupValues(np.array(owners, np.int64), words, encoded(WordForm("int"), times, texts))
