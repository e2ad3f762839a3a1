"""Times and stretches of time as the reports write them, and how sure a finding of a log is."""

from __future__ import annotations

import math
from datetime import datetime

from rebalance.pipeline.audit.records import LogFinding


def lasted(finding: LogFinding) -> str:
    """When a finding began, how long it lasted, how sure it is."""
    goes_on = "" if finding.ended else ", and it goes on"
    return f"{span(finding.seconds)} from {moment(finding.began)}{goes_on}  {certainty(finding)}"


def certainty(finding: LogFinding) -> str:
    """How sure a finding is."""
    if finding.certain:
        return "certain"
    return "uncertain" if finding.skew is None else f"within clock skew of {span(finding.skew)}"


def moment(at: datetime) -> str:
    """A time as the reports write it, in UTC."""
    return at.strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]


def span(seconds: float | None) -> str:
    """A stretch of time, with the digits that matter.

    >>> span(0.0123), span(7.9), span(75), span(7300), span(180000)
    ('12 ms', '7.9 s', '75 s', '2 h 2 min', '2 d 2 h')
    """
    if seconds is None or math.isnan(seconds):
        return "unknown"
    if round(seconds, 3) < 1:
        return f"{seconds * 1000:.0f} ms"
    if round(seconds, 1) < 10:
        return f"{seconds:.1f} s"
    if round(seconds) < 120:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 120:
        return f"{minutes} min"
    hours = round(seconds / 3600)
    if hours < 48:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{hours // 24} d {hours % 24} h"
