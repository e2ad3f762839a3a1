"""``rebalance prove``: verdicts, what is shown of them, options, files, errors of use."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from argparse import Namespace
from dataclasses import replace
from pathlib import Path

import pytest
from rebalance_verifier.base.verdict import Verdict
from rebalance_verifier.cli.commands.prove import model_samples
from rebalance_verifier.cli.shared.reports import Reports
from rebalance_verifier.model.classic import callbacks, errors, member
from rebalance_verifier.model.classic.state import (
    Member,
    Metadata,
)
from rebalance_verifier.model.group.parts import NOTHING
from rebalance_verifier.model.group.setup import ConsumerConfig
from rebalance_verifier.specs import proving
from rebalance_verifier.specs.classic.necessity.vacuity import Vacuity, VacuityCheck, VacuityFinding, examined
from rebalance_verifier.specs.classic.necessity.witnesses import NEVER
from rebalance_verifier.specs.classic.proof import proof
from rebalance_verifier.specs.classic.refinement.sampling import ModelSample, shares
from rebalance_verifier.specs.classic.safety import specification
from rebalance_verifier.specs.logic import prover
from rebalance_verifier.specs.logic.prover import ProofOutcome, ProofVerdict
from rebalance_verifier.specs.logic.specification import Theorem
from rebalance_verifier.specs.proving import Proof, ProofPlan

from tests.command import command
from tests.processes import worked
from tests.specs.logic.test_prover import locks
from tests.test_layers import FLOORS, TOP
from tests.tiers import tiered

ROOT = Path(__file__).parents[2]


@pytest.fixture
def toy(monkeypatch):
    """The command on a toy in place of the protocol."""
    from rebalance_verifier.cli.commands import prove
    from rebalance_verifier.specs.classic import proof as module
    from rebalance_verifier.specs.classic.necessity import vacuity
    from rebalance_verifier.specs.logic.theorems import theorems

    def put(checks=(), samples=(), held: bool | None = True, **how):
        if held is not None:  # the samples are not what is looked at
            monkeypatch.setattr(Proof, "held_against_model", held)
        monkeypatch.setattr(module, "proof", lambda contract: theorems(locks(**how))[:3])
        monkeypatch.setattr(prove, "model_samples", lambda steps, seed, protocol: samples)
        monkeypatch.setattr(vacuity, "checks", lambda spec, contract: checks)

    return put


@pytest.mark.slow
def test_the_verdict_comes_first_and_last(rebalance, toy, expected):
    toy()
    ran = rebalance("prove", "--jobs", 1)
    assert (ran.code, ran.err) == (0, "")
    expected(ran.out)
    expected(rebalance("prove", "-v").out, "verbose")


@pytest.mark.slow
def test_a_refuted_obligation_is_shown_as_a_group(rebalance, toy, expected):
    toy(guarded=False)
    ran = rebalance("prove", "--jobs", 2)
    assert ran.code == 1
    expected(ran.out)
    assert max(map(len, ran.out.splitlines())) <= 110


@pytest.mark.slow
def test_no_time_is_no_verdict(rebalance, toy, expected):
    toy()
    ran = rebalance("prove", "--solver-units", 1)
    assert ran.code == 3
    expected(ran.out)


def test_a_second_run_says_that_it_asked_nothing(rebalance, toy, tmp_path, monkeypatch):
    toy()
    monkeypatch.delenv("REBALANCE_NO_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    first, second = rebalance("prove", "--jobs", 1), rebalance("prove", "--jobs", 1)
    [line] = [line for line in second.out.splitlines() if line.startswith("  cached")]
    assert re.match(r"  cached   (\d+) of \1 answers are from the cache of \d{4}-\d\d-\d\d \d\d:\d\d,", line)
    assert (first.code, second.code) == (0, 0)
    assert "cached " not in first.out + rebalance("prove", "--no-cache", "--jobs", 1).out
    assert "cached " not in rebalance("prove", "--solver-units", 19_000_000, "--jobs", 1).out


def check(finding: VacuityFinding) -> VacuityCheck:
    """About two actions; of the second comes this."""
    rows = (Vacuity("action", "take", VacuityFinding.REACHED), Vacuity("action", "drop", finding, ("take",)))
    return VacuityCheck("action", ("take", "drop"), lambda: rows)


@pytest.mark.slow
def test_what_is_proved_is_about_something(rebalance, toy, expected):
    toy([check(VacuityFinding.REACHED)])
    ran = rebalance("prove")
    assert ran.code == 0
    expected(ran.out)
    rows = json.loads(rebalance("prove", "--format", "json").out)["vacuity"]
    assert rows[1] == {"kind": "action", "name": "drop", "finding": "reached", "because": ["take"]}


@pytest.mark.slow
@pytest.mark.parametrize("finding", [VacuityFinding.VACUOUS, VacuityFinding.UNKNOWN])
def test_what_may_be_about_nothing_is_not_proved(rebalance, toy, expected, finding):
    toy([check(finding)])
    ran = rebalance("prove")
    assert ran.code == 3
    expected(ran.out)
    assert finding.value in Path(".rebalance/latest/report.html").read_text()


def test_a_check_whose_process_died_says_nothing(toy):
    def losing(work, count):
        return ((number, None) for number in range(count))

    ((_, rows),) = examined([check(VacuityFinding.REACHED)], spread=losing)
    assert [(row.name, row.finding) for row in rows] == [
        ("take", VacuityFinding.UNKNOWN), ("drop", VacuityFinding.UNKNOWN)
    ]  # fmt: skip


@pytest.mark.slow
def test_as_json_the_same_in_any_number_of_processes(rebalance, toy):
    toy(guarded=False)
    documents = []
    for jobs in (1, 2):
        ran = rebalance("prove", "--format", "json", "--jobs", jobs)
        assert ran.code == 1
        documents.append(json.loads(ran.out))
        assert documents[-1].pop("speed")["seconds"] > 0
    assert documents[0] == documents[1]
    assert (documents[0]["verdict"], documents[0]["exit"]) == ("refuted", 1)
    (bad,) = [
        outcome
        for theorem in documents[0]["theorems"]
        for outcome in theorem["outcomes"]
        if outcome["verdict"] != "proved"
    ]
    assert (bad["kind"], bad["case"], bad["goal"], bad["verdict"]) == ("step", "take", "exclusive", "refuted")
    shown = bad["counterexample"]
    assert shown["parameters"] == {"c": "client 0", "l": "lock 0"}
    fact = {"symbol": "held", "of": ["client 0", "lock 0"], "value": True, "plain": False}
    assert fact in shown["after"]
    assert fact not in shown["before"]


@pytest.mark.slow
def test_every_counterexample_with_v(rebalance, toy, monkeypatch):
    outcomes = [(one,) for one in _outcomes(guarded=False) if one.case == "take"] * 2
    toy(guarded=False)
    monkeypatch.setattr(proving, "prove", lambda *_, **__: iter(outcomes))
    monkeypatch.setattr(proving, "arranged", lambda _, found: tuple(found))
    assert rebalance("prove").out.count("  group  ") == 1
    assert "-v shows the group" in rebalance("prove").out
    assert rebalance("prove", "-v").out.count("  group  ") == 2


def _outcomes(**how) -> list[ProofOutcome]:
    from rebalance_verifier.specs.logic.prover import prove
    from rebalance_verifier.specs.logic.theorems import theorems

    return [outcome for outcomes in prove(theorems(locks(**how))) for outcome in outcomes]


@pytest.mark.slow
def test_interrupted_it_tells_what_was_proved(rebalance, toy, monkeypatch, expected):
    toy()
    real = prover.prove

    def interrupted(*given, **options):
        case = real(*given, **options)
        yield next(case)
        yield next(case)
        raise KeyboardInterrupt

    monkeypatch.setattr(proving, "prove", interrupted)
    ran = rebalance("prove", "--jobs", 1)
    assert (ran.code, ran.err) == (130, "interrupted\n")
    expected(ran.out)
    assert ran.out.endswith("UNKNOWN, exit 130\n")


def test_wrong_usage(rebalance, toy):
    toy()
    names = "possibility, invariants, one or none"
    refused = f"rebalance: --theorem: no theorem is called 'fermat': there are {names}\n"
    assert rebalance("prove", "--theorem", "fermat") == (2, "", refused)
    ran = rebalance("prove", "--without", "twice")
    assert ran.code == 2
    assert "no clause is called 'twice': there are once, member_only, newest_claim, held_back" in ran.err
    Path("file").touch()
    assert rebalance("prove", "--smt2", "file").code == 2
    for wrong in (("--solver-units", "0"), ("--jobs", "0"), ("--format", "xml")):
        assert rebalance("prove", *wrong).code == 2


@pytest.mark.slow
def test_obligations_are_written_where_one_says(rebalance, toy):
    toy()
    assert rebalance("prove", "--theorem", "one-or-none", "--smt2", "a/b").code == 0
    files = ["invariants/init-exclusive.smt2", "invariants/step-drop-exclusive.smt2",
             "invariants/step-take-exclusive.smt2", "one-or-none/implies-one-or-none.smt2"]  # fmt: skip
    assert sorted(str(path.relative_to("a/b")) for path in Path("a/b").rglob("*.smt2")) == files


def test_the_list_is_of_every_obligation(rebalance, toy, expected):
    toy()
    ran = rebalance("list", "obligations", "one-or-none")
    assert ran.code == 0
    expected("\n".join(ran.out.splitlines()))
    listed = json.loads(rebalance("list", "obligations", "--format", "json").out)
    assert len(listed) == 8
    assert listed[-1] == {
        "theorem": "one or none", "kind": "implies", "case": "", "goal": "one or none",
    }  # fmt: skip


def test_a_theorem_is_worth_what_it_rests_upon(monkeypatch):
    monkeypatch.setattr(Proof, "held_against_model", True)
    spec = locks()
    base = Theorem(name="base", sentence="", source="", vocabulary=spec.vocabulary, cases=())
    top = Theorem(name="top", sentence="", source="", vocabulary=spec.vocabulary, cases=(), upon=("base",))
    outcomes = {}
    for verdict in ProofVerdict:
        found = ProofOutcome(
            theorem="base",
            kind="step",
            case="",
            goal="",
            verdict=verdict,
            units=0,
            seconds=0.0,
            hypotheses=0,
        )
        plan = ProofPlan(theorems=(base, top), contract=())
        result = Proof(plan=plan, outcomes=(found,), vacuity=(), seconds=0.0)
        outcomes[verdict] = result.judged(top), result.verdict, result.judgement
    assert outcomes == {
        ProofVerdict.PROVED: (ProofVerdict.PROVED, ProofVerdict.PROVED, Verdict.CONFORMANT),
        ProofVerdict.REFUTED: (ProofVerdict.UNKNOWN, ProofVerdict.REFUTED, Verdict.VIOLATION),
        ProofVerdict.UNKNOWN: (ProofVerdict.UNKNOWN, ProofVerdict.UNKNOWN, Verdict.INCONCLUSIVE),
    }


@pytest.mark.slow
def test_progress_on_a_terminal(rebalance, toy, monkeypatch, capfd):
    toy()
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr("rebalance_verifier.cli.console.progress.time.monotonic", iter(range(1000)).__next__)
    err = rebalance("prove", "--jobs", 1).err
    assert re.search(r"\r\x1b\[K\d+% of the proof, about \d+ s left", err)
    assert err.endswith("\r\x1b[K")
    assert rebalance("prove", "--jobs", 1, "--no-progress").err == ""


def test_progress_counts_what_costs():
    """Not obligations alike: the checks and the model are half of the work, and a twentieth of the pieces."""
    from rebalance_verifier.cli.commands import prove

    options = Namespace(
        group_protocol="classic",
        without=[],
        theorem=[],
        solver_units=1,
        model_steps=prove.MODEL_STEPS,
        seed=0,
        smt2=None,
    )
    plan = prove._plan(options)
    obligations = proving.workload(replace(plan, checks=(), samples=()))
    assert 0.3 < obligations / proving.workload(plan) < 0.7
    assert proving.workload(replace(plan, samples=())) - obligations > 10
    assert proving.workload(plan) - proving.workload(replace(plan, samples=())) == pytest.approx(20)


# -- the protocol --------------------------------------------------------------------------------------


@pytest.mark.nightly  # the same run as the README's, which tests/test_readme.py compares
def test_the_protocol_is_proved(rebalance):
    ran = rebalance("prove")
    among = proof()
    obligations = sum(theorem.obligations for theorem in among)
    assert ran.code == 0, ran.out
    title = f"PROVED  {len(among)} theorems, {obligations:,} obligations, for groups of any size"
    assert ran.out.splitlines()[0] == title
    assert len(re.findall(r"  proved  \d+\.\d s$", ran.out, re.M)) == len(among)
    actions, never = len(specification().actions), len(NEVER)
    counts = rf"^  action +{actions}  {actions - never} reached, {never} never possible$"
    assert re.search(counts, ran.out, re.M)


@pytest.mark.slow
def test_every_obligation_is_listed_and_the_page_has_their_number(rebalance):
    among = proof()
    obligations = sum(theorem.obligations for theorem in among)
    page = (Path(__file__).parents[2] / "docs" / "explanation" / "proof.md").read_text()
    assert f"PROVED  {len(among)} theorems, {obligations:,} obligations, for groups of any size\n" in page
    listed = rebalance("list", "obligations").out.splitlines()
    assert len(listed) == obligations + len(among)
    assert "  step lead: offered what nobody else has" in listed


@pytest.mark.slow
def test_ctrl_c_ends_the_workers_too(tmp_path):
    argv = command("prove", "--jobs", "2")
    process = subprocess.Popen(argv, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    worked(process.pid, 2)  # the workers, which have many times as much to do
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)  # which a worker would keep open
    assert process.returncode == 130, err
    assert "interrupted" in err
    assert not out or re.match(r"UNKNOWN  interrupted, [\d,]+ of [\d,]+ obligations proved\n", out)


def test_ctrl_c_after_the_verdict_changes_nothing(rebalance, toy, monkeypatch):
    def finish(*_, **__):
        signal.raise_signal(signal.SIGINT)

    toy()
    monkeypatch.setattr(Reports, "finish", finish)
    before = signal.getsignal(signal.SIGINT)
    ran = rebalance("prove", "--jobs", 1)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.endswith("PROVED, exit 0\n")
    assert signal.getsignal(signal.SIGINT) is before


# -- the model -----------------------------------------------------------------------------------------


def one_group(steps: int) -> tuple[ModelSample, ...]:
    """Of those that are sampled, the first; ``steps`` of it."""
    return shares(model_samples(1, 0)[:1], steps)


@pytest.mark.slow
def test_the_steps_of_the_model_are_counted(rebalance, toy, expected):
    toy(samples=one_group(100))
    ran = rebalance("prove", "--jobs", 1)
    assert ran.code == 0
    assert ran.out.startswith("PROVED  3 theorems, 8 obligations, for groups of any size\n")
    line = (
        r"^  model    1\d\d steps of 1 group, from \d+ random runs? with faults \(seed 0\), are steps of the"
    )
    assert re.search(line, ran.out, re.M)
    document = json.loads(rebalance("prove", "--jobs", 1, "--format", "json").out)["model"]
    assert document["seed"] == 0
    (group,) = document["groups"]
    expected(group["group"])
    assert group["deviation"] is group["breach"] is None
    assert document["steps"] == group["steps"] >= 100


@pytest.mark.slow
@pytest.mark.parametrize("samples", [(), one_group(100)], ids=["none", "too-few"])
def test_what_is_not_held_against_the_model_is_not_proved(rebalance, toy, expected, samples):
    """The verdict line, the exit code, JSON, HTML and JUnit say the same."""
    toy(samples=samples, held=None)
    ran = rebalance("prove", "--jobs", 1)
    assert ran.code == 3
    expected(ran.out)
    assert "not checked against the model" in Path(".rebalance/latest/report.html").read_text()
    assert "UNKNOWN, exit 3" in Path(".rebalance/latest/report.html").read_text()
    rebalance("prove", "--jobs", 1, "--report", "junit")
    (junit,) = Path(".rebalance").resolve().parent.rglob("*.xml")
    assert "not checked against the model" in junit.read_text()
    document = json.loads(rebalance("prove", "--jobs", 1, "--format", "json").out)
    assert (document["verdict"], document["exit"]) == ("unknown", 3)
    assert document["model"]["checked"] is False
    assert bool(document["model"]["missing"]["actions"]) == bool(samples)
    assert {theorem["verdict"] for theorem in document["theorems"]} == {"proved"}


@pytest.mark.slow
@pytest.mark.covering
@pytest.mark.parametrize("breaks", [False, True])
def test_a_model_that_the_logic_does_not_allow_is_not_proved(rebalance, toy, monkeypatch, breaks):
    """A claim that forgets what is owned: with time, two consumers own the same. A reset that does not run
    onJoinPrepare: it is none of the logic, and what comes of it does not show in so few steps."""

    def claims_nothing(it: Member, config: ConsumerConfig, **_: object) -> Metadata:
        return metadata(it, config)._replace(owned=NOTHING)

    def does_not_prepare(it: Member, *, keep_id: bool = False) -> Member:
        return reset(it, keep_id=keep_id)._replace(prepare=False)

    metadata, reset = member.metadata, callbacks.reset
    if breaks:
        monkeypatch.setattr(member, "metadata", claims_nothing)
    else:
        monkeypatch.setattr(errors, "reset", does_not_prepare)
        monkeypatch.setattr(callbacks, "reset", does_not_prepare)
    toy(samples=one_group(3000 if breaks else 600))
    ran = rebalance("prove", "--jobs", 1)
    assert ran.code == (1 if breaks else 3)
    why = "REFUTED  the model breaks revoke before assign" if breaks else "UNKNOWN  no theorem is about this"
    assert ran.out.startswith(why)
    assert ran.out.splitlines()[0].endswith("; 8 of 8 obligations proved")
    assert "the model does what the logic does not; no theorem is about it" in " ".join(ran.out.split())
    assert "\nNOT IN THE LOGIC  group all faults, 2 x 2; seed 0\n  step     " in ran.out
    assert re.search(r"^  run      \w[^;]+; ", ran.out, re.M)
    assert ("breaks 'revoke before assign'" in ran.out) == breaks
    assert "✗ not in the logic" in Path(".rebalance/latest/report.html").read_text()
    (group,) = json.loads(rebalance("prove", "--jobs", 1, "--format", "json").out)["model"]["groups"]
    assert group["deviation"]["why"].startswith(group["deviation"]["run"][-1])
    assert (group["breach"] is None) != breaks


EDITS = {
    "a reset without onJoinPrepare": (
        "callbacks.py",
        "        rejoin=True,\n        prepare=True,",
        "        rejoin=True,\n        prepare=False,",
    ),
    "a label of the last generation": ("member.py", "else member.own_gen", "else member.generation"),
    "a claim of nothing": ("member.py", "else member.owned\n", "else NOTHING\n"),
}
"""One word in a file of ``model/classic``, and what is written in its stead."""


def edited(where: Path, edit: str) -> dict[str, str]:
    """A copy of the sources with this edit; the environment in which it is what Python finds."""
    file, word, other = EDITS[edit]
    package = where / TOP
    for folder in (TOP, *FLOORS):
        shutil.copytree(
            ROOT / folder,
            package if folder == TOP else package / folder,
            ignore=shutil.ignore_patterns("__pycache__"),
        )
    path = package / "model/classic" / file
    text = path.read_text()
    assert text.count(word) == 1
    path.write_text(text.replace(word, other))
    return {**os.environ, "PYTHONPATH": str(where), "PYTHONDONTWRITEBYTECODE": "1"}


SAMPLES = """
from rebalance_verifier.cli.commands.prove import MODEL_STEPS, model_samples
from rebalance_verifier.specs.classic.refinement.sampling import sampled
found = map(sampled, model_samples(MODEL_STEPS, 0))
print(next(one.deviation.failure for one in found if one.deviation))
"""


@pytest.mark.nightly
@pytest.mark.parametrize("edit", tiered(EDITS, {"a reset without onJoinPrepare"}))
def test_one_word_of_the_model_is_enough(tmp_path, edit):
    """In a copy of the sources, with the steps and the seed that a proof has by default."""
    argv = [sys.executable, "-c", SAMPLES]
    environment = edited(tmp_path, edit)
    ran = subprocess.run(argv, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert " is not " in ran.stdout, ran.stderr


@pytest.mark.nightly
def test_a_proof_does_not_stand_beside_another_model(tmp_path):
    environment = edited(tmp_path, "a reset without onJoinPrepare")
    argv = command("prove", "--theorem", "possibility", "--format", "json")
    ran = subprocess.run(argv, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    document = json.loads(ran.stdout)
    assert ran.returncode == document["exit"] == 3
    assert document["verdict"] == "unknown"
    assert {one["verdict"] for one in document["theorems"]} == {"proved"}


def test_necessity_names_what_does_not_exist(rebalance):
    ran = rebalance("prove", "--necessity", "nothing")
    assert ran.code == 2
    assert "newest_claim" in ran.err


@pytest.mark.nightly
def test_necessity_of_one_clause(rebalance):
    ran = rebalance("prove", "--necessity", "held_back")
    assert ran.code == 0
    assert "held_back: needed" in ran.out
    assert "group/owner breaks after" in ran.out
    data = json.loads(rebalance("prove", "--necessity", "member_only", "--format", "json").out)
    assert data[0]["verdict"] == "not needed"
    assert data[0]["replay"] is None
