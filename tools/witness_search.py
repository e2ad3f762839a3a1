"""Searches for a run to each action: how ``specs/classic/necessity/witnesses.json`` was made.

    python -m tools.witness_search

Many short random walks, each from a state of a kind that was seldom visited. So a rare action is
reached in small groups within minutes, where a search level by level would take a year. What was found is
shortened for as long as the action is still possible at the end.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from rebalance_verifier.specs.classic.safety import specification
from rebalance_verifier.specs.logic.specification import Specification
from rebalance_verifier.specs.logic.universe import Structure, Universe

from tools.state_space import StateSpace

WALK = 10
"""Steps of one walk."""
SAMPLE = 8
"""Kinds of states from which the one least visited is taken."""
FAULTS = 0.25
"""How often a fault may be taken where something else is possible."""
WIDTH = 200
"""States that are kept while a path is replayed."""

KIND = (
    "life", "state", "wire", "error", "stray", "stray_error", "received", "lists", "group", "log_group",
    "id", "names", "stray_names", "member", "log_member", "leads", "joined",
)  # fmt: skip
"""What makes the kind of a state."""

ActionPath = tuple[str, ...]


@dataclass(frozen=True)
class VisitedState:
    """A state with the way to it."""

    state: Structure
    depth: int = 0
    before: VisitedState | None = None
    action: str = ""

    def path(self) -> ActionPath:
        """The actions from the beginning."""
        node, names = self, list[str]()
        while node.before is not None:
            names.append(node.action)
            node = node.before
        return tuple(reversed(names))


def universe(
    spec: Specification, static: Sequence[bool], assignors: int = 1, *, honest: bool = True
) -> Universe:
    """Consumers with and without a group.instance.id; the first assignor is COOPERATIVE."""
    consumers = len(static)
    return Universe(
        spec.vocabulary,
        {
            "Consumer": consumers, "Member": 2 + 2 * consumers, "Partition": 1, "Generation": 5,
            "Assignor": assignors,
        },
        {
            "of": lambda m: m % consumers, "static": lambda c: static[c], "honest": honest,
            "cooperative": lambda a: a == 0, "lt": lambda g, h: g < h, "none": 0, "zero": 1,
        },
    )  # fmt: skip


def walks(
    space: StateSpace, initial: Sequence[Structure], seed: int
) -> Iterator[tuple[VisitedState, list[str]]]:
    """States as the walks visit them, with the actions possible there. Without end, and the same for the
    same seed."""
    rng = random.Random(seed)
    positions = [space.universe.positions[name] for name in KIND if name in space.universe.positions]

    def kind(state: Structure) -> Structure:
        return tuple(state[position] for position in positions)

    seen: dict[Structure, VisitedState] = {kind(state): VisitedState(state) for state in initial}
    kinds, visits = list(seen), dict.fromkeys(seen, 0)
    while True:
        start = min(rng.sample(kinds, min(SAMPLE, len(kinds))), key=visits.__getitem__)
        visits[start] += 1
        node = seen[start]
        for _ in range(WALK):
            steps: dict[str, list[Structure]] = {}
            for name, _, after in space.successors(node.state):
                steps.setdefault(name, []).append(after)
            yield node, list(steps)
            quiet = [name for name in steps if not space.actions[name].fault]
            name = rng.choice(quiet if quiet and rng.random() >= FAULTS else list(steps))
            node = VisitedState(rng.choice(steps[name]), node.depth + 1, node, name)
            key = kind(node.state)
            if key not in seen:
                kinds.append(key)
                visits[key] = 0
            if key not in seen or node.depth < seen[key].depth:
                seen[key] = node


def search(space: StateSpace, initial: Sequence[Structure], seed: int, visits: int) -> dict[str, ActionPath]:
    """For each action that was possible in one of ``visits`` states, the shortest of the paths to it."""
    found: dict[str, VisitedState] = {}
    for node, possible in islice(walks(space, initial, seed), visits):
        for name in possible:
            if name not in found or node.depth < found[name].depth:
                found[name] = node
    return {name: node.path() for name, node in found.items()}


class Replays:
    """Paths of actions, whatever their parameters, on the states of one universe."""

    def __init__(self, spec: Specification, universe: Universe, initial: Sequence[Structure]) -> None:
        self._alone = {action.name: StateSpace(universe, [action]) for action in spec.actions}
        self._reached: dict[ActionPath, list[Structure]] = {(): list(initial)}

    def after(self, path: ActionPath) -> list[Structure]:
        """States after these actions; not more than ``WIDTH``."""
        if path not in self._reached:
            before, space = self.after(path[:-1]), self._alone[path[-1]]
            steps = (state for one in before for _, _, state in space.successors(one))
            self._reached[path] = list(islice(dict.fromkeys(islice(steps, 4 * WIDTH)), WIDTH))
        return self._reached[path]

    def shortened(self, path: ActionPath) -> ActionPath:
        """The path without what its last action does not need."""
        size = len(path) - 1
        while size:
            for i in range(len(path) - 1 - size, -1, -1):
                less = path[:i] + path[i + size :]
                if i + size < len(path) and self.after(less):
                    path = less
            size //= 2
        return path


def chained(paths: Mapping[str, ActionPath]) -> dict[str, ActionPath]:
    """Each path without the beginning that is the path of another action, and that action; as
    ``specs.classic.necessity.witnesses`` has them."""
    short = {}
    for action, path in sorted(paths.items(), key=lambda item: (len(item[1]), item[0])):
        cuts = (i for i in range(len(path) - 1, -1, -1) if paths.get(path[i]) == path[:i])
        short[action] = path[next(cuts, 0) :]
    return short


def main(visits: int = 100_000, seeds: int = 2) -> None:
    """Prints ``specs/classic/necessity/witnesses.json``. Takes a quarter of an hour."""
    spec = specification()
    groups = [
        universe(spec, [True]), universe(spec, [False]), universe(spec, [False], honest=False),
        universe(spec, [True, True]), universe(spec, [True, False]), universe(spec, [True, False], 2),
    ]  # fmt: skip
    best: dict[str, ActionPath] = {}
    for group in groups:
        space, listed = StateSpace(group, spec.actions), group.positions["lists"]
        initial = [state for state in space.states(spec.initial) if all(state[listed])]
        replays = Replays(spec, group, initial)
        for seed in range(seeds):
            for name, path in search(space, initial, seed, visits).items():
                short = replays.shortened((*path, name))[:-1]
                if name not in best or len(short) < len(best[name]):
                    best[name] = short
    witnesses = {name: " ".join(path) for name, path in chained(best).items()}
    sys.stdout.write(json.dumps(witnesses, indent=1) + "\n")
    never = [action.name for action in spec.actions if action.name not in best]
    sys.stderr.write(f"never: {' '.join(never)}\n")


if __name__ == "__main__":
    main()
