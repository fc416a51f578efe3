"""Monoids, groups, partial orders and Möbius inversion: the ground the rest stands on."""

from ebbflow.algebra.compose import Tensor, dict_of, functions, product, tensor
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
    Basis,
    Homomorphism,
    Monoid,
)

__all__ = [
    "ADD",
    "AND",
    "BYTES",
    "LIST",
    "MAX",
    "MIN",
    "MULTIPLY",
    "OR",
    "SET",
    "STR",
    "TUPLE",
    "Basis",
    "Homomorphism",
    "Monoid",
    "Tensor",
    "dict_of",
    "functions",
    "product",
    "tensor",
]
