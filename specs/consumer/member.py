"""The client: ``ConsumerMembershipManager``, as ``model.consumer.member`` does it.

Each function is one action; ``specs.logic.language`` tells how to read it. A client that is paused takes no
step, one that hangs only sends heartbeats: both are runs of one that could do more.
"""

from __future__ import annotations

from rebalance_verifier.specs.consumer import vocabulary as v
from rebalance_verifier.specs.logic.language import After, State, Term
from z3 import And, BoolVal, Exists, ForAll, If, Implies, Not, Or

YES, NO = BoolVal(True), BoolVal(False)


def has(s: State, m: Term, p: Term) -> Term:
    """Return what ``m`` consumes, or may come to consume without hearing from the coordinator again."""
    return Or(s.owned(m, p), s.claim(m, p), s.goal(m, p), s.received(m, p))


def put(
    t: After,
    m: Term,
    wire: Term,
    *,
    epoch: Term = v.none,
    carries: Term = NO,
    asks: Term = NO,
    sent: Term = NO,
    granted: Term = NO,
) -> None:
    """This is under way for ``m`` now, and nothing else."""
    t.wire[m] = wire
    t.wire_epoch[m] = epoch
    t.carries[m] = carries
    t.asks[m] = asks
    t.sent[m, v.P] = sent
    t.granted[m, v.P] = granted


def forget(t: After, m: Term) -> None:
    """The membership is gone; what is consumed, and was reconciled, stays."""
    t.epoch[m] = v.none
    t.received[m, v.P] = False
    t.reconciling[m] = False
    t.goal[m, v.P] = False
    for flag in ("fresh", "unsent", "full"):
        getattr(t, flag)[m] = False


def blank(t: After, m: Term) -> None:
    """It owns nothing, and is in no group."""
    forget(t, m)
    t.state[m] = v.OUT
    t.owned[m, v.P] = False
    t.claim[m, v.P] = False


# -- heartbeats ----------------------------------------------------------------------------------------


def join(s: State, t: After, m: Term) -> None:
    """A heartbeat of epoch 0 leaves: it joins, and owns nothing."""
    t.when(s.runs(m), s.state(m) == v.JOINING, s.wire(m) == v.IDLE)
    put(t, m, v.JOIN, carries=YES)
    t.full[m] = False


def has_news(s: State, m: Term) -> Term:
    """Return its next heartbeat carries partitions."""
    return Or(s.unsent(m), s.full(m))


def heartbeat(s: State, t: After, m: Term) -> None:
    """A heartbeat leaves that has no news."""
    t.when(s.runs(m), s.state(m) == v.INSIDE, s.wire(m) == v.IDLE, Not(has_news(s, m)))
    put(t, m, v.BEAT, epoch=s.epoch(m))


def full_heartbeat(s: State, t: After, m: Term) -> None:
    """One that acknowledges, or follows a lost answer: it claims what its sender has, or may come to have."""
    t.when(s.runs(m), s.state(m) == v.INSIDE, s.wire(m) == v.IDLE, has_news(s, m))
    send_all(s, t, m, has(s, m, v.P))


def send_all(s: State, t: After, m: Term, claims: Term) -> None:
    """A heartbeat leaves that claims these."""
    put(t, m, v.BEAT, epoch=s.epoch(m), carries=YES, asks=s.full(m), sent=claims)
    t.full[m] = False
    t.unsent[m] = False


def hears(s: State, m: Term) -> Term:
    """State that its process waits for what is under way."""
    return And(s.runs(m), Or(s.state(m) == v.JOINING, s.state(m) == v.INSIDE))


def differs(s: State, m: Term) -> Term:
    """Return the answer on its way brings another assignment than the client has received."""
    other = Exists([v.P], s.granted(m, v.P) != s.received(m, v.P))
    return And(s.carries(m), Or(s.state(m) == v.JOINING, other))


def answered(s: State, t: After, m: Term) -> None:
    """The answer: a new assignment is stored, and never interrupts a reconciliation."""
    t.when(hears(s, m), s.wire(m) == v.ANSWER)
    t.state[m] = v.INSIDE
    t.epoch[m] = s.wire_epoch(m)
    t.received[m, v.P] = If(s.carries(m), s.granted(m, v.P), s.received(m, v.P))
    t.fresh[m] = Or(s.fresh(m), differs(s, m))
    put(t, m, v.IDLE)


def unheard(s: State, t: After, m: Term) -> None:
    """Nobody waits any more for what is under way: it is lost, or answered in vain."""
    t.when(s.wire(m) != v.IDLE, Not(hears(s, m)))
    put(t, m, v.IDLE)


def refused(s: State, t: After, m: Term) -> None:
    """The heartbeat was refused: the client is fenced."""
    t.when(hears(s, m), s.wire(m) == v.REFUSAL)
    t.state[m] = v.FENCED
    forget(t, m)
    put(t, m, v.IDLE)


def lose(s: State, t: After, m: Term) -> None:
    """onPartitionsLost of everything; then it joins again, with the same id."""
    t.when(s.runs(m), s.state(m) == v.FENCED)
    t.state[m] = v.JOINING
    t.owned[m, v.P] = False
    t.claim[m, v.P] = False


# -- reconciliation ------------------------------------------------------------------------------------


def begin(s: State, t: After, m: Term) -> None:
    """``maybeReconcile`` takes the newest assignment, if none is being reconciled."""
    t.when(s.runs(m), s.state(m) == v.INSIDE, s.fresh(m), Not(s.reconciling(m)))
    t.fresh[m] = False
    t.reconciling[m] = True
    t.goal[m, v.P] = s.received(m, v.P)


def revoke(s: State, t: After, m: Term) -> None:
    """onPartitionsRevoked of what the assignment leaves out."""
    t.when(s.runs(m), s.state(m) == v.INSIDE, s.reconciling(m))
    t.owned[m, v.P] = And(s.owned(m, v.P), s.goal(m, v.P))


def assign(s: State, t: After, m: Term) -> None:
    """onPartitionsAssigned of what is new; only now it is consumed."""
    t.when(s.runs(m), s.state(m) == v.INSIDE, s.reconciling(m))
    t.when(ForAll([v.P], Implies(s.owned(m, v.P), s.goal(m, v.P))))
    t.owned[m, v.P] = s.goal(m, v.P)


def acknowledge(s: State, t: After, m: Term) -> None:
    """It is reconciled; a later heartbeat carries it."""
    t.when(s.runs(m), s.state(m) == v.INSIDE, s.reconciling(m))
    t.when(ForAll([v.P], s.owned(m, v.P) == s.goal(m, v.P)))
    t.claim[m, v.P] = s.goal(m, v.P)
    t.unsent[m] = True
    t.reconciling[m] = False
    t.goal[m, v.P] = False


# -- the application, its process, the network ---------------------------------------------------------


def start(s: State, t: After, m: Term) -> None:
    """A process starts, with a member id that is in use nowhere."""
    t.when(
        Not(s.runs(m)), Not(s.member(m)), s.wire(m) == v.IDLE, Not(Exists([v.G, v.P], s.late(m, v.G, v.P)))
    )
    t.runs[m] = True
    t.state[m] = v.JOINING


def subscribe(s: State, t: After, m: Term) -> None:
    """``subscribe()`` after an unsubscribe."""
    t.when(s.runs(m), s.state(m) == v.OUT)
    t.state[m] = v.JOINING


def unsubscribe(s: State, t: After, m: Term) -> None:
    """``unsubscribe()``. Its heartbeat may arrive, as ``removed``, or get lost."""
    t.when(s.runs(m), s.wire(m) == v.IDLE)
    blank(t, m)


def poll_too_late(s: State, t: After, m: Term) -> None:
    """max.poll.interval.ms passes: it leaves, and the application hears of it as it polls."""
    t.when(s.runs(m), s.state(m) == v.INSIDE, s.wire(m) == v.IDLE)
    t.state[m] = v.FENCED
    forget(t, m)


def ends(s: State, t: After, m: Term) -> None:
    """The process is closed or killed. A heartbeat that left may still arrive."""
    t.when(s.runs(m))
    t.runs[m] = False
    blank(t, m)


def disconnected(s: State, t: After, m: Term) -> None:
    """A connection breaks: what is under way is lost, and its client sends every field next time. In a
    failover so for everybody."""
    t.full[m] = Or(s.full(m), hears(s, m))
    put(t, m, v.IDLE)


def commit_late(s: State, t: After, m: Term) -> None:
    """A commit for everything that it consumes leaves."""
    t.when(s.runs(m), s.state(m) == v.INSIDE)
    t.late[m, v.G, v.P] = Or(s.late(m, v.G, v.P), And(s.epoch(m) == v.G, s.owned(m, v.P)))


def commits_end(s: State, t: After, m: Term) -> None:
    """Its commits under way arrive for the last time, or are lost."""
    t.late[m, v.G, v.P] = False
