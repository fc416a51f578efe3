"""Documents that are edited inside their rows: a program of all kinds of verbs on them, and random
changes of its inputs, with the plain rows beside."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, NamedTuple

import ebbflow as ef
from ebbflow.change import (
    NATURAL,
    TEXT,
    Delete,
    DeleteItems,
    Drop,
    Insert,
    InsertItems,
    List,
    Put,
    Replace,
    ReplaceItem,
    Text,
)
from ebbflow.frozen import Frozen, frozen
from ebbflow.operator import Operator, lists, text
from ebbflow.zset import ZSet

WORDS = ["ebb", "flow", "# sea", "a", "A", "\n", " ", "\u00df", "\u03a3", "ab", "\r\n"]


class Doc(NamedTuple):
    id: int
    owner: str
    body: Text
    items: List[int]
    tags: list[str]
    scores: dict[str, int]


class Owner(NamedTuple):
    owner: str
    n: int


class Vowels(Operator[Any, Any, Any, Any]):
    """A user's own operator, with a state that it alters in place: how often each vowel occurs."""

    input, output, result_type = TEXT, NATURAL, int

    def f(self, x: str) -> int:
        return sum(map(x.count, "aeiou"))

    def init(self, x: str) -> dict[str, Any]:
        return {"text": x, "n": self.f(x)}

    def step(self, state: Any, change: Any) -> tuple[Any, int]:
        before = state["n"]
        state["text"] = TEXT.patch(state["text"], change)
        state["n"] = self.f(state["text"])
        return state, state["n"] - before


def is_heading(line: str) -> bool:
    return line.startswith("#")


def odd(n: int) -> bool:
    return n % 2 == 1


docs = ef.Input("docs", Doc, key="id")
owners = ef.Input("owners", Owner)
loud = docs.select("id", "owner", up=text.upper("body"), lines=text.lines("body"))
headings = text.lines >> lists.keep(is_heading)
OUTPUTS: dict[str, Any] = {
    "values": docs.select(
        "id", "body", n=text.count("a")("body"), at=text.index_of("ab")("body"),
        low=text.lower("body"), heads=headings("body"), vowels=Vowels()("body"),
        cut=(text.trim >> text.substring(1, 4))("body"),
        odds=(lists.keep(odd) >> lists.length)("items"),
    ),
    "chained": loud.select("owner", a=text.count("A")("up"), size=lists.length("lines")),
    "kept": loud.filter(lambda row: len(row.up) > 3).select("id", w=text.starts_with("E")("up")),
    "joined": loud.join(owners, on="owner").select("n", s=(text.trim >> text.length)("up")),
    "both": loud.select("id", both=text.concat("owner", "up")),
    "twice": loud.select("id", "up", low=text.lower("up")).select(
        at=(text.concat >> text.last_index_of("A"))("up", "low")
    ),
    "words": docs.through(text.words("body"), per="id").group_by("value").agg(n=ef.count()),
    "all": docs.through(text.words("body")).distinct(),
    "found": docs.through((text.lines >> lists.items)("body"), per="owner").filter(
        lambda row: "e" in row.value
    ),
    "texts": docs.group_by("owner").agg(least=ef.min("body"), n=ef.count_distinct("body")),
    "top": loud.top_k(1, order="up", per="owner"),
    "numbers": docs.through(lists.items("items"), per="id", type=int),
    "fields": docs.select("id", "tags", "scores", "items"),
}  # fmt: skip


class Failing:
    """What a filter of the program does to a text that holds this word: it raises."""

    WORD = "flow\n#"


def _careful(row: Any) -> bool:
    if Failing.WORD in str(row.body):
        raise ValueError("not this text")
    return True


checked = docs.filter(_careful).select("id", n=text.length("body"))
program = ef.program(**OUTPUTS, checked=checked)


def plain(row: Doc) -> Doc:
    """The row as it may be given: with a str, a list, a dict."""
    return row._replace(body=str(row.body), items=tuple(row.items))  # type: ignore[arg-type]


def some_text(rnd: random.Random, most: int = 8) -> str:
    return "".join(rnd.choices(WORDS, k=rnd.randint(0, most)))


def doc(rnd: random.Random, id: int) -> Doc:
    made: Any = Doc(
        id, rnd.choice("pq"), some_text(rnd, 12), [rnd.randrange(4) for _ in range(3)],  # type: ignore[arg-type]
        rnd.choices("xyz", k=2), {"x": rnd.randrange(3)},
    )  # fmt: skip
    return made  # type: ignore[no-any-return]


class Model:
    """The rows that there should be, as plain values; every step changes it and a view alike."""

    def __init__(self, seed: int) -> None:
        self.rnd = random.Random(seed)
        self.rows: dict[int, Doc] = {}
        self.owners: ZSet[Owner] = ZSet()

    def inputs(self) -> dict[str, ZSet[Any]]:
        held = [
            row._replace(
                items=tuple(row.items), tags=tuple(row.tags), scores=Frozen(row.scores),  # type: ignore[arg-type]
            )
            for row in self.rows.values()
        ]  # fmt: skip
        return {"docs": ZSet.of(held), "owners": self.owners}

    def steps(self, view: Any, count: int) -> Iterator[str]:
        """Random epochs, each done to the view; what was done comes out after it."""
        for _ in range(count):
            before = dict(self.rows)
            try:
                yield self.step(view)
            except ef.EbbflowError as error:
                if "not this text" not in str(error):
                    raise
                self.rows = before
                yield "refused"

    def step(self, view: Any) -> str:
        rnd, given = self.rnd, view.input("docs")
        kind = rnd.choice(
            ["edit"] * 6 + ["upsert", "add", "delete", "list", "dict", "owner", "swap"]
        )
        if kind == "add" or not self.rows:
            row = doc(rnd, max(self.rows, default=0) + 1)
            self.rows[row.id] = row
            given.add(row)
            return "add"
        at = rnd.choice(list(self.rows))
        old = self.rows[at]
        if kind == "edit":
            return self._edit(given, at, old)
        if kind in ("upsert", "swap"):
            row = doc(rnd, at) if rnd.random() < 0.5 else old._replace(body=some_text(rnd))  # type: ignore[arg-type]
            self.rows[at] = row
            if kind == "upsert":
                given.upsert(row)
            elif row != old:
                held = view._program.inputs["docs"].source.type
                assert held is Doc
                given.apply(ZSet.of([_held(row)]) - ZSet.of([_held(old)]))
        elif kind == "delete":
            del self.rows[at]
            given.delete(at)
        elif kind == "owner":
            change = ZSet.of([Owner(rnd.choice("pq"), rnd.randrange(3))])
            self.owners += change
            view.input("owners").apply(change)
        else:
            self._edit_others(given, at, old, kind)
        return kind

    def _edit(self, given: Any, at: int, old: Doc) -> str:
        rnd = self.rnd
        body, changes = str(old.body), []
        for _ in range(rnd.choice((1, 1, 2, 5))):
            place = rnd.randint(0, len(body))
            change: Any = Insert(place, some_text(rnd, 3))
            if rnd.random() < 0.4:
                change = Delete(place, rnd.randint(0, len(body) - place))
            body = TEXT.patch(body, change)
            changes.append(change)
        if rnd.random() < 0.1:
            body = some_text(rnd)
            changes.append(Replace(body))
        self.rows[at] = old._replace(body=body)  # type: ignore[arg-type]
        given.edit(at, "body", *changes)
        return "edit"

    def _edit_others(self, given: Any, at: int, old: Doc, kind: str) -> None:
        rnd = self.rnd
        if kind == "dict":
            scores = dict(old.scores)
            change: Any = {"x": Drop()} if "x" in scores else {"x": Put(5)}
            scores.pop("x") if "x" in scores else scores.update(x=5)
            self.rows[at] = old._replace(scores=scores)
            given.edit(at, "scores", change)
            return
        field = rnd.choice(("items", "tags"))
        items = list(getattr(old, field))
        new = rnd.randrange(4) if field == "items" else rnd.choice("xyz")
        place = rnd.randint(0, len(items))
        if place == len(items) or rnd.random() < 0.5:
            change = InsertItems(place, (new,))
            items.insert(place, new)
        elif rnd.random() < 0.5:
            change = ReplaceItem(place, new)
            items[place] = new
        else:
            change = DeleteItems(place, 1)
            del items[place]
        self.rows[at] = old._replace(**{field: items})
        given.edit(at, field, change)


def _held(row: Doc) -> Any:
    return frozen(row)
