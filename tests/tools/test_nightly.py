"""The tests of the night: what is due, what is counted, what is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import nightly
from tools.nightly import MINUTES, Night, counted, due, quickest_first, read, written

ROWS = {
    one.file: one
    for one in (
        Night("tests/a.py", 3, 0, 0, 0.5, "aaaa"),
        Night("tests/b.py", 2, 1, 0, 2.0, "aaaa"),
        Night("tests/c.py", 1, 0, 0, 1.0, "bbbb"),
    )
}


def test_a_table_is_read_as_it_was_written() -> None:
    assert read(written(ROWS)) == ROWS
    assert read("") == {}


def test_what_passed_at_this_commit_is_not_due() -> None:
    files = ["tests/a.py", "tests/b.py", "tests/c.py", "tests/new.py"]
    assert due(files, ROWS, "aaaa") == files[1:]
    changed = {"tests/a.py": Night("tests/a.py", 3, 0, 0, 0.5, "aaaa+")}
    assert due(["tests/a.py"], changed, "aaaa+") == ["tests/a.py"]


def test_the_quickest_come_first() -> None:
    """By their last run, and by their number where there was none."""
    files = {"tests/b.py": 1, "tests/a.py": 90, "tests/few.py": 1, "tests/many.py": int(1.5 / MINUTES)}
    assert quickest_first(files, ROWS) == ["tests/few.py", "tests/a.py", "tests/many.py", "tests/b.py"]


def test_errors_are_failures(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(
        "<testsuites><testsuite><testcase/><testcase><error/></testcase><testcase><failure/></testcase>"
        "<testcase><skipped/></testcase></testsuite></testsuites>"
    )
    assert counted(report) == {"passed": 1, "failed": 2, "skipped": 1}


def test_a_run_is_kept_file_by_file_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tmp_path / "nightly.md"
    files = ["tests/a.py", "tests/b.py"]
    asked: list[str] = []

    def run(file: str, commit: str, workers: int) -> Night:
        asked.append(file)
        if asked == files:
            raise KeyboardInterrupt
        return Night(file, 1, int(file == "tests/b.py"), 0, 0.1, commit)

    monkeypatch.setattr(nightly, "TABLE", table)
    monkeypatch.setattr(nightly, "_run", run)
    monkeypatch.setattr(nightly, "_files", lambda named: dict.fromkeys(files, 1))
    monkeypatch.setattr(nightly, "_commit", lambda: "aaaa")
    monkeypatch.setattr("sys.argv", ["nightly"])
    assert nightly.main() == 130
    assert list(read(table.read_text())) == files[:1]
    assert nightly.main() == 1, "the second failed"
    assert asked == ["tests/a.py", "tests/b.py", "tests/b.py"]
    assert read(table.read_text())["tests/b.py"].failed == 1
