"""Where scenarios come from: one function per dimension of the input space, freely combined."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from rebalance_verifier.base.draws import Draw, member_ids, pick, topic_names
from rebalance_verifier.model.values import (
    CLASSIC,
    NO_GENERATION,
    Partitions,
    Racks,
    RebalanceProtocol,
    TopicPartition,
)
from rebalance_verifier.properties.assignors.scenarios import (
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
    renamed,
    topics_named,
    uniform,
)

T = TypeVar("T")

COOPERATIVE = RebalanceProtocol.COOPERATIVE


@dataclass(frozen=True, slots=True)
class Size:
    """Least and most of what is drawn, partitions per topic; and how many disturbed rebalances at most."""

    members: tuple[int, int] = (1, 5)
    topics: tuple[int, int] = (1, 4)
    partitions: tuple[int, int] = (0, 8)
    rounds: int = 4


SMALL = Size()
MEDIUM = Size((8, 12), (2, 4), (10, 15), 3)
"""20 to 60 partitions. Indexes of two digits, so that a topic and an index can be read in two ways."""
LARGE = Size((1, 24), (1, 8), (0, 60), 3)
UNEVEN = Size((4, 14), (4, 8), (0, 60), 3)
"""Many topics, some tiny, some large. Groups of Java's that never settle because of racks are one in ten with
unequal subscriptions, one in thousands of small ones."""

RACKS = ("r1", "r2", "r3")


@dataclass(slots=True, kw_only=True)
class _Plan:
    """A scenario while its dimensions are drawn one after the other."""

    draw: Draw
    size: Size
    protocol: RebalanceProtocol
    topics: dict[str, tuple[Racks, ...]]
    members: list[ScenarioMember]
    rounds: list[list[ScenarioEvent]] = field(default_factory=lambda: [[]])
    generation: int = 5
    racks: bool = False

    def chance(self, one_in: int) -> bool:
        return self.draw.integer(0, one_in - 1) == one_in - 1

    def pick(self, items: Sequence[T]) -> T:
        return pick(self.draw, items)

    def some(self, items: Sequence[T], one_in: int = 2) -> tuple[T, ...]:
        return tuple(item for item in items if self.chance(one_in))

    def ids(self) -> list[str]:
        """Everybody who is or will be in the group."""
        joined = [e.member.id for r in self.rounds for e in r if isinstance(e, AddMember)]
        return [m.id for m in self.members] + joined

    def partitions(self) -> Partitions:
        return tuple(TopicPartition(t, i) for t, ps in self.topics.items() for i in range(len(ps)))

    def round(self) -> list[ScenarioEvent]:
        """Return the events of a rebalance after the first, a new one while there is room."""
        if len(self.rounds) == 1 or (len(self.rounds) <= self.size.rounds and self.chance(2)):
            self.rounds.append([])
        return self.rounds[self.draw.integer(1, len(self.rounds) - 1)]

    def scenario(self, dimensions: Iterable[str] = ()) -> Scenario:
        """Return what it has come to."""
        return Scenario(
            protocol=self.protocol,
            topics=self.topics,
            members=tuple(self.members),
            rounds=tuple(tuple(events) for events in self.rounds),
            dimensions=tuple(dimensions),
        )

    def each_member(self, change: Callable[[ScenarioMember], ScenarioMember]) -> None:
        self.members = [change(m) for m in self.members]
        self.rounds = [
            [AddMember(change(e.member)) if isinstance(e, AddMember) else e for e in events]
            for events in self.rounds
        ]


def _unequal(plan: _Plan) -> None:
    """Members subscribe to different topics."""
    names = tuple(plan.topics)

    def change(member: ScenarioMember) -> ScenarioMember:
        # A pattern that matches no topic is a subscription to nothing.
        topics = plan.some(names) or (() if plan.chance(4) else (plan.pick(names),))
        return replace(member, topics=topics)

    plan.each_member(change)


def _claims(plan: _Plan) -> None:
    """Members arrive owning something, every partition with at most one of them, of a share group any."""
    if any(m.owned for m in plan.members):
        return  # another dimension has drawn them already
    owners = len(plan.members)
    owned: dict[str, list[TopicPartition]] = {m.id: [] for m in plan.members}
    if plan.protocol is RebalanceProtocol.SHARE:
        for partition in plan.partitions():
            for member in plan.members:
                if partition.topic in member.topics and plan.chance(2):
                    owned[member.id].append(partition)
        plan.members = [replace(m, owned=tuple(owned[m.id])) for m in plan.members]
        return
    skew = plan.draw.integer(0, 2)
    for partition in plan.partitions():
        choice = plan.draw.integer(0, owners + (skew if owners else 0))
        if choice:  # the skewed ones pile up on the first member
            member = plan.members[choice - 1 if choice <= owners else 0]
            if partition.topic in member.topics:
                owned[member.id].append(partition)
    plan.members = [replace(m, owned=tuple(owned[m.id]), generation=plan.generation) for m in plan.members]


def _stale(plan: _Plan) -> None:
    """Some members claim for an older generation, often what a newer claim holds."""
    _claims(plan)
    for index, member in enumerate(plan.members):
        if plan.chance(2):
            extra = tuple(p for p in plan.partitions() if p.topic in member.topics and plan.chance(4))
            plan.members[index] = replace(
                member,
                owned=tuple(dict.fromkeys(member.owned + extra)),
                generation=plan.generation - plan.draw.integer(1, 3),
            )


def _duplicated(plan: _Plan) -> None:
    """Two members claim one partition for the same generation."""
    _claims(plan)
    for index, member in enumerate(plan.members):
        extra = tuple(p for p in plan.partitions() if p.topic in member.topics and plan.chance(4))
        plan.members[index] = replace(member, owned=tuple(dict.fromkeys(member.owned + extra)))


def _repeated(plan: _Plan) -> None:
    """A member lists one partition twice."""
    _claims(plan)
    plan.members = [
        replace(m, owned=(*m.owned, plan.pick(m.owned))) if m.owned and plan.chance(2) else m
        for m in plan.members
    ]


def _unsubscribed(plan: _Plan) -> None:
    """Members hold partitions of topics that they do not, or no longer, subscribe to."""
    if len({m.topics for m in plan.members}) == 1:
        _unequal(plan)
    _claims(plan)
    taken = {p for m in plan.members for p in m.owned}
    for index, member in enumerate(plan.members):
        foreign = [p for p in plan.partitions() if p.topic not in member.topics and p not in taken]
        extra = plan.some(foreign, 3)
        taken.update(extra)
        plan.members[index] = replace(member, owned=member.owned + extra)


def _unknown(plan: _Plan) -> None:
    """Members hold, and subscribe to, what does not exist: gone topics, gone indexes."""
    _claims(plan)
    for index, member in enumerate(plan.members):
        extra: Partitions = ()
        topics = member.topics
        if plan.chance(2):
            topics = (*topics, "gone")
            extra += (TopicPartition("gone", index),)
        if plan.chance(2) and member.topics:
            topic = plan.pick(member.topics)
            beyond = len(plan.topics.get(topic, ())) + index  # recreated smaller: one index each
            extra += (TopicPartition(topic, beyond),)
        plan.members[index] = replace(member, topics=topics, owned=member.owned + extra)


def _no_metadata(plan: _Plan) -> None:
    """Topics that somebody subscribes to and that there is no metadata of."""
    plan.topics = {topic: racks for topic, racks in plan.topics.items() if not plan.chance(2)}


def _generations(plan: _Plan) -> None:
    """Generation labels absent, equal, older and newer, claims as they are."""
    if not any(m.owned for m in plan.members):
        _claims(plan)
    g = plan.generation
    plan.members = [
        replace(m, generation=plan.pick((g, NO_GENERATION, g - 1, g + 1, 1))) for m in plan.members
    ]


def _versions(plan: _Plan) -> None:
    """Metadata versions 0 to 3 in one group."""
    plan.each_member(lambda m: replace(m, version=3 - plan.draw.integer(0, 3)))


def _user_data(plan: _Plan) -> None:
    """With and without userData, with an empty one, also that of other assignors."""
    kinds = tuple(kind for kind in UserData if kind is not UserData.TRUNCATED)
    plan.each_member(lambda m: replace(m, user_data=plan.pick(kinds)))


def _racks(plan: _Plan) -> None:
    """Racks of replicas and members, some unknown."""
    plan.racks = True
    plan.topics = {
        topic: tuple(_some_racks(plan) for _ in partitions) for topic, partitions in plan.topics.items()
    }
    plan.each_member(lambda m: replace(m, rack=None if plan.chance(4) else plan.pick(RACKS)))


def _some_racks(plan: _Plan) -> Racks:
    return tuple(sorted({plan.pick(RACKS), plan.pick(RACKS)}))


def _static(plan: _Plan) -> None:
    """Static members (KIP-345)."""
    plan.each_member(lambda m: replace(m, instance=None if plan.chance(2) else f"i-{m.id}"))


def _eager(plan: _Plan) -> None:
    """EAGER members, which claim nothing, beside COOPERATIVE ones."""
    plan.each_member(lambda m: replace(m, eager=plan.chance(2)))


def _membership(plan: _Plan) -> None:
    """Members join and leave between rebalances."""
    for number in range(plan.draw.integer(1, 3)):
        if plan.chance(2) or len(plan.members) < 2:
            template = plan.pick(plan.members)
            newcomer = replace(
                template,
                id=_name(len(plan.members) + number),
                owned=(),
                generation=NO_GENERATION,
                instance=None,
            )
            plan.round().append(AddMember(newcomer))
        else:
            plan.round().append(Leave(plan.pick(plan.members).id))


def _resubscribe(plan: _Plan) -> None:
    """Members change their subscription between rebalances."""
    names = tuple(plan.topics) or ("t0",)
    for _ in range(plan.draw.integer(1, 2)):
        event = Subscribe(plan.pick(plan.ids()), plan.some(names) or (plan.pick(names),))
        plan.round().append(event)


def _topics(plan: _Plan) -> None:
    """Topics are created, deleted, grown and recreated smaller between rebalances."""
    names = tuple(plan.topics) or ("t0",)
    everything = (*names, "new")
    plan.each_member(lambda m: replace(m, topics=(*m.topics, "new")) if plan.chance(2) else m)
    for _ in range(plan.draw.integer(1, 3)):
        topic = plan.pick(everything)
        count = plan.draw.integer(0, plan.size.partitions[1])
        gone = plan.chance(4)
        racks = tuple(_some_racks(plan) if plan.racks else () for _ in range(count))
        plan.round().append(SetTopic(topic, None if gone else racks))


def _faults(plan: _Plan) -> None:
    """Members miss the SyncGroup, lose the JoinGroup response, stay silent, come back."""
    for _ in range(plan.draw.integer(1, 4)):
        kind = plan.pick((FaultKind.MISSED_SYNC, FaultKind.LOST_JOIN, FaultKind.SILENT))
        plan.round().append(Fault(kind, plan.pick(plan.ids())))
    if plan.chance(2):
        _membership(plan)


def _ghosts(plan: _Plan) -> None:
    """Members that were removed come back claiming what they held (KAFKA-12983)."""
    for _ in range(plan.draw.integer(1, 2)):
        plan.round().append(Fault(FaultKind.GHOST, plan.pick(plan.ids())))


def _hostile(plan: _Plan) -> None:
    """Draw input that no client sends: indexes below 0, generation 0, cut bytes, an instance twice.

    A topic twice is drawn too: sarama and kafka-go send it if the application names it twice.
    """
    _claims(plan)
    for index, member in enumerate(plan.members):
        below = TopicPartition(plan.pick(member.topics or ("t0",)), -1 - plan.draw.integer(0, 1))
        changes: tuple[dict[str, Any], ...] = (
            {"owned": (below, *member.owned), "generation": plan.generation},
            {"generation": 0},
            {"user_data": UserData.TRUNCATED},
            {"instance": "i-twice"},
            {"topics": member.topics * 2},
        )
        for change in plan.some(changes, 3) or (plan.pick(changes),):
            member = replace(member, **change)
        plan.members[index] = member


def _order(plan: _Plan) -> None:
    """The group is iterated in any order, topics are listed in any order."""
    plan.members = _shuffled(plan, plan.members)
    plan.each_member(lambda m: replace(m, topics=tuple(_shuffled(plan, m.topics))))


def _names(plan: _Plan) -> None:
    """Topics and members are called as people do: dots, dashes, UUIDs, one the beginning of another."""
    plain = plan.scenario()
    topics = sorted(topics_named(plain), key=lambda t: -len(plain.topics.get(t, ())))
    ids = list(dict.fromkeys(plan.ids()))
    named = renamed(
        plain,
        dict(zip(ids, member_ids(plan.draw, len(ids)), strict=True)),
        dict(zip(topics, topic_names(plan.draw, len(topics)), strict=True)),
    )
    plan.topics, plan.members = dict(named.topics), list(named.members)
    plan.rounds = [list(events) for events in named.rounds]


def _shuffled(plan: _Plan, items: Iterable[T]) -> list[T]:
    rest = list(items)
    return [rest.pop(plan.draw.integer(0, len(rest) - 1)) for _ in range(len(rest))]


@dataclass(frozen=True, slots=True)
class Dimension:
    """One independent way in which inputs vary. ``protocols``: where it means anything."""

    name: str
    apply: Callable[[_Plan], None]
    protocols: tuple[RebalanceProtocol, ...] = tuple(RebalanceProtocol)

    @property
    def sentence(self) -> str:
        return " ".join((self.apply.__doc__ or "").split())


# In the order in which they are applied: subscriptions before claims before labels before events.
DIMENSIONS: tuple[Dimension, ...] = (
    Dimension("unequal", _unequal),
    Dimension("claims", _claims),
    Dimension("stale", _stale, CLASSIC),
    Dimension("duplicated", _duplicated, CLASSIC),
    Dimension("repeated", _repeated, CLASSIC),
    Dimension("unsubscribed", _unsubscribed),
    Dimension("unknown", _unknown),
    Dimension("generations", _generations, CLASSIC),
    Dimension("versions", _versions, CLASSIC),
    Dimension("user-data", _user_data, CLASSIC),
    Dimension("racks", _racks),
    Dimension("static", _static),
    Dimension("eager", _eager, (COOPERATIVE,)),
    Dimension("order", _order),
    Dimension("membership", _membership),
    Dimension("resubscribe", _resubscribe),
    Dimension("topics", _topics),
    Dimension("faults", _faults, CLASSIC),
    Dimension("ghosts", _ghosts, CLASSIC),
    Dimension("no-metadata", _no_metadata),
    Dimension("hostile", _hostile, CLASSIC),
    Dimension("names", _names),
)
BY_NAME = {dimension.name: dimension for dimension in DIMENSIONS}
EVENTS = frozenset({"membership", "resubscribe", "topics", "faults", "ghosts"})
"""Those that make more calls than one, before the group is left alone."""


def generate(
    draw: Draw, protocol: RebalanceProtocol, dimensions: Iterable[str] = (), size: Size = SMALL
) -> Scenario:
    """Return one scenario that varies along ``dimensions``; without any, a fresh group, equal subscriptions.

    Raises ``ValueError`` naming a dimension that does not exist.
    """
    wanted = set(dimensions)
    if unknown := sorted(wanted - BY_NAME.keys()):
        raise ValueError(f"no dimension is called {unknown[0]!r}; known: {', '.join(BY_NAME)}")
    counts = [draw.integer(*size.partitions) for _ in range(draw.integer(*size.topics))]
    topics: dict[str, tuple[Racks, ...]] = {f"t{i}": ((),) * count for i, count in enumerate(counts)}
    ids = [_name(i) for i in range(draw.integer(*size.members))]
    plan = _Plan(
        draw=draw,
        size=size,
        protocol=protocol,
        topics=topics,
        members=[ScenarioMember(id=i, topics=tuple(topics)) for i in ids],
    )
    chosen = [d for d in DIMENSIONS if d.name in wanted and protocol in d.protocols]
    for dimension in chosen:
        dimension.apply(plan)
    return plan.scenario(d.name for d in chosen)


def _name(index: int) -> str:
    """A, B, ... Z, A1, B1 ...: readable ids whose sorted order is not that of creation for long."""
    letter = chr(ord("A") + index % 26)
    return letter if index < 26 else f"{letter}{index // 26}"


# -- which scenarios there are ----------------------------------------------------------------------

TOGETHER: tuple[tuple[tuple[str, ...], Size], ...] = (
    (("unequal", "claims"), SMALL),
    (("unequal", "membership"), SMALL),
    (("unequal", "faults"), SMALL),
    (("racks", "membership"), SMALL),
    (("claims", "names"), MEDIUM),
    (("unequal", "racks"), MEDIUM),
    (("unequal", "claims", "racks"), UNEVEN),
)
"""Dimensions that do most together: moving partitions is hard only where not everybody may have them."""

HOSTILE = "hostile"
"""The dimension of what hardly a client sends, which is never mixed with others."""

ONE_IN_LARGE = 100
"""How many of the random combinations of a campaign there are for one of the large size."""

CROWD = "crowd"
"""The dimension of the one scenario that only an efficient assignor survives."""

CROWDED = 10
"""Topics that it has."""


def along(protocol: RebalanceProtocol) -> list[tuple[tuple[str, ...], Size]]:
    """Return what is searched systematically: nothing special, every single dimension, and some together.
    Small groups come first, and of equal size those in which nothing happens after the first call."""
    single = [((d.name,), SMALL) for d in DIMENSIONS if protocol in d.protocols]
    everything = [((), SMALL), *single, *TOGETHER]
    return sorted(everything, key=lambda one: (one[1].members, not EVENTS.isdisjoint(one[0])))


def some(draw: Draw) -> tuple[str, ...]:
    """Return a random combination of dimensions. Swarm: few at once now, many then."""
    one_in = draw.integer(2, 6)
    return tuple(d.name for d in DIMENSIONS if draw.integer(1, one_in) == 1 and d.name != HOSTILE)


def drawn(draw: Draw, protocols: Sequence[RebalanceProtocol]) -> Scenario:
    """Return a scenario that follows from ``draw`` alone: half along what is systematic, half along
    combinations."""
    protocol = protocols[draw.integer(0, len(protocols) - 1)]
    if draw.integer(0, 1):
        return generate(draw, protocol, *pick(draw, along(protocol)))
    return generate(draw, protocol, some(draw), LARGE if draw.integer(1, ONE_IN_LARGE) == 1 else SMALL)


def crowd(protocol: RebalanceProtocol, members: int, count: int = CROWDED) -> Scenario:
    """As many partitions as members, and one member more: what took minutes before KAFKA-9987."""
    most = min(count, CROWDED)
    topics = uniform({f"t{i}": members // most for i in range(most)})
    ids = [f"member-{i:05}" for i in range(members)]
    joiner = AddMember(ScenarioMember(id=f"member-{members:05}", topics=tuple(topics)))
    everybody = tuple(ScenarioMember(id=i, topics=tuple(topics)) for i in ids)
    return Scenario(
        protocol=protocol, topics=topics, members=everybody, rounds=((), (joiner,)), dimensions=(CROWD,)
    )
