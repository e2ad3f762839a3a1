"""What commands and options were called before, and what to write now."""

from __future__ import annotations

from collections.abc import Sequence

COMMANDS = {
    "smoke": "check --adapter",
    "clauses": "list clauses",
    "targets": "list targets",
    "schemas": "list schemas",
}

OPTIONS = {
    "check": {"--budget": "check --time-limit TIME"},
    "explore": {
        "--list": "list scenarios` or `rebalance list releases` or `rebalance list faults",
        "--clauses": "list clauses --of group",
        "--profiles": "explore --release RELEASE[,RELEASE...]",
        "--budget": "explore --max-faults N",
        "--steps": "explore --granularity fine",
        "--assignor": "explore --target TARGET",
    },
    "upgrade": {
        "--profile": "upgrade --release RELEASE",
        "--budget": "upgrade --max-faults N",
    },
    "prove": {"--list": "list obligations", "--limit": "prove --each-limit TIME"},
    "bugs": {"--profiles": "bugs --release RELEASE[,RELEASE...]"},
    "record": {
        "--list": "list scenarios --of recording` or `rebalance list checks --of recording",
        "--partitions": "record --topic-partitions N",
    },
    "conform": {
        "--profile": "conform --release [CONSUMER=]RELEASE",
        "--faults": "conform --max-faults N",
        "--steps": "conform --granularity fine",
        "--seconds": "conform --time-limit TIME",
    },
    "audit": {"--list": "list checks", "--memory": "audit --driver-memory SIZE"},
    "campaign": {
        "--profile": "campaign --release RELEASE[,RELEASE...]",
        "--budget": "campaign --max-faults N",
        "--limit": "campaign --each-limit TIME",
        "--traces": "campaign --trace-dir DIR",
        "--report": "campaign --played --out DIR",
    },
    "compare": {
        "--releases": "compare --versions all|newest|VERSION[,VERSION...]",
        "--assignors": "compare --only ASSIGNOR[,ASSIGNOR...]",
        "--pages": "compare --format md`, or in a clone `python -m tools.results",
    },
}
"""Command -> option -> what to write after ``rebalance``."""


def correction(arguments: Sequence[str]) -> str:
    """What to write in place of an old spelling among these; "" where there is none.

    >>> correction(["smoke", "range"])
    'rebalance smoke: write `rebalance check --adapter`'
    >>> correction(["check", "--budget=5"])
    'rebalance check --budget: write `rebalance check --time-limit TIME`'
    """
    command, *rest = arguments or ("",)
    if command in COMMANDS:
        return f"rebalance {command}: write `rebalance {COMMANDS[command]}`"
    old = OPTIONS.get(command, {})
    for option in (word.partition("=")[0] for word in rest):
        if option in old:
            return f"rebalance {command} {option}: write `rebalance {old[option]}`"
    return ""
