"""ebbflow keeps derived data up to date while its inputs change.

Values flow in (⊕) and ebb out (⊖); the views stay right. Start with `ZSet`, a collection that can
be added to and taken from; `ebbflow.stream`, programs that read changes; and `ebbflow.laws`, which
tests that yours keep their promises. The parts:

    ebbflow.algebra    monoids, groups, partial orders, Möbius inversion
    ebbflow.change     what a change is: to a bag, a number, a text, a pair, a dict
    ebbflow.stream     stream functions and stream processors
    ebbflow.laws       laws as values, and a checker that prints the smallest counter-example
"""

from ebbflow.errors import EbbflowError, LawBroken
from ebbflow.zset import ZSet, linear

__version__ = "0.1.0"

__all__ = ["EbbflowError", "LawBroken", "ZSet", "__version__", "linear"]
