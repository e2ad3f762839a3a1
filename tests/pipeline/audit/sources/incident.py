"""One incident, as a Java client of 3.4.0 logs it, to be written in many shapes.

Three pods of one client id. Partition 0 goes from the first to the third before the first has given it up,
and is owned twice for 9 seconds; the second is removed, and owns partition 1 for 21 seconds more than it may.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

START = datetime(2026, 11, 21, 18, 0, tzinfo=UTC)
CLIENT, GROUP = "orders", "billing"
UUIDS = (
    "1b7ae1f0-3c3c-4a4f-9d11-5d1f4e5c0a01",
    "2c8bf201-4d4d-4b50-8e22-6e205f6d1b02",
    "3d9c0312-5e5e-4c61-9f33-7f31607e2c03",
)
PODS = ("orders-7d9fbc5d4-x2x4z", "orders-7d9fbc5d4-k8s9q", "orders-7d9fbc5d4-b7v2n")


class PodLine(NamedTuple):
    """A line of one pod: ``pod`` is its number, ``second`` counts from ``START``."""

    second: float
    pod: int
    logger: str
    text: str

    @property
    def at(self) -> datetime:
        return START + timedelta(seconds=self.second)

    @property
    def message(self) -> str:
        """As the client writes it, with what is around it in its log."""
        return self.text

    def plain(self) -> str:
        """In a layout with a date."""
        stamp = self.at.strftime("%Y-%m-%d %H:%M:%S,") + f"{self.at.microsecond // 1000:03}"
        return f"{stamp} INFO [main] {self.logger} - {self.text}"


def _client(second: float, pod: int, text: str, logger: str = "ConsumerCoordinator") -> PodLine:
    name = f"org.apache.kafka.clients.consumer.internals.{logger}"
    return PodLine(second, pod, name, f"[Consumer clientId={CLIENT}, groupId={GROUP}] {text}")


def started(second: float, pod: int, release: str = "3.4.0") -> list[PodLine]:
    """A process begins."""
    return [
        PodLine(second, pod, "org.apache.kafka.common.utils.AppInfoParser", f"Kafka version: {release}"),
        _client(second + 0.1, pod, "Subscribed to topic(s): t", "KafkaConsumer"),
        _client(second + 0.2, pod, "Cluster ID: 4L6g3nShT-eMCtK--X86sw", "Metadata"),
        _client(second + 0.3, pod, "(Re-)joining group", "AbstractCoordinator"),
    ]


def joined(
    second: float, generation: int, *pods: int, leader: int | None = None, plan: str = ""
) -> list[PodLine]:
    """These join a generation; the leader says whom it plans for."""
    lines = []
    for pod in pods:
        who = (
            f"Generation{{generationId={generation}, memberId='{CLIENT}-{UUIDS[pod]}', "
            "protocol='cooperative-sticky'}"
        )
        lines.append(
            _client(second, pod, f"Successfully joined group with generation {who}", "AbstractCoordinator")
        )
        lines.append(_client(second + 0.05, pod, f"Successfully synced group in generation {who}"))
    if leader is not None:
        members = ", ".join(
            f"{CLIENT}-{UUIDS[pod]}=Assignment(partitions=[{share}])"
            for pod, share in zip(pods, plan.split("|"), strict=True)
        )
        text = f"Finished assignment for group at generation {generation}: {{{members}}}"
        lines.append(_client(second + 0.01, leader, text))
    return lines


def rejoining(second: float, *pods: int) -> list[PodLine]:
    """These learn that the group rebalances."""
    return [_client(second, pod, "(Re-)joining group", "AbstractCoordinator") for pod in pods]


def given(second: float, pod: int, partitions: str) -> PodLine:
    """What a pod is assigned."""
    return _client(second, pod, f"Adding newly assigned partitions: {partitions}")


def taken(second: float, pod: int, partitions: str) -> PodLine:
    """What a pod revokes."""
    return _client(second, pod, f"Revoke previously assigned partitions {partitions}")


def lost(second: float, pod: int, partitions: str) -> PodLine:
    """What a pod finds that it has lost."""
    return _client(second, pod, f"Lost previously assigned partitions {partitions}")


def business(start: float, end: float, every: float, *pods: int) -> list[PodLine]:
    """Lines that have nothing to do with Kafka."""
    count = int((end - start) / every)
    return [
        PodLine(start + number * every, pod, "com.example.Orders", f"order {number} of 17 is booked")
        for number in range(count)
        for pod in pods
    ]


def incident() -> list[PodLine]:
    """All lines, in order."""
    lines = [
        *started(0, 0),
        *joined(3, 1, 0, leader=0, plan="t-0, t-1"),
        given(3.2, 0, "t-0, t-1"),
        *started(10, 1),
        *rejoining(12, 0),
        *joined(13, 2, 0, 1, leader=0, plan="t-0|"),
        taken(13.2, 0, "t-1"),
        *rejoining(13.3, 0),
        *rejoining(13.4, 1),
        *joined(14, 3, 0, 1, leader=0, plan="t-0|t-1"),
        given(14.2, 1, "t-1"),
        *started(30, 2),
        *rejoining(32, 0),
        *rejoining(32, 1),
        # The leader gives away what the first pod still has; the second is late, and is not among them.
        *joined(33, 4, 0, 2, leader=0, plan="|t-0, t-1"),
        given(33.2, 2, "t-0, t-1"),
        taken(42.2, 0, "t-0"),  # 9 seconds
        lost(54.2, 1, "t-1"),  # 21 seconds
        *rejoining(54.3, 1),
        *rejoining(56, 0, 2),
        *joined(57, 5, 0, 1, 2, leader=0, plan="||t-0, t-1"),
        *business(60, 1000, 10, 0, 1, 2),
    ]
    return sorted(lines, key=lambda one: one.second)


def deploy(quiet: float = 7200) -> list[PodLine]:
    """A rolling deploy of three pods in 10 minutes, each stopped and started, then application lines."""
    lines = [*started(0, 0), *started(0, 1), *started(0, 2)]
    lines += [*joined(3, 1, 0, 1, 2, leader=0, plan="t-0|t-1|t-2")]
    lines += [given(3.2, pod, f"t-{pod}") for pod in range(3)]
    generation, at = 1, 100.0
    for pod in range(3):
        others = [one for one in range(3) if one != pod]
        lines += [taken(at, pod, f"t-{pod}")]
        lines += [
            _client(
                at + 0.1,
                pod,
                f"Member {CLIENT}-{UUIDS[pod]} sending LeaveGroup request to coordinator b:9092 "
                "(id: 1 rack: null) due to the consumer is being closed",
                "AbstractCoordinator",
            )
        ]
        lines += rejoining(at + 1, *others)
        keeps = [f"t-{others[0]}, t-{pod}", f"t-{others[1]}"]
        lines += joined(at + 2, generation + 1, *others, leader=others[0], plan="|".join(keeps))
        lines += [given(at + 2.2, others[0], f"t-{pod}")]
        lines += [*started(at + 100, pod), *rejoining(at + 101, *others)]
        first = [f"t-{others[0]}", f"t-{others[1]}", ""]
        lines += joined(at + 102, generation + 2, *others, pod, leader=others[0], plan="|".join(first))
        lines += [taken(at + 102.2, others[0], f"t-{pod}"), *rejoining(at + 102.3, *others, pod)]
        last = [f"t-{others[0]}", f"t-{others[1]}", f"t-{pod}"]
        lines += joined(at + 103, generation + 3, *others, pod, leader=others[0], plan="|".join(last))
        lines += [given(at + 103.2, pod, f"t-{pod}")]
        generation, at = generation + 3, at + 200
    lines += business(at, at + quiet, 60, 0, 1, 2)
    return sorted(lines, key=lambda one: one.second)
