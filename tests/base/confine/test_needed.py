"""A sandbox shows what a target is made of, and no more."""

from __future__ import annotations

import os
import sys
from importlib import metadata
from pathlib import Path

import pytest
from rebalance_verifier.base.confine.needed import home_of, needed

GO = "/usr/bin/env"
"""A program that needs nothing but the system."""


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home in which this is a project, with what lies in homes."""
    for name in (
        ".ssh",
        ".cache",
        ".local/bin",
        ".local/share/keyrings",
        ".local/lib",
        "project",
        "jars",
    ):
        (tmp_path / name).mkdir(parents=True)
    for name in (".ssh/id", "jars/a.jar", "project/adapter.js", ".local/bin/tool"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path


def below(home: Path, *command: str, **variables: str) -> set[str]:
    """What of a home is shown to a command."""
    environment = {"HOME": str(home), "PATH": "/usr/bin:/bin", **variables}
    found = [path for path in needed(command, environment) if path.startswith(str(home))]
    return {os.path.relpath(path, home) for path in found}


def test_a_program_sees_its_directory_and_nothing_else_of_a_home(home):
    assert below(home, GO) == {"project"}


def test_it_sees_where_an_editable_package_lies(home, monkeypatch):
    class Installed:
        def __init__(self, record):
            self.record = record

        def read_text(self, name):
            return self.record

    def lies(editable):
        return f'{{"url": "file://{home}/jars%20of%20mine", "dir_info": {{"editable": {editable}}}}}'

    for record, shown in (
        (lies("true"), {"jars of mine"}),
        (lies("false"), set()),
        ("{", set()),
        (None, set()),
    ):
        monkeypatch.setattr(metadata, "distributions", lambda record=record: [Installed(record)])
        (home / "jars of mine").mkdir(exist_ok=True)
        assert below(home, sys.executable) - {"project"} == shown, record


def test_it_sees_what_its_words_name(home):
    for word in (
        str(home / "jars/a.jar"),
        f"-Dx={home}/jars/a.jar",
        f"/nowhere:{home}/jars/a.jar",
        f'{{"command": ["{home}/jars/a.jar"]}}',
        "../jars/a.jar",
    ):
        assert below(home, GO, "-cp", word) == {"project", "jars", "jars/a.jar"}, word
    assert below(home, GO, f"{home}/.ssh/id") == {"project", ".ssh/id"}, "a key, and none beside it"


def test_it_sees_what_its_variables_name_but_no_home_and_no_cache(home):
    named = {"XDG_CACHE_HOME": f"{home}/.cache", "TMPDIR": f"{home}/.cache", "NODE_PATH": f"{home}/jars"}
    assert below(home, GO, **named) == {"project", "jars"}
    assert below(home, GO, DATA=str(home), MORE=str(home.parent), PYTHONPATH="/:/tmp:/dev/shm") == {"project"}


def test_what_holds_a_home_or_what_is_temporary_is_not_shown_where_it_is_named(home):
    above = {"/", "/var", str(home.parent)}
    for named in above:
        for found in (
            needed([GO, named], {"HOME": str(home)}),
            needed([GO], {"HOME": str(home), "DATA": named}),
            needed([GO], {"HOME": str(home)}, [named]),
        ):
            assert above.isdisjoint(found), named


def test_it_sees_programs_and_their_libraries_but_not_what_else_lies_beside_them(home):
    (home / ".local/bin/tool").chmod(0o755)
    (home / ".local/bin/tool").write_text("#!/usr/bin/env sh\n")
    found = below(home, "tool", PATH=f"{home}/.local/bin:/usr/bin:/bin")
    assert found == {"project", ".local/bin", ".local/bin/tool", ".local/lib"}
    (home / "venv/bin").mkdir(parents=True)
    (home / "venv/bin/python").symlink_to(home / "python/bin/python3")
    (home / "python/bin").mkdir(parents=True)
    (home / "python/bin/python3").touch(0o755)
    found = below(home, f"{home}/venv/bin/python")
    assert found == {
        *("project", "venv", "venv/bin", "venv/bin/python"),
        *("python", "python/bin", "python/bin/python3"),
    }


def test_node_finds_its_packages_above_the_program(home):
    (home / "project/sub").mkdir()
    (home / "project/sub/adapter.js").touch()
    (home / "node_modules").mkdir()
    os.chdir(home / "jars")
    assert "node_modules" in below(home, "node", f"{home}/project/sub/adapter.js")


def test_in_the_home_it_sees_what_is_not_hidden(home):
    os.chdir(home)
    assert below(home, GO) == {"project", "jars"}


@pytest.mark.parametrize("above", ["/", "home"])
def test_a_directory_that_holds_what_is_hidden_is_none_for_a_target(home, above):
    os.chdir(home.parent if above == "home" else above)
    with pytest.raises(
        OSError, match="holds what it hides; change to the directory of your project"
    ) as error:
        below(home, GO)
    assert error.value.filename == "sandbox"


def test_python_sees_its_libraries_and_this_distribution():
    found = needed([GO], {"HOME": "/nowhere"})
    assert {sys.prefix, sys.base_prefix} <= {*found}
    assert any(Path(path, "base", "confine").is_dir() for path in found)


@pytest.mark.parametrize(
    ("name", "home"), [("/home/me/", "/home/me"), ("/", "/home/nobody"), ("x", "/home/nobody")]
)
def test_a_home_is_a_directory_of_its_own(name, home):
    assert home_of({"HOME": name}) == home
