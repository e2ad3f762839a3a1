"""What all tests share: pytest wants plugins named here, and Hypothesis its settings."""

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import settings

pytest_plugins = ["pytester"]

# A Java of a few seconds spends most of them compiling and collecting in parallel what it never runs again.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

# The same examples on every machine, and no verdict by the clock: both set here, not inherited from
# the profile that Hypothesis loads under CI.
settings.register_profile(
    "suite", settings.get_profile("default"), derandomize=True, database=None, deadline=None, print_blob=True
)
settings.load_profile("suite")

HERE = Path(__file__).parent
NEED = HERE.parent / ".ci" / "need"
SPARK = ("pipeline/", "gate/test_audit_cli", "gate/test_campaign_cli", "gate/test_explore_spark")
"""Beginnings of the names of files whose tests beyond the fast loop start Spark."""


def pytest_collection_modifyitems(items):
    """Where there is no Java, tests that need it are skipped, with what is missing and how to get it."""
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
