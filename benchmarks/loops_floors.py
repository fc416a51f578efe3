"""The floors of `loops.py`: reachability and components by hand, with dicts and lazy rounds.

A node that is reached has a round, and is held by those before it that have a smaller one. Rounds
are upper bounds: when a path gets shorter, none is changed. What loses its last hold is put aside,
and so is what it held; then nodes are found again from those that are still there, the smallest
rounds first. These programs believe their input.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Any

from floors import Floor
from local_data import Bag, Change

NOWHERE: Any = ()
ROOT = -1


class Reachability(Floor):
    """`before` and `after` are the edges by their ends; `rounds` the nodes that are reached."""

    def __init__(self) -> None:
        self.before: dict[int, set[int]] = {}
        self.after: dict[int, set[int]] = {}
        self.rounds: dict[int, int] = {}
        self.roots: set[int] = set()

    def step(self, change: Change) -> Bag:
        before, after, rounds, roots = self.before, self.after, self.rounds, self.roots
        waiting: list[tuple[int, int]] = []
        losing: list[int] = []
        added: list[tuple[int, int]] = []
        for node, weight in change.get("nodes", {}).items():
            if weight > 0:
                roots.add(node)
                waiting.append((ROOT, node))
            else:
                roots.discard(node)
                losing.append(node)
        for (source, target), weight in change.get("edges", {}).items():
            if weight > 0:
                _join(after, source, target)
                _join(before, target, source)
                added.append((source, target))
            else:
                after[source].discard(target)
                before[target].discard(source)
                if source in rounds and rounds[source] < rounds[target]:
                    losing.append(target)
        out: Bag = {}
        while losing:
            node = losing.pop()
            mine = rounds.get(node)
            if mine is None or node in roots:
                continue
            for other in before.get(node, NOWHERE):
                if other in rounds and rounds[other] < mine:
                    break
            else:
                del rounds[node]
                out[node] = -1
                for other in after.get(node, NOWHERE):
                    if other in rounds and rounds[other] > mine:
                        losing.append(other)
        for node in out:
            held = [rounds[other] for other in before.get(node, NOWHERE) if other in rounds]
            if held:
                waiting.append((min(held), node))
        for source, target in added:
            if source in rounds and target not in rounds:
                waiting.append((rounds[source], target))
        heapify(waiting)
        while waiting:
            mine, node = heappop(waiting)
            if node in rounds:
                continue
            rounds[node] = mine = mine + 1
            if out.pop(node, 0) == 0:
                out[node] = 1
            for other in after.get(node, NOWHERE):
                if other not in rounds:
                    heappush(waiting, (mine, other))
        return out

    def value(self) -> Bag:
        return dict.fromkeys(self.rounds, 1)


class Components(Floor):
    """The least node of its component is the label of a node; it is held by neighbours of the same
    label and a smaller round, and the least node by itself."""

    def __init__(self) -> None:
        self.edges: dict[int, dict[int, int]] = {}
        self.labels: dict[int, tuple[int, int]] = {}

    def step(self, change: Change) -> Bag:
        edges, labels = self.edges, self.labels
        waiting = [(node, 0, node) for node in change.get("nodes", {})]
        losing: list[int] = []
        added: list[tuple[int, int]] = []
        for (source, target), weight in change.get("edges", {}).items():
            for one, other in ((source, target), (target, source)):
                there = edges.setdefault(one, {})
                total = there.pop(other, 0) + weight
                if total:
                    there[other] = total
                elif one in labels and other in labels and labels[other] < labels[one]:
                    losing.append(one)
                if weight > 0:
                    added.append((one, other))
        old: dict[int, int] = {}
        while losing:
            node = losing.pop()
            mine = labels.get(node)
            if mine is None or mine[1] == 0:
                continue
            label, number = mine
            for other in edges[node]:
                its = labels.get(other)
                if its is not None and its[0] == label and its[1] < number:
                    break
            else:
                del labels[node]
                old[node] = label
                for other in edges[node]:
                    its = labels.get(other)
                    if its is not None and its[0] == label and its[1] > number:
                        losing.append(other)
        for node in old:
            waiting.append((node, 0, node))
            held = [labels[other] for other in edges[node] if other in labels]
            if held:
                label, number = min(held)
                waiting.append((label, number + 1, node))
        for one, other in added:
            if one in labels:
                label, number = labels[one]
                if other in labels and label < labels[other][0]:
                    waiting.append((label, number + 1, other))
        heapify(waiting)
        while waiting:
            label, number, node = heappop(waiting)
            its = labels.get(node)
            if its is not None:
                if its[0] <= label:
                    continue
                old.setdefault(node, its[0])
            else:
                old.setdefault(node, -1)
            labels[node] = label, number
            number += 1
            for other in edges.get(node, NOWHERE):
                its = labels.get(other)
                if its is None or its[0] > label:
                    heappush(waiting, (label, number, other))
        return _relabelled(old, labels)

    def value(self) -> Bag:
        return {(node, label): 1 for node, (label, _) in self.labels.items()}


def _relabelled(old: dict[int, int], labels: dict[int, tuple[int, int]]) -> Bag:
    out: Bag = {}
    for node, label in old.items():
        now = labels[node][0]
        if now != label:
            out[node, now] = 1
            if label >= 0:
                out[node, label] = -1
    return out


def _join(edges: dict[int, set[int]], one: int, other: int) -> None:
    if one in edges:
        edges[one].add(other)
    else:
        edges[one] = {other}


def by_hand(query: str) -> Floor:
    """The program for a query."""
    return Reachability() if query == "reachability" else Components()
