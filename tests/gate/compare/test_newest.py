"""The newest release of each client that the registries have today can be judged: one that cannot fails here.

Only where a registry cannot be asked is a test skipped. Each step of `rebalance check --adapter` has to be
right before a verdict counts, since a bridge or adapter that answers nothing gets one too.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from rebalance_verifier.base.processes.tools import ToolError
from rebalance_verifier.gate.compare import clients
from rebalance_verifier.gate.compare.clients import PinnedClient
from rebalance_verifier.gate.targets.hosts.hosted import TargetError
from rebalance_verifier.gate.targets.resolve import resolve
from rebalance_verifier.gate.targets.session import Session
from rebalance_verifier.gate.targets.smoke import smoke
from rebalance_verifier.live.artifacts import jvm, maven, pypi
from rebalance_verifier.live.artifacts.maven import CLIENTS
from rebalance_verifier.live.artifacts.registries import existing
from rebalance_verifier.model.assignors.promises import KAFKA
from rebalance_verifier.model.bugs.releases import version

from tests.gate.toolchains import ADAPTERS, NPM, copied, run

pytestmark = pytest.mark.nightly

KNOWN = {
    client.name: client
    for client in (*clients.pinned(), *clients.read(ADAPTERS / "clients.json"))
    if client.package
}
SHARDS = 4


def releases(package: str) -> tuple[str, ...]:
    found = existing(package)
    if found.trouble:
        pytest.skip(found.trouble)
    return found.releases


def needs(*programs: str) -> None:
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"needs {program}")


# --- every client ----------------------------------------------------------------------------------------


def go(directory: Path, client: PinnedClient, release: str) -> None:
    module = client.package.removeprefix("go:")
    run("go", "get", f"{module}@v{release}", cwd=directory / "go")
    run("go", "build", "-o", "bin/", f"./{client.name}", cwd=directory / "go")


def npm(directory: Path, client: PinnedClient, release: str) -> None:
    name = client.package.removeprefix("npm:")
    folder = directory / "js" / (client.page or client.name)
    run("npm", "install", *NPM, "--save-exact", f"{name}@{release}", cwd=folder)


BUILD: dict[str, Callable[[Path, PinnedClient, str], None]] = {"go": go, "npm": npm}
"""How the adapter of a client that is not fetched by release is made with another one."""


@pytest.mark.parametrize("name", KNOWN)
def test_the_newest_release_can_be_judged(name, rebalance, tmp_path):
    client = KNOWN[name]
    kind = client.package.partition(":")[0]
    known = releases(client.package)
    needs(*{"maven": ("java",), "npm": ("node",)}.get(kind, ()))
    if kind in BUILD:
        BUILD[kind](copied(tmp_path / "examples" / "adapters"), client, known[-1])
    columns = client.columns(("newest",), (), known)
    assert {column.newest for column in columns} == {known[-1]}
    for column in columns:
        target = resolve(column.spec)
        assert [step for step in smoke(target, validate=True) if not step.ok] == []
        with Session(target) as session:
            assert session.hello.version == known[-1]
        spec = column.spec
        ran = rebalance("check", "--profile", "smoke", *(shlex.split(spec) if spec[0] == "-" else [spec]))
        assert ran.code in (0, 1), ran.out + ran.err
        assert known[-1] in ran.out.splitlines()[0]


def recorded(directory: Path, *options: str, path: Path | None = None) -> str:
    """What `rebalance record` prints, in a process of its own, with ``path`` before what is installed."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "rebalance_verifier.cli.main", "record", "--settle", "120", *options],
        cwd=directory,
        env=os.environ | ({"PYTHONPATH": str(path)} if path else {}),
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout


def test_the_newest_librdkafka_is_recorded(tmp_path):
    newest = releases("pypi:confluent-kafka")[-1]
    path = pypi.installed("confluent-kafka", newest)
    assert f"2 x confluent-kafka {newest}," in recorded(tmp_path, "--clients", "confluent:2", path=path)


def test_the_newest_kafka_runs_and_its_consumer_is_recorded_on_it(tmp_path):
    needs("java")
    newest = releases(f"maven:{CLIENTS}")[-1]
    cluster = ("--cluster", "kafka", "--kafka-version", newest)
    text = recorded(tmp_path, *cluster, "--clients", f"java:{newest}:2")
    assert f"on kafka {newest}\n" in text
    assert f"2 x kafka-clients {newest}\n" in text


# --- every release of Java's ------------------------------------------------------------------------------


@pytest.mark.parametrize("shard", range(SHARDS))
def test_our_programs_fit_every_release_of_the_java_client(shard):
    """From 2.4, in which ConsumerPartitionAssignor came, on: all compile, the bridge answers what it must."""
    needs("java")
    several = [one for one in releases(f"maven:{CLIENTS}") if version(one) >= (2, 4)]
    assert len(several) > 50
    wrong = {}
    for release in several[shard::SHARDS]:
        try:
            target = resolve(f"java:{KAFKA}.CooperativeStickyAssignor@{CLIENTS}:{release}")
            steps = smoke(target, validate=True)
            failed = [step for step in steps if not step.ok]
            if failed or f"hello from cooperative-sticky {release}" != steps[0].title:
                wrong[release] = str([*failed, steps[0].title])
            jars = maven.classpath([f"{CLIENTS}:{release}"])
            for package, program in (("consumers", "Recorder.java"), ("clusters", "Broker.java")):
                jvm.command(f"rebalance_verifier.live.{package}", [program], jars, shared=["Json.java"])
        except (TargetError, ToolError) as error:
            wrong[release] = str(error)
    assert wrong == {}
