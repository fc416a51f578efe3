"""Exam figures, grades on a curve, and averages by credits, while marks are corrected.

On a curve a grade depends on everybody's points: one corrected mark moves the exam's mean and
spread, and with them perhaps the grade of someone else. The program says only what a grade *is*;
the join of every mark with its exam's figures finds whose grade changes. What a corrected mark
cannot change is not looked at.

The pass rate is a small reducer of our own: two counts, and a way to take a mark out again.

    python examples/exams.py
"""

from __future__ import annotations

from typing import Any, NamedTuple

import ebbflow as ef


class Exam(NamedTuple):
    exam: str
    credits: int


class Mark(NamedTuple):
    student: str
    exam: str
    points: int


pass_rate = ef.Reducer(
    (0, 0),
    lambda acc, points: (acc[0] + (points >= 50), acc[1] + 1),
    lambda acc, points: (acc[0] - (points >= 50), acc[1] - 1),
    result=lambda acc: acc[0] / acc[1] if acc[1] else None,
    name="pass_rate",
    partial=False,
    elements=[0, 49, 50, 100],
)


def grade(row: Any) -> str:
    """By how many standard deviations the points are above the exam's mean."""
    distance = (row.points - row.mean) / row.spread if row.spread else 0
    return "A" if distance > 0.8 else "B" if distance > -0.2 else "C" if distance > -1 else "D"


exams = ef.Input("exams", Exam, key="exam")
marks = ef.Input("marks", Mark, key=("student", "exam"))

figures = marks.group_by("exam").agg(
    n=ef.count(),
    mean=ef.mean("points"),
    spread=ef.stddev("points", ddof=0),
    median=ef.median("points"),
    upper=ef.quantile(0.75, "points"),
    passed=pass_rate.on("points"),
)
program = ef.program(
    figures=figures,
    grades=marks.join(figures, on="exam").select("student", "exam", grade=grade),
    averages=marks.join(exams, on="exam")
    .group_by("student")
    .agg(points=ef.weighted_mean("points", "credits"), credits=ef.sum("credits")),
)

start = {
    "exams": [Exam("algebra", 6), Exam("logic", 3)],
    "marks": [
        Mark("ann", "algebra", 82),
        Mark("bob", "algebra", 55),
        Mark("cat", "algebra", 44),
        Mark("dan", "algebra", 61),
        Mark("ann", "logic", 48),
        Mark("bob", "logic", 70),
    ],
}


def main() -> None:
    view = program.run()

    def tell(what: str, changes: dict[str, ef.ZSet]) -> None:
        print(what)
        for row in sorted(changes["figures"].positive()):
            line = f"mean {row.mean:.1f}, median {row.median}, {row.passed:.0%} passed"
            print(f"  {row.exam} ({row.n}): {line}")
        before = {row[:2]: row.grade for row in changes["grades"].negative()}
        for row in sorted(changes["grades"].positive()):
            print(
                f"  {row.student}'s grade in {row.exam}: {before.get(row[:2], '–')} → {row.grade}"
            )

    tell("the first marks", view.step(start))
    marked = view.input("marks")
    tell("bob's algebra was added up wrong: 71, not 55", marked.upsert(Mark("bob", "algebra", 71)))
    tell("cat was ill: her mark is withdrawn", marked.delete(("cat", "algebra")))
    tell("dan sits logic, and gets 84", marked.upsert(Mark("dan", "logic", 84)))
    for row in sorted(view["averages"].value):
        print(f"{row.student}: {row.points:.1f} on average over {row.credits} credits")


if __name__ == "__main__":
    main()
