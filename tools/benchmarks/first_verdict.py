"""How long it takes from an empty machine to a first verdict: ``python -m tools.benchmarks.first_verdict``.

Empty: Python, and for Java a JDK and Maven, are installed, and nothing else. Environment, pip's cache,
Maven's repository and the suite's own cache are new ones, so that everything is fetched from the registries.
The suite itself is a wheel of this checkout, built before the clock starts, as an index would have it.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
ROOT = HERE.parents[1]

HEAD = """# From an empty machine to a first verdict

Made by `python -m tools.benchmarks.first_verdict` ({machine}, {cores} cores, Python {python}). What has to be
there is Python, and for a Java assignor a JDK and Maven; environment, caches and Maven's repository are new,
and all else is fetched. The target is 3 minutes for an author of a Python assignor, 5 for one of a Java
assignor. Before the first author {load:.0f} programs waited for a processor.

| author | step | seconds |
|---|---|---|
"""

KAFKA = "org.apache.kafka:kafka-clients:4.1.0"


class Step(NamedTuple):
    """One thing that the author types. ``code``: the exit code of a verdict."""

    name: str
    command: Sequence[str]
    code: int = 0


class Author(NamedTuple):
    """Who wants a verdict within ``target`` seconds, and what leads to one."""

    name: str
    target: float
    steps: tuple[Step, ...]


def authors(wheel: Path) -> Iterator[Author]:
    """Both. Paths are relative to the directory of the author, who starts with ``examples/``."""
    install = (
        Step("make an environment", [sys.executable, "-m", "venv", "venv"]),
        Step("install the suite", ["venv/bin/pip", "install", "--quiet", str(wheel)]),
    )
    python = ["venv/bin/rebalance", "check", "my_assignor:CooperativeRoundRobin", "--profile", "smoke"]
    yield Author("Python", 180, (*install, Step("`rebalance check`, profile smoke", python)))
    build = ["mvn", "-q", "-B", "-f", "java", "-DskipTests", "package"]
    java = ["venv/bin/rebalance", "check", "java:com.acme.InTurn", "--profile", "smoke"]
    where = ["--classpath", "java/target/my-assignor-1.0.jar", "--maven", KAFKA]
    steps = (Step("build the jar", build), Step("`rebalance check`, profile smoke", [*java, *where]))
    yield Author("Java", 300, (*install, *steps))


def empty(home: Path) -> dict[str, str]:
    """The variables of a machine on which nothing was fetched; what says where registries are is kept."""
    settings = Path.home() / ".m2" / "settings.xml"
    if settings.exists():
        (home / ".m2").mkdir()
        shutil.copy(settings, home / ".m2")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("XDG_", "PYTHON", "VIRTUAL_ENV"))}
    options = f"{kept.get('JDK_JAVA_OPTIONS', '')} -Duser.home={home}".strip()
    return {**kept, "HOME": str(home), "JDK_JAVA_OPTIONS": options, "PIP_NO_CACHE_DIR": "1"}


def timed(author: Author) -> list[tuple[str, float]]:
    """The seconds of each step. Raises RuntimeError for one that ends otherwise than it should."""
    found = []
    with tempfile.TemporaryDirectory() as directory:
        home, where = Path(directory) / "home", Path(directory) / "work"
        home.mkdir()
        shutil.copytree(
            ROOT / "examples", where, ignore=shutil.ignore_patterns("target", "node_modules", "bin")
        )
        variables = empty(home)
        for step in author.steps:
            began = time.monotonic()
            done = subprocess.run(step.command, cwd=where, env=variables, capture_output=True, text=True)
            found.append((step.name, time.monotonic() - began))
            if done.returncode != step.code:
                raise RuntimeError(
                    f"{author.name}: {step.name}: {done.returncode}\n{done.stdout}{done.stderr}"
                )
    return found


def built(directory: Path) -> Path:
    """The wheel of this checkout, made in a new directory, without network: setuptools leaves a build/ where
    it works. Raises RuntimeError with what it wrote."""
    hidden = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "build", "dist")
    shutil.copytree(ROOT, directory / "copy", ignore=hidden)
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(directory), "copy"]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stdout + done.stderr)
    (wheel,) = directory.glob("*.whl")
    return wheel


def rows(author: Author, seconds: Sequence[tuple[str, float]]) -> list[str]:
    """Its part of the table, the sum last.

    >>> rows(Author("Python", 1, ()), [("install", 0.5), ("check", 0.75)])
    ['| Python | install | 0.5 |', '| Python | check | 0.8 |', '| Python | **together** (missed) | **1.2** |']
    """
    total = sum(one for _, one in seconds)
    missed = " (missed)" * (total > author.target)
    return [
        *(f"| {author.name} | {name} | {one:.1f} |" for name, one in seconds),
        f"| {author.name} | **together**{missed} | **{total:.1f}** |",
    ]


def main() -> None:
    """Both authors, into first_verdict.md."""
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    facts = {"machine": platform.machine(), "cores": os.cpu_count(), "python": platform.python_version()}
    text = HEAD.format(**facts, load=os.getloadavg()[0])
    with tempfile.TemporaryDirectory() as directory:
        wheel = built(Path(directory))
        for author in authors(wheel):
            text += "".join(f"{row}\n" for row in rows(author, timed(author)))
            print(text.splitlines()[-1], flush=True)
    (HERE / "first_verdict.md").write_text(text)


if __name__ == "__main__":
    main()
