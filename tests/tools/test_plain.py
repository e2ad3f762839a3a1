"""The benchmark beside a plain Hypothesis test: it is fair to both sides."""

from __future__ import annotations

import pytest

from tools.benchmarks import plain


@pytest.mark.slow
@pytest.mark.parametrize("name", ["range", "roundrobin", "sticky", "cooperative-sticky"])
def test_the_plain_test_holds_on_the_references(name):
    assert plain.plain(name, 0, 60) is None


@pytest.mark.parametrize(
    "spec", ["cooperative-sticky+no_withhold", "roundrobin+topics_beyond_members_ignored"]
)
def test_both_find_it(spec):
    counted = plain.plain(spec, 1, 500), plain.ours(spec, 1)
    assert None not in counted
    assert counted == (plain.plain(spec, 1, 500), plain.ours(spec, 1))  # equal seeds, equal figures


def test_a_seed_that_finds_nothing_counts_as_endless():
    assert plain.summary([None] * 5) == "never"
    assert plain.summary([3, 1, 2, 4, 5]) == "3"
    assert plain.summary([3, 1, 1000, None, None]) == "1,000 (found by 3 of 5)"
    assert plain.summary([3, None, None]) == "never (found by 1 of 3)"
