"""Where in a graph a fair run can go round for ever, and the shortest way to do so.

Everything here is about numbers: nodes, edges, actions. An action counts as enabled in a node when an edge
of that action leaves it, one that leads back to the node included.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeVar

import numpy as np
from rebalance.explore.digraph import Flags, Ints, Rows, components, core, induced, reach, rows


class Steps(NamedTuple):
    """A graph with actions on its edges. ``weak`` and ``strong`` say what each action is."""

    nodes: int
    source: Ints
    target: Ints
    action: Ints
    weak: Flags
    strong: Flags


class Marks(NamedTuple):
    """What a cycle must have one of: a marked node, or an edge of a marked action."""

    nodes: Flags
    actions: Flags


class Round(NamedTuple):
    """A cycle: the node where it is entered, and its edges from there. ``least``: see ``round_trip``."""

    entry: int
    edges: tuple[int, ...]
    least: bool


def winding(steps: Steps, marks: Flags, left: Flags) -> Flags:
    """Which nodes of ``left`` may lie on a cycle through a marked node: a superset, by trimming alone.

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


def fair_parts(steps: Steps, marks: Marks, left: Flags) -> list[Ints]:
    """The greatest sets of nodes among ``left`` in which a fair run with a mark can go round for ever.

    Every fair cycle with a mark lies in one of them, and in each some fair cycle with a mark visits all
    of its nodes. A strong component is unfair to a weakly fair action that is enabled in all of it and
    taken nowhere in it: no part of it can be better. To a strongly fair one that is enabled in some of it
    and taken nowhere: without those nodes it may be fair, so what is left of it is asked again.
    """
    kinds = len(steps.weak)
    pairs = np.unique(steps.source * kinds + steps.action)
    pair_node, pair_action = np.divmod(pairs, kinds)
    found: list[Ints] = []
    while left.any():
        names, places, source, target = induced(steps.source, steps.target, left)
        part = components(len(names), source, target)
        inner = part[source] == part[target]
        action = steps.action[places[inner]]
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
        found += [names[members.of(good[place : place + 1])] for place in range(len(good))]
        left = np.zeros(steps.nodes, np.bool_)
        left[names[(alive & again)[part]]] = True
        refused = inside & np.isin(here * kinds + pair_action, key[steps.strong[what]])
        left[pair_node[refused]] = False
    return found


def round_trip(
    steps: Steps, marks: Marks, parts: list[Ints], depth: Ints, *, below: int | None = None, effort: int
) -> Round | None:
    """The fair cycle with a mark for which depth of entry + length is least, inside ``parts``.

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


class _Owed(NamedTuple):
    """What a path is still to do before it may close. Bits are actions."""

    weak: int
    strong: int
    taken: int
    mark: bool

    @property
    def nothing(self) -> bool:
        return not self.weak and not self.strong & ~self.taken and not self.mark


class _Trips:
    """Paths inside the fair parts, edge by edge."""

    def __init__(self, steps: Steps, marks: Marks, parts: list[Ints], depth: Ints) -> None:
        self._steps, self._marks = steps, marks
        self._out: Rows = rows(steps.nodes, steps.source)
        self._part = np.full(steps.nodes, -1)
        for number, nodes in enumerate(parts):
            self._part[nodes] = number
        every = np.concatenate(parts)
        order = np.lexsort((every, depth[every]))
        self.starts: list[int] = every[order].tolist()
        self._rank = {node: rank for rank, node in enumerate(self.starts)}
        self._known: dict[int, tuple[list[tuple[int, int, int]], int, int, bool]] = {}

    def _node(self, node: int) -> tuple[list[tuple[int, int, int]], int, int, bool]:
        """Edges inside the part (edge, head, action); enabled weak and strong actions; whether marked."""
        if node not in self._known:
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
            self._known[node] = (ways, weak, strong, bool(self._marks.nodes[node]))
        return self._known[node]

    def _begin(self, node: int) -> _Owed:
        _, weak, strong, marked = self._node(node)
        return _Owed(weak, strong, 0, not marked)

    def _go(self, owed: _Owed, head: int, action: int) -> _Owed:
        """What is owed after taking ``action`` to ``head``."""
        _, weak, strong, marked = self._node(head)
        bit = 1 << action
        return _Owed(
            owed.weak & weak & ~bit,
            owed.strong | strong,
            owed.taken | bit if self._steps.strong[action] else owed.taken,
            owed.mark and not marked and not bool(self._marks.actions[action]),
        )

    def shortest(self, start: int, room: int | None, effort: int) -> tuple[tuple[int, ...] | None, int]:
        """The shortest fair cycle through ``start`` of fewer than ``room`` edges; the effort left.

        Only nodes that come after ``start`` among the starts are entered: a cycle through an earlier one
        has been found from there, at no greater a sum.
        """
        rank = self._rank[start]
        first = (start, self._begin(start))
        came: dict[tuple[int, _Owed], tuple[tuple[int, _Owed], int] | None] = {first: None}
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
                    if head == start and there[1].nothing:
                        return (*_back(came, here), edge), effort
                    if there not in came:
                        came[there] = (here, edge)
                        beyond.append(there)
            frontier = beyond
        return None, effort

    def greedy(self, start: int) -> tuple[int, ...]:
        """Some fair cycle through ``start``: pay the nearest debt until none is left, then go home."""
        edges: list[int] = []
        node, owed = start, self._begin(start)
        while not (owed.nothing and node == start and edges):
            step = self._nearest(node, owed, start)
            for edge in step:
                owed = self._go(owed, int(self._steps.target[edge]), int(self._steps.action[edge]))
            edges += step
            node = int(self._steps.target[edges[-1]])
        return tuple(edges)

    def _nearest(self, node: int, owed: _Owed, home: int) -> list[int]:
        """Edges to the nearest place where less is owed; home, when nothing is."""
        came: dict[int, tuple[int, int] | None] = {node: None}
        frontier = [node]
        while frontier:
            beyond = []
            for here in frontier:
                for edge, head, action in self._node(here)[0]:
                    after = self._go(owed, head, action)
                    paid = (
                        after.weak != owed.weak
                        or (owed.strong & ~owed.taken) >> action & 1
                        or after.mark != owed.mark
                    )
                    if head == home if owed.nothing else paid:
                        return [*_back(came, here), edge]
                    if head not in came:
                        came[head] = (here, edge)
                        beyond.append(head)
            frontier = beyond
        raise AssertionError("a fair part has everything that its cycles owe")


Key = TypeVar("Key")


def _back(came: dict[Key, tuple[Key, int] | None], place: Key) -> Iterator[int]:
    """The edges that led to ``place``, first to last."""
    edges = []
    step = came[place]
    while step is not None:
        edges.append(step[1])
        step = came[step[0]]
    return reversed(edges)
