"""The coordinator's consumer group, as ``model.consumer.coordinator`` and ``reconcile`` do it.

What one heartbeat does there at once are several steps here: a record is made, the epoch is raised, a target
is computed, and what follows is the next step of the member that calls. In between others may come, so
that more is allowed than happens. Everything that the coordinator knows is in its log, one batch for one
heartbeat: a failover loses only what is under way.
"""

from __future__ import annotations

from collections.abc import Callable

from rebalance_verifier.specs.consumer import vocabulary as v
from rebalance_verifier.specs.consumer.member import NO, put
from rebalance_verifier.specs.logic.language import ANY, After, State, Term
from z3 import And, Exists, ForAll, If, Implies, Not, Or

# -- terms ---------------------------------------------------------------------------------------------


def held_in(s: State, m: Term, p: Term) -> Term:
    """Return what the record of ``m`` has."""
    return Or(s.assigned(m, p), s.pending(m, p))


def held(s: State, m: Term, p: Term) -> Term:
    """Return what nobody else may be given."""
    return And(s.member(m), held_in(s, m, p))


def wanted(s: State, m: Term, p: Term) -> Term:
    """Return what it is to hold, of what it subscribes to."""
    return And(s.target(m, p), s.subscribed(m, p))


def still(s: State, m: Term, p: Term) -> Term:
    """State that the heartbeat under way does not say that its sender has given ``p`` up; none that says
    nothing."""
    return Or(Not(s.carries(m)), s.sent(m, p))


def unrevoked(s: State, m: Term) -> Term:
    """It has still to give up what it was to revoke."""
    return And(s.record(m) == v.UNREVOKED, Exists([v.P], And(s.pending(m, v.P), still(s, m, v.P))))


def arrived(s: State, m: Term) -> Term:
    """It has reached the target."""
    return And(s.record(m) == v.STABLE, s.at(m) == s.target_epoch)


def known_epoch(s: State, m: Term) -> Term:
    """State that the heartbeat has the epoch of its member, or the one before with what it was given."""
    only = ForAll([v.P], Implies(s.sent(m, v.P), s.assigned(m, v.P)))
    before = And(s.wire_epoch(m) == s.previous(m), s.carries(m), only)
    return And(s.wire_epoch(m) != v.none, Or(s.wire_epoch(m) == s.at(m), before))


def accepted(s: State, m: Term) -> Term:
    """Describe a heartbeat that the coordinator takes for one of its member ``m``."""
    return And(s.member(m), Or(s.wire(m) == v.JOIN, And(s.wire(m) == v.BEAT, known_epoch(s, m))))


def stored(s: State, m: Term, g: Term, p: Term) -> Term:
    """State that a commit of ``m`` with epoch ``g`` for ``p`` would be stored (KIP-1251)."""
    return And(s.member(m), g != v.none, Not(v.lt(s.at(m), g)), held(s, m, p))


# -- the group -----------------------------------------------------------------------------------------


def raised(s: State, t: After, g: Term) -> None:
    """The group's epoch grows: a subscription, the metadata of a topic, the members are others."""
    t.when(v.lt(s.group_epoch, g))
    t.group_epoch = g


def retargeted(s: State, t: After) -> None:
    """A target is computed. Of the assignor nothing is assumed, but that it assigns to members."""
    t.when(s.target_epoch != s.group_epoch)
    t.target_epoch = s.group_epoch
    t.target[v.M, v.P] = ANY
    t.where(Implies(t.target(v.M, v.P), s.member(v.M)))


def joined(s: State, t: After, m: Term, g: Term) -> None:
    """A new member, and what it subscribes to: its heartbeat is handled by a later step."""
    t.when(s.wire(m) == v.JOIN, Not(s.member(m)))
    raised(s, t, g)
    t.member[m] = True
    t.subscribed[m, v.P] = ANY


def subscribed(s: State, t: After, m: Term, g: Term) -> None:
    """A heartbeat brings another subscription."""
    t.when(s.member(m))
    raised(s, t, g)
    t.subscribed[m, v.P] = ANY


def resolved(s: State, t: After, g: Term) -> None:
    """Patterns are resolved: any members may subscribe to other partitions then."""
    raised(s, t, g)
    t.subscribed[v.M, v.P] = ANY
    t.where(Implies(t.subscribed(v.M, v.P), s.member(v.M)))


def gone(s: State, m: Term) -> Term:
    """State that its process has ended, or is in no group."""
    return Or(Not(s.runs(m)), s.state(m) == v.OUT)


def expired(s: State, t: After, m: Term, g: Term) -> None:
    """The session ends of a member that is gone, of which nothing is under way."""
    t.when(gone(s, m), s.wire(m) == v.IDLE)
    removed(s, t, m, g)


def removed(s: State, t: After, m: Term, g: Term) -> None:
    """A member is removed: it left, its session ended, it revoked too slowly, an administrator did it."""
    t.when(s.member(m))
    raised(s, t, g)
    erased(t, m)


def erased(t: After, m: Term) -> None:
    """There is no record of it."""
    t.member[m] = False
    t.at[m] = v.none
    t.previous[m] = v.none
    t.record[m] = v.STABLE
    for relation in ("assigned", "pending", "target", "subscribed"):
        getattr(t, relation)[m, v.P] = False


# -- static members (KIP-345) --------------------------------------------------------------------------


def goes_away(s: State, t: After, m: Term) -> None:
    """The heartbeat of a static member that leaves with epoch -2: it keeps what it holds, for as long as its
    session lasts. Its client is in no group by then."""
    t.when(s.member(m), s.epoch(m) == v.none, s.wire(m) == v.IDLE)
    is_away(t, m)


def is_away(t: After, m: Term) -> None:
    """Nobody waits for it to revoke."""
    t.at[m] = v.none
    t.previous[m] = v.none
    t.pending[m, v.P] = NO


def replaces(s: State, t: After, m: Term, n: Term) -> None:
    """A static member comes back with another id: it has what the one that went away held. That both are of
    one instance is left out."""
    t.when(s.wire(m) == v.JOIN, Not(s.member(m)), s.member(n), s.at(n) == v.none, s.epoch(n) == v.none)
    t.when(s.wire(n) == v.IDLE)
    t.member[m] = True
    t.record[m] = s.record(n)
    for relation in ("assigned", "target", "subscribed"):
        getattr(t, relation)[m, v.P] = getattr(s, relation)(n, v.P)
    erased(t, n)


def unreleased(s: State, t: After, m: Term) -> None:
    """Its instance has another member, which has not gone away: it has to try again."""
    t.when(s.wire(m) == v.JOIN)
    put(t, m, v.IDLE)


# -- a heartbeat of a member ---------------------------------------------------------------------------


def answer(s: State, t: After, m: Term, epoch: Term, assigned: Term) -> None:
    """The answer leaves; with the assignment if that is another one now, or the heartbeat asks for it."""
    changed = Exists([v.P], s.assigned(m, v.P) != assigned)
    news = Or(s.wire(m) == v.JOIN, s.asks(m), changed)
    put(t, m, v.ANSWER, epoch=epoch, carries=news, granted=And(news, assigned))


def unknown(s: State, t: After, m: Term) -> None:
    """A heartbeat of nobody that is known, or of an epoch that is not his."""
    t.when(s.wire(m) == v.BEAT, Not(accepted(s, m)))
    put(t, m, v.REFUSAL)


def nothing_new(s: State, t: After, m: Term) -> None:
    """It has still to revoke, or has reached the target."""
    t.when(accepted(s, m))
    may_keep = ForAll(
        [v.P], Implies(s.assigned(m, v.P), If(unrevoked(s, m), s.subscribed(m, v.P), wanted(s, m, v.P)))
    )
    t.when(Or(unrevoked(s, m), arrived(s, m)), may_keep)
    answer(s, t, m, s.at(m), s.assigned(m, v.P))


def dropped(s: State, m: Term, p: Term) -> Term:
    """Return what a member keeps no more, although no step to the target is due."""
    return And(s.assigned(m, p), Not(If(unrevoked(s, m), s.subscribed(m, p), wanted(s, m, p))))


def must_drop(s: State, t: After, m: Term) -> None:
    """It has what it does not subscribe to any more, and has to give it up beside what it has to already."""
    t.when(accepted(s, m), Or(unrevoked(s, m), arrived(s, m)))
    t.when(Exists([v.P], And(dropped(s, m, v.P), still(s, m, v.P))))
    kept = And(s.assigned(m, v.P), Not(dropped(s, m, v.P)))
    t.assigned[m, v.P] = kept
    t.pending[m, v.P] = Or(s.pending(m, v.P), dropped(s, m, v.P))
    t.record[m] = v.UNREVOKED
    answer(s, t, m, s.at(m), kept)


def has_dropped(s: State, t: After, m: Term) -> None:
    """A member has given its partitions up."""
    t.when(accepted(s, m), Or(unrevoked(s, m), arrived(s, m)))
    t.when(
        Exists([v.P], dropped(s, m, v.P)), ForAll([v.P], Implies(dropped(s, m, v.P), Not(still(s, m, v.P))))
    )
    kept = And(s.assigned(m, v.P), Not(dropped(s, m, v.P)))
    t.assigned[m, v.P] = kept
    answer(s, t, m, s.at(m), kept)


def surplus(s: State, m: Term, p: Term) -> Term:
    """Return what it holds and is not to hold."""
    return And(s.assigned(m, p), Not(wanted(s, m, p)))


def free(s: State, m: Term, p: Term) -> Term:
    """No other member holds it, to be revoked or not."""
    return ForAll([v.N], Implies(held(s, v.N, p), m == v.N))


def must_revoke(s: State, t: After, m: Term) -> None:
    """``computeNextAssignment``: first it has to give up; until it has it is given nothing."""
    t.when(accepted(s, m), Not(unrevoked(s, m)), Not(arrived(s, m)))
    t.when(Exists([v.P], And(surplus(s, m, v.P), still(s, m, v.P))))
    kept = And(s.assigned(m, v.P), wanted(s, m, v.P))
    t.assigned[m, v.P] = kept
    t.pending[m, v.P] = surplus(s, m, v.P)
    t.record[m] = v.UNREVOKED
    answer(s, t, m, s.at(m), kept)


def given(s: State, t: After, m: Term) -> None:
    """Then it is given what is free, and has the epoch of the target."""
    t.when(accepted(s, m), Not(unrevoked(s, m)), Not(arrived(s, m)))
    t.when(ForAll([v.P], Implies(surplus(s, m, v.P), Not(still(s, m, v.P)))))
    gives(s, t, m)


def gives(s: State, t: After, m: Term, is_free: Callable[[State, Term, Term], Term] = free) -> None:
    """Give as ``given`` does, whenever that may be, with this notion of what is free."""
    gets = And(wanted(s, m, v.P), Or(s.assigned(m, v.P), is_free(s, m, v.P)))
    waits = Exists([v.P], And(wanted(s, m, v.P), Not(s.assigned(m, v.P)), Not(is_free(s, m, v.P))))
    t.at[m] = s.target_epoch
    t.previous[m] = If(s.at(m) == s.target_epoch, s.previous(m), s.wire_epoch(m))
    t.record[m] = If(waits, v.UNRELEASED, v.STABLE)
    t.assigned[m, v.P] = gets
    t.pending[m, v.P] = NO
    answer(s, t, m, s.target_epoch, gets)


# -- commits -------------------------------------------------------------------------------------------


def commit_stored(s: State, t: After, m: Term, g: Term, p: Term) -> None:
    """A commit arrives and is stored; it may arrive again."""
    t.when(s.late(m, g, p), stored(s, m, g, p))


def commit_refused(s: State, t: After, m: Term, g: Term, p: Term) -> None:
    """A commit arrives and is refused."""
    t.when(s.late(m, g, p), Not(stored(s, m, g, p)))
