"""Stream functions and stream processors."""

from ebbflow.hashing import stable_hash
from ebbflow.stream.combine import FanOut, Loop, Parallel, Sequential, loop, parallel, sequential
from ebbflow.stream.function import (
    StreamFunction,
    by_cancelling,
    by_idempotence,
    function_of,
    processor_of,
)
from ebbflow.stream.generators import elementwise
from ebbflow.stream.library import (
    Consequences,
    StratifiedDifference,
    TickedDifference,
    datalog,
    derivative,
    filter_each,
    flat_map_each,
    identity,
    integral,
    join,
    map_each,
    pairs,
    prefix_sum,
    settle,
)
from ebbflow.stream.processor import (
    Processor,
    Pure,
    Running,
    chunks,
    processor,
    pure,
)
from ebbflow.stream.represent import (
    Representation,
    defunctionalise,
    full_adder,
    reduce_in_processes,
    tabulate,
)
from ebbflow.stream.rewrite import (
    decompose,
    evaluate,
    exchange,
    fuse,
    hypotheticals,
    on_first,
    on_output,
    tighten,
)
from ebbflow.stream.split import (
    Commuting,
    Splitter,
    commuting,
    map_reduce,
    merge,
    partition,
    round_robin,
    split_by,
    split_join,
)
from ebbflow.stream.transition import Transition, transition

__all__ = [
    "Commuting", "Consequences", "FanOut", "Loop", "Parallel", "Processor", "Pure",
    "Representation", "Running", "Sequential", "Splitter", "StratifiedDifference",
    "StreamFunction", "TickedDifference", "Transition", "by_cancelling", "by_idempotence",
    "chunks", "commuting", "datalog", "decompose", "defunctionalise", "derivative", "elementwise",
    "evaluate", "exchange", "filter_each", "flat_map_each", "full_adder", "function_of", "fuse",
    "hypotheticals", "identity", "integral", "join", "loop", "map_each", "map_reduce", "merge",
    "on_first", "on_output", "pairs", "parallel", "partition", "prefix_sum", "processor",
    "processor_of", "pure", "reduce_in_processes", "round_robin", "sequential", "settle",
    "split_by", "split_join", "stable_hash", "tabulate", "tighten", "transition",
]  # fmt: skip


def __dir__() -> list[str]:
    """The public names."""
    return sorted(__all__)
