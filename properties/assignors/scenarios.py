"""A scenario: everything that a history of rebalances is played from, as plain data.

A scenario holds no claim that the target's own answers could produce: those follow from playing it
(``gate.scenarios.player``). What it does hold are the claims members arrive with, the
events before each rebalance and the faults during it. It is what is generated, minimised, saved in
a trace and replayed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from operator import is_
from typing import Any, TypeVar

from rebalance_verifier.model.values import (
    NEWEST_VERSION,
    NO_GENERATION,
    Cluster,
    Partitions,
    Racks,
    RebalanceProtocol,
    TopicPartition,
)
from rebalance_verifier.model.written import dialect


class UserData(StrEnum):
    """User data that a member writes into its subscription."""

    OWN = "own"  # what the target's own client code writes
    NONE = "none"
    EMPTY = "empty"  # no bytes, which is not the same: what kafka-python sends on cooperative-sticky
    STICKY_V0 = "sticky-v0"  # StickyAssignor before KIP-341, no generation
    STICKY_V1 = "sticky-v1"  # StickyAssignor since KIP-341; librdkafka sends it on cooperative-sticky too
    TRUNCATED = "truncated"  # the first half of that: no client sends it, nobody can read it


MAX_PARTITIONS = 1_000_000
"""Of a scenario that is read from a file, in which a number stands for as many."""

UNREADABLE = (UserData.NONE, UserData.EMPTY, UserData.TRUNCATED)
"""What holds no claim."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioMember:
    """A member as it arrives: what it subscribes to, and what it believes to own since ``generation``."""

    id: str
    topics: tuple[str, ...]
    owned: Partitions = ()
    generation: int = NO_GENERATION
    version: int = NEWEST_VERSION
    rack: str | None = None
    instance: str | None = None
    eager: bool = False
    user_data: UserData = UserData.OWN
    writes: str = ""
    """Client whose bytes it writes, CLIENT==RELEASE:ASSIGNOR; "": what its other fields say."""


@dataclass(frozen=True, slots=True)
class AddMember:
    """A new member joins before this rebalance."""

    member: ScenarioMember


@dataclass(frozen=True, slots=True)
class Leave:
    """A member leaves for good before this rebalance."""

    id: str


@dataclass(frozen=True, slots=True)
class Subscribe:
    """A member changes its subscription; in COOPERATIVE it revokes dropped topics first (KIP-429 1.1)."""

    id: str
    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SetTopic:
    """A topic is created, grown or recreated with these partitions; ``None`` deletes it."""

    topic: str
    partitions: tuple[Racks, ...] | None


class FaultKind(StrEnum):
    """Fault of one member in one rebalance."""

    SILENT = "silent"  # does not join: a dynamic member is removed and loses all; a static one is kept
    GHOST = "ghost"  # as SILENT, and comes back still claiming what it held (KAFKA-12983)
    LOST_JOIN = "lost-join"  # joins, never sees the JoinGroup response: keeps set and generation
    MISSED_SYNC = "missed-sync"  # sees the new generation, not the assignment: SyncGroup failed


@dataclass(frozen=True, slots=True)
class Fault:
    """``kind`` happens to member ``id`` in this rebalance."""

    kind: FaultKind
    id: str


ScenarioEvent = AddMember | Leave | Subscribe | SetTopic | Fault
Round = tuple[ScenarioEvent, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """``members`` join the first rebalance; each round is one rebalance, with its events before it.

    After the last round the group is left alone until it settles. ``topics`` is the cluster at the
    start. ``dimensions`` names the parts of the input space it was drawn from, for reports only.
    """

    protocol: RebalanceProtocol
    topics: Mapping[str, tuple[Racks, ...]]
    members: tuple[ScenarioMember, ...]
    rounds: tuple[Round, ...] = ((),)
    dimensions: tuple[str, ...] = field(default=(), compare=False)

    nouns = ("member", "partition", "claim", "event")
    """What ``size`` counts."""

    @property
    def size(self) -> tuple[int, int, int, int]:
        """Members, partitions, claims, events: smaller is simpler, in this order."""
        joined = [e.member for r in self.rounds for e in r if isinstance(e, AddMember)]
        everyone = [*self.members, *joined]
        created = [len(e.partitions or ()) for r in self.rounds for e in r if isinstance(e, SetTopic)]
        return (
            len(everyone),
            sum(len(p) for p in self.topics.values()) + sum(created),
            sum(len(m.owned) for m in everyone),
            len(self.rounds) + sum(len(r) for r in self.rounds),
        )


def everybody(scenario: Scenario) -> list[ScenarioMember]:
    """Return its members, and those that join later."""
    joined = (e.member for events in scenario.rounds for e in events if isinstance(e, AddMember))
    return [*scenario.members, *joined]


def topics_named(scenario: Scenario) -> list[str]:
    """Return the topics that exist, are subscribed to or claimed, or are set, in order of appearance."""
    named = list(scenario.topics)
    for member in everybody(scenario):
        named += member.topics
        named += [p.topic for p in member.owned]
    named += [e.topic for events in scenario.rounds for e in events if isinstance(e, SetTopic)]
    return list(dict.fromkeys(named))


def renamed(scenario: Scenario, members: Mapping[str, str], topics: Mapping[str, str]) -> Scenario:
    """Return the same with other names: old to new; what is in neither mapping keeps its name. An instance is
    named after its member, one that several members claim to be stays."""
    instances = Counter(m.instance for m in everybody(scenario))

    def member(m: ScenarioMember) -> ScenarioMember:
        new_id = members.get(m.id, m.id)
        return replace(
            m,
            id=new_id,
            topics=tuple(topics.get(t, t) for t in m.topics),
            owned=tuple(p._replace(topic=topics.get(p.topic, p.topic)) for p in m.owned),
            instance=m.instance and (m.instance if instances[m.instance] > 1 else f"i-{new_id}"),
        )

    def event(e: ScenarioEvent) -> ScenarioEvent:
        match e:
            case AddMember(m):
                return AddMember(member(m))
            case Subscribe(who, names):
                return Subscribe(members.get(who, who), tuple(topics.get(t, t) for t in names))
            case SetTopic(name, partitions):
                return SetTopic(topics.get(name, name), partitions)
            case Leave(who):
                return Leave(members.get(who, who))
            case Fault(kind, who):
                return Fault(kind, members.get(who, who))

    return replace(
        scenario,
        topics={topics.get(t, t): p for t, p in scenario.topics.items()},
        members=tuple(member(m) for m in scenario.members),
        rounds=tuple(tuple(event(e) for e in events) for events in scenario.rounds),
    )


# -- edited: claims and events follow what they are about ----------------------------------------------


def each_member(s: Scenario, change: Callable[[ScenarioMember], ScenarioMember]) -> Scenario:
    """Return the scenario with every member changed, those that join later too; itself if none was: what asks
    so of each of thousands of scenarios finds little to change."""
    members = tuple([change(m) for m in s.members])
    rounds = (
        tuple([tuple([_of_member(e, change) for e in events]) for events in s.rounds])
        if any(s.rounds)
        else s.rounds
    )
    same = all(map(is_, members, s.members)) and (
        rounds is s.rounds or all(all(map(is_, new, old)) for new, old in zip(rounds, s.rounds, strict=True))
    )
    return s if same else replace(s, members=members, rounds=rounds)


def _of_member(e: ScenarioEvent, change: Callable[[ScenarioMember], ScenarioMember]) -> ScenarioEvent:
    if not isinstance(e, AddMember):
        return e
    member = change(e.member)
    return e if member is e.member else AddMember(member)


def without_events_of(s: Scenario, gone: set[str]) -> Scenario:
    def about(event: ScenarioEvent) -> bool:
        return isinstance(event, Leave | Subscribe | Fault) and event.id in gone

    return replace(s, rounds=tuple(tuple(e for e in events if not about(e)) for events in s.rounds))


def without_topics(s: Scenario, gone: set[str]) -> Scenario:
    rounds = (
        tuple(e for e in events if not (isinstance(e, SetTopic) and e.topic in gone)) for events in s.rounds
    )
    return each_member(
        replace(s, topics={t: p for t, p in s.topics.items() if t not in gone}, rounds=tuple(rounds)),
        lambda m: replace(
            m,
            topics=tuple(t for t in m.topics if t not in gone),
            owned=tuple(p for p in m.owned if p.topic not in gone),
        ),
    )


def without_partitions(s: Scenario, gone: set[TopicPartition]) -> Scenario:
    """Return the later ones of a topic move up, and with them what is claimed."""
    topics = {
        topic: tuple(racks for i, racks in enumerate(partitions) if (topic, i) not in gone)
        for topic, partitions in s.topics.items()
    }

    def moved(p: TopicPartition) -> TopicPartition:
        return p._replace(partition=p.partition - sum(g.topic == p.topic and g < p for g in gone))

    return each_member(
        replace(s, topics=topics),
        lambda m: replace(m, owned=tuple(moved(p) for p in m.owned if p not in gone)),
    )


def with_one_topic(s: Scenario, kept: str, gone: str) -> Scenario:
    """Return the scenario in which the partitions of topic ``gone`` follow those of ``kept``; neither is
    resized."""
    first = len(s.topics[kept])

    def named(topics: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(kept if topic == gone else topic for topic in topics))

    def change(m: ScenarioMember) -> ScenarioMember:
        owned = (TopicPartition(kept, p.partition + first) if p.topic == gone else p for p in m.owned)
        return replace(m, topics=named(m.topics), owned=tuple(owned))

    topics = {topic: partitions for topic, partitions in s.topics.items() if topic != gone}
    topics[kept] += s.topics[gone]
    rounds = (
        tuple(replace(e, topics=named(e.topics)) if isinstance(e, Subscribe) else e for e in events)
        for events in s.rounds
    )
    return each_member(replace(s, topics=topics, rounds=tuple(rounds)), change)


# -- built, written and read ---------------------------------------------------------------------------


def uniform(counts: Mapping[str, int]) -> dict[str, tuple[Racks, ...]]:
    """Return topics without rack information, as ``Scenario.topics`` wants them."""
    return dict(Cluster.of(counts).topics)


_EVENTS: dict[str, type[ScenarioEvent]] = {
    "join": AddMember,
    "leave": Leave,
    "subscribe": Subscribe,
    "topic": SetTopic,
    "fault": Fault,
}
_NAMES = {kind: name for name, kind in _EVENTS.items()}


def to_json(scenario: Scenario) -> dict[str, Any]:
    """Return readable, hand-editable JSON; members leave out what is at its default."""
    return {
        "protocol": scenario.protocol.value,
        "topics": {t: _racks_out(p) for t, p in scenario.topics.items()},
        "members": [_member_out(m) for m in scenario.members],
        "rounds": [[_event_out(e) for e in r] for r in scenario.rounds],
        "dimensions": list(scenario.dimensions),
    }


def from_json(data: Mapping[str, Any]) -> Scenario:
    """Return the scenario that ``to_json`` wrote. Raises ``ValueError`` naming the field that is wrong."""
    try:
        topics = _topics_and_racks(data["topics"])
        members = tuple(_member_in(m) for m in data["members"])
        rounds = tuple(tuple(_event_in(e) for e in r) for r in data.get("rounds", [[]]))
        protocol = _one_of(RebalanceProtocol, data["protocol"], "protocol")
    except KeyError as error:
        raise ValueError(f"scenario: field {error} is missing") from error
    except (TypeError, AttributeError) as error:
        raise ValueError(f"scenario: not of the expected form: {error}") from error
    ids = [m.id for m in members]
    if len(set(ids)) < len(ids):
        raise ValueError(f"scenario: member ids are not unique: {', '.join(ids)}")
    return Scenario(
        protocol=protocol,
        topics=topics,
        members=members,
        rounds=rounds,
        dimensions=tuple(data.get("dimensions", ())),
    )


def _topics_and_racks(data: Mapping[str, Any]) -> dict[str, tuple[Racks, ...]]:
    """Return the partitions of each topic. Raises ``ValueError`` where a number stands for too many."""
    if sum(count for count in data.values() if isinstance(count, int)) > MAX_PARTITIONS:
        raise ValueError(f"scenario: more than {MAX_PARTITIONS:,} partitions")
    return {str(topic): _racks_in(partitions) for topic, partitions in data.items()}


def _racks_out(partitions: tuple[Racks, ...]) -> Any:
    return [list(r) for r in partitions] if any(partitions) else len(partitions)


def _racks_in(data: Any) -> tuple[Racks, ...]:
    if isinstance(data, int):
        if data < 0:
            raise ValueError(f"scenario: {data} is not a number of partitions")
        return ((),) * data
    return tuple(tuple(sorted(str(rack) for rack in racks)) for racks in data)


def _member_out(member: ScenarioMember) -> dict[str, Any]:
    data: dict[str, Any] = {"id": member.id, "topics": list(member.topics)}
    for f in fields(ScenarioMember):
        value = getattr(member, f.name)
        if f.name not in data and value != f.default:
            data[f.name] = [_partition_out(p) for p in value] if f.name == "owned" else value
    return data


def _member_in(data: Mapping[str, Any]) -> ScenarioMember:
    known = {f.name for f in fields(ScenarioMember)}
    if unknown := sorted(set(data) - known):
        raise ValueError(f"scenario: member {data.get('id')!r}: unknown field {unknown[0]!r}")
    values = dict(data)
    values["topics"] = _topics_in(data["topics"])
    values["owned"] = tuple(_partition_in(p) for p in data.get("owned", ()))
    values["user_data"] = _one_of(UserData, data.get("user_data", UserData.OWN), "user_data")
    member = ScenarioMember(**values)
    for name, kind in _PLAIN.items():
        value = getattr(member, name)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise ValueError(f"scenario: member {member.id!r}: field {name!r} cannot be {value!r}")
    if not 0 <= member.version <= NEWEST_VERSION:
        raise ValueError(f"scenario: member {member.id!r}: field 'version' is 0 to {NEWEST_VERSION}")
    if member.writes:
        try:
            dialect(member.writes)
        except ValueError as error:
            raise ValueError(f"scenario: member {member.id!r}: {error}") from None
    return member


_PLAIN: dict[str, Any] = {
    "id": str,
    "generation": int,
    "version": int,
    "rack": str | None,
    "instance": str | None,
    "eager": bool,
    "writes": str,
}


def _topics_in(data: Any) -> tuple[str, ...]:
    if not isinstance(data, list | tuple):
        raise ValueError(f"scenario: {data!r} is not a list of topics")
    return tuple(str(topic) for topic in data)


E = TypeVar("E", bound=StrEnum)


def _one_of(kind: type[E], value: Any, name: str) -> E:
    try:
        return kind(value)
    except ValueError:
        raise ValueError(f"scenario: field {name!r} is {value!r}; known: {', '.join(kind)}") from None


def _partition_out(partition: TopicPartition) -> Any:
    """Return an index below 0 apart from its topic, which may end in a dash."""
    return str(partition) if partition.partition >= 0 else list(partition)


def _partition_in(text: Any) -> TopicPartition:
    if isinstance(text, list) and len(text) == 2 and type(text[1]) is int:
        return TopicPartition(str(text[0]), text[1])
    topic, dash, index = text.rpartition("-")
    if not dash or not index.isdigit():
        raise ValueError(f"scenario: {text!r} is not a partition such as 'orders-0'")
    return TopicPartition(topic, int(index))


def _event_out(event: ScenarioEvent) -> dict[str, Any]:
    name = _NAMES[type(event)]
    match event:
        case AddMember(member):
            return {name: _member_out(member)}
        case Leave(member_id):
            return {name: member_id}
        case Subscribe(member_id, topics):
            return {name: member_id, "topics": list(topics)}
        case SetTopic(topic, partitions):
            return {name: topic, "partitions": None if partitions is None else _racks_out(partitions)}
        case Fault(kind, member_id):
            return {name: kind.value, "member": member_id}


def _event_in(data: Mapping[str, Any]) -> ScenarioEvent:
    name = next((n for n in _EVENTS if n in data), None)
    value = data.get(name or "")
    match name:
        case "join":
            return AddMember(_member_in(data["join"]))
        case "leave":
            return Leave(str(value))
        case "subscribe":
            return Subscribe(str(value), _topics_in(data["topics"]))
        case "topic":
            partitions = data["partitions"]
            return SetTopic(str(value), None if partitions is None else _racks_in(partitions))
        case "fault":
            return Fault(_one_of(FaultKind, value, "fault"), str(data["member"]))
        case _:
            raise ValueError(f"scenario: unknown event {dict(data)!r}; known: {', '.join(_EVENTS)}")
