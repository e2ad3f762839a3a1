"""What commands read beside logs and traces: none of it ends a command otherwise than in one line."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rebalance_verifier.gate.search import resume
from rebalance_verifier.pipeline.campaign.campaign import Campaign, CampaignError, load

from tests.command import Ran, Rebalance

CAMPAIGN: dict[str, Any] = {
    "schema": 1,
    "plays": {"target": "range"},
    "seed": 0,
    "legs": [[10, 5]],
    "suite_version": "1",
}
EVENT = {"group": "g", "event": "owned", "consumer": "a", "at": "2026-01-01T00:00:00Z"}


def fifo(path: Path) -> None:
    os.mkfifo(path)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def directory(path: Path) -> None:
    path.mkdir()


def loop(path: Path) -> None:
    path.symlink_to(path.name)


def sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(2**30)


def deep(path: Path) -> None:
    path.write_text("[" * 100_000)


def a_list(path: Path) -> None:
    path.write_text("[]")


def twice(path: Path) -> None:
    path.write_text('{"schema": 1, "schema": 2}')


def binary(path: Path) -> None:
    path.write_bytes(b"\x80\x04\xff")


IRREGULAR = (fifo, device, loop, sparse, binary)
EVERY = (*IRREGULAR, directory, deep, a_list, twice)

Make = Callable[[Path], None]

READERS: dict[tuple[str, str], tuple[Make, ...]] = {
    ("d/campaign.json", "campaign --played --out d"): EVERY,
    ("x.json", "replay x.json"): (*IRREGULAR, deep, a_list, twice),
    ("x.json", "show x.json"): (fifo, device, deep, twice),
    ("d/run.json", "record --again d"): EVERY,
    ("clients.json", "compare --client @clients.json"): EVERY,
    ("d/comparison.json", "compare range --out d"): EVERY,
    ("rebalance.toml", "check range"): (*IRREGULAR, directory, deep),
    ("pyproject.toml", "check range"): (fifo, device, loop, sparse),
    ("scenario.toml", "explore ./scenario.toml"): (*IRREGULAR, directory, deep),
    ("known.txt", "check range --known-failing @known.txt"): (*IRREGULAR, directory),
    ("known.txt", "audit log.jsonl --known @known.txt"): (*IRREGULAR, directory),
    ("d/run.json", "conform d"): EVERY,
    ("o/follow.json", "audit log.jsonl --follow --once --out o"): EVERY,
    ("o/state/done.json", "audit log.jsonl --follow --once --out o"): EVERY,
    ("o/state/begun.json", "audit log.jsonl --follow --once --out o"): (fifo, a_list),
}


def in_one_line(ran: Ran, name: str) -> None:
    """It is an error of use that names the file."""
    said = ran.out + ran.err
    assert ran.code == 2, ran
    assert "Traceback" not in said
    assert name in said, ran
    assert len(said.splitlines()) <= 2, ran


@pytest.mark.parametrize(("file", "command"), READERS, ids=lambda text: text.replace("/", "."))
def test_what_no_run_has_saved_is_one_line(rebalance: Rebalance, here: Path, file: str, command: str) -> None:
    Path("log.jsonl").write_text(json.dumps(EVENT))
    for folder in ("d", "o"):
        Path(folder).mkdir()
        (Path(folder) / "events.jsonl").write_text(json.dumps(EVENT) + "\n")
    if "state" in file:
        rebalance(*command.split())
        Path(file).unlink()
    for number, make in enumerate(READERS[file, command]):
        path = Path(file)
        if number:
            path.rename(f"{number}.away")
        make(path)
        in_one_line(rebalance(*command.split()), path.name)


@pytest.mark.parametrize("make", EVERY)
def test_a_search_is_not_gone_on_with_from_anything_else(tmp_path: Path, make: Make) -> None:
    make(tmp_path / "x.json")
    with pytest.raises(ValueError, match=r"x\.json"):
        resume.load(tmp_path / "x.json")


LEGS: list[object] = [
    [],
    "ab",
    [[1]],
    [[1, 2, 3]],
    [[0, 1]],
    [[5, 0]],
    [[-5, 1]],
    [[1.5, 1]],
    [[True, 1]],
    [[10**30, 1]],
]
LEGS += [[[10**12, 1]], [[10, 5], [10, 5]], [[10, 5], [5, 5]], [[None, 1]], [7], [[10, 10**400]]]
WRONG: list[dict[str, object]] = [{"legs": legs} for legs in LEGS]
WRONG += [{"seed": "0"}, {"seed": 10**400}, {"seed": None}, {"plays": ["x"]}, {"plays": {"target": {}}}]
WRONG += [{"suite_version": {}}, {"schema": [1]}, {"schema": 2}, {"schema": True}]


def test_a_hostile_campaign(tmp_path: Path) -> None:
    file = tmp_path / "campaign.json"
    for document in (
        *({**CAMPAIGN, **wrong} for wrong in WRONG),
        *({name: CAMPAIGN[name] for name in CAMPAIGN if name != left_out} for left_out in CAMPAIGN),
    ):
        file.write_text(json.dumps(document))
        with pytest.raises(CampaignError, match=r"campaign\.json"):
            load(tmp_path)
    file.write_text(json.dumps(CAMPAIGN))
    assert load(tmp_path) == Campaign(CAMPAIGN["plays"], 0, ((10, 5),), "1")


def test_rows_of_a_campaign_that_are_none(rebalance: Rebalance, here: Path) -> None:
    import duckdb

    rows = Path("d/verdicts/slice=00000")
    rows.mkdir(parents=True)
    Path("d/campaign.json").write_text(json.dumps(CAMPAIGN))
    (rows / "_SUCCESS").touch()
    for make in (fifo, device, binary, directory):
        make(rows / "part.parquet")
        in_one_line(rebalance("campaign", "--played", "--out", "d"), "d")
        (rows / "part.parquet").rename(f"{make.__name__}.away")
    for row in ("'x' AS number", "1 AS number", "NULL AS number, 1 AS seed, 'violation' AS verdict"):
        duckdb.sql(f"COPY (SELECT {row}) TO '{rows / 'part.parquet'}' (FORMAT parquet)")
        in_one_line(rebalance("campaign", "--played", "--out", "d"), "d")


def test_more_slices_than_a_directory_holds_are_not_begun(rebalance: Rebalance, here: Path) -> None:
    ran = rebalance("campaign", "range", "--scenarios", "200000", "--slice", "1", "--out", "d")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "say --slice" in ran.err
