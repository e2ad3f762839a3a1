"""How a breach spells members, partitions, claims and assignments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rebalance_verifier.model.values import (
    OF_TASKS,
    SERVED,
    GroupAssignment,
    RebalanceProtocol,
    TopicPartition,
)
from rebalance_verifier.properties.assignors.calls import AssignorCall
from rebalance_verifier.properties.assignors.clause import Breach


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundTerms:
    """How the two halves of a rebalance are spoken of, by who assigns.

    ``decider``: who calls the assignor. ``before`` and ``after``: the halves of a round in a chart, and
    ``was`` and ``given`` the columns of a table of rounds. ``had`` and ``kept``: what members had before.
    ``asks`` and ``answers``: the requests that carry it.
    """

    decider: str
    before: str
    after: str
    was: str
    given: str
    had: str
    kept: str
    asks: str
    answers: str


_LEADER = RoundTerms(
    decider="the leader",
    before="JoinGroup",
    after="SyncGroup",
    was="JoinGroup claims",
    given="SyncGroup gives",
    had="claims",
    kept="valid claims",
    asks="JoinGroup",
    answers="SyncGroup",
)

_BROKER = RoundTerms(
    decider="the broker",
    before="target before",
    after="target after",
    was="assigned before",
    given="assigned now",
    had="had",
    kept="partitions",
    asks="ConsumerGroupHeartbeat",
    answers="ConsumerGroupHeartbeat",
)


_TASKS = RoundTerms(
    decider="the assignor",
    before="before",
    after="answer",
    was="runs, and has on disk",
    given="is given",
    had="what ran",
    kept="tasks",
    asks="JoinGroup",
    answers="SyncGroup",
)
_OF_SHARES = replace(_BROKER, asks="ShareGroupHeartbeat", answers="ShareGroupHeartbeat")

_TERMS = {RebalanceProtocol.CONSUMER: _BROKER, RebalanceProtocol.SHARE: _OF_SHARES} | dict.fromkeys(
    OF_TASKS, _TASKS
)


def terms_of(protocol: RebalanceProtocol) -> RoundTerms:
    """Return how a rebalance of ``protocol`` is spoken of."""
    return _TERMS.get(protocol, _LEADER)


def same_owners(one: GroupAssignment, other: GroupAssignment) -> bool:
    members = one.keys() | other.keys()
    return one == other or all(Counter(one.get(m, ())) == Counter(other.get(m, ())) for m in members)


def differs(call: AssignorCall, other: GroupAssignment, how: str) -> Breach:
    here, there = _holders(call.assignment), _holders(other)
    changed = tuple(sorted(p for p in here.keys() | there.keys() if here.get(p) != there.get(p)))
    return Breach(
        summary=f"{counted(len(changed), 'partition')} with another owner ({listed(changed)}): {how}",
        because=(f"once {everything(other)}", f"once {everything(call.assignment)}"),
        expected="the same assignment",
        actual=counted(len(changed), "difference"),
        partitions=changed,
    )


def _holders(assignment: GroupAssignment) -> dict[TopicPartition, tuple[str, ...]]:
    found: dict[TopicPartition, list[str]] = {}
    for member, partitions in sorted(assignment.items()):
        for partition in partitions:
            found.setdefault(partition, []).append(member)
    return {p: tuple(m) for p, m in found.items()}


def claims_of(call: AssignorCall, partition: TopicPartition) -> Iterator[str]:
    for member, generation in sorted(call.claimants[partition].items()):
        if call.protocol in SERVED:
            yield f"{member} had {partition} before"
        else:
            yield f"{member} joined claiming {partition}, {generation_text(generation)}"


def generation_text(generation: int) -> str:
    return f"generation {generation}" if generation >= 0 else "no generation"


def grants(call: AssignorCall, members: Iterable[str]) -> str:
    return "  ".join(f"{m}: {{{listed(sorted(call.assignment.get(m, ())), '')}}}" for m in sorted(members))


def everything(assignment: GroupAssignment) -> str:
    shown = [f"{m}: {{{listed(sorted(p), '')}}}" for m, p in sorted(assignment.items())]
    return "  ".join(shown[:8]) + (f"  and {len(shown) - 8} more" if len(shown) > 8 else "")


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def listed(items: Iterable[Any], none: str = "nobody") -> str:
    shown = [str(item) for item in items]
    return ", ".join(shown[:8]) + (f" and {len(shown) - 8} more" if len(shown) > 8 else "") or none


def together(names: Sequence[str]) -> str:
    """Join names as the subject of a sentence.

    >>> together("A"), together("AB"), together("ABC")
    ('A', 'A and B', 'A, B and C')
    """
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def pairs(values: Mapping[str, Any]) -> str:
    return listed(f"{key} {value}" for key, value in sorted(values.items()))


def loads_of(call: AssignorCall) -> str:
    return pairs(call.loads)
