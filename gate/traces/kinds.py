"""The files that commands take as a TRACE, whatever they are."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

from rebalance.explore.groups.runs import SavedRun
from rebalance.gate.cli.console.terminal import ROOT
from rebalance.gate.cli.console.text import clean
from rebalance.gate.targets.resolve import named_here
from rebalance.gate.traces import counterexamples, files, recordings, runs
from rebalance.gate.traces.counterexamples import Trace
from rebalance.gate.traces.files import FileKind, TraceError
from rebalance.pipeline.audit.records import Recording
from rebalance.properties.group.own import OWN


def load(path: Path, *, trust: bool = False) -> Trace | SavedRun | Recording:
    """What is in a file. A run with an assignor or an invariant of somebody's own imports that, which
    ``may_run`` is asked about, unless there is ``trust``.

    Raises ``NewerSchema`` for one of a newer suite, ``TraceError`` for all else that is wrong with it.
    """
    data = files.read_json(path)
    written = data.get("kind") if isinstance(data, dict) else None
    with contextlib.suppress(AttributeError, LookupError, TypeError):
        may_run(path, str(data["setup"]["assignor"]["target"]), trust)
    with contextlib.suppress(AttributeError, LookupError, TypeError):
        if str(data["clause"]).startswith(OWN):
            may_run(path, data["clause"].removeprefix(OWN), trust)
    of_groups: tuple[FileKind[Any], ...] = (runs.FILE, recordings.FILE)
    kind: FileKind[Any] = next((one for one in of_groups if written in one.kinds), counterexamples.FILE)
    return files.parsed(path, data, kind)  # type: ignore[no-any-return]


def may_run(path: Path, spec: str, trust: bool) -> None:
    """Raises ``TraceError`` where a file names a target that neither this project names nor a run here has
    saved, and there is no ``trust`` in it."""
    if not (trust or named_here(spec) or path.resolve().is_relative_to(ROOT.resolve())):
        name = clean(spec)[:200]
        raise TraceError(f"{path} runs {name!r}, which this project does not name: --trust if you know it")
