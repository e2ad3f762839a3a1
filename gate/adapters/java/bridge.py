"""The JVM's side: ``Bridge.java`` compiled against the jars it is to judge, and the command that runs it."""

from __future__ import annotations

import glob
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from importlib import resources
from pathlib import Path

from rebalance.gate.adapters.java import CLIENTS
from rebalance.gate.adapters.java.maven import cache, key
from rebalance.gate.targets import TargetError

OPTIONS = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",  # it starts in half the time, and most runs are short
    "-XX:-UsePerfData",
    "-XX:+DisplayVMOutputToStderr",  # where SIGQUIT writes all stacks
)
"""Options of the JVM; more can be given in the variable JDK_JAVA_OPTIONS."""

COMPILE_SECONDS = 120


def command(jars: Sequence[str]) -> tuple[str, ...]:
    """What starts the bridge on these jars; the name of the class and its arguments come behind it.

    Compiles at the first use. Raises TargetError.
    """
    java = program()
    classes = _compiled(java, jars)
    return (java, *OPTIONS, "-cp", os.pathsep.join([classes, *jars]), "Bridge")


def program() -> str:
    """The ``java`` to run: that of JAVA_HOME, or the first on the path. Raises TargetError."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(os.path.join(home, "bin", "java")) if home else None
    found = found or shutil.which("java")
    if found is None:
        raise TargetError("there is no java: install a JDK, 11 or newer, or let JAVA_HOME name one")
    return found


def checked(paths: Iterable[str]) -> list[str]:
    """``paths`` as a class path, ``DIR/*`` as its jars. Raises TargetError for what is not there."""
    found: list[str] = []
    for path in paths:
        expanded = sorted(glob.glob(f"{glob.escape(path[:-1])}*.jar")) if path.endswith("*") else [path]
        if not expanded or not all(map(os.path.exists, expanded)):
            raise TargetError(f"there is no {path!r}, which should be a part of the class path")
        found += expanded
    return found


def _compiled(java: str, jars: Sequence[str]) -> str:
    """The directory with the compiled bridge; compiled again for another Java or other jars."""
    source = (resources.files("rebalance.gate.adapters.java") / "Bridge.java").read_text("utf-8")
    directory = cache() / "bridge" / key(source, _stamp(os.path.realpath(java)), *map(_stamp, jars))
    if (directory / "Bridge.class").exists():
        return str(directory)
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=directory.parent, prefix=".") as draft:
            _compile(java, jars, source, Path(draft))
            made = Path(draft, "classes")
            if not directory.exists():  # another process may have been quicker
                made.rename(directory)
    except OSError as error:
        if not (directory / "Bridge.class").exists():
            raise TargetError(f"the bridge cannot be written below {directory.parent}: {error}") from error
    return str(directory)


def _compile(java: str, jars: Sequence[str], source: str, draft: Path) -> None:
    (draft / "Bridge.java").write_text(source, encoding="utf-8")
    words = [java, "-XX:TieredStopAtLevel=1", "--module", "jdk.compiler/com.sun.tools.javac.Main"]
    words += ["-proc:none", "-nowarn", "-encoding", "UTF-8", "-cp", os.pathsep.join(jars)]
    words += ["-d", str(draft / "classes"), str(draft / "Bridge.java")]
    try:
        ran = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=COMPILE_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise TargetError(f"compiling the bridge did not end within {COMPILE_SECONDS} s") from None
    if ran.returncode:
        said = ran.stdout + ran.stderr
        raise TargetError(_complaint(java, said), detail=said)


def _complaint(java: str, said: str) -> str:
    if "jdk.compiler" in said or "Unrecognized option: --module" in said:
        return f"{java} cannot compile: a JDK is needed, 11 or newer (not only a JRE)"
    if "org.apache.kafka" in said and ("does not exist" in said or "cannot find symbol" in said):
        return (
            "the class path has no kafka-clients, 2.4 or newer: add --maven "
            f"{CLIENTS}:4.1.0, or the jar that the assignor is used with"
        )
    lines = [line for line in said.splitlines() if "error:" in line] or said.splitlines()
    return f"the bridge does not compile: {(lines or ['javac does not say why'])[0][:300]}"


def _stamp(path: str) -> str:
    try:
        known = os.stat(path)
    except OSError:
        return path
    return f"{path} {known.st_size} {known.st_mtime_ns}"
