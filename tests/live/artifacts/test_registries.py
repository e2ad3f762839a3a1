"""Which releases exist: what each registry's client prints, read and misread, and what is printed without."""

from __future__ import annotations

import os
import sys

import pytest
from rebalance_verifier.live.artifacts import maven, pypi, registries
from rebalance_verifier.live.artifacts.registries import (
    Existing,
    existing,
    existing_of,
    go_versions,
    npm_versions,
    parsed,
)

KAFKA, ARTIFACT = "maven:org.apache.kafka:kafka-clients", "org.apache.kafka:kafka-clients"


@pytest.fixture(autouse=True)
def programs(only_programs, tmp_path, monkeypatch):
    """A PATH with nothing but what is put there; nothing is known from before. ``python`` is for pip."""
    existing.cache_clear()
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin" / "python"))
    yield only_programs
    existing.cache_clear()


def prints(text: str) -> str:
    return f"/bin/cat <<'END'\n{text}\nEND"


# --- what is printed -------------------------------------------------------------------------------------

METADATA = """<?xml version="1.0" encoding="UTF-8"?>
<metadata>
  <groupId>org.apache.kafka</groupId>
  <versioning>
    <latest>4.3.1</latest>
    <versions>
      <version>0.8.2-beta</version>
      <version>2.4.0</version>
      <version>4.3.1</version>
      <version> 2.10.0 </version>
      <version/>
    </versions>
  </versioning>
</metadata>"""
"""As Maven keeps it, which lists versions in the order in which they came."""

PIP = """kafka-python (3.0.12)
Available versions: 3.0.12, 3.0.11, 2.0.2
  INSTALLED: 3.0.12
  LATEST:    3.0.12"""
GO = '{"Path": "example.org/x", "Versions": ["v1.9.0", "v1.10.0", "v1.11.0-rc.1"]}'


def test_what_each_client_prints_is_read():
    assert maven.versions_in(METADATA) == ["0.8.2-beta", "2.4.0", "4.3.1", "2.10.0"]
    assert pypi.versions_in(PIP) == ("3.0.12", "3.0.11", "2.0.2")
    assert go_versions(GO) == ["v1.9.0", "v1.10.0", "v1.11.0-rc.1"]
    assert go_versions('{"Path": "example.org/x"}') == []
    assert npm_versions('["2.2.4", "2.3.0-beta.1"]') == ["2.2.4", "2.3.0-beta.1"]
    assert npm_versions('"1.0.0"') == ["1.0.0"]


@pytest.mark.parametrize("text", ["", "<html>no</html>", "<metadata><versioning>", "\0"])
def test_what_is_no_metadata_lists_nothing(text):
    assert maven.versions_in(text) == []


@pytest.mark.parametrize("read", [go_versions, npm_versions])
@pytest.mark.parametrize("text", ["", "<html>", "[1]", '{"Versions": 3}', "null"])
def test_what_is_no_answer_is_an_error(read, text):
    with pytest.raises(ValueError, match=r"."):
        read(text)


# --- asking ----------------------------------------------------------------------------------------------

MAVEN = """
for word; do case "$word" in -Dmdep.outputFile=*) out="${word#-Dmdep.outputFile=}";; esac; done
echo "$WARNING"
printf '%s' "$LOCAL/9.9/clients-9.9.pom" > "$out"
"""
"""What the plugin does: it writes where the file is that stands beside the metadata."""


@pytest.fixture
def local(programs, tmp_path, monkeypatch):
    """A directory of the local repository, where a Maven finds what it was asked for."""
    found = tmp_path / "repository" / "clients"
    found.joinpath("9.9").mkdir(parents=True)
    monkeypatch.setenv("LOCAL", str(found))
    programs("mvn", MAVEN)
    return found


def test_maven_tells_by_what_it_keeps(local, monkeypatch):
    (local / "maven-metadata-central.xml").write_text(METADATA)
    (local / "maven-metadata-mirror.xml").write_text(METADATA.replace("2.4.0", "2.4.1"))
    (local / "maven-metadata-broken.xml").write_text("<")
    assert existing(KAFKA) == Existing(("2.4.0", "2.4.1", "2.10.0", "4.3.1"))


@pytest.mark.parametrize(
    ("warning", "text"),
    [
        ("", "mvn leaves no metadata that lists any"),
        (
            "[WARNING] Could not transfer metadata org.apache.kafka:kafka-clients/maven-metadata.xml",
            "mvn reaches no repository: is there a network?",
        ),
    ],
)
def test_what_maven_knew_before_is_not_what_exists(warning, text, local, monkeypatch):
    monkeypatch.setenv("WARNING", warning)
    if warning:
        (local / "maven-metadata-central.xml").write_text(METADATA)
    assert existing(KAFKA) == Existing(trouble=f"releases of {ARTIFACT}: {text}")


def test_a_maven_that_works_offline_does_not_know(local):
    (local / "maven-metadata-central.xml").write_text(METADATA)
    status = local / "resolver-status.properties"
    status.touch()
    assert existing(KAFKA).releases
    existing.cache_clear()
    os.utime(status, (0, 0))
    assert "mvn does not ask (is it set to work offline?)" in existing(KAFKA).trouble


def test_the_others_are_asked_once_in_a_run(programs):
    programs("python", prints(PIP))
    programs("go", prints(GO))
    npm = programs("npm", prints('["2.2.4", "2.3.0-beta.1", "2.2.10"]'))
    packages = ["pypi:kafka-python", "go:example.org/x", "npm:@a/b", "npm:@a/b"]
    assert existing_of(packages) == {
        "pypi:kafka-python": Existing(("2.0.2", "3.0.11", "3.0.12")),
        "go:example.org/x": Existing(("1.9.0", "1.10.0")),
        "npm:@a/b": Existing(("2.2.4", "2.2.10")),
    }
    npm.unlink()
    assert existing("npm:@a/b").releases[-1] == "2.2.10"
    assert existing_of([]) == {}


@pytest.mark.parametrize(
    ("package", "program", "script", "trouble"),
    [
        (KAFKA, "", "", f"{ARTIFACT}: there is no mvn: install Maven"),
        ("go:x", "", "", "releases of x: there is no go"),
        ("npm:x", "", "", "releases of x: there is no npm"),
        (
            "go:x",
            "go",
            "echo 'go: module x: dial tcp: refused' >&2; exit 1",
            "go fails: go: module x: dial tcp",
        ),
        (
            "npm:x",
            "npm",
            "echo >&2; echo 'npm error code E404' >&2; exit 1",
            "npm fails: npm error code E404",
        ),
        ("npm:x", "npm", "exit 1", "npm fails: it does not say why"),
        ("npm:x", "npm", "echo '<html>'", "the answer of npm cannot be read: Expecting value"),
        ("go:x", "go", "echo '{\"Versions\": [1]}'", "the answer of go cannot be read: no list of versions"),
        ("npm:x", "npm", "echo '[\"1.0.0-beta\"]'", "releases of x: npm lists none"),
        ("pypi:x", "python", "echo nothing", "releases of x: pypi lists none"),
        (
            "pypi:x",
            "python",
            "echo 'ERROR: No matching distribution found for x' >&2; exit 1",
            "releases of x: pip finds no such release",
        ),
        (
            # Without an index it goes on with what lies on the machine.
            "pypi:x",
            "python",
            "echo 'Retrying: Failed to establish a new connection' >&2; echo 'Available versions: 1.0'",
            "releases of x: pip reaches no index: is there a network?",
        ),
        ("pypi:x", "", "", "releases of x: pip: cannot run"),
    ],
)
def test_without_an_answer_one_line_says_why(package, program, script, trouble, programs):
    if program:
        programs(program, script)
    found = existing(package)
    assert found.releases == ()
    assert trouble in found.trouble
    assert "\n" not in found.trouble


@pytest.mark.parametrize("package", ["kafkajs", "cargo:x", "npm:", ""])
def test_what_names_no_package(package):
    with pytest.raises(ValueError, match="is no package: write REGISTRY:NAME, of maven, pypi, go, npm"):
        parsed(package)
    assert set(registries.VERSIONS) == {"maven", "pypi", "go", "npm"}
