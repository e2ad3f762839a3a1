"""The same jobs on a standalone Spark cluster: a master and two workers, processes of their own on loopback,
started from the PySpark that pip installed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from rebalance_verifier.cli import main as cli

from tests.command import command
from tests.pipeline.audit.logs_at_hand import BEGIN
from tests.pipeline.audit.sources.incident import incident
from tests.pipeline.audit.sources.shapes import per_pod, write
from tools.benchmarks.first_verdict import built

pytestmark = pytest.mark.slow

PATIENCE = 120
"""Seconds in which a daemon must have said what is waited for; it takes two or three."""


@contextmanager
def daemon(folder, name, *arguments):
    """A Spark daemon in a process group of its own, and the file that it writes its log to."""
    import pyspark

    home = Path(pyspark.__file__).parent
    log = folder / f"{name}.log"
    keep = ("PATH", "HOME", "JAVA_HOME", "JDK_JAVA_OPTIONS", "LANG")
    environment = {key: os.environ[key] for key in keep if key in os.environ}
    environment |= {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_NO_DAEMONIZE": "1"}
    environment |= {"SPARK_WORKER_DIR": str(folder), "SPARK_LOCAL_DIRS": str(folder)}
    environment |= {"PYSPARK_PYTHON": sys.executable}
    with log.open("w") as stream:
        process = subprocess.Popen(
            [str(home / "bin" / "spark-class"), *arguments],
            stdout=stream,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
    try:
        yield log, process
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)


def logged(log, process, pattern):
    """What the daemon's log says, once it says it."""
    end = time.monotonic() + PATIENCE
    while (found := re.search(pattern, log.read_text())) is None:
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < end, log.read_text()
        time.sleep(0.1)
    return found


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """The URL of a master that has two workers with a core each."""
    folder = tmp_path_factory.mktemp("cluster")
    package = "org.apache.spark.deploy"
    loopback = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
    with ExitStack() as stack:
        log, process = stack.enter_context(daemon(folder, "master", f"{package}.master.Master", *loopback))
        url = logged(log, process, r"Starting Spark master at (spark://\S+)")[1]
        for name in ("one", "two"):
            size = ("--cores", "1", "--memory", "1200m", "--work-dir", str(folder / name))
            worker = daemon(folder, name, f"{package}.worker.Worker", *loopback, *size, url)
            log, process = stack.enter_context(worker)
            logged(log, process, r"Successfully registered with master")
        yield url


def rebalance(folder, *argv, **variables):
    """The command in a process of its own: its exit code and what it printed."""
    ran = subprocess.run(
        command(*map(str, argv)),
        cwd=folder,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert ran.returncode in (0, 1), ran.stderr + ran.stdout[:2000]
    return ran.returncode, json.loads(ran.stdout)


@pytest.fixture(scope="module")
def shipped(tmp_path_factory):
    """Variables with which a driver sends the package along, to workers that do not have it."""
    folder = tmp_path_factory.mktemp("shipped")
    # As a zip: Spark puts no archive with another ending on the path of its workers.
    archive = shutil.copy(built(folder), folder / "rebalance.zip")
    # The packages that are installed, without what makes the checkout one of them.
    python = folder / "python"
    base = Path(sys.base_prefix, "bin", f"python3.{sys.version_info.minor}")
    python.write_text(
        f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{sysconfig.get_path("purelib")}" exec {base} "$@"\n'
    )
    python.chmod(0o755)
    alone = subprocess.run(
        [python, "-c", "import duckdb, pyspark; import rebalance_verifier.model"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "No module named 'rebalance_verifier'" in alone.stderr
    return {"PYSPARK_PYTHON": str(python), "PYSPARK_SUBMIT_ARGS": f"--py-files {archive} pyspark-shell"}


def steady(value):
    """A report without what a run has of its own: where it wrote to, and how long it took."""
    if isinstance(value, dict):
        own = (
            "seconds",
            "micros",
            "duration",
            "path",
            "out",
            "data",
            "directory",
            "saved",
            "trace",
            "slowest",
        )
        return {key: steady(item) for key, item in value.items() if not key.endswith(own)}
    return [steady(item) for item in value] if isinstance(value, list) else value


@pytest.mark.nightly  # more than a minute
def test_an_audit_says_the_same_on_a_cluster(cluster, tmp_path):
    log = tmp_path / "log.jsonl"
    rows: list[tuple[int, str, str, list[str]]]
    rows = [(1, c, event, []) for c in "ab" for event in ("joined", "synced")]
    rows += [
        (2, "a", "assigned", ["t-0", "t-1"]),
        (3, "b", "assigned", ["t-0"]),
        (5, "a", "revoked", ["t-0"]),
    ]
    with log.open("w") as stream:
        for second, consumer, event, partitions in rows:
            at = (BEGIN + timedelta(seconds=second)).isoformat()
            row = {"at": at, "group": "g", "consumer": consumer, "event": event, "generation": 1}
            stream.write(json.dumps({**row, "partitions": partitions}) + "\n")
    argv = ("audit", log, "--format", "json", "--driver-memory", "1g", "--no-progress")
    code, here = rebalance(tmp_path, *argv, "--out", tmp_path / "here", "--master", "local[2]")
    again, there = rebalance(tmp_path, *argv, "--out", tmp_path / "there", "--master", cluster)
    assert code == again == 1
    assert [finding["check"] for finding in here["findings"]] == ["owned-twice"]
    assert steady(there) == steady(here)


@pytest.mark.nightly  # more than a minute
def test_an_audit_says_the_same_by_spark_connect(tmp_path):
    pytest.importorskip("grpc", reason="pip install 'pyspark[connect]'")
    pods = tmp_path / "logs"
    write(per_pod(incident()), pods)
    argv = ("audit", pods, "--format", "json", "--no-progress")
    code, here = rebalance(tmp_path, *argv, "--out", tmp_path / "here")
    own = "spark.connect.grpc.binding"
    settings = (f"{own}.address=127.0.0.1", f"{own}.port=0")
    confs = [part for setting in settings for part in ("--conf", setting)]
    server = "org.apache.spark.sql.connect.service.SparkConnectServer"
    submit = ("org.apache.spark.deploy.SparkSubmit", "--master", "local[2]", "--driver-memory", "1g")
    with daemon(tmp_path, "connect", *submit, *confs, "--class", server, "spark-internal") as (log, process):
        port = logged(log, process, r"Spark Connect server started at: [^:]+:(\d+)")[1]
        master = f"sc://127.0.0.1:{port}"
        again, there = rebalance(tmp_path, *argv, "--out", tmp_path / "there", "--master", master)
    assert code == again == 1
    assert {one["check"] for one in here["findings"]} == {"owned-twice", "owned-by-zombie"}
    assert steady(there) == steady(here)


@pytest.mark.nightly  # more than a minute
def test_a_campaign_says_the_same_on_a_cluster(cluster, spark, tmp_path, capfd):
    argv = ("campaign", "range", "--scenarios", "400", "--format", "json", "--no-progress")
    code = cli.main([*argv, "--out", str(tmp_path / "here")])  # in the session of the tests, local[2]
    here = json.loads(capfd.readouterr().out)
    again, there = rebalance(tmp_path, *argv, "--out", tmp_path / "there", "--master", cluster)
    assert code == again == 0
    assert steady(there) == steady(here)


@pytest.mark.nightly  # minutes
def test_a_package_that_is_sent_along_is_all_that_workers_need(cluster, shipped, tmp_path):
    """The whole audit, parsing included, and a campaign."""
    pods = tmp_path / "logs"
    write(per_pod(incident()), pods)
    argv = ("audit", f"file://{pods}", "--format", "json", "--no-progress", "--driver-memory", "1g")
    code, here = rebalance(tmp_path, *argv, "--out", tmp_path / "here", "--master", "local[2]")
    again, there = rebalance(tmp_path, *argv, "--out", tmp_path / "there", "--master", cluster, **shipped)
    assert code == again == 1
    assert {one["check"] for one in here["findings"]} == {"owned-twice", "owned-by-zombie"}
    assert steady(there) == steady(here)
    campaign = ("campaign", "range", "--scenarios", "200", "--format", "json", "--no-progress")
    code, here = rebalance(tmp_path, *campaign, "--out", tmp_path / "own", "--master", "local[2]")
    again, there = rebalance(tmp_path, *campaign, "--out", tmp_path / "sent", "--master", cluster, **shipped)
    assert code == again == 0
    assert steady(there) == steady(here)
