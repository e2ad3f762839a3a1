"""``rebalance compare``: targets, or the releases of the Java client, beside each other."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rebalance.gate.terminal import ROOT, UsageError, natural, note, positive, say, usage, whole, words

if TYPE_CHECKING:
    from rebalance.gate.compare import Column, Comparison, Judged

RELEASES = (
    *("2.4.1", "2.5.1", "2.6.3", "2.7.2", "2.8.0", "2.8.1", "2.8.2", "3.0.0", "3.0.1", "3.1.2", "3.2.3"),
    *("3.3.2", "3.4.0", "3.4.1", "3.5.2", "3.6.2", "3.7.2", "3.8.1", "3.9.1", "4.0.0", "4.1.1", "4.2.0"),
)
"""Releases of kafka-clients: the last of each line, and those on both sides of a fix in the catalogue."""

ASSIGNORS = {
    "cooperative-sticky": "CooperativeStickyAssignor",
    "sticky": "StickyAssignor",
    "range": "RangeAssignor",
    "roundrobin": "RoundRobinAssignor",
}
"""Kafka's own assignors by their protocol names."""


def add(commands: Any) -> None:
    """Add the command to the parser's ``commands``."""
    parser = commands.add_parser(
        "compare",
        help="targets beside each other: releases x clauses, releases x bugs",
        epilog="exit codes: 0 all targets were judged, 1 a bug shows where the catalogue says that it does "
        "not, or the other way round, 2 usage, 3 a target was not judged, 130 interrupted",
        description="Check every TARGET, and every release of --releases, play each counterexample on all of "
        "them, and show which clauses each breaks and which known bugs each has. The same command goes on "
        "where it was interrupted.",
    )
    parser.set_defaults(run=run)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="as `rebalance check` takes it")
    parser.add_argument("--releases", type=words, metavar="all|R[,R...]", help="releases of kafka-clients, "
                        "from Maven: all means those that the catalogue tells apart")  # fmt: skip
    parser.add_argument("--assignors", type=words, default=tuple(ASSIGNORS), metavar="A[,A...]",
                        help=f"which of Kafka's own with --releases ({','.join(ASSIGNORS)})")  # fmt: skip
    parser.add_argument("--profile", choices=("smoke", "ci", "nightly"), default="smoke",
                        help="how much is searched in each target (smoke)")  # fmt: skip
    parser.add_argument("--clause", action="append", default=[], metavar="PATH", help="only clauses at or "
                        "below this path; repeatable")  # fmt: skip
    parser.add_argument("--seed", type=natural, default=0, metavar="S")
    parser.add_argument("--out", type=Path, metavar="DIR", help="where it is kept (.rebalance/compare)")
    parser.add_argument("--format", choices=("text", "markdown", "json"), default="text")
    parser.add_argument("--call-seconds", type=positive, default=10.0, metavar="S",
                        help="how long a target may take for one answer (10)")  # fmt: skip
    parser.add_argument("--memory-mib", type=whole, default=2048, metavar="N",
                        help="how much memory a target may use (2048)")  # fmt: skip
    parser.add_argument("-v", "--verbose", action="store_true", help="a counterexample for every red cell")
    parser.add_argument("--no-progress", action="store_true", help="do not say what is being done")


def run(options: argparse.Namespace) -> int:
    """The command."""
    from rebalance.gate import compare, traces

    comparison = _comparison(options)
    try:
        traces.make_root(ROOT)
        judged = compare.run(comparison, _teller(options))
    except KeyboardInterrupt:
        note(f"interrupted: what is known is kept in {comparison.directory}; the same command goes on")
        _show(compare.stored(comparison), options)
        return 130
    except (compare.CompareError, OSError) as error:
        raise usage(error) from error
    _show(judged, options)
    return _exit(judged)


def columns(targets: Sequence[str], releases: Sequence[str], assignors: Sequence[str]) -> tuple[Column, ...]:
    """The targets, then each assignor in each release. Raises UsageError."""
    from rebalance.gate.adapters.java import CLIENTS, KAFKA, JavaTarget
    from rebalance.gate.compare import Column

    for name in assignors:
        if name not in ASSIGNORS:
            raise UsageError(f"--assignors: Kafka has no {name!r}; it has {', '.join(ASSIGNORS)}")
    chosen = RELEASES if tuple(releases) == ("all",) else tuple(releases)
    found = [Column(spec, spec) for spec in targets]
    for name in assignors if chosen else ():
        for release in chosen:
            spec = JavaTarget(f"{KAFKA}.{ASSIGNORS[name]}", (f"{CLIENTS}:{release}",))
            found.append(Column(str(spec), release, f"{name} of kafka-clients"))
    return tuple(dict.fromkeys(found))


def _comparison(options: argparse.Namespace) -> Comparison:
    from rebalance.gate.compare import Comparison
    from rebalance.gate.plan import PROFILES, Plan
    from rebalance.gate.targets import TargetError, resolve
    from rebalance.properties.clauses import Level, select

    if not options.targets and not options.releases:
        raise UsageError("name the TARGETs to compare, or --releases all")
    try:
        clauses = select(options.clause)
        for spec in options.targets:
            resolve(spec)
    except (ValueError, TargetError) as error:
        raise UsageError(str(error)) from error
    return Comparison(
        columns(options.targets, options.releases or (), options.assignors),
        options.out or ROOT / "compare",
        Plan(clauses, profile=PROFILES[options.profile], seed=options.seed, level=Level.QUALITY),
        options.call_seconds,
        options.memory_mib,
    )


def _teller(options: argparse.Namespace) -> Callable[[str], None]:
    return (lambda text: None) if options.no_progress else note


def _show(judged: Sequence[Judged], options: argparse.Namespace) -> None:
    from rebalance.gate.report import comparison

    if options.format == "json":
        say(comparison.to_json(judged))
    elif options.format == "markdown":
        say(comparison.markdown(judged, f"Comparison, profile {options.profile}, seed {options.seed}"))
    else:
        say(comparison.text(judged, verbose=options.verbose))


def _exit(judged: Sequence[Judged]) -> int:
    if not all(cell.agrees for one in judged for cell in one.entries.values()):
        return 1
    return 3 if any(one.error for one in judged) else 0
