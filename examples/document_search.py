"""A search engine in a few lines: an inverted index, and standing searches that stay answered.

`flat_map` turns a document into its words. From there the index is a grouping, and a search for
several words is a join: a document answers when as many *different* words of the query meet it as
the query has. Queries are an input too. Nothing is searched again when a document is edited: only
the words that came and went travel through the join.

    python examples/document_search.py
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import ebbflow as ef


class Document(NamedTuple):
    id: str
    text: str


class Word(NamedTuple):
    word: str
    id: str


class Wanted(NamedTuple):
    word: str
    query: str
    words: int


def split(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def words(document: Document) -> Iterator[Word]:
    return (Word(word, document.id) for word in split(document.text))


def wanted(query: str) -> Iterator[Wanted]:
    different = set(split(query))
    return (Wanted(word, query, len(different)) for word in different)


documents = ef.Input("documents", Document, key="id")
queries = ef.Input("queries", str)

index = documents.flat_map(words)
answers = (
    queries.distinct()
    .flat_map(wanted)
    .join(index, on="word")
    .group_by("query", "words", "id")
    .agg(found=ef.count_distinct("word"), score=ef.count())
    .filter(lambda answer: answer.found == answer.words)
    .select("query", "id", "score")
)
program = ef.program(
    index=index.group_by("word").agg(n=ef.count(), documents=ef.set_of("id")),
    answers=answers,
    best=answers.top_k(1, order="score", per="query"),
)

start = {
    "documents": [
        Document("tides", "The tide comes in, the tide goes out."),
        Document("ports", "Ships wait for the tide outside the port."),
        Document("moons", "The moon pulls the sea."),
    ],
    "queries": ["the tide", "moon", "tide port"],
}


def tell(change: ef.ZSet) -> None:
    for answer, weight in sorted(change.items(), key=lambda each: (each[0][:2], each[1])):
        sign = "+" if weight > 0 else "-"
        print(f"  {sign} {answer.query!r} finds {answer.id} (score {answer.score})")


def main() -> None:
    view = program.run()
    view["answers"].on_change(tell)
    print("three documents, three searches")
    view.step(start)
    print("'moons' is edited")
    view.input("documents").upsert(Document("moons", "The moon pulls the sea: hence the tide."))
    print("'ports' is deleted")
    view.input("documents").delete("ports")
    print("a search comes, another goes")
    view.input("queries").apply(ef.ZSet({"sea moon": 1, "the tide": -1}))
    for row in sorted(view["best"].value):
        print(f"best for {row.query!r}: {row.id}")
    common = [row for row in view["index"].value if len(row.documents) > 1]
    print("words in both documents:", *sorted(row.word for row in common))


if __name__ == "__main__":
    main()
