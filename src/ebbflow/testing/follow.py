"""An engine beside batch: two roads to one value, compared after every change.

An engine runs a plan and gives a *view*: something with `step(changes)`, which returns the change
of the output (of several: a dict of them), and with `value`. It is right when after every epoch the
changes it has given so far add up to what batch computes from all the input so far, and its value
is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ebbflow.engine.batch import evaluate
from ebbflow.engine.batch.difference import mismatch
from ebbflow.errors import EbbflowError, canonical
from ebbflow.flow.plan import Plan
from ebbflow.flow.show import explain
from ebbflow.record import fields_of
from ebbflow.testing.epochs import plan_of
from ebbflow.zset import ZSet

Outputs = dict[str, ZSet[Any]]


def follow(
    run: Callable[[Plan], Any], program: Any, epochs: Iterable[Mapping[str, ZSet[Any]]]
) -> Any:
    """Run a program, a collection or a plan by an engine and by batch; return the engine's view.

    The two are compared before the first epoch and after each. An AssertionError shows the plan,
    the number of the epoch, its change, and the rows that are missing or too many. An epoch that
    batch refuses, because a row is negative, a function raises or a loop comes to no end, the
    engine must refuse too, and stay as it was. Epochs that then make no sense, as they take away
    what was refused, are left out.

    >>> from ebbflow.flow.source import Input
    >>> words = Input("words", str).distinct()
    >>> class Forgetful:
    ...     value = ZSet()
    ...     def step(self, changes):
    ...         gone, self.value = self.value, changes["words"].distinct()
    ...         return self.value - gone
    >>> follow(lambda plan: Forgetful(), words, [{"words": ZSet.of("a")}, {"words": ZSet.of("b")}])
    Traceback (most recent call last):
    AssertionError: after epoch 2 the changes do not add up to what batch computes
        output
            missing  'a'
    <BLANKLINE>
    epoch 1: words ZSet({'a': 1})
    epoch 2: words ZSet({'b': 1})
    <BLANKLINE>
    output
    └─ 1 distinct     str  <doctest ebbflow.testing.follow.follow[1]>:1
         keeps    a weight for each row
       2 input words  str  <doctest ebbflow.testing.follow.follow[1]>:1
         keeps    its rows, to check what is taken away
    """
    plan = plan_of(program)
    case = _Case(plan)
    view = run(plan)
    inputs: dict[str, ZSet[Any]] = {}
    expected = evaluate(plan, inputs)
    total = case.outputs(view.value)
    case.compare("the first value is not what batch computes", expected, total)
    refused = False
    for epoch in epochs:
        after = {name: inputs.get(name, ZSet()) + change for name, change in epoch.items()}
        if refused and not all(rows.is_bag for rows in after.values()):
            continue
        case.seen.append(dict(epoch))
        try:
            expected = evaluate(plan, {**inputs, **after})
        except EbbflowError as refusal:
            case.must_refuse(view, refusal)
            refused = True
        else:
            inputs.update(after)
            change = case.step(view)
            total = {name: rows + change[name] for name, rows in total.items()}
        case.compare("the changes do not add up to what batch computes", expected, total)
        case.compare("the value is not what batch computes", expected, case.outputs(view.value))
    return view


class _Case:
    """One comparison: the plan, and the epochs so far."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.seen: list[dict[str, ZSet[Any]]] = []

    def outputs(self, found: Any) -> Outputs:
        """What an engine gave, by output; an output it leaves out has not changed."""
        names = list(self.plan.outputs)
        if isinstance(found, ZSet):
            if len(names) != 1:
                self.fail("one Z-set is given for several outputs", canonical(found))
            return {names[0]: found}
        if not isinstance(found, Mapping):
            self.fail("neither a Z-set is given nor a dict of them", canonical(found))
        strange = [name for name in found if name not in names]
        if strange:
            self.fail("an output is given that the plan does not have", canonical(strange))
        return {name: found.get(name, ZSet()) for name in names}

    def step(self, view: Any) -> Outputs:
        """One epoch by the engine: its change, in the form that changes have."""
        try:
            change = self.outputs(view.step(dict(self.seen[-1])))
        except EbbflowError as error:
            self.fail("the engine refuses what batch does not", str(error), error)
        except AssertionError:
            raise
        except Exception as error:
            error.add_note(self.text())
            raise
        for name, rows in change.items():
            zeros = [row for row, weight in rows.items() if not weight]
            if zeros:
                self.fail(f"the change of {name!r} has rows of weight zero", canonical(zeros))
        return change

    def must_refuse(self, view: Any, refusal: EbbflowError) -> None:
        """The engine must not take what batch refuses."""
        try:
            found = view.step(dict(self.seen[-1]))
        except EbbflowError:
            return
        self.fail("the engine takes what batch refuses", f"{refusal}\n{canonical(found)}", refusal)

    def compare(self, what: str, expected: Outputs, found: Outputs) -> None:
        """Rows and weights must be equal; where the rows of an output have fields, these too."""
        difference = mismatch(expected, found)
        if difference is not None:
            self.fail(what, difference)
        for name, rows in expected.items():
            if fields_of(self.plan.outputs[name].type) is None:
                continue
            made = {row: row for row in found[name]}
            for row in rows:
                ours, theirs = (getattr(each, "_fields", None) for each in (row, made[row]))
                if ours != theirs:
                    self.fail(
                        f"the rows of {name!r} have other fields",
                        f"expected {canonical(row)}\nfound    {canonical(made[row])}",
                    )

    def fail(self, what: str, details: str, cause: Exception | None = None) -> Any:
        """Raise, with everything needed to see it again."""
        indented = "\n".join(f"    {line}" for line in details.splitlines())
        when = f"after epoch {len(self.seen)} " if self.seen else ""
        raise AssertionError(f"{when}{what}\n{indented}\n\n{self.text()}") from cause

    def text(self) -> str:
        """The epochs and the plan."""
        epochs = [
            f"epoch {number}: " + (", ".join(f"{n} {z!r}" for n, z in epoch.items()) or "nothing")
            for number, epoch in enumerate(self.seen, 1)
        ]
        return "\n".join([*epochs, "", explain(self.plan)])
