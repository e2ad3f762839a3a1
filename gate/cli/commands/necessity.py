"""``rebalance prove --necessity``: each clause of the contract and each decision, made otherwise."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial

from rebalance.gate.cli.console.terminal import UsageError, print_out


def run(names: Sequence[str], *, limit: float, jobs: int | None, as_json: bool) -> int:
    """One line for each variation, or all about those in ``names``. 0 if nothing stays open, else 3.

    Raises UsageError for a variation that does not exist; the text lists them.
    """
    from rebalance.live.processes.workers import spread
    from rebalance.specs.necessity.examine import data, examine, in_full, table
    from rebalance.specs.necessity.necessity import NECESSITY

    for name in names:
        if name not in NECESSITY:
            raise UsageError(f"--necessity: nothing is called {name!r}; there are: {', '.join(NECESSITY)}")
    findings = []
    width = max(map(len, NECESSITY))
    try:
        for name in names or NECESSITY:
            finding = examine(NECESSITY[name], limit, spread=partial(spread, jobs=jobs))
            findings.append(finding)
            if not as_json:
                lines = in_full(finding) if names else (line for line in table([finding]))
                print_out("\n".join(_aligned(line, name, width) for line in lines))
    except KeyboardInterrupt:
        print_out(f"interrupted after {len(findings)}")
        return 130
    if as_json:
        print_out(json.dumps([data(finding) for finding in findings], indent=2))
    still_open = [finding.variation.name for finding in findings if finding.verdict == "open"]
    if not names and not as_json:
        needed = sum(finding.verdict == "needed" for finding in findings)
        without = len(findings) - needed - len(still_open)
        counted = f"{needed} needed for safety, {without} not, {len(still_open)} open"
        print_out(f"\n{len(findings)} variations: {counted}")
    return 3 if still_open else 0


def _aligned(line: str, name: str, width: int) -> str:
    """A line of the table with the column that all names fit into."""
    return f"{name:<{width}}{line[len(name) :]}" if line.startswith(f"{name}  ") else line
