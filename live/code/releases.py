"""Which releases of Kafka a simulation can be made of, and the classes and jars of each."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache

from rebalance_verifier.base.processes.tools import ToolError
from rebalance_verifier.live.artifacts import jvm
from rebalance_verifier.live.artifacts.maven import CLIENTS, classpath
from rebalance_verifier.live.artifacts.registries import existing
from rebalance_verifier.model.bugs.releases import version

COORDINATOR = "org.apache.kafka:kafka-group-coordinator"
"""The coordinates of the Java coordinator, without a release."""

OLDEST_COORDINATOR = "3.8.0"
"""Before it GroupCoordinatorShard was another, and before 3.7 Scala's."""

OLDEST_CONSUMER = "2.4.0"
"""The first with incremental rebalancing (KIP-429)."""

CELL = "rebalance.cell.Cell"
"""The class that is run."""

MISSING_OF = {"2.6.0": "com.fasterxml.jackson.core:jackson-databind:2.10.2"}
"""What a release of kafka-clients needs and does not name: MetadataRequest of 2.6.0 does not load without."""

_HULL = ("Cell.java", "Parts.java", "Out.java", "Ids.java", "Shapes.java")
_COORDINATOR = (
    "ShippedCoordinator.java",
    "VirtualTime.java",
    "Descriptions.java",
    "Config38.java",
    "Images.java",
    "ConsumerGroups.java",
    "ClassicMembers.java",
)
_CONSUMER = ("ShippedConsumer.java", "VirtualTime.java", "CellClient.java")

_OPTIONS = ("-Xshare:auto", "-Xss2m", "-Xmx512m")
"""The first compiler is enough here too: after 160,000 steps the second has not earned what it costs."""


def coordinators() -> tuple[str, ...]:
    """Return every release whose coordinator a simulation can run, the oldest first. Raises ToolError."""
    return _since(COORDINATOR, OLDEST_COORDINATOR)


def consumers() -> tuple[str, ...]:
    """Return every release whose consumer a simulation can run, the oldest first. Raises ToolError."""
    return _since(CLIENTS, OLDEST_CONSUMER)


def newest_of_minors(releases: Sequence[str]) -> tuple[str, ...]:
    """Return the last patch of each minor release, in the order given.

    >>> newest_of_minors(("2.8.0", "2.8.1", "3.0.0"))
    ('2.8.1', '3.0.0')
    """
    last = {tuple(one.split(".")[:2]): one for one in sorted(releases, key=version)}
    return tuple(one for one in releases if one in last.values())


def _since(artifact: str, oldest: str) -> tuple[str, ...]:
    found = existing(f"maven:{artifact}")
    if found.trouble:
        raise ToolError(found.trouble)
    return tuple(one for one in found.releases if version(one) >= version(oldest))


def command(coordinators: Sequence[str], consumers: Sequence[str], *more: str) -> list[str]:
    """Return what runs a simulation that can have these coordinators and consumers, each compiled against its
    release.

    ``more``: jars or directories that the consumers find, of assignors. Raises ToolError.
    """
    for oldest, what, wanted in (
        (OLDEST_COORDINATOR, "coordinator", coordinators),
        (OLDEST_CONSUMER, "consumer", consumers),
    ):
        for one in wanted:
            if _number(one) < version(oldest):
                raise ToolError(f"the simulation has no {what} {one}: {oldest} is the oldest")
    hull = jvm.compiled(__package__, _HULL, (), shared=["Json.java"])
    parts = [f"coordinator:{one}={_coordinator(hull, one)}" for one in dict.fromkeys(coordinators)]
    parts += [
        f"consumer:{one}={os.pathsep.join((_consumer(hull, one), *more))}" for one in dict.fromkeys(consumers)
    ]
    return [jvm.program(), *jvm.OPTIONS, *_OPTIONS, "-cp", hull, CELL, *parts]


def _number(release: str) -> tuple[int, ...]:
    try:
        return version(release)
    except ValueError as error:
        raise ToolError(str(error)) from error


@cache
def _coordinator(hull: str, release: str) -> str:
    jars = classpath([f"{COORDINATOR}:{release}"])
    return os.pathsep.join((_directory(_COORDINATOR, hull, jars), *jars))


@cache
def _consumer(hull: str, release: str) -> str:
    also = MISSING_OF.get(release)
    jars = classpath([f"{CLIENTS}:{release}", *([also] if also else [])])
    return os.pathsep.join((_directory(_CONSUMER, hull, jars), *jars))


def _directory(sources: Sequence[str], hull: str, jars: Sequence[str]) -> str:
    return jvm.compiled(__package__, sources, (hull, *jars))
