"""kill -9 at random moments, of an audit that follows and of one that does not: run again, nothing is lost or
doubled."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import time
from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest

pytest.importorskip("duckdb")

import duckdb
from rebalance_verifier.base.processes.supervision import family

from tests.command import command
from tests.pipeline.audit.logs_at_hand import BEGIN

pytestmark = pytest.mark.nightly

KILLS = 30


def portion(path, number):
    """One more group, of which a partition is owned twice and another by nobody, and a line of nonsense."""
    rows: list[tuple[int, str, str, int, list[str]]] = [
        *((1, c, event, 1, []) for c in "ab" for event in ("joined", "synced")),
        (2, "a", "assigned", 1, ["t-0", "t-1"]),
        (3, "b", "assigned", 1, ["t-0"]),
        (5, "b", "revoked", 1, ["t-0"]),
        (6, "a", "revoked", 1, ["t-1"]),
    ]
    with path.open("a") as stream:
        for second, consumer, event, generation, partitions in rows:
            at = (BEGIN + timedelta(seconds=200 * number + second)).isoformat()
            row = {"at": at, "group": f"g{number}", "consumer": consumer, "event": event}
            stream.write(json.dumps({**row, "generation": generation, "partitions": partitions}) + "\n")
        stream.write('{"at": 1, "event": "nonsense"}\n')


def run(folder, *argv, kill_after=None):
    """The command, to its end or to its kill; seconds, and whether it came to its end."""
    began = time.monotonic()
    process = subprocess.Popen(
        command("audit", str(folder / "logs"), "--no-progress", *map(str, argv)),
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        _, errors = process.communicate(timeout=kill_after)
        assert process.returncode == 3, errors.decode()  # a line of nonsense: nothing is certain
        return time.monotonic() - began, True
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return time.monotonic() - began, False


def table(out, name, columns):
    files = out / name / "**" / "*.parquet"
    query = f"SELECT {columns} FROM read_parquet('{files}', hive_partitioning = false) ORDER BY ALL"
    return duckdb.execute(query).fetchall()


FINDING = 'id, "check", "group", topic, partition, seconds, certain'


def test_following_loses_and_doubles_nothing(tmp_path):
    (tmp_path / "logs").mkdir()
    log, once = tmp_path / "logs" / "app.jsonl", ("--follow", "--once", "--out")
    portion(log, 0)
    takes, _ = run(tmp_path, *once, tmp_path / "killed")
    draw, killed, number = random.Random(17), 0, 0
    while killed < KILLS:
        number += 1
        portion(log, number)
        _, ended = run(tmp_path, *once, tmp_path / "killed", kill_after=draw.uniform(0, takes))
        killed += not ended
    run(tmp_path, *once, tmp_path / "killed")
    run(tmp_path, *once, tmp_path / "whole")
    for name, columns in (("findings", FINDING), ("malformed", "file, line, why"), ("state/rows", "*")):
        assert table(tmp_path / "killed", name, columns) == table(tmp_path / "whole", name, columns), name
    assert len(table(tmp_path / "killed", "malformed", "line")) == number + 1


def test_an_audit_that_is_run_again_says_the_same(tmp_path):
    (tmp_path / "logs").mkdir()
    for number in range(20):
        portion(tmp_path / "logs" / f"{number % 3}.jsonl", number)
    takes, _ = run(tmp_path, "--out", tmp_path / "whole")
    draw, killed, number = random.Random(18), 0, 0
    while killed < KILLS // 3:
        number += 1
        out = tmp_path / f"killed-{number}"
        killed += not run(tmp_path, "--out", out, kill_after=draw.uniform(0, takes))[1]
    run(tmp_path, "--out", tmp_path / "again")
    assert table(tmp_path / "again", "findings", FINDING) == table(tmp_path / "whole", "findings", FINDING)
    assert len(table(tmp_path / "again", "findings", FINDING)) >= 20


def victim(process, kind, draw):
    """A process of this kind that the command has started at the moment, or the command; None: no such."""
    if kind == "driver":
        return process.pid
    found = []
    for pid in family(process.pid):
        with contextlib.suppress(OSError):
            command_line = Path(f"/proc/{pid}/cmdline").read_bytes().decode()
            if ("SparkSubmit" if kind == "java" else "pyspark.worker") in command_line:
                found.append(pid)
    return draw.choice(sorted(found)) if found else None


SPARK_TABLES = (("findings", FINDING), ("groups", "*"), ("pauses", "*"), ("malformed", "file, line, why"))


def test_an_audit_on_spark_loses_and_doubles_nothing(tmp_path):
    """Of nine kills three are of the command, three of Java and three of Python tasks: after the latter it
    goes on, after the others it is run again."""
    (tmp_path / "logs").mkdir()
    for number in range(20):
        portion(tmp_path / "logs" / f"{number % 3}.jsonl", number)

    def started(out):
        argv = command("audit", f"file://{tmp_path}/logs", "--no-progress", "--out", str(tmp_path / out))
        return subprocess.Popen(
            [*argv, "--master", "local[2]", "--driver-memory", "1g"],
            cwd=tmp_path,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    began = time.monotonic()
    assert started("whole").wait() == 3
    takes = time.monotonic() - began
    whole = {name: table(tmp_path / "whole", name, columns) for name, columns in SPARK_TABLES}
    assert len(whole["findings"]) >= 20
    assert len(whole["malformed"]) == 20
    draw, killed, number = random.Random(19), Counter[str](), 0
    while killed.total() < 9:
        number += 1
        out = f"killed-{number}"
        kind = ("driver", "java", "task")[killed.total() % 3]
        process, until, began = started(out), draw.uniform(0.1, 0.9) * takes, time.monotonic()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(until)
        # A task may be between two stages: wait for the next.
        while process.poll() is None and (pid := victim(process, kind, draw)) is None:
            time.sleep(0.05)
        if process.poll() is not None:
            takes = time.monotonic() - began  # the machine has become quicker
            continue
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            killed[kind] += 1
        code = process.wait()
        if kind == "task":
            assert code == 3
        else:
            out = f"again-{number}"
            assert started(out).wait() == 3
        for name, columns in SPARK_TABLES:
            assert table(tmp_path / out, name, columns) == whole[name], (kind, name)
