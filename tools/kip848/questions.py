"""What the public TLA+ model of KIP-848 asks of a group, asked of our model.

That model is ``groupprotocol/consumer_group_protocol_kip_848_v2.tla`` of the repository kafka-tlaplus of
J. Vanlightly. Its names are kept here, so that both can be read side by side. Each is a rule about the raw
values of our states, and none is one of our clauses: what each finds can be counted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from itertools import combinations

from rebalance_verifier.model.consumer.state import (
    ClientState,
    ConsumerGroup,
    ConsumerMember,
    ConsumerRecords,
    GroupKind,
    RecordState,
)
from rebalance_verifier.model.group.parts import NONE, NOTHING, Life, Parts, union
from rebalance_verifier.model.group.setup import Setup, letter
from rebalance_verifier.model.machine import Event, Machine, View
from rebalance_verifier.properties.group.rules import Always, EachChange, Rules

TYPE_OK = "TypeOK"
LEGAL_TARGET = "LegalTargetAssignment"
NO_DOUBLE = "NoDoubleClientAssignment"
VALID_MEMBER_EPOCH = "ValidMemberEpoch"
STABLE_GROUP = "ValidStableGroupState"
PARTITION_EPOCH = "ValidPartitionEpoch"
CLIENT_MONOTONIC = "ClientSideMemberEpochIsMonotonic"
COORDINATOR_MONOTONIC = "GcSideMemberEpochIsMonotonic"
CONVERGES = "EventuallyConverges"

QUESTIONS: Mapping[str, str] = {
    TYPE_OK: "a client goes only from states to states that Kafka's MemberState lets follow each other",
    LEGAL_TARGET: "a target gives each partition that somebody subscribes to once, and leaves out none",
    NO_DOUBLE: "two clients that are members never both believe that they own a partition",
    VALID_MEMBER_EPOCH: "a client at the epoch of the target has nothing that the target gives to another",
    STABLE_GROUP: "in a group that is stable each member has what the target gives it, and revokes nothing",
    PARTITION_EPOCH: "a partition that looks free is nobody's in the coordinator's records",
    CLIENT_MONOTONIC: "the epoch of a client goes back only where it joins or leaves",
    COORDINATOR_MONOTONIC: "the epoch of a member does not go back at the coordinator",
    CONVERGES: "once nothing disturbs it a group settles",
}
"""What is asked, by its name there; the last is our ``group/converges``, and is asked as that."""

_PASSED = {"PREPARE_LEAVING", "LEAVING", "FATAL", "FENCED"}
"""States of Kafka's client that ours passes within a step; FENCED where it has nothing to lose."""

_FOLLOW: Mapping[str, tuple[str, ...]] = {
    "UNSUBSCRIBED": ("PREPARE_LEAVING", "LEAVING", "FENCED"),
    "JOINING": ("FENCED", "UNSUBSCRIBED", "STALE"),
    "RECONCILING": ("STABLE", "JOINING", "ACKNOWLEDGING", "RECONCILING"),
    "ACKNOWLEDGING": ("RECONCILING",),
    "STABLE": ("JOINING", "ACKNOWLEDGING", "RECONCILING"),
    "FENCED": ("JOINING", "STABLE", "RECONCILING", "ACKNOWLEDGING", "PREPARE_LEAVING", "LEAVING"),
    "PREPARE_LEAVING": ("JOINING", "STABLE", "RECONCILING", "ACKNOWLEDGING", "UNSUBSCRIBED"),
    "LEAVING": ("PREPARE_LEAVING",),
    "FATAL": ("JOINING", "STABLE", "RECONCILING", "ACKNOWLEDGING", "PREPARE_LEAVING", "LEAVING",
              "UNSUBSCRIBED"),
    "STALE": ("LEAVING",),
}  # fmt: skip
"""``MemberState.getPreviousValidStates`` of the Java client, by the state that follows."""


def may_follow(before: ClientState, after: ClientState) -> bool:
    """Check whether Kafka's client goes from one of these states to the other, directly or by way of states
    that ours does not have."""
    reached, due = set[str](), [str(after)]
    while due:
        for one in _FOLLOW[due.pop()]:
            if one not in reached:
                reached.add(one)
                due += [one] * (one in _PASSED)
    return before == after or str(before) in reached


def _moved(
    a: str, event: Event, client: tuple[tuple[int, ClientState], tuple[int, ClientState]]
) -> str | None:
    (before_id, before), (after_id, after) = client
    if before_id != after_id or may_follow(before, after):  # another process begins anew
        return None
    return f"{a} goes from {before} to {after}: {event.action}"


def _latest(group: ConsumerGroup, *book: ConsumerRecords) -> bool:
    """Check whether the target is that of the group's epoch, and of all patterns."""
    waits = any(record.pattern and record.matched is None for records in book for record in records)
    return group.kind is GroupKind.CONSUMER and group.epoch == group.assigned and not waits


def _target(setup: Setup, group: ConsumerGroup, *book: ConsumerRecords) -> tuple[Parts, Parts]:
    """Return what the newest target gives to two members, and what it gives to nobody who is due it."""
    if not _latest(group, *book):
        return NOTHING, NOTHING
    once = twice = wanted = 0
    for record in (record for records in book for record in records):
        once, twice = once | record.target, twice | (once & record.target)
        wanted |= setup.parts(record.subscribed)
    return Parts(twice), Parts(group.known & wanted & ~once)


def _legal(setup: Setup, target: tuple[Parts, Parts]) -> str | None:
    twice, left = target
    if twice:
        return f"the target gives {setup.spell(twice)} to two members"
    return f"the target gives {setup.spell(left)} to nobody" if left else None


def _double(setup: Setup, a: str, b: str, x: Parts, y: Parts) -> str | None:
    return f"{setup.spell(Parts(x & y))} is with {a} and {b}" if x & y else None


def _ahead(slot: int, me: ConsumerMember, group: ConsumerGroup, *book: ConsumerRecords) -> Parts:
    """Return what a client at the epoch of the target owns, and the target gives to others."""
    if me.epoch == NONE or me.epoch != group.assigned or me.life in (Life.DOWN, Life.FAILED):
        return NOTHING
    named = [(other, record) for other, records in enumerate(book) for record in records]
    others = union([record.target for other, record in named if (other, record.id) != (slot, me.id)])
    return Parts(me.owned & others)


def _reached(setup: Setup, a: str, parts: Parts) -> str | None:
    return f"{a} has reached the target, and owns {setup.spell(parts)}" if parts else None


def _unsettled(group: ConsumerGroup, *book: ConsumerRecords) -> str:
    """Return what is wrong in a group that is stable by its records: "" where nothing is."""
    records = [record for some in book for record in some]
    stable = _latest(group, *book) and all(
        record.state is RecordState.STABLE and record.epoch == group.assigned for record in records
    )
    wrong = [one.id for one in records if one.pending or one.assigned != one.target]
    return f"member {wrong[0]} has not what the target gives it" if stable and wrong else ""


def _marked(records: ConsumerRecords) -> Parts:
    return union([record.unmarked for record in records])


def _free(setup: Setup, parts: Parts) -> str | None:
    return f"{setup.spell(parts)} looks free and is held" if parts else None


def _back(a: str, event: Event, epochs: tuple[tuple[int, int], tuple[int, int]]) -> str | None:
    (before_id, before), (after_id, after) = epochs
    if before_id != after_id or after == NONE or after >= before:
        return None
    return f"the epoch of {a} goes back from {before} to {after}: {event.action}"


def _recorded(records: ConsumerRecords) -> tuple[tuple[int, int], ...]:
    return tuple((record.id, record.epoch) for record in records)


def _taken_back(a: str, event: Event, records: tuple[tuple[tuple[int, int], ...], ...]) -> str | None:
    before, after = map(dict, records)
    back = (one for one, epoch in after.items() if one in before and NONE != epoch < before[one])
    return f"the epoch of {a} goes back at the coordinator: {event.action}" if any(back) else None


def _named(sentence: str) -> str | None:
    return sentence or None


def put_to(setup: Setup, machine: Machine) -> tuple[Machine, Rules]:
    """Return the machine with the views that the questions need, and the questions but the last.

    Raises KeyError for a machine that is not of a consumer group.
    """
    slots = {slot: letter(slot) for slot in setup.slots}
    book = ("group", *(f"record {a}" for a in slots.values()))
    states: list[tuple[str, View, Callable[..., str | None]]] = [
        (LEGAL_TARGET, View("their target", book, partial(_target, setup)), partial(_legal, setup)),
        (STABLE_GROUP, View("their state", book, _unsettled), _named),
    ]
    changes: list[tuple[str, int, View, Callable[..., str | None]]] = []
    for slot, a in slots.items():
        m, r = f"member {a}", f"record {a}"
        ahead = View(f"their epoch {a}", (m, *book), partial(_ahead, slot))
        states += [
            (VALID_MEMBER_EPOCH, ahead, partial(_reached, setup, a)),
            (PARTITION_EPOCH, View(f"their marks {a}", (r,), _marked), partial(_free, setup)),
        ]
        client = View(f"their client {a}", (m,), lambda me: (me.id, me.state))
        number = View(f"their number {a}", (m,), lambda me: (me.id, me.epoch))
        changes += [
            (TYPE_OK, slot, client, partial(_moved, a)),
            (CLIENT_MONOTONIC, slot, number, partial(_back, a)),
            (
                COORDINATOR_MONOTONIC,
                slot,
                View(f"their record {a}", (r,), _recorded),
                partial(_taken_back, a),
            ),
        ]
    watched = (*(view for _, view, _ in states), *(view for _, _, view, _ in changes))
    rules = Rules(
        always=(
            *(Always(clause, (view.name,), breach) for clause, view, breach in states),
            *(
                Always(NO_DOUBLE, (f"held {a}", f"held {b}"), partial(_double, setup, a, b))
                for a, b in combinations(slots.values(), 2)
            ),
        ),
        each_change=tuple(
            EachChange(clause, slot, _writing(machine, slot, *view.reads), (view.name,), breach)
            for clause, slot, view, breach in changes
        ),
    )
    return replace(machine, views=(*machine.views, *watched)), rules


def _writing(machine: Machine, slot: int, component: str) -> frozenset[str]:
    """Return the actions about a slot that write a component of the state."""
    return frozenset(one.name for one in machine.actions if one.who == slot and component in one.writes)
