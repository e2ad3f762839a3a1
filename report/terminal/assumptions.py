"""The command that shows what happens without an assumption of the theorems."""

from __future__ import annotations

from rebalance_verifier.explore.groups.bugs import SHOWN
from rebalance_verifier.report.terminal.bugs import by_hand
from rebalance_verifier.specs.logic.assumptions import Premise

PLAYED = "pytest tests/specs/test_assumptions.py -k"
"""Plays the runs that take an assignor which no option names."""


def command(one: Premise) -> str:
    """Return the command that shows the run without it."""
    if one.variation:
        return f"rebalance prove --group-protocol {one.protocol} --necessity {one.variation}"
    return by_hand(SHOWN[one.switch]) if one.switch else f"{PLAYED} {one.protocol}-{one.name}"
