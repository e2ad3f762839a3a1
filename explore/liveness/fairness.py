"""Where in a graph a fair run can go round for ever, and the shortest way to do so.

Everything here is about numbers: nodes, edges, actions. An action counts as enabled in a node when an edge
of that action leaves it, one that leads back to the node included.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeVar

import numpy as np
from rebalance_verifier.explore.liveness.digraph import (
    Flags,
    Ints,
    Rows,
    components,
    core,
    induced,
    reach,
    rows,
)


class ActionGraph(NamedTuple):
    """A graph with actions on its edges. ``weak`` and ``strong`` say what each action is."""

    nodes: int
    source: Ints
    target: Ints
    action: Ints
    weak: Flags
    strong: Flags


class Marks(NamedTuple):
    """Marks of which a cycle must have one: a marked node, or an edge of a marked action."""

    nodes: Flags
    actions: Flags


class Round(NamedTuple):
    """A cycle: the node where it is entered, and its edges from there. ``least``: see ``round_trip``."""

    entry: int
    edges: tuple[int, ...]
    least: bool


def winding(steps: ActionGraph, marks: Flags, left: Flags) -> Flags:
    """Return which nodes of ``left`` may lie on a cycle through a marked node: a superset, by trimming alone.

    Drops what is not between two cycles, then what is not between two marked nodes, and again until
    nothing goes. What is left needs strong components to be told apart; mostly nothing is.
    """
    while True:
        names, _, source, target = induced(steps.source, steps.target, left)
        nodes = len(names)
        keep = core(nodes, source, target)
        inner = keep[source] & keep[target]
        source, target = source[inner], target[inner]
        keep &= reach(nodes, source, target, marks[names] & keep)
        keep &= reach(nodes, target, source, marks[names] & keep)
        if keep.all():
            return left
        left = np.zeros(steps.nodes, np.bool_)
        left[names[keep]] = True


def fair_parts(steps: ActionGraph, marks: Marks, left: Flags) -> list[Ints]:
    """Return the greatest sets of nodes among ``left`` in which a fair run with a mark can go round for ever.

    Every fair cycle with a mark lies in one of them, and in each some fair cycle with a mark visits all
    of its nodes. A strong component is unfair to a weakly fair action that is enabled in all of it and
    taken nowhere in it: no part of it can be better. To a strongly fair one that is enabled in some of it
    and taken nowhere: without those nodes it may be fair, so what is left of it is asked again.
    """
    kinds = len(steps.weak)
    out = left[steps.source]
    pairs = np.unique(steps.source[out] * kinds + steps.action[out])
    pair_node, pair_action = np.divmod(pairs, kinds)
    found: list[Ints] = []
    while left.any():
        names, kept, source, target = induced(steps.source, steps.target, left)
        part = components(len(names), source, target)
        inner = part[source] == part[target]
        action = steps.action[kept[inner]]
        size = np.bincount(part)
        alive = np.bincount(part[source[inner]], minlength=len(size)) > 0
        marked = np.bincount(part[marks.nodes[names]], minlength=len(size))
        marked += np.bincount(part[source[inner]][marks.actions[action]], minlength=len(size))
        alive &= marked > 0
        everywhere = np.full(steps.nodes, -1)
        everywhere[names] = part
        here = everywhere[pair_node]
        inside = here >= 0
        key, count = np.unique(here[inside] * kinds + pair_action[inside], return_counts=True)
        starved = ~np.isin(key, part[source[inner]] * kinds + action)
        key, count = key[starved], count[starved]
        owner, what = np.divmod(key, kinds)
        alive[owner[steps.weak[what] & (count == size[owner])]] = False
        again = np.zeros(len(size), np.bool_)
        again[owner[steps.strong[what]]] = True
        good = np.flatnonzero(alive & ~again)
        members = rows(len(size), part)
        found += [names[members.of(good[index : index + 1])] for index in range(len(good))]
        left = np.zeros(steps.nodes, np.bool_)
        left[names[(alive & again)[part]]] = True
        refused = inside & np.isin(here * kinds + pair_action, key[steps.strong[what]])
        left[pair_node[refused]] = False
    return found


def round_trip(
    steps: ActionGraph, marks: Marks, parts: list[Ints], depth: Ints, *, below: int | None = None, effort: int
) -> Round | None:
    """Return the fair cycle with a mark for which depth of entry + length is least, inside ``parts``.

    None when there is none of a sum less than ``below``. The search goes breadth first over nodes together
    with what is still owed (weakly fair actions enabled so far and not taken, strongly fair ones enabled
    and not taken, the mark), once from each possible entry; ``least`` says that it was not cut short.
    After ``effort`` such pairs it is: the answer is then the best so far, or one made by going to whatever
    settles a debt nearest, again and again.
    """
    if not parts:
        return None
    trips = _Trips(steps, marks, parts, depth)
    best: Round | None = None
    for start in trips.starts:
        if below is not None and depth[start] + 1 >= below:
            return best
        room = None if below is None else below - int(depth[start])
        edges, effort = trips.shortest(start, room, effort)
        if edges is not None:
            best = Round(start, edges, True)
            below = int(depth[start]) + len(edges)
        if effort <= 0:
            if best is None:
                edges = trips.greedy(trips.starts[0])
                if below is None or depth[trips.starts[0]] + len(edges) < below:
                    best = Round(trips.starts[0], edges, False)
            return None if best is None else best._replace(least=False)
    return best


class _Trips:
    """Paths inside the fair parts, edge by edge.

    What a path owes before it may close is one number. Of ``kinds`` actions, the first ``kinds`` bits are
    the weakly fair ones enabled in all of its states and not taken, the next the strongly fair ones
    enabled in some state and not taken, the next the strongly fair ones taken; the bit above is the mark.
    """

    def __init__(self, steps: ActionGraph, marks: Marks, parts: list[Ints], depth: Ints) -> None:
        self._steps, self._marks = steps, marks
        self._out: Rows = rows(steps.nodes, steps.source)
        self._part = np.full(steps.nodes, -1)
        for number, nodes in enumerate(parts):
            self._part[nodes] = number
        every = np.concatenate(parts)
        order = np.lexsort((every, depth[every]))
        self.starts: list[int] = every[order].tolist()
        self._rank = {node: rank for rank, node in enumerate(self.starts)}
        kinds = len(steps.weak)
        self._kinds, self._all, self._mark = kinds, (1 << kinds) - 1, 1 << 3 * kinds
        self._debts = self._mark | (1 << 2 * kinds) - 1
        self._done = [
            (
                (1 << kind) | (self._mark if marks.actions[kind] else 0),
                int(steps.strong[kind]) << 2 * kinds + kind,
            )
            for kind in range(kinds)
        ]
        self._known: dict[int, tuple[list[tuple[int, int, int]], int, int, int]] = {}

    def _node(self, node: int) -> tuple[list[tuple[int, int, int]], int, int, int]:
        """Return edges inside the part (edge, head, action); enabled weak and strong actions; what is not
        paid."""
        known = self._known.get(node)
        if known is None:
            steps = self._steps
            edges = self._out.edge[self._out.first[node] : self._out.first[node + 1]]
            ways = []
            weak = strong = 0
            for edge, head, action in zip(
                edges.tolist(), steps.target[edges].tolist(), steps.action[edges].tolist(), strict=True
            ):
                weak |= int(steps.weak[action]) << action
                strong |= int(steps.strong[action]) << action
                if self._part[head] == self._part[node]:
                    ways.append((edge, head, action))
            stays = -1 ^ self._all ^ weak ^ (self._mark if self._marks.nodes[node] else 0)
            known = self._known[node] = ways, weak, strong << self._kinds, stays
        return known

    def _begin(self, node: int) -> int:
        """Return what a path owes that has seen ``node`` only."""
        _, weak, strong, stays = self._node(node)
        return (self._mark & stays) | weak | strong

    def _go(self, owed: int, head: int, action: int) -> int:
        """Return what is owed after taking ``action`` to ``head``."""
        _, _, strong, stays = self._node(head)
        paid, taken = self._done[action]
        owed = ((owed & stays) | strong | taken) & ~paid
        return owed & ~((owed >> self._kinds) & (self._all << self._kinds))

    def shortest(self, start: int, room: int | None, effort: int) -> tuple[tuple[int, ...] | None, int]:
        """Return the shortest fair cycle through ``start`` of fewer than ``room`` edges; the effort left.

        Only nodes that come after ``start`` among the starts are entered: a cycle through an earlier one
        has been found from there, at no greater a sum.
        """
        rank = self._rank[start]
        first = (start, self._begin(start))
        came: dict[tuple[int, int], tuple[tuple[int, int], int] | None] = {first: None}
        frontier = [first]
        length = 0
        while frontier and effort > 0:
            length += 1
            if room is not None and length >= room:
                break
            beyond = []
            for here in frontier:
                node, owed = here
                effort -= 1
                for edge, head, action in self._node(node)[0]:
                    if self._rank[head] < rank:
                        continue
                    there = (head, self._go(owed, head, action))
                    if head == start and not there[1] & self._debts:
                        return (*_back(came, here), edge), effort
                    if there not in came:
                        came[there] = (here, edge)
                        beyond.append(there)
            frontier = beyond
        return None, effort

    def greedy(self, start: int) -> tuple[int, ...]:
        """Return some fair cycle through ``start``: pay the nearest debt until none is left, then go home."""
        edges: list[int] = []
        node, owed = start, self._begin(start)
        while owed & self._debts or node != start or not edges:
            path = self._nearest(node, owed, start)
            for edge in path:
                owed = self._go(owed, int(self._steps.target[edge]), int(self._steps.action[edge]))
            edges += path
            node = int(self._steps.target[edges[-1]])
        return tuple(edges)

    def _nearest(self, node: int, owed: int, home: int) -> list[int]:
        """Return edges to the nearest place where a debt of ``owed`` is paid; home, when there is none."""
        debts = owed & self._debts
        came: dict[int, tuple[int, int] | None] = {node: None}
        frontier = [node]
        while frontier:
            beyond = []
            for here in frontier:
                for edge, head, action in self._node(here)[0]:
                    if debts & ~self._go(owed, head, action) if debts else head == home:
                        return [*_back(came, here), edge]
                    if head not in came:
                        came[head] = (here, edge)
                        beyond.append(head)
            frontier = beyond
        raise AssertionError("a fair part has everything that its cycles owe")


Key = TypeVar("Key")


def _back(came: dict[Key, tuple[Key, int] | None], node: Key) -> Iterator[int]:
    """Yield the edges that led to ``node``, first to last."""
    edges = []
    step = came[node]
    while step is not None:
        edges.append(step[1])
        step = came[step[0]]
    return reversed(edges)
