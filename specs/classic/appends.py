"""Appends to the coordinator's log that fail, or take so long that nobody waits for them any more."""

from __future__ import annotations

from rebalance_verifier.specs.classic import vocabulary as v
from rebalance_verifier.specs.classic.coordinator import decides, log_decision, log_return, log_sent, returns
from rebalance_verifier.specs.classic.wire import refuse
from rebalance_verifier.specs.logic.language import After, State, Term


def append_fails(s: State, t: After, c: Term, m: Term) -> None:
    """The append to the log takes too long, and a JoinGroup is told to try again (KAFKA-10870)."""
    t.when(s.wire(c) == v.JOIN_PARKED, v.of(m) == c, s.names(m))
    t.joined[m] = False
    refuse(s, t, c, v.JOIN_REFUSED, v.IN_PROGRESS)


def sync_not_stored(s: State, t: After, c: Term, m: Term) -> None:
    """The leader's SyncGroup in time, and the append to the log fails: the group rebalances.

    Those that wait for it are turned away.
    """
    decides(s, t, c, m)
    t.group = v.PREPARING
    refuse(s, t, c, v.SYNC_REFUSED, v.RETRIABLE)


def sync_stored_in_vain(s: State, t: After, c: Term, m: Term) -> None:
    """An append takes too long and succeeds: nobody hears of the decision, but it is in the log."""
    sync_not_stored(s, t, c, m)
    log_decision(s, t, c)


def return_stored_in_vain(s: State, t: After, c: Term, m: Term, n: Term) -> None:
    """A static member returns, and the append takes too long: the return is undone, but it is in the log.

    Where it is not in the log either, the consumer is just turned away.
    """
    returns(s, t, c, m, n)
    log_return(s, t, m, n)
    log_sent(s, t, c, m)
    refuse(s, t, c, v.JOIN_REFUSED, v.RETRIABLE)
