"""What does it cost to trace a function and make it a value, beside one call of it?"""

from __future__ import annotations

from time import perf_counter
from typing import Any, NamedTuple

from harness import Row, in_turns, main

from ebbflow.fn import Fn


class Order(NamedTuple):
    id: int
    city: str
    price: int


BODIES = {
    "a field": "o.price * {} > 3",
    "a tuple": "(o.city, o.price * {} > 3 and o.id)",
    "a choice": "o.city if o.price > {} else str(o.id)",
    "not traced": "sorted([o.price, {}])",
}


def made(body: str, count: int) -> list[Any]:
    """Functions that differ in a constant, so that each is traced anew."""
    return [eval(f"lambda o: {body.format(i)}") for i in range(count)]


def measure(quick: bool) -> list[Row]:
    count, rounds = (50, 5) if quick else (500, 9)
    order, found = Order(1, "Rome", 10), []
    for what, body in BODIES.items():
        Fn.of(made(body, 1)[0], Order)  # what is done once is done
        times = []
        for _ in range(rounds):
            functions = made(body, count)
            begin = perf_counter()
            for function in functions:
                Fn.of(function, Order)
            times.append((perf_counter() - begin) / count)
        one = made(body, 1)[0]
        call = in_turns({"call": lambda one=one: one(order)}, rounds=3)["call"]
        best = min(times)
        found.append(
            {"body": what, "functions": count, "µs to make one": best * 1e6,
             "µs to call it": call * 1e6, "ratio": best / call}
        )  # fmt: skip
    return found


if __name__ == "__main__":
    main(str(__doc__), measure)
