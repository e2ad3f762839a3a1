"""Answers of earlier proofs: what is kept, what is asked again, and that neither is wrong."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from rebalance_verifier.base.processes.signing import seal_of
from rebalance_verifier.base.sources import fingerprint
from rebalance_verifier.specs import answers
from rebalance_verifier.specs.answers import KeptAnswers, kept_answers
from rebalance_verifier.specs.classic.necessity.vacuity import Vacuity, VacuityCheck, VacuityFinding
from rebalance_verifier.specs.classic.refinement.refinement import RefinementFailure
from rebalance_verifier.specs.classic.refinement.sampling import ModelDeviation, ModelSample, SampledModel
from rebalance_verifier.specs.logic.prover import in_turn
from rebalance_verifier.specs.logic.theorems import theorems
from rebalance_verifier.specs.proving import Proof, ProofPlan, run_proof

from tests.model.classic.small_groups import setup
from tests.specs.logic.test_prover import locks

ROWS = (Vacuity("action", "take", VacuityFinding.REACHED, ("take",)),)
SAMPLE = ModelSample(group="two", setup=setup(), seed=0, steps=5)
SAMPLED = SampledModel(group="two", seed=0, steps=5, runs=1)


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "key", lambda *asked: "-".join(asked))


def proved(tmp_path: Path, *, guarded: bool = True, **how) -> tuple[Proof, int]:
    """Prove a toy, with what is kept in a directory; return also how many pieces of work were done."""
    plan = ProofPlan(
        theorems=tuple(theorems(locks(guarded=guarded))[:3]),
        contract=(),
        checks=(VacuityCheck("action", ("take",), lambda: how.get("rows", ROWS)),),
        samples=(SAMPLE,),
        sample=lambda sample: how.get("sampled", SAMPLED),
        smt2=how.get("smt2"),
    )
    done: list[int] = []

    def counting(work, count):
        done.append(count)
        return in_turn(work, count)

    proof = run_proof(plan, None, counting, kept_answers("toy", directory=lambda: tmp_path))
    return proof, sum(done)


def told(proof: Proof) -> tuple[object, ...]:
    return proof.outcomes, proof.vacuity, proof.model, proof.verdict


def test_what_succeeded_is_not_asked_again(tmp_path: Path) -> None:
    first, asked = proved(tmp_path)
    second, again = proved(tmp_path)
    assert (asked > 2, again) == (True, 0)
    assert told(second) == told(first)
    assert first.kept is None
    assert second.kept is not None
    assert second.kept.used == second.obligations + 2


@pytest.mark.parametrize("how", [
    {"rows": (Vacuity("action", "take", VacuityFinding.VACUOUS),)},
    {"sampled": SampledModel(group="two", seed=0, steps=5, runs=1,
        breach=ModelDeviation(failure=RefinementFailure("t", "x", "why", False), run=()))},
])  # fmt: skip
def test_what_is_in_doubt_is_asked_again(tmp_path: Path, how) -> None:
    _, asked = proved(tmp_path, **how)
    second, again = proved(tmp_path, **how)
    assert 0 < again < asked
    assert second.kept is not None


def test_what_is_refuted_is_asked_again(tmp_path: Path) -> None:
    first, _ = proved(tmp_path, guarded=False)
    second, again = proved(tmp_path, guarded=False)
    assert again > 0
    assert told(second)[1:] == told(first)[1:]
    assert [one.verdict for one in second.outcomes] == [one.verdict for one in first.outcomes]


def signed(value: object) -> str:
    return json.dumps({"signed": seal_of("toy.json", value), "answers": value})


@pytest.mark.parametrize("damage", [
    lambda text: "", lambda text: text[:-1], lambda text: text.replace("take", "tale", 1),
    lambda text: signed([]), lambda text: signed({"other": 1}), lambda text: "[]", lambda text: "{}",
])  # fmt: skip
def test_a_damaged_file_is_none(tmp_path: Path, damage) -> None:
    first, asked = proved(tmp_path)
    [file] = (tmp_path / "prove").iterdir()
    file.write_text(damage(file.read_text()))
    second, again = proved(tmp_path)
    assert (second.kept, again, told(second)[1:]) == (None, asked, told(first)[1:])


def test_a_file_of_somebody_else_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "theirs"))
    _, asked = proved(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "ours"))
    second, again = proved(tmp_path)
    assert (second.kept, again) == (None, asked)
    third, last = proved(tmp_path)
    assert (third.kept is None, last) == (False, 0)


def test_files_of_obligations_are_written_by_who_proves(tmp_path: Path) -> None:
    proved(tmp_path)
    second, again = proved(tmp_path, smt2=tmp_path / "smt2")
    assert (second.kept, again > 0) == (None, True)


def test_another_sample_is_another_question(tmp_path: Path) -> None:
    kept = KeptAnswers(path=None)
    kept.sampled(SAMPLE, SAMPLED)
    assert kept.sample(SAMPLE) == SAMPLED
    others = (
        replace(SAMPLE, seed=1),
        replace(SAMPLE, steps=6),
        replace(SAMPLE, setup=setup(static=True)),
        replace(SAMPLE, ways={"a": ("b",)}),
    )
    assert [kept.sample(other) for other in others] == [None] * len(others)


def test_few_files_are_kept(tmp_path: Path) -> None:
    for number in range(answers.FILES + 2):
        kept = kept_answers(str(number), directory=lambda: tmp_path)
        kept.sampled(SAMPLE, SAMPLED)
        kept.save()
    assert len([*(tmp_path / "prove").iterdir()]) == answers.FILES


def test_a_directory_that_cannot_be_written_is_no_trouble(tmp_path: Path) -> None:
    (tmp_path / "prove").write_text("a file")
    first, asked = proved(tmp_path)
    second, again = proved(tmp_path)
    assert (second.kept, again) == (None, asked)
    assert told(second)[1:] == told(first)[1:]


@pytest.mark.parametrize("name", ["a.py", "a.toml", "deep/a.json"])
def test_a_name_is_of_every_source(tmp_path: Path, name: str) -> None:
    package = ModuleType("package")
    package.__path__ = [str(tmp_path)]
    names = {fingerprint("", [package])}
    for text in ("", "x = 1", "x = 2"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
        names.add(fingerprint("", [package]))
    assert len(names) == 3  # an empty file says nothing
