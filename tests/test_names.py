"""Nothing names, as something to fetch, a name that anybody may register: that would run code at our users.

Pages, examples, recipes and the product are read as text. Fetched by a name: from an index of packages, as an
action, from a repository or a registry of images.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.test_wheel import FOLDERS, ROOT, project

NAME = project()["project"]["name"]

TOP = ("*.md", "*.yml", "*.toml", "Dockerfile", "Makefile")
READ = ("docs", "examples", ".ci", *FOLDERS)
LEFT_OUT = {".json", ".svg", ".html", ".log", ".tla", ".cfg", ".css", ".sum", ".pyc"}
"""What holds results, and nothing that anybody types."""

OURS = {NAME, "rebalance"}

INSTALLERS = re.compile(
    r"\b(?:pip3?|uv pip|uv tool|pipx|conda|npm|go) (?:install|run|get|download|i|upgrade)\b(?P<pip>[^`\n]*)"
    r"|\b(?:uv|poetry|pdm) add\b(?P<add>[^`\n]*)|\b(?:uvx|npx)\b(?P<run>[^`\n]*)"
    r"|\bdocker (?:run|pull|build)\b(?P<docker>[^`\n]*)|^\s*(?:FROM|image:)(?P<image> \S+)",
    re.M,
)
ELSEWHERE = {
    "an action": re.compile(
        r"\buses: (?!(?:actions|github/codeql-action|gradle/actions)/[\w-]+@|actions/[\w-]+@|\./"
        r"|<owner>/<repository>@<commit>|\.\.\.)\S+@\S+"
    ),
    "a repository": re.compile(rf"\b(?:github|gitlab|bitbucket)\.(?:com|org)[:/][\w.-]+/{NAME}\b"),
    "an organisation": re.compile(rf"\b{NAME}/{NAME}\b"),
    "a registry": re.compile(rf"\b(?:ghcr|quay|docker)\.io/\S*(?:{'|'.join(OURS)})\b"),
    "a page of an index": re.compile(rf"(?:pypi\.org/project|npmjs\.com/package)/(?:{'|'.join(OURS)})\b"),
}


def installed(words: list[str]) -> Iterator[str]:
    """Of the words behind an installer, those that are a name of ours and no path, address or image here."""
    if {"--from", "--spec"} & set(words):  # what runs out of it is a command
        at = min(words.index(option) for option in ("--from", "--spec") if option in words)
        words = words[at + 1 : at + 2]
    for word, after in zip(words, [*words[1:], "", ""], strict=False):
        name = re.split(r"[\[=<>~!:;]", word.strip("'\"(),."))[0].replace("_", "-").lower()
        if name.removesuffix("-java") in OURS and after != "@":
            yield word


def texts() -> Iterator[Path]:
    yield from (path for pattern in TOP for path in sorted(ROOT.glob(pattern)))
    for folder in READ:
        for path in sorted((ROOT / folder).rglob("*")):
            hidden = {"__pycache__", "node_modules", "target"} & {*path.parts}
            if path.is_file() and path.suffix not in LEFT_OUT and not hidden:
                yield path


def fetched(text: str) -> list[str]:
    """The names that are fetched, as they stand there, and from where."""
    joined = re.sub(r"\\\n\s*", " ", text)
    found = [f"{where}: {match[0]}" for where, one in ELSEWHERE.items() for match in one.finditer(joined)]
    for match in INSTALLERS.finditer(joined):
        words = (match[match.lastgroup] if match.lastgroup else "").split()
        found += [f"an index: {match[0]}" for _ in installed(words)]
    return found


@pytest.mark.parametrize(
    "line",
    [
        "pip install rebalance-verifier",
        "pip install . rebalance-verifier",
        "    - pip install 'rebalance-verifier[audit]'",
        'pip install "rebalance_verifier==0.1.0" -q',
        "(`pip install rebalance-verifier`), or",
        "python -m pip install \\\n  rebalance-verifier",
        "pip install rebalance",
        "pipx run rebalance-verifier check x",
        "uvx --from rebalance-verifier rebalance check x",
        "uvx rebalance check x",
        "uv tool install rebalance-verifier",
        "uv add rebalance-verifier",
        "poetry add rebalance-verifier",
        "raise Missing(\"an audit needs DuckDB: pip install 'rebalance-verifier[audit]'\")",
        "      - uses: rebalance-verifier/rebalance-verifier@v0.1.0",
        "      - uses: somebody/some-action@v1",
        "      - uses: OWNER/REPOSITORY@COMMIT",
        'Source = "https://github.com/rebalance-verifier/rebalance-verifier"',
        "git clone https://github.com/acme/rebalance-verifier.git",
        "docker run --rm -v x:/work rebalance check x",
        "FROM rebalance\n",
        "image: ghcr.io/acme/rebalance-verifier:1",
        "https://pypi.org/project/rebalance-verifier/",
    ],
)
def test_what_is_fetched_by_a_name_is_found(line: str) -> None:
    assert fetched(line)


@pytest.mark.parametrize(
    "line",
    [
        "pip install .",
        "pip install wheels/rebalance_verifier-0.1.0-py3-none-any.whl",
        "pip install 'rebalance-verifier[audit] @ git+https://git.example.com/s.git@4f2c'",
        "pip install 'PATH[audit]' and then `rebalance audit`",
        'python -m pip install "${SUITE:?has to be filled in above}" .',
        "uvx --from ./rebalance_verifier-0.1.0-py3-none-any.whl rebalance check x",
        "      - uses: actions/checkout@v4",
        "      - uses: ./suite",
        "      - uses: <owner>/<repository>@<commit>",
        "docker run --rm -v x:/work localhost/rebalance check x",
        "FROM localhost/rebalance\n",
    ],
)
def test_what_is_fetched_by_a_path_or_an_address_is_not(line: str) -> None:
    assert fetched(line) == []


def test_nothing_is_fetched_by_a_name_that_is_anybodys() -> None:
    found = {
        str(path.relative_to(ROOT)): fetched(path.read_text(encoding="utf-8", errors="replace"))
        for path in texts()
    }
    assert {path: names for path, names in found.items() if names} == {}
    assert {
        "action.yml",
        "pyproject.toml",
        "docs/how-to/put-the-gate-into-ci.md",
        "cli/main.py",
    } <= found.keys()


def test_the_distribution_names_no_page() -> None:
    assert "urls" not in project()["project"]
