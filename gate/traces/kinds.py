"""The files that commands take as a TRACE, whatever they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rebalance.explore.groups.runs import SavedRun
from rebalance.gate.traces import counterexamples, files, recordings, runs
from rebalance.gate.traces.counterexamples import Trace
from rebalance.gate.traces.files import FileKind
from rebalance.pipeline.audit.records import Recording


def load(path: Path) -> Trace | SavedRun | Recording:
    """What is in a file.

    Raises ``NewerSchema`` for one of a newer suite, ``TraceError`` for all else that is wrong with it.
    """
    data = files.read_json(path)
    written = data.get("kind") if isinstance(data, dict) else None
    of_groups: tuple[FileKind[Any], ...] = (runs.FILE, recordings.FILE)
    kind: FileKind[Any] = next((one for one in of_groups if written in one.kinds), counterexamples.FILE)
    return files.parsed(path, data, kind)  # type: ignore[no-any-return]
