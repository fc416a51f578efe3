"""The checker itself: it refutes what is wrong, passes what is right, and says why."""

from __future__ import annotations

import importlib.util
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from ebbflow import laws
from ebbflow.algebra import ADD, LIST, Homomorphism, Monoid
from ebbflow.change import NUMBER, ChangeStructure
from ebbflow.errors import CheckError, LawBroken
from ebbflow.laws import (
    ASSOCIATIVE,
    COMMUTATIVE,
    Law,
    check,
    close,
    equivalent,
    independent,
    laws_of,
)
from ebbflow.operator import stateless
from ebbflow.stream import map_each, merge, prefix_sum, processor, split_by

HERE = Path(__file__).parent
spec = importlib.util.spec_from_file_location("planted", HERE / "planted.py")
assert spec is not None
planted: Any = importlib.util.module_from_spec(spec)
sys.modules["planted"] = planted
spec.loader.exec_module(planted)  # type: ignore[union-attr]

BROKEN = {
    "minus": "ZERO_LEFT",
    "mean": "ASSOCIATIVE",
    "not_commutative": "COMMUTATIVE",
    "not_idempotent": "IDEMPOTENT",
    "wrong_inverse": "NEGATE_CLOSED",
    "no_inverse": "INVERSE_LEFT",
    "wrong_cancel": "CANCEL",
    "floats": "ASSOCIATIVE",
    "in_place": "ARGUMENTS_KEPT",
    "maximum": "KEEPS_COMBINE",
    "count_plus_one": "KEEPS_ZERO",
    "distinct": "KEEPS_COMBINE",
    "not_antisymmetric": "ANTISYMMETRIC",
    "forgets_itself": "BELOW",
    "backwards": "DIFF_PATCHES",
    "careless": "COMPRESS",
    "appended": "VALUE_KEPT",
    "truncating": "VALIDITY",
    "set_difference": "UPDATE_ADDS",
    "outside": "REPEATABLE",
    "shared": "REPEATABLE",
    "per_batch": "CUT",
    "chatty": "EMPTY_STEP",
    "greedy": "INPUT_KEPT",
    "last_of_batch": "CUT",
    "forgets_on_empty": "CUT",
    "lossy": "LOSES_NOTHING",
    "doubling": "LOSES_NOTHING",
    "mirrored": "DECODES",
}
RIGHT = ["right_mod_5", "right_numbering", "right_size", "right_rows"]


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_wrong_is_refuted(name: str) -> None:
    elements = planted.BITS if name == "mirrored" else None
    with pytest.raises(LawBroken) as caught:
        check(getattr(planted, name), elements=elements, examples=60)
    broken = caught.value
    assert broken.law.name == BROKEN[name]
    again = dict(broken.case)
    with pytest.raises(LawBroken):
        broken.law.test(broken.thing, **again)
    assert len(repr(broken.case)) < 120, "a person can read it"


@pytest.mark.parametrize("law", planted.ONE_BY_ONE)
def test_every_law_can_be_broken(law: str) -> None:
    thing, elements = planted.ONE_BY_ONE[law]
    with pytest.raises(LawBroken) as caught:
        check(thing, elements=elements, laws=[getattr(laws, law)])
    assert caught.value.law.name == law


def test_no_published_law_is_without_something_that_breaks_it() -> None:
    published = {name for name in laws.__all__ if name.isupper()}
    elsewhere = {"EQUIVALENT", "INDEPENDENT", "PROGRESS", "PROGRESS_AT_END"}  # test_streams.py
    elsewhere |= {"STEP_REPEATED", "STEP_COMPOSED", "PARTS_COMPOSED"}  # oracle/test_order.py
    reducers = {law.name for law in vars(laws.reducers).values() if isinstance(law, Law)}
    assert published - reducers == {*BROKEN.values(), *planted.ONE_BY_ONE, *elsewhere}


def test_the_operator_they_are_made_from_is_right() -> None:
    check(planted.Doubling(), examples=60)


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right_passes(name: str) -> None:
    assert check(getattr(planted, name), examples=60).laws


def test_the_counter_example_is_small() -> None:
    with pytest.raises(LawBroken) as caught:
        check(planted.lossy)
    assert caught.value.case == {"pieces": [frozenset({2})]}
    with pytest.raises(LawBroken) as caught:
        check(planted.backwards)
    assert caught.value.case == {"new": 0, "old": 1}


def test_a_report_says_law_case_both_sides_place_and_remedy() -> None:
    with pytest.raises(LawBroken) as caught:
        check(planted.mean)
    lines = str(caught.value).splitlines()
    assert lines[0] == "mean breaks a law: it matters which neighbours are combined first"
    found = {line[4:14].strip(): line[15:] for line in lines[1:]}
    assert found["law"] == "ASSOCIATIVE: (a · b) · c == a · (b · c)"
    assert found["left side"] != found["right side"]
    assert "planted.py:" in found["created"]
    assert found["again"].startswith("ASSOCIATIVE.test(thing, a=")
    assert "a mean needs its count" in found["try"]


def test_the_same_seed_gives_the_same_report() -> None:
    reports = set()
    for _ in range(2):
        with pytest.raises(LawBroken) as caught:
            check(planted.maximum, seed=5)
        reports.add(str(caught.value))
    assert len(reports) == 1


def test_reports_survive_pickling() -> None:
    with pytest.raises(LawBroken) as caught:
        ASSOCIATIVE.test(LIST_MINUS, a=[1], b=[1], c=[1])
    copied = pickle.loads(pickle.dumps(caught.value))
    assert str(copied) == str(caught.value)
    assert type(copied) is LawBroken


def _drop(a: list[int], b: list[int]) -> list[int]:
    return [x for x in a if x not in b]


LIST_MINUS = Monoid([], _drop, name="drop")


def test_users_can_bring_their_own_equality() -> None:
    with pytest.raises(LawBroken):
        check(planted.floats)
    check(planted.floats, equal=close(), examples=60)
    tolerant = Monoid(
        0.0, lambda a, b: a + b, name="tolerant", equal=close(), elements=[0.1, 0.2, 0.3]
    )
    check(tolerant, examples=60)
    add_floats = map_each(float) >> prefix_sum()
    tenths = st.lists(st.sampled_from([0.1, 0.2, 0.3]), max_size=4)
    check(add_floats, elements=tenths, equal=close(), examples=40)


def test_users_equality_reaches_changes_operators_groups_and_partitions() -> None:
    tenth = stateless(lambda x: x * 0.1, lambda d: d * 0.1, input=NUMBER, output=NUMBER)
    with pytest.raises(LawBroken):
        check(tenth, examples=60)
    check(tenth, equal=close(), examples=60)
    product = Monoid(1.0, lambda a, b: a * b, negate=lambda a: 1 / a, elements=[49.0, 3.0])
    with pytest.raises(LawBroken):
        check(product, examples=60)
    check(product, equal=close(), examples=60)
    split = split_by(lambda g: g[0], merge(ADD).source)
    independent(merge(ADD), split, equal=close(), examples=60)


def test_a_structure_without_nothing_is_not_asked_for_it() -> None:
    class Volume(ChangeStructure[int, int]):
        def valid(self, change: object, value: int) -> bool:
            return isinstance(change, int) and 0 <= value + change <= 10

        def apply(self, value: int, change: int) -> int:
            return value + change

    check(Volume(), elements=range(11), changes=range(-3, 4), examples=60)


def test_the_report_does_not_depend_on_hashes() -> None:
    code = (
        "from ebbflow.algebra import SET, Homomorphism; from ebbflow.laws import check\n"
        "from hypothesis import strategies as st\n"
        "words = st.frozensets(st.sampled_from(['aa', 'bb', 'cc', 'dd']))\n"
        "h = Homomorphism(lambda s: s if len(s) < 3 else frozenset(), SET, SET, name='h')\n"
        "try: check(h, elements=words)\n"
        "except AssertionError as error: print(error)"
    )
    texts = {
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                       env={**os.environ, "PYTHONHASHSEED": seed}).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(texts) == 1
    assert "breaks a law" in texts.pop()


def test_a_variable_may_not_take_the_place_of_an_argument() -> None:
    with pytest.raises(CheckError, match="cannot be called 'thing'"):
        Law("BAD", "", "", {"thing": "element"}, lambda t, thing: (0, 0))
    what = Law("FINE", "no", "", {"what": "element", "remedy": "element"},
               lambda t, what, remedy: (what, remedy))  # fmt: skip
    with pytest.raises(LawBroken):
        what.test(None, what=1, remedy=2)


def test_equality_of_sketches_by_what_they_answer() -> None:
    halves = Homomorphism(lambda n: n // 2, ADD, ADD, name="halves")
    with pytest.raises(LawBroken):
        check(halves)
    check(halves, equal=lambda a, b: abs(a - b) <= 1)


def test_elements_may_be_a_strategy_a_collection_or_a_function() -> None:
    text = Monoid("", lambda a, b: a + b, name="text")
    for elements in (st.text("ab"), ["", "a"], {"a", "b"}, lambda: st.text("ab"), lambda: ["x"]):
        check(text, elements=elements, examples=20)


@pytest.mark.parametrize(
    ("thing", "elements", "says"),
    [
        (Monoid("", lambda a, b: a + b), None, "not known what"),
        (Monoid("", lambda a, b: a + b), [], "nothing to draw from"),
        (Monoid("", lambda a, b: a + b), 7, "cannot draw from a int"),
        ("a string", None, "laws of a str"),
    ],
)
def test_what_cannot_be_checked_says_what_is_missing(thing: Any, elements: Any, says: str) -> None:
    with pytest.raises(CheckError, match=says) as caught:
        check(thing, elements=elements)
    assert "try" in str(caught.value) or "elements" in str(caught.value)


def test_an_exception_inside_the_thing_breaks_the_law_and_is_shown() -> None:
    failing = Homomorphism(lambda xs: xs[0], LIST, ADD, name="first")
    with pytest.raises(LawBroken, match="raised IndexError"):
        check(failing)


def test_rare_nondeterminism_is_reported_and_not_lost() -> None:
    calls = [0]

    def sometimes(_: Any, xs: list[Any]) -> Any:
        calls[0] += 1
        return None, ["!"] if calls[0] % 50 == 0 else xs

    flaky = processor(sometimes, source=LIST, target=LIST, name="flaky")
    with pytest.raises(LawBroken):
        check(flaky)


def test_a_law_of_ones_own() -> None:
    even = Law(
        "EVEN", "an odd number came out", "f(a) % 2 == 0", {"a": "element"},
        lambda f, a: (f(a) % 2, 0), "double it",
    )  # fmt: skip
    size = Homomorphism(len, LIST, ADD)
    with pytest.raises(LawBroken, match="odd number"):
        check(size, laws=[even])
    check(size >> Homomorphism(lambda n: 2 * n, ADD, ADD), laws=[*laws_of(size), even])


def test_laws_can_be_asked_one_case_at_a_time() -> None:
    assert COMMUTATIVE.holds(ADD, a=1, b=2)
    assert not COMMUTATIVE.holds(LIST, a=[1], b=[2])


def test_equivalent_takes_elements_and_an_equality() -> None:
    inputs = st.lists(st.integers(0, 5), max_size=4)
    equivalent(map_each(abs), map_each(int), elements=inputs)
    with pytest.raises(LawBroken):
        equivalent(map_each(abs), map_each(int))


# ---- from the shell ----


def shell(*arguments: str, folder: Path = HERE) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ebbflow", *arguments],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_the_shell_refutes_with_exit_1_and_the_same_report() -> None:
    done = shell("check", "planted:mean", "--examples", "300", "--seed", "3")
    assert done.returncode == 1
    with pytest.raises(LawBroken) as caught:
        check(planted.mean, examples=300, seed=3)
    ours = [line for line in str(caught.value).splitlines() if "created" not in line]
    theirs = [line for line in done.stdout.splitlines() if "created" not in line]
    assert theirs == [f"BROKEN  planted:mean: {ours[0]}", *ours[1:]]


def test_the_shell_passes_with_exit_0() -> None:
    done = shell("check", "planted:right_mod_5", "planted:right_numbering", "--examples", "50")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("laws hold") == 2


def test_the_shell_takes_elements_by_name() -> None:
    assert shell("check", "planted:mirrored").returncode == 1
    done = shell(
        "check", "planted:right_rows", "--elements", "planted:sample_zsets", "--examples", "30"
    )
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("planted:nope", "has no 'nope'"),
        ("planted:", "names no thing"),
        ("no_such_module:x", "no module 'no_such_module'"),
        ("planted:right_mod5", "try        right_mod_5"),
    ],
)
def test_the_shell_says_what_it_could_not_find(spec: str, says: str) -> None:
    done = shell("check", spec)
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "body", ["raise ValueError('no')", "def broken(:", "import sys; x = sys.nope"]
)
def test_a_module_that_cannot_be_imported_is_not_a_broken_law(body: str, tmp_path: Path) -> None:
    (tmp_path / "failing.py").write_text(body)
    done = shell("check", "failing:x", folder=tmp_path)
    assert done.returncode == 2
    assert "importing 'failing' raised" in done.stderr
    assert "Traceback" not in done.stderr


def test_what_cannot_be_checked_does_not_hide_what_is_broken(tmp_path: Path) -> None:
    (tmp_path / "several.py").write_text(
        "from ebbflow.algebra import Monoid\n"
        "unknown = Monoid('', lambda a, b: a + b)\n"
        "bad = Monoid(0, lambda a, b: a - b, elements=[0, 1])\n"
    )
    done = shell("check", "several", folder=tmp_path)
    assert done.returncode == 1
    assert "unknown several:unknown: it is not known what" in done.stdout
    assert "BROKEN  several:bad" in done.stdout
    assert shell("check", "several:unknown", folder=tmp_path).returncode == 2
    assert not (tmp_path / ".hypothesis").exists()


def test_a_whole_module_is_checked_without_what_it_only_imports(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        "from ebbflow.algebra import ADD, LIST, Homomorphism, Monoid\n"
        "minus = Monoid(0, lambda a, b: a - b, elements=[0, 1])\n"
        "size = Homomorphism(len, LIST, ADD)\n"
    )
    done = shell("check", "own", "--examples", "20", folder=tmp_path)
    lines = [line for line in done.stdout.splitlines() if line.startswith(("ok ", "BROKEN "))]
    assert sorted(line.split()[:2] for line in lines) == [
        ["BROKEN", "own:minus:"], ["ok", "own:size:"],
    ]  # fmt: skip
