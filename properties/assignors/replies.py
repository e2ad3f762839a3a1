"""Clauses of one reply, and of one call with further questions about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rebalance_verifier.base.processes.failure import FailureKind
from rebalance_verifier.model.values import SERVED
from rebalance_verifier.properties.assignors.calls import (
    Answer,
    AssignorCall,
    AssignQuestion,
    Failure,
    StatedClaim,
)
from rebalance_verifier.properties.assignors.clause import Asking, Breach
from rebalance_verifier.properties.assignors.wording import differs, everything, listed, same_owners


def total(reply: Answer | Failure) -> Breach | None:
    return failed(reply) if isinstance(reply, Failure) else None


def failed(reply: Failure) -> Breach | None:
    """Return the breach that no answer is, unless the target declined to give one."""
    if reply.kind is FailureKind.SKIPPED:
        return None
    lines = reply.detail.strip().splitlines()
    return Breach(
        kind=_kind(reply),
        summary=f"{_FAILED[reply.kind]}: {reply.message}",
        because=tuple(f"| {line}" for line in _telling(reply.kind, lines)),  # the target's, not ours
        expected="an assignment, for every well-formed input, within its time and memory",
        actual=str(reply.kind),
    )


def _kind(failure: Failure) -> str:
    """Return how it failed, with the name of the exception if there is one."""
    name = failure.message.partition(":")[0].rpartition(".")[2]
    return name if failure.kind is FailureKind.ERRORED and name.isidentifier() else str(failure.kind)


def _telling(kind: FailureKind, lines: Sequence[str]) -> Sequence[str]:
    """Return the lines of a report that say where it happened."""
    if kind is FailureKind.TIMEOUT:  # faulthandler says it first, a JVM where it comes to its main thread
        main = next((at for at, line in enumerate(lines) if line.startswith('"main"')), 0)
        return lines[main : main + 6]
    if kind is FailureKind.ERRORED and lines and not lines[0].startswith("Traceback "):
        return lines[:6]  # all but Python tell of the innermost call first
    return lines[-6:]


_FAILED = {
    FailureKind.TIMEOUT: "assign() does not return",
    FailureKind.CRASH: "assign() ends the process",
    FailureKind.MEMORY: "assign() exhausts its memory",
    FailureKind.GARBAGE: "assign() returns something that is not an assignment",
    FailureKind.ERRORED: "assign() raises",
}


def input_untouched(reply: Answer | Failure) -> Breach | None:
    return mutates(reply.mutated) if isinstance(reply, Answer) else None


def mutates(change: str | None) -> Breach | None:
    """Return the breach that a change of the input is."""
    if not change:
        return None
    return Breach(
        summary=f"assign() changes its input: {change}",
        because=(),
        expected="the input as it was before the call",
        actual=change,
    )


def deterministic(call: AssignorCall) -> Asking:
    again = yield AssignQuestion(call.protocol, call.cluster, call.group, again=True)
    if not isinstance(again, Answer) or same_owners(again.assignment, call.assignment):
        return None
    return differs(call, again.assignment, "asked the same of two processes")


def indifferent_to_order(call: AssignorCall) -> Asking:
    group = {
        member: replace(
            subscription,
            topics=subscription.topics[::-1],
            owned_partitions=subscription.owned_partitions[::-1],
        )
        for member, subscription in reversed(list(call.group.items()))
    }
    cluster = replace(call.cluster, topics=dict(reversed(list(call.cluster.topics.items()))))
    same = AssignQuestion(call.protocol, call.cluster, call.group)
    reverse = AssignQuestion(call.protocol, cluster, group)
    other = yield reverse
    if not isinstance(other, Answer) or same_owners(other.assignment, call.assignment):
        return None
    for question, answer in ((same, call.assignment), (reverse, other.assignment)):
        again = yield question  # who answers at random does so in any order
        if not isinstance(again, Answer) or not same_owners(again.assignment, answer):
            return None
    had = "partitions" if call.protocol in SERVED else "claims"
    return differs(call, other.assignment, f"asked with members, topics and {had} in reverse order")


def stale_claims_ignored(call: AssignorCall) -> Asking:
    stale = {
        (m, p)
        for p, claims in call.claimants.items()
        for m in claims
        if m not in call.holders[p] and len(call.holders[p]) == 1
    }
    if not stale:
        return None
    group = {
        m: replace(s, owned_partitions=tuple(p for p in s.owned_partitions if (m, p) not in stale))
        for m, s in call.group.items()
    }
    claims = {
        m: StatedClaim(tuple(p for p in c.partitions if (m, p) not in stale), c.generation)
        for m, c in call.claims.items()
    }
    answer = yield AssignQuestion(call.protocol, call.cluster, group)
    if not isinstance(answer, Answer):
        return None
    without = AssignorCall(
        protocol=call.protocol, cluster=call.cluster, group=group, claims=claims, assignment=answer.assignment
    )
    lost = max(0, without.kept - call.kept)
    delayed = max(0, len(call.withheld) - len(without.withheld))
    if not lost and not delayed:
        return None
    return Breach(
        summary=f"superseded claims cost {lost} valid ones and withhold {delayed} more partitions",
        because=(
            f"superseded: {listed(f'{m}: {p}' for m, p in sorted(stale))}",
            f"with them {everything(call.assignment)}",
            f"without them {everything(answer.assignment)}",
        ),
        expected="the same claims kept with and without superseded ones",
        actual=f"{call.kept} kept instead of {without.kept}",
        partitions=tuple(p for _, p in sorted(stale)),
    )
