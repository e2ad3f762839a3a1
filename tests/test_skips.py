"""A skip that nobody listed fails the run of continuous integration."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("reason", "wanted", "code"),
    [
        ("needs javac", "listed", 1),
        ("no zsh here", "listed", 0),
        ("needs javac", "", 0),
    ],
)
def test_a_skip_that_is_not_listed(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, reason: str, wanted: str, code: int
) -> None:
    monkeypatch.setenv("SKIPS", wanted)
    pytester.makepyfile(f"import pytest\ndef test_it(): pytest.skip({reason!r})\ndef test_other(): pass")
    ran = pytester.runpytest_inprocess("-p", "tests.skips")
    assert ran.ret == code
    if code:
        ran.stdout.fnmatch_lines(["*not listed in tests/skips.py: Skipped: needs javac"])
