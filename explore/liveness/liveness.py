"""What must happen once faults stop: that a goal is reached and kept, that something happens rarely.

The graph is that of all reachable states, faults included, with the steps that are no faults: faults may
stop in any state. All of this needs the whole graph, and no symmetry: a cycle of merged states need not
be a cycle of states, and fairness tells members apart. ``Exploration.graph`` raises when asked for it. But a
cycle of states is one of their orbits too: ``settles_by_orbits`` finds out that there is none.

A run may stay in a state for ever when nothing fair is enabled there. So the runs that break ``Finally``
are those that stay so where the goal fails, and those that go round a fair cycle that leaves the goal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from rebalance_verifier.explore.engine.search import Exploration, Graph, ModelTrace
from rebalance_verifier.explore.liveness.digraph import Flags, Ints, components, core, induced, rows
from rebalance_verifier.explore.liveness.fairness import ActionGraph, Marks, fair_parts, round_trip, winding
from rebalance_verifier.explore.liveness.lasso import Lasso
from rebalance_verifier.model.machine import Event, Fairness, Machine, State, Value
from rebalance_verifier.properties.group.rules import Bounded, Finally, Rules

EFFORT = 300_000
"""How many (state, debts) the search for a least cycle may look at: some seconds."""


class Settling(NamedTuple):
    """The verdict on ``Finally``. It holds when there is no lasso.

    ``checked``: of how many states the goal had to be asked. ``left``: how many were left to the search for
    cycles after trimming. ``stuck``: in how many a run can stay though the goal fails. ``parts``: in how
    many separate regions a fair run can go round and leave the goal. ``least``: no fair lasso has fewer
    steps (stem and cycle together); when false, the search for the shortest was cut short.
    """

    clause: str
    lasso: Lasso | None
    least: bool
    checked: int
    left: int
    stuck: int
    parts: int

    @property
    def holds(self) -> bool:
        """Check whether every fair run settles."""
        return self.lasso is None


class Count(NamedTuple):
    """The verdict on ``Bounded``. ``reached`` is None when there is no bound: ``lasso`` counts for ever.

    ``fair``: there is such a lasso that is fair, and it is one. Runs need not be.
    ``trace`` reaches the maximum and stops there: a shortest trace to the nearest state from which it can
    be reached, then as few steps as possible; the first ``faulty`` events lead to that state.
    """

    clause: str
    most: int
    reached: int | None = None
    trace: ModelTrace | None = None
    faulty: int = 0
    lasso: Lasso | None = None
    fair: bool = False

    @property
    def holds(self) -> bool:
        """Check whether no run counts more than it may."""
        return self.reached is not None and self.reached <= self.most


class DeadEnds(NamedTuple):
    """How many ``states`` there are that no step but a fault changes, and a shortest trace to one, if any."""

    states: int
    nearest: ModelTrace | None


class Liveness(NamedTuple):
    """Everything that is asked of runs that never end. ``dead_ends`` are those where some goal fails."""

    settling: tuple[Settling, ...]
    counts: tuple[Count, ...]
    dead_ends: DeadEnds

    @property
    def holds(self) -> bool:
        """Check whether all of it holds. What ends badly does not settle, if a goal was given."""
        return all(one.holds for one in self.settling) and all(one.holds for one in self.counts)


def judge(machine: Machine, rules: Rules, search: Exploration, *, effort: int = EFFORT) -> Liveness:
    """Return the verdicts on all ``Finally`` and ``Bounded`` rules, from one graph; and the dead ends.

    Raises ValueError when the search was not complete or used symmetry.
    """
    graph = search.graph()
    return Liveness(
        tuple(settles(machine, rule, search, graph=graph, effort=effort) for rule in rules.finally_),
        tuple(counts(machine, rule, search, graph=graph, effort=effort) for rule in rules.bounded),
        dead_ends(machine, search, rules.finally_, graph=graph),
    )


def settles(
    machine: Machine,
    rule: Finally,
    search: Exploration,
    *,
    graph: Graph | None = None,
    effort: int = EFFORT,
) -> Settling:
    """Check whether every fair run without further faults reaches the goal and stays there.

    ``graph``: that of ``search``, where it has been made already. Raises ValueError when the search was not
    complete or used symmetry.
    """
    graph = graph or search.graph()
    depth = _depths(graph)
    steps, moves, resting, cyclic = _endless(machine, graph, graph.source == graph.target)
    fails, checked = _failing(machine, rule, graph, resting | cyclic)
    stuck = np.flatnonzero(resting & fails)
    marks = Marks(fails, np.zeros(len(steps.weak), np.bool_))
    left = winding(steps, fails, cyclic)
    kept = moves[left[steps.source]]
    inner = steps._replace(source=graph.source[kept], target=graph.target[kept], action=graph.action[kept])
    parts = fair_parts(inner, marks, left)
    below = int(depth[stuck[0]]) if len(stuck) else None
    trip = round_trip(inner, marks, parts, depth, below=below, effort=effort)
    lasso = None
    if trip is not None:
        lasso = _lasso(machine, search, graph, trip.entry, kept[list(trip.edges)])
    elif len(stuck):
        lasso = _lasso(machine, search, graph, int(stuck[0]), kept[:0])
    least = lasso is not None and (trip is None or trip.least)
    return Settling(
        clause=rule.clause,
        lasso=lasso,
        least=least,
        checked=len(checked),
        left=int(left.sum()),
        stuck=len(stuck),
        parts=len(parts),
    )


def settles_by_orbits(machine: Machine, rules: Rules, search: Exploration) -> bool:
    """Check whether no run at all can stay in a state, or go round through one, where a goal fails.

    Asked of orbits of states, so of far fewer; goals have to be symmetric, as the other rules of such a
    search have. False says nothing: a cycle of orbits need not be one of states, nor fair. Raises ValueError
    when the search was not complete.
    """
    graph, stays = search.orbit_graph()
    steps, _, resting, cyclic = _endless(machine, graph, stays)
    for rule in rules.finally_:
        fails, _ = _failing(machine, rule, graph, resting | cyclic)
        if (resting & fails).any() or winding(steps, fails, cyclic).any():
            return False
    return True


def _endless(machine: Machine, graph: Graph, stays: Flags) -> tuple[ActionGraph, Ints, Flags, Flags]:
    """Return where a run can go on for ever: the steps of cycles, their edges in ``graph``, in which states
    it can rest, and which may lie on a cycle. ``stays``: the edges that leave a state as it is."""
    steps = _steps(machine, graph)
    fair = (steps.weak | steps.strong)[graph.action]
    resting = np.bincount(graph.source[fair], minlength=graph.states) == 0
    # An unfair step that leads back to its state makes no cycle fair that is not fair without it.
    moves = np.flatnonzero(fair | ~stays)
    steps = steps._replace(source=graph.source[moves], target=graph.target[moves], action=graph.action[moves])
    return steps, moves, resting, core(graph.states, steps.source, steps.target)


def _failing(machine: Machine, rule: Finally, graph: Graph, where: Flags) -> tuple[Flags, Ints]:
    """Return in which states ``where`` it is asked the goal fails, and those that were asked."""
    checked = np.flatnonzero(where)
    fails = np.zeros(graph.states, np.bool_)
    fails[checked] = ~_holds(machine, rule, graph, checked)
    return fails, checked


def counts(
    machine: Machine,
    rule: Bounded,
    search: Exploration,
    *,
    graph: Graph | None = None,
    effort: int = EFFORT,
) -> Count:
    """Return the greatest number of steps that count in a run without further faults, fair or not.

    Whether a step counts may depend on its action and member, not on its choice. Raises ValueError when
    the search was not complete or used symmetry, or when a step on the reported run counts otherwise.
    """
    graph = graph or search.graph()
    counting = np.array([rule.counts(Event(action.name, action.who)) for action in machine.actions])
    part = _parts(graph)
    forever = counting[graph.action] & (part[graph.source] == part[graph.target])
    if forever.any():
        where = np.isin(part, part[graph.source[forever]])
        lasso, fair = _for_ever(machine, search, graph, counting, where, effort)
        return Count(clause=rule.clause, most=rule.most, lasso=lasso, fair=fair)
    best = _heaviest(part, graph, counting)[part]
    start = int(np.argmax(best))
    trace = next(search.traces_to(start))
    events = _along(machine, graph, _end(machine, trace), _tight(graph, counting, best, start))
    if sum(map(rule.counts, events)) != best[start]:
        raise ValueError(f"{rule.clause} counts steps by their choice; only action and member are known here")
    whole = ModelTrace(trace.initial, trace.events + events)
    reached, faulty = int(best[start]), len(trace.events)
    return Count(clause=rule.clause, most=rule.most, reached=reached, trace=whole, faulty=faulty)


def _for_ever(
    machine: Machine, search: Exploration, graph: Graph, counting: Flags, where: Flags, effort: int
) -> tuple[Lasso, bool]:
    """Return a short lasso inside ``where`` that takes a counting step, and whether it is fair; fair, if one
    is."""
    steps = _steps(machine, graph)
    nobody = np.zeros(len(counting), np.bool_)
    marks = Marks(np.zeros(graph.states, np.bool_), counting)
    for variant in (steps, steps._replace(weak=nobody, strong=nobody)):
        parts = fair_parts(variant, marks, where)
        trip = round_trip(variant, marks, parts, _depths(graph), effort=effort)
        if trip is not None:
            return _lasso(machine, search, graph, trip.entry, np.array(trip.edges)), variant is steps
    raise AssertionError("a counting step within a strong component is on a cycle")


def dead_ends(
    machine: Machine, search: Exploration, goals: Sequence[Finally] = (), *, graph: Graph | None = None
) -> DeadEnds:
    """Return states that no step but a fault changes, and in which some goal fails; without goals, all of
    them.

    Raises ValueError when the search was not complete or used symmetry.
    """
    graph = graph or search.graph()
    moves = graph.source != graph.target
    ends = np.flatnonzero(np.bincount(graph.source[moves], minlength=graph.states) == 0)
    if goals:
        ends = ends[~np.logical_and.reduce([_holds(machine, goal, graph, ends) for goal in goals])]
    return DeadEnds(len(ends), next(search.traces_to(int(ends[0]))) if len(ends) else None)


def _depths(graph: Graph) -> Ints:
    return np.repeat(np.arange(len(graph.sizes)), graph.sizes)


def _steps(machine: Machine, graph: Graph) -> ActionGraph:
    """Return the graph with what is assumed of its actions."""
    weak, strong = (
        np.array([action.fairness is kind and not action.fault for action in machine.actions], np.bool_)
        for kind in (Fairness.WEAK, Fairness.STRONG)
    )
    return ActionGraph(
        nodes=graph.states,
        source=graph.source,
        target=graph.target,
        action=graph.action,
        weak=weak,
        strong=strong,
    )


def _holds(machine: Machine, rule: Finally, graph: Graph, states: Ints) -> Flags:
    """In which of ``states`` the goal holds; asked once per value of what its views read."""
    positions = sorted({machine.position[name] for view in rule.views for name in machine.view[view].reads})
    known: dict[tuple[Value, ...], bool] = {}
    answers = np.zeros(len(states), np.bool_)
    for row, index in enumerate(states.tolist()):
        state = graph.state(index)
        key = tuple([state[position] for position in positions])
        if key not in known:
            known[key] = rule.holds(*[machine.look(state, view) for view in rule.views])
        answers[row] = known[key]
    return answers


def _parts(graph: Graph) -> Ints:
    """Return the strong component of each state, as any number; only what trimming leaves is searched."""
    part = np.arange(graph.states)
    names, _, source, target = induced(
        graph.source, graph.target, core(graph.states, graph.source, graph.target)
    )
    label = components(len(names), source, target)
    if len(names):
        first = np.unique(label, return_index=True)[1]
        part[names] = names[first][label]
    return part


def _heaviest(part: Ints, graph: Graph, counting: Flags) -> Ints:
    """By part: the most that can be counted from there on. Backwards from the sinks, level by level."""
    out, into = part[graph.source], part[graph.target]
    between = out != into
    out, into, weight = out[between], into[between], counting[graph.action[between]].astype(np.int64)
    best = np.zeros(len(part), np.int64)
    ahead = np.bincount(out, minlength=len(part))
    behind = rows(len(part), into)
    frontier = np.flatnonzero(ahead == 0)
    while len(frontier):
        edges = behind.of(frontier)
        np.maximum.at(best, out[edges], best[into[edges]] + weight[edges])
        nodes, settled = np.unique(out[edges], return_counts=True)
        ahead[nodes] -= settled
        frontier = nodes[ahead[nodes] == 0]
    return best


def _tight(graph: Graph, counting: Flags, best: Ints, start: int) -> Ints:
    """Return the edges of a shortest path from ``start`` that counts all that can be counted from there."""
    tight = np.flatnonzero(best[graph.source] == best[graph.target] + counting[graph.action])
    source, target = graph.source[tight], graph.target[tight]
    out = rows(graph.states, source)
    came = np.full(graph.states, -1)
    frontier = np.array([start])
    while best[frontier].all():
        edges = out.of(frontier)
        edges = edges[came[target[edges]] < 0]
        frontier, first = np.unique(target[edges], return_index=True)
        came[frontier] = edges[first]
    node = int(frontier[np.argmin(best[frontier])])
    path: list[int] = []
    while node != start:
        path.append(int(tight[came[node]]))
        node = int(source[came[node]])
    return np.array(path[::-1], np.int64)


def _end(machine: Machine, trace: ModelTrace) -> State:
    state = trace.initial
    for event in trace.events:
        state = machine.step(state, event)
    return state


def _along(machine: Machine, graph: Graph, state: State, edges: Ints) -> tuple[Event, ...]:
    """Return events that lead from ``state`` along ``edges``, whose states are normal forms."""
    events: list[Event] = []
    for edge in edges.tolist():
        action = machine.actions[graph.action[edge]]
        goal = graph.state(int(graph.target[edge]))
        for event, outcome in machine.outcomes(state, faults=False):
            if (event.action, event.who) == (action.name, action.who):
                after = machine.apply(state, event, outcome)
                if machine.normal(after) == goal:
                    break
        else:
            raise AssertionError(f"the machine has no step of the graph: {action.name} by {action.who}")
        events.append(event)
        state = after
    return tuple(events)


def _lasso(machine: Machine, search: Exploration, graph: Graph, entry: int, edges: Ints) -> Lasso:
    stem = next(search.traces_to(entry))
    return Lasso(stem.initial, stem.events, _along(machine, graph, _end(machine, stem), edges))
