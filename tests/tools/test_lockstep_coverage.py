"""What lockstep does not go through of the model has a reason that is true of the model as it stands."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest
from coverage import Coverage

from tools.lockstep_coverage import (
    MODULES,
    Branch,
    BranchCount,
    Reasons,
    counted,
    in_all,
    lines,
    needless,
    of_others,
    together,
    written_reasons,
)
from tools.mutation.in_lockstep import SAMPLE, sample
from tools.mutation.mutants import sources


def test_a_decision_that_no_release_of_a_cell_has_is_named_with_who_has_it() -> None:
    assert of_others("skip_empty_assigned_cb") == "skip_empty_assigned_cb: kafka-python"
    assert of_others("max_size_counts_members") == "max_size_counts_members: broker before 2.6.0"
    assert [of_others(one) for one in ("prepare_commit_never_done", "static_removal_not_persisted")] == [
        "",
        "",
    ]
    assert in_all("static_removal_not_persisted") == "every coordinator has static_removal_not_persisted"
    assert [in_all(one) for one in ("no_pending_sync_expiry", "static_forgets_id")] == ["", ""]


CONDITIONS = dedent("""\
    def step(config, coordinator, other):
        if other and "skip_empty_assigned_cb" in config.decisions:
            if other.more:
                return 1
        if "prepare_commit_never_done" in config.decisions:
            return 2
        if coordinator.isdisjoint({"static_removal_not_persisted"}):
            return 3
        if other.last:
            return 4
        return 5
    """)


@pytest.mark.parametrize(
    ("line", "to", "why"),
    [
        (2, 3, "skip_empty_assigned_cb: kafka-python"),
        (2, 5, ""),
        (3, 4, "skip_empty_assigned_cb: kafka-python"),
        (5, 6, ""),
        (7, 8, "every coordinator has static_removal_not_persisted"),
        (7, 9, ""),
        (8, 0, "every coordinator has static_removal_not_persisted"),
        (9, 10, ""),
    ],
)
def test_the_part_of_a_condition_that_a_decision_shuts_has_it_for_a_reason(
    line: int, to: int, why: str
) -> None:
    assert Reasons("module", CONDITIONS).reason(line, to) == why


def test_what_was_not_taken_is_counted(tmp_path: Path) -> None:
    (tmp_path / "halves.py").write_text("def half(n):\n    if n:\n        return 1\n    return 2\n")
    source = tmp_path / "halves.py"
    measured = Coverage(branch=True, include=[str(source)], data_file=None, config_file=False)
    measured.start()
    names: dict[str, object] = {}
    exec(compile(source.read_text(), str(source), "exec"), names)
    half = names["half"]
    assert callable(half)
    half(0)
    measured.stop()
    count = counted(measured, [str(source)])
    assert (count.possible, [(one.function, one.line, one.to) for one in count.open]) == (2, [("half", 2, 3)])
    assert (count.share, next(lines(count, 7))) == (
        0.5, "1 of 2 branches of the model's steps (50.0%) in 7 steps of walks"
    )  # fmt: skip


def test_what_has_a_reason_is_not_asked_for() -> None:
    branch = {"module": "m", "line": 1, "to": 2, "function": "f", "text": "if a:"}
    count = BranchCount(possible=10, missing=[Branch(**branch, reason="so"), Branch(**branch)])  # type: ignore[arg-type]
    assert (len(count.open), count.share) == (1, 1 - 1 / 9)


def test_a_reason_for_what_was_taken_is_named() -> None:
    every = [Branch(module=module, line=1, to=2, function=function, text=text, reason=why)
             for module, function, text, why in written()]  # fmt: skip
    assert needless(BranchCount(possible=100, missing=every)) == []
    taken = BranchCount(possible=100, missing=[one for one in every if one.function != "bounce"])
    assert needless(taken) == ["environment.bounce"]
    assert [*lines(taken, 7)][-1].endswith("reason in lockstep_coverage.toml: environment.bounce")


def test_what_one_of_several_walks_has_taken_is_taken() -> None:
    one, two, three = (
        Branch(module="m", line=line, to=9, function="f", text="if a:", reason="") for line in (1, 2, 3)
    )
    counts = [BranchCount(possible=5, missing=some) for some in ([one, two], [two, three])]
    assert together(counts) == BranchCount(possible=5, missing=[two])


def test_a_case_of_a_match_has_a_reason_as_a_condition_has() -> None:
    source = sources()["member"]
    lines_ = [line.strip() for line in source.splitlines()]
    at = lines_.index("case Refused():") + 1
    assert Reasons("member", source).reason(at, -1) == "the guard of the action asks first"


def written() -> Iterator[tuple[str, str, str, str]]:
    for key, why in written_reasons().items():
        where, _, text = key.partition(": ")
        module, _, function = where.partition(".")
        yield module, function, text, why


def test_written_reasons_are_of_lines_that_there_are() -> None:
    for module, function, text, _ in written():
        assert module in MODULES
        source = sources()[module]
        assert f"def {function}(" in source
        assert not text or text in [line.strip() for line in source.splitlines()]
    several = {(module, function, why) for module, function, _, why in written()}
    assert len(several) == len(written_reasons()), "a function and a reason are of one key"


def test_the_mutants_that_lockstep_is_asked_of_are_of_this_model_and_none_has_a_reason() -> None:
    for mutant in sample():
        assert not Reasons(mutant.module, sources()[mutant.module]).reason(mutant.line)
    assert len(set(SAMPLE)) == 10
