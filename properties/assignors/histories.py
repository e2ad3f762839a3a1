"""Playing a scenario: a group lives through its rebalances, the target decides each, clauses judge.

The group here is the assignor's view of one, no more: who joins with which claims, and who learns
which part of the answer. Claims become stale for the reasons that make them stale in the field: a
SyncGroup that fails, a JoinGroup response that is lost, a member that stays silent
(``ConsumerCoordinator``, ``ClassicGroup``). The full protocol is the executable model's business.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rebalance.model import wire
from rebalance.model.assignor import Promise
from rebalance.model.values import (
    NO_GENERATION,
    Cluster,
    Partitions,
    Racks,
    RebalanceProtocol,
    Subscription,
    TopicPartition,
)
from rebalance.properties import oracles
from rebalance.properties.calls import Answer, Ask, Asker, Call, Claim, Failure, FailureKind, Reply
from rebalance.properties.clauses import Breach, Clause, History, Scope
from rebalance.properties.scenarios import (
    Event,
    Fault,
    FaultKind,
    Join,
    Leave,
    Member,
    Scenario,
    SetTopic,
    Subscribe,
    UserData,
)

EAGER, COOPERATIVE = RebalanceProtocol.EAGER, RebalanceProtocol.COOPERATIVE

MOST_ROUNDS = 6
"""Undisturbed rebalances after which a group that still moves is called unsettled."""

WriteUserData = Callable[[Partitions, int], bytes | Failure | None]
"""The target's own subscriptionUserData for (last assignment, its generation)."""

WriteFor = Callable[[Asker], WriteUserData]
"""The same as a member of a history asks it of its own assignor, which may remember more than that."""


@dataclass(frozen=True, slots=True)
class Writer:
    """What members of the target's kind write into userData, and what can be read from it.

    ``tells_claims``: it says what was owned, as the sticky assignor's does, so that an EAGER leader
    can be sticky. ``tells_generation``: it is the four bytes of the cooperative assignor before KIP-792,
    the age of the claims beside it. ``sticky_too``: members of another client may write StickyAssignor
    userData into the same group (librdkafka does, on cooperative-sticky); true unless the format is the
    target's own.
    """

    write: WriteUserData
    tells_claims: bool
    tells_generation: bool
    sticky_too: bool
    write_for: WriteFor | None = None
    """Asked instead of ``write`` where it is known which member asks."""

    @classmethod
    def of(cls, write: WriteUserData, write_for: WriteFor | None = None) -> Writer:
        """Find out by asking for the userData of two members that differ in what they owned."""
        owned = (TopicPartition("t", 0),)
        some, none = write(owned, 1), write((), 1)
        generation = wire.encode_cooperative_user_data(1)
        known = (None, generation, wire.encode_sticky_user_data(owned, 1))
        return cls(write, some != none, some == generation, some in known, write_for)


@dataclass(frozen=True, slots=True)
class Found:
    """A clause broken in the ``round``-th rebalance of a scenario (counted from 1)."""

    clause: Clause
    breach: Breach
    round: int


@dataclass(frozen=True, slots=True)
class Record:
    """What playing one scenario showed. ``found`` has at most one entry per clause, the first."""

    scenario: Scenario
    calls: tuple[Call, ...]
    found: tuple[Found, ...]
    witnesses: frozenset[str]
    skipped: str | None = None
    """Why the target declined, if it did; such a scenario judges nothing."""
    asked: int = 0
    claims: int = 0
    """Claims that could be kept, in all calls that stickiness was measured on; ``Breach.gap`` were not."""
    failure: Failure | None = None
    """The missing answer that ended the history, if one did."""

    def breach_of(self, clause_id: str) -> Found | None:
        """The breach of one clause, if the scenario shows it."""
        return next((f for f in self.found if f.clause.id == clause_id), None)


@dataclass(slots=True)
class _State:
    """One member while a scenario is played; ``joined`` and ``since`` are its two generations."""

    member: Member
    owned: Partitions
    joined: int  # of the last JoinGroup response it saw: the label of its claims (KIP-792)
    since: int  # in which ``last`` was assigned: what its assignor's userData says
    last: Partitions  # the last assignment its assignor was told of, kept when the member is not
    stored: tuple[Subscription, Claim] | None = None  # what the coordinator remembers of it


@dataclass(slots=True)
class _Group:
    scenario: Scenario
    topics: dict[str, tuple[Racks, ...]]
    members: dict[str, _State] = field(default_factory=dict)
    generation: int = 0


def play(
    scenario: Scenario,
    ask: Ask,
    writer: Writer | None,
    clauses: Sequence[Clause],
    promises: Iterable[Promise],
    *,
    again: Ask | None = None,
) -> Record:
    """Play ``scenario`` against a target and judge every answer.

    ``ask`` puts one question to the target, ``again`` puts it to another process of the same target
    (``None``: there is none, the same is asked). ``writer`` knows its userData (``None``: it has none).
    """
    promised = frozenset(promises)
    asked_for = [c for c in clauses if c.applies(scenario.protocol, promised)]
    judge = _Judge(asked_for, ask, again or ask)
    group = _Group(scenario, dict(scenario.topics))
    for member in scenario.members:
        _join(group, member)
    calls: list[Call] = []
    failure: Failure | None = None
    try:
        for events in scenario.rounds:
            faults = _apply(group, events)
            _rebalance(group, faults, judge, writer, calls, disturbed=True)
        if calls:
            judge.repeat(calls[-1])
        settling = len(calls)
        settled = None
        while len(calls) - settling < MOST_ROUNDS:
            if not _rebalance(group, {}, judge, writer, calls, disturbed=False):
                break
            if scenario.protocol is EAGER or not calls[-1].revoked:
                settled = len(calls) - 1
                _rebalance(group, {}, judge, writer, calls, disturbed=False)
                break
        if len(calls) > settling:
            judge.history(History(tuple(calls), settling, settled))
        if settled is not None and settled > settling:
            judge.witnesses.add("follow-up rebalance")
    except _NoAnswer as stop:
        failure = stop.failure
        judge.witnesses.add(f"no answer: {failure.kind}")
        if failure.kind is FailureKind.SKIPPED:
            return Record(scenario, tuple(calls), (), frozenset(), failure.message, judge.asked)
    return Record(
        scenario,
        tuple(calls),
        tuple(judge.found.values()),
        frozenset(judge.witnesses),
        None,
        judge.asked,
        judge.claims,
        failure,
    )


def from_round(record: Record, number: int) -> Scenario:
    """The scenario that begins where the ``number``-th call of ``record`` (from 1) was made: what its
    members claimed there are the claims they arrive with. A shorter story of the same breach, if it
    still shows it."""
    scenario, call = record.scenario, record.calls[number - 1]
    joined = (e.member for events in scenario.rounds for e in events if isinstance(e, Join))
    known = {m.id: m for m in (*scenario.members, *joined)}
    members = tuple(
        replace(
            known[member],
            topics=subscription.topics,
            owned=call.claims[member].partitions,
            generation=call.claims[member].generation,
        )
        for member, subscription in call.group.items()
    )
    return replace(
        scenario,
        topics=dict(call.cluster.topics),
        members=members,
        rounds=((), *scenario.rounds[number:]),
    )


class _NoAnswer(Exception):
    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class _Judge:
    """Holds answers against the clauses and remembers the first breach of each."""

    def __init__(self, clauses: Sequence[Clause], ask: Ask, again: Ask) -> None:
        self.by_scope = {scope: [c for c in clauses if c.scope is scope] for scope in Scope}
        self._ask, self._again = ask, again
        self.found: dict[str, Found] = {}
        self.witnesses: set[str] = set()
        self.asked = self.round = self.claims = 0

    def reply(self, reply: Reply) -> Answer:
        self.asked += 1
        for clause in self.by_scope[Scope.REPLY]:
            self._note(clause, clause.check(reply))
        if isinstance(reply, Failure):
            raise _NoAnswer(reply)
        return reply

    def ask(self, protocol: RebalanceProtocol, cluster: Cluster, group: Mapping[str, Subscription]) -> Answer:
        return self.reply(self._ask(protocol, cluster, group))

    def again(
        self, protocol: RebalanceProtocol, cluster: Cluster, group: Mapping[str, Subscription]
    ) -> Answer:
        return self.reply(self._again(protocol, cluster, group))

    def call(self, call: Call, disturbed: bool) -> None:
        self.witnesses |= _witnesses(call)
        for clause in self.by_scope[Scope.CALL]:
            if clause.id not in self.found:
                breach = clause.check(call)
                self._note(clause, breach)
                if Promise.STICKY in clause.promises:
                    self.claims += call.kept + (breach.gap if breach else 0)
        for clause in self.by_scope[Scope.RELATION] if disturbed else ():
            if clause.id not in self.found:
                self._note(clause, clause.check(call, self.ask))

    def repeat(self, call: Call) -> None:
        """Put one question of a history again, to a process that was not asked the others."""
        for clause in self.by_scope[Scope.REPEAT]:
            self._note(clause, clause.check(call, self.again))

    def history(self, history: History) -> None:
        self.round = len(history.calls) if history.settled is None else history.settled + 1
        for clause in self.by_scope[Scope.HISTORY]:
            self._note(clause, clause.check(history))

    def _note(self, clause: Clause, breach: Breach | None) -> None:
        if breach is not None and clause.id not in self.found:
            self.found[clause.id] = Found(clause, breach, self.round)


def _join(group: _Group, member: Member) -> None:
    group.members[member.id] = _State(
        member,
        () if _eager(group, member) else member.owned,
        member.generation,
        member.generation,
        member.owned,
    )
    group.generation = max(group.generation, member.generation)


def _eager(group: _Group, member: Member) -> bool:
    """Whether it gives up all before joining; so does who cannot even say what it owns (version 0)."""
    return member.eager or member.version == 0 or group.scenario.protocol is EAGER


def _apply(group: _Group, events: Sequence[Event]) -> dict[str, FaultKind]:
    """Carry out what happens before a rebalance; what goes wrong in it is returned.

    Events about members that are not there do nothing, so that minimising may drop a member first
    and its events later.
    """
    faults: dict[str, FaultKind] = {}
    for event in events:
        match event:
            case Join(member) if member.id not in group.members:
                _join(group, member)
            case Leave(member_id):
                group.members.pop(member_id, None)
            case Subscribe(member_id, topics) if member_id in group.members:
                state = group.members[member_id]
                state.member = replace(state.member, topics=topics)
                # KIP-429, client 1.1: what is no longer subscribed is revoked before joining.
                state.owned = tuple(p for p in state.owned if p.topic in topics)
            case SetTopic(topic, partitions):
                group.topics.pop(topic, None)
                if partitions is not None:
                    group.topics[topic] = partitions
            case Fault(kind, member_id) if member_id in group.members:
                faults[member_id] = kind
            case _:
                pass
    return faults


def _rebalance(
    group: _Group,
    faults: Mapping[str, FaultKind],
    judge: _Judge,
    writer: Writer | None,
    calls: list[Call],
    disturbed: bool,
) -> bool:
    """One rebalance, from JoinGroup to SyncGroup; whether there was anybody to take part."""
    subscriptions: dict[str, Subscription] = {}
    claims: dict[str, Claim] = {}
    judge.round = len(calls) + 1
    for member_id, state in group.members.items():
        fault = faults.get(member_id)
        if fault in (FaultKind.SILENT, FaultKind.GHOST):
            if state.member.instance is None or state.stored is None:
                continue
            # KIP-345: a static member that misses the join phase is kept as it last presented itself.
            judge.witnesses.add("silent static member")
        else:
            state.stored = _present(group, state, writer, judge)
        subscriptions[member_id], claims[member_id] = state.stored
    if not subscriptions:
        return False
    group.generation += 1
    cluster = Cluster(dict(group.topics))
    answer = judge.ask(group.scenario.protocol, cluster, subscriptions)
    call = Call(group.scenario.protocol, cluster, subscriptions, claims, answer.assignment)
    calls.append(call)
    judge.call(call, disturbed)
    for member_id, state in group.members.items():
        _learn(group, state, faults.get(member_id), answer.assignment.get(member_id, ()), judge)
    return True


def _present(
    group: _Group, state: _State, writer: Writer | None, judge: _Judge
) -> tuple[Subscription, Claim]:
    """The member's JoinGroup metadata as the leader reads it, and the claim that is in it."""
    member = state.member
    user_data, since = _user_data(group, state, writer, judge)
    sent = Subscription(
        member.topics,
        user_data,
        state.owned,
        state.joined if member.version >= 2 else NO_GENERATION,
        member.rack if member.version >= 3 else None,
        member.instance,
        member.version,
    )
    if group.scenario.protocol is EAGER:
        if user_data is None or writer is None or not writer.tells_claims:
            return sent, Claim((), NO_GENERATION)
        return sent, Claim(state.last, max(since, NO_GENERATION))
    generation = sent.generation_id
    own = member.user_data is UserData.OWN
    if generation < 0 and own and writer is not None and writer.tells_generation:
        generation = since  # before KIP-792 the cooperative assignor wrote it into its userData
    return sent, Claim(sent.owned_partitions, max(generation, NO_GENERATION))


def _user_data(
    group: _Group, state: _State, writer: Writer | None, judge: _Judge
) -> tuple[bytes | None, int]:
    """The userData a member writes - its own client's, none, or that of another client's assignor - and
    the generation that can be in it."""
    kind, protocol = state.member.user_data, group.scenario.protocol
    if writer is None or kind is UserData.NONE:
        return None, NO_GENERATION
    if kind is not UserData.OWN and writer.sticky_too and (protocol is COOPERATIVE or writer.tells_claims):
        since = None if kind is UserData.STICKY_V0 else state.since
        return wire.encode_sticky_user_data(state.last, since), NO_GENERATION if since is None else since
    asker = Asker(state.member.id, state.member.topics)
    write = writer.write_for(asker) if writer.write_for else writer.write
    written = write(state.last, state.since)
    if isinstance(written, Failure):
        judge.reply(written)
        raise _NoAnswer(written)
    return written, state.since


def _learn(
    group: _Group, state: _State, fault: FaultKind | None, assigned: Partitions, judge: _Judge
) -> None:
    """What the member makes of the answer, or of not getting one."""
    eager = _eager(group, state.member)
    match fault:
        case FaultKind.SILENT if state.member.instance is None:
            # Removed: it will find out (UNKNOWN_MEMBER_ID), lose everything and join as new.
            state.owned, state.joined, state.stored = (), NO_GENERATION, None
            judge.witnesses.add("removed member returns")
        case FaultKind.SILENT | FaultKind.GHOST | FaultKind.LOST_JOIN:
            judge.witnesses.add(f"{fault} with claims" if state.owned else f"{fault}")
        case FaultKind.MISSED_SYNC:
            state.joined = group.generation
            judge.witnesses.add("missed-sync with claims" if state.owned else "missed-sync")
        case _:
            state.owned = state.last = tuple(sorted(set(assigned)))
            state.joined = state.since = group.generation
    if eager:
        state.owned = ()  # revoked before every JoinGroup


def _witnesses(call: Call) -> frozenset[str]:
    """Which of the situations that matter this call is one of."""
    seen = set()
    if call.withheld:
        seen.add("partition withheld")
    if not call.equal_subscriptions:
        seen.add("unequal subscriptions")
    if any(len(claims) > len(call.holders[p]) for p, claims in call.claimants.items()):
        seen.add("stale claim")
    if any(len(holders) > 1 for holders in call.holders.values()):
        seen.add("tied claims")
    if any(len(set(c.partitions)) < len(c.partitions) for c in call.claims.values()):
        seen.add("claim listed twice")
    if any(p not in call.cluster for p in call.claimants):
        seen.add("claim to unknown partition")
    if any(p.topic not in call.group[m].topics for m, c in call.claims.items() for p in c.partitions):
        seen.add("claim to unsubscribed topic")
    if any(t not in call.cluster.topics for s in call.group.values() for t in s.topics):
        seen.add("topic without metadata")
    if len({s.version for s in call.group.values()}) > 1:
        seen.add("mixed versions")
    if oracles.rack_matters(call):
        seen.add("racks")
    if len({bool(c.partitions) for c in call.claims.values()}) > 1:
        seen.add("claims beside none")
    return frozenset(seen)
