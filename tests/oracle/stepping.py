"""A process that steps rows of its own into a state, whoever else does, and says what was done."""

from __future__ import annotations

import sys
from random import Random
from time import sleep

import ebbflow as ef
from ebbflow.errors import InUse, Lost

SAID = ef.Input("said", tuple)


def driver(url: str, endpoint: str, cache: str, name: str, steps: int, seed: str) -> None:
    """Take the state over, step a few rows, and so on. A line has an epoch, the name, and how many
    rows were acknowledged."""
    dice, done = Random(f"{name}{seed}"), 0
    given = {"endpoint": endpoint, "region": "us-east-1", "access_key_id": "t",
             "secret_access_key": "t"} if endpoint else {"user": "root"}  # fmt: skip
    place = ef.object_store(url, take_over=True, cache=cache, **given)
    while done < steps:
        try:
            view = SAID.run(path=place, readable=True)
        except (InUse, Lost):
            sleep(dice.random() * 0.2)
            continue
        try:
            for _ in range(min(dice.randrange(1, 6), steps - done)):
                view.step(said=[(name, done)], batch=(name, done))
                done += 1
                print(view.epoch, name, done, flush=True)
        except (InUse, Lost):
            sleep(dice.random() * 0.2)
        finally:
            view.close()


if __name__ == "__main__":
    *where, given, count, luck = sys.argv[1:]
    driver(*where, given, int(count), luck)
