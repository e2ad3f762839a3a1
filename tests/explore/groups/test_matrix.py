"""Releases x bugs: what running says, against what the trackers say."""

from __future__ import annotations

import pytest
from rebalance.explore.groups.matrix import Mark, cells
from rebalance.model.bugs.profiles import CLIENTS


def marks(switch: str) -> dict[str, Mark]:
    return {cell.profile.name: cell.mark for cell in cells([switch])}


@pytest.mark.nightly
def test_the_client_that_has_it() -> None:
    """KAFKA-12983 is in 2.4 to 2.8.0 and gone in 2.8.1; kafka-python has another bug that shows the same."""
    row = marks("prepare_not_repeated_after_reset")
    assert [row[name] for name in ("java-2.4", "java-2.6", "java-2.8.0")] == [Mark.BREAKS] * 3
    assert {row[name] for name in CLIENTS if name.startswith("java-3")} == {Mark.FINE}
    assert row["kafka-python"] is Mark.OTHERWISE


@pytest.mark.slow
def test_the_broker_that_has_it() -> None:
    """KAFKA-12890 needs a broker from 2.7 to 2.8.0; only the profile of 2.8.0 is in between."""
    row = marks("no_pending_sync_expiry")
    assert row.pop("broker-2.8.0") is Mark.BREAKS
    assert set(row.values()) == {Mark.FINE}


@pytest.mark.nightly
def test_a_cell_knows_what_the_catalogue_says() -> None:
    [cell] = cells(["no_sent_generation_check"], ["java-2.4"])
    assert cell.expected
    assert cell.agrees
    [cell] = cells(["no_sent_generation_check"], ["java-2.6"])
    assert not cell.expected
    assert cell.agrees


HIDDEN = {
    # Below version 2 there is no label that could be wrong (protocol of JoinGroup metadata, KIP-792).
    "keep_owned_on_sync_rip": ["java-2.8.0", "java-2.8.1", "java-3.0"],
    # The lost answer that makes a follower repeat itself costs it its membership first (KAFKA-13214).
    "unsorted_metadata": ["java-2.4", "java-2.6", "java-2.8.0"],
    # Every claim is trusted, so no assignment contradicts a claim.
    "validate_raw_claims": ["java-2.8.0"],
    # The validation throws (2.8.1, 3.0), a late member loses everything before it can claim (3.3.1), and with
    # labels of the join generation a missed SyncGroup does not show (3.4.0).
    "max_generation_only": ["java-2.8.1", "java-3.0", "java-3.3.1", "java-3.4.0"],
}
"""Where running differs from the catalogue: something else in the release hides the bug in its group."""


@pytest.mark.nightly
def test_running_agrees_with_the_catalogue() -> None:
    """Or another behaviour of the release hides the bug."""
    differs: dict[str, list[str]] = {}
    for cell in cells():
        if not cell.agrees:
            differs.setdefault(cell.switch, []).append(cell.profile.name)
    assert differs == HIDDEN
