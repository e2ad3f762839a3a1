"""The classes that Java loads to run Spark, kept in a file: to load them from there takes half the CPU.

The first local session notes them and has Java write the file when it is over; later ones begin with it. It
lies in the cache and may be deleted at any time. Java holds a file against the jars, and goes on without one
that does not fit; one that is cut off or damaged ends it with a signal, so its name has a checksum. None of
this is ever why a session fails.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rebalance_verifier.base.files import scratch
from rebalance_verifier.base.processes.tools import cache, key

KEPT = 3
"""So many files, each of one Java and one Spark; each has some 100 MB."""

UNUSED = 30 * 86_400.0
"""Seconds after which one that was not used makes room for another."""

_QUIET = "-Xlog:cds*=off,class+path*=off"
"""What does not fit is no news to anybody."""


@contextlib.contextmanager
def archived(java: str, version: str) -> Iterator[str]:
    """Yield options for the ``java`` of a session that is begun and stopped within: with which it uses the
    file, or notes what belongs into it. ``version``: what Java says of itself."""
    import pyspark

    home = Path(os.environ.get("SPARK_HOME") or pyspark.__path__[0]) / "jars"
    if _runs() or overridden(os.environ) or not home.is_dir():
        yield ""
        return
    named = key(java, version, pyspark.__version__, str(home), str(home.stat().st_mtime_ns))
    directory, options, notes = cache() / "spark", list[str](), False
    with contextlib.suppress(OSError):  # a home that cannot be written to
        if path := sound(directory, named):
            path.touch()
            options = [f"-XX:SharedArchiveFile={path}", _QUIET] if path.stat().st_size else []
        elif room(directory, time.time() - UNUSED):
            options = ["-XX:+RecordDynamicDumpInfo", _QUIET]
            tried = subprocess.run([java, *options, "-version"], capture_output=True, check=False)
            if not (notes := tried.returncode == 0):  # it does not even start then
                options = []
                keep(directory, named, lambda path: None)
    yield " ".join(f'"{option}"' for option in options)
    if notes:
        with contextlib.suppress(OSError):
            keep(directory, named, write)


def sound(directory: Path, named: str) -> Path | None:
    """Return the file of this name that is as it was written; those that are not are removed."""
    for path in sorted(directory.glob(f"{named}-*.jsa")):
        if path.stem == f"{named}-{_digest(path)}":
            return path
        path.unlink(missing_ok=True)
    return None


def keep(directory: Path, named: str, make: Callable[[Path], None]) -> None:
    """Keep the file that ``make`` makes; where it makes none, one of no use, so that nobody tries again."""
    if sound(directory, named):
        return
    with scratch("made", directory) as draft:
        path = draft / "classes.jsa"
        path.touch()
        with contextlib.suppress(Exception):
            make(path)
        path.replace(directory / f"{named}-{_digest(path)}.jsa")


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha1").hexdigest()


def overridden(environment: Mapping[str, str]) -> bool:
    """Check whether the user has said something of such files.

    >>> overridden({"JDK_JAVA_OPTIONS": "-Xmx1g -Xshare:off"}), overridden({})
    (True, False)
    """
    options = " ".join(environment.get(name, "") for name in ("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS"))
    return any(option in options for option in ("-Xshare", "SharedArchive", "ArchiveClassesAtExit"))


def room(directory: Path, since: float) -> bool:
    """Check whether there is room for another file, if need be of those that were not used ``since`` then."""
    directory.mkdir(parents=True, exist_ok=True)
    files = sorted(directory.glob("*.jsa"), key=lambda file: file.stat().st_mtime)
    for file in files[: max(0, len(files) - KEPT + 1)]:
        if file.stat().st_mtime >= since:
            return False
        file.unlink(missing_ok=True)
    return True


def _runs() -> bool:
    """Check whether this process has a Java of Spark's already."""
    from pyspark import SparkContext

    return SparkContext._gateway is not None


def write(path: Path) -> None:
    """Have the Java of this process write the file, as ``jcmd PID VM.cds dynamic_dump PATH`` does."""
    from pyspark import SparkContext

    gateway: Any = SparkContext._gateway
    array, java = gateway.new_array, gateway.jvm.java
    # It says what it does.
    java.lang.System.setOut(java.io.PrintStream(java.io.OutputStream.nullOutputStream()))
    strings = java.lang.Class.forName("[Ljava.lang.String;")
    command = array(java.lang.String, 2)
    command[0], command[1] = "dynamic_dump", str(path)
    arguments, signature = array(java.lang.Object, 1), array(java.lang.String, 1)
    arguments[0], signature[0] = command, strings.getName()
    # By way of the interface: the class of the server is none that Java lets others call.
    server = java.lang.management.ManagementFactory.getPlatformMBeanServer()
    beans = java.lang.Class.forName("javax.management.MBeanServer")
    (invoke,) = [method for method in beans.getMethods() if method.getName() == "invoke"]
    name = gateway.jvm.javax.management.ObjectName("com.sun.management:type=DiagnosticCommand")
    values = array(java.lang.Object, 4)
    values[0], values[1], values[2], values[3] = name, "vmCds", arguments, signature
    invoke.invoke(server, values)
