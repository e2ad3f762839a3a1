"""A run of the logic, played on the executable model.

The solver's structure says what group it is: how many consumers, static or not, with which assignors. Each
step of the run says which event of the model comes next; the assignor answers what the run says that it
answers. What the run leaves to the model is followed until the clause that is about it breaks.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rebalance.model.assignors import reference
from rebalance.model.machine import NOBODY, Action, Event, Machine, Outcome, State, View
from rebalance.model.protocol import leader
from rebalance.model.protocol.group import FAULTS, machine
from rebalance.model.protocol.setup import Consumer, Me, Runs, Setup, letter
from rebalance.model.protocol.state import Parts, Slot, Topics, union
from rebalance.model.values import (
    Cluster,
    GroupAssignment,
    GroupSubscription,
    RebalanceProtocol,
    TopicPartition,
)
from rebalance.properties.protocol import rules
from rebalance.properties.rules import Rules
from rebalance.specs.bounded import Run
from rebalance.specs.universe import Structure, Universe, Value

COOPERATIVE, EAGER = "cooperative-sticky", "range"
"""What an assignor of the logic is in the model: one that can do COOPERATIVE, or one that cannot."""

_EVENTS = {
    "join": "join join_with_any_claim",
    "join request":
        "join_refused_without_id join_with_given_id join_of_static join_of_member join_again static_returns "
        "static_replaced join_of_unknown join_of_fenced join_inconsistent group_full",
    "join phase ends": "join_phase_ends join_phase_ends_empty",
    "join refused": "join_of_removed join_of_replaced",
    "assign": "lead lead_too_late lead_in_vain",
    "sync request": "sync_of_unknown sync_of_fenced sync_of_old sync_in_rebalance sync_parks sync_of_settled",
    "leader sync": "leader_syncs",
    "sync refused": "sync_parked_refused",
    "receive":
        "join_answer_too_late follow sync_answered sync_answer_too_late id_given id_given_too_late try_again "
        "told_to_rejoin expelled expelled_before fails",
    "complete": "complete_after_reset complete_of_old_subscription partitions_assigned",
    "heartbeat": "heartbeat_of_unknown heartbeat_of_fenced heartbeat_of_old heartbeat_in_rebalance",
    "late request": "heartbeat_late commit_late",
    "late request arrives":
        "late_request_accepted late_request_of_unknown late_request_of_fenced late_request_of_old "
        "late_request_in_rebalance",
    "late answer": "late_answer late_answer_expels late_answer_fails",
    "session expires": "session_expires",
    "session timeout": "session_lost",
    "rebalance timeout": "rebalance_timeout sync_timeout",
    "slow member": "too_slow_to_join too_slow_to_sync",
    "append fails": "append_fails",
    "failover": "failover failover_while_loading",
    "group expires": "group_expires",
    "max poll": "poll_too_late",
    "enforce": "enforce_rebalance",
    "hang": "hang hang_in_assign",
    **{name: name for name in (
        "start", "crash", "pause", "resume", "close", "unsubscribe", "subscribe", "resubscribe", "refresh",
        "disconnect",
    )},
}  # fmt: skip
EVENTS: Mapping[str, str] = {action: event for event, names in _EVENTS.items() for action in names.split()}
"""The model's event for an action of the logic. The others are a part of another event, or of the setup:
callbacks before a JoinGroup, answers that go out with what they answer to, a bounce between stop and start."""


class ReplayError(Exception):
    """The model does not follow the run; the text says where."""


@dataclass(frozen=True)
class Altered:
    """The model with a decision made otherwise for which it has no switch."""

    actions: Mapping[str, Callable[[Action], Callable[..., Iterator[Outcome]]]] = field(default_factory=dict)
    """Name of an action to what its ``run`` becomes."""
    views: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    """First word of a view's name to what it becomes."""

    def __call__(self, built: Machine) -> Machine:
        def action(one: Action) -> Action:
            return one._replace(run=self.actions[one.name](one)) if one.name in self.actions else one

        def view(one: View) -> View:
            kind = one.name.split()[0]
            return one._replace(of=self.views[kind]) if kind in self.views else one

        return replace(built, actions=tuple(map(action, built.actions)), views=tuple(map(view, built.views)))


@dataclass(frozen=True)
class Replay:
    """The run as events of the model, the last of which breaks ``clause``. ``without``: what becomes of the
    same events where the decision is made as it should be, or who else notices."""

    setup: Setup
    events: tuple[Event, ...]
    clause: str
    sentence: str
    without: str

    @property
    def requests(self) -> int:
        """How many JoinGroup and SyncGroup requests the coordinator handles."""
        return sum(event.action in ("join request", "sync request", "leader sync") for event in self.events)


class Script:
    """An assignor that answers what it was told to; another question it leaves to the reference assignor."""

    name = COOPERATIVE
    protocols = (RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER)
    promises: frozenset[Any] = frozenset()

    def __init__(self) -> None:
        self.answers: dict[Hashable, tuple[Parts, ...]] = {}

    def learn(self, group: GroupSubscription, answer: tuple[Parts, ...]) -> None:
        """Raises ReplayError when the same question has another answer already."""
        if self.answers.setdefault(_question(group), answer) != answer:
            raise ReplayError("the assignor would have to answer the same question in two ways")

    def assign(self, cluster: Cluster, group: GroupSubscription) -> GroupAssignment:
        answer = self.answers.get(_question(group))
        if answer is None:
            return reference(COOPERATIVE).assign(cluster, group)
        topic = next(iter(cluster.topics))
        return {
            member: tuple(TopicPartition(topic, p) for p in range(parts.bit_length()) if parts >> p & 1)
            for member, parts in zip(group, answer, strict=True)
        }

    def user_data(self, owned: object, generation: int) -> bytes | None:
        return None


def _question(group: GroupSubscription) -> Hashable:
    return tuple((m, s.owned_partitions, s.generation_id) for m, s in group.items())


def setup_of(run: Run, script: Script, switches: Sequence[str], faults: Sequence[str]) -> Setup:
    """The group of a run: its consumers, in one topic that has all partitions."""
    universe = run.universe
    states = [run.initial, *(after for _, _, after in run.steps)]
    preferred = dict.fromkeys(
        a for state in states for a in universe.domains["Assignor"] if universe.read(state, "chosen", a)
    )

    def consumer(slot: int) -> Consumer:
        """A consumer prefers the assignor that is chosen first."""
        listed = [
            a
            for a in dict.fromkeys((*preferred, *universe.domains["Assignor"]))
            if universe.read(states[-1], "lists", slot, a)
        ]
        runs = Runs(tuple(_assignor(universe, a) for a in listed), frozenset(switches))
        return Consumer((runs,), (Topics(1),), instance=slot if universe.tables["static"][slot] else None)

    everything = Parts((1 << len(universe.domains["Partition"])) - 1)
    return Setup(
        consumers=tuple(consumer(slot) for slot in range(len(universe.domains["Consumer"]))),
        topics=(everything,),
        exist=everything,
        faults=tuple(fault for fault in FAULTS if fault in faults),
        budget=len(faults),
        coordinator=frozenset(switches),
        naming="given",
        steps="fine",
        plug=lambda name, stages: script,
    )


def _assignor(universe: Universe, a: Value) -> str:
    return COOPERATIVE if universe.tables["cooperative"][int(a)] else EAGER


def plan(run: Run, whose: Sequence[int], events: Mapping[str, str]) -> list[tuple[str, int, Structure]]:
    """For each step of the run that is an event of the model: its name, whose it is, the state after."""
    return [
        (events[name], who, after)
        for who, (name, _, after) in zip(whose, run.steps, strict=True)
        if name in events
    ]


def play(
    run: Run,
    whose: Sequence[int],
    clause: str,
    switches: Sequence[str] = (),
    altered: Altered | None = None,
    also: Mapping[str, str] | None = None,
) -> Replay:
    """Play ``run`` on the model with ``switches`` on, or ``altered``, until ``clause`` breaks.

    ``whose`` tells the consumer of each step, NOBODY for what is of none. ``also`` are other events for some actions. Raises ReplayError when the model does not follow, or does
    not break the clause exactly at the end.
    """
    steps = plan(run, whose, {**EVENTS, **(also or {})})
    script = Script()
    faults = [name for name, _, _ in steps if name in FAULTS]
    setup = setup_of(run, script, switches, faults)
    built = machine(setup)
    built = altered(built) if altered else built
    asked = rules(setup)
    events = _follow(run, setup, built, asked, script, clause, steps)
    sentence = _breach(built, asked, clause, events)
    others = _notice(built, asked, clause, events)
    if switches or altered:
        right = replace(setup_of(run, script, (), faults), plug=setup.plug)
        text = _without(machine(right), rules(right), clause, events)
    else:
        text = others
    return Replay(setup, events, clause, sentence, text)


def _follow(
    run: Run,
    setup: Setup,
    built: Machine,
    asked: Rules,
    script: Script,
    clause: str,
    steps: Sequence[tuple[str, int, Structure]],
) -> tuple[Event, ...]:
    """The events of the steps; where one has several outcomes, those by which the run ends in a breach."""
    state = built.initial[0]
    far = 0

    def go(state: State, place: int, events: tuple[Event, ...], broken: bool) -> tuple[Event, ...] | None:
        nonlocal far
        far = max(far, place)
        if place == len(steps) or broken:
            return events if place == len(steps) and broken else None
        name, who, after = steps[place]
        if name == "assign":
            _tell(run, setup, built, script, state, who, after)
        for event, outcome in _outcomes(built, state, name, who):
            further = built.apply(state, event, outcome)
            if _fits(run, name, who, after, event):
                bad = _broken(built, asked, clause, further, event, outcome) is not None
                found = go(further, place + 1, (*events, event), bad)
                if found is not None:
                    return found
        return None

    found = go(state, 0, (), False)
    if found is None:
        name, who, _ = steps[min(far, len(steps) - 1)]
        raise ReplayError(f"step {far + 1} of {len(steps)}, {name} of {_who(who)}: the model does not follow")
    return found


def _outcomes(built: Machine, state: State, name: str, who: int) -> Iterator[tuple[Event, Outcome]]:
    action = built.by_name.get((name, who))
    if action is None:
        return
    values = built.read(state, action.reads)
    if action.guard is None or action.guard(values[0]):
        for outcome in action.run(*values):
            yield Event(name, who, outcome.choice), outcome


def _fits(run: Run, name: str, who: int, after: Structure, event: Event) -> bool:
    """Where the logic and the model both choose, they choose alike."""
    universe = run.universe
    if name == "join phase ends" and event.choice:
        leads = [
            universe.tables["of"][m] for m in universe.domains["Member"] if universe.read(after, "leads", m)
        ]
        chosen = [a for a in universe.domains["Assignor"] if universe.read(after, "chosen", a)]
        return event.choice.startswith(f"{_assignor(universe, chosen[0])}, leader {_who(int(leads[0]))}")
    if name == "late request":
        return event.choice == str(universe.read(after, "stray", who))
    return True


def _tell(
    run: Run, setup: Setup, built: Machine, script: Script, state: State, who: int, after: Structure
) -> None:
    """The script learns what the leader's assignor says in the run."""
    universe, me = run.universe, Me(Slot(who), setup)
    records = built.read(state, [f"record {letter(slot)}" for slot in setup.slots])
    member, group = built.read(state, [me.name("member"), "group"])
    question, ids, _ = leader.question_of(setup, me, member, group, records)  # type: ignore[arg-type]
    answer = tuple(
        union(
            [
                1 << int(p)
                for m in universe.domains["Member"]
                if universe.tables["of"][int(m)] == i.slot and universe.read(after, "member", m)
                for p in universe.domains["Partition"]
                if universe.read(after, "offer", who, m, p)
            ]
        )
        for i in ids
    )
    _, names = leader._numbering(setup, question.view)
    group_asked = {
        f"m{place}": leader._subscription(script, setup, question, place, names)
        for place in range(len(question.metas))
    }
    script.learn(group_asked, answer)


def _broken(
    built: Machine, asked: Rules, clause: str, state: State, event: Event, outcome: Outcome
) -> str | None:
    """What ``clause`` says of a step and the state that it leads to."""
    for step in asked.each_step:
        if step.clause == clause and (said := step.breach(event, outcome.seen)) is not None:
            return said
    for rule in asked.always:
        if rule.clause == clause:
            said = rule.breach(*(built.look(state, view) for view in rule.views))
            if said is not None:
                return said
    return None


def _played(built: Machine, events: Sequence[Event]) -> Iterator[tuple[Event, Outcome, State] | Event]:
    """Each event with its outcome and the state after; at last the event that is not possible, if any."""
    state = built.initial[0]
    for event in events:
        outcomes = (o for e, o in _outcomes(built, state, event.action, event.who) if e == event)
        outcome = next(outcomes, None)
        if outcome is None:
            yield event
            return
        state = built.apply(state, event, outcome)
        yield event, outcome, state


def _breach(built: Machine, asked: Rules, clause: str, events: Sequence[Event]) -> str:
    """What ``clause`` says at the end of the events, played again from the start."""
    said: list[str | None] = []
    for played in _played(built, events):
        if isinstance(played, Event):
            raise ReplayError(f"{say(played)} is not possible the second time")
        event, outcome, state = played
        said.append(_broken(built, asked, clause, state, event, outcome))
    if said[-1] is None or any(said[:-1]):
        raise ReplayError(f"{clause} does not break at the end, and only there")
    return said[-1]


def _without(built: Machine, asked: Rules, clause: str, events: Sequence[Event]) -> str:
    """What becomes of the events where everything is as specified. Raises ReplayError for the same breach."""
    for number, played in enumerate(_played(built, events), 1):
        if isinstance(played, Event):
            return f"event {number} of {len(events)} is not possible: {say(played)}"
        event, outcome, state = played
        if _broken(built, asked, clause, state, event, outcome) is not None:
            raise ReplayError(f"{clause} breaks without the variation too")
    return f"all {len(events)} events are possible, and {clause} holds"


def _notice(built: Machine, asked: Rules, clause: str, events: Sequence[Event]) -> str:
    """Which clause about the leader breaks on the way: the assignor itself is what is wrong."""
    for number, played in enumerate(_played(built, events), 1):
        assert not isinstance(played, Event)
        event, outcome, state = played
        for other in ("leader/grant", "leader/withhold", "leader/stale"):
            said = _broken(built, asked, other, state, event, outcome)
            if said is not None:
                return f"{other} breaks at event {number} of {len(events)}: {said}"
    return ""


def say(event: Event) -> str:
    """An event as text."""
    choice = f" [{event.choice}]" if event.choice else ""
    return f"{event.action} {_who(event.who)}".rstrip() + choice


def _who(slot: int) -> str:
    return "" if slot == NOBODY else letter(slot)
