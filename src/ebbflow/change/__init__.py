"""Change structures: what a change to a value is, when it fits, and what it does.

Simple ones are constants (`NUMBER`, `TEXT`, `BAG`, ...); `pair`, `sequence`, `mapping` and `group`
make new ones. `ChangeStructure` opens with the idea and the laws.

>>> document = pair(NUMBER, sequence(TEXT))
>>> document.diff((2, "the cat"), (1, "a cat"))
Both(first=1, second=(Delete(at=0, count=1), Insert(at=0, text='the')))
"""

from ebbflow.change.basic import BAG, BOOL, NATURAL, NUMBER, ZSET
from ebbflow.change.compose import Both, First, PairChange, Second, pair, sequence
from ebbflow.change.edited import List, Text
from ebbflow.change.items import LIST, DeleteItems, InsertItems, ItemChange, ReplaceItem
from ebbflow.change.mapping import Drop, EntryChange, Patch, Put, mapping
from ebbflow.change.replace import KEEP, REPLACE, Keep, Replace, group
from ebbflow.change.structure import ChangeStructure, Why
from ebbflow.change.text import TEXT, Delete, Edit, Insert

__all__ = [
    "BAG", "BOOL", "KEEP", "LIST", "NATURAL", "NUMBER", "REPLACE", "TEXT", "ZSET", "Both",
    "ChangeStructure", "Delete", "DeleteItems", "Drop", "Edit", "EntryChange", "First", "Insert",
    "InsertItems", "ItemChange", "Keep", "List", "PairChange", "Patch", "Put", "Replace",
    "ReplaceItem", "Second", "Text", "Why", "group", "mapping", "pair", "sequence",
]  # fmt: skip


def __dir__() -> list[str]:
    """The public names."""
    return sorted(__all__)
