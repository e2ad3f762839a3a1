"""How each client logs the steps of a story: written from logs of real runs, by nothing that an audit has."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from tests.pipeline.audit.matrix.stories import Step

BEGIN = datetime(2026, 3, 2, 10, 15, tzinfo=UTC)


class Entry(NamedTuple):
    """A line of a client: what it gives its logger, and how its own logger writes that."""

    at: datetime
    pod: str
    message: str
    fields: dict[str, Any] | None
    own: Callable[[str, dict[str, Any] | None, datetime], str]

    @property
    def text(self) -> str:
        """What stands in a log that has the time besides."""
        return self.own(self.message, self.fields, self.at)


Said = Iterator[tuple[str, dict[str, Any] | None]]


def numbers(partitions: Sequence[int]) -> str:
    return f"orders[{' '.join(map(str, partitions))}]" if partitions else ""


def names(partitions: Sequence[int]) -> str:
    return ", ".join(f"orders-{number}" for number in partitions)


# -- franz-go --------------------------------------------------------------------------------------------


def kgo(step: Step) -> Said:
    group = {"group": "billing"}
    match step.what:
        case "start":
            yield "beginning to manage the group lifecycle", group
            yield "joining group", group
        case "told":
            why = "REBALANCE_IN_PROGRESS: The group is rebalancing, so a rejoin is needed."
            yield "heartbeat errored", {**group, "err": why}
        case "give":
            yield (
                "eager consumer revoking prior assigned partitions",
                {**group, "revoking": numbers(step.partitions)},
            )
            yield "joining group", group
        case "join":
            who = {"member_id": step.member, "instance_id": "<nil>", "generation": step.generation}
            if step.leads:
                yield "joined, balancing group", {**group, **who, "balance_protocol": "range", "leader": True}
            else:
                yield "joined", {**group, **who, "leader": False}
        case "plan":
            plan = ", ".join(f"{member}{{{numbers(parts)}}}" for member, parts in step.shares)
            yield "balancing group as leader", {}
            yield "balanced", {"plan": plan}
        case "sync":
            yield "syncing", {**group, "protocol_type": "consumer", "protocol": "range"}
            yield "synced", {**group, "assigned": numbers(step.partitions)}
        case "get":
            yield "new group session begun", {**group, "added": numbers(step.partitions), "lost": ""}
        case "gone":
            why = "UNKNOWN_MEMBER_ID: The coordinator is not aware of this member."
            yield "heartbeat errored", {**group, "err": why}
            yield (
                "group manage loop errored",
                {**group, "err": why, "consecutive_errors": 1, "backoff": "205ms"},
            )
            yield "joining group", group
        case "leave":
            yield "leaving group", {**group, "member_id": step.member}


def kgo_own(message: str, fields: dict[str, Any] | None, at: datetime) -> str:
    pairs = ", ".join(f"{key}: {value}" for key, value in (fields or {}).items())
    return f"[INFO] {message}" + (f"; {pairs}" if pairs else "")


# -- kafkajs ---------------------------------------------------------------------------------------------


def kafkajs(step: Step) -> Said:
    who = {"groupId": "billing", "memberId": step.member}
    match step.what:
        case "start":
            yield "[Consumer] Starting", {"groupId": "billing"}
        case "told":
            why = "The group is rebalancing, so a rejoin is needed"
            yield "[Runner] The group is rebalancing, re-joining", {**who, "error": why}
        case "get":
            share = {"orders": [*step.partitions]} if step.partitions else {}
            leader = {"leaderId": "x", "isLeader": step.leads}
            more = {"memberAssignment": share, "groupProtocol": "RoundRobinAssigner", "duration": 12}
            yield "[ConsumerGroup] Consumer has joined the group", {**who, **leader, **more}
        case "gone":
            why = "The coordinator is not aware of this member"
            yield f"[Runner] {why}, re-joining the group", {**who, "error": why}
        case "leave":
            yield "[Consumer] Stopped", {"groupId": "billing"}


def kafkajs_debug(step: Step) -> Said:
    if step.what == "sync":
        share = {"orders": [*step.partitions]} if step.partitions else {}
        who = {"groupId": "billing", "generationId": step.generation, "memberId": step.member}
        yield "[ConsumerGroup] Received assignment", {**who, "memberAssignment": share}
    yield from kafkajs(step)


def kafkajs_own(message: str, fields: dict[str, Any] | None, at: datetime) -> str:
    stamp = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return json.dumps(
        {"level": "INFO", "timestamp": stamp, "logger": "kafkajs", "message": message, **(fields or {})}
    )


# -- sarama, kafka-go ------------------------------------------------------------------------------------


def sarama(step: Step) -> Said:
    session = f"consumergroup/session/{step.member}/{step.generation}"
    match step.what:
        case "start":
            yield "client/coordinator coordinator for billing is #1 (127.0.0.1:9092)", None
        case "get":
            yield f"consumer/broker/1 accumulated {len(step.partitions)} new subscriptions", None
            for number in step.partitions:
                yield f"consumer/broker/1 added subscription to orders/{number}", None
        case "give":
            for number in step.partitions:
                yield f"consumer/broker/1 closed dead subscription to orders/{number}", None
            yield f"{session} heartbeat loop stopped", None
            yield f"{session} released", None
        case "gone":
            yield f"{session} heartbeat loop stopped", None
            for number in step.partitions:
                yield f"consumer/broker/1 closed dead subscription to orders/{number}", None
            yield f"{session} released", None


def kafka_go(step: Step) -> Said:
    member = f"orders@{step.pod} (github.com/segmentio/kafka-go)-{step.member}"
    match step.what:
        case "start":
            yield "entering loop for consumer group, billing", None
        case "give":
            yield "stopped heartbeat for group billing", None
        case "join":
            yield f"joined group billing as member {member} in generation {step.generation}", None
        case "plan":
            for one, parts in step.shares:
                pod = one.partition("-")[0]
                full = f"orders@{pod} (github.com/segmentio/kafka-go)-{one}"
                yield f"found member: {full}/[]byte(nil)", None
                if parts:
                    yield (
                        f"assigned member/topic/partitions {full}/orders/[{' '.join(map(str, parts))}]",
                        None,
                    )
        case "sync":
            yield f"Joined group billing as member {member} in generation {step.generation}", None
            yield "sync group finished for group, billing", None
        case "get":
            keys = " ".join(f"{{topic:orders partition:{number}}}:5" for number in step.partitions)
            yield f"subscribed to topics and partitions: map[{keys}]", None
        case "gone":
            yield "stopped heartbeat for group billing", None
        case "leave":
            yield f"Leaving group billing, member {member}", None


# -- librdkafka, and how each language writes it ---------------------------------------------------------


def librdkafka(step: Step) -> Said:
    def line(facility: str, text: str) -> tuple[str, dict[str, Any] | None]:
        return f"{facility} [thrd:main]: {text}", None

    group = 'Group "billing"'
    match step.what:
        case "start":
            yield line(
                "INIT",
                f"librdkafka v2.16.0 (0x21000ff) orders-{step.pod}#consumer-1 initialized "
                "(builtin.features gzip, debug 0x100)",
            )
            yield line(
                "JOIN", 'b:9092/1: Joining group "billing" with 1 subscribed topic(s) and member id ""'
            )
        case "told":
            state = f"in state up (join-state steady, {len(step.partitions)} partition(s) assigned)"
            yield line(
                "HEARTBEAT", f"{group} heartbeat error response {state}: Broker: Group rebalance in progress"
            )
        case "join":
            leader, count = (f"{step.member} (me)", len(step.shares)) if step.leads else ("x", 0)
            who = f"LeaderId {leader}, my MemberId {step.member}, member metadata count {count}"
            yield line(
                "JOINGROUP",
                f"JoinGroup response: GenerationId {step.generation}, Protocol range, {who}: (no error)",
            )
        case "sync":
            yield line("SYNCGROUP", "SyncGroup response: Success (38 bytes of MemberState data)")
        case "get":
            for number in step.partitions:
                yield line("PARTADD", f"{group}: add orders [{number}]")
        case "give":
            for number in step.partitions:
                yield line("PARTDEL", f"{group}: delete orders [{number}]")
            text = f'Joining group "billing" with 1 subscribed topic(s) and member id "{step.member}"'
            yield line("JOIN", f"b:9092/1: {text}")
        case "gone":
            state = f"in state up (join-state steady, {len(step.partitions)} partition(s) assigned)"
            yield line("HEARTBEAT", f"{group} heartbeat error response {state}: Broker: Unknown member")
            yield line("MEMBERID", f'{group}: updating member id "{step.member}" -> ""')
            for number in step.partitions:
                yield line("PARTDEL", f"{group}: delete orders [{number}]")
            yield line(
                "JOIN", 'b:9092/1: Joining group "billing" with 1 subscribed topic(s) and member id ""'
            )
        case "leave":
            yield line("LEAVE", f"{group}: leave (in state up)")


def _written(layout: Callable[[str, str, str, datetime], str]) -> Callable[..., str]:
    """``layout``: of facility, name of the client, text, time."""

    def own(message: str, fields: dict[str, Any] | None, at: datetime) -> str:
        facility, _, text = message.partition(" ")
        return layout(facility, "rdkafka#consumer-1", text, at)

    return own


def ms(at: datetime) -> str:
    return at.strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]


WRAPPERS = {
    "c": _written(lambda fac, name, text, at: f"%7|{at.timestamp():.3f}|{fac}|{name}| {text}"),
    "dotnet": _written(lambda fac, name, text, at: f"Debug|{ms(at)}|{name}|{fac}| {text}"),
    "go": _written(lambda fac, name, text, at: f"[{at.isoformat()}][{name}][{fac}][7]{text}"),
    "ruby": _written(
        lambda fac, name, text, at: f"D, [{at.isoformat()[:-6]}.000000 #7] DEBUG -- : rdkafka: {text}"
    ),
    "rust": _written(
        lambda fac, name, text, at: f"[{at.isoformat()[:-6]}Z DEBUG librdkafka] librdkafka: {fac} {text}"
    ),
    "cpp": _written(lambda fac, name, text, at: f"{ms(at)}: LOG-7-{fac}: {text}"),
    "python": _written(lambda fac, name, text, at: f"{ms(at)} DEBUG orders {fac} [{name}] {text}"),
    "node": _written(
        lambda fac, name, text, at: json.dumps(
            {
                "severity": 7,
                "fac": fac,
                "message": text,
                "name": name,
                "timestamp": round(at.timestamp() * 1000),
            }
        )
    ),
}


# -- Java, Python ----------------------------------------------------------------------------------------


def java(step: Step) -> Said:
    def line(text: str) -> tuple[str, None]:
        return f"[Consumer clientId=orders-{step.pod}, groupId=billing] {text}", None

    who = f"Generation{{generationId={step.generation}, memberId='{step.member}', protocol='range'}}"
    match step.what:
        case "start":
            yield line("Subscribed to topic(s): orders")
            yield line("Cluster ID: 4L6g3nShT-eMCtK--X86sw")
            yield line("(Re-)joining group")
        case "told":
            yield line("Request joining group due to: group is already rebalancing")
        case "give":
            yield line(f"Revoke previously assigned partitions {names(step.partitions)}")
            yield line("(Re-)joining group")
        case "join":
            yield line(f"Successfully joined group with generation {who}")
        case "plan":
            plan = ", ".join(f"{m}=Assignment(partitions=[{names(p)}])" for m, p in step.shares)
            yield line(f"Finished assignment for group at generation {step.generation}: {{{plan}}}")
        case "sync":
            yield line(f"Successfully synced group in generation {who}")
        case "get":
            yield line(f"Adding newly assigned partitions: {names(step.partitions)}")
        case "gone":
            yield line(
                "Resetting generation and member id due to: encountered UNKNOWN_MEMBER_ID from HEARTBEAT "
                "response"
            )
            yield line(f"Lost previously assigned partitions {names(step.partitions)}")
            yield line("(Re-)joining group")
        case "leave":
            yield line(
                f"Member {step.member} sending LeaveGroup request to coordinator b:9092 (id: 1 rack: null) "
                "due to the consumer is being closed"
            )


def connect(step: Step) -> Said:
    """A worker: its partitions are tasks, and it names all with each join."""

    def line(text: str) -> tuple[str, None]:
        return f"[Worker clientId=connect-{step.pod}, groupId=billing] {text}", None

    who = f"Generation{{generationId={step.generation}, memberId='{step.member}', protocol='sessioned'}}"
    match step.what:
        case "join":
            yield line("Rebalance started")
            yield line(f"Successfully joined group with generation {who}")
            yield line(f"Successfully synced group in generation {who}")
        case "get":
            tasks = f"connectorIds=[orders], taskIds=[{names(step.partitions)}], revokedConnectorIds=[]"
            assignment = (
                f"Assignment{{error=0, leader='x', leaderUrl='http://x/', offset=5, {tasks}, delay=0}}"
            )
            yield line(
                f"Joined group at generation {step.generation} with protocol version 2 and got assignment: "
                f"{assignment} with rebalance delay: 0"
            )


def aiokafka(step: Step) -> Said:
    given = ", ".join(f"TopicPartition(topic='orders', partition={n})" for n in step.partitions)
    share = f"{{{given}}}" if given else "set()"
    match step.what:
        case "start":
            yield "Updating subscribed topics to: frozenset({'orders'})", None
            yield "Revoking previously assigned partitions set() for group billing", None
            yield "(Re-)joining group billing", None
        case "told":
            yield "Heartbeat failed for group billing because it is rebalancing", None
        case "give":
            yield f"Revoking previously assigned partitions frozenset({share}) for group billing", None
            yield "(Re-)joining group billing", None
        case "join":
            yield f"Joined group 'billing' (generation {step.generation}) with member_id {step.member}", None
        case "sync":
            yield f"Successfully synced group billing with generation {step.generation}", None
        case "get":
            yield f"Setting newly assigned partitions {share} for group billing", None
        case "gone":
            yield "Heartbeat failed: local member_id was not recognized; resetting and re-joining group", None
            yield f"Revoking previously assigned partitions frozenset({share}) for group billing", None
            yield "(Re-)joining group billing", None
        case "leave":
            yield "LeaveGroup request succeeded", None


def plain(message: str, fields: dict[str, Any] | None, at: datetime) -> str:
    return message


CLIENTS: dict[str, tuple[Callable[[Step], Said], Callable[..., str]]] = {
    "java": (java, plain),
    "franz-go": (kgo, kgo_own),
    "kafkajs": (kafkajs, kafkajs_own),
    "kafkajs debug": (kafkajs_debug, kafkajs_own),
    "sarama": (sarama, plain),
    "kafka-go": (kafka_go, plain),
    "aiokafka": (aiokafka, plain),
    **{f"librdkafka {language}": (librdkafka, own) for language, own in WRAPPERS.items()},
}


def told_by(client: str, steps: Sequence[Step]) -> list[Entry]:
    """The lines of a story, in order of time."""
    says, own = {**CLIENTS, "connect": (connect, plain)}[client]
    return [
        Entry(BEGIN + timedelta(seconds=step.second), step.pod, message, fields, own)
        for step in sorted(steps, key=lambda step: step.second)
        for message, fields in ([("order 17 is booked", None)] if step.what == "other" else says(step))
    ]
