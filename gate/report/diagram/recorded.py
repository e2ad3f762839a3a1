"""The finding that a saved counterexample was made from, as far as the file tells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rebalance.gate.check.result import Finding
from rebalance.gate.traces import codec
from rebalance.gate.traces.counterexamples import RecordedCall, Trace
from rebalance.model.values import (
    Cluster,
    Racks,
    RebalanceProtocol,
    Subscription,
)
from rebalance.properties.assignors.calls import AssignorCall, StatedClaim
from rebalance.properties.assignors.clause import Breach, Scope
from rebalance.properties.assignors.histories import Found
from rebalance.properties.assignors.rounds import followed, shown_rounds


def recorded(trace: Trace) -> Finding:
    """The finding that a trace was saved from, as far as the file tells: the target is not asked.

    Only the rounds that a diagram shows are read. Raises TraceError that names what is wrong with them.
    """
    window = shown_rounds(max(len(trace.calls), trace.round, 0), trace.round)
    topics = {index: known for index, _, _, known in followed(trace.scenario, window)}
    nothing = AssignorCall(protocol=trace.protocol, cluster=Cluster(), group={}, claims={}, assignment={})
    calls = tuple(
        _call(trace.protocol, data, f"calls[{index}]", topics.get(index, trace.scenario.topics))
        if index in window
        else nothing
        for index, data in enumerate(trace.calls)
    )
    breach = Breach(
        summary=trace.summary, because=trace.because, expected=trace.expected, actual=trace.actual
    )
    if trace.clause.scope is Scope.CALL and 0 < trace.round <= len(calls):
        breach = trace.clause.check(calls[trace.round - 1]) or breach  # for its partitions
    found = Found(trace.clause, replace(breach, summary=trace.summary), trace.round)
    return replace(
        Finding.of(found, trace.scenario, calls),
        seed=trace.seed,
        number=trace.number,
        found_size=trace.found_size,
        confirmed=trace.confirmed and bool(calls),
        path=str(trace.path or ""),
    )


def _call(
    protocol: RebalanceProtocol, data: Any, where: str, topics: Mapping[str, tuple[Racks, ...]]
) -> AssignorCall:
    call = codec.from_json(RecordedCall, data, where)
    members = call.members.items()
    return AssignorCall(
        protocol=protocol,
        cluster=Cluster(topics),
        group={name: Subscription(topics=member.topics) for name, member in members},
        claims={name: StatedClaim(member.claims, member.generation) for name, member in members},
        assignment=call.assignment,
    )
