"""The program of the demo: a shop, and six views of it.

Customers place orders; an order has lines, each a product, a quantity and a price in cents. Orders
are paid, perhaps late, lines are refunded, orders are cancelled. Customers refer other customers,
who refer others. Nothing below says what to do when any of this is corrected or taken back.

    revenue   by country and month, net of refunds, without cancelled orders
    best      the three products of each category with the most revenue
    idle      customers without an order
    basket    the median value of an order, by country
    late      which share of the money came after it was due, by country
    referred  for each customer how many have bought that came through them, directly or through
              others, and the revenue with these: a recursive view

The share is a reducer of the demo's own. `ROUNDED` is the same idea with a mistake: it keeps the
share itself, rounded, as one would write it first. What was rounded cannot be taken out again.
"""

from __future__ import annotations

from typing import NamedTuple

import ebbflow as ef

# ---- rows that come in ----


class Customer(NamedTuple):
    id: int
    name: str
    country: str


class Referral(NamedTuple):
    customer: int
    by: int


class Article(NamedTuple):
    id: int
    name: str
    category: str


class CustomerOrder(NamedTuple):
    id: int
    customer: int
    day: str
    due: str


class OrderLine(NamedTuple):
    order: int
    number: int
    product: int
    quantity: int
    price: int


class Payment(NamedTuple):
    id: int
    order: int
    day: str
    amount: int


class Refund(NamedTuple):
    id: int
    order: int
    product: int
    day: str
    amount: int


class Cancellation(NamedTuple):
    order: int
    day: str


# ---- rows in between ----


class Placed(NamedTuple):
    order: int
    customer: int
    country: str
    day: str
    due: str


class Booking(NamedTuple):
    order: int
    customer: int
    product: int
    country: str
    month: str
    amount: int


class Paid(NamedTuple):
    country: str
    amount: int
    late: bool


class CameThrough(NamedTuple):
    customer: int
    through: int


class Brought(NamedTuple):
    through: int
    revenue: int


class Seller(NamedTuple):
    category: str
    product: int
    name: str
    revenue: int


def placed_by(order: CustomerOrder, customer: Customer) -> Placed:
    return Placed(order.id, customer.id, customer.country, order.day, order.due)


def sold(line: OrderLine, order: Placed) -> Booking:
    amount = line.quantity * line.price
    month = order.day[:7]
    return Booking(order.order, order.customer, line.product, order.country, month, amount)


def paid_back(refund: Refund, order: Placed) -> Booking:
    month, amount = refund.day[:7], -refund.amount
    return Booking(order.order, order.customer, refund.product, order.country, month, amount)


def received(payment: Payment, order: Placed) -> Paid:
    return Paid(order.country, payment.amount, payment.day > order.due)


def further(found: CameThrough, referral: Referral) -> CameThrough:
    return CameThrough(referral.customer, found.through)


# ---- a reducer of its own ----

WHOLE = 10_000
SAMPLES = (
    Paid("Italy", 1, True),
    Paid("Italy", 2, False),
    Paid("Italy", 300, True),
    Paid("Italy", 700, False),
)


def _more(acc: tuple[int, int], paid: Paid) -> tuple[int, int]:
    return acc[0] + (paid.amount if paid.late else 0), acc[1] + paid.amount


def _less(acc: tuple[int, int], paid: Paid) -> tuple[int, int]:
    return acc[0] - (paid.amount if paid.late else 0), acc[1] - paid.amount


def _share(acc: tuple[int, int]) -> int:
    return acc[0] * WHOLE // acc[1] if acc[1] else 0


LATE: ef.Reducer[Paid, tuple[int, int], int] = ef.Reducer(
    (0, 0), _more, _less, result=_share, name="late share", elements=SAMPLES, partial=False
)


def _mixed(acc: tuple[int, int], paid: Paid) -> tuple[int, int]:
    share, total = acc[0] * acc[1] + (WHOLE * paid.amount if paid.late else 0), acc[1] + paid.amount
    return (share // total if total else 0), total


def _unmixed(acc: tuple[int, int], paid: Paid) -> tuple[int, int]:
    share, total = acc[0] * acc[1] - (WHOLE * paid.amount if paid.late else 0), acc[1] - paid.amount
    return (share // total if total else 0), total


def _first(acc: tuple[int, int]) -> int:
    return acc[0]


ROUNDED: ef.Reducer[Paid, tuple[int, int], int] = ef.Reducer(
    (0, 0), _mixed, _unmixed, result=_first, name="rounded share", elements=SAMPLES, partial=False
)

# ---- the program ----

customers = ef.Input("customers", Customer)
referrals = ef.Input("referrals", Referral)
products = ef.Input("products", Article)
orders = ef.Input("orders", CustomerOrder)
lines = ef.Input("lines", OrderLine)
payments = ef.Input("payments", Payment)
refunds = ef.Input("refunds", Refund)
cancellations = ef.Input("cancellations", Cancellation)

live = orders.join(cancellations, left_on="id", right_on="order", how="anti")
placed = live.join(customers, left_on="customer", right_on="id", select=placed_by)
sales = lines.join(placed, on="order", select=sold)
bookings = sales + refunds.join(placed, on="order", select=paid_back)
by_product = bookings.group_by("product").agg(revenue=ef.sum("amount"))
baskets = sales.group_by("order", "country").agg(value=ef.sum("amount"))


spent = bookings.group_by("customer").agg(revenue=ef.sum("amount"))


def one_further(tree: ef.Collection) -> ef.Collection:
    """One round: those who came through somebody, and those whom these have referred."""
    return tree.union(tree.join(referrals, left_on="customer", right_on="by", select=further))


tree = referrals.map(lambda referral: CameThrough(referral.customer, referral.by)).iterate(
    one_further
)


def _brought(found: CameThrough, spent: NamedTuple) -> Brought:
    return Brought(found.through, spent.revenue)  # type: ignore[attr-defined]


def _seller(found: NamedTuple, product: Article) -> Seller:
    return Seller(product.category, product.id, product.name, found.revenue)  # type: ignore[attr-defined]


program = ef.program(
    revenue=bookings.group_by("country", "month").agg(
        net=ef.sum("amount"), bookings=ef.count(), mean=ef.mean("amount").then(float)
    ),
    best=by_product.join(products, left_on="product", right_on="id", select=_seller).top_k(
        3, order="revenue", per="category"
    ),
    idle=customers.join(live, left_on="id", right_on="customer", how="anti"),
    basket=baskets.group_by("country").agg(
        orders=ef.count(), median=ef.median("value").then(float)
    ),
    late=payments.join(placed, on="order", select=received)
    .group_by("country")
    .agg(paid=ef.sum("amount"), late=LATE),
    referred=tree.join(spent, on="customer", select=_brought)
    .group_by("through")
    .agg(buyers=ef.count(), revenue=ef.sum("revenue")),
)

TYPES: dict[str, type[NamedTuple]] = {
    "customers": Customer,
    "referrals": Referral,
    "products": Article,
    "orders": CustomerOrder,
    "lines": OrderLine,
    "payments": Payment,
    "refunds": Refund,
    "cancellations": Cancellation,
}
