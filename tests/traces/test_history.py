"""The runs that were made here: what is broken, since when, what is new, and the page of them."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest
from rebalance_verifier.report.html.history import render
from rebalance_verifier.traces import history
from rebalance_verifier.traces.history import OpenFinding, PastRun, open_findings

from tests.traces.published import hold

SMALL = ("explore", "dynamic", "--members", 1, "--partitions", 1, "--faults", "none")


def run(number: int, subject: str = "mine", **cases: str) -> PastRun:
    when = f"20260102T03{number:02}00Z"
    broken = {rule for rule, status in cases.items() if status in ("violated", "known")}
    return PastRun(
        when=when, directory=when, command="check", subject=subject,
        verdict="violation" if broken else "conformant", headline=f"VERDICT  {subject}", cases=cases,
        findings={rule: (f"{rule} is broken", "rebalance replay 1234abcd") for rule in broken},
    )  # fmt: skip


def states(found: list[PastRun]) -> dict[str, tuple[str, int, bool, bool]]:
    """Rule -> since when, in how many runs, new, known."""
    return {one.rule: (one.since.when[11:13], one.runs, one.new, one.known) for one in open_findings(found)}


def test_since_when_a_rule_is_broken_and_what_is_new() -> None:
    runs = [
        run(1, a="violated", b="passed", c="violated"),
        run(2, a="violated", b="violated", c="passed"),
        run(3, a="known", b="violated", c="violated"),
    ]
    assert states(runs) == {
        "a": ("01", 3, False, True),
        "b": ("02", 2, False, False),
        "c": ("03", 1, True, False),
    }
    assert [one.rule for one in open_findings(runs)] == ["c", "b", "a"]


def test_what_a_run_did_not_ask_stays_as_it_was() -> None:
    runs = [run(1, a="violated"), run(2, b="passed"), run(3, a="untested"), run(4, a="violated")]
    assert states(runs) == {"a": ("01", 2, False, False)}


def test_each_subject_has_its_own() -> None:
    runs = [run(1, a="violated"), run(2, "other", a="passed")]
    assert states(runs) == {"a": ("01", 1, False, False)}


def test_runs_are_remembered_the_newest_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MAX_RUNS", 2)
    for number in range(3):
        kept = history.remember(run(number, a="violated"), tmp_path)
    assert [one.when for one in kept] == ["20260102T030100Z", "20260102T030200Z"]
    assert history.load(tmp_path) == kept
    for line in (tmp_path / history.FILE).read_text().splitlines():
        hold("past-run", json.loads(line))


@pytest.mark.parametrize(
    "line",
    [
        "",
        "x",
        "[]",
        "{}",
        '{"schema": 2}',
        '{"schema": 1, "kind": "run"}',
        '{"schema": 1, "when": 3}',
        "[" * 9999,
    ],
)
def test_a_line_that_is_no_run_is_left_out(tmp_path: Path, line: str) -> None:
    history.remember(run(1, a="passed"), tmp_path)
    with (tmp_path / history.FILE).open("a") as file:
        file.write(f"{line}\n")
    assert len(history.load(tmp_path)) == 1
    assert len(history.remember(run(2, a="passed"), tmp_path)) == 2


def test_lines_that_cannot_be_read_cost_no_other(tmp_path: Path) -> None:
    """Bytes that are no text, and what a newer suite has written: that stays for it."""
    file = tmp_path / history.FILE
    history.remember(run(1, a="passed"), tmp_path)
    newer = file.read_bytes().replace(b'"schema": 1', b'"schema": 2')
    assert newer != file.read_bytes()
    file.write_bytes(b"\xff\0\n" + file.read_bytes() + newer)
    assert [one.when for one in history.remember(run(2, a="passed"), tmp_path)] == [
        run(number).when for number in (1, 2)
    ]
    assert newer in file.read_bytes()


def test_a_file_that_may_not_be_read_is_not_written_anew(tmp_path: Path, monkeypatch) -> None:
    history.remember(run(1, a="passed"), tmp_path)
    whole = (tmp_path / history.FILE).read_bytes()

    def refused(*given: object, **named: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refused)
    with pytest.raises(OSError, match="Permission denied"):
        history.remember(run(2, a="passed"), tmp_path)
    assert (tmp_path / history.FILE).read_bytes() == whole


def test_the_page_says_it_and_links_to_what_is_there() -> None:
    runs = [run(1, "<b>", a="passed"), run(2, "<b>", a="violated")]
    page = render(runs, lambda one: one.when.endswith("0200Z"))
    assert "1 finding open, 1 new, 0 known, in 1 subject" in page
    assert "check &lt;b&gt;" in page
    assert "<b class=bad>new</b>" in page
    assert re.findall(r"href=\"?([^\s>\"]*report.html)", page) == ["20260102T030200Z/report.html"] * 2
    assert "✓ NOTHING OPEN" in render(runs[:1], lambda one: False)


def test_what_is_known_is_no_alarm() -> None:
    page = render([run(1, a="known"), run(2, "b", a="passed")], lambda one: False)
    assert "✓ NOTHING NEW" in page
    assert "1 finding open, 0 new, 1 known, in 2 subjects" in page
    assert "<b class=info>known</b>" in page
    assert "✗ OPEN" in render([run(1, a="known", b="violated")], lambda one: False)


@pytest.mark.slow
def test_the_page_says_why_something_is_known(rebalance) -> None:
    Path("known.txt").write_text("kip429/leader/4-cooperative  # https://issues.example/7\n")
    what = ("cooperative-sticky+no_withhold", "--profile", "smoke", "--clause", "kip429/leader/4")
    ran = rebalance("check", *what, "--known-failing", "@known.txt")
    assert ran.code == 0
    page = Path(".rebalance/index.html").read_text()
    assert "; known: https://issues.example/7" in page


def test_a_finding_says_how_to_see_it_again() -> None:
    (found,) = open_findings([run(1, a="violated")])
    assert isinstance(found, OpenFinding)
    assert (found.message, found.again) == ("a is broken", "rebalance replay 1234abcd")


def test_list_and_page_are_written_under_one_lock(rebalance, monkeypatch) -> None:
    """Else the page of a run that ended a moment before could be the last, without the newest."""
    fcntl = pytest.importorskip("fcntl")

    def refused(*given: object) -> str:
        number = os.open(".rebalance", os.O_RDONLY)
        with pytest.raises(BlockingIOError):
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(number)
        return "the page"

    monkeypatch.setattr("rebalance_verifier.report.html.history.render", refused)
    assert rebalance(*SMALL).code == 0
    assert Path(".rebalance/index.html").read_text() == "the page"


def test_a_name_that_no_directory_can_have_costs_no_page(rebalance) -> None:
    root = Path(".rebalance")
    root.mkdir()
    history.remember(replace(run(1, a="passed"), directory="d" * 5000), root)
    assert rebalance(*SMALL, "--no-progress").err == ""
    assert "2 subjects" in (root / "index.html").read_text()


@pytest.mark.slow
def test_commands_leave_their_runs(rebalance) -> None:
    target = "roundrobin+topics_beyond_members_ignored"
    for _ in range(2):
        rebalance("check", target, "--profile", "smoke", "--clause", "kip429/leader/5")
    rebalance("check", "range", "--profile", "smoke", "--clause", "assign/1", "--report-dir", "out")
    first, second = history.load(Path(".rebalance"))
    assert (first.subject, first.verdict, second.directory) == (target, "violation", second.directory)
    assert first.findings["kip429/leader/5-eager"][1].startswith("rebalance replay ")
    page = Path(".rebalance/index.html").read_text()
    assert "2 runs" in page
    assert f"{second.directory}/report.html" in page
