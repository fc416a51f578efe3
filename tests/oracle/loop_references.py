"""What the example programs with loops compute, written without ebbflow.

Each function takes the rows of the inputs, by name, and gives those of the outputs, by name: sets
of rows, each there once. Graphs are left to networkx; the rest is plain Python that starts from
scratch, in another way than the program does where there is one.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from functools import cache
from heapq import heappop, heappush
from typing import Any

import networkx as nx

Inputs = Mapping[str, set[Any]]
Outputs = dict[str, set[Any]]


def reachable(graph: nx.DiGraph, starts: Iterable[Any]) -> set[Any]:
    """The nodes that can be reached from some of them."""
    found = set(starts)
    for start in found & set(graph):
        found = found | nx.descendants(graph, start)
    return found


# ---- graphs ----


def power_grid(inputs: Inputs) -> Outputs:
    graph = nx.DiGraph(list(inputs["lines"]))
    plants = {name for (name,) in inputs["plants"]}
    powered = reachable(graph, plants)
    return {
        "powered": {(town,) for town in powered},
        "dark": {(town,) for town in (plants | set(graph)) - powered},
    }


def packages(inputs: Inputs) -> Outputs:
    graph = nx.DiGraph(list(inputs["needs"]))
    closure = set(nx.transitive_closure(graph, reflexive=False).edges)
    return {
        "closure": closure,
        "affected": {
            (package, id) for package, needs in closure for id, bad, _ in inputs["advisories"]
            if bad == needs
        },
        "leaves": {node for node in graph if not graph.out_degree(node)},
    }  # fmt: skip


def same_customer(inputs: Inputs) -> Outputs:
    graph: nx.Graph = nx.Graph()
    for id, email, phone in inputs["accounts"]:
        graph.add_node(("account", id))
        graph.add_edges_from((("account", id), means) for means in (email, phone) if means)
    found = [
        sorted(node[1] for node in part if node[0] == "account")
        for part in nx.connected_components(graph)
    ]
    return {
        "labels": {(account, part[0]) for part in found for account in part},
        "customers": {(part[0], tuple(part), len(part)) for part in found},
    }


def import_cycles(inputs: Inputs) -> Outputs:
    graph = nx.DiGraph(list(inputs["imports"]))
    parts = [sorted(part) for part in nx.strongly_connected_components(graph)]
    number = {module: at for at, part in enumerate(parts) for module in part}
    circular = {(one, two) for one, two in graph.edges if number[one] == number[two]}
    inside = {one for one, _ in circular}
    return {
        "circular": circular,
        "circles": {(part[0], tuple(part)) for part in parts if part[0] in inside},
    }


def roads(inputs: Inputs) -> Outputs:
    graph: nx.Graph = nx.Graph()
    graph.add_nodes_from(inputs["depots"])
    for a, b, km in inputs["roads"]:
        if km > 0 and not (graph.has_edge(a, b) and graph[a][b]["km"] <= km):
            graph.add_edge(a, b, km=km)
    depots = inputs["depots"]
    lengths = nx.multi_source_dijkstra_path_length(graph, depots, weight="km") if depots else {}
    ways: dict[str, tuple[int, tuple[str, ...]]] = {}
    heap = [(0, (depot,)) for depot in sorted(depots)]
    while heap:
        km, path = heappop(heap)
        if path[-1] not in ways:
            ways[path[-1]] = km, path
            for near, road in graph[path[-1]].items():
                heappush(heap, (km + road["km"], (*path, near)))
    return {
        "distances": set(lengths.items()),
        "ways": {(place, *way) for place, way in ways.items()},
    }


def party(inputs: Inputs) -> Outputs:
    graph = nx.Graph((a, b) for a, b in inputs["friends"] if a != b)
    core = nx.k_core(graph, 2)
    return {
        "guests": {(guest, tuple(sorted(core[guest]))) for guest in core},
        "at_home": set(graph) - set(core),
        "size": {(len(core),)} if len(core) else set(),
    }


def page_rank(inputs: Inputs) -> Outputs:
    links, pages = inputs["links"], {page for link in inputs["links"] for page in link}
    given = Counter(page for page, _ in links)
    ranks = dict.fromkeys(pages, 1_000_000)
    for _ in range(10):
        new = dict.fromkeys(pages, 150_000)
        for page, to in links:
            new[to] += ranks[page] * 85 // (100 * given[page])
        ranks = new
    return {"ranks": set(ranks.items())}


def family(inputs: Inputs) -> Outputs:
    tree = nx.DiGraph((parent, child) for child, parent in inputs["parents"])
    both = nx.tensor_product(tree, tree)
    pairs = reachable(both, [(person, person) for person in tree])
    ages = Counter(one for one, other in pairs if one != other)
    return {
        "same_generation": {(one, other) for one, other in pairs if one < other},
        "of_age_with": set(ages.items()),
    }


def permissions(inputs: Inputs) -> Outputs:
    groups = nx.DiGraph(list(inputs["members"]))
    member_of = {name: reachable(groups, [name]) for name in inputs["people"]}

    def ruled(rules: Iterable[Any]) -> set[Any]:
        return {
            (n, folder) for n, inside in member_of.items() for g, folder in rules if g in inside
        }

    banned = ruled(inputs["bans"])
    granted = ruled(inputs["grants"]) - banned
    may = set()
    for name in inputs["people"]:
        allowed = nx.DiGraph(
            (parent, path) for path, parent in inputs["folders"] if (name, path) not in banned
        )
        may |= {(name, f) for f in reachable(allowed, [f for n, f in granted if n == name])}
    users = defaultdict(list)
    for name, folder in sorted(may):
        users[folder].append(name)
    return {
        "may": may,
        "readers": {(folder, ", ".join(names)) for folder, names in users.items()},
        "unread": {path for path, _ in inputs["folders"]} - set(users),
    }


def dead_code(inputs: Inputs) -> Outputs:
    defined, graph, roots = set(), nx.DiGraph(), set()
    for path, text in inputs["files"]:
        for line in text.splitlines():
            head = re.match(r"def (\w+)\(\):", line)
            named = re.findall(r"(\w+)\(\)", line[head.end() if head else 0 :])
            if head:
                defined.add((path, head[1]))
                graph.add_edges_from((head[1], name) for name in named)
            else:
                roots |= set(named)
    live = reachable(graph, roots)
    return {
        "live": {function for function in defined if function[1] in live},
        "dead": {function for function in defined if function[1] not in live},
    }


# ---- other programs ----


def points_to(inputs: Inputs) -> Outputs:
    anything = frozenset(["*"])
    points: dict[str, frozenset[str]] = defaultdict(frozenset)
    objects = {s.source for s in inputs["statements"] if s.kind == "address"}

    def meant(pointer: str) -> set[str]:
        return objects if "*" in points[pointer] else set(points[pointer])

    flows: set[tuple[str, str]] = set()
    while True:
        before = dict(points), set(flows)
        for _, target, kind, source in inputs["statements"]:
            if kind == "address":
                points[target] |= {source}
            elif kind == "copy":
                flows.add((target, source))
            elif kind == "load":
                flows |= {(target, each) for each in meant(source)}
            elif kind == "store":
                flows |= {(each, source) for each in meant(target)}
        for target, source in flows:
            points[target] |= points[source]
        for variable, found in points.items():
            if len(found) > 2 or "*" in found:
                points[variable] = anything
        if before == (points, flows):
            break
    return {
        "points": {(name, tuple(sorted(found))) for name, found in points.items() if found},
        "flows": flows,
    }


def game_of_life(inputs: Inputs) -> Outputs:
    cells = {tuple(cell) for cell in inputs["cells"]}
    first = cells
    for _ in range(8):
        near = Counter(
            (x + dx, y + dy)
            for x, y in cells for dx in (-1, 0, 1) for dy in (-1, 0, 1) if dx or dy
        )  # fmt: skip
        cells = {cell for cell, n in near.items() if n == 3 or (n == 2 and cell in cells)}
    return {"first": first, "last": cells}


def bill_of_materials(inputs: Inputs) -> Outputs:
    prices, uses = dict(inputs["prices"]), inputs["uses"]
    graph = nx.DiGraph((assembly, part) for assembly, part, _ in uses)
    circular = {part for part in graph if any(part in nx.descendants(graph, near) | {near}
                                              for near in graph[part])}  # fmt: skip
    parts = defaultdict(list)
    for assembly, part, quantity in uses:
        if assembly not in circular:
            parts[assembly].append((part, quantity))

    @cache
    def cost(part: str) -> int | None:
        below = [(cost(each), quantity) for each, quantity in parts[part]]
        known = [each * quantity for each, quantity in below if each is not None]
        return sum(known) + prices.get(part, 0) if known or part in prices else None

    found = {part: cost(part) for part in {*prices, *graph}}
    return {
        "costs": {(part, cents) for part, cents in found.items() if cents is not None},
        "circular": circular,
        "unpriced": {part for part in graph if part not in prices and not graph.out_degree(part)},
    }


def org_chart(inputs: Inputs) -> Outputs:
    staff = {employee.id: employee for employee in inputs["staff"]}
    chains, below = {}, defaultdict(list)
    for employee in staff.values():
        bosses: dict[int, int] = {}
        at, levels = employee.manager, 1
        while at in staff and at not in bosses:
            bosses[at] = levels
            below[staff[at].name].append((levels, employee))
            at, levels = staff[at].manager, levels + 1
        if bosses:
            named = sorted((levels, staff[boss].name) for boss, levels in bosses.items())
            chains[employee.id, employee.name] = tuple(named)
    teams = {
        manager: [employee for levels, employee in people if levels == 1]
        for manager, people in below.items()
    }
    return {
        "chains": {(*who, bosses) for who, bosses in chains.items()},
        "answers_for": {(manager, len(people), sum(employee.salary for _, employee in people))
                        for manager, people in below.items()},
        "teams": {(manager, len(team), max((e.salary, e.name) for e in team)[1])
                  for manager, team in teams.items()},
        "orphans": {e for e in staff.values() if e.manager is not None and e.manager not in staff},
    }  # fmt: skip


def flights(inputs: Inputs) -> Outputs:
    gone = {number for (number,) in inputs["cancelled"]}
    flying = [flight for flight in inputs["flights"] if flight.number not in gone]
    trips = [[flight] for flight in flying]
    for trip in trips:
        for flight in flying if len(trip) < 3 else []:
            wait = flight.departs - trip[-1].arrives
            if (trip[-1].destination == flight.origin and 40 <= wait <= 240
                    and trip[0].origin != flight.destination):  # fmt: skip
                trips.append([*trip, flight])
    pairs = defaultdict(list)
    for trip in trips:
        hours = (trip[-1].arrives - trip[0].departs) / 60
        numbers, price = "+".join(f.number for f in trip), sum(f.price for f in trip)
        pairs[trip[0].origin, trip[-1].destination].append((numbers, price, hours))
    return {
        "offers": {
            (*pair, *each)
            for pair, found in pairs.items()
            for each in sorted(found, key=lambda each: (each[1], each))[:2]
        },
        "fastest": {
            (*pair, *min((hours, numbers) for numbers, _, hours in found))
            for pair, found in pairs.items()
        },
    }
