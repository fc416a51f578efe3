"""The words of fields that may never be asked for: they are made when somebody asks, and once."""

from __future__ import annotations

from typing import Any

import numpy as np

from ebbflow.kernel.arrow_words import arrow_words
from ebbflow.kernel.words import NumberedTexts, WordForm


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

    def _at(self, rows: Any) -> Any:
        found = self.given[self.at]
        if isinstance(found, Pending):
            return found.chosen(rows)
        return (found() if callable(found) else found)[rows]
