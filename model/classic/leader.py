"""The leader: the one member that turns the group's subscriptions into an assignment.

Member ids are random and partitions have no order that the protocol knows of, so the assignor is asked
under every naming of both, and each distinct answer is one possible step (``Setup.naming``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from itertools import permutations
from typing import Any, NamedTuple

from rebalance_verifier.model.classic import warmups
from rebalance_verifier.model.classic.callbacks import joined, watches, works
from rebalance_verifier.model.classic.state import Group, JoinOk, Member, Metadata, Records, Sync, Wire
from rebalance_verifier.model.group.observations import Decided, Noted, Seen, Threw
from rebalance_verifier.model.group.parts import (
    NONE,
    ClusterState,
    Generation,
    Grant,
    GroupState,
    Id,
    MemberState,
    Parts,
    Slot,
    Topics,
    each,
    union,
)
from rebalance_verifier.model.group.setup import MemberContext, Setup, letter
from rebalance_verifier.model.machine import Action, Outcome
from rebalance_verifier.model.values import NO_GENERATION, Cluster, Subscription, TopicPartition


class Question(NamedTuple):
    """Input of the assignor: its name and switches, the leader's metadata, the members in order.

    ``metas`` have generations as small as their order allows. ``racks`` are the members'; ``moved``: replicas
    are in other racks.
    """

    protocol: str
    switches: tuple[str, ...]
    view: Parts
    metas: tuple[Metadata, ...]
    racks: tuple[str | None, ...]
    instances: tuple[int | None, ...]
    moved: bool = False


class Refusal(NamedTuple):
    """The assignor, or the leader's validation of what it said, threw."""

    error: str


Answer = tuple[Parts, ...] | Refusal
"""One set of partitions per member of the question."""


@lru_cache(maxsize=1 << 18)
def ask(setup: Setup, question: Question) -> Answer:
    """Return the assignor's answer under the given naming: members m0, m1 ... and partitions by number."""
    assignor = setup.factory(question.protocol, question.switches)
    numbers, names = _numbering(setup, question.view)
    group = {
        f"m{number}": _subscription(assignor, setup, question, number, names)
        for number in range(len(question.metas))
    }
    racks = setup.moved if question.moved else setup.racks
    topics = {
        f"t{t}": tuple(racks[p] if racks else () for p in each(parts & question.view))
        for t, parts in enumerate(setup.topics)
        if parts & question.view
    }
    try:
        answer = assignor.assign(Cluster(topics), group)
    except Exception as error:  # whatever an assignor throws ends the leader's poll
        return Refusal(f"{type(error).__name__}: {error}"[:120])
    return tuple(
        union([1 << numbers[partition] for partition in answer.get(member, ()) if partition in numbers])
        for member in group
    )


def _numbering(setup: Setup, view: int) -> tuple[dict[TopicPartition, int], dict[int, TopicPartition]]:
    """Return partitions of the metadata by name and back; others are named beyond the end of their topic."""
    names = {}
    for t, parts in enumerate(setup.topics):
        known = [*each(parts & view), *each(parts & ~view)]
        names.update({number: TopicPartition(f"t{t}", index) for index, number in enumerate(known)})
    return {name: number for number, name in names.items()}, names


def _subscription(
    assignor: Any, setup: Setup, question: Question, number: int, names: dict[int, TopicPartition]
) -> Subscription:
    meta = question.metas[number]
    owned = tuple(sorted(names[p] for p in each(meta.owned)))
    last = tuple(sorted(names[p] for p in each(meta.last))) if question.protocol == "sticky" else owned
    tells = meta.tells or question.protocol == "sticky"
    data = assignor.user_data(last, meta.own_gen) if tells and meta.version >= 1 else None
    return Subscription(
        topics=tuple(f"t{t}" for t in each(meta.topics)),
        user_data=data,
        owned_partitions=owned,
        generation_id=meta.label if meta.version >= 2 else NO_GENERATION,
        rack_id=question.racks[number],
        group_instance_id=None if question.instances[number] is None else f"i{question.instances[number]}",
        version=meta.version,
    )


@lru_cache(maxsize=1 << 18)
def answers(setup: Setup, question: Question) -> tuple[Answer, ...]:
    """Return all distinct answers over the namings that the setup asks for, in a fixed order."""
    found: dict[Answer, None] = {}
    for order, numbers in _namings(setup, len(question.metas)):
        renamed = question._replace(
            view=_map(question.view, numbers),
            metas=tuple(
                question.metas[m]._replace(
                    owned=_map(question.metas[m].owned, numbers), last=_map(question.metas[m].last, numbers)
                )
                for m in order
            ),
            racks=tuple(question.racks[m] for m in order),
            instances=tuple(question.instances[m] for m in order),
        )
        answer = ask(setup, renamed)
        if not isinstance(answer, Refusal):
            back = {new: old for old, new in numbers.items()}
            shares = [Parts(0)] * len(order)
            for number, member in enumerate(order):
                shares[member] = _map(answer[number], back)
            answer = tuple(shares)
        found[answer] = None
    return tuple(sorted(found, key=repr))


def _map(parts: int, numbers: dict[int, int]) -> Parts:
    return union([1 << numbers[p] for p in each(parts)])


@lru_cache(maxsize=256)
def _namings(setup: Setup, members: int) -> tuple[tuple[tuple[int, ...], dict[int, int]], ...]:
    """Return orders of the members, and renamings of the partitions within their topics."""
    same = {p: p for parts in setup.topics for p in each(parts)}
    if setup.naming == "given":
        return ((tuple(range(members)), same),)
    renamings = setup.renamings()
    return tuple((order, numbers) for order in permutations(range(members)) for numbers in renamings)


def question_of(
    setup: Setup, me: MemberContext, member: Member, group: Group, records: Sequence[Records]
) -> tuple[Question, list[Id], list[bool]]:
    """Return what the leader asks its assignor, the member ids in order, and which of them are silent."""
    members = [
        (Id(Slot(slot), record.id), record)
        for slot in setup.slots
        for record in records[slot]
        if record.meta is not None
    ]
    metas = [record.meta for _, record in members if record.meta is not None]
    ranks = sorted({g for meta in metas for g in (meta.label, meta.own_gen)} - {NONE})
    rank = {NONE: NONE, **{g: Generation(number) for number, g in enumerate(ranks)}}
    config = me.config(member.stage)
    assert group.protocol is not None
    question = Question(
        protocol=group.protocol,
        switches=config.switches if group.protocol == "cooperative-sticky" else (),
        view=member.view,
        metas=tuple(
            meta._replace(label=rank[meta.label], own_gen=rank[meta.own_gen], assignors=(), noise=0)
            for meta in metas
        ),
        racks=tuple(setup.consumers[i.slot].rack for i, _ in members),
        instances=tuple(setup.consumers[i.slot].instance for i, _ in members),
        moved=member.view_moved,
    )
    return question, [i for i, _ in members], [record.silent for _, record in members]


def assign(
    me: MemberContext, wire: Wire, member: Member, group: Group, *records: Records
) -> Iterator[Outcome]:
    """onLeaderElected: the assignor's answers, each with the SyncGroup that carries it.

    If the group has moved on, the SyncGroup will be refused unread, and an empty one that decides nothing
    stands for it. (Where a failover makes the coordinator count that generation a second time, and the
    request was left behind, Kafka would believe it.)
    """
    if not isinstance(wire, JoinOk) or not wire.leader or not works(member):
        return
    if member.state is not MemberState.PREPARING:
        yield Outcome((member, None), seen=(Noted("JoinGroup response after a reset"),))
        return
    config = me.config(member.stage)
    decisions = config.decisions
    after = joined(member, wire, config)
    overtaken = (
        group.state not in (GroupState.COMPLETING, GroupState.STABLE) or group.generation != wire.generation
    )
    if overtaken:
        yield Outcome((after, Sync(wire.id, wire.generation)))
        return
    setup = me.setup
    everything = union([record.meta.topics for some in records for record in some if record.meta is not None])
    if "members_watch_own_topics" not in decisions:
        own = "leader_watches_own_topics" in decisions
        after = watches(setup, after, Topics(member.topics if own else everything))
    if wire.skip and "static_leader_returns_as_follower" in decisions:
        yield Outcome((joined(member, wire, config), Sync(wire.id, wire.generation)))
        return
    if wire.skip:
        if decisions.isdisjoint({"skipped_assignment_noted", "members_watch_own_topics"}):
            after = after._replace(watch=None, watch_moved=False)  # made of which metadata is unknown
        yield Outcome(
            (after, Sync(wire.id, wire.generation)), seen=(Noted("static leader skips the assignment"),)
        )
        return
    question, ids, silent = question_of(setup, me, member, group, records)
    claims = _claims(setup, ids, records)
    if setup.warmups:
        yield from _warmed_up(me, member, wire, after, question, ids, claims)
        return
    threw: Refusal | None = None
    for answer in answers(setup, question):
        if "validate_raw_claims" in decisions and not me.config(member.stage).eager:
            answer = validated(question, answer)
        if isinstance(answer, Refusal):
            threw = threw or answer
            continue
        shares = _hold_back(question, silent, answer) if any(silent) else answer
        grants = tuple(Grant(i, share) for i, share in zip(ids, shares, strict=True))
        text = "; ".join(f"{letter(g.id.slot)}: {setup.spell(g.parts)}" for g in grants)
        seen: Seen = (
            Decided(me.config(member.stage).eager, claims, grants),
            *_witnesses(setup, question, claims),
        )
        yield Outcome((after, Sync(wire.id, wire.generation, grants)), text, seen)
    if threw is not None:
        yield Outcome((after._replace(rejoin=True), None), "throws", (Threw(me.slot, threw.error),))


def fetch_and_assign(
    me: MemberContext, wire: Wire, member: Member, group: Group, cluster: ClusterState, *records: Records
) -> Iterator[Outcome]:
    """A leader of librdkafka fetches the metadata of all topics of the group before it assigns."""
    fresh = member._replace(view=cluster.parts, view_moved=cluster.moved)
    yield from assign(me, wire, fresh, group, *records)


def _warmed_up(
    me: MemberContext,
    member: Member,
    wire: JoinOk,
    after: Member,
    question: Question,
    ids: Sequence[Id],
    claims: tuple[tuple[Id, Parts, Generation, Parts], ...],
) -> Iterator[Outcome]:
    """Yield the assignments of a leader of Kafka Streams, whose tasks belong where roundrobin has them."""
    config = me.config(member.stage)
    target = ask(me.setup, question._replace(protocol="roundrobin", switches=()))
    assert not isinstance(target, Refusal), target.error
    at_once = "follow_up_at_once" in config.decisions
    for plan in warmups.plans(target, question.metas, me.setup.warmups, at_once=at_once):
        grants = tuple(map(Grant, ids, plan.shares, plan.copies))
        text = "; ".join(_granted_text(me.setup, grant) for grant in grants)
        seen: Seen = (Decided(config.eager, claims, grants), *_witnesses(me.setup, question, claims))
        pairs = zip(grants, question.metas, strict=True)
        if any(grant.parts & meta.caught_up & ~meta.owned for grant, meta in pairs):
            seen = (*seen, Noted("task moves to its warm-up"))
        yield Outcome((after, Sync(wire.id, wire.generation, grants)), text, seen)


def _granted_text(setup: Setup, grant: Grant) -> str:
    """Return what a member of Kafka Streams is assigned."""
    warm, asks = grant.copies
    parts = [f"{letter(grant.id.slot)}: {setup.spell(grant.parts)}"]
    parts += [f"warms up {setup.spell(warm)}"] if warm else []
    parts += [f"asks again {asks}"] if asks else []
    return ", ".join(parts)


def validated(question: Question, answer: Answer) -> Answer:
    """``validateCooperativeAssignment`` on raw claims: what is added somewhere is not claimed elsewhere."""
    if isinstance(answer, Refusal):
        return answer
    pairs = list(zip(question.metas, answer, strict=True))
    added = union([share & ~meta.owned for meta, share in pairs])
    revoked = union([meta.owned & ~share for meta, share in pairs])
    return Refusal("IllegalStateException: added and revoked at once") if added & revoked else answer


def _hold_back(question: Question, silent: Sequence[bool], answer: tuple[Parts, ...]) -> tuple[Parts, ...]:
    """Hold back as specified: what a silent static member may still hold goes to nobody else, whatever the
    assignor.

    Its claims say so where the coordinator completed them; elsewhere they are stale and this has no effect
    (``silent_static_claims_stale``).
    """
    held = union([meta.owned for meta, quiet in zip(question.metas, silent, strict=True) if quiet])
    return tuple(
        share if quiet else Parts(share & ~held) for share, quiet in zip(answer, silent, strict=True)
    )


def _claims(
    setup: Setup, ids: Sequence[Id], records: Sequence[Records]
) -> tuple[tuple[Id, Parts, Generation, Parts], ...]:
    metas = {Id(Slot(s), r.id): r.meta for s in setup.slots for r in records[s]}
    claims = []
    for i in ids:
        meta = metas[i]
        assert meta is not None
        claims.append((i, meta.owned, meta.own_gen, setup.parts(meta.topics)))
    return tuple(claims)


def _witnesses(
    setup: Setup, question: Question, claims: Sequence[tuple[Id, Parts, Generation, Parts]]
) -> Iterator[Noted]:
    """Yield situations worth a witness that show in what the leader was asked."""
    for _, owned, generation, _ in claims:
        if any(owned & other and generation < newer for _, other, newer, _ in claims):
            yield Noted("stale claim seen by a leader")
            break
    eager = [not meta.owned for meta in question.metas]
    kinds = {stage.eager for c in setup.consumers for stage in c.stages}
    if question.protocol == "cooperative-sticky" and len(kinds) > 1 and any(eager) and not all(eager):
        yield Noted("cooperative assignment in a mixed group")


def actions(setup: Setup) -> tuple[Action, ...]:
    """Return one action for each member that may lead."""
    records = tuple(f"record {letter(slot)}" for slot in setup.slots)
    mes = [MemberContext(Slot(slot), setup) for slot in setup.slots]
    return tuple(
        Action(
            name="assign",
            who=me.slot,
            reads=(me.name("wire"), me.name("member"), "group", *(["cluster"] if fetches else []), *records),
            writes=(me.name("member"), me.name("wire")),
            run=partial(fetch_and_assign if fetches else assign, me),
            guard=_leads,
        )
        for me, fetches in zip(mes, map(_fetches, mes), strict=True)
    )


def _fetches(me: MemberContext) -> bool:
    return any("members_watch_own_topics" in stage.decisions for stage in me.consumer.stages)


def _leads(wire: object) -> bool:
    return isinstance(wire, JoinOk) and wire.leader
