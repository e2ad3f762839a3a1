"""What in the paper follows from the code, and what was measured elsewhere, as tables in Markdown.

Nothing is proved or explored here: obligations are counted, not discharged. What was measured stands in pages
that have commands of their own, and is taken from there.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from rebalance_verifier.explore.groups.bugs import CLASSIC_SHOWN, SHOWN
from rebalance_verifier.model.bugs.catalogue import CATALOGUE, entries_of
from rebalance_verifier.model.bugs.decisions import DECISIONS
from rebalance_verifier.model.bugs.profiles import BROKERS, CLIENTS
from rebalance_verifier.model.classic.group import FAULTS
from rebalance_verifier.properties.group import clauses, consumer
from rebalance_verifier.report.markup import table
from rebalance_verifier.specs.classic.convergence import CALM, MEASURE
from rebalance_verifier.specs.classic.necessity.examine import Variation, steps_of
from rebalance_verifier.specs.classic.necessity.necessity import NECESSITY
from rebalance_verifier.specs.classic.proof import proof
from rebalance_verifier.specs.classic.safety import INVARIANTS, specification
from rebalance_verifier.specs.logic.specification import Theorem

ROOT = Path(__file__).parents[2]

RELATED = ROOT / "docs" / "paper" / "related.toml"
"""What others have done: written by hand, each confirmed to exist."""


@cache
def proved() -> tuple[Theorem, ...]:
    """All theorems, built once: that takes seconds."""
    return proof()


def _table(head: Sequence[str], rows: Iterator[Sequence[object]]) -> str:
    lines = table(head, ((str(cell).replace("|", "\\|") for cell in row) for row in rows))
    return "\n".join(lines)


# -- the proof -----------------------------------------------------------------------------------------


def theorems() -> str:
    """Return each theorem: its statement, those it depends on, its number of obligations; and their sum."""

    def rows() -> Iterator[Sequence[object]]:
        for one in proved():
            yield one.name, one.sentence, ", ".join(one.upon) or "-", f"{one.obligations:,}"
        yield "*all*", "", "", f"{sum(one.obligations for one in proved()):,}"

    return _table(("theorem", "statement", "depends on", "obligations"), rows())


def invariants() -> str:
    """Each invariant of safety: by how many obligations it is kept, and where the outline says it is used."""
    kept = Counter(goal for one in proved() if one.name == "invariants" for _, goal in one.goals)
    used = uses()

    def rows() -> Iterator[Sequence[object]]:
        for number, name in enumerate(INVARIANTS, 1):
            others = sorted(theorem for theorem in used[name] if theorem != "invariants")
            yield number, name, kept[name], used[name]["invariants"] or "-", ", ".join(others) or "-"

    return _table(("", "invariant", "obligations", "used for other invariants", "used for theorems"), rows())


def uses() -> Mapping[str, Counter[str]]:
    """Invariant -> theorem -> how many different goals of it the outline rests upon that invariant."""
    found: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for theorem in proved():
        for case, goal in theorem.goals:
            for name in case.near.get(goal, ()):
                if name in INVARIANTS and name != goal:
                    found[name].add((theorem.name, goal))
    return {name: Counter(theorem for theorem, _ in found[name]) for name in INVARIANTS}


# -- assumptions ---------------------------------------------------------------------------------------


def needed() -> str:
    """The decisions without which something proved is lost: what fails first, what breaks, after how long."""

    def rows() -> Iterator[Sequence[object]]:
        for one in needed_variations():
            action, goal = one.obligations[0]
            refutation = one.refutation
            assert refutation is not None
            fails = f"{goal}, after `{action}`" if action else f"{goal} does not follow"
            events = len(steps_of(refutation.path))
            yield f"`{one.name}`", one.sentence, fails, f"{refutation.goal} (`{refutation.clause}`)", events

    return _table(
        ("decision", "alternative", "obligation that fails", "broken property", "steps of the run"), rows()
    )


def kept_otherwise() -> str:
    """The decisions that safety does without, and the clause of a group that they are kept for."""

    def rows() -> Iterator[Sequence[object]]:
        for one in NECESSITY.values():
            if not one.refutation:
                clause, _, why = one.kept.partition(": ")
                yield f"`{one.name}`", one.sentence, f"`{clause}`", why

    return _table(("decision", "alternative", "broken clause", "reason"), rows())


def needed_variations() -> tuple[Variation, ...]:
    """Those that a run from the beginning refutes."""
    return tuple(one for one in NECESSITY.values() if one.refutation)


# -- bugs ----------------------------------------------------------------------------------------------


def catalogue() -> str:
    """Every entry: what happens, in whose code, in which releases, and what switches it on here."""

    def rows() -> Iterator[Sequence[object]]:
        for one in CATALOGUE.values():
            switches = ", ".join(f"`{switch}`" for switch in one.switches) or "-"
            yield one.id, one.title, one.project, one.affected, switches

    return _table(("bug", "title", "project", "releases", "switches"), rows())


def current() -> str:
    """What the newest Java client and broker decide otherwise than specified, as the catalogue has it."""

    def rows() -> Iterator[Sequence[object]]:
        for switch in shipped_now():
            entry = entries_of(switch)[0]
            where = DECISIONS[switch].where
            yield entry.id, entry.title, f"`{switch}`", where, f"`{SHOWN[switch].clause}`"

    return _table(("bug", "title", "switch", "program", "broken clause"), rows())


def shipped_now() -> tuple[str, ...]:
    """The switches of the newest client and broker in the classic protocol, in the catalogue's order."""
    profiles = CLIENTS["java-current"].decisions | BROKERS["broker-current"].decisions
    switches = (switch for one in CATALOGUE.values() for switch in one.switches)
    return tuple(dict.fromkeys(switch for switch in switches if switch in profiles & set(CLASSIC_SHOWN)))


# -- what was measured ---------------------------------------------------------------------------------


def explored() -> str:
    """How many states the explorer saw."""
    columns = ("members x partitions", "faults", "steps", "engine", "states", "stand for", "depth", "CPU s")
    return lifted("tools/benchmarks/explore.md", columns)


def on_broken_connections() -> str:
    """The same where connections break, as corrected and as shipped."""
    columns = (
        "scenario",
        "members x partitions",
        "faults",
        "protocol",
        "breaks",
        "states",
        "stand for",
        "depth",
    )
    return lifted("tools/benchmarks/explore.md", columns, "Connections that break")


def shipped() -> str:
    """What is proved of releases as shipped."""
    return lifted("docs/results/shipped.md")


def walked() -> str:
    """How far the model and Kafka's own code were walked through side by side."""
    return lifted("docs/explanation/lockstep.md", ("what", "steps", "disagreements"), "What was walked")


def lifted(page: str, columns: Sequence[str] = (), heading: str = "") -> str:
    """The first table of a page (below a heading), or those columns of it."""
    text = (ROOT / page).read_text(encoding="utf-8")
    text = text[text.index(f"## {heading}\n") :] if heading else text
    found = re.search(r"^\|.*\|\n\|[-| ]+\|\n(?:\|.*\|\n)+", text, re.M)
    if not found:
        raise ValueError(f"{page} has no table")
    head, _, *rows = (
        [cell.strip() for cell in line.strip("|").split(" | ")] for line in found[0].splitlines()
    )
    places = [head.index(column) for column in columns or head]
    return "\n".join(table([head[i] for i in places], ([row[i] for i in places] for row in rows)))


# -- figures -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Figure:
    """How many there are of something, and what counts them."""

    what: str
    count: int
    source: str


def figures() -> str:
    """How many there are of what the text speaks of."""
    rows = ((one.what, f"{one.count:,}", one.source) for one in counted())
    return _table(("figure", "number", "source"), rows)


@cache
def counted() -> tuple[Figure, ...]:
    """Each figure that the code has, or a page that a command writes."""
    spec = specification()
    mutants, tried, killed, left = _mutants()
    prove, necessity = "`rebalance list obligations`", "`rebalance prove --necessity`"
    calm, mutation = "`specs/classic/convergence.py`", "`python -m tools.mutation`"
    return (
        Figure("theorems", len(proved()), prove),
        Figure("obligations", sum(one.obligations for one in proved()), prove),
        Figure("actions", len(spec.actions), "`specs/classic`"),
        Figure("actions that are faults", sum(one.fault for one in spec.actions), "`specs/classic`"),
        Figure("relations and functions of a state", len(spec.vocabulary.mutable), "`vocabulary.py` there"),
        Figure("invariants", len(INVARIANTS), "`specs/classic/safety.py`"),
        Figure("conditions of calm", len(CALM), calm),
        Figure("ranking sets", len(MEASURE), calm),
        Figure("variations", len(NECESSITY), necessity),
        Figure("variations that are needed", len(needed_variations()), necessity),
        Figure(
            "clauses of a group", len(clauses.TABLE) - len(consumer.TABLE), "`properties/group/clauses.py`"
        ),
        Figure("kinds of faults", len(FAULTS), "`rebalance list faults`"),
        Figure("entries of the catalogue", len(CATALOGUE), "`model/bugs/catalogue.toml`"),
        Figure("switches of the group", len(CLASSIC_SHOWN.keys() & DECISIONS), "`explore/groups/bugs.toml`"),
        Figure("switches of the newest release", len(shipped_now()), "`rebalance list releases`"),
        Figure("mutants", mutants, mutation),
        Figure("mutants that were tried", tried, mutation),
        Figure("mutants that were killed", killed, mutation),
        Figure("mutants that are open", left, mutation),
    )


def _mutants() -> tuple[int, ...]:
    """How many mutants there are, were tried, were killed, are open."""
    text = (ROOT / "tools" / "mutation" / "mutation.md").read_text(encoding="utf-8")
    found = re.search(r"(\d+) of (\d+) mutants were tried.*?(\d+) are killed.*?(\d+) are open", text, re.S)
    if not found:
        raise ValueError("tools/mutation/mutation.md does not say how many mutants were tried and killed")
    tried, mutants, killed, left = map(int, found.groups())
    return mutants, tried, killed, left


# -- related work --------------------------------------------------------------------------------------


def related() -> str:
    """What others have done, what it is about, and what is different here."""

    def rows() -> Iterator[Sequence[object]]:
        for one in tomllib.loads(RELATED.read_text(encoding="utf-8"))["work"]:
            where = f"[{one['title']}]({one['url']})"
            yield f"{one['authors']}: {where}. {one['published']}", one["about"], one["here"]

    return _table(("work", "subject", "difference here"), rows())


PARTS: Mapping[str, Callable[[], str]] = {
    "theorems": theorems,
    "figures": figures,
    "invariants": invariants,
    "needed": needed,
    "kept": kept_otherwise,
    "shipped": shipped,
    "explored": explored,
    "broken": on_broken_connections,
    "walked": walked,
    "current": current,
    "catalogue": catalogue,
    "related": related,
}
"""Parts of docs/paper/paper.md, by their name in its marks."""
