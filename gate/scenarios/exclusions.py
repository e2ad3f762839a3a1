"""Kinds of input that an assignor is not made for: what its author leaves out of a search.

An assignor may say that it takes equal subscriptions only. A search without them draws none, and makes
none while it makes a counterexample small.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from rebalance_verifier.gate.scenarios.generator import BY_NAME, DIMENSIONS
from rebalance_verifier.gate.scenarios.preconditions import BY_NAME as ABLATIONS
from rebalance_verifier.model.values import OF_TASKS, RebalanceProtocol
from rebalance_verifier.properties.assignors.scenarios import Scenario, Subscribe, each_member, everybody


@dataclass(frozen=True, slots=True, kw_only=True)
class Exclusion:
    """How to do without a dimension: ``brought_by`` are others that bring it along, ``ablations`` take out
    what is left of it, and ``situations`` cannot be asked of a search any more."""

    brought_by: tuple[str, ...] = ()
    ablations: tuple[str, ...] = ()
    situations: tuple[str, ...] = ()


_OF_CLAIMS = ("stale claim", "tied claims", "claim listed twice")
_OF_FAULTS = (
    "missed-sync", "missed-sync with claims", "lost-join", "lost-join with claims", "removed member returns",
    "silent static member",
)  # fmt: skip

_TABLE: Mapping[str, Exclusion] = {
    "unequal": Exclusion(
        brought_by=("unsubscribed", "resubscribe"),
        situations=(
            "unequal subscriptions", "claim to unsubscribed topic", "topic no longer subscribed",
        ),
    ),
    "claims": Exclusion(
        brought_by=("stale", "duplicated", "repeated", "unsubscribed", "generations", "hostile"),
        ablations=("claims",),
        situations=(*_OF_CLAIMS, "claim to unsubscribed topic", "claim to unknown partition",
                    "partition that is gone", "topic no longer subscribed"),
    ),
    "stale": Exclusion(
        brought_by=("faults", "ghosts", "generations"), ablations=("stale",),
        situations=("stale claim", "ghost with claims", *_OF_FAULTS),
    ),
    "duplicated": Exclusion(ablations=("tied",), situations=("tied claims",)),
    "repeated": Exclusion(ablations=("repeated",), situations=("claim listed twice",)),
    "unsubscribed": Exclusion(ablations=("unsubscribed",), situations=("claim to unsubscribed topic",)),
    "unknown": Exclusion(
        ablations=("phantom", "unknown-topics"),
        situations=("claim to unknown partition", "partition that is gone"),
    ),
    "generations": Exclusion(ablations=("unlabelled",)),
    "versions": Exclusion(ablations=("versions",), situations=("mixed versions",)),
    "user-data": Exclusion(ablations=("user-data",)),
    "racks": Exclusion(ablations=("racks",), situations=("racks",)),
    "static": Exclusion(ablations=("static",), situations=("silent static member",)),
    "eager": Exclusion(ablations=("eager",)),
    "membership": Exclusion(ablations=("membership",)),
    "resubscribe": Exclusion(ablations=("resubscribing",), situations=("topic no longer subscribed",)),
    "topics": Exclusion(ablations=("shrinking", "growing")),
    "faults": Exclusion(ablations=("faults",), situations=_OF_FAULTS),
    "ghosts": Exclusion(ablations=("ghosts",), situations=("ghost with claims",)),
    "no-metadata": Exclusion(
        brought_by=("unknown",), ablations=("unknown-topics",),
        situations=("topic without metadata", "topic that does not exist", "claim to unknown partition",
                    "partition that is gone"),
    ),
    "hostile": Exclusion(ablations=("hostile",)),
    "names": Exclusion(ablations=("names",)),
    "order": Exclusion(),
}  # fmt: skip


def excluded(names: Iterable[str]) -> tuple[str, ...]:
    """Return the dimensions of these names, in their order. Raises ValueError that lists what there is."""
    wanted = set(names)
    for name in sorted(wanted - BY_NAME.keys()):
        raise ValueError(f"no kind of input is called {name!r}: there are {', '.join(BY_NAME)}")
    return tuple(d.name for d in DIMENSIONS if d.name in wanted)


def not_drawn(names: Iterable[str]) -> frozenset[str]:
    """Return the dimensions that are not drawn without these: they, and what brings them along."""
    return frozenset(one for name in names for one in (name, *_TABLE[name].brought_by))


def not_reached(names: Iterable[str]) -> frozenset[str]:
    """Return the situations that a search without these need not reach."""
    return frozenset(one for name in names for one in _TABLE[name].situations)


def refuse_tasks(names: Collection[str], protocols: Iterable[RebalanceProtocol]) -> None:
    """Raise ValueError where something is to be left out of scenarios of tasks, which have none of it."""
    if names and any(protocol in OF_TASKS for protocol in protocols):
        raise ValueError(f"{', '.join(names)} is of partitions: a task assignor is judged without it anyway")


def without(scenario: Scenario, names: Collection[str]) -> Scenario:
    """Return a scenario with nothing of these kinds in it; itself where there is nothing."""
    for name in names:
        for ablation in _TABLE[name].ablations:
            scenario = ABLATIONS[ablation].without(scenario)
    return _equal(scenario) if "unequal" in names else scenario


def _equal(scenario: Scenario) -> Scenario:
    """Return it with everybody subscribed to all that anybody subscribes to, for as long as they live."""
    subscribed = {frozenset(member.topics) for member in everybody(scenario)}
    rounds = tuple(tuple(e for e in events if not isinstance(e, Subscribe)) for events in scenario.rounds)
    if len(subscribed) <= 1 and rounds == scenario.rounds:
        return scenario
    every = tuple(dict.fromkeys(topic for member in everybody(scenario) for topic in member.topics))
    alike = each_member(scenario, lambda m: replace(m, topics=every) if set(m.topics) != set(every) else m)
    return alike if rounds == scenario.rounds else replace(alike, rounds=rounds)
