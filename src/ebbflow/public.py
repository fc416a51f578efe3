"""Objects that users hold: a wrong name or argument gets an error with the right one.

People who come from SQL, pandas or Spark try the names they know: `ef.avg`, `view.subscribe`,
`input.insert`. Python's own error names the class in which a method happens to be written, and no
remedy. A class below `Public` answers a name that it does not have with an `UnknownVerb`, and a
call with other arguments than a method takes with an `UnknownArgument`. Each kind of object has a
table of the names that others use for what it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from types import FunctionType, MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from ebbflow.errors import CompositionError, UnknownVerb, place
from ebbflow.keywords import checked

REDUCERS: dict[str, str] = {
    **{
        each: each
        for each in (
            "approx_count_distinct", "approx_quantile", "arg_max", "arg_min", "bit_xor", "bool_and",
            "bool_or", "collect", "count", "count_distinct", "covariance", "first", "histogram",
            "last", "max", "mean", "median", "min", "mode", "product", "quantile", "rank", "set_of",
            "stddev", "string_agg", "sum", "top_k", "variance", "weighted_mean",
        )
    },
    **dict.fromkeys(("avg", "average"), "mean"),
    **dict.fromkeys(("std", "stdev", "stddev_pop", "stddev_samp", "standard_deviation"), "stddev"),
    **dict.fromkeys(("var", "var_pop", "var_samp"), "variance"),
    **dict.fromkeys(("covar", "cov", "covar_pop", "covar_samp"), "covariance"),
    **dict.fromkeys(("size", "len", "length", "cardinality", "count_star"), "count"),
    **dict.fromkeys(("nunique", "n_unique", "countDistinct", "uniq", "distinct"), "count_distinct"),
    **dict.fromkeys(("approxCountDistinct", "approx_distinct"), "approx_count_distinct"),
    **dict.fromkeys(("approx_percentile", "percentile_approx"), "approx_quantile"),
    **dict.fromkeys(("percentile", "percentile_cont", "quantile_cont"), "quantile"),
    **dict.fromkeys(("argmax", "max_by", "idxmax"), "arg_max"),
    **dict.fromkeys(("argmin", "min_by", "idxmin"), "arg_min"),
    **dict.fromkeys(("collect_list", "array_agg", "list", "to_list", "implode"), "collect"),
    **dict.fromkeys(("collect_set", "set", "unique"), "set_of"),
    **dict.fromkeys(("listagg", "group_concat", "concat_ws", "join_strings"), "string_agg"),
    **dict.fromkeys(("every", "all", "logical_and"), "bool_and"),
    **dict.fromkeys(("any", "some", "logical_or"), "bool_or"),
    **dict.fromkeys(("first_value", "any_value"), "first"),
    **dict.fromkeys(("nlargest", "top", "topk", "largest"), "top_k"),
    **dict.fromkeys(("prod",), "product"),
    "last_value": "last", "nth": "rank", "hist": "histogram", "xor": "bit_xor",
}  # fmt: skip
"""Reducers by the names that others use for them, each with ours."""


def unknown(what: str, name: str, instead: Mapping[str, str], known: Iterable[str]) -> UnknownVerb:
    """Return the error for a name that `what` does not have.

    >>> print(unknown("a view", "subscribe", {"subscribe": "view.on_change(print)"}, []))
    a view has no 'subscribe'
        created    <doctest ebbflow.public.unknown[0]>:1
        try        view.on_change(print)
    """
    known = list(known)
    remedy = instead.get(name, "")
    if not remedy:
        near = get_close_matches(name, known, n=1, cutoff=0.7)
        remedy = near[0] if near else f"one of {', '.join(known)}"
    return UnknownVerb(f"{what} has no {name!r}", created=place(), remedy=remedy)


class Public:
    """The base of what users hold; see the module."""

    __slots__ = ()

    _spoken: ClassVar[str] = ""
    """How an error speaks of the object: "a view"."""
    _instead: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """Names that others use, each with what does the same here."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name, method in list(vars(cls).items()):
            if isinstance(method, FunctionType) and not name.startswith("_"):
                setattr(cls, name, checked(method))

    def _unknown(self, name: str) -> CompositionError:
        """Return the error for a name that this object does not have."""
        known = [each for each in dir(type(self)) if not each.startswith("_")]
        return unknown(self._spoken, name, self._instead, known)

    if not TYPE_CHECKING:  # for a type checker, a wrong name is simply one

        def __getattr__(self, name: str) -> Any:
            if hasattr(type(self), name):  # a property raised an AttributeError: raise it again
                return object.__getattribute__(self, name)
            if name.startswith("_"):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            raise self._unknown(name)
