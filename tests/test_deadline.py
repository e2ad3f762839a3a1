"""A run whose worker is gone, but not what it started, ends and says what failed."""

from __future__ import annotations

from pathlib import Path

import pytest

ORPHAN = """
import os, time

def test_wrong():
    assert 0

def test_gone():
    if not os.fork():
        time.sleep(70)
    os._exit(1)
"""


@pytest.mark.nightly  # xdist takes half a minute to give a worker up
def test_a_run_that_waits_for_a_dead_worker_ends(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent.parent))
    pytester.makeconftest("from tests import deadline\nfrom tests.deadline import *\ndeadline.GRACE = 2.0\n")
    pytester.makepyfile(ORPHAN)
    ran = pytester.runpytest_subprocess("-n", "1", "-o", "session_timeout=2", timeout=60)
    ran.stdout.fnmatch_lines(["*test_wrong*"])
    assert ran.ret
