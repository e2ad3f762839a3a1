"""A small state graph, or one run, as text for Graphviz."""

from __future__ import annotations

from collections.abc import Callable

from rebalance.explore.engine.search import Graph, ModelTrace
from rebalance.explore.liveness.lasso import Lasso
from rebalance.model.machine import Event, Machine, State

MOST = 500
"""States beyond which nobody can read the picture."""


def dot(
    machine: Machine,
    graph: Graph,
    *,
    marked: Callable[[State], bool] | None = None,
) -> str:
    """The steps that are no faults. Initial states have a bold border, ``marked`` ones are filled.

    Steps between the same states are one arrow. Raises ValueError when there are more than ``MOST`` states.
    """
    if graph.states > MOST:
        raise ValueError(f"{graph.states} states; beyond {MOST} the picture cannot be read")
    lines = ["digraph {", "  node [shape=box, fontname=monospace];"]
    for index in range(graph.states):
        state = graph.state(index)
        style = [
            name
            for name, on in (("bold", index < graph.sizes[0]), ("filled", bool(marked and marked(state))))
            if on
        ]
        lines.append(
            f'  {index} [label={_quoted(machine.describe.state(state))}, style="{",".join(style)}"];'
        )
    arrows: dict[tuple[int, int], list[str]] = {}
    for source, target, number in zip(
        graph.source.tolist(), graph.target.tolist(), graph.action.tolist(), strict=True
    ):
        action = machine.actions[number]
        label = machine.describe.event(Event(action.name, action.who))
        arrows.setdefault((source, target), []).append(label)
    for (source, target), labels in sorted(arrows.items()):
        label = "\n".join(dict.fromkeys(labels))
        lines.append(f"  {source} -> {target} [label={_quoted(label)}];")
    return "\n".join([*lines, "}", ""])


def path(machine: Machine, run: ModelTrace | Lasso) -> str:
    """One run as a graph: its states in order, and where it goes on for ever the arrow back.

    The states keep their own labels. Raises ValueError when there are more than ``MOST`` states, or an event
    cannot happen.
    """
    if isinstance(run, Lasso):
        events, last = run.stem + run.cycle, len(run.stem)
        back = last if run.cycle else None
    else:
        events, last, back = run.events, len(run.events), None
    if len(events) >= MOST:
        raise ValueError(f"{len(events) + 1} states; beyond {MOST} the picture cannot be read")
    states = [run.initial]
    for event in events:
        states.append(machine.step(states[-1], event))
    shown = states[: len(states) - (back is not None)]
    lines = ["digraph {", "  node [shape=box, fontname=monospace];"]
    for index, state in enumerate(shown):
        style = "bold" if index == 0 else "filled" if index >= last else ""
        lines.append(f'  {index} [label={_quoted(machine.describe.state(state))}, style="{style}"];')
    for index, event in enumerate(events):
        target = index + 1 if index + 1 < len(shown) else back
        label = f"{index + 1} {machine.describe.event(event)}"
        lines.append(f"  {index} -> {target} [label={_quoted(label)}];")
    return "\n".join([*lines, "}", ""])


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
