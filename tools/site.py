"""The result pages as one static site: ``python -m tools.site --out DIR``.

Made of what ``make results`` has written, docs/results: a page with every broken clause of every client,
assignor and release, which can be filtered, and a page for each client with its counterexamples, drawn. The
pages ask for nothing and are whole without their script, as all pages of the suite.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path

from rebalance_verifier.base.text import count
from rebalance_verifier.gate.search import counterexamples
from rebalance_verifier.gate.search.counterexamples import Trace
from rebalance_verifier.properties.assignors.clauses import CLAUSES
from rebalance_verifier.report.diagram.scenario_diagram import of_trace
from rebalance_verifier.report.html import page
from rebalance_verifier.report.html.page import Markup, tag

from tools.arguments import directory

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "results"

BACK = "[All implementations](README.md)"
"""How a page of a client begins."""

MAX_BYTES = 64 * 1024 * 1024
"""Rows and bytes have no bound here: what is shown was written by the suite."""

_ROW = re.compile(r"^\| (?P<clause>[\w/]+)-(?P<protocol>\w+) \((?P<level>\w+)\) \| (?P<cells>.*) \|$")
_HEAD = re.compile(r"^\| clause \| (?P<releases>.*) \|$")
_RED = re.compile(r"\[X\]\(#(?P<id>\w+)\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class RedCell:
    """One clause that one release of an assignor breaks; ``trace`` is the id of its counterexample."""

    client: str
    assignor: str
    release: str
    clause: str
    protocol: str
    level: str
    trace: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientPage:
    """What a page of the results says of one client. ``name`` is that of the file, ``judged`` are
    (assignor, releases)."""

    name: str
    client: str
    by: str
    judged: tuple[tuple[str, tuple[str, ...]], ...]
    cells: tuple[RedCell, ...]


def read(path: Path) -> Iterator[ClientPage]:
    """The clients of a page in Markdown; none of one that is no such page."""
    text = path.read_text(encoding="utf-8")
    if not text.startswith(BACK):
        return
    by = next((line for line in text.splitlines() if line.startswith("By rebalance-verifier")), "")
    for part in re.split(r"^# ", text, flags=re.M)[1:]:
        client = part.partition("\n")[0].replace("\\", "")
        judged: list[tuple[str, tuple[str, ...]]] = []
        cells: list[RedCell] = []
        for section in re.split(r"^## ", part, flags=re.M)[1:]:
            assignor, *lines = section.splitlines()
            releases: tuple[str, ...] = ()
            for line in lines:
                if head := _HEAD.match(line):
                    releases = tuple(head["releases"].split(" | "))
                    judged.append((assignor, releases))
                elif row := _ROW.match(line):
                    cells += _red(row, client, assignor, releases)
        yield ClientPage(name=path.stem, client=client, by=by, judged=tuple(judged), cells=tuple(cells))


def _red(row: re.Match[str], client: str, assignor: str, releases: Sequence[str]) -> Iterator[RedCell]:
    named = {name: row[name] for name in ("clause", "protocol", "level")}
    for release, cell in zip(releases, row["cells"].split(" | "), strict=True):
        if red := _RED.match(cell):
            yield RedCell(client=client, assignor=assignor, release=release, trace=red["id"], **named)


def site(results: Path) -> dict[str, str]:
    """The pages by the names of their files."""
    clients = [one for path in sorted(results.glob("*.md")) for one in read(path)]
    made = {"index.html": _index(clients)}
    for name, pages in groupby(clients, key=lambda one: one.name):
        made[f"{name}.html"] = _client(list(pages), results / "traces")
    return made


def _index(clients: Sequence[ClientPage]) -> str:
    cells = [cell for one in clients for cell in one.cells]
    judged = sum(len(releases) for one in clients for _, releases in one.judged)
    line = (
        f"{count(judged, 'target')} of {count(len(clients), 'client')}, {count(len(cells), 'broken clause')}"
    )
    return page.document(
        "rebalance-verifier: results",
        page.headline(f"RESULTS  {line}", "info"),
        page.section("clients", "Clients", _clients(clients)),
        page.section("clauses", "What is broken", _cells(clients)),
        foot=" ".join(dict.fromkeys(one.by for one in clients)),
    )


def _clients(clients: Sequence[ClientPage]) -> Markup:
    heads = (*map(_filter, ("client", "assignor")), "releases judged", "newest", "breaks in the newest")
    rows = []
    for one in clients:
        for assignor, releases in one.judged:
            here = [c for c in one.cells if (c.assignor, c.release) == (assignor, releases[-1])]
            broken = page.join(*(part for c in here for part in (_linked(one, c, c.clause), " ")))
            link = tag("a", one.client, href=f"{one.name}.html")
            rows.append((link, assignor, count(len(releases), "release"), releases[-1], broken or "nothing"))
    return page.table("Clients", heads, rows, most=MAX_BYTES)


def _cells(clients: Sequence[ClientPage]) -> Markup:
    heads = [_filter(name) for name in ("clause", "level", "client", "assignor", "release", "protocol")]
    rows = [
        (_linked(one, c, c.clause), c.level, c.client, c.assignor, c.release, c.protocol)
        for one in clients
        for c in one.cells
    ]
    return page.table("What is broken", heads, rows, most=MAX_BYTES)


def _filter(name: str) -> Markup:
    """A head by whose values the rows can be chosen."""
    return tag("th", name, scope="col", data_filter=True)


def _linked(one: ClientPage, cell: RedCell, label: str) -> Markup:
    return tag("a", label, href=f"{one.name}.html#{cell.trace}")


def _client(pages: Sequence[ClientPage], traces: Path) -> str:
    """The page of one client, or of those that share one: what is broken where, then each counterexample."""
    name = " and ".join(dict.fromkeys(one.client for one in pages))
    cells = [cell for one in pages for cell in one.cells]
    shown = dict.fromkeys(cell.trace for cell in cells)
    articles = [_counterexample(id_, [c for c in cells if c.trace == id_], traces) for id_ in shown]
    back = tag("p", tag("a", "All clients", href="index.html"))
    return page.document(
        f"rebalance-verifier: {name}",
        page.join(tag("h1", name), back),
        page.section("clauses", "What is broken", _cells(pages)),
        page.section("counterexamples", "Counterexamples", *articles),
        foot=pages[0].by,
    )


def _counterexample(id_: str, cells: Sequence[RedCell], traces: Path) -> Markup:
    clause = CLAUSES[cells[0].clause]
    releases = ", ".join(dict.fromkeys(f"{c.assignor} {c.release}" for c in cells))
    path = traces / f"{id_}.json"
    facts: list[tuple[object, object]] = [
        ("rule", f"{clause.sentence} ({clause.rule})"),
        ("source", page.link(clause.link) if clause.link else ""),
        ("releases", releases),
    ]
    drawn: list[Markup] = []
    summary = ""
    if path.exists():
        trace: Trace = counterexamples.load(path)
        summary = trace.summary
        facts += [
            ("because", page.listed(trace.because)),
            ("expected", trace.expected),
            ("actual", trace.actual),
        ]
        facts += [("replay", page.code(f"rebalance replay docs/results/traces/{id_}.json"))]
        if trace.calls:
            label = f"Who owned what: {clause.id} of {cells[0].client} {cells[0].assignor} {cells[0].release}"
            drawn.append(page.figure(label, partial(of_trace, trace), f"f-{id_}"))
    mark = page.badge("✗ BROKEN", "bad" if clause.level != "quality" else "info")
    return page.article(
        id_, mark, f"{clause.id} {cells[0].assignor}", f"{cells[0].level}, {cells[0].protocol}",
        tag("p", page.text(summary, 600), class_="lead") if summary else "", page.facts(facts), *drawn,
        mild=clause.level == "quality",
    )  # fmt: skip


def main(argv: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.site", description=__doc__)
    parser.add_argument("--out", type=Path, metavar="DIR", required=True, help="where the pages are written")
    parser.add_argument(
        "--results", type=directory, metavar="DIR", default=RESULTS, help="what they are made of"
    )
    options = parser.parse_args(argv)
    if len(made := site(options.results)) == 1:
        parser.error(f"--results: {str(options.results)!r} has no page of a client")
    try:
        options.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(f"--out: {error}")
    for name, text in made.items():
        (options.out / name).write_text(text, encoding="utf-8")
        print(f"written  {options.out / name}")


if __name__ == "__main__":
    main()
