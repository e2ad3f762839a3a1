"""What can be taken out of a scenario so that a simpler one is left, and how real it is.

An ablation takes one kind of input out of the whole scenario, wherever it stands. What a clause needs in
order to break is what no ablation can take away: that names the cause.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from itertools import count
from typing import Any

from rebalance_verifier.gate.scenarios.minimise import plain_names
from rebalance_verifier.model.values import (
    NEWEST_VERSION,
    NO_GENERATION,
    SERVED,
    Partitions,
    RebalanceProtocol,
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
    each_member,
    everybody,
    topics_named,
    without_events_of,
)


class Realism(IntEnum):
    """How often groups see an input, the most frequent first."""

    HONEST = 0  # members that start with nothing or with what their group gave them, and miss nothing
    LATE = 1  # members that missed something
    MIXED = 2  # members of several releases or clients, or of old ones
    SHRINKING = 3  # topics that are deleted, or made again smaller
    UNREAL = 4  # what hardly a client sends

    @property
    def sentence(self) -> str:
        """Return what such input is."""
        return _SENTENCES[self]


_SENTENCES = {
    Realism.HONEST: "input that every group sees",
    Realism.LATE: "input of members that missed something",
    Realism.MIXED: "input of old, or different, clients",
    Realism.SHRINKING: "input about topics that shrink or go",
    Realism.UNREAL: "input that hardly any client sends",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ablation:
    """One kind of input and how to do without. ``without`` gives the scenario itself where there is none.

    ``instead``: another scenario without it, where taking it out takes too much.
    ``eager``: how real it is under EAGER, where claims are what an assignor wrote into its user data.
    ``served`` and ``served_realism``: its sentence, and how real it is, where a broker assigns, if those are
    others.
    """

    name: str
    sentence: str
    realism: Realism
    eager: Realism | None = None
    without: Callable[[Scenario], Scenario]
    instead: Callable[[Scenario], Scenario] | None = None
    served: str = ""
    served_realism: Realism | None = None

    def sentence_in(self, protocol: RebalanceProtocol) -> str:
        """Return its sentence under ``protocol``."""
        return self.served if self.served and protocol in SERVED else self.sentence

    def realism_in(self, protocol: RebalanceProtocol) -> Realism:
        """Return how real it is under ``protocol``."""
        other = {RebalanceProtocol.EAGER: self.eager, **dict.fromkeys(SERVED, self.served_realism)}
        return self.realism if (known := other.get(protocol)) is None else known


def _with(member: ScenarioMember, **values: Any) -> ScenarioMember:
    """Return the member with these values; itself where it has them, which is quicker and nearly always
    so."""
    for name, value in values.items():
        if getattr(member, name) != value:
            return replace(member, **values)
    return member


def _members(change: Callable[[ScenarioMember], ScenarioMember]) -> Callable[[Scenario], Scenario]:
    return lambda s: each_member(s, change)


def _events(keep: Callable[[ScenarioEvent], bool]) -> Callable[[Scenario], Scenario]:
    def without(s: Scenario) -> Scenario:
        rounds = tuple([tuple([e for e in events if keep(e)]) for events in s.rounds])
        return s if rounds == s.rounds else replace(s, rounds=rounds)

    return without


def _faults(*kinds: FaultKind) -> Callable[[Scenario], Scenario]:
    return _events(lambda e: not (isinstance(e, Fault) and e.kind in kinds))


def _keeping(s: Scenario, keep: Callable[[ScenarioMember, Counter[object]], Partitions]) -> Scenario:
    """Return claims thinned out, member by member, with what was kept before."""
    seen: Counter[object] = Counter()
    owned: dict[str, Partitions] = {}
    for member in everybody(s):
        owned[member.id] = keep(member, seen)
    return each_member(s, lambda m: _with(m, owned=owned[m.id]))


def _sent_by_clients(s: Scenario) -> Scenario:
    instances = Counter(m.instance for m in everybody(s))
    return each_member(
        s,
        lambda m: _with(
            m,
            owned=tuple(p for p in m.owned if p.partition >= 0),
            topics=tuple(dict.fromkeys(m.topics)),
            instance=m.instance if instances[m.instance] == 1 else None,
            user_data=UserData.NONE if m.user_data is UserData.TRUNCATED else m.user_data,
        ),
    )


def _untied(s: Scenario) -> Scenario:
    def keep(member: ScenarioMember, seen: Counter[object]) -> Partitions:
        mine = {(p, member.generation) for p in member.owned}
        kept = tuple(p for p in member.owned if not seen[p, member.generation])
        seen.update(mine)
        return kept

    return _keeping(s, keep)


def _newest_only(s: Scenario) -> Scenario:
    newest: dict[object, int] = {}
    for member in everybody(s):
        for partition in member.owned:
            newest[partition] = max(newest.get(partition, member.generation), member.generation)
    return each_member(s, lambda m: _with(m, owned=tuple(p for p in m.owned if newest[p] <= m.generation)))


def _newest(s: Scenario) -> int:
    return max((m.generation for m in everybody(s)), default=NO_GENERATION)


def _labelled(s: Scenario) -> Scenario:
    newest = max(_newest(s), 1)

    def change(m: ScenarioMember) -> ScenarioMember:
        if m.generation > 0 or (m.generation == NO_GENERATION and not m.owned):
            return m
        return _with(m, generation=newest if m.owned else NO_GENERATION)

    return each_member(s, change)


def _one_generation(s: Scenario) -> Scenario:
    """Where a partition has two claimants, their generations tell them apart, and stay."""
    claimed = [p for m in everybody(s) for p in dict.fromkeys(m.owned)]
    if len(set(claimed)) < len(claimed):
        return s
    newest = _newest(s)
    return each_member(s, lambda m: _with(m, generation=newest) if m.generation != NO_GENERATION else m)


def _existing(s: Scenario) -> Scenario:
    there = {(topic, index) for topic, partitions in s.topics.items() for index in range(len(partitions))}
    return each_member(s, lambda m: _with(m, owned=tuple(p for p in m.owned if p in there)))


def _never_smaller(s: Scenario) -> Scenario:
    sizes = {topic: len(partitions) for topic, partitions in s.topics.items()}
    rounds = []
    for events in s.rounds:
        kept = []
        for event in events:
            if isinstance(event, SetTopic):
                size = -1 if event.partitions is None else len(event.partitions)
                if size < sizes.get(event.topic, 0):
                    continue
                sizes[event.topic] = size
            kept.append(event)
        rounds.append(tuple(kept))
    return s if tuple(rounds) == s.rounds else replace(s, rounds=tuple(rounds))


def _together(s: Scenario) -> Scenario:
    """Everybody is there from the start, and stays."""
    joined = tuple(e.member for events in s.rounds for e in events if isinstance(e, AddMember))
    known = {m.id for m in s.members}
    new = {m.id: m for m in joined if m.id not in known}
    there = replace(s, members=(*s.members, *new.values())) if new else s
    return _events(lambda e: not isinstance(e, AddMember | Leave))(there)


def _without_racks(s: Scenario) -> Scenario:
    def plain(event: ScenarioEvent) -> ScenarioEvent:
        if isinstance(event, SetTopic) and event.partitions:
            return replace(event, partitions=((),) * len(event.partitions))
        return event

    s = each_member(s, lambda m: _with(m, rack=None))
    rounds = tuple(tuple(map(plain, events)) for events in s.rounds)
    if rounds == s.rounds and not any(map(any, s.topics.values())):
        return s
    return replace(s, topics={t: ((),) * len(p) for t, p in s.topics.items()}, rounds=rounds)


def _known_topics_of(s: Scenario) -> set[str]:
    known = set(s.topics) | {e.topic for events in s.rounds for e in events if isinstance(e, SetTopic)}
    return known | {p.topic for m in everybody(s) for p in m.owned}


def _known_topics(s: Scenario) -> Scenario:
    """Nobody subscribes to what the leader never knows; a topic that is claimed was there once."""
    known = _known_topics_of(s)
    return each_member(s, lambda m: _with(m, topics=tuple(t for t in m.topics if t in known)))


def _empty_topics(s: Scenario) -> Scenario:
    """Give topics that the leader does not know no partitions."""
    unknown = {t for m in everybody(s) for t in m.topics} - _known_topics_of(s)
    return replace(s, topics={**s.topics, **dict.fromkeys(sorted(unknown), ())})


def _without_idle(s: Scenario) -> Scenario:
    idle = {m.id for m in everybody(s) if not m.topics}
    if not idle:
        return s
    kept = replace(s, members=tuple(m for m in s.members if m.id not in idle))
    return without_events_of(
        _events(lambda e: not (isinstance(e, AddMember) and e.member.id in idle))(kept), idle
    )


def _busy(s: Scenario) -> Scenario:
    """Give each member that subscribes to nothing a topic of its own, without partitions."""
    if all(m.topics for m in everybody(s)):
        return s
    own = next(name for n in count() if (name := f"t{n}") not in topics_named(s))
    return each_member(
        replace(s, topics={**s.topics, own: ()}), lambda m: m if m.topics else _with(m, topics=(own,))
    )


def _alike(s: Scenario) -> Scenario:
    every = tuple(dict.fromkeys(t for m in everybody(s) for t in m.topics))
    if len({frozenset(m.topics) for m in everybody(s) if m.topics}) <= 1:
        return s
    return each_member(s, lambda m: _with(m, topics=every) if m.topics else m)


def _own_history(s: Scenario) -> Scenario:
    """Nobody arrives with claims: who had some is there a rebalance earlier, the others join then."""
    if not any(m.owned for m in everybody(s)):
        return s
    old = tuple(m for m in s.members if m.owned)
    new = tuple(AddMember(m) for m in s.members if not m.owned)
    first, *rest = s.rounds or ((),)
    earlier = replace(s, members=old, rounds=((), (*new, *first), *rest))
    return each_member(earlier, lambda m: _with(m, owned=(), generation=NO_GENERATION))


_PLAIN_NAME = re.compile(r"[A-Z]\d*|t\d+|gone|new")


def _plain_names(s: Scenario) -> Scenario:
    members = everybody(s)
    names = {*s.topics, *(m.id for m in members), *(t for m in members for t in m.topics)}
    return s if all(map(_PLAIN_NAME.fullmatch, names)) else plain_names(s)


TABLE: tuple[Ablation, ...] = (  # the least real first: what goes first is what no real group needs to break
    Ablation(
        name="hostile", sentence="a member sends an index below 0, cut bytes, or a topic or instance twice",
        realism=Realism.UNREAL, without=_sent_by_clients,
    ),
    Ablation(
        name="repeated", sentence="a member lists a partition twice", realism=Realism.UNREAL,
        without=_members(lambda m: _with(m, owned=tuple(dict.fromkeys(m.owned)))),
    ),
    Ablation(
        name="unlabelled", sentence="a claim has no generation, or generation 0", realism=Realism.UNREAL,
        served="partitions were assigned",
        without=_labelled,
    ),
    Ablation(
        name="tied", sentence="two members claim a partition for the same generation",
        served="two members were assigned one partition", served_realism=Realism.HONEST,
        realism=Realism.UNREAL, without=_untied,
    ),
    Ablation(
        name="unsubscribed", sentence="a member claims what it does not subscribe to",
        served="a member was assigned what it does not subscribe to", served_realism=Realism.HONEST,
        realism=Realism.UNREAL, eager=Realism.LATE,
        without=_members(lambda m: _with(m, owned=tuple(p for p in m.owned if p.topic in m.topics))),
    ),
    Ablation(
        name="phantom", sentence="a member claims a partition that does not exist",
        served="a member was assigned a partition that does not exist",
        realism=Realism.SHRINKING, without=_existing,
    ),
    Ablation(
        name="shrinking", sentence="a topic is deleted, or made again with fewer partitions",
        realism=Realism.SHRINKING, without=_never_smaller,
    ),
    Ablation(
        name="ghosts", sentence="a member that was removed comes back with its claims",
        realism=Realism.MIXED, without=_faults(FaultKind.GHOST),
    ),
    Ablation(
        name="user-data", sentence="a member writes user data of another client", realism=Realism.MIXED,
        without=_members(lambda m: _with(m, user_data=UserData.OWN)),
    ),
    Ablation(
        name="clients", sentence="a member writes what another client writes", realism=Realism.MIXED,
        without=_members(lambda m: _with(m, writes="")),
    ),
    Ablation(
        name="eager", sentence="an EAGER member is beside COOPERATIVE ones", realism=Realism.MIXED,
        without=_members(lambda m: _with(m, eager=False)),
    ),
    Ablation(
        name="versions", sentence="a member writes an older version of its metadata",
        realism=Realism.MIXED, without=_members(lambda m: _with(m, version=NEWEST_VERSION)),
    ),
    Ablation(
        name="stale", sentence="a member claims what a newer claim holds", realism=Realism.LATE,
        served="two members were assigned one partition",
        without=_newest_only,
    ),
    Ablation(
        name="generations", sentence="members are of different generations", realism=Realism.LATE,
        served="members came at different times",
        without=_one_generation,
    ),
    Ablation(
        name="faults", sentence="a member misses a rebalance, or its answer", realism=Realism.LATE,
        without=_faults(FaultKind.SILENT, FaultKind.LOST_JOIN, FaultKind.MISSED_SYNC),
    ),
    Ablation(
        name="claims", sentence="members arrive with claims", realism=Realism.HONEST, without=_own_history,
        served="members were assigned partitions before",
    ),
    Ablation(
        name="names", sentence="names are not plain", realism=Realism.HONEST, without=_plain_names,
    ),
    Ablation(
        name="growing", sentence="a topic is created or grows", realism=Realism.HONEST,
        without=_events(lambda e: not isinstance(e, SetTopic)),
    ),
    Ablation(
        name="resubscribing", sentence="a member changes its subscription", realism=Realism.HONEST,
        without=_events(lambda e: not isinstance(e, Subscribe)),
    ),
    Ablation(
        name="membership", sentence="members join or leave", realism=Realism.HONEST, without=_together,
    ),
    Ablation(
        name="static", sentence="members are static", realism=Realism.HONEST,
        without=_members(lambda m: _with(m, instance=None)),
    ),
    Ablation(
        name="unknown-topics", sentence="a member subscribes to a topic that the leader does not know",
        served="a member subscribes to a topic that does not exist",
        realism=Realism.HONEST, without=_known_topics, instead=_empty_topics,
    ),
    Ablation(
        name="idle", sentence="a member subscribes to nothing", realism=Realism.HONEST,
        without=_without_idle, instead=_busy,
    ),
    Ablation(
        name="racks", sentence="racks are known", realism=Realism.HONEST, without=_without_racks,
    ),
    Ablation(
        name="unequal", sentence="members subscribe to different topics", realism=Realism.HONEST,
        without=_alike,
    ),
)  # fmt: skip

BY_NAME: Mapping[str, Ablation] = {ablation.name: ablation for ablation in TABLE}


def present(scenario: Scenario) -> frozenset[str]:
    """Return the names of what could be taken out of ``scenario``."""
    return frozenset([ablation.name for ablation in TABLE if _changes(ablation, scenario)])


def is_within(scenario: Scenario, most: Realism) -> bool:
    """Check whether nothing in ``scenario`` is less real than ``most``."""
    less = (ablation for ablation in TABLE if ablation.realism_in(scenario.protocol) > most)
    return not any(_changes(ablation, scenario) for ablation in less)


def _changes(ablation: Ablation, scenario: Scenario) -> bool:
    without = ablation.without(scenario)
    return without is not scenario and without != scenario


def reduced(scenario: Scenario, keep: Iterable[str]) -> Scenario:
    """``scenario`` without all but what is to be kept."""
    kept = frozenset(keep)
    for ablation in TABLE:
        if ablation.name not in kept:
            scenario = ablation.without(scenario)
    return scenario


def ablated(scenario: Scenario, breaks: Callable[[Scenario], bool], keep: Iterable[str] = ()) -> Scenario:
    """``scenario``, which has to break, without whatever it breaks without; what is to be kept is."""
    tried = [ablation for ablation in TABLE if ablation.name not in frozenset(keep)]
    before = None
    while scenario != before:
        before = scenario
        for ablation in tried:
            for without in filter(None, (ablation.without, ablation.instead)):
                simpler = without(scenario)
                if simpler != scenario and breaks(simpler):
                    scenario = simpler
    return scenario
