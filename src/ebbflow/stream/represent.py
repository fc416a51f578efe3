"""Representations: what a piece of input would do, written down as data.

A processor turns a piece of input into a function of its state. Functions are hard to send to
another process and hard to combine ahead of time. Two representations are not:

- *defunctionalised*: the input as a word of codes, one for each kind of behaviour. Small to send.
- *tabulated*: for each of a few states, where it leads and what it says. Tables can be combined
  before the state is known, so a long input can be cut, its parts reduced in several processes at
  once, and the results strung together. That costs no more than one run where the states soon meet.

Encoding and decoding is the identity: `decode(encode(m))` does to the state what `m` does.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from itertools import chain
from os import cpu_count
from typing import TYPE_CHECKING, Any

from ebbflow.algebra import BYTES, LIST, TUPLE, Monoid, table_monoid
from ebbflow.algebra.state import Hypothetical
from ebbflow.errors import AlgebraError, place, value_text
from ebbflow.stream.generators import elementwise
from ebbflow.stream.processor import Processor

if TYPE_CHECKING:
    from concurrent.futures import Executor

BLOCK = 4096


class Representation(ABC):
    """A monoid of data that stands for what inputs do: `encode` (f ; φ), `decode` (ψ)."""

    processor: Processor[Any, Any]
    monoid: Monoid[Any]

    @abstractmethod
    def encode(self, change: Any) -> Any:
        """What `change` would do, as data."""

    @abstractmethod
    def decode(self, code: Any) -> Hypothetical:
        """What data stands for, as a function of the state."""


class Defunctionalised(Representation):
    """Words of codes; see `defunctionalise`."""

    def __init__(self, processor: Processor[Any, Any], alphabet: dict[Any, int]) -> None:
        self.processor = processor
        self.monoid = BYTES if len(alphabet) <= 256 else TUPLE
        self._pack: Any = bytes if len(alphabet) <= 256 else tuple
        self.codes = alphabet
        self.letters = {code: letter for letter, code in reversed(alphabet.items())}

    def __repr__(self) -> str:
        return f"defunctionalise({self.processor!r}, {list(self.codes)!r})"

    def encode(self, change: list[Any]) -> Any:
        try:
            return self._pack(map(self.codes.__getitem__, change))
        except KeyError as unknown:
            raise AlgebraError(
                f"{value_text(unknown.args[0])} is not in the alphabet of {self.processor!r}",
                alphabet=list(self.codes),
                remedy="defunctionalise(processor, alphabet) with every element that can occur",
            ) from None

    def decode(self, code: Any) -> Hypothetical:
        return self.processor.at([self.letters[letter] for letter in code])


def defunctionalise(
    processor: Processor[Any, Any], alphabet: Iterable[Any], *, states: Iterable[Any] = ()
) -> Defunctionalised:
    """Inputs as words over a finite alphabet, one byte a letter where that is enough.

    Given the `states`, letters that do the same in every state share a code.

    >>> adder = defunctionalise(full_adder(), [(0, 0), (0, 1), (1, 0), (1, 1)], states=[0, 1])
    >>> adder.encode([(0, 1), (1, 0), (1, 1)])
    b'\\x01\\x01\\x02'
    >>> adder.decode(b"\\x01\\x01\\x02")(1)
    (1, [0, 0, 1])
    >>> adder
    defunctionalise(full_adder(), [(0, 0), (0, 1), (1, 0), (1, 1)])
    """
    _needs_lists(processor)
    codes: dict[Any, int] = {}
    known: list[tuple[Any, int]] = []
    points = tuple(states)
    for letter in dict.fromkeys(alphabet):
        behaviour = [processor.step(state, [letter]) for state in points]
        code = next((c for b, c in known if points and b == behaviour), len(known))
        if code == len(known):
            known.append((behaviour, code))
        codes[letter] = code
    return Defunctionalised(processor, codes)


class Tabulated(Representation):
    """Tables over a few states; see `tabulate`."""

    def __init__(self, processor: Processor[Any, Any], states: Sequence[Hashable]) -> None:
        self.processor = processor
        self.states = tuple(states)
        self.monoid = table_monoid(self.states, processor.target)

    def __repr__(self) -> str:
        return f"tabulate({self.processor!r}, {list(self.states)!r})"

    def encode(self, change: Any) -> tuple[tuple[Any, Any], ...]:
        return tuple(self.processor.step(state, change) for state in self.states)

    def decode(self, code: tuple[tuple[Any, Any], ...]) -> Hypothetical:
        return dict(zip(self.states, code, strict=True)).__getitem__


def tabulate(processor: Processor[Any, Any], states: Iterable[Hashable]) -> Tabulated:
    """What an input does in each of `states`, worked out in advance. ("The Trick".)

    >>> tabulate(full_adder(), [0, 1]).encode([(0, 1), (0, 0), (1, 1)])
    ((1, [1, 0, 0]), (1, [0, 1, 0]))
    >>> tabulate(full_adder(), [0, 1])
    tabulate(full_adder(), [0, 1])
    """
    table = Tabulated(processor, tuple(states))
    state, _ = processor.start()
    if state not in table.states:
        raise AlgebraError(
            f"tabulate: {processor!r} starts in {value_text(state)}, which is not among the states",
            states=table.states,
            created=place(),
            remedy="list every state the processor can be in",
        )
    return table


def reduce_in_processes(
    processor: Processor[Any, Any],
    change: list[Any],
    *,
    states: Iterable[Hashable],
    alphabet: Iterable[Any] | None = None,
    workers: int | None = None,
    pool: Executor | None = None,
) -> tuple[Any, Any]:
    """`processor` run on a long list, cut into parts that are reduced in several processes at once.

    Equals `processor.step` from the start, state and whole output. Each part is tabulated over
    `states`; given the `alphabet`, it travels as one byte an element.
    """
    _needs_lists(processor)
    table = tabulate(processor, states)
    words = None if alphabet is None else defunctionalise(processor, alphabet, states=table.states)
    count = workers or cpu_count() or 1
    size = -(-len(change) // count) or 1
    parts = [change[i : i + size] for i in range(0, len(change), size)]
    sent = [part if words is None else words.encode(part) for part in parts]
    jobs = [(table, None if words is None else words.letters, part) for part in sent]
    if pool is None:
        from concurrent.futures import ProcessPoolExecutor

        with ProcessPoolExecutor(count) as own:
            tables = list(own.map(_reduce_part, jobs))
    else:
        tables = list(pool.map(_reduce_part, jobs))
    state, output = processor.start()
    said = [[output]]
    for found in tables:
        if state not in found:
            raise _unlisted(processor, state, table.states)
        state, blocks = found[state]
        said.append(blocks)
    return state, _fold(processor.target, list(chain.from_iterable(said)))


def _reduce_part(job: tuple[Tabulated, dict[int, Any] | None, Any]) -> dict[Any, Any]:
    """For each state, where the part leads and what it says, block by block.

    Runs that meet in a state are one run from there on, and share their blocks.
    """
    table, letters, part = job
    step = _step_by_code(table, letters) if letters else table.processor.step
    blocks = [part[i : i + BLOCK] for i in range(0, len(part), BLOCK)]
    runs = {state: (state, list[Any]()) for state in table.states}
    for block in blocks:
        outcome = {state: step(state, block) for state in {now for now, _ in runs.values()}}
        for first, (now, said) in runs.items():
            state, output = outcome[now]
            said.append(output)
            runs[first] = state, said
    return runs


def _step_by_code(table: Tabulated, letters: dict[int, Any]) -> Any:
    """One look-up for each letter: all that a small state and a small alphabet leave to do."""
    step, target = table.processor.step, table.processor.target
    rows = {
        state: [step(state, [letters[code]]) for code in range(len(letters))]
        for state in table.states
    }
    for state in {reached for row in rows.values() for reached, _ in row} - rows.keys():
        raise _unlisted(table.processor, state, table.states)

    def run(state: Any, word: bytes) -> tuple[Any, Any]:
        row = rows[state]
        said = []
        for code in word:
            state, output = row[code]
            row = rows[state]
            said.append(output)
        return state, _fold(target, said)

    return run


def _fold(target: Monoid[Any], outputs: list[Any]) -> Any:
    return list(chain.from_iterable(outputs)) if target is LIST else target.fold(outputs)


def _unlisted(processor: Processor[Any, Any], state: Any, states: Any) -> AlgebraError:
    return AlgebraError(
        f"{processor!r} reaches state {value_text(state)}, which is not among the states",
        states=states,
        remedy="list every state the processor can be in",
    )


def _needs_lists(processor: Processor[Any, Any]) -> None:
    if processor.source != LIST:
        raise AlgebraError(
            f"{processor!r} reads {processor.source!r}; this needs one that reads LIST",
            created=place(),
            remedy="only a list has letters that can be listed and cut anywhere",
        )


def _add_bits(carry: int, bits: tuple[int, int]) -> tuple[int, list[int]]:
    total = carry + bits[0] + bits[1]
    return total >> 1, [total & 1]


def full_adder() -> Processor[list[tuple[int, int]], list[int]]:
    """Adds two binary numbers, least significant bits first; the state is the carry.

    >>> full_adder()([(0, 1), (1, 0), (1, 1), (0, 0)])
    [1, 1, 0, 1]
    """
    return elementwise(_add_bits, state=0, name="full_adder()")
