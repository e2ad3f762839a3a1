"""Maven coordinates to jars, by the user's own Maven, remembered in the user's cache directory."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from rebalance.gate.targets import TargetError
from rebalance.gate.tools import cache, key, run

PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1"
"""Pinned, so that one Maven finds the same jars as the next."""

SECONDS = 600
"""How long Maven may take; what is new has to be downloaded."""

_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>rebalance</groupId><artifactId>target</artifactId><version>1</version>
  <packaging>pom</packaging>
  <dependencies>{}</dependencies>
</project>
"""
_MOVES = re.compile(r"(-SNAPSHOT|:LATEST|:RELEASE)\Z")
_MISSING = re.compile(r"Could not find artifact (\S+)")
_NO_NETWORK = re.compile(
    r"Unknown host|Connection refused|Network is unreachable|No route to host|[Cc]onnect timed out"
    r"|Temporary failure in name resolution|Connection reset|offline mode"
)


def classpath(coordinates: Sequence[str]) -> tuple[str, ...]:
    """The jars of ``GROUP:ARTIFACT:VERSION`` and of everything that they need at run time.

    Asks Maven the first time only: what it said is remembered for as long as all the jars are there, but for
    versions that move, such as a SNAPSHOT. Raises TargetError where there is no Maven, no such artifact or no
    network.
    """
    if any(_MOVES.search(one) for one in coordinates):
        return _ask(coordinates)
    known = cache() / "maven" / f"{key(*coordinates)}.txt"
    try:
        jars = tuple(known.read_text(encoding="utf-8").splitlines()[1:])
        if jars and all(map(os.path.exists, jars)):
            return jars
    except OSError:
        pass
    jars = _ask(coordinates)
    try:
        known.parent.mkdir(parents=True, exist_ok=True)
        draft = known.with_name(f"{known.name}.{os.getpid()}")
        draft.write_text("\n".join([" ".join(coordinates), *jars]) + "\n", encoding="utf-8")
        draft.replace(known)
    except OSError as error:
        raise TargetError(
            f"the class path cannot be remembered in {known.parent}: {error.strerror}"
        ) from error
    return jars


def _ask(coordinates: Sequence[str]) -> tuple[str, ...]:
    maven = shutil.which("mvn")
    wanted = " ".join(coordinates)
    if maven is None:
        raise TargetError(f"{wanted}: there is no mvn: install Maven, or give the jars with --classpath")
    with tempfile.TemporaryDirectory() as directory:
        pom, out = Path(directory, "pom.xml"), Path(directory, "classpath")
        pom.write_text(_POM.format("".join(map(_dependency, coordinates))), encoding="utf-8")
        goal = [f"{PLUGIN}:build-classpath", f"-Dmdep.outputFile={out}", "-Dmdep.pathSeparator=\n"]
        words = [maven, "-q", "-B", "-f", str(pom), *goal, "-DincludeScope=runtime"]
        ran = run(words, SECONDS, f"{wanted}: mvn")
        said = ran.stdout + ran.stderr
        try:
            if not ran.returncode:
                return tuple(filter(None, map(str.strip, out.read_text(encoding="utf-8").split("\n"))))
        except OSError:  # it says that all is well, and has written nothing
            pass
        raise TargetError(_complaint(wanted, said), detail=said)


def _dependency(coordinates: str) -> str:
    """``group:artifact:version``, with type and classifier before the version as Maven writes them."""
    group, artifact, *between, version = coordinates.split(":")
    fields = {"groupId": group, "artifactId": artifact, "version": version}
    fields |= dict(zip(("type", "classifier"), between, strict=False))
    return f"<dependency>{''.join(f'<{k}>{escape(v)}</{k}>' for k, v in fields.items())}</dependency>"


def _complaint(wanted: str, said: str) -> str:
    """What Maven has against it, in one line."""
    if _NO_NETWORK.search(said):
        return f"{wanted}: mvn reaches no repository: is there a network? (give the jars with --classpath)"
    if found := _MISSING.search(said):
        return f"{wanted}: Maven finds no {found[1]}"
    errors = [line.removeprefix("[ERROR]").strip() for line in said.splitlines() if "[ERROR]" in line]
    return f"{wanted}: mvn fails: {next(filter(None, errors), 'it does not say why')[:300]}"
