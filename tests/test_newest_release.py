"""A new release of Kafka changes one constant, which `make code` writes; everything else follows from it."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from rebalance_verifier.live.artifacts.maven import classpath
from rebalance_verifier.model.bugs.observed import CLIENT, OBSERVED
from rebalance_verifier.model.bugs.releases import CURRENT, NEWEST

from tests.live.code.played import needs_java
from tests.product_copy import copied, run_copy
from tests.test_layers import FLOORS, ROOT, TOP

NEXT = f"{CURRENT[0]}.{CURRENT[1] + 1}.0"
"""The release that is pretended."""

MADE = "model/bugs/observed.toml"
"""What `make code` writes: the constant is its last release."""

BY_HAND = ("model/bugs/catalogue.toml", "model/bugs/explained.toml", "tools/log_messages.toml")
"""Files that somebody edits for a release: which mistakes begin and end with it, why it does what the
catalogue does not say, and that its messages are listed."""

MEASURED = (
    *("tools/benchmarks/", "tools/mutation/", "tools/migration/page.md", "tests/pipeline/audit/logs/"),
    *("tests/pipeline/audit/test_migration_logs.py", "tests/live/conformance/test_messages_conform.py"),
    *("tests/live/clients/record/test_coordinator_log.py", "docs/reference/log-messages.md"),
    *("docs/how-to/judge-a-task-assignor.md", "tests/gate/targets/test_share_groups.py"),
    *("model/written.toml", "tests/model/test_written.py"),
)
"""Beginnings of files about what a release has done once: recordings, logs and figures stay as they are."""

SCANNED = ("Makefile", "README.md", "docs/how-to", "docs/tutorial", "docs/reference", "tools", "tests")


def lines(name: str, text: str) -> Iterator[tuple[int, str]]:
    """The lines that are written by hand: not what a command printed, nor what `make docs` makes."""
    block = ""
    for number, line in enumerate(text.splitlines(), 1):
        if name.endswith(".md") and line.startswith("<!-- generated from here on"):
            block = "<!-- to here -->"
        elif block and line == block:
            block = ""
        elif line.startswith("```console"):
            block = "```"
        elif not block or (block == "```" and line.startswith("$ ")):
            yield number, line


def test_nothing_else_names_the_newest_release() -> None:
    """Type `newest` in a command, and import NEWEST in code; coordinates of Maven say what they fetch."""
    asked = ["git", "ls-files", *FLOORS, TOP, *SCANNED]
    names = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    fetched = r"(?<!kafka-clients:)(?<!kafka-clients==)(?<!kafka-group-coordinator:)(?<!kafka-streams:)"
    named = re.compile(rf"(?<![\w.]){fetched}{re.escape(NEWEST)}(?![\w.])")
    found = [
        f"{name}:{number}: {line.strip()}"
        for name in names
        if name not in (MADE, *BY_HAND) and not name.startswith(MEASURED)
        for number, line in lines(name, (ROOT / name).read_text(encoding="utf-8", errors="replace"))
        if named.search(line)
    ]
    assert found == []
    assert len(BY_HAND) <= 3


def unwritten(newest: str) -> Iterator[str]:
    """What is still to be done for a release, the next first."""
    observed = tomllib.loads((ROOT / MADE).read_text())
    if any(row["releases"][-1] != newest for name, row in observed.items() if name != "client"):
        yield f"{newest}: next, `make code`: every switch on every release, into {MADE}"
    for part, of in OBSERVED.items():
        for one in (one for switch in of.switches for one in of.differences(switch)):
            if part != CLIENT and not one.why:
                yield f"{newest}: next, {BY_HAND[0]} or {BY_HAND[1]}: {one.switch} of {part} is {one.seen}"
    logged = tomllib.loads((ROOT / BY_HAND[2]).read_text())
    if any(logged[name]["releases"][-1] != newest for name in ("java", "broker")):
        yield f"{newest}: next, its messages: {BY_HAND[2]}, then `python -m tools.log_messages`"
    for page in ("docs/results/released.md", "docs/reference/profiles.md"):
        if newest not in (ROOT / page).read_text():
            yield f"{newest}: next, `make docs`, for {page}"


def test_a_release_is_written_in_all_of_its_places() -> None:
    assert next(unwritten(NEWEST), "") == ""


def test_of_a_release_that_nobody_has_written_each_place_is_named() -> None:
    found = list(unwritten(NEXT))
    assert [said.partition(": next, ")[2][:17] for said in found] == [
        "`make code`: ever", "its messages: too", *["`make docs`, for "] * 2
    ]  # fmt: skip


@pytest.fixture(scope="module")
def pretended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the product to which one release was added where `make code` adds it."""
    where = tmp_path_factory.mktemp("pretended")
    path = copied(where) / MADE
    text = path.read_text()
    text = text.replace(f'"{NEWEST}"]', f'"{NEWEST}", "{NEXT}"]').replace(f'to {NEWEST}"', f'to {NEXT}"')
    path.write_text(text.replace(f'other = "{NEWEST}"', f'other = "{NEXT}"'))
    return where


SMALL = "--members 1 --partitions 1 --faults none"
SAYS = {
    "list releases": f"{NEXT}, the newest release",
    f"explore consumer {SMALL} --release newest --broker newest": f"coordinator {NEXT}, clients java {NEXT}",
    f"explore dynamic {SMALL}": f"--broker {NEXT} --release {NEXT}",
    f"upgrade --from range --to roundrobin {SMALL}": f"coordinator {NEXT}, clients java {NEXT}",
    "explore static --release 99.0": f"write {NEXT}",
}


@pytest.mark.covering("says")
@pytest.mark.parametrize(("line", "says"), SAYS.items(), ids=SAYS)
@pytest.mark.slow
def test_commands_know_a_release_that_the_constant_names(
    pretended: Path, tmp_path: Path, line: str, says: str
) -> None:
    ran = run_copy(pretended, tmp_path, TOP, *line.split())
    assert says in ran.stdout + ran.stderr
    assert not re.search(rf"(?<![\w.]){re.escape(NEWEST)}, the newest", ran.stdout)


TRIES = """
import sys
from rebalance_verifier.explore.groups.released import runs_for_code
from rebalance_verifier.live.code import releases
from rebalance_verifier.live.code.replay.on_code import observe_part
from rebalance_verifier.model.bugs.observed import CONSUMER

newest = releases.consumers()[-1], releases.coordinators()[-1]
runs = {"unsorted_metadata": runs_for_code("unsorted_metadata")}
found = observe_part(CONSUMER, runs, newest[:1], newest[1])
print(*newest, *found.switches, *(one.seen for one in found.found.values()))
"""


REPOSITORY = Path.home() / ".m2" / "repository"
ARTIFACTS = ("kafka-clients", "kafka-group-coordinator")

SETTINGS = """<settings>
  <localRepository>{local}</localRepository>
  <profiles><profile><id>pretended</id><repositories><repository>
    <id>pretended</id><url>{served}</url>
  </repository></repositories></profile></profiles>
  <activeProfiles><activeProfile>pretended</activeProfile></activeProfiles>
</settings>
"""


def linked(source: str, target: str) -> None:
    """A link to a jar, which Maven only reads; a copy of what it writes into."""
    (os.link if source.endswith(".jar") else shutil.copy2)(source, target)


def serve(artifact: str, served: Path) -> None:
    """Put the newest release of an artifact into a folder once more, as the next one, with its checksums."""
    known, there = (root / "org" / "apache" / "kafka" / artifact for root in (REPOSITORY, served))
    (there / NEXT).mkdir(parents=True)
    named = f"{artifact}-{NEWEST}"
    pom = (known / NEWEST / f"{named}.pom").read_text()
    (there / NEXT / f"{artifact}-{NEXT}.pom").write_text(
        pom.replace(f"<version>{NEWEST}</version>", f"<version>{NEXT}</version>", 1)
    )
    shutil.copy(known / NEWEST / f"{named}.jar", there / NEXT / f"{artifact}-{NEXT}.jar")
    (there / "maven-metadata.xml").write_text(
        f"<metadata><groupId>org.apache.kafka</groupId><artifactId>{artifact}</artifactId><versioning>"
        f"<release>{NEXT}</release><versions><version>{NEXT}</version></versions></versioning></metadata>"
    )
    for path in [*there.glob("*.xml"), *(there / NEXT).iterdir()]:
        path.with_name(f"{path.name}.sha1").write_text(hashlib.sha1(path.read_bytes()).hexdigest())


@pytest.mark.nightly
@needs_java
def test_a_release_that_a_local_folder_of_maven_serves_is_found_and_run(tmp_path: Path) -> None:
    """So `make code` begins: the registries are asked for releases, and the newest is played."""
    jars = ",".join(f"org.apache.kafka:{artifact}:{NEWEST}" for artifact in ARTIFACTS)
    assert classpath(jars.split(",")), "the newest release is in Maven's local repository"
    local, served = tmp_path / "local", tmp_path / "served"
    shutil.copytree(REPOSITORY, local, copy_function=linked)
    for artifact in ARTIFACTS:
        serve(artifact, served)
    (tmp_path / ".m2").mkdir()
    (tmp_path / ".m2" / "settings.xml").write_text(SETTINGS.format(local=local, served=served.as_uri()))
    variables = {"MAVEN_OPTS": f"-Duser.home={tmp_path}", "XDG_CACHE_HOME": str(tmp_path / "cache")}
    ran = subprocess.run(
        [sys.executable, "-c", TRIES], capture_output=True, text=True, env={**os.environ, **variables}
    )
    assert ran.stdout.split() == [NEXT, NEXT, "unsorted_metadata", "absent"], ran.stderr
