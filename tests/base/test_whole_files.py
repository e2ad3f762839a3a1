"""Files that are read as a whole: no more than their limit, and numbers that are numbers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from rebalance_verifier.base.reading import Unparsed, Unreadable, contents, parsed_json

GROWS = Path("/proc/self/maps")
"""A regular file that says of itself that it is empty."""


@pytest.mark.skipif(not os.path.exists(GROWS), reason=f"has no {GROWS}")
def test_a_file_that_is_longer_than_it_says_is_refused() -> None:
    assert GROWS.stat().st_size == 0
    with pytest.raises(Unreadable, match="has more than"):
        contents(GROWS, 10)


def test_a_file_of_just_the_limit_is_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 10)
    assert contents(tmp_path / "a", 10) == b"x" * 10
    with pytest.raises(Unreadable, match="has more than"):
        contents(tmp_path / "a", 9)


@pytest.mark.parametrize("number", ["1e999", "-1e999", "NaN", "Infinity", "1" * 5000])
def test_what_is_no_number_is_refused(number: str) -> None:
    with pytest.raises(Unparsed, match="not JSON that can be read"):
        parsed_json(f"[{number}]", "it")
