"""The command line from end to end: every command and option, and every exit code, reached for real."""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from rebalance_verifier.base import saved as files
from rebalance_verifier.cli.console import terminal
from rebalance_verifier.gate.search.plan import PROFILES, count
from rebalance_verifier.model.values import RebalanceProtocol

from tests.command import Ran, Rebalance, command, process
from tests.processes import left

ROOT = Path(__file__).parents[2]
ADAPTER = ROOT / "examples" / "adapters" / "python_stdio.py"

RIGHT = "roundrobin"
BROKEN = "roundrobin+topics_beyond_members_ignored"
UNASSIGNED = "kip429/leader/5"
"""A clause that BROKEN breaks, and profile smoke finds."""

SMOKE = ("--profile", "smoke")
QUICK = (*SMOKE, "--clause", "assign/1")
"""The least there is to check."""
SCENARIOS = count(PROFILES["smoke"], [RebalanceProtocol.EAGER])
"""That smoke plays for a target that is eager only, as both are."""

FINDS = ("check", BROKEN, *SMOKE, "--clause", UNASSIGNED)
"""The quickest way to one violation."""


def report(directory: Path) -> dict[str, Any]:
    data = json.loads((directory / "report.json").read_text())
    assert isinstance(data, dict)
    return data


# --- the verdict and its exit code ----------------------------------------------------------------


def test_conformant_is_0_and_leaves_nothing_behind(rebalance: Rebalance, here: Path) -> None:
    ran = rebalance("check", RIGHT, *QUICK, "--report", "text")
    assert ran.code == 0
    assert ran.out.startswith(
        f"CONFORMANT  roundrobin passes 1 check (1 clause; eager) in {SCENARIOS} scenarios\n"
    )
    assert ran.out.endswith("CONFORMANT, exit 0\n")
    assert ran.err == ""
    assert list(here.iterdir()) == []


def test_violation_is_1_with_a_counterexample_that_replays(rebalance: Rebalance, here: Path) -> None:
    ran = rebalance(*FINDS)
    assert ran.code == 1
    assert ran.out.startswith("VIOLATION  roundrobin breaks 1 clause (1 liveness)\n")
    (trace,) = (here / ".rebalance" / "failures").glob("*.json")
    assert f"rebalance replay {trace.stem}" in ran.out
    assert f".rebalance/failures/{trace.name}" in ran.out
    assert (here / ".rebalance" / ".gitignore").read_text().endswith("*\n")


def test_the_first_screen_of_an_assignor_that_declares_nothing(rebalance: Rebalance, here: Path) -> None:
    (here / "greedy.py").write_text(
        "class Greedy:\n"
        "    def assign(self, cluster, group):\n"
        "        first, *others = sorted(group)\n"
        "        every = [(t, i) for t in sorted(cluster.topics) for i in range(len(cluster.topics[t]))]\n"
        "        return {first: every} | dict.fromkeys(others, ())\n"
    )
    asked = ("check", "greedy:Greedy", *SMOKE, "--level", "quality", "--clause", "kip54/balance")
    ran = rebalance(*asked, "--report", "text")
    first, *rest = ran.out.splitlines()
    assert first.startswith("VIOLATION  greedy breaks ")
    assert any(line.startswith("  promises none declared, so it is held to balanced") for line in rest[:3])
    more = next(number for number, line in enumerate(rest) if " more finding: all in full with -v" in line)
    assert more < 40
    whole = rebalance(*asked, "--report", "text", "-v").out
    assert len(re.findall(r"^  replay  ", whole, re.M)) == 1 + int(rest[more].split()[0])
    assert len(re.findall(r"^  replay  ", ran.out, re.M)) == 1


def test_unfinished_is_3(rebalance: Rebalance) -> None:
    ran = rebalance("check", RIGHT, *QUICK, "--time-limit", "0.000001")
    assert ran.code == 3
    assert "budget" in ran.out
    assert "INCONCLUSIVE" in ran.out
    assert "--resume" in ran.err


@pytest.mark.slow
def test_no_protocol_in_common_is_3(rebalance: Rebalance) -> None:
    ran = rebalance("check", RIGHT, *QUICK, "--protocol", "cooperative")
    assert ran.code == 3
    assert "supports none of the protocols" in ran.out
    assert "--resume" not in ran.err


def test_a_bug_of_ours_is_4(rebalance: Rebalance, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("rebalance_verifier.gate.targets.resolve.known", broken)
    ran = rebalance("list", "targets")
    assert ran.code == 4
    assert "internal error" in ran.err


def test_interrupt_before_the_search_is_130(rebalance: Rebalance, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("rebalance_verifier.gate.targets.resolve.resolve", interrupted)
    assert rebalance("check") == Ran(130, "", "interrupted\n")


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ((), "rebalance check"),
        (("chekc",), "no command is called 'chekc': did you mean check?"),
        (("check", "cooperative-stiky"), "did you mean cooperative-sticky?"),
        (("check", "range+nonsense"), "no switch of range is called 'nonsense': there are rack_"),
        (("check", "no_such_module:thing"), "no module and no adapter is called 'no_such_module'"),
        (
            ("check", "kafka-python:stick"),
            "no assignor of kafka-python is called 'stick'",
        ),
        (("check", "os:nothing"), "there is no 'nothing'"),
        (("check", "os:path"), "a module is no assignor"),
        (("check", "my.py"), "no target is called 'my.py'"),
        (("check", "range", "--", "true"), "two targets"),
        (("check", "--profile", "smoke", "--"), "nothing follows `--`"),  # an empty variable in CI
        (("check", "--memory-mib", "0.5"), "'0.5' is not a whole number from 1 on"),
        (("check", "--", "no-such-program"), "cannot run 'no-such-program'"),
        (("check", "--", "true"), "target does not start: true"),
        (("list", "clauses", "--", "true"), "goes with check, campaign and init only"),
        (("check", "--clause", "kip999"), "--clause: no clause is called 'kip999'"),
        (("check", "--se", "1"), "check has no option --se: did you mean --seed?"),
        (("check", "--profile", "huge"), "no profile is called 'huge': there are smoke, ci, nightly, deep"),
        (("check", "--report", "text,pdf"), "no format is called 'pdf'"),
        (("check", "--time-limit", "-1"), "'-1' is no time above 0, such as 90, 90s, 5m or 2h"),
        (("check", "--call-seconds", "soon"), "'soon' is no time above 0"),
        (("check", "--known-failing", "@none.txt"), "--write-known none.txt makes one"),
        (("check", "--known-failing", "kip*/leader/4"), "'*' and '**' stand for whole parts only"),
        (("check", "--write-known", "no/such/place.txt"), "no directory 'no/such'"),
        (("check", "range", "--report-dir", "/dev/null/x"), "no directory for reports"),
        (("list", "clauses", "kip999"), "no clause is called 'kip999'"),
        (("replay", "abcd"), "neither a file, a directory, nor the id of a trace"),
        (("replay",), "nor the id of a trace"),
        (("replay", "--as-pytest"), "expected one argument"),
    ],
)
def test_wrong_usage_is_2_and_says_what_is_wrong(
    rebalance: Rebalance, argv: Sequence[str], message: str
) -> None:
    ran = rebalance(*argv)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert "Traceback" not in ran.err


def test_help_names_commands_and_exit_codes(rebalance: Rebalance) -> None:
    ran = rebalance("--help")
    assert ran.code == 0
    for word in ("check", "replay", "upgrade", "list", "130 interrupted"):
        assert word in ran.out
    assert rebalance("--version").out.startswith("rebalance ")


# --- targets --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_an_attribute_of_a_module_in_the_current_directory(rebalance: Rebalance, here: Path) -> None:
    (here / "mine.py").write_text(
        "def assign(cluster, group):\n"
        "    first = {t: m for m in reversed(sorted(group)) for t in group[m].topics}\n"
        "    result = {m: [] for m in group}\n"
        "    for t, replicas in cluster.topics.items():\n"
        "        if t in first:\n"
        "            result[first[t]] += [(t, i) for i in range(len(replicas))]\n"
        "    return result\n"
    )
    ran = rebalance("check", "mine:assign", *QUICK, "--protocol", "eager")
    assert ran.code == 0
    assert "(mine:assign)" in ran.out


@pytest.mark.slow
def test_an_adapter(rebalance: Rebalance) -> None:
    ran = rebalance("check", "kafka-python:range", *QUICK)
    assert ran.code == 0
    assert "(kafka-python:range)" in ran.out


def test_any_program(rebalance: Rebalance) -> None:
    ran = rebalance("check", *QUICK, "--", sys.executable, ADAPTER)
    assert ran.code == 0
    assert "plain-round-robin 1.0" in ran.out


# --- selection ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_clause_takes_paths(rebalance: Rebalance, here: Path) -> None:
    argv = ("--clause", "kip54", "--clause", "assign/1", "--report", "json", "--report-dir", "out")
    rebalance("check", RIGHT, *SMOKE, *argv)
    ids = {clause["clause"] for clause in report(here / "out")["clauses"]}
    assert ids == {"assign/1", "kip54/balance/1", "kip54/sticky/1"}


@pytest.mark.slow
def test_protocol_limits_what_is_asked(rebalance: Rebalance, here: Path) -> None:
    rebalance("check", "sticky", *QUICK, "--protocol", "eager", "--report", "json", "--report-dir", "out")
    status = {clause["id"]: clause["status"] for clause in report(here / "out")["clauses"]}
    assert status == {"assign/1-eager": "passed", "assign/1-cooperative": "unsupported"}


@pytest.mark.nightly
def test_level_quality_makes_quality_findings_fail(rebalance: Rebalance) -> None:
    argv = ("check", "range+rack_breaks_copartition", *SMOKE, "--clause", "range", "--seed", 1)
    lenient, strict = rebalance(*argv), rebalance(*argv, "--level", "quality")
    assert (lenient.code, strict.code) == (0, 1)
    assert "FINDING range/copartition/1" in lenient.out
    assert "VIOLATION range/copartition/1" in strict.out
    assert rebalance(*FINDS, "--level", "safety").code == 0


@pytest.mark.nightly
def test_another_seed_is_another_search(rebalance: Rebalance, here: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        rebalance("check", RIGHT, *QUICK, "--seed", seed, "--report", "json", "--report-dir", name)
    a, b, c = (report(here / name) for name in "abc")
    assert a == b
    assert (a["seed"], c["seed"]) == (1, 2)
    assert a["questions"] != c["questions"]


@pytest.mark.slow
def test_fail_fast_stops_at_the_first_violation(rebalance: Rebalance, here: Path) -> None:
    rebalance(*FINDS, "--fail-fast", "--report", "json", "--report-dir", "out")
    found = report(here / "out")
    assert found["exit"] == 1
    assert found["scenarios"] < SCENARIOS
    assert "stopped at the first violation" in found["missed"][0]


@pytest.mark.slow
def test_limits_reach_the_target(rebalance: Rebalance) -> None:
    ran = rebalance("check", RIGHT, *QUICK, "--memory-mib", "2")
    assert ran.code == 2
    assert "limit 2 MiB" in ran.err


# --- known failures -------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_known_failure_passes_by_pattern_and_by_file(rebalance: Rebalance, here: Path) -> None:
    (here / "known.txt").write_text(f"{UNASSIGNED}-eager  # https://example.org/1\n")
    for given in (UNASSIGNED, "kip429/**", "@known.txt"):
        ran = rebalance(*FINDS, "--known-failing", given)
        assert ran.code == 0
        assert "0 new violations, 1 known" in ran.out


@pytest.mark.slow
def test_a_known_failure_does_not_stop_a_fail_fast_run(rebalance: Rebalance, here: Path) -> None:
    argv = ("--fail-fast", "--known-failing", UNASSIGNED, "--report", "json", "--report-dir", "out")
    assert rebalance(*FINDS, *argv).code == 0
    assert report(here / "out")["scenarios"] == SCENARIOS


@pytest.mark.slow
@pytest.mark.parametrize("line", ["assign/1", "no/such/clause", "kip54/sticky/1"])
def test_a_needless_line_fails_and_is_named(rebalance: Rebalance, here: Path, line: str) -> None:
    (here / "known.txt").write_text(f"# why\n{line}  # https://example.org/1\n")
    ran = rebalance("check", RIGHT, *QUICK, "--known-failing", "@known.txt")
    assert ran.code == 1
    assert f"{line} (known.txt:2)" in ran.out
    assert "remove line" in ran.out


@pytest.mark.slow
def test_a_line_for_what_was_not_run_is_not_needless(rebalance: Rebalance) -> None:
    assert rebalance("check", RIGHT, *QUICK, "--known-failing", UNASSIGNED).code == 0


@pytest.mark.slow
def test_an_unfinished_search_calls_no_line_needless(rebalance: Rebalance) -> None:
    ran = rebalance("check", RIGHT, *QUICK, "--time-limit", "0.000001", "--known-failing", "assign/1")
    assert ran.code == 3
    assert "remove line" not in ran.out


@pytest.mark.slow
def test_a_line_allows_nothing_when_it_has_expired(rebalance: Rebalance, here: Path) -> None:
    (here / "known.txt").write_text(f"{UNASSIGNED}  # https://example.org/1 until=2020-01-01\n")
    ran = rebalance(*FINDS, "--known-failing", "@known.txt")
    assert ran.code == 1
    assert f"VIOLATION {UNASSIGNED}" in ran.out


@pytest.mark.slow
def test_a_known_flaky_clause_may_hold_or_not(rebalance: Rebalance) -> None:
    assert rebalance(*FINDS, "--known-flaky", UNASSIGNED).code == 0
    assert rebalance("check", RIGHT, *QUICK, "--known-flaky", "assign/1").code == 0


@pytest.mark.slow
def test_write_known_writes_the_list_that_lets_the_same_run_pass(rebalance: Rebalance, here: Path) -> None:
    argv = ("check", BROKEN, *SMOKE, "--clause", "kip429", "--clause", "assign/1")
    assert rebalance(*argv, "--write-known", "known.txt").code == 1
    assert "leader/5" in (here / "known.txt").read_text()
    again = rebalance(*argv, "--known-failing", "@known.txt", "--write-known", "again.txt")
    assert again.code == 0, again.out
    assert (here / "again.txt").read_text() == (here / "known.txt").read_text()


@pytest.mark.slow
def test_an_unfinished_run_writes_no_list(rebalance: Rebalance, here: Path) -> None:
    ran = rebalance("check", RIGHT, *QUICK, "--time-limit", "0.000001", "--write-known", "known.txt")
    assert not (here / "known.txt").exists()
    assert "not written" in ran.err


# --- reports --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_reports_go_where_latest_points(rebalance: Rebalance, here: Path) -> None:
    ran = rebalance(*FINDS, "--report", "text,json,junit,markdown")
    latest = here / ".rebalance" / "latest"
    assert {p.name for p in latest.iterdir()} == {"report.txt", "report.json", "junit.xml", "report.md"}
    assert f".rebalance/{latest.resolve().name}" in ran.out
    assert report(latest)["exit"] == 1
    assert ET.parse(latest / "junit.xml").getroot().find(".//failure") is not None
    assert UNASSIGNED in (latest / "report.md").read_text()
    assert (latest / "report.txt").read_text().rstrip() == ran.out.rstrip()


def test_a_target_that_does_not_start_leaves_the_last_report_where_latest_points(
    rebalance: Rebalance, here: Path
) -> None:
    made = files.run_directory(here / ".rebalance", datetime(2027, 1, 31, tzinfo=UTC))
    assert rebalance("check", "--", "true").code == 2
    assert (here / ".rebalance" / "latest").resolve() == made.resolve()


@pytest.mark.slow
def test_report_dir_and_no_text(rebalance: Rebalance, here: Path) -> None:
    ran = rebalance("check", RIGHT, *QUICK, "--report", "junit", "--report-dir", "a/b")
    assert [p.name for p in (here / "a" / "b").iterdir()] == ["junit.xml"]
    assert ran.out == ""
    assert "reports: a/b" in ran.err
    assert not (here / ".rebalance").exists()


@pytest.mark.slow
def test_ci_github_annotates_and_summarises(
    rebalance: Rebalance, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(here / "summary.md"))
    ran = rebalance(*FINDS, "--ci", "github")
    assert f"\n::error title={UNASSIGNED}" in ran.out
    assert UNASSIGNED in (here / "summary.md").read_text()


@pytest.mark.slow
def test_verbose_names_what_was_not_judged(rebalance: Rebalance) -> None:
    argv = ("check", RIGHT, *QUICK)
    assert "assign/1-cooperative" not in rebalance(*argv).out
    assert "assign/1-cooperative" in rebalance(*argv, "-v").out


@pytest.mark.slow
def test_no_terminal_no_colours_no_progress(rebalance: Rebalance) -> None:
    ran = rebalance(*FINDS)
    assert "\x1b" not in ran.out + ran.err


@pytest.mark.parametrize(
    ("variables", "on_a_terminal", "in_a_pipe"),
    [
        ({}, True, False),
        ({"NO_COLOR": "1"}, False, False),
        ({"NO_COLOR": ""}, True, False),
        ({"FORCE_COLOR": "1"}, True, True),
        ({"FORCE_COLOR": "0"}, False, False),
        ({"FORCE_COLOR": "False"}, False, False),
        ({"FORCE_COLOR": ""}, True, False),
        ({"FORCE_COLOR": "3", "NO_COLOR": "1"}, False, False),
        ({"TERM": "dumb"}, False, False),
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, True, True),
    ],
)
def test_variables_say_whether_there_are_colours(
    monkeypatch, here, variables, on_a_terminal, in_a_pipe
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    for isatty, expected in ((True, on_a_terminal), (False, in_a_pipe)):
        monkeypatch.setattr("sys.stdout", argparse.Namespace(isatty=lambda isatty=isatty: isatty))
        assert terminal.color(argparse.Namespace(no_color=False)) is expected
        assert not terminal.color(argparse.Namespace(no_color=True))


@pytest.mark.slow
@pytest.mark.covering
@pytest.mark.parametrize("variable", ["", "NO_COLOR"])
def test_colours_on_a_terminal_unless_refused(here: Path, variable: str) -> None:
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", **({variable: "1"} if variable else {})}
    argv = command("check", RIGHT, *QUICK)
    ran = subprocess.Popen(argv, cwd=here, env=environment, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown = b"".join(iter(lambda: _read(ours), b""))
    os.close(ours)
    assert ran.wait() == 0
    assert (b"\x1b[32;1mCONFORMANT" in shown) is (variable == "")


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 4096)
    except OSError:  # Linux tells the end of a terminal in this way
        return b""


@pytest.mark.slow
def test_a_terminal_that_knows_ascii_only(here: Path) -> None:
    ran = process(*FINDS, cwd=here, encoding="ascii", PYTHONIOENCODING="ascii")
    assert ran.returncode == 1
    assert "t0-0" in ran.stdout


@pytest.mark.slow
def test_the_plainest_locale(here: Path) -> None:
    ran = process(*FINDS, cwd=here, LANG="C", LC_ALL="C", PYTHONCOERCECLOCALE="0", PYTHONUTF8="0")
    assert ran.returncode == 1
    assert "VIOLATION" in ran.stdout


@pytest.mark.slow
@pytest.mark.parametrize("argv", [("list", "clauses"), FINDS])
def test_a_reader_that_leaves_changes_no_verdict(here: Path, argv: Sequence[str]) -> None:
    expected = 1 if argv is FINDS else 0
    reading, writing = os.pipe()
    os.close(reading)
    ran = subprocess.run(command(*argv), cwd=here, stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    assert (ran.returncode, ran.stderr) == (expected, "")


@pytest.mark.slow
def test_a_place_that_cannot_be_written_does_not_cost_the_verdict(rebalance: Rebalance, here: Path) -> None:
    (here / ".rebalance").write_text("a file where a directory is needed")
    ran = rebalance(*FINDS)
    assert ran.code == 1
    assert f"VIOLATION {UNASSIGNED}" in ran.out
    assert "cannot be saved" in ran.err
    assert rebalance("check", RIGHT, *QUICK, "--report", "json").code == 2
    late = rebalance("check", RIGHT, *QUICK, "--time-limit", "0.000001")
    assert late.code == 3
    assert "cannot be saved" in late.err


# --- replay ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace of BROKEN."""
    directory = tmp_path_factory.mktemp("found")
    assert process(*FINDS, cwd=directory).returncode == 1
    (trace,) = (directory / ".rebalance" / "failures").glob("*.json")
    return trace


@pytest.fixture
def trace(found: Path, here: Path) -> Path:
    """The same, saved below the current directory."""
    (here / ".rebalance" / "failures").mkdir(parents=True)
    return Path(shutil.copy(found, here / ".rebalance" / "failures" / found.name))


@pytest.mark.slow
def test_replay_by_id_file_directory_and_without(rebalance: Rebalance, trace: Path) -> None:
    for name in ([trace.stem], [trace.stem[:4]], [trace], [trace.parent], []):
        ran = rebalance("replay", *name)
        assert ran.code == 1
        assert ran.out.startswith(f"failing  {trace.stem}  {UNASSIGNED}  {BROKEN}: ")
        assert ran.out.count("\n") == 1


@pytest.mark.slow
def test_replay_on_another_target(rebalance: Rebalance, trace: Path) -> None:
    assert rebalance("replay", "--target", RIGHT) == Ran(
        0, f"fixed    {trace.stem}  {UNASSIGNED}  {RIGHT}\n", ""
    )
    ran = rebalance("replay", "--target", "no_such_module:thing")
    assert ran.code == 2
    assert ran.out.startswith(f"error    {trace.stem}")


@pytest.mark.slow
def test_replay_verbose_shows_what_happens(rebalance: Rebalance, trace: Path) -> None:
    ran = rebalance("replay", trace.stem, "-v")
    assert f"VIOLATION {UNASSIGNED}" in ran.out
    assert "round 1" in ran.out


@pytest.mark.slow
def test_replay_goes_on_behind_files_that_it_cannot_read(rebalance: Rebalance, trace: Path) -> None:
    data = json.loads(trace.read_text())
    (trace.parent / "a.json").write_text("{")
    (trace.parent / "b.json").write_text(json.dumps({**data, "schema": 99}))
    ran = rebalance("replay")
    assert ran.code == 2
    assert "error    .rebalance/failures/a.json:1:2: not JSON" in ran.out
    assert "skipped  " in ran.err
    assert "schema 99" in ran.err
    assert f"failing  {trace.stem}" in ran.out


def test_as_pytest_takes_one_trace(rebalance: Rebalance, trace: Path) -> None:
    shutil.copy(trace, trace.parent / "copy.json")
    assert rebalance("replay", "--as-pytest", "x.py").code == 2
    assert rebalance("replay", trace, "--as-pytest", "no/such/x.py").code == 2


@pytest.mark.slow
@pytest.mark.covering("code")
@pytest.mark.parametrize(("target", "code"), [(BROKEN, 1), (RIGHT, 0)])
def test_as_pytest_writes_a_test_that_stands_alone(
    rebalance: Rebalance, trace: Path, tmp_path_factory: pytest.TempPathFactory, target: str, code: int
) -> None:
    out = tmp_path_factory.mktemp("elsewhere") / "test_found.py"
    assert rebalance("replay", trace, "--target", target, "--as-pytest", out).code == 0
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", out.name]
    ran = subprocess.run(argv, cwd=out.parent, capture_output=True, text=True)
    assert ran.returncode == code, ran.stdout


# --- smoke, clauses, targets ----------------------------------------------------------------------


def test_smoke_of_a_good_program(rebalance: Rebalance) -> None:
    ran = rebalance("check", "--adapter", "--validate", "--", sys.executable, ADAPTER)
    assert ran.code == 0, ran.out
    assert ran.out.startswith("ok    hello from plain-round-robin 1.0\n")
    assert "against the schema" in ran.out


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("import json", 'print("hello")\nimport json', "not one line of JSON"),
        ('"assignment": assign', '"assigned": assign', "assignment"),
        ("range(len(topics[topic]))", "range(1)", "t-1"),
    ],
)
def test_smoke_of_a_bad_program(rebalance: Rebalance, here: Path, old: str, new: str, message: str) -> None:
    good = ADAPTER.read_text()
    assert old in good
    (here / "bad.py").write_text(good.replace(old, new, 1))
    ran = rebalance("check", "--adapter", "--validate", "--", sys.executable, "bad.py")
    assert ran.code == 1, ran.out
    assert "FAIL" in ran.out
    assert message in ran.out


def test_clauses_as_text_json_and_markdown(rebalance: Rebalance) -> None:
    table = json.loads(rebalance("list", "clauses", "--format", "json").out)
    text, markdown = rebalance("list", "clauses").out, rebalance("list", "clauses", "--format", "md").out
    assert len(table) == text.count("\n") == markdown.count("\n") - 2
    for clause in table:
        assert clause["id"] in text
        assert f"`{clause['id']}`" in markdown
    one = rebalance("list", "clauses", "kip429/leader/4").out
    assert "https://" in one
    assert "checked by" in one


def test_targets_names_references_adapters_and_switches(rebalance: Rebalance) -> None:
    ran = rebalance("list", "targets")
    for name in ("cooperative-sticky", "kafka-python:", "aiokafka:", "+one_process", BROKEN):
        assert name in ran.out


# --- interruption ---------------------------------------------------------------------------------

SLOW = """
import os, time
from rebalance_verifier.model.assignors import reference
from rebalance_verifier.model.bugs.switches import switched

class Slow:
    protocols, promises = ("eager",), ()
    def __init__(self):
        self.inner = switched("roundrobin", ("topics_beyond_members_ignored",))
    def assign(self, cluster, group):
        with open("calls", "a") as calls:
            print(os.getpid(), file=calls)
        time.sleep(0.004)
        return self.inner.assign(cluster, group)
"""


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


@pytest.mark.nightly
@pytest.mark.parametrize(("number", "calls"), [(signal.SIGINT, 80), (signal.SIGTERM, 160)])
def test_an_interrupted_check_that_is_resumed_is_as_good_as_any(
    here: Path, number: signal.Signals, calls: int
) -> None:
    (here / "slow.py").write_text(SLOW)
    argv = ("check", "slow:Slow", *SMOKE, "--clause", "kip429", "--report", "text,json", "--report-dir")
    with subprocess.Popen(
        command(*argv, "first"),
        cwd=here,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # where the tests run in background
    ) as running:
        while len(lines(here / "calls")) < calls:
            assert running.poll() is None
            time.sleep(0.01)
        running.send_signal(number)
        out, err = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "--resume goes on from here" in err
    assert "interrupted" in out
    assert "exit 130" in out
    first = report(here / "first")
    assert first["interrupted"]
    assert 0 < first["scenarios"] < SCENARIOS
    assert not left(map(int, set(lines(here / "calls"))))

    resumed = process(*argv, "resumed", "--resume", cwd=here)
    assert f"going on after scenario {first['scenarios']}" in resumed.stderr
    whole = process(*argv, "whole", cwd=here)
    assert resumed.returncode == whole.returncode == 1
    assert report(here / "resumed") == report(here / "whole")
    assert list((here / ".rebalance" / "resume").iterdir()) == []


@pytest.mark.slow
def test_resume_without_anything_to_resume_or_with_a_damaged_file(rebalance: Rebalance, here: Path) -> None:
    argv = ("check", RIGHT, *QUICK)
    assert "nothing to resume" in rebalance(*argv, "--resume").err
    rebalance(*argv, "--time-limit", "0.000001")
    (saved,) = (here / ".rebalance" / "resume").iterdir()
    for text in ("{", "[]", '{"done": 1}'):
        saved.write_text(text)
        ran = rebalance(*argv, "--resume")
        assert ran.code == 2
        assert "delete it" in ran.err


NOT_ANEW = """
import os, sys
def execv(*given):
    raise PermissionError(13, "Permission denied")
os.execv = execv
from rebalance_verifier.cli.main import main
sys.argv = ["rebalance", "check", "range", "--profile", "smoke", "--clause", "assign/1"]
sys.exit(main())
"""


def test_a_python_that_may_not_be_started_again_judges_what_needs_no_other(here: Path) -> None:
    """Its directory is closed for this user; what is a target of its own says that it does not start."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONHASHSEED"}
    ran = subprocess.run(
        [sys.executable, "-c", NOT_ANEW],
        cwd=here,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, "Traceback" in ran.stderr) == (0, False), ran.stderr
    assert "CONFORMANT, exit 0" in ran.stdout


@pytest.mark.slow
def test_the_hash_seed_changes_nothing(here: Path) -> None:
    argv = ("check", "cooperative-sticky+no_withhold", *SMOKE, "--report", "json", "--report-dir")
    for seed in ("0", "1", "2"):
        assert process(*argv, seed, cwd=here, PYTHONHASHSEED=seed).returncode == 1
    first, *others = (report(here / seed) for seed in ("0", "1", "2"))
    assert all(other == first for other in others)


@pytest.mark.parametrize(("argv", "loaded"), [(["--help"], []), (["prove", "--help"], ["prove"])])
def test_a_command_loads_no_other(argv: list[str], loaded: list[str]) -> None:
    """Fourteen parsers are 100 ms, which everybody would wait for who types one command."""
    script = (
        "import sys; from rebalance_verifier.cli.main import main; main(sys.argv[1:]); "
        "print([name.rpartition('.')[2] for name in sys.modules if '.cli.commands.' in name])"
    )
    done = subprocess.run([sys.executable, "-c", script, *argv], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == str(loaded)
