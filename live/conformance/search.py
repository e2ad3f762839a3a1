"""Is what was observed of a real group something that the model can do?

A recording is a list of ``Observed``: each consumer's callbacks, the generations that it was told, and what
the driver did to it. Everything else that happened is hidden. The question is whether the model has a run
whose steps, hidden ones in between, show exactly these events. It is answered by search over pairs of a
model state and a *frontier*, how many events of each consumer are explained so far. A hidden step changes
the state only; a step that shows something must show the next events of its consumer. All pairs are
searched before the answer is "mismatch"; a search that meets its limit answers "inconclusive".

Inputs (a consumer is started, killed, closed ...) are events too: they happen in the model where they stand
in the log and nowhere else. Other faults may happen as often as ``budget`` says. Timers are free.

Order. Events of one consumer have an order: one process wrote them. Between consumers only time tells, and
a record is written a little later or earlier than the step that it stands for: onPartitionsRevoked runs
before the JoinGroup that belongs to it leaves, a generation is known before it is noticed. So the log is
read as a partial order: events of two consumers that are at most ``window`` seconds apart may be explained
in either order, events further apart in theirs only. A larger window only ever allows more runs.

Generations. The model counts them, but compares only (``machine.Labels``). A search node keeps the normal
form of a state and beside it the number that each label stands for, relative to the first one until a
recorded generation fixes it. So states of different rebalances share what they can do, and a log may begin
in the middle of a group's life.

Assignor. Either the setup's own assignors are asked, or (``observed_assignments``) the leader may decide
whatever the callbacks that follow say: what a consumer owns after its next completed rebalance follows from
its own events, so each member has two or three candidates. Of the combinations those stay that keep the
clauses of the leader (grant, withhold, stale), so that "as observed" does not explain two owners.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product, takewhile
from math import inf
from typing import Any, Literal, NamedTuple, cast

from rebalance.model.assignor import Assignor
from rebalance.model.bugs.switches import switched
from rebalance.model.machine import NOBODY, Action, Event, Machine, Outcome, State, Value, dense
from rebalance.model.protocol.group import FAULTS, machine
from rebalance.model.protocol.observations import Callback, Decided, Noted, Threw
from rebalance.model.protocol.setup import Setup, letter
from rebalance.model.protocol.state import (
    NO_ID,
    NONE,
    Generation,
    Grant,
    Group,
    Join,
    JoinOk,
    Life,
    Member,
    MemberState,
    Parts,
    Sync,
    SyncOk,
    Topics,
    each,
    generations,
    relabel,
)
from rebalance.model.values import Cluster, GroupAssignment, GroupSubscription
from rebalance.properties.group.clauses import rules

INPUTS: Mapping[str, str] = {
    "start": "started",
    "crash": "killed",
    "close": "closed",
    "pause": "paused",
    "resume": "resumed",
    "unsubscribe": "unsubscribed",
    "subscribe": "subscribed",
    "resubscribe": "subscribed",
    "enforce": "enforced",
    "topic grows": "topic grows",
    "topic shrinks": "topic shrinks",
    "topic deleted": "topic deleted",
}
"""Action of the model -> the event that stands for it. These happen only where the log has them."""

_NO_FAULTS = ("start", "resume", "subscribe")
CALLBACKS = ("assigned", "revoked", "lost")
ALWAYS_LOGGED = frozenset({*INPUTS.values(), *CALLBACKS})
OPTIONAL = ("joining", "joined", "synced", "failed")
"""Events that some clients tell and others do not."""

_FAULT_OF = {
    **dict.fromkeys(("join lost", "join unanswered", "sync lost"), "disconnect"),
    **dict.fromkeys(("join late", "sync late", "callback late"), "slow network"),
}
_ASIDE = (*OPTIONAL, "paused", "resumed", "enforced", "subscribed")
_LEADER = ("leader/stale", "leader/withhold", "leader/grant")
_JOINS = frozenset({"join", "join late", "join lost", "join unanswered"})
_RECEIVES_JOIN = frozenset({"receive", "receive join", "sync late", "sync lost", "assign", "hang"})

LIMIT = 400_000
"""Pairs of state and frontier that are searched by default."""


class Observed(NamedTuple):
    """One event of a recording. ``at`` is in seconds, ``who`` a slot, NOBODY for the cluster.

    ``kind`` is one of ``INPUTS``' values, ``CALLBACKS`` or ``OPTIONAL``. ``parts`` are a callback's, None
    where they are not known; ``generation`` is the real number, None where it was not told. ``choice`` says
    which outcome an input has, where that is known: the topics of a subscription (``topics 3``), the
    partition that is new.
    """

    at: float
    who: int
    kind: str
    parts: Parts | None = None
    generation: int | None = None
    choice: str = ""


UnloggedAction = tuple[str, int]
"""An action that may happen unseen and costs nothing: its name and whose it is."""

Spans = tuple[tuple[float, float], ...]
"""Times from when to when, as those of events."""


class LogCapabilities(NamedTuple):
    """What a consumer's recording tells: kinds of events, and those it tells even of no partitions."""

    kinds: frozenset[str] = ALWAYS_LOGGED
    empty: frozenset[str] = frozenset()
    once: bool = False
    """``joining`` is told once for a JoinGroup that is sent again with the member id it was given."""


class Observable(NamedTuple):
    """What a step shows. ``generation`` is what the node's labels say, None for none."""

    kind: str
    parts: Parts | None = None
    generation: int | None = None
    choice: str = ""


class Explained(NamedTuple):
    """A step of a witness and the events that it shows, by their position in the recording.

    ``event`` is None where a consumer that failed is closed or killed, which changes nothing.
    """

    event: Event | None
    shows: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Conformance:
    """What came of it. ``events`` is how many there are, ``longest`` how many could be explained at most.

    For a mismatch: ``blamed`` is the position of the event that no state allows, ``pending`` those of the
    next event of each consumer, ``allowed`` what the model could have shown there instead, as text, each
    with the number of states. ``witness`` is the run of an explained recording, and of a mismatch the run
    up to there. ``why`` says which limit an inconclusive search met.
    """

    verdict: Literal["explained", "mismatch", "inconclusive"]
    events: int
    longest: int
    searched: int
    states: int
    witness: tuple[Explained, ...] = ()
    blamed: int | None = None
    pending: tuple[int, ...] = ()
    allowed: tuple[tuple[str, int], ...] = ()
    why: str = ""


class _PlaceholderAssignor:
    """The assignor whose answers are filled in from what was observed."""

    def __init__(self, like: Assignor) -> None:
        self.name, self.protocols, self.promises = like.name, like.protocols, like.promises
        self.user_data = like.user_data

    def assign(self, cluster: Cluster, group: GroupSubscription) -> GroupAssignment:
        return dict.fromkeys(group, ())


def placeholder_assignor(name: str, switches: tuple[str, ...]) -> Assignor:
    """The plug for ``observed_assignments``."""
    return cast(Assignor, _PlaceholderAssignor(switched(name, switches)))


def kinds_of(events: Iterable[Observed]) -> tuple[str, ...]:
    """The kinds of faults of the model that the inputs among ``events`` are."""
    logged = {event.kind for event in events}
    return tuple(action for action, kind in INPUTS.items() if kind in logged and action not in _NO_FAULTS)


def conforms(
    setup: Setup,
    events: Sequence[Observed],
    *,
    capabilities: Mapping[int, LogCapabilities] | None = None,
    faults: Sequence[str] = (),
    budget: int = 0,
    unlogged_actions: Sequence[UnloggedAction] = (),
    when: Mapping[UnloggedAction, Spans] | None = None,
    silent: Mapping[str, float] | None = None,
    observed_assignments: bool = False,
    build: Callable[[Setup], Machine] = machine,
    lenient: Collection[int] = (),
    penalised: Collection[str] = (),
    unlogged: Collection[str] = (),
    window: float = 1.0,
    limit: int = LIMIT,
    seconds: float | None = None,
    progress: Callable[[int, int, int], None] | None = None,
) -> Conformance:
    """Whether the group of ``setup`` can show ``events``.

    The setup's faults and budget are replaced: by what the inputs take, and by the hidden ``faults`` of which
    ``budget`` may happen; those in ``unlogged_actions`` may happen as often as they like, also inputs that
    the recording does not tell; those in ``when`` only in these spans of time, those in ``silent`` only where
    their consumer tells nothing for so many seconds. ``build`` makes the machine. ``capabilities`` are the
    slots whose recordings tell something else than ``LogCapabilities()``.
    ``observed_assignments``: assignments are as observed; leaders in the slots of ``lenient`` may break the
    clauses of a leader, and the choice of such a step ends with ``AGAINST`` and the clause. Of runs that
    explain as much, those with fewer such steps and fewer of the actions ``penalised`` come first. The
    actions ``unlogged`` begin a generation that no event may tell. ``limit`` bounds the pairs searched,
    ``seconds`` the computing time; ``progress`` is called now and then with events explained, events in all,
    and pairs searched.
    Raises ValueError for an event about a consumer that the setup does not have, or of an unknown kind.
    """
    for event in events:
        if event.kind not in ALWAYS_LOGGED and event.kind not in OPTIONAL:
            raise ValueError(f"no kind of event is called {event.kind!r}")
        if event.who != NOBODY and event.who not in setup.slots:
            raise ValueError(f"the setup has no consumer number {event.who}")
    unseen = (_FAULT_OF.get(action, action) for action, _ in unlogged_actions)
    kinds = dict.fromkeys((*kinds_of(events), *(faults if budget else ()), *unseen))
    kinds = {kind: None for kind in kinds if kind in FAULTS}
    setup = replace(setup, faults=tuple(kinds), budget=budget)
    if observed_assignments:
        setup = replace(setup, factory=placeholder_assignor, naming="given")
    counts = any(event.generation is not None for event in events)
    space = _Space(
        build(setup), setup, capabilities or {}, counts, frozenset(unlogged_actions), frozenset(lenient)
    )
    return _Search(
        space,
        events,
        observed_assignments,
        window,
        frozenset(penalised),
        when or {},
        silent or {},
        frozenset(unlogged),
    ).run(limit, seconds, progress)


# -- the model, step by step ---------------------------------------------------------------------------


class _Step(NamedTuple):
    """One outcome of an action: values of what it writes, by number; what it shows, generations as labels."""

    event: Event
    writes: tuple[int, ...]
    observables: tuple[Observable, ...]
    decided: Decided | None


class _Move(NamedTuple):
    """A step that a node can take, and what it shows with the node's numbers for generations.

    Without ``step`` nothing changes: a consumer that failed is closed.
    """

    who: int
    observables: tuple[Observable, ...]
    cached: _CachedAction | None
    step: _Step | None

    @property
    def event(self) -> Event | None:
        """The model's name of it."""
        return self.step.event if self.step else None


@dataclass(eq=False, kw_only=True)
class _CachedAction:
    """An action, the indices of what it reads and writes, and its steps for each value of what it reads."""

    number: int
    action: Action
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    known: dict[tuple[int, ...], tuple[_Step, ...]] = field(default_factory=dict)


HEARD = Noted("JoinGroup response heard")
"""Seen in a step that shows ``joined`` and is none of the model's."""

AGAINST = " against "
"""In the choice of a leader's step: before the clause that the leader breaks."""

Candidates = Callable[[int, Member], tuple[set[Parts], Topics]]
"""Slot and its member -> what it may be assigned, and what it subscribes to when the answer comes."""

Anchors = tuple[bool, tuple[int, ...]] | None
"""Whether the numbers are real or relative, and the number of each label up to the group's own; None where
the recording tells no generation."""


class _Space:
    """Nodes of the search by number, and what can happen in them. Everything is asked once."""

    def __init__(
        self,
        built: Machine,
        setup: Setup,
        capabilities: Mapping[int, LogCapabilities],
        counts: bool,
        unlogged_actions: frozenset[UnloggedAction] = frozenset(),
        lenient: frozenset[int] = frozenset(),
    ) -> None:
        self.setup, self.machine, self._unlogged_actions, self._lenient = (
            setup,
            built,
            unlogged_actions,
            lenient,
        )
        self.capabilities = [capabilities.get(slot, LogCapabilities()) for slot in setup.slots]
        names = self.machine.components
        self.values: list[list[Value]] = [[] for _ in names]
        self._ids: list[dict[Value, int]] = [{} for _ in names]
        self._used: list[list[int]] = [[] for _ in names]
        self._renamed: dict[tuple[int, int, int], int] = {}
        self._names: dict[int, Mapping[int, int]] = {}
        self._group = self.machine.position["group"]
        self.member = [self.machine.position[f"member {letter(slot)}"] for slot in setup.slots]
        self.wire = [self.machine.position[f"wire {letter(slot)}"] for slot in setup.slots]
        position = self.machine.position
        self._actions = [
            _CachedAction(
                number=n,
                action=action,
                reads=tuple([position[x] for x in action.reads]),
                writes=tuple([position[x] for x in action.writes]),
            )
            for n, action in enumerate(self.machine.actions)
            if action.name != "bounce"
        ]
        self._hidden: dict[tuple[int, ...], list[_CachedAction]] = {}
        """Actions that may happen unseen, by the indices of what they read: they are asked together."""
        for cached in self._actions:
            if not self._is_input(cached.action):
                self._hidden.setdefault(cached.reads, []).append(cached)
        self._open: dict[
            tuple[tuple[int, ...], tuple[int, ...]], tuple[tuple[_CachedAction, _Step], ...]
        ] = {}
        self._inputs: dict[tuple[int, str], list[_CachedAction]] = {}
        for cached in self._actions:
            if self._is_input(cached.action):
                key = cached.action.who, INPUTS[cached.action.name]
                self._inputs.setdefault(key, []).append(cached)
        self.nodes: list[tuple[tuple[int, ...], Anchors]] = []
        self._numbers: dict[tuple[tuple[int, ...], Anchors], int] = {}
        self._moves: list[tuple[_Move, ...] | None] = []
        self._judges = [r for r in rules(setup).each_step if r.clause in _LEADER]
        first: Anchors = (False, (0,)) if counts else None
        self.initial = [self._node(self._intern(state), first) for state in self.machine.initial]

    def _is_input(self, action: Action) -> bool:
        return action.name in INPUTS and (action.name, action.who) not in self._unlogged_actions

    def _id(self, index: int, value: Value) -> int:
        ids = self._ids[index]
        number = ids.setdefault(value, len(ids))
        if number == len(self.values[index]):
            self.values[index].append(value)
            self._used[index].append(generations(value))
        return number

    def _intern(self, state: State) -> tuple[int, ...]:
        return tuple([self._id(index, value) for index, value in enumerate(state)])

    def _node(self, ids: tuple[int, ...], anchors: Anchors) -> int:
        key = (ids, anchors)
        number = self._numbers.setdefault(key, len(self.nodes))
        if number == len(self.nodes):
            self.nodes.append(key)
            self._moves.append(None)
        return number

    def value(self, node: int, index: int) -> Any:
        """The value of one component."""
        return self.values[index][self.nodes[node][0][index]]

    def number(self, node: int, label: Generation) -> int | None:
        """The number of a generation's label."""
        ids, anchors = self.nodes[node]
        group = cast(Group, self.values[self._group][ids[self._group]])
        return None if anchors is None else _number(group, anchors[1], label)

    # -- normal forms --

    def _settle(self, ids: tuple[int, ...], old: Group, anchors: Anchors) -> int:
        """The node of a state whose labels are those of a state with group ``old`` and ``anchors``."""
        used = 0
        for index, number in enumerate(ids):
            used |= self._used[index][number]
        new: Anchors = None
        if anchors is not None:
            group = cast(Group, self.values[self._group][ids[self._group]])
            labels = [g for g in range(group.generation + 1) if used >> g & 1]
            new = anchors[0], tuple([_number(old, anchors[1], label) for label in labels])
        if used & (used + 1):
            names = self._names.get(used)
            if names is None:
                names = self._names[used] = dense(used)
            ids = tuple([self._relabelled(index, number, used, names) for index, number in enumerate(ids)])
        return self._node(ids, new)

    def _relabelled(self, index: int, number: int, used: int, names: Mapping[int, int]) -> int:
        if not self._used[index][number]:
            return number
        key = (index, number, used)
        found = self._renamed.get(key)
        if found is None:
            found = self._renamed[key] = self._id(index, relabel(self.values[index][number], names))
        return found

    def shifted(self, node: int, by: int) -> int:
        """``node`` with real numbers, which are ``by`` more than its relative ones."""
        ids, anchors = self.nodes[node]
        assert anchors is not None
        return self._node(ids, (True, tuple([number + by for number in anchors[1]])))

    # -- steps --

    def moves(self, node: int) -> tuple[_Move, ...]:
        """What can happen by itself."""
        known = self._moves[node]
        if known is None:
            ids, anchors = self.nodes[node]
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
        self, several: Sequence[_CachedAction], reads: tuple[int, ...], key: tuple[int, ...]
    ) -> tuple[tuple[_CachedAction, _Step], ...]:
        """The steps of actions that read the same components, for values ``key`` there."""
        steps = self._open.get((reads, key))
        if steps is None:
            steps = tuple((cached, step) for cached in several for step in self._steps(cached, key))
            self._open[reads, key] = steps
        return steps

    def inputs(self, node: int, who: int, kind: str) -> Iterator[_Move]:
        """What the input ``kind`` does to ``who``."""
        for action in self._inputs.get((who, kind), ()):
            yield from self._taken(node, action)
        if kind in ("closed", "killed") and who != NOBODY:
            life = self.value(node, self.member[who]).life
            if life is Life.FAILED or (life is Life.DOWN and kind == "killed"):
                yield _Move(who, (Observable(kind),), None, None)

    def _taken(self, node: int, cached: _CachedAction) -> Iterator[_Move]:
        ids, anchors = self.nodes[node]
        for step in self._steps(cached, tuple([ids[index] for index in cached.reads])):
            yield self._move(ids, anchors, cached, step)

    def _steps(self, cached: _CachedAction, key: tuple[int, ...]) -> tuple[_Step, ...]:
        steps = cached.known.get(key)
        if steps is None:
            steps = cached.known[key] = tuple(self._ask(cached, key))
        return steps

    def _move(self, ids: tuple[int, ...], anchors: Anchors, cached: _CachedAction, step: _Step) -> _Move:
        observables = step.observables
        if any(observable.generation is not None for observable in observables):
            old = cast(Group, self.values[self._group][ids[self._group]])
            observables = tuple([_counted(observable, old, anchors) for observable in observables])
        return _Move(step.event.who, observables, cached, step)

    def after(self, node: int, move: _Move) -> int:
        """Where ``move`` leads."""
        if move.cached is None or move.step is None:
            return node
        ids, anchors = self.nodes[node]
        after = list(ids)
        for index, number in zip(move.cached.writes, move.step.writes, strict=True):
            after[index] = number
        return self._settle(tuple(after), cast(Group, self.values[self._group][ids[self._group]]), anchors)

    def _ask(self, cached: _CachedAction, numbers: tuple[int, ...]) -> Iterator[_Step]:
        action = cached.action
        values: list[Any] = [self.values[index][n] for index, n in zip(cached.reads, numbers, strict=True)]
        costs = action.name not in INPUTS and (action.name, action.who) not in self._unlogged_actions
        if not costs and "budget" in action.reads:  # what the log has costs nothing
            values[action.reads.index("budget")] += 1
        if action.guard is not None and not action.guard(values[0]):
            return
        for outcome in self._variants(action, action.run(*values)):
            writes = tuple(
                self._id(index, value) for index, value in zip(cached.writes, outcome.values, strict=True)
            )
            observables = self._observables(action, dict(zip(action.reads, values, strict=True)), outcome)
            decided = next((seen for seen in outcome.seen if isinstance(seen, Decided)), None)
            yield _Step(Event(action.name, action.who, outcome.choice), writes, observables, decided)

    def _variants(self, action: Action, outcomes: Iterable[Outcome]) -> Iterator[Outcome]:
        """A consumer may start with any of its subscriptions, which the model has not."""
        for outcome in outcomes:
            yield outcome
            if action.name in ("start", "subscribe"):
                member, *rest = outcome.values
                for topics in self.setup.consumers[action.who].subscriptions[1:]:
                    assert isinstance(member, Member)
                    yield Outcome((member._replace(topics=topics), *rest), f"topics {topics}")

    def _observables(
        self, action: Action, before: Mapping[str, Any], outcome: Outcome
    ) -> tuple[Observable, ...]:
        """What a step shows of itself, in the order in which a consumer notes it."""
        if action.who == NOBODY:
            if action.name in INPUTS:
                return (Observable(INPUTS[action.name], choice=outcome.choice),)
            return ()
        name = letter(action.who)
        after = dict(zip(action.writes, outcome.values, strict=True))
        member, wire = before.get(f"member {name}"), before.get(f"wire {name}")
        observables: list[Observable] = []
        then = after.get(f"member {name}")
        stable = isinstance(then, Member) and then.state is MemberState.STABLE
        if isinstance(member, Member) and isinstance(wire, JoinOk):
            heard = HEARD in outcome.seen or action.name in _RECEIVES_JOIN
            if member.state is MemberState.PREPARING and heard:
                observables.append(Observable("joined", generation=wire.generation))
        elif isinstance(wire, SyncOk) and stable:
            observables.append(Observable("synced", generation=wire.generation))
        for seen in outcome.seen:
            if isinstance(seen, Callback):
                assigned = seen.call.value == "assigned" and isinstance(member, Member)
                generation = member.generation if assigned and isinstance(member, Member) else NONE
                observables.append(
                    Observable(seen.call.value, seen.parts, None if generation == NONE else generation)
                )
            elif isinstance(seen, Threw) and seen.error != "listener":
                observables.append(Observable("failed"))
        again = isinstance(member, Member) and member.id != NO_ID and member.generation == NONE
        if action.name in _JOINS and not (again and self.capabilities[action.who].once):
            observables.append(Observable("joining"))
        if self._is_input(action):
            choice = outcome.choice
            if INPUTS[action.name] in ("started", "subscribed"):
                choice = choice or f"topics {cast(Member, after[f'member {name}']).topics}"
            observables.append(Observable(INPUTS[action.name], choice=choice))
        capabilities = self.capabilities[action.who]
        return tuple(
            s
            for s in observables
            if s.kind in capabilities.kinds and (s.parts != 0 or s.kind in capabilities.empty)
        )

    # -- decisions that are given --

    def with_assignments(self, node: int, move: _Move, candidates: Candidates) -> list[_Move]:
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
            choices.append(sorted(several) if here else [Parts(0)])
        moves = []
        for shares in product(*choices):
            grants = tuple(Grant(g.id, Parts(s)) for g, s in zip(decided.grants, shares, strict=True))
            seen = (decided._replace(grants=grants),)
            broken = next((rule.clause for rule in self._judges if rule.breach(step.event, seen)), None)
            if broken is not None and move.who not in self._lenient:
                continue
            index = cached.writes.index(self.wire[move.who])
            sync = self.values[self.wire[move.who]][step.writes[index]]
            assert isinstance(sync, Sync)
            number = self._id(self.wire[move.who], sync._replace(grants=grants))
            writes = (*step.writes[:index], number, *step.writes[index + 1 :])
            text = "; ".join(f"{letter(g.id.slot)}: {self.setup.spell(g.parts)}" for g in grants)
            text += f"{AGAINST}{broken}" if broken is not None else ""
            moves.append(
                move._replace(step=_Step(step.event._replace(choice=text), writes, step.observables, None))
            )
        return moves

    def _ignored(self, node: int, slot: int, topics: Topics) -> set[Parts]:
        """An assignment of which nothing is seen: its member subscribes to ``topics`` when it arrives."""
        member = cast(Member, self.value(node, self.member[slot]))
        old = self.setup.parts(member.joined_topics) & ~self.setup.parts(topics)
        return {Parts(1 << partition) for partition in each(Parts(old))}

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
    """The number of a label: those from the group's own on follow each other."""
    own = group.generation
    return numbers[label] if label <= own else numbers[own] + label - own


# -- the search ----------------------------------------------------------------------------------------


class _Search:
    """Best first: pairs with the most events explained are searched first, hidden steps breadth-first."""

    def __init__(
        self,
        space: _Space,
        events: Sequence[Observed],
        observed_assignments: bool,
        window: float,
        penalised: frozenset[str],
        when: Mapping[UnloggedAction, Spans],
        silent: Mapping[str, float],
        unlogged: frozenset[str] = frozenset(),
    ) -> None:
        self.space, self.events, self.observed_assignments, self.window = (
            space,
            events,
            observed_assignments,
            window,
        )
        self.penalised, self.when, self.silent, self.unlogged = penalised, when, silent, unlogged
        self.generations = {event.generation for event in events if event.generation is not None}
        self.whose = [*space.setup.slots, NOBODY]
        self.positions = [[n for n, e in enumerate(events) if e.who == who] for who in self.whose]
        self.frontiers: list[tuple[int, ...]] = []
        self._known: dict[tuple[int, ...], int] = {}
        self._next: list[list[tuple[int, int]]] = []
        self._due: list[list[tuple[int, Observed]]] = []
        self._shut: list[frozenset[UnloggedAction]] = []
        self.parents: dict[tuple[int, int], tuple[tuple[int, int], Event | None] | None] = {}
        self.cost: dict[tuple[int, int], int] = {}
        """Penalised steps on the way to a pair."""
        self.queue: list[tuple[int, int, int, int, int]] = []
        self.reached = (0, 0)

    def run(
        self, limit: int, seconds: float | None, progress: Callable[[int, int, int], None] | None
    ) -> Conformance:
        """The search."""
        start = self._frontier((0,) * len(self.whose))
        for node in self.space.initial:
            self._add((start, node), None)
        deadline = None if seconds is None else time.process_time() + seconds
        count = 0
        while self.queue:
            left, _, _, frontier, node = heapq.heappop(self.queue)
            if not left:
                return self._result("explained", (frontier, node))
            self._expand(frontier, node)
            count += 1
            if len(self.parents) > limit:
                return self._stopped(f"more than {limit} pairs of state and events explained")
            if count % 1000 == 0:
                if progress is not None:
                    progress(self._explained(self.reached[0]), len(self.events), len(self.parents))
                if deadline is not None and time.process_time() > deadline:
                    return self._stopped(f"more than {seconds:g} s")
        return self._mismatch()

    def _explained(self, frontier: int) -> int:
        return sum(self.frontiers[frontier])

    def _frontier(self, counts: tuple[int, ...]) -> int:
        number = self._known.setdefault(counts, len(self.frontiers))
        if number == len(self.frontiers):
            self.frontiers.append(counts)
            self._next.append(self._possible(counts))
            self._due.append(list(self._next_generations(counts)))
            self._shut.append(self._not_now(counts))
        return number

    def _possible(self, counts: tuple[int, ...]) -> list[tuple[int, int]]:
        """The next event of each consumer whose turn it may be: (its lane, position of the event)."""
        waiting = [
            (lane, self.positions[lane][count])
            for lane, count in enumerate(counts)
            if count < len(self.positions[lane])
        ]
        first = min((self.events[position].at for _, position in waiting), default=0.0)
        return [
            (lane, position) for lane, position in waiting if self.events[position].at <= first + self.window
        ]

    def _not_now(self, counts: tuple[int, ...]) -> frozenset[UnloggedAction]:
        """What may only happen at another time than between the events explained and those to come."""
        lanes = list(zip(self.positions, counts, strict=True))
        last = max((self.events[positions[n - 1]].at for positions, n in lanes if n), default=-inf)
        coming = min(
            (self.events[positions[n]].at for positions, n in lanes if n < len(positions)), default=inf
        )
        speaking = {
            (action, who)
            for action, seconds in self.silent.items()
            for who, (positions, n) in zip(self.whose, lanes, strict=True)
            if n < len(positions) and self.events[positions[n]].at < last + seconds
        }
        return frozenset(speaking) | frozenset(
            action
            for action, spans in self.when.items()
            if not any(start <= coming + self.window and last <= stop + self.window for start, stop in spans)
        )

    def _next_generations(self, counts: tuple[int, ...]) -> Iterator[tuple[int, Observed]]:
        """The next event of each consumer that tells a generation; none where generations may fall."""
        if not {"failover", "group expires"}.isdisjoint(self.space.setup.faults):
            return
        for lane, slot in enumerate(self.space.setup.slots):
            coming = (self.events[position] for position in self.positions[lane][counts[lane] :])
            event = next((event for event in coming if event.generation is not None), None)
            if event is not None:
                yield slot, event

    def _too_late(self, frontier: int, node: int) -> bool:
        """Whether the group is past a generation that a consumer has yet to be told: it only rises."""
        anchors = self.space.nodes[node][1]
        if anchors is None or not anchors[0]:
            return False
        own = anchors[1][-1]
        for slot, event in self._due[frontier]:
            if event.generation is None or own <= event.generation:
                continue
            wire = self.space.value(node, self.space.wire[slot])
            member = cast(Member, self.space.value(node, self.space.member[slot]))
            label = NONE
            if isinstance(wire, JoinOk if event.kind == "joined" else SyncOk):
                label = wire.generation
            elif event.kind != "joined" and member.received is not None:
                if member.generation == NONE:  # a client may go on as if it had not been reset
                    continue
                label = member.generation
            if label == NONE or self.space.number(node, label) != event.generation:
                return True
        return False

    def _add(self, pair: tuple[int, int], parent: tuple[tuple[int, int], Event | None] | None) -> None:
        if pair in self.parents or self._too_late(*pair):
            return
        self.parents[pair] = parent
        cost = 0
        if parent is not None:
            cost = self.cost.get(parent[0], 0) + self._is_penalised(parent[1])
        if cost:
            self.cost[pair] = cost
        explained = self._explained(pair[0])
        if explained > self._explained(self.reached[0]):
            self.reached = pair
        heapq.heappush(self.queue, (len(self.events) - explained, cost, len(self.parents), *pair))

    def _is_penalised(self, event: Event | None) -> bool:
        return event is not None and (event.action in self.penalised or AGAINST in event.choice)

    def _expand(self, frontier: int, node: int) -> None:
        pair = (frontier, node)
        turns = {self.whose[lane]: lane for lane, _ in self._next[frontier]}
        shut = self._shut[frontier]
        for move in self.space.moves(node):
            if shut and move.event is not None and (move.event.action, move.who) in shut:
                continue
            if self.observed_assignments and move.step is not None and move.step.decided is not None:
                for filled in self.space.with_assignments(
                    node, move, lambda s, m: self._candidates(frontier, s, m)
                ):
                    self._follow(pair, filled, turns)
            else:
                self._follow(pair, move, turns)
        for lane, position in self._next[frontier]:
            event = self.events[position]
            kind = self._input(frontier, lane)
            if kind is not None:
                for move in self.space.inputs(node, event.who, kind):
                    self._follow(pair, move, turns)

    def _input(self, frontier: int, lane: int) -> str | None:
        """The input that may come next in a lane; callbacks of closing come before it is closed."""
        for position in self.positions[lane][self.frontiers[frontier][lane] :]:
            kind = self.events[position].kind
            if kind not in CALLBACKS and kind not in OPTIONAL:
                return kind
        return None

    def _follow(self, pair: tuple[int, int], move: _Move, turns: Mapping[int, int]) -> None:
        """Take a step if what it shows is what comes next."""
        if not move.observables:
            after = self.space.after(pair[1], move)
            if (
                move.event is None
                or move.event.action not in self.unlogged
                or not self._generation_is_logged(after)
            ):
                self._add((pair[0], after), (pair, move.event))
            return
        lane = turns.get(move.who)
        if lane is None:
            return
        counts = self.frontiers[pair[0]]
        done = counts[lane]
        coming = self.positions[lane][done : done + len(move.observables)]
        if len(coming) < len(move.observables):
            return
        by: int | None = None
        anchors = self.space.nodes[pair[1]][1]
        known = anchors is not None and anchors[0]
        observables = move.observables
        if observables[-1].kind == "unsubscribed" and self.events[coming[0]].kind == "unsubscribed":
            observables = (observables[-1], *observables[:-1])  # some clients call their listener later
        for observable, position in zip(observables, coming, strict=True):
            event = self.events[position]
            if observable.kind != event.kind or (event.choice and observable.choice != event.choice):
                return
            if observable.parts is not None and event.parts is not None and observable.parts != event.parts:
                return
            if event.generation is None or observable.generation is None:
                continue
            off = event.generation - observable.generation
            if off and (known or (by is not None and off != by)):
                return
            by = off
        after = self.space.after(pair[1], move)
        if by is not None and not known:
            after = self.space.shifted(after, by)
        then = self._frontier((*counts[:lane], done + len(move.observables), *counts[lane + 1 :]))
        self._add((then, after), (pair, move.event))

    def _generation_is_logged(self, node: int) -> bool:
        """Whether some event tells the group's generation."""
        anchors = self.space.nodes[node][1]
        return anchors is not None and anchors[0] and anchors[1][-1] in self.generations

    def _candidates(self, frontier: int, slot: int, member: Member) -> tuple[set[Parts], Topics]:
        """What ``slot`` may be assigned now, as its next callbacks tell; and its next subscription."""
        owned, topics = member.owned, member.topics
        several = {owned}
        coming = [
            self.events[position] for position in self.positions[slot][self.frontiers[frontier][slot] :]
        ]
        calls = [event for event in coming if event.kind not in _ASIDE][:2]
        if calls and calls[0].kind == "assigned":
            several.add(Parts(owned | (calls[0].parts or 0)))
        elif calls and calls[0].kind == "revoked":
            left = Parts(owned & ~(calls[0].parts or 0))
            several.add(left)
            if len(calls) > 1 and calls[1].kind == "assigned":
                several.add(Parts(left | (calls[1].parts or 0)))
        for event in takewhile(lambda event: event.kind not in CALLBACKS, coming):
            if event.kind == "subscribed" and event.choice:
                topics = Topics(int(event.choice.removeprefix("topics ")))
        return several, topics

    # -- what came of it --

    def _witness(self, pair: tuple[int, int]) -> tuple[Explained, ...]:
        steps: list[Explained] = []
        at: tuple[int, int] = pair
        while (parent := self.parents[at]) is not None:
            before, event = parent
            positions: tuple[int, ...] = ()
            if before[0] != at[0]:
                one, other = self.frontiers[before[0]], self.frontiers[at[0]]
                lane = next(n for n, (a, b) in enumerate(zip(one, other, strict=True)) if a != b)
                positions = tuple(self.positions[lane][one[lane] : other[lane]])
            steps.append(Explained(event, positions))
            at = before
        return tuple(reversed(steps))

    def _result(self, verdict: Any, pair: tuple[int, int], **more: Any) -> Conformance:
        return Conformance(
            verdict=verdict,
            events=len(self.events),
            longest=self._explained(pair[0]),
            searched=len(self.parents),
            states=len(self.space.nodes),
            witness=self._witness(pair),
            **more,
        )

    def _stopped(self, why: str) -> Conformance:
        return self._result("inconclusive", self.reached, why=why)

    def _mismatch(self) -> Conformance:
        most = self._explained(self.reached[0])
        ends = {n for n in range(len(self.frontiers)) if self._explained(n) == most}
        frontier = self.reached[0]
        waiting = sorted(
            (position for _, position in self._next[frontier]), key=lambda p: (self.events[p].at, p)
        )
        allowed: dict[str, int] = {}
        for number, node in self.parents:
            if number not in ends:
                continue
            texts = {self._describe(m) for m in self.space.moves(node) if m.observables}
            for text in sorted(texts):
                allowed[text] = allowed.get(text, 0) + 1
        ranked = tuple(sorted(allowed.items(), key=lambda item: (-item[1], item[0])))
        return self._result(
            "mismatch", self.reached, blamed=waiting[0], pending=tuple(waiting), allowed=ranked
        )

    def _describe(self, move: _Move) -> str:
        return f"{letter(move.who)}: " + ", ".join(
            describe(self.space.setup, observable) for observable in move.observables
        )


def describe(setup: Setup, observable: Observable | Observed) -> str:
    """What is shown, as text: ``revoked t-0 t-1``, ``joined generation 4``."""
    text = observable.kind
    if observable.kind in CALLBACKS:
        text += f" {setup.spell(observable.parts)}"
    if observable.kind not in CALLBACKS and observable.generation is not None:
        text += f" generation {observable.generation}"
    return text + (f" ({observable.choice})" if observable.choice else "")
