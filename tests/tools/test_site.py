"""The results as a site: every red cell of the pages is there, and every link leads to something."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools.site import RESULTS, main, read, site


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    return site(RESULTS)


def test_every_red_cell_of_the_pages_is_a_row(made: dict[str, str]) -> None:
    red = sum(
        len(re.findall(r"\[X\]\(#", line))
        for path in RESULTS.glob("*.md")
        for line in path.read_text().splitlines()
        if re.match(r"\| [\w/]+-\w+ \(\w+\) \|", line)
    )
    assert red > 500
    index = made["index.html"]
    assert f"{red:,} broken clauses" in index
    rows = index.partition("id=clauses")[2].count("<tr><th scope=row>")
    assert rows == red


def test_a_cell_is_read_as_it_stands(tmp_path: Path) -> None:
    page = tmp_path / "acme.md"
    page.write_text(
        "[All implementations](README.md)\n\n# \\@acme/kafka\n\nBy rebalance-verifier 1, profile ci.\n\n"
        "## sticky\n\n| clause | 1.0 | 2.0 |\n| --- | --- | --- |\n"
        "| assign/1-eager (safety) | · | [X](#beef) |\n\n| bug | 1.0 | 2.0 |\n| --- | --- | --- |\n"
    )
    (one,) = read(page)
    assert (one.name, one.client, one.judged) == ("acme", "@acme/kafka", (("sticky", ("1.0", "2.0")),))
    (cell,) = one.cells
    assert (cell.release, cell.clause, cell.protocol, cell.level, cell.trace) == (
        "2.0", "assign/1", "eager", "safety", "beef",
    )  # fmt: skip
    (tmp_path / "other.md").write_text("# Something else\n")
    assert list(read(tmp_path / "other.md")) == []
    assert sorted(site(tmp_path)) == ["acme.html", "index.html"]  # without its trace too


def test_links_lead_to_something(made: dict[str, str]) -> None:
    ids = {name: set(re.findall(r' id="?([\w-]+)', text)) for name, text in made.items()}
    for name, text in made.items():
        links = re.findall(r'href="?([\w.-]*\.html)?(?:#([\w-]+))?[" >]', text)
        assert links
        for file, anchor in links:
            assert (file or name) in made, name
            assert not anchor or anchor in ids[file or name], f"{name}: {file}#{anchor}"


def test_counterexamples_are_drawn_with_what_replays_them(made: dict[str, str]) -> None:
    page = made["kafka-python.html"]
    assert page.count("<article") == page.count("rebalance replay docs/results/traces/")
    assert page.count("<figure") > 10


def test_it_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["--out", str(tmp_path / "site")])
    assert (tmp_path / "site" / "index.html").read_text().startswith("<!DOCTYPE html>")
    assert "written" in capsys.readouterr().out
