"""Times as the reports write them, and how sure a finding of a log is."""

from __future__ import annotations

from datetime import datetime

from rebalance_verifier.base.text import span
from rebalance_verifier.pipeline.audit.records import LogFinding


def lasted(finding: LogFinding) -> str:
    """When a finding began, how long it lasted, how sure it is."""
    goes_on = "" if finding.ended else ", and it goes on"
    return f"{span(finding.seconds)} from {moment(finding.began)}{goes_on}  {certainty(finding)}"


def certainty(finding: LogFinding) -> str:
    """Return how sure a finding is."""
    if finding.certain:
        return "certain"
    return (
        "uncertain" if finding.skew is None or finding.doubt else f"within clock skew of {span(finding.skew)}"
    )


def moment(at: datetime) -> str:
    """Return a time as the reports write it, in UTC."""
    return at.strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
