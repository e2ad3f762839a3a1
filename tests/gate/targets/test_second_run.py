"""No violation of an assignor in another language that a second run does not show."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command import process
from tests.gate.toolchains import copied, run

SEEDS = range(20)
LIBRARIES = ("franz-go", "sarama")


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    sources, built = copied(tmp_path_factory.mktemp("sources")), tmp_path_factory.mktemp("built")
    run("go", "build", "-o", f"{built}/", *(f"./{name}" for name in LIBRARIES), cwd=sources / "go")
    return built


@pytest.mark.nightly
@pytest.mark.parametrize("library", LIBRARIES)
def test_every_violation_is_shown_again(library: str, programs: Path, tmp_path: Path) -> None:
    """Of those that fail a check: what never was the same twice is told apart as unconfirmed."""
    shown = 0
    for seed in SEEDS:
        out = tmp_path / str(seed)
        out.mkdir()
        command = ("--", str(programs / library), "cooperative-sticky")
        search = ("--profile", "smoke", "--seed", str(seed), "--report", "json", "--report-dir", str(out))
        process("check", *search, *command, cwd=out)
        report = json.loads((out / "report.json").read_text())
        broken = [row for row in report["clauses"] if row["gates"] and row["status"] == "violated"]
        traces = [cause["trace"] for row in broken for cause in row["causes"] or [row["finding"]]]
        for trace in traces:
            again = process("replay", trace, "--trust", cwd=out)
            assert again.stdout.startswith("failing"), (seed, trace, again.stdout)
        shown += len(traces)
    assert shown or library == "franz-go", "sarama breaks clauses of safety in this profile, franz-go none"
