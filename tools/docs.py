"""``make docs``: what in docs/ follows from the code. tests/tools/test_docs.py fails where a page is stale.

    python -m tools.docs              write what is stale
    python -m tools.docs --into DIR   write everything below DIR instead

A page is a head written by hand, a line that says so, and what is generated below it; one of several such
parts names them in these lines. The paper is rendered as well (``tools.paper``). The pictures are drawn by
``tools.pictures``, which is called. What commands print stands in the pages too; tests/test_readme.py
compares it, and puts it right (--update-expected). Results (docs/results, tools/**/*.md) are measurements:
they have commands of their own; of released.md that is `make code`, which writes what the page is made of.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING

from rebalance_verifier.cli.init import workflows
from rebalance_verifier.cli.init.workflows import Project

from tools import metadata_page, pictures, released_page
from tools.paper import page, tables

if TYPE_CHECKING:
    from rebalance_verifier.pipeline.audit.sources.patterns import KnownLine

ROOT = Path(__file__).parents[1]

MARK = "<!-- generated from here on: make docs -->\n"
"""What stands above it is written by hand."""

END = "<!-- to here -->\n"
"""And so is what stands below this, where a page has it."""


def mark(part: str) -> str:
    """``MARK`` of a part with that name; the only part of a page has none."""
    return MARK.replace("make docs", f"make docs, {part}") if part else MARK


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table in Markdown, with its newline.

    >>> print(table(("a", "b"), [(1, "x|y")]), end="")
    | a | b |
    |---|---|
    | 1 | x\\|y |
    """
    cells = [head, ["---"] * len(head), *rows]
    lines = ("| " + " | ".join(re.sub(r"(?<!\\)\|", r"\\|", str(c)) for c in row) + " |" for row in cells)
    return "".join(line.replace("| --- ", "|---").replace("--- |", "---|") + "\n" for line in lines)


def code(names: Iterable[str]) -> str:
    """Names as code, separated by commas."""
    return ", ".join(f"`{name}`" for name in names)


def section(title: str, about: str, body: str) -> str:
    """A heading of the second level, a paragraph if there is something to say, and what it is about."""
    return "\n\n".join(filter(None, (f"## {title}", about, body)))


# -- README.md -------------------------------------------------------------------------------------------


def results() -> str:
    """Sum up the table of docs/results/README.md: released clients, by the worst that each breaks."""
    overview = (ROOT / "docs" / "results" / "README.md").read_text(encoding="utf-8")
    lines = re.search(r"^(\| client \|.*?)\n\n", overview, re.M | re.S)
    if not lines:
        raise ValueError("docs/results/README.md has no table that begins with | client |")
    cells = (line.strip("| ").split(" | ") for line in lines[1].splitlines()[2:])
    rows = [(f"{client} {assignor}", *levels) for client, assignor, _, _, *levels in cells]
    rows = [row for row in rows if not row[0].startswith("reference ")]
    clients = {name.split()[0] for name, *_ in rows}
    worst: dict[int | None, list[str]] = {}  # the first of safety, liveness, quality that is broken
    for name, *levels in rows:
        broken = next((at for at, cell in enumerate(levels) if "](" in cell), None)
        worst.setdefault(broken, []).append(name)
    unlive, poor, clean = (worst.get(at, []) for at in (1, 2, None))
    unsafe = [(name, safety) for name, safety, *_ in rows if "](" in safety]
    rare = sum(all(f"{link}°" in safety for link in re.findall(r"\S+\)", safety)) for _, safety in unsafe)
    return "".join(
        f"- {line}\n"
        for line in (
            f"{len(rows)} assignors of {len(clients)} clients were judged, each in its newest release.",
            f"{len(unsafe)} violate safety: {', '.join(_linked(*row) for row in unsafe)}.",
            f"{rare} of these {len(unsafe)} do so only on input that is rare in practice.",
            f"{len(unlive)} more violate liveness: {', '.join(unlive)}.",
            f"{len(poor)} more break only promises of quality: {', '.join(poor)}.",
            f"{len(clean)} break nothing: {', '.join(clean)}.",
        )
    )


def _linked(name: str, cell: str) -> str:
    """Link a name to the first counterexample of a cell."""
    [first, *_] = re.findall(r"\]\(([^)]+)\)", cell)
    return f"[{name}](docs/results/{first})"


# -- reference/command-line.md ---------------------------------------------------------------------------


def command_line() -> str:
    """Return the options of each command, from the parser: the layout of ``--help`` follows Python."""
    from rebalance_verifier.cli.main import build_parser

    commands = next(one for one in build_parser()._actions if isinstance(one, argparse._SubParsersAction))
    parts = []
    for name, parser in commands.choices.items():
        rows = []
        for group in parser.arranged_groups():
            # argparse's own two groups have titles that say nothing.
            own = group.title not in ("positional arguments", "options")
            taken = [(takes(one), meaning(parser, one)) for one in group._group_actions if one.dest != "help"]
            rows += [(f"**{group.title}**", ""), *taken] if own and taken else taken
        about = (parser.description or "").replace("%%", "%")
        parts.append(section(f"rebalance {name}", about, table(("takes", "which means"), rows)))
    return "\n".join(parts)


def takes(action: argparse.Action) -> str:
    """How an option or argument is written."""
    if action.nargs == 0:
        value = ""
    elif action.metavar is not None:
        value = action.metavar if isinstance(action.metavar, str) else " ".join(action.metavar)
    else:
        value = ",".join(map(str, action.choices)) if action.choices else action.dest.upper()
        value = f"{{{value}}}" if action.choices else value
    *others, last = action.option_strings or ("",)
    return code([*others, f"{last} {value}".strip()])


def meaning(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    """The help of an option, its default in place."""
    values = vars(action) | {"prog": parser.prog}
    return (action.help or "") % values


# -- reference/api.md ------------------------------------------------------------------------------------

API = {
    "To judge": ("check", "explore", "audit", "Judgement", "JudgedFinding", "Verdict", "CannotJudge"),
    "Groups": ("scenario", "SizedScenario", "group_machine", "find_run", "runs", "setups", "code_machine"),
    "Tests of an assignor": ("conformance", "assert_conforms", "histories", "play"),
    "What an assignor is given and returns": (
        *("Assignor", "Cluster", "Subscription", "GroupSubscription", "GroupAssignment", "TopicPartition"),
    ),
    "The proxy": ("Proxy", "ProxyRule"),
}
"""The public names, as the page has them; `__version__` is the version as text."""


def public_api() -> str:
    """Return every public name with its signature and its docstring."""
    import rebalance_verifier

    if left := set(rebalance_verifier.__all__) ^ {"__version__", *chain(*API.values())}:
        raise ValueError(
            f"API of tools/docs.py and rebalance_verifier.__all__ differ: {', '.join(sorted(left))}"
        )
    return "\n".join(
        section(title, "", "\n".join(f"### {name}\n\n{_described(name)}" for name in names))
        for title, names in API.items()
    )


def _described(name: str) -> str:
    """Return the signature of a public name and its docstring as Markdown; of an alias the text behind it."""
    import rebalance_verifier

    found = getattr(rebalance_verifier, name)
    if not (inspect.isclass(found) or inspect.isfunction(found)):
        module = importlib.import_module(f"rebalance_verifier.{rebalance_verifier._MODULES[name]}")
        body = ast.parse(inspect.getsource(module)).body
        at = next(i for i, node in enumerate(body) if ast.unparse(node).startswith(f"{name} = "))
        return f"```python\n{ast.unparse(body[at])}\n```\n\n{ast.literal_eval(ast.unparse(body[at + 1]))}\n"
    if inspect.isclass(found):
        members = [
            f"**{name}.{member}**{_taken(value)}{': ' * bool(inspect.getdoc(value))}"
            f"{prose(inspect.getdoc(value) or '')}"
            for member, value in vars(found).items()
            if member[0] != "_" and (isinstance(value, property | classmethod) or inspect.isfunction(value))
        ]
        return "\n".join([prose(inspect.getdoc(found) or ""), *members])
    parameters = inspect.signature(found).parameters.values()
    lines = [f"    {_unquoted(one)}," for one in parameters]
    if any(one.kind is one.KEYWORD_ONLY for one in parameters):
        first = next(n for n, one in enumerate(parameters) if one.kind is one.KEYWORD_ONLY)
        lines.insert(first, "    *,")
    head = "\n".join([f"def {name}(", *lines, f") -> {inspect.signature(found).return_annotation}"])
    return f"```python\n{head}\n```\n\n{prose(inspect.getdoc(found) or '')}"


def _unquoted(parameter: inspect.Parameter) -> str:
    """Return a parameter as it is written, its annotation without quotes."""
    return re.sub(rf"^(\**{parameter.name}): '(.*?)'(?= = |$)", r"\1: \2", str(parameter))


def _taken(member: object) -> str:
    """Return the parameters of a method as code; none of a property."""
    if isinstance(member, property):
        return ""
    function = member.__func__ if isinstance(member, classmethod) else member
    names = list(inspect.signature(function).parameters)[1:]  # type: ignore[arg-type]
    return f"`({', '.join(names)})`"


def prose(text: str) -> str:
    """Return a docstring as Markdown: its parameters as a list.

    >>> print(prose("Do it.\\n\\nArgs:\\n    a: this,\\n        or that.\\n    b: more."))
    Do it.
    <BLANKLINE>
    - `a`: this, or that.
    - `b`: more.
    <BLANKLINE>
    """
    lines: list[str] = []
    listed = False
    for line in re.sub(r"(?m)^(>>> .*(?:\n.+)*)", lambda m: indent(m[1], "    "), text).splitlines():
        if line in ("Args:", "Attributes:"):
            listed = True
        elif listed and (item := re.fullmatch(r"    (\w+): (.*)", line)):
            lines.append(f"- `{item[1]}`: {item[2]}")
        elif listed and line.startswith("        "):
            lines[-1] += f" {line.strip()}"
        elif listed and lines[-1].startswith("- ") and not line:
            listed = False
            lines.append("")
        else:
            lines.append(line.replace("``", "`"))
    return "\n".join(lines) + "\n"


# -- reference/clauses.md --------------------------------------------------------------------------------


def clauses() -> str:
    """What is asked of assignors, of the group, of logs and of recordings."""
    from rebalance_verifier.live.clients.record import judge
    from rebalance_verifier.pipeline.audit.kernel import findings
    from rebalance_verifier.properties.assignors import clauses
    from rebalance_verifier.properties.group import clauses as protocol
    from rebalance_verifier.report.terminal import catalogue

    head = ("clause", "level", "sentence", "rule")
    parts = (
        section(
            "Of an assignor",
            "Asked by `rebalance check`, `campaign`, `compare` and the pytest plugin.",
            catalogue.render(clauses.TABLE, markdown=True) + "\n",
        ),
        section(
            "Of a group",
            "Asked of the model by `rebalance explore`, `upgrade` and `bugs`; of real clients by `rebalance "
            "replay --on`.",
            table(head, ((f"`{c.id}`", c.level, c.sentence, c.source) for c in protocol.TABLE)),
        ),
        section(
            "Of the logs of a group",
            "Asked by `rebalance audit`.",
            table(head, ((f"`{c.id}`", c.level, c.sentence, c.source) for c in findings.CHECKS.values())),
        ),
        section(
            "Of a recording",
            "Asked by `rebalance record`, which knows more than a log says: who was alive, what each client "
            "said that it owns, who read which records.",
            table(head[:3], ((f"`{c.id}`", c.level, c.sentence) for c in judge.CHECKS.values())),
        ),
    )
    return "\n".join(parts)


# -- reference/profiles.md -------------------------------------------------------------------------------


def protocols() -> str:
    """Return the table of commands by group protocol, and why some take no groups of a protocol."""
    from rebalance_verifier.model.protocols import COMMANDS, PROTOCOLS

    rows = (
        (f"`{command}`", *("no" if protocol in refused else "yes" for protocol in PROTOCOLS))
        for command, refused in COMMANDS.items()
    )
    reasons = (
        f"- {PROTOCOLS[protocol].refusal(command)}."
        for command, refused in COMMANDS.items()
        for protocol in refused
    )
    heads = ("command", *(protocol.groups for protocol in PROTOCOLS.values()))
    return table(heads, rows) + "\nWhy not:\n\n" + "\n".join(reasons) + "\n"


def profiles() -> str:
    """How much is searched, in which groups, behaving like which releases, with which mistakes."""
    from rebalance_verifier.gate.search.plan import PROFILES, count
    from rebalance_verifier.model.bugs.decisions import DECISIONS
    from rebalance_verifier.model.bugs.profiles import BROKERS, CLIENTS
    from rebalance_verifier.model.bugs.switches import SWITCHES
    from rebalance_verifier.model.values import RebalanceProtocol as Protocol

    searches = (
        (f"`{p.name}`", *(f"{count(p, (one,)):,}" for one in (Protocol.EAGER, Protocol.COOPERATIVE)),
         f"{p.each:,}", f"{p.mixed:,}", f"{p.large:,}", f"{p.crowd:,} members" if p.crowd else "-")
        for p in PROFILES.values()
    )  # fmt: skip
    clients = (
        (f"`{p.name}`", p.notes, ", ".join(p.default_assignors),
         code((*sorted(p.decisions), *p.switches)) or "-") for p in CLIENTS.values()
    )  # fmt: skip
    brokers = ((f"`{p.name}`", p.notes, code(sorted(p.decisions)) or "-") for p in BROKERS.values())
    decisions = ((f"`{d.id}`", d.where, d.sentence, d.entry, d.shipped) for d in DECISIONS.values())
    switches = ((f"`{s.id}`", ", ".join(s.fits), s.sentence, s.entry, s.shipped) for s in SWITCHES.values())
    parts = (
        section(
            "How much `rebalance check` searches",
            "",
            table(
                ("`--profile`", "scenarios, eager", "cooperative", "along each dimension",
                 "random combinations", "large", "the crowd"),
                searches,
            ),
        ),
        groups(),
        section(
            "Releases of clients",
            "`--release` of `explore`, `upgrade`, `bugs`, `campaign` and `conform`. The "
            "last column has the switches that are on; they are listed below.",
            table(("profile", "about", "default assignors", "otherwise than specified"), clients),
        ),
        section(
            "Releases of brokers",
            "`--broker`.",
            table(("profile", "about", "otherwise than specified"), brokers),
        ),
        section(
            "Switches of the protocol",
            "`--switch` of `explore` and `campaign`. *Entry* is the bug that it stands for: `rebalance bugs "
            "ENTRY`.",
            table(("switch", "in the", "what is done", "entry", "shipped in"), decisions),
        ),
        section(
            "Switches of assignors",
            "`rebalance check ASSIGNOR+SWITCH`. A switch fits the assignors named; the first shows the "
            "mistake best.",
            table(("switch", "of", "what is done", "entry", "shipped in"), switches),
        ),
    )  # fmt: skip
    return "\n".join(parts)


def groups() -> str:
    """The scenarios of ``rebalance explore``."""
    from rebalance_verifier.explore.groups.scenarios import ALWAYS_POSSIBLE, SCENARIOS
    from rebalance_verifier.model.protocols import FAULTS

    rare = [fault for fault in FAULTS if fault not in ALWAYS_POSSIBLE]

    def kinds(faults: Sequence[str]) -> str:
        if not set(ALWAYS_POSSIBLE) <= set(faults):
            return ", ".join(faults)
        return ", ".join(["every kind that is always possible", *(f for f in faults if f in rare)])

    return section(
        "Groups to explore",
        "`rebalance explore SCENARIO`, with what it takes if nothing else is said. The kinds of faults are "
        f"{', '.join(FAULTS)}; always possible are all but {' and '.join(rare)}.",
        table(
            ("scenario", "is", "members", "partitions", "faults in one run", "of the kinds"),
            ((f"`{s.name}`", s.sentence, s.members, s.partitions, s.budget, kinds(s.faults))
             for s in SCENARIOS.values()),
        ),
    )  # fmt: skip


# -- reference/log-formats.md ----------------------------------------------------------------------------


def log_formats() -> str:
    """The lines of each client and of the broker that an audit reads."""
    from rebalance_verifier.pipeline.audit.sources.events import Kind
    from rebalance_verifier.pipeline.audit.sources.loggers import (
        DONE,
        DROPS,
        EPOCH,
        FETCHES,
        HOLDS,
        LEAVES,
        LOGGED,
        LOSES,
        NAMED,
        REBOOTSTRAPPING,
        REJOINS,
        TARGETED,
    )

    titles = {"java": "Java clients", "librdkafka": "librdkafka", "python": "kafka-python and aiokafka"}
    titles |= {"broker": "Broker", "kgo": "franz-go"}
    marks = {
        DONE: "(the end of a reconciliation)",
        EPOCH: "joined, synced",
        TARGETED: "stable, planned",
        HOLDS: "joined, synced, assigned",
        FETCHES: "assigned",
        DROPS: "revoked",
        REJOINS: "revoked, rebalancing",
        LEAVES: "revoked, leaving",
        LOSES: "reset, lost",
    }
    parts = []
    for source in LOGGED:
        reported = (line for line in source.lines if line.kind not in (None, REBOOTSTRAPPING, NAMED))
        rows = (
            (
                f"`{spoken(one)}`",
                one.kind if one.kind in set(Kind) else marks.get(str(one.kind), Kind.RESET),
                one.releases,
            )
            for one in reported
        )
        parts.append(
            section(titles.get(source.name, source.name), "", table(("message", "event", "releases"), rows))
        )
    return "\n".join(parts)


def spoken(line: KnownLine) -> str:
    """Return the text of a line; of one with fields the message and their names."""
    from rebalance_verifier.pipeline.audit.sources.fields import FieldLine

    if not isinstance(line, FieldLine):
        return message(line.start, line.rest)
    fields = (f"{one.field} ~ {one.pattern.pattern}" if one.pattern else one.field for one in line.fields)
    return f"{line.start}; {', '.join(fields)}"


def message(start: str, rest: str) -> str:
    """The text of a line, with the names of its groups for what they catch.

    >>> message("Joined ", r"in (?P<generation>\\d+)(?: of (?P<group>\\w+))?")
    'Joined in <generation>(?: of <group>)?'
    """
    text, out = rest, start
    while found := re.search(r"\(\?P<([a-z]+)\d?>", text):
        end, depth = found.end(), 1
        for token in re.finditer(r"\\.|\[\^?[^]]*\]|[()]", text[end:]):
            depth += {"(": 1, ")": -1}.get(token[0], 0)
            if not depth:
                end += token.end()
                break
        out, text = out + text[: found.start()] + f"<{found[1]}>", text[end:]
    return (out + text).strip().replace("`", "'")


# -- how-to/run-tlc.md -----------------------------------------------------------------------------------


def tlc() -> str:
    """The finite groups that TLC searches, with what it has to find."""
    from tools.tla.configurations import GROUPS
    from tools.tla.consumer import CONSUMER_GROUPS

    rows = [(f"`{one.name}.cfg`", f"`{one.model}`", one.sentence, one.found) for one in GROUPS]
    rows += [(f"`{one.name}.cfg`", f"`{one.model}`", one.sentence, one.found) for one in CONSUMER_GROUPS]
    return table(("configuration", "module", "is", "TLC finds"), rows)


# -- all of them -----------------------------------------------------------------------------------------

# -- docs/explanation/proof.md ----------------------------------------------------------------------------


def contract() -> str:
    """Each clause of the contract that the proof assumes, and the clauses of the gate it follows from."""
    from rebalance_verifier.specs.classic.boundary import GIVEN
    from rebalance_verifier.specs.classic.contract import LIVENESS, SAFETY
    from rebalance_verifier.specs.classic.gate import COUNTERPARTS

    rows = []
    for name, clause in {**SAFETY, **LIVENESS}.items():
        gates = [f"[`{one}`](../reference/clauses.md)" for one in COUNTERPARTS[name]]
        says = " ".join((clause.__doc__ or "").split("\n\n")[0].split())
        rows.append((f"`{name}`", says, ", ".join(gates) or "-", "; ".join(GIVEN.get(name, {})) or "-"))
    return table(("clause", "says", "follows from", "where"), rows)


def assumptions() -> str:
    """Each assumption of the theorems of each protocol, and the command that shows the run without it."""
    from rebalance_verifier.report.terminal.assumptions import command
    from rebalance_verifier.specs.protocols import PROOFS

    rows = [
        (
            protocol,
            f"`{one.name}`",
            one.of,
            one.sentence.rstrip("."),
            one.theorems or "all",
            f"`{command(one)}`",
        )
        for protocol, proof in PROOFS.items()
        for one in proof.assumptions
    ]
    return table(("protocol", "name", "of", "says", "theorems", "without it"), rows)


def released() -> str:
    """What was observed of Kafka's own code."""
    from rebalance_verifier.model.bugs.observed import OBSERVED

    return released_page.page(OBSERVED)


# -- docs/explanation/hostile-targets.md --------------------------------------------------------------------


def hostile() -> str:
    """What hostile targets try, and what comes of it: the tries of the tests."""
    directory = str(ROOT / "tests" / "gate" / "targets" / "hostile")
    sys.path.insert(0, directory)
    try:
        tries = importlib.import_module("legion").TRIES
    finally:
        sys.path.remove(directory)
    rows = (
        (area, str(function.__doc__), " or ".join(outcome.split("|")))
        for area, outcome, function in tries.values()
    )
    return table(("area", "a target that", "outcome"), rows)


# -- how-to/put-the-gate-into-ci.md, how-to/check-a-java-project-in-ci.md ---------------------------------


def job(kind: str, target: str, *install: str) -> str:
    """The job that `rebalance init` writes where nobody knows how CI gets the suite."""
    (text,) = workflows.files(kind, Project(target=target, python="3.13", install=install)).values()
    return f"```yaml\n{text}```\n"


GENERATED: dict[str, Mapping[str, Callable[[], str]]] = {
    "README.md": {"": results},
    "docs/explanation/hostile-targets.md": {"": hostile},
    "docs/explanation/proof.md": {"assumptions": assumptions, "contract": contract},
    "docs/how-to/check-a-java-project-in-ci.md": {
        kind: partial(job, kind, "java:com.acme.InTurn") for kind in ("maven", "gradle")
    },
    "docs/how-to/put-the-gate-into-ci.md": {
        kind: partial(job, kind, "my_package:MyAssignor", ".") for kind in ("github", "gitlab")
    },
    "docs/how-to/run-tlc.md": {"": tlc},
    "docs/paper/paper.md": {**tables.PARTS, "contract": contract, "tlc": tlc},
    "docs/reference/api.md": {"": public_api},
    "docs/reference/clauses.md": {"": clauses},
    "docs/reference/client-metadata.md": {"": partial(metadata_page.page, table)},
    "docs/reference/command-line.md": {"": command_line},
    "docs/reference/log-formats.md": {"": log_formats},
    "docs/reference/profiles.md": {"": profiles},
    "docs/reference/protocols.md": {"": protocols},
    "docs/results/released.md": {"": released},
}
"""File, from the root of the repository -> part -> what stands in it from its mark to END, or to the end."""

RENDERED = {"docs/paper/paper.html": "docs/paper/paper.md"}
"""File that is made as a whole -> the page that it shows."""

PAGES = (*GENERATED, *RENDERED)


def written(name: str) -> str:
    """The whole file: what is written by hand as it is, and between that what the code says now. Raises
    ValueError where the file has not the mark of a part, or no END before the next one."""
    if name in RENDERED:
        return page.render(written(RENDERED[name]), (ROOT / name).parent)
    text = (ROOT / name).read_text(encoding="utf-8")
    for part, made in GENERATED[name].items():
        head, found, rest = text.partition(mark(part))
        if not found:
            raise ValueError(f"{name} has no line {mark(part).strip()!r}: what is generated goes below it")
        stale, end, tail = rest.partition(END)
        if part and (not end or MARK.partition(":")[0] in stale):
            raise ValueError(f"{name} has no line {END.strip()!r} below {mark(part).strip()!r}")
        text = f"{head}{found}\n{made()}" + (f"\n{END}{tail}" if end else "")
    return text


def main() -> None:
    """Write every page and picture that is not as it should be, and say which."""
    parser = argparse.ArgumentParser(description="Write what in docs/ follows from the code.")
    parser.add_argument("--into", type=Path, default=ROOT, metavar="DIR", help="not here, but below DIR")
    into = parser.parse_args().into
    pictures.main(["--into", str(into / "docs" / "pictures")])
    for name in PAGES:
        file, text = into / name, written(name)
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8", newline="\n")
            print(f"written  {name}")


if __name__ == "__main__":
    main()
