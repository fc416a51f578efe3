"""Monoids, groups, partial orders and Möbius inversion: the ground the rest stands on."""

from ebbflow.algebra.compose import dict_of, functions, product
from ebbflow.algebra.differential import (
    bilinear,
    bilinear_in_sequence,
    differential,
    differential_of_lifted,
    egress,
    feedback,
    ingress,
    loop_differences,
    loop_stream,
)
from ebbflow.algebra.free import (
    During,
    Left,
    Right,
    Tick,
    Ticked,
    free_product,
    terminated,
    ticked,
)
from ebbflow.algebra.mobius import Space, Stream, delta, lift, plain, stream_group, streams, total
from ebbflow.algebra.monoid import (
    ADD,
    AND,
    BYTES,
    LIST,
    MAX,
    MIN,
    MULTIPLY,
    OR,
    SET,
    STR,
    TUPLE,
    XOR,
    Basis,
    Homomorphism,
    Monoid,
)
from ebbflow.algebra.order import (
    NATURALS,
    POWERSETS,
    Order,
    mobius_by_recursion,
    order_product,
)
from ebbflow.algebra.state import state_monoid, table_monoid

__all__ = [
    "ADD", "AND", "BYTES", "LIST", "MAX", "MIN", "MULTIPLY", "NATURALS", "OR", "POWERSETS", "SET",
    "STR", "TUPLE", "XOR", "Basis", "During", "Homomorphism", "Left", "Monoid", "Order", "Right",
    "Space", "Stream", "Tick", "Ticked", "bilinear", "bilinear_in_sequence", "delta", "dict_of",
    "differential", "differential_of_lifted", "egress", "feedback", "free_product", "functions",
    "ingress", "lift", "loop_differences", "loop_stream", "mobius_by_recursion", "order_product",
    "plain", "product", "state_monoid", "stream_group", "streams", "table_monoid", "terminated",
    "ticked", "total",
]  # fmt: skip


def __dir__() -> list[str]:
    """The public names."""
    return sorted(__all__)
