"""Verbs, each written twice: as a method of a collection, and as SQL for DuckDB."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from random import Random
from typing import Any

from tests.oracle.duckdb_shapes import ShapeWriter
from tests.oracle.duckdb_witness import INPUTS, Sale, Table, function, listed, same

import ebbflow as ef
from ebbflow.errors import CompositionError


class Writer(ShapeWriter):
    """Grows a program and its SQL, by dice; a verb that fits nothing gives None."""

    def filter(self) -> Table | None:
        of = self.one()
        assert of is not None
        return self.filtered(of)

    def filtered(self, of: Table) -> Table:
        python, sql = self.condition(of)
        made = self.define(f"SELECT * FROM {of.name} WHERE {sql}")
        return Table(of.rows.filter(function(python)), made, of.fields, of.bag, of.degree, of.whole)

    def select(self) -> Table | None:
        of = self.one()
        assert of is not None
        kept = (
            []
            if of.whole
            else self.dice.sample([*of.fields], self.dice.randint(0, min(2, len(of.fields))))
        )
        new = {self.new(): self.term(of) for _ in range(self.dice.randint(not kept, 2))}
        fields = {n: of.fields[n] for n in kept} | {n: kind for n, (_, _, kind) in new.items()}
        columns = [f'"{n}"' for n in kept] + [f'{sql} AS "{n}"' for n, (_, sql, _) in new.items()]
        made = self.added(f"SELECT {', '.join(columns)}, w FROM {of.name}", fields)
        named = {n: function(python) for n, (python, _, _) in new.items()}
        return Table(of.rows.select(*kept, **named), made, fields, of.bag, of.degree)

    def map(self) -> Table | None:
        of = self.one()
        assert of is not None
        python, sql, kind = self.term(of)
        made = self.added(f"SELECT {sql} AS value, w FROM {of.name}", {"value": kind})
        rows = of.rows.map(function(python))
        return Table(rows, made, {"value": kind}, of.bag, of.degree, whole=True)

    def flat_map(self) -> Table | None:
        of = self.one(lambda each: each.of("int", optional=False))
        if of is None:
            return None
        n = self.dice.choice(of.of("int", optional=False))
        times = f'((("{n}" % 3) + 3) % 3)'
        if self.dice.random() < 0.5:
            rows = of.rows.flat_map(function(f"[r] * ({of.py(n)} % 3)"), type=of.rows.type)
            made = self.define(
                f"SELECT * REPLACE (w * {times} AS w) FROM {of.name} WHERE {times} > 0"
            )
            return Table(rows, made, of.fields, of.bag, of.degree, of.whole)
        rows = of.rows.flat_map(function(f"range({of.py(n)} % 3)"), type=int)
        fields = {"value": "int"}
        made = self.added(f"SELECT unnest(range({times})) AS value, w FROM {of.name}", fields)
        return Table(rows, made, fields, of.bag, of.degree, whole=True)

    def distinct(self) -> Table | None:
        of = self.one()
        assert of is not None
        made = self.define(
            f"SELECT DISTINCT {listed(of.fields)}, 1 AS w FROM {of.name} WHERE w > 0"
        )
        return Table(of.rows.distinct(), made, of.fields, True, of.degree, of.whole)

    def two_alike(self) -> tuple[Table, Table]:
        """Two tables with the same fields: of the pool, or some of its rows in place of one."""
        left = self.one()
        assert left is not None
        facts = left.fields, left.whole
        right = self.one(lambda each: each is not left and (each.fields, each.whole) == facts)
        both = left, self.filtered(left) if right is None else right
        return both if self.dice.random() < 0.5 else both[::-1]

    def sum(self) -> Table | None:
        left, right = self.two_alike()
        sign = self.dice.choice(["+", "-", "-"])
        names = listed(left.fields)
        made = self.added(
            f"SELECT {names}, w FROM {left.name} "
            f"UNION ALL SELECT {names}, {sign}w FROM {right.name}",
            left.fields,
        )
        rows = left.rows + right.rows if sign == "+" else left.rows - right.rows
        bag = sign == "+" and left.bag and right.bag
        degree = max(left.degree, right.degree)
        return Table(rows, made, left.fields, bag, degree, left.whole)

    def sets(self) -> Table | None:
        left, right = self.two_alike()
        verb = self.dice.choice(["union", "intersect", "except_"])
        names = listed(left.fields)
        made = self.define(
            f"SELECT *, 1 AS w FROM (SELECT {names} FROM {left.name} WHERE w > 0 "
            f"{verb.rstrip('_')} SELECT {names} FROM {right.name} WHERE w > 0)"
        )
        rows = getattr(left.rows, verb)(right.rows)
        return Table(rows, made, left.fields, True, max(left.degree, right.degree), left.whole)

    def join(self) -> Table | None:
        left = self.one(lambda each: each.degree < 3 and not each.whole)
        right = self.one(lambda each: left and each.degree + left.degree <= 3 and not each.whole)
        if left is None or right is None:
            return None
        kinds = {left.fields[n].rstrip("?") for n in left.fields} - {"ratio"}
        keys = [n for n in right.fields if right.fields[n].rstrip("?") in kinds]
        if not keys:
            return None
        theirs = self.dice.choice(keys)
        ours = self.dice.choice(left.of(right.fields[theirs].rstrip("?")))
        how = self.dice.choice(["inner", "left", "right", "full", "semi", "anti"])
        shared = self.dice.random() < 0.4
        new = {n: (ours if n == theirs and shared else self.new()) for n in right.fields}
        renamed = right.rows.select(**{new[n]: n for n in right.fields})
        on = {"on": ours} if shared else {"left_on": ours, "right_on": new[theirs]}
        met = same(f'l."{ours}"', f'r."{theirs}"')
        rows = left.rows.join(renamed, **on, how=how)
        lost = f"NOT EXISTS (FROM {right.name} r WHERE r.w > 0 AND {met})"
        if how in ("semi", "anti"):
            test = lost if how == "anti" else lost.removeprefix("NOT ")
            made = self.define(f"SELECT * FROM {left.name} l WHERE {test}")
            return Table(rows, made, left.fields, left.bag, left.degree)
        rest = [n for n in right.fields if not (shared and n == theirs)]
        optional = {n: kind.rstrip("?") + "?" for n, kind in (left.fields | right.fields).items()}
        fields = {n: optional[n] if how in ("right", "full") else k for n, k in left.fields.items()}
        if shared:
            both = {left.fields[ours], right.fields[theirs]}
            fields[ours] = (
                left.fields[ours] if len(both) == 1 else left.fields[ours].rstrip("?") + "?"
            )
        fields |= {
            new[n]: right.fields[n].rstrip("?") + "?"
            if how in ("left", "full")
            else right.fields[n]
            for n in rest
        }
        key = {n: f'coalesce(l."{n}", r."{theirs}")' for n in [ours] if shared}
        columns = [f'{key.get(n, f"""l."{n}" """)} AS "{n}"' for n in left.fields]
        columns += [f'r."{n}" AS "{new[n]}"' for n in rest]
        of_both = f"SELECT {', '.join(columns)}, "
        if left.bag and right.bag:
            query = (
                f"{of_both} coalesce(l.w, 1) * coalesce(r.w, 1) AS w "
                f"FROM {left.name} l {how.upper()} JOIN {right.name} r ON {met}"
            )
        else:
            query = f"{of_both} l.w * r.w AS w FROM {left.name} l JOIN {right.name} r ON {met}"
            if how in ("left", "full"):
                padded = [f'l."{n}"' for n in left.fields] + ["NULL"] * len(rest)
                query += (
                    f" UNION ALL SELECT {', '.join(padded)}, l.w FROM {left.name} l WHERE {lost}"
                )
            if how in ("right", "full"):
                none = f"NOT EXISTS (FROM {left.name} l WHERE l.w > 0 AND {met})"
                padded = [f'r."{theirs}"' if shared and n == ours else "NULL" for n in left.fields]
                padded += [f'r."{n}"' for n in rest]
                query += (
                    f" UNION ALL SELECT {', '.join(padded)}, r.w FROM {right.name} r WHERE {none}"
                )
        made = self.added(query, fields)
        return Table(rows, made, fields, left.bag and right.bag, left.degree + right.degree)

    def cross(self) -> Table | None:
        left = self.one(lambda each: each.degree == 1 and not each.whole)
        right = self.one(lambda each: each.degree == 1 and not each.whole)
        if left is None or right is None:
            return None
        new = {n: self.new() for n in right.fields}
        rows = left.rows.cross(right.rows.select(**{new[n]: n for n in right.fields}))
        fields = left.fields | {new[n]: kind for n, kind in right.fields.items()}
        columns = [f'l."{n}"' for n in left.fields] + [
            f'r."{n}" AS "{new[n]}"' for n in right.fields
        ]
        made = self.added(
            f"SELECT {', '.join(columns)}, l.w * r.w AS w FROM {left.name} l, {right.name} r",
            fields,
        )
        return Table(rows, made, fields, left.bag and right.bag, 2)

    def aggregate(self, of: Table) -> tuple[Any, str, str]:
        """A reducer, the SQL of it, and the kind of its result."""
        made: list[tuple[Any, str, str]] = [(ef.count(), "count(*)", "int")]

        def what(name: str) -> Any:
            return function("r") if of.whole else name

        for n, kind in of.fields.items():
            q, base, maybe = f'"{n}"', kind.rstrip("?"), kind[len(kind.rstrip("?")) :]
            x = what(n)
            made += [(ef.count(x), f"count({q})", "int")]
            made += [(ef.count_distinct(x), f"count(DISTINCT {q})", "int")]
            if base != "bool":
                made += [(ef.min(x), f"min({q})", kind), (ef.max(x), f"max({q})", kind)]
            if base in ("int", "float", "money"):
                sums = {"int": "big", "money": "ratio"}.get(base, base)
                if base != "float":
                    made += [(ef.sum(x), f"sum({q})", sums + maybe)]
            if base == "int":
                made += [(ef.mean(x), f"avg({q})", "ratio" + maybe)]
                made += [(ef.median(x), f"median({q})", "ratio" + maybe)]
                made += [(ef.bit_xor(x), f"bit_xor({q})", "int" + maybe)]
            if kind == "str":
                made += [
                    (ef.string_agg(x, separator="+"), f"string_agg({q}, '+' ORDER BY {q})", "str")
                ]
            for by in of.of("int", "str", "time", "big", optional=False):
                first = f'first({q} ORDER BY "{by}", {q} NULLS FIRST)'
                last = f'first({q} ORDER BY "{by}" DESC, {q} DESC NULLS LAST)'
                made += [
                    (ef.first(x, order=what(by)), first, kind),
                    (ef.last(x, order=what(by)), last, kind),
                ]
        python, sql = self.condition(of)
        made += [(ef.bool_and(function(python)), f"bool_and({sql})", "bool")]
        made += [(ef.bool_or(function(python)), f"bool_or({sql})", "bool")]
        made += [(ef.count().where(function(python)), f"count(*) FILTER (WHERE {sql})", "int")]
        return self.dice.choice(made)

    def group(self) -> Table | None:
        of = self.one(lambda each: each.bag)
        if of is None:
            return None
        every = self.each(of)
        results = {self.new(): self.aggregate(of) for _ in range(self.dice.randint(1, 3))}
        keys: dict[str, tuple[str, str, str]] = {}
        form = self.dice.choice(["fields", "function", "all"])
        grouped: Any = of.rows
        if form == "fields" and not of.whole:
            names = self.dice.sample([*of.fields], self.dice.randint(1, min(2, len(of.fields))))
            keys = {n: ("", f'"{n}"', of.fields[n]) for n in names}
            grouped = of.rows.group_by(*names)
        elif form != "all":
            keys = {self.new(): self.term(of)}
            grouped = of.rows.group_by(
                **{n: function(python) for n, (python, _, _) in keys.items()}
            )
        columns = [f'{sql} AS "{n}"' for n, (_, sql, _) in keys.items()]
        columns += [f'{sql} AS "{n}"' for n, (_, sql, _) in results.items()]
        by = ", ".join(sql for _, sql, _ in keys.values()) or "()"
        made = self.define(
            f"SELECT {', '.join(columns)}, 1 AS w FROM {every} GROUP BY {by} HAVING count(*) > 0"
        )
        rows = grouped.agg(**{n: reducer for n, (reducer, _, _) in results.items()})
        fields = {n: kind for n, (_, _, kind) in {**keys, **results}.items()}
        return Table(rows, made, fields)

    def top_k(self) -> Table | None:
        of = self.one(lambda each: each.bag and not each.whole)
        if of is None:
            return None
        n, smallest = self.dice.randint(1, 3), self.dice.random() < 0.5
        by = self.dice.choice([*of.fields])
        per = self.dice.choice([None, *of.fields])
        way = "ASC NULLS FIRST" if smallest else "DESC NULLS LAST"
        order = ", ".join(f'"{name}" {way}' for name in (by, *of.fields))
        part = "" if per is None else f'PARTITION BY "{per}" '
        every = self.each(of)
        made = self.added(
            f"SELECT {listed(of.fields)}, 1 AS w FROM {every} "
            f"QUALIFY row_number() OVER ({part}ORDER BY {order}) <= {n}",
            of.fields,
        )
        return Table(of.rows.top_k(n, order=by, per=per, smallest=smallest), made, of.fields)

    def _timed(self, fits: Callable[[Table], object]) -> tuple[Table, str, bool] | None:
        of = self.one(
            lambda each: (
                fits(each)
                and not each.whole
                and "window_start" not in each.fields
                and each.of("int", "time", optional=False)
            )
        )
        if of is None:
            return None
        at = self.dice.choice(of.of("int", "time", optional=False))
        return of, at, of.fields[at] == "time"

    def windows(self) -> Table | None:
        found = self._timed(bool)
        if found is None:
            return None
        of, at, timed = found
        size, every = self.dice.choice([(2, 2), (3, 1), (3, 2), (1, 1)])
        start = f'"{at}" - ((("{at}" % {every}) + {every}) % {every})'
        unit: Any = 1
        back, late = f"i * {every}", str(size)
        if timed:
            unit = timedelta(hours=1)
            start = f"time_bucket(INTERVAL {every} HOUR, \"{at}\", TIMESTAMP '1970-01-01')"
            back, late = f"to_hours(i * {every})", f"to_hours({size})"
        fields = of.fields | dict.fromkeys(("window_start", "window_end"), of.fields[at])
        many = -(-size // every)
        made = self.define(
            f"SELECT {listed(of.fields)}, start AS window_start, start + {late} AS window_end, w "
            f"FROM (SELECT *, {start} - {back} AS start FROM {of.name}, range({many}) AS _(i)) "
            f'WHERE "{at}" < start + {late}'
        )
        if size == every:
            rows = of.rows.tumbling(at, size * unit)
        else:
            rows = of.rows.sliding(at, size * unit, every * unit)
        return Table(rows, made, fields, of.bag, of.degree)

    def session(self) -> Table | None:
        found = self._timed(lambda each: each.bag)
        if found is None:
            return None
        of, at, timed = found
        per = self.dice.choice([None, *of.fields])
        gap: Any = timedelta(hours=1) if timed else 1
        sql_gap = "INTERVAL 1 HOUR" if timed else "1"
        part = "" if per is None else f'PARTITION BY "{per}"'
        inside = f"{part}, n" if part else "PARTITION BY n"
        jump = self.define(
            f'SELECT *, coalesce("{at}" - lag("{at}") OVER ({part} ORDER BY "{at}") > {sql_gap}, '
            f"TRUE) AS jump FROM {of.name}"
        )
        number = self.define(
            f'SELECT *, sum(CAST(jump AS INT)) OVER ({part} ORDER BY "{at}" '
            f"RANGE UNBOUNDED PRECEDING) AS n FROM {jump}"
        )
        fields = of.fields | dict.fromkeys(("window_start", "window_end"), of.fields[at])
        made = self.define(
            f'SELECT {listed(of.fields)}, min("{at}") OVER ({inside}) AS window_start, '
            f'max("{at}") OVER ({inside}) + {sql_gap} AS window_end, w FROM {number}'
        )
        return Table(of.rows.session(at, gap, per=per), made, fields, True, of.degree)


VERBS = ("filter", "select", "map", "flat_map", "distinct", "sum", "sum", "sets", "sets", "join",
         "join", "join", "cross", "group", "group", "top_k", "windows", "session",
         "reshape", "compare", "scalar", "limit")  # fmt: skip


def written(
    dice: Random, size: int = 6, verbs: Sequence[str] = VERBS, kinds: Sequence[type] = tuple(INPUTS)
) -> Writer:
    """A program with its SQL. The last tables of its pool are its outputs."""
    writer = Writer(dice)
    for name in "abc"[: dice.randint(1, 3)]:
        kind = dice.choice([Sale, *kinds])
        writer.input(name, kind, dice.choice([None, None, "k"]))
    for _ in range(size):
        before = len(writer.ctes)
        try:
            made = getattr(writer, dice.choice(verbs))()
        except CompositionError:
            del writer.ctes[before:]
            continue
        if made is not None:
            writer.pool.append(made)
    return writer
