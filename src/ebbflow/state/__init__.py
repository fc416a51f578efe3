"""Where the state of operators lives: indexes, cells, and sorted trees."""

from ebbflow.state.cells import ABSENT, Cells
from ebbflow.state.index import Index
from ebbflow.state.tree import Tree

__all__ = ["ABSENT", "Cells", "Index", "Tree"]
