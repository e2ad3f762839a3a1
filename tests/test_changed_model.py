"""The edit of docs/how-to/change-the-model.md, made in a copy: the commands notice what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.product_copy import copied, run_copy
from tests.test_layers import ROOT

PAGE = (ROOT / "docs" / "how-to" / "change-the-model.md").read_text()

pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory for PYTHONPATH, before the editable installation, with the packages and the edit."""
    where = tmp_path_factory.mktemp("changed")
    package = copied(where)
    file = re.search(r"^\+\+\+ b/(.*)$", PAGE, re.M)
    old = re.search(r"^-( +.*)$", PAGE, re.M)
    new = re.search(r"^\+( +.*)$", PAGE, re.M)
    assert file is not None
    assert old is not None
    assert new is not None
    path = package / file[1]
    before = path.read_text()
    assert before.count(f"{old[1]}\n") == 1
    path.write_text(before.replace(f"{old[1]}\n", f"{new[1]}\n"))
    return where


def test_the_tests_of_single_steps(changed: Path) -> None:
    tests = [f"tests/model/classic/test_protocol_{name}.py" for name in ("member", "prepare")]
    first = ("-o", f"pythonpath={changed} .")  # else pytest finds the package in ROOT
    ran = run_copy(changed, ROOT, "pytest", "-q", "-p", "no:cacheprovider", *first, *tests)
    assert ran.returncode == 1
    failed = re.findall(r"^FAILED (\S+)", ran.stdout, re.M)
    for named in (
        "test_error_table[commit-UNKNOWN_MEMBER_ID-",
        "test_max_poll[",
        "test_protocol_prepare.py::",
    ):
        assert named.split("::")[0].strip("[") in PAGE
        assert any(named in one for one in failed), named


def test_the_exploration(changed: Path, tmp_path: Path) -> None:
    (line,) = re.findall(r"`rebalance (explore [^`]*)`", PAGE)
    ran = run_copy(changed, tmp_path, "rebalance_verifier", *line.split())
    assert ran.returncode == 1
    assert "VIOLATION group/owner  t-0 is owned by A and by B" in ran.stdout
    assert "24 steps; no run is shorter" in ran.stdout


def test_the_proof(changed: Path, tmp_path: Path) -> None:
    (line,) = re.findall(r"`rebalance (prove [^`]*)`", PAGE)
    ran = run_copy(changed, tmp_path, "rebalance_verifier", *line.split())
    assert ran.returncode == 3
    assert "NOT IN THE LOGIC" in ran.stdout
    assert re.search(r"prepare\(\d\) was \w+,\s+is\s+False,\s+should\s+be\s+True", ran.stdout)
