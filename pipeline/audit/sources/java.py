"""What Kafka's Java consumer logs, of 2.3 to 4.2: the coordinators, KafkaConsumer, Metadata.

Client and group stand in the prefix that every logger of a consumer has. Classes and levels changed between
releases, the texts hardly did, so the class is not asked for.
"""

from __future__ import annotations

from rebalance.pipeline.audit.sources.events import Kind
from rebalance.pipeline.audit.sources.patterns import LOGGER, Line, Source

REBOOTSTRAPPING = "rebootstrapping"
"""The client forgets the cluster, and learns its id again: that is no new client."""

OVERDUE = "overdue"
"""The client leaves because nobody polls it: it goes on owning, for all that it knows."""

_GENERATION = (
    r"(?:(?P<generation>-?\d+)"
    r"|Generation\{generationId=(?P<generation2>-?\d+), memberId='(?P<member>[^']*)', protocol='[^']*'\})"
)
_REASON = r"(?P<detail>.*)"
_ALL = r"(?P<partitions>.*)"

LINES = (
    Line("Cluster ID: ", ".*", Kind.STARTED, "2.3 -"),
    Line("Rebootstrapping with ", ".*", REBOOTSTRAPPING, "3.8 -"),
    Line("Kafka consumer initialized", "", Kind.STARTED, "2.3 - (debug)"),
    Line("Subscribed to topic(s): ", "(?P<topics>.*)", Kind.SUBSCRIBED, "2.3 -"),
    Line("Subscribed to pattern: '", "(?P<detail>.*)'", Kind.SUBSCRIBED, "2.3 -"),
    Line("(Re-)joining group", "", Kind.JOINING, "2.3 -"),
    Line("Successfully joined group with generation ", _GENERATION, Kind.JOINED, "2.3 -"),
    Line(
        "Finished assignment for group at generation ",
        r"(?P<generation>-?\d+): (?P<plan>\{.*\})",
        Kind.PLANNED,
        "2.4 -",
    ),
    Line("Finished assignment for group: ", r"(?P<plan>\{.*\})", Kind.PLANNED, "2.3 (debug)"),
    Line("Successfully synced group in generation ", _GENERATION, Kind.SYNCED, "2.6 -"),
    Line("Adding newly assigned partitions: ", _ALL, Kind.ASSIGNED, "2.4 -"),
    Line("Setting newly assigned partitions: ", _ALL, Kind.ASSIGNED, "2.3"),
    Line("Revoke previously assigned partitions ", _ALL, Kind.REVOKED, "2.4 -"),
    Line("Revoking previously assigned partitions ", _ALL, Kind.REVOKED, "2.3"),
    Line("Lost previously assigned partitions ", _ALL, Kind.LOST, "2.4 -"),
    Line("Giving away all assigned partitions as lost since ", _REASON, Kind.RESET, "2.4 -"),
    Line("Resetting generation due to: ", _REASON, Kind.RESET, "3.0 -"),
    Line("Resetting generation and member id due to: ", _REASON, Kind.RESET, "3.2 -"),
    Line("Resetting generation due to ", _REASON, Kind.RESET, "2.4 - 2.8"),
    Line("Resetting generation after ", _REASON, Kind.RESET, "2.4 - 2.8"),
    Line(
        "Member ",
        r"(?P<member>\S*) sending LeaveGroup request to coordinator .*? due to (?P<detail>.*)",
        Kind.LEAVING,
        "2.4 -",
    ),
    # It does not say why, and who closes or unsubscribes does not say what it revokes: all.
    Line("Member ", r"(?P<member>\S*) sending LeaveGroup request to coordinator .*", Kind.CLOSED, "2.3"),
    Line("This member will leave the group because consumer poll timeout has expired", ".*", OVERDUE, "2.3"),
    Line(
        "Member ",
        r"(?P<member>\S+) with epoch \d+ transitioned from \w+ to JOINING\.",
        Kind.JOINING,
        "4.0 - (consumer protocol)",
    ),
    Line(
        "Member ",
        r"(?P<member>\S+) with epoch (?P<generation>\d+) transitioned from JOINING to "
        r"(?:RECONCILING|STABLE)\.",
        Kind.JOINED,
        "4.0 - (consumer protocol)",
    ),
    Line(
        "Member ",
        r"(?P<member>\S+) with epoch (?P<generation>\d+) transitioned from \w+ to RECONCILING\.",
        Kind.SYNCED,
        "4.0 - (consumer protocol)",
    ),
    Line(
        "Member ",
        r"(?P<member>\S+) with epoch -?\d+ transitioned from \w+ to (?P<detail>FENCED|FATAL|STALE)\.",
        Kind.RESET,
        "4.0 - (consumer protocol)",
    ),
    Line(
        "Member ",
        r"(?P<member>\S+) with epoch -?\d+ transitioned from \w+ to LEAVING\.",
        Kind.LEAVING,
        "4.0 - (consumer protocol)",
    ),
    Line("Member ", ".*", None),
    Line("Kafka consumer has been closed", "", Kind.CLOSED, "2.3 - (debug)"),
)

JAVA = Source(
    name="java",
    marks=("[Consumer clientId=", "[Consumer instanceId="),
    prefix=(
        r"^(?s:(?P<head>.*?)\[Consumer (?:instanceId=(?P<instance>.*?), )?"
        r"clientId=(?P<client>.*?), groupId=(?P<group>.*?)\] (?P<message>.*?))" + LOGGER + "$"
    ),
    lines=LINES,
)
