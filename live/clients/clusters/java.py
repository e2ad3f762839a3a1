"""Our Java programs that run consumers and brokers: the jars that they need."""

from __future__ import annotations

from rebalance_verifier.live.artifacts import jvm
from rebalance_verifier.live.artifacts.maven import CLIENTS, classpath

LOGGER = "org.slf4j:slf4j-simple:1.7.36"
"""Writes to stderr what clients and brokers log; the newest that all of them can use."""


DATED = (
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSSXXX",
)
"""With the time before each line, so that what a run has logged can be audited."""


def recorder(version: str) -> list[str]:
    """Return the recorder on kafka-clients of this version. Raises ToolError."""
    return _command(
        "rebalance_verifier.live.clients.consumers", "Recorder.java", f"{CLIENTS}:{version}", "-Xmx128m"
    )


GROUPS = "-Dorg.slf4j.simpleLogger.log.org.apache.kafka.coordinator.group.GroupMetadataManager=debug"
"""So that a broker logs what it makes of consumer groups: who holds what, and each target."""


def broker(version: str, logged: str, *options: str) -> list[str]:
    """Our launcher of a Kafka node of this version. ``logged``: from which level on; ``options`` of its Java.
    Raises ToolError."""
    level = f"-Dorg.slf4j.simpleLogger.defaultLogLevel={logged}"
    kafka = f"org.apache.kafka:kafka_2.13:{version}"
    return _command(__package__, "Broker.java", kafka, "-Xmx384m", level, *options)


def _command(package: str, source: str, coordinates: str, *options: str) -> list[str]:
    jars = classpath([coordinates, LOGGER])
    return list(jvm.command(package, [source], jars, *DATED, *options, shared=["Json.java"]))
