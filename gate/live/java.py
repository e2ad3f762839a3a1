"""Our Java programs that run consumers and brokers: the jars that they need."""

from __future__ import annotations

from collections.abc import Sequence

from rebalance.gate.adapters.java import CLIENTS, jvm
from rebalance.gate.adapters.java.maven import classpath
from rebalance.gate.live.cluster import Unavailable
from rebalance.gate.targets import TargetError

LOGGER = "org.slf4j:slf4j-simple:1.7.36"
"""Writes to stderr what clients and brokers log; the newest that all of them can use."""


def recorder(version: str) -> list[str]:
    """The recorder on kafka-clients of this version. Raises Unavailable."""
    return _command("Recorder.java", f"{CLIENTS}:{version}", "-Xmx128m")


def broker(version: str, logged: str) -> list[str]:
    """Our launcher of a Kafka node of this version. ``logged``: from which level on. Raises Unavailable."""
    level = f"-Dorg.slf4j.simpleLogger.defaultLogLevel={logged}"
    return _command("Broker.java", f"org.apache.kafka:kafka_2.13:{version}", "-Xmx384m", level)


def _command(source: str, coordinates: str, *options: str) -> list[str]:
    sources: Sequence[str] = [source, "Json.java"]
    try:
        return list(jvm.command(__package__, sources, classpath([coordinates, LOGGER]), *options))
    except TargetError as error:
        raise Unavailable(str(error)) from error
