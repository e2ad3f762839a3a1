"""What the list of the night names is there: a test that was renamed would run by day again."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.by_night import BY_NIGHT, pytest_collection_modifyitems

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("path", BY_NIGHT)
def test_each_is_there(path: str) -> None:
    text = (ROOT / path).read_text(encoding="utf-8")
    missing = [name for name in BY_NIGHT[path] if not re.search(rf"def {name.partition('[')[0]}\(", text)]
    assert not missing


@dataclass
class Item:
    nodeid: str
    marks: list[str] = field(default_factory=list)

    def add_marker(self, mark: pytest.MarkDecorator) -> None:
        self.marks.append(mark.name)


def test_the_night_has_them() -> None:
    path, (name, *_) = next(iter(BY_NIGHT.items()))
    items = [Item(f"{path}::{name}"), Item(f"{path}::{name}[a case]"), Item(f"{path}::test_other")]
    pytest_collection_modifyitems(items)  # type: ignore[arg-type]
    assert [one.marks for one in items] == [["nightly"], ["nightly"], []]
