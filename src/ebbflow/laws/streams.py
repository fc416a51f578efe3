"""The laws of streams: stream functions, processors, splitters, representations.

An operator is a processor, and owes the laws of processors where its changes are a stream; see
`ebbflow.laws.moves` for when two of its outputs count as the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ebbflow.algebra import product
from ebbflow.errors import CompositionError, canonical, place
from ebbflow.laws.law import Law, alike, fresh, own
from ebbflow.laws.moves import as_stream, of_target
from ebbflow.operator import Operator
from ebbflow.stream import Processor, Representation, Splitter
from ebbflow.stream.generators import singles

PA = {"p": "element", "a": "element"}
PAB = {**PA, "b": "element"}

# ---- stream functions ----

UPDATE_ADDS = Law(
    "UPDATE_ADDS", "new input does not only add to the output", "F(p · a) == F(p) · ΔF(p, a)", PA,
    lambda f, p, a: (f(f.source.combine(p, a)), f.target.combine(f(p), f.delta(p, a))),
    "no processor can take back what it said: use a target in which it can (ZSETS for SET), "
    "or cut the input into strata", of_target,
)  # fmt: skip
UPDATE_EMPTY = Law(
    "UPDATE_EMPTY", "the empty update says something", "ΔF(p, zero) == zero", {"p": "element"},
    lambda f, p: (f.delta(p, f.source.zero), f.target.zero),
    "give zero for the empty change", of_target,
)  # fmt: skip
UPDATE_CUT = Law(
    "UPDATE_CUT", "the update depends on how the input was cut",
    "ΔF(p, a · b) == ΔF(p, a) · ΔF(p · a, b)", PAB,
    lambda f, p, a, b: (
        f.delta(p, f.source.combine(a, b)),
        f.target.combine(f.delta(p, a), f.delta(f.source.combine(p, a), b)),
    ),
    "derive the update instead: by_cancelling or by_idempotence", of_target,
)  # fmt: skip

STREAM_FUNCTION = [UPDATE_ADDS, UPDATE_EMPTY, UPDATE_CUT]

# ---- processors ----


def said(processor: Processor[Any, Any], pieces: Iterable[Any]) -> list[Any]:
    """The outputs of a fresh run, copied: a processor may reuse what it gives out."""
    return [fresh(output) for output in as_stream(processor).run(map(fresh, pieces))]


def total(processor: Processor[Any, Any], pieces: Iterable[Any]) -> Any:
    """All outputs of a fresh run, combined."""
    return as_stream(processor).target.fold(said(processor, pieces))


def _undisturbed(processor: Processor[Any, Any], p: Any, a: Any, b: Any) -> tuple[Any, Any]:
    processor = as_stream(processor)
    alone = said(processor, [p, a])[-1]
    one, other = processor.open(), processor.open()
    one.send(fresh(p))
    for piece in (p, a, b):
        other.send(fresh(piece))
    return one.send(a), alone


def _input_kept(processor: Processor[Any, Any], p: Any, a: Any) -> tuple[Any, Any]:
    live = as_stream(processor).open()
    live.send(fresh(p))
    before = fresh(a)
    live.send(a)
    return own(processor.source)(a, before), True


def _cut(processor: Processor[Any, Any], p: Any, a: Any, b: Any) -> tuple[Any, Any]:
    whole = said(processor, [p, processor.source.combine(a, b)])[-1]
    first, second = said(processor, [p, a, b])[-2:]
    return whole, as_stream(processor).target.combine(first, second)


def _later(processor: Processor[Any, Any], p: Any, a: Any, b: Any) -> tuple[Any, Any]:
    whole = said(processor, [processor.source.combine(p, a), b])[-1]
    return whole, said(processor, [p, a, b])[-1]


def _output_kept(processor: Processor[Any, Any], p: Any, a: Any) -> tuple[Any, Any]:
    if isinstance(processor, Operator):
        state, said_first = processor.step(processor.init(processor.input.empty), p)
        before = fresh(said_first)
        processor.step(state, a)
        return (before, said_first), None
    live = processor.open()
    first, second = live.output, live.send(p)
    before = processor.target.combine(fresh(first), fresh(second))
    live.send(a)
    return processor.target.combine(first, second), before


def said_in_order(processor: Processor[Any, Any], pieces: list[Any], last: Any) -> tuple[Any, Any]:
    """All that is said about some pieces, and what is said about one more."""
    found = said(processor, [*pieces, last])
    return processor.target.fold(found[:-1]), found[-1]


def _put_together(split: Splitter, pieces: list[Any]) -> tuple[Any, Any]:
    """The parts together and the whole; of one that scatters, how often each element is there."""
    source, parts = split.source, total(split, pieces)
    if not split.scatters:
        return source.fold(parts), source.fold(pieces)
    found = [one for part in parts for one in singles(source, part)]
    return (
        Counter(map(canonical, found)),
        Counter(map(canonical, singles(source, source.fold(pieces)))),
    )


REPEATABLE = Law(
    "REPEATABLE", "the same run twice says different things",
    "step(s, a) == step(s, a), in a fresh run", PA,
    lambda f, p, a: (said(f, [p, a])[-1], said(f, [p, a])[-1]),
    "keep what is remembered in the state, not outside it; take out what is random", of_target,
)  # fmt: skip
UNDISTURBED = Law(
    "UNDISTURBED", "one run disturbs another", "runs of one processor share nothing", PAB,
    _undisturbed, "make a new state in start, not one that all runs share", of_target,
)  # fmt: skip
INPUT_KEPT = Law(
    "INPUT_KEPT", "step changes the input it was given", "a after step(s, a) is a", PA,
    _input_kept, "copy the piece before changing it",
)  # fmt: skip
OUTPUT_KEPT = Law(
    "OUTPUT_KEPT", "a later step changes an output that was already given",
    "an output stays what it was", PA, _output_kept,
    "give out a copy, not the state itself", of_target,
)  # fmt: skip
EMPTY_STEP = Law(
    "EMPTY_STEP", "the empty piece makes it say something", "step(s, zero) says zero",
    {"p": "element"},
    lambda f, p: (said(f, [p, f.source.zero])[-1], as_stream(f).target.zero),
    "say nothing for the empty piece; what comes with time needs ticks in the input", of_target,
)  # fmt: skip
CUT = Law(
    "CUT", "the output depends on how the input was cut",
    "step(s, a · b) says step(s, a) · step(s', b)", PAB, _cut,
    "say for a batch exactly what its elements say one by one; elementwise makes this certain",
    of_target,
)  # fmt: skip
CUT_STATE = Law(
    "CUT_STATE", "the state depends on how the input was cut",
    "after p · a and after p, a it says the same for b", PAB, _later,
    "leave the same state for a batch as for its elements one by one", of_target,
)  # fmt: skip
BATCHING = Law(
    "BATCHING", "the whole output depends on the batches",
    "outputs of the pieces, combined == output of the pieces combined", {"pieces": "pieces"},
    lambda f, pieces: (total(f, pieces), as_stream(f)(f.source.fold(pieces))),
    "see CUT and CUT_STATE", of_target,
)  # fmt: skip
LOSES_NOTHING = Law(
    "LOSES_NOTHING", "the parts together are not the input",
    "merge(split(a)) == a, in any pieces", {"pieces": "pieces"},
    lambda f, pieces: _put_together(f, pieces),
    "send every element to exactly one part",
    lambda f: alike if f.scatters else own(f.source),
)  # fmt: skip
STEPS_COMMUTE = Law(
    "STEPS_COMMUTE", "its steps do not commute",
    "a then b says in all what b then a says, and leaves what says the same for c",
    {**PAB, "c": "element"},
    lambda f, p, a, b, c: (said_in_order(f, [p, a, b], c), said_in_order(f, [p, b, a], c)),
    "do not declare it commuting, or say and keep what depends on no order",
    lambda f: own(product(f.target, f.target)),
)  # fmt: skip
PROGRESS = Law(
    "PROGRESS", "it holds back what a tick should let through", "step(s, tick) says a tick",
    {"p": "element"},
    lambda f, p: (said(f, [p, f.source.tick])[-1], f.target.tick),
    "pass the tick on at once", of_target,
)  # fmt: skip
PROGRESS_AT_END = Law(
    "PROGRESS_AT_END", "it waits for the end of its input", "F(a · end) == F(a) · end",
    {"a": "element"},
    lambda f, a: (
        f(f.source.combine(a, (f.source.zero[0], True))),
        f.target.combine(f(a), (f.target.zero[0], True)),
    ),
    "say what is known as soon as it is known; the end may only end the output", of_target,
)  # fmt: skip


def processor_laws(processor: Processor[Any, Any]) -> list[Law]:
    laws = [REPEATABLE, UNDISTURBED, INPUT_KEPT, OUTPUT_KEPT, EMPTY_STEP, CUT, CUT_STATE, BATCHING]
    laws += [LOSES_NOTHING] * isinstance(processor, Splitter)
    return laws + [STEPS_COMMUTE] * processor.commuting


# ---- two processors, a processor and a splitter, a representation ----


@dataclass(frozen=True)
class ProcessorPair:
    """Two processors said to be equivalent: they read the same and write the same."""

    first: Processor[Any, Any]
    second: Processor[Any, Any]

    def __post_init__(self) -> None:
        if (self.first.source, self.first.target) != (self.second.source, self.second.target):
            raise CompositionError(
                f"{self.first!r} reads {self.first.source!r} and writes {self.first.target!r}; "
                f"{self.second!r} reads {self.second.source!r} and writes {self.second.target!r}",
                created=place(),
                remedy="only processors between the same monoids can be equivalent",
            )

    @property
    def source(self) -> Any:
        return self.first.source

    @property
    def target(self) -> Any:
        return self.first.target

    def __repr__(self) -> str:
        return f"{self.first!r} ~ {self.second!r}"


@dataclass(frozen=True)
class Partitioned:
    """A processor and a splitter whose parts it is said to treat independently."""

    processor: Processor[Any, Any]
    split: Splitter

    @property
    def source(self) -> Any:
        return self.split.source

    @property
    def target(self) -> Any:
        return self.processor.target


EQUIVALENT = Law(
    "EQUIVALENT", "the two say different things", "⟦first⟧(pieces) == ⟦second⟧(pieces)",
    {"pieces": "pieces"},
    lambda both, pieces: (total(both.first, pieces), total(both.second, pieces)), "", of_target,
)  # fmt: skip
INDEPENDENT = Law(
    "INDEPENDENT", "the parts are not independent: what they say together is more than each says",
    "σ(part) · σ(part) · ... == σ(all)", {"a": "element"},
    lambda thing, a: (
        thing.target.fold(thing.processor(part) for part in thing.split(a)), thing.processor(a),
    ),
    "split so that whatever the processor brings together lands in the same part", of_target,
)  # fmt: skip
ENCODES = Law(
    "ENCODES", "encoding does not respect the cut", "encode(a · b) == encode(a) · encode(b)",
    {"a": "element", "b": "element"},
    lambda r, a, b: (
        r.encode(r.processor.source.combine(a, b)), r.monoid.combine(r.encode(a), r.encode(b)),
    ),
    "", lambda r: own(r.monoid),
)  # fmt: skip
DECODES = Law(
    "DECODES", "decoding does not give back what was encoded",
    "decode(encode(a))(s) == step(s, a)", PA,
    lambda r, p, a: (_after(r, p, r.decode(r.encode(a))), _after(r, p, r.processor.at(a))),
)  # fmt: skip


def _after(representation: Representation, p: Any, does: Any) -> Any:
    processor = representation.processor
    state, _ = processor.start()
    return does(processor.step(state, p)[0])


REPRESENTATION = [ENCODES, DECODES]
