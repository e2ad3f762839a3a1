"""Thirty subtle mistakes: they can still be made, and the tests notice each."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from tools.mutation.edits import PAGE, ROOT, Copy, Edit, edits, noticed, page

EDIT = Edit(function="f", file="a/b.py", what="off by one", old="x > 1", new="x > 2", tests=["tests/t.py"])


def test_there_are_thirty_six_of_each_room_and_tests_that_are_asked() -> None:
    rooms = Counter(edit.file.partition("/")[0] for edit in edits())
    assert rooms == {
        "live": 6,
        "pipeline": 6,
        "explore": 6,
        "specs": 4,
        "tools": 2,
        "cli": 2,
        "report": 3,
        "gate": 1,
    }
    assert len({edit.key for edit in edits()}) == 30
    assert [test for edit in edits() for test in edit.tests if not (ROOT / test).exists()] == []
    assert all(edit.tests for edit in edits())


@pytest.mark.parametrize("edit", edits(), ids=lambda edit: edit.key)
def test_a_mistake_can_be_made_and_is_python(edit: Edit) -> None:
    source = (ROOT / edit.file).read_text(encoding="utf-8")
    after = edit.applied(source)
    assert after != source
    compile(after, edit.file, "exec")


@pytest.mark.parametrize(
    "source",
    [
        "def g(x):\n    return x > 1\n",
        "def f(x):\n    return x > 1 or x > 1\n",
        "def f(x):\n    return x\n",
        "def f(x):\n    return x\n\n\ndef g(x):\n    return x > 1\n",
    ],
)
def test_what_is_not_there_once_is_refused(source: str) -> None:
    with pytest.raises(ValueError, match=r"a/b.py f has no more, or twice: x > 1"):
        EDIT.applied(source)


@pytest.mark.slow
def test_tests_of_the_copy_ask_the_copy(tmp_path: Path) -> None:
    """They once asked what is installed, in which there is no mistake."""
    copy = Copy(tmp_path)
    asks = "from rebalance_verifier.report import markup\n\ndef test():\n    assert "
    (copy.root / "tests" / "test_where.py").write_text(
        f"{asks}markup.__file__.startswith({str(tmp_path)!r})\n"
    )
    assert copy.failing(["tests/test_where.py"], "") == []


def test_the_table_names_what_nobody_notices() -> None:
    text = page([EDIT, replace(EDIT, function="g")], ["tests/t.py::test_it", ""])
    assert "1 of 2 are noticed." in text
    assert "| `a/b.py` | `f` | off by one | `tests/t.py::test_it` |" in text
    assert "| `a/b.py` | `g` | off by one | none |" in text


def test_the_table_is_of_these_mistakes() -> None:
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    assert [row.split(" | ")[:3] for row in rows] == [
        [f"| `{edit.file}`", f"`{edit.function}`", edit.what] for edit in edits()
    ]


@pytest.mark.nightly
def test_each_is_noticed_and_what_changes_nothing_is_not() -> None:
    some = edits()
    nothing = replace(some[1], old="heads = list(titles)", new="heads = [*titles]")
    *found, last = noticed([*some, nothing])
    assert [edit.key for edit, test in zip(some, found, strict=True) if not test] == []
    assert last == ""
