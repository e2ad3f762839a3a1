"""Our Java programs: compiled at their first use against Maven's jars, and the commands that run them."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from rebalance.gate.adapters.java.bridge import program
from rebalance.gate.adapters.java.maven import cache, classpath, key
from rebalance.gate.live.cluster import Unavailable
from rebalance.gate.targets import TargetError

LOGGER = "org.slf4j:slf4j-simple:1.7.36"
"""Writes to stderr what clients and brokers log; the newest that all of them can use."""

OPTIONS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")
"""They start quickly and stay small."""

COMPILE_SECONDS = 120


def recorder(version: str) -> list[str]:
    """The recorder on kafka-clients of this version. Raises Unavailable."""
    jars = [f"org.apache.kafka:kafka-clients:{version}", LOGGER]
    return run("Recorder", jars, ["Recorder.java", "Json.java"], heap=128)


def broker(version: str, logged: str) -> list[str]:
    """Our launcher of a Kafka node of this version. ``logged``: from which level on. Raises Unavailable."""
    level = f"-Dorg.slf4j.simpleLogger.defaultLogLevel={logged}"
    jars = [f"org.apache.kafka:kafka_2.13:{version}", LOGGER]
    return run("Broker", jars, ["Broker.java", "Json.java"], heap=384, options=[level])


def run(
    name: str, coordinates: Sequence[str], sources: Sequence[str], *, heap: int, options: Sequence[str] = ()
) -> list[str]:
    """The command that runs class ``name`` with so many MiB of heap."""
    try:
        java, jars = program(), classpath(coordinates)
        classes = _compiled(java, jars, sources)
    except TargetError as error:
        raise Unavailable(str(error)) from error
    path = os.pathsep.join([classes, *jars])
    return [java, *OPTIONS, f"-Xmx{heap}m", *options, "-cp", path, name]


def _compiled(java: str, jars: Sequence[str], sources: Sequence[str]) -> str:
    """The directory of the classes; made again for another Java, other jars or other sources."""
    texts = {name: (resources.files(__package__) / name).read_text("utf-8") for name in sources}
    directory = cache() / "live" / key(os.path.realpath(java), *jars, *texts.values())
    if directory.exists():
        return str(directory)
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=directory.parent, prefix=".") as draft:
            for name, text in texts.items():
                Path(draft, name).write_text(text, encoding="utf-8")
            words = [java, "-XX:TieredStopAtLevel=1", "--module", "jdk.compiler/com.sun.tools.javac.Main"]
            words += ["-proc:none", "-nowarn", "-encoding", "UTF-8", "-cp", os.pathsep.join(jars)]
            words += ["-d", f"{draft}/classes", *(f"{draft}/{name}" for name in texts)]
            ran = subprocess.run(
                words,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=COMPILE_SECONDS,
                check=False,
            )
            if ran.returncode:
                raise Unavailable(
                    f"{sources[0]} does not compile (a JDK is needed, 11 or newer): {ran.stderr[:300]}"
                )
            if not directory.exists():  # another process may have been quicker
                Path(draft, "classes").rename(directory)
    except (OSError, subprocess.TimeoutExpired) as error:
        if not directory.exists():
            raise Unavailable(f"{sources[0]} cannot be compiled below {directory.parent}: {error}") from error
    return str(directory)
