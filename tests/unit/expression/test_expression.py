"""Expressions: a traced function computes what the function computes."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebbflow.expression import Constant, Expression, Get, Operation, Record, Row, Tuple, trace
from ebbflow.expression.bytecode import Instruction
from ebbflow.expression.trace import Reading
from ebbflow.fn import Fn


class Order(NamedTuple):
    a: Any
    b: Any
    s: Any
    n: Any = None


class Total(NamedTuple):
    s: Any
    t: Any = 3


class Loud(NamedTuple):
    a: int
    b: int

    def __getitem__(self, i: Any) -> Any:
        return "loud"


class Shadow(NamedTuple("Shadow", [("a", int)])):
    @property
    def a(self) -> int:  # type: ignore[override]
        return 7


class Checked(NamedTuple("Checked", [("a", int)])):
    def __new__(cls, a: int) -> Checked:
        return super().__new__(cls, abs(a))


LIMIT = 5
NAMES = ("Rome", "Oslo")
MUTABLE = [1]
calls: list[Any] = []


def helper(x: Any) -> Any:
    calls.append(x)
    return x


def plus(o: Any, more: Any = 1) -> Any:
    return o.a + more


def thrice(o: Any) -> Any:
    return plus(o, 2) * 3


def forever(o: Any) -> Any:
    return forever(o)


def second(one: Any, other: Any) -> Any:
    return other


NAME = "b"


def text(call: Callable[..., Any], *types: Any) -> str | None:
    return Fn.of(call, *types, arity=len(types)).text if trace(call, types) else None


class Bound(dict[str, Any]):
    """What a code generator does: a name for every value."""

    def __call__(self, value: Any) -> str:
        name = f"v{len(self)}"
        self[name] = value
        return name


def compiled(fn: Fn, *rows: str) -> Callable[..., Any]:
    bind = Bound()
    return eval(f"lambda {', '.join(rows)}: {fn.source(bind, *rows)}", bind)  # type: ignore[no-any-return]


def outcome(call: Callable[..., Any], *rows: Any) -> Any:
    try:
        found = call(*rows)
    except Exception as error:
        return type(error)
    return type(found), repr(found)


# ---- what is traced ----


@pytest.mark.parametrize(
    ("call", "shown"),
    [
        (lambda o: o.a, "a"),
        (lambda o: o, "o"),
        (lambda o: o.a * 2 > LIMIT, "a * 2 > 5"),
        (lambda o: (o.a + 1) * -o.b, "(a + 1) * -b"),
        (lambda o: (-o.a) ** 2, "(-a) ** 2"),
        (lambda o: -(o.a**2), "-a ** 2"),
        (lambda o: o.a - (o.b - 1), "a - (b - 1)"),
        (lambda o: (o.a < o.b) == True, "(a < b) == True"),  # noqa: E712
        (lambda o: (o.s, o.a // 2 % 3), "(s, a // 2 % 3)"),
        (lambda o: (o.a,), "(a,)"),
        (lambda o: o[2], "s"),
        (lambda o: o[-1], "n"),
        (lambda o: o.s[:7], "s[:7]"),
        (lambda o: o.s[o.a : o.b + 1], "s[a:b + 1]"),
        (lambda o: o.s[0], "s[0]"),
        (lambda o: o.s in NAMES, "s in ('Rome', 'Oslo')"),
        (lambda o: o.s not in {"x"}, "s not in frozenset({'x'})"),
        (lambda o: o.n is None, "n is None"),
        (lambda o: not o.n, "not n"),
        (lambda o: o.a > 1 and o.b < 2 and o.n, "a > 1 and b < 2 and n"),
        (lambda o: o.a or o.b, "a or b"),
        (lambda o: 1 < o.a <= 5, "1 < a and a <= 5"),
        (lambda o: 1 if o.a and o.b else 2, "1 if a and b else 2"),
        (lambda o: 1 if o.n is None else o.n, "1 if n is None else n"),
        (lambda o: Total(o.s, o.a * 2), "Total(s, a * 2)"),
        (lambda o: Total(t=o.a * 2, s=o.s), "Total(s, a * 2)"),
        (lambda o: Total(o.s), "Total(s, 3)"),
        (lambda o: o.s.real, "s.real"),
        (lambda o: len(o.s) + max(o.a, 1), "len(s) + max(a, 1)"),
        (lambda o, k=4: o.a + k, "a + 4"),
        (operator.attrgetter("a"), "a"),
        (operator.attrgetter("a", "s"), "(a, s)"),
        (operator.attrgetter("a.real"), "a.real"),
        (operator.itemgetter(2), "s"),
        (operator.itemgetter(0, -1), "(a, n)"),
        (lambda o: getattr(o, NAME) + o.a, "b + a"),
        (lambda o: plus(o) > 3, "a + 1 > 3"),
        (lambda o: plus(o, o.b) if thrice(o) else 0, "a + b if (a + 2) * 3 else 0"),
        (lambda o: second(o.a, o.b), "b"),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_simple_functions_are_traced_and_shown(call: Any, shown: str) -> None:
    assert text(call, Order) == shown


def test_two_rows_are_shown_with_their_names() -> None:
    assert text(lambda left, right: left.a > right.t, Order, Total) == "left.a > right.t"


def test_rows_that_are_not_tuples_can_be_computed_with() -> None:
    assert text(lambda x: x * 2, int) == "x * 2"
    assert text(lambda x: x.real, int) is None


def local(o: Any) -> Any:
    value = o.a
    value += 1
    return value


@pytest.mark.parametrize(
    "call",
    [
        lambda o: helper(o.a),
        lambda o: second(1 / o.a, o.b),
        lambda o: plus(o, more=2),
        lambda o: getattr(o, o.s),
        lambda o: getattr(o, NAME, 0),
        forever,
        lambda o: o.s.upper(),
        lambda o: o.nothing,
        lambda o: MUTABLE[0] + o.a,
        lambda o: unknown_name,  # type: ignore[name-defined] # noqa: F821
        lambda o: f"{o.a}",
        lambda o: [o.a],
        lambda o: {o.a},
        lambda o: [x + 1 for x in o.s],
        lambda o: (yield o.a),
        lambda o: o.a is o.b,
        lambda *rows: rows[0],
        lambda o: (lambda: o.a)(),
        lambda o: Checked(o.a),
        lambda o: Total(o.s, o.a, o.b),  # type: ignore[call-arg]
        lambda o: Total(t=o.a),  # type: ignore[call-arg]
        lambda o: Total(t=1 / o.a, s=o.b + 1),
        lambda o: (1 / o.a, 1 if o.b else 2),
        lambda o: 1 < o.a + 1 < 5,
        helper,
        local,
        print,
        int,
    ],
)
def test_anything_else_is_not_traced_and_does_not_run(call: Any) -> None:
    calls.clear()
    assert trace(call, [Order]) is None
    assert calls == []


@pytest.mark.parametrize("kind", [Loud, Shadow])
def test_a_row_type_with_accessors_of_its_own_is_not_traced(kind: Any) -> None:
    assert trace(lambda o: o.a, [kind]) is None
    assert Fn.of("a", kind)(kind(*range(len(kind._fields)))) in (0, 7)


def test_a_rebound_name_keeps_the_value_it_had() -> None:
    limit = 3
    fn = Fn.of(lambda o: o.a > limit, Order)
    limit = 100
    row = Order(5, 0, "", None)
    assert (fn(row), compiled(fn, "row")(row), fn.text) == (True, True, "a > 3")


# ---- what other versions of Python compile it to ----

VERSIONS = {
    "3.12: Total(o.a, t=o.b[:2]) and kw names": (
        [
            ("LOAD_GLOBAL", 1, "Total", "NULL + Total"),
            ("LOAD_FAST", 0, "o", "o"),
            ("LOAD_ATTR", 0, "a", "a"),
            ("LOAD_FAST", 0, "o", "o"),
            ("LOAD_ATTR", 2, "b", "b"),
            ("LOAD_CONST", 0, None, "None"),
            ("LOAD_CONST", 1, 2, "2"),
            ("BINARY_SLICE", None, None, ""),
            ("KW_NAMES", 2, ("t",), "('t',)"),
            ("CALL", 2, 2, ""),
            ("RETURN_VALUE", None, None, ""),
        ],
        "Total(a, b[:2])",
    ),
    "3.13: o.a and o.b": (
        [
            ("LOAD_FAST", 0, "o", "o"),
            ("LOAD_ATTR", 0, "a", "a"),
            ("COPY", 1, 1, ""),
            ("TO_BOOL", None, None, ""),
            ("POP_JUMP_IF_FALSE", 3, 16, "to L1"),
            ("POP_TOP", None, None, ""),
            ("LOAD_FAST", 0, "o", "o"),
            ("LOAD_ATTR", 2, "b", "b"),
            ("RETURN_VALUE", None, None, ""),
        ],
        "a and b",
    ),
    "3.13: a comparison of two names, called with keywords": (
        [
            ("LOAD_GLOBAL", 1, "Total", "Total + NULL"),
            ("LOAD_FAST_LOAD_FAST", 0, ("o", "o"), "o, o"),
            ("COMPARE_OP", 72, "==", "=="),
            ("LOAD_CONST", 1, 1, "1"),
            ("LOAD_CONST", 2, ("t",), "('t',)"),
            ("CALL_KW", 2, 2, ""),
            ("RETURN_VALUE", None, None, ""),
        ],
        "Total(o == o, 1)",
    ),
    "3.13: not not o.a": (
        [
            ("LOAD_FAST", 0, "o", "o"),
            ("LOAD_ATTR", 0, "a", "a"),
            ("TO_BOOL", None, None, ""),
            ("RETURN_VALUE", None, None, ""),
        ],
        "bool(a)",
    ),
    "3.13: not not o.a < 1": (
        [
            ("LOAD_FAST", 0, "o", "o"),
            ("LOAD_ATTR", 0, "a", "a"),
            ("LOAD_CONST", 1, 1, "1"),
            ("COMPARE_OP", 18, "<", "bool(<)"),
            ("RETURN_VALUE", None, None, ""),
        ],
        "bool(a < 1)",
    ),
    "3.14: o.s[0] if o.a > 3 else 7": (
        [
            ("LOAD_FAST_BORROW", 0, "o", "o"),
            ("LOAD_ATTR", 0, "a", "a"),
            ("LOAD_SMALL_INT", 3, 3, ""),
            ("COMPARE_OP", 148, ">", "bool(>)"),
            ("POP_JUMP_IF_FALSE", 3, 24, "to L1"),
            ("NOT_TAKEN", None, None, ""),
            ("LOAD_FAST_BORROW", 0, "o", "o"),
            ("LOAD_ATTR", 2, "s", "s"),
            ("LOAD_SMALL_INT", 0, 0, ""),
            ("BINARY_OP", 26, 26, "[]"),
            ("RETURN_VALUE", None, None, ""),
            ("NOP", None, None, ""),
            ("LOAD_SMALL_INT", 7, 7, ""),
            ("RETURN_VALUE", None, None, ""),
        ],
        "s[0] if a > 3 else 7",
    ),
    "3.14: a slice that is a constant": (
        [
            ("LOAD_FAST_BORROW", 0, "o", "o"),
            ("LOAD_ATTR", 0, "s", "s"),
            ("LOAD_CONST", 0, slice(None, 7), "slice(None, 7, None)"),
            ("BINARY_OP", 26, 26, "[]"),
            ("RETURN_VALUE", None, None, ""),
        ],
        "s[:7]",
    ),
    "3.12: o.s.upper()": (
        [
            ("LOAD_FAST", 0, "o", "o"),
            ("LOAD_ATTR", 0, "s", "s"),
            ("LOAD_ATTR", 3, "upper", "NULL|self + upper"),
            ("CALL", 0, 0, ""),
            ("RETURN_VALUE", None, None, ""),
        ],
        None,
    ),
    "an instruction of the future": (
        [("LOAD_FAST", 0, "o", "o"), ("TELEPORT", 0, 0, ""), ("RETURN_VALUE", None, None, "")],
        None,
    ),
}


@pytest.mark.parametrize("version", VERSIONS)
def test_the_bytecode_of_other_versions_is_read_too(version: str) -> None:
    listing, shown = VERSIONS[version]
    steps = [Instruction(2 * i, *each) for i, each in enumerate(listing)]
    reading = Reading(steps, {"o": Row(0)}, [Order], {"Total": Total})
    if shown is None:
        with pytest.raises(Exception):  # noqa: B017
            reading.whole()
    else:
        assert reading.whole().text("o") == shown


# ---- the same results and the same exceptions ----

NUMBERS = [0, 1, -1, 2, 5, True, False, 0.0, -0.0, 1.5, -2.5, float("inf"), float("nan"), 10**30]
OTHERS = [None, "", "a", "ab", "5", b"x", (1,), (1, "a")]
VALUES = st.sampled_from([*NUMBERS, *OTHERS])
ORDERS = st.builds(Order, VALUES, VALUES, VALUES, VALUES)
PARTS = ["o.a", "o.b", "o.s", "o.n", "o", "o[1]", "K", "T"]
LITERALS = ["0", "1", "-1", "2.5", "'a'", "None", "True", "(1, 2)", "1e308", "b'x'", "9" * 25]
LEAVES = st.sampled_from([*PARTS, *LITERALS])
POWERS = st.sampled_from(["2", "-1", "0.5", "K"])


def bigger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    binary = ["+", "-", "*", "/", "//", "%", "&", "|", "^", "==", "!=", "<", "<=", ">", ">="]
    binary += ["and", "or", "in", "not in"]
    two = st.tuples(inner, st.sampled_from(binary), inner)
    three = st.tuples(inner, inner, inner)
    return st.one_of(
        two.map(lambda t: f"({t[0]}) {t[1]} ({t[2]})"),
        st.tuples(st.sampled_from(["o.a", "o.b", "3"]), POWERS).map(lambda t: f"{t[0]} ** {t[1]}"),
        inner.map(lambda x: f"({x}) << 2"),
        inner.map(lambda x: f"-({x})"),
        inner.map(lambda x: f"~({x})"),
        inner.map(lambda x: f"+({x})"),
        inner.map(lambda x: f"not ({x})"),
        inner.map(lambda x: f"({x}) is None"),
        inner.map(lambda x: f"len({x})"),
        inner.map(lambda x: f"({x}).real"),
        st.tuples(inner, inner).map(lambda t: f"({t[0]}, {t[1]})"),
        st.tuples(inner, inner).map(lambda t: f"({t[0]})[{t[1]}]"),
        three.map(lambda t: f"({t[0]})[{t[1]}:{t[2]}]"),
        three.map(lambda t: f"({t[0]}) < ({t[1]}) <= ({t[2]})"),
        three.map(lambda t: f"({t[0]}) if ({t[1]}) else ({t[2]})"),
        st.tuples(inner, inner).map(lambda t: f"Total({t[0]}, {t[1]})"),
        st.tuples(inner, inner).map(lambda t: f"Total(t={t[0]}, s={t[1]})"),
        inner.map(lambda x: f"Total({x})"),
    )


TEXTS = st.recursive(LEAVES, bigger, max_leaves=6)
SCOPE = {"K": 3, "T": (1, "a", 2.0), "Total": Total}


def evaluated(source: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return eval(source, dict(SCOPE))


@pytest.mark.filterwarnings("ignore:Bitwise inversion:DeprecationWarning")
@settings(max_examples=400)
@given(TEXTS, st.lists(ORDERS, min_size=3, max_size=3))
def test_the_source_of_a_function_gives_what_the_function_gives(
    source: str, rows: list[Order]
) -> None:
    call = evaluated(f"lambda o: {source}")
    fn = Fn.of(call, Order)
    inline = compiled(fn, "row")
    for row in rows:
        expected = outcome(call, row)
        assert outcome(inline, row) == expected
        assert outcome(fn, row) == expected


@pytest.mark.filterwarnings("ignore:Bitwise inversion:DeprecationWarning")
@settings(max_examples=250)
@given(TEXTS, TEXTS, TEXTS, st.lists(ORDERS, min_size=2, max_size=2))
def test_one_function_after_another_gives_what_both_give(
    s: str, t: str, after: str, rows: list[Order]
) -> None:
    first = evaluated(f"lambda o: Total({s}, {t})")
    after = after.replace("o.a", "o.s").replace("o.b", "o.t").replace("o.n", "o.t")
    second = evaluated(f"lambda o: {after}")
    both = Fn.of(first, Order).then(Fn.of(second, Total))
    inline = compiled(both, "row")
    for row in rows:
        expected = outcome(lambda row: second(first(row)), row)
        assert outcome(inline, row) == expected
        assert outcome(both, row) == expected


# ---- the nodes ----


def test_constants_of_different_types_differ() -> None:
    values = [1, True, 1.0, -0.0, 0.0, 0, False, None, "1", b"1", (1,), (True,), (1.0,)]
    values += [Decimal("1.0"), Decimal("1.00"), date(2024, 1, 1), frozenset([1]), frozenset([1.0])]
    nodes = [Constant(value) for value in values]
    assert len(set(nodes)) == len(nodes)
    assert nodes == [Constant(value) for value in values]
    assert Constant(float("nan")) == Constant(float("nan"))


def test_reads_names_the_fields_of_every_argument() -> None:
    def reads(call: Any) -> Any:
        return Fn.of(call, Order, Total, arity=2).reads

    assert reads(lambda x, y: x.a + x.b > y.t) == (frozenset("ab"), frozenset("t"))
    assert reads(lambda x, y: x.a) == (frozenset("a"), frozenset())
    assert reads(lambda x, y: (x, x.a)) == (None, frozenset())
    assert reads(lambda x, y: print(x)) == (None, None)


def test_fields_can_be_replaced_by_expressions() -> None:
    price = Operation(">", (Get(0, "t", 1), Constant(3)))
    moved = price.substitute({Get(0, "t", 1): Operation("+", (Get(0, "a", 0), Get(1, "b", 1)))})
    assert moved.text("l", "r") == "l.a + r.b > 3"
    assert price.substitute(lambda leaf: Constant(1)).text() == "1 > 3"
    assert Tuple((Row(0), Record(Total, (Row(1), Row(0))))).text("x", "y") == "(x, Total(y, x))"


@pytest.mark.parametrize(
    "node",
    [
        Operation("[]", (Constant(5), Constant(0))),
        Operation("[]", (Constant("a"), Constant("b"))),
        Operation("[]", (Tuple((Row(0),)), Constant("b"))),
        Operation("[]", (Constant(None), Constant(0))),
        Operation("[]", (Operation("<<", (Constant(3), Constant(2))), Constant(0))),
        Operation("~", (Constant(True),)),
        Operation("is", (Operation("<<", (Constant(3), Constant(2))), Constant(None))),
        Operation("is", (Constant("a"), Constant(None))),
        Operation("is", (Tuple(()), Constant(None))),
        Operation(".", (Constant(5), Constant("real"))),
        Operation("**", (Constant(-1), Constant(-2))),
        Operation("+", (Constant(float("inf")), Constant("x" * 1000))),
    ],
    ids=str,
)
def test_source_compiles_without_a_warning(node: Expression) -> None:
    compile(node.source(Bound(), ["row"]), "<source>", "eval")


def test_a_deep_expression_is_not_written_down() -> None:
    fn = Fn.of(lambda x: x + 1, int)
    for _ in range(100):
        fn = fn.then(Fn.of(lambda x: x + 1, int))
    assert fn(0) == compiled(fn, "x")(0) == 101
