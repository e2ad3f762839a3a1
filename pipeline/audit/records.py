"""What an audit finds, as plain records: a finding, whom it is about, and the events of the log around it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

LEVELS = ("safety", "liveness", "quality")
"""The gravest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEvent:
    """One event of a log: a row of ``pipeline.audit.sources.events.EVENTS``, or a place of a finding."""

    at: datetime
    kind: str
    file: str
    line: int
    consumer: str | None = None
    member: str | None = None
    generation: int | None = None
    topic: str | None = None
    partition: int | None = None
    detail: str | None = None
    host: str | None = None

    @property
    def where(self) -> str:
        """``FILE:LINE``."""
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class FindingOwner:
    """A consumer that a finding is about, its member id, and the generation in which it was granted it."""

    consumer: str | None
    member: str | None = None
    generation: int | None = None

    @property
    def name(self) -> str:
        """What to call it."""
        return self.consumer or self.member or "somebody"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFinding:
    """A row of ``rebalance.pipeline.audit.findings.FINDINGS``.

    ``seconds`` is how long it lasted, to the end of the log where ``ended`` is None. ``skew``: by how many
    seconds the clocks concerned may differ, None for one clock; ``certain``: that does not explain it.
    """

    id: str
    check: str
    level: str
    group: str
    topic: str | None
    partition: int | None
    began: datetime
    ended: datetime | None
    seconds: float
    owners: tuple[FindingOwner, ...]
    skew: float | None
    certain: bool
    places: tuple[LogEvent, ...]
    sentence: str

    @property
    def about(self) -> str:
        """The partition or topic as Kafka writes it; empty for what is about the whole group."""
        if self.topic is None:
            return ""
        return self.topic if self.partition is None else f"{self.topic}-{self.partition}"

    @property
    def file_name(self) -> str:
        """Of its recording: the id where it can be one."""
        if re.fullmatch(r"[0-9a-f]{8,64}", self.id):
            return f"{self.id}.json"
        return f"{hashlib.sha256(self.id.encode(errors='replace')).hexdigest()[:16]}.json"


@dataclass(frozen=True, kw_only=True)
class Recording:
    """A finding and the events around it, in order of time. ``rule`` and ``source`` are the check's.

    ``origin`` says which logs were audited and how; ``path`` where it was read from.
    """

    finding: LogFinding
    rule: str
    source: str
    events: tuple[LogEvent, ...]
    origin: Mapping[str, Any] = field(default_factory=dict)
    suite_version: str = ""
    path: Path | None = None
