"""Fixtures of the gate's tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from rebalance.gate import cli

from tests.gate.command import Ran, Rebalance
from tests.pipeline.conftest import spark

__all__ = ["rebalance", "spark"]


@pytest.fixture
def rebalance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Rebalance:
    """The command in an empty directory, in this process."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NO_COLOR", raising=False)

    def run(*words: object) -> Ran:
        code = cli.main([str(word) for word in words])
        return Ran(code, *capfd.readouterr())

    return run
