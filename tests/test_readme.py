"""Every command in README.md and docs/ is run, and what it prints is compared with what they show.

A ```console block holds ``$ command`` lines, each followed by its output. Each block runs in a directory of
its own, which holds a copy of ``examples/`` and the files that the document shows above it; one run serves
all blocks that begin with the same commands. An HTML comment in the line before a block says more about it::

    <!-- slow -->                 not in the fast loop; nightly: only in `make nightly`
    <!-- needs: node -->          skipped where there is no such program, or module; TLC is tlc
    <!-- file: NAME -->           not a command but a file, written for the blocks below
    <!-- goes on -->              runs after the block before it, in the same directory

A line ``...`` in the output stands for any number of lines. What differs from run to run or from machine
to machine (durations, versions) is not compared. ``pytest tests/test_readme.py --update-expected`` puts the
real output in place, shortened at the same place if there is one ``...``.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from rebalance_verifier.cli.console.terminal import UsageError
from rebalance_verifier.cli.main import build_parser

from tests.expected import plain
from tests.tiers import tiered
from tools import tlc

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"(?:^<!-- (?P<note>[^\n]*?) -->\n)?^```(?P<kind>\w*)\n(?P<text>.*?)^```$", re.M | re.S)


@dataclass(frozen=True, kw_only=True)
class Block:
    """One block of a document."""

    document: Path
    line: int
    note: str
    kind: str
    text: str

    @property
    def name(self) -> str:
        return f"{self.document.name}:{self.line}"

    @property
    def commands(self) -> list[str]:
        return [command for command, _ in self.steps()]

    def steps(self) -> Iterator[tuple[str, str]]:
        """Each command with the output that is shown for it."""
        for part in re.split(r"^\$ ", self.text, flags=re.M)[1:]:
            command, _, output = part.partition("\n")
            while command.endswith("\\"):
                more, _, output = output.partition("\n")
                command = f"{command}\n{more}"
            yield command, output


@cache
def blocks(document: Path) -> tuple[Block, ...]:
    """As they stood when the tests began: putting one right moves the others."""
    text = document.read_text(encoding="utf-8")
    return tuple(
        Block(
            document=document,
            line=text.count("\n", 0, found.start()) + 1,
            note=found["note"] or "",
            kind=found["kind"],
            text=found["text"],
        )
        for found in BLOCK.finditer(text)
    )


@dataclass(frozen=True)
class Session:
    """``blocks`` run one after the other in one directory; what the first prints serves ``also`` too."""

    blocks: list[Block]
    also: list[Block]

    @property
    def name(self) -> str:
        return "+".join(block.name for block in (self.blocks[0], *self.also))

    def serves(self, other: list[Block]) -> bool:
        """Whether the commands of ``other`` are how this one begins, with the same note."""
        if len(self.blocks) + len(other) > 2:
            return False
        mine, its = self.blocks[0], other[0]
        return (mine.note, mine.commands[: len(its.commands)]) == (its.note, its.commands)


def sessions(found: Iterable[Block]) -> list[Session]:
    """The blocks of the documents, in order, by what runs together."""
    chains: list[list[Block]] = []
    for block in found:
        if "goes on" in block.note:
            chains[-1].append(block)
        else:
            chains.append([block])
    made: list[Session] = []
    for chain in sorted(chains, key=lambda chain: -len(chain[0].commands)):
        for session in made:
            if session.serves(chain):
                session.also.append(chain[0])
                break
        else:
            made.append(Session(chain, []))
    return made


def kinds(session: Session) -> frozenset[str]:
    """Return what by day at least one session shows: each block of README.md, and each command alone."""
    found = {block.name for block in (*session.blocks, *session.also) if block.document.parent == ROOT}
    commands = [command for block in session.blocks for command in block.commands]
    if len(commands) == 1 and commands[0].startswith("rebalance "):
        found.add(commands[0].split()[1])
    return frozenset(found)


def cases() -> Iterator[object]:
    every = (block for document in DOCUMENTS for block in blocks(document) if block.kind == "console")
    for session in sessions(every):
        marks = [getattr(pytest.mark, tier) for tier in ("slow", "nightly") if tier in session.blocks[0].note]
        yield pytest.param(session, id=session.name, marks=marks)


def same(shown: str, printed: str) -> bool:
    wanted = "\n".join(
        r"(?:.*\n)*?.*" if line.strip() == "..." else re.escape(line) for line in plain(shown).split("\n")
    )
    return re.fullmatch(wanted, plain(printed)) is not None


def skip_without(note: str) -> None:
    if found := re.search(r"needs: ([^\s,]+)", note):
        needed = found[1]
        if needed == "tlc":
            if tlc.jar() is None:
                pytest.skip(tlc.MISSING)
        elif not shutil.which(needed) and not importlib.util.find_spec(needed):
            pytest.skip(f"needs {needed}")
        if needed == "mvn" and (why := no_repository()):
            pytest.skip(why)


@cache
def no_repository() -> str:
    """Why Maven cannot fetch kafka-clients here, "" where it can: a network is not ours to test."""
    from rebalance_verifier.base.processes.tools import ToolError
    from rebalance_verifier.live.artifacts import maven
    from rebalance_verifier.live.artifacts.maven import CLIENTS

    try:
        maven.classpath([f"{CLIENTS}:4.1.0"])
    except ToolError as error:
        if "reaches no repository" in str(error):
            return str(error)
    return ""


def write_files(directory: Path, above: Block) -> None:
    """The files that the document shows before it comes to ``above``."""
    for block in blocks(above.document):
        if block.line < above.line and (found := re.search(r"file: (\S+)", block.note)):
            (directory / found[1]).write_text(block.text, encoding="utf-8")


HANGS, HANGS_BY_NIGHT = 550, 3600
"""Seconds after which a command hangs. By day the suite ends what takes longer; what is of the night takes
minutes where a processor is its own, and more where it is not."""


def run(command: str, directory: Path, hangs: int) -> str:
    environment = {
        k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "CI", "GITHUB", "PYTHON"))
    }
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environment.get("PATH", "")])
    environment["LC_ALL"] = "C.UTF-8"
    environment["COLUMNS"] = "100"
    if "TLA2TOOLS" in command or "SPECIFICATIONS" in command:
        environment = {**tlc.for_a_search(environment), "TLA2TOOLS": str(tlc.jar())}
        environment["SPECIFICATIONS"] = str(ROOT / "tools" / "tla")
    ran = subprocess.run(
        ["bash", "-c", command],
        cwd=directory,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=hangs,
    )
    return ran.stdout


@pytest.mark.slow
@pytest.mark.covering(by=kinds)
@pytest.mark.parametrize("session", list(cases()))
def test_commands_print_what_the_document_shows(session: Session, tmp_path: Path, is_updating: bool) -> None:
    skip_without(session.blocks[0].note)
    ignored = shutil.ignore_patterns(".*", "__*", "node_modules", "bin")
    shutil.copytree(ROOT / "examples", tmp_path, dirs_exist_ok=True, ignore=ignored)
    hangs = HANGS_BY_NIGHT if "nightly" in session.blocks[0].note else HANGS
    wrong = []
    for block in session.blocks:
        shared = [block, *session.also]
        for one in shared:
            write_files(tmp_path, one)
        printed = [run(command, tmp_path, hangs) for command in block.commands]
        wrong += [problem for one in shared if (problem := compared(one, printed, is_updating))]
    if wrong:
        pytest.fail("\n\n".join(wrong), pytrace=False)


def compared(block: Block, outputs: Sequence[str], is_updating: bool) -> str:
    """What is wrong with what the block shows, which is put right instead where that was asked for."""
    real, wrong = "", []
    for (command, shown), printed in zip(block.steps(), outputs, strict=False):
        if not same(shown, printed):
            wrong.append(f"$ {command}\n{printed}")
            shown = shortened(printed, shown)
        real += f"$ {command}\n{shown}"
    if wrong and is_updating:
        whole = block.document.read_text(encoding="utf-8")
        block.document.write_text(whole.replace(block.text, real), encoding="utf-8")
    elif wrong:
        return f"{block.name}: prints something else now:\n\n" + "\n\n".join(wrong)
    return ""


FINDINGS = re.findall(
    r"^\| `rebalance (check [^`]+)` \| .* \|$", (ROOT / "docs" / "results" / "findings.md").read_text(), re.M
)


DEEP = (
    "kafka-python:cooperative-sticky --clause assign/2",
    "kafka-python:sticky --clause assign/2",
    "kafka-python:sticky --clause assign/4 --seed 1",
)
"""Found in one of some thousand scenarios, and nothing else is of this clause."""


@pytest.mark.slow
@pytest.mark.covering(by=lambda command: re.findall(r"check ([a-z-]+)", command)[0])
@pytest.mark.parametrize("command", tiered(FINDINGS, [one for one in FINDINGS if not one.endswith(DEEP)]))
def test_what_it_has_found_is_found(command: str, tmp_path: Path) -> None:
    skip_without("needs: " + ("aiokafka" if "aiokafka" in command else "kafka"))
    argv = [sys.executable, "-m", "rebalance_verifier.cli.main", *command.split(), "--fail-fast"]
    hangs = HANGS_BY_NIGHT if command.endswith(DEEP) else HANGS
    found = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=hangs, check=False)
    assert found.returncode == 1, found.stdout + found.stderr
    assert "confirmed in a fresh process" in " ".join(found.stdout.split())


def shortened(printed: str, shown: str) -> str:
    """What is printed now, cut where ``shown`` was cut."""
    lines, before = printed.strip("\n").split("\n"), shown.strip("\n").split("\n")
    if "..." in before:
        head, tail = before.index("..."), len(before) - before.index("...") - 1
        lines = [*lines[:head], "...", *lines[len(lines) - tail :]]
    gap = "\n\n" if shown.endswith("\n\n") else "\n"
    return "\n".join(lines) + gap


def test_shell_blocks_name_targets_of_the_makefile() -> None:
    """The ``sh`` blocks are set-up, which a test cannot run: what they call exists at least."""
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.M))
    for document in DOCUMENTS:
        for block in blocks(document):
            assert block.kind != "sh" or not block.text.count("$ ")
            for target in re.findall(r"^make (\w+)", block.text if block.kind == "sh" else "", re.M):
                assert target in targets, block.name


PAGES = [*DOCUMENTS, ROOT / "SECURITY.md", ROOT / "ARCHITECTURE.md"]
OF_OTHERS = {
    "--doctest-modules",
    "--enum-inst",
    "--finite-model-find",
    "--junitxml",
    "--network",
    "--previous",
    "--read-only",
    "--timestamps",
}
"""Options of cvc5, pytest, Docker and kubectl."""


def unknown_options(text: str) -> list[str]:
    """Each command in ``text`` with an option that it does not have, and each option that no command has."""
    shell = "".join(re.findall(r"^```sh\n(.*?)^```$", text, re.M | re.S)).replace("\\\n", " ")
    commands = [
        *re.findall(r"`(rebalance [a-z][^`]*)`", text),
        *re.findall(r"^rebalance [^\n#]*", shell, re.M),
    ]
    wrong = [command for command in commands if not _taken(command)]
    known = set(
        re.findall(r"--[a-z-]+", (ROOT / "docs/reference/command-line.md").read_text(encoding="utf-8"))
    )
    named = re.findall(r"`(--[a-z][a-z-]*)[^`]*`", text)
    return wrong + [o for o in named if o not in known | OF_OTHERS and not o.startswith("--rebalance-")]


_parser = cache(build_parser)


def _taken(command: str) -> bool:
    try:
        _parser().parse_args(shlex.split(command.partition(" -- ")[0])[1:])
    except UsageError as error:
        return "unrecognized arguments" not in str(error)
    return True


def test_commands_that_nothing_runs_have_options_that_exist() -> None:
    assert unknown_options("`rebalance explore --assignor x:Y` or `--seconds`, with `--trust`") == [
        "rebalance explore --assignor x:Y",
        "--seconds",
    ]
    wrong = {page.name: unknown_options(page.read_text(encoding="utf-8")) for page in PAGES}
    assert {page: unknown for page, unknown in wrong.items() if unknown} == {}


def test_links_lead_somewhere() -> None:
    for document in DOCUMENTS:
        for link, anchor in re.findall(
            r"\]\((?!https?://)([^)#]*)(?:#([^)]*))?\)", document.read_text(encoding="utf-8")
        ):
            target = document.parent / link if link else document
            assert target.exists(), f"{document.name}: {link}"
            assert not anchor or anchor in anchors(target), f"{document.name}: {link}#{anchor}"


@cache
def anchors(document: Path) -> set[str]:
    """The headings of a page as GitHub names them in links, and what is named in HTML."""
    text = document.read_text(encoding="utf-8")
    headings = re.findall(r"^#+ (.*)$", text, re.M)
    named = re.findall(r'<a (?:id|name)="([^"]+)"', text)
    return {*named, *(re.sub(r"[^\w\- ]", "", h).strip().lower().replace(" ", "-") for h in headings)}


def test_every_page_is_in_the_index() -> None:
    """In that of docs/, or in that of its own folder."""
    indices = sorted((ROOT / "docs").rglob("README.md"))
    listed = {
        (index.parent / link).resolve()
        for index in indices
        for link in re.findall(r"\]\((?!https?:)([^)#]+)", index.read_text(encoding="utf-8"))
    }
    pages = {page.resolve() for page in (ROOT / "docs").rglob("*.md")}
    assert sorted(pages - listed - {ROOT / "docs" / "README.md"}) == []


def test_the_model_that_readme_shows_is_the_model() -> None:
    shown = [block.text.strip() for block in blocks(ROOT / "README.md") if block.kind == "python"]
    sources = [
        (ROOT / path).read_text() for path in ("model/classic/member.py", "properties/group/checks.py")
    ]
    assert len(shown) == 2
    for text, source in zip(shown, sources, strict=True):
        assert f"\n{text}\n" in source


def test_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 200
