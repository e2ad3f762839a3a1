"""Reports as files: one that goes wrong costs neither the others nor the verdict."""

from __future__ import annotations

from argparse import Namespace

from rebalance.gate import reporting
from rebalance.gate.report import cases_of

from tests.gate.test_audit_report import audited, finding


def refuse():
    raise ValueError("not this page")


def test_a_report_that_cannot_be_made_or_written_costs_no_other(tmp_path, capsys):
    report = cases_of.audited(audited(finding()))
    (tmp_path / "junit.xml").mkdir()
    own = {"html": ("report.html", refuse), "json": ("report.json", lambda: "{}\n")}
    reporting.write(tmp_path, ("html", "junit", "text", "json", "badge"), report, own)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["badge.json", "junit.xml", "report.json"]
    assert (tmp_path / "report.json").read_text() == "{}\n"
    said = capsys.readouterr().err
    assert "report.html cannot be made: ValueError('not this page'); this is a bug" in said
    assert "junit.xml cannot be written: " in said


def test_a_step_summary_that_cannot_be_written_costs_no_annotation(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path))
    reporting.tell_ci(cases_of.audited(audited(finding())), Namespace(ci="github"))
    told = capsys.readouterr()
    assert told.out.startswith("::error ")
    assert "the step summary cannot be written: " in told.err
