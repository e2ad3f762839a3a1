"""``rebalance init``: write a CI job that judges an assignor, with what is true of this project."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rebalance_verifier.base.files import write_whole
from rebalance_verifier.base.installation import installation
from rebalance_verifier.base.reading import Unreadable, contents, text, toml_of
from rebalance_verifier.cli.console.terminal import UsageError, print_out, usage_errors
from rebalance_verifier.cli.init import workflows
from rebalance_verifier.cli.init.source import ADDRESS, for_ci, within
from rebalance_verifier.cli.init.workflows import KINDS, LIB, Project
from rebalance_verifier.cli.shared.targets import resolved

BUILT_BY = {"maven": ("pom.xml",), "gradle": tuple(LIB)}
"""Value of --ci -> the files of which one has to be there."""


def add(commands: Any) -> argparse.ArgumentParser:
    """Add the command to the parser's ``commands``."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "init",
        description="Write a CI job that judges TARGET, and an empty list of known failures, into the "
        "repository in the current directory. It says what is left to fill in. A file that is there stays.",
    )
    parser.add_argument(
        "target", nargs="?", metavar="TARGET", help="target of `rebalance check`; or `-- COMMAND ...`"
    )
    parser.add_argument("--ci", required=True, choices=tuple(KINDS), metavar="{" + ",".join(KINDS) + "}",
                        help="where the job runs; maven, gradle: GitHub, of a class")  # fmt: skip
    parser.add_argument("--suite", metavar="ADDRESS|PATH", help="where CI gets this suite from: "
                        "git+https://...@COMMIT, or a wheel in the repository (as here)")  # fmt: skip
    parser.add_argument("--force", action="store_true", help="write the job anew where its file is there "
                        "already; the list of known failures stays")  # fmt: skip
    return parser


def run(options: argparse.Namespace) -> int:
    """Run the command; return its exit code."""
    root = Path()
    _at_the_top(root)
    target = _target(options)
    project = Project(
        target=target,
        command=options.command,
        suite=_suite(options.suite, root) if options.suite else for_ci(installation(), root),
        python=f"{sys.version_info.major}.{sys.version_info.minor}",
        install=_install(root),
        wrapper="./gradlew" if (root / "gradlew").exists() else "gradle",
    )
    needed = workflows.files(options.ci, project)
    for name in needed:
        if os.path.lexists(root / name) and not options.force:
            raise UsageError(f"{name} is there already, nothing was written: --force writes it anew")
    optional = {
        name: text
        for name, text in workflows.optional(options.ci).items()
        if not os.path.lexists(root / name)
    }
    stay = [name for name in workflows.optional(options.ci) if name not in optional]
    with usage_errors(OSError):
        _write(root, {**needed, **optional})
    job = next(iter(needed))
    lines = [
        *(f"wrote {name}" for name in (*needed, *optional)),
        *(f"{name} is there already and stays" for name in stay),
    ]
    print_out("\n".join([*lines, *_to_fill_in(root, options, project, job, stay)]))
    return 0


def _at_the_top(root: Path) -> None:
    """Raise UsageError below the top of a repository, where no CI looks."""
    if os.path.lexists(root / ".git"):
        return
    for above in root.resolve().parents:
        if os.path.lexists(above / ".git"):
            raise UsageError(f"CI reads the files at the top of a repository: cd {above}, and init there")


def _target(options: argparse.Namespace) -> str:
    """Return the target as it is typed. Raises UsageError for one that no check would take."""
    target, argv = options.target or "", [options.target or "", *options.command]
    if options.ci in BUILT_BY:
        if options.command or not target.startswith("java:") or not target.removeprefix("java:"):
            like = target if target and ":" not in target and not options.command else "com.acme.MyAssignor"
            raise UsageError(
                f"--ci {options.ci} judges a class: rebalance init java:{like} --ci {options.ci}"
            )
        if not any((Path() / name).exists() for name in BUILT_BY[options.ci]):
            raise UsageError(f"--ci {options.ci}: no {' or '.join(BUILT_BY[options.ci])} here")
    elif not any(argv):
        raise UsageError(f"which target? such as `rebalance init my_package:MyAssignor --ci {options.ci}`")
    for word in argv:
        if not word.isprintable() or "${{" in word:
            raise UsageError(f"{word!r} cannot stand in a workflow")
    if not target.startswith("java:"):
        resolved(options.target, options.command)
    return target


def _suite(given: str, root: Path) -> str:
    """Return what --suite names. Raises UsageError for a path that CI does not have, and for a bare name:
    anybody may register it."""
    if given.isprintable() and "${{" not in given:
        if ADDRESS.fullmatch(given):
            return given
        if (root / given).exists():
            if found := within(root / given, root):
                return found
            raise UsageError(f"--suite: {given} is not in this repository, CI does not have it")
    raise UsageError(
        f"--suite: {given!r} is no git+https://...@COMMIT, no https://..., and no file in this repository"
    )


def _install(root: Path) -> tuple[str, ...]:
    """Return what pip installs besides the suite: the project if that is possible, or its requirements."""
    try:
        if {"project", "build-system"} & toml_of(root / "pyproject.toml").keys():
            return (".",)
    except (FileNotFoundError, Unreadable):
        pass
    if (root / "setup.py").is_file():
        return (".",)
    return ("-r", "requirements.txt") if (root / "requirements.txt").is_file() else ()


def _write(root: Path, files: Mapping[str, str]) -> None:
    """Write all of the files, or none. Raises OSError, and UsageError for a directory that is a link."""
    top = root.resolve()
    for name in files:
        if not (root / name).parent.resolve().is_relative_to(top):
            raise UsageError(
                f"{name} would lie outside of this directory, through a link; nothing was written"
            )
    with usage_errors(Unreadable):
        before = {name: contents(root / name) if os.path.lexists(root / name) else None for name in files}
    try:
        for name, content in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            write_whole(root / name, content)
    except BaseException:
        for name, held in before.items():
            if held is None:
                (root / name).unlink(missing_ok=True)
            else:
                (root / name).write_bytes(held)
        raise


def _to_fill_in(
    root: Path, options: argparse.Namespace, project: Project, job: str, stay: list[str]
) -> list[str]:
    """Return what is left to do, a line each."""
    lines = []
    if project.suite:
        lines.append(f"the suite comes from {project.suite}")
    else:
        path = installation().path
        where = f"; here it comes from {path}, which CI does not have" if path else ""
        lines.append(f"fill in SUITE in {job}: where pip gets the suite from{where}")
    if options.ci == "gitlab" and ".gitlab-ci.yml" in stay:
        lines += ["add to .gitlab-ci.yml, unless it has it:", *_indented(workflows.GITLAB_INCLUDE)]
    for name in LIB if options.ci == "gradle" else ():
        if (root / name).is_file() and '"lib"' not in (found := text(root / name)) and "'lib'" not in found:
            lines += [f"add to {name}, for what the assignor needs:", *_indented(LIB[name])]
    lines.append(f"then commit; what breaks today goes into {workflows.KNOWN}, see there")
    return lines


def _indented(block: str) -> list[str]:
    return [f"  {line}" for line in block.splitlines()]
