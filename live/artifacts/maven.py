"""Maven coordinates to jars, by the user's own Maven, remembered in the user's cache directory."""

from __future__ import annotations

import glob
import os
import re
import shutil
import time
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from xml.etree import ElementTree

from rebalance_verifier.base.files import (
    scratch,
    write_whole,
)
from rebalance_verifier.base.processes.tools import (
    ToolError,
    cache,
    key,
    run,
)

CLIENTS = "org.apache.kafka:kafka-clients"
"""The coordinates of the Java client, without a release."""

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
_ALONE = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
_COORDINATES = re.compile(r"[\w.-]+:[\w.-]+:[\w.-]+(:[\w.-]+){0,2}\Z")
_MOVES = re.compile(r"(-SNAPSHOT|:LATEST|:RELEASE)\Z")
_MISSING = re.compile(r"(?:Could not find artifact|Failed to resolve version for) (\S*[^\s:])")
_MISSED = re.compile(r"(\S+) was not found in")
"""The same, where Maven remembers that it did not find it a while ago."""
_STALE = re.compile("Could not transfer metadata")
"""A warning: Maven goes on with what it knew."""
_NO_NETWORK = re.compile(
    r"Unknown host|Connection refused|Network is unreachable|No route to host|[Cc]onnect timed out"
    r"|Temporary failure in name resolution|Connection reset|offline mode"
)


def class_path(where: Sequence[str]) -> list[str]:
    """Return the jars and directories that coordinates and paths name, found by Maven or there. Raises
    ToolError."""
    coordinates = tuple(filter(is_coordinates, where))
    paths = [one for one in where if not is_coordinates(one)]
    return [*checked(paths), *(classpath(coordinates) if coordinates else ())]


def checked(paths: Iterable[str]) -> list[str]:
    """``paths`` as a class path, ``DIR/*`` as its jars. Raises ToolError for what is not there."""
    found: list[str] = []
    for path in paths:
        expanded = sorted(glob.glob(f"{glob.escape(path[:-1])}*.jar")) if path.endswith("*") else [path]
        if not expanded or not all(map(os.path.exists, expanded)):
            raise ToolError(f"there is no {path!r}, which should be a part of the class path")
        found += expanded
    return found


def is_coordinates(where: str) -> bool:
    """Check whether a part of a class path is Maven coordinates rather than a path."""
    return _COORDINATES.match(where) is not None


def classpath(coordinates: Sequence[str]) -> tuple[str, ...]:
    """Return the jars of ``GROUP:ARTIFACT:VERSION`` and of everything that they need at run time.

    Asks Maven the first time only: what it said is remembered for as long as all the jars are there, but for
    versions that move, such as a SNAPSHOT. Raises ToolError where there is no Maven, no such artifact or no
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
        write_whole(known, "\n".join([" ".join(coordinates), *jars]) + "\n")
    except OSError as error:
        raise ToolError(f"the class path cannot be remembered in {known.parent}: {error.strerror}") from error
    return jars


def versions(artifact: str) -> tuple[str, ...]:
    """Return all versions of ``GROUP:ARTIFACT`` that the repositories list: of what Maven, told to look
    again, keeps of their metadata in its local repository, beside the newest. Raises ToolError, also where
    Maven was content with what it knew from another day.
    """
    wanted, began = f"releases of {artifact}", time.time()
    files, output = _resolved(_dependency(f"{artifact}:pom:RELEASE", alone=True), wanted, "-U")
    if _STALE.search(output):
        raise ToolError(f"{wanted}: mvn reaches no repository: is there a network?", detail=output)
    found: list[str] = []
    for known in {Path(file).parents[1] for file in files}:
        status = known / "resolver-status.properties"  # when Maven looked last
        if status.exists() and status.stat().st_mtime < began - 1:
            raise ToolError(f"{wanted}: mvn does not ask (is it set to work offline?)", detail=output)
        for path in sorted(known.glob("maven-metadata*.xml")):
            found += versions_in(path.read_text(encoding="utf-8", errors="replace"))
    if not found:
        raise ToolError(f"{wanted}: mvn leaves no metadata that lists any", detail=output)
    return tuple(found)


def versions_in(metadata: str) -> list[str]:
    """Return the versions that a ``maven-metadata.xml`` lists; none of what is no such file.

    >>> versions_in("<m><versioning><versions><version>2.4.0</version></versions></versioning></m>")
    ['2.4.0']
    """
    try:
        root = ElementTree.fromstring(metadata)
    except ElementTree.ParseError:
        return []
    return [one.text.strip() for one in root.iterfind("versioning/versions/version") if one.text]


def _ask(coordinates: Sequence[str]) -> tuple[str, ...]:
    files, _ = _resolved("".join(map(_dependency, coordinates)), " ".join(coordinates), "-q")
    return files


def _resolved(dependencies: str, wanted: str, option: str) -> tuple[tuple[str, ...], str]:
    """Return the files of ``dependencies``, written as in a POM, and what Maven says. Raises ToolError."""
    maven = shutil.which("mvn")
    if maven is None:
        raise ToolError(f"{wanted}: there is no mvn: install Maven, or give the jars with --classpath")
    with scratch("maven") as directory:
        pom, out = directory / "pom.xml", directory / "classpath"
        pom.write_text(_POM.format(dependencies), encoding="utf-8")
        goal = [f"{PLUGIN}:build-classpath", f"-Dmdep.outputFile={out}", "-Dmdep.pathSeparator=\n"]
        argv = [maven, option, "-B", "--strict-checksums", "-f", str(pom), *goal, "-DincludeScope=runtime"]
        # There, since a .mvn in the current directory may name extensions to be run.
        ran = run(argv, SECONDS, f"{wanted}: mvn", str(directory))
        output = ran.stdout + ran.stderr
        try:
            if not ran.returncode:
                lines = out.read_text(encoding="utf-8").split("\n")
                return tuple(filter(None, map(str.strip, lines))), output
        except OSError:  # it says that all is well, and has written nothing
            pass
        raise ToolError(_complaint(wanted, output), detail=output)


def _dependency(coordinates: str, *, alone: bool = False) -> str:
    """``group:artifact:version``, with type and classifier before the version as Maven writes them; ``alone``
    without what it needs itself."""
    group, artifact, *between, version = coordinates.split(":")
    fields = {"groupId": group, "artifactId": artifact, "version": version}
    fields |= dict(zip(("type", "classifier"), between, strict=False))
    text = "".join(f"<{k}>{escape(v, quote=False)}</{k}>" for k, v in fields.items())
    return f"<dependency>{text}{_ALONE if alone else ''}</dependency>"


def _complaint(wanted: str, output: str) -> str:
    """Return what Maven has against it, in one line."""
    if _NO_NETWORK.search(output):
        return f"{wanted}: mvn reaches no repository: is there a network? (give the jars with --classpath)"
    if found := _MISSING.search(output) or _MISSED.search(output):
        return f"{wanted}: Maven finds no {found[1]}"
    errors = [line.removeprefix("[ERROR]").strip() for line in output.splitlines() if "[ERROR]" in line]
    return f"{wanted}: mvn fails: {next(filter(None, errors), 'it does not say why')[:300]}"
