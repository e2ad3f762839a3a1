"""One process and Spark find the same in every log of the tests: the same findings, ids, figures and
traces."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

import duckdb
from rebalance_verifier.pipeline.audit import alone, spread
from rebalance_verifier.pipeline.audit import run as audit_run
from rebalance_verifier.pipeline.audit.result import AuditPlan
from rebalance_verifier.pipeline.audit.tables import SAVED
from rebalance_verifier.pipeline.database import literal

from tests.pipeline.audit.logs_at_hand import events, judged
from tests.pipeline.audit.test_audit import END, LOGS
from tests.pipeline.audit.test_audit_reference import logs, row

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """All logs of the tests: recorded ones, the example's, those by hand and random ones."""
    folder = tmp_path_factory.mktemp("logs")
    shutil.copytree(ROOT / "tests" / "pipeline" / "audit" / "logs", folder / "recorded")
    shutil.copytree(ROOT / "examples" / "audit", folder / "example")
    by_hand = [one for group, text in {**LOGS, "end": END}.items() for one in events(text, group)]
    connection = judged([*by_hand, *map(row, logs(1))])
    connection.execute(f"COPY (SELECT {SAVED} FROM events) TO {literal(str(folder / 'events.parquet'))}")
    return folder


def tables(out):
    """All that is saved, with nulls and lists as they are written."""
    names = ("findings", "groups", "pauses", "clocks", "malformed")
    found = {
        name: duckdb.execute(
            f"SELECT * FROM {literal(str(out / name / '*.parquet'))} ORDER BY ALL"
        ).fetchall()
        for name in names
    }
    assert found["findings"]
    return found


def absent(audited):
    """Which of the groups that were asked for there are not, which there are, and the verdict."""
    return audited.absent, audited.others, str(audited.verdict)


@pytest.mark.parametrize(
    ("asked", "missing"), [(("end", "nope"), ("nope",)), (("end",), ()), (("no",), ("no",))]
)
def test_a_group_that_is_in_no_log_is_named_with_those_that_are(folder, tmp_path, asked, missing):
    plan = AuditPlan(paths=(str(folder),), out=tmp_path, groups=asked)
    found = audit_run.run_audit(plan)
    assert found.absent == missing
    assert ({"end", "orders"} <= set(found.others)) is bool(missing)
    assert missing == () or found.verdict != "conformant"


@pytest.mark.nightly
def test_spark_names_the_same_groups(spark, folder, tmp_path):
    for asked in (("end", "nope"), ("nope",)):
        plan = AuditPlan(paths=(str(folder),), out=tmp_path / str(len(asked)), groups=asked)
        there = audit_run.run_audit(plan)
        on_spark = audit_run.run_audit(replace(plan, out=tmp_path / f"s{len(asked)}", master="local[2]"))
        assert absent(on_spark) == absent(there)
        assert absent(there)[:1] == (("nope",),)


@pytest.mark.slow
def test_one_process_and_spark_find_the_same(spark, folder, tmp_path, monkeypatch):
    """Also where Spark parses, and the largest groups are parted."""
    from rebalance_verifier.pipeline.audit import texts

    monkeypatch.setattr(texts, "SMALL", 1000)
    monkeypatch.setattr(spread, "BUCKET", 1500)
    monkeypatch.setattr(spread, "WHOLE", 36)

    def audited(driver, name):
        plan = AuditPlan(paths=(str(folder),), out=tmp_path / name)
        monkeypatch.setattr(audit_run, "engine", lambda plan: driver(plan))
        return audit_run.run_audit(plan)

    one, many = audited(alone.Alone, "one"), audited(spread.OnSpark, "many")
    assert (one.failed, many.failed) == ("", "")
    assert tables(tmp_path / "many") == tables(tmp_path / "one")
    for name in (
        "events",
        "files",
        "malformed",
        "sources",
        "tallies",
        "broken",
        "groups",
        "findings",
        "verdict",
    ):
        assert getattr(many, name) == getattr(one, name), name
    for name in ("recordings", "worst", "pauses", "clocks", "notes", "clients", "until"):
        assert [str(part) for part in many_of(many, name)] == [str(part) for part in many_of(one, name)], name


@pytest.mark.slow
def test_spark_hands_to_tasks_what_they_cannot_open(spark, folder, tmp_path, monkeypatch):
    """A table of events at a URL, and tables written to one; the largest groups are parted."""
    monkeypatch.setattr(spread, "BUCKET", 1500)
    monkeypatch.setattr(spread, "WHOLE", 36)
    table = folder / "events.parquet"
    one = audit_run.run_audit(AuditPlan(paths=(str(table),), out=tmp_path / "one"))
    data = f"file://{tmp_path}/many"
    many = audit_run.run_audit(AuditPlan(paths=(f"file://{table}",), out=tmp_path / "out", data=data))
    assert (one.failed, many.failed) == ("", "")
    for name in ("findings", "tallies", "sources", "groups", "pauses", "clocks", "until"):
        assert getattr(many, name) == getattr(one, name), name
    assert len(tables(tmp_path / "many")["findings"]) == len(tables(tmp_path / "one")["findings"])
    assert [each.events for each in many.recordings] == [each.events for each in one.recordings]


def many_of(found, name):
    part = getattr(found, name)
    if name == "recordings":  # where the tables are is another
        return [(each.finding, each.events) for each in part]
    return part if isinstance(part, tuple) else [part]
