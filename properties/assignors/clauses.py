"""The contract of an assignor, as a table of named clauses that a program can check.

A clause is one sentence, one id, one level and one function. The functions are pure; the three
scopes say what they are shown: one call, one call and the right to ask again, or a whole history.
``TABLE`` is the single place where clauses are registered; a duplicate id is an error at import.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from itertools import pairwise
from typing import Any

from rebalance.model.assignor import Promise
from rebalance.model.values import GroupAssignment, RebalanceProtocol, TopicPartition
from rebalance.properties.assignors import oracles
from rebalance.properties.assignors.calls import (
    Answer,
    Ask,
    AssignorCall,
    Failure,
    FailureKind,
    StatedClaim,
    once,
)
from rebalance.properties.assignors.scenarios import Scenario
from rebalance.properties.verdict import Level

EAGER, COOPERATIVE = RebalanceProtocol.EAGER, RebalanceProtocol.COOPERATIVE
BOTH = (EAGER, COOPERATIVE)


class Scope(StrEnum):
    """What a clause is shown, and therefore how it is checked."""

    CALL = "call"  # every answered call
    REPLY = "reply"  # every reply, answered or not
    RELATION = "relation"  # a call and further questions about it
    REPEAT = "repeat"  # a call and the right to put it to another process of the target
    HISTORY = "history"  # all calls of a scenario, the undisturbed ones at its end included


@dataclass(frozen=True, slots=True, kw_only=True)
class Breach:
    """One way in which a clause does not hold; ``partitions`` are those to look at in a chart."""

    summary: str
    because: tuple[str, ...] = ()
    expected: str = ""
    actual: str = ""
    partitions: tuple[TopicPartition, ...] = ()
    gap: int = 0
    """Distance from the optimum, where the clause measures one."""


@dataclass(frozen=True, slots=True)
class History:
    """All calls of one scenario; those from ``settling`` on are undisturbed."""

    calls: tuple[AssignorCall, ...]
    settling: int
    settled: int | None
    """Index of the first undisturbed call after which nobody has to revoke; ``None``: never."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
    """One sentence that must hold of an assignor.

    ``promises``: asked only of targets that promise all of these (``Promise``). ``check`` takes
    what ``scope`` says and returns the breach or ``None``.
    """

    id: str
    level: Level
    scope: Scope
    sentence: str
    rule: str
    """Where the sentence comes from: KIP and section."""
    link: str
    check: Callable[..., Breach | None]
    protocols: tuple[RebalanceProtocol, ...] = BOTH
    promises: frozenset[Promise] = frozenset()

    def applies(self, protocol: RebalanceProtocol, promises: Iterable[Promise]) -> bool:
        """Whether a target with these promises is asked for this clause under ``protocol``."""
        return protocol in self.protocols and self.promises <= frozenset(promises)


class Violation(AssertionError):
    """A clause broken by a target, raised with everything that is needed to show and replay it.

    Raise through ``violation``: one subclass per clause, so that Hypothesis keeps two broken clauses
    apart and never shrinks from one into the other.
    """

    def __init__(self, clause: Clause, breach: Breach, scenario: Scenario) -> None:
        lines = [f"{clause.id} {breach.summary}", f"  rule     {clause.sentence}"]
        lines += [f"  because  {line}" for line in breach.because]
        super().__init__("\n".join(lines))
        self.clause, self.breach, self.scenario = clause, breach, scenario


@cache
def _violation_type(clause_id: str) -> type[Violation]:
    prefix = clause_id.replace("/", " ").title().replace(" ", "")
    return type(f"{prefix}Violation", (Violation,), {"__module__": __name__})


def violation(clause: Clause, breach: Breach, scenario: Scenario) -> Violation:
    """The exception for one breach."""
    return _violation_type(clause.id)(clause, breach, scenario)


# --- one call -------------------------------------------------------------------------------------


@once
def exclusive(call: AssignorCall) -> Breach | None:
    if len(call.granted) == sum(map(len, call.assignment.values())):
        return None
    for partition, members in sorted(call.granted.items()):
        if len(members) > 1:
            who = " and ".join(members) if len(set(members)) > 1 else f"{members[0]} twice"
            return Breach(
                summary=f"{partition} is assigned to {who}",
                because=(f"assign() returned {_grants(call, set(members))}",),
                expected=f"{partition} with one member",
                actual=f"{partition} listed {len(members)} times",
                partitions=(partition,),
            )
    return None


@once
def only_to_subscribers(call: AssignorCall) -> Breach | None:
    for member, partitions in sorted(call.assignment.items()):
        if member not in call.group:
            if not partitions:
                continue  # the broker ignores it
            return Breach(
                summary=f"{member!r} is assigned {_count(len(partitions), 'partition')} and is not in the "
                f"group",
                because=(f"the group is {_names(call.group)}",),
                expected=f"only {_names(call.group)}",
                actual=f"an assignment for {member!r}",
                partitions=partitions[:1],
            )
        topics = call.group[member].topics
        if {topic for topic, _ in partitions}.issubset(topics):
            continue
        for partition in sorted(partitions):
            if partition.topic not in topics:
                return Breach(
                    summary=f"{partition} is assigned to {member}, which does not subscribe to "
                    f"{partition.topic}",
                    because=(f"{member} subscribes to {_names(topics, 'nothing')}",),
                    expected=f"{partition} with {_names(call.subscribers.get(partition.topic, ()))}",
                    actual=f"{member}: {partition}",
                    partitions=(partition,),
                )
    return None


@once
def only_existing(call: AssignorCall) -> Breach | None:
    if call.granted.keys() <= call.existing:
        return None
    for member, partitions in sorted(call.assignment.items()):
        for partition in sorted(partitions):
            if partition in call.existing:
                continue
            count = call.cluster.partition_count(partition.topic)
            # KIP-429, leader 2.6: what is claimed of a topic that the leader does not know may be given
            # back as it is. Of a topic that it knows it also knows the number: the rest is gone, and who
            # is told to consume it gets errors for ever.
            if partition.topic not in call.cluster.topics and member in call.holders.get(partition, ()):
                continue
            return Breach(
                summary=f"{partition} is assigned to {member} and does not exist",
                because=(f"the leader knows {_count(count, 'partition')} of {partition.topic}",),
                expected="only partitions that the leader has metadata for",
                actual=f"{member}: {partition}",
                partitions=(partition,),
            )
    return None


def answered(call: AssignorCall) -> Breach | None:
    left_out = [member for member in call.group if member not in call.assignment]
    if not left_out:
        return None
    return Breach(
        summary=f"{_names(left_out)} left out of the answer",
        because=(
            "the broker sends empty bytes to a member that the leader does not mention",
            "the Java client cannot read these: IllegalStateException in the member's poll()",
        ),
        expected="an assignment for every member of the group, possibly an empty one",
        actual=f"assignments for {_names(sorted(call.assignment))}",
    )


@once
def complete(call: AssignorCall) -> Breach | None:
    for partition in call.withheld:
        claims = call.claimants.get(partition, {}) if call.protocol is COOPERATIVE else {}
        if not claims:
            return Breach(
                summary=f"{partition} is assigned to nobody, and nobody has to revoke it first",
                because=(
                    f"subscribers of {partition.topic}: {_names(call.subscribers[partition.topic])}",
                    f"no member claims {partition}",
                ),
                expected=f"{partition} with one of {_names(call.subscribers[partition.topic])}",
                actual=f"{partition} withheld",
                partitions=(partition,),
            )
    return None


def revoke_first(call: AssignorCall) -> Breach | None:
    # A grant to one of several members with the newest claim is left alone: they may both own it
    # already, nobody can tell who does, and no owner is added.
    for partition in _granted_and_claimed(call):
        claims = call.claimants[partition]
        for member in call.granted[partition]:
            if member not in claims:
                holders = _names(call.holders[partition])
                own = "still owns" if len(call.holders[partition]) == 1 else "still own"
                return Breach(
                    summary=f"{partition} is granted to {member} while {holders} {own} it",
                    because=(
                        *_claims_of(call, partition),
                        f"assign() returned {_grants(call, {member, *call.holders[partition]})}",
                        f"no revocation of {partition} by {holders} comes before it: two owners from here",
                    ),
                    expected=f"{member} without {partition}; a second rebalance gives it",
                    actual=f"{member}: {partition}",
                    partitions=(partition,),
                )
    return None


def _granted_and_claimed(call: AssignorCall) -> list[TopicPartition]:
    return sorted(call.granted.keys() & call.claimants.keys())


def newest_claim_wins(call: AssignorCall) -> Breach | None:
    for partition in _granted_and_claimed(call):
        claims = call.claimants[partition]
        for member in call.granted[partition]:
            if member in claims and member not in call.holders[partition]:
                holders = _names(call.holders[partition])
                return Breach(
                    summary=f"{partition} is granted to {member}, whose claim is of "
                    f"{_label(claims[member])}, "
                    f"over the newer claim of {holders}",
                    because=(*_claims_of(call, partition), f"assign() returned {_grants(call, {member})}"),
                    expected=f"{partition} with {holders}, or with nobody until it is revoked",
                    actual=f"{member}: {partition}",
                    partitions=(partition,),
                )
    return None


def balanced(call: AssignorCall) -> Breach | None:
    if not _final(call):
        return None
    move = oracles.transferable(call)
    if move is None:
        return None
    giver, taker, topic = move
    return Breach(
        summary=f"{giver} has {call.loads[giver]} partitions and {taker}, which could take one of {topic}, "
        f"{call.loads[taker]}",
        because=(f"{giver} and {taker} both subscribe to {topic}", f"loads are {_loads(call)}"),
        expected="no member that could hand a partition to one with two fewer",
        actual=_loads(call),
    )


def balanced_equal(call: AssignorCall) -> Breach | None:
    return balanced(call) if call.equal_subscriptions else None


def balanced_per_topic(call: AssignorCall) -> Breach | None:
    if not _final(call):
        return None
    for topic, members in sorted(call.subscribers.items()):
        counts = {m: sum(p.topic == topic for p in call.assignment.get(m, ())) for m in members}
        if max(counts.values()) - min(counts.values()) > 1:
            return Breach(
                summary=f"{topic} is spread {_pairs(counts)}",
                because=(f"{topic} has {call.cluster.partition_count(topic)} partitions",),
                expected="numbers that differ by at most one",
                actual=_pairs(counts),
            )
    return None


def co_partitioned(call: AssignorCall) -> Breach | None:
    if not _final(call):
        return None
    alike: dict[tuple[int, tuple[str, ...]], list[str]] = {}
    for topic, members in sorted(call.subscribers.items()):
        alike.setdefault((call.cluster.partition_count(topic), members), []).append(topic)
    for (count, _), topics in alike.items():
        for index in range(count):
            owners = {t: call.granted.get(TopicPartition(t, index), ()) for t in topics}
            if len(set(owners.values())) > 1:
                one, other = sorted(owners, key=lambda t: (owners[t], t))[:: len(owners) - 1]
                return Breach(
                    summary=f"{one}-{index} and {other}-{index} are with {_names(owners[one])} and "
                    f"{_names(owners[other])}",
                    because=(f"{_names(topics)} have equal partition counts and equal subscribers",),
                    expected="equal indexes of co-partitioned topics with one member",
                    actual=_pairs({f"{t}-{index}": _names(m) for t, m in owners.items()}),
                    partitions=(TopicPartition(one, index), TopicPartition(other, index)),
                )
    return None


def sticky(call: AssignorCall) -> Breach | None:
    if call.kept == len(call.valid) or not _well_placed(call):
        return None
    best = oracles.optimum(call)
    if call.kept >= best.kept:
        return None
    return Breach(
        summary=f"{_count(best.kept - call.kept, 'partition')} moved more than needed: {call.kept} of "
        f"{len(call.valid)} valid claims kept, {best.kept} possible",
        because=(
            f"loads are {_loads(call)}, the best possible are {', '.join(map(str, best.loads))}",
            f"moved: {_names(p for p, m in sorted(call.valid.items()) if m not in call.granted.get(p, ()))}",
        ),
        expected=f"{best.kept} claims kept under the best balance",
        actual=f"{call.kept} kept",
        gap=best.kept - call.kept,
    )


def rack_aligned(call: AssignorCall) -> Breach | None:
    if not _final(call) or not oracles.rack_matters(call):
        return None
    found = oracles.matched(call)
    if found == oracles.matchable(call) or oracles.best_matched(call):
        return None
    best = oracles.optimum(call)
    if tuple(sorted(call.loads.values(), reverse=True)) != best.loads or found >= best.matched:
        return None  # an uneven assignment can match more racks than the best balance allows
    return Breach(
        summary=f"{found} partitions are with a member in a replica's rack, {best.matched} could be",
        because=(f"racks are {_pairs({m: s.rack_id for m, s in call.group.items()})}",),
        expected=f"{best.matched} matches at the same balance",
        actual=f"{found} matches",
        gap=best.matched - found,
    )


# --- a reply --------------------------------------------------------------------------------------


def total(reply: Answer | Failure) -> Breach | None:
    if isinstance(reply, Answer) or reply.kind is FailureKind.SKIPPED:
        return None
    lines = reply.detail.strip().splitlines()
    return Breach(
        summary=f"{_FAILED[reply.kind]}: {reply.message}",
        because=tuple(_telling(reply.kind, lines)),
        expected="an assignment, for every well-formed input, within its time and memory",
        actual=str(reply.kind),
    )


def _telling(kind: FailureKind, lines: Sequence[str]) -> Sequence[str]:
    """The lines of a report that say where it happened."""
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
    if isinstance(reply, Answer) and reply.mutated:
        return Breach(
            summary=f"assign() changes its input: {reply.mutated}",
            because=(),
            expected="the input as it was before the call",
            actual=reply.mutated,
        )
    return None


# --- a call and further questions -----------------------------------------------------------------


def deterministic(call: AssignorCall, ask: Ask) -> Breach | None:
    again = ask(call.protocol, call.cluster, call.group)
    if not isinstance(again, Answer) or _same(again.assignment, call.assignment):
        return None
    return _differs(call, again.assignment, "asked the same of two processes")


def indifferent_to_order(call: AssignorCall, ask: Ask) -> Breach | None:
    group = {
        member: replace(
            subscription,
            topics=subscription.topics[::-1],
            owned_partitions=subscription.owned_partitions[::-1],
        )
        for member, subscription in reversed(list(call.group.items()))
    }
    cluster = replace(call.cluster, topics=dict(reversed(list(call.cluster.topics.items()))))
    other = ask(call.protocol, cluster, group)
    if not isinstance(other, Answer) or _same(other.assignment, call.assignment):
        return None
    return _differs(call, other.assignment, "asked with members, topics and claims in reverse order")


def stale_claims_ignored(call: AssignorCall, ask: Ask) -> Breach | None:
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
    answer = ask(call.protocol, call.cluster, group)
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
            f"superseded: {_names(f'{m}: {p}' for m, p in sorted(stale))}",
            f"with them {_all(call.assignment)}",
            f"without them {_all(answer.assignment)}",
        ),
        expected="the same claims kept with and without superseded ones",
        actual=f"{call.kept} kept instead of {without.kept}",
        partitions=tuple(p for _, p in sorted(stale)),
    )


# --- a history ------------------------------------------------------------------------------------


def bound(history: History) -> int:
    """Undisturbed rounds within which a COOPERATIVE group must settle.

    Equal subscriptions: one round to revoke, one to grant. Unequal subscriptions or racks: one more,
    which every shipped implementation needs now and then (KAFKA-8767). One more again beside EAGER
    members, which hide in each round what they were given in the one before.
    """
    last = history.calls[-1]
    rounds = 2 if last.equal_subscriptions and not oracles.rack_matters(last) else 3
    return rounds + _hides(history.calls[history.settling :])


def _hides(calls: Sequence[AssignorCall]) -> bool:
    """Whether a member claims nothing although the call before gave it something."""
    return any(
        before.assignment.get(member) and not claim.partitions
        for before, after in pairwise(calls)
        for member, claim in after.claims.items()
    )


def settles(history: History) -> Breach | None:
    rounds = bound(history)
    if history.settled is not None and history.settled - history.settling < rounds:
        last = history.calls[history.settled]
        if not last.withheld:
            return None
        return Breach(
            summary=f"the group settles with {_names(last.withheld)} assigned to nobody",
            because=("nobody revokes anything in that round, so no rebalance follows it",),
            expected="every partition of a subscribed topic owned",
            actual=f"{_count(len(last.withheld), 'partition')} stranded",
            partitions=last.withheld,
        )
    return _still_revokes(history, rounds)


def _still_revokes(history: History, rounds: int) -> Breach:
    undisturbed = history.calls[history.settling :]
    moved = tuple(sorted({p for c in undisturbed[rounds - 1 :] for ps in c.revoked.values() for p in ps}))
    return Breach(
        summary=f"the group still revokes in undisturbed round {rounds}: {_names(moved)}",
        because=tuple(
            f"round {number}: " + ("; ".join(f"{m} revokes {_names(r)}" for m, r in c.revoked.items()) or "-")
            for number, c in enumerate(undisturbed, 1)
        ),
        expected=f"nothing left to revoke in round {rounds}",
        actual="settled in round " + str(history.settled - history.settling + 1)
        if history.settled is not None
        else f"not settled in {len(undisturbed)} rounds",
        partitions=moved,
    )


def settled_is_final(history: History) -> Breach | None:
    if history.settled is None or history.settled + 1 >= len(history.calls):
        return None
    before, after = history.calls[history.settled], history.calls[history.settled + 1]
    if before.withheld or _same(before.assignment, after.assignment):
        return None
    # What EAGER members hold beside COOPERATIVE ones nobody can see: until the claims of the others
    # are the same twice, it may move once more.
    if before.claims != after.claims and _hides((before, after)):
        return None
    return _differs(after, before.assignment, "after the rebalance before it")


def withheld_in_vain(history: History) -> Breach | None:
    undisturbed = history.calls[history.settling :]
    for before, after in pairwise(undisturbed):
        for partition in before.withheld:
            holder = before.valid.get(partition)
            if holder is not None and after.granted.get(partition) == (holder,):
                return Breach(
                    summary=f"{partition} is taken from {holder} and given back in the next round",
                    because=(
                        *_claims_of(before, partition),
                        f"assign() returned {_grants(before, {holder})}",
                        f"and after the revocation {_grants(after, {holder})}",
                    ),
                    expected=f"{partition} with {holder} in both rounds",
                    actual=f"{partition} revoked for nobody",
                    partitions=(partition,),
                )
    return None


def settles_in_two(history: History) -> Breach | None:
    if history.settled is None or history.settled - history.settling < 2:
        return None
    return replace(
        _still_revokes(history, 2),
        summary=f"the group needs {history.settled - history.settling + 1} undisturbed rounds to settle",
        expected="at most two: one to revoke, one to grant",
    )


# --- words ----------------------------------------------------------------------------------------


def _well_placed(call: AssignorCall) -> bool:
    """Quality is measured on sound assignments only; an unsound one is reported as that."""
    return not (exclusive(call) or only_to_subscribers(call) or only_existing(call) or complete(call))


def _final(call: AssignorCall) -> bool:
    """Whether the result is to be judged: nothing withheld (else the round after it is), and sound."""
    return not call.withheld and _well_placed(call)


def _same(one: GroupAssignment, other: GroupAssignment) -> bool:
    members = one.keys() | other.keys()
    return one == other or all(Counter(one.get(m, ())) == Counter(other.get(m, ())) for m in members)


def _differs(call: AssignorCall, other: GroupAssignment, how: str) -> Breach:
    here, there = _holders(call.assignment), _holders(other)
    changed = tuple(sorted(p for p in here.keys() | there.keys() if here.get(p) != there.get(p)))
    return Breach(
        summary=f"{_count(len(changed), 'partition')} with another owner ({_names(changed)}): {how}",
        because=(f"once {_all(other)}", f"once {_all(call.assignment)}"),
        expected="the same assignment",
        actual=_count(len(changed), "difference"),
        partitions=changed,
    )


def _holders(assignment: GroupAssignment) -> dict[TopicPartition, tuple[str, ...]]:
    found: dict[TopicPartition, list[str]] = {}
    for member, partitions in sorted(assignment.items()):
        for partition in partitions:
            found.setdefault(partition, []).append(member)
    return {p: tuple(m) for p, m in found.items()}


def _claims_of(call: AssignorCall, partition: TopicPartition) -> Iterator[str]:
    for member, generation in sorted(call.claimants[partition].items()):
        yield f"{member} joined claiming {partition}, {_label(generation)}"


def _label(generation: int) -> str:
    return f"generation {generation}" if generation >= 0 else "no generation"


def _grants(call: AssignorCall, members: Iterable[str]) -> str:
    return "  ".join(f"{m}: {{{_names(sorted(call.assignment.get(m, ())), '')}}}" for m in sorted(members))


def _all(assignment: GroupAssignment) -> str:
    shown = [f"{m}: {{{_names(sorted(p), '')}}}" for m, p in sorted(assignment.items())]
    return "  ".join(shown[:8]) + (f"  and {len(shown) - 8} more" if len(shown) > 8 else "")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _names(items: Iterable[Any], none: str = "nobody") -> str:
    shown = [str(item) for item in items]
    return ", ".join(shown[:8]) + (f" and {len(shown) - 8} more" if len(shown) > 8 else "") or none


def _pairs(values: Mapping[str, Any]) -> str:
    return _names(f"{key} {value}" for key, value in sorted(values.items()))


def _loads(call: AssignorCall) -> str:
    return _pairs(call.loads)


# --- the table ------------------------------------------------------------------------------------

_WIKI = "https://cwiki.apache.org/confluence/display/KAFKA/"
KIP_54 = _WIKI + "KIP-54+-+Sticky+Partition+Assignment+Strategy"
KIP_429 = _WIKI + "KIP-429%3A+Kafka+Consumer+Incremental+Rebalance+Protocol"
KIP_792 = _WIKI + "KIP-792%3A+Add+%22generation%22+field+into+consumer+protocol"
KIP_881 = _WIKI + "KIP-881%3A+Rack-aware+Partition+Assignment+for+Kafka+Consumers"
ASSIGNOR = "https://kafka.apache.org/documentation/#consumerconfigs_partition.assignment.strategy"
ONLY_COOPERATIVE = (COOPERATIVE,)

TABLE: tuple[Clause, ...] = (
    Clause(
        id="assign/1", level=Level.SAFETY, scope=Scope.CALL,
        sentence="a partition is assigned to at most one member, and once",
        rule="ConsumerPartitionAssignor.assign", link=ASSIGNOR, check=exclusive,
    ),
    Clause(
        id="assign/2", level=Level.SAFETY, scope=Scope.CALL,
        sentence="a partition is assigned only to a member of the group that subscribes to its topic",
        rule="ConsumerPartitionAssignor.assign", link=ASSIGNOR, check=only_to_subscribers,
    ),
    Clause(
        id="assign/3", level=Level.LIVENESS, scope=Scope.CALL,
        sentence="only partitions that exist are assigned; those of unknown topics may be given back to "
        "their owner",
        rule="KIP-429, leader 2.6", link=KIP_429, check=only_existing,
    ),
    Clause(
        id="assign/4", level=Level.LIVENESS, scope=Scope.REPLY,
        sentence="an assignment comes back for every well-formed input, within its time and memory",
        rule="KIP-429, leader 2.2", link=KIP_429, check=total,
    ),
    Clause(
        id="assign/5", level=Level.SAFETY, scope=Scope.REPLY,
        sentence="subscriptions and metadata are left as they were",
        rule="ConsumerPartitionAssignor.assign", link=ASSIGNOR, check=input_untouched,
    ),
    Clause(
        id="assign/6", level=Level.QUALITY, scope=Scope.REPEAT,
        sentence="the same input gives the same assignment, in any process and whatever was asked before",
        rule="KIP-54, algorithm", link=KIP_54, check=deterministic,
    ),
    Clause(
        id="assign/7", level=Level.QUALITY, scope=Scope.RELATION,
        sentence="the order of members, topics and claims changes nothing",
        rule="KIP-54, algorithm", link=KIP_54, check=indifferent_to_order,
    ),
    Clause(
        id="assign/8", level=Level.LIVENESS, scope=Scope.CALL,
        sentence="every member of the group gets an assignment, possibly an empty one",
        rule="ConsumerCoordinator.onJoinComplete", link=ASSIGNOR, check=answered,
    ),
    Clause(
        id="kip429/leader/3", level=Level.QUALITY, scope=Scope.HISTORY,
        sentence="only a partition that changes owner is withheld",
        rule="KIP-429, leader 2.3", link=KIP_429, check=withheld_in_vain, protocols=ONLY_COOPERATIVE,
    ),
    Clause(
        id="kip429/leader/4", level=Level.SAFETY, scope=Scope.CALL,
        sentence="a partition whose owner changes is withheld until the old owner has revoked it",
        rule="KIP-429, leader 2.4", link=KIP_429, check=revoke_first, protocols=ONLY_COOPERATIVE,
    ),
    Clause(
        id="kip429/leader/5", level=Level.LIVENESS, scope=Scope.CALL,
        sentence="a partition that nobody has to revoke is assigned at once",
        rule="KIP-429, leader 2.5", link=KIP_429, check=complete,
    ),
    Clause(
        id="kip792/claim/1", level=Level.SAFETY, scope=Scope.CALL,
        sentence="of two claims to one partition the newer generation wins",
        rule="KIP-792, proposed changes", link=KIP_792, check=newest_claim_wins, protocols=ONLY_COOPERATIVE,
    ),
    Clause(
        id="kip792/claim/2", level=Level.QUALITY, scope=Scope.RELATION,
        sentence="superseded claims cost nobody a valid one and delay nothing",
        rule="KIP-792, proposed changes", link=KIP_792, check=stale_claims_ignored,
        protocols=ONLY_COOPERATIVE,
    ),
    Clause(
        id="kip429/converge/1", level=Level.LIVENESS, scope=Scope.HISTORY,
        sentence="left alone, the group settles: in 2 rounds, 3 if unequal or racked, one more beside "
        "EAGER members",
        rule="KIP-429, member 3.3", link=KIP_429, check=settles, protocols=ONLY_COOPERATIVE,
    ),
    Clause(
        id="kip429/converge/2", level=Level.LIVENESS, scope=Scope.HISTORY,
        sentence="once settled, a further rebalance changes nothing",
        rule="KIP-429, member 3.3", link=KIP_429, check=settled_is_final, protocols=ONLY_COOPERATIVE,
    ),
    Clause(
        id="kip429/converge/3", level=Level.QUALITY, scope=Scope.HISTORY,
        sentence="left alone, the group settles in two rounds, also with unequal subscriptions and racks",
        rule="KIP-429, leader 2.4", link=KIP_429, check=settles_in_two, protocols=ONLY_COOPERATIVE,
    ),
    Clause(
        id="kip54/balance/1", level=Level.QUALITY, scope=Scope.CALL,
        sentence="no member could hand a partition to one that has two fewer",
        rule="KIP-54, balance", link=KIP_54, check=balanced, promises=frozenset({Promise.BALANCED}),
    ),
    Clause(
        id="kip54/sticky/1", level=Level.QUALITY, scope=Scope.CALL,
        sentence="as many valid claims are kept as the best balance allows",
        rule="KIP-54, stickiness", link=KIP_54, check=sticky, promises=frozenset({Promise.STICKY}),
    ),
    Clause(
        id="kip881/rack/1", level=Level.QUALITY, scope=Scope.CALL,
        sentence="as many partitions are with a member in a replica's rack as the balance allows",
        rule="KIP-881, proposed changes", link=KIP_881, check=rack_aligned,
        promises=frozenset({Promise.BALANCED, Promise.RACK_AWARE}),
    ),
    Clause(
        id="range/balance/1", level=Level.QUALITY, scope=Scope.CALL,
        sentence="the numbers of partitions of one topic differ by at most one between its subscribers",
        rule="RangeAssignor", link=ASSIGNOR, check=balanced_per_topic,
        promises=frozenset({Promise.BALANCED_PER_TOPIC}),
    ),
    Clause(
        id="range/copartition/1", level=Level.QUALITY, scope=Scope.CALL,
        sentence="equal indexes of topics with equal sizes and subscribers go to one member",
        rule="KIP-881, range", link=KIP_881, check=co_partitioned,
        promises=frozenset({Promise.CO_PARTITIONED}),
    ),
    Clause(
        id="roundrobin/balance/1", level=Level.QUALITY, scope=Scope.CALL,
        sentence="with equal subscriptions the numbers of partitions differ by at most one",
        rule="RoundRobinAssignor", link=ASSIGNOR, check=balanced_equal,
        promises=frozenset({Promise.BALANCED_EQUAL}),
    ),
)  # fmt: skip

CLAUSES: dict[str, Clause] = {clause.id: clause for clause in TABLE}
if len(CLAUSES) < len(TABLE):
    raise ValueError("properties.clauses: two clauses share an id")


def select(patterns: Sequence[str]) -> tuple[Clause, ...]:
    """Clauses at or below one of the paths (``kip429``, ``kip429/leader``), all when there is none.

    Raises ``ValueError`` naming a path that selects nothing.
    """
    for pattern in patterns:
        if not any(_below(clause.id, pattern) for clause in TABLE):
            raise ValueError(f"no clause is called {pattern!r} or lies below it; known: {', '.join(CLAUSES)}")
    return tuple(c for c in TABLE if not patterns or any(_below(c.id, p) for p in patterns))


def _below(clause_id: str, pattern: str) -> bool:
    path, wanted = clause_id.split("/"), pattern.strip("/").split("/")
    return path[: len(wanted)] == wanted
