"""Kafka Streams in a classic group (KIP-441): stores catch up, and a member asks for the rebalance that moves
the task there.

One partition stands for a task with a store, one member for a process of one thread. A process that crashes
loses its disk. The deadline of a probing rebalance is later than the end of the rebalance that set it, for
every member: ``probing.rebalance.interval.ms`` is a minute or more.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from rebalance_verifier.model.classic.callbacks import works
from rebalance_verifier.model.classic.state import Group, Member, Records, admitted
from rebalance_verifier.model.group.parts import Ask, GroupState, Life, MemberState, Parts, Slot, each
from rebalance_verifier.model.group.setup import MemberContext, Setup, letter
from rebalance_verifier.model.machine import Action, Outcome


def behind(member: Member) -> Parts:
    """Return the tasks of which a member has the active copy or a warm-up, and its store lags."""
    return Parts((member.owned | member.copies.warmups) & ~member.caught_up)


def catch_up(me: MemberContext, member: Member) -> Iterator[Outcome]:
    """A store of the member has caught up with its changelog."""
    if works(member):
        for number in each(behind(member)):
            after = member._replace(caught_up=Parts(member.caught_up | 1 << number))
            yield Outcome((after,), str(me.setup.partition(number)))


def ask_again(me: MemberContext, member: Member, group: Group, *records: Records) -> Iterator[Outcome]:
    """The follow-up rebalance of the assignment is due: ``enforceRebalance`` (KIP-568), and the schedule is
    empty. Never while the member's own rebalance is under way (since 3.3.2, KAFKA-14382)."""
    if not works(member) or member.state is not MemberState.STABLE or member.received is not None:
        return
    asks = member.copies.asks
    if asks is Ask.NOW or (asks is Ask.LATER and _over(group, records)):
        scheduled = member.copies._replace(asks=Ask.NEVER)
        yield Outcome((member._replace(copies=scheduled, rejoin=True),), asks.value)


def _over(group: Group, records: tuple[Records, ...]) -> bool:
    """Check whether the rebalance has ended for every member."""
    everybody = (record for some in records for record in admitted(some))
    return group.state is GroupState.STABLE and all(record.synced for record in everybody)


def unfinished(member: Member) -> str:
    """Return what a process has to do until every task runs where it belongs, "" if nothing."""
    if member.life is not Life.UP:
        return ""
    if member.copies.asks is not Ask.NEVER:
        return "has to ask for a rebalance"
    if behind(member):
        return "its stores have to catch up"
    return "its warm-up has caught up, and nobody asks for a rebalance" if member.copies.warmups else ""


def actions(setup: Setup) -> Iterator[Action]:
    """Yield what every process of a Kafka Streams application does besides its consumer."""
    records = tuple(f"record {letter(slot)}" for slot in setup.slots)
    for slot in setup.slots if setup.warmups else ():
        me = MemberContext(Slot(slot), setup)
        m = me.name("member")
        yield Action(name="catches up", who=me.slot, reads=(m,), writes=(m,), run=partial(catch_up, me))
        yield Action(
            name="asks again", who=me.slot, reads=(m, "group", *records), writes=(m,),
            run=partial(ask_again, me),
        )  # fmt: skip
