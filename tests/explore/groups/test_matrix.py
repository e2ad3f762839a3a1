"""Releases x bugs: what running says, against what the trackers say."""

from __future__ import annotations

import pytest
from rebalance_verifier.explore.groups.matrix import Mark, cells
from rebalance_verifier.model.bugs.profiles import CLIENTS, client


def marks(switch: str) -> dict[str, Mark]:
    return {cell.profile.name: cell.mark for cell in cells([switch])}


@pytest.mark.nightly
def test_the_client_that_has_it() -> None:
    """KAFKA-12983 is in 2.4 to 2.8.0 and gone in 2.8.1; kafka-python has another bug that shows the same."""
    row = marks("prepare_not_repeated_after_reset")
    assert [row[name] for name in ("java-2.4", "java-2.6", "java-2.8.0")] == [Mark.BREAKS] * 3
    assert {row[name] for name in CLIENTS if name.startswith("java-3")} == {Mark.FINE}
    assert row["kafka-python"] is Mark.OTHERWISE


@pytest.mark.nightly
def test_the_broker_that_has_it() -> None:
    """KAFKA-12890 needs a broker from 2.7 to 2.8.0; only the profile of 2.8.0 is in between."""
    row = marks("no_pending_sync_expiry")
    assert row.pop("broker-2.8.0") is Mark.BREAKS
    assert set(row.values()) == {Mark.FINE}


@pytest.mark.nightly
def test_a_cell_knows_what_the_catalogue_says() -> None:
    [cell] = cells(["no_sent_generation_check"], [CLIENTS["java-2.4"]])
    assert cell.expected
    assert cell.agrees
    [cell] = cells(["no_sent_generation_check"], [CLIENTS["java-2.6"]])
    assert not cell.expected
    assert cell.agrees


@pytest.mark.slow
def test_what_hides_a_bug_is_said() -> None:
    [cell] = cells(["unsorted_metadata"], [CLIENTS["java-2.8.0"]])
    assert (cell.mark, cell.agrees) == (Mark.FINE, False)
    assert cell.why.startswith("the lost answer")
    [cell] = cells(["unsorted_metadata"], [client("java-2.5.1")])
    assert (cell.mark, cell.why) == (Mark.BREAKS, "")


@pytest.mark.nightly
def test_running_agrees_with_the_catalogue() -> None:
    """Or another behaviour of the release hides the bug, and it is said which."""
    assert [(cell.switch, cell.profile.name) for cell in cells() if not cell.agrees and not cell.why] == []
