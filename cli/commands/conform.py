"""``rebalance conform``: is a recorded group one that the model allows, and is Kafka's own code?"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rebalance_verifier.base.text import clean, count
from rebalance_verifier.base.verdict import Exit
from rebalance_verifier.cli.commands.lockstep import OF_CODE, add_lockstep, run_lockstep
from rebalance_verifier.cli.console.progress import progress
from rebalance_verifier.cli.console.terminal import UsageError, answer, json_text, usage_errors, write
from rebalance_verifier.cli.shared.options import add_format, add_options, refuse
from rebalance_verifier.cli.shared.values import comma_separated, duration
from rebalance_verifier.traces.recognise import EVENTS, right_command

if TYPE_CHECKING:
    from rebalance_verifier.live.conformance.ask import ConformanceAnswer
    from rebalance_verifier.live.conformance.question import Choices

OF_LOG = (
    "--group", "--release", "--broker", "--assignors", "--assignment", "--topic", "--max-faults", "--window",
    "--granularity", "--states", "--time-limit", "--show",
)  # fmt: skip
"""Options that are about a log."""

MAX_SHOWN = 12
"""Steps, pending events and alternatives that are shown of a mismatch."""


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
    add_options(shown, "--out", "--no-progress")
    return parser


def run(options: argparse.Namespace) -> int:
    """Return the command."""
    from rebalance_verifier.live.conformance.ask import ask
    from rebalance_verifier.live.conformance.log import LogError, read
    from rebalance_verifier.live.conformance.question import build_question
    from rebalance_verifier.live.conformance.wire.question import ask_wire, build_wire_question, has_messages

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
    with progress(options) as show:
        found = how[1](
            question,
            choices(options),
            lambda explained, events, states: show(
                lambda: f"{explained} of {events} events, {states:,} states"
            ),
        )
    if options.out is not None:
        write(Path(options.out), json_text(found.data()) + "\n", "--out")
    answer(options, found.data, lambda: "\n".join(text(found, steps=options.show)))
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


# -- what is said --------------------------------------------------------------------------------------


def text(answer: ConformanceAnswer, *, steps: bool = False) -> list[str]:
    """Return the answer for people."""
    question, found = answer.question, answer.conformance
    verdict = found.judgement
    names = sorted({slot.profile for slot in question.slots})
    where = f"{', '.join(names)} on {question.broker}"
    head = f"{verdict}  {question.recorded.group}: {found.longest} of {found.events} events"
    headline = {
        "explained": f"{head} explained by {where}",
        "mismatch": f"{head} explained by {where}, and not the next",
        "inconclusive": f"{head} explained so far by {where}: {found.why}",
    }[found.verdict]
    lines = [clean(headline), f"  {found.searched:,} states and events searched"]
    if answer.faults:
        lines[1] += f", {count(answer.faults, 'fault')} that nobody wrote down"
    lines += _found(answer)
    if found.blamed is not None:
        lines += _mismatch(answer)
    if steps or found.blamed is not None:
        witness = found.witness if steps else found.witness[-MAX_SHOWN:]
        lines += ["", "  the run of the model" if steps else "  the run of the model up to there, its end"]
        lines += [f"    {line}" for line in _steps(answer, witness)]
    return lines


def _found(answer: ConformanceAnswer) -> list[str]:
    """Return what about clients the run takes that is no part of the model."""
    from rebalance_verifier.live.conformance.clients.table import BY_ID

    lines: list[str] = []
    for name, times in answer.findings.items():
        deviation = BY_ID.get(name)
        whose = "a leader's decision breaks this clause"
        if deviation:
            whose = f"{deviation.client}: {deviation.sentence}"
        lines.append(clean(f"  {name} ({count(times, 'time')}): {whose}"))
    return ["", "  findings about clients that the run takes", *lines] if lines else []


def _mismatch(answer: ConformanceAnswer) -> list[str]:
    question, found = answer.question, answer.conformance
    assert found.blamed is not None
    blamed = question.lines[found.blamed]
    lines = ["", clean(f"  line {blamed.number}: {blamed}"), "    no state of the model allows it there"]
    others = [question.lines[position] for position in found.pending if position != found.blamed]
    if others:
        lines += ["  nor the next events of the other consumers"]
        lines += [clean(f"    line {line.number}: {line}") for line in others[:MAX_SHOWN]]
    lines += ["  what it allows there"] if found.allowed else ["  it allows nothing there that would be seen"]
    lines += [
        clean(f"    {question.spelled(one)}  (in {count(n, 'state')})")
        for one, n in found.allowed[:MAX_SHOWN]
    ]
    return lines


def _steps(answer: ConformanceAnswer, witness: Sequence[Any]) -> list[str]:
    question, lines = answer.question, []
    for step in witness:
        if step.event is None:
            what = "(it has failed before)"
        else:
            who = question.name(step.event.who) if step.event.who >= 0 else ""
            choice = f" ({question.spelled(step.event.choice)})" if step.event.choice else ""
            what = f"{who} {step.event.action}{choice}".strip()
        shown = "; ".join(f"line {question.lines[p].number} {question.lines[p].event}" for p in step.shows)
        lines.append(clean(f"{what}{'  <- ' + shown if shown else ''}"))
    return lines
