"""How much do Z-set addition and join cost beside plain dict code that does the same?"""

from __future__ import annotations

from random import Random

from harness import Row, in_turns, main

from ebbflow import ZSet


def add_dicts(a: dict, b: dict) -> dict:
    """What one would write by hand: a new dict, zero weights dropped."""
    total = dict(a)
    for row, weight in b.items():
        weight += total.get(row, 0)
        if weight:
            total[row] = weight
        else:
            del total[row]
    return total


def join_dicts(a: dict, b: dict) -> dict:
    """An index of one side, a loop over the other."""
    index: dict = {}
    for row, weight in b.items():
        index.setdefault(row[0], []).append((row, weight))
    total = {}
    for row, weight in a.items():
        for other, other_weight in index.get(row[0], ()):
            total[row, other] = weight * other_weight
    return total


def rows(count: int, keys: int, dice: Random) -> dict:
    return {(dice.randrange(keys), n): dice.choice([-1, 1, 1, 2]) for n in range(count)}


def measure(quick: bool) -> list[Row]:
    dice = Random(1)
    found = []
    for size in [10, 1_000] if quick else [10, 1_000, 100_000]:
        a, b = rows(size, size // 4 + 1, dice), rows(size, size // 4 + 1, dice)
        b.update({row: -weight for row, weight in list(a.items())[: size // 5]})
        small = dict(list(b.items())[: max(1, size // 100)])
        x, y, z = ZSet(a), ZSet(b), ZSet(small)
        assert dict((x + y).items()) == add_dicts(a, b)
        assert dict(x.join(y, key=lambda r: r[0]).items()) == join_dicts(a, b)
        for what, ours, theirs in [
            ("a + b", lambda x=x, y=y: x + y, lambda a=a, b=b: add_dicts(a, b)),
            ("a + 1 %", lambda x=x, z=z: x + z, lambda a=a, s=small: add_dicts(a, s)),
            ("join", lambda x=x, y=y: x.join(y, key=lambda r: r[0]),
             lambda a=a, b=b: join_dicts(a, b)),
        ]:  # fmt: skip
            times = in_turns({"zset": ours, "dict": theirs})
            found.append(
                {"what": what, "rows": size, "zset µs": times["zset"] * 1e6,
                 "dict µs": times["dict"] * 1e6, "ratio": times["zset"] / times["dict"]}
            )  # fmt: skip
    return found


if __name__ == "__main__":
    main(str(__doc__), measure)
