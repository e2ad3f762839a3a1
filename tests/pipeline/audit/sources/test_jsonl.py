"""Our own event log, a line at a time."""

from __future__ import annotations

import pytest
from rebalance_verifier.pipeline.audit.sources.jsonl import NotOurs, read

LINE = '{{"at": 1, "event": "stable", "group": "g", "generation": {}}}'


@pytest.mark.parametrize("generation", [2**31 - 1, -(2**31) + 1, -1, 0])
def test_a_generation_is_as_large_as_kafkas(generation: int) -> None:
    assert [row.generation for row in read(LINE.format(generation), "UTC")] == [generation]


@pytest.mark.parametrize("generation", [2**31, -(2**31) - 1, 2**64, "1.0", "true", "[]"])
def test_a_generation_that_no_table_holds_is_refused(generation: object) -> None:
    with pytest.raises(NotOurs, match="a field is not of its type"):
        read(LINE.format(generation), "UTC")
