"""Our Java programs: shipped as source, compiled at their first use, and the command that runs them."""

from __future__ import annotations

import itertools
import os
import shutil
import zipfile
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path

from rebalance_verifier.base.processes.tools import ToolError, cache, key, made_once, run
from rebalance_verifier.live.artifacts.maven import CLIENTS

OPTIONS = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",  # it starts in half the time, and most runs are short
    "-XX:-UsePerfData",
)
"""Options of the JVM; more can be given in the variable JDK_JAVA_OPTIONS."""

INTERNALS = "KafkaInternals.java"
"""What each of our programs takes from Kafka beside its public API, compiled with each."""

COMPILE_SECONDS = 120

MAX_LINES = 10
"""Of what javac says, beside the first line; the error's ``detail`` has all."""

_INTERFACE = "org/apache/kafka/clients/consumer/ConsumerPartitionAssignor.class"
"""In every kafka-clients since 2.4."""


def command(
    package: str, sources: Sequence[str], jars: Sequence[str], *options: str, shared: Sequence[str] = ()
) -> tuple[str, ...]:
    """Return what runs the class of the first of the ``sources``, files of ``package``, on these jars; its
    arguments come behind it. ``shared``: files beside this module that it needs. Raises ToolError."""
    classes = compiled(package, sources, jars, shared=(*shared, INTERNALS))
    return (program(), *OPTIONS, *options, "-cp", os.pathsep.join([classes, *jars]), Path(sources[0]).stem)


def compiled(package: str, sources: Sequence[str], jars: Sequence[str], *, shared: Sequence[str] = ()) -> str:
    """Return the directory of the classes of these ``sources``, files of ``package``, and of those
    ``shared``.

    ``shared`` lie beside this module; what all import is on ``jars``, which may be directories.
    Raises ToolError.
    """
    files = [resources.files(package) / name for name in sources]
    files += [resources.files(__package__) / name for name in shared]
    return compiled_texts({file.name: file.read_text("utf-8") for file in files}, jars)


def compiled_texts(texts: Mapping[str, str], jars: Sequence[str]) -> str:
    """Return the directory of the classes of these sources, texts by file name. Raises ToolError."""
    return _compiled(program(), texts, jars)


def program() -> str:
    """Return the ``java`` to run: that of JAVA_HOME, or the first on the path. Raises ToolError."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(os.path.join(home, "bin", "java")) if home else None
    found = found or shutil.which("java")
    if found is None:
        raise ToolError("there is no java: install a JDK, 11 or newer, or let JAVA_HOME name one")
    return found


def _compiled(java: str, texts: Mapping[str, str], jars: Sequence[str]) -> str:
    """Return the directory of the classes of these sources, texts by file name; made again for another Java,
    other jars or other sources."""
    stamps = [_stamp(os.path.realpath(java)), *map(_stamp, jars)]
    directory = cache() / "classes" / key(*texts.values(), *stamps)

    def make(draft: Path) -> Path:
        for name, text in texts.items():
            (draft / name).write_text(text, encoding="utf-8")
        _compile(java, jars, draft, tuple(texts))
        return draft / "classes"

    return str(made_once(directory, make, f"{next(iter(texts))} cannot be compiled below"))


def _compile(java: str, jars: Sequence[str], draft: Path, sources: Sequence[str]) -> None:
    argv = [java, "-XX:TieredStopAtLevel=1", "--module", "jdk.compiler/com.sun.tools.javac.Main"]
    argv += ["-proc:none", "-nowarn", "-encoding", "UTF-8", "-cp", os.pathsep.join(jars)]
    argv += ["-d", str(draft / "classes"), *(str(draft / name) for name in sources)]
    ran = run(argv, COMPILE_SECONDS, f"compiling {sources[0]}")
    if ran.returncode:
        output = (ran.stdout + ran.stderr).replace(f"{draft}{os.sep}", "")
        raise ToolError(*_complaint(java, sources[0], jars, output), detail=output)


def _complaint(java: str, source: str, jars: Sequence[str], output: str) -> Sequence[str]:
    """Return what is wrong, in one line and hints: what javac says first, unless the reason is known."""
    if "jdk.compiler" in output or "Unrecognized option: --module" in output:
        return [f"{java} cannot compile: a JDK is needed, 11 or newer (not only a JRE)"]
    kafkas = "org.apache.kafka" in output
    if kafkas and not holds(jars, _INTERFACE):
        hint = f"add --maven {CLIENTS}:4.1.0, or the jar that the assignor is used with"
        return [f"the class path has no kafka-clients, 2.4 or newer: {hint}"]
    lines = output.splitlines() or ["javac does not say why"]
    first = next((number for number, line in enumerate(lines) if "error:" in line), 0)
    more = lines[first + 1 : first + 1 + MAX_LINES]
    own = itertools.takewhile(lambda line: "error:" not in line, more)
    symbol = next((line.partition("symbol:")[2].strip() for line in own if "symbol:" in line), "")
    message = f"{source} does not compile: {lines[first]}" + (f": {symbol}" if symbol else "")
    hint = "a release of Kafka that this one of rebalance-verifier does not know? take a newer one of ours"
    return [message[:300], *more, hint if kafkas else ""]


def holds(jars: Sequence[str], file: str) -> bool:
    """Check whether a class ``file`` is on a class path of jars and directories."""
    return any(_has(path, file) for path in jars)


def _has(path: str, file: str) -> bool:
    if os.path.isdir(path):
        return os.path.exists(os.path.join(path, file))
    try:
        with zipfile.ZipFile(path) as jar:
            return file in jar.NameToInfo
    except (OSError, zipfile.BadZipFile):
        return False


def _stamp(path: str) -> str:
    try:
        status = os.stat(path)
    except OSError:
        return path
    return f"{path} {status.st_size} {status.st_mtime_ns}"
