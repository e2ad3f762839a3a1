"""What is printed follows the width of the terminal, from 60 columns on; what is written to a file never."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
from pathlib import Path

import pytest
from rebalance_verifier.base.text import columns, fitted, page_of, page_width
from rebalance_verifier.cli.shared import reports
from rebalance_verifier.report.ci import ci_reports
from rebalance_verifier.report.terminal import audit, check

from tests.command import command
from tests.report.handmade import violated
from tests.report.test_audit_report import audited, finding

ORDERS = Path(__file__).parents[2] / "examples" / "audit" / "orders.log"

COMMANDS = (
    "list clauses",
    "list scenarios",
    "list releases",
    "bugs J1 --story",
    "check fiar",
    "explore dynamic --witness storms",
    "explore static --members 2 --partitions 1 --faults pause --broker broker-current --out runs",
)


def at_a_terminal(width: int, directory: Path, *argv: object) -> list[str]:
    """The lines that a command prints at a terminal of so many columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("COLUMNS", "NO_COLOR", "FORCE_COLOR")
    }
    with subprocess.Popen(
        command(*argv), cwd=directory, env=environment, stdin=theirs, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        got = b""
        while True:
            try:
                part = os.read(ours, 1 << 16)
            except OSError:  # nobody writes any more
                break
            if not part:
                break
            got += part
    os.close(ours)
    assert process.returncode in (0, 1, 2)
    text = re.sub(r"\x1b\[[0-9;]*[mK]", "", got.decode())
    return re.split(r"\r?\n|\r", text)


def too_wide(lines: list[str], width: int) -> list[str]:
    """Those that are wider, but for what cannot be broken."""
    return [line for line in lines if columns(line) > width and len(line.split()) > 1]


@pytest.mark.covering("width")
@pytest.mark.parametrize("width", [60, 100])
@pytest.mark.parametrize("line", COMMANDS)
def test_what_is_printed_is_no_wider_than_the_terminal(line, width, tmp_path):
    lines = at_a_terminal(width, tmp_path, *line.split())
    assert too_wide(lines, width) == []
    assert len(lines) > 1
    assert max(map(columns, lines)) > width * 2 // 3, "it uses the room"


@pytest.mark.parametrize("width", [60, 75, 90, 110])
@pytest.mark.parametrize(
    "text",
    [
        lambda: check.render(violated()),
        lambda: audit.render(audited(finding(), finding(1, "granted-before-revoked"))),
    ],
    ids=["check", "audit"],
)
def test_reports_are_made_for_the_width(text, width):
    with page_of(width):
        made = text()
    assert too_wide(fitted(made, width).splitlines(), width) == []
    whole = text().splitlines()
    assert width == 110 or made != "\n".join(whole)


def test_a_file_is_as_wide_as_ever(tmp_path):
    with page_of(60):
        own = {"text": lambda: "x" * page_width()}
        reports.write(tmp_path, ("text",), ci_reports.result(violated()), own)
        assert page_width() == 60
    assert (tmp_path / "report.txt").read_text() == "x" * 110
    assert page_width() == 110


@pytest.mark.parametrize(("given", "width"), [(10, 60), (60, 60), (100, 100), (300, 110)])
def test_a_page_has_a_least_and_a_greatest_width(given, width):
    with page_of(given):
        assert page_width() == width


@pytest.mark.parametrize(
    ("line", "lines"),
    [
        ("short", ["short"]),
        ("a  bb ccc dddd eeeee", ["a  bb ccc", "   dddd", "   eeeee"]),
        ("  indented words go on", ["  indented", "    words", "    go on"]),
        ("x  " + "y" * 30, ["x", "    " + "y" * 30]),
        ("\x1b[31mred\x1b[0m  word", ["\x1b[31mred\x1b[0m  word"]),
        ("", [""]),
    ],
)
def test_a_line_goes_on_below_its_last_gap(line, lines):
    assert fitted(line, 10).split("\n") == lines
