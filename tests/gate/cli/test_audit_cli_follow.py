"""``rebalance audit --follow``: how it ends, what it goes on with, and what it does with odd directories."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from rebalance.live.processes.supervision import family
from rebalance.properties.verdict import Exit

from tests.gate.cli import quick_audit
from tests.pipeline.audit.logs_at_hand import BEGIN
from tests.processes import left

ROOT = Path(__file__).parents[3]
ORDERS = ROOT / "examples" / "audit" / "orders.log"
FOLLOW = ("audit", "logs", "--follow", "--out", "out")
MUTE = "/proc/self/mem"
"""A file that anybody can open, and nobody can read from its beginning."""


def started(group):
    """The line of our own log for a consumer that starts."""
    row = {"at": BEGIN.isoformat(), "group": group, "consumer": "c", "event": "started"}
    return json.dumps(row).encode() + b"\n"


STREAM = "[STREAM_FAILED] Query [id = 6, runId = c] terminated with exception: "
PYTHON = (
    STREAM
    + """[PYTHON_ERROR] Traceback (most recent call last):
  File "tail.py", line 73, in latestOffset
    found.update(self._end(file))
                 ^^^^^^^^^^^^^^^
{} SQLSTATE: 38000
=== Streaming Query ===
Identifier: [id = 6, runId = c]"""
)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (PYTHON.format("OSError: [Errno 5] Input/output error\n"), "[Errno 5] Input/output error"),
        (PYTHON.format("PermissionError: [Errno 13] No permission: 'a'\n"), "[Errno 13] No permission: 'a'"),
        (PYTHON.format("pyspark.errors.exceptions.captured.SparkException: Job aborted\n"), "Job aborted"),
        (STREAM + "No space left on device\n\tat java.io", "No space left on device"),
        (PYTHON.format("KeyError: 'bytes'\n"), ""),  # these are bugs
        (PYTHON.format("rebalance.model.Wrong: no\n"), ""),
        (PYTHON.format("pyspark.errors.exceptions.captured.AnalysisException: no such column\n"), ""),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_no_bug_and_a_bug_is(text, reason):
    from pyspark.errors import StreamingQueryException
    from rebalance.pipeline.audit.failures import failure

    assert failure(StreamingQueryException(text)) == reason
    assert failure(RuntimeError(text)) == ""  # not of the stream


@pytest.fixture
def once(spark, rebalance, monkeypatch, tmp_path):
    """Reads what was written to ``logs`` since, with an audit that costs nothing."""
    from rebalance.pipeline.audit import batches

    monkeypatch.setattr(batches, "audit", quick_audit.audit)
    (tmp_path / "logs").mkdir()
    return lambda: rebalance(*FOLLOW, "--once")


@pytest.mark.nightly  # a minute and more, as each batch has to be planned
@pytest.mark.skipif(sys.platform != "linux", reason="finds the processes in /proc")
def test_ctrl_c_and_then_on_from_there(once, tmp_path):
    log = tmp_path / "logs" / "a.jsonl"
    log.write_bytes(started("one"))
    argv = [sys.executable, "-m", "tests.gate.cli.quick_audit", *FOLLOW, "--every", "0.2"]
    with subprocess.Popen(
        [*argv, "--master", "local[1]", "--driver-memory", "1g"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as process:  # fmt: skip
        assert process.stdout is not None
        for line in process.stdout:
            if line.strip().startswith("show"):
                break
        everybody = family(process.pid)
        assert len(everybody) > 1  # Java at least
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of them
        out, err = process.communicate()
    assert (process.returncode, out) == (Exit.INTERRUPTED, "")
    assert err == "interrupted; the same command goes on from here, with what is in out\n"
    assert not left(everybody)

    assert once() == (0, "", "")
    with log.open("ab") as stream:
        stream.write(started("two"))
    ran = once()
    assert ran.code == Exit.VIOLATION
    assert "  group two  " in ran.out
    assert "  group one  " not in ran.out
    assert len(list((tmp_path / "out" / "traces").iterdir())) == 2


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists(MUTE), reason=f"has no {MUTE}")
def test_nothing_then_what_cannot_be_read_then_garbage_and_a_log(once, tmp_path):
    logs = tmp_path / "logs"
    ran = once()
    assert ran.err == ""
    assert (ran.code, ran.out) == (0, "")
    (logs / "a.log").write_bytes(
        b'\0\xff\n\n{"at": \n' + b"x" * 100_000 + b'\n{"event": "joined"}\nhalf a li'
    )
    (logs / "b.log").symlink_to(MUTE)
    ran = once()
    assert (ran.code, ran.out) == (Exit.INCONCLUSIVE, "")
    assert ran.err == (
        "ended: [Errno 5] Input/output error; the same command goes on from here, with what is in out\n"
    )
    (logs / "b.log").unlink()
    (logs / "c.jsonl").write_bytes(started("one"))
    ran = once()
    assert (ran.code, ran.err) == (Exit.VIOLATION, "")
    assert ran.out.count("  group one  ") == 1
    shutil.rmtree(logs)
    ran = once()
    assert (ran.code, ran.err) == (Exit.USAGE, f"rebalance: {logs}: no such file or directory\n")
