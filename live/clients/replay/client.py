"""One client of a replay: its requests that wait for the trace's coordinator, and what it has shown."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from rebalance_verifier.base.processes.program import JsonLine
from rebalance_verifier.live.clients.clusters.cluster import Unsupported
from rebalance_verifier.live.clients.consumers.clients.recorder import THREW
from rebalance_verifier.live.clients.consumers.member import LiveMember, Log
from rebalance_verifier.live.clients.proxy.frames import Frame
from rebalance_verifier.live.clients.proxy.proxy import Placed, Proxy, ProxyTimeout
from rebalance_verifier.live.clients.proxy.rules import ProxyRule
from rebalance_verifier.live.clients.replay.replay_plan import ReplayStep
from rebalance_verifier.model.classic.errors import FATAL
from rebalance_verifier.model.classic.state import Refused
from rebalance_verifier.model.group import parts as p
from rebalance_verifier.model.group.observations import Answered, Call, Callback, Threw

TAKEN = ("JoinGroup", "SyncGroup")
"""What the trace's coordinator answers when it is time; the rest of the group protocol at once."""
AT_ONCE = ("Heartbeat", "LeaveGroup", "OffsetCommit")

STARTS = 60.0
"""Seconds that a process gets to have a consumer: a JVM on a busy machine is slower than any answer."""

GONE = (p.Error.UNKNOWN_MEMBER_ID, p.Error.ILLEGAL_GENERATION, p.Error.FENCED_INSTANCE_ID)


def thrown(line: JsonLine) -> bool:
    """Check whether a line of a client says that poll threw, or that librdkafka is at its end: what else
    librdkafka hands over as a message, an application can go on after."""
    detail = str(line.get("detail", ""))
    handed_over = detail.startswith("KafkaError{") and "FATAL" not in detail.partition(",")[0]
    return line["event"] == "error" and not handed_over


class Diverged(Exception):
    """A client did not do what the trace says that it does next; the text says who, what and where."""


class ReplayClient:
    """One slot of the group. ``bits`` turns names of partitions into a bit mask; ``rank`` is the beginning
    of its member ids, by which assignors sort.

    ``believed`` is what its listener must believe, ``owned`` what the client says that it has, ``own_gen``
    the generation in which that was assigned, ``generation`` that of the last JoinGroup answered. ``gone``:
    it was told that its membership is over, or says so, and has not joined since. ``judged`` is an error that
    it was told and whose effect its next JoinGroup shows. ``late`` is a request that is answered long after
    it was sent, ``due`` one that has yet to be sent; ``commit`` is the commit before a join, which takes its
    time, ``reads`` what is read meanwhile. ``abandoned`` is a JoinGroup that an unsubscribe left behind,
    ``left_behind`` what was sent on each broken connection, None where it was not seen.
    ``over``: it has ended where the trace's hangs.
    """

    def __init__(
        self,
        slot: p.Slot,
        name: str,
        rank: int,
        proxy: Proxy,
        log: Log,
        bits: Callable[[Any], int],
        patience: float,
    ) -> None:
        self.slot, self.name, self.rank = slot, name, rank
        self.proxy, self.log, self.bits, self.patience = proxy, log, bits, patience
        self.member: LiveMember | None = None
        self.eager = False
        self.read = 0  # lines of its log that were looked at
        self.began = 0  # lines of its log before its process started
        self.taken: dict[str, Placed] = {
            api: proxy.add(ProxyRule(api=api, client=name, times=None)) for api in TAKEN
        }
        self.polite = {api: self._politely(api) for api in AT_ONCE}
        self.used = dict.fromkeys(TAKEN, 0)
        self.waiting: dict[str, Frame] = {}
        self.believed = self.owned = 0
        self.own_gen = self.generation = p.NONE
        self.incarnation, self.gone = p.NO_ID, False
        self.judged: Refused | None = None
        self.abandoned: Frame | None = None
        self.left_behind: list[Frame | None] = []
        self.late: Frame | None = None
        self.due: ReplayStep | None = None
        self.slow: Placed | None = None
        self.commit: Frame | None = None
        self.over = False
        self.reads = 0
        self.state: Any = None
        self.same, self.resets = True, 0

    def _politely(self, api: str, error: str = "NONE") -> Placed:
        return self.proxy.add(ProxyRule(api=api, client=self.name, times=None, error=error))

    @property
    def process(self) -> LiveMember:
        """Return its process, which has been started."""
        assert self.member is not None
        return self.member

    def id(self, incarnation: int) -> str:
        """Return its member id of this incarnation."""
        return f"{self.rank}-{self.name}-{incarnation}"

    # -- its requests ------------------------------------------------------------------------------------

    def forget(self) -> None:
        """Begin as a new process: nothing of the old one counts."""
        for api in TAKEN:
            self.used[api] = len(self.taken[api].matched)
        self.waiting.clear()
        self.believed = self.owned = 0
        self.own_gen = self.generation = p.NONE
        self.incarnation, self.gone, self.judged = p.NO_ID, False, None
        self.late = self.due = None
        self.commit_done()

    def starts(self) -> None:
        """Wait until its process has a consumer, or has ended."""
        if self.member is not None and not self.member.stopped:
            self.member.await_event("subscribed", STARTS, after=self.began)

    def ended(self) -> None:
        """Say so if the client is not there any more. Raises Unsupported if it never was, Diverged."""
        member = self.member
        if member is None or member.running:
            return
        last_line = (member.stderr().splitlines() or ["it says nothing"])[-1]
        if not any(placed.matched for placed in self.taken.values()):
            strategy = member.config["partition.assignment.strategy"]
            raise Unsupported(f"the client does not run with [{strategy}]: {last_line}")
        raise Diverged(f"{self.name} has ended: {last_line}")

    def request(self, api: str) -> Frame:
        """Return the next request of this kind, on a connection that is still there, that nothing was done
        with."""
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

    def take(self, api: str, cause: Callable[[], None] = lambda: None) -> Frame:
        """Return its next request of those that are answered at once, which nobody answers. Raises
        ProxyTimeout."""
        placed = self._taking(api)
        try:
            cause()
            return placed.await_match(seconds=self.patience)
        finally:
            self._politely_again(placed)

    def _taking(self, api: str, times: int | None = 1) -> Placed:
        self.polite[api].remove()
        return self.proxy.add(ProxyRule(api=api, client=self.name, times=times))

    def _politely_again(self, placed: Placed) -> None:
        placed.remove()
        self.polite[placed.rule.api] = self._politely(placed.rule.api)

    def hears(self, error: str) -> None:
        """Answer each heartbeat so from now on."""
        self.polite["Heartbeat"].remove()
        self.polite["Heartbeat"] = self._politely("Heartbeat", error)

    def commits(self) -> None:
        """Let it commit what it has read. Raises ProxyTimeout when it reads nothing."""
        if self.owned and not self.log.wait(self.patience, lambda _: any(map(_polled, self.output()))):
            raise ProxyTimeout(f"{self.name} reads nothing within {self.patience:g} s")
        self.process.command("commit")

    def commit_is_slow(self) -> None:
        """Keep its commits waiting for `commit_done` from now on."""
        if self.slow is None:
            self.slow = self._taking("OffsetCommit", None)

    def committing(self) -> list[Frame]:
        """Return the commits that wait."""
        return [frame for frame in self.slow.matched if frame.fate == "taken"] if self.slow else []

    def commit_done(self, error: str = "NONE") -> None:
        """Answer the commits that wait, and at once those to come."""
        for frame in self.committing():
            self.proxy.refuse(frame, error)
        if self.slow is not None:
            self._politely_again(self.slow)
        self.slow = self.commit = None
        self.reads = 0

    def reply(self, api: str, fields: Mapping[str, Any]) -> None:
        """Answer what it has under way. Raises Diverged when that is nothing."""
        frame = self.waiting.pop(api, None)
        if frame is None:
            raise Diverged(f"{self.name} has no {api} under way")
        self.proxy.reply(frame, fields)

    def _wait(self, true: Callable[[], bool], what: str, seconds: float) -> None:
        """Wait until ``true``, asked again after each message. Raises ProxyTimeout."""
        self.proxy.wait(lambda: True if true() else None, f"{self.name}'s {what}", seconds)

    def goes_on(self) -> None:
        """Wait until it has polled after what it did last: two heartbeats, or its next JoinGroup, tell."""
        enough = self.proxy.count("Heartbeat", self.name) + 2
        with contextlib.suppress(ProxyTimeout):
            self._wait(
                lambda: self.proxy.count("Heartbeat", self.name) >= enough or self.asks_to_join,
                "heartbeats",
                self.patience,
            )

    @property
    def asks_to_join(self) -> bool:
        """Check whether there is a JoinGroup that nothing was done with yet."""
        return len(self.taken["JoinGroup"].matched) > self.used["JoinGroup"]

    def rejoins(self) -> bool:
        """Check whether a JoinGroup comes that nothing was done with yet; it stays for its step."""
        with contextlib.suppress(ProxyTimeout):
            self._wait(lambda: self.asks_to_join, "JoinGroup", self.patience)
        return self.asks_to_join

    def leaves(self, before: int, seconds: float) -> None:
        """Wait for a LeaveGroup besides those ``before``. Raises ProxyTimeout."""
        self._wait(lambda: self.proxy.count("LeaveGroup", self.name) > before, "LeaveGroup", seconds)

    # -- what it shows -----------------------------------------------------------------------------------

    def remember_error(self, step: ReplayStep, wire: Refused) -> None:
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
            if self.log.wait(wait, lambda _: any(map(thrown, self.output()[self.read :]))):
                return
            self.let_go()  # it may wait for an answer first

    def effects(self, frame: Frame | None) -> Iterator[Any]:
        """Yield what an error did, as its next JoinGroup shows; None: it did not come."""
        wire, self.judged = self.judged, None
        if wire is None:
            return
        resets = self.resets_so_far() > self.resets
        shown = (frame.fields or {}).get("member_id", "") if frame is not None else ""
        keeps = frame is None or not self.incarnation or shown == self.id(self.incarnation)
        lost = self.incarnation != p.NO_ID and not keeps
        yield Answered(
            who=self.slot,
            api=wire.api,
            error=wire.error,
            state=self.state,
            same=self.same,
            reset=resets or lost,
            keeps_id=keeps,
            rejoin=frame is not None,
        )

    def let_go(self) -> None:
        """Answer what it has under way, so that a client that waits for the answer can go on."""
        early = [frame for api in TAKEN for frame in self.taken[api].matched[self.used[api] :]]
        for frame in (*self.waiting.values(), *early):
            self.proxy.refuse(frame, "REBALANCE_IN_PROGRESS")
        self.waiting.clear()

    def output(self) -> list[JsonLine]:
        """Return everything that it has said, in all its restarts."""
        return list(self.member.lines) if self.member is not None else []

    def resets_so_far(self) -> int:
        """Return how often it has said that its membership is over."""
        return sum(line["event"] in ("reset", "lost") for line in self.output())

    def look(self) -> Iterator[Any]:
        """Yield what a client did since it was looked at last: its callbacks, and what its poll threw.

        Raises Diverged when it does not say what it owns: what it said before may be over.
        """
        member = self.member
        if member is None:
            return
        responsive = member.running and not member.stopped
        if responsive and member.owned(self.patience) is None and member.running:
            raise Diverged(
                f"{self.name} does not say what it owns, for {self.patience:g} s: it is not back from a call"
            )
        output = self.output()
        new, self.read = output[self.read :], len(output)
        calls = {"assigned": Call.ASSIGNED, "revoked": Call.REVOKED, "lost": Call.LOST}
        during: int | None = None
        for line in new:
            kind = line["event"]
            if kind == "owns":
                self.owned = self.bits(line["partitions"])
            elif kind == "owned":
                during = self.bits(line["partitions"])
            elif kind == "reset":
                self.gone = True
            elif thrown(line):
                detail = str(line.get("detail", ""))
                yield Threw(self.slot, "listener" if THREW in detail else detail)
            elif kind in calls:
                parts = self.bits(line["partitions"])
                yield Callback(
                    *(calls[kind], self.slot, p.Parts(parts), self.eager, self.gone),
                    *(p.Parts(self.believed | parts if during is None else during), p.Parts(self.believed)),
                )
                during = None
                self.believed = self.believed | parts if kind == "assigned" else self.believed & ~parts


def _polled(line: JsonLine) -> bool:
    return bool(line["event"] == "polled")
