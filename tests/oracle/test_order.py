"""Rows in order: scans, folds and window functions kept up to date, and their laws."""

from __future__ import annotations

import runpy
from collections import Counter, deque
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

import ebbflow as ef
from ebbflow import window as w
from ebbflow.errors import EbbflowError, LawBroken
from ebbflow.laws import check
from ebbflow.operator.over import of_frames, over_rows
from ebbflow.operator.scan import fold_rows, scan_rows
from ebbflow.operator.window import Along, FrameReducer, Lag, Lead, RunningReducer
from ebbflow.stream import elementwise, prefix_sum, transition
from ebbflow.zset import ZSet


class Event(NamedTuple):
    k: int
    t: int
    v: int


EVENTS = ef.Input("events", Event)
Rows = Counter[Any]


def machine(state: int, row: Event) -> tuple[int, list[Event]]:
    new = 0 if row.v % 3 == 0 else (state + row.v) % 4
    return new, [row] if new == 3 else []


def change_of(dice: Random, there: Rows, size: int = 15) -> dict[Event, int]:
    change: dict[Event, int] = {}
    for _ in range(dice.choice((1, 1, 2, 6))):
        if there and dice.random() < 0.5:
            row = dice.choice(sorted(there))
            change[row] = -dice.randint(1, there[row])
        else:
            row = Event(dice.randint(0, 1), dice.randint(0, size), dice.randint(0, 5))
            change.setdefault(row, dice.choice((1, 1, 2)))
    return change


def followed(program: Any, expected: Any, seed: str, epochs: int = 25, **options: Any) -> None:
    """A view beside a function of the sorted rows of each key, after every change."""
    dice, there, view = Random(seed), Counter[Any](), program.run(**options)
    for _ in range(epochs):
        change = change_of(dice, there)
        view.step(events=change)
        there.update(change)
        there += Counter()
        by_key: dict[int, list[Event]] = {}
        for row in sorted(there.elements()):
            by_key.setdefault(row.k, []).append(row)
        assert Counter(view.value.rows()) == Counter(
            said for key in by_key for said in expected(key, by_key[key])
        )


@pytest.mark.parametrize("per", [None, "k"])
def test_an_output_that_is_let_go_and_computed_again_is_the_one_that_is_kept(
    monkeypatch: pytest.MonkeyPatch, per: Any
) -> None:
    monkeypatch.setattr("ebbflow.engine.runtime.outputs.MANY", 0)
    program = EVENTS.over(per=per, order="t").with_fields(total=ef.sum("v"), before=w.lag("v"))
    dice, there, view = Random(f"let go {per}"), Counter[Any](), program.run()
    let_go = 0
    for number in range(120):
        change = change_of(dice, there, 40)
        view.step(events=change)
        there.update(change)
        there += Counter()
        if dice.random() < 0.3:
            with pytest.raises(EbbflowError):
                view.step(events={Event(9, 9, 9): -1, Event(0, 0, 1): 1})
        [output] = view._program.outputs.values()
        let_go += number > 0 and output.rows is None
        if dice.random() < 0.5:
            view.verify()
        if dice.random() < 0.1:
            with view.branch() as branch:
                branch.step(events={Event(0, -1, 3): 1})
                branch.verify()
    assert let_go > 10
    view.verify()


# ---- 003: processors in programs ----


def test_003_H3_a_scan_is_its_processor_on_the_sorted_rows_of_each_key() -> None:
    processor = elementwise(machine, state=0)
    program = EVENTS.scan(processor, per="k", order="t", type=Event)
    followed(program, lambda _, rows: processor(rows), "processor")


def test_003_H3_a_chain_of_processors_is_scanned_as_one() -> None:
    amounts = elementwise(lambda _, row: (None, [row.v]))
    program = EVENTS.scan(amounts >> prefix_sum(), per="k", order="t", type=int)
    followed(program, lambda _, rows: (amounts >> prefix_sum())(rows), "chain")


def test_a_processor_that_speaks_before_any_row_does_so_for_each_key_with_rows() -> None:
    from ebbflow.algebra import LIST
    from ebbflow.stream import processor

    greeting = processor(lambda n, rows: (n, list(rows)), state=0, source=LIST, target=LIST,
                         output=["hello"])  # fmt: skip
    view = EVENTS.scan(greeting, per="k", order="t", type=Any).run()
    assert view.step(events=[Event(1, 1, 1)]) == ZSet.of(["hello", Event(1, 1, 1)])
    assert view.step(events={Event(1, 1, 1): -1}) == ZSet({"hello": -1, Event(1, 1, 1): -1})


@pytest.mark.parametrize("cuts", [(), (4, 9)])
def test_003_H12_tables_composed_in_a_tree_lead_where_the_steps_lead(cuts: Any) -> None:
    program = EVENTS.fold(machine, 0, per="k", order="t", states=range(4), cuts=cuts, type=int)

    def last(key: int, rows: list[Event]) -> Any:
        state = 0
        for row in rows:
            state = machine(state, row)[0]
        return [(key, state)]

    followed(program, last, f"tables {cuts}")


def test_003_H12_a_table_must_list_every_state_that_is_reached() -> None:
    view = EVENTS.fold(machine, 0, order="t", states=range(3)).run()
    with pytest.raises(EbbflowError, match="3, which is not among the states"):
        view.step(events=[Event(1, 1, 1), Event(1, 2, 2)])
    assert view.value == ZSet()


# ---- laws ----


def test_operators_on_rows_in_order_keep_their_laws() -> None:
    rows = [Event(k, t, v) for k in (0, 1) for t in (1, 2, 5) for v in (0, 1, 2)]
    bags = [ZSet({row: n for row, n in zip(rows, counts, strict=False) if n})
            for counts in ((), (1, 2, 0, 1), (0, 1) * 8, (2,) * 18)]  # fmt: skip
    changes = [ZSet({row: sign}) for row in rows for sign in (1, -1)]
    frames = FrameReducer(ef.max("v"), -1, 2), FrameReducer(ef.sum("v"), -1, 1, by_range=True)
    for operator in (
        scan_rows(transition(machine, 0), lambda e: e.t, lambda e: e.k),
        fold_rows(transition(machine, 0), lambda e: e.t, lambda e: e.k),
        fold_rows(transition(machine, 0, states=range(4)), lambda e: e.t, lambda e: e.k),
        over_rows((Lag(lambda e: e.v), RunningReducer(ef.sum("v"))), lambda e: e.t, lambda e: e.k),
        over_rows((Lead(lambda e: e.v, 2), *frames), lambda e: e.t),
    ):
        check(operator, inputs=bags, changes=changes, examples=20)


def test_the_laws_of_transitions_find_what_does_not_compose() -> None:
    def plus(n: int, x: int) -> tuple[int, list[int]]:
        return n + x, [n]

    check(transition(plus, 0, of=lambda x: x, merge=int.__add__, act=int.__add__), elements=[1, 2])
    with pytest.raises(LawBroken, match="STEP_COMPOSED"):
        check(transition(plus, 0, of=lambda x: 2 * x, merge=int.__add__, act=int.__add__),
              elements=[1, 2])  # fmt: skip
    with pytest.raises(LawBroken, match="PARTS_COMPOSED"):
        check(transition(plus, 0, of=lambda x: x, merge=max, act=int.__add__), elements=[1, 2])
    calls: list[int] = []

    def forgetful(n: int, x: int) -> tuple[int, list[int]]:
        calls.append(x)
        return len(calls), []

    with pytest.raises(LawBroken, match="STEP_REPEATED"):
        check(transition(forgetful, 0), elements=[1, 2])


# ---- state ----


def test_a_state_that_could_be_altered_is_copied() -> None:
    def seen(state: list[int], row: Event) -> tuple[list[int], list[int]]:
        state.append(row.v)
        return state, [len(state)]

    program = EVENTS.scan(seen, [], per="k", order="t", type=int)
    followed(program, lambda _, rows: range(1, len(rows) + 1), "altered")


def test_a_refused_epoch_leaves_states_and_rows_as_they_were() -> None:
    def careful(total: int, row: Event) -> tuple[int, list[int]]:
        if row.v == 5:
            raise ValueError("five")
        return total + row.v, [total + row.v]

    dice, there = Random("refused"), Counter[Any]()
    program = EVENTS.scan(careful, 0, per="k", order="t", type=int)
    view, refused = program.run(), 0
    for _ in range(60):
        change = change_of(dice, there)
        try:
            view.step(events=change)
        except EbbflowError:
            refused += 1
        else:
            there.update(change)
            there += Counter()
        view.verify()
    assert refused > 5


@pytest.mark.parametrize("memory", [None, "1 kB"])
def test_rows_in_order_survive_on_disk(memory: Any, tmp_path: Path) -> None:
    events = EVENTS.over(per="k", order="t")
    told = events.with_fields(n=w.row_number(), then=w.lead("v"), total=ef.sum("v"))
    dice, there = Random("disk"), Counter[Any]()
    for _ in range(6):
        with told.run(path=tmp_path / "state", memory=memory) as view, told.run() as other:
            other.step(events=dict(there))
            for _ in range(3):
                change = change_of(dice, there)
                view.step(events=change)
                other.step(events=change)
                there.update(change)
                there += Counter()
                assert view.value == other.value


def test_a_branch_of_a_scan_goes_its_own_way() -> None:
    program = EVENTS.scan(machine, 0, per="k", order="t", type=Event)
    view = program.run()
    view.step(events=[Event(0, t, t % 3) for t in range(40)])
    branch = view.branch()
    branch.step(events=[Event(0, 17, 1)])
    view.step(events=[Event(0, 21, 2)])
    branch.verify()
    view.verify()


# ---- frames ----


def test_frames_that_move_are_merged_as_they_would_be_folded() -> None:
    dice = Random("frames")
    for _ in range(200):
        rows = [dice.randint(0, 9) for _ in range(dice.randint(1, 12))]
        starts = sorted(dice.choices(range(len(rows)), k=5))
        stops = sorted(dice.randint(start + 1, len(rows)) for start in starts)
        frames = [(a, b) for a, b in zip(starts, stops, strict=True) if a < b]
        for reducer in (ef.max(), ef.sum(), ef.collect(), ef.median()):
            assert of_frames(reducer, rows, frames) == [reducer(rows[a:b]) for a, b in frames]


def test_every_function_that_goes_along_is_scanned_where_nothing_looks_ahead() -> None:
    program = EVENTS.over(per="k", order="t").with_fields(n=w.row_number(), r=w.rank())
    functions = program.node.functions
    assert all(isinstance(each, Along) for each in functions)
    assert repr(over_rows(functions, lambda e: e.t)).startswith("scan_rows(over")


def test_states_that_are_equal_and_print_differently_are_told_apart() -> None:
    values = ef.Input("values", tuple[int, Any])
    view = values.scan(
        lambda s, r: (r[1], [(r[0], repr(s))]), None, order=lambda r: r[0], type=tuple
    ).run()
    view.step(values=[(1, 1), (3, "x"), (5, "y")])
    view.step(values=[(2, 1.0)])
    view.verify()
    view.step(values={(2, 1.0): -1})
    view.verify()


def test_rows_that_only_the_total_order_can_compare_all_go() -> None:
    rows = [(1, None), (1, 2), (1, "x"), (1, 2.5)]
    values = ef.Input("values", tuple[int, Any])
    view = values.scan(lambda s, r: (s + 1, [(r, s)]), 0, order=lambda r: r[0], type=tuple).run()
    view.step(values=rows)
    view.verify()
    assert len(view.step(values=dict.fromkeys(rows, -1))) == 4
    assert view.value == ZSet()


# ---- generated loops ----


class Sample(NamedTuple):
    k: int
    t: int
    v: Any


HARD = (None, 0, 1, -1, 2**63 - 1, 0.5, -0.0, float("nan"), float("inf"))


def functions() -> dict[str, Any]:
    """Functions with a step written into the loop, and some that are called."""
    return {
        "total": ef.sum("v"), "mean": ef.mean("v"), "rows": ef.count(), "values": ef.count("v"),
        "early": ef.count().where(lambda row: row.t % 3 == 0),
        "some": ef.sum("v").where(lambda row: row.t % 2 == 0),
        "greatest": ef.max("v"), "text": ef.sum("t").then(str),
        "one": w.lag("v"), "three": w.lag("v", 3, float("nan")), "known": w.fill_forward("v"),
        "n": w.row_number(), "rank": w.rank(),
    }  # fmt: skip


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_functions_that_look_back_over_hard_values_are_what_batch_says(
    seed: int, ahead: bool
) -> None:
    """Keys of several leaves, with duplicates, in order and all gone."""
    dice = Random(f"hard {seed} {ahead}")
    more = {"then": w.lead("v"), "last": w.last_value("v"), "all": ef.sum("t")} if ahead else {}
    some = dict(dice.sample(sorted(functions().items()), 6))
    program = ef.Input("samples", Sample).over(per="k", order="t").with_fields(**some, **more)
    view, there = program.run(), Counter[Any]()
    for epoch in range(14):
        change: dict[Sample, int] = {}
        for _ in range(150 if epoch in (0, 9) else dice.choice((1, 1, 2, 5))):
            row = Sample(dice.randint(0, 1), dice.randint(0, 60), dice.choice(HARD))
            change.setdefault(row, dice.choice((1, 1, 2)))
        for row in dice.sample(list(there), min(len(there), dice.choice((0, 1, 3)))):
            change[row] = -dice.randint(1, there[row])
        if epoch == 8:
            change = {row: -count for row, count in there.items()}
        view.step(samples=change)
        there.update(change)
        there += Counter()
        view.verify()


# ---- outputs that are computed when they are asked for ----

OVER = EVENTS.over(per="k", order="t")
COMPUTED = {
    "lag": OVER.with_fields(x=w.lag("v")),
    "total": OVER.with_fields(x=ef.sum("v")),
    "total of some": OVER.with_fields(x=ef.sum("v").where(lambda row: row.v > 2)),
    "several": OVER.with_fields(n=w.row_number(), x=w.fill_forward("v"), m=ef.mean("v")),
    "a traced function": OVER.with_fields(x=w.lag(lambda row: row.v + 1)),
}


@pytest.mark.parametrize("name", COMPUTED)
@pytest.mark.parametrize("seed", range(4))
def test_a_traced_scan_keeps_no_rows_of_its_output_until_they_are_asked_for(
    name: str, seed: int
) -> None:
    program = COMPUTED[name]
    dice, there = Random(f"{name} {seed}"), Counter[Any]()
    late, added = program.run(check_input=False), ZSet[Any]()
    for _ in range(30):
        change = change_of(dice, there)
        added += late.step(events=change)
        there.update(change)
        there += Counter()
        assert late._program.outputs["output"].rows is None
    expected = ef.engine.batch.evaluate(late.plan, {"events": ZSet(there)})["output"]
    assert late.value == added == expected
    late.step(events=change_of(dice, there))  # from now on they are kept
    assert late._program.outputs["output"].rows is not None


def test_what_a_function_says_that_cannot_be_looked_into_is_kept() -> None:
    said = iter(range(100))
    view = OVER.with_fields(x=w.lag(lambda row: next(said))).run(check_input=False)
    view.step(events=[Event(0, 1, 1), Event(0, 2, 2)])
    assert view._program.outputs["output"].rows is not None
    assert view.value == view.value


class Top:
    """The greatest value so far, put in place; an object that is hashable by its identity."""

    greatest = -1

    def put(self, v: int) -> Top:
        self.greatest = max(self.greatest, v)
        return self


@dataclass
class Latest:
    """Equal where the last values are, whatever was counted."""

    v: int = 0
    count: int = field(default=0, compare=False)

    def put(self, v: int) -> Latest:
        self.v, self.count = v, self.count + 1
        return self


class Noted(list[int]):
    """A list with an attribute beside its elements."""

    total = 0

    def put(self, v: int) -> Noted:
        self[:] = [v]
        self.total += v
        return self


class Missing:
    """The class of a marker, which steps know by its identity."""


MISSING, ABSENT = Missing(), object()
ZONES = [UTC, timezone(timedelta(hours=1)), timezone(timedelta(0), "Z")]
NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)


def since_missing(state: list[Any], v: int) -> tuple[list[Any], list[Any]]:
    last, total = state
    state[:] = (MISSING, ABSENT)[v % 2] if v % 3 == 0 else v, total + v
    return state, [(last is MISSING, last is ABSENT, total)]


def rounds_of_tcp() -> Any:
    path = Path(__file__).parents[2] / "examples" / "tcp.py"
    tcp: Any = runpy.run_path(str(path))
    rounds = elementwise(lambda s, row: (s, [[tcp["Data"](row)]]))
    return (
        rounds
        >> tcp["connection"](5)
        >> elementwise(lambda s, said: (s, [tuple(each.v for each in said)]))
    )


LISTED = elementwise(lambda seen, row: (seen.append(row.v) or seen, [sum(seen[-2:])]), state=[])
STATEFUL: dict[str, Any] = {
    "one after the other": lambda: LISTED >> prefix_sum(),
    "the list in a tuple": lambda: elementwise(
        lambda s, row: (s[0].append(row.v) or (s[0], row.v), [(len(s[0]), s[1])]), state=([], 0)
    ),
    "an object": lambda: elementwise(
        lambda top, row: (top.put(row.v), [top.greatest]), state=Top()
    ),
    "a loop of four processors": rounds_of_tcp,
    "a field that is not compared": lambda: elementwise(
        lambda s, row: (s.put(row.v), [(s.v, s.count)]), state=Latest()
    ),
    "an attribute of a list": lambda: elementwise(
        lambda s, row: (s.put(row.v), [s.total]), state=Noted()
    ),
    "markers in a list": lambda: elementwise(
        lambda s, row: since_missing(s, row.v), state=[MISSING, 0]
    ),
    "a marker": lambda: elementwise(lambda s, row: (row.v, [(row.v, s is MISSING)]), state=MISSING),
    "equal times in several zones": lambda: elementwise(
        lambda at, row: (NOON.astimezone(ZONES[row.v % 3]), [(row.v, str(at), repr(at.tzinfo))]),
        state=NOON,
    ),
    "a deque of zeros": lambda: elementwise(
        lambda s, row: (s.append((0, 0.0, -0.0, False)[row.v % 4]) or s, [repr(s[0])]),
        state=deque([0], 1),
    ),
    "complex zeros": lambda: elementwise(
        lambda s, row: (complex(0, (0.0, -0.0)[row.v % 2]), [(row.v, repr(s))]), state=0j
    ),
}


@pytest.mark.parametrize("name", STATEFUL)
def test_a_processor_may_alter_the_state_it_is_given(name: str) -> None:
    """The expected rows come from one run of the processor over the sorted rows, without a scan."""
    processor = STATEFUL[name]()

    def expected(key: int, rows: list[Event]) -> list[Any]:
        return [*processor(rows)]

    program = EVENTS.scan(processor, per="k", order="t", type=Any)
    followed(program, expected, name, epochs=12)


def test_an_object_that_gets_its_attributes_later_is_one_for_each_key() -> None:
    program = EVENTS.scan(STATEFUL["an object"](), per="k", order="t", type=int)
    view = program.run()
    view.step(events=[Event(0, 1, 9)])
    view.step(events=[Event(1, 1, 1)])
    assert view.value == ZSet.of([9, 1])


@pytest.mark.parametrize("inside", [False, True])
def test_an_array_is_a_state_as_lists_are(inside: bool) -> None:
    np = pytest.importorskip("numpy")

    def step(state: Any, row: Event) -> tuple[Any, list[Any]]:
        array = state[0] if inside else state
        array[row.v % 3] += row.t
        return state, [(int(array[0]), int(array.sum()))]

    zeros = np.zeros(3)
    processor = elementwise(step, state=(zeros, "zeros") if inside else zeros)
    program = EVENTS.scan(processor, per="k", order="t", type=Any)
    followed(program, lambda key, rows: [*processor(rows)], f"arrays {inside}", epochs=12)


def test_two_views_and_a_late_row_share_no_state() -> None:
    """The second view begins from the first state, and a late row reaches the states behind it."""
    program = EVENTS.scan(LISTED >> prefix_sum(), order="t", type=int)
    for _ in range(2):
        view = program.run()
        for t in (1, 5, 3):
            view.step(events=[Event(0, t, t)])
        assert view.value == ZSet.of([1, 5, 13])
        view.verify()
