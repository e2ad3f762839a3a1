"""Scenarios whose topics are called as the user's are: an assignor may look for a topic by its name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from rebalance_verifier.gate.scenarios.generator import Size
from rebalance_verifier.model.values import RebalanceProtocol
from rebalance_verifier.properties.assignors.played import AnyScenario
from rebalance_verifier.properties.assignors.scenarios import (
    Scenario,
    renamed,
    topics_named,
    without_topics,
)

_LEGAL = re.compile(r"(?!\.\.?\Z)[A-Za-z0-9._-]{1,249}")


def names_given(given: Iterable[str]) -> tuple[str, ...]:
    """Return the names of topics in lists of them. Raises ValueError for one that no topic can have, or one
    that is given twice."""
    names = [name.strip() for names in given for name in names.split(",")]
    for name in names:
        if not _LEGAL.fullmatch(name):
            raise ValueError(
                f"{name!r} is no name of a topic: letters, digits, '.', '_' and '-', 249 at most"
            )
        if names.count(name) > 1:
            raise ValueError(f"{name} is given twice")
    return tuple(names)


def refuse_names(names: Sequence[str], protocols: Iterable[RebalanceProtocol]) -> None:
    """Raise ValueError where topics have no names that an assignor is told."""
    if names and RebalanceProtocol.STREAMS in protocols:
        raise ValueError("a broker tells a task assignor of subtopologies, and of no topic")


def fewer(size: Size, names: Sequence[str]) -> Size:
    """Return a size with as many topics as there are names, at most."""
    if not names:
        return size
    least, most = size.topics
    return replace(size, topics=(min(least, len(names)), min(most, len(names))))


def called(scenario: AnyScenario, names: Sequence[str], first: int) -> AnyScenario:
    """Return a scenario whose topics are called so, in turn from the name with number ``first`` on. There are
    no topics beyond these: neither one that is made later, nor a claim to one that is gone."""
    if not names:
        return scenario
    at = first % len(names)
    turn = (*names[at:], *names[:at])
    if not isinstance(scenario, Scenario):
        parts = scenario.subtopologies
        return replace(
            scenario,
            subtopologies=tuple(
                replace(one, topic=turn[number] if number < len(turn) else "")
                for number, one in enumerate(parts)
            ),
        )
    topics = topics_named(scenario)
    few = without_topics(scenario, {*topics[len(turn) :]}) if len(topics) > len(turn) else scenario
    return renamed(few, {}, dict(zip(topics, turn, strict=False)))


def keeps(scenario: AnyScenario, names: Sequence[str]) -> bool:
    """Check whether all topics of a scenario have one of these names."""
    return not names or not isinstance(scenario, Scenario) or set(topics_named(scenario)) <= set(names)
