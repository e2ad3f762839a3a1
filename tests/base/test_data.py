"""Tables beside modules."""

from __future__ import annotations

from zipfile import ZipFile

import pytest
from rebalance_verifier.base.tables import table

TEXT = """
numbers = [1, [2, 3]]
[row]
names = ["a"]
[[rows]]
name = "b"
"""


def test_a_table_lies_beside_its_module_and_cannot_be_changed(tmp_path):
    (tmp_path / "module.toml").write_text(TEXT, encoding="utf-8")
    (tmp_path / "other.toml").write_text('word = "\u00e9"', encoding="utf-8")
    module = str(tmp_path / "module.py")
    assert table(module) == {"numbers": (1, (2, 3)), "row": {"names": ("a",)}, "rows": ({"name": "b"},)}
    assert table(module, "other") == {"word": "\u00e9"}


def test_a_table_in_an_archive(tmp_path):
    """A package that is sent to another machine as an archive has its tables."""
    archive = tmp_path / "sent.zip"
    with ZipFile(archive, "w") as content:
        content.writestr("package/module.toml", "names = ['a']")
    assert table(str(archive / "package" / "module.py")) == {"names": ("a",)}
    with pytest.raises(FileNotFoundError):
        table(str(archive / "package" / "other.py"))
