"""Expected outputs in files: what the flag rewrites, what fails without it, and that no file is left over."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.expected import FOLDER, Expected, is_updating

HERE = Path(__file__).parent


def of(tmp_path: Path, updating: bool) -> Expected:
    return Expected(tmp_path / "test_it.py", "test_one[a b/c]", updating)


def test_the_flag_writes_and_rewrites_a_file_and_without_it_a_difference_fails(tmp_path):
    of(tmp_path, True)("took 1.5 s  \nsecond")
    path = tmp_path / FOLDER / "test_it" / "test_one-a-b-c.txt"
    assert path.read_text() == "took <seconds>\nsecond\n"
    of(tmp_path, False)("took 9 s\nsecond\n")
    with pytest.raises(pytest.fail.Exception, match=r"out of date(.|\n)*-second\n\+first"):
        of(tmp_path, False)("took 9 s\nfirst")
    assert path.read_text() == "took <seconds>\nsecond\n"
    of(tmp_path, True)("third")
    assert path.read_text() == "third\n"


def test_a_missing_file_fails_and_is_not_written(tmp_path):
    with pytest.raises(AssertionError, match="is missing"):
        of(tmp_path, False)("text", "part")
    assert not (tmp_path / FOLDER).exists()


def test_every_expected_output_belongs_to_a_test():
    """A test that was renamed leaves its file behind."""
    for path in HERE.rglob(f"{FOLDER}/*/*.txt"):
        module = path.parents[2] / f"{path.parent.name}.py"
        assert module.exists(), path
        tests = re.findall(r"^def (test_\w+)\(.*expected", module.read_text(encoding="utf-8"), re.M)
        assert any(re.fullmatch(f"{test}(-.*)?", path.stem) for test in tests), path


@pytest.mark.covering("rewrites")
@pytest.mark.parametrize(
    ("arguments", "variables", "rewrites"),
    [([], {}, False), (["--update-expected"], {}, True), ([], {"UPDATE_DOCS": "1"}, True)],
)
def test_one_flag_is_for_all(arguments, variables, rewrites, pytester, monkeypatch):
    monkeypatch.delenv("UPDATE_DOCS", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    pytester.makeconftest(
        "def pytest_addoption(parser): parser.addoption('--update-expected', action='store_true')"
    )
    assert is_updating(pytester.parseconfigure(*arguments)) is rewrites
