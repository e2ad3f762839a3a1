"""What happens in groups of the consumer protocol (KIP-848), and how clients write it.

Written from the strings in their releases and from logs of real runs, without the audit's tables. The answers
are those of the stories.
"""

from __future__ import annotations

from collections.abc import Sequence

from tests.pipeline.audit.foreign.clients import Lines
from tests.pipeline.audit.foreign.stories import Story

OUT = """\
0 a starts
0.4 a joins
1.2 a told 1
1.3 a assigned orders-0 orders-1 orders-2 orders-3
70 b starts
70.4 b joins
71 b waits 2
72.1 a told 1
72.2 a revoked orders-2 orders-3
72.3 a acks 2
75.4 b told 2
75.5 b assigned orders-2 orders-3
"""
BACK = """\
{0} b told 3
{0}.1 b revoked orders-0 orders-1
{0}.2 b acks 4
{1} a told 4
{1}.1 a assigned orders-0 orders-1
"""
IN = "300 b leaves orders-2 orders-3\n302 a told 3\n302.1 a assigned orders-2 orders-3\n"
END = "900 a quiet\n900 b quiet\n"
ZOMBIE, TWICE = frozenset({"owned-by-zombie"}), frozenset({"owned-twice"})

EPOCHS = {
    "scale out": Story(OUT + END),
    "one leaves": Story(OUT + IN + "900 a quiet\n"),
    "a rolling restart": Story(
        OUT + IN + "330 b lives\n330 b starts\n330.2 b joins\n331 b waits 4\n332 a told 3\n"
        "332.1 a revoked orders-2 orders-3\n332.2 a acks 4\n"
        "335 b told 4\n335.1 b assigned orders-2 orders-3\n"
        "400 a leaves orders-0 orders-1\n402 b told 5\n402.1 b assigned orders-0 orders-1\n"
        "430 a lives\n430 a starts\n430.2 a joins\n431 a waits 6\n432 b told 5\n432.1 b revoked orders-0\n"
        "432.2 b acks 6\n435 a told 6\n435.1 a assigned orders-0\n" + END
    ),
    "a topic grows": Story(
        OUT + "300 a told 3\n300.1 a assigned orders-4\n301 b told 3\n301.1 b assigned orders-5\n"
        "480 a told 4\n480.1 a assigned orders-6\n481 b told 4\n481.1 b assigned orders-7\n"
        "600 a quiet\n600 b quiet\n"
    ),
    "another topic matches": Story(
        OUT.replace("starts", "matches")
        + "300 a told 3\n300.1 a assigned orders-eu-0\n301 b told 3\n301.1 b assigned orders-eu-1\n" + END
    ),
    "fenced, and back at once": Story(
        OUT + "300 a fenced\n300.2 a lost orders-0 orders-1\n300.3 a rejoins\n300.6 a told 4\n"
        "300.7 a assigned orders-0 orders-1\n" + END
    ),
    "a static member is killed and comes back": Story(
        "0 b static\n" + OUT + "318 b lives\n318 b starts\n318.3 b joins\n"
        "319 b told 2\n319.1 b assigned orders-2 orders-3\n" + END
    ),
    "fenced long ago": Story(
        OUT + "300 b told 3\n300.1 b assigned orders-0 orders-1\n322 a fenced\n"
        "322.2 a lost orders-0 orders-1\n322.3 a rejoins\n322.6 a waits 4\n" + BACK.format(325, 328) + END,
        ZOMBIE,
    ),
    "does not poll": Story(
        OUT + "300 a overdue\n301 b told 3\n301.1 b assigned orders-0 orders-1\n317 a polls\n"
        "317.1 a lost orders-0 orders-1\n317.2 a rejoins\n317.8 a waits 4\n" + BACK.format(319, 321) + END,
        ZOMBIE,
    ),
    "two members own it": Story(
        OUT + "300 a told 3\n300.1 a assigned orders-3\n341 b told 3\n341.1 b revoked orders-3\n"
        "341.2 b acks 3\n" + END,
        TWICE,
    ),
    "two members own it in the end": Story(OUT + "300 a told 3\n300.1 a assigned orders-3\n" + END, TWICE),
    "nobody gets it": Story(
        OUT.replace("75.5 b assigned orders-2 orders-3", "75.5 b assigned orders-2") + END,
        frozenset({"stranded"}),
    ),
}  # fmt: skip
"""Name -> a story of at most two members, a and b, of the group orders."""

INTERNALS = "org.apache.kafka.clients.consumer.internals."
MEMBER, HEARTBEAT = f"{INTERNALS}ConsumerMembershipManager", f"{INTERNALS}ConsumerHeartbeatRequestManager"
CALLBACK, CONSUMER = f"{INTERNALS}ConsumerRebalanceListenerInvoker", f"{INTERNALS}AsyncKafkaConsumer"
OVERDUE = (
    "Consumer poll timeout has expired. This means the time between subsequent calls to poll() was longer "
    "than the configured max.poll.interval.ms, which typically implies that the poll loop is spending too "
    "much time processing messages. You can address this either by increasing max.poll.interval.ms or by "
    "reducing the maximum size of batches returned in poll() with max.poll.records."
)
LATE = (
    "Time between subsequent calls to poll() was longer than the configured max.poll.interval.ms, exceeded "
    "approximately by 17310 ms. Member {} will rejoin the group now."
)
FENCED = "ConsumerGroupHeartbeatRequest failed for member {} because epoch {} is fenced."
OTHER = ("com.example.Orders", "order 4711 is booked")


class Member:
    """A member of a group, and what it knows of itself."""

    def __init__(self, name: str) -> None:
        self.name, self.life, self.epoch, self.state = name, 0, "0", "STABLE"
        self.instance = ""

    @property
    def id(self) -> str:
        """Return its id: 16 random bytes, as clients write them."""
        return f"{self.name}{self.life}pQ3YWcejSxq7mke1AAfCF"[:22]

    def begins(self) -> None:
        """Begin another life."""
        self.life, self.epoch, self.state = self.life + 1, "0", "STABLE"


class Java:
    """kafka-clients 4.0 to 4.4, group.protocol=consumer, with a rebalance listener or without."""

    def __init__(self, listens: bool = True) -> None:
        self.listens, self.members = listens, {name: Member(name) for name in "ab"}

    def __call__(self, name: str, act: str, arguments: Sequence[str]) -> Lines:
        """Return the lines of a step."""
        member = self.members[name]
        lines = self._lines(member, act, arguments)
        prefix = f"[Consumer {member.instance}clientId=orders-{name}, groupId=orders] "
        return [(logger, text if (logger, text) == OTHER else prefix + text) for logger, text in lines]

    def _goes(self, member: Member, *states: str, epoch: str = "") -> Lines:
        lines = []
        for state in states:
            text = f"epoch {epoch or member.epoch} transitioned from {member.state} to {state}."
            lines.append((MEMBER, f"Member {member.id} with {text}"))
            member.state = state
        return lines

    def _calls(self, text: str) -> Lines:
        return [(CALLBACK, text)] if self.listens else []

    def _lines(self, member: Member, act: str, arguments: Sequence[str]) -> Lines:
        listed = f"[{', '.join(arguments)}]"
        match act:
            case "static":
                member.instance = f"instanceId=orders-{member.name}, "
                return []
            case "lives":
                member.begins()
                return []
            case "starts":
                return [(CONSUMER, "Subscribed to topic(s): orders")]
            case "matches":
                return [(CONSUMER, "Subscribed to pattern: 'ord.*'")]
            case "joins" | "rejoins":
                member.epoch, member.state = "0", "UNSUBSCRIBED" if act == "joins" else member.state
                first = [("org.apache.kafka.clients.Metadata", "Cluster ID: rSbXMg_bQVWwnDTJhRWkOw")]
                return [*self._goes(member, "JOINING"), *(first if act == "joins" else [])]
            case "waits":
                member.epoch = arguments[0]
                return self._goes(member, "STABLE")
            case "told":
                member.epoch = arguments[0]
                text = "Reconciling assignment with local epoch 0"
                return [*self._goes(member, "RECONCILING"), (MEMBER, text)]
            case "assigned" | "acks":
                new = listed if act == "assigned" else "[]"
                lines = self._calls(f"Adding newly assigned partitions: {new}")
                return [*lines, *self._goes(member, "ACKNOWLEDGING", "STABLE")]
            case "revoked":
                lines = [(MEMBER, f"Revoking previously assigned partitions {listed}")]
                return lines + self._calls(f"Revoke previously assigned partitions {listed}")
            case "leaves":
                lines = self._calls(f"Revoke previously assigned partitions {listed}")
                lines += self._goes(member, "PREPARE_LEAVING")
                return [*lines, *self._goes(member, "LEAVING", "UNSUBSCRIBED", epoch="-1")]
            case "fenced":
                lines = [(HEARTBEAT, FENCED.format(member.id, member.epoch))]
                return lines + self._goes(member, "FENCED")
            case "overdue":
                lines = [(HEARTBEAT, OVERDUE), *self._goes(member, "PREPARE_LEAVING")]
                return [*lines, *self._goes(member, "LEAVING", "STALE", epoch="-1")]
            case "polls":
                return [(HEARTBEAT, LATE.format(member.id))]
            case "lost":
                return self._calls(f"Lost previously assigned partitions {listed}")
        return [OTHER]


class Librdkafka:
    """librdkafka 2.12 and later with debug=cgrp and group.protocol=consumer, through Python's logging."""

    def __init__(self) -> None:
        self.members = {name: Member(name) for name in "ab"}

    def __call__(self, name: str, act: str, arguments: Sequence[str]) -> Lines:
        """Return the lines of a step."""
        member, group = self.members[name], 'Group "orders"'

        def line(facility: str, text: str) -> tuple[str, str]:
            return "orders", f"{facility} [orders-{name}#consumer-1] [thrd:main]: {text}"

        def beats(epoch: str) -> Lines:
            member.epoch = epoch
            own = (
                f'member id "{member.id}", group id "orders", generation id {epoch}, group instance id "NULL"'
            )
            sent = line(
                "HEARTBEAT", f'GroupCoordinator/1: ConsumerGroupHeartbeat of {own}, current assignment ""'
            )
            text = f'ConsumerGroupHeartbeat response received for member id "{member.id}" with epoch {epoch}'
            return [sent, line("HEARTBEAT", text)] if epoch != "0" else [sent]

        named = [one.rpartition("-") for one in arguments]
        match act:
            case "static" | "lives":
                member.life += act == "lives"
                return []
            case "starts" | "matches":
                return [line("INIT", "librdkafka v2.12.1 (0x1) rdkafka#consumer-1 initialized (debug)")]
            case "joins" | "rejoins":
                return beats("0")
            case "waits" | "told" | "acks":
                return beats(arguments[0])
            case "assigned":
                return [line("PARTADD", f"{group}: add {topic} [{number}]") for topic, _, number in named]
            case "revoked" | "lost":
                return [line("PARTDEL", f"{group}: delete {topic} [{number}]") for topic, _, number in named]
            case "leaves":
                lines = [line("PARTDEL", f"{group}: delete {topic} [{number}]") for topic, _, number in named]
                return [*lines, line("LEAVE", f"{group}: leave (in state up)")]
            case "fenced":
                return [line("HEARTBEAT", "Revoking assignment as lost an rejoining in join state steady")]
            case "overdue":
                text = (
                    "Application maximum poll interval (300000ms) exceeded by 313ms "
                    "(adjust max.poll.interval.ms for long-running message processing): leaving group"
                )
                return [line("MAXPOLL", text), line("LEAVE", f"{group}: leave (in state up)")]
        return [line("COMMIT", "GroupCoordinator/1: Committing offsets for 3 partition(s)")]


EPOCH_CLIENTS = {"java, consumer protocol": Java, "librdkafka, consumer protocol": Librdkafka}
"""Made anew for each log: a member remembers its epoch."""
