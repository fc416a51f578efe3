"""A table of a real PostgreSQL server is the output, epoch by epoch, whatever is killed."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from random import Random
from threading import Timer
from typing import Annotated, Any, NamedTuple
from uuid import UUID

import pytest
from tests.servers.postgres import Database

import ebbflow as ef
from ebbflow.connectors.postgres import TableSink, changes
from ebbflow.errors import CompositionError, DatabaseError, SinkError
from ebbflow.frozen import Frozen


class Sale(NamedTuple):
    id: int
    city: str | None
    price: int


SALES = ef.Input("sales", Sale, key="id")
TOTALS = SALES.group_by("city").agg(n=ef.count(), total=ef.sum("price"))


def table(database: Database, name: str = "totals") -> ef.ZSet[Any]:
    return ef.ZSet.of(database.query(f"SELECT * FROM {name}"))


def plain(value: ef.ZSet[Any]) -> ef.ZSet[Any]:
    return ef.ZSet([(tuple(row), weight) for row, weight in value.items()])


def test_the_table_is_the_output_change_by_change_also_after_it_was_closed(
    database: Database, tmp_path: Path
) -> None:
    dice = Random(5)
    view = TOTALS.run(path=tmp_path / "state")
    view.step(sales=[Sale(i, "Rome", i) for i in range(5)])
    sink = TableSink(database.dsn, "totals", create=True)
    view.add_sink(sink)
    assert table(database) == plain(view.value), "it begins with what is there"
    for step in range(12):
        if step % 4 == 3:
            view.close()
            view = TOTALS.run(path=tmp_path / "state")
            view.add_sink(TableSink(database.dsn, "totals"))
        keys = dice.sample(range(60), 12)
        rows = [Sale(i, dice.choice(["Rome", "Oslo", None]), dice.randrange(9)) for i in keys[4:]]
        view.step(sales=ef.upsert(rows, delete=keys[:4], missing="ignore"))
        assert table(database) == plain(view.value)
        assert database.query("SELECT sink, epoch FROM ebbflow_epochs") == [
            ("table totals", view.epoch)
        ]
    view.close()


def test_a_large_change_is_copied_and_merged_and_equals_many_small_ones(
    database: Database,
) -> None:
    view = SALES.run()
    view.add_sink(TableSink(database.dsn, "sales", create=True))
    view.step(sales=[Sale(i, None if i % 7 == 0 else f"city {i}", i) for i in range(3000)])
    assert table(database, "sales") == plain(view.value)
    view.step(
        sales=ef.upsert([Sale(i, "x", -i) for i in range(0, 3000, 2)], delete=range(1, 800, 2))
    )
    assert table(database, "sales") == plain(view.value)
    view.step(sales=ef.replace([]))
    assert table(database, "sales") == ef.ZSet({})
    view.close()


def test_a_change_writes_the_rows_that_changed_and_no_others(database: Database) -> None:
    view = SALES.run()
    view.add_sink(TableSink(database.dsn, "sales", create=True))
    view.step(sales=[Sale(i, "Rome", i) for i in range(1000)])
    last = "SELECT count(*) FROM sales WHERE xmin = (SELECT xmin FROM ebbflow_epochs)"
    assert database.query(last) == [(1000,)]
    view.step(sales=ef.upsert([Sale(1, "Oslo", 1), Sale(2, "Rome", 2), Sale(1001, "Oslo", 1)]))
    assert database.query(last) == [(2,)], "one is as it was"
    view.step(sales=ef.upsert([Sale(i, "Bonn", i) for i in range(500)]))
    assert database.query(last) == [(500,)]
    view.step()
    assert database.query(last) == [(0,)], "an epoch without a change is a number"
    view.close()


@pytest.mark.parametrize("many", [3, 1000])
def test_a_bag_has_a_column_that_counts(database: Database, many: int) -> None:
    words = ef.Input("words", str)
    view = words.run()
    view.add_sink(TableSink(database.dsn, "public.words", count="times", create=True))
    view.step(words={f"word {i}": 1 + i % 3 for i in range(many)})
    view.step(words={f"word {i}": -1 for i in range(many)})
    counted = dict(database.query("SELECT value, times FROM words"))
    assert ef.ZSet(counted) == view.value
    view.close()


class Everything(NamedTuple):
    id: UUID
    number: int
    ratio: float
    sure: bool
    text: str
    data: bytes
    day: date
    time: datetime
    instant: Annotated[datetime, UTC]
    amount: Decimal
    cents: Annotated[Decimal, (10, 2)]
    maybe: int | None
    tags: tuple[str, ...]
    sizes: dict[str, int]
    part: Sale


def everything(i: int) -> Everything:
    return Everything(
        UUID(int=i), 2**62 + i, float("nan") if i % 2 else 0.1, bool(i % 2), "é\t\\N\n'\"",
        bytes([i, 0, 255]), date(2026, 1, 1 + i), datetime(2026, 1, 1, 12, 0, 0, 123456),
        datetime(2026, 1, 1, 12, tzinfo=UTC), Decimal("1.000000000000000001"), Decimal("-2.50"),
        None if i % 2 else i, ("a", "b"), Frozen({"x": i}), Sale(i, None, 3),
    )  # fmt: skip


@pytest.mark.parametrize("small", [0, 200])
def test_every_type_goes_out_and_comes_back(
    database: Database, small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ebbflow.connectors.postgres.sink.SMALL", small)
    rows = ef.Input("rows", Everything, key="id")
    view = rows.run()
    view.add_sink(TableSink(database.dsn, "things", create=True))
    view.step(rows=[everything(i) for i in range(4)])
    types = database.query(
        "SELECT string_agg(data_type, ', ' ORDER BY ordinal_position) "
        "FROM information_schema.columns WHERE table_name = 'things'"
    )
    assert types == [(
        "uuid, bigint, double precision, boolean, text, bytea, date, timestamp without time zone, "
        "timestamp with time zone, numeric, numeric, bigint, jsonb, jsonb, jsonb",
    )]  # fmt: skip
    source = changes(database.dsn, {"rows": "things"}, slot=f"types_{small}")
    other = rows.run()
    source.run(other, follow=False)
    assert other.value == view.value, "by the snapshot"
    view.step(
        rows=ef.upsert(
            [everything(i)._replace(number=7) for i in range(2, 9)], delete=[UUID(int=0)]
        )
    )
    source.run(other, follow=False)
    assert other.value == view.value, "by the log"
    assert len(other.value) == 8
    view.close()


def test_what_a_table_cannot_hold_is_refused_before_anything_is_written(database: Database) -> None:
    class Odd(NamedTuple):
        id: int
        what: object

    plain_sales = ef.Input("sales", Sale)
    for output, options, what in [
        (ef.Input("odd", Odd, key="id"), {}, "field 'what' is object"),
        (plain_sales, {}, "no key that the program shows"),
        (plain_sales, {"key": "idd"}, "no field 'idd'"),
        (plain_sales, {"count": "price"}, "a new column"),
    ]:
        with pytest.raises(CompositionError, match=what):
            output.run().add_sink(TableSink(database.dsn, "t", create=True, **options))  # type: ignore[arg-type]
    assert database.query("SELECT FROM pg_tables WHERE schemaname = 'public'") == []


def test_errors_of_the_server_say_what_to_do_and_leave_the_epoch_to_be_tried_again(
    database: Database,
) -> None:
    view = TOTALS.run()
    with pytest.raises(DatabaseError, match=r"cannot be used(.|\n)*a server that runs"):
        view.add_sink(TableSink("host=/nowhere", "totals", wait=0.1))
    with pytest.raises(DatabaseError, match=r'cannot be used(.|\n)*"nobody" does not exist'):
        view.add_sink(TableSink(f"{database.dsn} user=nobody", "totals"))
    with pytest.raises(DatabaseError, match=r"does not exist(.|\n)*create=True"):
        view.add_sink(TableSink(database.dsn, "totals"))
    database.query("CREATE TABLE totals (city text, n bigint, total int)")
    view.step(sales=[Sale(1, "Rome", 1)])
    with pytest.raises(DatabaseError, match="a unique index on the columns of the key"):
        view.add_sink(TableSink(database.dsn, "totals"))
    database.query("CREATE UNIQUE INDEX ON totals (city) NULLS NOT DISTINCT")
    view.add_sink(TableSink(database.dsn, "totals"))
    with pytest.raises(DatabaseError, match=r"out of range(.|\n)*numeric"):
        view.step(sales=[Sale(2, "Rome", 2**40)])
    assert view.epoch == 2
    ef.redact(True)
    try:
        with pytest.raises(DatabaseError) as hidden:
            view.deliver()
    finally:
        ef.redact(False)
    assert str(2**40) not in str(hidden.value)
    assert table(database) == ef.ZSet.of([("Rome", 1, 1)])
    database.query("ALTER TABLE totals ALTER total TYPE numeric")
    view.step(sales=[Sale(3, None, 5)])
    assert table(database) == plain(view.value)
    view.close()


def test_several_rows_of_one_key_are_refused(database: Database) -> None:
    for rows in (2, 1000):
        view = ef.Input("sales", Sale).run()
        view.add_sink(TableSink(database.dsn, f"t{rows}", key="city", create=True))
        with pytest.raises(SinkError, match="several rows of one key"):
            view.step(sales=[Sale(i, "Rome", i) for i in range(rows)])
        assert database.query(f"SELECT count(*) FROM t{rows}") == [(0,)]
        view.close()


def test_a_table_with_rows_is_not_overwritten_unless_asked(database: Database) -> None:
    first, second = TOTALS.run(), TOTALS.run()
    first.step(sales=[Sale(1, "Rome", 1)])
    first.add_sink(TableSink(database.dsn, "totals", create=True))
    second.step(sales=[Sale(1, "Oslo", 1)])
    with pytest.raises(SinkError, match="has rows"):
        second.add_sink(TableSink(database.dsn, "totals", name="second"))
    second.add_sink(TableSink(database.dsn, "totals", name="second", overwrite=True))
    assert table(database) == plain(second.value)
    second.step(sales=[Sale(2, "Oslo", 1)])
    second.step(sales=[Sale(3, "Oslo", 1)])
    third = TOTALS.run()
    with pytest.raises(SinkError, match="not a sink of this state"):
        third.add_sink(TableSink(database.dsn, "totals", name="second"))
    first.close()
    second.close()


def test_a_lost_connection_is_made_again_and_a_lost_answer_is_no_second_epoch(
    database: Database,
) -> None:
    view = TOTALS.run()
    sink = TableSink(database.dsn, "totals", create=True)
    view.add_sink(sink)
    gone = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
    view.step(sales=[Sale(1, "Rome", 1)])
    database.query(f"{gone} AND datname = '{database.name}'")
    view.step(sales=[Sale(2, "Rome", 2)])
    assert table(database) == plain(view.value)

    real, lost = sink._write, []

    def cut_off(cursor: Any, change: Any) -> None:
        real(cursor, change)
        if not lost:  # the transaction is done with, and its commit is not heard of
            lost.append(1)
            cursor.execute("COMMIT")
            database.query(f"{gone} AND datname = '{database.name}'")

    sink._write = cut_off  # type: ignore[method-assign]
    database.query("CREATE TABLE log (at timestamptz)")
    view.step(sales=[Sale(3, "Rome", 3)])
    assert (table(database), lost) == (plain(view.value), [1])
    view.close()


def test_a_server_that_crashes_is_waited_for(database: Database) -> None:
    view = TOTALS.run()
    view.add_sink(TableSink(database.dsn, "totals", create=True))
    database.server.stop("immediate")
    starting = Timer(0.2, database.server.start)
    starting.start()
    view.step(sales=[Sale(1, "Rome", 1)])
    starting.join()
    assert table(database) == plain(view.value)
    view.close()


@pytest.mark.parametrize("small", [0, 200])
def test_a_key_may_be_what_is_written_as_json(
    database: Database, small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ebbflow.connectors.postgres.sink.SMALL", small)

    class Tagged(NamedTuple):
        tags: tuple[str, ...]
        n: int

    rows = ef.Input("rows", Tagged, key="tags")
    view = rows.run()
    view.add_sink(TableSink(database.dsn, "tagged", create=True))
    long = [("x" * 100, str(i)) for i in range(3)]
    view.step(rows=[Tagged(tags, 1) for tags in long])
    view.step(rows=ef.upsert([Tagged(long[0], 2)], delete=[long[1]]))
    found = {(tuple(tags), n) for tags, n in database.query("SELECT tags, n FROM tagged")}
    assert found == {tuple(row) for row in view.value}
    view.close()
