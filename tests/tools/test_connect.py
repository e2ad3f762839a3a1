"""The page about Connect is made of what the harness has written."""

from __future__ import annotations

from tools.connect.__main__ import CLAUSES, page, parsed

LINES = [
    "NOTE: of the JVM",
    "histories\t50\trounds\t410",
    "settled: even\t3\tw0 joins|one worker has 2 tasks",
]


def test_a_clause_is_shown_with_the_oldest_release_that_breaks_it():
    old, new = parsed("3.3.2", LINES), parsed("3.9.2", LINES[:2])
    text = page([old, new])
    assert "| settled: even | 3 | · |" in text
    assert text.count("| · | · |") == len(CLAUSES) - 1
    assert "### settled: even, in 3.3.2\n\n```text\nw0 joins\none worker has 2 tasks\n```" in text
    assert "50 histories for each release, 410 rebalances" in text


def test_what_no_release_breaks_has_no_history():
    assert "###" not in page([parsed("3.9.2", LINES[:2])])
