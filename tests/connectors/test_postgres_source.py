"""Tables of a real PostgreSQL server are inputs of a view: the snapshot, then every transaction."""

from __future__ import annotations

from pathlib import Path
from random import Random
from threading import Event, Thread
from typing import Any, NamedTuple

import psycopg
import pytest
from tests.servers.postgres import Database

import ebbflow as ef
from ebbflow.connectors.postgres import changes
from ebbflow.errors import ChangeError, DatabaseError, RepeatedBatch


class Order(NamedTuple):
    id: int
    customer: int
    price: int
    note: str | None


class Customer(NamedTuple):
    id: int
    country: str


ORDERS = ef.Input("orders", Order, key="id")
CUSTOMERS = ef.Input("customers", Customer, key="id")
JOINED = ORDERS.join(CUSTOMERS, left_on="customer", right_on="id", suffixes=("", "_right"))
REVENUE = JOINED.group_by("country").agg(n=ef.count(), total=ef.sum("price"))
PROGRAM = ef.program(revenue=REVENUE, orders=ORDERS)
TABLES = {"orders": "public.orders", "customers": "customers"}
REVENUE_SQL = """SELECT country, count(*), sum(price)::bigint FROM orders o JOIN customers c
    ON o.customer = c.id GROUP BY country"""


def create(database: Database) -> None:
    database.query("CREATE TABLE customers (id int PRIMARY KEY, country text NOT NULL)")
    database.query(
        "CREATE TABLE orders (id bigint PRIMARY KEY, customer int NOT NULL, price int NOT NULL, "
        "note text, entered timestamptz DEFAULT now())"
    )


def rows(database: Database, query: str) -> ef.ZSet[Any]:
    return ef.ZSet.of(database.query(query))


def plain(value: ef.ZSet[Any]) -> ef.ZSet[Any]:
    return ef.ZSet([(tuple(row), weight) for row, weight in value.items()])


def assert_equal(view: Any, database: Database) -> None:
    """The view is what the server itself says."""
    assert plain(view["orders"].value) == rows(
        database, "SELECT id, customer, price, note FROM orders"
    )
    assert plain(view["revenue"].value) == rows(database, REVENUE_SQL)


def write(connection: Any, dice: Random) -> None:
    """One transaction of random changes: inserts, updates, deletes, changed keys."""
    with connection.transaction():
        for _ in range(dice.randrange(1, 6)):
            key, other = dice.randrange(40), dice.randrange(40)
            match dice.randrange(7):
                case 0:
                    connection.execute("DELETE FROM orders WHERE id = %s", (key,))
                case 1 if key != other:
                    connection.execute("DELETE FROM orders WHERE id = %s", (other,))
                    connection.execute("UPDATE orders SET id = %s WHERE id = %s", (other, key))
                case 2:
                    connection.execute(
                        "INSERT INTO customers VALUES (%s, %s) ON CONFLICT (id) DO UPDATE "
                        "SET country = excluded.country",
                        (dice.randrange(5), dice.choice(["Italy", "Norway"])),
                    )
                case 3 if dice.random() < 0.1:
                    connection.execute("TRUNCATE orders")
                case _:
                    note = dice.choice([None, "short", "long " * 2000 + str(dice.random())])
                    connection.execute(
                        "INSERT INTO orders VALUES (%s, %s, %s, %s) ON CONFLICT (id) DO UPDATE "
                        "SET price = excluded.price, customer = excluded.customer",
                        (key, dice.randrange(5), dice.randrange(100), note),
                    )


@pytest.mark.parametrize("identity", ["DEFAULT", "FULL"])
def test_the_view_is_the_tables_after_every_transaction(database: Database, identity: str) -> None:
    create(database)
    database.query(f"ALTER TABLE orders REPLICA IDENTITY {identity}")
    dice = Random(identity)
    view = PROGRAM.run()
    source = changes(database.dsn, TABLES, slot="shop", limit=1)
    with psycopg.connect(database.dsn, autocommit=True) as connection:
        for _ in range(10):
            write(connection, dice)
        assert source.run(view, follow=False) >= 2
        assert_equal(view, database)
        for _ in range(15):
            write(connection, dice)
            source.run(view, follow=False)
            assert_equal(view, database)
        for _ in range(20):
            write(connection, dice)
        before = view.epoch
        source.limit = 1000
        assert source.run(view, follow=False) == 1, "all of them are one epoch"
        assert view.epoch == before + 1
        assert_equal(view, database)
    source.drop()
    assert database.query("SELECT FROM pg_replication_slots WHERE slot_name = 'shop'") == []


def test_an_update_that_leaves_a_large_value_keeps_it(database: Database) -> None:
    create(database)
    view = PROGRAM.run()
    source = changes(database.dsn, TABLES, slot="shop", limit=1)
    database.query("ALTER TABLE orders ALTER note SET STORAGE EXTERNAL")
    long = "x" * 10_000
    database.query("INSERT INTO orders VALUES (1, 1, 1, %s)", long)
    source.run(view, follow=False)
    database.query("UPDATE orders SET price = 2")
    source.run(view, follow=False)
    assert view.input("orders").get(1) == Order(1, 1, 2, long), "from the view"
    with psycopg.connect(database.dsn) as connection:
        connection.execute("INSERT INTO orders VALUES (2, 1, 1, %s)", (long,))
        connection.execute("UPDATE orders SET price = 3 WHERE id = 2")
        connection.execute("UPDATE orders SET id = 5 WHERE id = 1")
    source.run(view, follow=False)
    assert_equal(view, database)


def test_rows_without_a_key_come_from_tables_that_send_all_of_a_row(database: Database) -> None:
    class Said(NamedTuple):
        word: str
        times: int | None

    database.query("CREATE TABLE said (word text, times int)")
    view = ef.Input("said", Said).run()
    source = changes(database.dsn, {"said": "said"}, slot="said")
    with pytest.raises(DatabaseError, match=r"says of a row that is deleted only nothing"):
        source.run(view, follow=False)
    database.query("ALTER TABLE said REPLICA IDENTITY FULL")
    database.query("INSERT INTO said VALUES ('ebb', 1), ('ebb', 1), ('flow', NULL)")
    source.run(view, follow=False)
    database.query("UPDATE said SET times = 2 WHERE word = 'flow'")
    database.query("DELETE FROM said WHERE ctid = (SELECT min(ctid) FROM said)")
    source.run(view, follow=False)
    assert plain(view.value) == rows(database, "SELECT * FROM said")
    database.query("TRUNCATE said")
    database.query("INSERT INTO said VALUES ('sea', 3)")
    source.run(view, follow=False)
    assert view.value == ef.ZSet.of([Said("sea", 3)])


def test_the_snapshot_and_the_log_meet_while_others_write(
    database: Database, tmp_path: Path
) -> None:
    """Writers run from before the slot is made until after; nothing is missed or had twice."""
    create(database)
    database.query(
        "INSERT INTO orders SELECT i, i %% 5, i, repeat('x', 100) FROM generate_series(1, 20000) i"
        .replace("%%", "%")
    )  # fmt: skip
    ended = Event()

    def writer(seed: int) -> None:
        dice = Random(seed)
        with psycopg.connect(database.dsn, autocommit=True) as connection:
            while not ended.is_set():
                try:
                    write(connection, dice)
                except (psycopg.errors.DeadlockDetected, psycopg.errors.UniqueViolation):
                    continue

    writers = [Thread(target=writer, args=(seed,)) for seed in range(2)]
    for each in writers:
        each.start()
    source = changes(database.dsn, TABLES, slot="shop", limit=200)
    with PROGRAM.run(path=tmp_path) as view:
        try:
            for _ in range(3):
                source.run(view, follow=False)
        finally:
            ended.set()
            for each in writers:
                each.join()
        source.run(view, follow=False)
        assert_equal(view, database)
        view.verify()


def test_it_follows_until_it_is_stopped(database: Database) -> None:
    create(database)
    view, stop = PROGRAM.run(), Event()
    view.on_change(lambda change: stop.set() if change["orders"] else None)
    follower = Thread(
        target=lambda: changes(database.dsn, TABLES, slot="shop").run(view, stop=stop)
    )
    follower.start()
    database.query("INSERT INTO orders VALUES (1, 1, 5)")
    follower.join(30)
    assert not follower.is_alive()
    assert_equal(view, database)


def test_while_the_log_rests_nothing_is_asked_of_the_slot(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(database)
    view, stop, asked = PROGRAM.run(), Event(), []
    source = changes(database.dsn, TABLES, slot="shop")
    source.run(view, follow=False)
    peek = source._peek

    def counted(resting: int | None, connection: Any) -> Any:
        found = peek(resting, connection)
        asked.append(found[2] is not None)
        if len(asked) == 10:
            stop.set()
        return found

    monkeypatch.setattr(source, "_peek", counted)
    monkeypatch.setattr("ebbflow.connectors.postgres.source.rest", lambda stop: not stop.is_set())
    epoch = view.epoch
    source.run(view, stop=stop)
    assert sum(asked) < 4, "but for what the server writes of its own"
    assert view.epoch == epoch


def test_a_batch_that_is_not_done_comes_again_and_happens_once(
    database: Database, tmp_path: Path
) -> None:
    create(database)
    source = changes(database.dsn, TABLES, slot="shop", limit=1)
    with PROGRAM.run(path=tmp_path) as view:
        source.run(view, follow=False)
        for i in range(3):
            database.query(f"INSERT INTO orders VALUES ({i}, 1, 5)")
        for batch in source.batches(view, follow=False):
            view.step(batch.changes, batch=batch.name)
            break  # killed before `done`: the slot does not know
        batches = source.batches(view, follow=False)
        first = next(batches)
        assert first.name > batch.name, "the view knows"
        assert next(batches).name == first.name, "not done"
        view.step(first.changes, batch=first.name)
        with pytest.warns(RepeatedBatch):
            view.step(first.changes, batch=first.name)
        first.done()
        view.step((last := next(batches)).changes, batch=last.name)
        last.done()
        assert list(batches) == []
        assert_equal(view, database)


@pytest.mark.parametrize("spoil", ["drop", "advance", "other view"])
def test_a_slot_that_is_not_as_the_view_left_it_is_refused_or_begun_again(
    database: Database, tmp_path: Path, spoil: str
) -> None:
    create(database)
    source = changes(database.dsn, TABLES, slot="shop")
    database.query("INSERT INTO orders VALUES (1, 1, 5), (2, 1, 6)")
    with PROGRAM.run(path=tmp_path) as view:
        source.run(view, follow=False)
        database.query("DELETE FROM orders WHERE id = 1")
        database.query("INSERT INTO orders VALUES (3, 1, 5)")
        if spoil == "drop":
            source.drop()
        elif spoil == "advance":
            end = database.query("SELECT pg_current_wal_lsn()")[0][0]
            database.query("SELECT pg_replication_slot_advance('shop', %s)", end)
        else:
            view.close()
            view = PROGRAM.run()
        with pytest.raises(DatabaseError, match=r"so changes would be missing(.|\n)*begin_again"):
            source.run(view, follow=False)
        seen: list[Any] = []
        view.on_change(seen.append)
        source.begin_again = True
        source.run(view, follow=False)
        assert_equal(view, database)
        if spoil != "other view":
            assert sum(abs(w) for _, w in seen[0]["orders"].items()) == 2, "what differs flows"
        database.query("UPDATE orders SET price = 9")
        source.run(view, follow=False)
        assert_equal(view, database)


def test_what_does_not_fit_is_refused_with_the_place(database: Database) -> None:
    create(database)

    def program(**fields: Any) -> Any:
        from ebbflow.record import record

        return ef.Input("orders", record("Row", **fields), key="id").run()

    def run(view: Any, slot: str = "x", table: str = "orders") -> None:
        changes(database.dsn, {"orders": table}, slot=slot).run(view, follow=False)

    with pytest.raises(DatabaseError, match=r"there is no table 'public.order'"):
        run(program(id=int), table="order")
    with pytest.raises(DatabaseError, match=r"has no column 'amount'"):
        run(program(id=int, amount=int))
    with pytest.raises(DatabaseError, match="says of a row that is deleted only id"):
        run(ef.Input("orders", Order, key="customer").run())
    with pytest.raises(ef.EbbflowError, match="no input 'orders'"):
        run(ef.Input("other", int).run())
    view = program(id=int, note=str)
    run(view)
    epoch = view.epoch
    database.query("INSERT INTO orders VALUES (1, 1, 5, NULL)")
    with pytest.raises(ChangeError, match=r"table 'public.orders', log position .*'note'") as found:
        run(view)
    assert "created" in str(found.value)
    assert view.epoch == epoch
    database.query("ALTER TABLE orders ADD COLUMN extra int DEFAULT 3")
    good = program(id=int, price=int)
    run(good, "y")
    database.query("ALTER TABLE orders DROP COLUMN extra")
    database.query("UPDATE orders SET price = 7")
    run(good, "y")
    assert [tuple(row) for row in good.value] == [(1, 7)], "columns come and go"
    database.query("ALTER TABLE orders DROP COLUMN price")
    with pytest.raises(DatabaseError, match="no column 'price'"):
        run(good, "y")


def test_a_slot_whose_tables_rest_lets_the_log_of_others_go(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ebbflow.connectors.postgres.source.SEGMENT", 10_000)
    create(database)
    database.query("CREATE TABLE other (data text)")
    view = PROGRAM.run()
    source = changes(database.dsn, TABLES, slot="shop")
    source.run(view, follow=False)
    slot = "SELECT confirmed_flush_lsn - '0/0' FROM pg_replication_slots WHERE slot_name = 'shop'"
    before, epoch = database.query(slot)[0][0], view.epoch
    database.query("INSERT INTO other SELECT repeat('x', 1000) FROM generate_series(1, 100)")
    source.run(view, follow=False)
    assert database.query(slot)[0][0] > before + 100_000
    assert view.epoch == epoch + 1
    source.run(view, follow=False)
    assert view.epoch == epoch + 1, "nothing, for nothing"


def test_a_table_in_partitions_is_one_table(database: Database) -> None:
    database.query("CREATE TABLE c (id int PRIMARY KEY, country text) PARTITION BY RANGE (id)")
    database.query("CREATE TABLE c1 PARTITION OF c FOR VALUES FROM (0) TO (10)")
    database.query("CREATE TABLE c2 PARTITION OF c FOR VALUES FROM (10) TO (20)")
    database.query("INSERT INTO c VALUES (1, 'Italy'), (11, 'Norway')")
    view = CUSTOMERS.run()
    source = changes(database.dsn, {"customers": "c"}, slot="parts")
    source.run(view, follow=False)
    database.query("UPDATE c SET id = 12 WHERE id = 1")
    database.query("DELETE FROM c WHERE id = 11")
    source.run(view, follow=False)
    assert view.value == ef.ZSet.of([Customer(12, "Italy")])


def test_transactions_that_changed_nothing_of_ours_are_no_epochs(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(database)
    view = PROGRAM.run()
    source = changes(database.dsn, TABLES, slot="shop")
    source.run(view, follow=False)
    epoch, peek = view.epoch, source._peek

    def older(resting: int | None, connection: Any) -> Any:
        """As a server before 15 tells it: the end of a transaction of other tables."""
        flushed, _, loads = peek(None, connection)
        return flushed, [b"C" + bytes(9) + (flushed + 1).to_bytes(8, "big") + bytes(8)], loads

    monkeypatch.setattr(source, "_peek", older)
    assert source.run(view, follow=False) == 0
    assert view.epoch == epoch


def connections(database: Database) -> int:
    query = f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{database.name}'"
    return int(database.server.query(query)[0][0])


@pytest.mark.slow
def test_connections_and_the_server_are_lost_while_it_follows(
    database: Database, tmp_path: Path
) -> None:
    create(database)
    stop = Event()
    gone = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
    dice = Random(4)
    with PROGRAM.run(path=tmp_path) as view:
        source = changes(database.dsn, TABLES, slot="shop", limit=5)
        follower = Thread(target=lambda: source.run(view, stop=stop))
        follower.start()
        for turn in range(6):
            with psycopg.connect(database.dsn, autocommit=True) as connection:
                for _ in range(5):
                    write(connection, dice)
            if turn % 3 == 2:
                database.server.stop("immediate")
                database.server.start()
            else:
                database.query(f"{gone} AND datname = '{database.name}'")
        stop.set()
        follower.join(60)
        assert not follower.is_alive()
        source.run(view, follow=False)
        assert_equal(view, database)
    assert connections(database) == 0, "none is left open"
