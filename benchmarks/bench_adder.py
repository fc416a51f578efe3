"""Does a tabulated processor gain from several processes? The full adder on a million bits."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from os import cpu_count
from random import Random

from harness import Row, in_turns, main

from ebbflow.stream import full_adder, reduce_in_processes

ALPHABET = [(0, 0), (0, 1), (1, 0), (1, 1)]


def measure(quick: bool) -> list[Row]:
    size = 20_000 if quick else 1_000_000
    dice = Random(1)
    bits = [ALPHABET[dice.randrange(4)] for _ in range(size)]
    adder = full_adder()
    workers = cpu_count() or 1
    expected = adder(bits)
    with ProcessPoolExecutor(workers) as pool:

        def parallel(**options: object) -> object:
            return reduce_in_processes(
                adder, bits, states=[0, 1], workers=workers, pool=pool, **options
            )

        assert parallel(alphabet=ALPHABET)[1] == expected
        times = in_turns(
            {
                "sequential": lambda: adder(bits),
                "one process, by table": lambda: reduce_in_processes(
                    adder, bits, states=[0, 1], alphabet=ALPHABET, workers=1, pool=_Here()
                ),
                f"{workers} processes, bits as pairs": parallel,
                f"{workers} processes, bits as codes": lambda: parallel(alphabet=ALPHABET),
            },
            rounds=3 if quick else 5,
        )
    base = times["sequential"]
    return [
        {"how": name, "bits": size, "ms": seconds * 1e3, "speed-up": base / seconds}
        for name, seconds in times.items()
    ]


class _Here:
    """Runs jobs in this process."""

    map = staticmethod(map)


if __name__ == "__main__":
    main(str(__doc__), measure)
