"""What a process does that keeps a view up to date from one place to another, to be killed."""

from __future__ import annotations

from typing import Any, NamedTuple

import ebbflow as ef


class Order(NamedTuple):
    id: int
    city: str
    price: int


ORDERS = ef.Input("orders", Order, key="id")
TOTALS = ORDERS.group_by("city").agg(n=ef.count(), total=ef.sum("price"))


def work(path: str, follow: bool, **options: Any) -> None:
    """Open the view, add its sink, and follow its source."""
    from ebbflow.connectors import kafka, postgres

    with TOTALS.run(path=path) as view:
        print("open", flush=True)
        if "dsn" in options:
            dsn = options["dsn"]
            view.add_sink(postgres.TableSink(dsn, "totals", create=True))
            source: Any = postgres.changes(dsn, {"orders": "orders"}, slot="totals", limit=3)
        else:
            servers, orders, log = (options[name] for name in ("servers", "orders", "log"))
            sink = kafka.TopicSink(servers, log, format="changes", epochs=f"{log}-epochs", wait=90)
            view.add_sink(sink)
            source = kafka.changes(servers, {"orders": orders}, limit=4)
        source.run(view, follow=follow)
