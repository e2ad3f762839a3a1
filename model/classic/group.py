"""The whole group as one machine: components, initial state, actions, views, symmetries."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import permutations
from math import factorial, prod

from rebalance_verifier.base.names import unknown
from rebalance_verifier.model.classic import coordinator, environment, leader, member, probing
from rebalance_verifier.model.classic.atomic import atomic
from rebalance_verifier.model.classic.describe import description
from rebalance_verifier.model.classic.errors import answer_to
from rebalance_verifier.model.classic.state import (
    Group,
    Member,
    Records,
    Stray,
    Wire,
    admitted,
    generations,
    participates,
)
from rebalance_verifier.model.group.parts import (
    ClusterState,
    GroupState,
    Late,
    Life,
    MemberState,
    Names,
    Parts,
    Slot,
    each,
    relabel,
    rename,
    union,
)
from rebalance_verifier.model.group.setup import CONNECTION_FAULTS, RARE_FAULTS, MemberContext, Setup, letter
from rebalance_verifier.model.machine import Labels, Machine, Permutation, State, Value, View

FAULTS = (
    "crash", "pause", "hang", "close", "unsubscribe", "max poll", "resubscribe", "enforce", "disconnect",
    "slow network", "late request", "slow commit", "listener throws", "session timeout", "slow member",
    "failover", "append fails", "group expires", "topic grows", "topic shrinks", "topic deleted",
    *CONNECTION_FAULTS, *RARE_FAULTS,
)  # fmt: skip
"""Every kind of fault; each draws one on the common budget."""


class NamingsError(ValueError):
    """A group under too many names to ask its assignor under each."""

    def __init__(self, members: int, namings: int) -> None:
        super().__init__(
            f"{members} members and their partitions have {namings:,} namings, too many to ask an assignor "
            f"under each of them (at most {MAX_NAMINGS:,}): fewer members or partitions"
        )


MAX_NAMINGS = 5_040
"""Under so many an assignor is asked at most: 4 members x 5 partitions, 6 x 3."""


def machine(setup: Setup) -> Machine:
    """Return the group of ``setup``: nobody started, no group on the broker.

    Raises ValueError for an unknown fault, an instance id that two consumers share, an assignor list
    without a common protocol, a group with more than MAX_NAMINGS namings, and an application of Kafka Streams
    whose processes have no order.
    """
    if setup.warmups and setup.naming == "every":
        raise ValueError("the processes of a Kafka Streams application keep their order: naming is given")
    for fault in setup.faults:
        if fault not in FAULTS:
            raise ValueError(unknown("fault", fault, FAULTS, "rebalance list faults"))
    for consumer in setup.consumers:
        for stage in consumer.stages:
            _ = stage.eager
    instances = [c.instance for c in setup.consumers if c.instance is not None]
    if len(set(instances)) < len(instances):
        raise ValueError("two consumers share a group.instance.id, which the model does not know")
    namings = factorial(len(setup.consumers))
    if not setup.racks:
        namings *= prod(factorial(len(each(parts))) for parts in setup.topics)
    if setup.naming == "every" and namings > MAX_NAMINGS:
        raise NamingsError(len(setup.consumers), namings)
    names = _components(setup)
    mes = [MemberContext(Slot(slot), setup) for slot in setup.slots]
    actions = (
        *(action for me in mes for action in member.actions(me)),
        *coordinator.actions(setup),
        *leader.actions(setup),
        *environment.actions(setup),
        *probing.actions(setup),
    )
    if setup.steps == "atomic":
        actions = tuple(atomic(actions, setup.faults))
    return Machine(
        components=names,
        initial=(tuple(_initial(setup, name) for name in names),),
        actions=actions,
        views=tuple(_views(setup, mes)),
        labels=Labels(generations, relabel),
        symmetries=tuple(_symmetries(setup, names)),
        describe=description(setup, names),
    )


def _components(setup: Setup) -> tuple[str, ...]:
    bounced = any(len(consumer.stages) > 1 for consumer in setup.consumers)
    parts = ["member", "wire", "stray", "record"]
    parts += [*(["log"] if setup.keeps_log else []), *(["rollout"] if bounced else [])]
    parts += ["behind"] if setup.breaks_connections else []
    head = ["budget", "cluster", "group"]
    if setup.keeps_log:
        head.append("log")
    return (*head, *(f"{part} {letter(slot)}" for slot in setup.slots for part in parts))


def _initial(setup: Setup, name: str) -> Value:
    kind = name.split()[0]
    if name == "log" or kind == "group":
        return Group()
    values: dict[str, Value] = {
        "budget": setup.budget,
        "cluster": ClusterState(setup.exist),
        "rollout": 0,
        "member": Member(),
        "wire": None,
        "stray": None,
        "behind": (),
        "record": (),
        "log": (),
    }
    return values[kind]


# -- views ---------------------------------------------------------------------------------------------


def held(me: Member, records: Records) -> Parts:
    """Return what a participant owns."""
    return me.owned if participates(me, records) else Parts(0)


def commits(me: MemberContext, m: Member, stray: Stray, group: Group, records: Records) -> Parts:
    """Return the partitions for which an offset commit would be accepted: sent now, or on its way and
    arriving now.

    The client sends none unless it is STABLE; everything else is up to the coordinator. Each may be one of a
    transaction.
    """
    sent = [Late("commit", m.id, m.generation, m.owned)] if m.state is MemberState.STABLE else []
    late = [stray] if isinstance(stray, Late) and stray.api == "commit" else []
    accepted = [
        commit.parts
        for commit in (*sent, *late)
        if answer_to(me, "transactional commit", group, records, commit.id, commit.generation) is None
    ]
    return union(accepted)


def settled(setup: Setup, me: Member, wire: Wire, group: Group, records: Records) -> str:
    """Return what this slot has left to do, "" if nothing."""
    if me.life in (Life.DOWN, Life.FAILED) or (me.life is Life.UP and not me.subscribes):
        return "still in the group" if records else ""
    if me.life is Life.PAUSED:
        return "paused"
    if me.life is Life.HUNG:
        return ""
    if me.state is not MemberState.STABLE or group.state is not GroupState.STABLE:
        return "not stable"
    record = next((record for record in records if record.id == me.id), None)
    if record is None or len(records) > 1 or me.generation != group.generation:
        return "not in the present generation, or not alone under its name"
    if me.received is not None or wire is not None or me.rejoin or me.committing or me.stuck:
        return "has something to do"
    if me.owned != record.assigned or me.joined_topics != me.topics or me.unfetched:
        return "owns, reads or subscribes to something else than it was assigned"
    return ""


def _views(setup: Setup, mes: list[MemberContext]) -> Iterator[View]:
    yield View("cluster", ("cluster",), lambda cluster: cluster.parts)
    yield View("group", ("group",), lambda group: group.state)
    for me in mes:
        m, w, r, s = (me.name(part) for part in ("member", "wire", "record", "stray"))
        yield View(f"held {letter(me.slot)}", (m, r), held)
        yield View(f"commits {letter(me.slot)}", (m, s, "group", r), partial(commits, me))
        yield View(f"listener {letter(me.slot)}", (m,), lambda m: (m.believed, m.owned, m.life))
        yield View(f"reads {letter(me.slot)}", (m,), lambda m, me=me: _reads(me, m))
        yield View(
            f"settled {letter(me.slot)}", (m, w, "group", r), lambda m, w, g, r: settled(setup, m, w, g, r)
        )
        yield View(f"share {letter(me.slot)}", (m, r), lambda m, r: _share(setup, m, r))
        yield View(f"life {letter(me.slot)}", (m,), lambda m: m.life)
        yield View(f"owned {letter(me.slot)}", (m,), lambda m: m.owned)
        yield View(f"wants {letter(me.slot)}", (m,), lambda m: (m.rejoin, m.enforced))
        yield View(f"ids {letter(me.slot)}", (r,), lambda r: len(admitted(r)))
        if setup.warmups:
            yield View(f"unfinished {letter(me.slot)}", (m,), probing.unfinished)
        if setup.keeps_log:
            yield View(f"unlogged {letter(me.slot)}", (r, me.name("log")), _unlogged)
        yield View(f"size {letter(me.slot)}", (r,), lambda r: sum(not x.silent for x in admitted(r)))


def _unlogged(records: Records, log: Records) -> int:
    """Return how many of the admitted member ids a coordinator that loads the log would not know."""
    return len({record.id for record in admitted(records)} - {record.id for record in log})


def _reads(me: MemberContext, m: Member) -> tuple[bool, bool, Parts]:
    """Check whether an EAGER commit before revoking is under way, in order (eager, committing, still
    read)."""
    return me.config(m.stage).eager, m.committing, Parts(m.owned & ~m.unfetched)


def _share(setup: Setup, m: Member, records: Records) -> tuple[Parts, Parts, Parts, Parts, bool]:
    """Of a member at work: owned, subscribed, the metadata it watches, and of which partitions; and whether
    it is a leader that hangs, whose watch nobody takes over."""
    if m.life is not Life.UP:  # one that hangs keeps what it was assigned, and can ask for nothing
        mine = [r for r in records if r.id == m.id] if m.life is Life.HUNG else []
        kept = [m.owned | (r.assigned or 0) for r in mine]
        blind = m.life is Life.HUNG and (m.watch is not None or m.noted_nothing)
        return union(kept), Parts(0), Parts(0), Parts(0), blind
    return m.owned, setup.parts(m.topics | m.pattern), m.watch or Parts(0), setup.parts(m.watched), False


# -- symmetry ------------------------------------------------------------------------------------------


def _symmetries(setup: Setup, names: tuple[str, ...]) -> Iterator[Permutation]:
    """Yield renamings of equal members and of the partitions of a topic; sound since the leader's assignor is
    asked under every naming, so none where it is asked under one."""
    if setup.naming != "every":
        return
    renamings = setup.renamings(kept=setup.exist)
    for slots in permutations(setup.slots):
        if any(setup.consumers[a] != setup.consumers[b] for a, b in enumerate(slots)):
            continue
        for numbers in renamings:
            yield permutation(names, slots, numbers)


def permutation(names: tuple[str, ...], slots: tuple[int, ...], numbers: dict[int, int]) -> Permutation:
    """Return one renaming of the components ``names``: of members by ``slots``, of partitions by
    ``numbers``."""
    to = {letter(old): letter(new) for old, new in enumerate(slots)}
    index = {name: i for i, name in enumerate(names)}
    columns = []
    for name in names:
        kind, _, who = name.partition(" ")
        columns.append(index[f"{kind} {to[who]}"] if who else index[name])
    bits = {1 << old: 1 << new for old, new in numbers.items()}

    def parts(value: int) -> Parts:
        return union([bits[1 << p] for p in each(value)])

    renamer = Names(parts, lambda g: g, lambda s: Slot(slots[s]))

    def run(value: Value) -> Value:
        renamed: Value = rename(value, renamer)
        return renamed

    return Permutation(tuple(columns), run)


def initial(setup: Setup) -> State:
    """Return the one initial state."""
    return machine(setup).initial[0]
