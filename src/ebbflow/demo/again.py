"""The six views of the shop computed again, from all rows, without ebbflow.

What the demo is measured against, and compared with row by row. `recompute_sql` is what one would
write in Spark SQL, over cached tables; `recompute_rows` is a Python program with dicts. A result is
a dict from a row, as a plain tuple, to how often it is there.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from heapq import nlargest
from statistics import median
from typing import Any

Result = dict[tuple[Any, ...], int]

PLACED = """
    SELECT o.id AS `order`, o.customer, c.country, o.day, o.due
    FROM {orders} o
    LEFT ANTI JOIN {cancellations} x ON x.`order` = o.id
    JOIN {customers} c ON c.id = o.customer
"""
SALES = """
    SELECT p.`order`, p.customer, l.product, p.country, substr(p.day, 1, 7) AS month,
           l.quantity * l.price AS amount
    FROM {lines} l JOIN {placed} p ON p.`order` = l.`order`
"""
BOOKINGS = """
    SELECT * FROM {sales}
    UNION ALL
    SELECT p.`order`, p.customer, r.product, p.country, substr(r.day, 1, 7), -r.amount
    FROM {refunds} r JOIN {placed} p ON p.`order` = r.`order`
"""
VIEWS = {
    "revenue": """
        SELECT country, month, sum(amount), count(*), CAST(sum(amount) AS DOUBLE) / count(*)
        FROM {bookings} GROUP BY country, month
    """,
    "best": """
        SELECT category, id, name, revenue FROM (
            SELECT *, row_number() OVER (
                PARTITION BY category ORDER BY revenue DESC, id DESC, name DESC
            ) AS place
            FROM (SELECT product, sum(amount) AS revenue FROM {bookings} GROUP BY product)
            JOIN {products} ON id = product
        ) WHERE place <= 3
    """,
    "idle": """
        SELECT c.id, c.name, c.country
        FROM {customers} c
        LEFT ANTI JOIN (
            SELECT o.customer FROM {orders} o
            LEFT ANTI JOIN {cancellations} x ON x.`order` = o.id
        ) l ON l.customer = c.id
    """,
    "basket": """
        SELECT country, count(*), percentile(value, 0.5) FROM (
            SELECT country, sum(amount) AS value FROM {sales} GROUP BY `order`, country
        ) GROUP BY country
    """,
    "late": """
        SELECT country, sum(amount),
               sum(CASE WHEN late THEN amount ELSE 0 END) * 10000 DIV sum(amount)
        FROM (
            SELECT p.country, m.amount, m.day > p.due AS late
            FROM {payments} m JOIN {placed} p ON p.`order` = m.`order`
        ) GROUP BY country
    """,
    "referred": """
        WITH RECURSIVE tree(through, customer) AS (
            SELECT `by`, customer FROM {referrals}
            UNION ALL
            SELECT t.through, r.customer
            FROM tree t JOIN {referrals} r ON r.`by` = t.customer
        )
        SELECT through, count(*), sum(revenue)
        FROM tree JOIN (
            SELECT customer, sum(amount) AS revenue FROM {bookings} GROUP BY customer
        ) USING (customer)
        GROUP BY through
    """,
}
"""In Spark SQL a recursion runs one job for each level of the tree, and has no `distinct`: it ends
because nobody is referred in a circle."""


def recompute_sql(session: Any, tables: Mapping[str, Any]) -> dict[str, Any]:
    """The views as DataFrames, over DataFrames of the inputs. Nothing runs yet."""
    frames = dict(tables)
    frames["placed"] = session.sql(PLACED, **frames)
    frames["sales"] = session.sql(SALES, **frames)
    frames["bookings"] = session.sql(BOOKINGS, **frames)
    return {name: session.sql(text, **frames) for name, text in VIEWS.items()}


def counted(frame: Any) -> Result:
    """The rows of a DataFrame."""
    return dict(Counter(_tuples(frame)))


def weighted(frame: Any) -> Result:
    """The rows of a DataFrame whose last column is their weight, with the weights added up."""
    found: Result = {}
    for *row, weight in _tuples(frame):
        found[tuple(row)] = found.get(tuple(row), 0) + weight
    return {row: weight for row, weight in found.items() if weight}


def _tuples(frame: Any) -> Iterable[tuple[Any, ...]]:
    return zip(*(column.to_pylist() for column in frame.toArrow().columns), strict=True)


def recompute_rows(tables: Mapping[str, Iterable[Any]]) -> dict[str, Result]:
    """The views from rows.

    >>> from ebbflow.demo.data import Shop, rows_of
    >>> shop = Shop(100)
    >>> found = recompute_rows({name: rows_of(name, each) for name, each in shop.tables.items()})
    >>> sorted(found)
    ['basket', 'best', 'idle', 'late', 'referred', 'revenue']
    """
    country_of = {each.id: each.country for each in tables["customers"]}
    cancelled = {each.order for each in tables["cancellations"]}
    live = {each.id: each for each in tables["orders"] if each.id not in cancelled}
    placed = {id: country_of[order.customer] for id, order in live.items()}
    baskets: dict[int, int] = defaultdict(int)
    months: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    spent: dict[int, int] = defaultdict(int)
    products: dict[int, int] = defaultdict(int)
    for line in tables["lines"]:
        country = placed.get(line.order)
        if country is None:
            continue
        amount = line.quantity * line.price
        baskets[line.order] += amount
        products[line.product] += amount
        spent[live[line.order].customer] += amount
        month = months[country, live[line.order].day[:7]]
        month[0] += amount
        month[1] += 1
    for refund in tables["refunds"]:
        country = placed.get(refund.order)
        if country is None:
            continue
        products[refund.product] -= refund.amount
        spent[live[refund.order].customer] -= refund.amount
        month = months[country, refund.day[:7]]
        month[0] -= refund.amount
        month[1] += 1
    money: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for payment in tables["payments"]:
        country = placed.get(payment.order)
        if country is None:
            continue
        money[country][0] += payment.amount
        money[country][1] += payment.amount if payment.day > live[payment.order].due else 0
    values: dict[str, list[int]] = defaultdict(list)
    for order, value in baskets.items():
        values[placed[order]].append(value)
    sellers: dict[str, list[tuple[int, int, str]]] = defaultdict(list)
    for product in tables["products"]:
        if product.id in products:
            sellers[product.category].append((products[product.id], product.id, product.name))
    referred_by = {each.customer: each.by for each in tables["referrals"]}
    brought: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    for customer, revenue in spent.items():
        through = referred_by.get(customer)
        while through is not None:
            brought[through][0] += 1
            brought[through][1] += revenue
            through = referred_by.get(through)
    buyers = {order.customer for order in live.values()}
    return {
        "revenue": _once((*key, net, n, net / n) for key, (net, n) in months.items()),
        "best": _once(
            (category, id, name, revenue)
            for category, found in sellers.items()
            for revenue, id, name in nlargest(3, found)
        ),
        "idle": _once(tuple(each) for each in tables["customers"] if each.id not in buyers),
        "basket": _once((key, len(found), float(median(found))) for key, found in values.items()),
        "late": _once((key, paid, late * 10_000 // paid) for key, (paid, late) in money.items()),
        "referred": _once((through, *found) for through, found in brought.items()),
    }


def _once(rows: Iterable[tuple[Any, ...]]) -> Result:
    return dict.fromkeys(rows, 1)
