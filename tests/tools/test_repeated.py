"""``python -m tools.repeated``: which clauses are violated in each of several checks."""

from __future__ import annotations

import json
import os

import pytest

from tools import repeated


def report(**statuses):
    return {
        "clauses": [{"level": "safety", "id": name, "status": status} for name, status in statuses.items()]
    }


def test_what_is_violated_in_some_runs_and_not_in_all_is_named(tmp_path, capsys):
    reports = [
        report(a="violated", b="violated", c="passed"),
        report(a="violated", b="unconfirmed", c="passed"),
    ]
    for number, one in enumerate(reports, 1):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "report.json").write_text(json.dumps(one))
    assert repeated.main(["--into", str(tmp_path), "--runs", "2", "check", "x"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["safety", "a", "violated", "2,", "unconfirmed", "0", "of", "2", "runs"]
    assert lines[1:] == [
        "safety    b                              violated 1, unconfirmed 1 of 2 runs",
        "1 of 2 violated in some runs and not in all: b",
    ]


@pytest.mark.nightly
def test_the_runs_are_checks_and_are_not_run_twice(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    argv = ["--into", "runs", "--runs", "2", "check", "--profile", "smoke", "--clause", "kip429/leader/4"]
    argv += ["cooperative-sticky+no_withhold"]
    assert repeated.main(argv) == 0
    said = capsys.readouterr().out
    assert "violated 2, unconfirmed 0 of 2 runs" in said
    monkeypatch.setattr(repeated, "run", None)
    assert repeated.main(argv) == 0
    assert capsys.readouterr().out == said


def test_a_check_that_cannot_run_says_why(tmp_path):
    with pytest.raises(SystemExit, match="no target is called 'nonsense'"):
        repeated.main(["--into", str(tmp_path), "check", "nonsense"])
    assert os.listdir(tmp_path) in ([], ["1"])


@pytest.mark.parametrize("text", ["", "garbage", "[]", '{"clauses": [{}]}', "\\ud800"])
def test_what_is_no_report_is_named(tmp_path, text):
    (tmp_path / "1").mkdir()
    (tmp_path / "1/report.json").write_text(text)
    with pytest.raises(SystemExit, match=r"1/report\.json is no report of a check .*: remove it"):
        repeated.main(["--into", str(tmp_path), "--runs", "1", "check", "x"])
