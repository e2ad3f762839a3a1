"""Explorations, audits, proofs and upgrades as cases: what passes, fails or was not decided, and no format
of a CI system says otherwise than the exit code."""

from __future__ import annotations

import json
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest
from rebalance_verifier.base.verdict import Exit
from rebalance_verifier.cli.shared.reports import CI_WRITERS
from rebalance_verifier.gate.search.result import Status
from rebalance_verifier.pipeline.audit.records import Recording
from rebalance_verifier.report.ci import ci_reports, github, junit, sarif
from rebalance_verifier.traces import recordings

from tests.cli.test_prove_cli import toy
from tests.report.test_audit_report import HOSTILE, audited, finding

__all__ = ["toy"]

SOME = audited(finding(), finding(1, "stranded"), finding(2, certain=False), finding(3, "long-pause"))
AUDITS = [
    audited(),
    SOME,
    audited(finding(), level="safety"),
    audited(finding(certain=False)),
    audited(finding(0, "long-pause"), level="quality"),
    audited(events=0, groups=0),
    audited(stage="checking", failed="disk full"),
    audited(stage="checking", interrupted=True),
    audited(finding(), stage="saving traces", interrupted=True),
    audited(replace(finding(), group=HOSTILE, topic=HOSTILE, sentence=HOSTILE)),
]


def agree(report, published):
    """The formats among themselves and with the exit code."""
    suite = ET.fromstring(junit.render(report))[0]
    assert (int(suite.get("failures", "")) + int(suite.get("errors", "")) > 0) == (report.exit != 0)
    log = sarif.to_json(report)
    published.validate(log)
    (run,) = log["runs"]
    assert run["invocations"][0]["exitCode"] == report.exit
    failing = {one["ruleId"] for one in run["results"] if one["level"] == "error"}
    assert failing == {case.rule.id for case in report.failing}
    commands = github.commands(report)
    assert any(line.startswith("::error") for line in commands) == bool(report.failing)
    assert report.exit == Exit.CONFORMANT or commands
    assert all(line.isprintable() for line in commands)
    assert CI_WRITERS["markdown"](report).count("<details>") == len(
        [*report.failing, *report.informing, *report.showing]
    )


def kept(monkeypatch, name):
    """The reports that a function of ``ci_reports`` makes from now on."""
    made, real = [], getattr(ci_reports, name)

    def keep(*given):
        made.append(real(*given))
        return made[-1]

    monkeypatch.setattr(ci_reports, name, keep)
    return made


# --- audits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("found", AUDITS)
def test_an_audit_says_the_same_in_every_format(found, published):
    agree(ci_reports.audited(found), published)


def test_a_case_a_check_and_a_result_a_finding():
    report = ci_reports.audited(SOME)
    by_name = {case.id: case for case in report.cases}
    assert len(by_name) == len(report.cases) == 8
    assert by_name["owned-twice"].fails
    assert [one.certain for one in by_name["owned-twice"].evidence] == [True, False]
    assert (by_name["long-pause"].status, by_name["long-pause"].gates) == (Status.VIOLATED, False)
    assert by_name["never-settles"].status is Status.PASSED
    results = sarif.to_json(report)["runs"][0]["results"]
    levels = {(one["ruleId"], one["level"]) for one in results}
    assert levels == {
        ("owned-twice", "error"),
        ("owned-twice", "warning"),
        ("stranded", "error"),
        ("long-pause", "note"),
    }


def test_a_result_points_at_the_line_of_the_log():
    (one, *_) = sarif.to_json(ci_reports.audited(SOME))["runs"][0]["results"]
    assert one["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "orders-1.log"}, "region": {"startLine": 7},
    }  # fmt: skip
    (command, *_) = github.commands(ci_reports.audited(SOME))
    assert command.startswith(
        "::error file=orders-1.log,line=7,title=owned-twice (safety)::orders-1 of group"
    )


def test_a_finding_with_a_trace_is_told_step_by_step(tmp_path):
    one = finding()
    events = tuple(replace(event, topic="orders", partition=1) for event in one.places)
    path = recordings.save(Recording(finding=one, rule="rule", source="source", events=events), tmp_path)
    report = ci_reports.audited(audited(one, traces={one.id: str(path)}))
    (result,) = sarif.to_json(report)["runs"][0]["results"]
    (flow,) = result["codeFlows"]
    assert flow["threadFlows"][0]["id"] == "group"
    assert result["properties"]["replay"] == f"rebalance show {path}"


@pytest.mark.parametrize("found", [audited(events=0), audited(stage="checking", failed="disk full")])
def test_nothing_passes_in_an_audit_that_did_not_judge(found):
    assert {case.status for case in ci_reports.audited(found).cases} == {Status.UNTESTED}


# --- proofs ---------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "argv", "code"),
    [({}, (), 0), ({"guarded": False}, (), 1), ({}, ("--solver-units", "1"), 3)],
)
def test_a_proof_says_the_same_in_every_format(
    rebalance, toy, published, tmp_path, monkeypatch, how, argv, code
):
    reports = kept(monkeypatch, "proved")
    toy(**how)
    ran = rebalance(
        "prove",
        "--jobs",
        1,
        "--report",
        "json,junit,sarif",
        "--report-dir",
        "out",
        "--ci",
        "github",
        *argv,
    )
    (report,) = reports
    assert ran.code == report.exit == code
    agree(report, published)
    assert (tmp_path / "out/junit.xml").read_text() == junit.render(report)
    names = {case.id for case in report.cases if case.status is Status.PASSED}
    assert (len(names) == len(report.cases)) == (ran.code == 0)


# --- upgrades and explorations --------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("argv", "statuses"),
    [
        (("--path", "single-bounce"), {Status.VIOLATED}),
        (("--path", "double-bounce", "--states", "50"), {Status.UNTESTED}),
        pytest.param((), {Status.PASSED, Status.VIOLATED}, marks=pytest.mark.slow),
    ],
)
def test_an_upgrade_says_the_same_in_every_format(
    rebalance, published, tmp_path, monkeypatch, argv, statuses
):
    reports = kept(monkeypatch, "upgraded")
    ran = rebalance(
        "upgrade", "--from", "range", "--to", "sticky", *argv, "--report", "json", "--report-dir", "out"
    )
    (report,) = reports
    assert ran.code == report.exit
    assert {case.status for case in report.cases} == statuses
    agree(report, published)
    assert json.loads((tmp_path / "out/report.json").read_text())["from"] == "range"


@pytest.mark.covering("code")
@pytest.mark.parametrize(
    ("argv", "code"),
    [
        (("--depth", "3"), 3),
        (("--swarm", "--walks", "3", "--depth", "20"), 3),
        pytest.param(("--no-liveness",), 0, marks=pytest.mark.slow),
        pytest.param(("--switch", "prepare_not_repeated_after_reset"), 1, marks=pytest.mark.slow),
    ],
)
def test_an_exploration_says_the_same_in_every_format(rebalance, published, monkeypatch, argv, code):
    reports = kept(monkeypatch, "explored")
    ran = rebalance("explore", "dynamic", "--members", 2, "--partitions", 1, *argv, "--report", "json")
    (report,) = reports
    assert ran.code == report.exit == code
    agree(report, published)
    passed = [case for case in report.cases if case.status is Status.PASSED]
    assert bool(passed) == (code == 0)
