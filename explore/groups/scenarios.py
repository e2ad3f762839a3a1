"""Named scenarios: groups to explore, each a function from a few parameters to a setup.

A scenario says what kind of group it is; how large, of which releases and with which faults is up to the
caller. ``SCENARIOS`` is what ``rebalance list scenarios`` shows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from rebalance_verifier.base.names import unknown
from rebalance_verifier.model.assignors import reference
from rebalance_verifier.model.bugs.decisions import DECISIONS
from rebalance_verifier.model.bugs.profiles import (
    AS_SPECIFIED,
    broker,
    client,
    consumer_protocol_trouble,
    decisions_in,
    streams_trouble,
)
from rebalance_verifier.model.bugs.switches import SWITCHES, switched
from rebalance_verifier.model.group.parts import Parts, Topics
from rebalance_verifier.model.group.setup import (
    CLASSIC,
    CONNECTION_FAULTS,
    CONSUMER,
    MIGRATION,
    RARE_FAULTS,
    AssignorFactory,
    Consumer,
    ConsumerConfig,
    Setup,
    group_protocol,
)
from rebalance_verifier.model.protocols import FAULTS, PROTOCOLS, Protocol

COOPERATIVE = ("cooperative-sticky",)
BOTH = ("range", "cooperative-sticky")
EAGER = ("range",)
UNIFORM = ("uniform",)
"""The list of a member of the consumer protocol (KIP-848): the assignor that it asks the coordinator for."""

TOPIC_FAULTS = ("topic grows", "topic shrinks", "topic deleted")
ALWAYS_POSSIBLE = tuple(
    fault
    for fault in PROTOCOLS[CLASSIC].faults
    if fault not in ("resubscribe", "failover", *CONNECTION_FAULTS, *RARE_FAULTS)
)
"""Kinds of faults that mean something in every group; resubscribing takes two topics, a failover makes every
state remember the coordinator's log, and connections that break what is under way on them. The rare ones have
scenarios of their own."""


class ScenarioError(ValueError):
    """Parameters that no setup follows from; the text says which and what would do."""


@dataclass(frozen=True, kw_only=True)
class ScenarioSize:
    """Size of a scenario as the caller chooses it. None: what the scenario has by default.

    ``profiles`` are client releases, given to the members in turn; ``faults`` kinds of faults, of which
    ``budget`` may happen in all. ``switches`` are further decisions and assignor switches for everybody
    whom they concern. ``naming`` and ``steps`` as in ``Setup``; ``factory`` is the assignor's place.
    """

    members: int | None = None
    partitions: int | None = None
    profiles: tuple[str, ...] = (AS_SPECIFIED,)
    broker: str = AS_SPECIFIED
    faults: tuple[str, ...] | None = None
    budget: int | None = None
    switches: tuple[str, ...] = ()
    naming: str = "every"
    steps: str = "atomic"
    factory: AssignorFactory = switched


@dataclass(frozen=True, kw_only=True)
class NamedScenario:
    """One kind of group. ``lists[i]`` are the assignor lists of member ``i`` (the last one for all that
    follow), stage by stage; ``topics`` how many topics there are, ``spare`` how many partitions may grow."""

    name: str
    sentence: str
    members: int = 3
    partitions: int = 3
    budget: int = 1
    faults: tuple[str, ...] = ALWAYS_POSSIBLE
    lists: tuple[tuple[tuple[str, ...], ...], ...] = ((COOPERATIVE,),)
    topics: int = 1
    spare: int = 0
    static: bool = False
    apart: bool = False
    """Whether member i subscribes to topic i only at first, else everybody to everything."""
    crowded: int = 0
    """How many members more than ``group.max.size`` there are."""
    lowers: bool = False
    """Whether group.max.size is lower only at the broker that a failover moves the group to."""
    racks: int = 0
    """Over how many racks members and partitions are spread, in turn; 0 for none."""
    leaves: bool = True
    """Whether a member that is closed sends LeaveGroup (``internal.leave.group.on.close``)."""
    warmups: int = 0
    """``max.warmup.replicas`` of an application of Kafka Streams; 0 where the consumers are none."""
    policy: str = "bidirectional"
    """``group.consumer.migration.policy`` of the broker."""
    patterns: bool = False
    """Whether members subscribe by pattern, to all topics; the last one is not there at first (not so between
    the protocols, where topics stay as they are)."""

    def led_by(self, replaces: str) -> NamedScenario:
        """Return the scenario with ``replaces`` wherever it lists an assignor of the same protocols.

        Raises ScenarioError where it lists none.
        """
        if refusal := self.protocol.refusal("explore --target"):
            raise ScenarioError(refusal)
        kind = reference(replaces).protocols
        names = sorted({name for stages in self.lists for stage in stages for name in stage})
        if not any(reference(name).protocols == kind for name in names):
            spoken = "cooperative" if len(kind) > 1 else "eager"
            raise ScenarioError(f"is {spoken}; {self.name} has {', '.join(names)} only")

        def stood_for(stage: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(replaces if reference(name).protocols == kind else name for name in stage)

        return replace(self, lists=tuple(tuple(map(stood_for, stages)) for stages in self.lists))

    def refuse_renaming(self, naming: str | None, symmetry: bool) -> None:
        """Raise ScenarioError where members are to be renamed, and have an order that decides."""
        if self.warmups and (symmetry or naming == "every"):
            wanted = "--symmetry" if symmetry else "--naming every"
            raise ScenarioError(
                f"{wanted} does not go with {self.name}: the processes of a Kafka Streams application keep "
                "their order, in which warm-ups are placed"
            )

    @property
    def appears(self) -> bool:
        """Check whether the last topic is not there at first: members that subscribe by pattern find it."""
        return self.patterns and self.protocol.name != MIGRATION

    @property
    def protocol(self) -> Protocol:
        """Return the group protocol of its groups."""
        return PROTOCOLS[group_protocol(_spoken(stage) for stages in self.lists for stage in stages)]

    def setup(self, size: ScenarioSize = ScenarioSize()) -> Setup:
        """Return the setup of this scenario in the given size.

        Raises ScenarioError for what does not fit, naming it.
        """
        members = size.members if size.members is not None else self.members
        partitions = size.partitions if size.partitions is not None else self.partitions
        if not 1 <= members <= 12 or not 1 <= partitions <= 40:
            raise ScenarioError(
                f"{members} members x {partitions} partitions: 1 to 12 and 1 to 40 are possible"
            )
        if not self.topics or self.spare > 40:
            raise ScenarioError(
                f"scenario {self.name}: {self.topics} topics, {self.spare} spare partitions: "
                "at least 1 and at most 40 are possible"
            )
        if partitions < self.topics - self.appears:
            raise ScenarioError(
                f"scenario {self.name} has {self.topics} topics, so at least as many partitions"
            )
        if self.protocol.name != CLASSIC and (trouble := consumer_protocol_trouble(broker(size.broker))):
            raise ScenarioError(f"--broker: {trouble}")
        if self.appears and not (self.topics > 1 and self.spare):
            raise ScenarioError(
                f"scenario {self.name}: patterns find a topic that is not there at first: "
                "at least 2 topics and 1 spare partition"
            )
        topics, exist = _topics(partitions, self.topics, self.spare, appears=self.appears)
        setup = Setup(
            consumers=tuple(self._consumer(member, size, len(topics)) for member in range(members)),
            topics=topics,
            exist=exist,
            faults=self.faults,
            budget=self.budget if size.budget is None else size.budget,
            coordinator=broker(size.broker).decisions | _decisions(size.switches, "coordinator", "member"),
            max_size=max(1, members - self.crowded) if self.crowded else None,
            lowers=self.lowers,
            policy=self.policy,
            racks=self._racks(sum(topics).bit_length(), 0),
            moved=self._racks(sum(topics).bit_length(), 1),
            naming="given" if self.warmups else size.naming,
            steps=size.steps,
            warmups=self.warmups,
            factory=size.factory,
        )
        return setup if size.faults is None else replace(setup, faults=self._had(size.faults))

    def _had(self, faults: tuple[str, ...]) -> tuple[str, ...]:
        """Return those that there are; of all kinds those that such a group has.

        Raises ScenarioError for others.
        """
        kinds = self.protocol.faults
        if faults == FAULTS:
            return tuple(fault for fault in faults if fault in kinds)
        for fault in faults:
            if fault not in FAULTS:
                raise ScenarioError(unknown("fault", fault, FAULTS, "rebalance list faults"))
            if fault not in kinds:
                others = [protocol.groups for protocol in PROTOCOLS.values() if fault in protocol.faults]
                raise ScenarioError(f"{self.name}: {fault!r} is a fault of {' and '.join(others)}")
        return faults

    def refuse_stores(self, command: str) -> None:
        """Raise ScenarioError where Kafka's code would have to be one of Kafka Streams."""
        if self.warmups:
            raise ScenarioError(
                f"{self.name}: {command} plays Kafka's consumers, and no stores of Kafka Streams: "
                f"`rebalance explore {self.name}` searches the model"
            )

    def origin(self, size: ScenarioSize, setup: Setup) -> dict[str, Any]:
        """Return where the runs of a setup come from: what was chosen of ``size``, for a trace; an
        ``assignor`` of somebody's own by the name that its factory knows it by."""
        target = getattr(size.factory, "target", "")
        return {
            "scenario": self.name,
            "members": len(setup.consumers),
            "partitions": setup.exist.bit_count(),
            "profiles": list(size.profiles),
            "broker": size.broker,
            **({"assignor": target} if target else {}),
            **({"switches": list(size.switches)} if size.switches else {}),
            **({"steps": setup.steps} if setup.steps != "atomic" else {}),
            **({"naming": setup.naming} if setup.naming != "every" else {}),
            "budget": setup.budget,
            "faults": list(setup.faults),
        }

    def _consumer(self, member: int, size: ScenarioSize, topics: int) -> Consumer:
        profile = size.profiles[member % len(size.profiles)]
        lists = self.lists[min(member, len(self.lists) - 1)]
        if UNIFORM in lists and (trouble := consumer_protocol_trouble(client(profile))):
            raise ScenarioError(f"--release: {trouble}")
        everything, first, last = Topics((1 << topics) - 1), Topics(1), Topics(1 << topics - 1)
        of_stage = partial(self._stage, profile, size.switches)
        patterns: tuple[Topics, ...] = ()
        if self.patterns:
            nothing = Topics(0)
            subscriptions: tuple[Topics, ...] = (first, first) if member % 2 else (nothing, nothing, first)
            patterns = (everything, nothing) if member % 2 else (everything, last, nothing)
        elif topics == 1:
            subscriptions = (everything,)
        elif self.apart:
            subscriptions = (Topics(1 << member % topics), everything)
        else:
            subscriptions = (everything, first)
        return Consumer(
            stages=tuple(map(of_stage, lists)),
            subscriptions=subscriptions,
            instance=member if self.static else None,
            rack=f"r{member % self.racks}" if self.racks else None,
            patterns=patterns,
        )

    def _stage(self, profile: str, switches: tuple[str, ...], assignors: tuple[str, ...]) -> ConsumerConfig:
        """Return a consumer between two bounces. The user data of Kafka Streams carries no generation."""
        made = replace(runs(profile, assignors, switches), leaves=self.leaves)
        if not self.warmups:
            return made
        return replace(made, tells=False, decisions=made.decisions | _of_streams(self.name, profile))

    def _racks(self, partitions: int, first: int) -> tuple[tuple[str, ...], ...]:
        """Return the rack of each partition's replica, from the ``first`` rack on."""
        return tuple((f"r{(p + first) % self.racks}",) for p in range(partitions)) if self.racks else ()


def runs(profile: str, assignors: tuple[str, ...], switches: tuple[str, ...] = ()) -> ConsumerConfig:
    """Return a consumer of release ``profile`` with the assignor list ``assignors`` and further ``switches``.

    Raises ScenarioError for a switch that does not exist.
    """
    release = client(profile)
    return ConsumerConfig(
        assignors=assignors,
        decisions=release.decisions | _decisions(switches, "member", "leader", "coordinator"),
        switches=release.switches + tuple(s for s in switches if s in SWITCHES and s not in DECISIONS),
        version=release.metadata_version,
        tells=release.user_data_generation,
        group_protocol=_spoken(assignors),
    )


def _of_streams(scenario: str, profile: str) -> frozenset[str]:
    """Return what Kafka Streams of a client's release does wrong. Raises ScenarioError for other clients."""
    release = client(profile)
    if trouble := streams_trouble(release):
        raise ScenarioError(f"--release: {scenario}: {trouble}")
    return decisions_in("Streams", release.release)


def _spoken(assignors: tuple[str, ...]) -> str:
    """Return ``group.protocol`` of a member that lists these."""
    return CONSUMER if assignors == UNIFORM else CLASSIC


def _decisions(switches: tuple[str, ...], *where: str) -> frozenset[str]:
    for switch in switches:
        if switch not in DECISIONS and switch not in SWITCHES:
            raise ScenarioError(unknown("switch", switch, [*DECISIONS, *SWITCHES], "rebalance bugs"))
    return frozenset(s for s in switches if s in DECISIONS and DECISIONS[s].where in where)


def _topics(
    partitions: int, topics: int, spare: int, *, appears: bool = False
) -> tuple[tuple[Parts, ...], Parts]:
    """Partition sets of the topics, evenly; the last has ``spare`` more that do not exist yet, and no others
    where it ``appears``."""
    sets, exist, at = [], 0, 0
    there = topics - appears
    for topic in range(topics):
        count = partitions // there + (topic < partitions % there) if topic < there else 0
        more = spare if topic == topics - 1 else 0
        sets.append(Parts((1 << (count + more)) - 1 << at))
        exist |= (1 << count) - 1 << at
        at += count + more
    return tuple(sets), Parts(exist)


CONSUMER_FAULTS = tuple(
    fault
    for fault in PROTOCOLS[CONSUMER].faults
    if fault not in ("resubscribe", "topic grows", "topic made anew", *CONNECTION_FAULTS)
)
"""Kinds of faults that mean something in every consumer group of one topic that does not grow, on connections
that hold."""

MIGRATION_FAULTS = tuple(
    fault
    for fault in PROTOCOLS[MIGRATION].faults
    if fault not in ("resubscribe", "failover", "group expires", "topic made anew")
)
"""Kinds of faults of a group on its way between the protocols; a failover makes every state remember the
log."""

_STATIC_FAULTS = ("crash", "pause", "close", "disconnect", "slow member")

_TABLE = (
    NamedScenario(name="dynamic",
        sentence="dynamic COOPERATIVE members of one topic, every kind of fault but a failover"),
    NamedScenario(name="connections", sentence="the same on connections that break: a request may arrive "
        "after those of the next one", faults=(*ALWAYS_POSSIBLE, *CONNECTION_FAULTS)),
    NamedScenario(name="failover", sentence="the same with a coordinator that fails over", members=2,
        partitions=2, faults=(*ALWAYS_POSSIBLE, "failover")),
    NamedScenario(name="eager", sentence="EAGER members with the range assignor", lists=((EAGER,),)),
    NamedScenario(name="sticky", sentence="EAGER members with the sticky assignor, which claims in user data",
        members=2, partitions=2, lists=((("sticky",),),)),
    NamedScenario(name="mixed",
        sentence="one EAGER member [range, cooperative-sticky] among COOPERATIVE ones, in mid-upgrade",
        lists=((BOTH,), (COOPERATIVE,))),
    NamedScenario(name="default", sentence="members with the default list [range, cooperative-sticky]",
        members=2, partitions=2, lists=((BOTH,),)),
    NamedScenario(name="static", sentence="static members, which keep their place while they are away",
        members=2, partitions=2, static=True, faults=(*_STATIC_FAULTS, "unsubscribe", "slow network")),
    NamedScenario(name="static-connections", sentence="static members on connections that break",
        members=2, partitions=2, static=True,
        faults=("crash", "unsubscribe", "disconnect", *CONNECTION_FAULTS)),
    NamedScenario(name="static-failover", sentence="static members and a coordinator that fails over",
        members=2, partitions=1, budget=2, static=True, faults=("crash", "failover")),
    NamedScenario(name="topics",
        sentence="two topics; members change their subscriptions, topics grow, shrink and go", members=2,
        partitions=2, topics=2, spare=1, faults=("resubscribe", *TOPIC_FAULTS, "disconnect", "crash")),
    NamedScenario(name="apart", sentence="two topics, each member subscribes to another one at first",
        members=2, partitions=2, topics=2, spare=1, apart=True,
        faults=("resubscribe", *TOPIC_FAULTS, "disconnect", "crash")),
    NamedScenario(name="growing", sentence="one topic that grows, shrinks and goes", members=2, partitions=1,
        spare=1, budget=2, faults=(*TOPIC_FAULTS, "disconnect")),
    NamedScenario(name="growing-eager", sentence="the same for EAGER members", members=2, partitions=1,
        lists=((EAGER,),), spare=1, budget=2, faults=(*TOPIC_FAULTS, "disconnect")),
    NamedScenario(name="static-growing", sentence="static members that are restarted while their topic grows",
        members=2, partitions=1, spare=1, budget=2, static=True,
        faults=("close", "crash", "topic grows", "topic deleted", "disconnect")),
    NamedScenario(name="patterns", sentence="members that subscribe by pattern, each of which has to see a "
        "topic that appears", members=2, partitions=1, topics=2, spare=1, patterns=True,
        faults=("resubscribe", "topic grows", "topic deleted", "disconnect")),
    NamedScenario(name="crowded", sentence="one member more than group.max.size", members=3, partitions=2,
        crowded=1),
    NamedScenario(name="static-crowded", sentence="the same for static members, who keep their place",
        members=2, partitions=2, static=True, crowded=1, faults=("crash", "pause")),
    NamedScenario(name="static-topics", sentence="static members of two topics", members=2, partitions=2,
        topics=2, static=True, budget=2, faults=("crash", "resubscribe")),
    NamedScenario(name="mixed-failover", sentence="an upgrade half done and a coordinator that fails over",
        members=2, partitions=1, lists=((BOTH,), (COOPERATIVE,)), faults=("failover", "crash")),
    NamedScenario(name="leaving", sentence="members whose LeaveGroup gets lost, and an administrator who "
        "removes members", members=2, partitions=2, faults=("leave lost", "member removed", "pause")),
    NamedScenario(name="unsent-leave",
        sentence="members that send no LeaveGroup when they are closed, as those of Streams", members=2,
        partitions=2, leaves=False, faults=("close", "unsubscribe", "pause")),
    NamedScenario(name="appends", sentence="a coordinator that fails to append to its log, and fails over",
        members=2, partitions=1, budget=2, faults=("append fails", "sync not stored", "failover", "crash")),
    NamedScenario(name="static-appends", sentence="the same for static members, who may be removed",
        members=2, partitions=1, budget=2, static=True,
        faults=("sync not stored", "return not stored", "failover", "crash", "member removed")),
    NamedScenario(name="careless", sentence="one member more than group.max.size, and applications that poll "
        "on after a fatal error, throw in callbacks, and unsubscribe in the middle of a join", members=2,
        partitions=2, crowded=1, faults=("polls on", "completes again", "unsubscribe midway", "pause")),
    NamedScenario(name="midway",
        sentence="applications that throw in callbacks, and unsubscribe in the middle of a join", members=2,
        partitions=2, faults=("completes again", "unsubscribe midway", "slow network")),
    NamedScenario(name="shrinking",
        sentence="a failover to a broker with a lower group.max.size, which one member is too many for",
        members=2, partitions=2, crowded=1, lowers=True, faults=("failover", "polls on")),
    NamedScenario(name="racks", sentence="members and partitions in two racks, and replicas that move",
        members=2, partitions=2, racks=2, faults=("racks change", "disconnect", "crash")),
    NamedScenario(name="downgrade",
        sentence="a member that lists cooperative-sticky first, and one with range only", members=2,
        partitions=2, lists=((("cooperative-sticky", "range"),), (EAGER,)), faults=("crash",)),
    NamedScenario(name="streams", sentence="instances of Kafka Streams: a task moves once its store has "
        "caught up, and probing rebalances look for that (KIP-441)", members=2, partitions=2, warmups=2,
        faults=("crash", "close", "disconnect", "enforce"), leaves=False),
    NamedScenario(name="streams-eager", sentence="the same where upgrade.from keeps them EAGER", members=2,
        partitions=2, warmups=2, lists=((EAGER,),), faults=("crash", "close", "disconnect", "enforce"),
        leaves=False),
    NamedScenario(name="consumer", sentence="a consumer group (KIP-848) of one topic, every kind of fault",
        lists=((UNIFORM,),), faults=CONSUMER_FAULTS),
    NamedScenario(name="consumer-static", sentence="a consumer group of static members", members=2,
        partitions=2, lists=((UNIFORM,),), static=True, faults=CONSUMER_FAULTS),
    NamedScenario(name="consumer-crowded", sentence="a consumer group, and one member more than "
        "group.consumer.max.size", partitions=2, lists=((UNIFORM,),), crowded=1, faults=CONSUMER_FAULTS),
    NamedScenario(name="consumer-static-crowded", sentence="the same for static members, who keep their "
        "place", partitions=2, lists=((UNIFORM,),), static=True, crowded=1,
        faults=("crash", "close", "pause")),
    NamedScenario(name="consumer-connections", sentence="a consumer group on connections that break: a "
        "heartbeat may arrive after later ones", members=2, partitions=2, lists=((UNIFORM,),),
        faults=(*CONSUMER_FAULTS, "left behind")),
    NamedScenario(name="consumer-topics", sentence="a consumer group of two topics; members change their "
        "subscriptions, topics grow and go", members=2, partitions=2, lists=((UNIFORM,),), topics=2, spare=1,
        faults=("resubscribe", "topic grows", "topic deleted", "disconnect", "slow callback", "crash")),
    NamedScenario(name="consumer-anew", sentence="a consumer group whose topic is deleted and created again "
        "under its name", members=2, partitions=2, lists=((UNIFORM,),), spare=2,
        faults=("topic made anew", "topic deleted", "disconnect", "slow callback", "late request",
            "crash")),
    NamedScenario(name="consumer-patterns", sentence="a consumer group whose members subscribe by pattern, "
        "and a topic that appears", members=2, partitions=2, lists=((UNIFORM,),), topics=2, spare=1,
        patterns=True, faults=("resubscribe", "topic grows", "topic deleted", "disconnect", "crash")),
    NamedScenario(name="migration", sentence="a member of the consumer protocol among COOPERATIVE and EAGER "
        "ones of the classic protocol: it takes the group over, and back when it goes", partitions=2,
        lists=((UNIFORM,), (COOPERATIVE,), (BOTH,)), faults=MIGRATION_FAULTS),
    NamedScenario(name="migration-lists", sentence="the same where the classic members are EAGER and list "
        "different assignors", partitions=2, lists=((UNIFORM,), (("cooperative-sticky", "range"),), (EAGER,)),
        faults=MIGRATION_FAULTS),
    NamedScenario(name="migration-upgrade", sentence="members bounced from the classic protocol to the "
        "consumer protocol", members=2, partitions=2, lists=((COOPERATIVE, UNIFORM),),
        faults=MIGRATION_FAULTS),
    NamedScenario(name="migration-downgrade", sentence="members bounced from the consumer protocol back to "
        "the classic one", members=2, partitions=2, lists=((UNIFORM, COOPERATIVE),), faults=MIGRATION_FAULTS),
    NamedScenario(name="migration-static", sentence="static members, bounced to the consumer protocol and "
        "back again", members=2, partitions=2, lists=((COOPERATIVE, UNIFORM, COOPERATIVE),), static=True,
        faults=("crash", "pause", "disconnect", "session timeout")),
    NamedScenario(name="migration-failover", sentence="both protocols in a group whose coordinator fails "
        "over", members=2, partitions=2, lists=((UNIFORM,), (COOPERATIVE,)),
        faults=(*MIGRATION_FAULTS, "failover")),
    NamedScenario(name="migration-one-way", sentence="the same where the broker lets groups go up only",
        members=2, partitions=2, lists=((UNIFORM,), (COOPERATIVE,)), faults=MIGRATION_FAULTS,
        policy="upgrade"),
    NamedScenario(name="migration-crowded", sentence="both protocols, and one member more than "
        "group.max.size and group.consumer.max.size", partitions=2, lists=((UNIFORM,), (COOPERATIVE,)),
        crowded=1, faults=MIGRATION_FAULTS),
    NamedScenario(name="migration-patterns", sentence="static members that subscribe by pattern with the "
        "consumer protocol, and by name when they are back with the classic one", members=2, partitions=2,
        lists=((UNIFORM, COOPERATIVE),), topics=2, patterns=True, static=True,
        faults=("crash", "disconnect")),
    NamedScenario(name="migration-anew", sentence="both protocols in a group whose topic is deleted and "
        "created again under its name", members=2, partitions=2, lists=((UNIFORM,), (COOPERATIVE,)), spare=4,
        faults=("topic made anew", "disconnect", "slow callback", "late request", "crash", "close")),
    NamedScenario(name="migration-disabled", sentence="the same where the broker lets groups go neither way: "
        "who speaks the other protocol is turned away", members=2, partitions=2,
        lists=((UNIFORM,), (COOPERATIVE,)), faults=MIGRATION_FAULTS, policy="disabled"),
)  # fmt: skip

SCENARIOS: Mapping[str, NamedScenario] = {scenario.name: scenario for scenario in _TABLE}
"""All scenarios by name."""


def scenario(name: str) -> NamedScenario:
    """Return the scenario ``name``. Raises ScenarioError, which lists all, when there is none."""
    if name not in SCENARIOS:
        raise ScenarioError(unknown("scenario", name, SCENARIOS, "rebalance list scenarios"))
    return SCENARIOS[name]
