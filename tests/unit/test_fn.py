"""Functions as values: made, shown, compared, recognised in another process."""

from __future__ import annotations

import functools
import operator
import os
import pickle
import subprocess
import sys
import textwrap
from typing import Any, NamedTuple

import cloudpickle
import pytest

import ebbflow as ef
from ebbflow.errors import CompositionError, UnknownField
from ebbflow.fn import Fn, assumed, fingerprint
from ebbflow.record import record


class Order(NamedTuple):
    id: int
    city: str
    price: int


class Total(NamedTuple):
    city: str
    n: int


ROW = Order(1, "Rome", 10)
RATE = 3


def opaque(o: Any) -> Any:
    return str.upper(o.city)


def rated(o: Any) -> Any:
    return o.price * RATE


def named(value: Any) -> str:
    return getattr(value, "__name__", "v")


# ---- making ----


def test_a_field_of_typed_rows_is_an_element() -> None:
    fn = Fn.of("city", Order)
    assert (fn(ROW), fn.source(named, "row"), fn.text, fn.name) == (
        "Rome",
        "row[1]",
        "city",
        "city",
    )
    assert (fn.reads, fn.types, fn.arity) == ((frozenset({"city"}),), (Order,), 1)
    assert "test_fn.py" in fn.place


def test_a_field_of_untyped_rows_is_looked_up() -> None:
    fn = Fn.of("city")
    assert (fn(ROW), fn({"city": "Oslo"}), fn.expression) == ("Rome", "Oslo", None)
    assert fn.reads == (frozenset({"city"}),)
    with pytest.raises(UnknownField, match="have no field 'ctiy'") as error:
        Fn.of("ctiy")(ROW)
    assert error.value.remedy == "'city'"


def test_an_unknown_field_of_typed_rows_is_an_error_at_the_users_line() -> None:
    with pytest.raises(UnknownField) as error:
        Fn.of("ctiy", Order, verb="group_by")
    lines = str(error.value).splitlines()
    assert lines[0] == "group_by(\"ctiy\"): rows of Order have no field 'ctiy'"
    assert lines[1] == "    fields     id, city, price"
    assert "test_fn.py:" in lines[2]
    assert lines[3] == '    try        group_by("city")'
    with pytest.raises(UnknownField) as error:
        Fn.of("zzz", Order)
    assert error.value.remedy == "a field that the rows have, or a function of a row"


def test_several_parts_are_a_plain_tuple() -> None:
    fn = Fn.of(("city", lambda o: o.price * 2), Order)
    assert (fn(ROW), type(fn(ROW)), fn.text) == (("Rome", 20), tuple, "(city, price * 2)")
    assert Fn.of(["city"], Order)(ROW) == ("Rome",)
    assert Fn.of((), Order)(ROW) == ()
    mixed = Fn.of(("city", opaque), Order)
    assert (mixed(ROW), mixed.text) == (("Rome", "ROME"), "(city, opaque)")
    assert mixed.source(named, "row") == "(row[1], opaque(row))"
    assert mixed.reads == (None,)


def test_an_fn_is_taken_as_it_is() -> None:
    fn = Fn.of("city", Order)
    assert Fn.of(fn, Total) is fn


def test_a_row_of_a_given_type() -> None:
    fn = Fn.record(Total, [Fn.of("city", Order), Fn.of(lambda o: o.price + 1, Order)])
    assert (fn(ROW), type(fn(ROW)), fn.text) == (("Rome", 11), Total, "Total(city, price + 1)")
    part = Fn.record(Total, [Fn.of("city", Order), Fn.of(opaque, Order)])
    assert (part(ROW), part.expression) == (Total("Rome", "ROME"), None)
    assert part.source(named, "r") == "__new__(Total, (r[1], opaque(r)))"
    assert part.text == "Total(city, opaque)"
    with pytest.raises(CompositionError, match="a Total is not made of 1 parts"):
        Fn.record(Total, [Fn.of("city", Order)])


def test_a_row_type_that_checks_its_rows_keeps_doing_so() -> None:
    class Positive(NamedTuple("Positive", [("n", int)])):
        def __new__(cls, n: int) -> Any:
            return super().__new__(cls, abs(n))

    fn = Fn.record(Positive, [Fn.of(lambda o: -o.price, Order)])
    assert (fn(ROW), fn.expression) == ((10,), None)
    assert fn.source(named, "r") == "Positive((-r[2]))"


def test_a_constant() -> None:
    held = [1]
    assert (Fn.constant(3)(ROW), Fn.constant(held)(ROW) is held) == (3, True)
    assert (Fn.constant(3).text, Fn.constant(3).source(named, "r")) == ("3", "3")
    assert Fn.constant(3) == Fn.constant(3) != Fn.constant(3.0)
    assert Fn.constant(held) == Fn.constant(held) != Fn.constant([1])


@pytest.mark.parametrize(
    ("call", "arity"),
    [
        (lambda: 1, 1),
        (lambda a, b: 1, 1),
        (lambda a: 1, 2),
        (lambda a, *, b: 1, 1),
        (functools.partial(lambda a: 1, 2), 1),
        (Order, 1),
    ],
)
def test_a_function_that_cannot_take_the_rows_is_refused(call: Any, arity: int) -> None:
    with pytest.raises(CompositionError, match="cannot be called with") as error:
        Fn.of(call, arity=arity)
    assert "takes" in str(error.value)
    assert "test_fn.py" in str(error.value)


@pytest.mark.parametrize(
    ("call", "arity"),
    [
        (lambda *a: 1, 3),
        (lambda a, b=2: 1, 1),
        (lambda a, b=2: 1, 2),
        (lambda a, *, b=1: 1, 1),
        (max, 1),
        (dict, 1),
        ("x".join, 1),
        (functools.partial(lambda a, b: 1, 2), 1),
    ],
)
def test_a_function_that_can_take_the_rows_is_taken(call: Any, arity: int) -> None:
    assert Fn.of(call, arity=arity).arity == arity


def test_what_is_no_part_of_a_row_is_refused() -> None:
    with pytest.raises(CompositionError, match="3 is no part of a row"):
        Fn.of(3)
    with pytest.raises(CompositionError, match="a field name is a part of one row, not of 2"):
        Fn.of("city", Order, Order, arity=2)


# ---- composing ----


def test_composition_is_traced_where_it_is_exact() -> None:
    total = Fn.of(lambda o: Total(o.city, o.price * 2), Order)
    city, n = Fn.of("city", Total), Fn.of(lambda t: t.n > 3, Total)
    assert total.then(n).text == "price * 2 > 3"
    assert total.then(n)(ROW) is True
    dropped = total.then(city)
    assert (dropped.expression, dropped(ROW)) == (None, "Rome"), "price * 2 may raise"
    assert total.then(Fn.of(lambda t: t.n + t.n, Total)).expression is None
    assert total.then(Fn.of(lambda t: (-t.city, t.n), Total)).expression is None
    assert total.then(Fn.of(lambda t: t.n if t.city else 0, Total)).expression is None
    plain = Fn.of(lambda o: Total(o.city, o.price), Order)
    assert plain.then(Fn.of(lambda t: t.n + t.n, Total)).text == "price + price"
    assert Fn.of(lambda o: o, Order).then(Fn.of("city", Order)).text == "city"
    assert plain.then(Fn.of("city", Order)).expression is None, "of another type"


def test_a_merge_then_a_filter_is_a_function_of_both_sides() -> None:
    merge = Fn.of(lambda order, total: Total(order.city, total.n), Order, Total, arity=2)
    both = merge.then(Fn.of(lambda t: t.n > 3, Total))
    assert (both.text, both.reads) == ("r.n > 3", (frozenset(), frozenset({"n"})))
    assert both.types == (Order, Total)


def test_composition_with_an_opaque_function_calls_it() -> None:
    fn = Fn.of(opaque, Order).then(Fn.of(lambda s: s + "!", str))
    assert (fn(ROW), fn.expression, fn.reads) == ("ROME!", None, (None,))
    assert Fn.of("city", Order).then(Fn.of(str.upper)).source(named, "r") == "upper(r[1])"


# ---- showing ----


def test_the_repr_says_how_it_was_built() -> None:
    assert repr(Fn.of("city", Order)) == "Fn('city')"
    assert repr(Fn.of(("city", opaque), Order)) == "Fn(('city', opaque))"
    assert repr(Fn.of(("city",), Order)) == "Fn(('city',))"
    assert repr(Fn.constant(3)) == "Fn.constant(3)"
    assert repr(Fn(opaque)) == "Fn(opaque)"
    assert "<lambda>" in repr(Fn.of(lambda o: o, Order))
    assert Fn(opaque, name="shout").text == "shout"


# ---- equality ----


def adder(k: Any) -> Any:
    return lambda o: str(o.city).upper() + k


def counter() -> Any:
    n = 0

    def count(o: Any) -> int:
        nonlocal n
        n += 1
        return n

    return count


def test_functions_that_surely_mean_the_same_are_equal() -> None:
    same = [
        (Fn.of("city", Order), Fn.of(lambda o: o.city, Order)),
        (Fn.of(lambda o: o.price * 2, Order), Fn.of(lambda x: x.price * 2, Order)),
        (Fn.of(opaque, Order), Fn.of(opaque, Order)),
        (Fn(lambda o: o.city.upper()), Fn(lambda o: o.city.upper())),
        (Fn(adder("x")), Fn(adder("x"))),
        (Fn.of("city"), Fn.of("city")),
        (Fn.of(("city", opaque)), Fn.of(("city", opaque))),
        (Fn(ROW.count), Fn(ROW.count)),
    ]
    for one, other in same:
        assert one == other
        assert hash(one) == hash(other)


def test_functions_that_may_differ_are_not_equal() -> None:
    different = [
        (Fn.of("city", Order), Fn.of("city", Total)),
        (Fn.of("city", Order), Fn.of("price", Order)),
        (Fn.of(lambda o: o.price * 1, Order), Fn.of(lambda o: o.price * True, Order)),
        (Fn(lambda o: o.city.upper()), Fn(lambda o: o.city.lower())),
        (Fn(lambda o: o.at(1)), Fn(lambda o: o.at(1.0))),
        (Fn(adder("x")), Fn(adder("y"))),
        (Fn(adder([])), Fn(adder([]))),
        (Fn(lambda o, k=1: o.at(k)), Fn(lambda o, k=2: o.at(k))),
        (Fn(lambda o: len(o.at())), Fn(lambda o: max(o.at()))),
        (Fn(counter()), Fn(counter())),
        (Fn(opaque), Fn.of("city")),
    ]
    for one, other in different:
        assert one != other
    assert Fn(opaque) != opaque


# ---- fingerprints ----


def fingerprints_of(source: str, seed: str = "0") -> list[str]:
    """The fingerprints of the functions `f…` in a program of its own."""
    code = (
        "from ebbflow.fn import *\nfrom typing import NamedTuple\nimport functools\n"
        + textwrap.dedent(source)
        + "\nprint(*[fingerprint(v) for k, v in sorted(globals().items()) if k in NAMES])"
    )
    env = {**os.environ, "PYTHONHASHSEED": seed}
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env
    )
    return found.stdout.split()


PROGRAM = """
    NAMES = ["f1", "f2", "f3", "f4", "f5", "f6", "f7", "f8", "f9"]
    class Order(NamedTuple):
        id: int
        city: str
    TABLE = {"b": {1, 2, "x"}, "a": frozenset({"y", "z"})}
    class Scale:
        def __init__(self, by): self.by = by
        def __call__(self, o): return o.id * self.by
        def scaled(self, o): return o.id * self.by
    def even(n): return n == 0 or odd(n - 1)
    def odd(n): return n != 0 and even(n - 1)
    f1 = Fn.of(lambda o: o.id * 2, Order)
    f2 = lambda o: o.city in {"x", "y", "z"} and TABLE.get(o.city)
    f3 = even
    f4 = Scale({"a", "b", "c"})
    f5 = Scale(2).scaled
    f6 = functools.partial(even, 3)
    f7 = Order
    f8 = str.upper
    f9 = Fn.of(("id", even), Order)
"""


def test_fingerprints_are_the_same_in_every_process() -> None:
    first = fingerprints_of(PROGRAM, "1")
    moved = fingerprints_of("\n\n# elsewhere in the file\n" + textwrap.dedent(PROGRAM), "4711")
    assert len(set(first)) == 9
    assert moved == first


def test_a_fingerprint_survives_the_trip_to_a_worker() -> None:
    limit = 4
    fns = [
        Fn.of(lambda o: o.price > limit, Order),
        Fn.of(lambda o: o.city.upper() + str(limit), Order),
        Fn.of(("city", opaque), Order),
        Fn.record(record("Made", a=str), [Fn.of("city", Order)]),
        Fn.of(opaque, Order).then(Fn.of(len)),
    ]
    sent = cloudpickle.dumps(fns).hex()
    path = os.pathsep.join([os.path.dirname(__file__), *filter(None, sys.path)])
    code = (
        "import pickle; fns = pickle.loads(bytes.fromhex(input()));"
        "row = fns[0].types[0](1, 'Rome', 10);"
        "print([(fn.fingerprint, fn(row), fn.text) for fn in fns])"
    )
    found = subprocess.run(
        [sys.executable, "-c", code],
        input=sent,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": "99", "PYTHONPATH": path},
    )
    assert found.stdout.strip() == str([(fn.fingerprint, fn(ROW), fn.text) for fn in fns])


def by_value(function: Any, **scope: Any) -> Any:
    """The same function over other module-level names."""
    return type(function)(function.__code__, {**globals(), **scope}, "f", function.__defaults__)


def test_a_fingerprint_changes_with_everything_the_function_uses() -> None:
    def base(o: Any, k: int = 1) -> Any:
        return [o, k, RATE, helped(o)]  # type: ignore[name-defined] # noqa: F821

    def other(o: Any, k: int = 1) -> Any:
        return [o, k, RATE, helped(o), 1]  # type: ignore[name-defined] # noqa: F821

    def default(o: Any, k: int = 2) -> Any:
        return [o, k, RATE, helped(o)]  # type: ignore[name-defined] # noqa: F821

    one, two = (lambda x: x + 1), (lambda x: x + 2)
    deep = by_value(lambda x: inner(x), inner=one), by_value(lambda x: inner(x), inner=two)  # noqa: F821
    variants = [
        by_value(base, helped=one),
        by_value(base, helped=two),
        by_value(base, helped=deep[0]),
        by_value(base, helped=deep[1]),
        by_value(base, helped=one, RATE=4),
        by_value(base, helped=one, RATE=3.0),
        by_value(other, helped=one),
        by_value(default, helped=one),
        adder("x"),
        adder("y"),
    ]
    assert len({fingerprint(each) for each in variants}) == len(variants)
    again = by_value(base, helped=lambda x: x + 1, unrelated=5, k=7)
    assert fingerprint(again) == fingerprint(variants[0])


def test_the_fingerprint_of_a_traced_function_is_that_of_its_expression() -> None:
    assert Fn.of("city", Order).fingerprint == Fn.of(lambda o: o.city, Order).fingerprint
    assert Fn.of(rated, Order).fingerprint == Fn.of(lambda o: o.price * 3, Order).fingerprint
    assert Fn.of("city", Order).fingerprint != Fn.of("price", Order).fingerprint


def test_reducers_and_row_types_have_fingerprints() -> None:
    values = [ef.sum("price"), ef.sum("id"), ef.count(), ef.max("price"), Order, Total]
    values += [record("Made", a=int), record("Made", a=str), record("Made", b=int), int, list[int]]
    values += [operator.itemgetter(1), operator.itemgetter(2), operator.itemgetter]
    assert len({fingerprint(each) for each in values}) == len(values)
    assert fingerprint(ef.sum("price")) == fingerprint(ef.sum("price"))
    assert not any(assumed(each) for each in values)


def test_what_is_known_by_its_name_only_is_told() -> None:
    endless = (x for x in "ab")
    assert assumed(adder(endless)) == ("k: a generator",)
    assert fingerprint(adder(endless)) == fingerprint(adder(x for x in "cd"))
    assert next(endless) == "a", "taking a fingerprint must not use it up"


def test_a_value_inside_itself_has_a_fingerprint() -> None:
    loop: list[Any] = [1]
    loop.append(loop)
    assert fingerprint(loop) == fingerprint(loop)
    assert fingerprint(loop) != fingerprint([1])


# ---- pickling ----


def test_functions_are_pickled_where_the_callable_allows() -> None:
    for fn in (
        Fn.of("city", Order),
        Fn.of("city"),
        Fn.of(("city", "price"), Order),
        Fn.of(len),
        Fn.constant(3),
        Fn.record(record("Made", a=str), [Fn.of("city", Order)]),
    ):
        back = pickle.loads(pickle.dumps(fn))
        assert (back, repr(back), back.text, back.place) == (fn, repr(fn), fn.text, fn.place)
        assert back.fingerprint == fn.fingerprint
    back = pickle.loads(cloudpickle.dumps(Fn.of(rated, Order)))
    assert (back, back(ROW), back.text) == (Fn.of(rated, Order), 30, "price * 3")


def test_a_rebound_name_keeps_its_value_on_the_way_to_a_worker() -> None:
    limit = 3
    fn = Fn.of(lambda o: o.price > limit, Order)
    limit = 100
    back = pickle.loads(cloudpickle.dumps(fn))
    assert (back.text, back(ROW)) == ("price > 3", True)
