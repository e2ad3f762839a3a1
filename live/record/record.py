"""Play a scenario with real clients on a real coordinator, and write down what they say."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from rebalance.live.clusters.cluster import LiveCluster, Unsupported
from rebalance.live.clusters.defaults import KAFKA, NODES, PARTITIONS, POLL, SESSION, SETTLE, STEPS
from rebalance.live.consumers.member import PROFILES, ClientProfile, LiveMember, Log
from rebalance.live.processes.program import CommandRefused, JsonLine
from rebalance.live.processes.tools import ToolError
from rebalance.live.record.judge import CheckFinding, HandOver, QuiescencePoint, hand_overs, judge
from rebalance.live.record.scenarios import MEMBER_STEPS, TOPICS, RecordingPlan, RecordingStep, loaded, steps
from rebalance.properties.verdict import Exit, Verdict

GROUP = "recorded"
RELEASE = re.compile(r"\d+\.\d+\.\d+")
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

COOPERATIVE = {"confluent", "kafka-python", "java"}
REFUSES = {
    "confluent": "online migration between assignors with different protocol types is not supported",
    "kafka-python": "Mixing EAGER and COOPERATIVE assignors in a single consumer is not supported",
}
"""What clients say to a list with a cooperative assignor beside an eager one, by which a group is upgraded
member by member (KIP-429). Java's take it."""
FIRST = "the mock cluster takes the first assignor of the leader for all"
NO_JAVA = "the mock cluster refuses ApiVersions and SyncGroup in bytes that Java consumers misread"


def two_bounces(last: str) -> tuple[tuple[str, ...], ...]:
    """The assignors of members that go from range to another one, each of them restarted twice."""
    return ("range",), (last, "range"), (last,)


@dataclass(frozen=True, kw_only=True)
class Request:
    """What to record. ``clients``: kinds and how many of each. ``session``: ``session.timeout.ms``;
    ``poll``: the timeout of each poll; both in milliseconds.

    ``assignor``: for all, "" for the best that all clients have. ``settle``: seconds until a group that does
    not come to rest is a finding. ``duration``: a random scenario goes on so long.
    """

    cluster: str
    clients: tuple[tuple[ClientProfile, int], ...]
    scenario: str
    seed: int = 0
    duration: float | None = None
    length: int = STEPS
    partitions: int = PARTITIONS
    assignor: str = ""
    session: int = SESSION["mock"]
    poll: int = POLL
    settle: float = SETTLE
    static: bool = False
    """Each member has its name for ``group.instance.id`` (KIP-345)."""
    kafka: str = KAFKA
    nodes: int = 1
    """Of the cluster, where it is Apache Kafka: release, and processes."""
    steps: tuple[RecordingStep, ...] = ()
    """These instead of the scenario's: those of an earlier run."""

    @property
    def members(self) -> dict[str, ClientProfile]:
        """Names and kinds, in order."""
        return {
            f"{str(profile).replace(':', '-')}-{number}": profile
            for profile, count in self.clients
            for number in range(1, count + 1)
        }

    @property
    def kinds(self) -> set[str]:
        """Names of the profiles."""
        return {profile.name for profile, _ in self.clients}

    def problem(self) -> str:
        """Why this cannot be recorded, "" if it can."""
        if self.scenario == "rolling-upgrade" and (eager := sorted(self.kinds - COOPERATIVE)):
            why = f"{eager[0]} has no cooperative assignor: there is nothing to upgrade to"
            return f"{why} (change-assignor goes from one eager assignor to another)"
        if self.assignor == "cooperative-sticky" and (eager := sorted(self.kinds - COOPERATIVE)):
            return f"{eager[0]} has no cooperative assignor"
        if self.cluster == "mock" and "java" in self.kinds:
            return f"{NO_JAVA}: --cluster kafka"
        if self.cluster == "mock" and self.scenario in ("partitions", "failover"):
            return f"the mock cluster cannot do what {self.scenario!r} needs: --cluster kafka"
        if self.cluster == "mock" and self.scenario == "change-assignor":
            return f"{FIRST}: --cluster kafka"
        return ""

    def notes(self) -> list[str]:
        """What is played otherwise than the scenario's name promises, and why."""
        if not self.together or self.problem():
            return []
        return [
            f'{client} says "{REFUSES[client]}": all stop, then all start'
            for client in sorted(self.kinds & set(REFUSES))
        ]

    @property
    def together(self) -> bool:
        """Whether a stage of an upgrade needs that all have left the one before."""
        return self.scenario == "rolling-upgrade" and not self.kinds.isdisjoint(REFUSES)

    @property
    def stages(self) -> tuple[tuple[str, ...], ...]:
        """The assignors of each stage."""
        if self.scenario == "rolling-upgrade":
            stages = two_bounces("cooperative-sticky")
            return (stages[0], stages[2]) if self.together else stages
        if self.scenario == "change-assignor":  # librdkafka has no eager sticky one
            return two_bounces("roundrobin" if "confluent" in self.kinds else "sticky")
        best = "cooperative-sticky" if self.kinds <= COOPERATIVE else "range"
        return ((self.assignor or best,),)

    def config(self, stage: int) -> dict[str, Any]:
        """The configuration of a member, in Kafka's names."""
        return {
            "partition.assignment.strategy": ",".join(self.stages[stage]),
            "session.timeout.ms": self.session,
            "heartbeat.interval.ms": max(100, self.session // 6),
            "max.poll.interval.ms": 2 * self.session,
            "metadata.max.age.ms": 1000,
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": 500,
        }


def clients(text: str) -> tuple[tuple[ClientProfile, int], ...]:
    """``confluent:3,java:4.1.0:2`` as profiles and counts. Raises ValueError, whose text says what is wrong.

    >>> clients("confluent:2,java:4.1.0:1")
    ((ClientProfile(name='confluent', version=''), 2), (ClientProfile(name='java', version='4.1.0'), 1))
    """
    made = []
    for part in filter(None, map(str.strip, text.split(","))):
        name, *more = part.split(":")
        if name not in PROFILES:
            raise ValueError(f"no client is called {name!r}; there are: {', '.join(PROFILES)}")
        version = more.pop(0) if name == "java" and more else ""
        count = more.pop(0) if more else "1"
        wrong = name == "java" and not RELEASE.fullmatch(version)
        if more or wrong or not count.isdigit() or not 0 < int(count) <= 50:
            like = "java:VERSION:COUNT" if name == "java" else f"{name}:COUNT"
            raise ValueError(f"{part!r} is not of the form {like}, with a count from 1 to 50")
        made.append((ClientProfile(name, version), int(count)))
    if not made:
        raise ValueError("no clients: name some, such as confluent:3")
    if len({profile for profile, _ in made}) < len(made):
        raise ValueError("a client is named twice: give one count for it")
    return tuple(made)


@dataclass(kw_only=True)
class Recorded:
    """What came of it. ``unsupported``: why there is no verdict."""

    request: Request
    out: Path
    version: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    """Member -> the client in its own words."""
    played: list[RecordingStep] = field(default_factory=list)
    rests: list[QuiescencePoint] = field(default_factory=list)
    lines: list[JsonLine] = field(default_factory=list)
    findings: list[CheckFinding] = field(default_factory=list)
    hand_overs: list[HandOver] = field(default_factory=list)
    unread: int = 0
    """Records that were produced before the last rest and read by nobody by then."""
    errors: dict[str, int] = field(default_factory=dict)
    """What polls raised, and members that did not close -> how often."""
    seconds: float = 0.0
    unsupported: str = ""
    interrupted: bool = False
    saved: bool = False
    """Whether there is something in ``out``."""

    @property
    def gating(self) -> list[CheckFinding]:
        """The findings that fail the run."""
        return [one for one in self.findings if one.level != "quality"]

    @property
    def verdict(self) -> Verdict:
        """Nothing is conformant that was not played to its end, with somebody who owned something."""
        if self.gating:
            return Verdict.VIOLATION
        owned = any(line["event"] == "assigned" and line.get("partitions") for line in self.lines)
        whole = owned and self.rests and not self.unsupported and not self.interrupted
        return Verdict.CONFORMANT if whole else Verdict.INCONCLUSIVE

    @property
    def exit(self) -> Exit:
        """The exit code."""
        return Exit.of(self.verdict, interrupted=self.interrupted)


AGAIN = ("scenario", "seed", "partitions", "assignor", "session", "poll", "settle", "static")
"""What else of a request is kept, to play it again."""
CLUSTER = ("kafka", "nodes")
"""The same; older recordings say it elsewhere or not at all."""


def again(run: Mapping[str, Any]) -> Request:
    """What to ask for to play the steps of ``run.json`` again. Raises ValueError, KeyError and TypeError."""
    kept = run["request"]
    of_cluster = {"kafka": KAFKA, "nodes": NODES.get(kept["scenario"], 1)}
    if run.get("cluster", {}).get("kind") == "kafka":
        of_cluster["kafka"] = run["cluster"]["version"]
    return Request(
        cluster=str(kept["cluster"]),
        clients=clients(kept["clients"]),
        steps=tuple(loaded(run["steps"])),
        **{name: kept[name] for name in AGAIN},
        **{name: kept.get(name, of_cluster[name]) for name in CLUSTER},
    )


ProgressReporter = Callable[[str], None]


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

    def prepare(self) -> None:
        """Make the topics."""
        for topic, count in self.partitions.items():
            self.cluster.create_topic(topic, count)

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
            case "create_topic":
                self.cluster.create_topic(step.topic, step.partitions)
                self.partitions[step.topic] = step.partitions
            case "add_partitions":
                self.cluster.add_partitions(step.topic, step.partitions)
                self.partitions[step.topic] = step.partitions
            case "delete_topic":
                self.cluster.delete_topic(step.topic)
                del self.partitions[step.topic]
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
        """Who takes part: runs, is polled and subscribes to something."""
        return [
            name
            for name, member in self.members.items()
            if member.running and not member.stopped and name not in self.stalled and self.subscribed[name]
        ]

    def wanted(self) -> list[str]:
        """The partitions that somebody has to own."""
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
        """Why the group is not at rest ("" if it is), and whether its members agree all the same."""
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


def play(request: Request, cluster: LiveCluster, out: Path, report_progress: ProgressReporter) -> Recorded:
    """Record ``request`` on a cluster that runs, write OUT, judge. Ctrl-C ends it; what is known is kept."""
    started = time.monotonic()
    (out / "clients").mkdir(parents=True, exist_ok=True)
    made = Recorded(request=request, out=out, version=cluster.version)
    doing = RecordingRun(request, cluster, out)
    plan = RecordingPlan(
        members=tuple(request.members),
        stages=len(request.stages),
        together=request.together,
        seed=request.seed,
        length=None if request.duration else request.length,
    )
    several = iter(request.steps) if request.steps else steps(request.scenario, plan)
    try:
        doing.prepare()
        for number, step in enumerate(_until(several, request.duration), 1):
            report_progress(f"{number}. {step}")
            made.played.append(step)
            if step.do == "settle":
                made.rests.append(doing.settle(number))
            else:
                doing.do(step)
        made.unread = doing.read_all(ANSWER)
        doing.close()
    except KeyboardInterrupt:
        made.interrupted = True
    except (Unsupported, ToolError, CommandRefused) as error:
        made.unsupported = str(error)
    finally:
        doing.end()
        made.lines = sorted(
            (line for line in doing.log.lines if "at" in line), key=lambda line: str(line["at"])
        )
    made.findings = judge(made.lines, made.rests)
    made.hand_overs = hand_overs(made.lines)
    for line in made.lines:
        if line["event"] == "error":
            made.errors[line["detail"]] = made.errors.get(line["detail"], 0) + 1
        if line["event"] == "started":
            made.versions[line["consumer"]] = line.get("detail", "")
    made.seconds = time.monotonic() - started
    write(made)
    return made


def _until(several: Iterator[RecordingStep], duration: float | None) -> Iterator[RecordingStep]:
    """The steps, up to a rest that begins after so many seconds."""
    over = None if duration is None else time.monotonic() + duration
    for one in several:
        yield one
        if over is not None and one.do == "settle" and time.monotonic() >= over:
            return


def write(made: Recorded) -> None:
    """``events.jsonl`` for ``rebalance audit``, ``reads.jsonl`` with the rest, and two reports."""
    audited: list[str] = []
    others: list[str] = []
    for line in made.lines:
        (audited if line["event"] in AUDITED else others).append(json.dumps(line) + "\n")
    (made.out / "events.jsonl").write_text("".join(audited), encoding="utf-8")
    (made.out / "reads.jsonl").write_text("".join(others), encoding="utf-8")
    for name, value in (("run", run_data(made)), ("report", data(made))):
        (made.out / f"{name}.json").write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
    made.saved = True


def run_data(made: Recorded) -> dict[str, Any]:
    """What was played, with what: enough to play it again."""
    request = made.request
    return {
        "cluster": {"kind": request.cluster, "version": made.version},
        "request": {
            "cluster": request.cluster,
            "clients": ",".join(f"{profile}:{count}" for profile, count in request.clients),
            **{name: getattr(request, name) for name in (*AGAIN, *CLUSTER)},
        },
        "clients": {name: made.versions.get(name, str(kind)) for name, kind in request.members.items()},
        "assignors": [list(stage) for stage in request.stages],
        "config": request.config(0),
        "steps": [step.data() for step in made.played],
        "rests": [asdict(rest) for rest in made.rests],
    }


def data(made: Recorded) -> dict[str, Any]:
    """The report for programs."""
    again = [one for one in made.hand_overs if one.offsets > 0]
    return {
        "verdict": str(made.verdict),
        "exit": int(made.exit),
        "unsupported": made.unsupported,
        "interrupted": made.interrupted,
        "notes": made.request.notes(),
        "scenario": made.request.scenario,
        "seed": made.request.seed,
        "steps": len(made.played),
        "rests": len(made.rests),
        "seconds": round(made.seconds, 3),
        "events": len(made.lines),
        "findings": [{**asdict(one), "level": one.level} for one in made.findings],
        "offsets": {
            "hand_overs": len(made.hand_overs),
            "with_duplicates": len(again),
            "duplicates": sum(one.offsets for one in again),
            "skipped": sum(-one.offsets for one in made.hand_overs if one.offsets < 0),
            "unread": made.unread,
        },
        "errors": made.errors,
    }
