"""What an audit can find: the checks, and from when on something is a finding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from rebalance_verifier.base.tables import table


class AuditCheck(NamedTuple):
    """Something that must not be seen in the log of a group. ``level`` as of a clause."""

    id: str
    level: str
    sentence: str
    source: str


CHECKS = {id_: AuditCheck(id_, **row) for id_, row in table(__file__).items()}
"""In the order in which they are reported."""

OWNED_TWICE = CHECKS["owned-twice"]
GRANTED_EARLY = CHECKS["granted-before-revoked"]
ZOMBIE = CHECKS["owned-by-zombie"]
STRANDED = CHECKS["stranded"]
UNSETTLED = CHECKS["never-settles"]
STORM = CHECKS["rebalance-storm"]
NEEDLESS = CHECKS["needless-movement"]
PAUSE = CHECKS["long-pause"]


OF_GROUPS = (UNSETTLED.id, STORM.id)
"""What shows without a line on partitions."""


@dataclass(frozen=True, kw_only=True)
class Thresholds:
    """From when on something is a finding; seconds.

    ``clock_skew``: by how much any two hosts may differ; None estimates it from the log (``clocks``).
    ``storm`` generations within ``storm_within`` are one.
    """

    stranded: float = 60.0
    settle: float = 300.0
    storm: int = 10
    storm_within: float = 600.0
    pause: float = 300.0
    clock_skew: float | None = None
