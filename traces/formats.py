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

from rebalance_verifier.model import codec


@dataclass(frozen=True, slots=True)
class Format:
    """``file``: the schema's, without its ending. ``part``: the name below ``$defs`` where it is not the
    whole schema."""

    name: str
    written: str
    file: str
    part: str = ""


def _text(*path: str) -> str:
    return resources.files("rebalance_verifier.traces").joinpath(*path).read_text("utf-8")


FORMATS = {one.name: one for one in codec.from_json(tuple[Format, ...], json.loads(_text("formats.json")))}
"""By name, as `rebalance list schemas` lists them."""


def schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema of a format, complete in itself. Raises KeyError for one that does not exist."""
    one = FORMATS[name]
    document: dict[str, Any] = json.loads(_text("schemas", f"{one.file}.schema.json"))
    if not one.part:
        return document
    head = {key: document[key] for key in ("$schema", "$id")}
    head["$id"] += f":{one.name}"
    return {**head, "title": one.written, "$ref": f"#/$defs/{one.part}", "$defs": document["$defs"]}
