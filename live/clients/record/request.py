"""What to record: which clients, doing what, on which cluster; and what a client or cluster cannot do."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rebalance_verifier.base.names import unknown
from rebalance_verifier.live.clients.clusters.cluster import LiveCluster
from rebalance_verifier.live.clients.clusters.defaults import (
    KAFKA,
    NODES,
    PARTITIONS,
    POLL,
    SESSION,
    SETTLE,
    STEPS,
)
from rebalance_verifier.live.clients.clusters.kafka import KafkaCluster
from rebalance_verifier.live.clients.clusters.mock import MockCluster
from rebalance_verifier.live.clients.consumers.member import ClientProfile
from rebalance_verifier.live.clients.record.scenarios import RecordingStep, step
from rebalance_verifier.live.clients.record.watched import WatchedKafka
from rebalance_verifier.live.conformance.clients.table import BY_RECORDER
from rebalance_verifier.model.bugs.releases import spelled, version
from rebalance_verifier.model.consumer.assignors import SERVER_ASSIGNORS
from rebalance_verifier.model.group.setup import group_protocol
from rebalance_verifier.model.protocols import PROTOCOLS

RELEASE = re.compile(r"\d+\.\d+\.\d+")
FIRST = "the mock cluster takes the first assignor of the leader for all"
CLASSIC, CONSUMER = "classic", "consumer"
"""``group.protocol``."""
SERVED = "4.0.0"
"""The first release of Kafka, and of its client, of which groups of the consumer protocol are recorded."""
NO_JAVA = "the mock cluster refuses ApiVersions and SyncGroup in bytes that Java consumers misread"


def two_bounces(last: str) -> tuple[tuple[str, ...], ...]:
    """Return the assignors of members that go from range to another one, each of them restarted twice."""
    return ("range",), (last, "range"), (last,)


@dataclass(frozen=True, kw_only=True)
class Request:
    """Request for a recording. ``clients``: kinds and how many of each. ``session``: ``session.timeout.ms``;
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
    protocol: str = CLASSIC
    """``group.protocol`` of all members, unless the scenario changes it."""
    steps: tuple[RecordingStep, ...] = ()
    """These instead of the scenario's: those of an earlier run."""

    @property
    def members(self) -> dict[str, ClientProfile]:
        """Return names and kinds, in order."""
        return {
            f"{str(profile).replace(':', '-')}-{number}": profile
            for profile, count in self.clients
            for number in range(1, count + 1)
        }

    @property
    def kinds(self) -> set[str]:
        """Return the names of the profiles."""
        return {profile.name for profile, _ in self.clients}

    def start(self, logs: Path) -> AbstractContextManager[LiveCluster]:
        """Return the cluster that is asked for, which runs in the block; brokers of ours write to
        ``logs``."""
        if self.cluster == "mock":
            return MockCluster()
        if not self.speaks_consumer:
            return KafkaCluster(self.kafka, self.nodes, logs=logs)
        times = {"session.timeout.ms": self.session, "heartbeat.interval.ms": self.interval}
        config = {
            f"group.consumer.{least}{name}": value for name, value in times.items() for least in ("", "min.")
        }
        return WatchedKafka(self.kafka, self.nodes, logs=logs, config=config)

    @property
    def speaks_consumer(self) -> bool:
        """Check whether somebody speaks the consumer protocol (KIP-848)."""
        return CONSUMER in self.protocols

    @property
    def protocols(self) -> tuple[str, ...]:
        """``group.protocol`` in each stage."""
        if self.scenario == "migration":
            return CLASSIC, CONSUMER, CLASSIC
        return (self.protocol,) * len(self._classic_stages)

    @property
    def interval(self) -> int:
        """``heartbeat.interval.ms``."""
        return max(100, self.session // 6)

    def _unserved(self) -> str:
        """Return why there is no group of the consumer protocol, "" if there is."""
        if self.cluster == "mock":
            return PROTOCOLS[group_protocol(self.protocols)].refusal("record --cluster mock")
        if version(self.kafka) < version(SERVED):
            return f"Kafka {self.kafka} has no groups of the consumer protocol: {SERVED} or newer"
        for client, _ in self.clients:
            if not BY_RECORDER[client.name].speaks_consumer:
                return f"{client} does not speak the consumer protocol"
            if client.version and version(client.version) < version(SERVED):
                return f"{client} does not speak the consumer protocol: kafka-clients {SERVED} or newer does"
        if self.scenario in ("rolling-upgrade", "change-assignor"):
            return f"{self.scenario} changes assignors of clients, and a consumer group has the broker's"
        if self.scenario != "migration" and self.assignor not in ("", *SERVER_ASSIGNORS):
            return f"{self.assignor} is no assignor of the broker: {', '.join(SERVER_ASSIGNORS)}"
        return ""

    def problem(self) -> str:
        """Return why this cannot be recorded, "" if it can."""
        if self.speaks_consumer and (why := self._unserved()):
            return why
        if not self.speaks_consumer and self.assignor == "uniform":
            return "uniform is an assignor of the broker: --group-protocol consumer"
        eager = [client for client in sorted(self.kinds) if not BY_RECORDER[client].cooperative]
        if self.scenario == "rolling-upgrade" and eager:
            why = f"{eager[0]} has no cooperative assignor: there is nothing to upgrade to"
            return f"{why} (change-assignor goes from one eager assignor to another)"
        if self.assignor == "cooperative-sticky" and eager:
            return f"{eager[0]} has no cooperative assignor"
        if self.cluster == "mock" and "java" in self.kinds:
            return f"{NO_JAVA}: --cluster kafka"
        if self.cluster == "mock" and self.scenario in ("partitions", "failover"):
            return f"the mock cluster cannot do what {self.scenario!r} needs: --cluster kafka"
        if self.cluster == "mock" and self.scenario == "change-assignor":
            return f"{FIRST}: --cluster kafka"
        return ""

    def notes(self) -> list[str]:
        """Return what is played otherwise than the scenario's name promises, and why."""
        if self.problem():
            return []
        if self.scenario == "migration" and self.stages[0] == ("cooperative-sticky",):
            reasons = {client: BY_RECORDER[client].stays_classic for client in sorted(self.kinds)}
            return [f"{client}'s group is not converted: {why}" for client, why in reasons.items() if why]
        if not self.together:
            return []
        refused = {client: BY_RECORDER[client].refuses_mixed for client in sorted(self.kinds)}
        return [f'{name} says "{why}": all stop, then all start' for name, why in refused.items() if why]

    @property
    def together(self) -> bool:
        """Check whether a stage of an upgrade needs that all have left the one before."""
        refused = any(BY_RECORDER[client].refuses_mixed for client in self.kinds)
        return self.scenario == "rolling-upgrade" and refused

    @property
    def stages(self) -> tuple[tuple[str, ...], ...]:
        """The assignors of each stage; of the consumer protocol the broker's."""
        served = "" if self.scenario == "migration" else self.assignor
        listed = (served or "uniform",)
        if self.scenario == "migration":
            return self._classic_stages[0], listed, self._classic_stages[0]
        return (listed,) if self.speaks_consumer else self._classic_stages

    @property
    def _classic_stages(self) -> tuple[tuple[str, ...], ...]:
        if self.scenario == "rolling-upgrade":
            stages = two_bounces("cooperative-sticky")
            return (stages[0], stages[2]) if self.together else stages
        if self.scenario == "change-assignor":  # librdkafka has no eager sticky one
            return two_bounces("roundrobin" if "confluent" in self.kinds else "sticky")
        cooperative = all(BY_RECORDER[client].cooperative for client in self.kinds)
        if self.scenario == "migration" and any(BY_RECORDER[client].stays_classic for client in self.kinds):
            cooperative = False
        best = "cooperative-sticky" if cooperative else "range"
        return ((self.assignor or best,),)

    def config(self, stage: int) -> dict[str, Any]:
        """Return the configuration of a member, in Kafka's names."""
        if self.protocols[stage] == CONSUMER:
            own: dict[str, Any] = {"group.protocol": CONSUMER, "group.remote.assignor": self.stages[stage][0]}
        else:
            own = {
                "partition.assignment.strategy": ",".join(self.stages[stage]),
                "session.timeout.ms": self.session,
                "heartbeat.interval.ms": self.interval,
            }
        return {
            **own,
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
        if name not in BY_RECORDER:
            raise ValueError(unknown("client", name, BY_RECORDER))
        version = spelled(more.pop(0)) if name == "java" and more else ""
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


AGAIN = ("scenario", "seed", "partitions", "assignor", "session", "poll", "settle", "static")
"""What else of a request is kept, to play it again."""
CLUSTER = ("kafka", "nodes", "protocol")
"""The same; older recordings say it elsewhere or not at all."""


def again(run: Mapping[str, Any]) -> Request:
    """Return what to ask for to play the steps of ``run.json`` again. Raises ValueError, KeyError and
    TypeError."""
    kept = run["request"]
    of_cluster = {"kafka": KAFKA, "nodes": NODES.get(kept["scenario"], 1), "protocol": CLASSIC}
    if run.get("cluster", {}).get("kind") == "kafka":
        of_cluster["kafka"] = run["cluster"]["version"]
    return Request(
        cluster=str(kept["cluster"]),
        clients=clients(kept["clients"]),
        steps=tuple(map(step, run["steps"])),
        **{name: kept[name] for name in AGAIN},
        **{name: kept.get(name, of_cluster[name]) for name in CLUSTER},
    )
