"""A witness: random programs, each written twice, for ebbflow and as SQL for DuckDB.

The engine and the oracle are one project and can share a mistake. DuckDB shares nothing with them:
what a program means is written here a second time, verb by verb, as SQL. `Writer` (in
`duckdb_verbs`) grows both at once, and `Witness` asks DuckDB what the rows are, from the rows of
the inputs alone.

A collection is a table of its fields and `w`, the weights, which may be negative behind `-`. Where
Python and SQL differ, the SQL says what Python means:

    None == None                keys meet by IS NOT DISTINCT FROM; None comes before everything
    % and //                    round down, also below zero
    int beside float            compared exactly, not as two doubles
    a reducer skips None        as SQL does; a group without rows has no row
    Annotated[datetime, UTC]    a TIMESTAMP in UTC
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from functools import cache
from random import Random
from typing import Annotated, Any, NamedTuple

import duckdb

import ebbflow as ef

Weights = Counter[tuple[Any, ...]]


# ---- inputs ----


class Sale(NamedTuple):
    k: int
    v: int | None
    s: str
    x: float


class Visit(NamedTuple):
    k: int
    t: datetime
    who: str | None


class Pay(NamedTuple):
    k: int
    big: int
    y: float
    ok: bool


class Bill(NamedTuple):
    k: int
    m: Annotated[Decimal, (10, 2)]
    z: Annotated[datetime, UTC]


SQL = {
    "int": "BIGINT", "big": "BIGINT", "str": "VARCHAR", "float": "DOUBLE", "ratio": "DOUBLE",
    "bool": "BOOLEAN", "time": "TIMESTAMP", "zoned": "TIMESTAMP", "money": "DECIMAL(10,2)",
}  # fmt: skip
INPUTS: dict[type, dict[str, str]] = {
    Sale: {"k": "int", "v": "int?", "s": "str", "x": "float"},
    Visit: {"k": "int", "t": "time", "who": "str?"},
    Pay: {"k": "int", "big": "big", "y": "float", "ok": "bool"},
    Bill: {"k": "int", "m": "money", "z": "zoned"},
}
ROME = timezone(timedelta(hours=1))
VALUES: dict[str, list[Any]] = {
    "int": [0, 1, 2, 3, -1, 1],
    "big": [2**53, 2**53 + 1, -(2**53) - 1, 2**62, 1],
    "str": ["a", "b", "ab", "", "é"],
    "float": [0.0, 0.5, 1.5, -1.0, 2.0**53, -0.0, math.inf, -math.inf],
    "bool": [False, True],
    "time": [datetime(2024, 3, 31, hour, minute) for hour in (0, 1, 5) for minute in (0, 59)],
    "zoned": [
        datetime(2024, 3, 31, 1, 0, tzinfo=UTC),
        datetime(2024, 3, 31, 2, 0, tzinfo=ROME),
        datetime(2024, 3, 31, 2, 30, tzinfo=UTC),
        datetime(1969, 12, 31, 23, 59, tzinfo=UTC),
    ],
    "money": [Decimal("1.50"), Decimal("-0.01"), Decimal("1.5"), Decimal("99999999.99")],
}


def drawn(kind: str, dice: Random) -> Any:
    """A value of a kind."""
    if kind.endswith("?") and dice.random() < 0.35:
        return None
    values = VALUES[kind.rstrip("?")]
    return dice.choice([*values, math.nan] if kind.startswith("float") else values)


def literal(value: Any, kind: str) -> str:
    """A value as SQL."""
    if value is None:
        return "NULL"
    if isinstance(value, datetime):
        value = value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
    text = str(value).replace("'", "''")
    return f"CAST('{text}' AS {SQL[kind.rstrip('?')]})"


def alike(value: Any) -> Any:
    """A value as it is compared."""
    if isinstance(value, float) and value != value:
        return "NaN"
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).replace(tzinfo=None)
    return tuple(map(alike, value)) if isinstance(value, (list, tuple)) else value


# ---- programs, twice ----


@dataclass(frozen=True)
class Table:
    """A collection, with the name and the fields of the SQL that means the same."""

    rows: Any
    name: str
    fields: dict[str, str]
    bag: bool = True
    degree: int = 1
    whole: bool = False

    def py(self, name: str) -> str:
        """A field in Python."""
        return "r" if self.whole else f"r.{name}"

    def of(self, *bases: str, optional: bool = True) -> list[str]:
        """The names of fields of these kinds."""
        return [
            name for name, kind in self.fields.items()
            if kind.rstrip("?") in (bases or tuple(SQL)) and (optional or not kind.endswith("?"))
        ]  # fmt: skip


def function(text: str) -> Any:
    """The function of a row that Python text writes."""
    return eval(f"lambda r: {text}", {"Sale": Sale})


def listed(names: Any, prefix: str = "") -> str:
    """Columns, for SQL."""
    return ", ".join(f'{prefix}"{name}"' for name in names)


def same(left: str, right: str) -> str:
    """Whether two columns are equal as Python says."""
    return f"{left} IS NOT DISTINCT FROM {right}"


@dataclass
class Sheet:
    """A program and its SQL so far, and expressions for it, by dice."""

    dice: Random
    pool: list[Table] = field(default_factory=list)
    ctes: list[str] = field(default_factory=list)
    inputs: dict[str, tuple[Any, str | None]] = field(default_factory=dict)
    fresh: int = 0

    def input(self, name: str, kind: Any, key: str | None) -> None:
        rows = ef.Input(name, kind, key=key) if key else ef.Input(name, kind)
        self.inputs[name] = kind, key
        self.pool.append(Table(rows, f"in_{name}", INPUTS[kind]))

    def define(self, query: str) -> str:
        """A name for a query that gives fields and `w`."""
        name = f"c{len(self.ctes)}"
        self.ctes.append(f"{name} AS MATERIALIZED ({query})")
        return name

    def added(self, query: str, fields: dict[str, str]) -> str:
        """A name for the query with the weights of equal rows added up."""
        names = listed(fields)
        by = f" GROUP BY {names}" if fields else ""
        return self.define(
            f"SELECT {names}, CAST(sum(w) AS BIGINT) AS w FROM ({query}){by} HAVING sum(w) <> 0"
        )

    def each(self, of: Table) -> str:
        """A name for a bag with a line for every time that a row is there."""
        return self.define(f"SELECT {listed(of.fields)}, unnest(range(w)) AS w FROM {of.name}")

    def one(self, fits: Callable[[Table], object] = bool) -> Table | None:
        found = [each for each in self.pool if fits(each)]
        return self.dice.choice([*found, *found[-2:]]) if found else None

    # ---- expressions ----

    def condition(self, of: Table) -> tuple[str, str]:
        """A condition in Python and in SQL, which is never NULL."""
        tests: list[tuple[str, str]] = [("True", "TRUE")]
        for n in of.of():
            p, q, kind = of.py(n), f'"{n}"', of.fields[n]
            base, there = kind.rstrip("?"), f"{p} is not None and "
            if kind.endswith("?"):
                tests += [(f"{p} is None", f"{q} IS NULL")]
            else:
                there = ""
            and_q = f"{q} IS NOT NULL AND " if there else ""
            if base == "int":
                tests += [(f"{there}{p} > 1", f"({and_q}{q} > 1)")]
                tests += [(f"{there}{p} % 2 == 0", f"({and_q}{q} % 2 = 0)")]
                tests += [(f"{p} == 1", same(q, "1"))]
            elif base == "str":
                tests += [
                    (f"{p} == 'a'", same(q, "'a'")),
                    (f"{p} != 'b'", f"NOT ({same(q, chr(39) + 'b' + chr(39))})"),
                ]
                tests += [(f"{there}{p} < 'b'", f"({and_q}{q} < 'b')")]
                tests += [(f"{there}{p}.startswith('a')", f"({and_q}starts_with({q}, 'a'))")]
            elif base in ("float", "ratio"):
                tests += [(f"{there}{p} > 0.5", f"({and_q}{q} > 0.5 AND NOT isnan({q}))")]
                tests += [(f"{there}{p} <= 1", f"({and_q}{q} <= 1)")]
            elif base == "big":
                tests += [(f"{there}{p} > 9007199254740992", f"({and_q}{q} > 9007199254740992)")]
                for x in of.of("float", optional=False):
                    exact = (
                        f'CASE WHEN isfinite("{x}") THEN {q} > CAST(floor("{x}") AS HUGEINT) '
                        f'ELSE "{x}" < 0 END'
                    )
                    tests += [(f"{there}{p} > {of.py(x)}", f"({and_q}({exact}))")]
            elif base == "bool":
                tests += [(f"{there}not {p}", f"({and_q}NOT {q})")]
            elif base == "money":
                tests += [(f"{there}{p} > 1", f"({and_q}{q} > 1)")]
        test = self.dice.choice(tests[-1:] if len(tests) == 1 else tests[1:])
        if self.dice.random() < 0.3:
            other = self.dice.choice(tests)
            word = self.dice.choice(["and", "or"])
            return f"({test[0]}) {word} ({other[0]})", f"({test[1]}) {word} ({other[1]})"
        return test

    def term(self, of: Table) -> tuple[str, str, str]:
        """An expression in Python and in SQL, and its kind."""
        terms: list[tuple[str, str, str]] = []
        for n, kind in of.fields.items():
            p, q = of.py(n), f'"{n}"'
            terms += [(p, q, kind)]
            if kind == "int":
                terms += [
                    (f"{p} + 1", f"{q} + 1", "int"),
                    (f"-{p}", f"-{q}", "int"),
                    (f"abs({p})", f"abs({q})", "int"),
                    (f"{p} % 3", f"(({q} % 3) + 3) % 3", "int"),
                    (f"{p} // 2", f"CAST(floor({q} / 2.0) AS BIGINT)", "int"),
                    (f"{p} if {p} > 1 else None", f"CASE WHEN {q} > 1 THEN {q} END", "int?"),
                ]
                terms += [
                    (f"{p} - {of.py(o)}", f'{q} - "{o}"', "int")
                    for o in of.of("int", optional=False)
                ]
            elif kind == "int?":
                terms += [(f"0 if {p} is None else {p}", f"coalesce({q}, 0)", "int")]
            elif kind == "str":
                terms += [
                    (f"{p} + 'a'", f"{q} || 'a'", "str"),
                    (f"len({p})", f"length({q})", "int"),
                    (f"{p}.upper()", f"upper({q})", "str"),
                    (f"{p}[:1]", f"substr({q}, 1, 1)", "str"),
                ]
            elif kind == "float":
                terms += [(f"{p} * 2", f"{q} * 2", "float"), (f"-{p}", f"-{q}", "float")]
        return self.dice.choice(terms)

    def new(self) -> str:
        self.fresh += 1
        return f"n{self.fresh}"


# ---- what DuckDB says ----


@cache
def base() -> Any:
    """DuckDB, in memory; its one thread is enough for a few rows."""
    made = duckdb.connect()
    made.execute("SET threads = 1")
    made.execute("PRAGMA disable_optimizer")
    return made


class Witness:
    """DuckDB's view of a program."""

    def __init__(self, sheet: Sheet) -> None:
        self.sheet = sheet
        self.base = base()
        for name, (kind, _) in sheet.inputs.items():
            columns = ", ".join(f'"{n}" {SQL[k.rstrip("?")]}' for n, k in INPUTS[kind].items())
            self.base.execute(f"CREATE OR REPLACE TABLE in_{name} ({columns}, w BIGINT)")

    def query(self, table: Table) -> str:
        """The SQL of a table."""
        query, ctes = f"SELECT {listed(table.fields)}, w FROM {table.name}", list[str]()
        for cte in reversed(self.sheet.ctes):
            if any(
                cte.split(" ", 1)[0] in re.findall(r"\bc\d+\b", each) for each in [query, *ctes]
            ):
                ctes.insert(0, cte)
        return f"WITH {', '.join(ctes)} {query}" if ctes else query

    def given(self, inputs: dict[str, Counter[Any]]) -> None:
        """Have these rows in the inputs."""
        for name, (kind, _) in self.sheet.inputs.items():
            self.base.execute(f"DELETE FROM in_{name}")
            lines = [
                f"({', '.join(map(literal, row, INPUTS[kind].values()))}, {weight})"
                for row, weight in inputs[name].items()
            ]
            if lines:
                self.base.execute(f"INSERT INTO in_{name} VALUES {', '.join(lines)}")

    def rows(self, table: Table) -> Weights:
        """The rows of an output."""
        found: Weights = Counter()
        for *row, weight in self.base.execute(self.query(table)).fetchall():
            assert weight != 0
            found[alike(row)] += weight
        return found
