"""What all tests share: pytest wants plugins named here, and Hypothesis its settings."""

import contextlib
import gc
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from rebalance_verifier.cli import main as cli

from tests.command import Ran, Rebalance
from tests.expected import FLAG
from tests.traces.published import hold_printed

pytest_plugins = ["pytester", "tests.fixtures", "tests.skips", "tests.by_night", "tests.deadline"]

# A Java of a few seconds spends most of them compiling and collecting in parallel what it never runs again.
os.environ["REBALANCE_NO_CACHE"] = "1"  # tests change the code that a cached proof is of
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

# Whoever starts the tests in the background has Ctrl-C ignored, here and in every process that tests start.
with contextlib.suppress(ValueError):  # not in the main thread
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The same examples on every machine, and no verdict by the clock: both set here, not inherited from
# the profile that Hypothesis loads under CI.
settings.register_profile(
    "suite", settings.get_profile("default"), derandomize=True, database=None, deadline=None, print_blob=True
)
settings.load_profile("suite")

HERE = Path(__file__).parent
NEED = HERE.parent / ".ci" / "need"
SPARK = (
    *("pipeline/", "tools/test_planted", "cli/test_audit_cli", "cli/test_campaign_cli"),
    "cli/test_explore_spark",
)
"""Beginnings of the names of files whose tests beyond the fast loop start Spark."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the flag that rewrites expected outputs."""
    parser.addoption(FLAG, action="store_true", help="rewrite expected outputs (tests/expected.py)")


@pytest.hookimpl(trylast=True)  # of those that are to run
def pytest_collection_modifyitems(config, items):
    """Each worker begins with its share of the slow ones, those of Spark first. Where there is no Java, tests
    that need it are skipped, with what is missing and how to get it."""
    items[:] = dealt(items, getattr(config, "workerinput", {}).get("workercount", 1))
    spark = [
        item
        for item in items
        if item.path.relative_to(HERE).as_posix().startswith(SPARK)
        and (item.get_closest_marker("slow") or item.get_closest_marker("nightly"))
    ]
    if not spark:
        return
    said = subprocess.run(["sh", NEED, "java"], capture_output=True, text=True, check=False)
    if said.returncode:
        for item in spark:
            item.add_marker(pytest.mark.skip(reason=said.stderr.strip()))


def pytest_collection_finish():
    """Leave the tests, and the modules that they have imported, out of garbage collections: a twentieth."""
    gc.collect()
    gc.freeze()


def dealt(items, workers):
    """The items, of which each worker begins with an equal stretch (xdist's worksteal).

    A stretch begins with whole files of slow tests, so that what they share is made once, those of the whole
    product before those of its rooms, so that no long test is left alone at the end; the rest fills it up.
    Those of Spark are for one worker: each that has one starts a JVM, which takes most of a minute until it
    is warm.
    """
    slow: dict[Path, list[pytest.Item]] = {}
    fast: list[pytest.Item] = []
    for item in items:
        is_fast = item.get_closest_marker("slow") is None
        (fast if is_fast else slow.setdefault(item.path, [])).append(item)
    stretches: list[list[pytest.Item]] = [[] for _ in range(workers)]
    others = stretches[1:] or stretches
    number = 0
    for path, of_file in sorted(slow.items(), key=lambda one: one[0].parent != HERE):
        if path.relative_to(HERE).as_posix().startswith(SPARK):
            stretches[0] += of_file
        else:
            others[number % len(others)] += of_file
            number += 1
    for stretch in stretches:
        room = max(0, len(items) // workers - len(stretch))
        stretch += fast[:room]
        del fast[:room]
    return [item for stretch in (*stretches, fast) for item in stretch]


@pytest.fixture
def only_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Path]:
    """A PATH with nothing but the shell scripts that are put there, by name and text."""
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    monkeypatch.setenv("PATH", str(bin_))

    def put(name: str, script: str) -> Path:
        path = bin_ / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return path

    return put


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current directory, and none of the variables that change what is printed."""
    monkeypatch.chdir(tmp_path)
    for name in ("NO_COLOR", "FORCE_COLOR", "GITHUB_STEP_SUMMARY", "PYTHONIOENCODING"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture(autouse=True)
def signals() -> Iterator[None]:
    """What a test makes of signals ends with it: the command hears SIGTERM, and so would processes that the
    next test forks."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        if signal.getsignal(number) != handler:
            signal.signal(number, handler)


@pytest.fixture
def rebalance(here: Path, capfd: pytest.CaptureFixture[str]) -> Rebalance:
    """The command in an empty directory, in this process. What it prints as JSON keeps its schema."""

    def run(*argv: object) -> Ran:
        texts = [str(word) for word in argv]
        ran = Ran(cli.main(texts), *capfd.readouterr())
        hold_printed(texts, ran.code, ran.out)
        return ran

    return run
