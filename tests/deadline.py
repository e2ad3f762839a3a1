"""A run that hangs ends: pytest-timeout asks its workers, and one that was killed is asked no more.

A worker that was killed, while what it forked lives on, keeps its pipe open, and the run waited for it for
ever: CI had a timeout instead of a list of what failed.
"""

from __future__ import annotations

import os
import signal
import threading

import pytest

GRACE = 300.0
"""Seconds after ``session_timeout`` in which workers may end by themselves."""


def pytest_configure(config: pytest.Config) -> None:
    """Send Ctrl-C to this process, which then says what failed, when the run is too long."""
    seconds = float(config.getini("session_timeout") or 0)
    if seconds and not hasattr(config, "workerinput"):
        timer = threading.Timer(seconds + GRACE, os.kill, (os.getpid(), signal.SIGINT))
        timer.daemon = True
        timer.start()
        config.add_cleanup(timer.cancel)
