"""One-word sabotages of the model that a judge is asked about alone: it judges the copy that has them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools.mutation import alone
from tools.mutation.alone import Judged, JudgedCopy, drawn, page, path_of, protocols_of, sabotages
from tools.mutation.mutants import Mutant, mutants_of
from tools.mutation.page import REASONS

NOTICED = "consumer.coordinator.heartbeat | never | record is None"
EQUIVALENT = "classic.coordinator.sync_request | never | not isinstance(wire, Sync)"


def named(key: str) -> Mutant:
    modules = (module for part in alone.PARTS.values() for module in part)
    [found] = [
        one
        for module in modules
        for one in mutants_of(module, path_of(module).read_text(encoding="utf-8"))
        if one.key == key
    ]
    return found


def test_a_seed_draws_the_same_ones_half_of_them_classic_and_none_that_is_known_to_be_equivalent() -> None:
    some = drawn(40, 3)
    assert [one.key for one in some] == [one.key for one in drawn(40, 3)]
    assert [one.key for one in some] != [one.key for one in drawn(40, 4)]
    folders = [one.module.partition(".")[0] for one in some]
    assert set(folders[:20]) <= {"classic", "group"}
    assert set(folders[20:]) == {"consumer", "migration"}
    assert len({one.key for one in some}) == 40
    assert EQUIVALENT.partition(".")[2] in REASONS
    assert EQUIVALENT not in {one.key for one in sabotages("classic")}
    assert NOTICED in {one.key for one in sabotages("others")}


def test_no_sabotage_is_of_what_engines_are_told_or_of_what_a_step_costs() -> None:
    every = [one for part in alone.PARTS for one in sabotages(part)]
    assert len({one.key for one in every}) == len(every) > 2000
    assert not [one for one in every if one.was.startswith(("budget - ", "seen = "))]
    assert not [one for one in every if one.function.endswith(("symmetries", "views"))]


def test_the_table_says_who_notices_what_is_equivalent_and_what_is_missed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, second, third, *_ = some = drawn(4, 0)
    said = {
        first.key: Judged(key=first.key, commit="1", noticed="a walk | disagrees"),
        second.key: Judged(key=second.key, commit="1", noticed=""),
        third.key: Judged(key=third.key, commit="1", noticed=""),
    }
    monkeypatch.setattr(alone, "equivalent", lambda: {third.key: "nobody asks"})
    text = page(some, 0, {"prove": {}, "lockstep": said})
    assert "| `prove` | 0 of 4 | 0 | 0 | 4 |" in text
    assert "| `lockstep` | 1 of 4 | 1 | 1 | 1 |" in text
    assert "a walk \\| disagrees" in text
    assert text.count("**missed**") == 1
    assert text.count("equivalent: nobody asks") == 1
    assert "not asked" in text


def test_reasons_are_of_sabotages_that_there_are() -> None:
    keys = {one.key for part in alone.PARTS for one in sabotages(part)}
    assert set(alone.equivalent()) <= keys
    assert all(alone.equivalent().values())


def test_what_is_known_is_not_asked_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(alone, "_kept", lambda by: tmp_path / by)
    asked: list[str] = []

    class Copied:
        def __init__(self, where: Path) -> None:
            self.now = ""

        def sabotaged(self, mutant: Mutant) -> Copied:
            self.now = mutant.key
            return self

        def __enter__(self) -> None:
            pass

        def __exit__(self, *_: object) -> None:
            self.now = ""

        def judged(self, by: str, protocols: object, effort: int | None) -> tuple[str, alone.Taken]:
            asked.append(self.now)
            return self.now and "noticed", {}

    monkeypatch.setattr(alone, "JudgedCopy", Copied)
    some = drawn(4, 0)
    known: dict[str, Judged] = {}
    alone.judge("prove", some[:2], known, jobs=1)
    assert asked == ["", some[0].key, some[1].key]
    assert alone.known_of("prove") == known
    asked.clear()
    alone.judge("prove", some, alone.known_of("prove"), jobs=1)
    assert [key for key in asked if key] == [one.key for one in some[2:]]
    assert len((tmp_path / "prove").read_text(encoding="utf-8").splitlines()) == 4


def test_a_kind_of_step_that_walks_never_take_any_more_is_noticed() -> None:
    before = {"late request heartbeat": alone.OFTEN, "session expires id N": 500, "rare": alone.OFTEN - 1}
    assert alone.never_taken(before, {"session expires id N": 1}) == "never taken: late request heartbeat"
    assert alone.never_taken(before, dict.fromkeys(before, 1)) == alone.never_taken({}, {}) == ""


@pytest.mark.slow
def test_a_judge_imports_the_copy_and_judges_what_is_wrong_in_it(tmp_path: Path) -> None:
    """An earlier draft asked what is installed, in which nothing is wrong."""
    copy, wrong = JudgedCopy(tmp_path), named(NOTICED)
    before = path_of(wrong.module, copy.root).read_text(encoding="utf-8")
    with copy.sabotaged(wrong):
        assert "AttributeError" in copy.judged("prove", protocols_of(wrong.module)[:1])[0]
    assert path_of(wrong.module, copy.root).read_text(encoding="utf-8") == before
    assert copy.judged("prove", ("consumer",)) == ("", {})
    path_of("classic.member", copy.root).write_text("raise RuntimeError('of the copy')")
    assert "of the copy" in copy.judged("prove", ("classic",))[0]


@pytest.mark.slow
def test_a_judge_refuses_a_model_of_somewhere_else(tmp_path: Path) -> None:
    copy = JudgedCopy(tmp_path / "one")
    copy.root = JudgedCopy(tmp_path / "two").root.parent  # where there is nothing to import
    with pytest.raises(RuntimeError, match="cannot judge"):
        copy.judged("prove", ("consumer",))


@pytest.mark.nightly
def test_what_is_equivalent_is_not_noticed(tmp_path: Path) -> None:
    copy, alike = JudgedCopy(tmp_path), named(EQUIVALENT)
    with copy.sabotaged(alike):
        assert copy.judged("prove", ("classic",))[0] == ""
        assert copy.judged("lockstep", ("classic",), 1)[0] == ""


def test_verdicts_are_of_sabotages_by_their_keys() -> None:
    for by in alone.JUDGES:
        path = alone.FOLDER / f"alone.{by}.jsonl"
        for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
            assert set(json.loads(line)) == {"key", "commit", "noticed"}
