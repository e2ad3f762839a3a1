"""Traces on the command line: found by what names them, and saved with a word about where."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rebalance_verifier.base.saved import ROOT
from rebalance_verifier.cli.console.terminal import (
    UsageError,
    print_err,
    usage_errors,
)
from rebalance_verifier.traces.recognise import TRACE, TRACES, right_command

if TYPE_CHECKING:
    from rebalance_verifier.explore.groups.runs import SavedRun


def found(names: Sequence[str]) -> list[Path]:
    """Return the files that ids, files and directories name. Raises UsageError."""
    from rebalance_verifier.base import saved as files

    for name in names:
        if os.path.isdir(name) and (other := right_command(Path(name), TRACE, TRACES)):
            raise UsageError(other)
    with usage_errors(LookupError, ValueError, OSError):
        return [path for name in names for path in files.find(name, ROOT)]


def directory(out: Path | None) -> Path:
    """Return where traces go: ``out``, or that of failures, whose root is made. Raises OSError."""
    from rebalance_verifier.base import saved as files

    if out is None:
        files.make_root(ROOT)
    return out or ROOT / files.FAILURES


def save_runs(saved: Iterable[SavedRun], out: Path | None) -> dict[str, str]:
    """Save runs of the group; id -> path. What cannot be written does not cost the verdict."""
    from rebalance_verifier.traces import runs

    paths: dict[str, str] = {}
    try:
        for one in saved:
            paths[runs.run_id(one)] = str(runs.save(one, directory(out)))
    except OSError as error:
        print_err(f"the traces cannot be saved: {error}")
    return paths
