"""Clauses of one answered call: who got what, and how well that is placed."""

from __future__ import annotations

from collections import Counter

from rebalance_verifier.model.assignor import Promise
from rebalance_verifier.model.values import EXCLUSIVE, SERVED, Racks, TopicPartition
from rebalance_verifier.properties.assignors import oracles
from rebalance_verifier.properties.assignors.calls import AssignorCall, once
from rebalance_verifier.properties.assignors.clause import COOPERATIVE, EAGER, Breach
from rebalance_verifier.properties.assignors.wording import (
    claims_of,
    counted,
    generation_text,
    grants,
    listed,
    loads_of,
    pairs,
    terms_of,
)

UNEVEN = 2
"""By how much what is kept of topics that are held alike may differ: one where it does not divide evenly, and
one that is taken from its owner and dealt to the same member again, as Java's does."""


@once
def exclusive(call: AssignorCall) -> Breach | None:
    if len(call.granted) == sum(map(len, call.assignment.values())):
        return None
    for partition, members in sorted(call.granted.items()):
        if len(members) > 1:
            who = " and ".join(members) if len(set(members)) > 1 else f"{members[0]} twice"
            return Breach(
                summary=f"{partition} is assigned to {who}",
                because=(f"assign() returned {grants(call, set(members))}",),
                expected=f"{partition} with one member",
                actual=f"{partition} listed {len(members)} times",
                partitions=(partition,),
            )
    return None


@once
def only_to_subscribers(call: AssignorCall) -> Breach | None:
    for member, partitions in sorted(call.assignment.items()):
        if member not in call.group:
            if not partitions:
                continue  # the broker ignores it
            return Breach(
                summary=f"{member!r} is assigned {counted(len(partitions), 'partition')} and is not in the "
                f"group",
                because=(f"the group is {listed(call.group)}",),
                expected=f"only {listed(call.group)}",
                actual=f"an assignment for {member!r}",
                partitions=partitions[:1],
            )
        topics = call.group[member].topics
        if {topic for topic, _ in partitions}.issubset(topics):
            continue
        for partition in sorted(partitions):
            if partition.topic not in topics:
                subscribers = listed(call.subscribers.get(partition.topic, ()), "")
                return Breach(
                    summary=f"{partition} is assigned to {member}, which does not subscribe to "
                    f"{partition.topic}",
                    because=(f"{member} subscribes to {listed(topics, 'nothing')}",),
                    expected=f"{partition} with {subscribers}" if subscribers else f"{partition} unassigned",
                    actual=f"{member}: {partition}",
                    partitions=(partition,),
                )
    return None


@once
def only_existing(call: AssignorCall) -> Breach | None:
    if call.granted.keys() <= call.existing:
        return None
    for member, partitions in sorted(call.assignment.items()):
        for partition in sorted(partitions):
            if partition in call.existing:
                continue
            count = call.cluster.partition_count(partition.topic)
            decider = terms_of(call.protocol).decider
            # KIP-429, leader 2.6: what is claimed of a topic that the leader does not know may be given
            # back as it is. Of a topic that it knows it also knows the number: the rest is gone, and who
            # is told to consume it gets errors for ever.
            # A coordinator gives nothing back: what its members hold is what it has assigned them.
            back = partition.topic not in call.cluster.topics and call.protocol not in SERVED
            if back and member in call.holders.get(partition, ()):
                continue
            return Breach(
                summary=f"{partition} is assigned to {member} and does not exist",
                because=(f"{decider} knows {counted(count, 'partition')} of {partition.topic}",),
                expected=f"only partitions that {decider} has metadata for",
                actual=f"{member}: {partition}",
                partitions=(partition,),
            )
    return None


def answered(call: AssignorCall) -> Breach | None:
    left_out = [member for member in call.group if member not in call.assignment]
    if not left_out:
        return None
    return Breach(
        summary=f"{listed(left_out)} left out of the answer",
        because=(
            "the broker sends empty bytes to a member that the leader does not mention",
            "the Java client cannot read these: IllegalStateException in the member's poll()",
        ),
        expected="an assignment for every member of the group, possibly an empty one",
        actual=f"assignments for {listed(sorted(call.assignment))}",
    )


@once
def complete(call: AssignorCall) -> Breach | None:
    served = call.protocol in SERVED
    for partition in call.waiting:
        claims = call.claimants.get(partition, {}) if call.protocol is COOPERATIVE else {}
        if not claims:
            return Breach(
                summary=f"{partition} is not assigned"
                + ("" if served else ", and nobody has to revoke it first"),
                because=(
                    f"subscribers of {partition.topic}: {listed(call.subscribers[partition.topic])}",
                    *([] if served else [f"no member claims {partition}"]),
                ),
                expected=f"{partition} with one of {listed(call.subscribers[partition.topic])}",
                actual=f"{partition} unassigned" if served else f"{partition} withheld",
                partitions=(partition,),
            )
    return None


def complete_once_revoked(call: AssignorCall) -> Breach | None:
    # Whoever revokes joins again, and then there is a call that assigns what waits in this one.
    return None if call.protocol is COOPERATIVE and call.revoked else complete(call)


def all_given_back(call: AssignorCall) -> Breach | None:
    if call.kept in (0, len(call.valid)):
        return None
    lost = tuple(p for p, m in sorted(call.valid.items()) if m not in call.granted.get(p, ()))
    kept = {m: call.assignment.get(m, ()) for p, m in sorted(call.valid.items()) if p not in lost}
    return Breach(
        summary=f"{listed(lost)} given back, and {listed(kept)} may keep something",
        because=(
            *(line for partition in lost[:1] for line in claims_of(call, partition)),
            f"assign() returned {grants(call, {*kept, *(call.valid[p] for p in lost)})}",
        ),
        expected="every valid claim kept, or none",
        actual=f"{call.kept} of {counted(len(call.valid), 'valid claim')} kept",
        partitions=lost,
        gap=len(lost),
    )


def revoke_first(call: AssignorCall) -> Breach | None:
    # A grant to one of several members with the newest claim is left alone: they may both own it
    # already, nobody can tell who does, and no owner is added.
    for partition in _granted_and_claimed(call):
        claims = call.claimants[partition]
        for member in call.granted[partition]:
            if member not in claims:
                holders = listed(call.holders[partition])
                own = "still owns" if len(call.holders[partition]) == 1 else "still own"
                return Breach(
                    summary=f"{partition} is granted to {member} while {holders} {own} it",
                    because=(
                        *claims_of(call, partition),
                        f"assign() returned {grants(call, {member, *call.holders[partition]})}",
                        f"no revocation of {partition} by {holders} comes before it: two owners from here",
                    ),
                    expected=f"{member} without {partition}; a second rebalance gives it",
                    actual=f"{member}: {partition}",
                    partitions=(partition,),
                )
    return None


def _granted_and_claimed(call: AssignorCall) -> list[TopicPartition]:
    return sorted(call.granted.keys() & call.claimants.keys())


def newest_claim_wins(call: AssignorCall) -> Breach | None:
    for partition in _granted_and_claimed(call):
        claims = call.claimants[partition]
        for member in call.granted[partition]:
            if member in claims and member not in call.holders[partition]:
                holders = listed(call.holders[partition])
                return Breach(
                    summary=f"{partition} is granted to {member}, whose claim is of "
                    f"{generation_text(claims[member])}, "
                    f"over the newer claim of {holders}",
                    because=(*claims_of(call, partition), f"assign() returned {grants(call, {member})}"),
                    expected=f"{partition} with {holders}, or unassigned until it is revoked",
                    actual=f"{member}: {partition}",
                    partitions=(partition,),
                )
    return None


def balanced(call: AssignorCall) -> Breach | None:
    if not final(call):
        return None
    move = oracles.transferable(call)
    if move is None:
        return None
    giver, taker, topic = move
    return Breach(
        summary=f"{giver} has {call.loads[giver]} partitions and {taker}, which could take one of {topic}, "
        f"{call.loads[taker]}",
        because=(f"{giver} and {taker} both subscribe to {topic}", f"loads are {loads_of(call)}"),
        expected="no member that could hand a partition to one with two fewer",
        actual=loads_of(call),
    )


def balanced_equal(call: AssignorCall) -> Breach | None:
    return balanced(call) if call.equal_subscriptions else None


def balanced_per_topic(call: AssignorCall) -> Breach | None:
    if not final(call):
        return None
    given = Counter([(m, topic) for m, partitions in call.assignment.items() for topic, _ in partitions])
    for topic, members in sorted(call.subscribers.items()):
        counts = {m: given.get((m, topic), 0) for m in members}
        if max(counts.values()) - min(counts.values()) > 1:
            return Breach(
                summary=f"{topic} is spread {pairs(counts)}",
                because=(f"{topic} has {call.cluster.partition_count(topic)} partitions",),
                expected="numbers that differ by at most one",
                actual=pairs(counts),
            )
    return None


def co_partitioned(call: AssignorCall) -> Breach | None:
    if not final(call):
        return None
    alike: dict[tuple[int, tuple[str, ...]], list[str]] = {}
    for topic, members in sorted(call.subscribers.items()):
        alike.setdefault((call.cluster.partition_count(topic), members), []).append(topic)
    for (count, _), topics in alike.items():
        for index in range(count if len(topics) > 1 else 0):
            owners = {t: call.granted.get(TopicPartition(t, index), ()) for t in topics}
            if len(set(owners.values())) > 1:
                one, other = sorted(owners, key=lambda t: (owners[t], t))[:: len(owners) - 1]
                return Breach(
                    summary=f"{one}-{index} and {other}-{index} are with {listed(owners[one])} and "
                    f"{listed(owners[other])}",
                    because=(f"{listed(topics)} have equal partition counts and equal subscribers",),
                    expected="equal indexes of co-partitioned topics with one member",
                    actual=pairs({f"{t}-{index}": listed(m) for t, m in owners.items()}),
                    partitions=(TopicPartition(one, index), TopicPartition(other, index)),
                )
    return None


def sticky(call: AssignorCall) -> Breach | None:
    if call.kept == len(call.valid) or not well_placed(call):
        return None
    best = oracles.optimum(call)
    if call.kept >= best.kept or best.loads[0] > call.limits.get(Promise.PARTIAL, best.loads[0]):
        return None
    return Breach(
        summary=f"{counted(best.kept - call.kept, 'partition')} moved more than needed: {call.kept} of "
        f"{len(call.valid)} {terms_of(call.protocol).kept} kept, {best.kept} possible",
        because=(
            f"loads are {loads_of(call)}, the best possible are {', '.join(map(str, best.loads))}",
            f"moved: {listed(p for p, m in sorted(call.valid.items()) if m not in call.granted.get(p, ()))}",
        ),
        expected=f"{best.kept} kept under the best balance",
        actual=f"{call.kept} kept",
        gap=best.kept - call.kept,
    )


def rack_aligned(call: AssignorCall) -> Breach | None:
    if not final(call) or not oracles.rack_matters(call):
        return None
    found = oracles.matched(call)
    if found == oracles.matchable(call) or oracles.best_matched(call):
        return None
    best = oracles.optimum(call)
    if tuple(sorted(call.loads.values(), reverse=True)) != best.loads or found >= best.matched:
        return None  # an uneven assignment can match more racks than the best balance allows
    return Breach(
        summary=f"{found} partitions are with a member in a replica's rack, {best.matched} could be",
        because=(f"racks are {pairs({m: s.rack_id for m, s in call.group.items()})}",),
        expected=f"{best.matched} matches at the same balance",
        actual=f"{found} matches",
        gap=best.matched - found,
    )


def spread(call: AssignorCall) -> Breach | None:
    if not call.equal_subscriptions or not well_placed(call):
        return None
    racks, had = oracles.rack_matters(call), terms_of(call.protocol).had
    held: dict[tuple[str, str], set[tuple[int, Racks]]] = {}
    for (topic, index), member in call.valid.items():
        here, rack = call.cluster.topics[topic][index], call.group[member].rack_id
        if not racks or rack is None or rack in here:  # what is elsewhere goes first, whatever its topic
            held.setdefault((member, topic), set()).add((index, here))
    alike: dict[tuple[str, frozenset[tuple[int, Racks]]], list[str]] = {}
    for (member, topic), indexes in sorted(held.items()):
        alike.setdefault((member, frozenset(indexes)), []).append(topic)
    for (member, owned), topics in alike.items():
        given = set(call.assignment.get(member, ()))
        kept = {t: sum((t, index) in given for index, _ in owned) for t in topics}
        most, least = max(topics, key=lambda t: kept[t]), min(topics, key=lambda t: kept[t])
        if kept[most] - kept[least] > UNEVEN:
            return Breach(
                summary=f"{member} keeps {kept[most]} partitions of {most} and {kept[least]} of {least}",
                because=(f"it {had} {counted(len(owned), 'partition')} of each, with equal indexes",),
                expected=f"of topics that a member holds alike numbers that differ by at most {UNEVEN}",
                actual=pairs(kept),
                partitions=tuple(TopicPartition(least, index) for index, _ in sorted(owned)),
                gap=kept[most] - kept[least] - UNEVEN,
            )
    return None


def within_capacity(call: AssignorCall) -> Breach | None:
    most = call.limits.get(Promise.PARTIAL, len(call.existing))
    for member, load in sorted(call.loads.items()):
        if load > most:
            return Breach(
                summary=f"{member} has {counted(load, 'partition')}, and {most} is the limit",
                because=(f"loads are {loads_of(call)}",),
                expected=f"at most {most} for each member, as the target states",
                actual=f"{member} {load}",
                gap=load - most,
            )
    return None


def few_moves(call: AssignorCall) -> Breach | None:
    most, moved = call.limits.get(Promise.GRADUAL, len(call.valid)), len(call.valid) - call.kept
    if moved <= most:
        return None
    lost = tuple(p for p, m in sorted(call.valid.items()) if m not in call.granted.get(p, ()))
    return Breach(
        summary=f"{moved} {terms_of(call.protocol).kept} not kept in one round, and {most} is the limit",
        because=(f"moved: {listed(lost)}",),
        expected=f"at most {most} in a round, as the target states",
        actual=f"{moved}",
        partitions=lost,
        gap=moved - most,
    )


def nobody_idle(call: AssignorCall) -> Breach | None:
    if not final(call):
        return None
    for topic, members in sorted(call.subscribers.items()):
        idle = next((m for m in members if not call.loads[m]), None)
        for giver in members if idle else ():
            if call.loads[giver] > 1 and any(p.topic == topic for p in call.assignment.get(giver, ())):
                return Breach(
                    summary=f"{idle} has nothing, and {giver} {call.loads[giver]} partitions, one of {topic}",
                    because=(f"{idle} and {giver} both subscribe to {topic}", f"loads are {loads_of(call)}"),
                    expected="whatever partitions weigh, something for everybody who could have it",
                    actual=loads_of(call),
                )
    return None


def well_placed(call: AssignorCall) -> bool:
    """Quality is measured on sound assignments only; an unsound one is reported as that."""
    twice = call.protocol in EXCLUSIVE and exclusive(call)
    return not (twice or only_to_subscribers(call) or only_existing(call) or complete(call))


def final(call: AssignorCall) -> bool:
    """Check whether the result is to be judged: nothing withheld (else the round after it is), sound, and not
    on its way to something better, as EAGER groups of a gradual assignor are for as long as they live."""
    under_way = call.protocol is EAGER and Promise.GRADUAL in call.limits
    return not call.withheld and not under_way and well_placed(call)
