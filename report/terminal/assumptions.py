"""The command that shows what happens without an assumption of the theorems."""

from __future__ import annotations

from rebalance_verifier.explore.groups.bugs import SHOWN
from rebalance_verifier.specs.logic.assumptions import Premise

PLAYED = "pytest tests/specs/test_assumptions.py -k"
"""Plays the runs that take an assignor which no option names."""


def command(one: Premise) -> str:
    """Return the command that shows the run without it."""
    if one.variation:
        return f"rebalance prove --group-protocol {one.protocol} --necessity {one.variation}"
    if not one.switch:
        return f"{PLAYED} {one.protocol}-{one.name}"
    shown = SHOWN[one.switch]
    budget = len(shown.faults) if shown.budget is None else shown.budget
    faults = f"--faults {_quoted(','.join(shown.faults))} --max-faults {budget}"
    size = f"--members {shown.members} --partitions {shown.partitions}"
    specified = "--release as-specified --broker as-specified"
    return f"rebalance explore {shown.scenario} {size} {faults} {specified} --switch {one.switch}"


def _quoted(faults: str) -> str:
    return f"'{faults}'" if " " in faults else faults
