"""Our own schemas, held against what the commands print and write."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import Any

import jsonschema
from rebalance_verifier.traces.formats import FORMATS, schema

Validator = jsonschema.Draft202012Validator


def closed(document: Any) -> Any:
    """A schema in which every object has the fields that are named and no others: fields may be added to what
    we write, but not without a word about them."""
    if isinstance(document, list):
        return [closed(item) for item in document]
    if not isinstance(document, dict):
        return document
    inner = {key: closed(value) for key, value in document.items()}
    if inner.get("type") == "object" and "properties" in inner:
        inner.setdefault("additionalProperties", False)
    return inner


@cache
def validator(name: str, strict: bool = True) -> Any:
    """Of one format."""
    document = schema(name)
    Validator.check_schema(document)
    made = closed(document) if strict else document
    return Validator(made, format_checker=Validator.FORMAT_CHECKER)


def hold(name: str, document: Any) -> None:
    """Fail unless the document keeps the schema of its format and has no field that the schema has not."""
    wrong = [f"{error.json_path}: {error.message[:200]}" for error in validator(name).iter_errors(document)]
    assert not wrong, f"{name}: {wrong[:5]}"


def printed(arguments: Sequence[str]) -> str | None:
    """The format of what a command line prints; None for what is not JSON."""
    if ("--format", "json") not in pairwise(arguments):
        return None
    command = arguments[0]
    special = {
        ("list", "scenarios"): "scenarios",
        ("list", "releases"): "scenarios",
        ("list", "faults"): "scenarios",
        ("list", "group"): "group-clauses",
        ("list", "clauses"): "clauses",
        ("list", "checks"): "checks",
        ("list", "obligations"): "obligations",
        ("prove", "--necessity"): "necessity",
        ("prove", "--release"): "shipped",
        ("bugs", "--matrix"): "matrix",
        ("conform", "--code"): "lockstep",
        ("explore", "--on"): "code-search",
        ("audit", "--follow"): "finding",
    }
    if command == "bugs" and "--matrix" not in arguments and set(arguments) - {"bugs", "--format", "json"}:
        return "cases"
    found = next(
        (name for (of, option), name in special.items() if of == command and option in arguments), None
    )
    by_command = {
        "explore": "exploration",
        "upgrade": "upgrade",
        "prove": "proof",
        "campaign": "campaign",
        "compare": "comparison",
        "audit": "audit",
        "record": "record-report",
        "conform": "conformance",
        "bugs": "bugs",
        "show": "picture",
        "replay": "cases",
    }
    return found or by_command[command]


def hold_printed(arguments: Sequence[str], code: int, out: str) -> None:
    """Hold what a command printed against the schema of its format, if it printed any."""
    name = printed(arguments)
    if name is None or code in (2, 4) or not out.strip():
        return
    for text in out.splitlines() if name == "finding" else [out]:
        hold(name, json.loads(text))


__all__ = ["FORMATS", "Validator", "closed", "hold", "hold_printed", "printed", "validator"]
