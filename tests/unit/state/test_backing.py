"""Backings: which keys are here, what they take, and what is let go."""

from __future__ import annotations

from typing import Any, NamedTuple

from ebbflow.expression import fingerprint
from ebbflow.fn import Fn
from ebbflow.reducer import Reducer, sum
from ebbflow.state.backing import ABSENT, Backing, weigh
from ebbflow.state.spine import Spine
from ebbflow.state.tree import Tree


def backed(values: dict[Any, Any], **options: Any) -> Backing:
    spine = Spine("value")
    spine.append(values)
    return Backing({}, spine, **options)


def test_without_a_limit_everything_is_here_from_the_start() -> None:
    backing = backed({1: "a", 2: "b"}, limited=False)
    assert backing.held == {1: "a", 2: "b"}
    assert backing.everything() is backing.held


def test_with_a_limit_only_what_was_fetched_is_here() -> None:
    backing = backed({1: "a", 2: "b", 3: "c"}, limited=True)
    backing.fetch([2, 9])
    assert backing.held == {2: "b"}
    backing.fetch([3])
    backing.release(2)
    assert (backing.held, list(backing.resident or ())) == ({3: "c"}, [3])
    assert backing.everything() == {1: "a", 2: "b", 3: "c"}


def test_what_was_written_is_found_again_and_what_was_taken_is_not() -> None:
    backing = backed({1: "a", 2: "b"}, limited=True)
    backing.append({1: ABSENT, 3: "c"})
    backing.fetch([1, 3])
    assert backing.held == {3: "c"}


def test_a_codec_stands_between_here_and_there() -> None:
    class Doubled:
        def dump(self, key: int, value: int) -> int:
            return value * 2

        def load(self, key: int, stored: int) -> tuple[int, int]:
            return key, stored // 2

    backing = Backing({}, Spine("value"), limited=True, codec=Doubled())
    backing.append({1: 5, 2: ABSENT})
    assert dict(backing.kept.probe([1, 2])) == {1: 10}
    backing.fetch([1, 2])
    assert backing.held == {1: (1, 5)}
    assert backing.everything() == {1: (1, 5)}


def test_keys_that_are_not_there_take_room_too() -> None:
    backing = backed({}, limited=True)
    backing.fetch(range(1_000))
    assert backing.held == {}
    assert backing.bytes() >= 50_000


def test_values_that_grow_are_measured_again() -> None:
    backing = backed({1: (), 2: ()}, limited=True)
    backing.fetch([1, 2])
    small = backing.bytes()
    for size in range(5):
        backing.held[1] = tuple(range(1_000 * size))
        backing.append({1: backing.held[1]})
        backing.bytes()
    assert backing.bytes() > small + 50_000


def test_objects_weigh_what_is_in_them() -> None:
    class Slotted:
        __slots__ = ("inside",)

        def __init__(self, inside: Any) -> None:
            self.inside = inside

    class Plain:
        def __init__(self, inside: Any) -> None:
            self.inside = inside

    many = [10**9 + i for i in range(100)]
    for made in (Slotted, Plain):
        assert weigh(made(many)) > weigh(many)
    tree: Tree[int] = Tree()
    assert weigh(tree.update([(i, 1) for i in range(1_000)])) > 20 * weigh(tree)


# ---- names ----


class Row(NamedTuple):
    n: int


def test_a_reducer_is_known_by_what_it_does_not_by_its_place() -> None:
    def made(start: int) -> Reducer[Any, Any, Any]:
        return Reducer(start, lambda acc, n: acc + n, name="total")

    one, other = made(0), Reducer(0, lambda acc, n: acc + n, name="total")
    assert one.created != other.created
    assert fingerprint(one) == fingerprint(other) != fingerprint(made(1))
    assert fingerprint(sum("n")) == fingerprint(sum("n")) != fingerprint(sum("m"))
    assert fingerprint(one.on("n")) == fingerprint(other.on("n")) != fingerprint(one)


def test_a_function_is_known_by_the_methods_it_calls() -> None:
    def version(step: int) -> Fn:
        class Helper:
            if step == 1:

                def go(self, n: int) -> int:
                    return n + 1
            else:

                def go(self, n: int) -> int:
                    return n + 2

        helper = Helper()
        return Fn(lambda row: [helper.go(row.n) for _ in "ab"], Row)

    assert fingerprint(version(1)) == fingerprint(version(1)) != fingerprint(version(2))
