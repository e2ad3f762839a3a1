"""Java assignors as targets: what Kafka lets people plug in (``interfaces``), with the jars that it lives in.

    streams:RELEASE[?...][#...]    the whole StreamsPartitionAssignor of a release of kafka-streams
    java:CLASS[/KIND]@WHERE[,WHERE...][?KEY=VALUE[,KEY=VALUE...]][#PROMISE[,PROMISE...]]

KIND is needed where a class implements several of the interfaces, and another than the first is meant.
A WHERE is Maven coordinates (``org.apache.kafka:kafka-clients:4.1.0``) or a path (a jar, a directory of
classes, ``lib/*``). KEY=VALUE goes to ``Configurable.configure``; ``%2C`` is a comma in a value, and so on
for whatever would end it. The one string names the target fully: a trace that holds it can be replayed.

The JVM runs ``Bridge.java``, which speaks the stdio protocol. What is wrong with a spec is a ToolError, as
is what is wrong with the tools.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from urllib.parse import quote, unquote

from rebalance_verifier.base.processes.tools import ToolError
from rebalance_verifier.gate.targets.hosts.java.interfaces import RUNTIME_CLASS, chosen, kind_named
from rebalance_verifier.live.artifacts import jvm, maven
from rebalance_verifier.live.artifacts.maven import CLIENTS
from rebalance_verifier.model.assignor import PARTITION_PROMISES, TASK_PROMISES, Promise
from rebalance_verifier.model.assignors.promises import JAVA as JAVA_PROMISES
from rebalance_verifier.model.bugs.releases import NEWEST

JAVA = "java:"
"""How the spec of a Java assignor begins."""

STREAMS = "streams:"
"""How the spec of what runs task assignors begins."""

KAFKA_STREAMS = "org.apache.kafka:kafka-streams"

TASK_ASSIGNOR = "task.assignor.class"
"""The setting of an application that names its task assignor."""

LAGS = "bootstrap.servers=lags"
"""The setting by which a class that asks for offsets is given a broker of ours to ask."""

_DEFAULT = "org.apache.kafka.streams.processor.internals.assignment.HighAvailabilityTaskAssignor"

_CLASS = re.compile(r"[A-Za-z_$][\w$]*(\.[A-Za-z_$][\w$]*)*\Z")
_FORM = (
    "java:CLASS@WHERE, WHERE being a jar or Maven coordinates such as org.apache.kafka:kafka-clients:4.1.0"
)
_SAFE = "/:+@ "  # in a value, beside letters, digits and _.-~


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaTarget:
    """Parts of a ``java:`` spec; ``str()`` is the spec again."""

    class_name: str
    where: tuple[str, ...]
    config: tuple[tuple[str, str], ...] = ()
    promises: tuple[Promise, ...] = ()
    kind: str = ""
    """By which of its interfaces it is judged, a name of ``interfaces.KINDS``; "": by the first."""

    def __str__(self) -> str:
        config = ",".join(
            f"{quote(key, safe=_SAFE)}={quote(value, safe=_SAFE)}" for key, value in self.config
        )
        kind = f"/{self.kind}" if self.kind else ""
        text = f"{JAVA}{self.class_name}{kind}@{','.join(self.where)}"
        return (
            text + (f"?{config}" if config else "") + (f"#{','.join(self.promises)}" if self.promises else "")
        )

    @property
    def lags(self) -> bool:
        """Check whether it is given a broker to ask for offsets."""
        return tuple(LAGS.split("=")) in self.config

    @property
    def promised(self) -> tuple[Promise, ...]:
        """Return what it is asked for: what the spec says, or what is known of Kafka's own; nothing of
        others."""
        around = dict(self.config).get(TASK_ASSIGNOR, _DEFAULT)
        name = around if self.class_name == RUNTIME_CLASS else self.class_name
        return self.promises or tuple(sorted(JAVA_PROMISES.get(name, ())))


def parse(spec: str) -> JavaTarget:
    """Return the parts of a ``java:`` spec. Raises ToolError, also where it names no jar."""
    target = _parsed(spec)
    if not target.where:
        raise ToolError(
            f"{spec!r} does not say where the class is",
            f"add --maven {CLIENTS}:4.1.0 or --classpath a.jar:b.jar, or write {_FORM}",
        )
    return target


def spelled(
    spec: str,
    coordinates: Sequence[str] = (),
    classpath: Sequence[str] = (),
    config: Sequence[str] = (),
    promises: Sequence[str] = (),
) -> str:
    """``spec`` with the options of the command line in it. ``classpath`` entries are paths joined by ``:``,
    ``config`` are KEY=VALUE. Raises ToolError."""
    target = _parsed(spec)
    for one in coordinates:
        if not maven.is_coordinates(one):
            raise ToolError(f"--maven {one!r}: expected GROUP:ARTIFACT:VERSION, such as {CLIENTS}:4.1.0")
    pairs = [_pair(text, f"--config {text!r}: expected KEY=VALUE") for text in config]
    paths = [path for entry in classpath for path in entry.split(":") if path]
    for path in paths:
        if any(mark in path for mark in ",?#"):
            raise ToolError(f"--classpath {path!r}: a path with a comma, ? or # cannot be named")
    return str(
        replace(
            target,
            where=(*target.where, *coordinates, *paths),
            config=(*target.config, *pairs),
            promises=(*target.promises, *_promises(promises, "--promise")),
        )
    )


def command(spec: str) -> tuple[str, ...]:
    """Return what hosts the assignor of a ``java:`` spec: downloads with Maven and compiles the bridge if
    that was not done before, and loads nothing of the target's. Raises ToolError."""
    target = parse(spec)
    jars = maven.class_path(target.where)
    judged, others = chosen(target.class_name, target.kind, jars)
    harness = judged.harness_on(jars)
    sources = ["Bridge.java", *(f"{one}.java" for one in (harness, *judged.besides) if one)]
    return (
        # SIGQUIT writes all stacks there, and not between the replies.
        *jvm.command(__name__, sources, jars, "-XX:+DisplayVMOutputToStderr"),
        target.class_name,
        ",".join(target.promised),
        harness,
        judged.protocol or "",
        judged.label,
        "; ".join(f"{one.label} (java:{target.class_name}/{one.kind})" for one in others),
        *(word for pair in target.config for word in pair),
    )


def runtime_of(spec: str) -> str | None:
    """Return the spec of the runtime that calls a task assignor of a client; None of another target."""
    if not spec.startswith(JAVA):
        return None
    target = parse(spec)
    judged, _ = chosen(target.class_name, target.kind, maven.class_path(target.where))
    if judged.kind != "streams":
        return None
    config = (*target.config, (TASK_ASSIGNOR, target.class_name))
    around = replace(target, class_name=RUNTIME_CLASS, kind="", config=config, promises=target.promised)
    return str(around)


def is_java(spec: str) -> bool:
    """Check whether a spec is one of this module."""
    return spec.startswith((JAVA, STREAMS))


def _parsed(spec: str) -> JavaTarget:
    if spec.startswith(STREAMS):
        release, mark, rest = re.match(r"streams:([^?#]*)([?#]?)(.*)", spec, re.DOTALL).groups()  # type: ignore[union-attr]
        if not re.fullmatch(r"\d+(\.\d+)+[\w.-]*", release):
            raise ToolError(
                f"{spec!r}: {release!r} is no release of kafka-streams",
                f"write streams:{NEWEST}, for example",
            )
        spec = f"{JAVA}{RUNTIME_CLASS}@{KAFKA_STREAMS}:{release}{mark}{rest}"
    text, _, promises = spec.removeprefix(JAVA).partition("#")
    text, _, config = text.partition("?")
    named, _, where = text.partition("@")
    name, slash, kind = named.partition("/")
    if slash:
        kind = kind_named(kind).kind
    if not _CLASS.match(name):
        raise ToolError(f"{spec!r}: {name!r} is no name of a Java class", f"write {_FORM}")
    written = [
        _pair(text, f"{spec!r}: expected KEY=VALUE behind the ?, got {text!r}")
        for text in filter(None, config.split(","))
    ]
    pairs = tuple((unquote(key), unquote(value)) for key, value in written)
    found = _promises(filter(None, promises.split(",")), f"{spec!r}")
    places = tuple(filter(None, where.split(",")))
    return JavaTarget(class_name=name, where=places, config=pairs, promises=found, kind=kind)


def _pair(text: str, wrong: str) -> tuple[str, str]:
    """KEY=VALUE. Raises ToolError that says what is ``wrong``."""
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise ToolError(wrong)
    return key, value


def _promises(names: Iterable[str], where: str) -> tuple[Promise, ...]:
    try:
        return tuple(Promise(name) for name in names)
    except ValueError as error:
        partitions, tasks = ", ".join(PARTITION_PROMISES), ", ".join(TASK_PROMISES)
        known = (f"of an assignor of partitions: {partitions}", f"of one of tasks: {tasks}")
        raise ToolError(f"{where}: {error}", *known) from error
