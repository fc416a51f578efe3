"""Tables given to a view in this process: every form, and every way in which one can be wrong."""

from __future__ import annotations

import subprocess
import sys
from array import array
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import ebbflow as ef
from ebbflow.engine.runtime.tables import is_columns, is_table
from ebbflow.errors import AbsentRow, ChangeError
from ebbflow.nan import NAN
from ebbflow.record import record


class Order(NamedTuple):
    id: int
    city: str
    price: float | None = None


ROWS = [Order(1, "Rome", 2.5), Order(2, "Oslo")]
COLUMNS: dict[str, Any] = {"city": ["Rome", "Oslo"], "id": [1, 2], "price": [2.5, None]}
ARROW = pa.table(COLUMNS)
ORDERS = ef.Input("orders", Order)
KEYED = ef.Input("orders", Order, key="id")

FORMS: dict[str, Callable[[], Any]] = {
    "pandas": lambda: pd.DataFrame(COLUMNS),
    "pandas, nullable": lambda: pd.DataFrame(COLUMNS).convert_dtypes(),
    "pandas, arrow": lambda: ARROW.to_pandas(types_mapper=pd.ArrowDtype),
    "pandas, objects": lambda: pd.DataFrame(COLUMNS, dtype=object),
    "pandas, category": lambda: pd.DataFrame(COLUMNS).astype({"city": "category"}),
    "pandas, index": lambda: pd.DataFrame(COLUMNS, index=["a", "b"]),
    "polars": lambda: pl.DataFrame(COLUMNS),
    "polars, categorical": lambda: pl.DataFrame(COLUMNS).cast({"city": pl.Categorical}),
    "polars, enum": lambda: pl.DataFrame(COLUMNS).cast({"city": pl.Enum(["Oslo", "Rome"])}),
    "arrow": lambda: ARROW,
    "arrow, chunks": lambda: pa.concat_tables([ARROW.slice(0, 1), ARROW.slice(1)]),
    "arrow, dictionary": lambda: ARROW.set_column(0, "city", ARROW["city"].dictionary_encode()),
    "arrow, large": lambda: ARROW.set_column(0, "city", ARROW["city"].cast(pa.large_string())),
    "batch": lambda: ARROW.to_batches()[0],
    "reader": lambda: ARROW.to_reader(),
    "stream": lambda: Stream(ARROW),
    "duckdb": lambda: duckdb.connect().from_arrow(ARROW),
    "lists": lambda: COLUMNS,
    "arrays": lambda: {"city": np.array(["Rome", "Oslo"]), "id": array("i", [1, 2]),
                       "price": pa.array([2.5, None])},
    "columns": lambda: {"city": pd.Series(["Rome", "Oslo"]), "id": pl.Series([1, 2]),
                        "price": pd.Series([2.5, None])},
    "scalars": lambda: {"city": [np.str_("Rome"), "Oslo"], "id": [np.int64(1), np.int8(2)],
                        "price": (np.float64(2.5), None)},
    "structured": lambda: structured(),
    "records": lambda: np.rec.fromarrays(
        [["Rome", "Oslo"], [1, 2], np.array([2.5, None])], names="city,id,price"
    ),
}  # fmt: skip


def structured() -> Any:
    """A structured array, of which one price is masked."""
    plain = np.array([("Rome", 1, 2.5), ("Oslo", 2, 0)], [("city", "U9"), ("id", ">i4"),
                                                         ("price", "f8")])  # fmt: skip
    return np.ma.array(plain, mask=[(0, 0, 0), (0, 0, 1)])


def weights(change: Any) -> dict[Any, int]:
    return dict(change.items())


class Stream:
    """Something with the Arrow C stream interface, and nothing else."""

    def __init__(self, table: Any) -> None:
        self.table = table

    def __arrow_c_stream__(self, schema: Any = None) -> Any:
        return self.table.__arrow_c_stream__(schema)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_table_is_the_rows_in_it(form: str) -> None:
    view = ORDERS.run()
    given = FORMS[form]()
    assert view.step(orders=given) == ef.ZSet.of(ROWS)
    assert {tuple(map(type, row)) for row in view.value} <= {
        (int, str, float),
        (int, str, type(None)),
    }


WAYS = ["apply", "add", "remove", "upsert"]


@pytest.mark.parametrize("durable", [False, True], ids=["memory", "path"])
@pytest.mark.parametrize("form", ["pandas", "polars", "reader", "lists", "structured", "duckdb"])
def test_a_table_in_every_way_that_rows_are_given(form: str, durable: bool, tmp_path: Path) -> None:
    options = {"path": tmp_path / "state"} if durable else {}
    with KEYED.run(**options) as view:
        orders = view.input("orders")
        orders.add(FORMS[form]())
        assert view.value == ef.ZSet.of(ROWS)
        moved = {**COLUMNS, "city": ["Bari", "Oslo"]}
        assert weights(orders.upsert(moved)) == {ROWS[0]: -1, ROWS[0]._replace(city="Bari"): 1}
        orders.upsert(FORMS[form]())
        orders.remove(FORMS[form]())
        assert not view.value
        orders.apply(FORMS[form]())
        if not durable:
            return
    with KEYED.run(**options) as view:
        assert view.value == ef.ZSet.of(ROWS)
        assert view.verify()


@pytest.mark.parametrize("form", ["pandas", "polars", "arrow", "lists"])
def test_columns_that_say_what_changes(form: str) -> None:
    def formed(**columns: Any) -> Any:
        made: dict[str, Any] = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table}
        return made.get(form, dict)(columns)

    view = ORDERS.run()
    view.step(orders=formed(**COLUMNS, weight=[3, 0]))
    assert weights(view.value) == {ROWS[0]: 3}
    view.step(orders=formed(**COLUMNS, op=["d", "c"], ts_ms=[5, 6]))
    assert weights(view.value) == {ROWS[0]: 2, ROWS[1]: 1}
    kinds = ["update_preimage", "update_postimage"]
    both = {"id": [1, 1], "city": ["Rome", "Bari"], "price": [2.5, 2.5], "_change_type": kinds}
    view.step(orders=formed(**both))
    assert weights(view.value) == {ROWS[0]: 1, ROWS[0]._replace(city="Bari"): 1, ROWS[1]: 1}
    after = [ROWS[0]._replace(id=9)._asdict(), None]
    images = {"op": ["u", "d"], "before": [ROWS[0]._asdict(), ROWS[1]._asdict()], "after": after}
    view.step(orders=formed(**images))
    assert weights(view.value) == {ROWS[0]._replace(city="Bari"): 1, ROWS[0]._replace(id=9): 1}


def test_equal_rows_are_added_up_and_those_that_cancel_are_nothing() -> None:
    view = ORDERS.run()
    twice = pa.concat_tables([ARROW, ARROW])
    assert weights(view.step(orders=twice)) == dict.fromkeys(ROWS, 2)
    none = {"id": [7, 7], "city": ["x", "x"], "price": [1.0, 1.0], "weight": [1, -1]}
    assert not view.step(orders=none)


@pytest.mark.parametrize("empty", [
    ARROW.slice(0, 0), pd.DataFrame(COLUMNS).iloc[:0], pl.DataFrame(COLUMNS).clear(),
    {"id": [], "city": [], "price": []}, pd.DataFrame({"id": [], "city": [], "price": []}),
    pl.DataFrame({"id": [], "city": [], "price": [], "op": []}), structured()[:0],
])  # fmt: skip
def test_no_rows_change_nothing(empty: Any) -> None:
    view = ORDERS.run()
    view.step(orders=ROWS)
    assert weights(view.step(orders=empty)) == {}
    assert view.value == ef.ZSet.of(ROWS)


# ---- values ----


class Wide(NamedTuple):
    when: Annotated[datetime, UTC]
    day: date
    at: datetime | None
    cost: Annotated[Decimal, (10, 2)]
    tags: tuple[str, ...]
    sizes: frozenset[int]
    by: dict[str, int]
    order: Order
    state: Literal["open", "done"]
    count: int | None
    note: ef.Text
    items: ef.List[int]


WIDE = Wide(
    datetime(2024, 1, 2, 3, 4, 5, 6, tzinfo=UTC), date(2024, 2, 29), None, Decimal("1.50"),
    ("a", "b"), frozenset({1, 2}), {"x": 1}, ROWS[0], "open", None, "some text", [1, 2],
)  # fmt: skip


def wide_columns() -> dict[str, Any]:
    """The columns of one wide row, as Python has them."""
    return {name: [value] for name, value in WIDE._asdict().items()}


def wide_arrow() -> Any:
    """The same as Arrow has them, with times in another zone."""
    plain = {**wide_columns(), "sizes": [[2, 1]], "order": [ROWS[0]._asdict()]}
    plain["by"] = pa.array([[("x", 1)]], pa.map_(pa.string(), pa.int32()))
    plain["when"] = pa.array(plain["when"], pa.timestamp("ns", "Europe/Rome"))
    plain["tags"] = pa.array(plain["tags"], pa.large_list(pa.large_string()))
    return pa.table(plain)


@pytest.mark.parametrize("form", ["lists", "arrow", "pandas", "pandas, arrow", "pandas, objects"])
def test_values_of_every_type(form: str) -> None:
    forms: dict[str, Callable[[], Any]] = {
        "lists": wide_columns,
        "arrow": wide_arrow,
        "pandas": lambda: wide_arrow().to_pandas(),
        "pandas, arrow": lambda: wide_arrow().to_pandas(types_mapper=pd.ArrowDtype),
        "pandas, objects": lambda: pd.DataFrame(wide_columns(), dtype=object),
    }  # fmt: skip
    by_rows, by_table = ef.Input("rows", Wide).run(), ef.Input("rows", Wide).run()
    by_rows.step(rows=[WIDE])
    by_table.step(rows=forms[form]())
    assert by_table.value == by_rows.value
    (one,), (other,) = by_table.value, by_rows.value
    assert list(map(type, one)) == list(map(type, other))


def test_one_nan_and_nothing_missing() -> None:
    xs = ef.Input("xs", record("X", x=float))
    for given in ({"x": [float("nan"), 1]}, pd.DataFrame({"x": [None, 1.0]}),
                  pd.DataFrame({"x": [np.nan, 1]}, dtype=object), {"x": np.array([np.nan, 1])},
                  pl.DataFrame({"x": [float("nan"), 1.0]})):  # fmt: skip
        assert weights(xs.run().step(xs=given)) == {(NAN,): 1, (1.0,): 1}
    with pytest.raises(ChangeError, match="column 'x' is null in row 0, and its hint is float"):
        xs.run().step(xs=pl.DataFrame({"x": [None, 1.0]}))


def test_rows_that_are_one_value() -> None:
    numbers = ef.Input("numbers", int).run()
    numbers.step(numbers={"value": [1, 2, 2]})
    numbers.step(numbers=pd.DataFrame({"value": [1], "weight": [-1]}))
    assert weights(numbers.value) == {2: 2}
    with pytest.raises(ChangeError, match="the rows of this input are of type int") as error:
        numbers.step(numbers=pd.DataFrame({"number": [1]}))
    assert error.value.remedy.endswith("or one column named 'value'")
    words = ef.Input("words", str).run()
    words.step(words={"value": 2})
    words.step(words={"value": ["value"]})
    assert weights(words.value) == {"value": 3}
    with pytest.raises(ChangeError, match="the rows of this input are of type Any"):
        ef.Input("anything").run().step(anything=pd.DataFrame({"id": [1]}))


def test_what_numpy_has_beside_plain_columns() -> None:
    Reading = record("Reading", at=datetime, day=date, xs=tuple[float, ...], place=record(
        "Place", x=int, y=int), raw=bytes)  # fmt: skip
    given = np.array(
        [("2024-01-01T10", "2024-02", [1, 2], (3, 4), b"ab")],
        [("at", "M8[h]"), ("day", "M8[M]"), ("xs", "f4", 2), ("place", [("x", "i2"), ("y", "u1")]),
         ("raw", "S4")],
    )  # fmt: skip
    view = ef.Input("readings", Reading).run()
    view.step(readings=given)
    assert list(view.value) == [
        (datetime(2024, 1, 1, 10), date(2024, 2, 1), (1.0, 2.0), (3, 4), b"ab")
    ]


# ---- bad tables ----

FRAME = pd.DataFrame({"id": [1, 2, 3], "city": ["a", "b", "c"], "price": [1.0, 2.0, 3.0]})


def text(error: ChangeError) -> str:
    """What is said, but for the place where the input was created."""
    return "\n".join(line for line in str(error).splitlines() if "    created" not in line)


BAD: dict[str, tuple[Any, str, str]] = {
    "missing": (FRAME.drop(columns="city"), "there is no column 'city'", "all fields of the row"),
    "misnamed": (FRAME.rename(columns={"city": "City"}), "there is no column 'city'",
                 "rename 'City' to 'city'"),
    "extra": (FRAME.assign(tax=1), "Order(id, city, price) has no field for column 'tax'",
              "select the columns of a row: 'id', 'city', 'price'"),
    "index": (FRAME.set_index("id"), "'id' is the index of the table, and no column",
              "orders=table.reset_index()"),
    "twice": (pd.concat([FRAME, FRAME[["id"]]], axis=1), "there are several columns 'id'",
              "one of each name"),
    "numbers as names": (pd.DataFrame([[1, "a", 2.0]]),
                         "the columns of a table have texts as names, and one has 0",
                         "table.columns = [...], the names of the fields of a row"),
    "wrong type": (FRAME.astype({"id": str}), "column 'id', row 0: '1' is a str, not int\n    type",
                   "cast the column to int, or another hint for the field 'id'"),
    "wrong type, polars": (pl.DataFrame(FRAME).cast({"id": pl.String}),
                           "column 'id' is large_string, not int", "cast the column"),
    "several wrong": (pa.table({"id": ["1"], "city": [1], "price": [1.0]}),
                      "column 'id' is string, not int\n    also       column 'city' is int64, "
                      "not str", "cast the column, or another hint for the field 'id'"),
    "null": (FRAME.assign(id=[1, None, None]),
             "column 'id' is null in 2 rows, of which row 1 is the first, and its hint is int\n"
             "    row        {'id': None, 'city': 'b', 'price': 2.0}", "int | None as the hint"),
    "null text": (FRAME.assign(city=["a", None, "c"]),
                  "column 'city' is null in row 1, and its hint is str", "str | None as the hint"),
    "null in a list": ({"id": [1, 2], "city": ["a", None], "price": [1.0, 2.0]},
                       "column 'city' is null in row 1, and its hint is str", "str | None as"),
    "NA": (FRAME.assign(id=pd.array([1, 2, pd.NA], "Int64")), "column 'id' is null in row 2",
           "int | None as the hint"),
    "mixed": (FRAME.assign(id=[1, "b", 3]), "column 'id', row 1: 'b' is a str, not int\n    type",
              "cast the column"),
    "fractions": (FRAME.assign(id=[1.5, 2, 3]),
                  "column 'id', which is double, has 1.5 in row 0, which is no int", "round the"),
    "inexact": (FRAME.assign(id=[1, None, 2.0**53]).iloc[[0, 2]],
                "column 'id' has floats of 2**53 and more, which may have been other integers",
                'integers that may be missing: .astype("Int64") before some are'),
    "uint64": (FRAME.assign(id=np.array([1, 2, 2**63], "u8")),
               "column 'id', which is uint64, has 9223372036854775808 in row 2, which is no int",
               "another hint for the field 'id'"),
    "lengths": ({"id": [1, 2], "city": ["a"], "price": [1.0, 2.0]},
                "the columns have different lengths\n    lengths    id 2, city 1, price 2",
                "one value of every column for each row"),
    "one value": ({"id": [1, 2], "city": "a", "price": [1.0, 2.0]},
                  "column 'city' is a str, not a list of values", "a list, or a column of NumPy"),
    "no order": ({"id": {1, 2}, "city": ["a", "b"], "price": [1.0, 2.0]},
                 "column 'id' is a set, not a list of values", "a list, or a column of NumPy"),
    "a row": ({"id": 1, "city": "a", "price": None}, "one row was given where a change is asked",
              "give a list, orders=[row]"),
    "period": (FRAME.assign(id=pd.period_range("2024", periods=3, freq="D")),
               "column 'id' is extension<pandas.period<ArrowPeriodType>>, not int", "cast the"),
    "complex": (FRAME.assign(id=[1j, 2j, 3j]), "column 'id' is complex128, which has no form as a "
                "table", "a column of numbers, texts, times, lists or records"),
    "two dimensions": (structured().reshape(1, 2), "a structured array has 2 dimensions",
                       "orders=array.ravel()"),
    "weight": (FRAME.assign(weight=[1, None, 1]), "a weight is null, in row 1", "1 to add a row"),
    "weights": (FRAME.assign(weight=[1.5, 1, 1]), "column 'weight' is double, not int", "cast"),
    "operation": (FRAME.assign(op=["c", "x", "d"]), "op 'x' is no change of a row\n    row", "one"),
    "lazy": (pl.DataFrame(FRAME).lazy(), "a LazyFrame of polars was given where rows are asked",
             "orders=table.collect()"),
    "column, polars": (pl.Series([1]), "a Series of polars was given where rows", "orders=table"),
    "column, arrow": (pa.chunked_array([[1]]), "a ChunkedArray of pyarrow was given", "orders=ta"),
}  # fmt: skip


@pytest.mark.parametrize("wrong", BAD)
def test_a_bad_table_is_refused_once_with_its_column_and_the_remedy(wrong: str) -> None:
    given, what, remedy = BAD[wrong]
    view = ORDERS.run()
    view.step(orders=ROWS)
    with pytest.raises(ChangeError) as error:
        view.step(orders=given)
    assert text(error.value).startswith(f"input 'orders': {what}")
    assert error.value.remedy.startswith(remedy)
    assert "    created    " in str(error.value)
    assert view.value == ef.ZSet.of(ROWS)
    assert view.epoch == 1


def test_keys_of_bad_tables() -> None:
    view = KEYED.run()
    view.step(orders=ROWS)
    twice = FRAME.assign(id=[3, 3, 4])
    with pytest.raises(ChangeError, match="there would be more than one row of a key") as error:
        view.step(orders=twice)
    assert (error.value.facts["key"], error.value.remedy) == (
        3, "view.input('orders').upsert(row) replaces the row that has this key",
    )  # fmt: skip
    with pytest.raises(ChangeError, match="several rows of one key, and no order") as error:
        view.input("orders").upsert(twice)
    assert error.value.facts["key"] == 3
    with pytest.raises(ChangeError, match="there would be more than one row of a key"):
        view.step(orders=FRAME)
    assert view.value == ef.ZSet.of(ROWS)
    Reading = record("Reading", at=float, value=int)
    readings = ef.Input("readings", Reading, key=lambda reading: reading.at).run()
    for given in ({"at": [1.0, NAN, NAN], "value": [1, 2, 3]},
                  pd.DataFrame({"at": [1.0, None, None], "value": [1, 2, 3]})):  # fmt: skip
        with pytest.raises(ChangeError) as error:
            readings.step(readings=given)
        assert text(error.value) == (
            "input 'readings': column 'at' is part of the key, and NaN in 2 rows, of which row 1 "
            "is the first\n    row        {'at': nan, 'value': 2}\n"
            "    try        leave those rows out, or give them a key"
        ).replace("nan", "nan" if isinstance(given, dict) else "None")


@pytest.mark.parametrize(
    ("hint", "column", "what", "remedy"),
    [
        (datetime, pd.Series(pd.to_datetime(["2024-01-01"]).tz_localize("UTC")),
         "column 'f' is timestamp[ns, tz=UTC], not datetime", "Annotated[datetime, UTC]"),
        (Annotated[datetime, UTC], pd.Series(pd.to_datetime(["2024-01-01"])),
         "column 'f' is timestamp[ns], not Annotated[datetime, UTC]", "the hint datetime for"),
        (datetime, pd.Series(pd.to_datetime(["2024-01-01 00:00:00.000000001"])),
         "column 'f', which is timestamp[ns], has", 'table["f"].dt.floor("us")'),
        (datetime, pd.Series(pd.to_datetime(["2024-01-01", None])),
         "column 'f' is null in row 1, and its hint is datetime", "datetime | None as the hint"),
        (datetime, pd.Series([pd.Timestamp("2024-01-01"), pd.NaT], dtype=object),
         "column 'f' is null in row 1", "datetime | None as the hint"),
        (Annotated[Decimal, (4, 2)], [Decimal("1.234")],
         "column 'f', row 0: Decimal('1.234') does not fit decimal128(4, 2)", "other digits"),
        (date, pd.Series(pd.to_datetime(["2024-01-01"])), "column 'f' is timestamp[ns], not date",
         ".dt.date in pandas"),
        (int, pl.Series([1], dtype=pl.Int128), "column 'f' is Int128, which has no form", "a colu"),
        (Decimal, pd.Series([0.1]), "column 'f' is double, not Decimal", "cast the column"),
        (Literal["a", "b"], ["a", "c"],
         "column 'f' has 'c' in row 1, which its Literal has not", "one of 'a', 'b'"),
        (tuple[int, ...], [[1, None]], "field 'f[1]': None is not allowed", "int | None"),
        (tuple[int, ...], pl.Series([[1, None]]), "field 'f[1]': None is not allowed", "int | "),
        (record("Place", x=int), [{"x": 1, "y": 2}],
         "column 'f' is struct<x: int64, y: int64>, not Place", "cast the column"),
        (str, np.array([b"a"]), "column 'f' is binary, not str", "cast the column"),
        (float, [2**53 + 1], "column 'f', row 0: 9007199254740993 is no float", "the hint int"),
        (float, pl.Series([2**53 + 1]), "column 'f', which is int64, has 9007199254740993 in",
         "another hint"),
        (bool, [0, 1], "column 'f', row 0: 0 is an int, not bool\n", "cast the column to bool"),
        (Any, pl.Series([1]), "column 'f' is int64, and the field Any", "a hint for the field"),
    ],
)  # fmt: skip
def test_a_value_that_does_not_fit(hint: Any, column: Any, what: str, remedy: str) -> None:
    view = ef.Input("rows", record("Row", f=hint)).run()
    with pytest.raises(ChangeError) as error:
        view.step(rows={"f": column})
    assert text(error.value).startswith(f"input 'rows': {what}")
    assert remedy in error.value.remedy
    assert view.epoch == 0


def test_changes_where_rows_are_asked_and_rows_that_are_not_there() -> None:
    view = KEYED.run()
    change = {**COLUMNS, "weight": [1, -1]}
    for way in ("add", "remove"):
        with pytest.raises(
            ChangeError, match="a change was given that takes a row away, and rows were asked"
        ):
            getattr(view.input("orders"), way)(change)
    with pytest.raises(ChangeError, match="is given a row to take away"):
        view.input("orders").upsert(change)
    with pytest.raises(AbsentRow, match="a row is taken away that is not there"):
        view.step(orders={**COLUMNS, "op": ["d", "d"]})


def test_a_dict_is_rows_or_columns_and_never_both() -> None:
    assert not is_columns({"a": 1, "b": 2})
    assert not is_columns({Order(1, "a"): 1})
    assert not is_columns({})
    assert is_columns({"a": [1], "b": 1})
    assert not is_table(np.zeros(3))
    assert not is_table(structured()[0])
    assert not is_table(ef.ZSet())


def test_a_dataframe_of_spark_is_for_views_on_spark() -> None:
    """Also where it could be read as a stream: that would collect it, and nobody has said so."""
    frame = pytest.importorskip("pyspark.sql").DataFrame
    fake = type("DataFrame", (frame,), {"__new__": lambda cls: object.__new__(cls)})()
    with pytest.raises(ChangeError, match="given to a view that is not on Spark") as error:
        ORDERS.run().step(orders=fake)
    assert error.value.remedy == "orders=table.toArrow()"


def test_a_class_of_ones_own_is_read_as_the_library_does() -> None:
    class Mine(pd.DataFrame):
        pass

    assert ORDERS.run().step(orders=Mine(COLUMNS)) == ef.ZSet.of(ROWS)


def test_without_pyarrow_the_remedy_names_the_extra() -> None:
    code = (
        "import sys, ebbflow as ef\n"
        "import importlib.util as u; find = u.find_spec\n"
        "u.find_spec = lambda name, *more: None if name == 'pyarrow' else find(name, *more)\n"
        "import ebbflow.engine.runtime.tables as t; t.find_spec = u.find_spec\n"
        "view = ef.Input('numbers', int).run()\n"
        "view.step(numbers=[1]); assert 'pyarrow' not in sys.modules\n"
        "view.step(numbers={'value': [1]})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-2:] == [
        "ebbflow.errors.ChangeError: input 'numbers': a table was given, and to read it takes "
        "pyarrow",
        "    try        pip install '.[tables]' in a clone of ebbflow",
    ]
