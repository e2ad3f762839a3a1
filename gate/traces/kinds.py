"""The files that commands take as a TRACE, whatever they are."""

from __future__ import annotations

from pathlib import Path

from rebalance.explore.groups.runs import SavedRun
from rebalance.gate.traces import counterexamples, recordings, runs
from rebalance.gate.traces.counterexamples import Trace
from rebalance.gate.traces.files import read_json
from rebalance.pipeline.audit.records import Recording


def load(path: Path) -> Trace | SavedRun | Recording:
    """What is in a file.

    Raises ``NewerSchema`` for one of a newer suite, ``TraceError`` for all else that is wrong with it.
    """
    data = read_json(path)
    match data.get("kind") if isinstance(data, dict) else None:
        case runs.KIND:
            return runs.load(path)
        case recordings.KIND:
            return recordings.load(path)
    return counterexamples.load(path)
