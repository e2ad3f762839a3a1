"""What librdkafka logs with ``debug=cgrp``, to stderr or through a logger of the language it is used from.

A partition is owned from when librdkafka begins to fetch it (``add``, a round trip after the callback at
most) until it has stopped (``delete``, before it tells the coordinator anything). Several lines do not name
the group: it is that of the other lines of the client. What a leader planned stands on many lines and is not
read.
"""

from __future__ import annotations

from rebalance.pipeline.audit.sources.events import Kind
from rebalance.pipeline.audit.sources.patterns import LOGGER, Line, Source

LOSING = "losing"
"""What is revoked from here until the client joins again is lost."""

_TIED = r"(?P<topic>\S+) \[(?P<number>\d+)\]"
_OVER = "Broker: (?:Unknown member|Specified group generation id is not valid|Static consumer fenced.*)"

LIBRDKAFKA = Source(
    name="librdkafka",
    marks=("[thrd:",),
    prefix=(
        r"^(?s:(?P<head>.*?)(?:\|(?P<client>[^|]*)\| |[A-Z0-9_]+ \[(?P<client2>[^\]]*)\] )\[thrd:[^\]]*\]: "
        r'(?:[^\s"]+: )?(?:Group "(?P<group>[^"]*)":? )?(?P<message>.*?))' + LOGGER + "$"
    ),
    lines=(
        Line("librdkafka v", r"(?P<detail>\S+) .*initialized.*", Kind.STARTED, "2.16"),
        Line("librdkafka v", ".*", None),
        Line(" Topic ", r"(?P<topics>\S+) with \d+ partition\(s\)", Kind.SUBSCRIBED, "2.16"),
        Line(" Topic ", ".*", None),
        Line(
            'Joining group "',
            r'(?P<group>[^"]*)" with .* member id "(?P<member>[^"]*)".*',
            Kind.JOINING,
            "2.16",
        ),
        Line(
            "JoinGroup response: GenerationId ",
            r"(?P<generation>-?\d+), Protocol .*, my MemberId (?P<member>[^,]*), .*: \(no error\)",
            Kind.JOINED,
            "2.16",
        ),
        Line("JoinGroup response: GenerationId ", ".*", None),
        Line("SyncGroup response: Success", ".*", Kind.SYNCED, "2.16"),
        Line("add ", _TIED, Kind.ASSIGNED, "2.16"),
        Line("add ", ".*", None),
        Line("delete ", _TIED, Kind.REVOKED, "2.16"),
        Line("delete ", ".*", None),
        Line("current assignment of ", r"\d+ partition\(s\) lost: (?P<detail>.*)", LOSING, "2.16"),
        Line("current assignment of ", ".*", None),
        Line('updating member id "', r'(?P<member>[^"(]+)" -> "".*', Kind.RESET, "2.16"),
        Line('updating member id "', ".*", None),
        Line("heartbeat error response in state ", f".*: (?P<detail>{_OVER})", Kind.RESET, "2.16"),
        Line("heartbeat error response in state ", ".*", None),
        Line("leave (in state ", r"[^)]*\)", Kind.LEAVING, "2.16"),
        Line("leave (in state ", ".*", None),
        Line("Consumer closed", "", Kind.CLOSED, "2.16"),
    ),
)
