"""The chart of a finding about tasks: which process runs which task, or keeps a copy, rebalance by
rebalance.

Each rebalance is two columns: left what runs and lies on disks when the assignor is asked, right its answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rebalance_verifier.gate.scenarios.round_view import shown_rounds
from rebalance_verifier.gate.scenarios.task_view import ALONE, stories
from rebalance_verifier.gate.search.result import Finding
from rebalance_verifier.model.tasks import TaskId
from rebalance_verifier.model.values import TopicPartition
from rebalance_verifier.properties.assignors.task_calls import TaskCall
from rebalance_verifier.properties.assignors.task_scenarios import TaskScenario
from rebalance_verifier.properties.assignors.wording import RoundTerms, terms_of
from rebalance_verifier.report.diagram.diagram import (
    MAX_MEMBERS,
    DiagramColumn,
    Overlap,
    OwnershipDiagram,
    OwnershipState,
    Row,
    bars,
    joined,
    left_of,
    more,
)

MAX_TASKS = 8


@dataclass(frozen=True, slots=True)
class _Round:
    """A rebalance, numbered from 1; ``call`` is None where there was no answer, or nobody wrote it down."""

    number: int
    story: str
    call: TaskCall | None


def of_tasks(finding: Finding, scenario: TaskScenario) -> OwnershipDiagram:
    """Return the finding as a diagram: at most 12 rebalances up to shortly after the breaking one, 8 tasks
    (those of the breach first) and 6 clients a task."""
    calls = [call for call in finding.calls if isinstance(call, TaskCall)]
    total = max(len(calls), finding.round, 0)
    window = shown_rounds(total, finding.round)
    phrases = stories(scenario, window)
    shown = [_round(index, phrases.get(index, ""), calls, finding) for index in window]
    everything = _concerned(finding, shown)
    tasks = everything[:MAX_TASKS]
    rows = [(task, client) for task in tasks for client in _clients(task, shown)]
    looks = [[look for one in shown for look in _looks(task, client, one)] for task, client in rows]
    left_out = [
        *left_of(total, len(shown), "rebalance"),
        *more(len(everything) - len(tasks), "more task"),
    ]
    return OwnershipDiagram(
        title=f"{finding.clause.id}: {finding.breach.summary}",
        columns=tuple(_columns(shown, finding.round, terms_of(scenario.protocol))),
        rows=tuple(Row(str(task), client) for task, client in rows),
        bars=bars(looks),
        overlaps=joined(overlap for task in tasks for overlap in _twice(task, shown)),
        left_out=tuple(left_out),
        era="round",
        unit="round",
    )


def _round(index: int, story: str, calls: Sequence[TaskCall], finding: Finding) -> _Round:
    call = calls[index] if index < len(calls) else None
    if call is None and (calls or finding.confirmed):
        story = "; ".join(filter(None, (story, "no answer")))
    elif call is not None and call.assignment.followup:
        story = "; ".join((story or ALONE, "a follow-up is asked for"))
    return _Round(index + 1, story or ALONE, call)


def _columns(shown: Sequence[_Round], breaking: int, terms: RoundTerms) -> Iterator[DiagramColumn]:
    for at, one in enumerate(shown):
        marked, skipped = one.number == breaking, 0 if at else one.number - 1
        yield DiagramColumn(
            label=terms.before, what=one.story, generation=one.number, marked=marked, skipped=skipped
        )
        yield DiagramColumn(label=terms.after, generation=one.number, marked=marked)


def _concerned(finding: Finding, shown: Sequence[_Round]) -> list[TopicPartition]:
    """Return all tasks of the rebalances: those of the breach first."""
    first = list(dict.fromkeys(finding.breach.partitions))
    others = {task for one in shown if one.call for task in one.call.application.tasks}
    return [*first, *sorted(others.difference(first))]


def _clients(task: TopicPartition, shown: Sequence[_Round]) -> list[str]:
    """Return who runs a task or has a copy of it, and nobody where that is so."""
    known, found, nobody = TaskId(*task), dict[str, None](), False
    for one in shown:
        if one.call is None:
            continue
        for client in one.call.application.clients:
            if known in client.active or known in client.standby:
                found[client.id] = None
        found |= dict.fromkeys((*one.call.actives.get(known, ()), *one.call.standbys.get(known, ())))
        nobody = nobody or (known in one.call.existing and known not in one.call.actives)
    return [*list(found)[:MAX_MEMBERS], *([""] if nobody or not found else [])]


def _looks(
    task: TopicPartition, client: str, one: _Round
) -> tuple[OwnershipState | None, OwnershipState | None]:
    """Return what a client has to do with a task before a rebalance, and in the answer. The row of nobody has
    the client ``""``."""
    call, known = one.call, TaskId(*task)
    if call is None:
        return None, OwnershipState.UNKNOWN
    if not client:
        gone = known in call.existing and known not in call.actives
        return None, OwnershipState.NOBODY if gone else None
    here = call.clients.get(client)
    without = OwnershipState.WITHOUT if here else None
    before = (
        OwnershipState.ACTIVE
        if here and known in here.active
        else OwnershipState.COPY
        if here and known in here.standby
        else without
    )
    after = (
        OwnershipState.ACTIVE
        if client in call.actives.get(known, ())
        else OwnershipState.STANDBY
        if client in call.standbys.get(known, ())
        else without
    )
    return before, after


def _twice(task: TopicPartition, shown: Sequence[_Round]) -> Iterator[Overlap]:
    """Yield an answer that has a task active more than once."""
    for at, one in enumerate(shown):
        clients = one.call.actives.get(TaskId(*task), ()) if one.call else ()
        if len(clients) > 1:
            members = tuple(sorted(set(clients)))
            yield Overlap(partition=str(task), start=2 * at + 1, end=2 * at + 2, members=members)
