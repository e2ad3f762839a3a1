"""What a run cost, counted on runs made by hand."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from rebalance_verifier.model.group.parts import Parts, Topics
from rebalance_verifier.model.group.setup import Consumer, ConsumerConfig, Setup
from rebalance_verifier.model.machine import Event
from rebalance_verifier.model.protocols import machine
from rebalance_verifier.properties.group.metrics import Callbacks, Figures, figures

A, B, C = 0, 1, 2


def _setup(assignor: str, partitions: int = 2, faults: tuple[str, ...] = (), steps: str = "atomic") -> Setup:
    consumer = Consumer(stages=(ConsumerConfig(assignors=(assignor,)),), subscriptions=(Topics(1),))
    parts = Parts((1 << partitions) - 1)
    return Setup(
        consumers=(consumer,) * 3,
        topics=(parts,),
        exist=parts,
        faults=faults,
        budget=len(faults),
        naming="given",
        steps=steps,
    )


def _is(name: str, who: int, event: Event) -> bool:
    return (event.action, event.who) == (name, who)


def _events(setup: Setup, *script: str | tuple[str, int], settle: bool = True) -> tuple[Event, ...]:
    """The scripted actions, by name and member; after each of them, with ``settle``, all that follows from it
    without another start or fault, in the machine's order."""
    group, events = machine(setup), list[Event]()
    state = group.initial[0]

    def take(wanted: Callable[[Event], bool]) -> bool:
        nonlocal state
        found = next((event for event in group.enabled(state) if wanted(event)), None)
        if found is not None:
            state = group.step(state, found)
            events.append(found)
        return found is not None

    for line in script:
        name, who = line if isinstance(line, tuple) else (line, A)
        assert take(partial(_is, name, who)), (line, events)
        while settle and take(lambda e: not group.by_name[e.action, e.who].fault):
            pass
    return tuple(events)


def test_one_member_alone():
    setup = _setup("cooperative-sticky")
    events = _events(setup, "start")
    assert [event.action for event in events] == [
        "start", "join", "join", "join phase ends", "assign", "leader sync", "receive sync",
    ]  # fmt: skip
    whole = figures(setup, events)
    alone = whole.members[A]
    assert (alone.rebalance_total, alone.failed_rebalance_total) == (1, 1)  # MEMBER_ID_REQUIRED
    assert alone.rebalance_latency_total == alone.rebalance_latency_max == 5  # from the first JoinGroup
    assert alone.rebalance_latency_avg == 5.0
    assert alone.last == 0
    assert alone.assigned == Callbacks(1, 2)
    assert alone.revoked == alone.lost == Callbacks()
    assert whole.members[B].last is None
    assert whole.members[B].rebalance_latency_avg == 0.0
    # Nobody reads the two partitions: after "start" no rebalance is under way, after the next five steps one
    # is, and after the last one they are read.
    assert (whole.steps, whole.rebalances, whole.rebalancing) == (7, 1, 5)
    assert (whole.idle, whole.paused) == (2, 10)


def _joins(assignor: str) -> Figures:
    """A and B share six partitions, C joins; figures from C's start on."""
    setup = _setup(assignor, 6)
    first = _events(setup, "start", ("start", B))
    return figures(setup, _events(setup, "start", ("start", B), ("start", C)), since=len(first))


def test_eager_pauses_everything_cooperative_only_what_moves():
    eager, cooperative = _joins("range"), _joins("cooperative-sticky")
    assert (eager.rebalances, cooperative.rebalances) == (1, 2)
    assert eager.members[A].revoked == Callbacks(1, 3)  # everything, before JoinGroup
    assert cooperative.members[A].revoked == Callbacks(1, 1)  # what moves, after SyncGroup
    assert eager.members[A].assigned == Callbacks(1, 2)
    assert cooperative.members[A].assigned == Callbacks(2, 0)  # onPartitionsAssigned of nothing
    assert cooperative.members[C].assigned == Callbacks(2, 2)
    assert eager.paused > cooperative.paused > 0
    assert eager.paused / eager.rebalancing > 2 * cooperative.paused / cooperative.rebalancing
    assert eager.idle == cooperative.idle == 0


def test_the_group_is_its_members_together():
    whole = _joins("cooperative-sticky")
    members, group = whole.members, whole.group
    assert group.rebalance_total == sum(m.rebalance_total for m in members) == 6
    assert group.rebalance_latency_total == sum(m.rebalance_latency_total for m in members)
    assert group.rebalance_latency_max == max(m.rebalance_latency_max for m in members)
    assert group.last == min(m.last for m in members if m.last is not None) == 0
    assert group.assigned == Callbacks(6, 2)


def test_partitions_are_lost_with_the_membership():
    setup = _setup("cooperative-sticky", faults=("max poll",))
    first = _events(setup, "start")
    whole = figures(setup, _events(setup, "start", "max poll"), since=len(first))
    assert whole.members[A].lost == Callbacks(1, 2)
    assert whole.members[A].revoked == Callbacks()
    assert whole.members[A].rebalance_total == 1
    assert whole.paused > 0


def test_a_lost_answer_is_a_failed_rebalance_and_part_of_the_next_latency():
    setup = _setup("cooperative-sticky", 1, ("disconnect",))
    script = ["start", "join", "join lost", "receive error"]
    lost = figures(setup, _events(setup, *script, settle=False))
    assert (lost.members[A].rebalance_total, lost.members[A].failed_rebalance_total) == (0, 2)
    rest = ["join", "join phase ends", "assign", "leader sync", "receive sync"]
    who = [(name, -1 if name == "join phase ends" else A) for name in rest]
    whole = figures(setup, _events(setup, *script, *who, settle=False))
    assert whole.members[A].failed_rebalance_total == 2
    assert whole.members[A].rebalance_latency_total == 7


def test_a_crash_ends_the_rebalance_that_it_interrupts():
    setup = _setup("cooperative-sticky", 1, ("crash",))
    cut = _events(setup, "start", "join", "join", "crash", "start", settle=False)
    whole = figures(setup, cut)
    assert (whole.members[A].rebalance_total, whole.members[A].failed_rebalance_total) == (0, 1)
    again: list[str | tuple[str, int]] = ["join", "join", "session expires", ("join phase ends", -1)]
    again += ["assign", "leader sync", "receive sync"]
    whole = figures(setup, _events(setup, "start", "join", "join", "crash", "start", *again, settle=False))
    assert (whole.members[A].rebalance_total, whole.members[A].failed_rebalance_total) == (1, 2)
    assert whole.members[A].rebalance_latency_total == len(again) - 1


def test_each_rebalance_has_its_own_latency():
    setup = _setup("cooperative-sticky", 1, ("enforce",))
    whole = figures(setup, _events(setup, "start", "enforce"))
    assert whole.members[A].rebalance_total == 2
    assert whole.members[A].rebalance_latency_max == 5
    assert whole.members[A].rebalance_latency_total == 5 + 4  # without MEMBER_ID_REQUIRED the second time


def test_what_a_zombie_reads_does_not_count():
    setup = _setup("cooperative-sticky", faults=("max poll",))
    since = len(_events(setup, "start"))
    before = figures(setup, _events(setup, "start"), since=since - 1)
    after = figures(setup, _events(setup, "start", "max poll"), since=since)
    assert before.idle == before.paused == 0
    # It has left the group and still owns both: from that step on nobody owns and reads them.
    assert after.idle + after.paused == 2 * (after.steps - 1)


def test_both_granularities_count_the_same():
    atomic, fine = (_setup("cooperative-sticky", steps=steps) for steps in ("atomic", "fine"))
    one, two = (figures(setup, _events(setup, "start", ("start", B))) for setup in (atomic, fine))
    for mine, other in zip(one.members, two.members, strict=True):
        assert mine.rebalance_total == other.rebalance_total
        assert (mine.revoked, mine.assigned, mine.lost) == (other.revoked, other.assigned, other.lost)
        assert mine.failed_rebalance_total == other.failed_rebalance_total
        assert mine.rebalance_latency_total <= other.rebalance_latency_total


def test_an_event_that_cannot_happen_is_refused():
    with pytest.raises(ValueError, match="cannot happen"):
        figures(_setup("range"), [Event("join", A)])


def test_no_events_no_figures():
    whole = figures(_setup("range"), [])
    assert (whole.steps, whole.paused, whole.idle, whole.group.last) == (0, 0, 0, None)


# -- of the consumer protocol (KIP-848), and of a migration ------------------------------------------------


def _served(*stages: tuple[str, ...], partitions: int = 2, faults: tuple[str, ...] = ()) -> Setup:
    """A group of one member for each list of assignors: ``uniform`` stands for the consumer protocol."""
    parts = Parts((1 << partitions) - 1)
    configs = [
        ConsumerConfig(assignors=one, group_protocol="consumer" if one == ("uniform",) else "classic")
        for one in stages
    ]
    return Setup(
        consumers=tuple(Consumer(stages=(config,), subscriptions=(Topics(1),)) for config in configs),
        topics=(parts,),
        exist=parts,
        faults=faults,
        budget=len(faults),
        naming="given",
    )


UNIFORM = ("uniform",)


def _run(setup: Setup, *script: tuple[str, int]) -> tuple[Event, ...]:
    return _events(setup, *script, settle=False)


def test_a_member_of_the_consumer_protocol_rebalances_while_it_reconciles():
    setup = _served(UNIFORM)
    whole = figures(setup, _run(setup, ("start", A), ("heartbeat", A), ("reconcile", A), ("heartbeat", A)))
    alone = whole.members[A]
    assert (alone.rebalance_total, alone.failed_rebalance_total) == (1, 0)
    assert alone.rebalance_latency_total == 1  # the answer makes it RECONCILING, one step later it is done
    assert alone.last == 1
    assert alone.assigned == Callbacks(1, 2)
    # JOINING and RECONCILING after two steps, at rest and reading after the other two.
    assert (whole.steps, whole.rebalances, whole.rebalancing) == (4, 1, 2)
    assert (whole.paused, whole.idle) == (4, 0)


def test_a_revocation_that_others_wait_for_is_a_rebalance_of_the_group():
    setup = _served(UNIFORM, UNIFORM)
    settled = [("start", A), ("heartbeat", A), ("reconcile", A), ("heartbeat", A)]
    first = _run(setup, *settled)
    joins = [*settled, ("start", B), ("heartbeat", B), ("heartbeat", A), ("reconcile", A)]
    waits = figures(setup, _run(setup, *joins), since=len(first))
    assert waits.members[A].revoked == Callbacks(1, 1)
    assert (waits.members[A].rebalance_total, waits.members[B].rebalance_total) == (1, 0)
    assert (waits.rebalances, waits.rebalancing, waits.steps) == (1, 4, 4)
    gets = [*joins, ("heartbeat", A), ("heartbeat", B), ("reconcile", B), ("heartbeat", B)]
    whole = figures(setup, _run(setup, *gets), since=len(first))
    assert (whole.members[B].rebalance_total, whole.group.rebalance_total) == (1, 2)
    assert whole.group.assigned == Callbacks(2, 1)  # A is told of nothing new, B of one
    assert whole.idle == 0
    # The partition that moves is unread from A's callback to B's: two heartbeats, and B's poll ends it.
    assert whole.paused == 3


def test_a_fence_is_a_failed_rebalance_and_leaving_is_none():
    setup = _served(UNIFORM, faults=("session timeout", "max poll"))
    begun = [("start", A), ("heartbeat", A)]
    fenced = figures(setup, _run(setup, *begun, ("session timeout", A), ("heartbeat", A)))
    assert (fenced.members[A].rebalance_total, fenced.members[A].failed_rebalance_total) == (0, 1)
    left = figures(setup, _run(setup, *begun, ("max poll", A), ("lose", A), ("heartbeat", A)))
    assert (left.members[A].rebalance_total, left.members[A].failed_rebalance_total) == (0, 0)
    again = figures(setup, _run(setup, *begun, ("max poll", A), ("lose", A), *begun[1:], ("reconcile", A)))
    assert again.members[A].rebalance_latency_total == 1  # from its second answer, not from its first


def test_both_kinds_of_members_are_counted_in_a_migration():
    setup = _served(UNIFORM, ("cooperative-sticky",))
    classic = [
        *(("start", B), ("join", B), ("join phase ends", -1), ("response", B), ("leader decides", -1)),
        ("response", B),
    ]
    alone = figures(setup, _run(setup, *classic))
    assert (alone.members[B].rebalance_total, alone.members[B].rebalance_latency_total) == (1, 4)
    assert (alone.members[B].failed_rebalance_total, alone.rebalances) == (0, 1)
    assert alone.members[B].assigned == Callbacks(1, 2)
    upgraded = figures(setup, _run(setup, *classic, ("start", A), ("heartbeat", A)), since=len(classic))
    assert upgraded.rebalances == 1  # the target of the consumer group that it has become
    assert (upgraded.members[A].rebalance_total, upgraded.rebalancing) == (0, 2)


def test_a_group_whose_target_is_due_rebalances_although_no_member_knows():
    setup = _served(UNIFORM, UNIFORM, faults=("crash",))
    joined = [
        ("start", A),
        ("heartbeat", A),
        ("reconcile", A),
        ("heartbeat", A),
        ("start", B),
        ("heartbeat", B),
    ]
    handed = [("heartbeat", A), ("reconcile", A), ("heartbeat", A), ("heartbeat", B), ("reconcile", B)]
    settled = [*joined, *handed, ("heartbeat", B)]
    first = _run(setup, *settled)
    crashed = figures(setup, _run(setup, *settled, ("crash", B)), since=len(first))
    assert (crashed.rebalancing, crashed.idle) == (0, 1)  # one partition has no reader, and nobody knows
    expired = figures(setup, _run(setup, *settled, ("crash", B), ("session expires", B)), since=len(first))
    assert (expired.rebalancing, expired.idle, expired.paused) == (1, 1, 1)
