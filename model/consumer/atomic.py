"""Fewer and larger steps, as for the classic protocol (``model.classic.atomic``).

A heartbeat leaves, arrives and is answered at once: until it arrives it is its client's own affair, and so is
its answer. A reconciliation runs to its end, and onPartitionsLost follows a fence, since what they change is
seen by their own client only; what others may do meanwhile does not depend on it. Requests and answers that
stay under way, get lost, or find the client in a callback are faults here. A heartbeat that changes nothing
is no step.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator

from rebalance_verifier.model.consumer.observations import BeatAnswered
from rebalance_verifier.model.consumer.state import BeatError, ClientState, ConsumerMember
from rebalance_verifier.model.group.setup import letter
from rebalance_verifier.model.machine import Action, Outcome, Value, at_a_cost, chain


def atomic(actions: Iterable[Action], faults: Iterable[str]) -> Iterator[Action]:
    """Yield the actions of a group with larger steps, in the same order."""
    listed = list(actions)
    by_name = {(action.name, action.who): action for action in listed}
    kinds = tuple(faults)
    for action in listed:
        who = action.who
        if action.name == "heartbeat":
            arrival, answer = by_name["heartbeat arrives", who], by_name["answer", who]
            lose = by_name["lose", who]
            yield _changing(chain("heartbeat", action, arrival, answer, lose))
            if "slow network" in kinds:
                yield at_a_cost("heartbeat late", action, "budget")
                yield _changing(chain("answer late", at_a_cost("heartbeat", action, "budget"), arrival))
            if "disconnect" in kinds:
                drop = _free(by_name["disconnect", who])
                paid = at_a_cost("heartbeat", action, "budget")
                yield chain("heartbeat lost", paid, drop, answer)
                yield chain("heartbeat unanswered", paid, arrival, drop, answer)
            if "left behind" in kinds:
                paid, left = at_a_cost("heartbeat", action, "budget"), _free(by_name["left behind", who])
                yield chain("heartbeat left behind", paid, left, answer)
            if "slow callback" in kinds:
                late = chain("callback late", at_a_cost("heartbeat", action, "budget"), arrival, answer)
                yield _fencing(late, f"member {letter(who)}")
        elif action.name == "answer":
            yield chain("answer", action, by_name["lose", who])
        elif action.name == "reconcile":
            rest = (by_name[name, who] for name in ("revoke", "assign", "acknowledge"))
            yield chain("reconcile", action, *rest)
            if "slow callback" in kinds:
                paid = at_a_cost("reconcile late", action, "budget")
                yield paid
                yield chain("assign late", paid, by_name["revoke", who], by_name["assign", who])
        else:
            yield action


def _changing(action: Action) -> Action:
    """Return only the outcomes that change something, fence the client once more, or keep it out for its old
    self."""
    index = [action.reads.index(name) for name in action.writes]

    def run(*values: Value) -> Iterator[Outcome]:
        before = tuple(values[at] for at in index)
        return (o for o in action.run(*values) if o.values != before or any(map(_fences, o.seen)))

    return action._replace(run=run)


def _fences(seen: Hashable) -> bool:
    if not isinstance(seen, BeatAnswered):
        return False
    held = (seen.classic or seen.inside) and seen.error is BeatError.UNRELEASED_INSTANCE_ID
    return held or seen.error is BeatError.FENCED_MEMBER_EPOCH


def _fencing(action: Action, member: str) -> Action:
    """Return only the outcomes by which the client hears that its membership is gone."""
    at = action.writes.index(member)

    def run(*values: Value) -> Iterator[Outcome]:
        for outcome in action.run(*values):
            after = outcome.values[at]
            if isinstance(after, ConsumerMember) and after.state is ClientState.FENCED:
                yield outcome

    return action._replace(run=run)


def _free(fault: Action) -> Action:
    """Return a fault as a part of another one, which has paid."""

    def run(budget: int, *values: Value) -> Iterable[Outcome]:
        return fault.run(budget + 1, *values)

    return fault._replace(run=run, guard=None)
