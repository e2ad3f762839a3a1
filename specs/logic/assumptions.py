"""Every assumption of the theorems, in words, with the run that shows what happens without it.

The table is ``assumptions.toml``. An assumption that no run needs is none: what is not in the logic at all is
refused where a sample of the model is taken (``covers``), and named in docs/explanation/proof.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rebalance_verifier.base.tables import table

ASSIGNOR = "the assignor"


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
