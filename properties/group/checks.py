"""What the clauses of the protocol ask, each as one function: of views in every state, of what a step shows.

A function returns what is wrong, or None. ``clauses`` says which clause it stands for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rebalance_verifier.model.group import parts as p
from rebalance_verifier.model.group.observations import (
    Admitted,
    Answered,
    Call,
    Callback,
    Claimed,
    Completed,
    Decided,
    Elected,
    Expelled,
    Left,
    Repeated,
    Replaced,
    Seen,
    Threw,
    TurnedAway,
)
from rebalance_verifier.model.group.setup import Setup, letter
from rebalance_verifier.model.machine import Event


def owner(setup: Setup, a: str, b: str, x: int, y: int) -> str | None:
    """Name the partitions that ``a`` and ``b`` both own; ``x`` and ``y`` are what they own, as bit sets."""
    return f"{setup.spell(x & y)} is owned by {a} and by {b}" if x & y else None


def commit(setup: Setup, a: str, b: str, x: int, y: int) -> str | None:
    return f"{a} can commit for {setup.spell(x & y)}, which {b} owns" if x & y else None


def size(limit: int, group: p.GroupState, *sizes: int) -> str | None:
    if group not in (p.GroupState.COMPLETING, p.GroupState.STABLE):
        return None  # who is too many is turned away before the join phase ends
    return f"{sum(sizes)} members, the limit is {limit}" if sum(sizes) > limit else None


def instance(a: str, size: int) -> str | None:
    return f"{size} members of the group have the instance id of {a}" if size > 1 else None


def listener(setup: Setup, a: str, view: tuple[p.Parts, p.Parts, p.Life]) -> str | None:
    believed, owned, life = view
    if believed == owned:
        return None
    return f"{a} ({life}) owns {setup.spell(owned)}, its listener has heard of {setup.spell(believed)}"


def fetch(setup: Setup, a: str, view: tuple[bool, bool, p.Parts]) -> str | None:
    eager, committing, reads = view
    return f"{a} commits and still reads {setup.spell(reads)}" if eager and committing and reads else None


def _newest(decided: Decided) -> Iterator[tuple[int, int, list[int]]]:
    """For each claimed partition (as a bit) its newest generation, and who claims it in that."""
    claims = [(i, parts, generation) for i, (_, parts, generation, _) in enumerate(decided.claims)]
    together = 0
    for _, parts, _ in claims:
        together |= parts
    for number in range(together.bit_length()):
        holders = [(generation, i) for i, parts, generation in claims if parts >> number & 1]
        if holders:
            newest = max(holders)[0]
            yield 1 << number, newest, [i for generation, i in holders if generation == newest]


def stale(setup: Setup, decided: Decided) -> str | None:
    for bit, newest, holders in _newest(decided):
        for i, (member, parts, generation, _) in enumerate(decided.claims):
            loses = parts & bit and generation < newest and i not in holders
            if loses and decided.grants[i].parts & bit:
                old, new = letter(member.slot), letter(decided.claims[holders[0]][0].slot)
                gets = f"{old} claims {setup.spell(bit)} from generation {generation} and gets it"
                return f"{gets}, {new} has it from generation {newest}"
    return None


def withhold(setup: Setup, decided: Decided) -> str | None:
    for bit, _, holders in _newest(decided):
        for i, grant in enumerate(decided.grants):
            if grant.parts & bit and holders != [i]:
                other = decided.claims[next(h for h in holders if h != i)][0]
                goes = f"{setup.spell(bit)} goes to {letter(grant.id.slot)}"
                return f"{goes} while {letter(other.slot)} holds it"
    return None


def label(setup: Setup, claim: Claimed) -> str | None:
    if claim.label == claim.own_gen:
        return None
    claims = f"{letter(claim.who)} claims {setup.spell(claim.parts)} as of generation {claim.label}"
    return f"{claims}, it was assigned in {claim.own_gen}"


def grant(setup: Setup, decided: Decided) -> str | None:
    granted = 0
    for (_, _, _, subscribed), grant in zip(decided.claims, decided.grants, strict=True):
        if grant.parts & granted:
            return f"{setup.spell(grant.parts & granted)} is granted twice"
        if grant.parts & ~subscribed:
            parts = setup.spell(grant.parts & ~subscribed)
            return f"{letter(grant.id.slot)} gets {parts} without subscribing to it"
        granted |= grant.parts
    return None


def log(a: str, group: p.GroupState, unlogged: int) -> str | None:
    if group is not p.GroupState.STABLE or not unlogged:
        return None
    return f"the group is stable, and its log does not know the member id of {a}"


# -- at every step: what it changes --------------------------------------------------------------------

Reads = tuple[bool, bool, p.Parts]
"""EAGER, committing, and what is read."""


def runs(a: str, event: Event, life: tuple[p.Life, p.Life]) -> str | None:
    return None if life[0] is p.Life.UP else f"{a} is {life[0]} and takes part: {event.action}"


def reads_on(
    setup: Setup, a: str, event: Event, reads: tuple[Reads, Reads], kept: tuple[p.Parts, p.Parts]
) -> str | None:
    (eager, _, before), (_, _, after) = reads
    stopped = before & kept[1] & ~after
    if eager or not stopped:
        return None
    return f"COOPERATIVE {a} stops to read {setup.spell(p.Parts(stopped))}, which it keeps: {event.action}"


def enforced(a: str, event: Event, wants: tuple[object, object]) -> str | None:
    return f"enforceRebalance() of {a} changes nothing" if wants[0] == wants[1] else None


def stays(a: str, event: Event, ids: tuple[int, int]) -> str | None:
    return f"static {a} is no member any more by its own {event.action}" if ids[1] < ids[0] else None


# -- at every step: callbacks --------------------------------------------------------------------------


def revoked(setup: Setup, call: Callback) -> str | None:
    if call.call is not Call.REVOKED:
        return None
    if not call.eager and not call.parts:
        return f"COOPERATIVE {letter(call.who)}: onPartitionsRevoked of nothing"
    if call.eager and call.parts != call.believed:
        return f"EAGER {letter(call.who)} revokes {setup.spell(call.parts)} of {setup.spell(call.believed)}"
    surplus = call.parts & ~call.believed
    return f"{letter(call.who)} revokes {setup.spell(surplus)}, which it was never given" if surplus else None


def lost(setup: Setup, call: Callback) -> str | None:
    if call.call is Call.REVOKED and (call.reset or call.midway):
        why = "has no membership" if call.reset else "leaves in the middle of a rebalance"
        return f"{letter(call.who)} {why}, and its listener gets onPartitionsRevoked, not onPartitionsLost"
    if call.call is Call.LOST and not (call.reset or call.midway):
        return f"the listener of {letter(call.who)} gets onPartitionsLost with its membership intact"
    return None


def while_owned(setup: Setup, call: Callback) -> str | None:
    gone = call.parts & ~call.owned if call.call is not Call.ASSIGNED else 0
    return f"{letter(call.who)}: {setup.spell(gone)} is gone before it is revoked" if gone else None


def assigned(setup: Setup, seen: Seen) -> str | None:
    calls = [one for one in seen if isinstance(one, Callback) and one.call is Call.ASSIGNED]
    for call in calls:
        if call.parts & call.believed:
            return f"{letter(call.who)} is assigned {setup.spell(call.parts & call.believed)} a second time"
    ended = any(
        isinstance(one, Completed) or (isinstance(one, Threw) and one.error == "listener") for one in seen
    )
    return "a rebalance completed without onPartitionsAssigned" if ended and not calls else None


def order(setup: Setup, seen: Seen) -> str | None:
    calls = [one.call for one in seen if isinstance(one, Callback)]
    early = Call.ASSIGNED in calls[:-1]
    return "something is revoked after onPartitionsAssigned" if early else None


def generation(setup: Setup, call: Callback) -> str | None:
    return None if call.current else f"{letter(call.who)}: {call.call} runs under the generation before"


def rejoin(setup: Setup, done: Completed) -> str | None:
    return f"{letter(done.who)} revoked and does not rejoin" if done.revoked and not done.rejoin else None


# -- at every step: leaving, errors, the coordinator ---------------------------------------------------


def leave(setup: Setup, left: Left) -> str | None:
    if not left.believed:
        return None
    return f"{letter(left.who)} leaves, its listener still believes to have {setup.spell(left.believed)}"


def leave_sent(setup: Setup, left: Left) -> str | None:
    return f"{letter(left.who)} leaves without LeaveGroup" if left.ought and not left.sent else None


_GONE = (p.Error.UNKNOWN_MEMBER_ID, p.Error.ILLEGAL_GENERATION)


def retriable(setup: Setup, answer: Answered) -> str | None:
    if answer.error in _GONE or not answer.reset:
        return None
    return f"{letter(answer.who)} gives up its membership on {answer.api} {answer.error}"


def membership(setup: Setup, answer: Answered) -> str | None:
    if answer.error not in _GONE or not answer.same or (answer.reset and answer.rejoin):
        return None
    what = "stays a member" if not answer.reset else "does not rejoin"
    return f"{letter(answer.who)} hears {answer.api} {answer.error} and {what}"


def old(setup: Setup, answer: Answered) -> str | None:
    if answer.same or not answer.reset:
        return None
    return f"{letter(answer.who)} resets on {answer.api} {answer.error} for an older generation"


def keeps_id(setup: Setup, answer: Answered) -> str | None:
    if answer.error is not p.Error.ILLEGAL_GENERATION or not answer.reset or answer.keeps_id:
        return None
    return f"{letter(answer.who)} forgets its member id on {answer.api} ILLEGAL_GENERATION"


_RIGHTLY = (p.Error.GROUP_MAX_SIZE_REACHED, "listener")
"""Thrown where the KIPs say so: a full group, and what the application itself throws. No two consumers of a
setup share an instance id, so none may be fenced."""


def throws(setup: Setup, threw: Threw) -> str | None:
    if threw.error in _RIGHTLY:
        return None
    message = f": {threw.message}" if threw.message else ""
    return f"{letter(threw.who)}: poll throws {threw.error}{message}"


def admit(setup: Setup, item: Admitted) -> str | None:
    return None if item.known else f"a member id of {letter(item.who)} is admitted that it has never shown"


def turned_away(setup: Setup, item: TurnedAway) -> str | None:
    return f"{letter(item.who)}, a member, is turned away from its full group" if item.member else None


def vote(setup: Setup, item: Elected) -> str | None:
    shared = set(item.lists[0]).intersection(*item.lists)
    if item.protocol not in shared:
        return f"{item.protocol} is selected, which not every member supports"
    votes = Counter(next(name for name in assignors if name in shared) for assignors in item.lists)
    if votes[item.protocol] < max(votes.values()):
        return f"{item.protocol} is selected with {votes[item.protocol]} votes of {dict(votes)}"
    return None


def repeat(setup: Setup, item: Repeated) -> str | None:
    if not item.rebalances:
        return None
    return f"{letter(item.who)} says again what it said, and the group rebalances"


def static(setup: Setup, item: Replaced) -> str | None:
    who = letter(item.who)
    if item.state is p.GroupState.STABLE and item.rebalances is not (item.changed or item.owed):
        same = "another" if item.changed else "the same"
        same += " subscription, a revocation pending," if item.owed else " subscription"
        then = "starts" if item.rebalances else "starts no"
        return f"{who} returns with {same} and {then} rebalance"
    if item.state is p.GroupState.COMPLETING and not item.rebalances:
        return f"{who} returns between join and sync, the leader decides for the id that is gone"
    return None


def leader_told(setup: Setup, item: Replaced) -> str | None:
    if not item.leader or item.rebalances or item.told_leader:
        return None
    return f"the leader {letter(item.who)} returns, and the response to its JoinGroup names another leader"


def keep(setup: Setup, item: Expelled) -> str | None:
    if not item.away or item.able:
        return None
    return f"static {letter(item.who)} is expelled by the {item.cause} timeout"
