"""Change structures: what a change to a value is, when it fits, and what it does.

Simple ones are constants (`NUMBER`, `TEXT`, `BAG`, ...); `pair`, `sequence`, `mapping` and `group`
make new ones. `ChangeStructure` opens with the idea and the laws.

>>> document = pair(NUMBER, sequence(TEXT))
>>> document.diff((2, "the cat"), (1, "a cat"))
Both(first=1, second=(Delete(at=0, count=1), Insert(at=0, text='the')))
"""

from ebbflow.change.basic import BAG, BOOL, NATURAL, NUMBER, ZSET
from ebbflow.change.compose import Both, First, PairChange, Second, pair, sequence
from ebbflow.change.mapping import Drop, EntryChange, Patch, Put, mapping
from ebbflow.change.replace import KEEP, REPLACE, Keep, Replace, group
from ebbflow.change.structure import ChangeStructure, Why
from ebbflow.change.text import TEXT, Delete, Edit, Insert

__all__ = [
    "BAG",
    "BOOL",
    "KEEP",
    "NATURAL",
    "NUMBER",
    "REPLACE",
    "TEXT",
    "ZSET",
    "Both",
    "ChangeStructure",
    "Delete",
    "Drop",
    "Edit",
    "EntryChange",
    "First",
    "Insert",
    "Keep",
    "PairChange",
    "Patch",
    "Put",
    "Replace",
    "Second",
    "Why",
    "group",
    "mapping",
    "pair",
    "sequence",
]
