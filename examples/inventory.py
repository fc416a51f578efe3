"""Stock levels and the list of what to reorder, from receipts, shipments and stocktakings.

Three kinds of paper, one meaning: units that come or go. `select` gives them the same two fields,
and the stock is the sum. A delivery note that was typed wrong is taken back and entered again:
nobody has to find out what was computed from it. Products that never moved have no stock row, so
the reorder list is a left join from the products, with None where there is no stock yet.

    python examples/inventory.py
"""

from __future__ import annotations

from typing import Any, NamedTuple

import ebbflow as ef


class Product(NamedTuple):
    sku: str
    name: str
    minimum: int
    pack: int


class Receipt(NamedTuple):
    note: int
    sku: str
    units: int


class Shipment(NamedTuple):
    order: int
    sku: str
    units: int


class Counted(NamedTuple):
    day: str
    sku: str
    difference: int


class Reorder(NamedTuple):
    name: str
    stock: int
    packs: int


def reorder(row: Any) -> Reorder:
    stock = row.stock or 0
    return Reorder(row.name, stock, -(-(row.minimum - stock) // max(row.pack, 1)))


products = ef.Input("products", Product, key="sku")
receipts = ef.Input("receipts", Receipt)
shipments = ef.Input("shipments", Shipment)
stocktaking = ef.Input("stocktaking", Counted)

moves = (
    receipts.select("sku", "units")
    + shipments.select("sku", units=lambda shipment: -shipment.units)
    + stocktaking.select("sku", units="difference")
)
stock = moves.group_by("sku").agg(stock=ef.sum("units"), moves=ef.count())
levels = products.join(stock, on="sku", how="left")
program = ef.program(
    stock=stock,
    reorder=levels.map(reorder).filter(lambda item: item.packs > 0),
    unknown=stock.join(products, on="sku", how="anti").select("sku", "stock"),
)

start = {
    "products": [
        Product("B1", "bolts", 100, 50),
        Product("N1", "nuts", 100, 40),
        Product("W1", "washers", 20, 10),
    ],
    "receipts": [Receipt(1, "B1", 150), Receipt(2, "N1", 120), Receipt(3, "X9", 7)],
    "shipments": [Shipment(10, "B1", 30), Shipment(11, "N1", 15)],
    "stocktaking": [Counted("2024-01-31", "B1", -2)],
}


def tell(change: ef.ZSet) -> None:
    for item, weight in sorted(change.items(), key=lambda each: (each[0].name, each[1])):
        sign = "+" if weight > 0 else "-"
        print(f"  {sign} {item.name}: {item.stock} in stock, packs to order: {item.packs}")


def main() -> None:
    view = program.run()
    view["reorder"].on_change(tell)
    print("the first reorder list")
    view.step(start)
    print("30 bolts are shipped")
    view.input("shipments").add(Shipment(12, "B1", 30))
    print("note 2 was 220 nuts, not 120; and 25 of them leave")
    view.step(
        receipts=ef.ZSet({Receipt(2, "N1", 120): -1, Receipt(2, "N1", 220): 1}),
        shipments=[Shipment(13, "N1", 25)],
    )
    print("shipment 12 is cancelled, the minimum of bolts raised to 200")
    view.input("shipments").remove(Shipment(12, "B1", 30))
    view.input("products").upsert(Product("B1", "bolts", 200, 50))
    for row in view["unknown"].value:
        print(f"in stock but in no catalogue: {row.stock} of {row.sku}")


if __name__ == "__main__":
    main()
