"""The type variables of classes that say what their rows are: `Collection[Order]`, `View[Order]`.

For a type checker each has a *default*, so a plain `Collection` is `Collection[Any]`, and a verb
whose row type is only found when it runs gives that. Those for what a function takes have the bound
`Any` as well: where nothing tells a checker what the rows are, a lambda may ask them for anything.

`C` is what `step` of a view gives, and `W` the same with a default: where a view has one output,
whose rows are T, it is `ZSet[T]`. Python before 3.13 knows no defaults; at run time there are none,
and nothing looks for them.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    from ebbflow.zset import ZSet

    T = TypeVar("T", bound=Hashable, default=Any)
    U = TypeVar("U", bound=Hashable, default=Any)
    X = TypeVar("X", bound=Hashable, default=Any)
    T_co = TypeVar("T_co", bound=Hashable, covariant=True, default=Any)
    V = TypeVar("V", bound=Any, default=Any)
    V_contra = TypeVar("V_contra", bound=Any, contravariant=True, default=Any)
    A = TypeVar("A", default=Any)
    R = TypeVar("R", default=Any)
    C = TypeVar("C", default=Any)
    W = TypeVar("W", default=ZSet[T])
else:
    from typing import TypeVar

    T, U, X, V, A, R, C, W = map(TypeVar, ("T", "U", "X", "V", "A", "R", "C", "W"))
    T_co = TypeVar("T_co", covariant=True)
    V_contra = TypeVar("V_contra", contravariant=True)
