"""What happens to a consumer from outside: by its application, its operator, the network, the cluster."""

from __future__ import annotations

from rebalance_verifier.specs.classic import vocabulary as v
from rebalance_verifier.specs.classic.coordinator import remove
from rebalance_verifier.specs.classic.member import blank, joined, reset
from rebalance_verifier.specs.classic.wire import clear, clear_stray, put
from rebalance_verifier.specs.logic.language import ANY, After, State, Term
from z3 import And, If, Implies, Not, Or

# -- what the application does -------------------------------------------------------------------------


def poll_too_late(s: State, t: After, c: Term) -> None:
    """max.poll.interval.ms passes: a dynamic member leaves; what is owned is lost at the next poll."""
    poll_too_late_unnoticed(s, t, c)
    _leave(s, t, c)


def poll_too_late_unnoticed(s: State, t: After, c: Term) -> None:
    """A member polls too late, and its LeaveGroup is lost or comes late."""
    t.when(Or(s.life(c) == v.UP, s.life(c) == v.HUNG), Or(s.state(c) == v.SYNCING, s.state(c) == v.STABLE))
    reset(s, t, c, keep_id=v.static(c))


def _leave(s: State, t: After, c: Term) -> None:
    """LeaveGroup of a dynamic member that has joined or tries to."""
    remove(s, t, And(v.of(v.M) == c, s.id(v.M), Not(v.static(c)), s.state(c) != v.UNJOINED))


def unsubscribe(s: State, t: After, c: Term) -> None:
    """``unsubscribe()``; a static member goes on knowing its id."""
    _leave(s, t, c)
    unsubscribe_unnoticed(s, t, c)


def unsubscribe_unnoticed(s: State, t: After, c: Term) -> None:
    """A member unsubscribes, and its LeaveGroup is lost or comes late."""
    t.when(s.life(c) == v.UP, s.subscribes(c))
    clear(s, t, c)
    blank(s, t, c, keep_id=v.static(c))


def unsubscribe_midway(s: State, t: After, c: Term) -> None:
    """A member unsubscribes while a join is under way, the future of which survives: the next one waits for
    its answer."""
    _leave(s, t, c)
    t.when(s.life(c) == v.UP, s.subscribes(c))
    t.when(s.wire(c) != v.JOIN, s.wire(c) != v.JOIN_NEW, s.wire(c) != v.SYNC)
    blank(s, t, c, keep_id=v.static(c))
    t.received[c] = s.received(c)
    t.got[c, v.P] = s.got(c, v.P)


def close(s: State, t: After, c: Term) -> None:
    """``close()``."""
    _leave(s, t, c)
    close_unnoticed(s, t, c)


def close_unnoticed(s: State, t: After, c: Term) -> None:
    """A member closes, and its LeaveGroup is lost, comes late, or is not sent
    (``leaveGroupOnClose=false``)."""
    t.when(s.life(c) == v.UP)
    clear(s, t, c)
    blank(s, t, c)
    t.unseen[c] = False
    t.life[c] = v.DOWN


def subscribe(s: State, t: After, c: Term) -> None:
    """``subscribe()`` after an unsubscribe."""
    t.when(s.life(c) == v.UP, Not(s.subscribes(c)))
    _subscribe(t, c)


def _subscribe(t: After, c: Term) -> None:
    t.subscribes[c] = True
    t.subscribed[c, v.P] = ANY
    t.resubscribed[c] = True


def resubscribe(s: State, t: After, c: Term) -> None:
    """``subscribe()`` with other topics, or back to those of the last JoinGroup."""
    t.when(s.life(c) == v.UP, s.subscribes(c))
    t.subscribed[c, v.P] = ANY
    t.resubscribed[c] = ANY


def enforce_rebalance(s: State, t: After, c: Term) -> None:
    """``enforceRebalance()`` (KIP-568): a flag; SyncGroup's answer under way clears it."""
    t.when(s.life(c) == v.UP, s.identified(c))
    t.rejoin[c] = True


def refresh(s: State, t: After, c: Term) -> None:
    """The consumer's metadata becomes the cluster's; a leader that watches it may have to rejoin."""
    t.when(s.life(c) == v.UP, s.unseen(c))
    t.unseen[c] = False
    t.outdated[c] = ANY


# -- the process ---------------------------------------------------------------------------------------


def start(s: State, t: After, c: Term) -> None:
    """The process starts, for the first time or again; what the one before sent may still be under way."""
    t.when(s.life(c) == v.DOWN)
    t.life[c] = v.UP
    _subscribe(t, c)


def crash(s: State, t: After, c: Term) -> None:
    """The process is killed; what is under way may still arrive."""
    t.when(s.life(c) != v.DOWN)
    blank(s, t, c)
    t.unseen[c] = False
    t.life[c] = v.DOWN


def pause(s: State, t: After, c: Term) -> None:
    """The process stops without noticing it, for as long as it takes."""
    t.when(s.life(c) == v.UP)
    t.life[c] = v.PAUSED


def resume(s: State, t: After, c: Term) -> None:
    """It goes on where it stopped."""
    t.when(s.life(c) == v.PAUSED)
    t.life[c] = v.UP


def hang(s: State, t: After, c: Term) -> None:
    """The application's thread never comes back; heartbeats go on."""
    t.when(s.life(c) == v.UP, Not(And(s.wire(c) == v.JOIN_OK, s.state(c) == v.JOINING)))
    t.life[c] = v.HUNG


def hang_in_assign(s: State, t: After, c: Term) -> None:
    """A member hangs in the handling of JoinGroup's answer, a leader in assign()."""
    t.when(s.life(c) == v.UP, s.wire(c) == v.JOIN_OK, s.state(c) == v.JOINING)
    t.life[c] = v.HUNG
    joined(s, t, c)
    clear(s, t, c)


def reconfigure(s: State, t: After, c: Term) -> None:
    """A bounce of a rolling upgrade, between stop and start: another list of assignors.

    The protocol is EAGER unless every assignor of the list can do COOPERATIVE.
    """
    t.when(s.life(c) == v.DOWN)
    t.lists[c, v.A] = ANY
    t.eager[c] = ANY
    t.where(Implies(And(t.lists(c, v.A), Not(v.cooperative(v.A))), t.eager(c)))


# -- the network ---------------------------------------------------------------------------------------


def disconnect(s: State, t: After, c: Term) -> None:
    """The connection breaks: the request or its answer is lost, and the consumer is told so."""
    t.when(s.life(c) != v.DOWN, s.wire(c) != v.IDLE)
    syncs = Or(*(s.wire(c) == kind for kind in (v.SYNC, v.SYNC_PARKED, v.SYNC_OK, v.SYNC_REFUSED)))
    put(s, t, c, If(syncs, v.SYNC_REFUSED, v.JOIN_REFUSED), error=v.RETRIABLE)


def lost(s: State, t: After, c: Term) -> None:
    """The messages under way for a process that is gone are lost."""
    t.when(s.life(c) == v.DOWN, s.wire(c) != v.IDLE)
    clear(s, t, c)


def stray_lost(s: State, t: After, c: Term) -> None:
    """A late request or answer is lost."""
    t.when(s.stray(c) != v.NO_STRAY)
    clear_stray(s, t, c)


# -- the cluster ---------------------------------------------------------------------------------------


def topics_change(s: State, t: After) -> None:
    """Topics or partitions come or go; consumers that run will see it when they refresh their metadata."""
    t.unseen[v.C] = ANY
    t.where(Implies(s.life(v.C) == v.DOWN, t.unseen(v.C) == s.unseen(v.C)))
