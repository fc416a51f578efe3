"""A document that several people type into, with an outline, word counts and a search beside it.

The text is a field of a row, declared as `Text`: a key pressed is an edit *inside* the row. The
operators on the field follow it: `lines >> keep(is_heading)` is the outline, `words` gives a row
for each word, and a search is a join of lines with what is looked for. None of them reads the
document again; a keystroke costs what it changes, however long the document is.

    python examples/shared_document.py
"""

from __future__ import annotations

from typing import NamedTuple

import ebbflow as ef
from ebbflow.change import Delete, Insert
from ebbflow.operator import lists, text


class Document(NamedTuple):
    id: str
    body: ef.Text


class Search(NamedTuple):
    who: str
    term: str


def is_heading(line: str) -> bool:
    return line.startswith("#")


documents = ef.Input("documents", Document, key="id")
searches = ef.Input("searches", Search, key="who")

outline = documents.select("id", headings=(text.lines >> lists.keep(is_heading))("body"))
counts = documents.through(text.words("body"), per="id").group_by("value").agg(n=ef.count())
lines = documents.through((text.lines >> lists.items)("body"), per="id")
found = (
    searches.cross(lines)
    .filter(lambda row: row.term in row.value)
    .select("who", "id", line=lambda row: row.value.strip())
)
program = ef.program(
    outline=outline,
    sizes=documents.select("id", size=text.length("body"), lines=text.count("\n")("body")),
    frequent=counts.top_k(2, order="n"),
    found=found,
)

start = {
    "documents": [
        Document("tides", "# Tides\nThe tide comes in.\n## Why\nThe moon pulls the sea.\n"),
        Document("ports", "# Ports\nShips wait for the tide.\n"),
    ],
    "searches": [Search("ann", "tide"), Search("bob", "moon")],
}


def tell(change: ef.ZSet) -> None:
    for row, weight in sorted(change.items(), key=lambda each: (each[0], each[1])):
        print(f"  {'+' if weight > 0 else '-'} {row.who} finds {row.line!r} in {row.id}")


def main() -> None:
    view = program.run()
    view["found"].on_change(tell)
    print("two documents, two searches")
    view.step(start)
    typed = view.input("documents")

    print("ann types ' Out.' after the end of the first sentence of 'tides'")
    at = len("# Tides\nThe tide comes in.")
    for i, letter in enumerate(" Out."):
        typed.edit("tides", "body", Insert(at + i, letter))

    print("bob makes the sentence on the moon a heading")
    at += len(" Out.\n## Why\n")
    typed.edit("tides", "body", Insert(at, "## "))
    print("  outline:", *next(r for r in view["outline"].value if r.id == "tides").headings)

    print("ann replaces a word: two edits, one epoch")
    typed.edit("ports", "body", Delete(len("# Ports\n"), 5), Insert(len("# Ports\n"), "Boats"))

    print("bob looks for something else")
    view.input("searches").upsert(Search("bob", "Boats"))
    for row in sorted(view["sizes"].value):
        print(f"{row.id}: {row.size} characters in {row.lines} lines")
    print("most frequent:", *(f"{row.value} ({row.n})" for row in sorted(view["frequent"].value)))


if __name__ == "__main__":
    main()
