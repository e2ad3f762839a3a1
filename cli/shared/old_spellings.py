"""What commands and options were called before, and what to write now: the file beside this one."""

from __future__ import annotations

from collections.abc import Sequence

from rebalance_verifier.base.tables import table

_TABLE = table(__file__)
COMMANDS: dict[str, str] = _TABLE["commands"]
OPTIONS: dict[str, dict[str, str]] = _TABLE["options"]
"""Command -> option -> what to write after ``rebalance``."""


def correction(arguments: Sequence[str]) -> str:
    """Return what to write in place of an old spelling among these; "" where there is none.

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
