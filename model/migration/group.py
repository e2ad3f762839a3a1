"""A group on its way between the classic and the consumer protocol, as one machine.

Members of both kinds, and of each by its stage; what the two kinds have in common has one name. The classic
group is that of ``classic_group``, small; ``model.classic`` has all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from rebalance_verifier.model.consumer import environment
from rebalance_verifier.model.consumer import member as client
from rebalance_verifier.model.consumer.atomic import atomic
from rebalance_verifier.model.consumer.conversion import Book, failed_over, removed
from rebalance_verifier.model.consumer.describe import description
from rebalance_verifier.model.consumer.group import FAULTS as CONSUMER_FAULTS
from rebalance_verifier.model.consumer.group import (
    check,
    components,
    initial_value,
    member_actions,
    resolves,
    slot_names,
    symmetries,
    times_by_mistake,
)
from rebalance_verifier.model.consumer.observations import Committed
from rebalance_verifier.model.consumer.state import (
    ANSWERS,
    REQUESTS,
    WAITING,
    AnyMember,
    AnyWire,
    ClassicMember,
    ClassicMessage,
    ClassicStep,
    ConsumerGroup,
    ConsumerMember,
    ConsumerRecord,
    ConsumerRecords,
    GroupKind,
    LateCommit,
    RecordState,
    epochs,
    find,
    relabel,
)
from rebalance_verifier.model.group.observations import Noted, Seen
from rebalance_verifier.model.group.parts import NOTHING, ClusterState, Error, Late, Life, Parts, Slot
from rebalance_verifier.model.group.setup import CONSUMER, MemberContext, Setup, letter
from rebalance_verifier.model.machine import (
    NOBODY,
    Action,
    Fairness,
    Footprint,
    Labels,
    Machine,
    Outcome,
    Run,
    Value,
    at_a_cost,
    chain,
    fault,
)
from rebalance_verifier.model.migration import coordinator as classic_group
from rebalance_verifier.model.migration import environment as topics
from rebalance_verifier.model.migration import member as classic
from rebalance_verifier.model.migration.views import settled, views

FAULTS = tuple(
    kind for kind in CONSUMER_FAULTS if kind not in ("topic grows", "topic deleted", "left behind")
)
"""Those of a consumer group but for topics that grow or go, and for connections, which hold."""


def migration_machine(setup: Setup) -> Machine:
    """Return the group of ``setup``: nobody started, no group on the broker. Raises ValueError as ``check``
    does."""
    check(setup, FAULTS, "a group between the protocols")
    rolls = any(len(consumer.stages) > 1 for consumer in setup.consumers)
    names = (*components(setup), *(f"rollout {letter(s)}" for s in setup.slots if rolls))
    mes = [MemberContext(Slot(slot), setup) for slot in setup.slots]
    actions = (*(action for me in mes for action in _of_slot(me, rolls=rolls)), *_of_group(setup))
    return Machine(
        components=names,
        initial=(tuple(_initial(setup, name) for name in names),),
        actions=tuple(actions),
        views=tuple(views(setup, mes)),
        labels=Labels(epochs, relabel),
        symmetries=tuple(symmetries(setup, names)) if not setup.keeps_log else (),
        describe=description(setup, names),
    )


def _unstarted(me: MemberContext, stage: int) -> AnyMember:
    kind = ConsumerMember if me.config(stage).group_protocol == CONSUMER else ClassicMember
    return kind(stage=stage)


def _initial(setup: Setup, name: str) -> Value:
    part, _, who = name.partition(" ")
    if part == "member":
        slot = next(slot for slot in setup.slots if letter(slot) == who)
        return _unstarted(MemberContext(Slot(slot), setup), 0)
    return 0 if part == "rollout" else initial_value(setup, name)


# -- actions of a slot ---------------------------------------------------------------------------------


def _of_slot(me: MemberContext, *, rolls: bool) -> Iterator[Action]:
    spoken = {stage.group_protocol == CONSUMER for stage in me.consumer.stages}
    name = slot_names(me).member
    new: dict[str, Action] = {}
    if True in spoken:
        listed = [action for action in member_actions(me) if action.name not in _SHARED]
        if me.setup.steps == "atomic":
            listed = list(atomic(listed, me.setup.faults))
        new = {action.name: _of_kind(ConsumerMember, name, action) for action in listed}
    old: dict[str, Action] = {}
    if False in spoken:
        old = {action.name: _of_kind(ClassicMember, name, action) for action in _classic_actions(me)}
    for one in (*new, *(one for one in old if one not in new)):
        action = _of_both(new[one], old[one]) if one in new and one in old else (new | old)[one]
        yield _starts(me, action) if one == "start" and rolls else action
    yield from _shared(me)
    if rolls:
        yield _bounce(me)


def _of_kind(kind: type, member: str, action: Action) -> Action:
    """``action`` of a slot as long as a client of this kind is there."""
    if member not in action.reads:
        return action
    at, inner = action.reads.index(member), action.guard

    def run(*values: Value) -> Any:
        return action.run(*values) if isinstance(values[at], kind) else ()

    def guard(value: Value) -> bool:
        return isinstance(value, kind) and (inner is None or inner(value))

    return action._replace(run=run, guard=guard if at == 0 else inner)


def _of_both(a: Action, b: Action) -> Action:
    """Return two actions of one name, each of its kind of client."""
    reads = tuple(dict.fromkeys((*a.reads, *b.reads)))
    writes = tuple(dict.fromkeys((*a.writes, *b.writes)))

    def run(*values: Value) -> Iterator[Outcome]:
        known = dict(zip(reads, values, strict=True))
        for one in (a, b):
            if one.guard is None or one.guard(known[one.reads[0]]):
                for outcome in one.run(*(known[name] for name in one.reads)):
                    after = known | dict(zip(one.writes, outcome.values, strict=True))
                    yield outcome._replace(values=tuple(after[name] for name in writes))

    same = reads[0] == "budget"
    return a._replace(reads=reads, writes=writes, run=run, guard=bool if same else None)


def _classic_actions(me: MemberContext) -> Iterator[Action]:
    """Of a client of the classic protocol."""
    steps = {action.name: action for action in _classic_steps(me)}
    if me.setup.steps != "atomic":
        yield from steps.values()
        return
    join, arrives, response = steps["join"], steps["request arrives"], steps["response"]
    then = {"join": (arrives, response), "request arrives": (response,)}
    then |= {"response": (arrives,), "request refused": (response,)}
    for name, action in steps.items():
        yield chain(name, action, *then[name]) if name in then else action
        if name == "join":
            if "slow network" in me.setup.faults:
                yield at_a_cost("join late", join, "budget")
                yield at_a_cost("response late", arrives, "budget")
            if "disconnect" in steps:
                paid, drop = at_a_cost("join", join, "budget"), _unpaid(steps["disconnect"])
                yield chain("join unanswered", paid, arrives, drop, response)


def _unpaid(action: Action) -> Action:
    """Return a fault as a part of another one, which has paid."""

    def run(budget: Any, *values: Value) -> Any:
        return action.run(budget + 1, *values)

    return action._replace(run=run, guard=None)


def _up(member: AnyMember) -> bool:
    return member.life is Life.UP


def _step_of(*steps: ClassicStep) -> Callable[[AnyWire], bool]:
    return lambda wire: isinstance(wire, ClassicMessage) and wire.step in steps


def _classic_steps(me: MemberContext) -> Iterator[Action]:
    m, w, s, r, book = slot_names(me)
    own: tuple[tuple[str, Footprint, Footprint, Run, Callable[..., bool] | None], ...] = (
        ("beat", (m, "group", *book), (m,), classic.beat, _up),
        ("join", (m, w), (m, w), classic.join, _up),
        (
            "request arrives", (w, "group", "cluster", *book), (w, "group", *book),
            classic_group.arrives, _step_of(*REQUESTS),
        ),
        ("request refused", (w, "group", r), (w,), classic_group.refuses, _step_of(*WAITING)),
        ("response", (w, m), (m, w), classic.receive, _step_of(*ANSWERS)),
        ("resume", (m,), (m,), client.resume, None),
        ("start", (m, w, s, r), (m, w, s), classic.start, None),
    )  # fmt: skip
    leaving = ("budget", m, w, s, "group", "cluster", *book)
    costly: tuple[tuple[str, Footprint, Footprint, Run], ...] = (
        ("crash", ("budget", m, w, s), ("budget", m, w, s), classic.crash),
        ("pause", ("budget", m), ("budget", m), client.pause),
        ("close", leaving, ("budget", m, w, s, "group", *book), classic.close),
        ("late request", ("budget", m, s), ("budget", s), client.send_late),
        ("disconnect", ("budget", m, w), ("budget", w), classic.disconnect),
    )
    for name, reads, writes, run, guard in own:
        action = Action(name=name, who=me.slot, reads=reads, writes=writes, run=partial(run, me), guard=guard)
        yield action._replace(fault=True, fairness=Fairness.NONE) if name == "start" else action
    for name, reads, writes, run in costly:
        if name in me.setup.faults:
            yield fault(name, me.slot, reads, writes, partial(run, me))


# -- what both kinds of clients have ---------------------------------------------------------------------


_SHARED = (
    *("session expires", "session timeout", "slow member", "member removed", "late request arrives"),
    "stale timeout",
)


def _shared(me: MemberContext) -> Iterator[Action]:
    m, _, s, r, book = slot_names(me)
    group = ("group", *book)
    free: tuple[tuple[str, Footprint, Footprint, Run], ...] = (
        ("session expires", (r, m, *group), group, _session_expires),
        ("late request arrives", (s, r, "group"), (s,), _late_arrives),
    )
    if times_by_mistake(me.setup):
        free = (*free, ("stale timeout", (r, *group), group, _stale_timeout))
    costly: tuple[tuple[str, Footprint, Footprint, Run], ...] = (
        ("session timeout", ("budget", m, *group), ("budget", *group), _session_lost),
        ("slow member", ("budget", m, *group), ("budget", *group), _too_slow),
        ("member removed", ("budget", *group), ("budget", *group), _member_removed),
    )
    for name, reads, writes, run in free:
        yield Action(name=name, who=me.slot, reads=reads, writes=writes, run=partial(run, me), guard=bool)
    for name, reads, writes, run in costly:
        if name in me.setup.faults:
            yield fault(name, me.slot, reads, writes, partial(run, me))


def _able(member: AnyMember, record: ConsumerRecord) -> bool:
    """Check whether the client of ``record`` goes on sending heartbeats."""
    if isinstance(member, ConsumerMember):
        return environment.able(member, record)
    return member.life is Life.UP and member.id == record.id


def _session_expires(
    me: MemberContext,
    records: ConsumerRecords,
    member: AnyMember,
    group: ConsumerGroup,
    *book: ConsumerRecords,
) -> Iterator[Outcome]:
    for record in records:
        if not _able(member, record):
            after, left, seen = removed(me.setup, group, book, me.slot, record.id)
            yield Outcome((after, *left), f"id {record.id}", seen)


def _session_lost(
    me: MemberContext, budget: int, member: AnyMember, group: ConsumerGroup, *book: ConsumerRecords
) -> Iterator[Outcome]:
    for record in book[me.slot]:
        if _able(member, record):
            after, left, seen = removed(me.setup, group, book, me.slot, record.id)
            yield Outcome((budget - 1, after, *left), f"id {record.id}", seen)


def _too_slow(
    me: MemberContext, budget: int, member: AnyMember, group: ConsumerGroup, *book: ConsumerRecords
) -> Iterator[Outcome]:
    for record in book[me.slot]:
        waits = record.state is RecordState.UNREVOKED and not record.away and not record.overdue
        timed = record.timed is not None or not record.classic
        if waits and timed and _able(member, record):
            after, left, seen = removed(me.setup, group, book, me.slot, record.id)
            noted = (Noted("revocation took too long"), *seen)
            yield Outcome((budget - 1, after, *left), f"id {record.id}", noted)


def _stale_timeout(
    me: MemberContext, records: ConsumerRecords, group: ConsumerGroup, *book: ConsumerRecords
) -> Iterator[Outcome]:
    for record in records:
        if record.overdue and group.kind is GroupKind.CONSUMER:
            after, left, seen = removed(me.setup, group, book, me.slot, record.id)
            yield Outcome((after, *left), f"id {record.id}", (environment.expelled(me, record), *seen))


def _member_removed(
    me: MemberContext, budget: int, group: ConsumerGroup, *book: ConsumerRecords
) -> Iterator[Outcome]:
    for record in book[me.slot]:
        converts = "no_downgrade_on_leavegroup" not in me.setup.coordinator
        after, left, seen = removed(me.setup, group, book, me.slot, record.id, converts=converts)
        yield Outcome((budget - 1, after, *left), f"id {record.id}", seen)


def _late_arrives(
    me: MemberContext, stray: LateCommit, records: ConsumerRecords, group: ConsumerGroup
) -> Iterator[Outcome]:
    assert isinstance(stray, Late)
    record = find(records, stray.id)
    judged = record is not None and group.kind is GroupKind.CONSUMER and not record.away
    held = Parts(stray.parts & record.held) if judged and record is not None else NOTHING
    seen = Committed(me.slot, stray.parts, classic_group.accepted(me, group, records, stray), held)
    yield Outcome((None,), seen=(seen,))


# -- a rolling upgrade ---------------------------------------------------------------------------------


def _bounce(me: MemberContext) -> Action:
    m, w, s, _, book = slot_names(me)
    own = (me.name("rollout"), m, w, s, "group", "cluster", *book)
    others = tuple(f"rollout {letter(slot)}" for slot in me.setup.slots if slot != me.slot)
    writes = (me.name("rollout"), m, w, s, "group", *book)
    last = len(me.consumer.stages) - 1
    action = fault("bounce", me.slot, (*own, *others), writes, partial(_bounces, me))
    action = action._replace(guard=lambda done: done < last)  # type: ignore[operator]
    return _when_settled(me, action) if me.setup.rollout == "settled" else action


def _starts(me: MemberContext, start: Action) -> Action:
    """Return a start, which in some rollouts has to wait once the first round has begun."""
    rollouts = tuple(f"rollout {letter(slot)}" for slot in me.setup.slots)
    if me.setup.rollout == "settled":
        return _when_settled(me, start, (me.name("rollout"),))
    if me.setup.rollout == "any":
        return start

    def run(*values: Value) -> Any:
        done = values[-len(rollouts) :]
        return start.run(*values[: -len(rollouts)]) if len(set(done)) == 1 else ()

    return start._replace(reads=(*start.reads, *rollouts), run=run)


def _when_settled(me: MemberContext, action: Action, begun: Footprint = ()) -> Action:
    """``action`` where everybody else is at work and has settled, and before a bounce itself who is
    bounced. A start before the first round, by the rollout in ``begun``, waits for nobody."""
    setup = me.setup
    slots = [slot for slot in setup.slots if not begun or slot != me.slot]
    parts = ("member", "wire", "record")
    looks = ("group", *(f"{part} {letter(slot)}" for slot in slots for part in parts))

    def run(*values: Value) -> Any:
        own, rest = values[: len(action.reads)], values[len(action.reads) :]
        first = bool(begun) and not rest[0]
        group, *seen = rest[len(begun) :]
        rest_of = zip(seen[::3], seen[1::3], seen[2::3], strict=True)
        at_rest = all(_up(m) and not settled(m, w, group, r) for m, w, r in rest_of)  # type: ignore[arg-type]
        return action.run(*own) if first or at_rest else ()

    return action._replace(reads=(*action.reads, *begun, *looks), run=run)


def _bounces(
    me: MemberContext,
    done: int,
    member: AnyMember,
    wire: Any,
    stray: LateCommit,
    group: ConsumerGroup,
    cluster: ClusterState,
    *rest: Any,
) -> Iterator[Outcome]:
    """One member is stopped, to be started as its next stage; a round begins when all have finished the one
    before."""
    book: Book = rest[: len(me.setup.slots)]
    others = rest[len(me.setup.slots) :]
    if not _up(member) or done > min(others, default=done) or done != member.stage:
        return
    close: Run = client.close if isinstance(member, ConsumerMember) else classic.close
    for outcome in close(me, 1, member, wire, stray, group, cluster, *book):
        _, _, *after = outcome.values
        yield outcome._replace(values=(done + 1, _unstarted(me, done + 1), *after))


# -- actions of the group ------------------------------------------------------------------------------


def _of_group(setup: Setup) -> Iterator[Action]:
    members, wires, book = (
        tuple(f"{part} {letter(slot)}" for slot in setup.slots) for part in ("member", "wire", "record")
    )
    whole = ("group", *book, *wires)
    steps: tuple[tuple[str, Footprint, Run], ...] = (
        ("join phase ends", whole, classic_group.join_phase_ends),
        ("leader decides", ("group", "cluster", *book, *wires), classic_group.decides),
    )
    for name, reads, run in steps:
        yield Action(
            name=name, who=NOBODY, reads=reads, writes=whole, run=partial(run, setup), guard=_classic
        )
    if "failover" in setup.faults:
        everything = ("budget", *members, *whole)
        yield fault("failover", NOBODY, everything, everything, partial(_failover, setup))
    yield from resolves(setup)
    if "topic made anew" in setup.faults:
        strays = tuple(f"stray {letter(slot)}" for slot in setup.slots)
        named = ("budget", "cluster", "group", *members, *wires, *strays, *book)
        yield fault("topic made anew", NOBODY, named, named, partial(topics.topic_made_anew, setup))
    if "group expires" in setup.faults:
        reads = ("budget", "group", *book)
        yield fault("group expires", NOBODY, reads, reads[:2], partial(environment.group_expires, setup))


def _classic(group: Value) -> bool:
    return isinstance(group, ConsumerGroup) and group.kind is GroupKind.CLASSIC


def _failover(setup: Setup, budget: int, *parts: Any) -> Iterator[Outcome]:
    """The coordinator moves. Of a consumer group its log has everything, of a classic one what was written
    last; what is under way is lost."""
    size = len(setup.slots)
    members, group, book, wires = (
        parts[:size],
        parts[size],
        parts[size + 1 : 2 * size + 1],
        parts[2 * size + 1 :],
    )
    moved: list[AnyMember] = []
    lost: list[AnyWire] = []
    for member, wire in zip(members, wires, strict=True):
        after, heard = _disconnected(member, wire)
        moved.append(after)
        lost.append(heard)
    seen: Seen = (Noted(f"failover of a {group.kind} group"),)
    if not _classic(group):
        seen, book = (*seen, *environment.pending_revocations(book)), environment.timed(setup, book)
    else:
        if group.log is not None and group.log.rebalances:
            seen = (*seen, Noted("failover after a downgrade"))
        group, book = failed_over(group, size)
    yield Outcome((budget - 1, *moved, group, *book, *lost), seen=seen)


def _disconnected(member: AnyMember, wire: AnyWire) -> tuple[AnyMember, AnyWire]:
    """Return a client and what it has under way, after its connection broke."""
    if isinstance(member, ConsumerMember):
        assert not isinstance(wire, ClassicMessage)
        return environment.disconnected(member, wire)
    if isinstance(wire, ClassicMessage) and member.life in (Life.UP, Life.PAUSED):
        return member, ClassicMessage(ClassicStep.REFUSED, wire.id, member.generation, error=Error.DISCONNECT)
    return member, None
