"""Text from outside as Markdown."""

from __future__ import annotations

from rebalance_verifier.report import markup


def test_a_table_has_as_many_columns_below_its_titles_as_above(expected):
    """Or GitHub shows it as lines of text."""
    expected("\n".join(markup.table(("a", "b"), [("1", "2"), ("3", "4")])))
