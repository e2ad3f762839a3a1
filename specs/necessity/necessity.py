"""The table: every clause of the contract and every design decision, and what becomes of safety without it.

``rebalance.specs.necessity.examine`` does the work. Other design switches of the model make no difference to
the logic, because it allows what they do already or does not tell it apart: the tests list them with the
clause that they are for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rebalance.specs.logic.language import Term
from rebalance.specs.necessity import altered, variations
from rebalance.specs.necessity.examine import Refutation, Variation
from rebalance.specs.necessity.variations import (
    forgets,
    loses_nothing,
    static_removal_not_persisted,
    stays_out,
)
from rebalance.specs.protocol import failover, heartbeats, member, process
from rebalance.specs.protocol.contract import SAFETY, ContractClause
from rebalance.specs.protocol.member import owns, participates
from rebalance.specs.protocol.vocabulary import (
    COMMIT,
    COMPLETING,
    EMPTY,
    JOIN,
    SETTLED,
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
from rebalance.specs.theorems.safety import deciding, holds
from z3 import And, BoolVal, Implies, Not, Or

_s = VOCABULARY.state()

# -- paths: what happens again and again ---------------------------------------------------------------

_ENTERS = "start partitions_lost join join_of_static"
_REJOINS = "heartbeat_in_rebalance partitions_revoked_to_join join join_of_member"
_DECIDES = "join_answered lead leader_syncs"
_OWNS = "sync_answered partitions_assigned"
_FOLLOWS = f"join_answered follow sync_of_settled {_OWNS}"

_ALONE = f"""
    A: {_ENTERS}
    -: join_phase_ends
    A: {_DECIDES} {_OWNS}"""
"""A owns the partition."""

_SECOND = f"""{_ALONE}
    B: {_ENTERS}
    A: {_REJOINS}
    -: join_phase_ends
    A: {_DECIDES}"""
"""B joins, and A decides again."""

_SECOND_SETTLED = f"""{_SECOND}
    B: {_FOLLOWS}"""

_SILENT = f"""{_ALONE}
    A: pause
    B: {_ENTERS}
    A: rebalance_timeout
    -: join_phase_ends
    B: {_DECIDES} {_OWNS}"""
"""A is static and stops, and B decides without it."""

_REMOVED = f"""{_ALONE}
    A: enforce_rebalance partitions_revoked_to_join join pause session_expires
    B: {_ENTERS}
    -: join_phase_ends
    B: {_DECIDES} {_OWNS}
    A: resume"""
"""A stops with a JoinGroup under way and is removed; B has everything by the time that A goes on."""

_LOST = f"""{_REMOVED} join_of_unknown expelled join join_of_static
    B: {_REJOINS}
    -: join_phase_ends
    A: join_answered follow"""
"""A hears that it was removed, and joins as a new member."""


# -- what is asked of commits --------------------------------------------------------------------------


def _fenced(accepted: Term) -> Mapping[str, Term]:
    """Commit fencing of a coordinator that takes the commits of which ``accepted`` holds."""
    commit = And(_s.stray(of(M)) == COMMIT, _s.stray_names(M), _s.committed(of(M), P), honest(of(M)))
    owner = And(participates(_s, N), honest(of(N)), owns(_s, of(N), P))
    return {"commit fencing": Implies(And(commit, accepted, owner), M == N)}


_late = _s.stray_generation(of(M))
_any_generation = And(_s.group != EMPTY, _s.group != COMPLETING, _s.member(M))
_any_member = And(_s.group != EMPTY, _s.group != COMPLETING, _late == _s.current)
_any_phase = And(_s.group != EMPTY, _s.member(M), _late == _s.current)


def _but(**changed: ContractClause | None) -> Mapping[str, ContractClause]:
    """The contract with some clauses changed, or left out where None."""
    return {name: clause for name, clause in {**SAFETY, **changed}.items() if clause is not None}


_INSTANCE = "one member of an instance"
_INSTANCES = {
    _INSTANCE: Implies(And(static(of(M)), _s.member(M), _s.member(N), of(M) == of(N)), M == N),
    "instances are given no ids to come with": Implies(_s.pending(M), Not(static(of(M)))),
}
"""KIP-345, as invariants."""


def _switched(name: str, **more: Any) -> Variation:
    """What the design switch of the model makes of the action of ``variations`` that has its name."""
    return Variation(name=name, instead=(getattr(variations, name),), switches=(name,), **more)


# -- the contract --------------------------------------------------------------------------------------

_CONTRACT = (
    Variation(
        name="once", about="contract", sentence="a partition may be offered to several members",
        contract=_but(once=None),
        obligations=(("lead", "offered once"),),
        refutation=Refutation(goal="exclusive ownership", path=f"""
            A: {_ENTERS}
            B: {_ENTERS}
            -: join_phase_ends
            A: {_DECIDES} {_OWNS}
            B: {_FOLLOWS}"""),
    ),
    Variation(
        name="member_only", about="contract", sentence="something may be offered to who is not a member",
        contract=_but(member_only=None),
        kept="leader/grant: the coordinator keeps assignments of members only, so nobody gets it; an "
        "assignor is asked for it all the same, because what goes to nobody is read by nobody",
    ),
    Variation(
        name="newest_claim", about="contract",
        sentence="what somebody claims may be offered to somebody else: no withholding",
        contract=_but(newest_claim=None), switches=("no_withhold",),
        obligations=(("lead", "offered what nobody else has"),),
        refutation=Refutation(goal="exclusive ownership", path=_SECOND_SETTLED),
    ),
    Variation(
        name="max_generation_only", about="contract",
        sentence="claims of an older generation than the newest that anybody claims are discarded (2.8.1 "
        "to 3.4.0)",
        contract=_but(newest_claim=variations.max_generation_only), switches=("max_generation_only",),
        obligations=(("lead", "offered what nobody else has"),),
        refutation=Refutation(goal="exclusive ownership", path=f"""{_SECOND_SETTLED}
            A: disconnect try_again join join_of_member
            B: {_REJOINS}
            -: join_phase_ends
            A: {_DECIDES}
            B: {_FOLLOWS}""", sizes={"Partition": 2, "Generation": 5}),
    ),
    Variation(
        name="trust_all_claims", about="contract",
        sentence="claimants of a partition do not exclude each other, and may all be offered it (2.5.1 to "
        "2.8.0)",
        contract=_but(newest_claim=variations.trusted_claim, once=variations.trusted_once),
        invariants={
            "offered once": Implies(
                And(deciding(_s), _s.offer(of(L), M, P), _s.offer(of(L), N, P), honest(of(M)), honest(of(N))),
                M == N,
            )
        },
        switches=("trust_all_claims",),
        kept="leader/grant: two honest members never claim the same partition, so this takes a member that "
        "claims what it has lost (prepare_not_repeated_after_reset); then the newest claim is the true one",
    ),
    Variation(
        name="held_back", about="contract",
        sentence="what a silent static member may still have may be offered, if EAGER",
        contract=_but(held_back=None),
        obligations=(("lead", "offered what nobody else has"),),
        refutation=Refutation(goal="exclusive ownership", path=_SILENT, altered=altered.NOTHING_HELD_BACK),
    ),
)  # fmt: skip

# -- the member ----------------------------------------------------------------------------------------

_MEMBER = (
    _switched(
        "claims_always_empty", about="member", sentence="JoinGroup claims nothing",
        obligations=(("join", "a claim is what is owned"),),
        refutation=Refutation(goal="exclusive ownership", path=_SECOND_SETTLED),
    ),
    _switched(
        "keep_owned_on_sync_rip", about="member",
        sentence="a claim is since the generation joined last, not the one that assigned it",
        invariants={
            "a claim is what is owned": Implies(
                And(_s.wire(C) == JOIN, honest(C), _s.id(M), of(M) == C, _s.names(M), owns(_s, C, P)),
                _s.sent(C, P) != none,
            ),
            **dict.fromkeys(
                ("a claim is as old as what is owned", "known since", "known to the log since"), BoolVal(True)
            ),
        },
        kept="leader/label: that something is claimed is enough between honest members; since when matters "
        "against members whose claims are stale",
    ),
    Variation(
        name="prepare_not_repeated_after_reset", about="member",
        sentence="expelled by an answer to JoinGroup or SyncGroup, it loses nothing",
        instead=(loses_nothing(member.expelled),), switches=("prepare_not_repeated_after_reset",),
        obligations=(("expelled", "prepared without membership owns nothing"),),
        refutation=Refutation(goal="exclusive ownership", path=_LOST,
                              sizes={"Member": 3, "Generation": 5}),
    ),
    Variation(
        name="prepare_once_per_rebalance", about="member",
        sentence="whatever expels it before the join completes, it loses nothing",
        instead=tuple(
            loses_nothing(effect)
            for effect in (
                member.expelled, heartbeats.heartbeat_of_unknown, heartbeats.heartbeat_of_old,
                heartbeats.late_answer_expels, process.poll_too_late,
            )
        ),
        switches=("prepare_once_per_rebalance",),
        obligations=tuple(
            (action, "prepared without membership owns nothing")
            for action in (
                "expelled", "heartbeat_of_unknown", "heartbeat_of_old", "late_answer_expels", "poll_too_late"
            )
        ),
        refutation=Refutation(goal="exclusive ownership", path=_LOST,
                              sizes={"Member": 3, "Generation": 5}),
    ),
    _switched(
        "protocol_flag_inconsistent", about="member", sentence="EAGER does not revoke before it joins",
        obligations=(("partitions_revoked_to_join", "prepared in EAGER owns nothing"),),
        refutation=Refutation(goal="exclusive ownership", path=_SECOND_SETTLED,
                              sizes={"Assignor": 2},
                              given=And(_s.lists(C, A), Implies(_s.chosen(A), Not(cooperative(A))))),
    ),
    _switched(
        "no_revoke_on_protocol_downgrade", about="member",
        sentence="one assignor that can do COOPERATIVE is enough not to revoke",
        obligations=(("reconfigure", "EAGER by its list"),),
        refutation=Refutation(goal="exclusive ownership", path=f"A: reconfigure {_SECOND_SETTLED}",
                              sizes={"Assignor": 2}, given=Implies(_s.chosen(A), Not(cooperative(A)))),
    ),
    Variation(
        name="unsubscribed_are_kept", about="member",
        sentence="COOPERATIVE does not revoke what left the subscription before it joins",
        instead=(variations.unsubscribed_are_kept,),
        kept="callback/revoked: what is claimed goes to nobody else until it is revoked after the join",
    ),
    Variation(
        name="clear_member_id_on_illegal_generation", about="member",
        sentence="ILLEGAL_GENERATION makes it forget its member id",
        instead=tuple(
            forgets(effect)
            for effect in (member.expelled, heartbeats.heartbeat_of_old, heartbeats.late_answer_expels)
        ),
        switches=("clear_member_id_on_illegal_generation",),
        kept="error/id: the id that stays behind blocks its partitions until its session expires",
    ),
    _switched(
        "reset_on_sync_rip", about="member",
        sentence="REBALANCE_IN_PROGRESS from SyncGroup resets the membership",
        kept="error/retriable: partitions are lost for nothing",
    ),
    _switched(
        "reset_on_retriable", about="member",
        sentence="an error that a retry would cure resets the membership",
        kept="error/retriable: partitions are lost for nothing",
    ),
    Variation(
        name="no_sent_generation_check", about="member",
        sentence="late errors for an older membership end the present one",
        instead=(variations.expelled_by_old_errors, variations.expelled_by_old_answers),
        switches=(
            "no_sent_generation_check", "late_commit_resets", "commit_illegal_generation_always_lost",
        ),
        kept="error/old: partitions are lost for nothing",
    ),
    _switched(
        "commit_error_no_rejoin", about="member", sentence="an error of a late request changes nothing",
        kept="error/membership: it goes on reading what others own by then; its commits are refused",
    ),
    Variation(
        name="no_rejoin_after_illegal_generation", about="member",
        sentence="once expelled it does not join again",
        instead=tuple(
            stays_out(effect)
            for effect in (member.expelled, heartbeats.heartbeat_of_old, heartbeats.late_answer_expels)
        ),
        switches=("no_rejoin_after_illegal_generation",),
        kept="error/membership: its partitions are read by nobody",
    ),
    _switched(
        "join_rip_fatal", about="member",
        sentence="REBALANCE_IN_PROGRESS from JoinGroup ends the consumer",
        kept="poll/throws: a consumer is lost for nothing",
    ),
    Variation(
        name="static_forgets_id", about="member",
        sentence="a static member forgets its id although it does not leave",
        instead=tuple(map(forgets, (process.unsubscribe, process.poll_too_late))),
        switches=("static_forgets_id",),
        kept="poll/throws: a JoinGroup that is left behind makes an id that fences the consumer",
    ),
    _switched(
        "rejoin_flag_not_latched", about="member",
        sentence="a rejoin is dropped when what called for it goes away",
        kept="group/converges: a JoinGroup that fails is not sent again",
    ),
    _switched(
        "no_rejoin_after_revoke", about="member",
        sentence="what is revoked after a join is not followed by another one",
        kept="callback/rejoin: what was withheld is given to nobody",
    ),
    _switched(
        "leave_on_empty_assignment", about="member",
        sentence="assigned nothing, it forgets its membership",
        kept="group/converges: it stops taking part",
    ),
    _switched(
        "no_leave_on_unsubscribe", about="member", sentence="unsubscribe does not send LeaveGroup",
        kept="leave/sent: its partitions wait for its session to expire",
    ),
)  # fmt: skip

_INFORMED = "the listener is told"

_LISTENER = (
    _switched(
        "assign_before_revoke_cb", about="listener",
        sentence="the new assignment is owned before the listener hears of the old",
        obligations=(("partitions_assigned", _INFORMED),),
        refutation=Refutation(goal=_INFORMED, path=f"{_SECOND} {_OWNS}", clause="callback/owned"),
    ),
    _switched(
        "no_snapshot_before_callback", about="listener",
        sentence="an assignment is handled although the membership was reset",
        obligations=(("partitions_assigned", "joining has prepared"), ("partitions_assigned", _INFORMED)),
        refutation=Refutation(goal=_INFORMED, path=f"""
            A: {_ENTERS}
            -: join_phase_ends
            A: {_DECIDES} sync_answered poll_too_late partitions_assigned""",
            clause="callback/generation"),
    ),
    _switched(
        "abort_on_callback_exception", about="listener",
        sentence="an exception of the listener ends the callbacks",
        obligations=(("partitions_revoked", _INFORMED),),
        refutation=Refutation(goal=_INFORMED, path=f"{_SECOND} sync_answered partitions_revoked",
                              clause="callback/told",
                              also={"partitions_revoked": "listener throws"}),
    ),
    _switched(
        "clear_before_leave_prepare", about="listener",
        sentence="on leaving the partitions go before the listener is asked",
        obligations=(("close", _INFORMED),),
        refutation=Refutation(goal=_INFORMED, path=f"{_ALONE} close", clause="leave/callback"),
    ),
)  # fmt: skip

# -- the coordinator -----------------------------------------------------------------------------------

_COORDINATOR = (
    Variation(
        name="no_generation_bump", about="coordinator", sentence="a join phase ends without a new generation",
        instead=(variations.no_generation_bump,),
        obligations=tuple(
            ("join_phase_ends", name)
            for name in (
                "a commit is of a settled generation", "settled is not between join and sync",
                "no answer between join and sync",
            )
        ),
        refutation=Refutation(goal="commit fencing", path=f"""{_ALONE}
            A: commit_late
            B: {_ENTERS}
            A: {_REJOINS}
            -: join_phase_ends
            A: {_DECIDES}
            B: {_FOLLOWS}""", clause="group/commit", altered=altered.NO_GENERATION_BUMP),
    ),
    Variation(
        name="commit_generation_unchecked", about="coordinator",
        sentence="a commit of a member is accepted whatever its generation",
        properties=_fenced(_any_generation),
        obligations=(("", "commit fencing"),),
        refutation=Refutation(goal="commit fencing", path=f"""{_ALONE}
            A: commit_late
            B: {_ENTERS}
            A: {_REJOINS}
            -: join_phase_ends
            A: {_DECIDES}
            B: {_FOLLOWS}""", clause="group/commit", altered=altered.COMMIT_GENERATION_UNCHECKED),
    ),
    Variation(
        name="commit_member_unchecked", about="coordinator",
        sentence="a commit of the generation is accepted whoever sends it",
        properties=_fenced(_any_member),
        obligations=(("", "commit fencing"),),
        refutation=Refutation(goal="commit fencing", path=f"""{_ALONE}
            A: commit_late pause session_expires
            -: join_phase_ends_empty group_expires
            B: {_ENTERS}
            -: join_phase_ends
            B: {_DECIDES} {_OWNS}""", clause="group/commit", altered=altered.COMMIT_MEMBER_UNCHECKED),
    ),
    Variation(
        name="commit_between_join_and_sync", about="coordinator",
        sentence="a commit is accepted between join and sync too",
        properties=_fenced(_any_phase),
        kept="group/commit: nobody has a commit of that generation yet; REBALANCE_IN_PROGRESS only says so",
    ),
    Variation(
        name="unknown_member_rejoins", about="coordinator",
        sentence="a JoinGroup with an id that was removed is accepted",
        instead=(variations.unknown_member_rejoins,),
        obligations=tuple(
            ("join_of_unknown", name)
            for name in ("no two rights", "not ahead", "a late commit takes nothing")
        ),
        refutation=Refutation(goal="exclusive ownership", path=f"{_REMOVED} join_of_unknown",
                              altered=altered.UNKNOWN_MEMBER_REJOINS),
    ),
    _switched(
        "silent_static_claims_stale", about="coordinator",
        sentence="a silent static member claims what it sent last, not what it was assigned since",
        obligations=(("join_phase_ends", "what is held is claimed when the leader asks"),),
        refutation=Refutation(goal="exclusive ownership", path=_SILENT),
    ),
    Variation(
        name="assignment_not_logged", about="coordinator", sentence="a failover forgets what was assigned",
        instead=(variations.assignment_not_logged,),
        obligations=(("leader_syncs", "settled as in the log"), ("leader_syncs", "known to the log")),
        refutation=Refutation(goal="exclusive ownership", path=f"""
            A: {_ENTERS}
            B: {_ENTERS}
            -: join_phase_ends
            A: {_DECIDES} {_OWNS}
            B: {_FOLLOWS} pause
            -: failover
            A: enforce_rebalance partitions_revoked_to_join join join_of_member
            B: rebalance_timeout
            -: join_phase_ends
            A: {_DECIDES} {_OWNS}""", altered=altered.ASSIGNMENT_NOT_LOGGED),
    ),
    _switched(
        "static_replace_only_stable", about="coordinator",
        sentence="in the join phase an instance that is known becomes another member",
        invariants=_INSTANCES,
        obligations=(("join_of_static", _INSTANCE),),
        refutation=Refutation(goal=_INSTANCE, path=f"A: {_ENTERS} crash lost {_ENTERS}",
                              clause="group/instance"),
    ),
    _switched(
        "persist_selected_protocol_only", about="coordinator",
        sentence="the log keeps the selected assignor only",
        kept="poll/throws: members that were compatible are refused after a failover",
    ),
    Variation(
        name="static_removal_not_persisted", about="coordinator",
        sentence="a static id that was removed comes back with a failover",
        instead=tuple(
            map(static_removal_not_persisted, (failover.failover, failover.failover_while_loading))
        ),
        switches=("static_removal_not_persisted",),
        kept="poll/throws: the process with the new id is fenced",
    ),
    Variation(
        name="static_replace_not_persisted", about="coordinator",
        sentence="a failover undoes the replacement of a static id",
        instead=(
            variations.static_replace_not_persisted,
            *map(static_removal_not_persisted, (failover.failover, failover.failover_while_loading)),
        ),
        invariants={
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
        switches=("static_replace_not_persisted",),
        kept="poll/throws: the process with the new id is fenced; the log differs in ids only",
    ),
    _switched(
        "static_replace_drops_revocation", about="coordinator",
        sentence="a static member returns without a rebalance although the old process had something to "
        "revoke",
        kept="group/converges: what it had to revoke is given to nobody",
    ),
    _switched(
        "static_rejoin_ignores_subscription", about="coordinator",
        sentence="a static member returns without a rebalance although it subscribes to something else",
        kept="coordinator/static: it gets what it does not want",
    ),
    _switched(
        "static_replace_in_completing_no_rebalance", about="coordinator",
        sentence="a static id is replaced while the leader assigns, and no rebalance follows",
        invariants={
            "what is held is claimed when the leader asks": Implies(
                And(_s.group == COMPLETING, _s.member(M), honest(of(M)), holds(_s, M, P)),
                _s.claim(M, P) != none,
            ),
            "offered what nobody else has": Implies(
                And(deciding(_s), _s.offer(of(L), M, P), _s.member(M), _s.member(N)),
                Implies(
                    And(honest(of(M)), honest(of(N)), Or(_s.claim(N, P) != none, holds(_s, N, P))), M == N
                ),
            ),
        },
        kept="coordinator/static: the new id is left without an assignment",
    ),
    _switched(
        "sync_load_error_raw", about="coordinator", sentence="SyncGroup during load ends the client",
        kept="poll/throws: a consumer is lost for nothing",
    ),
    _switched(
        "evict_static_on_rebalance_timeout", about="coordinator",
        sentence="static members that miss the join phase are removed",
        kept="coordinator/keep: a restart within the session timeout moves partitions",
    ),
    _switched(
        "ghost_on_retry", about="coordinator", sentence="JoinGroup without an id makes a member at once",
        kept="coordinator/admit: each retry leaves a member behind",
    ),
    _switched(
        "rebalance_timeout_zero", about="coordinator",
        sentence="the join phase ends without those who have yet to join",
        kept="group/converges: who comes late is removed, and joins again, for ever",
    ),
)  # fmt: skip

NECESSITY: Mapping[str, Variation] = {
    variation.name: variation for variation in (*_CONTRACT, *_MEMBER, *_LISTENER, *_COORDINATOR)
}
"""Every variation by name."""
