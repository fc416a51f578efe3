"""Verbs that give rows another shape, compare rows, or take the first in an order: each written
twice, as a method of a collection, and as SQL for DuckDB."""

from __future__ import annotations

from typing import Any

from tests.oracle.duckdb_witness import Sheet, Table, function, listed, literal

import ebbflow as ef

FILLED = {"int": 7, "str": "z", "bool": True}
SIGNS = {"<": ef.lt, "<=": ef.le, ">": ef.gt, ">=": ef.ge, "<>": ef.ne}
COMPARED = ("int", "str", "big", "time", "money", "bool", "zoned", "float")


class ShapeWriter(Sheet):
    """Verbs of a `Writer`."""

    def reshape(self) -> Table | None:
        of = self.one(lambda each: not each.whole and each.fields)
        if of is None:
            return None
        verbs = (self._with_fields, self._rename, self._fill_null, self._unpivot, self._explode,
                 self._pivot)  # fmt: skip
        return self.dice.choice(verbs)(of)

    def _with_fields(self, of: Table) -> Table:
        python, sql, kind = self.term(of)
        new = self.dice.choice([self.new(), self.dice.choice([*of.fields])])
        fields = {**of.fields, new: kind}
        columns = [f'{sql} AS "{n}"' if n == new else f'"{n}"' for n in fields]
        made = self.added(f"SELECT {', '.join(columns)}, w FROM {of.name}", fields)
        rows = of.rows.with_fields(**{new: function(python)})
        return Table(rows, made, fields, of.bag, of.degree)

    def _rename(self, of: Table) -> Table:
        old, new = self.dice.choice([*of.fields]), self.new()
        fields = {(new if n == old else n): kind for n, kind in of.fields.items()}
        made = self.define(f'SELECT * RENAME ("{old}" AS "{new}") FROM {of.name}')
        return Table(of.rows.rename(**{new: old}), made, fields, of.bag, of.degree)

    def _fill_null(self, of: Table) -> Table | None:
        names = [n for n in of.of(*FILLED) if of.fields[n].endswith("?")] or of.of(*FILLED)
        if not names:
            return None
        name = self.dice.choice(names)
        kind = of.fields[name].rstrip("?")
        fields = {**of.fields, name: kind}
        value = FILLED[kind]
        query = f'SELECT * REPLACE (coalesce("{name}", {literal(value, kind)}) AS "{name}")'
        made = self.added(f"{query} FROM {of.name}", fields)
        return Table(of.rows.fill_null(**{name: value}), made, fields, of.bag, of.degree)

    def _unpivot(self, of: Table) -> Table | None:
        names = of.of("int", optional=False)[:2]
        if not names:
            return None
        name, value = self.new(), self.new()
        rest = [n for n in of.fields if n not in names]
        fields = {n: of.fields[n] for n in rest} | {name: "str", value: "int"}
        made = self.added(
            f'UNPIVOT {of.name} ON {listed(names)} INTO NAME "{name}" VALUE "{value}"', fields
        )
        rows = of.rows.unpivot(*names, name=name, value=value)
        return Table(rows, made, fields, of.bag, of.degree)

    def _explode(self, of: Table) -> Table | None:
        names = of.of("int", optional=False)
        if not names:
            return None
        n, items = self.dice.choice(names), self.new()
        held = of.rows.with_fields(**{items: function(f"tuple(range({of.py(n)} % 3))")})
        fields = of.fields | {items: "int"}
        made = self.added(
            f'SELECT {listed(of.fields)}, unnest(range((("{n}" % 3) + 3) % 3)) AS "{items}", w '
            f"FROM {of.name}",
            fields,
        )
        return Table(held.explode(items), made, fields, of.bag, of.degree)

    def _pivot(self, of: Table) -> Table | None:
        on = of.of("int", "str")
        if not of.bag or not on:
            return None
        name, per = self.dice.choice(on), self.dice.choice([*of.fields])
        kind = of.fields[name].rstrip("?")
        values = {value: self.new() for value in ([0, 1] if kind == "int" else ["a", "b"])}
        using, sql, result = self.dice.choice(
            [(ef.count(), "count(*)", "int"), (ef.max(name), f'max("{name}")', f"{kind}?")]
        )
        fields = {per: of.fields[per]} | dict.fromkeys(values.values(), result)
        columns = [
            f'{sql} FILTER (WHERE "{name}" = {literal(value, kind)}) AS "{new}"'
            for value, new in values.items()
        ]
        made = self.define(
            f'SELECT "{per}", {", ".join(columns)}, 1 AS w FROM {self.each(of)} GROUP BY "{per}"'
        )
        return Table(of.rows.pivot(name, values, using=using, per=per), made, fields)

    # ---- comparisons ----

    def compare(self) -> Table | None:
        left = self.one(lambda each: each.degree < 3 and not each.whole)
        right = self.one(lambda each: left and each.degree + left.degree <= 3 and not each.whole)
        if left is None or right is None:
            return None
        pairs = [
            (a, b) for a in left.of(*COMPARED) for b in right.of(*COMPARED)
            if left.fields[a].rstrip("?") == right.fields[b].rstrip("?")
        ]  # fmt: skip
        if not pairs:
            return None
        new = {n: self.new() for n in right.fields}
        renamed = right.rows.rename(**{new[n]: n for n in right.fields})
        where, met = [], []
        for a, b in self.dice.sample(pairs, min(len(pairs), self.dice.randint(1, 2))):
            sign = self.dice.choice([*SIGNS])
            where.append(SIGNS[sign](a, new[b]))
            met.append(f'l."{a}" {sign} r."{b}"')
        on: dict[str, Any] = {}
        if self.dice.random() < 0.4:
            a, b = self.dice.choice(pairs)
            on = {"left_on": a, "right_on": new[b]}
            met.append(f'l."{a}" IS NOT DISTINCT FROM r."{b}"')
        condition = f"coalesce({' AND '.join(met)}, FALSE)"
        how = self.dice.choice(["inner", "semi", "anti"])
        rows = left.rows.join(renamed, **on, where=where, how=how)
        if how != "inner":
            word = "" if how == "semi" else "NOT "
            there = f"EXISTS (FROM {right.name} r WHERE r.w > 0 AND {condition})"
            made = self.define(f"SELECT * FROM {left.name} l WHERE {word}{there}")
            return Table(rows, made, left.fields, left.bag, left.degree)
        fields = left.fields | {new[n]: kind for n, kind in right.fields.items()}
        columns = [f'l."{n}"' for n in left.fields]
        columns += [f'r."{n}" AS "{new[n]}"' for n in right.fields]
        made = self.added(
            f"SELECT {', '.join(columns)}, l.w * r.w AS w FROM {left.name} l JOIN {right.name} r "
            f"ON {condition}",
            fields,
        )
        return Table(rows, made, fields, left.bag and right.bag, left.degree + right.degree)

    def scalar(self) -> Table | None:
        left = self.one(lambda each: not each.whole and each.of("int", optional=False))
        right = self.one(
            lambda each: each.bag and not each.whole and each.of("int", optional=False)
        )
        if left is None or right is None:
            return None
        ours = self.dice.choice(left.of("int", optional=False))
        theirs = self.dice.choice(right.of("int", optional=False))
        made, sql = self.dice.choice([(ef.mean, "avg"), (ef.max, "max"), (ef.count, "count")])
        sign = self.dice.choice(["<", "<=", ">", ">=", "==", "!="])
        condition = eval(f"lambda row, one: row.{ours} {sign} one.m")
        sub = f'SELECT {sql}("{theirs}") FROM {self.each(right)} r HAVING count(*) > 0'
        if self.dice.random() < 0.5:
            rows = left.rows.filter(condition, right.rows.agg(m=made(theirs)))
        else:
            key = right.rows.group_by(k=theirs).agg(m=made(theirs))
            rows = left.rows.filter(condition, key, left_on=ours, right_on="k")
            sub = sub.replace("HAVING", f'WHERE r."{theirs}" = l."{ours}" HAVING')
        query = f'SELECT * FROM {left.name} l WHERE "{ours}" {sign} ({sub})'
        return Table(rows, self.define(query), left.fields, left.bag, left.degree)

    # ---- the first in an order ----

    def limit(self) -> Table | None:
        of = self.one(lambda each: each.bag and not each.whole and each.fields)
        if of is None:
            return None
        n, offset = self.dice.randint(1, 3), self.dice.randint(0, 2)
        names = self.dice.sample([*of.fields], min(2, len(of.fields)))
        downs = [self.dice.random() < 0.5 for _ in names]
        per = self.dice.choice([None, *of.fields])
        parts = tuple(
            ef.desc(name) if down else name for name, down in zip(names, downs, strict=True)
        )
        ways = {False: "ASC NULLS FIRST", True: "DESC NULLS LAST"}
        order = [f'"{name}" {ways[down]}' for name, down in zip(names, downs, strict=True)]
        order += [f'"{name}" {ways[False]}' for name in of.fields]
        part = "" if per is None else f'PARTITION BY "{per}" '
        made = self.added(
            f"SELECT {listed(of.fields)}, 1 AS w FROM {self.each(of)} QUALIFY row_number() OVER "
            f"({part}ORDER BY {', '.join(order)}) BETWEEN {offset + 1} AND {offset + n}",
            of.fields,
        )
        rows = of.rows.limit(n, order=parts, offset=offset, per=per)
        return Table(rows, made, of.fields)
