"""Playing a scenario: a group lives through its rebalances, the target decides each, clauses judge.

The group here is the assignor's view of one, no more: who joins with which claims, and who learns
which part of the answer. Claims become stale for the reasons that make them stale in the field: a
SyncGroup that fails, a JoinGroup response that is lost, a member that stays silent
(``ConsumerCoordinator``, ``ClassicGroup``). The full protocol is the executable model's business.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from rebalance_verifier.base.processes.failure import FailureKind
from rebalance_verifier.model import wire
from rebalance_verifier.model.assignor import Limits, Promise
from rebalance_verifier.model.values import (
    NO_GENERATION,
    SERVED,
    Cluster,
    Partitions,
    RebalanceProtocol,
    Subscription,
)
from rebalance_verifier.model.written import dialect
from rebalance_verifier.properties.assignors import oracles, settling
from rebalance_verifier.properties.assignors.calls import (
    Answer,
    Ask,
    Asker,
    AssignorCall,
    AssignQuestion,
    Failure,
    Question,
    Reply,
    StatedClaim,
    UserDataQuestion,
    Writer,
    Written,
    answered,
)
from rebalance_verifier.properties.assignors.clause import (
    COOPERATIVE,
    EAGER,
    Breach,
    Clause,
    History,
    Scope,
)
from rebalance_verifier.properties.assignors.played import AnyCall, AnyScenario
from rebalance_verifier.properties.assignors.scenarios import (
    UNREADABLE,
    AddMember,
    Fault,
    FaultKind,
    Leave,
    Scenario,
    ScenarioEvent,
    ScenarioMember,
    SetTopic,
    Subscribe,
    UserData,
)

MAX_ROUNDS, ROUNDS_IN_CIRCLES = 16, 6
"""Undisturbed rebalances after which a group that still moves is called unsettled, and after which one is
that has been where it is before. Some that are late by racks take 15 rounds, and others never settle."""

T = TypeVar("T")
Playing = Generator[Question, Any, T]


@dataclass(frozen=True, slots=True)
class Found:
    """A clause broken in the ``round``-th rebalance of a scenario (counted from 1)."""

    clause: Clause
    breach: Breach
    round: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedHistory:
    """Result of playing one scenario. ``found`` has at most one entry per clause, the first."""

    scenario: AnyScenario
    calls: tuple[AnyCall, ...]
    found: tuple[Found, ...] = ()
    witnesses: frozenset[str] = frozenset()
    skipped: str | None = None
    """Why the target declined, if it did; such a scenario judges nothing."""
    questions: int = 0
    claims: int = 0
    """Claims that could be kept, in all calls that stickiness was measured on; ``Breach.gap`` were not."""
    failure: Failure | None = None
    """The missing answer that ended the history, if one did."""
    judged: frozenset[Scope] = frozenset()
    """Scopes whose clauses were checked to their end."""

    def breach_of(self, clause_id: str) -> Found | None:
        """Return the breach of one clause, if the scenario shows it."""
        return next((f for f in self.found if f.clause.id == clause_id), None)


@dataclass(slots=True, kw_only=True)
class _State:
    """One member while a scenario is played; ``joined`` and ``since`` are its two generations."""

    member: ScenarioMember
    owned: Partitions
    joined: int  # of the last JoinGroup response it saw: the label of its claims (KIP-792)
    since: int  # in which ``last`` was assigned: what its assignor's userData says
    last: Partitions  # the last assignment its assignor was told of, kept when the member is not
    stored: tuple[Subscription, StatedClaim] | None = None  # what the coordinator remembers of it


@dataclass(slots=True, kw_only=True)
class _Group:
    scenario: Scenario
    cluster: Cluster
    limits: Limits
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
    limits: Limits | None = None,
    at: Callable[[int], None] = lambda moment: None,
) -> PlayedHistory:
    """Play ``scenario`` against a target and judge every answer.

    ``ask`` puts one question to the target, ``again`` puts it to another process of the same target
    (``None``: there is none, the same is asked). ``writer`` knows its userData (``None``: it has none).
    ``limits``: what it states with its promises. ``at`` is told the moment of each question.
    """

    def answer(question: Question) -> Reply | Written:
        if isinstance(question, AssignQuestion):
            at(question.moment)
            return (again if again and question.again else ask)(*question[:3])
        assert writer is not None
        return writer.write(question)

    return answered(history(scenario, writer, clauses, promises, limits), answer)


def history(
    scenario: Scenario,
    writer: Writer | None,
    clauses: Sequence[Clause],
    promises: Iterable[Promise],
    limits: Limits | None = None,
    to_breach: bool = False,
) -> Playing[PlayedHistory]:
    """Play ``scenario`` as ``play`` does: a generator of its questions that is sent the answers, so that
    many histories can be played at once. ``to_breach``: no further than it takes to break all clauses, and
    without a look at the situations that it reaches."""
    promised = frozenset(promises)
    applicable = [c for c in clauses if c.applies(scenario.protocol, promised)]
    judge = _Judge(applicable, scenario.protocol, to_breach)
    group = _Group(scenario=scenario, cluster=Cluster(dict(scenario.topics)), limits=limits or {})
    for member in scenario.members:
        _join(group, member)
    calls: list[AssignorCall] = []
    failure: Failure | None = None
    try:
        alone = 0  # the first rebalance from which on nothing happens and nothing goes wrong
        for events in scenario.rounds:
            faults = _apply(group, events)
            alone = len(calls) + bool(faults) if events else alone
            judge.moment += bool(events)  # lags stay while nothing else happens, or nobody would settle
            yield from _rebalance(group, faults, judge, writer, calls, disturbed=True)
        if calls:
            yield from judge.further(Scope.REPEAT, calls[-1])
        done = len(calls)
        slow = settling.slow_rounds(sum(map(len, group.cluster.topics.values())), group.limits)
        while (more := len(calls) - done - slow) < MAX_ROUNDS:
            if more >= ROUNDS_IN_CIRCLES and settling.cycle(History(tuple(calls), alone, None)):
                break
            if not (yield from _rebalance(group, {}, judge, writer, calls, disturbed=False)):
                break
            if scenario.protocol is not COOPERATIVE or not calls[-1].revoked:
                yield from _rebalance(group, {}, judge, writer, calls, disturbed=False)
                break
        settled = settling.settled(calls, alone)
        if len(calls) > done:
            judge.history(History(tuple(calls), alone, settled))
        if settled is not None and settled > alone:
            judge.witnesses.add("follow-up rebalance")
    except NoAnswer as stop:
        failure = stop.failure
        judge.witnesses.add(f"no answer: {failure.kind}")
    except NothingLeft:
        pass
    if failure is not None and failure.kind is FailureKind.SKIPPED:
        return PlayedHistory(
            scenario=scenario, calls=tuple(calls), skipped=failure.message, questions=judge.questions
        )
    return PlayedHistory(
        scenario=scenario,
        calls=tuple(calls),
        found=tuple(judge.found.values()),
        witnesses=frozenset(judge.witnesses),
        questions=judge.questions,
        claims=judge.claims,
        failure=failure,
        judged=frozenset(judge.judged),
    )


def from_round(record: PlayedHistory, number: int) -> Scenario:
    """Return the scenario that begins where the ``number``-th call of ``record`` (from 1) was made: what its
    members claimed there are the claims they arrive with. A shorter story of the same breach, if it
    still shows it."""
    scenario, call = record.scenario, record.calls[number - 1]
    assert isinstance(scenario, Scenario)
    assert isinstance(call, AssignorCall)
    joined = (e.member for events in scenario.rounds for e in events if isinstance(e, AddMember))
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


class NoAnswer(Exception):
    """No answer came, which ends a history."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class NothingLeft(Exception):
    """Nothing that could be asked further changes what is wanted."""


class _Judge:
    """Holds answers against the clauses and remembers the first breach of each; ``to_breach``: no more."""

    def __init__(self, clauses: Sequence[Clause], protocol: RebalanceProtocol, to_breach: bool) -> None:
        self.situations = {} if to_breach else oracles.situations(protocol)
        self.wanted = len(clauses) if to_breach else math.inf
        self.by_scope = {scope: [c for c in clauses if c.scope is scope] for scope in Scope}
        self.found: dict[str, Found] = {}
        self.witnesses: set[str] = set()
        self.judged = {Scope.REPLY}
        self.questions = self.round = self.claims = self.moment = 0

    def reply(self, reply: Reply) -> Answer:
        self.questions += 1
        for clause in self.by_scope[Scope.REPLY]:
            self._note(clause, clause.check(reply))
        if isinstance(reply, Failure):
            raise NoAnswer(reply)
        return reply

    def call(self, call: AssignorCall) -> None:
        for name, shows in self.situations.items():
            if name not in self.witnesses and shows(call):
                self.witnesses.add(name)
        for clause in self.by_scope[Scope.CALL]:
            if clause.id not in self.found:
                breach = clause.check(call)
                self._note(clause, breach)
                if Promise.STICKY in clause.promises:
                    self.claims += call.kept + (breach.gap if breach else 0)
        self.judged.add(Scope.CALL)
        if len(self.found) >= self.wanted:
            raise NothingLeft

    def further(self, scope: Scope, call: AssignorCall) -> Playing[None]:
        """Let the clauses of a scope ask further questions about a call."""
        for clause in self.by_scope[scope]:
            if clause.id not in self.found:
                asking = clause.check(call)
                try:
                    question = next(asking)
                    while True:
                        if self.moment:
                            question = question._replace(moment=self.moment)
                        question = asking.send(self.reply((yield question)))
                except StopIteration as end:
                    self._note(clause, end.value)
        self.judged.add(scope)
        if len(self.found) >= self.wanted:
            raise NothingLeft

    def history(self, history: History) -> None:
        self.round = len(history.calls) if history.settled is None else history.settled + 1
        for clause in self.by_scope[Scope.HISTORY]:
            self._note(clause, clause.check(history))
        self.judged.add(Scope.HISTORY)

    def _note(self, clause: Clause, breach: Breach | None) -> None:
        if breach is not None and clause.id not in self.found:
            self.found[clause.id] = Found(clause, breach, self.round)


def _join(group: _Group, member: ScenarioMember) -> None:
    owned = () if _eager(group, member) else member.owned
    if group.scenario.protocol in SERVED:  # beyond the end of a topic it is of one that had another id
        owned = tuple(p for p in owned if p in group.cluster or p.topic not in group.cluster.topics)
    group.members[member.id] = _State(
        member=member,
        owned=owned,
        joined=member.generation,
        since=member.generation,
        last=member.owned,
    )
    group.generation = max(group.generation, member.generation)


def _eager(group: _Group, member: ScenarioMember) -> bool:
    """Check whether it gives up all before joining; so does who cannot even say what it owns (version 0)."""
    protocol = group.scenario.protocol
    if member.writes:
        return protocol is EAGER or not dialect(member.writes).keeps
    return protocol is EAGER or (protocol is COOPERATIVE and (member.eager or member.version == 0))


def _apply(group: _Group, events: Sequence[ScenarioEvent]) -> dict[str, FaultKind]:
    """Carry out what happens before a rebalance; what goes wrong in it is returned.

    Events about members that are not there do nothing, so that minimising may drop a member first
    and its events later.
    """
    faults: dict[str, FaultKind] = {}
    served = group.scenario.protocol in SERVED  # no answer that is lost undoes what the broker assigned
    for event in events:
        match event:
            case AddMember(member) if member.id not in group.members:
                _join(group, member)
            case Leave(member_id):
                group.members.pop(member_id, None)
            case Subscribe(member_id, topics) if member_id in group.members:
                state = group.members[member_id]
                state.member = replace(state.member, topics=topics)
                if not served:  # KIP-429, client 1.1: what is no longer subscribed is revoked before joining
                    state.owned = tuple(p for p in state.owned if p.topic in topics)
            case SetTopic(topic, partitions):
                before = group.cluster.topics.get(topic)
                if served and partitions is not None and (before is None or len(partitions) < len(before)):
                    for state in group.members.values():  # a topic of another id: nobody holds any of it
                        state.owned = tuple(p for p in state.owned if p.topic != topic)
                topics_now = {t: racks for t, racks in group.cluster.topics.items() if t != topic}
                if partitions is not None:
                    topics_now[topic] = partitions
                group.cluster = Cluster(topics_now)
            case Fault(kind, member_id) if member_id in group.members and not served:
                faults[member_id] = kind
            case _:
                pass
    return faults


def _rebalance(
    group: _Group,
    faults: Mapping[str, FaultKind],
    judge: _Judge,
    writer: Writer | None,
    calls: list[AssignorCall],
    disturbed: bool,
) -> Playing[bool]:
    """Return one rebalance, from JoinGroup to SyncGroup; whether there was anybody to take part."""
    judge.round = len(calls) + 1
    present: list[_State] = []
    joining: list[_State] = []
    for member_id, state in group.members.items():
        if faults.get(member_id) not in (FaultKind.SILENT, FaultKind.GHOST):
            joining.append(state)
        elif state.member.instance is None or state.stored is None:
            continue
        else:  # KIP-345: a static member that misses the join phase is kept as it last presented itself.
            judge.witnesses.add("silent static member")
        present.append(state)
    if not present:
        return False
    written = yield from _user_data(group, joining, writer, judge)
    for state, (user_data, since) in zip(joining, written, strict=True):
        state.stored = _presented(group, state, writer, user_data, since)
    subscriptions: dict[str, Subscription] = {}
    claims: dict[str, StatedClaim] = {}
    for state in present:
        assert state.stored
        subscriptions[state.member.id], claims[state.member.id] = state.stored
    group.generation += 1
    protocol = group.scenario.protocol
    reply = yield AssignQuestion(protocol, group.cluster, subscriptions, moment=judge.moment)
    answer = judge.reply(reply)
    call = AssignorCall(
        protocol=protocol,
        cluster=group.cluster,
        group=subscriptions,
        claims=claims,
        assignment=answer.assignment,
        limits=group.limits,
    )
    calls.append(call)
    judge.call(call)
    if disturbed:
        yield from judge.further(Scope.RELATION, call)
    for member_id, state in group.members.items():
        _learn(group, state, faults.get(member_id), answer.assignment.get(member_id, ()), judge)
    return True


def _presented(
    group: _Group, state: _State, writer: Writer | None, user_data: bytes | None, since: int
) -> tuple[Subscription, StatedClaim]:
    """Return the member's JoinGroup metadata as the leader reads it, and the claim that is in it. ``since``
    is the generation that can be in its ``user_data``."""
    member = state.member
    if member.writes:
        return _in_dialect(group, state)
    if group.scenario.protocol in SERVED:  # of the target before, whatever the member has made of that
        held = Subscription(
            topics=member.topics,
            owned_partitions=state.owned,
            rack_id=member.rack,
            group_instance_id=member.instance,
        )
        return held, StatedClaim(state.owned, NO_GENERATION)
    sent = Subscription(
        topics=member.topics,
        user_data=user_data,
        owned_partitions=state.owned,
        generation_id=state.joined if member.version >= 2 else NO_GENERATION,
        rack_id=member.rack if member.version >= 3 else None,
        group_instance_id=member.instance,
        version=member.version,
    )
    if group.scenario.protocol is EAGER:
        unread = member.user_data in UNREADABLE or not user_data
        if unread or writer is None or not writer.tells_claims:
            return sent, StatedClaim((), NO_GENERATION)
        return sent, StatedClaim(state.last, max(since, NO_GENERATION))
    generation = sent.generation_id
    own = member.user_data is UserData.OWN
    if generation < 0 and own and writer is not None and writer.tells_generation:
        generation = since  # before KIP-792 the cooperative assignor wrote it into its userData
    return sent, StatedClaim(sent.owned_partitions, max(generation, NO_GENERATION))


def _in_dialect(group: _Group, state: _State) -> tuple[Subscription, StatedClaim]:
    """Return the same of a member that writes what its client writes."""
    member, client = state.member, dialect(state.member.writes)
    made = client.claim(owned=state.owned, last=state.last, joined=state.joined, since=state.since)
    sent = client.subscription(member.topics, made, member.rack, member.instance)
    return sent, StatedClaim(made.claimed, made.since)


def _user_data(
    group: _Group, joining: Sequence[_State], writer: Writer | None, judge: _Judge
) -> Playing[list[tuple[bytes | None, int]]]:
    """Return the userData that members write - their own client's, none, or that of another client's assignor
    - and the generation that can be in it."""
    if writer is None:
        return [(None, NO_GENERATION)] * len(joining)
    sticky_too = writer.sticky_too and (group.scenario.protocol is COOPERATIVE or writer.tells_claims)
    others = tuple(UserData)[1:] if sticky_too else UNREADABLE
    own = [state for state in joining if state.member.user_data not in others and not state.member.writes]
    answers = iter((yield from _written(own, judge, writer.one_process)) if own else ())
    found: list[tuple[bytes | None, int]] = []
    for state in joining:
        kind, since = state.member.user_data, state.since
        if state.member.writes:
            found.append((None, NO_GENERATION))  # its dialect has it
        elif kind not in others:
            found.append((next(answers), since))
        elif kind in UNREADABLE:
            whole = wire.encode_sticky_user_data(state.last, since)
            data = {UserData.EMPTY: b"", UserData.TRUNCATED: whole[: len(whole) // 2]}.get(kind)
            found.append((data, NO_GENERATION))
        elif kind is UserData.STICKY_V0:
            found.append((wire.encode_sticky_user_data(state.last, None), NO_GENERATION))
        else:
            found.append((wire.encode_sticky_user_data(state.last, since), since))
    return found


def _written(members: Sequence[_State], judge: _Judge, one_process: bool) -> Playing[list[bytes | None]]:
    """Return what the target's own code writes for ``members``; where what it remembers is the process', that
    is what the last of those of the newest generation was assigned."""
    found: list[bytes | None] = []
    latest = max(reversed(members), key=lambda state: state.since)
    known = [latest] * len(members) if one_process else members
    for answer in (
        yield tuple(
            UserDataQuestion(source.last, source.since, Asker(state.member.id, state.member.topics))
            for state, source in zip(members, known, strict=True)
        )
    ):
        if isinstance(answer, Failure):
            judge.reply(answer)
            raise NoAnswer(answer)
        found.append(answer)
    return found


def _learn(
    group: _Group, state: _State, fault: FaultKind | None, assigned: Partitions, judge: _Judge
) -> None:
    """Update the member with the answer, or with its absence."""
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
