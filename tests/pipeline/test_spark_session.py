"""What a session needs, and that it starts and ends without a word."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.fixture
def java(tmp_path, monkeypatch):
    """A Java that says this of its version; None: there is none."""

    def put(output):
        monkeypatch.setenv("JAVA_HOME", str(tmp_path))
        (tmp_path / "bin").mkdir()
        if output is not None:
            program = tmp_path / "bin" / "java"
            program.write_text(f"#!/bin/sh\necho '{output}' >&2\n")
            program.chmod(0o755)

    return put


@pytest.mark.parametrize(
    ("output", "problem"),
    [
        (None, "not found"),
        ('openjdk version "11.0.2" 2019-01-15', "is of version 11"),
        ('java version "1.8.0_392"', "is of version 1"),
        ("cannot execute", "does not run"),
    ],
)
def test_without_a_java_there_is_one_line_with_what_to_do(java, output, problem):
    from rebalance_verifier.pipeline.session import SparkMissing, need_java

    java(output)
    with pytest.raises(SparkMissing) as raised:
        need_java()
    text = str(raised.value)
    assert problem in text
    assert "openjdk-17-jre-headless" in text
    assert "\n" not in text


def test_a_java_that_is_new_enough_will_do(java):
    from rebalance_verifier.pipeline.session import need_java

    java('NOTE: Picked up JDK_JAVA_OPTIONS: -Xmx1g\nopenjdk version "21-ea" 2023-09-19')
    need_java()


QUIET = """
from rebalance_verifier.pipeline.session import session
with session("local[1]", memory="512m") as spark:
    with session() as same:
        assert same is spark
    assert spark.range(5).mapInArrow(lambda batches: batches, "id long").count() == 5
    try:
        spark.sql("select raise_error('on purpose')").collect()
    except Exception:
        print("raised")
"""

LIGHT = """
from rebalance_verifier.pipeline.session import LIGHT
from rebalance_verifier.pipeline.session import session
with session("local[1]", memory="512m", settings=LIGHT) as spark:
    print("counts", spark.range(5).count())
"""

NO_JAVA = """
import os
from rebalance_verifier.pipeline.session import SparkMissing, session
os.environ["JAVA_HOME"] = "/nowhere"
try:
    with session("local[1]"):
        pass
except SparkMissing as error:
    print(error)
"""

NO_MASTER = """
from rebalance_verifier.pipeline.session import SparkMissing, session
try:
    with session("spark://127.0.0.1:1"):
        pass
except SparkMissing as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("program", "output"),
    [
        (NO_JAVA, "/nowhere/bin/java not found; "),
        pytest.param(QUIET, "raised", marks=pytest.mark.nightly),
        pytest.param(LIGHT, "counts 5", marks=pytest.mark.nightly),
        # Spark tries for a minute.
        pytest.param(NO_MASTER, "Spark does not start on spark://127.0.0.1:1: ", marks=pytest.mark.nightly),
    ],
)
def test_spark_says_nothing_by_itself(program, output, tmp_path, monkeypatch):
    monkeypatch.delenv("JDK_JAVA_OPTIONS", raising=False)  # our own options of the JVM are those of users
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=True
    )
    assert ran.stderr == ""
    (line,) = ran.stdout.splitlines()
    assert line.startswith(output)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_workers_are_forked_from_the_installed_pyspark_and_from_no_threads(spark):
    """Not from the archive of its sources, and from a process in which forking is safe."""
    import pyspark

    def look(batches):
        import os

        import pyarrow
        import pyspark

        for _ in batches:
            threads = len(os.listdir(f"/proc/{os.getppid()}/task"))
            yield pyarrow.RecordBatch.from_pydict({"file": [pyspark.__file__], "threads": [threads]})

    found = spark.range(1).mapInArrow(look, "file string, threads bigint").collect()
    assert [tuple(row) for row in found] == [(pyspark.__file__, 1)]
