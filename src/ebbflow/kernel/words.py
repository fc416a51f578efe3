"""Values as words of 64 bits, and back.

    int                     itself
    bool                    0 or 1
    float                   its bits; there is one NaN, and one zero
    str                     its number among the texts of the program (`Texts`)
    date                    days since 1970
    datetime                microseconds since 1970, without a zone
    decimal(p, s)           the number of its units of 10**-s (`decimal_words`)
    T | None                the same, and NULL

Equal values have equal words, so rows are equal where their words are. NULL is a word that nothing
else has: the bits of -0.0, which is 0.0 here, and the smallest int, which does not fit.

A `WordForm` says how the values of one field are words (`forms`). What does not fit raises
`DoesNotFit`, before anything has happened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from struct import Struct, pack_into
from struct import error as StructError
from types import NoneType
from typing import Any

import numpy as np

from ebbflow.decimals import of_units
from ebbflow.kernel import DoesNotFit
from ebbflow.kernel.decimal_words import decimals_of_words, units_of, words_of_decimals
from ebbflow.kernel.forms import FORMS, LARGEST, WordForm, form_of, forms_of
from ebbflow.nan import NAN

__all__ = [
    "FORMS", "LARGEST", "NULL", "NumberedTexts", "Texts", "WordForm", "decoded", "encoded",
    "form_of", "forms_of", "int_words", "one_float", "value_of", "word_of",
]  # fmt: skip
NULL = np.iinfo(np.int64).min
_CLASSES: dict[str, set[type]] = {
    "int": {int, bool},
    "bool": {bool},
    "float": {float},
    "text": {str},
    "date": {date},
    "time": {datetime},
    "decimal": {Decimal},
}
_FIRST_DAY = date(1970, 1, 1).toordinal()
_FIRST_TIME = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)
_FLOAT = Struct("<d")
FEW_INTS = 1 << 14
"""So many ints are written at once, which is faster, and needs them once more as arguments."""


class NumberedTexts:
    """Texts with numbers, as they come; `free` are numbers that no text has any more."""

    __slots__ = ("free", "known", "numbers", "seen")

    def __init__(self, known: Sequence[str] = ()) -> None:
        self.seen: dict[Any, Any] = {}
        """What was seen of the texts of each field; see `ebbflow.kernel.arrow_texts`."""
        self.known: list[str] = list(known)
        self.numbers = {text: number for number, text in enumerate(self.known)}
        self.free: list[int] = []

    @property
    def now(self) -> NumberedTexts:
        """These."""
        return self

    def words(self, texts: Iterable[str]) -> list[int]:
        """The number of each text; new ones get one. An interrupt may leave numbers unused, and
        never a text whose number is unknown."""
        texts = texts if isinstance(texts, (list, tuple)) else list(texts)
        numbers, known, free = self.numbers, self.known, self.free
        new = [text for text in dict.fromkeys(texts) if text not in numbers]
        while new and free:
            number, text = free.pop(), new.pop()
            known[number] = text
            numbers[text] = number
        if new:
            first = len(known)
            known += new
            numbers.update(zip(new, range(first, len(known)), strict=True))
        return list(map(numbers.__getitem__, texts))

    def without(self, gone: Sequence[int]) -> NumberedTexts:
        """The same numbers for all texts but some, whose numbers are free then."""
        made = NumberedTexts()
        made.known = self.known.copy()
        made.numbers = self.numbers.copy()
        for number in gone:
            if made.numbers.get(made.known[number]) == number:
                del made.numbers[made.known[number]]
            made.known[number] = ""
        made.free = [*self.free, *gone]
        return made


class Texts:
    """The texts of a program: those it has numbers for `now`.

    When some are forgotten, their numbers are given to others. So whoever keeps words for longer
    than an epoch, and is not asked which, keeps the `now` of its time with them.

    >>> texts = Texts()
    >>> texts.words(["ebb", "flow", "ebb"]), texts.known[1]
    ([0, 1, 0], 'flow')
    >>> before = texts.now
    >>> texts.forget([0]); texts.words(["tide", "flow"])
    [0, 1]
    >>> before.known[0]
    'ebb'
    """

    __slots__ = ("now",)

    def __init__(self) -> None:
        self.now = NumberedTexts()

    @property
    def known(self) -> list[str]:
        """The texts, by number."""
        return self.now.known

    @property
    def numbers(self) -> dict[str, int]:
        """The number of each text."""
        return self.now.numbers

    def words(self, texts: Iterable[str]) -> list[int]:
        """The number of each text; new ones get one."""
        return self.now.words(texts)

    def forget(self, gone: Sequence[int]) -> None:
        """Have no text of these numbers, which others get; for those who kept the `now` of before
        nothing changes."""
        self.now = self.now.without(gone)


def encoded(form: WordForm, values: Sequence[Any], texts: Texts) -> Any:
    """Values as words.

    >>> encoded(WordForm("float"), [1.5, -0.0], Texts()).view(np.float64).tolist()
    [1.5, 0.0]
    """
    classes = set(map(type, values))
    absent = None
    if NoneType in classes:
        if not form.optional:
            raise DoesNotFit(f"None in a field of {form.name}")
        absent = np.array([value is None for value in values])
        values = [_STANDS_IN[form.name] if value is None else value for value in values]
        classes.discard(NoneType)
    if not classes <= _CLASSES[form.name]:
        raise DoesNotFit(f"a {next(iter(classes - _CLASSES[form.name])).__name__} of {form.name}")
    if form.digits is not None:
        words = words_of_decimals(values, form.scale)
    else:
        words = _ENCODE[form.name](values, texts, classes)
    if absent is not None:
        words[absent] = NULL
    return words


def word_of(form: WordForm, texts: Texts) -> Callable[[Any], int]:
    """A function from a value to its word.

    >>> word_of(WordForm("int", optional=True), Texts())(7)
    7
    """

    def any_word(value: Any) -> int:
        return int(encoded(form, [value], texts)[0])

    def int_word(value: Any) -> int:
        return value if type(value) is int and -LARGEST <= value <= LARGEST else any_word(value)

    def text_word(value: Any) -> int:
        number = texts.now.numbers.get(value) if type(value) is str else None
        return any_word(value) if number is None else number

    def float_word(value: Any) -> int:
        if type(value) is not float or value != value:
            return any_word(value)
        return int.from_bytes(_FLOAT.pack(value + 0.0), "little", signed=True)

    def decimal_word(value: Any) -> int:
        return units_of(value, form.scale) if type(value) is Decimal else any_word(value)

    known = {"int": int_word, "text": text_word, "float": float_word, "decimal": decimal_word}
    return known.get(form.name, any_word)


def value_of(form: WordForm, texts: Texts) -> Callable[[int], Any]:
    """A function from a word to its value: the other way round.

    >>> value_of(WordForm("date"), Texts())(1)
    datetime.date(1970, 1, 2)
    """

    def any_value(word: int) -> Any:
        return decoded(form, np.array([word], np.int64), texts)[0]

    def text_value(word: int) -> Any:
        return None if word == NULL else texts.now.known[word]

    def float_value(word: int) -> Any:
        value = _FLOAT.unpack(word.to_bytes(8, "little", signed=True))[0]
        return any_value(word) if word == NULL or value != value else value

    def decimal_value(word: int) -> Any:
        return None if word == NULL else of_units(word, form.scale)

    known = {"text": text_value, "float": float_value, "decimal": decimal_value}
    return known.get(form.name, any_value)


def decoded(form: WordForm, words: Any, texts: Texts) -> list[Any]:
    """The values of words.

    >>> decoded(WordForm("date", optional=True), np.array([0, NULL]), Texts())
    [datetime.date(1970, 1, 1), None]
    """
    if form.optional:
        absent = np.flatnonzero(words == NULL)
        if len(absent):
            words = words.copy()
            words[absent] = 0
            values = decoded(form.required, words, texts)
            for at in absent.tolist():
                values[at] = None
            return values
    if form.digits is not None:
        return decimals_of_words(words.tolist(), form.scale)
    return _DECODE[form.name](words, texts)


def one_float(values: Any) -> Any:
    """Floats as words: there is one NaN, and one zero."""
    values = np.asarray(values + 0.0)
    odd = values != values
    if odd.any():
        values[odd] = NAN
    return values.view(np.int64)


# ---- by form ----


def int_words(values: Sequence[int]) -> Any:
    """Ints as words."""
    try:
        if len(values) <= FEW_INTS:
            words: Any = np.empty(len(values), np.int64)
            pack_into(f"{len(values)}q", words, 0, *values)
        else:
            words = np.fromiter(values, np.int64, len(values))
    except (OverflowError, StructError) as error:
        raise DoesNotFit("an int of more than 64 bits") from error
    if len(words) and words.min() == NULL:
        raise DoesNotFit("the smallest int of 64 bits")
    return words


def _ints(values: Any, texts: Texts, classes: set[type]) -> Any:
    return int_words(values)


def _floats(values: Any, texts: Texts, classes: set[type]) -> Any:
    return one_float(np.array(values, np.float64))


def _texts(values: Any, texts: Texts, classes: set[type]) -> Any:
    return np.array(texts.words(values), np.int64)


def _dates(values: Any, texts: Texts, classes: set[type]) -> Any:
    return np.array([value.toordinal() for value in values], np.int64) - _FIRST_DAY


def _times(values: Any, texts: Texts, classes: set[type]) -> Any:
    if any(value.tzinfo is not None or value.fold for value in values):
        raise DoesNotFit("a time with a zone")
    return np.array([(value - _FIRST_TIME) // _MICROSECOND for value in values], np.int64)


_ENCODE = {
    "int": _ints,
    "bool": _ints,
    "float": _floats,
    "text": _texts,
    "date": _dates,
    "time": _times,
}
_STANDS_IN = {"int": 0, "bool": False, "float": 0.0, "text": "", "date": date.min,
              "time": datetime.min, "decimal": Decimal(0)}  # fmt: skip


def _of_bools(words: Any, texts: Texts) -> list[Any]:
    values: list[Any] = (words != 0).tolist()
    return values


def _of_ints(words: Any, texts: Texts) -> list[Any]:
    values: list[Any] = words.tolist()
    return values


def _of_floats(words: Any, texts: Texts) -> list[Any]:
    values = words.view(np.float64).tolist()
    return [value if value == value else NAN for value in values] if _any_nan(words) else values


def _any_nan(words: Any) -> bool:
    floats = words.view(np.float64)
    return bool((floats != floats).any())


def _of_texts(words: Any, texts: Texts) -> list[Any]:
    known = texts.known
    return [known[word] for word in words.tolist()] if known else [""] * len(words)


def _of_dates(words: Any, texts: Texts) -> list[Any]:
    made = date.fromordinal
    return [made(word) for word in (words + _FIRST_DAY).tolist()]


def _of_times(words: Any, texts: Texts) -> list[Any]:
    values: list[Any] = np.ascontiguousarray(words).view("datetime64[us]").tolist()
    return values


_DECODE = {
    "int": _of_ints,
    "bool": _of_bools,
    "float": _of_floats,
    "text": _of_texts,
    "date": _of_dates,
    "time": _of_times,
}
