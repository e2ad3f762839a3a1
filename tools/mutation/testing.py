"""Tests run on a mutant, in a process that ends with it."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Collection, Sequence
from pathlib import Path

import pytest

from tools.mutation.loading import Differing

NOT_NEEDED = ("cacheprovider", "xdist", "warnings", "unraisableexception", "threadexception")
"""Plugins of pytest; the last two search the whole memory once a run."""

FOLDER = str(Path(__file__).parents[2] / "tests")


class TestRun:
    """A plugin of pytest: of those collected it runs the tests ``among`` these, and keeps the name of
    the first that fails, and for each what made a difference while it ran, or as the tests were collected."""

    __test__ = False

    def __init__(self, among: Collection[str] | None, compare: Differing | None) -> None:
        self.among, self.compare, self.failed = among, compare, ""
        self.differ: dict[str, frozenset[int]] = {}
        self.collected: frozenset[int] = frozenset()

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if self.among is None or item.nodeid in self.among]
        if self.compare is not None:
            self.collected = frozenset(self.compare.numbers)

    def pytest_runtest_setup(self) -> None:
        if self.compare is not None:
            self.compare.numbers.clear()
            forget()

    def pytest_runtest_teardown(self, item: pytest.Item) -> None:
        if self.compare is not None:
            self.differ[item.nodeid] = self.collected | self.compare.numbers

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.failed:
            self.failed = report.nodeid.rpartition("::")[2].partition("[")[0]

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed and not self.failed:
            self.failed = "the tests cannot be collected"


def forget() -> None:
    """What the model and the tests keep of earlier calls, which hides that they would differ."""
    for name, module in list(sys.modules.items()):
        if name.startswith("rebalance_verifier.model.classic") or FOLDER in (
            getattr(module, "__file__", None) or ""
        ):
            for kept in vars(module).values():
                getattr(kept, "cache_clear", bool)()


def run_tests(
    files: Sequence[Path],
    among: Collection[str] | None = None,
    compare: Differing | None = None,
    run: TestRun | None = None,
) -> TestRun:
    """The tests in ``files``, to the first that fails, with what is loaded now; none that are slow.

    ``run``, where given, says itself what is run.
    """
    folders = {str(file.parent) for file in files}
    for name, module in list(sys.modules.items()):
        if any(folder in (getattr(module, "__file__", None) or "") for folder in folders):
            del sys.modules[name]  # it knows what there was without the mutant
    run = run or TestRun(among, compare)
    options = ["-x", "-q", "--assert=plain", "--capture=no", "-m", "not slow and not nightly"]
    without = [option for name in NOT_NEEDED for option in ("-p", f"no:{name}")]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        code = pytest.main([*options, *without, *map(str, files)], plugins=[run])
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) and not run.failed:
        raise RuntimeError(f"pytest ends with {code!r}: {printed.getvalue()[-500:]}")
    return run
