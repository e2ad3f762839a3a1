"""Programs of ours in other languages, built with a release of the library that they use: by ``go``, by
``npm``.

Each is a directory of sources that come with this distribution; what was built lies in the user's cache.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from rebalance_verifier.base.files import scratch
from rebalance_verifier.base.processes.tools import ToolError, cache, key, made_once, run

SECONDS = 600
"""How long go and npm may take; what is new has to be downloaded."""

_RELEASE = re.compile(r"[\w.+-]+\Z")


def go_program(module: str, release: str, sources: Mapping[str, str]) -> Path:
    """Return the program of these Go ``sources``, texts by file name, with ``module`` in this release.

    Raises ToolError where there is no such release, no go, no network, or where it does not compile.
    """

    def build(draft: Path) -> None:
        for name, text in sources.items():
            (draft / name).write_text(text, encoding="utf-8")
        for argv in (
            ["go", "mod", "init", "rebalance.example/leader"],
            ["go", "get", f"{module}@v{release.removeprefix('v')}"],
            ["go", "mod", "tidy"],
            ["go", "build", "-o", "program", "."],
        ):
            _run(argv, draft, f"{module} {release}")

    return _built("go", module, release, sources, build) / "program"


def go_module(module: str, release: str) -> Path:
    """Return the directory of a module's sources. Raises ToolError where there is no such release."""
    wanted = f"{module}@v{release.removeprefix('v')}"
    with scratch("go") as outside:  # of any module
        answer = _run(["go", "mod", "download", "-json", wanted], outside, wanted)
    return Path(json.loads(answer)["Dir"])


def npm_package(package: str, release: str) -> Path:
    """Return the directory of a package from npm, none of whose scripts has run. Raises ToolError."""
    return npm_program(package, release, {"empty.js": ""}).parent / "node_modules" / package


def npm_program(package: str, release: str, sources: Mapping[str, str]) -> Path:
    """Return the first of these JavaScript ``sources``, texts by file name, beside this release of
    ``package``.

    Raises ToolError where there is no such release, no npm or no network.
    """

    def build(draft: Path) -> None:
        for name, text in sources.items():
            (draft / name).write_text(text, encoding="utf-8")
        (draft / "package.json").write_text(json.dumps({"private": True}), encoding="utf-8")
        options = ["--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]
        _run(["npm", "install", *options, f"{package}@{release}"], draft, f"{package} {release}")

    return _built("npm", package, release, sources, build) / next(iter(sources))


def _built(
    kind: str, package: str, release: str, sources: Mapping[str, str], build: Callable[[Path], None]
) -> Path:
    """Return the directory that ``build`` fills, if it is not there already. Raises ToolError."""
    if not _RELEASE.match(release):
        raise ToolError(f"{package} {release!r} is no release", "write one such as 1.2.3")
    directory = cache() / kind / key(package, release, *(word for pair in sources.items() for word in pair))

    def make(draft: Path) -> Path:
        built = draft / "built"
        built.mkdir()
        build(built)
        return built

    return made_once(directory, make, f"{package} {release} cannot be kept in")


def _run(argv: list[str], directory: Path, wanted: str) -> str:
    if shutil.which(argv[0]) is None:
        raise ToolError(f"{wanted}: there is no {argv[0]}")
    ran = run(argv, SECONDS, f"{wanted}: {argv[0]}", str(directory))
    if ran.returncode:
        lines = [line.strip() for line in ran.stderr.splitlines() if line.strip()]
        reason = lines[-1] if lines else "it does not say why"
        raise ToolError(f"{wanted}: {' '.join(argv[:2])} fails: {reason[:300]}", detail=ran.stderr)
    return ran.stdout
