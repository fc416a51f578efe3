"""Verbs of Spark, pandas and SQL on a collection are answered with ours."""

import copy
import pickle
from typing import Any, NamedTuple

import pytest

import ebbflow as ef
from ebbflow.errors import CompositionError, UnknownVerb
from ebbflow.flow.verbs import unknown as verbs


class Order(NamedTuple):
    id: int
    city: str
    price: int


ORDERS = ef.Input("orders", Order)
NUMBERS = ef.Input("numbers", int)


@pytest.mark.parametrize(
    ("verb", "ours"),
    [
        ("where", "filter("), ("query", "filter("), ("groupBy", "group_by("),
        ("groupby", "group_by("), ("withColumn", "with_fields("), ("assign", "with_fields("),
        ("withColumnRenamed", "rename("), ("orderBy", "limit("), ("sort", "limit("),
        ("offset", "limit("), ("head", "limit("), ("nlargest", "top_k("), ("fillna", "fill_null("),
        ("melt", "unpivot("), ("pivot_table", "pivot("), ("unnest", "explode("),
        ("drop", "select("),
        ("exists", "join("), ("join_where", "join("), ("scalar", "filter("),
        ("tablesample", "sample("), ("count", "agg(n=ebbflow.count())"),
        ("drop_duplicates", "distinct()"), ("merge", "join("), ("unionAll", "c + other"),
        ("crossJoin", "cross("), ("subtract", "except_("), ("sum", "agg(sum=ebbflow.sum("),
        ("avg", "agg(avg=ebbflow.mean("), ("show", "view = c.run()"), ("flatMap", "flat_map("),
        ("fliter", "filter("), ("price", 'select("price")'),
    ],
)  # fmt: skip
def test_a_verb_of_others_is_answered_with_ours(verb: str, ours: str) -> None:
    with pytest.raises(UnknownVerb, match=f"a collection has no '{verb}'") as error:
        getattr(ORDERS, verb)
    assert error.value.remedy.startswith(ours)
    assert "test_verbs.py" in str(error.value.facts["created"])


@pytest.mark.parametrize("verb", ["count", "sum", "avg", "size", "apply", "agregate"])
def test_groups_answer_as_well(verb: str) -> None:
    with pytest.raises(UnknownVerb, match="has no") as error:
        getattr(ORDERS.group_by("city"), verb)
    assert "agg(" in error.value.remedy


def test_no_verb_of_ours_is_in_the_table() -> None:
    assert not [name for name in verbs.INSTEAD if hasattr(ef.Collection, name)]


def test_every_answer_names_a_verb_that_there_is() -> None:
    for answer in verbs.INSTEAD.values():
        name = answer.partition("(")[0]
        assert hasattr(ef.Collection, name) or answer.startswith(("c ", "c.", "view = ", "nothing"))


def test_a_collection_is_a_value_as_before() -> None:
    assert not hasattr(ORDERS, "where")
    assert copy.copy(ORDERS) == ORDERS
    assert pickle.loads(pickle.dumps(NUMBERS)).type is int
    with pytest.raises(CompositionError, match="a collection has no elements"):
        ORDERS["price"]


def test_the_separator_of_a_string_agg_comes_second_as_in_sql() -> None:
    assert ef.string_agg("city", "; ") == ef.string_agg("city", separator="; ")
    assert ef.string_agg(None, "")(["b", "a"]) == "ab"


def top(collection: Any, rows: list[Any], n: int) -> list[Any]:
    view = collection.top_k(n).run()
    view.step(numbers=rows)
    return sorted(view.value)


def test_top_k_compares_rows_that_have_no_fields() -> None:
    assert top(NUMBERS, [3, 1, 2, 5], 2) == [3, 5]
    with pytest.raises(CompositionError, match="nothing says by what") as error:
        ORDERS.top_k(3)
    assert error.value.remedy == 'top_k(3, order="price")'
