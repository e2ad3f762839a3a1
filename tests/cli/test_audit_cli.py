"""``rebalance audit``: usage without Spark, then whole audits, on hand-made rows and on the example's log."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import pytest
from rebalance_verifier.base.verdict import Exit, Verdict
from rebalance_verifier.cli.commands import audit as audit_cli
from rebalance_verifier.cli.console import progress
from rebalance_verifier.pipeline.audit import kernel, tables
from rebalance_verifier.pipeline.audit import run as audit_run
from rebalance_verifier.pipeline.audit.alone import Alone
from rebalance_verifier.pipeline.audit.engine import Input, load, message, of_engine
from rebalance_verifier.pipeline.audit.kernel.events import COLUMNS
from rebalance_verifier.pipeline.audit.kernel.findings import CHECKS, Thresholds
from rebalance_verifier.pipeline.audit.records import LogEvent
from rebalance_verifier.pipeline.audit.result import Audited, AuditPlan, AuditTally, InputError
from rebalance_verifier.pipeline.audit.run import run_audit
from rebalance_verifier.pipeline.audit.sources.rows import MalformedLine
from rebalance_verifier.pipeline.audit.tables import micros
from rebalance_verifier.pipeline.database import add
from rebalance_verifier.pipeline.session import SparkMissing
from rebalance_verifier.traces import recordings

ROOT = Path(__file__).parents[2]
BEGAN = datetime(2026, 11, 21, 18, tzinfo=UTC)


# -- usage, without Spark ------------------------------------------------------------------------------


@pytest.fixture
def plans(monkeypatch):
    """The plans that were made; nothing is run."""
    plans = []

    def note(plan, report_progress):
        plans.append(plan)
        return Audited(plan=plan, events=1, groups=1)

    monkeypatch.setattr(audit_run, "run_audit", note)
    return plans


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ((), "which logs?"),
        (("x", "--check", "nonsense"), "--check: no check is called 'nonsense': there are owned-twice,"),
        (("x", "--report", "pdf"), "--report: no format is called 'pdf': there are text, json, html"),
        (("x", "--storm", "10"), "'10' is not COUNT/TIME, such as 10/600"),
        (("x", "--storm", "0/600"), "'0' is not a whole number from 1 on"),
        (("x", "--clock-skew", "-1"), "'-1' is no time above 0"),
        (("x", "--stranded", "soon"), "'soon' is no time above 0"),
        (("x", "--date", "21.11.2026"), "'21.11.2026' is not a day, such as 2026-11-21"),
        (("x", "--zone", "Atlantis"), "'Atlantis' is no time zone, such as Europe/Berlin or +02:00"),
        (("x", "--source", "syslog"), "--source: no source is called 'syslog': there are java,"),
        (("x", "--driver-memory", "lots"), "'lots' is not an amount of memory"),
        (("x", "--out", "full"), "--out: full is not empty"),
        (("x", "--out", "file"), "--out: file: File exists"),
        (("logs", "--out", "logs/out"), "--out: logs/out is within logs, which is read"),
    ],
)
def test_wrong_use_is_named(rebalance, plans, tmp_path, argv, message):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "theirs").touch()
    (tmp_path / "file").touch()
    (tmp_path / "logs").mkdir()
    ran = rebalance("audit", *argv)
    assert ran.code == Exit.USAGE
    assert message in ran.err
    assert plans == []
    assert not (tmp_path / ".rebalance").exists()
    assert os.listdir(tmp_path / "full") == ["theirs"]


def test_everything_that_can_be_said_is_asked(rebalance, plans, tmp_path):
    ran = rebalance(
        "audit", "a.log", "s3a://b/*.gz", "--master", "spark://h:7077", "--driver-memory", "1.5g",
        "--out", "o", "--source", "java", "--zone", "Europe/Berlin", "--date", "2026-11-21",
        "--clock-skew", "0", "--stranded", "1", "--settle", "2", "--storm", "3/4", "--pause", "5",
        "--group", "g", "--group", "h",
        "--group", "g", "--check", "stranded", "--level", "quality",
    )  # fmt: skip
    assert ran.code == 0
    assert plans == [
        AuditPlan(
            paths=("a.log", "s3a://b/*.gz"),
            out=Path("o"),
            master="spark://h:7077",
            memory="1536m",
            kind="java",
            zone="Europe/Berlin",
            date="2026-11-21",
            groups=("g", "h"),
            checks=("stranded",),
            level="quality",
            thresholds=Thresholds(
                stranded=1.0, settle=2.0, storm=3, storm_within=4.0, pause=5.0, clock_skew=0.0
            ),
        )
    ]


def test_what_is_not_said_is_as_the_checks_have_it(rebalance, plans):
    assert rebalance("audit", "x").code == 0
    assert plans[0].thresholds == Thresholds()
    assert plans[0].master == ""  # one process, where the logs fit
    assert re.fullmatch(r"\.rebalance/\d{8}T\d{6}Z", str(plans[0].out))


def test_tables_can_go_elsewhere(rebalance, plans):
    rebalance("audit", "x", "--out", "s3a://bucket/audits/")
    assert plans[0].table("events") == "s3a://bucket/audits/events"
    assert str(plans[0].out).startswith(".rebalance/")


def test_hidden_directories_may_lie_among_the_logs(rebalance, plans):
    assert rebalance("audit", ".", "--out", ".rebalance/mine").code == 0
    assert rebalance("audit", ".", "--out", "seen").code == Exit.USAGE


@pytest.mark.parametrize(
    ("argv", "files", "begins"),
    [
        ((), {"report.json", "report.html"}, "CONFORMANT  8 checks passed for 1 group in 1 event\n"),
        (("--report", "text"), set(), "CONFORMANT"),
        (("--report", "json"), {"report.json"}, ""),
        (("--format", "json", "--report", "html"), {"report.html"}, '{\n  "schema": 1,'),
    ],
)
def test_reports_are_those_that_were_asked_for(rebalance, plans, argv, files, begins):
    ran = rebalance("audit", "x", "--out", "o", *argv)
    assert set(os.listdir("o")) == files
    assert ran.out.startswith(begins)
    assert bool(ran.out) == bool(begins)
    if "report.json" in files:
        assert json.loads(Path("o/report.json").read_text())["verdict"] == "conformant"


@pytest.mark.parametrize("error", [SparkMissing("java not found; Spark needs it"), InputError("no file x")])
def test_what_is_missing_is_said_in_one_line(rebalance, monkeypatch, tmp_path, error):
    def fail(plan, report_progress):
        raise error

    monkeypatch.setattr(audit_run, "run_audit", fail)
    ran = rebalance("audit", "x")
    assert (ran.code, ran.out, ran.err) == (Exit.USAGE, "", f"rebalance: {error}\n")
    assert [p.name for p in (tmp_path / ".rebalance").iterdir() if p.is_dir()] == []


def test_list_describes_every_check(rebalance):
    text, listed = (
        rebalance("list", "checks").out,
        json.loads(rebalance("list", "checks", "--format", "json").out),
    )
    assert [one["check"] for one in listed] == list(CHECKS)
    for check in CHECKS.values():
        assert re.search(rf"^{check.id} +{check.level} ", text, re.M)
    assert max(map(len, text.splitlines())) <= 110


def test_help_names_the_thresholds(rebalance):
    help_text, limits = " ".join(rebalance("audit", "--help").out.split()), Thresholds()
    assert f"without an owner ({limits.stranded:g} s)" in help_text
    assert f"to settle ({limits.settle:g} s)" in help_text
    assert f"are too many ({limits.storm}/{limits.storm_within:g} s)" in help_text
    assert f"from everybody ({limits.pause:g} s)" in help_text


def test_the_how_to_names_every_check_and_threshold():
    text, limits = (ROOT / "docs" / "how-to" / "audit-logs.md").read_text(), Thresholds()
    assert re.findall(r"^\| `([a-z-]+)` \| (safety|liveness|quality) \|", text, re.M) == [
        (check.id, check.level) for check in AuditPlan(paths=("x",), out=Path("o")).chosen_checks
    ]
    for name in ("stranded", "settle", "pause"):
        assert f"`--{name}` {getattr(limits, name):g} s" in text
    assert f"`--storm` {limits.storm}/{limits.storm_within:g}" in text


def test_what_can_be_asked_for_is_what_can_be_read():
    from rebalance_verifier.pipeline.audit.sources.parsing import KINDS

    assert sorted(audit_cli.SOURCES) == sorted(KINDS)


def test_progress_names_the_stage_and_its_tasks(rebalance, plans, monkeypatch):
    shown = threading.Semaphore(0)

    def tasks():
        shown.release()
        return 3, 12

    def work(plan, report_progress):
        report_progress("reading", tasks)
        for _ in range(2):  # when it is asked again, the first answer stands there
            shown.acquire(timeout=60.0 if sys.stderr.isatty() and plan.out.name == "b" else 0.05)
        return Audited(plan=plan, events=1, groups=1)

    monkeypatch.setattr(progress, "EVERY", 0.001)
    monkeypatch.setattr(audit_run, "run_audit", work)
    assert rebalance("audit", "x", "--out", "a").err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert "reading: 3 of 12 tasks" in rebalance("audit", "x", "--out", "b").err
    assert rebalance("audit", "x", "--out", "c", "--no-progress").err == ""


# -- whole audits --------------------------------------------------------------------------------------


def event(seconds, kind, line, consumer="a", partition=None, group="g", **fields):
    """A row of the kernel's events."""
    row = {
        "moment": micros(BEGAN + timedelta(seconds=seconds)),
        "kind": kind,
        "group": group,
        "consumer": consumer,
        "member": None,
        "instance": None,
        "generation": None,
        "topic": None if partition is None else "t",
        "partition": partition,
        "detail": None,
        "host": "h",
        "source": "java",
        "file": "a.log",
        "line": line,
    }
    return {**row, **fields}


def found(number, check="owned-twice", group="g", *, seconds=7.9, certain=True, partition=1, at=0.0):
    """A row of what the kernel found."""
    began = micros(BEGAN + timedelta(seconds=at))
    place = {
        "moment": began,
        "kind": "assigned",
        "consumer": "a",
        "generation": 7,
        "file": "a.log",
        "line": 3,
    }
    return {
        "id": f"{number:012x}", "check": check, "group": group,
        "topic": None if partition is None else "t", "partition": partition, "began": began, "ended": None,
        "lasted": round(seconds * 1e6), "consumers": ["a", "b"], "members": None, "generations": [7],
        "certain": certain, "compared": not certain, "host_a": "h", "host_b": "i", "places": [place],
        "detail": "it is so",
    }  # fmt: skip


class Made(Alone):
    """An audit of these events, malformed lines and findings, whatever the logs say."""

    def __init__(self, plan, events, findings, malformed):
        super().__init__(plan)
        self.events, self.findings, self.malformed = events, findings, malformed

    def read(self):
        rows = [e for e in self.events if e["group"] in (self.plan.groups or [e["group"]])]
        add(self.connection, (tuple(row.get(name) for name in COLUMNS) for row in rows), "events", COLUMNS)
        lines = [("a.log", "java", 9, 8), ("b.log", None, 5, 0)]
        load(self.connection, lines=lines, malformed=[MalformedLine(*one) for one in self.malformed])
        self.groups = sorted({row["group"] for row in rows})
        return Input(events={"java": len(rows)}, until=micros(BEGAN))

    def judge(self, end):
        run = self.connection.execute
        run("CREATE TEMP VIEW timed AS FROM events")
        kernel.run(self.connection, "consumers")
        run("CREATE TEMP TABLE offsets (host VARCHAR, apart DOUBLE, samples BIGINT)")
        run("CREATE TEMP TABLE waits AS SELECT 'g' AS \"group\", 1500000 AS pause, 2 AS handovers")
        run("CREATE TEMP TABLE parts AS SELECT 'g' AS \"group\", 3 AS partitions")
        run(
            'CREATE TEMP TABLE lives ("group" VARCHAR, consumers BIGINT, events BIGINT, rebalances BIGINT, '
            "silent BIGINT, members BIGINT, missing BIGINT, first BIGINT, last BIGINT, settled BOOLEAN)"
        )
        for number, group in enumerate(self.groups):
            run("INSERT INTO lives VALUES (?, 2, 9, ?, 0, NULL, 0, ?, ?, true)", [group, number, end, end])
        for row in self.findings:
            names = ", ".join(f'"{name}"' for name in row)
            run(f"INSERT INTO found ({names}) VALUES ({', '.join('?' * len(row))})", list(row.values()))


@pytest.fixture
def made(monkeypatch, tmp_path):
    """An audit of these events, malformed lines and findings, in an empty directory."""
    monkeypatch.chdir(tmp_path)

    def run(events, findings=(), malformed=(), **plan):
        monkeypatch.setattr(audit_run, "engine", lambda plan: Made(plan, events, findings, malformed))
        asked = AuditPlan(
            paths=("logs",), out=tmp_path / "out [1]", thresholds=Thresholds(clock_skew=99.0), **plan
        )
        return audit_cli.saved(run_audit(asked))

    (tmp_path / "out [1]").mkdir()
    return run


def test_an_audit_from_end_to_end(made, tmp_path):
    events = [
        event(-0.5, "joined", 1, generation=7, member="m"),
        event(0, "assigned", 3, partition=1, generation=7),
        event(0, "assigned", 3, partition=2, generation=7),
        event(1.25, "assigned", 4, "b", partition=1),
        event(2, "removed", 5, None, member="m", detail="gone"),
        event(9, "joined", 6, "c", group="other"),
        event(500, "joined", 7),
        event(0, "joined", 8, group="not asked"),
    ]
    broken = [("file:///x/a%20b.log", 3, "?", "no time")]
    rows = [found(1), found(2, "long-pause", certain=False), found(3, "stranded")]
    one = made(events, rows, broken, groups=("g", "other"), checks=("owned-twice", "long-pause"))
    assert (one.verdict, one.exit) == (Verdict.VIOLATION, Exit.VIOLATION)
    assert (one.events, one.files, one.lines, one.recognised, one.malformed) == (7, 2, 14, 8, 1)
    assert [(s.source, s.files, s.lines, s.events) for s in one.sources] == [("java", 1, 9, 7), ("", 1, 5, 0)]
    assert [(m.file, m.line) for m in one.first_malformed] == [("/x/a b.log", 3)]
    assert [(t.check, t.findings, t.certain) for t in one.tallies] == [
        ("owned-twice", 1, 1),
        ("long-pause", 1, 0),
    ]
    assert (one.broken, one.groups) == (1, 2)
    assert [(g.group, g.findings, g.first) for g in one.worst] == [
        ("g", 2, "2026-11-21T18:00:00.000000Z"), ("other", 0, "2026-11-21T18:00:00.000000Z")
    ]  # fmt: skip
    assert one.findings[0].began == BEGAN
    assert [o.name for o in one.findings[0].owners] == ["a", "b"]
    assert one.findings[0].places == (
        LogEvent(at=BEGAN, kind="assigned", file="a.log", line=3, consumer="a", generation=7),
    )
    # The trace has the events of the partition and of the group, no other partition's, nothing from far away.
    shown = recordings.load(Path(one.traces["000000000001"]))
    assert shown.path == tmp_path / "out [1]" / "traces" / "000000000001.json"
    assert [(e.kind, e.line, e.partition) for e in shown.events] == [
        ("joined", 1, None), ("assigned", 3, 1), ("assigned", 4, 1), ("removed", 5, None)
    ]  # fmt: skip
    assert shown.events[2].at == BEGAN + timedelta(seconds=1.25)
    assert shown.finding == one.findings[0]
    assert sorted(os.listdir(tmp_path / "out [1]")) == ["clocks", "findings", "groups", "pauses", "traces"]


def test_what_is_collected_is_bounded(made, monkeypatch):
    """No check crowds out another; a trace has those concerned, and of the rest what is nearest."""
    monkeypatch.setattr(audit_run, "MAX_FINDINGS", 5)
    monkeypatch.setattr(audit_run, "MAX_TRACES", 2)
    monkeypatch.setattr(tables, "MAX_EVENTS", 4)
    rows = [found(n, seconds=n) for n in range(9)]
    rows += [found(20, "stranded", seconds=1), found(21, "stranded", seconds=2, certain=False)]
    rows += [found(30, "long-pause", group="h")]
    events = [event(n, "joining", 100 + n, "other") for n in range(-50, 50)]
    events += [event(100, "joined", 1), event(60, "assigned", 2, "z", 1), event(3500, "revoked", 3, "z", 1)]
    one = made(events, rows)
    order = [(f.check, int(f.id, 16)) for f in one.findings]
    assert order == [
        ("owned-twice", 8), ("stranded", 20), ("long-pause", 30), ("owned-twice", 7), ("stranded", 21)
    ]  # fmt: skip
    assert [int(name, 16) for name in one.traces] == [8, 20]
    assert one.count(gating=True, certain=True) == 10
    assert one.broken == 1
    shown = recordings.load(Path(one.traces[f"{8:012x}"]))
    assert [e.line for e in shown.events] == [100, 2, 1, 3]


def test_what_ends_an_audit_early_leaves_what_was_known(monkeypatch, tmp_path):
    def ended_by(error, *, signalled=False):
        def known(driver, one):
            return replace(
                one,
                events=1,
                tallies=(AuditTally(check="owned-twice", findings=1, certain=1, groups=1, longest=7.9),),
            )

        def stage(driver, one):
            if signalled:
                with contextlib.suppress(KeyboardInterrupt):  # as Py4J does
                    signal.raise_signal(signal.SIGINT)
            raise error

        monkeypatch.setattr(audit_run, "STAGES", {"reading": known, "checking": stage})
        return run_audit(AuditPlan(paths=(str(Path(__file__)),), out=tmp_path))

    one = ended_by(KeyboardInterrupt())
    assert (one.interrupted, one.stage, one.verdict, one.exit) == (True, "checking", Verdict.VIOLATION, 130)
    one = ended_by(duckdb.OutOfMemoryException("Out of Memory Error: too small\nlong story"))
    assert (one.failed, one.stage, one.exit) == ("Out of Memory Error: too small", "checking", Exit.VIOLATION)
    one = ended_by(duckdb.IOException("cancelled"), signalled=True)
    assert (one.interrupted, one.failed, one.exit) == (True, "", 130)
    with pytest.raises(duckdb.BinderException):  # we asked for nonsense: a bug
        ended_by(duckdb.BinderException("no such column"))


def test_what_spark_gives_up_with_is_one_line():
    errors = pytest.importorskip("pyspark.errors")
    text = "An error occurred while calling o5.parquet.\n: java.io: no disk\n at"
    assert message(errors.SparkRuntimeException(text)) == "java.io: no disk"
    assert of_engine(errors.SparkRuntimeException(text))
    assert not of_engine(errors.AnalysisException("no such column"))


def test_logs_that_cannot_be_read_are_the_users_concern(rebalance):
    ran = rebalance("audit", "none.log")
    assert (ran.code, ran.out) == (Exit.USAGE, "")
    assert "none.log: no such file or directory" in ran.err


def test_paths_do_not_depend_on_where_spark_runs():
    plan = AuditPlan(paths=("none.log", "/logs/*.gz", "s3a://bucket/x"), out=Path("o"))
    assert plan.absolute == (str(Path.cwd() / "none.log"), "/logs/*.gz", "s3a://bucket/x")


def test_spark_is_used_where_it_is_asked_for_and_where_logs_are_large_or_far_away(monkeypatch, tmp_path):
    from rebalance_verifier.pipeline.audit.spread import OnSpark

    def kind(path, **plan):
        return type(audit_run.engine(AuditPlan(paths=(path,), out=tmp_path, **plan)))

    log = tmp_path / "a.log"
    log.write_bytes(b"x" * 100)
    assert kind(str(log)) is Alone
    assert kind(str(log), master="local[2]") is OnSpark
    assert kind("s3a://bucket/x") is OnSpark
    assert kind(str(log), data="s3a://bucket/out") is OnSpark
    monkeypatch.setattr(audit_run, "LARGE", 99)
    assert kind(str(log)) is OnSpark
    monkeypatch.setattr(audit_run, "find_spec", lambda name: None)
    assert kind(str(log)) is Alone


def test_traces_that_cannot_be_saved_do_not_cost_the_verdict(rebalance, monkeypatch):
    def full(plan, report_progress):
        (plan.out / "traces").touch()
        one = tables.finding({**found(1), "seconds": 1.0, "skew": None})
        saved = audit_run.recording(plan, one, ())
        return Audited(plan=plan, events=1, groups=1, findings=(one,), recordings=(saved,))

    monkeypatch.setattr(audit_run, "run_audit", full)
    ran = rebalance("audit", "x", "--out", "o")
    assert ran.code == Exit.CONFORMANT
    assert "the traces cannot be saved" in ran.out


@pytest.fixture
def example(tmp_path):
    shutil.copytree(ROOT / "examples" / "audit", tmp_path / "audit")
    return tmp_path


@pytest.mark.nightly  # a Java of its own; by day --follow has one, and above are the errors that it ends in
@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_ctrl_c_ends_spark_and_keeps_what_is_known(example):
    code = (
        "import sys\nfrom rebalance_verifier.cli import main as cli\n"
        "from rebalance_verifier.pipeline.audit import run\n"
        "def wait(driver, found):\n"
        "    print('ready', file=sys.stderr, flush=True)\n"
        "    driver.spark.range(10**15).selectExpr('sum(id * id % 7)').collect()\n"
        "run.STAGES['checking'] = wait\n"
        "sys.exit(cli.main(sys.argv[1:]))"
    )
    argv = ["audit", "audit", "--out", "out", "--master", "local[1]", "--driver-memory", "1g"]
    with subprocess.Popen(
        [sys.executable, "-c", code, *argv],
        cwd=example, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    ) as process:  # fmt: skip
        assert process.stderr is not None
        output = ""
        for line in process.stderr:
            output += line
            if "ready" in line:
                break
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of them
        out, err = process.communicate()
    assert process.returncode == Exit.INTERRUPTED, output + err
    assert out.startswith("INCONCLUSIVE  interrupted while checking\n")
    assert "what is known by then is in out" in err
    assert "Traceback" not in err
    report = json.loads((example / "out" / "report.json").read_text())
    assert (report["interrupted"], report["read"]["events"]) == (True, 17)


def test_what_was_found_names_the_page_for_the_incident_review(rebalance, here):
    rows = [
        {"at": at, "event": "assigned", "group": "g", "consumer": who, "generation": 1, "partitions": ["t-0"]}
        for at, who in ((1, "a"), (2, "b"))
    ]
    (here / "a.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    ran = rebalance("audit", "a.jsonl")
    (page,) = re.findall(r"^  page +(\S+): for the incident review$", ran.out, re.M)
    assert (here / page).read_text().startswith("<!DOCTYPE html>")
    ran = rebalance("audit", "a.jsonl", "--report", "text", "--out", "other")
    assert "page  " not in ran.out
