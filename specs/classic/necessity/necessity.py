"""The table: every clause of the contract and every design decision, and what becomes of safety without it.

What is sentences, names and paths stands in ``necessity.toml``, the formulas and what is made of several
functions here. ``specs.classic.necessity.examine`` does the work. Other design switches of the model make
no difference to the logic, because it allows what they do already or does not tell it apart (``BESIDE``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from rebalance_verifier.base.tables import table
from rebalance_verifier.specs.classic import connections, coordinator, failover, heartbeats, member, process
from rebalance_verifier.specs.classic.contract import SAFETY, ContractClause
from rebalance_verifier.specs.classic.member import owns, participates
from rebalance_verifier.specs.classic.necessity import altered, variations_group, variations_member
from rebalance_verifier.specs.classic.necessity.examine import Refutation, Variation
from rebalance_verifier.specs.classic.necessity.variations_group import (
    believes,
    believes_any,
    static_removal_not_persisted,
)
from rebalance_verifier.specs.classic.necessity.variations_member import (
    forgets,
    leaves_join_behind,
    loses_nothing,
    stays_out,
)
from rebalance_verifier.specs.classic.safety import INVARIANTS, deciding, holds, invariants_of
from rebalance_verifier.specs.classic.vocabulary import (
    COMMIT,
    COMPLETING,
    EMPTY,
    IDLE,
    JOIN,
    JOIN_OK,
    JOIN_PARKED,
    JOINING,
    SETTLED,
    SYNC,
    VOCABULARY,
    A,
    C,
    L,
    M,
    N,
    P,
    cooperative,
    honest,
    none,
    of,
    static,
)
from rebalance_verifier.specs.logic.language import Effect, State, Term
from z3 import And, BoolVal, If, Implies, Not, Or

_s = VOCABULARY.state()

# -- what takes the place of what is specified, by the name of the variation ---------------------------

_CONTRACT: dict[str, dict[str, ContractClause | None]] = {
    "once": {"once": None},
    "member_only": {"member_only": None},
    "newest_claim": {"newest_claim": None},
    "max_generation_only": {"newest_claim": variations_group.max_generation_only},
    "trust_all_claims": {
        "newest_claim": variations_group.trusted_claim,
        "once": variations_group.trusted_once,
    },
    "held_back": {"held_back": None},
}
"""Clauses in place of those of the same name; None leaves one out."""

_EXPELS: tuple[Effect, ...] = (member.expelled, heartbeats.heartbeat_of_old, heartbeats.late_answer_expels)
_OVERDUE: tuple[Effect, ...] = (process.poll_too_late, process.poll_too_late_unnoticed)
_LEAVES: tuple[Effect, ...] = (
    *(process.unsubscribe, process.unsubscribe_unnoticed),
    *(process.close, process.close_unnoticed),
)
_FAILOVERS: tuple[Effect, ...] = (failover.failover,)
_ALL_EXPEL: tuple[Effect, ...] = (
    *(member.expelled, heartbeats.heartbeat_of_unknown, heartbeats.heartbeat_of_old),
    *(heartbeats.late_answer_expels, *_OVERDUE, member.complete_after_reset),
    *(member.try_again, member.told_to_rejoin),  # as some releases have them
)
_JOINS: tuple[Effect, ...] = (
    coordinator.join_with_given_id,
    coordinator.join_of_member,
    coordinator.join_again,
    *(coordinator.join_of_static, coordinator.static_returns, coordinator.static_replaced),
)
_LEFT: tuple[Effect, ...] = (
    *(connections.left_lost, connections.left_join_without_id, connections.left_join_of_static),
    *(connections.left_static_replaced, connections.left_static_returns),
)
_reverted = tuple(map(static_removal_not_persisted, _FAILOVERS))

_INSTEAD: dict[str, tuple[Effect, ...]] = {
    "prepare_not_repeated_after_reset": tuple(map(loses_nothing, _ALL_EXPEL)),
    "prepare_once_per_rebalance": tuple(map(loses_nothing, _ALL_EXPEL)),
    "clear_member_id_on_illegal_generation": tuple(map(forgets, _EXPELS)),
    "no_rejoin_after_illegal_generation": tuple(map(stays_out, _EXPELS)),
    "overtaken_join_believed": (
        *map(believes, _JOINS),
        *map(believes_any, _LEFT),
        variations_group.left_join_believed,
    ),
    "static_forgets_id": (*map(forgets, _OVERDUE), *map(leaves_join_behind, _LEAVES)),
    "static_removal_not_persisted": _reverted,
    "static_replace_not_persisted": (variations_group.static_replace_not_persisted, *_reverted),
}
"""Actions that are made of several functions; the others are named in the file."""


class _Keeping:
    """A state in which a consumer owns nothing that it loses before it asks for a membership again."""

    def __getattr__(self, name: str) -> Any:
        return getattr(_s, name)

    def since(self, c: Term, p: Term) -> Term:
        loses = And(_s.prepare(c), _s.generation(c) == none, _s.wire(c) == IDLE)
        return If(loses, none, _s.since(c, p))


_kept = invariants_of(cast("State", _Keeping()))
_OF_WHAT_IS_HELD = (
    *("a pending id holds nothing", "what is owned was claimed", "joined has claimed what it holds"),
    *("what is held is claimed when the leader asks", "a claim is as old as what is owned"),
    *("known", "known since", "no two rights", "offered what nobody else has"),
    *("known to the log", "known to the log since", "no two rights in the log"),
    *("a late commit takes nothing", "a late commit takes nothing after a failover"),
)

_INVARIANTS: dict[str, Mapping[str, Term]] = {
    "trust_all_claims": {
        "offered once": Implies(
            And(deciding(_s), _s.offer(of(L), M, P), _s.offer(of(L), N, P), honest(of(M)), honest(of(N))),
            M == N,
        )
    },
    "keep_owned_on_sync_rip": {
        "a claim is what is owned": Implies(
            And(_s.wire(C) == JOIN, honest(C), _s.id(M), of(M) == C, _s.names(M), owns(_s, C, P)),
            _s.sent(C, P) != none,
        ),
        "what is owned was claimed": Implies(
            And(_s.left(M), honest(of(M)), _s.id(M), owns(_s, of(M), P)), _s.left_claim(M, P) != none
        ),
        "what is claimed was claimed": Implies(
            And(_s.left(M), honest(of(M)), _s.names(M), _s.sent(of(M), P) != none),
            _s.left_claim(M, P) != none,
        ),
        **dict.fromkeys(
            ("a claim is as old as what is owned", "known since", "known to the log since"), BoolVal(True)
        ),
    },
    # A dynamic member whose membership is over asks for an id first, and before it asks for more it loses,
    # but where the id hides that (lost_only_without_id).
    "join_sent_after_reset": {
        "asked under its id": Implies(
            And(
                _s.state(C) == JOINING,
                Or(*(_s.wire(C) == kind for kind in (JOIN, JOIN_PARKED, JOIN_OK))),
                Not(static(C)),
            ),
            _s.identified(C),
        ),
        **{
            name: Implies(static(C), INVARIANTS[name])
            for name in ("joining has prepared", "only JoinGroup claims")
        },
        **{name: _kept[name] for name in _OF_WHAT_IS_HELD},
    },
    # KIP-345, as invariants.
    "static_replace_only_stable": {
        "one member of an instance": Implies(
            And(static(of(M)), _s.member(M), _s.member(N), of(M) == of(N)), M == N
        ),
        "instances are given no ids to come with": Implies(_s.pending(M), Not(static(of(M)))),
    },
    "static_replace_not_persisted": {
        "settled as in the log": Implies(
            _s.group == SETTLED,
            And(
                _s.log_current == _s.current,
                Implies(
                    And(_s.member(M), _s.log_member(M)),
                    And(_s.assigned(M, P) == _s.log_assigned(M, P), _s.claim(M, P) == _s.log_claim(M, P)),
                ),
            ),
        )
    },
    "static_replace_in_completing_no_rebalance": {
        "what is held is claimed when the leader asks": Implies(
            And(_s.group == COMPLETING, _s.member(M), honest(of(M)), holds(_s, M, P)),
            _s.claim(M, P) != none,
        ),
        "offered what nobody else has": Implies(
            And(deciding(_s), _s.offer(of(L), M, P), _s.member(M), _s.member(N)),
            Implies(And(honest(of(M)), honest(of(N)), Or(_s.claim(N, P) != none, holds(_s, N, P))), M == N),
        ),
    },
}


def _fenced(*accepted: Term) -> Mapping[str, Term]:
    """Commit fencing of a coordinator that takes the commits of which ``accepted`` holds."""
    commit = And(_s.stray(of(M)) == COMMIT, _s.stray_names(M), _s.committed(of(M), P), honest(of(M)))
    owner = And(participates(_s, N), honest(of(N)), owns(_s, of(N), P))
    return {"commit fencing": Implies(And(commit, And(*accepted), owner), M == N)}


_of_generation = _s.stray_generation(of(M)) == _s.current

_CALM: dict[str, Mapping[str, Term]] = {
    "keep_owned_on_sync_rip": {
        "JoinGroup claims what is owned": Implies(
            _s.wire(C) == JOIN, (_s.sent(C, P) != none) == (_s.since(C, P) != none)
        ),
    },
}
"""What holds of a calm group in place of what has the same name."""

_PROPERTIES: dict[str, Mapping[str, Term]] = {
    "commit_generation_unchecked": _fenced(_s.group != EMPTY, _s.member(M)),
    "commit_member_unchecked": _fenced(_s.group != EMPTY, _of_generation),
}

# -- what more is asked of the run that refutes a variation --------------------------------------------

_ALTERED = {
    "held_back": altered.NOTHING_HELD_BACK,
    "no_generation_bump": altered.NO_GENERATION_BUMP,
    "commit_generation_unchecked": altered.COMMIT_GENERATION_UNCHECKED,
    "commit_member_unchecked": altered.COMMIT_MEMBER_UNCHECKED,
    "unknown_member_rejoins": altered.UNKNOWN_MEMBER_REJOINS,
    "assignment_not_logged": altered.ASSIGNMENT_NOT_LOGGED,
}

_chosen_is_eager = Implies(_s.chosen(A), Not(cooperative(A)))
_GIVEN = {
    "protocol_flag_inconsistent": And(_s.lists(C, A), _chosen_is_eager),
    "no_revoke_on_protocol_downgrade": _chosen_is_eager,
    # The decision that is left behind keeps everything for the leader.
    "lost_generation_believed": Implies(
        And(
            _s.group == COMPLETING,
            _s.log_group == SETTLED,
            _s.wire(C) == SYNC,
            _s.leading(C),
            of(M) == C,
            _s.names(M),
        ),
        _s.offer(C, M, P),
    ),
}

# -- the table -----------------------------------------------------------------------------------------


def _variations() -> Iterator[Variation]:
    rows_of = table(__file__)
    del rows_of["beside"]
    written = rows_of.pop("paths")
    paths, dynamic = _spelled(written), _spelled({**written, **rows_of.pop("dynamic")})
    for about, rows in rows_of.items():
        for name, row in rows.items():
            yield _variation(name, about, row, paths, dynamic)


def _written(name: str) -> Effect:
    """Return the function that the file names."""
    module = variations_member if hasattr(variations_member, name) else variations_group
    return cast("Effect", getattr(module, name))


def _spelled(written: Mapping[str, str]) -> dict[str, str]:
    """Return the paths that others are written with, in full."""
    paths: dict[str, str] = {}
    for name, path in written.items():
        paths[name] = path.format_map(paths)
    return paths


def _variation(
    name: str, about: str, row: dict[str, Any], paths: Mapping[str, str], dynamic: Mapping[str, str]
) -> Variation:
    run = {key: row[key] for key in ("goal", "clause", "also", "sizes") if key in row}
    clauses = {**SAFETY, **_CONTRACT.get(name, {})}
    return Variation(
        name=name,
        about=about,
        sentence=row["sentence"],
        instead=_INSTEAD.get(name) or tuple(map(_written, row.get("instead", ()))),
        contract={key: clause for key, clause in clauses.items() if clause} if name in _CONTRACT else SAFETY,
        invariants=_INVARIANTS.get(name, {}),
        properties=_PROPERTIES.get(name, {}),
        calm=_CALM.get(name, {}),
        obligations=row.get("obligations", ()),
        refutation=Refutation(
            path=row["path"].format_map(paths),
            dynamic=row["path"].format_map(dynamic),
            altered=_ALTERED.get(name),
            given=_GIVEN.get(name),
            **run,
        )
        if run
        else None,
        switches=row.get("switches", ()),
        only_with=row.get("only_with", ()),
        everywhere=row.get("everywhere", False),
        kept=row.get("kept", ""),
    )


NECESSITY: Mapping[str, Variation] = {variation.name: variation for variation in _variations()}
"""Every variation by name."""

BESIDE: Mapping[str, str] = table(__file__)["beside"]
"""Switches that make no difference to the logic: the clause that they are for, and why they make none."""
