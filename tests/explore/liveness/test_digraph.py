"""Graphs as arrays, against networkx."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from rebalance_verifier.explore.liveness.digraph import components, core, induced, reach, rows


def graphs(count: int):
    random = np.random.default_rng(1)
    for _ in range(count):
        nodes, edges = int(random.integers(1, 25)), int(random.integers(0, 50))
        source, target = (random.integers(0, nodes, edges) for _ in range(2))
        graph: nx.DiGraph[int] = nx.DiGraph()
        graph.add_nodes_from(range(nodes))
        graph.add_edges_from(zip(source.tolist(), target.tolist(), strict=True))
        yield nodes, source, target, graph


def test_rows():
    out = rows(4, np.array([2, 0, 2, 3]))
    assert out.of(np.array([2, 1, 0])).tolist() == [0, 2, 1]
    assert out.of(np.array([], np.int64)).tolist() == []


def test_components():
    for nodes, source, target, graph in graphs(150):
        label = components(nodes, source, target)
        assert (label[source] >= label[target]).all()
        found = sorted(np.flatnonzero(label == one).tolist() for one in range(label.max() + 1))
        assert found == sorted(sorted(one) for one in nx.strongly_connected_components(graph))


def test_core():
    for nodes, source, target, graph in graphs(150):
        on_cycle = {
            node
            for one in nx.strongly_connected_components(graph)
            for node in one
            if len(one) > 1 or graph.has_edge(node, node)
        }
        left = {
            node
            for node in graph
            if on_cycle & {node, *nx.ancestors(graph, node)}
            and on_cycle & {node, *nx.descendants(graph, node)}
        }
        assert set(np.flatnonzero(core(nodes, source, target)).tolist()) == left


def test_reach():
    for nodes, source, target, graph in graphs(60):
        start = np.arange(nodes) % 7 == 3
        begun = np.flatnonzero(start).tolist()
        reached = set(begun).union(*(nx.descendants(graph, node) for node in begun))
        assert set(np.flatnonzero(reach(nodes, source, target, start)).tolist()) == reached


def test_induced():
    keep = np.array([False, True, False, True])
    names, kept, source, target = induced(np.array([0, 1, 3]), np.array([1, 3, 3]), keep)
    assert [one.tolist() for one in (names, kept, source, target)] == [[1, 3], [1, 2], [0, 1], [1, 1]]


@pytest.mark.slow
def test_a_long_path_is_no_recursion():
    nodes = 300_000
    source = np.arange(nodes)
    assert components(nodes, source, (source + 1) % nodes).max() == 0
