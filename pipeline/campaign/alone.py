"""A campaign on this machine: processes play its slices, and DuckDB writes them. No Spark, no Java."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import duckdb
from rebalance_verifier.base.processes.workers import CannotStart, stream
from rebalance_verifier.base.removal import remove
from rebalance_verifier.pipeline import database
from rebalance_verifier.pipeline.campaign import campaign as campaigns
from rebalance_verifier.pipeline.campaign.campaign import (
    COLUMNS,
    COMMITTED,
    Campaign,
    CampaignError,
    Player,
    Slice,
    VerdictRow,
)

ATTEMPTS = 4
"""How often a part of a slice is begun whose process somebody ends; Spark tries as often."""

_AS_JSON: Mapping[str, Callable[[Any], str]] = {
    "VARCHAR[]": json.dumps,
    "MAP(VARCHAR, BIGINT)": lambda pairs: json.dumps(dict(pairs)),
}
"""Types of columns that are handed over as JSON: DuckDB would tell what they hold by the first rows only."""


def run(
    player: Player,
    campaign: Campaign,
    directory: Path,
    limit: float,
    report_progress: Callable[[int], None] = lambda done: None,
    jobs: int | None = None,
) -> None:
    """Play all slices that are not committed, in so many processes at a time, by default one for each
    processor. ``limit``: seconds that a scenario may take.

    ``report_progress`` is called with how many scenarios are done. Raises CampaignError where the player does
    not get ready, or the rows cannot be written.
    """

    def commit(one: Slice, report: Callable[[int], None]) -> None:
        play = partial(campaigns.rows, player, campaign.seed, limit=limit)
        rows = dict[range, list[VerdictRow]]()
        left = campaigns.tasks(one)
        for _ in range(ATTEMPTS):
            rows |= {part: [] for part in left}
            with closing(_played(play, left, jobs)) as arriving:
                for part, some in arriving:
                    rows[part] += some
                    report(sum(map(len, rows.values())))
            left = [part for part, known in rows.items() if len(known) < len(part)]
            if not left:
                return _write(chain.from_iterable(rows.values()), campaigns.slice_path(directory, one))
        raise CampaignError(f"processes that play are ended again and again, {ATTEMPTS} times by now")

    campaigns.run(campaign, directory, commit, report_progress)


def _played(
    play: Callable[[range], Iterator[list[VerdictRow]]], parts: Sequence[range], jobs: int | None
) -> Generator[tuple[range, list[VerdictRow]], None, None]:
    """Yield the rows of these parts of a slice, as they come; no more of one whose process is ended. Raises
    CampaignError."""

    def working() -> AbstractContextManager[Callable[[int], Iterator[list[VerdictRow]]]]:
        return nullcontext(lambda number: play(parts[number]))

    try:
        with closing(stream(working, len(parts), jobs)) as arriving:
            yield from ((parts[number], some or []) for number, some in arriving)
    except CannotStart:
        pass  # what was ended had not yet begun
    except RuntimeError as error:
        raise (campaigns.unready(str(error)) or error) from error


def _write(rows: Iterable[VerdictRow], path: Path) -> None:
    """Commit the rows of a slice, in order, in place of what is left of another try."""
    kinds = COLUMNS.values()
    handed = {name: "VARCHAR" if kind in _AS_JSON else kind for name, kind in COLUMNS.items()}
    columns = ", ".join(
        f"CAST({name}::JSON AS {kind}) AS {name}" if kind in _AS_JSON else name
        for name, kind in COLUMNS.items()
    )
    texts = (
        [_AS_JSON[kind](value) if kind in _AS_JSON else value for value, kind in zip(row, kinds, strict=True)]
        for row in rows
    )
    try:
        remove(path)
        with duckdb.connect(config={"autoinstall_known_extensions": False}) as connection:
            database.add(connection, texts, "played", handed)
            database.save(connection, f"SELECT {columns} FROM played ORDER BY number", str(path))
        (path / COMMITTED).touch()
    except (OSError, duckdb.IOException) as error:
        raise CampaignError(f"{path} cannot be written: {database.reason(error)}") from error
