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
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import takewhile
from math import inf
from typing import Any, Literal, NamedTuple, cast

from rebalance_verifier.base.verdict import Verdict
from rebalance_verifier.live.conformance.observed import (
    ALWAYS_LOGGED,
    CALLBACKS,
    OPTIONAL,
    Observed,
    SearchQuestion,
    UnloggedAction,
    describe,
    kinds_of,
)
from rebalance_verifier.live.conformance.space import AGAINST, SpaceMove, StateSpace
from rebalance_verifier.model.assignor import Assignor
from rebalance_verifier.model.bugs.switches import switched
from rebalance_verifier.model.classic.group import FAULTS
from rebalance_verifier.model.classic.state import JoinOk, Member, SyncOk
from rebalance_verifier.model.group.parts import NONE, Parts, Topics
from rebalance_verifier.model.group.setup import letter
from rebalance_verifier.model.machine import NOBODY, Event
from rebalance_verifier.model.values import Cluster, GroupAssignment, GroupSubscription

_FAULT_OF = {
    **dict.fromkeys(("join lost", "join unanswered", "sync lost"), "disconnect"),
    **dict.fromkeys(("join late", "sync late", "callback late"), "slow network"),
}
_ASIDE = (*OPTIONAL, "paused", "resumed", "enforced", "subscribed")


class Explained(NamedTuple):
    """A step of a witness and the events that it shows, by their position in the recording.

    ``event`` is None where a consumer that failed is closed or killed, which changes nothing.
    """

    event: Event | None
    shows: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Conformance:
    """Result of a trace validation. ``events`` is how many there are, ``longest`` how many could be explained
    at most.

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

    @property
    def judgement(self) -> Verdict:
        """The verdict among those that all commands share."""
        known = {"explained": Verdict.CONFORMANT, "mismatch": Verdict.VIOLATION}
        return known.get(self.verdict, Verdict.INCONCLUSIVE)


class _PlaceholderAssignor:
    """The assignor whose answers are filled in from what was observed."""

    def __init__(self, like: Assignor) -> None:
        self.name, self.protocols, self.promises = like.name, like.protocols, like.promises
        self.user_data = like.user_data

    def assign(self, cluster: Cluster, group: GroupSubscription) -> GroupAssignment:
        return dict.fromkeys(group, ())


def placeholder_assignor(name: str, switches: tuple[str, ...]) -> Assignor:
    """Return the plug for ``observed_assignments``."""
    return cast(Assignor, _PlaceholderAssignor(switched(name, switches)))


Progress = Callable[[int, int, int], None]
"""Called now and then with the events explained, events in all, and pairs searched."""


def conforms(question: SearchQuestion, progress: Progress | None = None) -> Conformance:
    """Check whether the model can show what was observed.

    Raises ValueError for an event about a consumer that the setup does not have, or of an unknown kind.
    """
    for event in question.events:
        if event.kind not in ALWAYS_LOGGED and event.kind not in OPTIONAL:
            raise ValueError(f"no kind of event is called {event.kind!r}")
        if event.who != NOBODY and event.who not in question.setup.slots:
            raise ValueError(f"the setup has no consumer number {event.who}")
    hidden = question.faults if question.budget else ()
    unlogged = (_FAULT_OF.get(action, action) for action, _ in question.unlogged_actions)
    kinds = dict.fromkeys((*kinds_of(question.events), *hidden, *unlogged))
    faults = tuple(kind for kind in kinds if kind in FAULTS)
    setup = replace(question.setup, faults=faults, budget=question.budget)
    if question.observed_assignments:
        setup = replace(setup, factory=placeholder_assignor, naming="given")
    return RunSearch(replace(question, setup=setup)).run(progress)


class RunSearch:
    """Best first: pairs with the most events explained are searched first, hidden steps breadth-first."""

    def __init__(self, question: SearchQuestion) -> None:
        self.question, self.events = question, question.events
        self.space = space = StateSpace(question)
        events = question.events
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

    def run(self, progress: Progress | None) -> Conformance:
        """Return the search."""
        limit, seconds = self.question.limit, self.question.seconds
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
        """Return the next event of each consumer whose turn it may be: (its lane, position of the event)."""
        waiting = [
            (lane, self.positions[lane][count])
            for lane, count in enumerate(counts)
            if count < len(self.positions[lane])
        ]
        first = min((self.events[position].at for _, position in waiting), default=0.0)
        return [
            (lane, position)
            for lane, position in waiting
            if self.events[position].at <= first + self.question.window
        ]

    def _not_now(self, counts: tuple[int, ...]) -> frozenset[UnloggedAction]:
        """Return what may only happen at another time than between the events explained and those to come."""
        lanes = list(zip(self.positions, counts, strict=True))
        last = max((self.events[positions[n - 1]].at for positions, n in lanes if n), default=-inf)
        coming = min(
            (self.events[positions[n]].at for positions, n in lanes if n < len(positions)), default=inf
        )
        speaking = {
            (action, who)
            for action, seconds in self.question.silent.items()
            for who, (positions, n) in zip(self.whose, lanes, strict=True)
            if n < len(positions) and self.events[positions[n]].at < last + seconds
        }
        return frozenset(speaking) | frozenset(
            action
            for action, spans in self.question.when.items()
            if not any(
                start <= coming + self.question.window and last <= stop + self.question.window
                for start, stop in spans
            )
        )

    def _next_generations(self, counts: tuple[int, ...]) -> Iterator[tuple[int, Observed]]:
        """Yield the next event of each consumer that tells a generation; none where generations may fall."""
        if not {"failover", "group expires"}.isdisjoint(self.space.setup.faults):
            return
        for lane, slot in enumerate(self.space.setup.slots):
            coming = (self.events[position] for position in self.positions[lane][counts[lane] :])
            event = next((event for event in coming if event.generation is not None), None)
            if event is not None:
                yield slot, event

    def _too_late(self, frontier: int, node: int) -> bool:
        """Check whether the group is past a generation that a consumer has yet to be told: it only rises."""
        anchors = self.space.anchors(node)
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
            before, event = parent
            cost = self.cost.get(before, 0)
            cost += event is not None and (event.action in self.question.penalised or AGAINST in event.choice)
        if cost:
            self.cost[pair] = cost
        explained = self._explained(pair[0])
        if explained > self._explained(self.reached[0]):
            self.reached = pair
        heapq.heappush(self.queue, (len(self.events) - explained, cost, len(self.parents), *pair))

    def _expand(self, frontier: int, node: int) -> None:
        pair = (frontier, node)
        turns = {self.whose[lane]: lane for lane, _ in self._next[frontier]}
        shut = self._shut[frontier]
        for move in self.space.moves(node):
            if shut and move.event is not None and (move.event.action, move.who) in shut:
                continue
            if self.question.observed_assignments and move.step is not None and move.step.decided is not None:
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
        """Return the input that may come next in a lane; callbacks of closing come before it is closed."""
        for position in self.positions[lane][self.frontiers[frontier][lane] :]:
            kind = self.events[position].kind
            if kind not in CALLBACKS and kind not in OPTIONAL:
                return kind
        return None

    def _follow(self, pair: tuple[int, int], move: SpaceMove, turns: Mapping[int, int]) -> None:
        """Take a step if what it shows is what comes next."""
        if not move.observables:
            after = self.space.after(pair[1], move)
            if (
                move.event is None
                or move.event.action not in self.question.unlogged
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
        anchors = self.space.anchors(pair[1])
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
        """Check whether some event tells the group's generation."""
        anchors = self.space.anchors(node)
        return anchors is not None and anchors[0] and anchors[1][-1] in self.generations

    def _candidates(self, frontier: int, slot: int, member: Member) -> tuple[set[Parts], Topics]:
        """Return what ``slot`` may be assigned now, as its next callbacks tell; and its next subscription."""
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

    def _describe(self, move: SpaceMove) -> str:
        return f"{letter(move.who)}: " + ", ".join(
            describe(self.space.setup, observable) for observable in move.observables
        )
