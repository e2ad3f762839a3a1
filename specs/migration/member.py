"""The classic client, EAGER or COOPERATIVE, as ``model.migration.member`` does it.

When it is called to a rebalance, and that it joins only then, is left out: it may join at any time, and may
hear at any time that its membership is gone. Each function is one action.
"""

from __future__ import annotations

from rebalance_verifier.specs.consumer import member as client
from rebalance_verifier.specs.consumer.member import NO
from rebalance_verifier.specs.consumer.vocabulary import IDLE, INSIDE, JOINING, P, none
from rebalance_verifier.specs.logic.language import After, State, Term
from rebalance_verifier.specs.migration.vocabulary import JOIN_GROUP, JOIN_OK, NOTHING, REFUSED, SYNC, SYNC_OK


def calls(t: After, m: Term, call: Term, *, epoch: Term = none, parts: Term = NO) -> None:
    """This call is under way for ``m`` now, and no other."""
    t.call[m] = call
    t.call_epoch[m] = epoch
    t.call_parts[m, P] = parts


def start_old(s: State, t: After, m: Term) -> None:
    """A process of the classic protocol starts."""
    t.when(s.call(m) == NOTHING)
    client.start(s, t, m)
    t.old[m] = True


def join_claiming(s: State, t: After, m: Term) -> None:
    """JoinGroup of a COOPERATIVE member: it claims what it owns."""
    t.when(s.runs(m), s.old(m), s.call(m) == NOTHING)
    calls(t, m, JOIN_GROUP, epoch=s.epoch(m), parts=s.owned(m, P))


def join_eager(s: State, t: After, m: Term) -> None:
    """JoinGroup of an EAGER one: it has revoked everything."""
    t.when(s.runs(m), s.old(m), s.call(m) == NOTHING)
    t.owned[m, P] = False
    calls(t, m, JOIN_GROUP, epoch=s.epoch(m))


def join_answered(s: State, t: After, m: Term) -> None:
    """JoinGroup is answered, and SyncGroup leaves."""
    t.when(s.runs(m), s.old(m), s.call(m) == JOIN_OK)
    t.state[m] = INSIDE
    t.epoch[m] = s.call_epoch(m)
    calls(t, m, SYNC, epoch=s.call_epoch(m))


def sync_answered(s: State, t: After, m: Term) -> None:
    """SyncGroup is answered: what is not assigned any more is revoked, and what is new is read."""
    t.when(s.runs(m), s.old(m), s.state(m) == INSIDE, s.call(m) == SYNC_OK)
    t.owned[m, P] = s.call_parts(m, P)
    calls(t, m, NOTHING)


def expelled(s: State, t: After, m: Term) -> None:
    """It hears that its membership is gone: onPartitionsLost of everything."""
    t.when(s.runs(m), s.old(m))
    t.state[m] = JOINING
    t.epoch[m] = none
    t.owned[m, P] = False


def refuses(s: State, t: After, m: Term) -> None:
    """A call is refused, or lost and its client hears so."""
    t.when(s.call(m) != NOTHING, s.wire(m) == IDLE)
    calls(t, m, REFUSED)


def dropped(s: State, t: After, m: Term) -> None:
    """A call is lost; a refusal is heard, and JoinGroup sent again; an answer comes too late."""
    t.when(s.call(m) != NOTHING, s.wire(m) == IDLE)
    calls(t, m, NOTHING)
