"""Values as tables: as HTML for a notebook, as text for a terminal.

A notebook asks a value for its `_repr_html_`. What it then shows is short, whatever the value is:
of many rows the first few, with the number of all; of a long field its beginning and its end. What
rows hold is text, never HTML, and a value that cannot be shown says so and does not raise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from itertools import islice
from typing import Any, NamedTuple

from ebbflow.errors import CompositionError, cut, error_text, place, shown
from ebbflow.record import attributes_of
from ebbflow.zset import ZSet

ROWS = 20
"""So many rows are shown when nobody says how many."""
WIDTH = 60
"""A field is at most so many characters wide."""
COLUMNS = 30
"""More fields than these are shown as one, the row."""


class Table(NamedTuple):
    """The head and the lines of a table, which columns hold numbers, and a word on all rows."""

    head: tuple[str, ...]
    lines: list[tuple[str, ...]]
    numbers: tuple[bool, ...]
    words: str


def table_of(rows: ZSet[Any], n: int = ROWS) -> Table:
    """The first `n` rows as a table: a column for each field, and one for the weights where one of
    them is not 1. Rows without fields, or of several types, are one column.

    >>> table_of(ZSet({"ebb": 2, "flow": 1, "sea": 1}), 2)
    Table(head=('row', 'weight'), lines=[('ebb', '2'), ('flow', '1')], numbers=(False, True), \
words='2 of 3 rows')
    """
    if type(n) is not int:
        raise CompositionError(
            f"show({shown(n)}): how many rows is an int", created=place(), remedy="show(20)"
        )
    first = list(islice(rows.items(), n if n > 0 else 0))
    names = _fields([row for row, _ in first])
    weighed = any(weight != 1 for _, weight in first)
    head = (*(names or ("row",)), *(("weight",) if weighed else ()))
    values = [
        (
            *((row,) if names is None else [getattr(row, name, None) for name in names]),
            *((weight,) if weighed else ()),
        )
        for row, weight in first
    ]
    columns = zip(*values, strict=True)
    numbers = tuple(all(type(each) in (int, float) for each in column) for column in columns)
    total = f"{len(rows):,} row{'' if len(rows) == 1 else 's'}"
    return Table(
        head if first else (),
        [tuple(map(cell, line)) for line in values],
        numbers,
        total if len(first) == len(rows) else f"{len(first):,} of {total}",
    )


def _fields(rows: Sequence[Any]) -> tuple[str, ...] | None:
    """The fields of all rows; None where they have none, very many, or not the same."""
    classes = {type(row) for row in rows}
    if len(classes) != 1:
        return None
    names = tuple(attributes_of(classes.pop()) or ())
    return names if 0 < len(names) <= COLUMNS else None


def cell(value: Any) -> str:
    """A value in a table: a short text as it is, anything else as its repr, cut where it is long.

    >>> cell("ebb"), cell("two\\nlines"), cell((1, "a"))
    ('ebb', "'two\\\\nlines'", "(1, 'a')")
    """
    if type(value) is str and len(value) <= WIDTH and value.isprintable():
        return value
    return shown(value, width=WIDTH)


# ---- text ----


def text_of(rows: ZSet[Any], n: int = ROWS) -> str:
    """The first rows as a table of text.

    >>> from ebbflow.record import record
    >>> City = record("City", city=str, n=int)
    >>> print(text_of(ZSet.of([City("Rome", 3), City("Oslo", 12)])))
    city   n
    Rome   3
    Oslo  12
    2 rows
    """
    made = table_of(rows, n)
    left = tuple(i for i, number in enumerate(made.numbers) if not number)
    return "\n".join([*(table(made.head, made.lines, left) if made.head else []), made.words])


def table(
    head: tuple[str, ...], lines: Iterable[tuple[str, ...]], left: tuple[int, ...]
) -> list[str]:
    """Lines of a table; the columns numbered in `left` begin at the left.

    >>> table(("", "rows"), [("a", "10"), ("all", "7")], (0,))
    ['     rows', 'a      10', 'all     7']
    """
    rows = [head, *lines]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if i in left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def amount(count: float) -> str:
    """Bytes as people say them.

    >>> amount(900), amount(5_000_000)
    ('900 B', '4.8 MB')
    """
    for unit in ("B", "KB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            break
        count /= 1024
    return f"{count:,.0f} {unit}" if unit == "B" or count >= 10 else f"{count:.1f} {unit}"


# ---- HTML ----


def html_of(rows: ZSet[Any], n: int = ROWS) -> str:
    """The first rows as a table of HTML.

    >>> html_of(ZSet.of(["<b>"]))
    '<table><thead><tr><th>row</th></tr></thead><tbody><tr><td>&lt;b&gt;</td></tr></tbody></table>\
<p>1 row</p>'
    """
    made = table_of(rows, n)
    if not made.head:
        return paragraph(made.words)
    head = "".join(f"<th>{escape(each)}</th>" for each in made.head)
    lines = "".join(f"<tr>{''.join(map(_td, line, made.numbers))}</tr>" for line in made.lines)
    body = f"<thead><tr>{head}</tr></thead><tbody>{lines}</tbody>"
    return f"<table>{body}</table>{paragraph(made.words)}"


def _td(text: str, number: bool) -> str:
    style = ' style="text-align: right"' if number else ""
    return f"<td{style}>{escape(text)}</td>"


def paragraph(text: str) -> str:
    """A line of text.

    >>> paragraph("a < b")
    '<p>a &lt; b</p>'
    """
    return f"<p>{escape(text)}</p>"


def preformatted(text: str) -> str:
    """Lines of text that keep their columns."""
    return f'<pre style="line-height: 1.3; overflow-x: auto">{escape(text)}</pre>'


def folded(title: str, html: str) -> str:
    """HTML that is shown when its title is clicked on."""
    return f"<details><summary>{escape(title)}</summary>{html}</details>"


def page(value: object, parts: Mapping[str, Callable[[], str]]) -> str:
    """What a value is in one line, and below it its parts, each under its title where it has one.
    A part that fails says why.

    >>> page(3, {"half": lambda: paragraph(str(3 / 2)), "part": lambda: paragraph(str(3 / 0))})
    '<p>3</p><p>half</p><p>1.5</p><p>part</p><p>ZeroDivisionError: division by zero</p>'
    """
    found = [paragraph(shown(value, width=1000))]
    for title, make in parts.items():
        found += [paragraph(title)] if title else []
        try:
            found.append(make())
        except Exception as error:
            found.append(paragraph(cut(error_text(error), 1000)))
    return "".join(found)


class Outputs(dict[str, ZSet[Any]]):
    """The Z-set of each output, by name. A notebook shows each of them as a table.

    >>> Outputs(n=ZSet.of([3])), Outputs(n=ZSet.of([3]))._repr_html_()[:20]
    ({'n': ZSet({3: 1})}, '<p>n</p><table><thea')
    """

    __slots__ = ()

    def _repr_html_(self) -> str:
        return "".join(paragraph(name) + html_of(rows) for name, rows in self.items())


class Preformatted:
    """What a notebook shows as its text, with its lines and columns."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        try:
            return preformatted(str(self))
        except Exception as error:
            return paragraph(error_text(error))


class Explained(Preformatted, str):
    """A plan as text.

    >>> Explained("a  <b>"), Explained("a  <b>")._repr_html_()[-18:]
    ('a  <b>', 'a  &lt;b&gt;</pre>')
    """

    __slots__ = ()
