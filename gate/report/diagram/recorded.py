"""The finding that a saved counterexample was made from, as far as the file tells."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rebalance.gate.check.result import Finding
from rebalance.gate.report.diagram.rounds import followed, shown_rounds
from rebalance.gate.traces.counterexamples import Trace, field_of
from rebalance.gate.traces.files import TraceError
from rebalance.model.values import (
    Cluster,
    Partitions,
    Racks,
    RebalanceProtocol,
    Subscription,
    TopicPartition,
)
from rebalance.properties.assignors.calls import AssignorCall, StatedClaim
from rebalance.properties.assignors.clause import Breach, Scope


def recorded(trace: Trace) -> Finding:
    """The finding that a trace was saved from, as far as the file tells: the target is not asked.

    Only the rounds that a diagram shows are read. Raises TraceError that names what is wrong with them.
    """
    window = shown_rounds(max(len(trace.calls), trace.round, 0), trace.round)
    topics = {index: known for index, _, _, known in followed(trace.scenario, window)}
    nothing = AssignorCall(protocol=trace.protocol, cluster=Cluster(), group={}, claims={}, assignment={})
    calls = tuple(
        _call(trace.protocol, data, f"calls[{index}].", topics.get(index, trace.scenario.topics))
        if index in window
        else nothing
        for index, data in enumerate(trace.calls)
    )
    breach = Breach(
        summary=trace.summary, because=trace.because, expected=trace.expected, actual=trace.actual
    )
    if trace.clause.scope is Scope.CALL and 0 < trace.round <= len(calls):
        breach = trace.clause.check(calls[trace.round - 1]) or breach  # for its partitions
    return Finding(
        clause=trace.clause,
        protocol=trace.protocol,
        breach=replace(breach, summary=trace.summary),
        scenario=trace.scenario,
        round=trace.round,
        calls=calls,
        seed=trace.seed,
        number=trace.number,
        found_size=trace.found_size,
        confirmed=trace.confirmed and bool(calls),
        path=str(trace.path or ""),
    )


def _call(
    protocol: RebalanceProtocol, data: Any, where: str, topics: Mapping[str, tuple[Racks, ...]]
) -> AssignorCall:
    if not isinstance(data, dict):
        raise TraceError(f"field '{where[:-1]}' is {json.dumps(data)[:60]}, expected an object")
    group, claims = {}, {}
    members = field_of(data, "members", dict, where=where)
    for member in members:
        inside = f"{where}members.{member}."
        entry = field_of(members, member, dict, where=f"{where}members.")
        group[member] = Subscription(topics=tuple(map(str, field_of(entry, "topics", list, [], inside))))
        claims[member] = StatedClaim(
            _partitions(entry, "claims", inside), field_of(entry, "generation", int, -1, inside)
        )
    given = field_of(data, "assignment", dict, where=where)
    assignment = {member: _partitions(given, member, f"{where}assignment.") for member in given}
    return AssignorCall(
        protocol=protocol, cluster=Cluster(topics), group=group, claims=claims, assignment=assignment
    )


def _partitions(data: Mapping[str, Any], name: str, where: str) -> Partitions:
    found = []
    for text in field_of(data, name, list, [], where):
        topic, dash, index = str(text).rpartition("-")
        if not dash or not index.isdecimal():
            raise TraceError(f"field '{where}{name}' has {json.dumps(text)[:60]}, expected 'orders-0'")
        found.append(TopicPartition(topic, int(index)))
    return tuple(found)
