"""How to mend a clause that is broken, in the terms of who wrote the target."""

from __future__ import annotations

from collections.abc import Mapping

JAVA, PYTHON, LINES, WIRE = "Java", "Python", "JSON lines", "the wire"
"""What an author sees of a member: an object of Java or Python, a line of JSON, or the bytes of JoinGroup."""

_GENERATION = {
    JAVA: "Subscription.generationId() has the generation of a claim (kafka-clients 3.4.0 or newer)",
    PYTHON: "group[member].generation_id has the generation of a claim, -1 where there is none",
    LINES: "`generation` of a member in the request has that of its claims, -1 where there is none",
    WIRE: "GenerationId of ConsumerProtocolSubscription, version 2 or newer, has that of a claim",
}

SILENT = "never answered"
"""In place of a clause: what to look at where a target answered nothing at all."""

_NEEDS = "it never answered, so nothing else was judged: it may need"
_SILENT = {
    JAVA: f"{_NEEDS} a setting (--config KEY=VALUE), a broker to ask (--lags), or topics of its own",
    PYTHON: f"{_NEEDS} arguments of its constructor, a variable (--env NAME), or a broker",
    LINES: f"{_NEEDS} arguments, a variable (--env NAME), or a broker",
    WIRE: f"{_NEEDS} other settings of the client",
}

_HINTS: Mapping[str, Mapping[str, str]] = {
    "kip792/claim/1": _GENERATION,
    "kip792/claim/2": _GENERATION,
    SILENT: _SILENT,
}


def seen_by(spec: str) -> str:
    """Return as what the author of a target sees a member, by how the target is named."""
    if spec.startswith("java:"):
        return JAVA
    if spec.startswith("-- "):
        return LINES
    prefix, colon, _ = spec.partition(":")
    return WIRE if spec.startswith(("client:", "wire -- ")) or (colon and "-" in prefix) else PYTHON


def hint(clause_id: str, spec: str) -> str:
    """Return what to read, where a broken clause means that it was not; "" where there is nothing to say."""
    return _HINTS.get(clause_id, {}).get(seen_by(spec), "")
