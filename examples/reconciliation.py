"""The books against the bank: what is booked and not paid, paid and not booked, or booked twice.

`books - bank` is the whole program: a difference of Z-sets. Payments that are in both cancel. What
is left over has a weight: 1 for a booking the bank does not know, 2 for one it does not know
twice, -1 for a payment that nobody has booked. Set difference (`except_`) could not tell a payment
that was booked twice from one that was booked once. A view that is empty means that the two agree.

Wrong amounts are found by a join on the reference; the checksum shows at a glance whether two
lists of any length are equal, in any order, and is kept up to date one payment at a time.

    python examples/reconciliation.py
"""

from __future__ import annotations

from typing import NamedTuple
from zlib import crc32

import ebbflow as ef


class Payment(NamedTuple):
    reference: str
    amount: int


class Typo(NamedTuple):
    reference: str
    booked: int
    paid: int


def typo(booking: Payment, payment: Payment) -> Typo:
    return Typo(booking.reference, booking.amount, payment.amount)


def checksum(payment: Payment) -> int:
    return crc32(repr(tuple(payment)).encode())


books = ef.Input("books", Payment)
bank = ef.Input("bank", Payment)

pairs = books.join(bank, on="reference", select=typo)
program = ef.program(
    difference=books - bank,
    typos=pairs.filter(lambda pair: pair.booked != pair.paid).distinct(),
    book_sum=books.agg(total=ef.sum("amount"), check=ef.bit_xor(checksum)),
    bank_sum=bank.agg(total=ef.sum("amount"), check=ef.bit_xor(checksum)),
    agreed=books.intersect(bank).reduce(ef.count()),
)

start = {
    "books": [
        Payment("R-101", 250),
        Payment("R-102", 80),
        Payment("R-103", 120),
        Payment("R-103", 120),
        Payment("R-104", 69),
    ],
    "bank": [
        Payment("R-101", 250),
        Payment("R-103", 120),
        Payment("R-104", 96),
        Payment("R-105", 30),
    ],
}


def meaning(weight: int) -> str:
    side = "in the books" if weight > 0 else "at the bank"
    return f"{abs(weight)} more {side}"


def main() -> None:
    view = program.run()

    def show(what: str) -> None:
        print(what)
        for payment, weight in sorted(view["difference"].value.items()):
            print(f"  {payment.reference} {payment.amount:>4}: {meaning(weight)}")

    view.step(start)
    show("the end of the month")
    for row in sorted(view["typos"].value):
        print(f"a typing error? {row.reference} is booked as {row.booked}, paid as {row.paid}")
    view.step(books={Payment("R-104", 69): -1, Payment("R-104", 96): 1})
    show("R-104 is corrected")
    view.input("books").remove(Payment("R-103", 120))
    show("R-103 had been booked twice")
    view.step(bank=[Payment("R-102", 80)], books=[Payment("R-105", 30)])
    show("R-102 arrives, R-105 is booked: nothing is left to explain")
    (ours,), (theirs,) = view["book_sum"].value, view["bank_sum"].value
    print(f"totals {ours.total} and {theirs.total}, checksums equal: {ours.check == theirs.check}")
    for (agreed,) in view["agreed"].value:
        print(f"payments that both know: {agreed}, after {view.epoch} epochs")


if __name__ == "__main__":
    main()
