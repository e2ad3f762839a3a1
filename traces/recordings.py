"""What an audit found, with what the log says around it, on disk: one JSON file each, to read and to draw.

``traces/schemas/recording.schema.json`` describes the file. It is a recording of something that ran, not
a run of the model, so it is shown (``rebalance show``) and never replayed. Files of this kind are told from
others by their field ``kind``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rebalance_verifier.base import saved as files
from rebalance_verifier.base.saved import SUITE, dump
from rebalance_verifier.model import codec
from rebalance_verifier.pipeline.audit.records import LEVELS, LogFinding, Recording

KIND = "recording"
SCHEMA = 1
"""Raised when older readers would misread the file."""

_EVENT = (
    *("at", "kind", "consumer", "member", "generation", "topic", "partition", "detail", "host"),
    *("file", "line"),
)
"""The fields of an event in their order; what the log does not say is left out."""

_PLACE = ("at", "kind", "consumer", "generation", "file", "line")
"""Those of a place of a finding, all of them: the finding says the rest once and for all."""


def finding_out(finding: LogFinding) -> dict[str, Any]:
    """Return a finding as JSON, in reports and recordings alike."""
    written = codec.to_json(finding, ("doubt",))
    places = written.pop("places")
    return {**written, "places": [{name: event[name] for name in _PLACE} for event in places]}


def to_text(recording: Recording) -> str:
    """Return the file. What a reader wants to know comes first, the events last."""
    document = {
        "schema": SCHEMA,
        "kind": KIND,
        "suite": SUITE,
        "suite_version": recording.suite_version,
        "rule": recording.rule,
        "source": recording.source,
        "origin": recording.origin,
        "finding": finding_out(recording.finding),
        "events": [
            {name: event[name] for name in _EVENT if event[name] is not None}
            for event in codec.to_json(recording.events)
        ],
    }
    return dump(document) + "\n"


def save(recording: Recording, directory: Path) -> Path:
    """Write the recording, replacing one of the same finding. Raises OSError."""
    return files.save(directory, recording.finding.file_name, to_text(recording))


def _parse(data: dict[str, Any]) -> Recording:
    read = codec.from_json(Recording, {"rule": "", "source": "", **data})
    finding = read.finding
    if finding.level not in LEVELS:
        raise codec.unexpected("finding.level", f"one of {', '.join(LEVELS)}", finding.level)
    for name in ("seconds", "skew"):
        value = getattr(finding, name)
        if value is not None and not value >= 0:
            raise codec.unexpected(f"finding.{name}", "seconds, 0 or more", value)
    return read


FILE = files.FileKind("a recording", SCHEMA, _parse, (KIND,))
load = FILE.load
