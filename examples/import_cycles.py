"""Modules that import each other in a circle. (Strongly connected components, by nested loops.)

Two modules are in one circle when each leads to the other. To find the circles, take away imports
that lie in none, until there are no more of those:

    label every module with the smallest one that leads to it        (the inner loop)
    keep the imports between modules of the same label, turned round
    do both once more, along the turned imports                      (so they point as before)

A round of the outer loop keeps some of the imports that it was given, so they only become fewer.
What is left are circles, and their labels name them. One `import` that comes or goes is followed
through both loops, at the rounds of both where it makes a difference, and nowhere else.

    python examples/import_cycles.py
"""

from __future__ import annotations

from typing import NamedTuple

import ebbflow as ef


class Import(NamedTuple):
    module: str
    imports: str


class Label(NamedTuple):
    module: str
    label: str


def handed_on(label: Label, imported: Import) -> Label:
    return Label(imported.imports, label.label)


def labelled(imports: ef.Collection) -> ef.Collection:
    """Every module with the first, in the order of names, of those that lead to it."""

    def spread(labels: ef.Collection) -> ef.Collection:
        followed = labels.join(imports, on="module", select=handed_on)
        return (labels + followed).group_by("module").agg(label=ef.min("label"))

    return modules.map(lambda name: Label(name, name)).iterate(spread)


def turned(imports: ef.Collection) -> ef.Collection:
    """The imports between modules of one label, turned round."""
    labels = labelled(imports)
    return (
        imports.join(labels, on="module")
        .join(labels, left_on=("imports", "label"), right_on=("module", "label"), how="semi")
        .map(lambda row: Import(row.imports, row.module))
    )


written = ef.Input("imports", Import)
imports = written.distinct()
modules = imports.flat_map(lambda i: [i.module, i.imports], type=str).distinct()

circular = imports.iterate(lambda imports: turned(turned(imports)))
in_a_circle = circular.map("module").distinct()
circles = (
    labelled(circular)
    .join(in_a_circle, left_on="module", right_on=lambda name: name, how="semi")
    .group_by("label")
    .agg(modules=ef.collect("module"))
)
program = ef.program(circular=circular, circles=circles)

start = {
    "imports": [
        Import("app", "views"),
        Import("views", "models"),
        Import("models", "views"),
        Import("models", "store"),
        Import("store", "cache"),
        Import("cache", "events"),
        Import("events", "store"),
        Import("cache", "log"),
    ]
}


def main() -> None:
    view = program.run()

    def tell(change: ef.ZSet) -> None:
        for word, rows in (("no longer", change.negative()), ("a circle:", change.positive())):
            for circle in sorted(rows):
                print(f"  {word} {' '.join(circle.modules)}")

    view["circles"].on_change(tell)
    print("as it was written")
    view.step(start)
    print("store imports models: two circles become one")
    view.input("imports").add(Import("store", "models"))
    print("log imports nothing, and app is imported by nobody: what they do closes no circle")
    view.input("imports").add(Import("app", "log"))
    print("models stops importing store, and the two fall apart again")
    view.input("imports").remove(Import("models", "store"))
    print("events stops importing store")
    view.input("imports").remove(Import("events", "store"))
    left = sorted(f"{row.module} → {row.imports}" for row in view["circular"].value)
    print("imports in circles:", ", ".join(left))


if __name__ == "__main__":
    main()
