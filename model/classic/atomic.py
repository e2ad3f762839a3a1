"""Fewer and larger steps: what commutes with everything that others can do happens at once.

A JoinGroup that leaves its member arrives; an error comes back at once; the SyncGroup follows the
JoinGroup's answer; a SyncGroup's answer is handled at once. Until it arrives a request is the member's own
affair: while it waits the member's state is touched by nobody, its heartbeats are off or without effect,
and what it owns has only become less. So each of these can be moved next to the step after it, and every
reachable conflict stays reachable. Requests that stay under way, answers that wait and requests that get
lost are faults here ("slow network", "disconnect"). The leader's SyncGroup keeps its own step, because the
group may change between its decision and its arrival.

``Setup.steps`` chooses; that both granularities give the same verdicts is tested.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rebalance_verifier.model.classic.state import JoinOk, Refused, SyncOk
from rebalance_verifier.model.machine import Action, Outcome, Value, at_a_cost, chain


def atomic(actions: Iterable[Action], faults: Iterable[str]) -> Iterator[Action]:
    """Yield the actions of a group with larger steps, in the same order."""
    listed = list(actions)
    by_name = {(action.name, action.who): action for action in listed}
    kinds = tuple(faults)
    for action in listed:
        who = action.who
        if action.name == "join":
            request, error = by_name["join request", who], _only(by_name["receive", who], Refused)
            yield chain("join", action, request, error)
            if "slow network" in kinds:
                yield at_a_cost("join late", action, "budget")
            if ("return not stored", who) in by_name:
                paid, undone = at_a_cost("join", action, "budget"), _free(by_name["return not stored", who])
                yield chain("join not stored", paid, undone, error, whole=True)
            if "polls on" in kinds:
                paid, goes_on = at_a_cost("join", action, "budget"), _free(by_name["polls on", who])
                yield chain("join polls on", paid, request, goes_on, whole=True)
            if "left behind" in kinds:
                left = _free(by_name["left behind", who])
                yield chain("join left behind", at_a_cost("join", action, "budget"), left)
            if "disconnect" in kinds:
                paid, lost = at_a_cost("join", action, "budget"), _free(by_name["disconnect", who])
                yield chain("join lost", paid, lost)
                yield chain("join unanswered", paid, request, lost)
        elif action.name == "commit refused":
            request, error = by_name["join request", who], _only(by_name["receive", who], Refused)
            yield chain("commit refused", action, request, error)
        elif action.name == "receive":
            sync, error = by_name["sync request", who], _only(action, Refused)
            after_join, after_sync = _only(action, JoinOk), _only(action, SyncOk)
            yield chain("receive join", after_join, sync, error)
            yield chain("receive sync", after_sync, by_name["complete", who])
            yield error._replace(name="receive error")
            if "slow network" in kinds:
                yield at_a_cost("sync late", after_join, "budget")
                yield at_a_cost("callback late", after_sync, "budget")
            if "listener throws" in kinds:
                throws = _free(by_name["listener throws", who])
                yield chain("callback throws", at_a_cost("receive", after_sync, "budget"), throws)
            if "completes again" in kinds:
                throws = _free(by_name["completes again", who])
                yield chain("callback again", at_a_cost("receive", after_sync, "budget"), throws, whole=True)
            if "left behind" in kinds:
                left = _free(by_name["left behind", who])
                yield chain("sync left behind", at_a_cost("receive", after_join, "budget"), left)
            if "disconnect" in kinds:
                lost = _free(by_name["disconnect", who])
                yield chain("sync lost", at_a_cost("receive", after_join, "budget"), lost)
        elif action.name in ("sync refused", "join refused"):
            yield chain(action.name, action, _only(by_name["receive", who], Refused))
        else:
            yield action


def _only(receive: Action, kind: type) -> Action:
    """``receive`` for one kind of answer."""
    guard = receive.guard
    assert guard is not None

    def narrower(wire: Value) -> bool:
        return isinstance(wire, kind) and guard(wire)

    return receive._replace(guard=narrower)


def _free(fault: Action) -> Action:
    """Return a fault as a part of another one, which has paid."""

    def run(budget: int, *values: Value) -> Iterable[Outcome]:
        return fault.run(budget + 1, *values)

    return fault._replace(run=run, guard=None)
