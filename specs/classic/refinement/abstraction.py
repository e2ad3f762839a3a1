"""The map from the executable model to the logic: a state of ``model`` as a structure.

A member id is a slot and an incarnation there, one element here; a generation is a number in both, ``none``
is element 0 and the model's 0 is ``zero``. What the logic leaves out of a state (commits before a rebalance,
offset fetching, the initial delay of a group) is left out of the picture, so such steps stutter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import repeat
from operator import add
from typing import Any

from rebalance_verifier.model.assignors import reference
from rebalance_verifier.model.classic import state as s
from rebalance_verifier.model.classic.errors import FATAL, RETRIABLE
from rebalance_verifier.model.group.parts import (
    NO_ID,
    NONE,
    ClusterState,
    Error,
    GroupState,
    Id,
    Late,
    Life,
    Slot,
)
from rebalance_verifier.model.group.setup import MemberContext, Setup
from rebalance_verifier.model.machine import Value
from rebalance_verifier.model.values import RebalanceProtocol
from rebalance_verifier.specs.classic.vocabulary import VOCABULARY
from rebalance_verifier.specs.logic.universe import Structure, Universe
from rebalance_verifier.specs.logic.universe import Value as Element

Entry = tuple[Element, ...]
Entries = dict[str, Entry]
"""Symbol to its values, or to the values at the places of one consumer and of its ids."""

LIVES = {Life.DOWN: "DOWN", Life.FAILED: "DOWN", Life.UP: "UP", Life.PAUSED: "PAUSED", Life.HUNG: "HUNG"}
ERRORS = {
    Error.MEMBER_ID_REQUIRED: "MEMBER_ID_REQUIRED",
    Error.UNKNOWN_MEMBER_ID: "UNKNOWN_MEMBER_ID",
    Error.ILLEGAL_GENERATION: "ILLEGAL_GENERATION",
    Error.REBALANCE_IN_PROGRESS: "REBALANCE_IN_PROGRESS",
    **dict.fromkeys(RETRIABLE, "retriable"),
    **dict.fromkeys(FATAL, "fatal"),
}
MUTE = ("retriable", "REBALANCE_IN_PROGRESS")
"""Errors of JoinGroup and SyncGroup of which it does not matter whom they name."""
LOGGED = ("log_member", "log_claim", "log_supports", "log_topics", "log_assigned")
LOG = frozenset(symbol.name for symbol in VOCABULARY.mutable if symbol.name.startswith("log_"))


class NoCounterpartError(Exception):
    """Something in the model's state that the logic has no symbol for."""


@dataclass(frozen=True)
class StructureSize:
    """How many ids each consumer can have, and how many generations there are besides ``none``."""

    ids: int = 1
    generations: int = 1

    def __or__(self, other: StructureSize) -> StructureSize:
        return StructureSize(max(self.ids, other.ids), max(self.generations, other.generations))


LEAST = StructureSize()


def needed(values: Iterable[Value]) -> StructureSize:
    """Return the least size in which all of these values of components have a picture."""
    ids, generations = 1, 1
    for value in values:
        for name, number in _numbers(value):
            if name in ("id", "given", "incarnation"):
                ids = max(ids, number)
            elif name in ("generation", "own_gen", "label"):
                generations = max(generations, number + 1)
    return StructureSize(ids, generations)


def _numbers(value: object) -> Iterator[tuple[str, int]]:
    """Yield all numbers in ``value``, with the names of their fields."""
    if isinstance(value, tuple):
        for name, part in zip(getattr(value, "_fields", repeat("")), value, strict=False):
            if isinstance(part, int):
                yield name, part
            else:
                yield from _numbers(part)


@dataclass(frozen=True, kw_only=True)
class Local:
    """Part of a state that is about one slot. ``log`` are its records in the coordinator's log."""

    slot: Slot
    member: s.Member
    wire: Any
    stray: Any
    records: s.Records
    log: s.Records
    cluster: ClusterState
    behind: s.Behind = ()

    @property
    def gone(self) -> bool:
        """Check whether no process runs."""
        return self.member.life in (Life.DOWN, Life.FAILED)

    @property
    def idle(self) -> bool:
        """Check whether nothing is under way. A disconnect that nobody is there to be told of is nothing."""
        answer = self.wire
        return answer is None or (
            self.gone and isinstance(answer, s.Refused) and answer.error is Error.DISCONNECT
        )


class Abstraction:
    """The map for one setup, into a universe of one size.

    Raises NoCounterpartError for a state without a picture, ValueError where ``size`` is less than needed.
    """

    def __init__(self, setup: Setup, size: StructureSize = LEAST) -> None:
        self.setup, self.size = setup, size
        lists = (stage.assignors for consumer in setup.consumers for stage in consumer.stages)
        self.assignors = tuple(dict.fromkeys(name for names in lists for name in names))
        self.ids = range(1, size.ids + 1)
        self.slots = [Slot(slot) for slot in setup.slots]
        self.partitions = range(sum(setup.topics).bit_length())
        self.universe = Universe(
            VOCABULARY,
            {
                "Consumer": len(self.slots),
                "Member": len(self.slots) * size.ids,
                "Partition": len(self.partitions),
                "Generation": 1 + size.generations,
                "Assignor": len(self.assignors),
            },
            {
                "of": lambda m: int(m) // size.ids,
                "static": lambda c: setup.consumers[c].instance is not None,
                "honest": True,
                "cooperative": lambda a: (
                    RebalanceProtocol.COOPERATIVE in reference(self.assignors[a]).protocols
                ),
                "lt": lambda g, h: g < h,
                "none": 0,
                "zero": 1,
            },
        )

    # -- elements ----------------------------------------------------------------------------------------

    def id(self, slot: int, incarnation: int) -> int:
        """Return the element of a member id."""
        if incarnation not in self.ids:
            raise ValueError(f"{self.size} has no id number {incarnation}")
        return slot * self.size.ids + incarnation - 1

    def generation(self, number: int) -> int:
        """Return the element of a generation."""
        if number >= self.size.generations:
            raise ValueError(f"{self.size} has no generation {number}")
        return number + 1 if number != NONE else 0

    def assignor(self, name: str) -> int:
        return self.assignors.index(name)

    # -- the state ---------------------------------------------------------------------------------------

    def structure(self, shared: Entries, locals_: Sequence[Entries]) -> Structure:
        """Return a whole state, of ``shared`` and of what ``local`` says of each slot."""
        return tuple(
            [
                shared[symbol.name]
                if symbol.name in shared
                else reduce(add, [entries[symbol.name] for entries in locals_])
                for symbol in VOCABULARY.mutable
            ]
        )

    def blank(self) -> Structure:
        """Return the state in which nothing has happened."""
        nothing = [
            Local(
                slot=slot,
                member=s.Member(),
                wire=None,
                stray=None,
                behind=(),
                records=(),
                log=(),
                cluster=ClusterState(self.setup.exist),
            )
            for slot in self.slots
        ]
        return self.structure(self.shared(s.Group(), s.Group()), [self.local(here) for here in nothing])

    def shared(self, group: s.Group, log: s.Group) -> Entries:
        """Return the symbols of the group as a whole."""
        return {**self._group(group), **{f"log_{name}": entry for name, entry in self._group(log).items()}}

    def local(self, here: Local) -> Entries:
        """Return all other symbols, at the places of one slot."""
        return {
            **self._member(here),
            **self._wire(here),
            **self._stray(here),
            **self._behind(here),
            **self._records(here.records),
            **self._logged(here.log),
        }

    def _group(self, group: s.Group) -> Entries:
        empty = group.state is GroupState.DEAD
        return {
            "group": ("Empty" if empty else group.state.value,),
            "current": (self.generation(group.generation),),
            "leads": tuple(group.leader == Id(slot, i) for slot in self.slots for i in self.ids),
            "chosen": tuple(group.protocol == name for name in self.assignors),
        }

    def _member(self, here: Local) -> Entries:
        setup, m = self.setup, here.member
        if m.stuck:
            raise NoCounterpartError("a consumer waits for ever for what does not come")
        config = MemberContext(here.slot, setup).config(m.stage)
        news = m.watch is not None and (
            m.watch != m.view & setup.parts(m.watched) or m.watch_moved != m.view_moved
        )
        return {
            "life": (LIVES[m.life],),
            "state": (m.state.value,),
            "generation": (self.generation(m.generation),),
            "identified": (bool(m.id),),
            "id": self._named(here.slot, m.id),
            "since": self._claims(m.owned, m.own_gen),
            "told": self._set(m.believed),
            "prepare": (m.prepare,),
            "rejoin": (m.rejoin,),
            "resubscribed": (m.joined_topics != m.topics,),
            "outdated": (news,),
            "unseen": (not here.gone and (m.view, m.view_moved) != here.cluster,),
            "subscribes": (bool(m.topics),),
            "subscribed": self._set(setup.parts(m.topics)),
            "received": (m.received is not None,),
            "got": self._set(m.received),
            "eager": (config.eager,),
            "lists": self._list(config.assignors),
        }

    def _wire(self, here: Local) -> Entries:
        kind, id_, generation, error, leading = "idle", 0, NONE, "no_error", False
        meta: s.Metadata | None = None
        offer: dict[int, int] = {}
        granted: int | None = 0
        match None if here.idle else here.wire:
            case s.Join(id_, meta):
                kind = "join" if id_ else "join_new"
            case s.JoinParked(id_):
                kind = "join_parked"
            case s.JoinOk(id_, generation, _, leader, skip):
                kind, leading = "join_ok", leader and not skip
            case s.Sync(id_, generation, grants):
                kind, leading = "sync", bool(grants)
                offer = {self.id(*grant.id): grant.parts for grant in grants or ()}
            case s.SyncParked(id_, generation):
                kind = "sync_parked"
            case s.SyncOk(id_, generation, granted):
                kind = "sync_ok"
            case s.Refused(api, what, requested, of, given):
                kind, error = f"{api}_refused", ERRORS[what]
                id_ = 0 if error in MUTE else given or requested
                generation = NONE if error in MUTE or api == "join" else of
        members = range(len(self.slots) * self.size.ids)
        return {
            "wire": (kind,),
            "names": self._named(here.slot, id_),
            "wire_generation": (self.generation(generation),),
            "error": (error,),
            "leading": (leading,),
            "sent": self._claimed(meta),
            "sent_list": self._list(meta.assignors if meta else ()),
            "sent_topics": self._set(self.setup.parts(meta.topics) if meta else 0),
            "offer": tuple([x for m in members for x in self._set(offer.get(m))]),
            "granted": self._set(granted),
        }

    def _stray(self, here: Local) -> Entries:
        kind, id_, generation, error, parts = "no_stray", 0, NONE, "no_error", 0
        match here.stray:
            case Late(kind, id_, generation, parts):
                pass
            case s.Refused(_, what, id_, generation):
                kind, error = "answer", ERRORS[what]
        return {
            "stray": (kind,),
            "stray_names": self._named(here.slot, id_),
            "stray_generation": (self.generation(generation),),
            "stray_error": (error,),
            "committed": self._set(parts),
        }

    def _behind(self, here: Local) -> Entries:
        """Return the bag of what was left behind: what all of its JoinGroups under one id come to, and so
        on."""
        requests = [request for connection in here.behind for request in connection]
        requests += [here.stray] if isinstance(here.stray, s.Join) else []  # its sender gave up on it
        joins = [request for request in requests if isinstance(request, s.Join)]
        syncs = [request for request in requests if isinstance(request, s.Sync)]
        new = [join.meta for join in joins if join.id == NO_ID]
        named = [[join.meta for join in joins if join.id == i] for i in self.ids]
        generations = range(-1, self.size.generations)

        def synced(i: int, generation: int, *, deciding: bool) -> bool:
            of = [one for one in syncs if (one.id, one.generation) == (i, generation)]
            return any(bool(one.grants) or not deciding for one in of)

        return {
            "left": tuple(map(bool, named)),
            "left_claim": _flat(map(self._claimed_by_any, named)),
            "left_list": _flat(map(self._listed_by_all, named)),
            "left_new": (bool(new),),
            "left_new_list": self._listed_by_all(new),
            "left_sync": tuple([synced(i, g, deciding=False) for i in self.ids for g in generations]),
            "left_decision": tuple([synced(i, g, deciding=True) for i in self.ids for g in generations]),
        }

    def _claimed_by_any(self, metas: Sequence[s.Metadata]) -> Entry:
        claims = [self._claimed(meta) for meta in metas]
        return tuple(map(max, *claims)) if len(claims) > 1 else self._claimed(metas[0] if metas else None)

    def _listed_by_all(self, metas: Sequence[s.Metadata]) -> Entry:
        lists = [set(meta.assignors) for meta in metas]
        return self._list(name for name in self.assignors if lists and all(name in one for one in lists))

    def _records(self, records: s.Records) -> Entries:
        for record in records:
            self.id(0, record.id)
        known = {record.id: record for record in records}
        inside = [known.get(i) for i in self.ids]
        pending = tuple([record is not None and record.meta is None for record in inside])
        members = [record if record is not None and record.meta is not None else None for record in inside]
        return {
            "pending": pending,
            "member": tuple([record is not None for record in members]),
            "joined": tuple([record is not None and record.joined for record in members]),
            "synced": tuple([record is not None and record.synced for record in members]),
            "silent": tuple([record is not None and record.silent for record in members]),
            "given_up": tuple([record is not None and record.given_up for record in members]),
            **self._recorded(members),
        }

    def _logged(self, records: s.Records) -> Entries:
        entries = self._records(records)
        return {name: entries[name.removeprefix("log_")] for name in LOGGED}

    def _recorded(self, members: Sequence[s.MemberRecord | None]) -> Entries:
        """Return what the coordinator was told by the members of one slot, and has assigned them."""
        metas = [None if record is None else record.meta for record in members]
        return {
            "claim": _flat(map(self._claimed, metas)),
            "supports": _flat(self._list(m.assignors if m else ()) for m in metas),
            "topics": _flat(self._set(self.setup.parts(m.topics) if m else 0) for m in metas),
            "assigned": _flat(self._set(record.assigned if record else 0) for record in members),
        }

    def _named(self, slot: int, id_: int) -> Entry:
        if id_:
            self.id(slot, id_)
        return tuple([i == id_ for i in self.ids])

    def _set(self, parts: int | None) -> Entry:
        return tuple([bool((parts or 0) >> p & 1) for p in self.partitions])

    def _claims(self, parts: int, since: int) -> Entry:
        generation = self.generation(since)
        return tuple([generation if parts >> p & 1 else 0 for p in self.partitions])

    def _claimed(self, meta: s.Metadata | None) -> Entry:
        """Return what a JoinGroup claims, since when: the generationId field says it, or else its user
        data."""
        if meta is None:
            return self._claims(0, NONE)
        return self._claims(meta.owned, meta.own_gen if meta.label == NONE else meta.label)

    def _list(self, names: Iterable[str]) -> Entry:
        listed = tuple(names)
        return tuple([name in listed for name in self.assignors])


def _flat(entries: Iterable[Entry]) -> Entry:
    return tuple([value for entry in entries for value in entry])
