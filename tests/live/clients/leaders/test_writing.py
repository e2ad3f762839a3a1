"""What each client writes today is what the table says: the table follows its newest release, or is made anew
by `make clients`."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby

import pytest
from rebalance_verifier.live.artifacts.registries import existing
from rebalance_verifier.live.clients.leaders.clients import LEADING
from rebalance_verifier.live.clients.leaders.writing import joins_of
from rebalance_verifier.model.written import WrittenBy, written

from tools.client_bytes import HEAD, MIXED, OLDER, to_toml


def said_of(row: WrittenBy) -> dict[str, object]:
    """All that the bytes of a client say. Those of sarama's sticky strategy list topics in the order of a Go
    map, another one at each join."""
    return {
        f"{situation} {name}": (
            join.version,
            join.reason,
            replace(read.subscription, user_data=None, owned_partitions=()),
            read.owned,
            read.user_data,
        )
        for situation, join in row.joins.items()
        for name in join.metadata
        for read in [row.read(situation, name)]
    } | {situation.value: why for situation, why in row.missing.items()}


RELEASES = [(key, [*rows]) for key, rows in groupby(written(), key=lambda row: (row.client, row.release))]


def test_every_client_that_leads_is_in_the_table() -> None:
    for name, client in LEADING.items():
        rows = [row for row in written() if row.client == name]
        releases = dict.fromkeys(row.release for row in rows)
        assert len(releases) == len(OLDER[name]) + 1, name
        lists = [*client.assignors, *filter(None, [MIXED.get(name)])]
        assert [(row.release, row.assignors) for row in rows] == [
            (release, assignors) for release in releases for assignors in lists
        ]


def test_the_file_is_as_the_tool_writes_it() -> None:
    from tools.client_bytes import FILE

    assert FILE.read_text(encoding="utf-8") == HEAD + to_toml(written())


@pytest.mark.slow
def test_a_client_is_brought_into_each_situation() -> None:
    """kafka-python takes a second: one row, by day."""
    row = next(row for row in reversed(written()) if row.client == "kafka-python")
    assert said_of(joins_of(LEADING["kafka-python"], row.release, row.assignors)) == said_of(row)


@pytest.mark.nightly
@pytest.mark.parametrize(("release", "rows"), RELEASES, ids=[" ".join(key) for key, _ in RELEASES])
def test_a_client_writes_what_the_table_says(release: tuple[str, str], rows: list[WrittenBy]) -> None:
    for row in rows:
        now = joins_of(LEADING[row.client], row.release, row.assignors)
        assert said_of(now) == said_of(row), f"{' '.join(release)} {row.assignors}: make clients"


@pytest.mark.nightly
@pytest.mark.parametrize("name", LEADING)
def test_the_newest_release_of_a_client_is_in_the_table(name: str) -> None:
    newest = existing(LEADING[name].package).releases[-1]
    assert newest in {row.release for row in written() if row.client == name}, "make clients"
