"""One recorded group while it runs: what is done to its members, and whether it has come to rest."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path

from rebalance_verifier.base.processes.program import CommandRefused, JsonLine
from rebalance_verifier.base.processes.tools import ToolError
from rebalance_verifier.live.clients.clusters.cluster import LiveCluster
from rebalance_verifier.live.clients.consumers.member import LiveMember, Log
from rebalance_verifier.live.clients.record.coordinator import coordinated
from rebalance_verifier.live.clients.record.judge import QuiescencePoint
from rebalance_verifier.live.clients.record.messages import GroupMessages
from rebalance_verifier.live.clients.record.request import Request
from rebalance_verifier.live.clients.record.scenarios import MEMBER_STEPS, TOPICS, RecordingStep
from rebalance_verifier.live.clients.record.watched import WatchedKafka

GROUP = "recorded"
RECORDS = 20
"""Produced to each partition before each step."""
QUIET = 1.0
"""Seconds without any event of the group, after which it is at rest if it looks so."""
ANSWER = 10.0
"""Seconds that a consumer has to say what it owns."""

AUDITED = (
    *("started", "subscribed", "joining", "joined", "synced", "assigned", "revoked", "lost"),
    *("reset", "leaving", "closed"),
)
"""What ``rebalance audit`` knows; the rest of what was said goes into ``reads.jsonl``."""
MEMBERSHIP = (*AUDITED, "error")
MOVES = ("joining", "joined", "synced", "assigned", "revoked", "lost", "reset")
"""What a member does not do in a group that is at rest."""


class RecordingRun:
    """One run: its cluster, its members, its log."""

    def __init__(self, request: Request, cluster: LiveCluster, out: Path) -> None:
        self.request, self.cluster, self.out = request, cluster, out
        self.log = Log()
        self.members: dict[str, LiveMember] = {}
        self.subscribed: dict[str, tuple[str, ...]] = {}
        self.stalled: set[str] = set()
        self.partitions = dict.fromkeys(TOPICS, request.partitions)
        self.produced: dict[str, int] = {}
        self.messages = GroupMessages(GROUP, self.log)
        if isinstance(cluster, WatchedKafka):
            cluster.listen(self.messages.heard)

    def prepare(self) -> None:
        """Make the topics."""
        for topic, count in self.partitions.items():
            self.messages.name(topic, self.cluster.create_topic(topic, count))

    def do(self, step: RecordingStep) -> None:
        """One step. Raises Unsupported, ToolError and Refused."""
        if step.do not in ("next", "settle"):
            self.produce()
        name = step.member
        if step.do in MEMBER_STEPS and (name in self.members) == (step.do == "start"):
            raise CommandRefused(
                f"{step}: {name or 'nobody'} {'runs already' if step.do == 'start' else 'does not run'}"
            )
        match step.do:
            case "start":
                self.start(name, step.stage)
            case "close":
                self.leave(self.members[name])
                del self.members[name]
            case "kill":
                self.members[name].kill()
                del self.members[name]
            case "stop":
                self.members[name].stop()
            case "cont":
                self.members[name].cont()
            case "pause" | "resume":
                (self.stalled.add if step.do == "pause" else self.stalled.discard)(name)
                self.members[name].command(step.do)
            case "subscribe":
                self.subscribed[name] = step.topics
                command = {"do": "subscribe", "topics": list(step.topics)}
                member = self.members[name]
                before = sum(1 for _ in member.lines)
                member.command(**(command if step.topics else {"do": "unsubscribe"}))
                member.await_event("subscribed", ANSWER, after=before)
            case "add_partitions":
                self.cluster.add_partitions(step.topic, step.partitions)
                self.partitions[step.topic] = step.partitions
            case "fail_coordinator":
                self.cluster.fail_coordinator(GROUP)
            case "next":
                self.log.wait(1.0, _stirred(len(self.log.lines)))

    def start(self, name: str, stage: int) -> None:
        """Start a member and wait until it is there."""
        before = sum(1 for line in self.log.lines if line.get("consumer") == name)
        config = self.request.config(stage)
        if self.request.static:
            config["group.instance.id"] = name
        member = LiveMember(
            *(name, self.request.members[name], GROUP, TOPICS[:1], config),
            bootstrap=self.cluster.bootstrap,
            log=self.log,
            log_file=self.out / "clients" / f"{name}.log",
            poll=self.request.poll,
        )
        self.members[name], self.subscribed[name] = member, TOPICS[:1]
        if member.await_event("subscribed", 60.0, after=before) is None:
            raise ToolError(f"{name} did not start: {member.stderr() or 'it says nothing'}")

    def produce(self) -> None:
        """Some records for each partition."""
        for topic, count in self.partitions.items():
            for number in range(count):
                self.cluster.produce(topic, number, RECORDS)
                name = f"{topic}-{number}"
                self.produced[name] = self.produced.get(name, 0) + RECORDS

    # -- rest --------------------------------------------------------------------------------------------

    def live(self) -> list[str]:
        """Return who takes part: runs, is polled and subscribes to something."""
        return [
            name
            for name, member in self.members.items()
            if member.running and not member.stopped and name not in self.stalled and self.subscribed[name]
        ]

    def wanted(self) -> list[str]:
        """Return the partitions that somebody has to own."""
        topics = {topic for name in self.live() for topic in self.subscribed[name]}
        return [f"{t}-{n}" for t, count in self.partitions.items() if t in topics for n in range(count)]

    def settle(self, number: int) -> QuiescencePoint:
        """Wait until the group is at rest; say how it is then."""
        deadline = time.monotonic() + self.request.settle
        why, agreed = self.restless()
        quiet = False
        while time.monotonic() < deadline:
            seen = len(self.log.lines)
            quiet = not self.log.wait(min(QUIET, deadline - time.monotonic()), _stirred(seen))
            why, agreed = self.restless()
            if quiet and not why:
                break
        # A group that never stands still may look at rest for a moment.
        if not why and not quiet and self.log.wait(QUIET, self._moving(len(self.log.lines))):
            why, agreed = "it goes on rebalancing", False
        live = self.live()
        owned = {name: self.members[name].owned(ANSWER) for name in live}
        silent = [name for name in live if owned[name] is None]
        if silent and not why:
            why = f"{silent[0]} does not answer"
        reported = {name: tuple(names) for name, names in owned.items() if names is not None}
        return QuiescencePoint(
            number=number,
            at=self.log.now(),
            settled=not why,
            live=tuple(live),
            wanted=tuple(self.wanted()),
            owned=reported,
            why=why,
            agreed=agreed,
        )

    def _moving(self, seen: int) -> Callable[[Sequence[JsonLine]], bool]:
        live = self.live()
        return lambda lines: any(
            line["event"] in MOVES and line["consumer"] in live for line in islice(lines, seen, None)
        )

    def restless(self) -> tuple[str, bool]:
        """Return why the group is not at rest ("" if it is), and whether its members agree all the same."""
        view: dict[str, _View] = {}
        for line in tuple(self.log.lines):
            if line.get("consumer") in self.members:
                view.setdefault(line["consumer"], _View()).see(line)
        live = self.live()
        if not live:
            return "", True
        there = {name: view.get(name, _View()) for name in live}
        if away := [name for name, one in there.items() if not one.member]:
            return f"{away[0]} is not a member, or rejoins", False
        generations = {one.generation for one in there.values()}
        if len(generations) > 1:
            listed = ", ".join(f"{name} in {one.generation}" for name, one in there.items())
            return f"the members are in different generations: {listed}", False
        owners: dict[str, list[str]] = {}
        for name, one in there.items():
            for partition in one.owned:
                owners.setdefault(partition, []).append(name)
        wanted = self.wanted()
        if missing := [partition for partition in wanted if partition not in owners]:
            return f"nobody owns {', '.join(missing[:4])}", True
        if twice := [partition for partition in wanted if len(owners[partition]) > 1]:
            return f"{twice[0]} is owned by {' and '.join(owners[twice[0]])}", True
        return "", True

    def read_all(self, seconds: float) -> int:
        """Wait until all records of what is owned were read; how many were not."""
        wanted = {name: self.produced.get(name, 0) for name in self.wanted()}

        def unread(lines: Sequence[JsonLine]) -> int:
            last: dict[str, int] = {}
            for line in lines:
                if line["event"] == "polled":
                    for name, (_, end) in line["ranges"].items():
                        last[name] = max(last.get(name, -1), end)
            return sum(max(0, count - 1 - last.get(name, -1)) for name, count in wanted.items())

        self.log.wait(seconds, lambda lines: not unread(lines))
        return unread(self.log.lines)

    def leave(self, member: LiveMember) -> None:
        """Let a member leave and end; that it had to be killed is among the errors."""
        member.close()
        if member.killed:
            error = {"event": "error", "consumer": member.name, "detail": "did not close in time, was killed"}
            self.log.add({"at": self.log.now(), **error})

    def close(self) -> None:
        """Let everybody leave."""
        for member in self.members.values():
            member.cont()
            member.command("close")
        for member in self.members.values():
            self.leave(member)
        self.members = {}

    def end(self) -> None:
        """Be rid of everybody."""
        for member in self.members.values():
            member.end()

    def coordinated(self) -> list[JsonLine]:
        """Return what the brokers have logged of the group, where somebody speaks the consumer protocol."""
        if not isinstance(self.cluster, WatchedKafka) or self.cluster.logs is None:
            return []
        return [
            line
            for path in sorted(self.cluster.logs.glob("*.log"))
            for line in coordinated(
                path.read_text(encoding="utf-8", errors="replace").splitlines(), GROUP, self.messages.spelled
            )
        ]


class _View:
    """Where a member is, by what it said."""

    def __init__(self) -> None:
        self.member, self.generation, self.owned = False, -1, set[str]()

    def see(self, line: JsonLine) -> None:
        match line["event"]:
            case "started" | "closed":
                self.member, self.owned = False, set()
            case "joining" | "reset" | "leaving":
                self.member = False
            case "synced":
                self.member, self.generation = True, line.get("generation", -1)
            case "assigned":
                self.owned |= set(line.get("partitions", ()))
            case "revoked" | "lost":
                self.owned -= set(line.get("partitions", ()))


def _stirred(seen: int) -> Callable[[Sequence[JsonLine]], bool]:
    return lambda lines: any(line["event"] in MEMBERSHIP for line in islice(lines, seen, None))
