"""The pytest plugin, as users meet it: in test runs of its own."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

BROKEN = "roundrobin+topics_beyond_members_ignored"
UNASSIGNED = "kip429/leader/5-eager"
"""A test that BROKEN fails."""

WASTEFUL = "range+rack_breaks_copartition"
"""Breaks a quality clause only."""

SUITE = """
from rebalance_verifier.cli.pytest_plugin import conformance
test_contract = conformance({target})
"""

Ran = subprocess.CompletedProcess[str]


def pytest_in(directory: Path, target: str, *options: str) -> Ran:
    """Run a suite of one test file in ``directory``; ``target`` as in the source of that file."""
    (directory / "test_it.py").write_text(SUITE.format(target=target))
    return run_pytest(directory, "--rebalance-profile", "smoke", *options)


def run_pytest(directory: Path, *options: str) -> Ran:
    argv = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rA", *options]
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "CI", "GITHUB"))}
    environment["COLUMNS"] = "200"
    return subprocess.run(argv, cwd=directory, env=environment, capture_output=True, text=True)


def outcomes(ran: Ran) -> dict[str, str]:
    """Test -> outcome, from the short summary; skipped ones have no names there."""
    found = {}
    for line in ran.stdout.splitlines():
        word, _, rest = line.partition(" ")
        if word in ("PASSED", "FAILED", "XFAIL", "ERROR") and "test_contract[" in rest:
            found[rest.partition("[")[2].partition("]")[0]] = word
    return found


@pytest.mark.slow
def test_a_good_target_passes_and_what_it_does_not_promise_is_skipped(tmp_path: Path) -> None:
    ran = pytest_in(tmp_path, "'cooperative-sticky'")
    assert ran.returncode == 0, ran.stdout
    tests = outcomes(ran)
    assert set(tests.values()) == {"PASSED"}
    assert {"assign/1-eager", "kip429/leader/4-cooperative", "search/complete"} <= tests.keys()
    assert "not promised: balanced-per-topic" in ran.stdout
    assert "rebalance-verifier: profile=smoke" in ran.stdout


@pytest.mark.slow
def test_a_broken_target_fails_with_the_counterexample(tmp_path: Path) -> None:
    ran = pytest_in(tmp_path, repr(BROKEN), "--junit-xml", "junit.xml", "-o", "junit_family=xunit1")
    assert ran.returncode == 1
    assert outcomes(ran)[UNASSIGNED] == "FAILED"
    assert outcomes(ran)["assign/1-eager"] == "PASSED"
    (trace,) = (
        path
        for path in (tmp_path / ".rebalance" / "failures").iterdir()
        if '"clause": "kip429/leader/5"' in path.read_text()
    )
    named = f"FAILED test_it.py::test_contract[{UNASSIGNED}] - Failed: rebalance replay {trace.stem}: "
    assert f"{named}t1-0 is not assigned" in ran.stdout
    shown = ran.stdout.partition("= FAILURES =")[2].partition("short test summary")[0]
    assert "- counterexample -" in shown
    assert "because" in shown
    assert "█ owned" in shown
    assert "Traceback" not in shown
    assert "pytest_plugin.py" not in shown

    cases = {case.get("name"): case for case in ET.parse(tmp_path / "junit.xml").iter("testcase")}
    case = cases[f"test_contract[{UNASSIGNED}]"]
    properties = {p.get("name"): p.get("value") or "" for p in case.iter("property")}
    assert properties["clause"] == "kip429/leader/5"
    assert properties["kip"].startswith("KIP-429")
    assert properties["trace"].endswith(trace.name)
    assert trace.stem in (case.find("failure").get("message") or "")  # type: ignore[union-attr]


@pytest.mark.slow
@pytest.mark.covering
@pytest.mark.parametrize(
    ("choice", "chosen"),
    [
        (["-k", "leader and eager"], {"kip429/leader/5-eager"}),
        (["-m", "rebalance_clause(id='assign/1')"], {"assign/1-eager"}),
        (
            [
                "-m",
                "rebalance_level(name='liveness') and rebalance_protocol(name='eager')",
                "-k",
                "not assign/4",
            ],
            {"assign/3-eager", "assign/8-eager", "kip429/leader/5-eager"},
        ),
        (["test_it.py::test_contract[roundrobin/balance/1-eager]"], {"roundrobin/balance/1-eager"}),
    ],
)
def test_clauses_can_be_chosen(tmp_path: Path, choice: list[str], chosen: set[str]) -> None:
    ran = pytest_in(tmp_path, "'roundrobin'", "--strict-markers", *choice)
    assert ran.returncode == 0, ran.stdout
    assert outcomes(ran).keys() == chosen


@pytest.mark.nightly
def test_quality_is_informational_unless_the_level_says_so(tmp_path: Path) -> None:
    name = "range/copartition/1-eager"
    seed = ("--rebalance-seed", "1")
    lenient = pytest_in(tmp_path, repr(WASTEFUL), *seed)
    assert (lenient.returncode, outcomes(lenient)[name]) == (0, "XFAIL")
    strict = pytest_in(tmp_path, repr(WASTEFUL), *seed, "--rebalance-level", "quality")
    assert (strict.returncode, outcomes(strict)[name]) == (1, "FAILED")


@pytest.mark.nightly
def test_known_failures_xfail_and_needless_entries_fail(tmp_path: Path) -> None:
    (tmp_path / "known.txt").write_text("kip429/**  # https://example.org/1\n")
    option = "--rebalance-known-failing=@known.txt"
    known = pytest_in(tmp_path, repr(BROKEN), option)
    assert (known.returncode, outcomes(known)[UNASSIGNED]) == (0, "XFAIL")
    fixed = pytest_in(tmp_path, "'roundrobin'", option)
    assert (fixed.returncode, outcomes(fixed)[UNASSIGNED]) == (1, "FAILED")
    assert "remove kip429/** (known.txt:1)" in fixed.stdout
    (tmp_path / "known.txt").write_text("kip54/sticky/1  # https://example.org/1\n")
    stale = pytest_in(tmp_path, "'roundrobin'", option)
    assert {name for name, word in outcomes(stale).items() if word == "FAILED"} == {"search/complete"}


@pytest.mark.nightly
def test_options_may_stand_in_the_ini_file(tmp_path: Path) -> None:
    (tmp_path / "known.txt").write_text("kip429/**  # https://example.org/1\n")
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\naddopts = --strict-config\nrebalance-profile = smoke\nrebalance-report-dir = out\n"
        "rebalance-known-failing = @known.txt\n"
    )
    below = tmp_path / "below"
    below.mkdir()
    (below / "test_it.py").write_text(SUITE.format(target=repr(BROKEN)))
    ran = run_pytest(below)
    assert ran.returncode == 0, ran.stdout
    assert outcomes(ran)[UNASSIGNED] == "XFAIL"
    assert list((tmp_path / "out" / "failures").glob("*.json"))


@pytest.mark.nightly
def test_an_object_is_judged_in_this_process(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import os\n"
        "from rebalance_verifier.cli.pytest_plugin import conformance\n"
        "from rebalance_verifier.model.assignors import reference\n"
        "class Mine:\n"
        "    name, protocols, promises = 'mine', ('eager',), ()\n"
        "    here = os.getpid()\n"
        "    def assign(self, cluster, group):\n"
        "        assert os.getpid() == self.here\n"
        "        return reference('roundrobin').assign(cluster, group)\n"
        "def broken(cluster, group):\n"
        "    raise LookupError('lost')\n"
        "test_contract = conformance(Mine)\n"
        "test_instance = conformance(Mine())\n"
        "test_broken = conformance(broken)\n"
    )
    ran = run_pytest(tmp_path, "--rebalance-profile", "smoke", "-k", "assign")
    assert set(outcomes(ran).values()) == {"PASSED"}
    assert "PASSED test_it.py::test_instance[assign/4-eager]" in ran.stdout
    assert "FAILED test_it.py::test_broken[assign/4-eager] - Failed: rebalance replay " in ran.stdout
    assert "LookupError: lost" in ran.stdout


@pytest.mark.slow
def test_a_module_beside_the_test_is_found_wherever_pytest_is_started(tmp_path: Path) -> None:
    below = tmp_path / "below"
    below.mkdir()
    (below / "mine.py").write_text(
        "class Mine:\n"
        "    protocols, promises = ('eager',), ()\n"
        "    def assign(self, cluster, group):\n"
        "        return {m: [] for m in group}\n"
    )
    (below / "test_it.py").write_text(SUITE.format(target="'mine:Mine'"))
    ran = run_pytest(tmp_path, "--rebalance-profile", "smoke", "-k", "assign/1")
    assert outcomes(ran) == {"assign/1-eager": "PASSED"}, ran.stdout


@pytest.mark.slow
@pytest.mark.covering("target")
@pytest.mark.parametrize(
    ("target", "options", "message"),
    [
        ("", [], "conformance() names no target"),
        ("'range'", ["--rebalance-profile", "huge"], "'huge' is none of smoke, ci, nightly, deep"),
        ("'range'", ["--rebalance-level", "best"], "'best' is none of safety, liveness, quality"),
        ("'range'", ["--rebalance-seed", "x"], "'x' is no number"),
        ("'range'", ["--rebalance-known-failing=@none.txt"], "no file 'none.txt'"),
    ],
)
def test_what_cannot_run_is_a_usage_error(
    pytester: pytest.Pytester, target: str, options: list[str], message: str
) -> None:
    pytester.makepyfile(SUITE.format(target=target))
    ran = pytester.runpytest_subprocess(*options)
    assert ran.ret == pytest.ExitCode.USAGE_ERROR
    ran.stderr.fnmatch_lines([f"ERROR: *{glob(message)}*"])


def glob(text: str) -> str:
    """``text`` as a pattern that means just that."""
    return text.replace("[", "[[]")


@pytest.mark.slow
def test_a_target_may_be_named_on_the_command_line(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(SUITE.format(target=""))
    ran = pytester.runpytest_subprocess("--rebalance-target", "no_such:thing", "-k", "assign/1")
    ran.stdout.fnmatch_lines(["*no module and no adapter is called 'no_such'*", "*1 failed, 3 skipped*"])


# --- other people's test runs ---------------------------------------------------------------------


def test_a_project_without_assignors_sees_nothing_of_it(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import sys
        def test_light():
            heavy = {"hypothesis", "networkx", "z3", "pyspark", "rebalance_verifier.properties"}
            loaded = heavy & sys.modules.keys()
            assert not loaded, loaded
        """
    )
    ran = pytester.runpytest_subprocess("-p", "no:hypothesispytest", "--strict-markers")
    assert ran.ret == 0, ran.stdout.str()
    shown = ran.stdout.str().replace("rebalance-verifier-", "", 1)  # pytest's own list of plugins
    assert "rebalance" not in shown


@pytest.mark.slow
def test_it_can_be_switched_off(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        "def test(pytestconfig): assert not pytestconfig.pluginmanager.hasplugin('rebalance')"
    )
    assert pytester.runpytest_subprocess("-p", "no:rebalance").ret == 0


COUNTED = """
import os
from pathlib import Path
from rebalance_verifier.model.assignors import reference
class Counted:
    name, protocols, promises = "counted", ("eager",), ()
    def __init__(self):
        Path(f"started-{os.getpid()}").touch()
    def assign(self, cluster, group):
        return reference("roundrobin").assign(cluster, group)
"""


@pytest.mark.nightly
def test_workers_of_xdist_share_one_run(tmp_path: Path) -> None:
    """Each run starts as many processes of the target: one for the search, one more for ``assign/6``."""
    (tmp_path / "counted.py").write_text(COUNTED)
    started = []
    for workers in ("0", "2"):
        ran = pytest_in(tmp_path, "'counted:Counted'", "-n", workers, "--dist", "load")
        assert ran.returncode == 0, ran.stdout
        started.append(len(list(tmp_path.glob("started-*"))))
    assert started[1] == 2 * started[0]


@pytest.mark.slow
@pytest.mark.covering
@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_target_that_does_not_start_is_one_failure(tmp_path: Path, workers: str) -> None:
    ran = pytest_in(tmp_path, "'no_such:thing'", "-n", workers)
    assert ran.returncode == 1
    assert "= 1 failed, 48 skipped in " in ran.stdout
    assert list(outcomes(ran).values()) == ["FAILED"]
    (skipped,) = (line for line in ran.stdout.splitlines() if line.startswith("SKIPPED"))
    assert "[48] " in skipped
    assert "not judged, as a test before has said: 'no_such:thing': no module" in skipped


@pytest.mark.nightly
def test_a_terminal_shows_how_far_the_search_is(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(SUITE.format(target="'cooperative-sticky'"))
    code, shown = on_terminal(tmp_path, "-k", "assign/1", "-p", "no:cacheprovider")
    assert code == 0
    assert re.search(r"searching: [\d,]+ of 260 scenarios", shown)
    assert "2 passed" in shown


def on_terminal(directory: Path, *options: str) -> tuple[int, str]:
    """Exit code of pytest, and what it writes where stdout and stderr are a terminal."""
    ours, theirs = pty.openpty()
    argv = [sys.executable, "-m", "pytest", *options]
    with subprocess.Popen(argv, cwd=directory, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError):  # how the end of a terminal is read
            while more := os.read(ours, 65536):
                shown += more
        os.close(ours)
        return process.wait(), shown.decode()


@pytest.mark.slow
def test_with_xdist(tmp_path: Path) -> None:
    pytest.importorskip("xdist")
    ran = pytest_in(tmp_path, repr(BROKEN), "-n", "2", "-k", "assign/1 or leader or search")
    assert ran.returncode == 1
    assert outcomes(ran) == {"assign/1-eager": "PASSED", UNASSIGNED: "FAILED", "search/complete": "PASSED"}
    assert "- counterexample -" in ran.stdout
