"""Our Java programs: shipped as source, compiled at their first use, and the command that runs them."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from rebalance.gate.adapters.java import CLIENTS
from rebalance.gate.targets import TargetError
from rebalance.gate.tools import cache, key, run

OPTIONS = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",  # it starts in half the time, and most runs are short
    "-XX:-UsePerfData",
)
"""Options of the JVM; more can be given in the variable JDK_JAVA_OPTIONS."""

COMPILE_SECONDS = 120


def command(package: str, sources: Sequence[str], jars: Sequence[str], *options: str) -> tuple[str, ...]:
    """What runs the class of the first of the ``sources``, files of ``package``, on these jars; its arguments
    come behind it. Raises TargetError."""
    java = program()
    classes = _compiled(java, package, sources, jars)
    return (java, *OPTIONS, *options, "-cp", os.pathsep.join([classes, *jars]), Path(sources[0]).stem)


def program() -> str:
    """The ``java`` to run: that of JAVA_HOME, or the first on the path. Raises TargetError."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(os.path.join(home, "bin", "java")) if home else None
    found = found or shutil.which("java")
    if found is None:
        raise TargetError("there is no java: install a JDK, 11 or newer, or let JAVA_HOME name one")
    return found


def _compiled(java: str, package: str, sources: Sequence[str], jars: Sequence[str]) -> str:
    """The directory of the classes; made again for another Java, other jars or other sources."""
    texts = {name: (resources.files(package) / name).read_text("utf-8") for name in sources}
    stamps = [_stamp(os.path.realpath(java)), *map(_stamp, jars)]
    directory = cache() / "classes" / key(*texts.values(), *stamps)
    if directory.exists():
        return str(directory)
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=directory.parent, prefix=".") as draft:
            for name, text in texts.items():
                Path(draft, name).write_text(text, encoding="utf-8")
            _compile(java, jars, Path(draft), sources)
            if not directory.exists():  # another process may have been quicker
                Path(draft, "classes").rename(directory)
    except OSError as error:
        if not directory.exists():
            where = directory.parent
            raise TargetError(f"{sources[0]} cannot be compiled below {where}: {error}") from error
    return str(directory)


def _compile(java: str, jars: Sequence[str], draft: Path, sources: Sequence[str]) -> None:
    words = [java, "-XX:TieredStopAtLevel=1", "--module", "jdk.compiler/com.sun.tools.javac.Main"]
    words += ["-proc:none", "-nowarn", "-encoding", "UTF-8", "-cp", os.pathsep.join(jars)]
    words += ["-d", str(draft / "classes"), *(str(draft / name) for name in sources)]
    ran = run(words, COMPILE_SECONDS, f"compiling {sources[0]}")
    if ran.returncode:
        said = ran.stdout + ran.stderr
        raise TargetError(_complaint(java, sources[0], said), detail=said)


def _complaint(java: str, source: str, said: str) -> str:
    if "jdk.compiler" in said or "Unrecognized option: --module" in said:
        return f"{java} cannot compile: a JDK is needed, 11 or newer (not only a JRE)"
    if "org.apache.kafka" in said and ("does not exist" in said or "cannot find symbol" in said):
        return (
            "the class path has no kafka-clients, 2.4 or newer: add --maven "
            f"{CLIENTS}:4.1.0, or the jar that the assignor is used with"
        )
    lines = [line for line in said.splitlines() if "error:" in line] or said.splitlines()
    return f"{source} does not compile: {(lines or ['javac does not say why'])[0][:300]}"


def _stamp(path: str) -> str:
    try:
        known = os.stat(path)
    except OSError:
        return path
    return f"{path} {known.st_size} {known.st_mtime_ns}"
