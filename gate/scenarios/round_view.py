"""What happens to the members of a scenario, round by round, and which rounds a diagram shows; what in it
groups seldom see."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from rebalance_verifier.gate.scenarios.task_view import answers_changed, rare, states_changed, task_views
from rebalance_verifier.gate.scenarios.task_view import stories as task_stories
from rebalance_verifier.model.steps import StepView
from rebalance_verifier.model.values import (
    EXCLUSIVE,
    NEWEST_VERSION,
    NO_GENERATION,
    SERVED,
    Racks,
    RebalanceProtocol,
    TopicPartition,
)
from rebalance_verifier.properties.assignors.calls import AssignorCall, StatedClaim
from rebalance_verifier.properties.assignors.played import AnyCall, AnyScenario
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
)
from rebalance_verifier.properties.assignors.task_calls import TaskCall
from rebalance_verifier.properties.assignors.task_scenarios import TaskScenario
from rebalance_verifier.properties.assignors.wording import listed, terms_of, together

MAX_ROUNDS = 12
ROUNDS_AFTER = 2
"""Rounds after the breaking one."""

MAX_NAMED = 12
"""Members whose part of a round is put in words, and partitions of a member."""

MAX_DECISIVE = 3
"""Partitions of a breach of which it is said who claims them."""

MAX_PARTS = 10_000
"""Parts that members have in rounds that can be stepped through."""

ALONE = "no further events"


def shown_rounds(total: int, breaking: int) -> range:
    """Of so many rounds those to show, from 0: what led to the breaking one and a little of what follows."""
    end = max(0, min(total, breaking + ROUNDS_AFTER))
    return range(max(0, end - MAX_ROUNDS), end)


def followed(
    scenario: Scenario, window: range
) -> Iterator[tuple[int, str, Mapping[str, FaultKind], Mapping[str, tuple[Racks, ...]]]]:
    """For the rebalances in ``window`` (numbered from 0): what precedes each, its faults, the topics then.

    The last is the first undisturbed one. A round in which nobody joins is none, so the group is followed
    as ``histories.play`` does; events about members that are not there are left out. No longer than the
    scenario is: whoever is asked about again and again costs nothing while nothing happens to him.
    """
    static = {m.id: m.instance is not None for m in scenario.members}
    topics = dict(scenario.topics)
    unknown = {m for m in static if static[m]}  # static members that the coordinator has not seen yet
    joined = [e.member for events in scenario.rounds for e in events if isinstance(e, AddMember)]
    alike = len({frozenset(m.topics) for m in (*scenario.members, *joined)}) <= 1
    served = scenario.protocol in SERVED
    story: list[ScenarioEvent | str] = [joins(member, alike, served) for member in scenario.members]
    gone = dict[str, FaultKind]()  # who stayed silent in the round before
    index = 0
    for events in scenario.rounds:
        faults: dict[str, FaultKind] = {}
        for event in events:
            if not _matters(event, static):
                continue
            story.append(event)
            match event:
                case AddMember(member):
                    static[member.id] = member.instance is not None
                    if static[member.id]:
                        unknown.add(member.id)
                case Leave(member_id):
                    del static[member_id]
                    gone.pop(member_id, None)
                    unknown.discard(member_id)
                case SetTopic(topic, partitions):
                    topics.pop(topic, None)
                    if partitions is not None:
                        topics[topic] = partitions
                case Fault(kind, member_id):
                    faults[member_id] = kind
                case _:
                    pass
        absent = [m for m, kind in faults.items() if kind in _ABSENT and m in static]
        known = [m for m in absent if static[m] and m not in unknown]
        unknown.intersection_update(absent)
        if len(absent) < len(static) or known:
            story += [_returns(m, gone[m], static[m]) for m in gone if m in static and m not in absent]
            gone = {m: faults[m] for m in absent}
            if index in window:
                yield index, _story_text(story, alike, served), faults, dict(topics)
            elif index >= window.stop:
                return
            story, index = [], index + 1
    if index in window:
        story += [_returns(m, gone[m], static[m]) for m in gone if m in static]
        yield index, _story_text(story, alike, served), {}, dict(topics)


def _story_text(story: Sequence[ScenarioEvent | str], alike: bool, served: bool) -> str:
    return "; ".join(one if isinstance(one, str) else event_phrase(one, alike, served) for one in story)


def _returns(member: str, kind: FaultKind, static: bool) -> str:
    """Return how a member that stayed silent is there again."""
    if kind is FaultKind.GHOST:
        return f"{member} comes back with the claims it had"
    return f"{member} is there again" + ("" if static else ", as a new member")


@dataclass(frozen=True, slots=True)
class PlayedRound:
    """A round as it was played, numbered from 1. ``story``: what happened before it and in it. ``call`` is
    None where the target did not answer, or nobody wrote it down."""

    number: int
    story: str
    call: AssignorCall | None
    faults: Mapping[str, FaultKind]


def played_rounds(
    scenario: Scenario,
    calls: Sequence[AssignorCall],
    breaking: int,
    decisive: Sequence[TopicPartition],
    *,
    written: bool,
) -> tuple[list[PlayedRound], int]:
    """Return the rounds to show, what led to the ``breaking`` one and a little of what follows, of how many.

    That one has who claims the ``decisive`` partitions and who is given them, unless it is the first, in
    which the joins say so. ``written``: the calls are all that were answered.
    """
    total = max(len(calls), breaking, 0)
    window = shown_rounds(total, breaking)
    before = {index: (story, faults) for index, story, faults, _ in followed(scenario, window)}
    found = []
    for index in window:
        story, faults = before.get(index, ("", {}))
        call = calls[index] if index < len(calls) else None
        if call is None and written:
            story = "; ".join(filter(None, (story, "no answer")))
        if call is not None and index and index + 1 == breaking:
            before_it = calls[index - 1]
            story = "; ".join((story or ALONE, *_decided(call, before_it, decisive)))
        found.append(PlayedRound(index + 1, story or ALONE, call, faults))
    return found, total


def round_views(
    scenario: AnyScenario, played: Sequence[AnyCall], breaking: int = 0, summary: str = ""
) -> Iterator[StepView]:
    """Yield the rounds that were answered, for who steps through them: what precedes each, then what
    everybody claims in JoinGroup and is given in SyncGroup. Of very many the last. ``summary``: what breaks
    in the ``breaking`` one."""
    if isinstance(scenario, TaskScenario):
        of_tasks = [call for call in played if isinstance(call, TaskCall)]
        yield from task_views(scenario, of_tasks, breaking, summary)
        return
    calls = [call for call in played if isinstance(call, AssignorCall)]
    first, room = len(calls), MAX_PARTS
    while first and (room := room - len(calls[first - 1].group)) >= 0:
        first -= 1
    happened = stories(scenario, range(first, len(calls)))
    yield StepView(label=f"{first}", what=f"after round {first}" if first else "the start")
    for index, call in enumerate(calls[first:], first):
        yield StepView(
            label=f"{index + 1}",
            what=happened.get(index, ALONE),
            seen=(f"breaks here: {summary}",) if summary and index + 1 == breaking else (),
            parties=(
                (terms_of(call.protocol).decider, _decision(call)),
                *((m, _part(call, m)) for m in call.group),
            ),
        )


def _decided(call: AssignorCall, before: AssignorCall, decisive: Sequence[TopicPartition]) -> Iterator[str]:
    """Yield who claims each of some partitions and who is given it; without any, what is claimed and given
    otherwise than before."""
    served = call.protocol in SERVED
    for partition in decisive[:MAX_DECISIVE]:
        claims = call.claimants.get(partition, {})
        claimed = listed(m if served else f"{m} ({_since(since)})" for m, since in claims.items())
        members = list(dict.fromkeys(granted := call.granted.get(partition, ())))
        twice = " twice" if len(members) == 1 < len(granted) else ""
        was, given = ("was with", "is given") if served else ("is claimed by", "given")
        yield f"{partition} {was} {claimed}, and {given} to {listed(members)}{twice}"
    had, given = ("had", "given now") if served else ("claimed now", "given now")
    for what, changed in ((had, claims_changed), (given, grants_changed)):
        if not decisive and (others := changed(call, before)):
            yield f"{what}: {listed(others)}"


def _since(generation: int) -> str:
    return "no generation" if generation == NO_GENERATION else f"generation {generation}"


def _decision(call: AssignorCall) -> str:
    sizes = (
        f"{topic} with {len(racks):,} partition{'s' * (len(racks) != 1)}"
        for topic, racks in call.cluster.topics.items()
    )
    withheld = f", withholds {_few(call.withheld)}" if call.withheld else ""
    return f"knows {listed(list(sizes), 'no topic')}{withheld}"


def _part(call: AssignorCall, member: str) -> str:
    claim = call.claims.get(member)
    had = f"{terms_of(call.protocol).had} {_claim(claim)}, " if claim else ""
    return had + f"is given {_grant(call, member)}"


def before_changed(
    call: AnyCall, before: AnyCall | None, decisive: Set[TopicPartition] = frozenset()
) -> list[str]:
    """Return what members claim, or clients run, as far as it was not so before."""
    if isinstance(call, TaskCall):
        return states_changed(call, before if isinstance(before, TaskCall) else None, decisive)
    return claims_changed(call, before if isinstance(before, AssignorCall) else None, decisive)


def after_changed(
    call: AnyCall, before: AnyCall | None, decisive: Set[TopicPartition] = frozenset()
) -> list[str]:
    """Return what everybody is given, as far as it was not so before."""
    if isinstance(call, TaskCall):
        return answers_changed(call, before if isinstance(before, TaskCall) else None, decisive)
    return grants_changed(call, before if isinstance(before, AssignorCall) else None, decisive)


def claims_changed(
    call: AssignorCall, before: AssignorCall | None, decisive: Set[TopicPartition] = frozenset()
) -> list[str]:
    """Return who claims anything but what it was given in the round before, or for an older generation, and
    who claims a ``decisive`` partition; each in words."""
    newest = max((claim.generation for claim in call.claims.values()), default=NO_GENERATION)
    unusual = [
        m
        for m, claim in call.claims.items()
        if not _is_usual(m, claim, newest, before) or (decisive and not decisive.isdisjoint(claim.partitions))
    ]
    return _named(unusual, lambda member: f"{member}: {_claim(call.claims[member])}")


def _is_usual(member: str, claim: StatedClaim, newest: int, before: AssignorCall | None) -> bool:
    if before is None or member not in before.claims:
        return False
    usual = (tuple(before.assignment.get(member, ())), before.claims[member].partitions)
    return claim.partitions in usual and (claim.generation == newest or not claim.partitions)


def grants_changed(
    call: AssignorCall, before: AssignorCall | None, decisive: Set[TopicPartition] = frozenset()
) -> list[str]:
    """Return who is given anything but what it was given in the round before, or a ``decisive`` partition;
    each in words."""
    old = before.assignment if before else {}
    changed = [
        m
        for m, has in call.assignment.items()
        if m not in old or tuple(has) != tuple(old[m]) or (decisive and not decisive.isdisjoint(has))
    ]
    changed += [member for member in old if member not in call.group]
    lines = _named(changed, lambda m: f"{m}: {_grant(call, m)}" if m in call.assignment else f"{m} is gone")
    return lines + ([f"nobody: {_few(call.withheld)}"] if call.withheld else [])


def _claim(claim: StatedClaim) -> str:
    since = f" of generation {claim.generation}" if claim.partitions and claim.generation >= 0 else ""
    return f"{_few(claim.partitions)}{since}"


def _grant(call: AssignorCall, member: str) -> str:
    lost = () if call.protocol is RebalanceProtocol.EAGER else call.revoked.get(member, ())
    return _few(call.assignment.get(member, ())) + (f", first gives up {_few(lost)}" if lost else "")


def _named(members: Sequence[str], describe: Callable[[str], str]) -> list[str]:
    more = [f"and {len(members) - MAX_NAMED:,} more"] if len(members) > MAX_NAMED else []
    return [*map(describe, members[:MAX_NAMED]), *more]


def _few(partitions: Sequence[TopicPartition]) -> str:
    more = f" and {len(partitions) - MAX_NAMED:,} more" if len(partitions) > MAX_NAMED else ""
    return " ".join(map(str, partitions[:MAX_NAMED])) + more or "nothing"


def stories(scenario: AnyScenario, window: range) -> dict[int, str]:
    """Return what happens before each of the rebalances in ``window`` (numbered from 0) in which anything
    does."""
    if isinstance(scenario, TaskScenario):
        return task_stories(scenario, window)
    texts = {index: story for index, story, _, _ in followed(scenario, window)}
    return {index: story for index, story in texts.items() if story}


_ABSENT = (FaultKind.SILENT, FaultKind.GHOST)


def _matters(event: ScenarioEvent, members: dict[str, bool]) -> bool:
    match event:
        case AddMember(member):
            return member.id not in members
        case Leave(member_id) | Subscribe(member_id, _) | Fault(_, member_id):
            return member_id in members
        case _:
            return True


def event_phrase(event: ScenarioEvent, alike: bool = True, served: bool = False) -> str:
    """Return one event or fault as half a sentence; ``alike`` and ``served`` as in ``joins``."""
    match event:
        case AddMember(member):
            return joins(member, alike, served)
        case Leave(member):
            return f"{member} leaves"
        case Subscribe(member, topics):
            return f"{member} subscribes to {listed(topics, 'nothing')}"
        case SetTopic(topic, None):
            return f"{topic} is deleted"
        case SetTopic(topic, partitions):
            number = len(partitions or ())
            return f"{topic} has {number:,} partition{'s' * (number != 1)}"
        case Fault(kind, member):
            return f"{member} {_FAULTS[kind]}"


def joins(member: ScenarioMember, alike: bool = True, served: bool = False) -> str:
    """Return how a member arrives: what sets it apart; its topics unless the members subscribe ``alike``.
    ``served``: a broker assigns, and nobody claims anything.

    >>> joins(ScenarioMember(id="A", topics=("t",), instance="i-A", version=1), alike=False)
    'A joins for t [static, metadata version 1]'
    """
    topics = "" if alike else f" for {listed(member.topics, 'nothing')}"
    claims = f" claiming {listed(member.owned)} ({_since(member.generation)})" if member.owned else ""
    arrives = "joins"
    if served and member.owned:
        arrives, claims = "is there", f" with {listed(member.owned)}"
    apart = [
        f"rack {member.rack}" if member.rack else "",
        "static" if member.instance is not None else "",
        "eager" if member.eager else "",
        f"metadata version {member.version}" if member.version != NEWEST_VERSION else "",
        f"user data {member.user_data}" if member.user_data is not UserData.OWN else "",
        f"writes as {member.writes}" if member.writes else "",
    ]
    facts = ", ".join(filter(None, apart))
    return f"{member.id} {arrives}{topics}{claims}" + (f" [{facts}]" if facts else "")


_FAULTS = {
    FaultKind.SILENT: "stays silent",
    FaultKind.GHOST: "stays silent, and will come back with its claims",
    FaultKind.LOST_JOIN: "loses the JoinGroup response",
    FaultKind.MISSED_SYNC: "misses the SyncGroup response",
}


# -- so that nobody takes a finding for more than it is ----------------------------------------------


def unusual_preconditions(scenario: AnyScenario) -> list[str]:
    """Half a sentence for each.

    In EAGER the claims are what an assignor remembers in its user data: that those are old is no news, and
    neither is a claim to a topic that the member has dropped.
    """
    if isinstance(scenario, TaskScenario):
        return rare(scenario)
    found = [*_hostile(scenario), *_gone(scenario), *_repeated(scenario)]
    found += _shared(scenario) if scenario.protocol in EXCLUSIVE else ()
    found += [*_shrunk(scenario), *_ancient(scenario)]
    if scenario.protocol is RebalanceProtocol.COOPERATIVE:
        found += [*_dropped(scenario), *_returning(scenario)]
    return found


def _hostile(scenario: Scenario) -> Iterator[str]:
    """Yield input that hardly a client sends, but anybody who speaks the protocol can."""
    instances = Counter(member.instance or member.id for member in scenario.members)
    for member in scenario.members:
        if below := sorted({p for p in member.owned if p.partition < 0}):
            yield f"{member.id} claims {listed(below)}, and no index is below 0: no client sends that"
        if member.generation == 0:
            yield f"{member.id} is of generation 0, which no group has: no client sends that"
        if member.user_data is UserData.TRUNCATED:
            yield f"{member.id} has user data that is cut in the middle: no client sends that"
        if len(set(member.topics)) < len(member.topics):
            yield (
                f"{member.id} subscribes to a topic twice: sarama and kafka-go send that if the application "
                "names it twice"
            )
        if member.instance and instances[member.instance] > 1:
            yield f"{member.id} has the group.instance.id of another member: no coordinator admits both"


def _gone(scenario: Scenario) -> Iterator[str]:
    claimed = sorted({p for member in scenario.members for p in member.owned if p.partition >= 0})
    gone = [p for p in claimed if p.partition >= len(scenario.topics.get(p.topic, ()))]
    if gone:
        was = "was assigned" if scenario.protocol in SERVED else "is claimed"
        yield f"{listed(gone)} {was} and does not exist: the topic was deleted, or made again smaller"


def _repeated(scenario: Scenario) -> Iterator[str]:
    for member in scenario.members:
        if len(set(member.owned)) < len(member.owned):
            yield f"{member.id} claims a partition twice"


def _shrunk(scenario: Scenario) -> Iterator[str]:
    sizes = {topic: len(partitions) for topic, partitions in scenario.topics.items()}
    for event in (event for events in scenario.rounds for event in events):
        if isinstance(event, SetTopic):
            size = len(event.partitions or ())
            if event.partitions is not None and size < sizes.get(event.topic, 0):
                yield f"{event.topic} is deleted and made again with fewer partitions"
            sizes[event.topic] = max(size, sizes.get(event.topic, 0))


def _ancient(scenario: Scenario) -> Iterator[str]:
    for member in scenario.members:
        if member.user_data is UserData.STICKY_V0:
            yield f"{member.id} has user data of a sticky assignor before KIP-341, without a generation"


def _shared(scenario: Scenario) -> Iterator[str]:
    claimants: dict[tuple[TopicPartition, int], list[str]] = {}
    eager = scenario.protocol is RebalanceProtocol.EAGER
    for member in scenario.members:
        for partition in dict.fromkeys(member.owned):
            claimants.setdefault((partition, member.generation if eager else 0), []).append(member.id)
    for (partition, _), members in sorted(claimants.items()):
        if len(members) > 1:
            yield f"{together(members)} claim {partition} at the same time"


def _dropped(scenario: Scenario) -> Iterator[str]:
    for member in scenario.members:
        if foreign := sorted({p for p in member.owned if p.topic not in member.topics}):
            yield f"{member.id} claims {listed(foreign)} and does not subscribe to it"


def _returning(scenario: Scenario) -> Iterator[str]:
    events = [event for events in scenario.rounds for event in events]
    ghosts = sorted({e.id for e in events if isinstance(e, Fault) and e.kind is FaultKind.GHOST})
    if ghosts:
        yield f"{listed(ghosts)} keeps its claims when it is removed, as Java members did before KAFKA-12983"
