"""The clients that can lead: how each is obtained in a release, and the program that starts a consumer of it.

The programs import nothing of this project: they are started with an address, a group, topics and an
assignor.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import metadata, resources
from pathlib import Path

from rebalance_verifier.base.processes.tools import ToolError
from rebalance_verifier.live.artifacts import jvm, packages, pypi
from rebalance_verifier.live.artifacts.maven import CLIENTS, classpath
from rebalance_verifier.live.artifacts.registries import existing
from rebalance_verifier.live.clients.clusters.java import LOGGER
from rebalance_verifier.model.assignor import Promise
from rebalance_verifier.model.assignors.promises import PYTHON, REFERENCE
from rebalance_verifier.model.bugs.releases import version

ADDRESS, GROUP, TOPICS = "{address}", "{group}", "{topics}"
"""What a command has in their place."""
EVERY = ".*"
"""Topics of a client that subscribes to all that there are."""

PROMISES: Mapping[str, frozenset[Promise]] = {**PYTHON, "RoundRobinAssigner": PYTHON["roundrobin"]}
"""What the documentation of every client says of the assignor of this name; kafkajs has a name of its own."""

MORE_PROMISES: Mapping[str, Mapping[str, frozenset[Promise]]] = {
    "kafka-clients": REFERENCE,
    "sarama": {"range": frozenset({Promise.CO_PARTITIONED})},
}
"""What some say beside; aware of racks are those whose members write theirs (KIP-881)."""


@dataclass(frozen=True, slots=True)
class Started:
    """Command and files that start a client: its program without arguments, and variables of its environment.
    ``modules``: it is one of Python's that can be forked from a process that has loaded these; ``hosts``:
    without arguments it runs clients side by side (`hosted`)."""

    program: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    modules: tuple[str, ...] = ()
    hosts: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Leading:
    """A client that can lead. ``package`` is its registry's and name; ``assignors`` what it has, in its
    newest release; ``own_topics``: its leader assigns the topics that it subscribes to itself;
    ``by_pattern``: it subscribes to all topics, to have their metadata as the leader; ``fetches``: it fetches
    the metadata of a group that it leads, whatever it knows; ``at_once``: so many of its processes answer
    side by side, where what they answer does not depend on what they were asked before; ``prompt``: the
    first release that joins again at once, where others wait, so that a new process is there sooner;
    ``remembers``: assignors that answer by what the client saw before, so that each history has a client of
    its own."""

    name: str
    package: str
    language: str
    homepage: str
    assignors: tuple[str, ...]
    start: Callable[[str], Started]
    own_topics: bool = False
    by_pattern: bool = False
    fetches: bool = False
    at_once: int = 1
    remembers: tuple[str, ...] = ()
    prompt: str = ""

    def is_slow(self, release: str) -> bool:
        """Check whether a process of this release is better asked once; one that is no number is taken for
        new."""
        with contextlib.suppress(ValueError):
            return bool(self.prompt) and version(release) < version(self.prompt)
        return False


def _python(distribution: str, *modules: str) -> Callable[[str], Started]:
    def start(release: str) -> Started:
        module = distribution.replace("-", "_")
        site = pypi.installed(distribution, release) if release else None
        program = (sys.executable, _source(f"{module}.py"))
        return Started(program, {"PYTHONPATH": str(site)} if site else {}, modules)

    return start


def _java(release: str) -> Started:
    jars = classpath([f"{CLIENTS}:{release}", LOGGER])
    level = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
    return Started(
        tuple(jvm.command(__name__, ["Leader.java", "Host.java"], jars, "-Xmx256m", level)), hosts=True
    )


def _go(module: str, *sources: str) -> Callable[[str], Started]:
    def start(release: str) -> Started:
        texts = {name: Path(_source(name)).read_text(encoding="utf-8") for name in sources}
        return Started((str(packages.go_program(module, release, texts)),))

    return start


def _npm(package: str, source: str) -> Callable[[str], Started]:
    def start(release: str) -> Started:
        texts = {name: Path(_source(name)).read_text(encoding="utf-8") for name in (source, "host.mjs")}
        return Started(("node", str(packages.npm_program(package, release, texts))), hosts=True)

    return start


def _source(name: str) -> str:
    return str(resources.files(__name__) / name)


_FOUR = ("range", "roundrobin", "sticky", "cooperative-sticky")
_GITHUB = "https://github.com"

LEADING: Mapping[str, Leading] = {
    client.name: client
    for client in (
        Leading(
            name="confluent-kafka",
            package="pypi:confluent-kafka",
            language="C (librdkafka)",
            homepage=f"{_GITHUB}/confluentinc/librdkafka",
            assignors=("range", "roundrobin", "cooperative-sticky"),
            start=_python("confluent-kafka", "confluent_kafka"),
            fetches=True,
            at_once=2,
            prompt="2.10.0",
        ),
        Leading(
            name="kafka-python",
            package="pypi:kafka-python",
            language="Python",
            homepage=f"{_GITHUB}/dpkp/kafka-python",
            assignors=_FOUR,
            start=_python("kafka-python"),
            by_pattern=True,
        ),
        Leading(
            name="aiokafka",
            package="pypi:aiokafka",
            language="Python",
            homepage=f"{_GITHUB}/aio-libs/aiokafka",
            assignors=("range", "roundrobin", "sticky"),
            start=_python("aiokafka"),
            by_pattern=True,
        ),
        Leading(
            name="kafka-clients",
            package=f"maven:{CLIENTS}",
            language="Java",
            homepage=f"{_GITHUB}/apache/kafka",
            assignors=_FOUR,
            start=_java,
            by_pattern=True,
            remembers=("sticky", "cooperative-sticky"),  # AbstractStickyAssignor.maxGeneration
        ),
        Leading(
            name="franz-go",
            package="go:github.com/twmb/franz-go",
            language="Go",
            homepage=f"{_GITHUB}/twmb/franz-go",
            assignors=_FOUR,
            start=_go("github.com/twmb/franz-go", "franz_go.go"),
            by_pattern=True,
            remembers=_FOUR,  # it assigns what a topic had, once metadata has less of it
        ),
        Leading(
            name="sarama",
            package="go:github.com/IBM/sarama",
            language="Go",
            homepage=f"{_GITHUB}/IBM/sarama",
            assignors=_FOUR,
            start=_go("github.com/IBM/sarama", "sarama.go", "sarama_cooperative.go"),
            fetches=True,
        ),
        Leading(
            name="kafka-go",
            package="go:github.com/segmentio/kafka-go",
            language="Go",
            homepage=f"{_GITHUB}/segmentio/kafka-go",
            assignors=("range", "roundrobin"),
            start=_go("github.com/segmentio/kafka-go", "kafka_go.go"),
            fetches=True,
        ),
        Leading(
            name="kafkajs",
            package="npm:kafkajs",
            language="JavaScript",
            homepage=f"{_GITHUB}/tulios/kafkajs",
            assignors=("roundrobin",),
            start=_npm("kafkajs", "kafkajs.js"),
            own_topics=True,
            fetches=True,
        ),
        Leading(
            name="@platformatic/kafka",
            package="npm:@platformatic/kafka",
            language="JavaScript",
            homepage=f"{_GITHUB}/platformatic/kafka",
            assignors=("roundrobin", "cooperative-sticky"),
            start=_npm("@platformatic/kafka", "platformatic.mjs"),
            own_topics=True,
            fetches=True,
        ),
    )
}
"""Client by name, which is that of its package."""


def released(client: Leading, release: str) -> str:
    """This release, or without one what is installed here of a Python client, and the newest that exists of
    another. Raises ToolError."""
    if release:
        return release
    registry, _, name = client.package.partition(":")
    if registry == "pypi":
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            raise ToolError(f"{name} is not installed", f"name a release: client:{name}==1.2.3:...") from None
    found = existing(client.package)
    if not found.releases:
        raise ToolError(found.trouble, f"name a release: client:{client.name}==1.2.3:...")
    return found.releases[-1]


def promised(client: str, assignor: str) -> list[str]:
    """Return what it is asked for."""
    nothing = frozenset[Promise]()
    every = PROMISES.get(assignor, nothing) | MORE_PROMISES.get(client, {}).get(assignor, nothing)
    return sorted(promise.value for promise in every)
