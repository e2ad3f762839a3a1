"""Every assumption of the theorems, in words, with the run that shows what happens without it.

The table is ``assumptions.toml``. An assumption that no run needs is none: what is not in the logic at all is
refused where a sample of the model is taken (``covers``), and named in docs/explanation/proof.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rebalance_verifier.base.tables import table
from rebalance_verifier.explore.groups.bugs import SHOWN

ASSIGNOR = "the assignor"

PLAYED = "pytest tests/specs/test_assumptions.py -k"
"""Plays the runs that take an assignor which no option names."""


@dataclass(frozen=True, kw_only=True)
class Premise:
    """One assumption of the theorems about ``protocol``: of whom, its words, and for which theorem it is
    made, "" for all.

    Without it there is a run in which a promise breaks: that of the ``variation`` of `prove --necessity`, or
    of the group in which the model shows a ``switch``.
    """

    protocol: str
    name: str
    sentence: str
    of: str = ASSIGNOR
    theorems: str = ""
    variation: str = ""
    switch: str = ""

    @property
    def command(self) -> str:
        """Return the command that shows the run without it."""
        if self.variation:
            return f"rebalance prove --group-protocol {self.protocol} --necessity {self.variation}"
        if not self.switch:
            return f"{PLAYED} {self.protocol}-{self.name}"
        shown = SHOWN[self.switch]
        budget = len(shown.faults) if shown.budget is None else shown.budget
        faults = f"--faults {_quoted(','.join(shown.faults))} --max-faults {budget}"
        size = f"--members {shown.members} --partitions {shown.partitions}"
        specified = "--release as-specified --broker as-specified"
        return f"rebalance explore {shown.scenario} {size} {faults} {specified} --switch {self.switch}"


def _quoted(faults: str) -> str:
    return f"'{faults}'" if " " in faults else faults


def premises(
    protocol: str, every: Mapping[str, Callable[..., Any]], converging: Mapping[str, Callable[..., Any]]
) -> tuple[Premise, ...]:
    """Return all assumptions of a protocol; clauses of the contract have the words of their functions.
    Raises KeyError for a row without words."""
    made = []
    for name, row in table(__file__)[protocol].items():
        fields = dict(row)
        if "sentence" not in row:
            clause = {**every, **converging}[name]
            fields["sentence"] = " ".join((clause.__doc__ or "").split("\n\n")[0].split())
            fields["theorems"] = "" if name in every else "convergence"
        made.append(Premise(protocol=protocol, name=name, **fields))
    return tuple(made)
