"""The files that commands take as a TRACE, whatever they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rebalance_verifier.base import saved as files
from rebalance_verifier.base.saved import FileKind, TraceError
from rebalance_verifier.explore.groups.runs import SavedRun
from rebalance_verifier.gate.search import counterexamples
from rebalance_verifier.gate.search.counterexamples import Trace
from rebalance_verifier.gate.targets import trust
from rebalance_verifier.pipeline.audit.records import Recording
from rebalance_verifier.traces import recordings, runs
from rebalance_verifier.traces.recognise import TRACE, right_command


def load(path: Path, *, trusted: bool = False) -> Trace | SavedRun | Recording:
    """Return what is in a file. A run with an assignor or an invariant of somebody's own imports that: only
    what was signed here (``trust``), unless it is ``trusted``.

    Raises ``NewerSchema`` for one of a newer suite, ``TraceError`` for all else that is wrong with it.
    """
    try:
        data = files.read_json(path)
    except TraceError as error:
        other = right_command(path, TRACE)
        raise TraceError(f"{error}; {other}" if other else str(error)) from error
    if other := right_command(path, TRACE):
        raise TraceError(other)
    written = data.get("kind") if isinstance(data, dict) else None
    of_groups: tuple[FileKind[Any], ...] = (runs.FILE, recordings.FILE)
    kind: FileKind[Any] = next((one for one in of_groups if written in one.kinds), counterexamples.FILE)
    if kind is runs.FILE:
        for code in runs.code_in(data):
            trust.check(path, code, trusted=trusted, target=False)
    return files.parsed(path, data, kind)  # type: ignore[no-any-return]
