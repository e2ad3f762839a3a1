"""How clients write a step of a story: as the packages have it, by hand, without the audit's tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

Lines = list[tuple[str, str]]
"""(logger, message) of each line that a step is."""


class ClientLog(NamedTuple):
    """What a step is in the log of a client, and stories that the client cannot tell."""

    write: Callable[[str, str, Sequence[str]], Lines]
    untold: frozenset[str] = frozenset()


LEAVES = (
    "Member orders-{}-5d1f4e5c sending LeaveGroup request to coordinator broker-1:9092 "
    "(id: 2147483646 rack: null) due to the consumer is being closed"
)
INTERNALS = "org.apache.kafka.clients.consumer.internals"


def java(member: str, act: str, arguments: Sequence[str]) -> Lines:
    """kafka-clients 2.6 to 4.4, the classic protocol."""
    listed = ", ".join(arguments)
    generation = arguments[0] if arguments else ""
    who = f"Generation{{generationId={generation}, memberId='orders-{member}-5d1f4e5c', protocol='range'}}"
    coordinator, member_lines = f"{INTERNALS}.ConsumerCoordinator", f"{INTERNALS}.AbstractCoordinator"
    plan = "orders-a-5d1f4e5c=Assignment(partitions=[orders-0, orders-1])"
    prefix = f"[Consumer clientId=orders-{member}, groupId=orders] "
    said: Mapping[str, Lines] = {
        "starts": [
            ("org.apache.kafka.clients.consumer.KafkaConsumer", "Subscribed to topic(s): orders"),
            ("org.apache.kafka.clients.Metadata", "Cluster ID: 4L6g3nShT-eMCtK--X86sw"),
        ],
        "joining": [(member_lines, "(Re-)joining group")],
        "joined": [(member_lines, f"Successfully joined group with generation {who}")],
        "synced": [(member_lines, f"Successfully synced group in generation {who}")],
        "assigned": [(coordinator, f"Adding newly assigned partitions: {listed}")],
        "revoked": [(coordinator, f"Revoke previously assigned partitions {listed}")],
        "lost": [(coordinator, f"Lost previously assigned partitions {listed}")],
        "fenced": [
            (
                member_lines,
                "Resetting generation and member id due to: encountered UNKNOWN_MEMBER_ID from HEARTBEAT",
            )
        ],
        "leaves": [(member_lines, LEAVES.format(member))],
    }
    lines = [(logger, f"{prefix}{text}") for logger, text in said.get(act, [])]
    if act == "joined" and member == "a" and arguments[1] == "1":
        text = f"Finished assignment for group at generation {generation}: {{{plan}}}"
        lines.append((coordinator, prefix + text))
    return lines or [("com.example.Orders", "order 4711 is booked")]


def java_old(member: str, act: str, arguments: Sequence[str]) -> Lines:
    """kafka-clients 2.4: neither member ids nor SyncGroup."""
    if act == "synced":
        return []
    lines = java(member, act, arguments)
    if act == "joined":
        logger, text = lines[0]
        lines[0] = logger, f"{text.partition(' Generation{')[0]} {arguments[0]}"
    return lines


UNKNOWN = "Broker: Unknown member"


def librdkafka(member: str, act: str, arguments: Sequence[str]) -> Lines:
    """librdkafka 2.x with debug=cgrp, through confluent-kafka and Python's logging."""

    def line(facility: str, text: str) -> tuple[str, str]:
        return "orders", f"{facility} [orders-{member}#consumer-1] [thrd:main]: {text}"

    named = [name.rpartition("-") for name in arguments] if act in ("assigned", "revoked", "lost") else []
    group = 'Group "orders"'
    match act:
        case "starts":
            return [
                line(
                    "INIT",
                    "librdkafka v2.12.1 (0x1) rdkafka#consumer-1 initialized (debug)",
                ),
                line("SUBSCRIPTION", " Topic orders with 3 partition(s)"),
            ]
        case "joining":
            text = 'broker-1:9092/1: Joining group "orders" with 1 subscribed topic(s) and member id "m"'
            return [line("JOIN", text.replace('"m"', f'"orders-{member}-5d1f"'))]
        case "joined":
            own = f"orders-{member}-5d1f"
            leader = "x" if arguments[1] == "0" else f"{own} (me)"
            return [
                line(
                    "JOINGROUP",
                    f"JoinGroup response: GenerationId {arguments[0]}, Protocol range, LeaderId {leader}, "
                    f"my MemberId {own}, member metadata count {arguments[1]}: (no error)",
                )
            ]
        case "synced":
            return [line("SYNCGROUP", "SyncGroup response: Success (38 bytes of MemberState data)")]
        case "assigned":
            return [line("PARTADD", f"{group}: add {topic} [{number}]") for topic, _, number in named]
        case "revoked" | "lost":
            return [line("PARTDEL", f"{group}: delete {topic} [{number}]") for topic, _, number in named]
        case "fenced":
            return [
                line("HEARTBEAT", f"{group} heartbeat error response in state up (steady): {UNKNOWN}"),
                line("LOST", f"{group}: current assignment of 2 partition(s) lost: group is rebalancing"),
            ]  # fmt: skip
        case "leaves":
            return [line("LEAVE", f"{group}: leave (in state up)")]
    return [line("HEARTBEAT", 'GroupCoordinator/1: Heartbeat for group "orders" generation id 9')]


def aiokafka(member: str, act: str, arguments: Sequence[str]) -> Lines:
    """aiokafka 0.9 to 0.14."""
    named = [name.rpartition("-") for name in arguments] if act in ("assigned", "revoked", "lost") else []
    tied = ", ".join(f"TopicPartition(topic='{topic}', partition={number})" for topic, _, number in named)
    coordinator = "aiokafka.consumer.group_coordinator"
    generation = arguments[0] if arguments else ""
    said = {
        "starts": "Updating subscribed topics to: frozenset({'orders'})",
        "joining": "(Re-)joining group orders",
        "joined": f"Joined group 'orders' (generation {generation}) with member_id a-{member}-5d1f",
        "synced": f"Successfully synced group orders with generation {generation}",
        "assigned": f"Setting newly assigned partitions {{{tied}}} for group orders",
        "revoked": f"Revoking previously assigned partitions frozenset({{{tied}}}) for group orders",
        "leaves": "LeaveGroup request succeeded",
    }
    return [(coordinator, said[act])] if act in said else [("orders", "order 4711 is booked")]


def kafka_python(member: str, act: str, arguments: Sequence[str]) -> Lines:
    """kafka-python 2.1 to 2.3: with member ids, without SyncGroup."""
    generation = arguments[0] if arguments else ""
    joined = f"<Generation {generation} (member_id: k-{member}-5d1f, protocol: range)>"
    match act:
        case "synced":
            return []
        case "joined":
            text = f"Successfully joined group orders {joined}"
        case "leaves":
            text = f"Leaving consumer group orders (member k-{member}-5d1f)."
        case "starts":
            text = "Updating subscribed topics to: {'orders'}"
        case _:
            lines = aiokafka(member, act, arguments)
            return [("kafka.coordinator", message.replace("frozenset(", "set(")) for _, message in lines]
    return [("kafka.coordinator", text)]


STRANDED, TWICE = "a partition that nobody gets", "given before it is given back"

CLIENTS = {
    "java": ClientLog(java),
    # Without member ids and SyncGroup nothing proves who is in a generation.
    "java 2.4": ClientLog(java_old, frozenset({STRANDED, TWICE})),
    "librdkafka": ClientLog(librdkafka),
    # It does not say that it has lost anything.
    "aiokafka": ClientLog(aiokafka, frozenset({"a zombie"})),
    "kafka-python": ClientLog(kafka_python, frozenset({"a zombie"})),
}
