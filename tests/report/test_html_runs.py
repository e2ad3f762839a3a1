"""The HTML reports of explorations and proofs, and the files that the commands leave."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from rebalance_verifier.explore.groups.exploration import (
    ExplorationPlan,
    ExplorationViolation,
    Explored,
    run_exploration,
)
from rebalance_verifier.explore.groups.scenarios import SCENARIOS, ScenarioSize
from rebalance_verifier.model.protocols import machine
from rebalance_verifier.model.steps import steps
from rebalance_verifier.report.html import exploration
from rebalance_verifier.report.html import proof as html_proof
from rebalance_verifier.specs import proving
from rebalance_verifier.specs.classic.contract import SAFETY
from rebalance_verifier.specs.logic.theorems import theorems
from rebalance_verifier.traces.runs import run_id

from tests.command import Rebalance
from tests.report.pages import HOSTILE, Page, long_run, sound, stepped
from tests.specs.logic.test_prover import locks

CHECK = ("check", "roundrobin", "--profile", "smoke", "--clause", "assign/1")
EXPLORE = ("explore", "dynamic", "--members", 1, "--partitions", 1, "--faults", "crash")


def explored(*switches: str, partitions: int = 2) -> Explored:
    """A group of two without faults."""
    size = ScenarioSize(members=2, partitions=partitions, faults=(), budget=0, switches=switches)
    setup = SCENARIOS["dynamic"].setup(size)
    origin = {"scenario": "dynamic", "members": 2, "profiles": ["as-specified"], "budget": 0}
    return run_exploration(ExplorationPlan(setup=setup, origin=origin))


@pytest.fixture(scope="module")
def broken() -> Explored:
    """One that breaks a clause; what breaks besides has a run of its own, and is left out."""
    found = explored("no_withhold")
    (one,) = (violation for violation in found.violations if violation.clause == "leader/withhold")
    return replace(found, violations=(one,))


def test_an_exploration_tells_each_step_with_what_it_changed(broken: Explored) -> None:
    violation, *_ = broken.violations
    run = violation.runs[0]
    seen = sound(exploration.render(broken, {run_id(run): "failures/x.json"}))
    assert "VIOLATION" in seen.text
    for expected in (violation.clause, run.sentence, f"rebalance replay {run_id(run)}", "failures/x.json"):
        assert expected in seen.text
    for step in steps(machine(run.setup), run.events):
        assert step.what in seen.text
    assert len(seen.all("svg")) == 1
    assert f"{broken.coverage.distinct:,} distinct" in seen.text
    rows = [cell for cell in seen.texts if cell.startswith("A: owns")]
    assert len(rows) == len(set(rows)) < len(run.events)


def test_a_run_in_a_page_can_be_stepped_through(broken: Explored) -> None:
    """Every step with what it changes, and where all of it is: who is told of last is as the model has it."""
    run = broken.violations[0].runs[0]
    (rows,) = stepped(exploration.render(broken, {}))
    assert [row[1] for row in rows[1:]] == [step.what for step in steps(machine(run.setup), run.events)]
    assert list(rows[0][4]) == ["coordinator", "A", "B"]
    parties: dict[str, str] = {}
    for row in rows:
        parties.update(row[4])
    built = machine(run.setup)
    *_, (state, _) = built.replay(run.events)
    assert parties == dict(built.describe.parties(state))
    assert "A claims" in parties["coordinator"]
    assert "owns t-0" in parties["A"]


def test_an_exploration_that_finds_nothing_says_what_it_saw() -> None:
    found = explored()
    seen = sound(exploration.render(found, {}))
    assert "CONFORMANT" in seen.text
    assert "What is broken" not in seen.text
    assert "every fair run settles once faults stop" in seen.text
    assert f"States by depth: {len(found.search.levels)} levels" in seen.text if found.search else False


def test_a_run_that_never_ends_says_where_it_goes_on() -> None:
    found = explored("leave_on_empty_assignment", partitions=1)
    assert "nothing else ever happens" in sound(exploration.render(found, {})).text
    violation = found.violations[0]
    again = replace(violation, runs=(replace(violation.runs[0], loop=5),))
    seen = sound(exploration.render(replace(found, violations=(again,)), {}))
    assert "from here again and again" in seen.text
    assert "back to where step 5 led" in seen.text


@pytest.mark.slow
def test_of_a_long_run_the_first_and_last_steps_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    run = long_run(1_000)
    violation = ExplorationViolation(clause=run.clause, sentence="", runs=(run,), shortest=True)
    found = replace(explored(), violations=(violation,))
    written = exploration.render(found, {})
    assert "steps 181 to 980 are left out here" in sound(written).text
    assert len(stepped(written)[0]) == 1_001
    monkeypatch.setattr(exploration, "MAX_PLAYED", 500)
    assert "steps 201 to 1,000 are left out here" in sound(exploration.render(found, {})).text


def proof(**how: bool) -> proving.Proof:
    """Of a toy in place of the protocol."""
    plan = proving.ProofPlan(
        theorems=theorems(locks(**how))[:3],
        contract=("once",),
        without=("newest_claim",),
        clauses=proving.clauses(SAFETY, {}),
    )
    return proving.run_proof(plan)


def test_a_proof_names_every_obligation_with_its_time() -> None:
    found = proof()
    seen = sound(html_proof.render(found))
    assert "not checked against the model; " in seen.text
    for theorem in found.plan.theorems:
        assert theorem.sentence in seen.text
    for outcome in found.outcomes:
        assert outcome.goal in seen.text
    assert seen.text.count("✓ proved") == len(found.outcomes) + len(found.plan.theorems)
    assert "✗ not assumed here" in seen.text
    times = [cell for cell in seen.texts if re.fullmatch(r"\d+\.\d\d s", cell)]
    assert len(times) == len(found.outcomes) + min(len(found.outcomes), html_proof.SLOWEST)


@pytest.mark.slow
def test_a_proof_that_fails_shows_the_group_or_the_reason() -> None:
    seen = sound(html_proof.render(proof(guarded=False)))
    assert "✗ refuted" in seen.text
    assert "take(c=client 0, l=lock 0)" in seen.text
    assert "depends on invariants" in seen.text
    plan = proving.ProofPlan(theorems=theorems(locks())[:3], contract=("once",), limit=1)
    seen = sound(html_proof.render(proving.run_proof(plan)))
    assert "Neither proved nor refuted within 1 units of the solver" in seen.text


def test_what_a_group_is_called_stays_text(broken: Explored) -> None:
    found = replace(broken, plan=replace(broken.plan, origin={"scenario": HOSTILE[0], "members": HOSTILE[1]}))
    assert HOSTILE[0] in sound(exploration.render(found, {})).text


# --- the commands -----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_check_leaves_a_page_and_says_where(rebalance: Rebalance) -> None:
    ran = rebalance(*CHECK)
    assert "\n  report   .rebalance/latest/report.html\n" in ran.out
    latest = Path(".rebalance/latest")
    assert sorted(path.name for path in latest.iterdir()) == ["report.html", "report.txt"]
    assert "roundrobin" in Page((latest / "report.html").read_text()).text


def test_text_alone_writes_nothing(rebalance: Rebalance) -> None:
    assert "report.html" not in rebalance(*CHECK, "--report", "text").out
    assert not Path(".rebalance").exists()


def test_a_page_that_nobody_asked_for_does_not_cost_the_verdict(rebalance: Rebalance) -> None:
    Path(".rebalance").write_text("in the way")
    ran = rebalance(*CHECK)
    assert ran.code == 0
    assert "no report is written" in ran.err
    assert rebalance(*CHECK, "--report", "html").code == 2


@pytest.mark.nightly
def test_an_exploration_and_a_proof_leave_a_page_too(
    rebalance: Rebalance, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rebalance_verifier.specs.classic import proof as module
    from rebalance_verifier.specs.classic.necessity import vacuity

    monkeypatch.setattr(module, "proof", lambda contract: theorems(locks())[:3])
    monkeypatch.setattr(vacuity, "checks", lambda spec, contract: ())
    for argv, name in (
        (EXPLORE, "dynamic (as specified) satisfies"),
        (("prove", "--jobs", 1, "--model-steps", 100), "for groups of any size"),
    ):
        ran = rebalance(*argv)
        assert "\n  report   .rebalance/latest/report.html\n" in ran.out
        assert ran.err == ""
        assert name in sound(Path(".rebalance/latest/report.html").read_text()).text
    before = sorted(Path(".rebalance").iterdir())
    assert rebalance(*EXPLORE, "--format", "json").out.startswith("{")
    assert sorted(Path(".rebalance").iterdir()) == before
    assert rebalance(*EXPLORE, "--report-dir", "out").code == 0
    assert Path("out/report.html").exists()
