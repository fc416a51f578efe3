"""Rows of another shape: what each verb gives, row by row, that it can be run as columns, and what
it refuses."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, NamedTuple

import pytest

import ebbflow as ef
from ebbflow.engine.batch import evaluate
from ebbflow.errors import AlgebraError, CompositionError, UnknownField
from ebbflow.hashing import stable_hash
from ebbflow.record import record
from ebbflow.zset import ZSet


class Sale(NamedTuple):
    city: str
    price: int | None
    paid: int


class Post(NamedTuple):
    id: int
    tags: tuple[str, ...] | None
    by: str


SALES, POSTS = ef.Input("sales", Sale), ef.Input("posts", Post)
ROME, OSLO = Sale("Rome", None, 3), Sale("Oslo", 7, 4)
TWO, NONE = Post(1, ("new", "old"), "ann"), Post(2, (), "bob")


def follows(made: Any, *steps: Any) -> list[Any]:
    """The rows after each step, as plain tuples, checked against batch; last, all is taken away."""
    name = next(iter(made.plan.sources))
    view, so_far, seen = made.run(), ZSet[Any](), []
    for step in steps:
        so_far = so_far + ZSet.of(step)
        view.step({name: ZSet.of(step)})
        assert view.value == evaluate(made.plan, {name: so_far})["output"]
        seen.append(
            sorted([tuple(row) for row, n in view.value.items() for _ in range(n)], key=str)
        )
    view.step({name: -so_far})
    assert not view.value
    return seen


def fields(made: Any) -> tuple[str, ...]:
    found: tuple[str, ...] = made.type._fields
    return found


# ---- fields ----


def test_with_fields_adds_and_replaces_from_the_row_as_it_was() -> None:
    made = SALES.with_fields(paid=lambda s: s.paid * 10, due=lambda s: s.paid + 1)
    assert fields(made) == ("city", "price", "paid", "due")
    assert made.type.__name__ == "Sale"
    assert follows(made, [ROME, OSLO]) == [[("Oslo", 7, 40, 5), ("Rome", None, 30, 4)]]


def test_rename_keeps_places_and_can_swap() -> None:
    made = SALES.rename(price="paid", paid="price")
    assert fields(made) == ("city", "paid", "price")
    assert made.type.__annotations__ == {"city": str, "paid": int | None, "price": int}
    assert follows(made, [OSLO]) == [[("Oslo", 7, 4)]]


def test_fill_null_gives_a_value_for_none_and_a_type_without_it() -> None:
    made = SALES.fill_null(price=0)
    assert made.type.__annotations__["price"] is int
    assert follows(made, [ROME, OSLO], [Sale("Rome", 0, 3)])[1] == [
        ("Oslo", 7, 4), ("Rome", 0, 3), ("Rome", 0, 3),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "digits", "shown"),
    [(0, (12, 2), "0.00"), (Decimal("1.5"), (12, 2), "1.50"), (Decimal("0.125"), (13, 3), "0.125")],
)
def test_fill_null_gives_a_decimal_the_digits_that_hold_both(
    value: Any, digits: tuple[int, int], shown: str
) -> None:
    row_type: Any = record("Sale", price=ef.decimal(12, 2) | None)
    made = ef.Input("sales", row_type).fill_null(price=value)
    assert made.type.__annotations__["price"] == ef.decimal(*digits)
    pytest.importorskip("numba")
    for columns in (True, False):
        view = made.run(columns=columns)
        view.step(sales=[row_type(None)])
        assert [str(row.price) for row in view.value] == [shown]
        assert ("in columns" in view.explain()) == columns


@pytest.mark.parametrize(
    "made",
    [
        SALES.with_fields(due=lambda s: s.paid + 1),
        SALES.rename(town="city"),
        SALES.fill_null(price=0),
        SALES.unpivot("price", "paid"),
    ],
    ids=["with_fields", "rename", "fill_null", "unpivot"],
)
def test_the_fields_that_stay_are_expressions(made: Any) -> None:
    maps = [node for node in made.plan.nodes() if node.verb == "map"]
    assert maps
    assert all(node.fn.expression is not None for node in maps)


# ---- one row for many ----


def test_explode_gives_a_row_for_each_item() -> None:
    made = POSTS.explode("tags", into="tag")
    assert (fields(made), made.type.__annotations__["tag"]) == (("id", "tag", "by"), str)
    assert follows(made, [TWO, NONE, Post(3, None, "eve")], [TWO]) == [
        [(1, "new", "ann"), (1, "old", "ann")],
        [(1, "new", "ann"), (1, "new", "ann"), (1, "old", "ann"), (1, "old", "ann")],
    ]


def test_explode_tells_where_an_item_was_and_can_keep_rows_without_any() -> None:
    made = POSTS.explode("tags", position="at", keep_empty=True)
    assert made.type.__annotations__ == {
        "id": int, "tags": str | None, "by": str, "at": int | None,
    }  # fmt: skip
    assert follows(made, [TWO, NONE]) == [
        [(1, "new", "ann", 0), (1, "old", "ann", 1), (2, None, "bob", None)]
    ]


def test_unpivot_gives_a_row_for_each_field_and_pivot_takes_it_back() -> None:
    made = SALES.unpivot("price", "paid", name="what", value="amount")
    assert fields(made) == ("city", "what", "amount")
    assert made.type.__annotations__["amount"] == int | None
    assert follows(made, [ROME]) == [[("Rome", "paid", 3), ("Rome", "price", None)]]
    back = made.pivot("what", ("price", "paid"), using=ef.sum("amount"), per="city")
    assert fields(back) == ("city", "price", "paid")
    assert follows(back, [ROME, OSLO], [Sale("Rome", 5, 1)]) == [
        [("Oslo", 7, 4), ("Rome", None, 3)],
        [("Oslo", 7, 4), ("Rome", 5, 4)],
    ]


def test_pivot_of_all_rows_counts_each_value_and_leaves_others_out() -> None:
    made = SALES.pivot("paid", {3: "three", 4: "four"}, using=ef.count())
    assert follows(made, [ROME, OSLO, OSLO], [Sale("Bern", 1, 9)]) == [[(1, 2)], [(1, 2)]]
    none = SALES.pivot("price", {None: "unknown", 7: "seven"}, using=ef.count(), per="city")
    assert follows(none, [ROME, OSLO]) == [[("Oslo", 0, 1), ("Rome", 1, 0)]]


# ---- some of the rows ----


def test_a_sample_is_about_so_many_and_the_same_rows_every_time() -> None:
    numbers = ef.Input("numbers", int)

    def taken(fraction: float, seed: int = 0) -> set[int]:
        chosen = numbers.sample(fraction, seed=seed).node.fn  # type: ignore[attr-defined]
        return set(filter(chosen, range(2000)))

    some = taken(0.3)
    assert 500 < len(some) < 700
    assert some == taken(0.3)
    assert some < taken(0.4)
    assert some != taken(0.3, seed=1)
    assert follows(numbers.sample(0.0).map(lambda n: (n,)), [1, 2]) == [[]]
    assert follows(numbers.sample(1.0).map(lambda n: (n,)), [1, 2]) == [[(1,), (2,)]]


def test_rows_with_an_equal_part_are_sampled_together() -> None:
    sample = SALES.sample(0.5, per="city").node.fn
    for city in map(str, range(50)):
        assert len({sample(Sale(city, None, paid)) for paid in range(5)}) == 1


def test_equal_values_have_the_same_number_in_every_process() -> None:
    rome = timezone(timedelta(hours=1))
    noon = datetime(2024, 5, 1, 12, tzinfo=UTC)
    assert stable_hash(noon) == stable_hash(noon.astimezone(rome))
    values = [noon, noon.replace(tzinfo=None), date(2024, 5, 1), timedelta(hours=3), float("nan")]
    assert [stable_hash(each) for each in values] == [
        11240198575413512390, 9296371325889859472, 16697923410232718702, 13586156389548332745,
        12215358176996370630,
    ]  # fmt: skip


def test_a_row_without_such_a_number_says_what_to_do() -> None:
    with pytest.raises(AlgebraError, match=r"sample\(per=\.\.\.\)"):
        ef.Input("any").sample(0.5).run().step(any=[object()])


# ---- what is refused ----

WRONG: list[tuple[Any, str, str]] = [
    (lambda: SALES.with_fields(), "no field is given", "with_fields(total="),
    (lambda: SALES.with_fields(x="ctiy"), "no field 'ctiy'", 'with_fields(x="city")'),
    (lambda: ef.Input("n", int).with_fields(x=abs), "without named fields", "select(name="),
    (lambda: SALES.rename(), "no field is given", 'rename(new="old")'),
    (lambda: SALES.rename(x="ctiy"), "no field 'ctiy'", 'rename(x="city")'),
    (lambda: SALES.rename(paid="city"), "there is a field 'paid' already", "another name"),
    (lambda: SALES.rename(a="city", b="city"), "cannot have two names", 'with_fields(b="city")'),
    (lambda: SALES.rename(a=len), "another name", 'rename(a="field")'),
    (lambda: SALES.fill_null(), "no field is given", "fill_null(price=0)"),
    (lambda: SALES.fill_null(price="x"), "the field holds int", "a value of type int"),
    (lambda: SALES.fill_null(price=None), "takes the place of None", "fill_null(price=0)"),
    (lambda: POSTS.explode("by"), "holds str", "flat_map("),
    (lambda: POSTS.explode("id"), "holds int", "flat_map("),
    (lambda: POSTS.explode("tag"), "no field 'tag'", 'explode("tags")'),
    (lambda: POSTS.explode("tags", into="by"), "there is a field 'by' already", "another name"),
    (lambda: POSTS.explode("tags", position="tags"), "a field 'tags' already", "another name"),
    (lambda: SALES.unpivot(), "no field is given", "unpivot("),
    (lambda: SALES.unpivot("paid", "paid"), "given twice", "each field once"),
    (lambda: SALES.unpivot("paid", name="city"), "a field 'city' already", "another name"),
    (lambda: SALES.unpivot("paid", name="x", value="x"), "a field 'x' already", "another name"),
    (lambda: SALES.pivot("city", "Rome", using=ef.count()), "told beforehand", "pivot("),
    (lambda: SALES.pivot("city", (), using=ef.count()), "no value is given", "pivot("),
    (lambda: SALES.pivot("paid", (1,), using=ef.count()), "name of a field", "{value: name"),
    (lambda: SALES.pivot("city", ("a b",), using=ef.count()), "name of a field", "a name without"),
    (lambda: SALES.pivot("city", (3,), using=ef.count()), "name of a field", "{value: name"),
    (lambda: SALES.pivot("city", {3: "x"}, using=ef.count()), "never among them", "type str"),
    (lambda: SALES.pivot("city", ("Rome",), using=len), "len is not a reducer", "ebbflow"),
    (
        lambda: SALES.pivot("paid", {3: "city"}, using=ef.count(), per="city"),
        "a field 'city' already", "{value: name",
    ),
    (lambda: SALES.sample(3), "a part of the rows", "from 0 to 1"),
    (lambda: SALES.sample("x"), "a part of the rows", "sample(0.1)"),
    (lambda: SALES.sample(0.1, per="ctiy"), "no field 'ctiy'", 'sample(per="city")'),
]  # fmt: skip


@pytest.mark.parametrize(("build", "said", "remedy"), WRONG, ids=[said for _, said, _ in WRONG])
def test_what_does_not_fit_is_refused_where_it_is_written(
    build: Any, said: str, remedy: str
) -> None:
    with pytest.raises((CompositionError, UnknownField)) as error:
        build()
    assert said in error.value.what
    assert remedy in error.value.remedy
    assert "test_reshape.py" in str(error.value.facts["created"])


# ---- joins whose fields have the same name ----


def test_suffixes_tell_equal_names_apart() -> None:
    left, right = ef.Input("left", Sale), ef.Input("right", Sale)
    made = left.join(right, on="city", how="left", suffixes=("", "_before"))
    assert fields(made) == ("city", "price", "paid", "price_before", "paid_before")
    view = made.run()
    view.step(left=[ROME, OSLO], right=[Sale("Rome", 1, 2)])
    assert sorted(map(tuple, view.value)) == [
        ("Oslo", 7, 4, None, None), ("Rome", None, 3, 1, 2),
    ]  # fmt: skip
    assert fields(left.cross(right, suffixes=("_a", "_b")))[::3] == ("city_a", "city_b")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("x",), "one for the left"),
        (("x", "x"), "one for the left"),
        ("_right", "one for the left"),
        (("", ""), "one for the left"),
    ],
)
def test_suffixes_that_tell_nothing_apart_are_refused(given: Any, said: str) -> None:
    with pytest.raises(CompositionError, match=said):
        SALES.join(SALES, on="city", suffixes=given)


def test_suffixes_that_make_a_name_that_is_there_are_refused() -> None:
    other = SALES.with_fields(price_x="price")
    with pytest.raises(CompositionError, match="a field 'price_x' already"):
        SALES.join(other, on="city", suffixes=("", "_x"))
    with pytest.raises(CompositionError, match="no fields of both sides"):
        SALES.join(other, on="city", suffixes=("", "_x"), select=lambda a, b: a)
