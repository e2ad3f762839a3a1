"""Every JSON that the suite writes for others: its name, who writes it, and the schema that it keeps.

The schemas are JSON Schema 2020-12, files beside this one. Fields may be added to what we write without a
word, so no schema of ours closes an object but where a wrong name would be a mistake of its writer: in what
a target answers (``protocol``) and in the part of a trace that is replayed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib import resources
from typing import Any


@dataclass(frozen=True, slots=True)
class Format:
    """``file``: the schema's, without its ending. ``part``: the name below ``$defs`` where it is not the
    whole schema."""

    name: str
    written: str
    file: str
    part: str = ""


FORMATS = {
    one.name: one
    for one in (
        Format("report", "rebalance check --report json: report.json", "report"),
        Format("trace", "counterexamples of assignors: .rebalance/failures/ID.json", "trace"),
        Format("run", "runs of the group that break a clause: .rebalance/failures/ID.json", "run"),
        Format("exploration", "rebalance explore --format json, --report json", "exploration"),
        Format("upgrade", "rebalance upgrade --format json, --report json", "upgrade"),
        Format("proof", "rebalance prove --format json, --report json", "proof"),
        Format("necessity", "rebalance prove --necessity --format json", "necessity"),
        Format("campaign", "rebalance campaign --format json", "campaign"),
        Format("comparison", "rebalance compare --format json", "comparison"),
        Format("audit", "rebalance audit --report json: report.json; --format json", "audit"),
        Format("finding", "rebalance audit --follow --format json: a line", "recording", "finding"),
        Format("recording", "what an audit found, with the events around it: traces/ID.json", "recording"),
        Format("record-run", "rebalance record: run.json", "record-run"),
        Format("record-report", "rebalance record: report.json; --format json", "record-report"),
        Format("record-event", "rebalance record: a line of events.jsonl, reads.jsonl", "record-event"),
        Format("conformance", "rebalance conform --out, --format json", "conformance"),
        Format("picture", "rebalance show --format json", "picture"),
        Format("replay", "rebalance replay --on CLIENT: ID-CLIENT.json", "replay"),
        Format("protocol", "messages between the suite and a target, a line each", "protocol"),
        Format("clauses", "rebalance list clauses --format json", "lists", "clauses"),
        Format("group-clauses", "rebalance list clauses --of group --format json", "lists", "group-clauses"),
        Format("scenarios", "rebalance list scenarios --format json", "lists", "scenarios"),
        Format("checks", "rebalance list checks --format json", "lists", "checks"),
        Format("obligations", "rebalance list obligations --format json", "lists", "obligations"),
        Format("bugs", "rebalance bugs --format json", "lists", "bugs"),
        Format("matrix", "rebalance bugs --matrix --format json", "lists", "matrix"),
    )
}
"""By name, as `rebalance list schemas` lists them."""


def schema(name: str) -> dict[str, Any]:
    """The JSON Schema of a format, complete in itself. Raises KeyError for one that does not exist."""
    one = FORMATS[name]
    text = (
        resources.files("rebalance.gate.traces")
        .joinpath("schemas", f"{one.file}.schema.json")
        .read_text("utf-8")
    )
    document: dict[str, Any] = json.loads(text)
    if not one.part:
        return document
    head = {key: document[key] for key in ("$schema", "$id")}
    head["$id"] += f":{one.name}"
    return {**head, "title": one.written, "$ref": f"#/$defs/{one.part}", "$defs": document["$defs"]}
