"""All runs of Kafka's own code up to a number of steps, by replay from the beginning, with sleep sets.

A simulation cannot go back, so for every run that is tried its beginning is played anew, in one line. Of two
steps that commute only one order is tried (sleep sets; Godefroid, 1996): after the runs that begin with the
first step, those that begin with the second do not take the first until something that it depends on has
happened.

Two steps commute if neither can see what the other does. A step of a member's own (it is called, or looks
at an answer that it has) reads and changes its process alone; what it sends waits on its connection. A step
of the coordinator (a request arrives, a timer fires) reads and changes the coordinator, and adds answers to
the ends of connections, or takes the first request from one: an arrival is possible whatever its sender does
meanwhile, unless that ends the connection. So steps of different members commute, and a member's own steps
commute with those of the coordinator. Whatever else there is (processes that start and end, connections that
end, LeaveGroup that is answered at once, topics, a heartbeat that is sent and answered in one step) depends
on everything, and so does a timer, of which it is a question of the members' state whether it is a fault;
and a poll of consumers that commit before they join, which may wait for the coordinator.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field

from rebalance_verifier.live.code.search.choice import CodeChoice
from rebalance_verifier.live.code.search.clients import OWN
from rebalance_verifier.live.code.search.findings import Searched
from rebalance_verifier.live.code.search.group import SearchedGroup
from rebalance_verifier.live.code.search.run import CodePlaying, PlayedOnCode
from rebalance_verifier.live.code.search.walks import CodeSearchPlan, CodeSearchResult, gathered

Footprint = frozenset[int]
"""Members, and THE_COORDINATOR."""

THE_COORDINATOR = -1

SPLIT, SHARES = 2, 16
"""After so many steps the runs are dealt out in so many shares."""


def footprint(group: SearchedGroup, choice: CodeChoice) -> Footprint:
    """Return what a choice reads and changes."""
    everything = frozenset((*group.setup.slots, THE_COORDINATOR))
    if choice.act == "arrive" and choice.event.action != "leave request":
        return frozenset((THE_COORDINATOR,))
    if choice.event.who >= 0 and group.is_played(choice.event.who):
        if choice.act in OWN:
            return frozenset((choice.event.who,))
        return frozenset((choice.event.who, THE_COORDINATOR)) if choice.act == "heartbeat" else everything
    if choice.act == "receive" or (choice.act == "poll" and not group.commits):
        consumer = group.state.members[choice.event.who]
        if consumer is not None and consumer.coordinator_known:
            return frozenset((choice.event.who,))
    return everything


@dataclass(frozen=True, slots=True)
class _Asleep:
    """A choice that is not to be taken before something that it depends on."""

    key: tuple[str, int, str]
    footprint: Footprint


@dataclass(kw_only=True)
class Everything:
    """All runs of ``depth`` steps with at most ``faults`` faults of a group that has settled before.

    ``ends`` is called with each run; of those that end alike, as far as can be seen, the first is left in
    peace then. ``sleeps``: whether steps that commute are tried in one order only. ``share``: of ``SHARES``
    the one that is searched, None for all. From ``latest`` on (``time.monotonic``) none begins. ``looks``:
    how the ends look.
    """

    playing: CodePlaying
    depth: int
    faults: int
    ends: Callable[[PlayedOnCode], None]
    sleeps: bool = True
    share: int | None = None
    latest: float = math.inf
    looks: set[Hashable] = field(default_factory=set)
    _met: int = 0

    def search(self) -> None:
        """Every run. Raises SimulationDied."""
        self.playing.begin()
        self.playing.gather()
        self._from(0, self.faults, frozenset())

    def _mine(self, deep: int) -> bool:
        """Check whether what follows is of this share: so many steps deep the runs are dealt out."""
        self._met += deep == SPLIT
        turn = self._met if deep == SPLIT else 0
        return self.share is None or turn % SHARES == self.share

    def _from(self, deep: int, faults: int, asleep: frozenset[_Asleep]) -> None:
        playing = self.playing
        if deep == SPLIT and not self._mine(deep):
            return
        options = [one for one in playing.choices() if faults or not one.fault] if deep < self.depth else []
        prints = [footprint(playing.group, one) for one in options]
        names = {one.key for one in asleep}
        here, run = playing.group.mark(), playing.copied()
        last, away = True, False
        for choice, touches in zip(options, prints, strict=True):
            if time.monotonic() >= self.latest:
                return
            if choice.key in names:
                last = False
                continue
            if away:
                playing.group.back(here)
            playing.resume(run)
            away = True
            if not playing.step(choice):
                continue
            last = False
            rest = frozenset(one for one in asleep if not one.footprint & touches)
            self._from(deep + 1, faults - choice.fault, rest)
            if self.sleeps:
                asleep |= {_Asleep(choice.key, touches)}
        if last and (deep >= SPLIT or self._mine(deep)):
            if away:
                playing.group.back(here)
            playing.resume(run)
            look = playing.group.sight()
            if look not in self.looks:
                self.looks.add(look)
                playing.rest()
            self.ends(playing.played)


def search_everything(
    plan: CodeSearchPlan, progress: Callable[[Searched], None] = lambda _: None
) -> CodeSearchResult:
    """Return all runs of ``plan.depth`` steps; see ``search_walks``. Raises CannotStart."""
    plan = plan.begun()
    return gathered(plan, lambda: _searching(plan), SHARES, progress)


@contextlib.contextmanager
def _searching(plan: CodeSearchPlan) -> Iterator[Callable[[int], Sequence[Searched]]]:
    """Yield what does one share."""
    with contextlib.ExitStack() as stack:
        playing = plan.playing(stack.enter_context(plan.simulation()))

        def share(number: int) -> Sequence[Searched]:
            searched = Searched()
            Everything(
                playing=playing,
                depth=plan.depth or 0,
                faults=plan.setup.budget,
                ends=searched.note,
                share=number,
                latest=plan.latest,
            ).search()
            return (searched,)

        yield share
