"""What ``--ci github`` prints and appends, for every command that has it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rebalance_verifier.base.verdict import Exit, Level, Verdict
from rebalance_verifier.gate.search.result import Status
from rebalance_verifier.gate.targets.hosts.source_location import SourceLocation
from rebalance_verifier.report.ci import ci_reports, github, markdown
from rebalance_verifier.report.ci.cases import CiCase, CiReport, CiRule, Evidence

from tests.report.handmade import BROKEN_GROUP, violated

SAFE = CiRule(id="owned-twice", level=Level.SAFETY, sentence="nothing is owned twice", source="KIP-429")
MINE = """
from rebalance_verifier.model.assignors import reference


class Mine:
    name, protocols, promises = "mine", ("eager",), ()

    def assign(self, cluster, group):
        return {member: () for member in group}
"""


def report(*cases: CiCase, **fields: Any) -> CiReport:
    values: dict[str, Any] = {"verdict": Verdict.VIOLATION, "exit": Exit.VIOLATION, "cases": cases}
    return CiReport(
        command="audit", subject="logs", suite_version="0.1.0", headline="VIOLATION  logs", **values | fields
    )


def seen(number: int, **fields: Any) -> Evidence:
    return Evidence(
        message=f"finding {number}", source_location=SourceLocation("logs/a.log", number), **fields
    )


def test_an_annotation_points_at_the_source_of_the_target():
    report = replace(ci_reports.result(violated()), source_location=SourceLocation("my, assignor.py", 12))
    (command,) = github.commands(report)
    assert command.startswith(
        "::error file=my%2C assignor.py,line=12,title=kip429/leader/4 (safety%2C cooper"
    )


def test_an_annotation_for_every_place_of_a_log_as_far_as_github_shows_them(expected):
    found = report(CiCase(rule=SAFE, status=Status.VIOLATED, evidence=tuple(seen(n) for n in range(1, 26))))
    commands = github.commands(found)
    assert len(commands) == github.MAX_ANNOTATIONS
    assert commands[0].startswith(
        "::error file=logs/a.log,line=1,title=owned-twice (safety)::finding 1%0Arule: "
    )
    expected(commands[-1])


def test_one_annotation_where_no_trace_has_a_place():
    found = report(
        CiCase(
            rule=SAFE,
            status=Status.VIOLATED,
            evidence=(Evidence(message="first"), Evidence(message="second")),
        )
    )
    (command,) = github.commands(found)
    assert "first" in command
    assert "second" not in command


def test_nothing_is_said_of_what_passed():
    assert github.commands(report(CiCase(rule=SAFE, status=Status.PASSED), verdict=Verdict.CONFORMANT)) == []


def test_a_section_shows_the_first_findings_and_counts_the_others():
    shown = markdown.render(
        report(CiCase(rule=SAFE, status=Status.VIOLATED, evidence=tuple(seen(n) for n in range(1, 26))))
    )
    assert shown.count("\nfinding ") == markdown.MAX_EVIDENCE
    assert "and 20 more" in shown
    assert "- in `logs/a.log:5`" in shown
    assert "| owned-twice | safety | finding 1 (and 24 more) |" in shown


# --- the commands ---------------------------------------------------------------------------------


@pytest.fixture
def summary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(path))
    return path


@pytest.mark.slow
def test_check(rebalance, tmp_path, summary):
    (tmp_path / "mine.py").write_text(MINE)
    ran = rebalance(
        "check", "mine:Mine", "--profile", "smoke", "--clause", "kip429/leader/5", "--ci", "github"
    )
    assert ran.code == 1
    (line,) = [line for line in ran.out.splitlines() if line.startswith("::error")]
    assert line.startswith("::error file=mine.py,line=5,title=kip429/leader/5 (liveness%2C eager)::")
    shown = summary.read_text(encoding="utf-8")
    assert shown.startswith("## ❌ VIOLATION")
    trace = re.search(r"rebalance replay ([0-9a-f]{8})", shown)
    assert trace
    assert f"{trace[1]}.json" in shown


@pytest.mark.slow
def test_explore_with_every_format(rebalance, tmp_path, summary):
    ran = rebalance(
        *BROKEN_GROUP, "--report", "json,junit,sarif,markdown", "--report-dir", "out", "--ci", "github"
    )
    assert ran.code == 1
    assert {path.name for path in (tmp_path / "out").iterdir()} >= {
        "report.json", "junit.xml", "report.sarif", "report.md",
    }  # fmt: skip
    (line,) = [line for line in ran.out.splitlines() if line.startswith("::error")]
    assert "group/owner" in line
    assert "group/owner" in summary.read_text(encoding="utf-8")
    assert summary.read_text(encoding="utf-8") == (tmp_path / "out/report.md").read_text(encoding="utf-8")
    (run,) = json.loads((tmp_path / "out/report.sarif").read_text())["runs"]
    (one,) = run["results"]
    assert one["partialFingerprints"]["trace/v1"] in ran.out
    assert any(
        " owned" in step["location"]["message"]["text"]
        for step in one["codeFlows"][0]["threadFlows"][0]["locations"]
    )


def test_explore_passes_only_what_was_searched_to_the_end(rebalance, tmp_path):
    argv = (
        "explore",
        "dynamic",
        "--members",
        "2",
        "--partitions",
        "1",
        "--report",
        "junit",
        "--report-dir",
        "out",
    )
    assert rebalance(*argv, "--depth", "3").code == 3
    text = (tmp_path / "out/junit.xml").read_text()
    assert 'errors="1"' in text
    assert text.count("<skipped") == text.count("<testcase") - 1


@pytest.mark.parametrize("command", [("explore", "dynamic"), ("audit", "logs")])
def test_two_things_on_stdout_are_refused(rebalance, command):
    ran = rebalance(*command, "--ci", "github", "--format", "json")
    assert (ran.code, "--report json for a file" in ran.err) == (2, True)


@pytest.mark.parametrize("command", [("explore", "dynamic"), ("audit", "logs"), ("check",)])
def test_an_unknown_format_is_named(rebalance, command):
    ran = rebalance(*command, "--report", "json,pdf")
    assert ran.code == 2
    assert "no format is called 'pdf': there are " in ran.err
    assert "sarif" in ran.err
