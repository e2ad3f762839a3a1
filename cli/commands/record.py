"""``rebalance record``: real consumers, disturbed, recorded and judged."""

from __future__ import annotations

import argparse
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rebalance_verifier.base.names import unknown
from rebalance_verifier.cli.console.progress import staged
from rebalance_verifier.cli.console.terminal import UsageError, answer, clean, usage_errors
from rebalance_verifier.cli.shared.options import REPORTS, add_format, add_options
from rebalance_verifier.cli.shared.reports import Reports, results_directory
from rebalance_verifier.cli.shared.values import duration, whole
from rebalance_verifier.live.clients.clusters.defaults import (
    KAFKA,
    NODES,
    PARTITIONS,
    POLL,
    SESSION,
    SETTLE,
    STEPS,
)
from rebalance_verifier.traces.recognise import RECORDED, right_command

if TYPE_CHECKING:
    from rebalance_verifier.live.clients.record.request import Request


def add(commands: Any) -> argparse.ArgumentParser:
    """Add the command to the parser's ``commands``."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "record",
        epilog="A recording is inconclusive when a client or the cluster lacks what the scenario needs.",
        description="Start real consumers in their own processes and inject the faults of the scenario. "
        "Write down every callback with one clock. Check which member owned and read what. "
        "Results go to .rebalance/<time>, or to --out, a new directory.",
    )
    parser.add_argument("--cluster", choices=tuple(SESSION), default="mock",
                        help="mock: librdkafka's own (default); kafka: Apache Kafka, by Maven")  # fmt: skip
    parser.add_argument("--kafka-version", metavar="VERSION", help=f"of --cluster kafka ({KAFKA})")
    parser.add_argument("--nodes", type=whole, metavar="N", help="of --cluster kafka (1; failover: 3)")
    parser.add_argument("--clients", default="confluent:3", metavar="NAME:COUNT[,...]",
                        help="confluent, kafka-python, aiokafka, java:VERSION (confluent:3)")  # fmt: skip
    add_options(parser, "--scenario", scenario="scale-out")
    add_options(parser, "--seed", seed=0)
    parser.add_argument("--steps", type=whole, default=STEPS, metavar="N",
                        help=f"of the random scenario ({STEPS})")  # fmt: skip
    parser.add_argument(
        "--duration", type=duration, metavar="TIME", help="the random scenario goes on so long"
    )
    parser.add_argument("--topic-partitions", type=whole, default=PARTITIONS, metavar="N",
                        help=f"of each topic ({PARTITIONS})")  # fmt: skip
    parser.add_argument("--assignor", default="", metavar="NAME", help="range, roundrobin, sticky, "
                        "cooperative-sticky (the last where all clients have it, else range); of the "
                        "consumer protocol uniform (default), range")  # fmt: skip
    add_options(parser, "--group-protocol")
    parser.add_argument("--session-timeout", type=whole, metavar="MS", help="session.timeout.ms "
                        f"({', '.join(f'{kind}: {ms}' for kind, ms in SESSION.items())})")  # fmt: skip
    parser.add_argument("--poll", type=whole, default=POLL, metavar="MS",
                        help=f"timeout of each poll ({POLL})")  # fmt: skip
    add_options(parser, "--settle", settle=SETTLE)
    parser.add_argument(
        "--static", action="store_true", help="static members: their names are group.instance.id"
    )
    parser.add_argument(
        "--again",
        type=Path,
        metavar="DIR",
        help="repeat the recording in DIR step by step: its clients, steps, times and cluster "
        "(--kafka-version and --nodes may differ)",
    )
    add_options(parser, "--out")
    add_format(parser)
    add_options(parser, *REPORTS, "--verbose", "--no-progress")
    return parser


def run(options: argparse.Namespace) -> int:
    """Run the command; return its exit code."""
    from rebalance_verifier.base.processes.tools import ToolError
    from rebalance_verifier.live.clients.consumers.member import command
    from rebalance_verifier.live.clients.record.record import Recorded, data, play
    from rebalance_verifier.report.ci import code_reports
    from rebalance_verifier.report.terminal.recording import render

    reports = Reports.of_cases(options)
    request = _again(options) if options.again else _request(options)
    if problem := request.problem():
        made = Recorded(request=request, out=Path(), unsupported=problem)
    else:
        out = results_directory(options.out)
        with usage_errors(ToolError), staged(options, "starting the cluster") as report_progress:
            for profile, _ in request.clients:
                command(profile)  # before a cluster starts: is there all that it needs?
            with request.start(out / "brokers") as cluster:
                made = play(request, cluster, out, report_progress)
    answer(options, lambda: data(made), lambda: clean(render(made)))
    reports.finish_cases(
        lambda: code_reports.recorded(made), lambda: data(made),
        lead="This page shows whether real consumers kept the rules of a group while they were disturbed.",
    )  # fmt: skip
    return int(made.exit)


def _request(options: argparse.Namespace) -> Request:
    from rebalance_verifier.live.clients.record.request import Request, clients
    from rebalance_verifier.live.clients.record.scenarios import SCENARIOS

    if options.scenario not in SCENARIOS:
        raise UsageError(f"--scenario: {unknown('scenario', options.scenario, SCENARIOS)}")
    with usage_errors(ValueError, option="--clients"):
        several = clients(options.clients)
    least = SCENARIOS[options.scenario].least
    if sum(count for _, count in several) < least:
        raise UsageError(f"--clients: {options.scenario} takes {least} members or more")
    if options.group_protocol == "migration":
        raise UsageError("--group-protocol: a migration is recorded by --scenario migration")
    if options.duration and options.scenario != "random":
        raise UsageError("--duration goes with --scenario random")
    known = ("", "range", "roundrobin", "sticky", "cooperative-sticky", "uniform")
    if options.assignor not in known:
        raise UsageError(f"--assignor: {unknown('assignor', options.assignor, known[1:])}")
    return Request(
        cluster=options.cluster,
        clients=several,
        scenario=options.scenario,
        seed=options.seed,
        duration=options.duration,
        length=options.steps,
        partitions=options.topic_partitions,
        assignor=options.assignor,
        session=options.session_timeout or SESSION[options.cluster],
        poll=options.poll,
        settle=options.settle,
        static=options.static,
        kafka=_release(options) or KAFKA,
        nodes=options.nodes or NODES.get(options.scenario, 1),
        protocol=options.group_protocol,
    )


def _again(options: argparse.Namespace) -> Request:
    from rebalance_verifier.base import saved as files
    from rebalance_verifier.live.clients.record.request import again

    release = _release(options)
    if other := right_command(options.again, RECORDED):
        raise UsageError(f"--again: {other}")
    path = options.again / "run.json" if options.again.is_dir() else options.again
    try:
        request = again(files.read_json(path))
    except files.TraceError as error:
        raise UsageError(f"--again: {error}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"--again: {path} is not what a recording writes: {error}") from error
    return replace(request, kafka=release or request.kafka, nodes=options.nodes or request.nodes)


def _release(options: argparse.Namespace) -> str:
    """Return the release of Apache Kafka that was asked for, "" for none. Raises UsageError."""
    from rebalance_verifier.model.bugs.releases import spelled

    release = spelled(options.kafka_version or "")
    if release and not re.fullmatch(r"\d+\.\d+\.\d+", release):
        raise UsageError(f"--kafka-version: {release!r} is no release, such as {KAFKA}")
    return release
