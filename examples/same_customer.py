"""Which accounts belong to one customer, when matches come and go. (Connected components.)

Two accounts match when they share an e-mail address or a phone number; who matches somebody who
matches me is me as well. Each account takes the smallest number of all that it hangs together with:
in every round it has the least of its own and its neighbours' numbers, until a round changes none.

A match that is taken back may cut a customer in two, and then one half needs a number of its own.
The smaller number still stands with all its neighbours, but it came from the other half.

    python examples/same_customer.py
"""

from __future__ import annotations

from typing import NamedTuple

import ebbflow as ef


class Account(NamedTuple):
    id: int
    email: str
    phone: str


class Contact(NamedTuple):
    account: int
    means: str


class Match(NamedTuple):
    account: int
    other: int


class Label(NamedTuple):
    account: int
    customer: int


def contacts(account: Account) -> list[Contact]:
    return [Contact(account.id, means) for means in account[1:] if means]


def matched(one: Contact, two: Contact) -> Match:
    return Match(one.account, two.account)


def handed_on(label: Label, match: Match) -> Label:
    return Label(match.other, label.customer)


accounts = ef.Input("accounts", Account, key="id")

reached_by = accounts.flat_map(contacts)
matches = reached_by.join(reached_by, on="means", select=matched).filter(
    lambda match: match.account != match.other
)


def least(labels: ef.Collection) -> ef.Collection:
    heard = labels.join(matches, on="account", select=handed_on)
    return (labels + heard).group_by("account").agg(customer=ef.min("customer"))


labels = accounts.map(lambda account: Label(account.id, account.id)).iterate(least)
program = ef.program(
    labels=labels,
    customers=labels.group_by("customer").agg(accounts=ef.collect("account"), n=ef.count()),
)

start = {
    "accounts": [
        Account(1, "ann@a", ""),
        Account(2, "ann@b", "555"),
        Account(3, "bob@a", "777"),
        Account(4, "", "555"),
        Account(5, "bob@a", ""),
    ]
}


def main() -> None:
    view = program.run()

    def tell(change: ef.ZSet) -> None:
        for sign, rows in (("-", change.negative()), ("+", change.positive())):
            for row in sorted(rows):
                print(f"  {sign} customer {row.customer}: accounts", *row.accounts)

    view["customers"].on_change(tell)
    accounts = view.input("accounts")
    print("five accounts")
    view.step(start)
    print("account 1 tells its phone number")
    accounts.upsert(Account(1, "ann@a", "555"))
    print("account 4 tells an address that bob has")
    accounts.upsert(Account(4, "bob@a", "555"))
    print("that was a mistake")
    accounts.upsert(Account(4, "", "555"))
    print("account 1 is closed")
    accounts.delete(1)


if __name__ == "__main__":
    main()
