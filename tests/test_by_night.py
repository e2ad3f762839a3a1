"""What the list of the night names is there: a test that was renamed would run by day again."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.by_night import BY_NIGHT

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("path", BY_NIGHT)
def test_each_is_there(path: str) -> None:
    text = (ROOT / path).read_text(encoding="utf-8")
    missing = [name for name in BY_NIGHT[path] if not re.search(rf"def {name.partition('[')[0]}\(", text)]
    assert not missing


def test_the_night_has_them(pytester: pytest.Pytester) -> None:
    pytester.makeconftest("from tests.by_night import pytest_collection_modifyitems")
    pytester.mkpydir("tests")
    pytester.path.joinpath("tests", "test_wheel.py").write_text(
        "def test_the_wheel_runs_from_an_index_of_its_own(): pass\ndef test_other(): pass\n"
    )
    ran = pytester.inline_run("--import-mode=importlib", "-m", "not nightly", "-p", "no:cacheprovider")
    ran.assertoutcome(passed=1)
