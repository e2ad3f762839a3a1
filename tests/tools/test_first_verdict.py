"""What an author types for a first verdict is what there is, and the table says what took longer."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.benchmarks.first_verdict import Author, authors, empty, rows

ROOT = Path(__file__).parents[2]


def test_authors_judge_what_the_examples_have() -> None:
    python, java = authors(Path("suite.whl"))
    assert "my_assignor:CooperativeRoundRobin" in python.steps[-1].command
    assert (ROOT / "examples" / "my_assignor.py").exists()
    assert "java:com.acme.InTurn" in java.steps[-1].command
    assert (ROOT / "examples" / "java" / "src" / "main" / "java" / "com" / "acme" / "InTurn.java").exists()
    assert [author.target for author in (python, java)] == [180, 300]


def test_nothing_that_was_fetched_before_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    variables = empty(tmp_path)
    assert variables["HOME"] == str(tmp_path)
    assert f"-Duser.home={tmp_path}" in variables["JDK_JAVA_OPTIONS"]
    assert "XDG_CACHE_HOME" not in variables


@pytest.mark.parametrize(("target", "mark"), [(1.0, " (missed)"), (2.0, "")])
def test_the_table_has_the_sum_and_whether_it_was_in_time(target: float, mark: str) -> None:
    shown = rows(Author("Python", target, ()), [("install", 0.5), ("check", 0.8)])
    assert shown[0] == "| Python | install | 0.5 |"
    assert shown[-1] == f"| Python | **together**{mark} | **1.3** |"
