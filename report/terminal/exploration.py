"""What an exploration found, as text and as JSON: the verdict first, then the traces, then the figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import Any

from rebalance_verifier.base.saved import SUITE
from rebalance_verifier.base.text import clean, count, fold, page_width
from rebalance_verifier.base.verdict import Verdict
from rebalance_verifier.explore.engine.search import Stop
from rebalance_verifier.explore.groups.exploration import ExplorationViolation, Explored
from rebalance_verifier.explore.groups.runs import SavedRun
from rebalance_verifier.explore.liveness.liveness import Liveness
from rebalance_verifier.model.bugs.profiles import AS_SPECIFIED, group_options, group_title
from rebalance_verifier.properties.group.clauses import CONVERGES, PROBING_ENDS
from rebalance_verifier.properties.group.own import clause_named
from rebalance_verifier.report.frame import labelled, packed, painted
from rebalance_verifier.report.terminal.table import table
from rebalance_verifier.traces.runs import run_id, step_out, steps_of

SCHEMA = 1


def render(exploration: Explored, paths: dict[str, str], *, color: bool = False, page: str = "") -> str:
    """Return the whole report. ``paths``: id of a run -> the file it was saved to; ``page``: the HTML
    report."""
    lines = [*fold(headline(exploration), page_width()), *_header(exploration)]
    for one in (*exploration.violations, *exploration.witnessed):
        lines += ["", *block(one, paths)]
    lines.append("")
    for name, text in figures(exploration):
        lines += labelled(name, text)
    if exploration.checkpoint:
        lines += labelled("go on", "the same command with --resume, and where it was bounded a larger bound")
    if page:
        lines += labelled("report", page)
    lines.append(f"{exploration.verdict.upper()}, exit {int(exploration.exit)}")
    return painted(lines, color)


def headline(exploration: Explored) -> str:
    """Return the verdict and what it rests on."""
    start = exploration.verdict.upper()
    name = f"{exploration.plan.origin.get('scenario', 'group')} ({about(exploration.plan.origin)})"
    states = count(exploration.coverage.distinct, "state")
    if exploration.verdict is Verdict.VIOLATION:
        clauses = ", ".join(violation.clause for violation in exploration.violations)
        return f"{start}  {name} breaks {clauses}"
    if exploration.verdict is Verdict.INCONCLUSIVE:
        return f"{start}  {name} is not judged: {_reason(exploration)}"
    return f"{start}  {name} satisfies {count(exploration.clause_count, 'clause')} in all {states}"


def _reason(exploration: Explored) -> str:
    if exploration.missed:
        return f"never shown: {', '.join(exploration.missed)}"
    if exploration.search is None:
        return (
            f"nothing broke in {count(exploration.coverage.distinct, 'state')} of walks, which are no proof"
        )
    return (
        f"the search ended after {count(exploration.coverage.distinct, 'state')} ({exploration.search.stop})"
    )


def about(origin: Mapping[str, Any]) -> str:
    """Say of which coordinator and clients a run is, and of which switches besides."""
    switches = f", with {', '.join(origin['switches'])}" if origin.get("switches") else ""
    return group_title(*_profiles(origin)) + switches


def other(origin: Mapping[str, Any]) -> str:
    """Say how to ask for the other coordinator and clients."""
    return group_options(*_profiles(origin))


def _profiles(origin: Mapping[str, Any]) -> tuple[Sequence[str], str]:
    return origin.get("profiles", (AS_SPECIFIED,)), origin.get("broker", AS_SPECIFIED)


def group(exploration: Explored) -> dict[str, str]:
    """Return the group that was searched, in the words of the options."""
    return settings(exploration.plan.origin)


def settings(origin: Mapping[str, Any]) -> dict[str, str]:
    """Return where a run comes from, in the words of the options."""
    return {key: spelled(value) for key, value in origin.items() if key != "faults"}


def _header(exploration: Explored) -> list[str]:
    parts = [f"rebalance {version('rebalance-verifier')}"]
    parts += [f"{key}={value}" for key, value in group(exploration).items()]
    parts.append(method(exploration))
    more = (("other", other(exploration.plan.origin)), ("faults", faults(exploration)))
    return [*packed(parts, page_width()), *(line for row in more for line in labelled(*row))]


def faults(exploration: Explored) -> str:
    """Return what may go wrong, and how often."""
    budget = exploration.plan.origin.get("budget", 0)
    kinds = ", ".join(exploration.plan.setup.faults) or "none"
    return f"at most {budget} of: {kinds}" if budget else "none"


def spelled(value: object, between: str = ",") -> str:
    """Return a value of an option, of several with ``between`` them."""
    return between.join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def method(exploration: Explored) -> str:
    """Return how it was searched."""
    plan = exploration.plan
    if plan.strategy == "swarm":
        return f"swarm={plan.walks}x{plan.steps}  seed={plan.seed}"
    if plan.strategy == "depth":
        return f"depth-first={plan.steps}"
    return f"engine={plan.engine}" + "  symmetry" * plan.symmetry + "  exact" * plan.exact


def block(violation: ExplorationViolation, paths: dict[str, str]) -> list[str]:
    """Return everything about one broken clause: the rule, then its traces."""
    clause = clause_named(violation.clause)
    witness = clause.kind == "sometimes"
    kind = "WITNESS" if witness else "VIOLATION"
    lines = fold(f"{kind} {clause.id}  {violation.runs[0].sentence or violation.sentence}", page_width())
    lines += [] if witness else labelled("level", clause.level.value)
    lines += labelled("rule", f"{clause.sentence} ({clause.source})")
    for number, run in enumerate(violation.runs, 1):
        if len(violation.runs) > 1:
            lines += ["", f"  trace {number} of {len(violation.runs)}"]
        lines += ["", *run_lines(run), ""]
        lines += labelled("length", length(violation, run))
        if (name := run_id(run)) in paths:
            lines += labelled("replay", f"rebalance replay {name}")
            lines += labelled("trace", paths[name])
    return lines


def length(violation: ExplorationViolation, run: SavedRun) -> str:
    """Return how long a trace is, and whether it could be shorter."""
    end = "; no run is shorter" if violation.shortest else "; shorter ones were not ruled out"
    again = 0 if run.loop is None else len(run.events) - run.loop
    loop = f", of which {again} come again and again" if again else ""
    return count(len(run.events), "step") + loop + end


def run_lines(run: SavedRun) -> list[str]:
    """Return the step table of a run."""
    return [clean(line) for line in table(steps_of(run), run.loop)]


def figures(exploration: Explored) -> Iterator[tuple[str, str]]:
    """Yield what was searched, how surely, what was seen on the way: names and sentences."""
    cover = exploration.coverage
    states = f"{cover.distinct:,} distinct, {cover.generated:,} generated, depth {cover.depth}"
    search = exploration.search
    if search is not None:
        states += f", mean out-degree {search.mean:.2f} ({search.least} to {search.most})"
        if search.unreduced != search.distinct:
            states += f"; they stand for {search.unreduced:,}"
        yield "states", states
        sure = "states compared exactly" if exploration.plan.exact else _chance(exploration)
        ended = {
            Stop.COMPLETE: "complete",
            Stop.BREACH: f"complete up to the depth of the first violation{_of_clause(exploration)}",
            Stop.INTERRUPTED: "interrupted, not complete",
        }
        yield "search", f"{ended.get(search.stop, f'up to the {search.stop}')}; {sure}"
        if search.cpu > 0:
            rate = f"{search.distinct / search.cpu:,.0f} states per CPU second"
            yield "speed", f"{rate}, {search.bytes_per_state:,.0f} bytes per state, {search.cpu:.2f} s"
    else:
        yield "states", states + "; one that several walks saw counts several times"
    if exploration.may_be_worse:
        yield "worse", f"not ruled out: {_searched_on(exploration)}"
    never = _actions(cover.never_taken)
    yield "actions", f"never enabled: {', '.join(never)}" if never else "each was enabled at least once"
    shown = exploration.shown or {name: 0 for name, n in cover.witnesses.items() if n}
    at = [f"{name} ({depth})" if depth else name for name, depth in shown.items()]
    yield "reached", ", ".join(at) or "no witness"
    if exploration.missed:
        yield "missed", ", ".join(exploration.missed)
    yield from _live(exploration.lively, exploration.unasked)


def _of_clause(exploration: Explored) -> str:
    """Return of which clause the violation is that ended the search, where milder ones did not."""
    if exploration.may_be_worse:
        return ", and on from there"
    of_clause = f" of {exploration.violations[0].clause}" if len(exploration.violations) > 1 else ""
    return f"{of_clause} (--go-on searches on)"


def _searched_on(exploration: Explored) -> str:
    """Return how far was looked for something worse than what is broken, and how to look further."""
    none = "nothing worse than the above is broken in what was seen"
    if exploration.search is None:
        return f"{none}; more --walks see more, and a search without --dfs or --swarm sees every state"
    if exploration.search.stop is Stop.BREACH:
        return f"{none}, and the search went no further; --go-on searches to the end"
    return f"{none}, and the search ended before its end ({exploration.search.stop})"


def _chance(exploration: Explored) -> str:
    if exploration.plan.engine == "plain":
        return "states compared exactly"
    assert exploration.search is not None
    return f"hash-collision probability < {exploration.search.collision:.0e}"


_SETTLES = {
    CONVERGES.id: "every fair run settles once faults stop",
    PROBING_ENDS.id: "every fair run comes to its last probing rebalance, each task where it belongs",
}
"""What holds once faults stop, by its clause."""


def _live(lively: Liveness | None, unasked: str) -> Iterator[tuple[str, str]]:
    if lively is None:
        yield "settles", unasked
        return
    for settling in lively.settling:
        word = _SETTLES[settling.clause] if settling.holds else f"no: see {settling.clause}"
        yield "settles", word
    for counted in lively.counts:
        most = "no bound to the" if counted.reached is None else f"at most {counted.reached}"
        fair = "; fair runs have one" if counted.reached is None and not counted.fair else ""
        yield "rounds", f"{most} further rebalances after the last fault, {counted.most} may follow{fair}"


def _actions(never: Sequence[tuple[str, int]]) -> list[str]:
    """Return names of actions that nobody could take; members are not told apart."""
    return list(dict.fromkeys(name for name, _ in never))


def data(exploration: Explored, paths: dict[str, str]) -> dict[str, Any]:
    """Return the result as plain JSON values; what depends on the machine it ran on is below ``speed``."""
    search, lively = exploration.search, exploration.lively
    report: dict[str, Any] = {
        "schema": SCHEMA,
        "suite": {"name": SUITE, "version": version("rebalance-verifier")},
        **exploration.plan.origin,
        "about": about(exploration.plan.origin),
        "way": exploration.plan.strategy,
        "engine": exploration.plan.engine,
        "symmetry": exploration.plan.symmetry,
        "verdict": exploration.verdict.value,
        "exit": int(exploration.exit),
        "states": {
            "distinct": exploration.coverage.distinct,
            "generated": exploration.coverage.generated,
            "depth": exploration.coverage.depth,
        },
        "never_taken": _actions(exploration.coverage.never_taken),
        "reached": dict(exploration.coverage.witnesses),
        "missed": list(exploration.missed),
        "violations": [_violation(violation, paths) for violation in exploration.violations],
    }
    if exploration.may_be_worse:
        report["may_be_worse"] = True
    if search is not None:
        report["stop"] = search.stop.value
        report["states"] |= {
            "mean": round(search.mean, 4),
            "levels": list(search.levels),
            "stands_for": search.unreduced,
            "collision": 0.0
            if exploration.plan.exact or exploration.plan.engine == "plain"
            else search.collision,
        }
        if search.cpu > 0:  # which nobody knows of a cluster
            report["speed"] = {
                "cpu_seconds": round(search.cpu, 3),
                "bytes_per_state": round(search.bytes_per_state, 1),
            }
    if lively is not None:
        report["liveness"] = {
            "settles": all(one.holds for one in lively.settling),
            "rebalances": [one.reached for one in lively.counts],
        }
    return report


def _violation(violation: ExplorationViolation, paths: dict[str, str]) -> dict[str, Any]:
    clause = clause_named(violation.clause)
    return {
        "clause": clause.id,
        "level": clause.level.value,
        "rule": clause.sentence,
        "sentence": violation.sentence,
        "count": violation.count,
        "shortest": violation.shortest,
        "traces": [
            {
                "id": (name := run_id(run)),
                "path": paths.get(name, ""),
                "length": len(run.events),
                **({} if run.loop is None else {"loop": run.loop}),
                "steps": [step_out(step) for step in steps_of(run)],
            }
            for run in violation.runs
        ],
    }
