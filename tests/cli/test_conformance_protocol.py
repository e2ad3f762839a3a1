"""conformance() asks the clauses of one kind of assignor, and says what to write for another."""

from __future__ import annotations

import pytest

SUITE = """
from rebalance_verifier import conformance

class Everything:
    protocols = ("share",)
    promises = ("balanced",)

    def assign(self, cluster, group):
        return {m: tuple(p for p in cluster.partitions() if p.topic in group[m].topics) for m in group}

test_share = conformance(Everything(), protocol="share")
test_classic = conformance(Everything())
"""


def test_a_share_assignor_is_asked_as_one(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(SUITE)
    ran = pytester.runpytest_subprocess("-p", "rebalance", "-q", "-p", "no:cacheprovider", "-k", "test_share")
    outcome = ran.parseoutcomes()
    assert outcome.get("failed", 0) == 0, ran.outlines
    assert outcome["passed"] >= 11
    asked = pytester.runpytest_subprocess("--collect-only", "-q", "-p", "rebalance")
    names = [line for line in asked.outlines if "::" in line]
    assert not [name for name in names if "test_classic" in name and name.endswith(("-share]", "-tasks]"))]
    assert not [name for name in names if "test_share" in name and name.endswith(("-eager]", "-tasks]"))]


def test_what_to_write_is_said(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(SUITE)
    ran = pytester.runpytest_subprocess("-p", "rebalance", "-q", "-k", "test_classic and assign/1-eager")
    ran.stdout.fnmatch_lines(['*write protocol="share"*'])
