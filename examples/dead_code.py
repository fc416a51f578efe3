"""Functions that nothing calls, while files are edited. (Dead-code elimination.)

A file gives three things: nodes (the functions it defines), edges (which function names which) and
roots (the names that run when the file is loaded). Live is what a root leads to; the loop is that
of `power_grid.py`. Dead is what is defined and not live, recursion or not: two functions that only
call each other are dead together.

An edited file is an upsert. Its old nodes, edges and roots go and the new ones come, and of those
that are in both nobody hears.

    python examples/dead_code.py
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

import ebbflow as ef


class File(NamedTuple):
    path: str
    text: str


class Function(NamedTuple):
    path: str
    name: str


class Call(NamedTuple):
    caller: str
    callee: str


def statements(file: File) -> list[ast.stmt]:
    try:
        return ast.parse(file.text).body
    except (SyntaxError, ValueError):
        return []  # a file that is being written


def names(code: ast.AST) -> Iterator[str]:
    return (node.id for node in ast.walk(code) if isinstance(node, ast.Name))


def functions(file: File) -> list[Function]:
    return [Function(file.path, s.name) for s in statements(file) if isinstance(s, ast.FunctionDef)]


def calls(file: File) -> list[Call]:
    defined = [s for s in statements(file) if isinstance(s, ast.FunctionDef)]
    return [Call(function.name, name) for function in defined for name in names(function)]


def run_at_once(file: File) -> list[str]:
    loose = [s for s in statements(file) if not isinstance(s, ast.FunctionDef)]
    return [name for statement in loose for name in names(statement)]


def itself(name: str) -> str:
    return name


def called(caller: str, call: Call) -> str:
    return call.callee


files = ef.Input("files", File, key="path")

nodes = files.flat_map(functions).distinct()
edges = files.flat_map(calls)
roots = files.flat_map(run_at_once)


def reached(live: ef.Collection) -> ef.Collection:
    return live.union(live.join(edges, left_on=itself, right_on="caller", select=called))


live = roots.iterate(reached)
program = ef.program(
    live=nodes.join(live, left_on="name", right_on=itself, how="semi"),
    dead=nodes.join(live, left_on="name", right_on=itself, how="anti"),
)

start = {
    "files": [
        File("main.py", "def main(): load(); show()\nmain()"),
        File("store.py", "def load(): parse()\ndef save(): dump()\ndef dump(): save()"),
        File("text.py", "def parse(): pass\ndef show(): paint()\ndef paint(): pass"),
    ]
}


def main() -> None:
    view = program.run()

    def tell(change: ef.ZSet) -> None:
        for function, weight in sorted(change.items()):
            print(f"  {function.path}: {function.name} {'is dead' if weight > 0 else 'is not'}")

    view["dead"].on_change(tell)
    print("three files")
    view.step(start)
    files = view.input("files")
    print("main saves at the end")
    files.upsert(File("main.py", "def main(): load(); show(); save()\nmain()"))
    print("main is only defined, no longer called")
    files.upsert(File("main.py", "def main(): load(); show(); save()"))
    print("a test calls save, and show")
    files.upsert(File("test.py", "save()\nshow()"))
    print("text.py is deleted")
    files.delete("text.py")
    print("live:", ", ".join(f"{f.path}: {f.name}" for f in sorted(view["live"].value)))


if __name__ == "__main__":
    main()
