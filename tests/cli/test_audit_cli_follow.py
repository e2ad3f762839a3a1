"""``rebalance audit --follow``: how it ends, what it goes on with, and what it does with odd directories."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from datetime import timedelta

import duckdb
import pytest
from rebalance_verifier.base.processes.supervision import family
from rebalance_verifier.base.verdict import Exit
from rebalance_verifier.pipeline.audit.engine import failure

from tests.command import command
from tests.pipeline.audit.logs_at_hand import BEGIN
from tests.processes import left
from tests.tiers import tiered

FOLLOW = ("audit", "logs", "--follow", "--out", "out")
MUTE = "/proc/self/mem"
"""A file that anybody can open, and nobody can read from its beginning."""


def broken(group):
    """Lines of our own log in which two consumers own a partition at a time."""
    events = ((0, "a", "assigned"), (1, "b", "assigned"), (9, "a", "revoked"))
    rows = [
        {"at": (BEGIN + timedelta(seconds=second)).isoformat(), "group": group, "consumer": consumer,
         "event": event, "generation": 1, "partitions": ["t-0"]}
        for second, consumer, event in events
    ]  # fmt: skip
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OSError(5, "Input/output error"), "[Errno 5] Input/output error"),
        (duckdb.IOException("IO Error: No space left on device\nmore"), "IO Error: No space left on device"),
        (KeyError("bytes"), ""),  # these are bugs
        (duckdb.BinderException("no such column"), ""),
    ],
)
def test_what_cannot_be_read_is_no_bug_and_a_bug_is(error, reason):
    assert failure(error) == reason


@pytest.fixture
def once(rebalance, tmp_path):
    """Reads what was written to ``logs`` since."""
    (tmp_path / "logs").mkdir()
    return lambda: rebalance(*FOLLOW, "--once")


@pytest.mark.skipif(sys.platform != "linux", reason="finds the processes in /proc")
def test_ctrl_c_and_then_on_from_there(once, tmp_path, expected):
    log = tmp_path / "logs" / "a.jsonl"
    log.write_bytes(broken("one"))
    with subprocess.Popen(
        [*command(*FOLLOW, "--every", "0.2")],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        for line in process.stdout:
            if line.strip().startswith("show"):
                break
        everybody = family(process.pid)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of them
        out, err = process.communicate()
    assert (process.returncode, out) == (Exit.INTERRUPTED, "")
    expected(err)
    assert not left(everybody)

    assert once() == (0, "", "")
    with log.open("ab") as stream:
        stream.write(broken("two"))
    ran = once()
    assert ran.code == Exit.VIOLATION
    assert " group two  " in ran.out
    assert " group one  " not in ran.out
    assert len(list((tmp_path / "out" / "traces").iterdir())) == 2


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="finds the processes in /proc")
@pytest.mark.parametrize("moment", tiered(range(10), {0, 3}))
def test_ctrl_c_ends_it_with_its_message(tmp_path, moment):
    """It comes while the database works, too, which makes an error of its own of it."""
    log = tmp_path / "logs" / "a.jsonl"
    log.parent.mkdir()
    log.write_bytes(broken("one"))
    follow = ("audit", "logs", "--follow", "--every", "0.01")
    with subprocess.Popen(
        [*command(*follow, "--out", "out")],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert any(line.strip().startswith("show") for line in process.stdout)
        time.sleep(0.037 * moment)
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate()
    expected = "interrupted; the same command goes on from here, with what is in out\n"
    assert (process.returncode, err) == (Exit.INTERRUPTED, expected)


def test_a_group_without_an_event_does_not_pass(rebalance, tmp_path):
    (tmp_path / "logs").mkdir()
    log = tmp_path / "logs" / "a.jsonl"
    log.write_bytes(broken("orders"))
    asked = (*FOLLOW, "--once", "--group", "order")
    absent = "no event of group 'order': did you mean 'orders'? the logs have 'orders'\n"
    assert rebalance(*asked) == (Exit.INCONCLUSIVE, "", absent)
    assert rebalance(*asked) == (Exit.INCONCLUSIVE, "", absent), "nor where nothing was written since"
    assert rebalance(*asked, "--group", "orders") == (Exit.INCONCLUSIVE, "", absent), "nor one of two"
    assert rebalance(*FOLLOW, "--once", "--group", "orders") == (0, "", ""), "it was told before"
    log.write_bytes(log.read_bytes() + broken("order"))
    ran = rebalance(*asked)
    assert (ran.code, ran.err, ran.out.count(" group order  ")) == (Exit.VIOLATION, "", 1)


@pytest.mark.covering("check")
@pytest.mark.parametrize(
    ("check", "lines", "says"),
    [
        ("owned-twice", ({"event": "joining"},), "not judged: no line says who owns which partition\n"),
        (
            "never-settles",
            ({"event": "assigned", "partitions": ["t-0"]},),
            "not judged: no line says that the group rebalances\n",
        ),
        ("owned-twice", ({"event": "assigned", "partitions": ["t-0"], "generation": 1},), ""),
    ],
)
def test_a_check_that_no_line_could_break_does_not_pass(rebalance, tmp_path, check, lines, says):
    """As where nothing is followed; nor later, where nothing was written since."""
    (tmp_path / "logs").mkdir()
    rows = [{"at": BEGIN.isoformat(), "group": "g", "consumer": "a", **line} for line in lines]
    (tmp_path / "logs" / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    whole = rebalance("audit", "logs", "--check", check, "--report", "json")
    expected = Exit.INCONCLUSIVE if says else Exit.CONFORMANT
    assert whole.code == expected, whole.out
    for _ in range(2):
        assert rebalance(*FOLLOW, "--once", "--check", check) == (expected, "", says)


LINE = "2026-03-02 10:{},000 INFO [Consumer clientId={}, groupId=g] {}\n"
GIVEN = LINE.format("00:04", "a", "Adding newly assigned partitions: t-0")
TOLD = "Successfully {} in generation Generation{{generationId={}, memberId='{}-1', protocol='range'}}"
WITHOUT_ITS_LOGGER = (
    LINE.format("00:03", "a", TOLD.format("synced group", 1, "a"))
    + GIVEN
    + LINE.format("00:03", "b", TOLD.format("synced group", 1, "b"))
)
PLAN = "{a-1=Assignment(partitions=[t-0]), b-1=Assignment(partitions=[])}"
OF_TWO = (
    LINE.format("00:03", "a", TOLD.format("synced group", 1, "a"))
    + GIVEN
    + LINE.format("00:04", "a", f"Finished assignment for group at generation 1: {PLAN}")
)
CUT = LINE.format("00:03", "a", TOLD.format("synced group", 1, "a")) + GIVEN + GIVEN[:60].strip() + "\n"


@pytest.mark.covering
@pytest.mark.parametrize(
    ("text", "says"),
    [
        (WITHOUT_ITS_LOGGER, "not judged: of 1 of its consumers no line says who owns which partition\n"),
        (OF_TWO, "not judged: the log of 1 of the 2 members of group g is missing or cut short\n"),
        (CUT, "not judged: 1 line begins like one of a client, and is not understood\n"),
    ],
    ids=["a logger is off", "a log is missing", "a line is cut off"],
)
def test_what_an_audit_cannot_judge_it_cannot_judge_while_it_follows(rebalance, tmp_path, text, says):
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.log").write_text(text)
    whole = rebalance("audit", "logs", "--report", "json")
    assert whole.code == Exit.INCONCLUSIVE, whole.out
    for _ in range(2):
        assert rebalance(*FOLLOW, "--once") == (Exit.INCONCLUSIVE, "", says)


def test_a_line_that_is_cut_off_takes_the_certainty_while_it_follows(rebalance, tmp_path):
    """The line that is cut off gives the partition back, before another gets it."""
    (tmp_path / "logs").mkdir()
    back = LINE.format("02:00", "a", "Revoke previously assigned partitions t-0")
    lines = [
        LINE.format("00:03", "a", TOLD.format("joined group", 1, "a").replace("in gen", "with gen")),
        GIVEN,
        "{}",
        LINE.format("02:01", "a", TOLD.format("joined group", 2, "a").replace("in gen", "with gen")),
        LINE.format("02:01", "b", TOLD.format("joined group", 2, "b").replace("in gen", "with gen")),
        LINE.format("02:02", "b", "Adding newly assigned partitions: t-0"),
        LINE.format("09:00", "a", "Revoke previously assigned partitions t-0"),
    ]
    for name, line, code in (("cut", back[:95] + "\n", Exit.INCONCLUSIVE), ("none", "", Exit.VIOLATION)):
        (tmp_path / "logs" / "a.log").write_text("".join(lines).replace("{}", line, 1))
        ran = rebalance("audit", "logs", "--follow", "--once", "--out", name)
        assert (ran.code, "owned-twice  [safety]" in ran.out) == (code, True), ran.out


def test_who_waits_hears_at_once_that_a_group_has_no_event(tmp_path, expected):
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.jsonl").write_bytes(broken("orders"))
    with subprocess.Popen(
        [*command(*FOLLOW, "--group", "absent")], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        expected(process.stderr.readline())
        process.send_signal(signal.SIGINT)


@pytest.mark.skipif(not os.path.exists(MUTE), reason=f"has no {MUTE}")
def test_nothing_then_what_cannot_be_read_then_garbage_and_a_log(once, tmp_path, expected):
    logs = tmp_path / "logs"
    assert once() == (Exit.INCONCLUSIVE, "", "nothing recognised in logs\n")
    (logs / "a.log").write_bytes(
        b'\0\xff\n\n{"at": \n' + b"x" * 100_000 + b'\n{"event": "joined"}\nhalf a li'
    )
    (logs / "b.log").symlink_to(MUTE)
    ran = once()
    assert (ran.code, ran.out) == (Exit.INCONCLUSIVE, "")
    expected(ran.err)
    (logs / "b.log").unlink()
    (logs / "c.jsonl").write_bytes(broken("one"))
    ran = once()
    assert (ran.code, ran.err) == (Exit.VIOLATION, "")
    assert ran.out.count(" group one  ") == 1
    shutil.rmtree(logs)
    ran = once()
    assert (ran.code, ran.err) == (Exit.USAGE, f"rebalance: {logs}: no such file or directory\n")
