"""The files that `rebalance init` writes, from what is true of a project: pure text."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

KNOWN = "known-failing.txt"
REPORTS = "rebalance-report"

KNOWN_TEXT = f"""\
# Clauses that the assignor is known to break: `rebalance check TARGET --known-failing @{KNOWN}` lets them be.
# One to a line: the clause as a report names it, then the reason, best a link to an issue, such as
#
#     kip54/sticky/1-cooperative  # https://issues.example.com/12
#
# `rebalance check TARGET --write-known {KNOWN}` writes them all. A line that is not needed any more fails the
# run. Without lines, as here, nothing is allowed.
"""

HEAD = (
    "# Written by `rebalance init`: every push and pull request has the assignor judged. Yours to change.\n"
)

UNFILLED = (
    "Fill in where pip gets the suite from: git+https://HOST/PATH@COMMIT, or a wheel in this repository."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """Facts about a project that a workflow states. ``suite`` is what pip is given to install the suite, ""
    where nobody knows; ``install``, for the project itself; ``wrapper``, the command of Gradle."""

    target: str = ""
    command: tuple[str, ...] = ()
    suite: str = ""
    python: str
    install: tuple[str, ...] = ()
    wrapper: str = "./gradlew"


def check(project: Project, *options: str) -> str:
    """Return the command line that judges the target, with further options, as a shell takes it."""
    argv = ["rebalance", "check", *([project.target] if project.target else []), *options]
    last = ["--", *project.command] if project.command else []
    return shlex.join([*argv, "--known-failing", f"@{KNOWN}", "--report-dir", REPORTS, *last])


def install(project: Project) -> str:
    """Return the command that installs the suite, and the project where it has to be."""
    return " ".join(
        ['python -m pip install "${SUITE:?has to be filled in above}"', shlex.join(project.install)]
    ).strip()


def suite(project: Project, indent: str) -> str:
    """Return the variable that says where the suite comes from, and that it is to be filled in."""
    comment = "" if project.suite else f"{indent}# {UNFILLED}\n"
    return f"{comment}{indent}SUITE: {json.dumps(project.suite, ensure_ascii=False)}\n"


def github(project: Project, build: str = "", *options: str) -> str:
    """Return a workflow of GitHub Actions; ``build`` are steps that come before the check."""
    line = check(project, *options, "--sandbox", "--ci", "github", "--report", "text,html,junit,sarif")
    return f"""\
{HEAD}name: rebalance
on: [push, pull_request]
permissions:
  contents: read
  security-events: write # to upload the SARIF file; in a private repository also actions: read
env:
{suite(project, "  ")}jobs:
  assignor:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
{build}      - uses: actions/setup-python@v5
        with: {{python-version: "{project.python}"}}
      - name: Install
        run: {install(project)}
      - name: Allow the sandbox
        # Ubuntu keeps namespaces from programs that it does not know, and --sandbox is made of them.
        run: |
          if [ -e /proc/sys/kernel/apparmor_restrict_unprivileged_userns ]; then
            sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0
          fi
      - name: Check
        run: |
          {line}
      - uses: github/codeql-action/upload-sarif@v3
        if: always()
        continue-on-error: true # a pull request from a fork may not upload
        with: {{sarif_file: {REPORTS}/report.sarif, category: rebalance}}
      - uses: actions/upload-artifact@v4
        if: always()
        with:
          name: rebalance
          path: |
            {REPORTS}
            .rebalance/failures
          include-hidden-files: true # else .rebalance is left out without a word
"""


def _java(build_files: str, steps: str, cache: str = "") -> str:
    """Return the steps that come before the check of a class of Java."""
    return f"""\
      - uses: actions/setup-java@v4
        with: {{distribution: temurin, java-version: "17"{cache}}} # the one that the project is built with
      - uses: actions/cache@v4
        with:
          path: ~/.cache/rebalance-verifier
          key: rebalance-${{{{ hashFiles('{build_files}') }}}}
{steps}"""


def maven(project: Project) -> str:
    """Return a workflow of GitHub Actions for a project that Maven builds."""
    build = _java("pom.xml", """\
      - name: Build
        run: >-
          mvn -B -ntp -DskipTests package dependency:copy-dependencies
          -DoutputDirectory=target/rebalance-lib
""", ", cache: maven")  # fmt: skip
    return github(project, build, "--classpath", "target/classes:target/rebalance-lib/*")


def gradle(project: Project) -> str:
    """Return a workflow of GitHub Actions for a project that Gradle builds."""
    build = _java("*.gradle*", f"""\
      - uses: gradle/actions/setup-gradle@v4 # with a cache of what Gradle fetches
      - name: Build
        run: {project.wrapper} jar lib
""")  # fmt: skip
    return github(project, build, "--classpath", "build/libs/*:build/lib/*")


LIB = {
    "build.gradle.kts": """\
tasks.register<Sync>("lib") {
    from(configurations.runtimeClasspath)
    into(layout.buildDirectory.dir("lib"))
}
""",
    "build.gradle": """\
tasks.register('lib', Sync) {
    from configurations.runtimeClasspath
    into layout.buildDirectory.dir('lib')
}
""",
}
"""Build file of Gradle -> the task that the workflow runs for what the assignor needs."""

GITLAB = ".gitlab/rebalance.yml"
GITLAB_INCLUDE = f"include:\n  - local: {GITLAB}\n"


def gitlab(project: Project) -> str:
    """Return a job of GitLab CI."""
    return f"""\
{HEAD}rebalance:
  image: python:{project.python}
  variables:
{suite(project, "    ")}  script:
    - |
      {install(project)}
    - |
      {check(project, "--report", "text,html,junit")}
  artifacts:
    when: always
    paths: [{REPORTS}, .rebalance/failures]
    reports: {{junit: {REPORTS}/junit.xml}}
"""


WORKFLOW = ".github/workflows/rebalance.yml"

KINDS: Mapping[str, tuple[str, Callable[[Project], str]]] = {
    "github": (WORKFLOW, github),
    "gitlab": (GITLAB, gitlab),
    "maven": (WORKFLOW, maven),
    "gradle": (WORKFLOW, gradle),
}
"""Value of --ci -> the file that has the job, and its text."""


def files(kind: str, project: Project) -> dict[str, str]:
    """Return the files that have to be written, by their paths; of these the first has the job."""
    name, text = KINDS[kind]
    return {name: text(project)}


def optional(kind: str) -> Mapping[str, str]:
    """Return the files that are written where a project has none of that name."""
    return {**({".gitlab-ci.yml": GITLAB_INCLUDE} if kind == "gitlab" else {}), KNOWN: KNOWN_TEXT}


__all__: Sequence[str] = ("KINDS", "KNOWN", "LIB", "Project", "files", "optional")
