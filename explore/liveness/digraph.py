"""Directed graphs as arrays: rows, trimming, reachability, strongly connected components.

A graph is a number of nodes and two arrays of the same length, ``source`` and ``target``; an edge is a
place in them. Everything is linear in the edges and deterministic. What can be done to a whole frontier at
once is done in numpy; only strong components go node by node, so trim first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


class Rows(NamedTuple):
    """The edges by node: those of node ``n`` are ``edge[first[n]:first[n + 1]]``, in ascending order."""

    first: Ints
    edge: Ints

    def of(self, nodes: Ints) -> Ints:
        """Return the edges of all ``nodes``, node by node."""
        begin = self.first[nodes]
        count = self.first[nodes + 1] - begin
        before = np.cumsum(count) - count
        offsets: Ints = np.arange(int(count.sum())) + np.repeat(begin - before, count)
        edges: Ints = self.edge[offsets]
        return edges


def rows(nodes: int, key: Ints) -> Rows:
    """Return edges by ``key``: by source or by target."""
    first = np.zeros(nodes + 1, np.int64)
    np.cumsum(np.bincount(key, minlength=nodes), out=first[1:])
    return Rows(first, np.argsort(key, kind="stable"))


def reach(nodes: int, source: Ints, target: Ints, start: Flags) -> Flags:
    """Return which nodes can be reached from ``start``, itself included. Swap the arrays to go backwards."""
    seen = start.copy()
    out = rows(nodes, source)
    frontier = np.flatnonzero(start)
    while len(frontier):
        beyond = target[out.of(frontier)]
        beyond = np.unique(beyond[~seen[beyond]])
        seen[beyond] = True
        frontier = beyond
    return seen


def core(nodes: int, source: Ints, target: Ints) -> Flags:
    """Return which nodes lie on a cycle or on a path between two cycles.

    Nodes without a successor go, again and again, then nodes without a predecessor. The second round
    leaves nobody without a successor: a node that is left leads to a cycle, and so do those on the way.
    """
    left: Flags = np.ones(nodes, np.bool_)
    for tail, head in ((source, target), (target, source)):
        degree: Ints = np.bincount(tail[left[head]], minlength=nodes)
        into = rows(nodes, head)
        frontier = np.flatnonzero(left & (degree == 0))
        while len(frontier):
            left[frontier] = False
            behind, count = np.unique(tail[into.of(frontier)], return_counts=True)
            degree[behind] -= count
            frontier = behind[left[behind] & (degree[behind] == 0)]
    return left


def induced(source: Ints, target: Ints, keep: Flags) -> tuple[Ints, Ints, Ints, Ints]:
    """Return the graph on the nodes ``keep``: its nodes' old names, its edges' old numbers, new source,
    target."""
    names = np.flatnonzero(keep)
    kept = np.flatnonzero(keep[source] & keep[target])
    renamed = np.cumsum(keep) - 1
    return names, kept, renamed[source[kept]], renamed[target[kept]]


def components(nodes: int, source: Ints, target: Ints) -> Ints:
    """Return the strong component of each node, numbered from 0 so that no edge leads to a higher number.

    Tarjan's algorithm without recursion, about a million edges a second.
    """
    out = rows(nodes, source)
    first: list[int] = out.first.tolist()
    heads: list[int] = target[out.edge].tolist()
    cursor = first[:-1]  # a copy: the next edge to look at, per node
    number = [0] * nodes  # order of discovery, from 1; 0: not yet seen
    low = [0] * nodes
    label = [-1] * nodes
    stack: list[int] = []
    clock = found = 0
    for root in range(nodes):
        if number[root]:
            continue
        path = [root]
        clock += 1
        number[root] = low[root] = clock
        stack.append(root)
        while path:
            node = path[-1]
            edge = cursor[node]
            if edge < first[node + 1]:
                cursor[node] = edge + 1
                head = heads[edge]
                if not number[head]:
                    clock += 1
                    number[head] = low[head] = clock
                    stack.append(head)
                    path.append(head)
                elif label[head] < 0 and number[head] < low[node]:
                    low[node] = number[head]
                continue
            path.pop()
            if path and low[node] < low[path[-1]]:
                low[path[-1]] = low[node]
            if low[node] == number[node]:
                while True:
                    member = stack.pop()
                    label[member] = found
                    if member == node:
                        break
                found += 1
    return np.array(label, np.int64)
