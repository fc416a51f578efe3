"""The rivals of `loops.py`: those that recompute, those that are incremental, when installed.

    pip install '.[bench]'     in an environment of its own: Pathway wants pyarrow below 26
    cargo                      builds the program in `differential/` the first time, in minutes

They are treated kindly. Where a choice was to be made, it was made in their favour:

    networkx     a graph of its own that takes the edges one by one, and a search from the root
    SciPy        the ends of the edges in two arrays; where a row of these changes is found out
                 before the clock runs. Its labels are made those of the others after it.
    DuckDB       recursive SQL; the components keep one row for each node (`USING KEY`), because
                 plain recursive SQL would keep every label that a node has ever had
    Pathway      as in `rivals.py`, with `iterate`; in a process of its own, which measures itself:
                 what runs in a thread could not be ended when it takes too long
    differential the program in Rust, with one worker; it measures itself, and the labels enter its
                 loop by their size, as in the paper on differential dataflow
"""

from __future__ import annotations

import multiprocessing
from importlib.util import find_spec
from time import perf_counter, process_time
from typing import Any, ClassVar

import rivals
from local_data import Bag, Change
from loops_data import COMPONENTS, REACHABILITY, Sizes
from rust import RustProgram, is_built


class Recompute:
    """Asks the query again after every change."""

    def __init__(self, query: str, sizes: Sizes) -> None:
        self.query, self.sizes = query, sizes
        self.root = -1

    def prepare(self, change: Change) -> Any:
        """The edges that go, and those that come."""
        for node in change.get("nodes", ()):
            self.root = node
        edges = change["edges"].items()
        return [edge for edge, n in edges if n < 0], [edge for edge, n in edges if n > 0]

    def close(self) -> None:
        pass


class Networkx(Recompute):
    """A graph of dicts."""

    def __init__(self, query: str, sizes: Sizes) -> None:
        import networkx

        super().__init__(query, sizes)
        self.networkx = networkx
        self.graph = networkx.DiGraph() if query == REACHABILITY else networkx.MultiGraph()
        self.graph.add_nodes_from(range(sizes.nodes))

    def step(self, ready: Any) -> None:
        gone, new = ready
        self.graph.remove_edges_from(gone)
        self.graph.add_edges_from(new)
        if self.query == REACHABILITY:
            self.answer = self.networkx.descendants(self.graph, self.root)
        else:
            self.answer = list(self.networkx.connected_components(self.graph))

    def value(self) -> Bag:
        if self.query == REACHABILITY:
            return dict.fromkeys({self.root, *self.answer}, 1)
        labels = ((min(nodes), nodes) for nodes in self.answer)
        return {(node, least): 1 for least, nodes in labels for node in nodes}


class SciPy(Recompute):
    """Two arrays of ends, made a sparse matrix for every question. A row without an edge is one
    from the first node to itself."""

    def __init__(self, query: str, sizes: Sizes) -> None:
        import numpy
        from scipy import sparse
        from scipy.sparse import csgraph

        super().__init__(query, sizes)
        self.numpy, self.matrix, self.csgraph = numpy, sparse.csr_array, csgraph
        room = sizes.edges * 2
        self.ends = numpy.zeros((2, room), dtype=numpy.int32)
        self.ones = numpy.ones(room)
        self.places: dict[Any, int] = {}
        self.free = list(range(room))[::-1]

    def prepare(self, change: Change) -> Any:
        gone, new = super().prepare(change)
        written = dict.fromkeys([self.places.pop(edge) for edge in gone], (0, 0))
        self.free += written
        for edge in new:
            self.places[edge] = place = self.free.pop()
            written[place] = tuple(edge)
        ends = self.numpy.array(list(written.values()), dtype=self.numpy.int32)
        return self.numpy.array(list(written)), ends.T.copy()

    def step(self, ready: Any) -> None:
        places, ends = ready
        self.ends[:, places] = ends
        size = self.sizes.nodes
        graph = self.matrix((self.ones, (self.ends[0], self.ends[1])), shape=(size, size))
        if self.query == REACHABILITY:
            self.answer = self.csgraph.breadth_first_order(
                graph, self.root, return_predecessors=False
            )
        else:
            _, self.answer = self.csgraph.connected_components(graph, connection="weak")

    def value(self) -> Bag:
        if self.query == REACHABILITY:
            return dict.fromkeys(self.answer.tolist(), 1)
        least: dict[int, int] = {}
        return {(node, least.setdefault(label, node)): 1
                for node, label in enumerate(self.answer.tolist())}  # fmt: skip


SQL = {
    REACHABILITY: """
        WITH RECURSIVE reached(node) AS (
            SELECT node FROM nodes
            UNION
            SELECT target FROM reached JOIN edges ON source = node)
        SELECT node FROM reached""",
    COMPONENTS: """
        WITH RECURSIVE labels(node, label) USING KEY (node) AS (
            SELECT node, node FROM nodes
            UNION
            SELECT ends.target, min(new.label)
            FROM labels AS new
            JOIN (SELECT source, target FROM edges UNION ALL SELECT target, source FROM edges) ends
              ON ends.source = new.node
            JOIN recurring.labels AS old ON old.node = ends.target
            WHERE new.label < old.label
            GROUP BY ends.target)
        SELECT node, label FROM labels""",
}


class DuckDB(Recompute):
    """A database in memory: delete, insert, ask."""

    def __init__(self, query: str, sizes: Sizes) -> None:
        import duckdb
        import pyarrow

        super().__init__(query, sizes)
        self.pyarrow = pyarrow
        self.base = duckdb.connect()
        self.base.execute("CREATE TABLE nodes (node INTEGER)")
        self.base.execute("CREATE TABLE edges (source INTEGER, target INTEGER)")

    def prepare(self, change: Change) -> Any:
        nodes = self.pyarrow.table({"node": list(change.get("nodes", ()))})
        return nodes, *map(self._table, super().prepare(change))

    def _table(self, edges: list[Any]) -> Any:
        sources, targets = [edge.source for edge in edges], [edge.target for edge in edges]
        return self.pyarrow.table({"source": sources, "target": targets})

    def step(self, ready: Any) -> None:
        nodes, gone, new = ready
        base = self.base
        if len(nodes):
            base.register("more", nodes)
            base.execute("INSERT INTO nodes SELECT * FROM more")
        if len(gone):
            base.register("gone", gone)
            base.execute("DELETE FROM edges WHERE (source, target) IN (SELECT * FROM gone)")
        if len(new):
            base.register("new", new)
            base.execute("INSERT INTO edges SELECT * FROM new")
        self.answer = base.sql(SQL[self.query]).fetchnumpy()

    def value(self) -> Bag:
        columns = [column.tolist() for column in self.answer.values()]
        return dict.fromkeys(columns[0] if len(columns) == 1 else zip(*columns, strict=True), 1)

    def close(self) -> None:
        self.base.close()


class Pathway(rivals.Pathway):
    """A running Pathway program with a loop."""

    inputs: ClassVar = dict.fromkeys((REACHABILITY, COMPONENTS), ("nodes", "edges", "ticks"))
    patience = 10**6  # who asks it has less

    def __init__(self, query: str, sizes: Sizes) -> None:
        self.sizes, self.ticks = sizes, 0
        super().__init__(query)

    def prepare(self, change: Change) -> Any:
        """A tick comes with every batch: Pathway calls the end of a batch only where it changes
        something."""
        self.ticks += 1
        return super().prepare({**change, "ticks": {self.ticks: 1}})

    def changed(self, key: Any, row: dict[str, int], time: int, is_addition: bool) -> None:
        if row["node"] >= 0:
            super().changed(key, row, time, is_addition)

    def _with_ticks(self, pw: Any, table: Any, answer: Any) -> Any:
        ticks = table.filter(table.side == 2)
        ticks = ticks.with_id_from(-ticks.number)
        ticks = ticks.select(**dict.fromkeys(answer.column_names(), -ticks.number))
        pw.universes.promise_are_pairwise_disjoint(answer, ticks)
        return answer.concat(ticks)

    def fields(self, row: Any) -> tuple[int, int, int]:
        if isinstance(row, tuple):
            return row[0] * self.sizes.nodes + row[1], row[0], row[1]
        return row, 0, 0

    def reachability(self, pw: Any, table: Any) -> Any:
        roots, edges = self._tables(table)

        def step(reached: Any, edges: Any, roots: Any) -> Any:
            found = reached.join(edges, reached.node == edges.source).select(node=edges.target)
            every = found.concat_reindex(roots)
            return {"reached": every.groupby(every.node).reduce(every.node)}

        start = pw.iterate_universe(roots)
        answer = pw.iterate(step, reached=start, edges=edges, roots=roots).reached
        return self._with_ticks(pw, table, answer)

    def components(self, pw: Any, table: Any) -> Any:
        nodes, edges = self._tables(table)
        back = edges.select(source=edges.target, target=edges.source)
        both = edges.concat_reindex(back)
        own = nodes.select(nodes.node, label=nodes.node)

        def step(labels: Any, both: Any, own: Any) -> Any:
            sent = labels.join(both, labels.node == both.source)
            every = sent.select(node=both.target, label=labels.label).concat_reindex(own)
            least = every.groupby(every.node)
            return {"labels": least.reduce(every.node, label=pw.reducers.min(every.label))}

        answer = pw.iterate(step, labels=pw.iterate_universe(own), both=both, own=own).labels
        return self._with_ticks(pw, table, answer)

    def _tables(self, table: Any) -> tuple[Any, Any]:
        nodes, edges = table.filter(table.side == 0), table.filter(table.side == 1)
        return nodes.select(node=nodes.number), edges.select(source=edges.key, target=edges.data)

    def value(self) -> Bag:
        one = self.query == REACHABILITY
        return {row[0] if one else row: weight for row, weight in self.rows.items()}


class Apart:
    """Pathway in a process of its own; `taken` as for the program in Rust."""

    patience = 120
    """How many seconds a step may take."""

    def __init__(self, query: str, sizes: Sizes) -> None:
        context = multiprocessing.get_context("spawn")
        self.talk, there = context.Pipe()
        self.program = context.Process(target=_serve, args=(there, query, sizes), daemon=True)
        self.program.start()
        self.taken: tuple[float, float] = self.talk.recv()

    def prepare(self, change: Change) -> Any:
        return {name: dict(bag.items()) for name, bag in change.items()}

    def step(self, ready: Any) -> None:
        self.talk.send(ready)
        if not self.talk.poll(self.patience):
            raise TimeoutError(f"Pathway has not answered for {self.patience} seconds")
        self.taken = self.talk.recv()

    def value(self) -> Bag:
        self.talk.send("value")
        rows: Bag = self.talk.recv()
        return rows

    def close(self) -> None:
        self.program.kill()
        self.program.join(20)


def _serve(talk: Any, query: str, sizes: Sizes) -> None:
    """Do what is asked, until nothing is."""
    live = Pathway(query, sizes)
    talk.send((0.0, 0.0))
    while (asked := talk.recv()) is not None:
        if asked == "value":
            talk.send(live.value())
            continue
        ready = live.prepare(asked)
        used, begin = process_time(), perf_counter()
        live.step(ready)
        talk.send((perf_counter() - begin, process_time() - used))


class Differential(RustProgram):
    """The program in Rust."""

    def __init__(self, query: str, sizes: Sizes) -> None:
        super().__init__(query)

    def prepare(self, change: Change) -> str:
        nodes = [f"n {node} {n}\n" for node, n in change.get("nodes", {}).items()]
        edges = [f"e {a} {b} {n}\n" for (a, b), n in change["edges"].items()]
        return "".join([*nodes, *edges])

    def value(self) -> Bag:
        one = self.query == REACHABILITY
        return {node if one else (node, label): n for node, label, n in self.rows()}


RIVALS = {"networkx": Networkx, "SciPy": SciPy, "DuckDB": DuckDB, "Pathway": Apart,
          "differential": Differential}  # fmt: skip
RECOMPUTING = ("networkx", "SciPy", "DuckDB")
NEEDS = {"networkx": ("networkx",), "SciPy": ("scipy", "numpy"), "Pathway": ("pathway",),
         "DuckDB": ("duckdb", "pyarrow", "numpy")}  # fmt: skip


def installed(build: bool) -> dict[str, Any]:
    """The rivals that can run here; the program in Rust is built, if that is wanted."""
    found = {name: RIVALS[name] for name, needs in NEEDS.items() if all(map(find_spec, needs))}
    return found | ({"differential": Differential} if is_built(build) else {})


def missing(there: dict[str, Any]) -> list[str]:
    return [name for name in RIVALS if name not in there]
