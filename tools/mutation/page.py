"""What is known of the mutants that live, and the page with the score."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from tools.mutation.mutants import MODULES, Mutant
from tools.mutation.trying import KINDS, STRONG, MutantVerdict

GUARDED = "the action's guard asks the same of the same component before"

EQUIVALENT: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        GUARDED,
        (
            "join_group.join_request | always | isinstance(wire, Join)",
            "join_group.abandoned_join | always | isinstance(stray, Join)",
            "coordinator.join_phase_ends | never | group.state is not GroupState.PREPARING",
            "coordinator.sync_request | never | not isinstance(wire, Sync)",
            "coordinator.refuse_sync | always | isinstance(wire, SyncParked)",
            "coordinator.refuse_join | operand dropped | isinstance(wire, JoinParked)",
            "leader.assign | operand dropped | not isinstance(wire, JoinOk)",
            "leader.assign | operand dropped | not wire.leader",
            "member.complete | operand dropped | member.received is None",
            "application.refresh | operand dropped | member.life is Life.UP",
        ),
    ),
    (
        "the function behind this guard asks the same again",
        ("leader._leads | operand dropped | wire.leader",),
    ),
    (
        "what is written is what was read",
        (
            "coordinator.join_phase_ends | write dropped | *wires of (empty, *kept, *wires, *log)",
            "member.receive | write dropped | member of (member, None)",
        ),
    ),
    (
        "asked again of a record that was chosen for it",
        (
            "join_group._replace_static | operand dropped | old.meta is not None",
            "join_group._replace_static | operand dropped | old.meta is not None #2",
        ),
    ),
    (
        "a static member is admitted with its first JoinGroup, so none of its ids is ever pending",
        ("join_group._join_new | always | r.meta is not None",),
    ),
    (
        "whoever is removed makes the group leave CompletingRebalance, so a member that waits is still there",
        ("coordinator.settled | always | record is not None",),
    ),
)
"""Why a mutant cannot be told from the model, and the keys of those that this is true of."""

REASONS: dict[str, str] = {key: reason for reason, keys in EQUIVALENT for key in keys}


def unexplained(verdicts: Mapping[str, MutantVerdict]) -> list[str]:
    """The mutants that nothing was said about, by clause or by reason."""
    weak = [key for key, verdict in verdicts.items() if verdict.kind not in STRONG]
    return [key for key in weak if key not in REASONS]


def stale(verdicts: Mapping[str, MutantVerdict], everything: bool) -> list[str]:
    """Reasons given for a mutant that is killed, or that there is no more."""
    gone = [key for key in REASONS if everything and key not in verdicts]
    return gone + [key for key in REASONS if key in verdicts and verdicts[key].kind in STRONG]


HEAD = """# Mutation score of the model

Made by `python -m tools.mutation` (`--help` says more); the mutants and the battery are described there.
One mutant is one guard negated or dropped, one operand of a condition or of a set expression dropped, one
field, statement, step or write dropped. {tried} of {all} mutants were tried,
in {cpu:.0f} s of CPU time; if not all, they are a random sample.

{killed} are killed ({score:.1f} % of those that are not equivalent), {equivalent} are equivalent for a reason
that is given below, {open} are open. What is asked of one ends with the first thing that tells it from
the model: a test of single steps; then on the battery a breach of a clause, a run that does not settle, a
fault that is for nothing, a witness or an action that is never reached any more, a switched-on mistake that
is not found any more; then a step that is none of the logic. What only makes the space larger is counted
apart and not as killed.
"""


def report(tried: Sequence[Mutant], verdicts: Mapping[str, MutantVerdict], total: int) -> str:
    """tools/mutation/mutation.md."""
    by_kind = Counter(verdict.kind for verdict in verdicts.values())
    killed = sum(by_kind[kind] for kind in STRONG)
    live = [mutant for mutant in tried if verdicts[mutant.key].kind not in STRONG]
    reasoned = [mutant for mutant in live if mutant.key in REASONS]
    still = [mutant for mutant in live if mutant.key not in REASONS]
    lines = [
        HEAD.format(
            tried=len(tried), all=total, cpu=sum(v.seconds for v in verdicts.values()), killed=killed,
            score=100 * killed / max(1, len(tried) - len(reasoned)), equivalent=len(reasoned),
            open=len(still),
        ),
        "## How they end\n", "| end | mutants | |", "|---|---|---|",
        *(f"| {kind} | {by_kind[kind]} | {sentence} |" for kind, sentence in KINDS.items()),
        "\n## By module\n", "| module | mutants | killed | equivalent | open |", "|---|---|---|---|---|",
    ]  # fmt: skip
    for module in MODULES:
        counted = [sum(mutant.module == module for mutant in some) for some in (tried, live, reasoned, still)]
        lines.append(f"| {module} | {counted[0]} | {counted[0] - counted[1]} | {counted[2]} | {counted[3]} |")
    lines += ["\n## By kind\n", "| kind | mutants | killed |", "|---|---|---|"]
    for kind in sorted({mutant.kind for mutant in tried}):
        of = [mutant for mutant in tried if mutant.kind == kind]
        lines.append(f"| {kind} | {len(of)} | {sum(verdicts[m.key].kind in STRONG for m in of)} |")
    lines += ["\n## What kills them\n", "| clause, witness or error | how | mutants |", "|---|---|---|"]
    killers = Counter((v.by, v.kind) for v in verdicts.values() if v.kind in STRONG)
    lines += [f"| {by} | {kind} | {n} |" for (by, kind), n in sorted(killers.items(), key=_most)]
    if reasoned:
        lines += ["\n## Equivalent, and why\n", "| mutant | reason |", "|---|---|"]
        lines += [f"| {_row(mutant)} | {REASONS[mutant.key]} |" for mutant in reasoned]
    if still:
        lines += ["\n## Open\n", "| mutant | end | where | same counts |", "|---|---|---|---|"]
        for mutant in still:
            end = verdicts[mutant.key]
            lines.append(f"| {_row(mutant)} | {end.kind} {end.by} | {end.where} | {end.same} |")
    return "\n".join(lines) + "\n"


def _most(item: tuple[tuple[str, str], int]) -> tuple[int, tuple[str, str]]:
    return -item[1], item[0]


def _row(mutant: Mutant) -> str:
    text = f"`{mutant.module}.py:{mutant.line}` {mutant.key.partition('.')[2]}".replace(" | ", ", ")
    return text.replace("|", "\\|")
