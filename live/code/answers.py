"""What a simulation answers: the events of a command in order, and the state of every part."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rebalance_verifier.base.processes.program import JsonLine

Partitions = frozenset[str]
"""Names such as ``t-0``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationClaim:
    """A Subscription (``ConsumerProtocol.deserializeSubscription``) under one protocol name.

    ``generation``: of the subscription, since its version 2; ``user_generation``: what
    CooperativeStickyAssignor wrote into the user data. None where there is none.
    """

    protocol: str
    version: int
    topics: tuple[str, ...]
    owned: Partitions
    generation: int | None = None
    user_generation: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationRequest:
    """A request left a consumer: ``api`` and ``version`` as on the wire, ``id`` to deliver or drop it by.

    ``generation``, ``instance``, ``claims`` (JoinGroup), ``assignments`` (SyncGroup, by member id) and
    ``partitions`` (OffsetCommit) where the API has them; ``owned`` of a ConsumerGroupHeartbeat that says it.
    """

    member: int
    id: int
    api: str
    version: int
    member_id: str = ""
    generation: int | None = None
    instance: str | None = None
    claims: tuple[SimulationClaim, ...] = ()
    assignments: Mapping[str, Partitions | None] = field(default_factory=dict)
    partitions: Partitions = frozenset()
    owned: Partitions | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationResponse:
    """The coordinator answered request ``id``; nobody waits for it if ``abandoned``.

    ``error`` is a name of ``org.apache.kafka.common.protocol.Errors``. ``member_ids`` are those that a leader
    is sent. ``failure``: what the coordinator threw, where it is no answer of the protocol.
    """

    member: int
    id: int
    api: str
    error: str
    generation: int | None = None
    member_id: str = ""
    leader: str = ""
    protocol: str | None = None
    member_ids: tuple[str, ...] = ()
    assignment: Partitions | None = None
    skip_assignment: bool = False
    abandoned: bool = False
    failure: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationCallback:
    """A call of ConsumerRebalanceListener: revoked, assigned, lost.

    Meanwhile: ``owned`` is ``assignment()``, ``generation`` the consumer's (-1 without one), and
    ``shown_generation`` what ``groupMetadata()`` shows (None before 2.5).
    """

    member: int
    call: str
    partitions: Partitions
    owned: Partitions
    generation: int
    shown_generation: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationThrown:
    """Exception that reached the application: the classes of the exception and of its cause."""

    member: int
    error: str
    message: str | None
    cause: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationCommitted:
    """A commit of the application ended, with the class of an error or None."""

    member: int
    sync: bool
    error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationNoted:
    """Something else happened to ``member``.

    ``metadata``: it received the cluster's. ``disconnected``: its client closed its connection to the
    node ``detail``. ``responded``: response ``detail`` was handed to it since its call waited.
    """

    member: int
    event: str
    detail: str = ""


SimulationEvent = (
    SimulationRequest
    | SimulationResponse
    | SimulationCallback
    | SimulationThrown
    | SimulationCommitted
    | SimulationNoted
)


def events_of(answer: JsonLine) -> tuple[SimulationEvent, ...]:
    """Return the events of an answer, in order. Raises KeyError for what is no answer of a simulation."""
    return tuple(_READ.get(one["event"], _noted)(one) for one in answer.get("events", ()))


def _claim(one: JsonLine) -> SimulationClaim:
    return SimulationClaim(
        protocol=one["name"],
        version=one.get("version", -1),
        topics=tuple(one.get("topics", ())),
        owned=frozenset(one.get("owned", ())),
        generation=one.get("generation"),
        user_generation=one.get("user_generation"),
    )


def _request(one: JsonLine) -> SimulationEvent:
    return SimulationRequest(
        member=one["member"],
        id=one["id"],
        api=one["api"],
        version=one["version"],
        member_id=one.get("member_id", ""),
        generation=one.get("generation"),
        instance=one.get("instance"),
        claims=tuple(map(_claim, one.get("protocols", ()))),
        assignments={name: _set(parts) for name, parts in one.get("assignments", {}).items()},
        partitions=frozenset(one.get("partitions", ())),
        owned=_set(one.get("owned")),
    )


def _response(one: JsonLine) -> SimulationEvent:
    return SimulationResponse(
        member=one["member"],
        id=one["id"],
        api=one["api"],
        error=one["error"],
        generation=one.get("generation"),
        member_id=one.get("member_id", ""),
        leader=one.get("leader", ""),
        protocol=one.get("protocol"),
        member_ids=tuple(member["id"] for member in one.get("members", ())),
        assignment=_set(one.get("assignment")),
        skip_assignment=one.get("skip_assignment", False),
        abandoned=one.get("abandoned", False),
        failure=one.get("failure", ""),
    )


def _callback(one: JsonLine) -> SimulationEvent:
    parts, owned = frozenset(one["partitions"]), frozenset(one["owned"])
    return SimulationCallback(
        member=one["member"],
        call=one["call"],
        partitions=parts,
        owned=owned,
        generation=one["generation"],
        shown_generation=one.get("shown_generation"),
    )


def _thrown(one: JsonLine) -> SimulationEvent:
    return SimulationThrown(
        member=one["member"], error=one["error"], message=one["message"], cause=one["cause"]
    )


def _committed(one: JsonLine) -> SimulationEvent:
    return SimulationCommitted(member=one["member"], sync=one["sync"], error=one["error"])


def _noted(one: JsonLine) -> SimulationEvent:
    detail = one.get("destination", one.get("id", ""))
    return SimulationNoted(member=one["member"], event=one["event"], detail=str(detail))


_READ: dict[str, Callable[[JsonLine], SimulationEvent]] = {
    "request": _request,
    "response": _response,
    "callback": _callback,
    "thrown": _thrown,
    "committed": _committed,
}


def _set(parts: Any) -> Partitions | None:
    return None if parts is None else frozenset(parts)


# --- state -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredMember:
    """A ClassicGroupMember. ``assigned``: what it was assigned last, None before the first time.

    ``joining`` and ``syncing``: its JoinGroup or SyncGroup waits at the coordinator.
    """

    id: str
    client: str
    instance: str | None
    new: bool
    joining: bool
    syncing: bool
    claims: tuple[SimulationClaim, ...]
    assigned: Partitions | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedMember:
    """A member of a consumer group (KIP-848), of the classic protocol if ``classic``.

    ``epoch``, ``previous``: member epochs; ``state`` is a name of MemberState. What it is ``assigned``,
    what is ``pending`` its revocation, and its ``target``.
    """

    id: str
    client: str
    instance: str | None
    epoch: int
    previous: int
    state: str
    classic: bool
    assigned: Partitions
    pending: Partitions
    target: Partitions


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedGroup:
    """A consumer group: ``state`` is a name of ConsumerGroupState."""

    state: str
    epoch: int
    assignment_epoch: int
    members: tuple[ServedMember, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorState:
    """The coordinator. ``state`` is a name of ClassicGroupState, None without a classic group; ``consumer``
    is the group while it is one of the consumer protocol.

    ``log``: records that are committed; ``waiting``: writes that are not. ``timers``: milliseconds until each
    fires, by its key. ``available``: active, loading, gone.
    """

    state: str | None
    generation: int
    leader: str | None
    protocol: str | None
    members: tuple[RegisteredMember, ...]
    pending_joins: tuple[str, ...]
    pending_syncs: tuple[str, ...]
    timers: Mapping[str, int]
    log: int
    waiting: int
    held: bool
    available: str
    now: int
    consumer: ServedGroup | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerState:
    """A consumer. ``state`` is a name of AbstractCoordinator.MemberState; ``member_id`` empty without one.

    ``fetchable``: what of ``owned`` a poll may read now.
    ``joining``: a join is under way (joinFuture); ``prepared``: onJoinPrepare has run for the next join;
    ``heartbeats``: the heartbeat thread is enabled.
    """

    state: str
    generation: int
    member_id: str
    protocol: str | None
    owned: Partitions
    fetchable: Partitions
    topics: tuple[str, ...]
    rejoin: bool
    joining: bool
    prepared: bool
    coordinator_known: bool
    heartbeats: bool
    now: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UnderWay:
    """A message by its id; nobody waits for the response to an ``abandoned`` request."""

    id: int
    member: int
    abandoned: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationState:
    """Every part of a simulation; a member without a process is None."""

    coordinator: CoordinatorState
    members: tuple[ConsumerState | None, ...]
    topics: Mapping[str, int]
    requests: tuple[UnderWay, ...]
    responses: tuple[UnderWay, ...]


def state_of(answer: JsonLine, before: SimulationState | None = None) -> SimulationState:
    """Return the answer to ``state``. Parts that it leaves out, and members that are null in it, are those of
    ``before``, which is given back itself where nothing has changed.

    Raises KeyError for another answer.
    """
    state = answer["state"]
    changed = {name: read(state[name]) for name, read in _PARTS.items() if name in state}
    members = state["members"]
    if before is None:
        return SimulationState(members=tuple(map(_consumer, members)), **changed)
    if members != [None] * len(before.members):
        changed["members"] = tuple(
            before.members[slot] if one is None else _consumer(one) for slot, one in enumerate(members)
        )
    return replace(before, **changed) if changed else before


def _under_way(listed: Iterable[JsonLine]) -> tuple[UnderWay, ...]:
    return tuple(UnderWay(**one) for one in listed)


def _coordinator(one: JsonLine) -> CoordinatorState:
    plain = {name: one[name] for name in ("state", "timers", "log", "waiting", "held", "available", "now")}
    return CoordinatorState(
        **plain,
        generation=one.get("generation", -1),
        leader=one.get("leader"),
        protocol=one.get("protocol"),
        members=tuple(map(_registered, one.get("members", ()))),
        pending_joins=tuple(one.get("pending_joins", ())),
        pending_syncs=tuple(one.get("pending_syncs", ())),
        consumer=_served(one["consumer"]) if "consumer" in one else None,
    )


def _served(one: JsonLine) -> ServedGroup:
    members = tuple(
        ServedMember(**member | {name: frozenset(member[name]) for name in ("assigned", "pending", "target")})
        for member in one["members"]
    )
    return ServedGroup(**{**one, "members": members})


def _registered(one: JsonLine) -> RegisteredMember:
    plain = {name: one[name] for name in ("id", "client", "instance", "new", "joining", "syncing")}
    claims = tuple(map(_claim, one["protocols"]))
    return RegisteredMember(**plain, claims=claims, assigned=_set(one["assigned"]))


def _consumer(one: JsonLine) -> ConsumerState | None:
    if not one["up"]:
        return None
    plain = {name: value for name, value in one.items() if name not in ("up", "owned", "fetchable", "topics")}
    owned, fetchable = frozenset(one["owned"]), frozenset(one["fetchable"])
    return ConsumerState(**plain, owned=owned, fetchable=fetchable, topics=tuple(one["topics"]))


_PARTS: Mapping[str, Callable[[Any], Any]] = {
    "coordinator": _coordinator,
    "topics": dict,
    "requests": _under_way,
    "responses": _under_way,
}
"""All but the members."""
