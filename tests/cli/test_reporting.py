"""Reports as files: one that goes wrong costs neither the others nor the verdict."""

from __future__ import annotations

from rebalance_verifier.cli.shared import reports
from rebalance_verifier.report.ci import ci_reports

from tests.report.test_audit_report import audited, finding


def refuse():
    raise ValueError("not this page")


def test_a_report_that_cannot_be_made_or_written_costs_no_other(tmp_path, capsys):
    report = ci_reports.audited(audited(finding()))
    (tmp_path / "junit.xml").mkdir()
    own = {"html": refuse, "json": lambda: "{}\n"}
    reports.write(tmp_path, ("html", "junit", "text", "json", "markdown"), report, own)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["junit.xml", "report.json", "report.md"]
    assert (tmp_path / "report.json").read_text() == "{}\n"
    err = capsys.readouterr().err
    assert "report.html cannot be made: ValueError('not this page'); this is a bug" in err
    assert "junit.xml cannot be written: " in err


def test_a_step_summary_that_cannot_be_written_costs_no_annotation(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path))
    reports.publish_to_github(ci_reports.audited(audited(finding())))
    printed = capsys.readouterr()
    assert printed.out.startswith("::error ")
    assert "the step summary cannot be written: " in printed.err
