"""What is known of the mutants that live, and the page with the score."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from tools.mutation.clauses import clause_mutants
from tools.mutation.guards import GuardMutant, guard_mutants
from tools.mutation.mutants import MODULES, Mutant, mutants
from tools.mutation.trying import KINDS, STRONG, MutantVerdict

GUARDED = "the action's guard asks the same of the same component before"

NOT_STORED = (
    "coordinator.sync_not_stored | write dropped | {} of (budget - 1, prepare(group), *records, *wires, {})"
)
MIDWAY = (
    "application.unsubscribe_midway | write dropped | late of (budget - 1, after, wire, late, group, records)"
)
REQUEST_AND_ERROR = (
    "atomic.atomic | update dropped | request, error = (by_name['join request', who], "
    "_only(by_name['receive', who], Refused))"
)

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
            "application.poll_interval | operand dropped | member.life is Life.HUNG",
            "errors.heartbeat | operand dropped | not beats(member)",
            "member.commit_done | operand dropped | member.committing",
            "member.prepare | operand dropped | _prepares_again(member)",
            "coordinator.in_time | operand dropped | not isinstance(wire, Sync)",
            "environment.bounce | operand dropped | done == last",
            "environment.bounce | operand dropped | 1",
        ),
    ),
    (
        "the function behind this guard asks the same again",
        (
            "leader._leads | operand dropped | wire.leader",
            "member._up | operand dropped | member.life is Life.UP",
            "member._hung | operand dropped | member.life is Life.HUNG",
            "member._beating | operand dropped | beats(member)",
            "member._preparing | operand dropped | _prepares_again(member)",
            "member._answered | operand dropped | not wire.leader",
            "member._received | operand dropped | member.received is not None",
            "coordinator._preparing | operand dropped | group.state is GroupState.PREPARING",
            "coordinator._decides | operand dropped | wire.grants is not None",
            "coordinator.leader_sync | operand dropped | isinstance(wire, Sync)",
            "environment._goes_on | operand dropped | done < len(me.consumer.stages) - 1",
            "environment._goes_on | operand dropped | 1",
            "environment._goes_on | operand dropped | isinstance(done, int)",
            "atomic._only | operand dropped | guard(wire)",
            "coordinator.sync_not_stored | operand dropped | isinstance(wire, Sync)",
            "coordinator.return_not_stored | always | isinstance(before[wire], Join)",
        ),
    ),
    (
        "what is written is what was read",
        (
            "coordinator.join_phase_ends | write dropped | *wires of (empty, *kept, *wires, *log)",
            "coordinator.join_phase_ends | write dropped | *log of (after, *kept, *answers, *log)",
            NOT_STORED.format("*logs", "*logs"),
            NOT_STORED.format("*records", "*logs"),
            NOT_STORED.format("*records", "*stored"),
            MIDWAY,
            "member.receive | write dropped | member of (member, None)",
        ),
    ),
    (
        "asked again of a record that was chosen for it",
        (
            "join_group._replace_static | operand dropped | old.meta is not None",
            "join_group._replace_static | operand dropped | old.meta is not None #2",
            "join_group._replace_static | always | record.meta is not None",
            "join_group.refusal | always | r.meta",
            "coordinator.join_phase_ends | always | record.meta is not None",
            "leader.question_of | always | record.meta is not None #2",
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
    (
        "an empty group has no members, so none of their ids is known anyhow",
        (
            "errors.answer_to | element dropped | GroupState.DEAD of (GroupState.DEAD, GroupState.EMPTY)",
            "join_group.refusal | operand dropped | group.state not in GONE",
        ),
    ),
    (
        "a group that has members and is neither is in a rebalance already",
        ("expiry.removed | operand dropped | group.state in (GroupState.STABLE, GroupState.COMPLETING)",),
    ),
    ("a list of assignors fits itself", ("join_group.refusal | operand dropped | members",)),
    (
        "an id that is only pending has not synced",
        ("expiry.session | operand dropped | record.meta is not None",),
    ),
    ("only static members are carried along", ("expiry._give_up | operand dropped | me.static",)),
    ("no member has no list of assignors", ("environment.bounce | operand dropped | old is not None",)),
    (
        "there is an error where there is no record",
        ("coordinator.sync_request | operand dropped | record is None",),
    ),
    ("a decision that is in time has grants", ("coordinator.settled | operand dropped | ()",)),
    (
        "only the leader's SyncGroup has grants",
        ("coordinator.sync_request | operand dropped | group.leader != me.id(wire.id)",),
    ),
    (
        "whoever did not join and stays is silent, so nobody is there to lead, and nothing comes of it",
        ("coordinator._all_here | never | stays and (not any((record.joined for _, record in inside)))",),
    ),
    ("where the limit is lowered there is one", ("coordinator.over_capacity | operand dropped | 0",)),
    (
        "made, and used only where there is a log",
        (
            "environment._connections | always | setup.keeps_log",
            "group._views | always | setup.keeps_log",
        ),
    ),
    (
        "`join` of the same member comes before, and made the same two",
        (REQUEST_AND_ERROR,),
    ),
    ("what is held of nobody is nothing", ("leader.assign | always | any(silent)",)),
    (
        "an assignor is not asked with it; it only keeps equal questions apart",
        (
            "leader.question_of | field dropped | _replace(noise=0)",
            "leader.question_of | field dropped | _replace(assignors=())",
        ),
    ),
    (
        "an instance has one record, but where static_replace_only_stable keeps both",
        (
            "join_group._join_new | never | record.id != old.id",
            "join_group._replace_static | never | record.id != old.id",
        ),
    ),
    (
        "who claims in an older generation than the newest is not among those of the newest",
        (
            "checks.stale | operand dropped | generation < newest",
            "checks.stale | operand dropped | i not in holders",
        ),
    ),
)
"""Why a mutant cannot be told from the model, and the keys of those that this is true of."""

REASONS: dict[str, str] = {key: reason for reason, keys in EQUIVALENT for key in keys}


def unexplained(verdicts: Mapping[str, MutantVerdict]) -> list[str]:
    """The mutants that nothing was needed about, by clause or by reason."""
    weak = [key for key, verdict in verdicts.items() if verdict.kind not in (*STRONG, *SETTLED)]
    return [key for key in weak if key not in REASONS]


def stale(verdicts: Mapping[str, MutantVerdict], everything: bool) -> list[str]:
    """Reasons given for a mutant that is killed, or that there is no more."""
    gone = [key for key in REASONS if everything and key not in verdicts]
    return gone + [key for key in REASONS if key in verdicts and verdicts[key].kind in STRONG]


SETTLED = ("implied", "superfluous")
"""Verdicts on a guard of the logic that say by themselves why it may go."""


HEAD = """# Mutation score

Made by `python -m tools.mutation` (`--help` says more); the mutants and what is asked of them are described
there.

## The model

One mutant is one guard negated or dropped, one operand of a condition or of a set expression dropped, one
field, statement, step or write dropped. {tried} of {all} mutants were tried, in {cpu:.0f} s of CPU time; if
not all, they are a random sample.

{killed} are killed ({score:.1f} % of those that are not equivalent), {equivalent} are equivalent for a reason
that is given below, {open} are open. What is asked of one ends with the first thing that tells it from the
model: a test of single steps; then on the battery a breach of a clause, a run that does not settle, a fault
that is for nothing, a witness or an action that is never reached any more, a switched-on mistake that is not
found any more; then a step that is none of the logic. What only makes the space larger is counted apart and
not as killed.
"""

CLAUSES = """
## The clauses

The same changes of the clauses of a group, each asked the tests of single clauses. {tried} of {all} mutants
were tried: {killed} are killed ({score:.1f} % of those that are not equivalent), {equivalent} are equivalent,
{open} are open.
"""

LOGIC = """
## The logic

{tried} of {all} guards of the logic were dropped, one at a time. {caught} are needed by a theorem, {implied}
follow from the other guards and the invariants, {superfluous} add steps of which all theorems hold: these are
listed with such a step and what is not plain before it. {unknown} are open.

| guard | needed by |
|---|---|
"""


def report(verdicts: Mapping[str, MutantVerdict]) -> str:
    """tools/mutation/mutation.md."""
    tried = [mutant for mutant in mutants() if mutant.key in verdicts]
    clauses = [mutant for mutant in clause_mutants() if mutant.key in verdicts]
    dropped = [mutant for mutant in guard_mutants() if mutant.key in verdicts]
    lines = list(_of_model(tried, verdicts))
    lines += _of_clauses(clauses, verdicts) if clauses else ()
    lines += _of_logic(dropped, verdicts) if dropped else ()
    return "\n".join(lines) + "\n"


def _of_model(tried: Sequence[Mutant], verdicts: Mapping[str, MutantVerdict]) -> Iterator[str]:
    of = {mutant.key: verdicts[mutant.key] for mutant in tried}
    by_kind = Counter(verdict.kind for verdict in of.values())
    killed = sum(by_kind[kind] for kind in STRONG)
    live = [mutant for mutant in tried if of[mutant.key].kind not in STRONG]
    reasoned = [mutant for mutant in live if mutant.key in REASONS]
    still = [mutant for mutant in live if mutant.key not in REASONS]
    yield HEAD.format(
        tried=len(tried), all=len(mutants()), cpu=sum(v.seconds for v in of.values()), killed=killed,
        score=100 * killed / max(1, len(tried) - len(reasoned)), equivalent=len(reasoned), open=len(still),
    )  # fmt: skip
    yield from ("### How they end\n", "| end | mutants | |", "|---|---|---|")
    yield from (f"| {kind} | {by_kind[kind]} | {KINDS[kind]} |" for kind in KINDS if kind not in OF_LOGIC)
    yield from (
        "\n### By module\n",
        "| module | mutants | killed | equivalent | open |",
        "|---|---|---|---|---|",
    )
    for module in MODULES:
        counted = [sum(mutant.module == module for mutant in some) for some in (tried, live, reasoned, still)]
        yield f"| {module} | {counted[0]} | {counted[0] - counted[1]} | {counted[2]} | {counted[3]} |"
    yield from ("\n### By kind\n", "| kind | mutants | killed |", "|---|---|---|")
    for kind in sorted({mutant.kind for mutant in tried}):
        some = [mutant for mutant in tried if mutant.kind == kind]
        yield f"| {kind} | {len(some)} | {sum(of[m.key].kind in STRONG for m in some)} |"
    yield from (
        "\n### What kills them\n",
        "| test, clause, witness or error | how | mutants |",
        "|---|---|---|",
    )
    killers = Counter((v.by, v.kind) for v in of.values() if v.kind in STRONG)
    yield from (f"| {by} | {kind} | {n} |" for (by, kind), n in sorted(killers.items(), key=_most))
    if reasoned:
        yield from ("\n### Equivalent, and why\n", "| mutant | reason |", "|---|---|")
        yield from (f"| {_row(mutant)} | {REASONS[mutant.key]} |" for mutant in reasoned)
    if still:
        yield from ("\n### Open\n", "| mutant | end | where | same counts |", "|---|---|---|---|")
        for mutant in still:
            end = of[mutant.key]
            yield f"| {_row(mutant)} | {end.kind} {end.by} | {end.where} | {end.same} |"


def _of_clauses(tried: Sequence[Mutant], verdicts: Mapping[str, MutantVerdict]) -> Iterator[str]:
    live = [mutant for mutant in tried if verdicts[mutant.key].kind not in STRONG]
    reasoned = [mutant for mutant in live if mutant.key in REASONS]
    killed, left = len(tried) - len(live), len(tried) - len(reasoned)
    yield CLAUSES.format(
        tried=len(tried), all=len(clause_mutants()), killed=killed, score=100 * killed / max(1, left),
        equivalent=len(reasoned), open=len(live) - len(reasoned),
    ).rstrip("\n")  # fmt: skip
    if live:
        yield from ("", "| mutant | reason |", "|---|---|")
        yield from (f"| {_row(mutant)} | {REASONS.get(mutant.key, 'open')} |" for mutant in live)


OF_LOGIC = ("theorem", "implied", "superfluous", "unknown")


def _of_logic(dropped: Sequence[GuardMutant], verdicts: Mapping[str, MutantVerdict]) -> Iterator[str]:
    by_kind = Counter(verdicts[mutant.key].kind for mutant in dropped)
    weak = ("unknown", "timeout")
    yield LOGIC.format(
        tried=len(dropped), all=len(guard_mutants()), caught=by_kind["theorem"], implied=by_kind["implied"],
        superfluous=by_kind["superfluous"], unknown=sum(by_kind[kind] for kind in weak),
    ).rstrip("\n")  # fmt: skip
    for mutant in dropped:
        end = verdicts[mutant.key]
        needed = {
            "theorem": f"{end.by}: {end.where}",
            "implied": "the other guards and the invariants",
            "superfluous": f"nothing, as of {end.detail}" if end.detail else "nothing",
        }.get(end.kind, f"open: {end.kind} {end.detail}".rstrip())
        yield f"| `{mutant.action}` {mutant.was} | {needed} |".replace("\n", " ")


def _most(item: tuple[tuple[str, str], int]) -> tuple[int, tuple[str, str]]:
    return -item[1], item[0]


def _row(mutant: Mutant) -> str:
    text = f"`{mutant.module}.py:{mutant.line}` {mutant.key.partition('.')[2]}".replace(" | ", ", ")
    return text.replace("|", "\\|")
