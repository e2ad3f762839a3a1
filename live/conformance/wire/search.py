"""The search for a run of the model that shows a recording, message by message.

A pair is a state of the model and how many items of each lane are explained. Those with most explained are
searched first. Items of two lanes at most ``window`` seconds apart may be explained in either order: what a
proxy and a client note is a little before or after what they stand for.
"""

from __future__ import annotations

import heapq
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import NamedTuple

from rebalance_verifier.live.conformance.search import Conformance, Explained
from rebalance_verifier.live.conformance.wire.frontier import Items
from rebalance_verifier.live.conformance.wire.group import WireGroup
from rebalance_verifier.live.conformance.wire.items import Lane
from rebalance_verifier.live.conformance.wire.unheard import under_way
from rebalance_verifier.model.machine import Event, State

Progress = Callable[[int, int, int], None]
Counts = tuple[int, ...]


class Pair(NamedTuple):
    """Pair of position and state that is searched."""

    counts: Counts
    state: State
    more: int | None


class WireSearch:
    """Best first, all of it before "mismatch" is the answer."""

    def __init__(self, group: WireGroup, *, window: float, limit: int, seconds: float | None) -> None:
        self.group, self.window, self.limit, self.seconds = group, window, limit, seconds
        self.lanes: tuple[Lane, ...] = tuple(group.recording.lanes)
        self._items = group.recording.lanes
        self._size = group.recording.items
        self._parents: dict[Pair, tuple[Pair, Event, tuple[tuple[Lane, int], ...]] | None] = {}
        self._queue: list[tuple[int, int, Pair]] = []
        self._best: Pair | None = None

    def run(self, progress: Progress | None = None) -> Conformance:
        """Return the search."""
        deadline = None if self.seconds is None else time.process_time() + self.seconds
        self._add(Pair((0,) * len(self.lanes), self.group.machine.initial[0], None), None)
        count = 0
        while self._queue:
            left, _, pair = heapq.heappop(self._queue)
            if not left:
                return self._result("explained", pair)
            self._expand(pair)
            count += 1
            if len(self._parents) > self.limit:
                return self._result("inconclusive", self._reached, f"more than {self.limit} pairs")
            if count % 200 == 0:
                if progress is not None:
                    progress(sum(self._reached.counts), self._size, len(self._parents))
                if deadline is not None and time.process_time() > deadline:
                    return self._result("inconclusive", self._reached, f"more than {self.seconds:g} s")
        return self._result("mismatch", self._reached)

    @property
    def _reached(self) -> Pair:
        assert self._best is not None
        return self._best

    def _add(self, pair: Pair, parent: tuple[Pair, Event, tuple[tuple[Lane, int], ...]] | None) -> None:
        if pair in self._parents:
            return
        self._parents[pair] = parent
        explained = sum(pair.counts)
        if self._best is None or explained > sum(self._best.counts):
            self._best = pair
        heapq.heappush(self._queue, (self._size - explained, -len(self._parents), pair))

    def _counts(self, pair: Pair) -> Mapping[Lane, int]:
        return dict(zip(self.lanes, pair.counts, strict=True))

    def _expand(self, pair: Pair) -> None:
        counts = self._counts(pair)
        items = Items(self._items, counts, pair.more)
        first = min((item.at for lane in self.lanes if (item := items.next(lane))), default=0.0)
        for step in self.group.steps(pair.state, items):
            shown = dict(step.shows)
            if any(
                self._items[lane][counts[lane]].at > first + self.window
                for lane, number in step.shows
                if number
            ):
                continue
            after = tuple(counts[lane] + shown.get(lane, 0) for lane in self.lanes)
            state = step.state
            self._add(Pair(after, state, step.more), (pair, step.event, step.shows))

    # -- the answer ----------------------------------------------------------------------------------------

    def _result(self, verdict: str, pair: Pair, why: str = "") -> Conformance:
        counts = self._counts(pair)
        items = Items(self._items, counts, pair.more)
        waiting = [item for lane in self.lanes if (item := items.next(lane))]
        waiting.sort(key=lambda item: item.at)
        return Conformance(
            verdict=verdict,  # type: ignore[arg-type]
            events=self._size,
            longest=sum(self._reached.counts),
            searched=len(self._parents),
            states=len({one.state for one in self._parents}),
            witness=tuple(self._witness(pair)),
            blamed=self.number(waiting[0]) if verdict == "mismatch" and waiting else None,
            pending=tuple(self.number(item) for item in waiting) if verdict == "mismatch" else (),
            allowed=self._allowed() if verdict == "mismatch" else (),
            why=why,
        )

    def _allowed(self) -> tuple[tuple[str, int], ...]:
        """Return what the model has under way in the states that explain most, with how many of them have
        it."""
        most = sum(self._reached.counts)
        furthest = {(one.state, one.more) for one in self._parents if sum(one.counts) == most}
        shown = Counter(text for state, more in furthest for text in {*under_way(self.group, state, more)})
        return tuple(sorted(shown.items(), key=lambda one: (-one[1], one[0])))

    def number(self, item: object) -> int:
        """Return the number of an item among all, lane by lane."""
        return next(n for n, one in enumerate(self.listed()) if one is item)

    def listed(self) -> list[object]:
        """Return all items, lane by lane."""
        return [item for lane in self.lanes for item in self._items[lane]]

    def _witness(self, pair: Pair) -> list[Explained]:
        steps: list[Explained] = []
        here: Pair | None = pair
        starts: dict[Lane, int] = {}
        total = 0
        for lane in self.lanes:
            starts[lane] = total
            total += len(self._items[lane])
        while here is not None and (parent := self._parents[here]) is not None:
            before, event, shows = parent
            counts = self._counts(before)
            positions = [
                starts[lane] + counts[lane] + more for lane, number in shows for more in range(number)
            ]
            steps.append(Explained(event, tuple(positions)))
            here = before
        return steps[::-1]
