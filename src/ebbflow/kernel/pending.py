"""The words of fields that may never be asked for: they are made when somebody asks, and once.

What reads only the letters of texts need not ask for their words, which are numbers: it is told
where the texts are in memory (`TextMemory`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ebbflow.kernel.arrow_words import arrow_words
from ebbflow.kernel.words import NumberedTexts, WordForm


class TextMemory(NamedTuple):
    """Where Arrow has texts, none of which is null: the address of the numbers of 32 bits that say
    where each begins and where the last one ends, and that of their bytes. `rows` are those of them
    that are meant, or None, for all, and `size` is how many; `column` gives the Arrow array."""

    starts: int
    texts: int
    size: int
    rows: Any
    column: Callable[[], Any]


class Pending:
    """The words of a field that are made when somebody asks for them by calling it, and once."""

    __slots__ = ("made",)

    made: Any

    def __call__(self) -> Any:
        """The words of all rows."""
        raise NotImplementedError

    def chosen(self, rows: Any) -> Any:
        """The words of some rows."""
        return self()[rows]

    def unnumbered(self) -> tuple[list[str], Any] | None:
        """Of a field of texts that have no numbers yet: the texts, and which of them each row has,
        or None where each has its own. None where their words are at hand, or as soon made."""
        return None

    def in_memory(self) -> list[TextMemory] | None:
        """Of a field of texts that have no numbers yet: where they are, one part after the other.
        None where their words are at hand, or that is not known."""
        return None


class ArrowColumn(Pending):
    """The words of an Arrow column."""

    __slots__ = ("column", "form", "texts")

    def __init__(self, form: WordForm, column: Any, texts: NumberedTexts) -> None:
        self.form, self.column, self.texts, self.made = form, column, texts, None

    def __call__(self) -> Any:
        if self.made is None:
            self.made = arrow_words(self.form, self.column, self.texts)
        return self.made

    def unnumbered(self) -> tuple[list[str], Any] | None:
        if self.made is not None or self.form.name != "text" or self.column.null_count:
            return None
        encoded = self.column.combine_chunks().dictionary_encode()
        if hasattr(encoded, "num_chunks"):
            return None
        return encoded.dictionary.to_pylist(), np.asarray(encoded.indices)

    def in_memory(self) -> list[TextMemory] | None:
        column = self.column
        if self.made is not None or str(column.type) != "string" or column.null_count:
            return None
        return [_memory(part) for part in getattr(column, "chunks", [column]) if len(part)]


def _memory(part: Any) -> TextMemory:
    """Where the texts of an Arrow array are."""
    _, starts, texts = part.buffers()
    begin = 0 if texts is None else texts.address
    return TextMemory(starts.address + 4 * part.offset, begin, len(part), None, lambda: part)


class TakenRows(Pending):
    """Those of some rows of a field that is among `given`."""

    __slots__ = ("at", "given", "rows")

    def __init__(self, given: Any, at: int, rows: Any) -> None:
        self.given, self.at, self.rows, self.made = given, at, rows, None

    def __call__(self) -> Any:
        if self.made is None:
            self.made = self._at(self.rows)
        return self.made

    def chosen(self, rows: Any) -> Any:
        return self._at(self.rows[rows]) if self.made is None else self.made[rows]

    def unnumbered(self) -> tuple[list[str], Any] | None:
        found = self.given[self.at]
        apart = None
        if self.made is None and isinstance(found, Pending):
            apart = found.unnumbered()
        if apart is None:
            return None
        texts, places = apart
        rows = np.arange(len(texts))[self.rows] if places is None else places[self.rows]
        used, places = np.unique(rows, return_inverse=True)
        return [texts[at] for at in used.tolist()], places

    def in_memory(self) -> list[TextMemory] | None:
        found, rows = self.given[self.at], self.rows
        parts = None
        if self.made is None and isinstance(found, Pending):
            parts = found.in_memory()
        if parts is None or len(parts) != 1 or getattr(rows, "dtype", None) != np.int64:
            return None
        (part,) = parts
        rows = rows if part.rows is None else part.rows[rows]
        return [part._replace(rows=rows, size=len(rows))]

    def _at(self, rows: Any) -> Any:
        found = self.given[self.at]
        if isinstance(found, Pending):
            return found.chosen(rows)
        return (found() if callable(found) else found)[rows]
