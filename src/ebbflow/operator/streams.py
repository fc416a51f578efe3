"""Stream processors as operators, and what that needs of a change structure.

A monoid acts on itself: the value is all of the stream so far, and a change is a piece that comes
onto its end. Read like that, a processor is an operator. It computes what the processor says about
the whole input, it keeps the processor's state, and its steps are the processor's. Over a group
(numbers, Z-sets) a piece may take back what came before: then it is a differential operator like
any other, and can be in a program.

The law of processors is what makes that right: a change cut in two says what it says in one. An
input that has been taken back entirely leaves a state from which nobody can tell that it was there.
"""

from __future__ import annotations

from typing import Any

from ebbflow.algebra import ADD, Monoid, product
from ebbflow.change import NUMBER, ZSET, Both, ChangeStructure, First, Second, group, pair
from ebbflow.errors import CompositionError, place
from ebbflow.operator.operator import Operator
from ebbflow.stream.processor import Processor
from ebbflow.zset import ZSETS

AnyStructure = ChangeStructure[Any, Any]


def structure_of(monoid: Monoid[Any]) -> AnyStructure:
    """The change structure in which a monoid acts on itself.

    >>> from ebbflow.algebra import LIST
    >>> structure_of(product(ZSETS, LIST))
    pair(ZSET, group(LIST))
    """
    if monoid == ZSETS:
        return ZSET
    if monoid == ADD:
        return NUMBER
    sides = _factors(monoid)
    return pair(*map(structure_of, sides)) if len(sides) == 2 else group(monoid)


def fits(structure: AnyStructure, monoid: Monoid[Any]) -> bool:
    """Whether the values of a structure are elements of a monoid, and its changes pieces of it.

    >>> from ebbflow.change import BAG, TEXT
    >>> fits(pair(BAG, ZSET), product(ZSETS, ZSETS)), fits(TEXT, ZSETS)
    (True, False)
    """
    sides, wanted = _sides(structure), _factors(monoid)
    if sides and wanted:
        return len(wanted) == 2 and all(map(fits, sides, wanted))
    return structure.acting_on_itself and structure.monoid == monoid


def _factors(monoid: Monoid[Any]) -> tuple[Any, ...]:
    return monoid.built[1] if monoid.built is not None and monoid.built[0] is product else ()


def _sides(structure: AnyStructure) -> tuple[Any, ...]:
    made = structure.built
    return made[1] if made is not None and made[0] is pair else ()


def _piece(structure: AnyStructure, change: Any) -> Any:
    """A change as a piece of the stream: those of a pair as a tuple."""
    sides = _sides(structure)
    if not sides:
        return change
    first, second = sides
    match change:
        case First(c):
            return _piece(first, c), second.empty
        case Second(d):
            return first.empty, _piece(second, d)
        case Both(c, d):
            return _piece(first, c), _piece(second, d)
    raise structure.stranger(change)


def _change(structure: AnyStructure, piece: Any) -> Any:
    """A piece of the stream as a change; `_piece` undone."""
    sides = _sides(structure)
    return Both(*map(_change, sides, piece)) if sides else piece


class OfProcessor(Operator[Any, Any, Any, Any]):
    """A stream processor as an operator; see `operator_of`."""

    def __init__(
        self, processor: Processor[Any, Any], input: AnyStructure, output: AnyStructure
    ) -> None:
        self.processor = processor
        self.input = input
        self.output = output
        self.created = processor.created
        self._paired = bool(_sides(input)) or bool(_sides(output))

    def f(self, x: Any) -> Any:
        return self.processor(x)

    def init(self, x: Any) -> Any:
        state, _ = self.processor.start()
        return self.processor.step(state, x)[0]

    def step(self, state: Any, change: Any) -> tuple[Any, Any]:
        if not self._paired:
            return self.processor.step(state, change)
        state, said = self.processor.step(state, _piece(self.input, change))
        return state, _change(self.output, said)

    def invariant(self, x: Any, state: Any) -> bool:
        """Equivalent states of a processor need not be equal, and what tells them apart is only
        what is said later; that is another law."""
        return True

    def __repr__(self) -> str:
        return repr(self.processor)


def operator_of(
    processor: Processor[Any, Any],
    *,
    input: AnyStructure | None = None,
    output: AnyStructure | None = None,
) -> Operator[Any, Any, Any, Any]:
    """A stream processor as an operator that computes what it says about the whole input.

    `input` and `output` are the change structures of the two monoids, where those of the monoids
    acting on themselves are too wide: `BAG` for `ZSET`, if no weight is ever negative. An operator
    is given back as it is.

    >>> from ebbflow.stream import join
    >>> from ebbflow.zset import ZSet
    >>> same = operator_of(join(lambda a, b: a == b, ZSETS, ZSETS))
    >>> same.input, same.output
    (pair(ZSET, ZSET), ZSET)
    >>> live = same.open((ZSet.of("ab"), ZSet.of("bc")))
    >>> live.send(First(ZSet({"c": 1, "b": -1})))
    ZSet({('c', 'c'): 1, ('b', 'b'): -1})
    """
    if isinstance(processor, Operator):
        return processor
    ends = []
    for given, monoid, verb in (
        (input, processor.source, "reads"),
        (output, processor.target, "writes"),
    ):
        if given is not None and not fits(given, monoid):
            raise CompositionError(
                f"{processor!r} {verb} {monoid!r}, whose pieces are no changes of {given!r}",
                created=place(),
                remedy=f"{structure_of(monoid)!r}, in which {monoid!r} acts on itself",
            )
        ends.append(structure_of(monoid) if given is None else given)
    return OfProcessor(processor, *ends)
