"""What a run cost: the rebalance metrics of KIP-429 and the partitions that nobody read, counted in steps.

All of it is computed from a trace, a setup and its events, so it can be asked of any run: one of the
explorer, of Hypothesis, or written by hand. A step is one event; time has no other measure in the model.

The metrics are those of ``consumer-coordinator-metrics``, under the names in Kafka's code. A rebalance of a
classic member takes from its first JoinGroup to the SyncGroup response that it accepts, so callbacks are
outside of it; a JoinGroup or SyncGroup that comes to nothing is a failed rebalance, MEMBER_ID_REQUIRED too.
A member of the consumer protocol (KIP-848) rebalances while it is RECONCILING, callbacks included, and one
that is fenced meanwhile has failed (``AbstractMembershipManager``). Callbacks take no step of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rebalance_verifier.model.classic.state import Group, Member
from rebalance_verifier.model.consumer import state as s
from rebalance_verifier.model.group import parts as p
from rebalance_verifier.model.group.observations import Call, Callback
from rebalance_verifier.model.group.setup import Setup, letter
from rebalance_verifier.model.machine import Event, Machine, Outcome, State
from rebalance_verifier.model.protocols import machine

_ENDS = ("crash", "close", "unsubscribe", "bounce", "hang", "start")
"""Steps after which the client that sent a request is gone, or waits for nothing any more."""

_SENDS = ("join", "join late", "join lost", "join unanswered")

_LEAVES = (*_ENDS, "max poll", "poll interval", "leave lost")
"""Steps by which a member of the consumer protocol gives up its membership by itself, which is no failure."""

_JOINS = (p.MemberState.PREPARING, p.MemberState.COMPLETING)

_AnyMember = Member | s.ClassicMember | s.ConsumerMember


@dataclass
class Callbacks:
    """How often a callback was called, and with how many partitions in all."""

    calls: int = 0
    partitions: int = 0

    def add(self, partitions: int) -> None:
        """One more call."""
        self.calls += 1
        self.partitions += partitions


@dataclass(kw_only=True)
class Metrics:
    """The metrics of one member over all its restarts, or of the group: all members together.

    ``last`` is how many steps ago the last rebalance was completed, None if none was.
    """

    rebalance_total: int = 0
    failed_rebalance_total: int = 0
    rebalance_latency_total: int = 0
    rebalance_latency_max: int = 0
    last: int | None = None
    revoked: Callbacks = field(default_factory=Callbacks)
    assigned: Callbacks = field(default_factory=Callbacks)
    lost: Callbacks = field(default_factory=Callbacks)

    @property
    def rebalance_latency_avg(self) -> float:
        """Steps per completed rebalance, 0 when there was none.

        >>> Metrics(rebalance_total=4, rebalance_latency_total=10).rebalance_latency_avg
        2.5
        """
        return self.rebalance_latency_total / self.rebalance_total if self.rebalance_total else 0.0

    @property
    def named(self) -> dict[str, str]:
        """Each under the name that Kafka has for it."""
        return {
            "rebalance-total": f"{self.rebalance_total}",
            "failed-rebalance-total": f"{self.failed_rebalance_total}",
            "rebalance-latency-avg": f"{self.rebalance_latency_avg:.1f}",
            "rebalance-latency-max": f"{self.rebalance_latency_max}",
            "partition-revoked calls": f"{self.revoked.calls}",
            "partition-assigned calls": f"{self.assigned.calls}",
            "partition-lost calls": f"{self.lost.calls}",
        }


@dataclass(frozen=True, kw_only=True)
class Figures:
    """Cost of a run.

    ``rebalancing`` is in how many of its ``steps`` a rebalance was under way, ``rebalances`` how many join
    phases ended with members, or targets were computed for a consumer group. ``paused`` is partitions times
    steps in which a partition exists, is subscribed to, and is owned and read by no member of the group that
    is at work, during rebalances; ``idle`` is the same outside of rebalances.
    """

    steps: int
    rebalances: int
    rebalancing: int
    paused: int
    idle: int
    members: tuple[Metrics, ...]
    group: Metrics


def figures(setup: Setup, events: Sequence[Event], since: int = 0) -> Figures:
    """Return the figures of a run of ``setup`` from its initial state; only events from number ``since`` on
    count.

    A rebalance that began before ``since`` has its whole latency. Raises ValueError for an event that cannot
    happen.
    """
    group = machine(setup)
    state = group.initial[0]
    members = [Metrics() for _ in setup.slots]
    began: list[int | None] = [None] * len(members)
    ended: list[int | None] = [None] * len(members)
    rebalances = rebalancing = paused = idle = 0
    for number, event in enumerate(events):
        before, outcome = state, group.outcome(state, event)
        if outcome is None:
            raise ValueError(f"{event} cannot happen; possible: {group.enabled(state)}")
        state, counts = group.apply(before, event, outcome), number >= since
        for slot, metrics in enumerate(members):
            starts, verdict = _progress(group, before, state, event, slot)
            if starts and began[slot] is None:
                began[slot] = number
            if verdict is True and (first := began[slot]) is not None:
                began[slot], ended[slot] = None, number
                if counts:
                    metrics.rebalance_total += 1
                    metrics.rebalance_latency_total += number - first
                    metrics.rebalance_latency_max = max(metrics.rebalance_latency_max, number - first)
            elif verdict is False and counts:
                metrics.failed_rebalance_total += 1
            if event.who == slot and event.action in _LEAVES:
                began[slot] = None
        if counts:
            _count_callbacks(members, outcome)
            waiting = len(p.each(_unread(setup, group, state)))
            busy = _rebalancing(setup, group, state)
            rebalancing, paused, idle = (
                rebalancing + busy,
                paused + waiting * busy,
                idle + waiting * (not busy),
            )
            rebalances += _counts(_group(group, before), event, _group(group, state))
    for metrics, last in zip(members, ended, strict=True):
        metrics.last = None if last is None else len(events) - 1 - last
    steps = max(0, len(events) - since)
    return Figures(
        steps=steps,
        rebalances=rebalances,
        rebalancing=rebalancing,
        paused=paused,
        idle=idle,
        members=tuple(members),
        group=_together(members),
    )


def _member(group: Machine, state: State, slot: int) -> _AnyMember:
    member = state[group.position[f"member {letter(slot)}"]]
    assert isinstance(member, _AnyMember)
    return member


def _group(group: Machine, state: State) -> Group | s.ConsumerGroup:
    value = state[group.position["group"]]
    assert isinstance(value, Group | s.ConsumerGroup)
    return value


def _progress(
    group: Machine, before: State, after: State, event: Event, slot: int
) -> tuple[bool, bool | None]:
    """Check whether a rebalance of ``slot`` begins; and whether one has succeeded (True), or failed (False);
    None: neither."""
    was, now = _member(group, before, slot), _member(group, after, slot)
    if isinstance(was, s.ConsumerMember):
        return _reconciled(was, now, event) if event.who == slot else (False, None)
    wires = tuple(state[group.position[f"wire {letter(slot)}"]] for state in (before, after))
    if event.who != slot or event.action in _ENDS or isinstance(now, s.ConsumerMember):
        return False, None
    sends = event.action in _SENDS
    if wires[1] is not None or (wires[0] is None and not sends):
        return sends, None
    if was.state is p.MemberState.COMPLETING and now.state is not p.MemberState.COMPLETING:
        return sends, now.state is p.MemberState.STABLE or (isinstance(now, Member) and now.stuck)
    return sends, False


def _reconciled(was: s.ConsumerMember, now: _AnyMember, event: Event) -> tuple[bool, bool | None]:
    """Check the progress of a member of the consumer protocol, by its state alone."""
    if was.state is not s.ClientState.RECONCILING:
        return now.state is s.ClientState.RECONCILING, None
    if event.action in _LEAVES or now.state is s.ClientState.RECONCILING:
        return False, None
    return False, now.state in (s.ClientState.STABLE, s.ClientState.ACKNOWLEDGING)


def _counts(was: Group | s.ConsumerGroup, event: Event, now: Group | s.ConsumerGroup) -> bool:
    """Check whether a join phase has ended with members, or a target was computed."""
    if (
        isinstance(now, s.ConsumerGroup)
        and isinstance(was, s.ConsumerGroup)
        and now.kind is s.GroupKind.CONSUMER
    ):
        return now.assigned != was.assigned
    ended = event.action == "join phase ends"
    return ended and (isinstance(now, s.ConsumerGroup) or now.leader is not None)


def _count_callbacks(members: Sequence[Metrics], outcome: Outcome) -> None:
    for seen in outcome.seen:
        if isinstance(seen, Callback):
            metrics = members[seen.who]
            kinds = {Call.REVOKED: metrics.revoked, Call.ASSIGNED: metrics.assigned, Call.LOST: metrics.lost}
            kinds[seen.call].add(len(p.each(seen.parts)))


def _unread(setup: Setup, group: Machine, state: State) -> p.Parts:
    """Return the partitions that exist, are subscribed to by a process that runs, and are read by nobody."""
    cluster = state[group.position["cluster"]]
    assert isinstance(cluster, p.ClusterState)
    wanted = read = 0
    for slot in setup.slots:
        member = _member(group, state, slot)
        if member.life not in (p.Life.DOWN, p.Life.FAILED):
            wanted |= setup.parts(member.topics)
        if member.life is p.Life.UP and not (isinstance(member, Member) and member.stuck):
            held = group.look(state, f"held {letter(slot)}")
            assert isinstance(held, int)
            read |= held & ~(member.unfetched if isinstance(member, Member) else 0)
    return p.Parts(cluster.parts & wanted & ~read)


def _rebalancing(setup: Setup, group: Machine, state: State) -> bool:
    """Check whether the coordinator is between two stable groups, or a member between JoinGroup and callback,
    or between a target and its acknowledgement."""
    if _moves(setup, group, state):
        return True
    members = (_member(group, state, slot) for slot in setup.slots)
    return any(
        member.state in (s.ClientState.JOINING, s.ClientState.RECONCILING)
        if isinstance(member, s.ConsumerMember)
        else member.state in _JOINS or (isinstance(member, Member) and member.received is not None)
        for member in members
    )


def _moves(setup: Setup, group: Machine, state: State) -> bool:
    """Check whether the coordinator is between two stable groups; a consumer group is in Assigning then, or
    in Reconciling (``ConsumerGroup.maybeUpdateGroupState``)."""
    value = _group(group, state)
    if not isinstance(value, s.ConsumerGroup):
        return value.state in (p.GroupState.PREPARING, p.GroupState.COMPLETING)
    if value.kind is not s.GroupKind.CONSUMER:
        return value.phase in (p.GroupState.PREPARING, p.GroupState.COMPLETING)
    books = (state[group.position[f"record {letter(slot)}"]] for slot in setup.slots)
    records = [record for book in books for record in book]  # type: ignore[attr-defined]
    reached = all(r.state is s.RecordState.STABLE and r.epoch == value.assigned for r in records)
    return bool(records) and (value.epoch > value.assigned or not reached)


def _together(members: Sequence[Metrics]) -> Metrics:
    """Return all members' metrics as one: sums, the greatest latency, the latest completion."""
    last = [metrics.last for metrics in members if metrics.last is not None]
    whole = Metrics(
        rebalance_total=sum(m.rebalance_total for m in members),
        failed_rebalance_total=sum(m.failed_rebalance_total for m in members),
        rebalance_latency_total=sum(m.rebalance_latency_total for m in members),
        rebalance_latency_max=max((m.rebalance_latency_max for m in members), default=0),
        last=min(last, default=None),
    )
    for name in ("revoked", "assigned", "lost"):
        kinds = [getattr(metrics, name) for metrics in members]
        total = Callbacks(sum(kind.calls for kind in kinds), sum(kind.partitions for kind in kinds))
        setattr(whole, name, total)
    return whole
