"""What is proved of every reachable state, and the invariants that carry the proof.

A property is what one wants to know. An invariant is what makes it inductive: it holds at first, and every
action keeps it, given all of them. Capital letters are for all.

The heart is ``no two rights``. A member has a *right* to a partition when the coordinator could let it have
it, or when its consumer has it or is about to: its last claim names it, it is assigned it, its consumer
owns it, or it is on the wire as a claim or as an assignment. No two honest members of the group ever have
a right to the same partition. What is on the way is thereby as safe as what has arrived.

Dishonest consumers, whose claims are not to be relied on, may be in the same group: what is proved is proved
of the honest ones among themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import NamedTuple

from rebalance_verifier.specs.classic.contract import SAFETY, ContractClause
from rebalance_verifier.specs.classic.heartbeats import accepts
from rebalance_verifier.specs.classic.member import owns, participates
from rebalance_verifier.specs.classic.protocol import protocol
from rebalance_verifier.specs.classic.vocabulary import (
    COMMIT,
    COMPLETING,
    DOWN,
    EMPTY,
    IDLE,
    JOIN,
    JOIN_NEW,
    JOIN_OK,
    JOIN_PARKED,
    JOIN_REFUSED,
    JOINING,
    PREPARING,
    SETTLED,
    STABLE,
    SYNC,
    SYNC_OK,
    SYNC_PARKED,
    SYNCING,
    UNJOINED,
    VOCABULARY,
    A,
    C,
    G,
    L,
    M,
    N,
    P,
    cooperative,
    honest,
    lt,
    none,
    of,
    static,
)
from rebalance_verifier.specs.logic.language import Effect, State, Term
from rebalance_verifier.specs.logic.specification import Specification
from z3 import And, Exists, Implies, Not, Or


class RecordTerms(NamedTuple):
    """The members as the coordinator has them in memory, or as they are in its log."""

    member: Term
    claim: Term
    assigned: Term
    current: Term


def live(s: State) -> RecordTerms:
    return RecordTerms(s.member, s.claim, s.assigned, s.current)


def log(s: State) -> RecordTerms:
    return RecordTerms(s.log_member, s.log_claim, s.log_assigned, s.log_current)


def holds(s: State, m: Term, p: Term) -> Term:
    """State that the consumer of ``m`` owns ``p`` or is about to, or says so in a JoinGroup under way, on
    whatever connection."""
    c = of(m)
    has = And(s.id(m), Or(owns(s, c, p), s.got(c, p)))
    on_wire = And(s.names(m), Or(s.granted(c, p), s.sent(c, p) != none))
    return Or(has, on_wire, s.left_claim(m, p) != none)


def held_since(s: State, m: Term, p: Term, g: Term) -> Term:
    """Return the same with the generation that assigned it."""
    c = of(m)
    has = And(s.id(m), Or(s.since(c, p) == g, And(s.got(c, p), s.generation(c) == g)))
    on_wire = And(s.names(m), Or(And(s.granted(c, p), s.wire_generation(c) == g), s.sent(c, p) == g))
    return And(g != none, Or(has, on_wire, s.left_claim(m, p) == g))


def right(s: State, records: RecordTerms, m: Term, p: Term) -> Term:
    """State that the member ``m`` has, or may be let have, ``p``."""
    return Or(records.claim(m, p) != none, records.assigned(m, p), holds(s, m, p))


def no_two_rights(s: State, records: RecordTerms) -> Term:
    both = And(records.member(M), records.member(N), honest(of(M)), honest(of(N)))
    return Implies(And(both, right(s, records, M, P), right(s, records, N, P)), M == N)


def known(s: State, records: RecordTerms) -> Term:
    """State that the coordinator has been told of all that an honest member holds, or assigned it."""
    recorded = Or(records.claim(M, P) != none, records.assigned(M, P))
    return Implies(And(records.member(M), honest(of(M)), holds(s, M, P)), recorded)


def known_since(s: State, records: RecordTerms) -> Term:
    """And since when; nothing is held since a generation to come."""
    recorded = Or(records.assigned(M, P), Not(lt(records.claim(M, P), G)))
    held = And(records.member(M), honest(of(M)), held_since(s, M, P, G))
    return Implies(held, And(recorded, Not(lt(records.current, G))))


def commit_fenced(s: State, records: RecordTerms) -> Term:
    """State that a commit under way that would still be accepted is for nothing that another one has a right
    to."""
    commit = And(s.stray(of(M)) == COMMIT, s.stray_names(M), s.stray_generation(of(M)) == records.current)
    other = And(records.member(N), honest(of(N)), M != N, right(s, records, N, P))
    return Implies(And(commit, records.member(M), honest(of(M)), s.committed(of(M), P)), Not(other))


def not_ahead(s: State, records: RecordTerms) -> Term:
    """No settled member, and no commit or assignment under way, is of a generation yet to come."""
    settled = And(s.id(M), s.state(of(M)) == STABLE, s.generation(of(M)) == G)
    commit = And(s.stray_names(M), s.stray(of(M)) == COMMIT, s.stray_generation(of(M)) == G)
    answer = And(s.names(M), s.wire(of(M)) == SYNC_OK, s.wire_generation(of(M)) == G)
    return Implies(And(records.member(M), Or(settled, commit, answer)), Not(lt(records.current, G)))


def invariants_of(s: State) -> dict[str, Term]:
    """Return every invariant of a state, by name."""
    return {
        # -- ids --
        "one id": Implies(And(s.id(M), s.id(N), of(M) == of(N)), M == N),
        "an id is known": Implies(s.id(M), s.identified(of(M))),
        "one name": Implies(And(s.names(M), s.names(N), of(M) == of(N)), M == N),
        "one late name": Implies(And(s.stray_names(M), s.stray_names(N), of(M) == of(N)), M == N),
        "one leader": Implies(And(s.leads(M), s.leads(N)), M == N),
        "a generation has an id": Implies(s.generation(C) != none, s.identified(C)),
        "pending or member": Not(And(s.pending(M), Or(s.member(M), s.log_member(M), s.stray_names(M)))),
        "nothing is known of others": Implies(
            Not(s.member(M)),
            And(s.claim(M, P) == none, Not(s.assigned(M, P)), Not(s.topics(M, P)), Not(s.joined(M))),
        ),
        "nothing is logged of others": Implies(
            Not(s.log_member(M)),
            And(s.log_claim(M, P) == none, Not(s.log_assigned(M, P)), Not(s.log_topics(M, P))),
        ),
        "an empty group": Implies(s.group == EMPTY, Not(s.member(M))),
        "one logged leader": Implies(And(s.log_leads(M), s.log_leads(N)), M == N),
        "there is a generation": And(s.current != none, s.log_current != none),
        "answers have a generation": Implies(
            Or(*(s.wire(C) == kind for kind in (JOIN_OK, SYNC, SYNC_PARKED, SYNC_OK))),
            s.wire_generation(C) != none,
        ),
        # -- the consumer --
        "synced has a generation": Implies(
            Or(s.state(C) == SYNCING, s.state(C) == STABLE), s.generation(C) != none
        ),
        "down has nothing": Implies(
            s.life(C) == DOWN, And(s.state(C) == UNJOINED, Not(s.received(C)), Not(s.identified(C)))
        ),
        "down owns nothing": Implies(s.life(C) == DOWN, Not(owns(s, C, P))),
        "joining has prepared": Implies(Or(s.state(C) == JOINING, s.state(C) == SYNCING), Not(s.prepare(C))),
        "prepared without membership owns nothing": Implies(
            And(Not(s.prepare(C)), owns(s, C, P)), s.generation(C) != none
        ),
        # What it has been assigned and threw at is completed once more before it prepares.
        "prepared in EAGER owns nothing": Implies(
            And(Not(s.prepare(C)), s.eager(C), Not(s.received(C))), Not(owns(s, C, P))
        ),
        "EAGER by its list": Implies(And(s.lists(C, A), Not(cooperative(A))), s.eager(C)),
        "a received assignment": Implies(s.received(C), And(s.wire(C) == IDLE, s.state(C) != JOINING)),
        "received or nothing": Implies(s.got(C, P), s.received(C)),
        "the listener is told": s.told(C, P) == owns(s, C, P),
        # -- what is under way --
        "only JoinGroup claims": Implies(
            s.sent(C, P) != none, Or(s.wire(C) == JOIN, And(s.wire(C) == JOIN_NEW, Not(honest(C))))
        ),
        "only SyncGroup grants": Implies(s.granted(C, P), s.wire(C) == SYNC_OK),
        "only JoinGroup lists": Implies(s.sent_list(C, A), Or(s.wire(C) == JOIN, s.wire(C) == JOIN_NEW)),
        "EAGER claims nothing": Implies(
            And(s.sent_list(C, A), Not(cooperative(A)), honest(C)), s.sent(C, P) == none
        ),
        "a claim is what is owned": Implies(
            And(s.wire(C) == JOIN, honest(C), s.id(M), of(M) == C, s.names(M), owns(s, C, P)),
            s.sent(C, P) == s.since(C, P),
        ),
        "nothing is new under a name": Implies(And(s.wire(C) == JOIN_NEW, of(M) == C), Not(s.names(M))),
        "a new one has no id": Implies(
            And(s.wire(C) == JOIN_NEW, s.state(C) == JOINING), Not(s.identified(C))
        ),
        "answered under its id": Implies(
            And(
                s.state(of(M)) == JOINING,
                s.identified(of(M)),
                s.names(M),
                Or(*(s.wire(of(M)) == kind for kind in (JOIN, JOIN_PARKED, JOIN_OK))),
            ),
            s.id(M),
        ),
        "a pending id is asked with": Implies(
            And(s.pending(M), s.names(M)), Or(s.wire(of(M)) == JOIN, s.wire(of(M)) == JOIN_REFUSED)
        ),
        "a pending id has no generation": Implies(And(s.pending(M), s.id(M)), s.generation(of(M)) == none),
        "a pending id holds nothing": Implies(And(s.pending(M), honest(of(M))), Not(holds(s, M, P))),
        # -- what was left behind --
        "only JoinGroup leaves a claim": Implies(s.left_claim(M, P) != none, s.left(M)),
        "asking is not answered": Implies(
            Or(s.wire(C) == JOIN, s.wire(C) == JOIN_NEW), Or(s.state(C) == JOINING, s.state(C) == UNJOINED)
        ),
        "overtaken by nothing that was answered": Implies(
            And(s.left(M), s.names(M)), Or(s.wire(of(M)) == JOIN, s.wire(of(M)) == JOIN_REFUSED)
        ),
        "not answered since": Implies(
            And(s.left(M), s.id(M)),
            And(Or(s.state(of(M)) == JOINING, s.state(of(M)) == UNJOINED), Not(s.received(of(M)))),
        ),
        "what is owned was claimed": Implies(
            And(s.left(M), honest(of(M)), s.id(M), owns(s, of(M), P)),
            s.left_claim(M, P) == s.since(of(M), P),
        ),
        "what is claimed was claimed": Implies(
            And(s.left(M), honest(of(M)), s.names(M), s.sent(of(M), P) != none),
            s.left_claim(M, P) == s.sent(of(M), P),
        ),
        "EAGER leaves no claim": Implies(
            And(s.left_list(M, A), Not(cooperative(A)), honest(of(M))), s.left_claim(M, P) == none
        ),
        # -- the coordinator --
        "joined in the join phase": Implies(s.joined(M), And(s.group == PREPARING, s.member(M))),
        "joined waits for the answer": Implies(
            And(s.joined(M), s.names(M)),
            Or(*(s.wire(of(M)) == kind for kind in (JOIN, JOIN_PARKED, JOIN_REFUSED))),
        ),
        "joined has handled its assignment": Implies(And(s.joined(M), s.id(M)), Not(s.received(of(M)))),
        "an assignor is chosen": Implies(s.group == COMPLETING, Exists([A], s.chosen(A))),
        "the chosen assignor is supported": Implies(
            And(s.group == COMPLETING, s.chosen(A), s.member(M)), s.supports(M, A)
        ),
        "EAGER members have claimed nothing": Implies(
            And(s.member(M), honest(of(M)), Or(s.joined(M), And(s.group == COMPLETING, Not(s.silent(M))))),
            Implies(And(s.supports(M, A), Not(cooperative(A))), s.claim(M, P) == none),
        ),
        "joined has claimed what it holds": Implies(
            And(s.joined(M), honest(of(M)), holds(s, M, P)), s.claim(M, P) != none
        ),
        "what is held is claimed when the leader asks": Implies(
            And(s.group == COMPLETING, s.member(M), honest(of(M)), Or(holds(s, M, P), s.assigned(M, P))),
            s.claim(M, P) != none,
        ),
        "a claim is as old as what is owned": Implies(
            And(s.member(M), honest(of(M)), Or(s.joined(M), s.group == COMPLETING), held_since(s, M, P, G)),
            Not(lt(s.claim(M, P), G)),
        ),
        "known": known(s, live(s)),
        "known since": known_since(s, live(s)),
        "no two rights": no_two_rights(s, live(s)),
        # -- the leader's decision under way --
        "offered once": Implies(And(deciding(s), s.offer(of(L), M, P), s.offer(of(L), N, P)), M == N),
        "offered what nobody else has": Implies(
            And(deciding(s), s.offer(of(L), M, P), s.member(M), s.member(N), honest(of(M)), honest(of(N))),
            Implies(right(s, live(s), N, P), M == N),
        ),
        # -- the log --
        "the log is of a settled group": Or(s.log_group == SETTLED, s.log_group == EMPTY),
        "an empty group in the log": Implies(s.log_group == EMPTY, Not(s.log_member(M))),
        "settled as in the log": Implies(s.group == SETTLED, as_in_the_log(s)),
        "known to the log": known(s, log(s)),
        "known to the log since": known_since(s, log(s)),
        "no two rights in the log": no_two_rights(s, log(s)),
        # -- commits --
        "not ahead": not_ahead(s, live(s)),
        "not ahead of the log": not_ahead(s, log(s)),
        "a commit is of a settled generation": Implies(
            And(s.group == COMPLETING, s.member(M), s.stray_names(M), s.stray(of(M)) == COMMIT),
            s.stray_generation(of(M)) != s.current,
        ),
        "settled is not between join and sync": Implies(
            And(s.group == COMPLETING, s.member(M), s.id(M), s.state(of(M)) == STABLE),
            s.generation(of(M)) != s.current,
        ),
        "no answer between join and sync": Implies(
            And(s.group == COMPLETING, s.member(M), s.names(M), s.wire(of(M)) == SYNC_OK),
            s.wire_generation(of(M)) != s.current,
        ),
        "only commits commit": Implies(s.committed(C, P), s.stray(C) == COMMIT),
        "a late commit takes nothing": commit_fenced(s, live(s)),
        "a late commit takes nothing after a failover": commit_fenced(s, log(s)),
    }


def as_in_the_log(s: State) -> Term:
    """State that the log has the present generation and its members, but for a static one whose return was
    undone and is in the log all the same."""
    return And(
        s.log_current == s.current,
        Or(s.member(M) == s.log_member(M), static(of(M))),
        Implies(
            And(s.member(M), s.log_member(M)),
            And(s.assigned(M, P) == s.log_assigned(M, P), s.claim(M, P) == s.log_claim(M, P)),
        ),
    )


def deciding(s: State) -> Term:
    """State that the SyncGroup of the leader ``L`` that the group waits for is under way."""
    request = And(s.wire(of(L)) == SYNC, s.leading(of(L)), s.names(L))
    return And(request, s.leads(L), s.wire_generation(of(L)) == s.current, s.group == COMPLETING)


INVARIANTS: Mapping[str, Term] = invariants_of(VOCABULARY.state())
"""Every invariant by name, with its capital letters."""


def _properties(s: State) -> dict[str, Term]:
    both = And(participates(s, M), participates(s, N), honest(of(M)), honest(of(N)))
    return {
        "exclusive ownership": Implies(
            And(both, owns(s, of(M), P), owns(s, of(N), P)), M == N
        ),
        "exclusive belief of the listeners": Implies(
            And(both, s.told(of(M), P), s.told(of(N), P)), M == N
        ),
        "revoke before assign": Implies(
            And(both, owns(s, of(M), P), Or(s.got(of(N), P), And(s.names(N), s.granted(of(N), P)))), M == N
        ),
        "commit fencing": Implies(
            And(
                s.stray(of(M)) == COMMIT, s.stray_names(M), s.committed(of(M), P), honest(of(M)),
                accepts(s, M, s.stray_generation(of(M))),
                participates(s, N), honest(of(N)), owns(s, of(N), P),
            ),
            M == N,
        ),
    }  # fmt: skip


PROPERTIES: Mapping[str, Term] = _properties(VOCABULARY.state())
"""What is wanted, and follows."""


def specification(*instead: Effect, contract: Mapping[str, ContractClause] = SAFETY) -> Specification:
    """Return the protocol, see there, with what is to be proved of it."""
    bare = protocol(*instead, contract=contract)
    return replace(bare, invariants=dict(_closed()), properties=dict(_closed_properties()))


@cache
def _closed() -> Mapping[str, Term]:
    return VOCABULARY.closed(INVARIANTS)


@cache
def _closed_properties() -> Mapping[str, Term]:
    return VOCABULARY.closed(PROPERTIES)
