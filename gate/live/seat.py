"""One client of a replay: its requests that wait for the trace's coordinator, and what it has shown."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from rebalance.gate.live.cluster import Unsupported
from rebalance.gate.live.member import Log, Member
from rebalance.gate.live.process import Line
from rebalance.gate.live.proxy import Action, Frame, Placed, Proxy, ProxyTimeout, Rule
from rebalance.gate.live.script import Step
from rebalance.model.protocol.member import FATAL
from rebalance.model.protocol.state import (
    NO_ID,
    NONE,
    Answered,
    Call,
    Callback,
    Error,
    Parts,
    Refused,
    Slot,
    Threw,
)

TAKEN = ("JoinGroup", "SyncGroup")
"""What the trace's coordinator answers when it is time; the rest of the group protocol at once."""
AT_ONCE = ("Heartbeat", "LeaveGroup", "OffsetCommit")

STARTS = 60.0
"""Seconds that a process gets to have a consumer: a JVM on a busy machine is slower than any answer."""

GONE = (Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION, Error.FENCED_INSTANCE_ID)


def thrown(line: Line) -> bool:
    """Whether a line of a client says that poll threw, or that librdkafka is at its end: what else librdkafka
    hands over as a message, an application can go on after."""
    detail = str(line.get("detail", ""))
    handed_over = detail.startswith("KafkaError{") and not detail.startswith("KafkaError{FATAL")
    return line["event"] == "error" and not handed_over


class WentAnotherWay(Exception):
    """A client did not do what the trace says that it does next; the text says who, what and where."""


class Seat:
    """One slot of the group. ``bits`` turns names of partitions into a bit mask; ``place`` is the beginning
    of its member ids, by which assignors sort.

    ``told`` is what its listener must believe, ``owned`` what the client says that it has, ``own_gen`` the
    generation in which that was assigned, ``generation`` that of the last JoinGroup answered. ``gone``: it
    was told that its membership is over, or says so, and has not joined since. ``judged`` is an error that
    it was told and whose effect its next JoinGroup shows.
    """

    def __init__(
        self,
        slot: Slot,
        name: str,
        place: int,
        proxy: Proxy,
        log: Log,
        bits: Callable[[Any], int],
        patience: float,
    ) -> None:
        self.slot, self.name, self.place = slot, name, place
        self.proxy, self.log, self.bits, self.patience = proxy, log, bits, patience
        self.member: Member | None = None
        self.eager = False
        self.read = 0  # lines of its log that were looked at
        self.began = 0  # lines of its log before its process started
        self.taken: dict[str, Placed] = {
            api: proxy.add(Rule(api, Action.TAKE, client=name, times=None)) for api in TAKEN
        }
        self.polite = {api: self._politely(api) for api in AT_ONCE}
        self.used = dict.fromkeys(TAKEN, 0)
        self.waiting: dict[str, Frame] = {}
        self.told = self.owned = 0
        self.own_gen = self.generation = NONE
        self.incarnation, self.gone = NO_ID, False
        self.judged: Refused | None = None
        self.state: Any = None
        self.same, self.resets = True, 0

    def _politely(self, api: str) -> Placed:
        return self.proxy.add(Rule(api, Action.ANSWER, client=self.name, times=None, error="NONE"))

    def id(self, incarnation: int) -> str:
        """Its member id of this incarnation."""
        return f"{self.place}-{self.name}-{incarnation}"

    # -- its requests ------------------------------------------------------------------------------------

    def forget(self) -> None:
        """A new process: nothing of the old one counts."""
        for api in TAKEN:
            self.used[api] = len(self.taken[api].matched)
        self.waiting.clear()
        self.told = self.owned = 0
        self.own_gen = self.generation = NONE
        self.incarnation, self.gone, self.judged = NO_ID, False, None

    def starts(self) -> None:
        """Wait until its process has a consumer, or has ended."""
        if self.member is not None and not self.member.stopped:
            self.member.await_event("subscribed", STARTS, after=self.began)

    def ended(self) -> None:
        """Say so if the client is not there any more. Raises Unsupported if it never was, WentAnotherWay."""
        member = self.member
        if member is None or member.running:
            return
        said = (member.stderr().splitlines() or ["it says nothing"])[-1]
        if not any(placed.matched for placed in self.taken.values()):
            strategy = member.config["partition.assignment.strategy"]
            raise Unsupported(f"the client does not run with [{strategy}]: {said}")
        raise WentAnotherWay(f"{self.name} has ended: {said}")

    def request(self, api: str) -> Frame:
        """The next request of this kind, on a connection that is still there, that nothing was done with."""
        placed = self.taken[api]

        def next_one() -> Frame | None:
            while self.used[api] < len(placed.matched):
                frame = placed.matched[self.used[api]]
                if self.proxy.is_open(frame):
                    return frame
                self.used[api] += 1
            return None

        try:
            frame = self.proxy.wait(next_one, f"{self.name}'s {api}", self.patience)
        except ProxyTimeout:
            self.ended()
            raise
        self.used[api] += 1
        self.waiting[api] = frame
        return frame

    def heartbeat(self) -> Frame:
        """Its next heartbeat, which nobody has answered. Raises ProxyTimeout."""
        self.polite["Heartbeat"].remove()
        asked = self.proxy.add(Rule("Heartbeat", Action.TAKE, client=self.name))
        try:
            return asked.await_match(seconds=self.patience)
        finally:
            asked.remove()
            self.polite["Heartbeat"] = self._politely("Heartbeat")

    def reply(self, api: str, fields: Mapping[str, Any]) -> None:
        """Answer what it has under way. Raises WentAnotherWay when that is nothing."""
        frame = self.waiting.pop(api, None)
        if frame is None:
            raise WentAnotherWay(f"{self.name} has no {api} under way")
        self.proxy.reply(frame, fields)

    def goes_on(self) -> None:
        """Wait until it has polled after what it did last: two heartbeats, or its next JoinGroup, tell."""
        beats = len(self.proxy.seen("Heartbeat", self.name))
        joins = self.taken["JoinGroup"]
        with contextlib.suppress(ProxyTimeout):
            self.proxy.wait(
                lambda: (
                    True
                    if len(self.proxy.seen("Heartbeat", self.name)) > beats + 1
                    or len(joins.matched) > self.used["JoinGroup"]
                    else None
                ),
                f"{self.name}'s heartbeats",
                self.patience,
            )

    def rejoins(self) -> bool:
        """Whether a JoinGroup comes that nothing was done with yet; it stays for its step."""
        placed = self.taken["JoinGroup"]
        with contextlib.suppress(ProxyTimeout):
            self.proxy.wait(
                lambda: True if len(placed.matched) > self.used["JoinGroup"] else None,
                f"{self.name}'s JoinGroup",
                self.patience,
            )
            return True
        return False

    # -- what it shows -----------------------------------------------------------------------------------

    def told_error(self, step: Step, wire: Refused) -> None:
        """Remember an error, to be judged by what the client does next."""
        before = step.member()
        same = before.id == wire.id and (wire.api == "join" or before.generation == wire.generation)
        self.judged = None if wire.error in FATAL else wire
        self.same, self.state = same, before.state
        self.resets = self.resets_so_far()
        if same and wire.error in GONE:
            self.gone = True

    def throws(self) -> None:
        """Wait until its poll has thrown, as it shall on an error that is fatal; longer than it may take."""
        for wait in (self.patience / 2, self.patience / 2):
            if self.log.wait(wait, lambda _: any(map(thrown, self.said()[self.read :]))):
                return
            self.let_go()  # it may wait for an answer first

    def effects(self, frame: Frame | None) -> Iterator[Any]:
        """What an error did, as its next JoinGroup shows; None: it did not come."""
        wire, self.judged = self.judged, None
        if wire is None:
            return
        resets = self.resets_so_far() > self.resets
        shown = (frame.fields or {}).get("member_id", "") if frame is not None else ""
        keeps = frame is None or not self.incarnation or shown == self.id(self.incarnation)
        lost = self.incarnation != NO_ID and not keeps
        yield Answered(
            self.slot, wire.api, wire.error, self.state, self.same, resets or lost, keeps, frame is not None
        )

    def leaves(self, before: int, seconds: float) -> None:
        """Wait for a LeaveGroup besides those ``before``. Raises ProxyTimeout."""
        self.proxy.wait(
            lambda: True if len(self.proxy.seen("LeaveGroup", self.name)) > before else None,
            f"{self.name}'s LeaveGroup",
            seconds,
        )

    def let_go(self) -> None:
        """Answer what it has under way, so that a client that waits for the answer can go on."""
        early = [frame for api in TAKEN for frame in self.taken[api].matched[self.used[api] :]]
        for frame in (*self.waiting.values(), *early):
            self.proxy.refuse(frame, "REBALANCE_IN_PROGRESS")
        self.waiting.clear()

    def said(self) -> list[Line]:
        """Everything that it has said, in all its restarts."""
        return list(self.member.lines) if self.member is not None else []

    def resets_so_far(self) -> int:
        """How often it has said that its membership is over."""
        return sum(line["event"] in ("reset", "lost") for line in self.said())

    def look(self) -> Iterator[Any]:
        """What a client did since it was looked at last: its callbacks, and what its poll threw."""
        member = self.member
        if member is None:
            return
        if member.running and not member.stopped:
            member.owned(self.patience)
        said = self.said()
        new, self.read = said[self.read :], len(said)
        calls = {"assigned": Call.ASSIGNED, "revoked": Call.REVOKED, "lost": Call.LOST}
        for line in new:
            kind = line["event"]
            if kind == "owns":
                self.owned = self.bits(line["partitions"])
            elif kind == "reset":
                self.gone = True
            elif thrown(line):
                yield Threw(self.slot, str(line.get("detail", "")))
            elif kind in calls:
                parts = self.bits(line["partitions"])
                yield Callback(
                    *(calls[kind], self.slot, Parts(parts), self.eager, self.gone),
                    *(Parts(self.told | parts), Parts(self.told)),
                )
                self.told = self.told | parts if kind == "assigned" else self.told & ~parts
