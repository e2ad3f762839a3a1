"""A run of the logic, played on the executable model.

The solver's structure says what group it is: how many consumers, static or not, with which assignors. Each
step of the run says which event of the model comes next; the assignor answers what the run says that it
answers. What the run leaves to the model is followed until the clause that is about it breaks.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, cast

from rebalance_verifier.base.tables import table
from rebalance_verifier.model.assignor import Promise
from rebalance_verifier.model.assignors import reference
from rebalance_verifier.model.classic import leader
from rebalance_verifier.model.classic.describe import event_text
from rebalance_verifier.model.classic.group import FAULTS, machine
from rebalance_verifier.model.classic.state import Group, Member, Records, Sync
from rebalance_verifier.model.group.parts import Parts, Slot, Topics, each, union
from rebalance_verifier.model.group.setup import Consumer, ConsumerConfig, MemberContext, Setup, letter
from rebalance_verifier.model.machine import NOBODY, Action, Event, Machine, Outcome, State, View
from rebalance_verifier.model.values import (
    Cluster,
    GroupAssignment,
    GroupSubscription,
    Partitions,
    RebalanceProtocol,
    TopicPartition,
)
from rebalance_verifier.properties.group.clauses import rules
from rebalance_verifier.properties.group.rules import Rules
from rebalance_verifier.specs.logic.bounded import SpecRun
from rebalance_verifier.specs.logic.universe import Structure, Universe, Value

COOPERATIVE, EAGER = "cooperative-sticky", "range"
"""What an assignor of the logic is in the model: one that can do COOPERATIVE, or one that cannot."""

EVENTS: Mapping[str, str] = {
    action: event for event, names in table(__file__).items() for action in names.split()
}
"""The model's event for an action of the logic, where it has one of its own."""


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
class Besides:
    """Other differences from the specification, with the variation and without it."""

    switches: Sequence[str] = ()
    altered: Sequence[Altered] = ()

    def __call__(self, built: Machine) -> Machine:
        for altered in self.altered:
            built = altered(built)
        return built


@dataclass(frozen=True, kw_only=True)
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
        """Return how many JoinGroup and SyncGroup requests the coordinator handles."""
        return sum(event.action in ("join request", "sync request", "leader sync") for event in self.events)


class PrescribedAssignor:
    """An assignor that answers what is ``prescribed``, always the same to the same question.

    While nothing is, it leaves other questions to the reference assignor.
    """

    name = COOPERATIVE
    protocols = (RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER)
    promises: frozenset[Promise] = frozenset()

    def __init__(self) -> None:
        self.prescribed: tuple[Parts, ...] | None = None
        self._answers: dict[Hashable, tuple[Parts, ...]] = {}

    def assign(self, cluster: Cluster, group: GroupSubscription) -> GroupAssignment:
        question = tuple((m, s.owned_partitions, s.generation_id) for m, s in group.items())
        if self.prescribed is not None:
            self._answers.setdefault(question, self.prescribed)
        elif question not in self._answers:
            return reference(COOPERATIVE).assign(cluster, group)
        topic = next(iter(cluster.topics))
        return {
            member: tuple(TopicPartition(topic, p) for p in each(parts))
            for member, parts in zip(group, self._answers[question], strict=True)
        }

    def user_data(self, owned: Partitions, generation: int) -> bytes | None:
        return None


def setup_of(
    run: SpecRun, assignor: PrescribedAssignor, switches: Sequence[str], faults: Sequence[str]
) -> Setup:
    """Return the group of a run: its consumers, in one topic that has all partitions."""
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
        names = tuple(_assignor(universe, a) for a in listed)
        careful = EAGER not in names and bool(universe.read(states[-1], "eager", slot))
        runs = ConsumerConfig(assignors=names, decisions=frozenset(switches), upgrade_from=careful)
        return Consumer(
            stages=(runs,),
            subscriptions=(Topics(1),),
            instance=slot if universe.tables["static"][slot] else None,
        )

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
        factory=lambda name, stages: assignor,
    )


def _assignor(universe: Universe, a: Value) -> str:
    return COOPERATIVE if universe.tables["cooperative"][int(a)] else EAGER


class Turn(NamedTuple):
    """An event of the model that is due: its name, whose it is, and the logic's state after it."""

    name: str
    who: int
    after: Structure


def turns(run: SpecRun, whose: Sequence[int], events: Mapping[str, str]) -> list[Turn]:
    """Return those steps of the run that are events of the model."""
    return [
        Turn(events[name], who, after)
        for who, (name, _, after) in zip(whose, run.steps, strict=True)
        if events.get(name)
    ]


def play(
    run: SpecRun,
    whose: Sequence[int],
    clause: str,
    switches: Sequence[str] = (),
    altered: Altered | None = None,
    also: Mapping[str, str] | None = None,
    besides: Besides | None = None,
) -> Replay:
    """Play ``run`` on the model with ``switches`` on, or ``altered``, until ``clause`` breaks.

    ``whose`` tells the consumer of each step, NOBODY for what is of none. ``also`` are other events for
    some actions, "" where one is a part of another. Without switches and as it is, it has to be the assignor
    that is wrong. The model may differ ``besides``. Raises ReplayError when the model does not follow, when
    the clause does not break at the end and only there, and when something else is wrong than what was to be.
    """
    besides = besides or Besides()
    due = turns(run, whose, {**EVENTS, **(also or {})})
    assignor, faults = PrescribedAssignor(), [turn.name for turn in due if turn.name in FAULTS]
    setup = setup_of(run, assignor, (*switches, *besides.switches), faults)
    built = besides(machine(setup))
    built = altered(built) if altered else built
    judged = _Judged(built, rules(setup), clause)
    events = _follow(run, setup, assignor, judged, due)
    sentence = judged.breach(events)
    if switches or altered:
        right = setup_of(run, assignor, besides.switches, faults)
        without = _Judged(besides(machine(right)), rules(right), clause).holds(events)
        owes = not any(event.choice.startswith(EAGER) for event in events)
        if owes and (noticed := judged.noticed(events)):
            raise ReplayError(f"the assignor is wrong too: {noticed}")
    else:
        without = judged.noticed(events)
    return Replay(setup=setup, events=events, clause=clause, sentence=sentence, without=without)


def _follow(
    run: SpecRun, setup: Setup, assignor: PrescribedAssignor, judged: _Judged, due: Sequence[Turn]
) -> tuple[Event, ...]:
    """Return the events that are due; where one has several outcomes, those by which the run ends in a
    breach."""
    built, far = judged.built, 0

    def go(state: State, events: tuple[Event, ...]) -> tuple[Event, ...] | None:
        nonlocal far
        far = max(far, len(events))
        turn = due[len(events)]
        prescribed = _answer(run, setup, built, state, turn) if turn.name == "assign" else None
        assignor.prescribed = prescribed
        outcomes = list(_outcomes(built, state, turn.name, turn.who))
        assignor.prescribed = None
        for event, outcome in outcomes:
            further = built.apply(state, event, outcome)
            if not _alike(run, turn, event, built, further, prescribed):
                continue
            if len(events) + 1 < len(due):
                found = go(further, (*events, event))
            else:
                found = (*events, event) if judged.broken(event, outcome, further) else None
            if found is not None:
                return found
        return None

    found = go(built.initial[0], ())
    if found is None:
        turn = due[far]
        text = f"{turn.name} {_who(turn.who)}".rstrip()
        raise ReplayError(f"event {far + 1} of {len(due)}, {text}: the model does not follow")
    return found


def _outcomes(built: Machine, state: State, name: str, who: int) -> Iterator[tuple[Event, Outcome]]:
    action = built.by_name.get((name, who))
    if action is None:
        return
    values = built.read(state, action.reads)
    if action.guard is None or action.guard(values[0]):
        for outcome in action.run(*values):
            yield Event(name, who, outcome.choice), outcome


def _alike(
    run: SpecRun, turn: Turn, event: Event, built: Machine, state: State, prescribed: tuple[Parts, ...] | None
) -> bool:
    """Check that the logic and the model choose alike where both choose: leader, assignor, assignment,
    request."""
    universe, after = run.universe, turn.after
    if prescribed is not None:
        [wire] = built.read(state, [f"wire {letter(turn.who)}"])
        return isinstance(wire, Sync) and tuple(grant.parts for grant in wire.grants or ()) == prescribed
    if turn.name == "join phase ends" and event.choice:
        members, of = universe.domains["Member"], universe.tables["of"]
        [leads] = [of[m] for m in map(int, members) if universe.read(after, "leads", m)]
        [chosen] = [a for a in universe.domains["Assignor"] if universe.read(after, "chosen", a)]
        return event.choice.startswith(f"{_assignor(universe, chosen)}, leader {_who(int(leads))}")
    if turn.name == "late request":
        return event.choice == universe.read(after, "stray", turn.who)
    return True


def _answer(run: SpecRun, setup: Setup, built: Machine, state: State, turn: Turn) -> tuple[Parts, ...]:
    """Return what the assignor says in the run, for each member that the model's leader asks about."""
    universe, me = run.universe, MemberContext(Slot(turn.who), setup)
    member, group, *records = built.read(
        state, [me.name("member"), "group", *(f"record {letter(slot)}" for slot in setup.slots)]
    )
    _, ids, _ = leader.question_of(
        setup, me, cast(Member, member), cast(Group, group), cast(list[Records], records)
    )

    def share(slot: int) -> Parts:
        offered = (
            1 << int(p)
            for m in map(int, universe.domains["Member"])
            for p in universe.domains["Partition"]
            if universe.tables["of"][m] == slot
            and universe.read(turn.after, "member", m)
            and universe.read(turn.after, "offer", turn.who, m, p)
        )
        return union(list(offered))

    return tuple(share(i.slot) for i in ids)


class _Judged:
    """A machine, and one clause that is asked of its runs."""

    def __init__(self, built: Machine, required: Rules, clause: str) -> None:
        self.built, self._rules, self._clause = built, required, clause

    def broken(self, event: Event, outcome: Outcome, state: State, clause: str = "") -> str | None:
        """Return what the clause says of a step and of the state that it leads to."""
        rules_about = self._rules.about(clause or self._clause)
        found = (
            *rules_about.at_step(event, outcome.seen),
            *rules_about.in_state(partial(self.built.look, state)),
        )
        return next((sentence for _, sentence in found), None)

    def _play(self, events: Sequence[Event]) -> Iterator[tuple[Event, Outcome, State]]:
        """Yield each event with its outcome and the state after, as far as they are possible."""
        state = self.built.initial[0]
        for event in events:
            outcomes = (o for e, o in _outcomes(self.built, state, event.action, event.who) if e == event)
            outcome = next(outcomes, None)
            if outcome is None:
                return
            state = self.built.apply(state, event, outcome)
            yield event, outcome, state

    def breach(self, events: Sequence[Event]) -> str:
        """Return what the clause says at the end of the events. Raises ReplayError when it does so before."""
        sentences = [self.broken(*played) for played in self._play(events)]
        if len(sentences) < len(events) or sentences[-1] is None or any(sentences[:-1]):
            raise ReplayError(f"{self._clause} does not break at the end, and only there")
        return sentences[-1]

    def holds(self, events: Sequence[Event]) -> str:
        """Return what becomes of the events where the clause has to hold. Raises ReplayError when it does
        not."""
        played = list(self._play(events))
        if any(self.broken(*one) for one in played):
            raise ReplayError(f"{self._clause} breaks without the variation too")
        if len(played) < len(events):
            return f"event {len(played) + 1} is not possible: {event_text(events[len(played)])}"
        return f"all {len(events)} events are possible, and {self._clause} holds"

    def noticed(self, events: Sequence[Event]) -> str:
        """Return which clause about the leader breaks on the way, if any: then it is the assignor that is
        wrong."""
        for number, played in enumerate(self._play(events), 1):
            for clause in ("leader/grant", "leader/withhold", "leader/stale"):
                if (sentence := self.broken(*played, clause)) is not None:
                    return f"{clause} breaks at event {number}: {sentence}"
        return ""


def _who(slot: int) -> str:
    return "" if slot == NOBODY else letter(slot)
