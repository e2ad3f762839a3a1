"""What is generated in docs/ is what the code says now, byte for byte; ``make docs`` writes it."""

from __future__ import annotations

import doctest
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools import docs
from tools.docs import END, MARK, PAGES, ROOT, mark, written


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_what_the_code_says(name: str) -> None:
    here, fresh = (ROOT / name).read_text(encoding="utf-8").splitlines(), written(name).splitlines()
    differs = next((n for n, pair in enumerate(zip(here, fresh, strict=False)) if pair[0] != pair[1]), None)
    if differs is None and len(here) != len(fresh):
        differs = min(len(here), len(fresh))
    assert differs is None, f"stale from line {differs + 1} on: make docs"


def test_a_page_without_the_mark_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "docs" / "reference").mkdir(parents=True)
    (tmp_path / "docs" / "reference" / "clauses.md").write_text("# The clauses\n")
    monkeypatch.setattr("tools.docs.ROOT", tmp_path)
    with pytest.raises(ValueError, match=f"clauses.md has no line '{MARK.strip()}'"):
        written("docs/reference/clauses.md")


def test_each_part_of_a_page_goes_where_its_name_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tools.docs.ROOT", tmp_path)
    monkeypatch.setitem(docs.GENERATED, "page.md", {"one": lambda: "1\n", "two": lambda: "2\n"})
    (tmp_path / "page.md").write_text(f"a\n{mark('two')}old\n{END}b\n{mark('one')}old\n{END}c\n")
    assert written("page.md") == f"a\n{mark('two')}\n2\n\n{END}b\n{mark('one')}\n1\n\n{END}c\n"


def test_an_assignor_counts_by_the_worst_that_it_breaks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "docs" / "results" / "README.md"
    page.parent.mkdir(parents=True)
    cells = {
        "range": "· | · | ·",
        "fair": "· | · | [a](b#1)",
        "slow": "· | [a](b#2) | [a](b#3)",
        "bad": "[a](b#4) | · | ·",
    }
    rows = "".join(f"| c | {name} | 1 | 1 | {levels} |\n" for name, levels in cells.items())
    page.write_text(f"| client | assignor | release | newest | s | l | q |\n| --- |\n{rows}\n")
    monkeypatch.setattr("tools.docs.ROOT", tmp_path)
    assert docs.results().splitlines()[1:] == [
        "- 1 violate safety: [c bad](docs/results/b#4).",
        "- 0 of these 1 do so only on input that is rare in practice.",
        "- 1 more violate liveness: c slow.",
        "- 1 more break only promises of quality: c fair.",
        "- 1 break nothing: c range.",
    ]


def test_a_part_that_does_not_end_swallows_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tools.docs.ROOT", tmp_path)
    monkeypatch.setitem(docs.GENERATED, "page.md", {"one": str, "two": str})
    (tmp_path / "page.md").write_text(f"{mark('one')}by hand\n{mark('two')}{END}")
    with pytest.raises(ValueError, match=r"page.md has no line '<!-- to here -->' below"):
        written("page.md")


def test_the_examples_of_the_generator_hold() -> None:
    assert doctest.testmod(docs).failed == 0


@pytest.mark.nightly
@pytest.mark.parametrize("seed", ["1", "2"])
def test_make_docs_is_reproducible(seed: str, tmp_path: Path) -> None:
    """In another process, on another day, with another order of every set."""
    environment = {**os.environ, "PYTHONHASHSEED": seed, "COLUMNS": "40", "FORCE_COLOR": "1"}
    command = [sys.executable, "-m", "tools.docs", "--into", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, env=environment, check=True, timeout=300)
    made = sorted(file.relative_to(tmp_path) for file in tmp_path.rglob("*.*"))
    assert {*map(Path, PAGES)} < {*made}
    assert [file for file in made if (tmp_path / file).read_bytes() != (ROOT / file).read_bytes()] == []
