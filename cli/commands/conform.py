"""``rebalance conform``: is a recorded group one that the model allows, and is Kafka's own code?"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rebalance_verifier.base.verdict import Exit
from rebalance_verifier.cli.commands.lockstep import OF_CODE, add_lockstep, run_lockstep
from rebalance_verifier.cli.console.progress import progress
from rebalance_verifier.cli.console.terminal import UsageError, answer, json_text, usage_errors, write
from rebalance_verifier.cli.shared.options import REPORTS, add_format, add_options, refuse
from rebalance_verifier.cli.shared.reports import Reports
from rebalance_verifier.cli.shared.values import comma_separated, duration
from rebalance_verifier.traces.recognise import EVENTS, right_command

if TYPE_CHECKING:
    from rebalance_verifier.live.conformance.question import Choices

OF_LOG = (
    "--group", "--release", "--broker", "--assignors", "--assignment", "--topic", "--max-faults", "--window",
    "--granularity", "--states", "--time-limit", "--show",
)  # fmt: skip
"""Options that are about a log."""


def add(commands: Any) -> argparse.ArgumentParser:
    """Add the command to the parser's ``commands``."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "conform",
        description="Trace validation: search for a run of the model that shows exactly the events of a "
        "recording (of `rebalance record`). Differential testing, with --code: do each step to the model and "
        "to Kafka's own code, and compare them. A mismatch is a defect of the model or of the client.",
    )
    parser.add_argument("events", type=Path, metavar="EVENTS.jsonl|DIR", nargs="?")
    add_options(parser, "--group")
    model = parser.add_argument_group(
        "model",
        "Match consumers by name with --release CONSUMER=RELEASE (default: by the log). --broker mock is "
        "librdkafka's mock cluster (default: by run.json). --max-faults (0) counts unrecorded faults.",
    )
    add_options(model, "--release", "--broker")
    model.add_argument("--assignors", action="append", default=[], metavar="[CONSUMER=]NAME[,NAME...]",
                       help="assignor lists (those of run.json, else of the release)")  # fmt: skip
    model.add_argument("--assignment", choices=("observed", "reference"), default="observed",
                       help="a leader decides as the callbacks show, or as the reference assignor does "
                       "(observed)")  # fmt: skip
    model.add_argument("--topic", action="append", default=[], metavar="NAME=COUNT",
                       help="number of partitions, where the log does not show all")  # fmt: skip
    add_options(model, "--max-faults", max_faults=0)
    search = parser.add_argument_group("search")
    search.add_argument("--window", type=duration, default=1.0, metavar="TIME", help="events of two "
                        "consumers this close may have happened in either order (1 s)")  # fmt: skip
    add_options(search, "--granularity", "--states", "--time-limit", states=400_000)
    add_lockstep(parser)
    shown = parser.add_argument_group("output", "--out: the answer as JSON, with the run of the model.")
    add_format(parser)
    shown.add_argument("--show", action="store_true", help="show the run of the model that explains the log")
    add_options(shown, "--out", *REPORTS, "--no-progress")
    return parser


def run(options: argparse.Namespace) -> int:
    """Run the command; return its exit code."""
    from rebalance_verifier.live.conformance.ask import ask
    from rebalance_verifier.live.conformance.log import LogError, read
    from rebalance_verifier.live.conformance.question import build_question
    from rebalance_verifier.live.conformance.wire.question import ask_wire, build_wire_question, has_messages
    from rebalance_verifier.report.ci import code_reports
    from rebalance_verifier.report.terminal.conformance import data, render

    if (options.events is None) == (options.code is None):
        raise UsageError("name a log, or with --code the releases of Kafka to walk with")
    if options.code is not None:
        refuse(options, OF_LOG, "goes with a log only")
        return run_lockstep(options)
    refuse(options, OF_CODE, "goes with --code only")
    if len(options.group) > 1:
        raise UsageError("--group: one group is asked about")
    recording = os.path.exists(options.events / "events.jsonl")  # whatever its run.json says, or lacks
    if not recording and (other := right_command(options.events, EVENTS)):
        raise UsageError(other)
    try:
        recorded = read(options.events, *options.group)
    except OSError as error:
        raise UsageError(f"{error.filename}: {error.strerror}") from error
    except (LogError, ValueError) as error:
        raise UsageError(str(error)) from error
    how: Any = (build_wire_question, ask_wire) if has_messages(recorded) else (build_question, ask)
    with usage_errors(LogError, ValueError):
        question = how[0](recorded, choices(options))
    reports = Reports.of_cases(options)
    with progress(options) as show:
        found = how[1](
            question,
            choices(options),
            lambda explained, events, states: show(
                lambda: f"{explained} of {events} events, {states:,} states"
            ),
        )
    if options.out is not None:
        write(Path(options.out), json_text(data(found)) + "\n", "--out")
    answer(options, lambda: data(found), lambda: render(found, steps=options.show))
    reports.finish_cases(
        lambda: code_reports.conforming(found), lambda: data(found),
        lead="This page shows whether the model of the group allows what was recorded.",
    )  # fmt: skip
    return Exit.of(found.conformance.judgement)


def choices(options: argparse.Namespace) -> Choices:
    """Return what the options say. Raises UsageError."""
    from rebalance_verifier.live.conformance.mock import MOCK
    from rebalance_verifier.live.conformance.question import Choices
    from rebalance_verifier.model.bugs.profiles import broker, client

    topics: dict[str, int] = {}
    for given in options.topic:
        name, _, count = given.rpartition("=")
        if not name or not count.isdigit() or not int(count):
            raise UsageError(f"--topic {given!r} is not of the form NAME=COUNT, such as orders=6")
        topics[name] = int(count)
    with usage_errors(ValueError, option="--release"):
        named = [_named(one) for several in options.release for one in several]
        profiles = tuple((pattern, client(name).name) for pattern, name in named)
    with usage_errors(ValueError, option="--broker"):
        kind = options.broker if options.broker in (None, MOCK) else broker(options.broker).name
    lists = [(pattern, comma_separated(names)) for pattern, names in map(_named, options.assignors)]
    return Choices(
        profiles=profiles,
        broker=kind,
        assignors=tuple(lists),
        topics=topics,
        assignor=options.assignment,
        faults=options.max_faults,
        window=options.window,
        steps=options.granularity,
        limit=options.states,
        seconds=options.time_limit,
    )


def _named(given: str) -> tuple[str, str]:
    pattern, _, value = given.rpartition("=")
    return pattern or "*", value
