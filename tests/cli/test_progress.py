"""What is shown while something takes its time: what is done, for how long, within the terminal."""

from __future__ import annotations

import argparse
import io
import os
import time
from pathlib import Path

import pytest
from rebalance_verifier.base.text import span
from rebalance_verifier.cli.console import progress
from rebalance_verifier.cli.console.progress import counted, draw, staged
from rebalance_verifier.cli.parser import Parser, options_of

OPTIONS = argparse.Namespace(no_progress=False, verbose=0)


class Terminal(io.StringIO):
    """A terminal that keeps what was written to it."""

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return 2


@pytest.fixture
def terminal(monkeypatch) -> Terminal:
    """Stderr, of 60 columns; lines come without delay."""
    made = Terminal()
    monkeypatch.setattr(progress, "sys", argparse.Namespace(stderr=made))
    monkeypatch.setattr(os, "get_terminal_size", lambda number: os.terminal_size((60, 24)))
    monkeypatch.setattr(progress, "EVERY", 0.001)
    monkeypatch.setenv("TERM", "xterm")
    return made


def until(terminal: Terminal, text: str) -> None:
    """Wait until it shows."""
    for _ in range(30_000):
        if text in terminal.getvalue():
            return
        time.sleep(0.001)
    raise AssertionError(terminal.getvalue())


def test_a_line_ends_where_the_terminal_does(terminal) -> None:
    draw("x" * 200)
    assert terminal.getvalue() == "\r\x1b[K" + "x" * 56 + "..."


def test_a_dumb_terminal_gets_no_line_that_is_written_over(terminal, monkeypatch) -> None:
    assert not progress.quiet(OPTIONS)
    monkeypatch.setenv("TERM", "dumb")
    assert progress.quiet(OPTIONS)


def test_a_job_of_stages_says_what_it_does_and_leaves_nothing(terminal) -> None:
    with staged(OPTIONS, "starting") as enter:
        until(terminal, "starting: ")
        enter("searching")
        until(terminal, "searching: ")
    assert terminal.getvalue().endswith("\r\x1b[K")


def test_with_verbose_each_stage_is_a_line(terminal, capsys) -> None:
    with staged(argparse.Namespace(no_progress=False, verbose=1), "starting") as enter:
        enter("1. a step")
    assert (terminal.getvalue(), capsys.readouterr().err) == ("", "1. a step\n")


def drawn(refused: bool) -> None:
    with staged(argparse.Namespace(no_progress=refused, verbose=0), "starting") as enter:
        enter("searching")
        time.sleep(0.01)


def test_nobody_wants_it_and_nothing_is_drawn(terminal) -> None:
    drawn(refused=True)
    assert terminal.getvalue() == ""


@pytest.mark.parametrize("refused", [True, False])
def test_nobody_looks_and_nothing_is_drawn(refused, capsys) -> None:
    drawn(refused)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("share", [0.02, 0.05, 0.1, 0.5])
def test_an_estimate_is_of_the_rate_so_far(share) -> None:
    """At an even rate it is right, whenever it is given."""
    whole, total = 400.0, 100_000
    line = counted("scenarios", round(total * share), total, whole * share)
    (left,) = [part for part in line.split(", ") if part.endswith("left")]
    assert left == f"about {span(whole * (1 - share))} left"


def test_every_command_that_works_for_a_while_can_be_asked_for_silence() -> None:
    """And so shows progress: lists and drawings are made at once."""
    from rebalance_verifier.cli.main import build_parser

    parser = build_parser()
    assert isinstance(parser, Parser)
    silent = {name for name, one in parser.commands().items() if "--no-progress" not in options_of(one)}
    assert silent == {"init", "list", "show"}


def test_a_replay_shows_which_trace(rebalance, terminal, monkeypatch) -> None:
    from rebalance_verifier.explore.groups import runs

    assert rebalance("bugs", "J1", "--out", "runs", "--no-progress").code == 0
    (saved, *_) = sorted(Path("runs").glob("*.json"))
    play = runs.play

    def slowly(run):
        until(terminal, f"replaying {saved.stem}")
        return play(run)

    monkeypatch.setattr(runs, "play", slowly)
    assert rebalance("replay", saved).code == 1
