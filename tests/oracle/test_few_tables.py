"""A few rows, given as rows, arrays and Arrow tables of every form, do the same."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable
from random import Random
from typing import Any

import pytest

np = pytest.importorskip("numpy")
pa = pytest.importorskip("pyarrow")
pytest.importorskip("numba")

import ebbflow as ef  # noqa: E402
from ebbflow.errors import AbsentRow  # noqa: E402
from ebbflow.record import record  # noqa: E402

Part = record("Part", id=int, size=float, shelf=int)
Shelf = record("Shelf", shelf=int)
INTS = [0, 1, -1, 2**63 - 1, -(2**63) + 1, -(2**63)]
FLOATS = [0.0, -0.0, 1.5, float("nan"), float("inf"), 5e-324]
Listed = list[tuple[Any, int]]


def table(given: Listed, weights: bool = True) -> Any:
    fields = list(zip(*[row for row, _ in given], strict=True))
    types = [pa.int64(), pa.float64(), pa.int64()]
    arrays = [pa.array(values, type) for values, type in zip(fields, types, strict=True)]
    made = pa.table(arrays, list(Part._fields))
    counts = pa.array([weight for _, weight in given], pa.int64())
    return made.append_column("__weight", counts) if weights else made


def arrays(given: Listed) -> Any:
    return {name: column.to_numpy() for name, column in zip(*split(given), strict=True)}


def split(given: Listed) -> tuple[list[str], list[Any]]:
    made = table(given)
    return made.column_names, [column.combine_chunks() for column in made.columns]


def a_slice(given: Listed) -> Any:
    other = (Part(99, 9.5, 9), 1)
    return table([other, *given, other]).slice(1, len(given))


def in_two_batches(given: Listed) -> Any:
    half = len(given) // 2
    return pa.concat_tables([table(given[:half]), table(given[half:])]) if half else table(given)


def shorter_ints(given: Listed) -> Any:
    made = table(given)
    small = all(-9 < row.shelf < 9 for row, _ in given)
    return made.set_column(2, "shelf", made["shelf"].cast(pa.int32())) if small else made


def in_another_order(given: Listed) -> Any:
    return dict(reversed(arrays(given).items()))


FORMS: dict[str, Callable[[Listed], Any]] = {
    "arrays": arrays,
    "arrays in another order": in_another_order,
    "table": table,
    "batch": lambda given: table(given).to_batches()[0],
    "slice": a_slice,
    "two batches": in_two_batches,
    "shorter": shorter_ints,
}


def total(given: Listed) -> dict[Any, int]:
    found: dict[Any, int] = {}
    for row, weight in given:
        found[row] = found.get(row, 0) + weight
    return found


def shown(values: Iterable[Any]) -> tuple[str, ...]:
    """Values as texts: NaN is itself, and there is one zero."""
    return tuple(str(value if value != 0 else abs(value)) for value in values)


@pytest.mark.parametrize("trusting", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_oracle_a_few_rows_do_the_same_in_whatever_form_they_come(
    form: str, trusting: bool
) -> None:
    random = Random(form)
    parts = ef.Input("parts", Part)
    plan = ef.program(
        shelves=parts.group_by("shelf").agg(n=ef.count(), ids=ef.max("id"), least=ef.min("size")),
        large=parts.filter(lambda part: part.size > 1.0).map(lambda part: part.id),
        pairs=parts.join(ef.Input("shelves", Shelf), on="shelf"),
        sizes=parts.group_by("shelf").agg(size=ef.sum("size")),
        counts=parts.group_by("shelf").agg(n=ef.count()),
    )
    options = {"check_input": False} if trusting else {}
    for _ in range(4):
        one, other = plan.run(columns=True, **options), plan.run(columns=False, **options)
        for view in (one, other):
            view.step(shelves=[Shelf(at) for at in range(-3, 3)])
        there: Listed = []
        for step in range(25):
            hard = random.random() < 0.1
            given: Listed = []
            for _ in range(random.randrange(1, 10)):
                if there and random.random() < 0.4:
                    given.append((there.pop(random.randrange(len(there)))[0], -1))
                else:
                    some = INTS if hard else range(-2, 3)
                    row = Part(random.choice(some), random.choice(FLOATS), random.randrange(-2, 3))
                    given.append((row, 1))
                    there.append((row, 1))
            right = other.step(parts=total(given))
            change = one.step(parts=FORMS[form](given))
            assert change == right, step
            assert one.value == other.value
            for name, rows in change.items():
                wanted = {
                    shown((*(row if isinstance(row, tuple) else (row,)), weight))
                    for row, weight in right[name].items()
                }
                assert {shown(row.values()) for row in rows.to_arrow().to_pylist()} == wanted
                lists = [array.tolist() for array in rows.to_numpy().values()]
                assert {*map(shown, zip(*lists, strict=True))} == wanted


@pytest.mark.parametrize("form", FORMS)
def test_a_few_rows_that_are_not_there_are_refused_in_whatever_form_they_come(form: str) -> None:
    view = ef.Input("parts", Part).group_by("shelf").agg(n=ef.count()).run(columns=True)
    one, other = Part(1, 0.5, 1), Part(2, float("nan"), 1)
    view.step(parts=FORMS[form]([(one, 1), (other, 2)]))
    for _ in range(2):
        with pytest.raises(AbsentRow) as raised:
            view.step(parts=FORMS[form]([(one, 1), (other, -3), (Part(3, 0.0, 3), 1)]))
        assert "Part(id=2, size=nan, shelf=1)" in str(raised.value)
    assert {tuple(row): weight for row, weight in view.value.items()} == {(1, 3): 1}
    view.step(parts=FORMS[form]([(one, -1), (other, -2)]))
    assert not view.value


def test_tables_of_a_few_rows_with_nulls_or_without_weights_are_read() -> None:
    view = ef.Input("parts", record("Part", id=int, size=float | None)).run(columns=True)
    made = pa.table({"id": [1, 2], "size": [0.5, None]})
    assert dict(view.step(parts=made).items()) == {(1, 0.5): 1, (2, None): 1}
    plain = pa.table({"id": [1, 2], "size": [0.5, -0.0]})
    assert dict(view.step(parts=plain).items()) == {(1, 0.5): 1, (2, 0.0): 1}
    missing = pa.table({"id": pa.array([None], pa.int64()), "size": [0.5]})
    with pytest.raises(ef.errors.EbbflowError, match="null"):
        view.step(parts=missing)
    assert dict(view.value.items()) == {(1, 0.5): 2, (2, None): 1, (2, 0.0): 1}


@pytest.mark.parametrize("trusting", [False, True])
def test_what_is_no_array_of_numbers_for_each_row_is_refused_as_before(trusting: bool) -> None:
    program = ef.Input("parts", Part).group_by("shelf").agg(n=ef.count())
    view = program.run(columns=True, check_input=not trusting)
    good = arrays([(Part(1, 0.5, 1), 1), (Part(2, 1.5, 2), 1)])
    view.step(parts=good)
    bad: dict[str, Any] = {
        "id": [np.array([[1, 2]]), np.array([[1], [2]]), np.array(1), np.array([1]), None],
        "size": [np.array([[0.5], [1.5]]), np.array(0.5), np.array(["a", "b"])],
        "shelf": [np.array([0.5, 1.5]), np.array([1, 2, 3])],
        "__weight": [np.array([[1], [1]]), np.array(1), np.array([0.5, 1.0]), np.array([1])],
    }
    for name, values in bad.items():
        for value in values:
            with pytest.raises(ef.errors.EbbflowError):
                view.step(parts={**good, name: value})
    assert dict(view.value.items()) == {(1, 1): 1, (2, 1): 1}


def test_a_change_that_was_given_stays_as_it_is_and_cannot_be_written_to() -> None:
    row = record("Row", key=int, price=int)
    view = ef.Input("rows", row).group_by("key").agg(n=ef.count(), total=ef.sum("price"))
    running = view.run(columns=True)
    changes = [
        running.step(rows={"key": np.array([7]), "price": np.array([k]), "__weight": np.array([1])})
        for k in (10, 20, 30)
    ]
    found = [{name: array.tolist() for name, array in each.to_numpy().items()} for each in changes]
    assert found == [
        {"key": [7], "n": [1], "total": [10], "__weight": [1]},
        {"key": [7, 7], "n": [1, 2], "total": [10, 30], "__weight": [-1, 1]},
        {"key": [7, 7], "n": [2, 3], "total": [30, 60], "__weight": [-1, 1]},
    ]
    for array in changes[1].to_numpy().values():
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    assert dict(changes[1].items()) == {(7, 1, 10): -1, (7, 2, 30): 1}


@pytest.mark.parametrize("test", [lambda part: part.id > 0, None])
def test_a_few_rows_that_pass_as_they_came_can_be_pickled_and_given_again(test: Any) -> None:
    parts = ef.Input("parts", Part)
    program = parts if test is None else parts.filter(test)
    view, other = program.run(columns=True), program.run(columns=True)
    given = [(Part(1, 0.5, 1), 1), (Part(2, float("inf"), 1), 2)]
    right, change = ef.ZSet(total(given)), view.step(parts=arrays(given))
    assert change == right
    assert pickle.loads(pickle.dumps(change)) == right
    assert other.step(parts=change) == right
    assert change.to_numpy()["size"].tolist() == [0.5, float("inf")]
