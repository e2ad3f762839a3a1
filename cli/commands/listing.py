"""``rebalance list``: what there is to choose from, and what is asked."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from rebalance_verifier.base.names import unknown
from rebalance_verifier.base.text import count, fold, page_width
from rebalance_verifier.cli.console.terminal import (
    UsageError,
    print_json,
    print_out,
    print_text,
    usage_errors,
)
from rebalance_verifier.cli.shared.options import add_format, add_options, refuse_protocol
from rebalance_verifier.cli.shared.values import unless_all

OF = {
    "clauses": ("assignor", "group"),
    "scenarios": ("group", "recording"),
    "checks": ("log", "recording"),
    "obligations": ("classic", "consumer", "migration"),
}
"""What ``--of`` may be, the default first."""


def add(commands: Any) -> argparse.ArgumentParser:
    """Add the command to the parser's ``commands``."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "list",
        description="List clauses (of an assignor, or --of group), targets with their bug switches, "
        "scenarios of a group (or --of recording), releases, faults and schemas. List checks "
        "(of a log, or --of recording) and obligations of the proof (or --of consumer, "
        "migration). With NAME show clauses below a path in full, the obligations of a "
        "theorem, or the JSON Schema of a format. Clauses are printed as md too.",
    )
    parser.add_argument("what", choices=tuple(LISTS), metavar="WHAT", help=", ".join(LISTS))
    parser.add_argument("names", nargs="*", default=[], metavar="NAME", help="only these, in full")
    parser.add_argument(
        "--of",
        choices=tuple(dict.fromkeys(one for of in OF.values() for one in of)),
        help="list those of another subject",
    )
    add_options(parser, "--without")
    add_format(parser, "md")
    return parser


def run(options: argparse.Namespace) -> int:
    """Run the command; return its exit code."""
    known = OF.get(options.what, ())
    if options.of is not None and options.of not in known:
        others = (
            f"is one of {', '.join(known)}"
            if known
            else "goes with clauses, scenarios, checks and obligations"
        )
        raise UsageError(f"--of: for {options.what} it {others}")
    options.of = options.of or (known or ("",))[0]
    if options.names and (options.what, options.of) not in _BY_NAME:
        raise UsageError(f"list {options.what} takes no NAME, such as {options.names[0]!r}")
    if options.format == "md" and (options.what, options.of) != ("clauses", "assignor"):
        raise UsageError("--format md goes with the clauses of assignors")
    if options.without and options.what != "obligations":
        raise UsageError("--without goes with obligations")
    if options.without:
        refuse_protocol("list obligations --without", options.of)
    if options.format == "json" and (options.what, options.of) in _OF_GROUPS:
        print_json(_group_document())
    else:
        LISTS[options.what](options)
    return 0


_BY_NAME = {
    ("clauses", "assignor"),
    ("obligations", "classic"),
    ("obligations", "consumer"),
    ("obligations", "migration"),
    ("schemas", ""),
}
_OF_GROUPS = {("scenarios", "group"), ("releases", ""), ("faults", "")}


def _clauses(options: argparse.Namespace) -> None:
    from rebalance_verifier.properties.assignors.clauses import select
    from rebalance_verifier.properties.group.clauses import TABLE
    from rebalance_verifier.report.terminal import catalogue

    if options.of == "group":
        rows = [(c.id, c.level.value, c.sentence, c.source) for c in TABLE]
        _sentences(rows, options, ("clause", "level", "rule", "source"), 22)
        return
    with usage_errors(ValueError):
        chosen = select(unless_all(options.names))
    if options.format == "json":
        print_json([clause.to_json() for clause in chosen])
    else:
        made = catalogue.render(chosen, markdown=options.format == "md", full=bool(options.names))
        (print_out if options.format == "md" else print_text)(made)


def _checks(options: argparse.Namespace) -> None:
    if options.of == "recording":
        from rebalance_verifier.live.clients.record.judge import CHECKS as OF_RECORDINGS

        _text_only(options)
        rows = [(c.id, c.level, c.sentence, "") for c in OF_RECORDINGS.values()]
    else:
        from rebalance_verifier.pipeline.audit.kernel.findings import CHECKS

        rows = [(c.id, c.level, c.sentence, c.source) for c in CHECKS.values()]
    _sentences(rows, options, ("check", "level", "sentence", "source"), 24)


def _sentences(
    rows: Iterable[tuple[str, str, str, str]], options: argparse.Namespace, keys: Sequence[str], width: int
) -> None:
    """Id, level, sentence and source of each, in a table or as JSON under ``keys``."""
    if options.format == "json":
        print_json([dict(zip(keys, row, strict=True)) for row in rows])
        return
    lines = []
    for name, level, sentence, source in rows:
        first, *rest = fold(f"{sentence} ({source})" if source else sentence, page_width() - 36)
        lines += [f"{name:<{width}}{level:<10}{first}", *(f"{'':<{width + 10}}{line}" for line in rest)]
    print_text("\n".join(lines))


def _targets(options: argparse.Namespace) -> None:
    from rebalance_verifier.gate.targets.hosts.classic import ONE_PROCESS
    from rebalance_verifier.gate.targets.resolve import known
    from rebalance_verifier.model.bugs.switches import SWITCHES

    _text_only(options)
    switches = [f"  {s.assignor}+{s.id}  [{s.entry}] {s.sentence} ({s.shipped})" for s in SWITCHES.values()]
    print_text("\n".join(known()))
    shared = fold(
        f"NAME{ONE_PROCESS}, of aiokafka and of kafka-python before 3: the members of a group are consumers "
        "of one process, and share what their assignor keeps",
        page_width() - 2,
    )
    print_text("\n".join(("", "added to an assignor of a client:", *(f"  {line}" for line in shared))))
    print_text("\ndesign switches, added to a reference assignor as NAME+SWITCH to break it:")
    print_text("\n".join(switches))


def _scenarios(options: argparse.Namespace) -> None:
    from rebalance_verifier.explore.groups.scenarios import ALWAYS_POSSIBLE, SCENARIOS

    if options.of == "recording":
        from rebalance_verifier.live.clients.record.scenarios import SCENARIOS as OF_RECORDINGS

        _text_only(options)
        print_text("\n".join(f"{one.name:<18}{one.sentence}" for one in OF_RECORDINGS.values()))
        return
    lines = []
    for s in SCENARIOS.values():
        lines.append(f"{s.name:<16} {s.sentence}")
        kinds = ", ".join(f for f in s.faults if f not in ALWAYS_POSSIBLE or len(s.faults) < 10)
        if len(s.faults) >= 10:
            kinds = "every kind that is always possible" + (f", {kinds}" if kinds else "")
        shape = f"{s.members} members, {count(s.partitions, 'partition')}"
        first, *rest = fold(f"{shape}, at most {count(s.budget, 'fault')} of: {kinds}", page_width() - 20)
        lines += [f"{'':<16} {first}", *(f"{'':<18} {line}" for line in rest)]
    print_text("\n".join(lines))


def _releases(options: argparse.Namespace) -> None:
    from rebalance_verifier.model.bugs.profiles import BROKERS, CLIENTS
    from rebalance_verifier.model.bugs.releases import KAFKA

    for title, table in (("of members, for --release", CLIENTS), ("of coordinators, for --broker", BROKERS)):
        width = max(map(len, table)) + 2
        lines = [f"{title}:"]
        for one in table.values():
            first, *rest = fold(one.notes, page_width() - 20)
            lines += [f"  {one.name:<{width}}{first}", *(f"  {'':<{width}}{line}" for line in rest)]
        print_text("\n".join(lines))
    more = f"or any release of Kafka from {KAFKA[0]} to {KAFKA[-1]}; X.Y is the last of its patches"
    print_text("\n".join(fold(more, page_width())))


def _faults(options: argparse.Namespace) -> None:
    from rebalance_verifier.explore.groups.scenarios import ALWAYS_POSSIBLE
    from rebalance_verifier.model.protocols import FAULTS

    rare = [f"{fault}  (in scenarios that name it)" for fault in FAULTS if fault not in ALWAYS_POSSIBLE]
    print_text("\n".join([*(fault for fault in FAULTS if fault in ALWAYS_POSSIBLE), *rare]))


def _group_document() -> dict[str, Any]:
    """Scenarios, releases and faults: one format."""
    from rebalance_verifier.explore.groups.scenarios import SCENARIOS
    from rebalance_verifier.model.bugs.profiles import BROKERS, CLIENTS
    from rebalance_verifier.model.protocols import FAULTS

    shown = ("sentence", "members", "partitions", "budget")
    scenarios = [
        {"scenario": s.name, **{key: getattr(s, key) for key in shown}, "faults": list(s.faults)}
        for s in SCENARIOS.values()
    ]
    return {
        "scenarios": scenarios,
        "profiles": list(CLIENTS),
        "brokers": list(BROKERS),
        "faults": list(FAULTS),
    }


def _obligations(options: argparse.Namespace) -> None:
    from rebalance_verifier.cli.commands.prove import theorems
    from rebalance_verifier.specs.proving import listed

    wanted = theorems(options.of, options.names, options.without)
    rows = listed(wanted)
    if options.format == "json":
        print_json(
            [{"theorem": t.name, "kind": kind, "case": case, "goal": goal} for t, kind, case, goal in rows]
        )
        return
    lines = []
    for theorem in wanted:
        source = f" ({theorem.source})" if theorem.source else ""
        lines.append(f"{theorem.name}: {theorem.sentence}{source}")
        lines += [f"  {f'{kind} {case}'.rstrip()}: {goal}" for t, kind, case, goal in rows if t is theorem]
    print_text("\n".join(lines))


def _schemas(options: argparse.Namespace) -> None:
    from rebalance_verifier.traces.formats import FORMATS, schema

    if not options.names:
        _text_only(options)
        width = max(map(len, FORMATS))
        print_text("\n".join(f"{one.name:<{width}}  {one.written}" for one in FORMATS.values()))
    for name in FORMATS if "all" in options.names else options.names:
        if name not in FORMATS:
            raise UsageError(unknown("format", name, FORMATS, "rebalance list schemas"))
        print_json(schema(name))


def _text_only(options: argparse.Namespace) -> None:
    if options.format != "text":
        raise UsageError(f"--format: {options.what} are listed as text")


LISTS: dict[str, Callable[[argparse.Namespace], None]] = {
    "clauses": _clauses,
    "targets": _targets,
    "scenarios": _scenarios,
    "releases": _releases,
    "faults": _faults,
    "checks": _checks,
    "obligations": _obligations,
    "schemas": _schemas,
}
