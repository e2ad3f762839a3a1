"""``rebalance schemas``: the JSON Schemas of what the commands write."""

from __future__ import annotations

import argparse
import json
from typing import Any

from rebalance.gate.cli.console.terminal import UsageError, print_out


def add(commands: Any) -> None:
    """Add the command to the parser's ``commands``."""
    parser = commands.add_parser(
        "schemas",
        help="list the formats that the commands write, or print a JSON Schema",
        description="List every JSON format that is written; with NAME print its JSON Schema (2020-12).",
    )
    parser.set_defaults(run=run)
    parser.add_argument("name", nargs="?", metavar="NAME", help="one of the list")


def run(options: argparse.Namespace) -> int:
    """The command."""
    from rebalance.gate.traces.formats import FORMATS, schema

    if options.name is None:
        width = max(map(len, FORMATS))
        print_out("\n".join(f"{one.name:<{width}}  {one.written}" for one in FORMATS.values()))
        return 0
    if options.name not in FORMATS:
        raise UsageError(f"no format is called {options.name!r}; there are: {', '.join(FORMATS)}")
    print_out(json.dumps(schema(options.name), indent=2))
    return 0
