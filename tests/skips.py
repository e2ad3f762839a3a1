"""Skips that a whole run may have, with reasons; any other fails a run with ``SKIPS=listed`` (`.ci/run`)."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

import pytest

ALLOWED: Mapping[str, str] = {
    r"no Chromium|needs chromium": "300 MB; installed by `.ci/run` where it may use the package manager",
    r"no (zsh|fish) here": "as Chromium",
}
"""Regular expression of the reason that is printed -> why a run may go without."""


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Fail a run that skipped what is not listed: a test that is not run proves nothing."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("SKIPS") != "listed" or reporter is None:
        return
    reports = [one for one in reporter.stats.get("skipped", ()) if isinstance(one.longrepr, tuple)]
    reasons = dict.fromkeys(one.longrepr[2] for one in reports)
    left = [reason for reason in reasons if not any(re.search(known, reason) for known in ALLOWED)]
    for reason in left:
        reporter.write_line(f"not listed in tests/skips.py: {reason}", red=True)
    if left and exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
