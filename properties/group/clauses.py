"""What must hold of a consumer group: safety, callbacks, error handling, convergence, and the witnesses.

``TABLE`` is the single place where the clauses of the protocol are registered; ``rules`` turns them into
rules for one setup. The functions see views and observations of ``rebalance.model.protocol``, no state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import combinations, permutations
from typing import TypeVar

from rebalance.model.machine import Event
from rebalance.model.protocol.observations import (
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
    Noted,
    Repeated,
    Replaced,
    Threw,
)
from rebalance.model.protocol.setup import Setup, letter
from rebalance.model.protocol.state import Error, GroupState, Life, Parts
from rebalance.properties.group.rules import Always, Bounded, EachStep, Finally, Rules, Sometimes
from rebalance.properties.verdict import Level

Seen = tuple[Hashable, ...]
Check = Callable[[Setup, Seen], str | None]
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolClause:
    """One sentence that must hold of every run of a group; ``source`` is where it comes from."""

    id: str
    level: Level
    kind: str
    sentence: str
    source: str


def _of(seen: Seen, kind: type[T]) -> Iterator[T]:
    return (item for item in seen if isinstance(item, kind))


# -- in every state ------------------------------------------------------------------------------------


def _owner(setup: Setup, a: str, b: str, x: int, y: int) -> str | None:
    return f"{setup.spell(x & y)} is owned by {a} and by {b}" if x & y else None


def _commit(setup: Setup, a: str, b: str, x: int, y: int) -> str | None:
    return f"{a} can commit for {setup.spell(x & y)}, which {b} owns" if x & y else None


def _size(limit: int, group: GroupState, *sizes: int) -> str | None:
    if group not in (GroupState.COMPLETING, GroupState.STABLE):
        return None  # who is too many is turned away before the join phase ends
    return f"{sum(sizes)} members, the limit is {limit}" if sum(sizes) > limit else None


def _instance(a: str, size: int) -> str | None:
    return f"{size} members of the group have the instance id of {a}" if size > 1 else None


def _listener(setup: Setup, a: str, view: tuple[Parts, Parts, Life]) -> str | None:
    believed, owned, life = view
    if believed == owned:
        return None
    return f"{a} ({life}) owns {setup.spell(owned)}, its listener was told of {setup.spell(believed)}"


def _fetch(setup: Setup, a: str, view: tuple[bool, bool, Parts]) -> str | None:
    eager, committing, reads = view
    return f"{a} commits and still reads {setup.spell(reads)}" if eager and committing and reads else None


def _always(setup: Setup) -> Iterator[Always]:
    slots = [letter(slot) for slot in setup.slots]
    for a, b in combinations(slots, 2):
        yield Always("group/owner", (f"held {a}", f"held {b}"), partial(_owner, setup, a, b))
    for a, b in permutations(slots, 2):
        yield Always("group/commit", (f"commits {a}", f"held {b}"), partial(_commit, setup, a, b))
    if setup.max_size is not None:
        yield Always("group/size", ("group", *(f"size {a}" for a in slots)), partial(_size, setup.max_size))
    for slot, a in enumerate(slots):
        if setup.consumers[slot].instance is not None:
            yield Always("group/instance", (f"ids {a}",), partial(_instance, a))
        yield Always("callback/told", (f"listener {a}",), partial(_listener, setup, a))
        yield Always("callback/fetch", (f"reads {a}",), partial(_fetch, setup, a))


# -- at every step: the leader -------------------------------------------------------------------------


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


def _stale(setup: Setup, seen: Seen) -> str | None:
    for decided in _of(seen, Decided):
        for bit, newest, holders in _newest(decided):
            for i, (member, parts, generation, _) in enumerate(decided.claims):
                loses = parts & bit and generation < newest and i not in holders
                if loses and decided.grants[i].parts & bit:
                    old, new = letter(member.slot), letter(decided.claims[holders[0]][0].slot)
                    gets = f"{old} claims {setup.spell(bit)} from generation {generation} and gets it"
                    return f"{gets}, {new} has it from generation {newest}"
    return None


def _withhold(setup: Setup, seen: Seen) -> str | None:
    for decided in _of(seen, Decided):
        for bit, _, holders in _newest(decided):
            for i, grant in enumerate(decided.grants):
                if grant.parts & bit and holders != [i]:
                    other = decided.claims[next(h for h in holders if h != i)][0]
                    goes = f"{setup.spell(bit)} goes to {letter(grant.id.slot)}"
                    return f"{goes} while {letter(other.slot)} holds it"
    return None


def _label(setup: Setup, seen: Seen) -> str | None:
    for claim in _of(seen, Claimed):
        if claim.label != claim.own_gen:
            return (
                f"{letter(claim.who)} claims {setup.spell(claim.parts)} as of generation {claim.label}, "
                f"it was assigned in {claim.own_gen}"
            )
    return None


def _grant(setup: Setup, seen: Seen) -> str | None:
    for decided in _of(seen, Decided):
        granted = 0
        for (_, _, _, subscribed), grant in zip(decided.claims, decided.grants, strict=True):
            if grant.parts & granted:
                return f"{setup.spell(grant.parts & granted)} is granted twice"
            if grant.parts & ~subscribed:
                parts = setup.spell(grant.parts & ~subscribed)
                return f"{letter(grant.id.slot)} gets {parts} without subscribing to it"
            granted |= grant.parts
    return None


# -- at every step: callbacks --------------------------------------------------------------------------


def _revoked(setup: Setup, seen: Seen) -> str | None:
    for call in _of(seen, Callback):
        if call.call is not Call.REVOKED:
            continue
        if not call.eager and not call.parts:
            return f"COOPERATIVE {letter(call.who)}: onPartitionsRevoked of nothing"
        if call.eager and call.parts != call.believed:
            return (
                f"EAGER {letter(call.who)} revokes {setup.spell(call.parts)} of {setup.spell(call.believed)}"
            )
        if call.parts & ~call.believed:
            surplus = setup.spell(call.parts & ~call.believed)
            return f"{letter(call.who)} revokes {surplus}, which it was never given"
    return None


def _lost(setup: Setup, seen: Seen) -> str | None:
    for call in _of(seen, Callback):
        if call.call is Call.REVOKED and (call.reset or call.midway):
            why = "has no membership" if call.reset else "leaves in the middle of a rebalance"
            return f"{letter(call.who)} {why} and is told revoked, not lost"
        if call.call is Call.LOST and not (call.reset or call.midway):
            return f"{letter(call.who)} is told lost with its membership intact"
    return None


def _while_owned(setup: Setup, seen: Seen) -> str | None:
    for call in _of(seen, Callback):
        if call.call is not Call.ASSIGNED and call.parts & ~call.owned:
            return f"{letter(call.who)}: {setup.spell(call.parts & ~call.owned)} is gone before it is revoked"
    return None


def _assigned(setup: Setup, seen: Seen) -> str | None:
    calls = [call for call in _of(seen, Callback) if call.call is Call.ASSIGNED]
    for call in calls:
        if call.parts & call.believed:
            return f"{letter(call.who)} is assigned {setup.spell(call.parts & call.believed)} a second time"
    completed = next(_of(seen, Completed), None)
    thrown = any(threw.error == "listener" for threw in _of(seen, Threw))
    if (completed is not None or thrown) and not calls:
        return "a rebalance completed without onPartitionsAssigned"
    return None


def _order(setup: Setup, seen: Seen) -> str | None:
    calls = [call.call for call in _of(seen, Callback)]
    if Call.ASSIGNED in calls and calls.index(Call.ASSIGNED) != len(calls) - 1:
        return "something is revoked after onPartitionsAssigned"
    return None


def _generation(setup: Setup, seen: Seen) -> str | None:
    for call in _of(seen, Callback):
        if not call.current:
            return f"{letter(call.who)}: {call.call} runs under the generation before"
    return None


def _rejoin(setup: Setup, seen: Seen) -> str | None:
    for done in _of(seen, Completed):
        if done.revoked and not done.rejoin:
            return f"{letter(done.who)} revoked and does not rejoin"
    return None


# -- at every step: leaving, errors, the coordinator ---------------------------------------------------


def _leave(setup: Setup, seen: Seen) -> str | None:
    for left in _of(seen, Left):
        if left.believed:
            return (
                f"{letter(left.who)} leaves, its listener still believes to have {setup.spell(left.believed)}"
            )
    return None


def _leave_sent(setup: Setup, seen: Seen) -> str | None:
    for left in _of(seen, Left):
        if left.ought and not left.sent:
            return f"{letter(left.who)} leaves without LeaveGroup"
    return None


_GONE = (Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION)


def _retriable(setup: Setup, seen: Seen) -> str | None:
    for answer in _of(seen, Answered):
        if answer.error not in _GONE and answer.reset:
            return f"{letter(answer.who)} gives up its membership on {answer.api} {answer.error}"
    return None


def _membership(setup: Setup, seen: Seen) -> str | None:
    for answer in _of(seen, Answered):
        if answer.error in _GONE and answer.same and not (answer.reset and answer.rejoin):
            what = "stays a member" if not answer.reset else "does not rejoin"
            return f"{letter(answer.who)} hears {answer.api} {answer.error} and {what}"
    return None


def _old(setup: Setup, seen: Seen) -> str | None:
    for answer in _of(seen, Answered):
        if not answer.same and answer.reset:
            return f"{letter(answer.who)} resets on {answer.api} {answer.error} for an older generation"
    return None


def _keeps_id(setup: Setup, seen: Seen) -> str | None:
    for answer in _of(seen, Answered):
        if answer.error is Error.ILLEGAL_GENERATION and answer.reset and not answer.keeps_id:
            return f"{letter(answer.who)} forgets its member id on {answer.api} ILLEGAL_GENERATION"
    return None


_RIGHTLY = (Error.GROUP_MAX_SIZE_REACHED, "listener")
"""Thrown where the KIPs say so: a full group, and what the application itself throws. No two consumers of a
setup share an instance id, so none may be fenced."""


def _throws(setup: Setup, seen: Seen) -> str | None:
    for threw in _of(seen, Threw):
        if threw.error not in _RIGHTLY:
            return f"{letter(threw.who)}: poll throws {threw.error}"
    return None


def _admit(setup: Setup, seen: Seen) -> str | None:
    for item in _of(seen, Admitted):
        if not item.known:
            return f"a member id of {letter(item.who)} is admitted that it has never shown"
    return None


def _vote(setup: Setup, seen: Seen) -> str | None:
    for item in _of(seen, Elected):
        shared = set(item.lists[0]).intersection(*item.lists)
        if item.protocol not in shared:
            return f"{item.protocol} is selected, which not every member supports"
        votes = Counter(next(name for name in assignors if name in shared) for assignors in item.lists)
        if votes[item.protocol] < max(votes.values()):
            return f"{item.protocol} is selected with {votes[item.protocol]} votes of {dict(votes)}"
    return None


def _repeat(setup: Setup, seen: Seen) -> str | None:
    for item in _of(seen, Repeated):
        if item.rebalances:
            return f"{letter(item.who)} says again what it said, and the group rebalances"
    return None


def _static(setup: Setup, seen: Seen) -> str | None:
    for item in _of(seen, Replaced):
        who = letter(item.who)
        if item.state is GroupState.STABLE and item.rebalances is not (item.changed or item.owed):
            same = "another" if item.changed else "the same"
            same += " subscription, a revocation pending," if item.owed else " subscription"
            then = "starts" if item.rebalances else "starts no"
            return f"{who} returns with {same} and {then} rebalance"
        if item.state is GroupState.COMPLETING and not item.rebalances:
            return f"{who} returns between join and sync, the leader decides for the id that is gone"
    return None


def _leader_told(setup: Setup, seen: Seen) -> str | None:
    for item in _of(seen, Replaced):
        quiet = item.leader and not item.rebalances
        if quiet and not item.told_leader:
            return f"the leader {letter(item.who)} returns and is told that another one leads"
    return None


def _keep(setup: Setup, seen: Seen) -> str | None:
    for item in _of(seen, Expelled):
        if item.away and not item.able:
            return f"static {letter(item.who)} is expelled by the {item.cause} timeout"
    return None


_STEPS: tuple[tuple[ProtocolClause, Check], ...] = tuple(
    (ProtocolClause(id=name, level=level, kind="always", sentence=sentence, source=source), check)
    for name, level, check, source, sentence in (
        ("leader/stale", Level.SAFETY, _stale, "KIP-792",
         "a claim never wins over a newer claim on the same partition"),
        ("leader/withhold", Level.SAFETY, _withhold, "KIP-429, consumer group changes",
         "a partition that somebody still holds is not granted to another member in the same round"),
        ("leader/grant", Level.SAFETY, _grant, "KIP-54",
         "a partition is granted once, and only to a subscriber"),
        ("leader/label", Level.SAFETY, _label, "KIP-792, proposed changes",
         "a claim says in which generation it was assigned"),
        ("callback/revoked", Level.SAFETY, _revoked, "KIP-429, ConsumerRebalanceListener",
         "COOPERATIVE revokes what goes and never nothing, EAGER revokes everything"),
        ("callback/lost", Level.SAFETY, _lost, "KIP-429, onPartitionsLost",
         "onPartitionsLost is called where the membership is gone, and only there"),
        ("callback/owned", Level.SAFETY, _while_owned, "KIP-429, ConsumerRebalanceListener",
         "partitions are still owned while they are revoked"),
        ("callback/assigned", Level.SAFETY, _assigned, "KIP-429, onPartitionsAssigned",
         "a completed rebalance ends with onPartitionsAssigned of what is new, even if that is nothing"),
        ("callback/order", Level.SAFETY, _order, "KIP-429, ConsumerRebalanceListener",
         "what goes is revoked before what comes is assigned"),
        ("callback/generation", Level.SAFETY, _generation, "KAFKA-8104, KAFKA-9741",
         "in a callback the group metadata shows the generation that the callback belongs to"),
        ("callback/rejoin", Level.LIVENESS, _rejoin, "KIP-429, consumer group changes",
         "a COOPERATIVE member that revoked rejoins"),
        ("leave/callback", Level.SAFETY, _leave, "KIP-429, KAFKA-8972",
         "a member that leaves has told its listener so"),
        ("leave/sent", Level.LIVENESS, _leave_sent, "KIP-429; librdkafka 1.7.0",
         "a dynamic member that leaves says so to the coordinator"),
        ("error/retriable", Level.SAFETY, _retriable, "KAFKA-13214, KAFKA-14016",
         "an error that can be retried costs no membership"),
        ("error/membership", Level.SAFETY, _membership, "KIP-429, KAFKA-12983",
         "a member that hears that its membership is gone gives it up and rejoins"),
        ("error/old", Level.SAFETY, _old, "KAFKA-9823",
         "an answer to an older generation does not touch the present one"),
        ("error/id", Level.LIVENESS, _keeps_id, "KAFKA-13419",
         "ILLEGAL_GENERATION costs no member id"),
        ("poll/throws", Level.SAFETY, _throws, "KIP-429",
         "poll throws nothing that no application can handle"),
        ("coordinator/admit", Level.SAFETY, _admit, "KIP-394",
         "a member id is admitted after its owner has shown it"),
        (
            "coordinator/vote",
            Level.SAFETY,
            _vote,
            "ClassicGroup.selectProtocol",
            "every member supports the protocol of its generation, and none has more votes",
        ),
        ("coordinator/repeat", Level.LIVENESS, _repeat, "KAFKA-12898",
         "a follower that repeats itself starts no rebalance"),
        ("coordinator/static", Level.SAFETY, _static, "KIP-345, KAFKA-9801, KAFKA-12759",
         ("a static member that returns to a settled group starts a rebalance only if it subscribes to "
         "something else or had to revoke, and one that returns during a rebalance is part of it")),
        ("coordinator/leader", Level.LIVENESS, _leader_told, "KIP-814",
         "a static leader that returns is told that it leads"),
        ("coordinator/keep", Level.SAFETY, _keep, "KIP-345, KAFKA-8220",
         "a static member that is away loses its place by its session timeout only"),
    )
)  # fmt: skip


# -- in the end ----------------------------------------------------------------------------------------


def _settles(setup: Setup, cluster: int, group: GroupState, *views: object) -> bool:
    """Every member settled, every subscribed partition owned once, and somebody watches the metadata."""
    count = len(setup.consumers)
    if any(views[:count]) or group not in (GroupState.STABLE, GroupState.EMPTY, GroupState.DEAD):
        return False
    owned = wanted = 0
    watches: list[tuple[int, int]] = []
    blind = False
    for share in views[count:]:
        assert isinstance(share, tuple)
        owned, wanted = owned | share[0], wanted | share[1]
        if share[1] and share[0] & ~cluster:
            return False  # owns what does not exist any more
        watches.append((share[2], share[3]))
        blind = blind or share[4]
    watched = any(scope & wanted == wanted and seen & wanted == cluster & wanted for seen, scope in watches)
    return not cluster & wanted & ~owned and (watched or blind or not wanted)


def _finally(setup: Setup) -> Finally:
    slots = [letter(slot) for slot in setup.slots]
    views = ("cluster", "group", *(f"settled {a}" for a in slots), *(f"share {a}" for a in slots))
    return Finally(CONVERGES.id, views, partial(_settles, setup))


def _round(event: Event) -> bool:
    return event.action == "join phase ends"


CONVERGES = ProtocolClause(
    id="group/converges", level=Level.LIVENESS, kind="eventually",
    sentence="once nothing goes wrong any more the group settles, and every subscribed partition is owned",
    source="KIP-429",
)  # fmt: skip
ROUNDS = ProtocolClause(
    id="group/rounds", level=Level.LIVENESS, kind="eventually",
    sentence="once nothing goes wrong any more the group settles within a bounded number of rebalances",
    source="KIP-429",
)  # fmt: skip

WITNESSES = (
    "follow-up rebalance",
    "owner crashed between join and sync",
    "stale claim seen by a leader",
    "cooperative assignment in a mixed group",
    "partitions lost",
    "static member replaced",
    "silent static member",
    "static leader skips the assignment",
    "failover between join and sync",
    "reset between SyncGroup and callback",
    "SyncGroup response after a reset",
    "late answer of an old generation",
    "enforceRebalance swallowed",
    "assignment of an old subscription ignored",
)
"""Situations that runs should reach, by name; which of them a setup can reach depends on its faults."""


def _shows(name: str, event: Event, seen: Seen) -> bool:
    if name == "partitions lost":
        return any(call.call is Call.LOST for call in _of(seen, Callback))
    if name == "static member replaced":
        return any(True for _ in _of(seen, Replaced))
    return Noted(name) in seen


def _at_step(check: Check, setup: Setup, event: Event, seen: Seen) -> str | None:
    return check(setup, seen)


_STATES = tuple(
    ProtocolClause(id=name, level=Level.SAFETY, kind="always", sentence=sentence, source=source)
    for name, sentence, source in (
        ("group/owner", "no two members of the group own the same partition", "KIP-429"),
        (
            "group/commit",
            "a commit for a partition that another member owns is refused, however late it comes",
            "KIP-429, KIP-447",
        ),
        ("group/size", "no more members than group.max.size take part in a generation", "KIP-389"),
        ("group/instance", "one group.instance.id belongs to one member of the group", "KIP-345"),
        ("callback/told", "what the listener was told adds up to what the consumer owns", "KIP-429"),
        ("callback/fetch", "an EAGER member reads nothing after its last commit", "KAFKA-14196"),
    )
)

TABLE: tuple[ProtocolClause, ...] = (*_STATES, *(clause for clause, _ in _STEPS), CONVERGES, ROUNDS)
"""All clauses of the protocol."""

CLAUSES: dict[str, ProtocolClause] = {clause.id: clause for clause in TABLE}


def most_rounds(setup: Setup) -> int:
    """The most rebalances that may follow the last fault.

    Each of N members that joins starts one. In COOPERATIVE a partition that moves takes one more, and with P
    partitions at most min(N, P) - 1 of the joins have to wait for that. Each earlier fault can leave behind
    a member id whose removal starts one, a member that comes back and starts one, and in COOPERATIVE one
    that moves partitions again. Equal and unequal subscriptions, racks and static members change nothing
    in this: the assignor settles who gets what in one round (``model/assignors/flow.py``), and the round
    after it only hands over. The bound is met in small groups
    (``tests/explore/groups/test_named_scenarios.py``).
    """
    members, partitions = len(setup.consumers), sum(setup.topics).bit_count()
    if all(stage.eager for consumer in setup.consumers for stage in consumer.stages):
        return members + 2 * setup.budget
    return members + min(members, partitions) - 1 + (3 if members > 1 else 2) * setup.budget


def rules(setup: Setup) -> Rules:
    """The rules that the group of ``setup`` has to keep."""
    return Rules(
        always=tuple(_always(setup)),
        each_step=tuple(EachStep(clause.id, partial(_at_step, check, setup)) for clause, check in _STEPS),
        sometimes=tuple(Sometimes(name, partial(_shows, name)) for name in WITNESSES),
        finally_=(_finally(setup),),
        bounded=(Bounded(ROUNDS.id, _round, most_rounds(setup)),),
    )


__all__ = ["CLAUSES", "CONVERGES", "ROUNDS", "TABLE", "WITNESSES", "ProtocolClause", "rules"]
