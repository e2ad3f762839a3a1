"""Rolling upgrades: legal ones are safe in every interleaving, illegal ones are refused or break."""

from __future__ import annotations

import pytest
from rebalance.explore.groups.scenarios import ScenarioError
from rebalance.explore.groups.upgrades import STREAMS, UpgradeVerdict, judge, paths, setup

LEGAL = [
    ("range", "cooperative-sticky", "double-bounce"),
    ("range", "cooperative-sticky", "double-bounce-new-first"),
    ("cooperative-sticky", "range", "double-bounce"),
    ("sticky", "cooperative-sticky", "double-bounce"),
    ("default", "cooperative-sticky", "single-bounce"),
    ("cooperative-sticky", "default", "single-bounce"),
    ("range", "default", "single-bounce"),
    (STREAMS, STREAMS, "upgrade.from"),
]


def path_of(old: str, new: str, name: str):
    [path] = [path for path in paths(old, new) if path.name == name]
    return path


@pytest.mark.parametrize(("old", "new", "name"), LEGAL)
@pytest.mark.slow
def test_legal(old: str, new: str, name: str) -> None:
    path = path_of(old, new, name)
    outcome = judge(path, setup(path))
    assert outcome.verdict is UpgradeVerdict.SAFE
    assert outcome.rebalances > 0
    assert outcome.pauses > 0


BETWEEN = [
    ("cooperative-sticky", "consumer", (4, 16), (3, 16)),
    ("consumer", "cooperative-sticky", (5, 21), (4, 23)),
    ("range", "consumer", (4, 21), (3, 20)),
]
"""Rebalances and partition-pauses, where members go over one by one and where all are stopped first."""


@pytest.mark.parametrize(("old", "new", "one_by_one", "together"), BETWEEN)
@pytest.mark.parametrize("name", ["online", "online-settled", "offline"])
def test_between_the_protocols_every_path_is_safe_as_specified(
    old: str, new: str, one_by_one: tuple[int, int], together: tuple[int, int], name: str
) -> None:
    path = path_of(old, new, name)
    outcome = judge(path, setup(path))
    assert outcome.verdict is UpgradeVerdict.SAFE
    assert (outcome.rebalances, outcome.pauses) == (together if name == "offline" else one_by_one)


@pytest.mark.parametrize(
    ("old", "new", "name", "verdict", "clause"),
    [
        ("cooperative-sticky", "consumer", "online", UpgradeVerdict.UNSAFE, "group/commit"),
        ("cooperative-sticky", "consumer", "online-settled", UpgradeVerdict.SAFE, None),
        ("cooperative-sticky", "consumer", "offline", UpgradeVerdict.SAFE, None),
        ("range", "consumer", "online", UpgradeVerdict.REFUSED, "member/ends"),
        ("consumer", "cooperative-sticky", "online", UpgradeVerdict.UNSAFE, "epoch/covers"),
        ("consumer", "cooperative-sticky", "online-settled", UpgradeVerdict.SAFE, None),
    ],
)
def test_between_the_protocols_as_shipped(
    old: str, new: str, name: str, verdict: UpgradeVerdict, clause: str | None
) -> None:
    path = path_of(old, new, name)
    outcome = judge(path, setup(path, broker_profile="broker-current"))
    assert (outcome.verdict, outcome.clause) == (verdict, clause)


@pytest.mark.slow
def test_three_members_that_wait_go_over_safely_as_shipped() -> None:
    path = path_of("cooperative-sticky", "consumer", "online-settled")
    outcome = judge(path, setup(path, 3, 2, broker_profile="broker-current"))
    assert outcome.verdict is UpgradeVerdict.SAFE
    assert outcome.search.distinct == 6503


@pytest.mark.parametrize(("old", "new"), [("range", "cooperative-sticky"), ("cooperative-sticky", "range")])
def test_skipping_a_step_is_refused(old: str, new: str) -> None:
    path = path_of(old, new, "single-bounce")
    outcome = judge(path, setup(path))
    assert outcome.verdict is UpgradeVerdict.REFUSED
    assert outcome.trace is not None
    assert "INCONSISTENT_GROUP_PROTOCOL" in outcome.sentence


@pytest.mark.nightly
def test_streams_without_upgrade_from_breaks() -> None:
    """It takes three instances: an old leader that does not withhold, and two new ones to take from."""
    path = path_of(STREAMS, STREAMS, "single-bounce")
    outcome = judge(path, setup(path, 3, 3))
    assert outcome.verdict is UpgradeVerdict.UNSAFE
    assert outcome.clause == "leader/withhold"


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [("range", "range", "nothing changes"), ("rage", "range", "rage"), (STREAMS, "range", "keeps its own")],
)
def test_bad_input_is_named(old: str, new: str, says: str) -> None:
    with pytest.raises(ScenarioError, match=says):
        paths(old, new)
