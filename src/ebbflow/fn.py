"""Functions in a program, as values.

Wherever a program asks for a part of a row, a field name, several, or a function will do; all three
become an `Fn`. An Fn knows what it is called, where it was given, and what it is: a *fingerprint*
that is the same in every process as long as the function does the same. Where the function is
simple enough it is also *traced* to an expression over the fields of its rows: then a compiled loop
can have it inline instead of calling it, a rewrite can see which fields it reads, and another
engine can run it natively. A traced function is taken as it is when it is given: a name from
outside that gets another value later keeps the old one in it.

    fn(row)  ==  fn.call(row)  ==  eval(fn.source(bind, "row"))
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from types import FunctionType
from typing import Any

from ebbflow.algebra.value import function_name
from ebbflow.codegen import GeneratedLoop
from ebbflow.errors import CompositionError, Text, place
from ebbflow.expression.callables import accepts, arity_of, frozen, importable, parameters
from ebbflow.expression.computed import ExpressionFunction
from ebbflow.expression.decimals import computes_decimals, with_decimals
from ebbflow.expression.fingerprints import assumed, fingerprint
from ebbflow.expression.identity import Alike, essence
from ebbflow.expression.kept import kept, one_of
from ebbflow.expression.node import (
    Bind,
    Constant,
    Expression,
    GetAttribute,
    Record,
    Tuple,
    field_of,
)
from ebbflow.expression.parts import (
    Always,
    Field,
    Parts,
    Then,
    WritesItself,
    composed,
    limited,
    unknown_field,
)
from ebbflow.expression.schema import schema
from ebbflow.expression.trace import trace
from ebbflow.expression.value import is_plain, is_simple, plain_fields
from ebbflow.record import fields_of

__all__ = ["Bind", "Field", "Fn", "assumed", "fingerprint"]


class Fn:
    """A function of one or more rows, of these types.

    >>> from ebbflow.record import record
    >>> Order = record("Order", city=str, price=int)
    >>> double = Fn.of(lambda o: o.price * 2, Order)
    >>> double(Order("Rome", 7)), double.text, double.reads
    (14, 'price * 2', (frozenset({'price'}),))
    >>> double == Fn.of(lambda order: order.price * 2, Order)
    True
    """

    __slots__ = (
        "_essence",
        "_given",
        "_hash",
        "_shown",
        "call",
        "expression",
        "name",
        "place",
        "types",
    )

    def __init__(self, call: Callable[..., Any], *types: Any, name: str = "") -> None:
        arity = len(types) or arity_of(call)
        found = trace(call, types or (Any,) * arity) if arity else None
        if found is not None:
            found = with_decimals(found, types)
        self._set(call, types, name or function_name(call), found, place())

    def _set(
        self, call: Any, types: Any, name: str, expression: Expression | None, where: Text
    ) -> None:
        self.types: tuple[Any, ...] = tuple(types)
        self.name = name
        self.expression = expression
        self._given = call
        self.call: Callable[..., Any] = call if expression is None else frozen(call)
        if computes_decimals(expression) and type(call) is not ExpressionFunction:
            assert expression is not None
            self.call = ExpressionFunction(expression, len(types) or len(expression.reads()))
        self.place = where
        self._shown = ""
        self._essence: Any = None
        self._hash: int | None = None

    @classmethod
    def _make(
        cls, call: Any, types: Sequence[Any], name: str, expression: Expression | None, shown: str
    ) -> Fn:
        made = cls.__new__(cls)
        made._set(call, types, name, expression, place())
        made._shown = shown
        return made

    # ---- making ----

    @classmethod
    def of(cls, given: Any, *types: Any, arity: int = 1, verb: str = "") -> Fn:
        """A field name, several parts as a tuple, or a function of `arity` rows, as an Fn.

        `verb` is who asks, for the error's sake.

        >>> Fn.of("imag")(3 + 4j), Fn.of(("real", abs))(3 + 4j)
        (4.0, (3.0, 5.0))
        """
        if isinstance(given, Fn):
            return given
        types = (*types, *(Any,) * (arity - len(types)))
        if isinstance(given, str):
            return cls._field(given, types, verb)
        if type(given) in (tuple, list):
            parts = [cls.of(each, *types, arity=arity, verb=verb) for each in given]
            return cls._several(parts, types)
        if not callable(given):
            raise CompositionError(
                f"{_asked(verb, given)}{given!r} is no part of a row",
                created=place(),
                remedy="a field name, several of them in a tuple, or a function of a row",
            )
        if not accepts(given, len(types)):
            raise _wrong_arity(given, len(types), verb)
        return cls(given, *types)

    @classmethod
    def record(cls, row_type: Any, parts: Sequence[Fn]) -> Fn:
        """A row of the NamedTuple `row_type`, whose fields are these functions of the same rows.

        >>> from ebbflow.record import record
        >>> Fn.record(record("Polar", r=float, i=float), [Fn.of(abs), Fn.of("imag")])(3 + 4j)
        Polar(r=5.0, i=4.0)
        """
        fields = getattr(row_type, "_fields", None)
        if fields is None or len(fields) != len(parts):
            raise CompositionError(
                f"a {getattr(row_type, '__name__', row_type)} is not made of {len(parts)} parts",
                **({} if fields is None else {"fields": Text(", ".join(fields))}),
                created=place(),
                remedy="a NamedTuple class, and one function for each of its fields",
            )
        types = max((part.types for part in parts), key=len, default=())
        inside = [part.expression for part in parts]
        found: Expression | None = None
        if is_plain(row_type) and all(each is not None for each in inside):
            made = Record(row_type, tuple(inside))  # type: ignore[arg-type]
            found = limited(with_decimals(made, types))
        shown = f"Fn.record({row_type.__name__}, {list(parts)!r})"
        return cls._make(Parts(row_type, parts), types, row_type.__name__, found, shown)

    @classmethod
    def constant(cls, value: Any, *types: Any) -> Fn:
        """The same value for every row.

        >>> Fn.constant(3)("anything")
        3
        """
        found = Constant(value) if is_simple(value) else None
        return cls._make(Always(value), types, repr(value), found, f"Fn.constant({value!r})")

    @classmethod
    def _field(cls, name: str, types: tuple[Any, ...], verb: str) -> Fn:
        if len(types) != 1:
            raise CompositionError(
                f"{_asked(verb, name)}a field name is a part of one row, not of {len(types)}",
                created=place(),
                remedy=f"a function of {len(types)} rows",
            )
        row_type = types[0]
        fields = fields_of(row_type)
        if fields is not None and name not in fields:
            raise unknown_field(name, row_type.__name__, tuple(fields), verb)
        places = plain_fields(row_type)
        if places is None:
            return cls._make(Field(name), types, name, None, f"Fn({name!r})")
        get = field_of(0, name, places[name], row_type)
        call = Field(name) if isinstance(get, GetAttribute) else itemgetter(get.index)
        return cls._make(call, types, name, get, f"Fn({name!r})")

    @classmethod
    def _several(cls, parts: Sequence[Fn], types: tuple[Any, ...]) -> Fn:
        inside = [part.expression for part in parts]
        found: Expression | None = None
        if all(each is not None for each in inside):
            found = limited(with_decimals(Tuple(tuple(inside)), types))  # type: ignore[arg-type]
        name = ", ".join([part.name for part in parts])
        inner = ", ".join([_inner(part) for part in parts])
        shown = f"Fn(({inner},))" if len(parts) == 1 else f"Fn(({inner}))"
        return cls._make(Parts(tuple, parts), types, f"({name})", found, shown)

    def then(self, after: Fn) -> Fn:
        """`after(self(rows))`, as one function.

        It has an expression when both have, and when together they evaluate what one after the
        other would: nothing that can raise is dropped, repeated, or moved before something else.

        >>> from ebbflow.record import record
        >>> Order = record("Order", city=str, price=int)
        >>> double = Fn.of(lambda o: o.price * 2, Order)
        >>> double.then(Fn.of(lambda x: x > 10, int)).text
        'price * 2 > 10'
        """
        found = None
        if self.expression is not None and after.expression is not None:
            found = composed(self.expression, self.types, after.expression, after.types)
        shown = f"{self!r}.then({after!r})"
        name = f"{after.name}({self.name})"
        return type(self)._make(Then(self, after), self.types, name, found, shown)

    # ---- using ----

    def __call__(self, *rows: Any) -> Any:
        return self.call(*rows)

    @property
    def arity(self) -> int:
        """How many rows it takes."""
        return len(self.types) or arity_of(self.call) or 1

    @property
    def reads(self) -> tuple[frozenset[str] | None, ...]:
        """For each argument the fields it reads; None where that is unknown, or all of them."""
        if self.expression is not None:
            return tuple(self.expression.reads(self.arity))
        if isinstance(self.call, (Always, Field, Parts, Then)):
            return self.call.reads(self.arity)
        return (None,) * self.arity

    def source(self, bind: Bind, *rows: str) -> str:
        """Python text that computes it from the variables `rows`.

        `bind(value)` gives the name of a variable that holds the value.

        >>> Fn(lambda a, b: a + b).source(repr, "x", "y")
        '(x + y)'
        """
        if self.expression is not None:
            return self.expression.source(bind, rows)
        if isinstance(self.call, (Parts, Then)):
            return self.call.source(bind, rows)
        if isinstance(self.call, WritesItself):
            return self.call.written(bind, *rows)
        return f"{bind(self.call)}({', '.join(rows)})"

    def kept(self, bind: Bind, *rows: str, hint: Any = Any) -> str:
        """The same for a result of type `hint` that is kept: with one NaN (see `ebbflow.nan`)."""
        if self.expression is not None:
            return kept(self.expression, self.types, bind, rows, hint)
        if isinstance(self.call, Parts):
            return self.call.kept(bind, rows)
        if isinstance(self.call, (Field, WritesItself)):
            return self.source(bind, *rows)
        return one_of(self.source(bind, *rows), bind, hint)

    def keeping(self, hint: Any = Any) -> Callable[..., Any]:
        """A function that gives what `kept` computes.

        >>> from ebbflow.nan import NAN
        >>> Fn(lambda x: x - x).keeping()(float("inf")) is NAN
        True
        """
        rows = [f"row{i}" for i in range(self.arity)]
        loop = GeneratedLoop("call", ", ".join(rows))
        kept = self.kept(loop.bind, *rows, hint=hint)
        if kept == self.source(loop.bind, *rows):
            return self.call
        loop.write(f"return {kept}")
        return loop.function()

    def of_all(self, hint: Any = Any) -> Callable[[Iterable[Any]], list[Any]]:
        """A function from rows to what `keeping` gives for each, in one loop.

        >>> from ebbflow.record import record
        >>> Order = record("Order", city=str, price=int)
        >>> Fn.of(("price", "city"), Order).of_all()([Order("Rome", 3), Order("Oslo", 4)])
        [(3, 'Rome'), (4, 'Oslo')]
        """
        loop = GeneratedLoop("of_all", "rows")
        loop.write(f"return [{self.kept(loop.bind, 'row', hint=hint)} for row in rows]")
        return loop.function()

    @property
    def is_function(self) -> bool:
        """Whether it was given as a function, and is called as that."""
        return not self._shown

    @property
    def text(self) -> str:
        """How it is shown in a plan: a field, an expression, or the name of a function."""
        if self.expression is None:
            return self.call.text if isinstance(self.call, Parts) else self.name
        return self.expression.text(*parameters(self._given, self.arity))

    @property
    def fingerprint(self) -> str:
        """A digest of what it computes, the same in every process."""
        return fingerprint(self)

    def __identity__(self) -> Any:
        if self.expression is None:
            return self.call, self.types
        used = zip(self.types, self.expression.reads(len(self.types)), strict=False)
        return self.expression, [
            (schema(row_type), _read(row_type, names)) for row_type, names in used
        ]

    # ---- being a value ----

    def __eq__(self, other: object) -> bool:
        if self is other or not isinstance(other, Fn):
            return self is other or NotImplemented
        if hash(self) != hash(other) or self.types != other.types:
            return False
        if self.expression is not None or other.expression is not None:
            return self.expression == other.expression
        if self.call is other.call:
            return True
        return bool(self._meaning() == other._meaning())

    def _meaning(self) -> Any:
        if self._essence is None:
            plain = type(self.call) is FunctionType
            self._essence = essence(self.call) if plain else Alike(self.call)
        return self._essence

    def __hash__(self) -> int:
        if self._hash is None:
            if self.expression is not None:
                inside = hash(self.expression)
            elif type(self.call) is FunctionType:
                inside = hash(self.call.__code__.co_code)
            else:
                inside = hash(Alike(self.call))
            self._hash = hash((Fn, len(self.types), inside))
        return self._hash

    def __repr__(self) -> str:
        return self._shown or f"Fn({self.name})"

    def __reduce__(self) -> tuple[Any, ...]:
        call = self._given if importable(self._given) else self.call
        return _again, (call, self.types, self.name, self.expression, self.place, self._shown)


def _again(
    call: Any, types: Any, name: str, expression: Expression | None, where: Text, shown: str
) -> Fn:
    made = Fn.__new__(Fn)
    made._set(call, types, name, expression, where)
    made._shown = shown
    return made


def _read(row_type: Any, names: frozenset[str] | None) -> Any:
    """The types of what an expression reads of its rows: their methods may do its operations."""
    fields = fields_of(row_type)
    if fields is None:
        return row_type
    return [each for name, each in fields.items() if names is None or name in names]


def _wrong_arity(call: Any, arity: int, verb: str) -> CompositionError:
    rows = "one row" if arity == 1 else f"{arity} rows"
    return CompositionError(
        f"{_asked(verb, function_name(call))}{function_name(call)} cannot be called with {rows}",
        takes=Text(str(inspect.signature(call))),
        created=place(),
        remedy=f"a function of {rows}",
    )


def _inner(part: Fn) -> str:
    """How a part is written inside another Fn."""
    text = repr(part)
    return text if text.startswith("Fn.") or ").then(" in text else text[3:-1]


def _asked(verb: str, given: Any) -> str:
    return f"{verb}({given}): " if verb else ""
