"""State that is opened by another version of the program that wrote it.

What means the same keeps its state; what was changed, and what depends on it, is computed again
from the rows of the inputs, and is then what batch computes. Where that cannot be, it is an error
that says so.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any, NamedTuple

import pytest

import ebbflow as ef
from ebbflow.engine.batch import evaluate
from ebbflow.engine.local import run
from ebbflow.errors import EbbflowError, FunctionFailed, StateError
from ebbflow.expression.schema import schema
from ebbflow.flow.plan import Plan
from ebbflow.flow.source import Input
from ebbflow.testing import VERB_NAMES, random_epochs
from ebbflow.testing.programs import NUMBERS, TYPES, Recipe, grow
from ebbflow.zset import ZSet


class Order(NamedTuple):
    id: int
    city: str
    price: int


class Place(NamedTuple):
    city: str
    land: str


ORDERS = [Order(1, "Rome", 10), Order(2, "Rome", 30), Order(3, "Oslo", 7), Order(4, "Bonn", -1)]
PLACES = [Place("Rome", "it"), Place("Oslo", "no")]
LIMITS = pytest.mark.parametrize("options", [{}, {"memory": 1}], ids=["all", "no memory"])

SHOP = """
from typing import NamedTuple
import ebbflow as ef
from ebbflow.change import BAG
from ebbflow.operator import Operator
from ebbflow.zset import ZSet

class Order(NamedTuple):
    id: int
    city: str
    price: int
    def doubled(self):
        return self.price * 2

class Place(NamedTuple):
    city: str
    land: str

class Helper:
    step = 1
    def next(self, n):
        return n + self.step

class Twice(Operator):
    input = output = BAG
    def __init__(self, times):
        self.times = times
    def f(self, x):
        return ZSet({row: weight * self.times for row, weight in x.items()})
    def init(self, x):
        return ()
    def step(self, state, change):
        return state, self.f(change)

def least(acc, o):
    found = min(acc, o.price)
    return found

helper = Helper()
orders = ef.Input("orders", Order)
places = ef.Input("places", Place, key="city")
paid = orders.filter(lambda o: o.price > 0)
joined = paid.join(places, on="city")
lands = joined.group_by("land").agg(total=ef.sum("price"), n=ef.count())
best = orders.top_k(1, order="price", per="city")
worst = orders.group_by("city").reduce(ef.Reducer(0, least))
twice = paid.through(Twice(2), type=Order).distinct()
helped = orders.map(lambda o: helper.next(o.price), type=int).distinct()
methods = orders.map(lambda o: o.doubled() + sum([o.id for _ in "ab"]), type=int).distinct()
program = ef.program(
    lands=lands, best=best, worst=worst, twice=twice, helped=helped, methods=methods
)
"""


def shop(*edits: tuple[str, str], above: str = "") -> Any:
    """The program of the shop with some of its text replaced."""
    text = SHOP
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new)
    module = sys.modules["shop_of_the_test"] = ModuleType("shop_of_the_test")
    exec(compile(above + text, "shop.py", "exec"), vars(module))
    return module.program


def rows(program: Any) -> dict[str, Any]:
    types = {name: node.type for name, node in program.plan.sources.items()}
    given = {"orders": ORDERS, "places": PLACES}
    return {name: [types[name](*row) for row in given[name]] for name in given if name in types}


def written(path: Path, *edits: tuple[str, str], **options: Any) -> None:
    program = shop(*edits)
    with program.run(path=path, **options) as view:
        view.step(**rows(program))


def right(view: Any, inputs: dict[str, Any]) -> None:
    """The view is what batch computes, and stays so when a row comes and goes."""
    bags = {name: ZSet.of(given) for name, given in inputs.items()}
    assert view.value == evaluate(view.plan, bags)
    kind = type(inputs["orders"][0])
    new, old = kind(9, "Oslo", 4), inputs["orders"][1]
    view.step(orders={new: 1, old: -1})
    bags["orders"] += ZSet({new: 1, old: -1})
    assert view.value == evaluate(view.plan, bags)
    view.verify()


def verbs(view: Any) -> set[str]:
    return {label.partition(" shop.py")[0] for label in view.rebuilt}


# ---- the same program ----


@LIMITS
def test_the_same_program_finds_everything(tmp_path: Path, options: dict[str, Any]) -> None:
    written(tmp_path)
    program = shop()
    with program.run(path=tmp_path, **options) as view:
        assert (view.epoch, view.rebuilt) == (1, ())
        right(view, rows(program))


@pytest.mark.parametrize(
    ("edits", "above"),
    [
        ([], "\n\n# a longer opening\n\n"),
        ([("lambda o: o.price > 0", "lambda order: order.price > 0")], ""),
        ([("found", "smaller")], ""),
        ([("twice = paid", "renamed = paid"), ("twice=twice", "twice=renamed")], ""),
        ([("lands=lands, best=best", "best=best, lands=lands")], ""),
    ],
    ids=["moved", "lambda renamed", "local renamed", "collection renamed", "outputs reordered"],
)
def test_moving_and_renaming_rebuilds_nothing(
    tmp_path: Path, edits: list[tuple[str, str]], above: str
) -> None:
    written(tmp_path)
    program = shop(*edits, above=above)
    with program.run(path=tmp_path) as view:
        assert (view.epoch, view.rebuilt) == (1, ())
        right(view, rows(program))


def test_another_process_with_other_hashes_finds_everything(tmp_path: Path) -> None:
    rebuilds = "\nimport sys\nview = program.run(path=sys.argv[1])\nprint(view.epoch, view.rebuilt)"
    step = "\nif not view.epoch: view.step(orders=[Order(1, 'Rome', 10)])\nview.close()\n"
    extra = "\nchosen = orders.filter(lambda o: o.city in {'Rome', 'Oslo', 'Bonn'}).distinct()\n"
    (tmp_path / "shop.py").write_text(
        SHOP.replace("program = ef", extra + "program = ef").replace("best=best", "best=chosen")
        + rebuilds
        + step
    )
    said = []
    for seed in ("1", "2", "77"):
        done = subprocess.run(
            [sys.executable, "shop.py", "state"], cwd=tmp_path, capture_output=True, text=True,
            env={**os.environ, "PYTHONHASHSEED": seed}, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        said.append(done.stdout.strip())
    assert said == ["0 ()", "1 ()", "1 ()"]


# ---- a changed one ----


CHANGES: dict[str, tuple[list[tuple[str, str]], set[str]]] = {
    "a filter in front of much": (
        [("o.price > 0", "o.price > 8")],
        {"index", "reduce", "through", "distinct"},
    ),
    "an aggregate": ([(", n=ef.count()", "")], {"reduce"}),
    "a reducer over rows that are kept": ([("min(acc", "max(acc")], {"reduce"}),
    "how many are best": ([("top_k(1", "top_k(2")], {"top_k"}),
    "an operator's attribute": ([("Twice(2)", "Twice(3)")], {"through", "distinct"}),
    "an operator's method": ([("weight * self.times", "weight + 0")], {"through", "distinct"}),
    "a helper's method": ([("n + self.step", "n - self.step")], {"distinct"}),
    "a helper's constant": ([("    step = 1", "    step = 5")], {"distinct"}),
    "a method of the rows": (
        [("self.price * 2", "self.price * 3")],
        {"reduce", "through", "distinct"},
    ),
    "a new output": ([("lands=lands", "lands=lands, all=joined")], {"output all"}),
    "a new output in the middle of steps": ([("lands=lands", "lands=lands, paid=paid")],
                                            {"output paid"}),
    "a new node": ([("lands=lands", "lands=lands, few=best.distinct()")], {"distinct"}),
}  # fmt: skip


@LIMITS
@pytest.mark.parametrize("what", CHANGES)
def test_what_changed_is_computed_again_and_nothing_else(
    tmp_path: Path, what: str, options: dict[str, Any]
) -> None:
    edits, expected = CHANGES[what]
    written(tmp_path)
    program = shop(*edits)
    with program.run(path=tmp_path, **options) as view:
        assert verbs(view) == expected
        assert view.epoch == 2
        right(view, rows(program))
    with program.run(path=tmp_path, **options) as view:
        assert (view.epoch, view.rebuilt) == (3, ())
        view.verify()
    program = shop()
    with program.run(path=tmp_path, **options) as view:
        assert view.rebuilt or what.startswith("a new")
        view.verify()


def test_an_output_that_was_removed_is_forgotten(tmp_path: Path) -> None:
    written(tmp_path)
    less = shop((" best=best,", ""))
    with less.run(path=tmp_path) as view:
        assert view.rebuilt == ()
        assert not [
            label for label in view._storage.store.notes["parts"].values() if "top_k" in label
        ]
        right(view, rows(less))
    with shop().run(path=tmp_path) as view:
        assert verbs(view) == {"top_k"}
        view.verify()


def test_a_new_reader_in_the_middle_of_steps_changes_no_name(tmp_path: Path) -> None:
    numbers = Input("numbers", int)
    odd = numbers.filter(lambda n: n % 2 == 1)
    twice = odd.flat_map(lambda n: [n, n + 1], type=int).distinct()
    with ef.program(twice=twice).run(path=tmp_path) as view:
        view.step(numbers=range(6))
    with ef.program(twice=twice, odd=odd).run(path=tmp_path) as view:
        assert view.rebuilt == ("output odd",)
        assert view.value == {"twice": ZSet.of(range(1, 7)), "odd": ZSet.of([1, 3, 5])}


def test_only_what_changed_sees_rows_again(tmp_path: Path) -> None:
    calls: Counter[str] = Counter()

    def counting(name: str, f: Any) -> Any:
        def counted(n: int) -> int:
            if calls is not None:
                calls[name] += 1
            return int(f(n))

        return counted

    def made(second: Any) -> Any:
        numbers = Input("numbers", int)
        kept = numbers.map(counting("first", lambda n: n + 1), type=int).distinct()
        one = kept.map(counting("second", second), type=int).distinct()
        other = kept.map(counting("third", lambda n: n * 3), type=int).distinct()
        return ef.program(one=one, other=other)

    with made(lambda n: n * 2).run(path=tmp_path) as view:
        view.step(numbers=range(100))
    calls.clear()
    with made(lambda n: n * 2).run(path=tmp_path) as view:
        assert view.rebuilt == ()
    assert not calls
    with made(lambda n: n * 5).run(path=tmp_path) as view:
        assert len(view.rebuilt) == 1
        assert view.value["one"] == ZSet.of(range(5, 505, 5))
    assert calls == {"second": 100}


def test_a_new_input_starts_empty(tmp_path: Path) -> None:
    orders = Input("orders", Order)
    with orders.distinct().run(path=tmp_path) as view:
        view.step(orders=ORDERS)
    refunds = Input("refunds", Order)
    both = (orders + refunds).distinct()
    with both.run(path=tmp_path) as view:
        assert view.value == ZSet.of(ORDERS)
        view.step(refunds=[Order(8, "Rome", 1)])
        view.verify()
    with both.run(path=tmp_path) as view:
        assert view.rebuilt == ()
        assert len(view.value) == 5


def test_a_function_that_fails_on_a_stored_row_is_named_and_the_state_stays(tmp_path: Path) -> None:
    numbers = Input("numbers", int)
    with numbers.distinct().run(path=tmp_path) as view:
        view.step(numbers=[1, 0])
    with pytest.raises(FunctionFailed, match="ZeroDivisionError"):
        numbers.map(lambda n: 1 // n).distinct().run(path=tmp_path)
    with numbers.distinct().run(path=tmp_path) as view:
        assert (view.epoch, view.rebuilt, view.value) == (1, (), ZSet.of([0, 1]))


def test_an_older_epoch_of_a_changed_output_is_refused(tmp_path: Path) -> None:
    numbers = Input("numbers", int)
    with numbers.map(lambda n: n + 1).distinct().run(path=tmp_path, keep_epochs=5) as view:
        view.step(numbers=[1])
        view.step(numbers=[2])
    with numbers.map(lambda n: n + 2).distinct().run(path=tmp_path, keep_epochs=5) as view:
        assert view.epoch == 3
        with pytest.raises(StateError, match="output 'output' was another one at epoch 1"):
            view.at(1)
        view.step(numbers=[3])
        assert (view.at(3), view.value) == (ZSet.of([3, 4]), ZSet.of([3, 4, 5]))


# ---- what cannot be ----


class Priced(NamedTuple):
    id: int
    city: str
    price: str


def refused(path: Path, program: Any, what: str, **options: Any) -> None:
    with pytest.raises(StateError, match=what) as raised:
        program.run(path=path, **options)
    assert "try " in str(raised.value)


def test_another_type_or_key_of_an_input_is_an_error(tmp_path: Path) -> None:
    with Input("orders", Order).distinct().run(path=tmp_path) as view:
        view.step(orders=ORDERS)
    for other in (
        Input("orders", Priced),
        Input("orders", int),
        Input("orders", Order, key="id"),
        Input("orders", NamedTuple("Order", [("id", int), ("city", str), ("price", bytes)])),
    ):
        refused(tmp_path, other.distinct(), "(?s)input 'orders' has another type or key.*created")
    with Input("orders", Order).distinct().run(path=tmp_path) as view:
        assert (view.epoch, view.value) == (1, ZSet.of(ORDERS))


ROWS = """
from __future__ import annotations
from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple, Optional
import ebbflow as ef

class Paid(NamedTuple):
    on: str

@dataclass(frozen=True)
class Tag:
    text: str

@dataclass(frozen=True)
class Order:
    city: str
    price: int
    tags: tuple[Tag, ...] = ()
    paid: Paid | None = None
    rate: Optional[int] = None
    kind: ClassVar[str] = "order"
    def doubled(self): return self.price * 2

orders = ef.Input("orders", Order).distinct()
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("price: int", "price: str"),
        ("price: int", "cost: int"),
        ("    price: int\n", ""),
        ("text: str", "text: bytes"),
        ("on: str", "on: int"),
        ("Optional[int]", "Optional[str]"),
        ("tuple[Tag, ...]", "tuple[str, ...]"),
    ],
)
def test_another_schema_of_a_dataclass_is_an_error(tmp_path: Path, old: str, new: str) -> None:
    def orders(text: str) -> Any:
        module = sys.modules["rows_of_the_test"] = ModuleType("rows_of_the_test")
        exec(compile(text, "rows.py", "exec"), vars(module))
        return module

    made = orders(ROWS)
    with made.orders.run(path=tmp_path, strict=True) as view:
        view.step(orders=[made.Order("Rome", 3)])
    changed = ROWS.replace(old, new)
    assert changed != ROWS
    refused(tmp_path, orders(changed).orders, "(?s)input 'orders' has another type or key")
    for same in [("price * 2", "price * 3"), ("rate: Optional[int]", "rate: None | int")]:
        with orders(ROWS.replace(*same)).orders.run(path=tmp_path, strict=True) as view:
            assert (view.epoch, view.rebuilt, len(view.value)) == (1, (), 1)


class Slotted:
    __slots__ = ("city", "n")


class Hinted:
    city: str
    n: int


def test_the_schema_of_any_class_that_declares_one() -> None:
    assert schema(Slotted) == "Slotted{city: Any, n: Any}"
    assert schema(Hinted) == "Hinted{city: str, n: int}"
    assert schema(list[Hinted | None]) == "list[Hinted{city: str, n: int} | None]"


def test_another_program_is_an_error(tmp_path: Path) -> None:
    written(tmp_path)
    words = Input("words", str).distinct()
    refused(tmp_path, words, "(?s)holds the state of another program.*orders, places")


def test_a_changed_program_over_trusted_input_is_an_error(tmp_path: Path) -> None:
    numbers = Input("numbers", int)
    with numbers.map(lambda n: n + 1).distinct().run(path=tmp_path, check_input=False) as view:
        view.step(numbers=[1, 2])
    with numbers.map(lambda n: n + 1).distinct().run(path=tmp_path, check_input=False) as view:
        assert view.value == ZSet.of([2, 3])
    changed = numbers.map(lambda n: n + 2).distinct()
    refused(tmp_path, changed, "(?s)cannot be computed again.*distinct", check_input=False)


def test_input_that_was_trusted_cannot_be_checked_later_nor_the_other_way(tmp_path: Path) -> None:
    numbers = Input("numbers", int).distinct()
    for first in (True, False):
        path = tmp_path / str(first)
        with numbers.run(path=path, check_input=first) as view:
            view.step(numbers=[1, 2])
        refused(path, numbers, f"check_input={first}", check_input=not first)


def test_a_folder_that_holds_something_else_is_an_error(tmp_path: Path) -> None:
    from ebbflow.state.spine import Store

    with Store(tmp_path) as store:
        store.spine("mine", layout="value").append({1: 2})
        store.commit(3)
    refused(tmp_path, Input("numbers", int), "does not hold the state of a view")


# ---- random programs, randomly edited ----


def edited(recipe: Recipe, dice: Random) -> Recipe:
    """Another version: a step less, more, other, or in another place."""
    steps = list(recipe.steps)
    at = dice.randrange(len(steps))
    what = dice.choice(["less", "more", "other", "kind", "moved"])
    step = dice.choice(VERB_NAMES), dice.randrange(NUMBERS)
    if what == "less" and len(steps) > 1:
        del steps[at]
    elif what == "more":
        steps.insert(at, step)
    elif what == "other":
        steps[at] = steps[at][0], step[1]
    elif what == "kind":
        steps[at] = step
    else:
        steps.append(steps.pop(at))
    return Recipe(recipe.inputs, tuple(steps))


def random_recipe(dice: Random) -> Recipe:
    inputs = [(dice.randrange(len(TYPES)), dice.random() < 0.3) for _ in range(dice.randint(1, 2))]
    steps = [(dice.choice(VERB_NAMES), dice.randrange(NUMBERS)) for _ in range(6)]
    return Recipe(tuple(inputs), tuple(steps))


def totals(plan: Plan, inputs: dict[str, ZSet[Any]]) -> Any:
    found = evaluate(plan, inputs)
    return found if len(found) > 1 else next(iter(found.values()))


def versions(seed: int, count: int = 4) -> int:
    """One version after the other on one path; gives how many were opened."""
    dice = Random(seed)
    recipe, opened = random_recipe(dice), 0
    inputs: dict[str, ZSet[Any]] = {}
    with TemporaryDirectory(prefix="versions-") as path:
        for _ in range(count):
            plan = grow(recipe).plan
            options = dice.choice([{}, {"memory": 1}, {"flush_every": 2}])
            recipe = edited(recipe, dice)
            if inputs.keys() - plan.sources.keys():
                with pytest.raises(StateError, match="another program"):
                    run(plan, path=path, **options)
                continue
            try:
                expected = totals(plan, inputs)
            except EbbflowError:
                with pytest.raises(EbbflowError):
                    run(plan, path=path, **options)
                continue
            opened += 1
            with run(plan, path=path, **options) as view:
                assert view.value == expected, seed
                inputs |= {name: inputs.get(name, ZSet()) for name in plan.sources}
                for epoch in random_epochs(plan, dice, 3):
                    after = {n: z + epoch.get(n, ZSet()) for n, z in inputs.items()}
                    if not all(node.key is None or _one_each(node.key, after[name])
                               for name, node in plan.sources.items()):  # fmt: skip
                        continue
                    try:
                        expected = totals(plan, after)
                        view.step(epoch)
                        inputs = after
                    except EbbflowError:
                        expected = totals(plan, inputs)
                    assert view.value == expected, seed
                view.verify()
    return opened


def _one_each(key: Any, rows: ZSet[Any]) -> bool:
    return max(Counter(map(key, rows)).values(), default=1) == 1


def test_oracle_versions_of_a_program_equal_batch() -> None:
    assert sum(versions(seed) for seed in range(12)) > 20


@pytest.mark.slow
def test_oracle_many_versions_of_a_program_equal_batch() -> None:
    assert sum(versions(seed, 6) for seed in range(12, 130)) > 300
