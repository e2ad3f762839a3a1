"""A report says where the log itself points, and nothing that no line says."""

from __future__ import annotations

import pytest

pytest.importorskip("duckdb")

from tests.pipeline.audit.test_foreign import A_HAS_BOTH, B_JOINS, CASES, audited, share


def pointed(log, folder):
    """Return what is pointed to, once each."""
    return sorted(set(audited(log, folder).pointers.values()))


TWICE = (
    A_HAS_BOTH
    + B_JOINS
    + f"61.31 a PLAN 8 {share(a='orders-0', b='orders-1')}\n61.5 b GIVEN orders-1\n71.5 a TAKEN orders-1"
)


def test_the_plan_of_the_leader_that_gives_too_early(tmp_path):
    (said,) = pointed(TWICE, tmp_path)
    assert said.startswith(
        "the plan of a@a.log, which led generation 8, gives orders-1 to b@b.log while a@a.log had"
    )


def test_a_leader_whose_log_is_missing(tmp_path):
    (said,) = pointed("\n".join(line for line in TWICE.splitlines() if "PLAN" not in line), tmp_path)
    assert said == "the log of the leader, which has its plan, is not among these"


def test_why_a_zombie_is_none_any_more(tmp_path):
    log = CASES["a zombie after a long pause"][0] + "61 a LEAVE consumer poll timeout has expired."
    (said,) = pointed(log, tmp_path)
    assert said == "a@a.log says at 10:16:01 why a@a.log is no member: consumer poll timeout has expired."


def test_a_plan_that_leaves_a_partition_out(tmp_path):
    (one,) = audited(CASES["the plan gives it to nobody"][0], tmp_path).findings
    assert one.sentence.endswith("; the plan of generation 8 gives it to nobody")


def test_who_waits_for_an_answer(tmp_path):
    (said,) = pointed(A_HAS_BOTH + "60 a REJOIN\n900 a OLD", tmp_path)
    assert said.startswith("a@a.log has sent JoinGroup and got no answer since 10:16:00 (")


def test_of_generations_that_follow_each_other_nobody_waits(tmp_path):
    name = "given what it did not ask for, once a second"
    assert pointed(CASES[name][0], tmp_path) == []
