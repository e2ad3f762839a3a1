"""The ownership chart of a finding: who claims and who is given which partition, round by round.

Each round is one rebalance in two halves, a column of the diagram each: left what a member claims in
JoinGroup, right what it owns while SyncGroup delivers the assignment. A COOPERATIVE member goes on owning
what it is not given back until it has revoked it, so two bars side by side in a right half are two owners at
one time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from rebalance_verifier.gate.scenarios.player import Found
from rebalance_verifier.gate.scenarios.round_view import PlayedRound, followed, played_rounds, shown_rounds
from rebalance_verifier.gate.search.counterexamples import RecordedCall, RecordedTasks, Trace
from rebalance_verifier.gate.search.result import Finding
from rebalance_verifier.model import codec
from rebalance_verifier.model.tasks import Application, TaskAssignment, TaskClient, TaskId
from rebalance_verifier.model.values import (
    SERVED,
    Cluster,
    Partitions,
    Racks,
    RebalanceProtocol,
    Subscription,
    TopicPartition,
)
from rebalance_verifier.properties.assignors.calls import AssignorCall, StatedClaim
from rebalance_verifier.properties.assignors.clause import Breach, Scope
from rebalance_verifier.properties.assignors.played import AnyCall
from rebalance_verifier.properties.assignors.scenarios import FaultKind
from rebalance_verifier.properties.assignors.task_calls import TaskCall
from rebalance_verifier.properties.assignors.task_scenarios import TaskScenario, everyone_in
from rebalance_verifier.properties.assignors.wording import RoundTerms, terms_of
from rebalance_verifier.report.diagram.diagram import (
    MAX_LINES,
    MAX_MEMBERS,
    DiagramColumn,
    MessageArrow,
    Overlap,
    OwnershipDiagram,
    OwnershipState,
    Row,
    bars,
    joined,
    left_of,
    more,
)
from rebalance_verifier.report.diagram.task_diagram import of_tasks

MAX_PARTITIONS = 8


def of_finding(finding: Finding) -> OwnershipDiagram:
    """Return the finding as a diagram, a pair of columns a round.

    At most 12 rounds up to shortly after the breaking one, 8 partitions (those of the breach first) and 6
    members a partition are shown. Of tasks there is a chart of its own (``task_diagram``).
    """
    if isinstance(finding.scenario, TaskScenario):
        return of_tasks(finding, finding.scenario)
    calls = [call for call in finding.calls if isinstance(call, AssignorCall)]
    # An unconfirmed finding has no recording; otherwise a round beyond the last call is one without answer.
    written = bool(finding.calls) or finding.confirmed
    shown, total = played_rounds(
        finding.scenario, calls, finding.round, finding.breach.partitions, written=written
    )
    everything = _concerned(finding, shown)
    partitions = everything[:MAX_PARTITIONS]
    rows = [row for partition in partitions for row in _rows(partition, shown, finding.round)]
    looks = [[look for r in shown for look in _looks(partition, member, r)] for partition, member in rows]
    twice = tuple(o for partition in partitions for o in _overlaps(partition, shown))
    still = {(o.partition, at, m) for o in twice for at in range(o.start, o.end) for m in o.members}
    for (partition, member), line in zip(rows, looks, strict=True):
        for at, look in enumerate(line):
            if look is OwnershipState.TIED and (str(partition), at, member) in still:
                line[at] = OwnershipState.OWNED
    inside = dict.fromkeys(m for r in shown if r.call for m in r.call.group)
    first = dict.fromkeys(member for _, member in rows if member)
    lines = set(islice(dict.fromkeys([*first, *inside]), MAX_LINES))
    members = tuple(member for member in inside if member in lines)
    left_out = [
        *left_of(total, len(shown), "round"),
        *more(len(everything) - len(partitions), "more partition"),
        *more(len(inside) - len(members), "more member"),
    ]
    return OwnershipDiagram(
        title=f"{finding.clause.id}: {finding.breach.summary}",
        columns=tuple(_columns(shown, finding.round, terms_of(finding.scenario.protocol))),
        rows=tuple(Row(str(partition), member) for partition, member in rows),
        bars=bars(looks),
        overlaps=twice,
        members=members,
        arrows=tuple(arrow for at, r in enumerate(shown) for arrow in _arrows(2 * at, r, members)),
        left_out=tuple(left_out),
        era="round",
        unit="round",
    )


def of_trace(trace: Trace) -> OwnershipDiagram:
    """Return a saved counterexample of an assignor as a diagram, from what the file says: the target is not
    started.

    Raises TraceError.
    """
    return of_finding(recorded(trace))


def _columns(shown: Sequence[PlayedRound], breaking: int, terms: RoundTerms) -> Iterator[DiagramColumn]:
    for at, r in enumerate(shown):
        marked, skipped = r.number == breaking, 0 if at else r.number - 1
        yield DiagramColumn(
            label=terms.before, what=r.story, generation=r.number, marked=marked, skipped=skipped
        )
        yield DiagramColumn(label=terms.after, generation=r.number, marked=marked)


def _arrows(column: int, r: PlayedRound, members: Sequence[str]) -> Iterator[MessageArrow]:
    if r.call is None:
        return
    terms = terms_of(r.call.protocol)
    newest = max((claim.generation for claim in r.call.claims.values() if claim.partitions), default=0)
    for member in members:
        if member not in r.call.group:
            continue
        claim = r.call.claims.get(member)
        old = claim is not None and claim.partitions and claim.generation < newest
        old = old and r.call.protocol not in SERVED  # a broker knows what it assigned
        since = f"claims of generation {claim.generation}" if claim and old else ""
        lost = r.faults.get(member)
        yield MessageArrow(column=column, member=member, api=terms.asks, text=since)
        yield MessageArrow(
            column=column + 1,
            member=member,
            api=terms.answers,
            answer=True,
            text="its JoinGroup response is lost" if lost is FaultKind.LOST_JOIN else "",
            lost=lost in (FaultKind.LOST_JOIN, FaultKind.MISSED_SYNC),
        )


def _overlaps(partition: TopicPartition, shown: Sequence[PlayedRound]) -> tuple[Overlap, ...]:
    """Return two owners while SyncGroup delivers the assignment, and while those two join again with it."""
    found, before = [], dict[str, None]()
    for at, r in enumerate(shown):
        owners = r.call.owners_at_once(partition) if r.call else ()
        still = [m for m in r.call.holders.get(partition, ()) if m in before] if r.call else []
        if r.call and r.call.protocol is RebalanceProtocol.COOPERATIVE and len(still) > 1:
            found.append(
                Overlap(partition=str(partition), start=2 * at, end=2 * at + 1, members=tuple(sorted(still)))
            )
        if owners:
            found.append(
                Overlap(
                    partition=str(partition), start=2 * at + 1, end=2 * at + 2, members=tuple(sorted(owners))
                )
            )
        before = dict.fromkeys(r.call.granted.get(partition, ())) if r.call else {}
    return joined(found)


def _concerned(finding: Finding, shown: Sequence[PlayedRound]) -> Partitions:
    """Return all partitions of the rounds, in the order of interest: of the breach, moving, the others."""
    first = {p: position for position, p in enumerate(finding.breach.partitions)}
    everything, moving = set(first), set()
    for r in shown:
        if r.call is not None:
            everything.update(r.call.claimants, r.call.granted, r.call.withheld)
            if r.number == finding.round:
                moving = {p for revoked in r.call.revoked.values() for p in revoked}
    key = {p: (first.get(p, len(first)), p not in moving, p) for p in everything}
    return tuple(sorted(everything, key=key.__getitem__))


def _rows(
    partition: TopicPartition, shown: Sequence[PlayedRound], breaking: int
) -> list[tuple[TopicPartition, str]]:
    """(partition, member) for the members that claim or get it, those of the breaking round for sure."""
    members: dict[str, bool] = {}
    for r in shown:
        if r.call is not None:
            concerned = (*r.call.claimants.get(partition, ()), *r.call.granted.get(partition, ()))
            for member in concerned:
                members[member] = members.get(member, False) or r.number == breaking
    chosen = sorted(members, key=lambda m: not members[m])[:MAX_MEMBERS]
    rows = [(partition, m) for m in members if m in chosen]
    if not rows or any(r.number == breaking and r.call and partition in r.call.withheld for r in shown):
        rows.append((partition, ""))
    return rows


def _looks(
    partition: TopicPartition, member: str, r: PlayedRound
) -> tuple[OwnershipState | None, OwnershipState | None]:
    """Return what a member has to do with a partition in the two halves of a round. The row of nobody has the
    member ``""``."""
    call = r.call
    if call is None:
        return None, OwnershipState.UNKNOWN
    if not member:
        return None, OwnershipState.NOBODY if partition in call.withheld else None
    given = member in call.granted.get(partition, ())
    without = OwnershipState.WITHOUT if member in call.group else None
    claims = member in call.claimants.get(partition, ())
    # EAGER members revoke everything before they join: a claim tells what was, not what is.
    eager = call.protocol is RebalanceProtocol.EAGER
    holders = () if eager else call.holders.get(partition, ())
    holds = member in holders
    one = len(holders) == 1 or call.protocol in SERVED
    has = OwnershipState.OWNED if one else OwnershipState.TIED
    old = OwnershipState.PAST if eager else OwnershipState.STALE
    left = has if holds else old if claims else without
    right = OwnershipState.OWNED if given else OwnershipState.LEAVING if holds else without
    return left, right


# -- a saved counterexample --------------------------------------------------------------------------


def recorded(trace: Trace) -> Finding:
    """Return the finding that a trace was saved from, as far as the file tells: the target is not asked.

    Only the rounds that a diagram shows are read. Raises TraceError that names what is wrong with them.
    """
    calls = _calls(trace)
    breach = Breach(
        summary=trace.summary, because=trace.because, expected=trace.expected, actual=trace.actual
    )
    if trace.clause.scope is Scope.CALL and 0 < trace.round <= len(calls):
        breach = trace.clause.check(calls[trace.round - 1]) or breach  # for its partitions
    found = Found(trace.clause, replace(breach, summary=trace.summary), trace.round)
    finding = trace.finding(found, trace.scenario, calls)
    return replace(finding, confirmed=trace.confirmed and bool(calls))


def _calls(trace: Trace) -> tuple[AnyCall, ...]:
    """Return the calls that a file has recorded. Raises TraceError."""
    if isinstance(trace.scenario, TaskScenario):
        return tuple(_tasks_call(trace.scenario, data, f"calls[{at}]") for at, data in enumerate(trace.calls))
    window = shown_rounds(max(len(trace.calls), trace.round, 0), trace.round)
    topics = {index: known for index, _, _, known in followed(trace.scenario, window)}
    nothing = AssignorCall(protocol=trace.protocol, cluster=Cluster(), group={}, claims={}, assignment={})
    return tuple(
        _call(trace.protocol, data, f"calls[{index}]", topics.get(index, trace.scenario.topics))
        if index in window
        else nothing
        for index, data in enumerate(trace.calls)
    )


def _tasks_call(scenario: TaskScenario, data: Any, where: str) -> TaskCall:
    """Return a call as far as it is recorded; tags and racks are those of the scenario."""
    call = codec.from_json(RecordedTasks, data, where, readers={TaskId: TaskId.parse})
    known = {client.id: client for client in everyone_in(scenario)}
    clients = []
    for name, one in call.clients.items():
        came = known.get(name)
        tags, rack = (came.tags, came.rack) if came else ({}, None)
        lags = {TaskId.parse(str(task)): lag for task, lag in one.lags.items()}
        clients.append(
            TaskClient(
                id=name,
                process=one.process,
                threads=one.threads,
                active=one.active,
                standby=one.standby,
                lags=lags,
                tags=tags,
                rack=rack,
            )
        )
    return TaskCall(
        protocol=scenario.protocol,
        application=Application(
            configs=scenario.configs, subtopologies=scenario.subtopologies, clients=tuple(clients)
        ),
        assignment=TaskAssignment(call.assignment, call.followup),
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
