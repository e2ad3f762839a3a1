"""What the list of the night names is there: a test that was renamed would run by day again."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import dedent

import pytest

from tests import by_night
from tests.by_night import BY_NIGHT

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("path", BY_NIGHT)
def test_each_is_there(path: str) -> None:
    text = (ROOT / path).read_text(encoding="utf-8")
    missing = [name for name in BY_NIGHT[path] if not re.search(rf"def {name.partition('[')[0]}\(", text)]
    assert not missing


def test_the_night_has_them(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    path, name = "tests/nowhere/test_of_the_night.py", "test_long"  # a file of ours may be imported already
    monkeypatch.setitem(BY_NIGHT, path, (name,))
    text = f"""
        import pytest
        @pytest.mark.parametrize("case", [1, 2])
        def {name}(case): pass
        def test_other(): pass
    """
    assert by_day(pytester, text, path) == ["test_other"]


def by_day(pytester: pytest.Pytester, text: str, path: str = "test_it.py") -> list[str]:
    """Return the tests of a file that are not of the night."""
    file = pytester.path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(dedent(text))
    pytester.makeini("[pytest]\naddopts = --import-mode=importlib\nmarkers =\n  nightly\n  covering\n")
    run = pytester.inline_run("--collect-only", file, plugins=[by_night])
    items = [call.item for call in run.getcalls("pytest_itemcollected")]
    return [item.name for item in items if item.get_closest_marker("nightly") is None]


CASES = """
    import pytest
    @pytest.mark.covering({mark})
    @pytest.mark.parametrize("client", ["java", "go"])
    @pytest.mark.parametrize("layout", [pytest.param("plain", marks=pytest.mark.nightly), "json", "table"])
    def test_it(layout, client): pass
"""
"""Two of six cases are of the night whatever is covered."""


@pytest.mark.parametrize(
    ("mark", "cases"),
    [
        ("", ["json-java"]),
        ("'client'", ["json-java", "json-go"]),
        ("'client', 'layout'", ["json-java", "table-go"]),
        ("('client', 'layout')", ["json-java", "json-go", "table-java", "table-go"]),
        ("by=lambda layout, client: len(layout)", ["json-java", "table-java"]),
        ("by=lambda layout, client: frozenset(client)", ["json-java", "json-go"]),
        ("also=['table-go']", ["json-java", "table-go"]),
    ],
)
def test_few_cases_show_what_all_show(pytester: pytest.Pytester, mark: str, cases: list[str]) -> None:
    assert by_day(pytester, CASES.format(mark=mark)) == [f"test_it[{case}]" for case in cases]
