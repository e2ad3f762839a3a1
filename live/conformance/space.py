"""The states of the search by number, and what can happen in them: everything is asked of the model once.

A node is the normal form of a state (``machine.Labels``) and beside it the number that each label of a
generation stands for, relative to the first one until a recorded generation fixes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, NamedTuple, cast

from rebalance_verifier.base.interning import Numbered
from rebalance_verifier.live.conformance.observables import observables_of
from rebalance_verifier.live.conformance.observed import INPUTS, LogCapabilities, Observable, SearchQuestion
from rebalance_verifier.model.classic.state import Group, Join, Member, Sync, generations
from rebalance_verifier.model.group import parts as p
from rebalance_verifier.model.group.observations import Decided
from rebalance_verifier.model.group.setup import letter
from rebalance_verifier.model.machine import NOBODY, Action, Event, Outcome, State, Value, dense
from rebalance_verifier.properties.group.clauses import rules

_LEADER = ("leader/stale", "leader/withhold", "leader/grant")


class ModelStep(NamedTuple):
    """One outcome of an action: values of what it writes, by number; what it shows, generations as labels."""

    event: Event
    writes: tuple[int, ...]
    observables: tuple[Observable, ...]
    decided: Decided | None


class SpaceMove(NamedTuple):
    """A step that a node can take, and what it shows with the node's numbers for generations.

    Without ``step`` nothing changes: a consumer that failed is closed.
    """

    who: int
    observables: tuple[Observable, ...]
    cached: CachedAction | None
    step: ModelStep | None

    @property
    def event(self) -> Event | None:
        """The model's name of it."""
        return self.step.event if self.step else None


@dataclass(eq=False, kw_only=True)
class CachedAction:
    """An action, the indices of what it reads and writes, and its steps for each value of what it reads."""

    number: int
    action: Action
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    known: dict[tuple[int, ...], tuple[ModelStep, ...]] = field(default_factory=dict)


AGAINST = " against "
"""In the choice of a leader's step: before the clause that the leader breaks."""

Candidates = Callable[[int, Member], tuple[set[p.Parts], p.Topics]]
"""Slot and its member -> what it may be assigned, and what it subscribes to when the answer comes."""

Numbers = tuple[int, ...]
"""Of the values of a state's components, or some of them."""

Anchors = tuple[bool, tuple[int, ...]] | None
"""Whether the numbers are real or relative, and the number of each label up to the group's own; None where
the recording tells no generation."""


class ComponentValues(Numbered):
    """The values of one component of states; ``used`` are the labels of generations in each, as bits."""

    def __init__(self) -> None:
        self.used: list[int] = []
        super().__init__()

    def add(self, number: int, value: Value) -> None:
        """A value that is new."""
        self.used.append(generations(value))


class StateSpace:
    """Nodes of the search by number, and what can happen in them. Everything is asked once."""

    def __init__(self, question: SearchQuestion) -> None:
        setup = self.setup = question.setup
        self.machine = question.build(setup)
        self._unlogged_actions = frozenset(question.unlogged_actions)
        self._lenient = frozenset(question.lenient)
        self.capabilities = {
            who: question.capabilities.get(who, LogCapabilities()) for who in (*setup.slots, NOBODY)
        }
        self.values = [ComponentValues() for _ in self.machine.components]
        self._renamed: dict[tuple[int, int, int], int] = {}
        self._names: dict[int, Mapping[int, int]] = {}
        position = self.machine.position
        self._group = position["group"]
        self.member = [position[f"member {letter(slot)}"] for slot in setup.slots]
        self.wire = [position[f"wire {letter(slot)}"] for slot in setup.slots]
        self._hidden: dict[tuple[int, ...], list[CachedAction]] = {}
        """Actions that may happen unseen, by the indices of what they read: they are asked together."""
        self._inputs: dict[tuple[int, str], list[CachedAction]] = {}
        for number, action in enumerate(self.machine.actions):
            reads = tuple([position[name] for name in action.reads])
            writes = tuple([position[name] for name in action.writes])
            cached = CachedAction(number=number, action=action, reads=reads, writes=writes)
            if self._is_input(action):
                self._inputs.setdefault((action.who, INPUTS[action.name]), []).append(cached)
            elif action.name != "bounce":
                self._hidden.setdefault(reads, []).append(cached)
        self._open: dict[tuple[Numbers, Numbers], tuple[tuple[CachedAction, ModelStep], ...]] = {}
        self.nodes = Numbered()
        """Each the numbers of a state's values, and its ``Anchors``."""
        self._moves: dict[int, tuple[SpaceMove, ...]] = {}
        self._judges = [r for r in rules(setup).each_step if r.clause in _LEADER]
        counts = any(event.generation is not None for event in question.events)
        first: Anchors = (False, (0,)) if counts else None
        self.initial = [self.nodes.id((self._intern(state), first)) for state in self.machine.initial]

    def _is_input(self, action: Action) -> bool:
        return action.name in INPUTS and (action.name, action.who) not in self._unlogged_actions

    def _intern(self, state: State) -> Numbers:
        return tuple([known.id(value) for known, value in zip(self.values, state, strict=True)])

    def _at(self, node: int) -> tuple[Numbers, Anchors]:
        return cast(tuple[Numbers, Anchors], self.nodes.values[node])

    def _group_of(self, ids: Numbers) -> Group:
        return cast(Group, self.values[self._group].values[ids[self._group]])

    def anchors(self, node: int) -> Anchors:
        """Return what the labels of its generations stand for."""
        return self._at(node)[1]

    def value(self, node: int, index: int) -> Any:
        """Return the value of one component."""
        return self.values[index].values[self._at(node)[0][index]]

    def number(self, node: int, label: p.Generation) -> int | None:
        """Return the number of a generation's label."""
        ids, anchors = self._at(node)
        group = self._group_of(ids)
        return None if anchors is None else _number(group, anchors[1], label)

    # -- normal forms --

    def _settle(self, ids: tuple[int, ...], old: Group, anchors: Anchors) -> int:
        """Return the node of a state whose labels are those of a state with group ``old`` and ``anchors``."""
        used = 0
        for index, number in enumerate(ids):
            used |= self.values[index].used[number]
        new: Anchors = None
        if anchors is not None:
            group = self._group_of(ids)
            labels = [g for g in range(group.generation + 1) if used >> g & 1]
            new = anchors[0], tuple([_number(old, anchors[1], label) for label in labels])
        if used & (used + 1):
            names = self._names.get(used)
            if names is None:
                names = self._names[used] = dense(used)
            ids = tuple([self._relabelled(index, number, used, names) for index, number in enumerate(ids)])
        return self.nodes.id((ids, new))

    def _relabelled(self, index: int, number: int, used: int, names: Mapping[int, int]) -> int:
        if not self.values[index].used[number]:
            return number
        key = (index, number, used)
        found = self._renamed.get(key)
        if found is None:
            found = self._renamed[key] = self.values[index].id(
                p.relabel(self.values[index].values[number], names)
            )
        return found

    def shifted(self, node: int, by: int) -> int:
        """``node`` with real numbers, which are ``by`` more than its relative ones."""
        ids, anchors = self._at(node)
        assert anchors is not None
        return self.nodes.id((ids, (True, tuple([number + by for number in anchors[1]]))))

    # -- steps --

    def moves(self, node: int) -> tuple[SpaceMove, ...]:
        """Return what can happen by itself."""
        known = self._moves.get(node)
        if known is None:
            ids, anchors = self._at(node)
            steps = [
                pair
                for reads, several in self._hidden.items()
                for pair in self._together(several, reads, tuple([ids[index] for index in reads]))
            ]
            steps.sort(key=lambda pair: pair[0].number)
            known = tuple([self._move(ids, anchors, cached, step) for cached, step in steps])
            self._moves[node] = known
        return known

    def _together(
        self, several: Sequence[CachedAction], reads: tuple[int, ...], key: tuple[int, ...]
    ) -> tuple[tuple[CachedAction, ModelStep], ...]:
        """Return the steps of actions that read the same components, for values ``key`` there."""
        steps = self._open.get((reads, key))
        if steps is None:
            steps = tuple((cached, step) for cached in several for step in self._steps(cached, key))
            self._open[reads, key] = steps
        return steps

    def inputs(self, node: int, who: int, kind: str) -> Iterator[SpaceMove]:
        """Yield what the input ``kind`` does to ``who``."""
        ids, anchors = self._at(node)
        for cached in self._inputs.get((who, kind), ()):
            for step in self._steps(cached, tuple([ids[index] for index in cached.reads])):
                yield self._move(ids, anchors, cached, step)
        if kind in ("closed", "killed") and who != NOBODY:
            life = self.value(node, self.member[who]).life
            if life is p.Life.FAILED or (life is p.Life.DOWN and kind == "killed"):
                yield SpaceMove(who, (Observable(kind),), None, None)

    def _steps(self, cached: CachedAction, key: tuple[int, ...]) -> tuple[ModelStep, ...]:
        steps = cached.known.get(key)
        if steps is None:
            steps = cached.known[key] = tuple(self._ask(cached, key))
        return steps

    def _move(
        self, ids: tuple[int, ...], anchors: Anchors, cached: CachedAction, step: ModelStep
    ) -> SpaceMove:
        observables = step.observables
        if any(observable.generation is not None for observable in observables):
            old = self._group_of(ids)
            observables = tuple([_counted(observable, old, anchors) for observable in observables])
        return SpaceMove(step.event.who, observables, cached, step)

    def after(self, node: int, move: SpaceMove) -> int:
        """Return where ``move`` leads."""
        if move.cached is None or move.step is None:
            return node
        ids, anchors = self._at(node)
        after = list(ids)
        for index, number in zip(move.cached.writes, move.step.writes, strict=True):
            after[index] = number
        return self._settle(tuple(after), self._group_of(ids), anchors)

    def _ask(self, cached: CachedAction, numbers: tuple[int, ...]) -> Iterator[ModelStep]:
        action = cached.action
        values: list[Any] = [
            self.values[index].values[n] for index, n in zip(cached.reads, numbers, strict=True)
        ]
        costs = action.name not in INPUTS and (action.name, action.who) not in self._unlogged_actions
        if not costs and "budget" in action.reads:  # what the log has costs nothing
            values[action.reads.index("budget")] += 1
        if action.guard is not None and not action.guard(values[0]):
            return
        for outcome in self._variants(action, action.run(*values)):
            writes = tuple(
                self.values[index].id(value)
                for index, value in zip(cached.writes, outcome.values, strict=True)
            )
            before = dict(zip(action.reads, values, strict=True))
            logged = self.capabilities[action.who]
            observables = observables_of(action, before, outcome, logged, self._is_input(action))
            decided = next((seen for seen in outcome.seen if isinstance(seen, Decided)), None)
            yield ModelStep(Event(action.name, action.who, outcome.choice), writes, observables, decided)

    def _variants(self, action: Action, outcomes: Iterable[Outcome]) -> Iterator[Outcome]:
        """A consumer may start with any of its subscriptions, which the model has not."""
        for outcome in outcomes:
            yield outcome
            if action.name in ("start", "subscribe"):
                member, *rest = outcome.values
                for topics in self.setup.consumers[action.who].subscriptions[1:]:
                    assert isinstance(member, Member)
                    yield Outcome((member._replace(topics=topics), *rest), f"topics {topics}")

    # -- decisions that are given --

    def with_assignments(self, node: int, move: SpaceMove, candidates: Candidates) -> list[SpaceMove]:
        """``move`` with each assignment that fits."""
        cached, step = move.cached, move.step
        assert cached is not None
        assert step is not None
        assert step.decided is not None
        decided = step.decided
        choices = []
        for grant in decided.grants:
            member = cast(Member, self.value(node, self.member[grant.id.slot]))
            here = grant.id.incarnation in (member.id, self._under_way(node, grant.id.slot))
            several, changed = candidates(grant.id.slot, member)
            several |= self._ignored(node, grant.id.slot, changed)
            choices.append(sorted(several) if here else [p.Parts(0)])
        moves = []
        for shares in product(*choices):
            grants = tuple(p.Grant(g.id, p.Parts(s)) for g, s in zip(decided.grants, shares, strict=True))
            seen = (decided._replace(grants=grants),)
            broken = next((rule.clause for rule in self._judges if rule.breach(step.event, seen)), None)
            if broken is not None and move.who not in self._lenient:
                continue
            index = cached.writes.index(self.wire[move.who])
            sync = self.values[self.wire[move.who]].values[step.writes[index]]
            assert isinstance(sync, Sync)
            number = self.values[self.wire[move.who]].id(sync._replace(grants=grants))
            writes = (*step.writes[:index], number, *step.writes[index + 1 :])
            text = "; ".join(f"{letter(g.id.slot)}: {self.setup.spell(g.parts)}" for g in grants)
            text += f"{AGAINST}{broken}" if broken is not None else ""
            moves.append(
                move._replace(
                    step=ModelStep(step.event._replace(choice=text), writes, step.observables, None)
                )
            )
        return moves

    def _ignored(self, node: int, slot: int, topics: p.Topics) -> set[p.Parts]:
        """Return an assignment of which nothing is seen: its member subscribes to ``topics`` when it
        arrives."""
        member = cast(Member, self.value(node, self.member[slot]))
        old = self.setup.parts(member.joined_topics) & ~self.setup.parts(topics)
        return {p.Parts(1 << partition) for partition in p.each(p.Parts(old))}

    def _under_way(self, node: int, slot: int) -> int:
        wire = self.value(node, self.wire[slot])
        return cast(int, getattr(wire, "id", 0)) if not isinstance(wire, Join) else 0


def _counted(observable: Observable, group: Group, anchors: Anchors) -> Observable:
    if observable.generation is None:
        return observable
    return observable._replace(
        generation=None if anchors is None else _number(group, anchors[1], observable.generation)
    )


def _number(group: Group, numbers: tuple[int, ...], label: int) -> int:
    """Return the number of a label: those from the group's own on follow each other."""
    own = group.generation
    return numbers[label] if label <= own else numbers[own] + label - own
