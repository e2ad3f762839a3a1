"""Convergence: once nothing goes wrong any more, a consumer group settles, whatever went wrong before.

1. *Order* is kept by every step, faults too: what a client knows and what the coordinator does differ only by
   what is under way, will be asked for, or is still to be reconciled. So nothing has to become calm first.
2. No step but a fault makes the measure larger, and each makes it smaller or is a heartbeat in vain, of which
   nothing comes but its answer. The measure is a list of sets, the weightiest first.
3. Where the group is not settled a step is possible that makes the measure smaller; where none is, it is
   settled: everybody is at the group's epoch and owns its target, and what somebody subscribes to is owned.

Heartbeats in vain come for ever, from everybody. They change nothing that others see, so that a step that is
possible stays so. Fairness is thereby: each member that is at work sends heartbeats and hears the answers,
its application polls and its callbacks return, the session of one that is gone ends, the network forgets
what nobody waits for, and the target is computed. Assumed of the assignor is ``order.CONTRACT``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial

import z3
from rebalance_verifier.specs.consumer import coordinator
from rebalance_verifier.specs.consumer.coordinator import free, gone, surplus, wanted
from rebalance_verifier.specs.consumer.member import differs
from rebalance_verifier.specs.consumer.order import CONTRACT, assuming, ordered
from rebalance_verifier.specs.consumer.vocabulary import (
    ANSWER,
    BEAT,
    FENCED,
    IDLE,
    INSIDE,
    JOIN,
    JOINING,
    REFUSAL,
    STABLE,
    UNRELEASED,
    UNREVOKED,
    VOCABULARY,
    M,
    N,
    P,
    lt,
)
from rebalance_verifier.specs.logic.language import NEXT, SpecAction, State, Term, symbols_of
from rebalance_verifier.specs.logic.ranking import Ranking, RankingSet, Situation
from rebalance_verifier.specs.logic.specification import IMPLIES, ProofCase, Specification, Theorem
from rebalance_verifier.specs.logic.theorems import INVARIANTS, inductive
from z3 import And, Exists, ForAll, Implies, Not, Or

# -- the measure ---------------------------------------------------------------------------------------


def at_work(s: State, m: Term) -> Term:
    """Return its process runs, and wants to be in the group."""
    return Not(gone(s, m))


def news_comes(s: State, m: Term) -> Term:
    """State that an answer is on its way that its client does not know."""
    return And(s.wire(m) == ANSWER, Or(s.state(m) == JOINING, s.wire_epoch(m) != s.epoch(m), differs(s, m)))


def due(s: State, m: Term) -> Term:
    """Any heartbeat of the member changes something at the coordinator."""
    nothing_waits = ForAll([P], Implies(wanted(s, m, P), s.assigned(m, P)))
    gets = Exists([P], And(wanted(s, m, P), Not(s.assigned(m, P)), free(s, m, P)))
    moves = Or(
        s.at(m) != s.target_epoch,
        Exists([P], surplus(s, m, P)),
        And(s.record(m) == UNRELEASED, Or(gets, nothing_waits)),
    )
    revoked = ForAll([P], Not(s.pending(m, P)))
    return And(s.member(m), Or(And(s.record(m) != UNREVOKED, moves), And(s.record(m) == UNREVOKED, revoked)))


def useful(s: State, m: Term) -> Term:
    """Return the heartbeat under way changes something there."""
    gives_up = And(s.carries(m), ForAll([P], Implies(s.pending(m, P), Not(s.sent(m, P)))))
    acknowledges = And(s.member(m), s.record(m) == UNREVOKED, gives_up)
    return And(s.wire(m) == BEAT, Or(due(s, m), acknowledges))


def measure(s: State) -> tuple[RankingSet, ...]:
    """Return what is still to be done, the weightiest first."""
    lost, works = gone(s, M), at_work(s, M)
    needs = And(works, Or(due(s, M), s.unsent(M), useful(s, M)))
    unused = And(s.wire(M) == BEAT, Not(useful(s, M)))
    return (
        RankingSet("members that will join and are gone", (M,),
                   And(lost, s.wire(M) == JOIN, Not(s.member(M)))),
        RankingSet("heartbeats of who is gone", (M,), And(lost, Or(s.wire(M) == JOIN, s.wire(M) == BEAT))),
        RankingSet("answers that nobody hears", (M,), And(lost, s.wire(M) != IDLE)),
        RankingSet("members that are gone", (M,), And(lost, s.member(M))),
        RankingSet("consumers outside the group", (M,), And(works, Not(s.member(M)))),
        *(RankingSet(name, (M,), And(works, before)) for name, before in _stages(s)),
        RankingSet("a target", (), s.group_epoch != s.target_epoch),
        RankingSet("partitions to be taken", (M, P), surplus(s, M, P)),
        RankingSet("partitions to be given", (M, P),
                   And(s.member(M), wanted(s, M, P), Not(s.assigned(M, P)))),
        RankingSet("members behind the target", (M,), And(s.member(M), s.at(M) != s.target_epoch)),
        RankingSet("members that have to revoke", (M,), s.record(M) == UNREVOKED),
        RankingSet("members that wait", (M,), s.record(M) != STABLE),
        RankingSet("news on its way", (M,), And(works, news_comes(s, M))),
        RankingSet("assignments to be reconciled", (M,), s.fresh(M)),
        RankingSet("partitions of a reconciliation", (M, P),
                   And(s.reconciling(M), s.owned(M, P) != s.goal(M, P))),
        RankingSet("reconciliations", (M,), s.reconciling(M)),
        RankingSet("acknowledgements", (M,), s.unsent(M)),
        RankingSet("heartbeats in vain before one that is due", (M,), And(needs, unused)),
        RankingSet("answers before it", (M,), And(needs, Or(unused, s.wire(M) == ANSWER))),
        RankingSet("heartbeats that are due and not sent", (M,), And(needs, Not(useful(s, M)))),
        RankingSet("heartbeats that are due", (M,), needs),
    )  # fmt: skip


def _stages(s: State) -> list[tuple[str, Term]]:
    """Return the way of a client into step with the coordinator, as what it has still ahead."""
    outside = Not(s.member(M))
    points = [
        ("an old answer arrives", And(s.wire(M) == ANSWER, outside)),
        ("a heartbeat leaves", And(s.state(M) == INSIDE, s.wire(M) == IDLE, Or(outside, s.full(M)))),
        ("it arrives", And(s.wire(M) == BEAT, Or(outside, s.asks(M)))),
        ("it is refused", s.wire(M) == REFUSAL),
        ("what it had is lost", s.state(M) == FENCED),
        ("it joins", And(s.state(M) == JOINING, s.wire(M) == IDLE)),
        ("that arrives", s.wire(M) == JOIN),
    ]
    return [(name, Or(*(here for _, here in points[: i + 1]))) for i, (name, _) in enumerate(points)]


MEASURE = measure(VOCABULARY.state())

HEARTBEATS_OF_THE_GONE = "heartbeats of who is gone"

_RECONCILES = (
    HEARTBEATS_OF_THE_GONE, "it arrives", "that arrives", "partitions to be taken", "partitions to be given",
    "members behind the target", "members that have to revoke", "members that wait",
    "heartbeats in vain before one that is due",
)  # fmt: skip

DECREASES: Mapping[str, tuple[str, ...]] = {
    "unheard": (HEARTBEATS_OF_THE_GONE, "answers that nobody hears"),
    "expired": ("members that are gone",),
    "joined": ("members that will join and are gone", "consumers outside the group"),
    "unknown": (HEARTBEATS_OF_THE_GONE, "it arrives"),
    "refused": ("it is refused",),
    "lose": ("what it had is lost",),
    "join": ("it joins",),
    "retargeted": ("a target",),
    "must_revoke": (HEARTBEATS_OF_THE_GONE, "it arrives", "that arrives", "partitions to be taken"),
    "must_drop": (HEARTBEATS_OF_THE_GONE, "it arrives", "that arrives", "partitions to be taken"),
    "has_dropped": (HEARTBEATS_OF_THE_GONE, "it arrives", "that arrives", "partitions to be taken"),
    "given": _RECONCILES,
    "nothing_new": (
        HEARTBEATS_OF_THE_GONE, "it arrives", "that arrives", "heartbeats in vain before one that is due",
    ),
    "answered": ("an old answer arrives", "news on its way", "answers before it"),
    "heartbeat": ("a heartbeat leaves", "heartbeats that are due and not sent"),
    "full_heartbeat": ("a heartbeat leaves", "acknowledgements"),
    "begin": ("assignments to be reconciled",),
    "revoke": ("partitions of a reconciliation",),
    "assign": ("partitions of a reconciliation",),
    "acknowledge": ("reconciliations",),
    "commit_stored": (),
    "commit_refused": (),
}  # fmt: skip
"""Which set each step makes smaller: the first of these that it does not leave as it is."""

IN_VAIN = (
    "heartbeat", "nothing_new", "given", "answered", "revoke", "assign", "commit_stored", "commit_refused",
)  # fmt: skip
"""Steps that may make nothing smaller: then they leave all as it is, but for what is under way of one
member."""

WIRE = ("wire", "wire_epoch", "carries", "asks", "sent", "granted")
"""What is under way."""


def _as_before(s: State, t: State, action: SpecAction) -> Term:
    """State that what it may change otherwise is the same after it."""
    same = [z3.BoolVal(True)]
    for name in sorted(set(action.updates) - set(WIRE)):
        places = [VOCABULARY.letters[sort.name()[0]] for sort in VOCABULARY.symbols[name].arguments]
        same.append(VOCABULARY.close(getattr(t, name)(*places) == getattr(s, name)(*places)))
    return And(*same)


# -- something can always be done ----------------------------------------------------------------------

_HANDLED = ("unknown", "nothing_new", "must_drop", "has_dropped", "must_revoke", "given")


def situations(s: State) -> tuple[Situation, ...]:
    """Return every way not to be settled, and the steps that make the measure smaller then."""
    m, p, g = (VOCABULARY.parameter(name) for name in ("m", "p", "g"))
    works, newer = at_work(s, m), lt(s.group_epoch, g)
    arrives = dict.fromkeys(_HANDLED, (m,))

    def revokes(p: Term) -> Term:
        return And(s.owned(m, p), Not(s.goal(m, p)))

    stages = dict(_stages_of(s, m))
    needs = Or(due(s, m), s.unsent(m), useful(s, m))
    return (
        Situation("something of who is gone", And(gone(s, m), s.wire(m) != IDLE), {"unheard": (m,)}),
        Situation(
            "a member that is gone",
            And(gone(s, m), s.member(m), s.wire(m) == IDLE, newer),
            {"expired": (m, g)},
        ),
        Situation(
            "a client out of step",
            And(works, stages["that arrives"], newer),
            {
                **arrives, "answered": (m,), "heartbeat": (m,), "full_heartbeat": (m,), "refused": (m,),
                "lose": (m,), "join": (m,), "joined": (m, g),
            },
        ),
        Situation("a target to be computed", s.group_epoch != s.target_epoch, {"retargeted": ()}),
        Situation("news on its way", And(works, news_comes(s, m)), {"answered": (m,)}),
        Situation("an assignment to reconcile", And(s.fresh(m), Not(s.reconciling(m))), {"begin": (m,)}),
        Situation("a partition to revoke", And(s.reconciling(m), revokes(p)), {"revoke": (m,)}),
        Situation(
            "a partition to be assigned",
            And(s.reconciling(m), ForAll([P], Not(revokes(P))), s.goal(m, p), Not(s.owned(m, p))),
            {"assign": (m,)},
        ),
        Situation(
            "a reconciliation that is done",
            And(s.reconciling(m), ForAll([P], s.owned(m, P) == s.goal(m, P))),
            {"acknowledge": (m,)},
        ),
        Situation(
            "a heartbeat that is due",
            And(works, Not(stages["that arrives"]), needs),
            {**arrives, "answered": (m,), "heartbeat": (m,), "full_heartbeat": (m,)},
        ),
    )  # fmt: skip


def _stages_of(s: State, m: Term) -> Iterator[tuple[str, Term]]:
    return ((name, z3.substitute(before, (M, m))) for name, before in _stages(s))


SITUATIONS = situations(VOCABULARY.state())


def nothing_to_do(s: State) -> dict[str, Term]:
    """Return None of the situations, of nobody; of epochs there is always a newer one."""
    m, p, g = (VOCABULARY.parameter(name) for name in ("m", "p", "g"))
    newer = (lt(s.group_epoch, g), z3.BoolVal(True))
    return {
        f"nowhere {there.name}": Not(z3.substitute(there.given, newer, (m, M), (p, P)))
        for there in situations(s)
    }


def settled(s: State) -> dict[str, Term]:
    """Nothing is left to be done."""
    works = at_work(s, M)
    return {
        "everybody at work is a member": s.member(M) == works,
        "everybody is at the group's epoch": Implies(
            works, And(s.epoch(M) == s.group_epoch, s.at(M) == s.group_epoch, s.record(M) == STABLE)
        ),
        "everybody owns its target": Implies(works, s.owned(M, P) == wanted(s, M, P)),
        "what is held is owned": Implies(coordinator.held(s, M, P), s.owned(M, P)),
        "every subscribed partition is owned": Implies(
            And(s.member(M), s.subscribed(M, P)), Exists([N], And(s.member(N), s.owned(N, P)))
        ),
    }


# -- how many heartbeats -------------------------------------------------------------------------------


def per_target(s: State) -> tuple[RankingSet, ...]:
    """Return what heartbeats have to do for one target.

    In a group of N members and P partitions there are N, N, N, P and N of these at most. A heartbeat that
    takes from the second set may put its sender into the third. So at most 5 N + P heartbeats change what the
    coordinator has, while nobody comes or goes.
    """
    member = s.member(M)
    everything = ForAll([P], Implies(wanted(s, M, P), s.assigned(M, P)))
    return (
        RankingSet("members with what they do not subscribe to", (M,),
                   Exists([P], And(s.assigned(M, P), Not(s.subscribed(M, P))))),
        RankingSet("members with too much", (M,), Exists([P], surplus(s, M, P))),
        RankingSet("members that have to get there", (M,),
                   And(member, Or(s.at(M) != s.target_epoch, s.record(M) == UNREVOKED))),
        RankingSet("partitions to be given", (M, P),
                   And(member, wanted(s, M, P), Not(s.assigned(M, P)))),
        RankingSet("members that wait for nothing", (M,),
                   And(member, s.record(M) == UNRELEASED, everything)),
    )  # fmt: skip


PER_TARGET = per_target(VOCABULARY.state())

TAKES: Mapping[str, tuple[str, ...]] = {
    "nothing_new": (),
    "must_drop": ("members with what they do not subscribe to", "members with too much"),
    "has_dropped": ("members with what they do not subscribe to", "members with too much"),
    "must_revoke": ("members with too much",),
    "given": tuple(ranking.name for ranking in PER_TARGET[1:]),
}
"""What each heartbeat that is accepted takes from, unless it is in vain."""


def most_heartbeats(members: int, partitions: int, outside: int = 0, gone: int = 0) -> int:
    """Return the most heartbeats that change what the coordinator has once nothing goes wrong any more: of so
    many members and clients that are to be members, of which these are outside; of members that are gone.

    Each that comes or goes makes a target, and there may be one to be computed. A client outside is refused
    once and joins once, and so is a member after a lost answer, in the worst case.
    """
    targets = outside + members + gone + 1
    return 2 * members + gone + targets * (5 * members + partitions)


NOT_IN_VAIN = "not in vain"
"""Kind of a case: a step that is possible in a situation makes the measure smaller."""

# -- the theorems --------------------------------------------------------------------------------------


def convergence(spec: Specification, contract: Iterable[str] = tuple(CONTRACT)) -> tuple[Theorem, ...]:
    """That order is kept, that every step brings the group closer to being settled, and in how many
    heartbeats."""
    spec = assuming(spec, contract)
    close = spec.vocabulary.close
    own = ordered(contract)
    given = {**spec.invariants, **own}
    ranking = Ranking(spec=spec, measure=MEASURE, given=given)
    state = spec.vocabulary.state()
    at_rest = VOCABULARY.closed(nothing_to_do(state))
    ends = {name: partial(close, formula) for name, formula in settled(state).items()}
    return (
        Theorem(
            name="in step",
            sentence="what a client knows is what the coordinator has, or what is under way, asked for or "
            "being reconciled makes it so",
            source="KIP-848, reconciliation",
            vocabulary=spec.vocabulary,
            cases=tuple(inductive(spec, own)),
            upon=(INVARIANTS,),
        ),
        Theorem(
            name="convergence",
            sentence="without faults each step but a heartbeat in vain makes the measure smaller; where none "
            "can, everybody owns its target",
            source="KIP-848, reconciliation",
            vocabulary=spec.vocabulary,
            cases=(
                *(_decreases(ranking, action) for action in spec.actions if not action.fault),
                *(ranking.possible(situation) for situation in SITUATIONS),
                *_not_in_vain(ranking),
                spec.case(IMPLIES, ends, name="nothing to do", facts=at_rest, given=given),
            ),
            upon=(INVARIANTS, "in step"),
        ),
        Theorem(
            name="heartbeats",
            sentence="for one target of N members and P partitions at most 5 N + P heartbeats change what "
            "the coordinator has",
            source="KIP-848, reconciliation",
            vocabulary=spec.vocabulary,
            cases=tuple(_takes(spec, given, spec.action(name)) for name in TAKES),
            upon=(INVARIANTS, "in step"),
        ),
    )


def _decreases(ranking: Ranking, action: SpecAction) -> ProofCase:
    return ranking.decreases(action, DECREASES[action.name], _in_vain(action))


def _not_in_vain(ranking: Ranking) -> Iterator[ProofCase]:
    """Where the group is not settled, the steps that are possible then are not in vain."""
    for situation in SITUATIONS:
        for name in sorted(set(situation.steps) & set(IN_VAIN)):
            case = ranking.decreases(ranking.spec.action(name), DECREASES[name])
            last = list(case.goals)[-1]
            yield ranking.spec.case(
                NOT_IN_VAIN, {last: case.goals[last]}, name=f"{name} where there is {situation.name}",
                action=case.action, facts={"given": situation.given}, given=ranking.given,
            )  # fmt: skip


def _in_vain(action: SpecAction) -> Term | None:
    """Return what it may change is the same after it, but for what is under way; None of a step that never
    is."""
    if action.name not in IN_VAIN:
        return None
    return action.across(VOCABULARY, _as_before(VOCABULARY.state(), VOCABULARY.state(NEXT), action))


def _takes(spec: Specification, given: Mapping[str, Term], action: SpecAction) -> ProofCase:
    """Return the heartbeat puts at most its sender into a set, and of partitions to be given none."""
    [sender] = action.parameters
    case = Ranking(spec=spec, measure=PER_TARGET, given=given).decreases(
        action, TAKES[action.name], _in_vain(action)
    )
    goals = dict(case.goals)
    for ranking in PER_TARGET:
        if symbols_of(ranking.formula) & set(action.updates):
            whose = z3.BoolVal(True) if len(ranking.letters) > 1 else sender != M
            more = And(whose, action.after(spec.vocabulary, ranking.formula), Not(ranking.formula))
            goals[f"of others no more of: {ranking.name}"] = partial(Not, Exists([*ranking.letters], more))
    return replace(case, kind="heartbeats", goals=goals)
