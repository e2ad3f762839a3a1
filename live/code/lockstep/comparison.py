"""What can be seen of a group from outside, once of the model's state and once of a simulation's: to be
compared.

Both sides are put into the same short texts under the same names, so that a difference reads as a sentence.
Member ids are those of the model: A1 is the first id that the coordinator gave to A.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from operator import is_
from typing import Any

from rebalance_verifier.live.code.answers import (
    RegisteredMember,
    SimulationClaim,
    SimulationRequest,
    SimulationResponse,
)
from rebalance_verifier.live.code.replay.group import CodeGroup, CodeMember, told_to_lead
from rebalance_verifier.model.classic import state as s
from rebalance_verifier.model.group import parts as p
from rebalance_verifier.model.group.setup import Setup, letter
from rebalance_verifier.model.machine import NOBODY, Machine, State

Observed = Mapping[str, str]
"""Name of what is seen -> how it stands."""

NOBODY_ID = "-"

_GROUP_STATES = {
    p.GroupState.EMPTY: "empty",
    p.GroupState.PREPARING: "PREPARING_REBALANCE",
    p.GroupState.COMPLETING: "COMPLETING_REBALANCE",
    p.GroupState.STABLE: "STABLE",
    p.GroupState.DEAD: "empty",
}
"""GroupState of the model -> ``ClassicGroupState`` by its Java name; one without members may exist or not."""

_REBALANCING = {p.MemberState.PREPARING.value, p.MemberState.COMPLETING.value}
"""What is one state, REBALANCING, before Kafka 2.7."""


class IdNames:
    """Which id of the model each member id of Kafka is."""

    def __init__(self) -> None:
        self.learned = 0
        """How many are known: what was said of one that was not may be said otherwise since."""
        self._names: dict[str, tuple[int, int]] = {}
        self._real: dict[tuple[int, int], str] = {}

    def name(self, real: str | None) -> str:
        """Return the id of the model for a member id of Kafka, which is shown itself where there is none."""
        if not real:
            return NOBODY_ID
        known = self._names.get(real)
        return real if known is None else spelled(*known)

    def real(self, slot: int, incarnation: int) -> str:
        """Return the member id of Kafka for one of the model. Raises KeyError."""
        return self._real[slot, incarnation]

    def number(self, real: str) -> tuple[int, int] | None:
        """Slot and incarnation of a member id of Kafka, None for an unknown one."""
        return self._names.get(real)

    def learn(self, slot: int, incarnations: Iterable[int], real: Iterable[str]) -> None:
        """Pair what is new in the model with what is new in Kafka, in order."""
        fresh = [one for one in real if one not in self._names]
        for incarnation, one in zip(incarnations, fresh, strict=False):
            self._names[one] = (slot, incarnation)
            self._real[slot, incarnation] = one
            self.learned += 1


def spelled(slot: int, incarnation: int) -> str:
    """Return an id of the model as text."""
    return f"{letter(slot)}{incarnation}" if incarnation != p.NO_ID else NOBODY_ID


def differences(model: Observed, code: Observed) -> list[str]:
    """Return where the two are not alike, as sentences in the order of the model's names."""
    if model == code:
        return []
    names = [*model, *(name for name in code if name not in model)]
    return [
        f"{name}: the model has {model.get(name, 'nothing')}, Kafka {code.get(name, 'nothing')}"
        for name in names
        if model.get(name) != code.get(name)
        and not (code.get(name) == "REBALANCING" and model.get(name) in _REBALANCING)
    ]


# -- the model -----------------------------------------------------------------------------------------


class ModelSight:
    """Looks at one state of the model after the other: a part that is the one of before looks as it did."""

    def __init__(self, setup: Setup, built: Machine) -> None:
        self.setup = setup
        self._group = built.position["group"]
        self._places = [
            [built.position[f"{part} {letter(slot)}"] for part in ("member", "wire", "record")]
            for slot in setup.slots
        ]
        self._parts: dict[int, tuple[tuple[Any, ...], dict[str, str]]] = {}

    def all(self, state: State) -> dict[str, str]:
        """Return what can be seen of ``state``."""
        group: s.Group = state[self._group]  # type: ignore[assignment]
        seen = _group(group)
        for slot, (member, wire, record) in enumerate(self._places):
            reads = state[member], state[wire], state[record], group.state
            known = self._parts.get(slot)
            if known is None or not all(map(is_, known[0], reads)):
                known = self._parts[slot] = reads, _slot(self.setup, slot, *reads)  # type: ignore[arg-type]
            seen |= known[1]
        return seen


def _group(group: s.Group) -> dict[str, str]:
    seen = {"the group": _GROUP_STATES[group.state]}
    if group.state not in (p.GroupState.DEAD, p.GroupState.EMPTY):
        seen["its generation"] = str(group.generation)
    if group.state in (p.GroupState.COMPLETING, p.GroupState.STABLE):
        seen["its leader"] = spelled(*group.leader) if group.leader else NOBODY_ID
        seen["its protocol"] = str(group.protocol)
    return seen


def _slot(
    setup: Setup, slot: int, member: s.Member, wire: s.Wire, records: s.Records, group: p.GroupState
) -> dict[str, str]:
    seen: dict[str, str] = {}
    for record in records:
        seen |= _record(setup, group, slot, record)
    seen |= _member(setup, slot, member)
    if member.life not in (p.Life.DOWN, p.Life.FAILED):
        seen[f"under way of {letter(slot)}"] = _wire(setup, slot, member.stage, wire)
    return seen


def _record(setup: Setup, group: p.GroupState, slot: int, record: s.MemberRecord) -> dict[str, str]:
    name = f"member id {spelled(slot, record.id)}"
    if record.meta is None:
        return {name: "pending"}
    seen = {name: _claim(setup, record.meta)}
    seen[f"{name} has joined"] = str(record.joined)
    seen[f"{name} is new"] = str(record.new)
    if group is p.GroupState.COMPLETING:
        seen[f"{name} has synced"] = str(record.synced)
    if group is p.GroupState.STABLE:
        seen[f"{name} is assigned"] = setup.spell(record.assigned)
    return seen


def _claim(setup: Setup, meta: s.Metadata) -> str:
    text = f"{_topics(meta.topics)} owning {setup.spell(meta.owned)}"
    if meta.version >= 2 and meta.label != p.NONE:
        text += f" of generation {meta.label}"
    if meta.version < 2 and meta.tells and "cooperative-sticky" in meta.assignors:
        text += f", written in generation {meta.own_gen}"
    return f"{text}, {' '.join(meta.assignors)}"


def _topics(topics: int) -> str:
    return f"topics {topics:b}"


def _member(setup: Setup, slot: int, member: s.Member) -> dict[str, str]:
    name = letter(slot)
    if member.life in (p.Life.DOWN, p.Life.FAILED):
        return {name: "down"}
    return {
        name: "up",
        f"{name} is": member.state.value,
        f"{name} in generation": str(member.generation),
        f"{name} with id": spelled(slot, member.id),
        f"{name} owns": setup.spell(member.owned),
        f"{name} reads": setup.spell(member.owned & ~member.unfetched & setup.parts(member.topics)),
        f"{name} subscribes to": _topics(member.topics),
    }


def _wire(setup: Setup, slot: int, stage: int, wire: s.Wire) -> str:
    match wire:
        case None | s.Refused(error=p.Error.DISCONNECT):  # nothing but the client's own knowledge of it
            return "nothing"
        case s.Join(id=id_, meta=meta):
            return f"JoinGroup of {spelled(slot, id_)}, {_claim(setup, meta)}"
        case s.JoinParked():
            return "JoinGroup, which waits"
        case s.JoinOk(id=id_, generation=generation, skip=skip) as answer:
            leads = told_to_lead(setup.consumers[slot].stages[stage], answer)
            role = ("leads, skips" if skip else "leads") if leads else "follows"
            return f"JoinGroup's answer to {spelled(slot, id_)}: generation {generation}, {role}"
        case s.Sync(id=id_, generation=generation):
            return f"SyncGroup of {spelled(slot, id_)} in generation {generation}"
        case s.SyncParked():
            return "SyncGroup, which waits"
        case s.SyncOk(parts=parts):
            return f"SyncGroup's answer: {setup.spell(parts)}"
        case s.Refused(api=api, error=error):
            return _refused("JoinGroup" if api == "join" else "SyncGroup", error.value)
    raise TypeError(wire)


def _refused(api: str, error: str) -> str:
    return f"{api}'s answer: {error}"


def records_of(built: Machine, state: State, slot: int) -> s.Records:
    """Return what the model's coordinator knows of a slot."""
    return tuple(built.value(state, f"record {letter(slot)}"))


# -- Kafka's code --------------------------------------------------------------------------------------


def _topic(partition: str) -> str:
    return partition.rpartition("-")[0]


class CodeSight:
    """Looks at a simulation after one step after the other: a part that is the one of before looks as it
    did."""

    def __init__(self, group: CodeGroup, ids: IdNames) -> None:
        self.group, self.ids, self.setup = group, ids, group.setup
        self._shown: dict[int, tuple[object, dict[str, str]]] = {}
        self._learned = -1

    def all(self) -> dict[str, str]:
        """Return what can be seen now."""
        if self.ids.learned != self._learned:
            self._learned = self.ids.learned
            self._shown.clear()
        seen = dict(self._known(NOBODY, self.group.state.coordinator, self._coordinator))
        for member in self.group.members:
            state = self.group.state.members[member.slot]
            seen |= self._known(member.slot, state, partial(self._member, member))
            if state is not None:
                seen[f"under way of {letter(member.slot)}"] = self._wire(member)
        return seen

    def _known(self, part: int, now: object, look: Callable[[], dict[str, str]]) -> dict[str, str]:
        known = self._shown.get(part)
        if known is None or known[0] is not now:
            known = self._shown[part] = now, look()
        return known[1]

    def _coordinator(self) -> dict[str, str]:
        coordinator = self.group.state.coordinator
        exists = coordinator.state is not None and coordinator.state not in ("DEAD", "EMPTY")
        seen = {"the group": coordinator.state if exists and coordinator.state else "empty"}
        if exists:
            seen["its generation"] = str(coordinator.generation)
        if coordinator.state in ("COMPLETING_REBALANCE", "STABLE"):
            seen["its leader"] = self.ids.name(coordinator.leader)
            seen["its protocol"] = str(coordinator.protocol)
        for one in coordinator.members:
            seen |= self._record(one)
        for real in coordinator.pending_joins:
            seen[f"member id {self.ids.name(real)}"] = "pending"
        return seen

    def _record(self, one: RegisteredMember) -> dict[str, str]:
        coordinator = self.group.state.coordinator
        name = f"member id {self.ids.name(one.id)}"
        seen = {name: self._claim(one.claims), f"{name} has joined": str(one.joining)}
        seen[f"{name} is new"] = str(one.new)
        if coordinator.state == "COMPLETING_REBALANCE":
            seen[f"{name} has synced"] = str(one.id not in coordinator.pending_syncs)
        if coordinator.state == "STABLE":
            seen[f"{name} is assigned"] = self._parts(one.assigned or ())
        return seen

    def _claim(self, claims: Sequence[SimulationClaim]) -> str:
        [first, *_] = claims
        text = f"{self._topics(first.topics)} owning {self._parts(first.owned)}"
        if first.generation not in (None, p.NONE):
            text += f" of generation {first.generation}"
        if first.version < 2 and (
            written := [c.user_generation for c in claims if c.user_generation is not None]
        ):
            text += f", written in generation {written[0]}"
        return f"{text}, {' '.join(one.protocol for one in claims)}"

    def _parts(self, parts: Iterable[str]) -> str:
        return self.setup.spell(self.group.bits(parts))

    def _topics(self, topics: Iterable[str]) -> str:
        return _topics(sum(1 << self.group.topics.index(name) for name in topics))

    def _member(self, member: CodeMember) -> dict[str, str]:
        name, state = letter(member.slot), self.group.state.members[member.slot]
        if state is None:
            return {name: "down"}
        return {
            name: "up",
            f"{name} is": state.state,
            f"{name} in generation": str(state.generation),
            f"{name} with id": self.ids.name(state.member_id),
            f"{name} owns": self._parts(state.owned),
            f"{name} reads": self._parts(one for one in state.fetchable if _topic(one) in state.topics),
            f"{name} subscribes to": self._topics(state.topics),
        }

    def _wire(self, member: CodeMember) -> str:
        for api in ("SyncGroup", "JoinGroup"):
            if api in member.open_requests:
                return self._request(member.open_requests[api])
            if api in member.undelivered_answers:
                return self._answer(member.undelivered_answers[api])
            if api in member.unanswered_requests:
                return f"{api}, which waits"
        return "nothing"

    def _request(self, request: SimulationRequest) -> str:
        text = f"{request.api} of {self.ids.name(request.member_id)}"
        if request.api == "SyncGroup":
            return f"{text} in generation {request.generation}"
        return f"{text}, {self._claim(request.claims)}"

    def _answer(self, answer: SimulationResponse) -> str:
        if answer.error != "NONE":
            return _refused(answer.api, answer.error)
        if answer.api == "SyncGroup":
            return f"SyncGroup's answer: {self._parts(answer.assignment or ())}"
        role = "follows"
        if answer.leader == answer.member_id:
            role = "leads, skips" if answer.skip_assignment else "leads"
        who = self.ids.name(answer.member_id)
        return f"JoinGroup's answer to {who}: generation {answer.generation}, {role}"
