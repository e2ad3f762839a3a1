"""Every command that plays real code has every format: its result as cases, and those as files and a page."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from rebalance_verifier.base.verdict import Exit
from rebalance_verifier.explore.groups.scenarios import SCENARIOS, ScenarioSize
from rebalance_verifier.gate.search.result import Status
from rebalance_verifier.live.clients.record.judge import CheckFinding
from rebalance_verifier.live.clients.record.record import Recorded
from rebalance_verifier.live.clients.record.request import Request, clients
from rebalance_verifier.live.code.lockstep.classic import Agreement, Disagreement
from rebalance_verifier.live.code.lockstep.walks import LockstepPlan, LockstepResult
from rebalance_verifier.live.code.replay.group import CodeReleases
from rebalance_verifier.live.code.search.findings import CodeFinding, Searched
from rebalance_verifier.live.code.search.run import BROKEN, CodeBreach
from rebalance_verifier.live.code.search.walks import CodeSearchPlan, CodeSearchResult
from rebalance_verifier.model.bugs.releases import NEWEST
from rebalance_verifier.model.machine import Event, StepOwner
from rebalance_verifier.model.steps import Step
from rebalance_verifier.report.ci import code_reports, junit, markdown, pages, sarif
from rebalance_verifier.report.ci.cases import CiReport
from rebalance_verifier.report.terminal import code_search

from tests.traces.published import hold

NOW = CodeReleases(coordinator=NEWEST, consumers=(NEWEST,))
SETUP = SCENARIOS["dynamic"].setup(ScenarioSize(members=2, partitions=2))
EVENTS = (Event("start", 0), Event("join", 0))
HOSTILE = "A <script>alert(1)</script> \x1b[31m"


def in_step(sentence: str = "A is: the model has UNJOINED, Kafka STABLE") -> CiReport:
    plan = LockstepPlan(setup=SETUP, releases=NOW, walks=2)
    other = Disagreement(events=EVENTS, sentences=(sentence,))
    seen = Agreement(walks=2, steps=9)
    found = LockstepResult(plan=plan, agreement=seen, disagreement=other, seen_again=True)
    return code_reports.in_step(found, "dynamic")


def searched(sentence: str = "t-0 is owned by A and by B", steps: tuple[Step, ...] = ()) -> CiReport:
    plan = CodeSearchPlan(setup=SETUP, releases=NOW)
    broken = (("group/owner", sentence), ("group/owner", f"twice: {sentence}"), (BROKEN, sentence))
    several = [
        CodeFinding(breach=CodeBreach(clause, how), events=EVENTS, steps=steps) for clause, how in broken
    ]
    found = CodeSearchResult(plan=plan, searched=Searched(runs=3, steps=9), findings=several)
    return code_reports.searched(found, "explore", "dynamic", {several[0].cause: "runs/1.json"})


def recorded(sentence: str = "A and B own it") -> CiReport:
    request = Request(cluster="mock", clients=clients("confluent:2"), scenario="scale-out")
    finding = CheckFinding(
        check="owned-twice", began="2026-01-01T00:00:00.000000Z", consumers=("A",), detail=sentence
    )
    return code_reports.recorded(Recorded(request=request, out=Path(), findings=[finding]))


MADE: tuple[Callable[..., CiReport], ...] = (in_step, searched, recorded)


@pytest.mark.parametrize("made", MADE)
def test_what_is_broken_is_in_every_format(made: Callable[..., CiReport]) -> None:
    report = made()
    (first, *_) = report.failing
    assert (report.verdict.value, report.exit) == ("violation", Exit.VIOLATION)
    suite = ET.fromstring(junit.render(report))
    failures = [case.get("name") for case in suite.iter("testcase") if case.find("failure") is not None]
    assert failures == [case.id for case in report.failing]
    results = json.loads(sarif.render(report))["runs"][0]["results"]
    assert {one["ruleId"] for one in results} >= {first.rule.id}
    assert f"Violation {first.rule.id}" in markdown.render(report)
    page = pages.render(report, "This page shows what was played.")
    assert f"<h3 id=f-{first.id.replace('/', '-')}>" in page.replace('"', "")
    assert report.headline.split("  ")[0] in page


@pytest.mark.parametrize("made", MADE)
def test_what_a_client_says_is_no_markup(made: Callable[..., CiReport]) -> None:
    report = made(HOSTILE)
    page = pages.render(report, "")
    assert "<script>alert" not in page
    assert "\x1b" not in page + junit.render(report) + markdown.render(report)


def test_a_run_that_was_found_has_its_steps_and_its_command() -> None:
    page = pages.render(searched(), "")
    assert "1 A start" in page
    assert "rebalance show runs/1.json" in page
    assert "code/throws" in page, "what is no clause has a name all the same"
    assert "<svg" not in page, "of no kept steps there is no picture"


def test_a_run_whose_steps_are_kept_is_drawn() -> None:
    owners = tuple(StepOwner(name, "", 1, ("t-0",)) for name in "AB")
    steps = tuple(
        Step(number=at, event=event, fault=False, what=str(event), seen=(), owners=owners)
        for at, event in enumerate(EVENTS, 1)
    )
    report = searched(steps=steps)
    page = pages.render(report, "")
    names = re.findall(r'\bid="?([^"\s>]+)', page)
    assert page.count("<svg") == 2
    assert [name for name in names if not re.fullmatch(r"[\w-]+", name)] == [], "styles name them"
    assert len(names) == len(set(names))
    assert "```mermaid" in markdown.render(report)


def test_the_shortest_run_out_of_step_is_shown() -> None:
    assert "  2 A join\n    A is: the model has UNJOINED" in markdown.render(in_step())


def test_what_was_not_judged_is_no_pass() -> None:
    plan = CodeSearchPlan(setup=SETUP, releases=NOW)
    found = CodeSearchResult(plan=plan, stopped="time limit")
    for stopped, status in (("time limit", Status.UNTESTED), ("", Status.PASSED)):
        report = code_reports.searched(replace(found, stopped=stopped), "explore", "dynamic", {})
        assert {case.status for case in report.cases} == {status}
    walked = LockstepResult(plan=LockstepPlan(setup=SETUP, releases=NOW), stopped="a worker was killed")
    (case,) = code_reports.in_step(walked, "dynamic").cases
    assert (case.status, case.note) == (Status.UNTESTED, "a worker was killed")
    unsupported = Recorded(
        request=Request(cluster="mock", clients=(), scenario="x"), out=Path(), unsupported="no"
    )
    assert {case.status for case in code_reports.recorded(unsupported).cases} == {Status.UNTESTED}


@pytest.mark.parametrize(
    ("scenario", "clients"),
    [
        ("dynamic", [{"classic": "code"}, {"classic": "code"}]),
        ("consumer", [{"consumer": "model"}, {"consumer": "model"}]),
        ("migration", [{"consumer": "model"}, {"classic": "code"}]),
        ("migration-static", [{"consumer": "model", "classic": "code"}] * 2),
    ],
)
def test_json_says_which_clients_are_the_models(scenario: str, clients: list[dict[str, str]]) -> None:
    setup = SCENARIOS[scenario].setup(ScenarioSize(members=2, partitions=2))
    releases = CodeReleases(coordinator=NEWEST, consumers=(NEWEST, "4.0.0"))
    document = code_search.data(CodeSearchResult(plan=CodeSearchPlan(setup=setup, releases=releases)), {})
    hold("code-search", document)
    assert [(one["member"], one["release"]) for one in document["members"]] == [("A", NEWEST), ("B", "4.0.0")]
    assert [one["clients"] for one in document["members"]] == clients
