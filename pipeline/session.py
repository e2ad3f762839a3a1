"""A Spark session: local by default, on any cluster by its URL, quiet, and stopped by whoever started it."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rebalance_verifier.base.files import scratch
from rebalance_verifier.base.installation import how_to_get
from rebalance_verifier.pipeline.archive import archived

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LOCAL = "local[*]"
OLDEST_JAVA = 17
"""What PySpark 4 needs."""

ATTEMPTS = 4
"""How often a task is tried. Spark's own default on a cluster; in local mode it would be once."""

DEFAULT_OPTIONS = "spark.driver.defaultJavaOptions"
_LATER = 10
_TIERS = (("Invocation", 5000), ("MinInvocation", 600), ("Compile", 15000), ("BackEdge", 40000))
JVM = " ".join(
    ["-XX:+UseParallelGC", *(f"-XX:Tier4{name}Threshold={_LATER * default}" for name, default in _TIERS)]
)
"""Options of a JVM that is driver and executor, for minutes and on few cores: the collector that takes the
least CPU, and an optimising compiler that waits ten times as long as usual. Most of what Spark runs is the
planning of queries, once each; to optimise that takes more CPU than it takes itself. What the settings have
as DEFAULT_OPTIONS stands in for them."""

LIGHT = {DEFAULT_OPTIONS: "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
"""Settings for a JVM that hands out work and writes rows, and leaves the cores to those who play."""

FEW = 100_000
"""So many rows are one task's work."""


class Missing(RuntimeError):
    """There is nothing to run on; the text says in one line what is missing and how to get it."""


class SparkMissing(Missing):
    """There is no Spark, or it does not start."""


@contextlib.contextmanager
def session(
    master: str = LOCAL, *, memory: str = "4g", settings: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """Yield a session on ``master``: ``local[N]``, ``spark://host:port``, or ``sc://host:port`` for Spark
    Connect.

    ``memory`` is the driver's, in local mode all there is. ``settings`` are Spark's own and go before ours.
    A session that is active already is used as it is and not stopped. Raises SparkMissing.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise SparkMissing(f"Spark is needed: {how_to_get('spark')}") from error

    active = SparkSession.getActiveSession()
    if active is not None:
        yield active
        return
    # Whoever installs PySpark gets the pandas that its extra `sql` asks for, and a warning for it.
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    _silence()
    with contextlib.ExitStack() as stack:
        if master.startswith("sc://"):
            spark = _remote(master, settings or {})
        else:
            java, version = need_java()
            own = str(stack.enter_context(scratch("spark")))
            archive = stack.enter_context(archived(java, version)) if master.startswith("local") else ""
            spark = _classic(master, memory, settings or {}, own, archive)
        try:
            yield spark
        except BaseException:
            with contextlib.suppress(Exception):
                spark.interruptAll()
            raise
        finally:
            spark.stop()


def _silence() -> None:
    """Py4J and PySpark log the errors that they raise as well, and Ctrl-C with its traceback."""
    from pyspark.logger import PySparkLogger

    logging.getLogger().addFilter(_not_of_py4j)
    logging.getLogger("py4j").setLevel(logging.CRITICAL + 1)
    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL + 1)


def _not_of_py4j(record: logging.LogRecord) -> bool:
    return Path(record.pathname).parent.name != "py4j"


def _remote(url: str, settings: Mapping[str, str]) -> SparkSession:
    from pyspark.sql import SparkSession

    try:
        builder = SparkSession.builder.remote(url)
        for name, value in {**_everywhere(), **settings}.items():
            builder = builder.config(name, value)
        return builder.getOrCreate()
    except ImportError as error:
        raise SparkMissing(
            f"Spark Connect needs more of PySpark: pip install 'pyspark[connect]' ({error})"
        ) from error


def _classic(
    master: str, memory: str, settings: Mapping[str, str], scratch: str, archive: str
) -> SparkSession:
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    log4j = Path(__file__).with_name("log4j2.properties").as_uri()
    ours = {
        **_everywhere(),
        "spark.app.name": "rebalance",
        "spark.driver.memory": memory,
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={log4j} -Djava.io.tmpdir={scratch}",
        "spark.local.dir": scratch,
        "spark.sql.warehouse.dir": str(Path(scratch, "warehouse")),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    if master.startswith("local"):
        ours |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            DEFAULT_OPTIONS: JVM,
            "spark.python.daemon.module": "rebalance_verifier.pipeline.daemon",
            # A stage has few tasks for few cores; adaptive execution merges what is still too small.
            "spark.sql.shuffle.partitions": str(4 * cores(master)),
            "spark.default.parallelism": str(cores(master)),
        }
    builder = SparkSession.builder.master(patient(master))
    for name, value in {**ours, **settings}.items():
        options = f"{unsaid(value, os.environ)} {archive}".strip()
        builder = builder.config(name, options if name == DEFAULT_OPTIONS else value)
    # Java and Python workers write where this process does, warnings that nobody can act on above all.
    stderr = Path(scratch, "stderr")
    try:
        with _stderr_to(stderr), _temporary_files_in(scratch):
            return builder.getOrCreate()
    except Exception as error:
        first, *_ = str(error).splitlines() or [""]
        last = stderr.read_text(errors="replace").strip().splitlines()[-3:]
        raise SparkMissing("; ".join([f"Spark does not start on {master}: {first}", *last])) from error


@contextlib.contextmanager
def _temporary_files_in(directory: str) -> Iterator[None]:
    """Send what PySpark writes meanwhile for the JVM with the rest, also if this process is killed."""
    before, tempfile.tempdir = tempfile.tempdir, directory
    try:
        yield
    finally:
        tempfile.tempdir = before


@contextlib.contextmanager
def _stderr_to(path: Path) -> Iterator[None]:
    """Let processes started meanwhile write standard error to a file, for as long as it runs."""
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with path.open("ab") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _everywhere() -> dict[str, str]:
    return {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
    }


def together(frame: DataFrame, rows: int) -> DataFrame:
    """Return the same rows, few of them in one partition: Spark then plans no shuffle, which would cost more
    than it saves."""
    return frame.coalesce(1) if rows <= FEW else frame


def cores(master: str) -> int:
    """Return how many tasks a local master runs at a time.

    >>> cores("local"), cores("local[3]"), cores("local[3,2]")
    (1, 3, 3)
    """
    within = re.match(r"local\[(\*|\d+)", master)
    if within is None:
        return 1
    return os.cpu_count() or 1 if within[1] == "*" else int(within[1])


def patient(master: str) -> str:
    """Return the same master, where a task that fails is tried again.

    >>> patient("local"), patient("local[*]"), patient("local[2,1]"), patient("spark://host:7077")
    ('local[1,4]', 'local[*,4]', 'local[2,1]', 'spark://host:7077')
    """
    if master == "local":
        return f"local[1,{ATTEMPTS}]"
    within = re.fullmatch(r"local\[(\*|\d+)\]", master)
    return master if within is None else f"local[{within[1]},{ATTEMPTS}]"


def unsaid(options: str, environment: Mapping[str, str]) -> str:
    """Return the options of the JVM without those of a kind that the user has said something of: two
    collectors, and it does not start.

    >>> unsaid("-XX:+UseParallelGC -Dx=y", {"JDK_JAVA_OPTIONS": "-XX:+UseSerialGC -Xss2m"})
    '-Dx=y'
    """
    set_options = " ".join(environment.get(name, "") for name in ("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS"))
    kinds = [kind for kind in ("GC", "Tier") if kind in set_options]
    return " ".join(one for one in options.split() if not any(kind in one for kind in kinds))


def need_java() -> tuple[str, str]:
    """Return the Java that Spark runs on, where Spark itself looks for it, and what it says of its version.
    Raises SparkMissing."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else "java"
    advice = (
        f"Spark needs Java {OLDEST_JAVA} or newer: install e.g. openjdk-17-jre-headless (Debian, Ubuntu), "
        "`brew install openjdk@17` (macOS), or set JAVA_HOME"
    )
    if shutil.which(java) is None:
        raise SparkMissing(f"{java} not found; {advice}")
    output = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r' version "(\d+)', output)
    if version is None:
        raise SparkMissing(f"{java} does not run; {advice}")
    if int(version[1]) < OLDEST_JAVA:
        raise SparkMissing(f"{java} is of version {version[1]}; {advice}")
    return java, output
