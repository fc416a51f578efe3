"""Operators on edited text: what the methods of `str` compute, kept up to date edit by edit.

>>> from ebbflow.change import Insert
>>> from ebbflow.operator import text
>>> shout = (text.trim >> text.upper).open("  ebb ")
>>> shout.send(Insert(5, " and flow"))
Insert(at=3, text=' AND FLOW')
"""

from ebbflow.change.rope import Hit, Read, Rope
from ebbflow.operator.text.basic import (
    EDITS,
    TextOperator,
    concat,
    is_empty,
    length,
    trim,
    trim_left,
    trim_right,
)
from ebbflow.operator.text.case import lower, upper
from ebbflow.operator.text.lines import (
    LINES,
    DeleteLines,
    EditLine,
    InsertLines,
    LineChange,
    lines,
    split_lines,
)
from ebbflow.operator.text.parts import ends_with, starts_with, substring, words
from ebbflow.operator.text.search import count, index_of, last_index_of, replace

__all__ = [
    "EDITS", "LINES", "DeleteLines", "EditLine", "Hit", "InsertLines", "LineChange", "Read",
    "Rope", "TextOperator", "concat", "count", "ends_with", "index_of", "is_empty",
    "last_index_of", "length", "lines", "lower", "replace", "split_lines", "starts_with",
    "substring", "trim", "trim_left", "trim_right", "upper", "words",
]  # fmt: skip
