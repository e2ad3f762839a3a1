"""``make clients``: the bytes that each client writes into JoinGroup, into model/written.toml.

``python -m tools.client_bytes`` starts each client of ``live/clients/leaders/clients`` in its newest release
and in those of ``OLDER``, for each of its assignors, brings it into each situation, and keeps its JoinGroups.
``make docs`` makes docs/reference/client-metadata.md of them. With --client the rows of others stay. Exit 1
where a client cannot be observed; its rows stay then.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from pathlib import Path
from typing import Any

from rebalance_verifier.base.processes.tools import ToolError
from rebalance_verifier.cli.console.terminal import print_err
from rebalance_verifier.live.artifacts.registries import existing
from rebalance_verifier.live.clients.leaders.clients import LEADING, Leading
from rebalance_verifier.live.clients.leaders.writing import joins_of
from rebalance_verifier.model import written
from rebalance_verifier.model.bugs.releases import released
from rebalance_verifier.model.written import WrittenBy

FILE = Path(written.__file__).with_suffix(".toml")
HEAD = (
    "# JoinGroups of real clients, by release, assignors and situation (rebalance_verifier.model.written).\n"
    "# Written by `make clients`; not by hand.\n"
)

OLDER: Mapping[str, Sequence[str]] = {
    "kafka-clients": ("3.3.2", "3.9.1"),
    "confluent-kafka": ("2.3.0",),
    "kafka-python": ("3.0.0",),
    "aiokafka": ("0.12.0",),
    "franz-go": ("1.21.7",),
    "sarama": ("1.60.2",),
    "kafka-go": ("0.4.47",),
    "kafkajs": ("2.2.1",),
    "@platformatic/kafka": ("1.35.0", "2.2.3"),
}
"""Releases beside the newest one: the last before a change of what is written, where one is known."""

MIXED: Mapping[str, str] = {
    "kafka-clients": "range,cooperative-sticky",
    "franz-go": "cooperative-sticky,range",
    "sarama": "cooperative-sticky,range",
}
"""Lists of an eager and a cooperative assignor, of the clients that take one."""


def wanted(client: Leading) -> Iterator[tuple[str, str]]:
    """Yield the releases and assignors to observe of a client. Raises ToolError."""
    found = existing(client.package)
    if not found.releases:
        raise ToolError(found.trouble)
    for release in released((*OLDER.get(client.name, ()), found.releases[-1])):
        for assignors in (*client.assignors, *filter(None, (MIXED.get(client.name),))):
            yield release, assignors


def to_toml(rows: Iterable[WrittenBy]) -> str:
    """Return the table as text.

    >>> print(to_toml([]), end="")
    <BLANKLINE>
    """
    lines = []
    for row in rows:
        name = ".".join(json.dumps(part) for part in (row.client, row.release, row.assignors))
        lines += ["", f"[{name}]"]
        lines += [f"{situation} = {_value(value)}" for situation, value in row.to_table().items()]
    return "\n".join([*lines, ""])


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{json.dumps(key)} = {_value(one)}' for key, one in value.items())}}}"
    return json.dumps(value)


def observe(name: str, pairs: Sequence[tuple[str, str]]) -> list[WrittenBy]:
    """Return what one client writes, release by release. Raises ToolError, OSError."""
    rows = []
    for release, assignors in pairs:
        row = joins_of(LEADING[name], release, assignors)
        for situation, why in row.missing.items():
            print_err(f"{name} {release} {assignors}, {situation}: {why}")
        if row.joins:
            rows.append(row)
    return rows


def main(argv: Sequence[str] | None = None) -> int:
    """Observe them, write the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--client", nargs="+", choices=LEADING, default=[*LEADING], help="observe these only")
    arguments = parser.parse_args(argv)
    kept = {name: [*rows] for name, rows in groupby(written.written(), key=lambda row: row.client)}
    failed = False

    def observed(name: str) -> list[WrittenBy]:
        nonlocal failed
        try:
            return observe(name, [*wanted(LEADING[name])])
        except (ToolError, OSError) as error:
            failed = True
            print_err(f"{name}: {error}")
            return kept.get(name, [])

    with ThreadPoolExecutor(2) as pool:
        kept |= dict(zip(arguments.client, pool.map(observed, arguments.client), strict=True))
    rows = [row for name in LEADING for row in kept.get(name, [])]
    FILE.write_text(HEAD + to_toml(rows), encoding="utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
