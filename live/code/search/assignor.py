"""An assignor of somebody's own in the consumers of a group that is searched."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Sequence

from rebalance_verifier.base.processes.tools import ToolError
from rebalance_verifier.live.code.search.run import BROKEN
from rebalance_verifier.properties.group.clauses import CONVERGES

OF_ASSIGNORS = (
    "group/owner", "leader/grant", "leader/stale", "leader/withhold", "poll/throws", BROKEN, CONVERGES.id,
)  # fmt: skip
"""What an assignor can break in a group; the other clauses are about Kafka's own code around it."""

_VERSION = "kafka/kafka-version.properties"
_CLIENTS = "org/apache/kafka/clients/consumer/KafkaConsumer.class"


def without_clients(jars: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Return the release of kafka-clients on a class path, and the class path without it.

    Raises ToolError where there is none.
    """
    for path in jars:
        if os.path.isfile(path) and zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as jar:
                if _CLIENTS in jar.NameToInfo and _VERSION in jar.NameToInfo:
                    lines = jar.read(_VERSION).decode("utf-8").splitlines()
                    found = dict(line.partition("=")[::2] for line in lines if "=" in line)
                    return found["version"], tuple(one for one in jars if one != path)
    raise ToolError("no jar of kafka-clients is on the class path: the consumers are of its release")
