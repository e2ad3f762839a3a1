"""What the coordinator of a simulation does, as the model's observations: it is looked at before and
after."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from rebalance_verifier.live.clients.replay.naming import RunNames
from rebalance_verifier.live.code.answers import (
    CoordinatorState,
    RegisteredMember,
    SimulationClaim,
    SimulationEvent,
    SimulationRequest,
    SimulationResponse,
)
from rebalance_verifier.model.classic.join_group import select_protocol
from rebalance_verifier.model.classic.state import Metadata
from rebalance_verifier.model.group import parts as p
from rebalance_verifier.model.group.observations import (
    Admitted,
    Elected,
    Expelled,
    Repeated,
    Replaced,
    TurnedAway,
)
from rebalance_verifier.model.group.setup import Setup, letter

_STATES = {
    "EMPTY": p.GroupState.EMPTY,
    "PREPARING_REBALANCE": p.GroupState.PREPARING,
    "COMPLETING_REBALANCE": p.GroupState.COMPLETING,
    "STABLE": p.GroupState.STABLE,
}
"""ClassicGroupState by its Java name; anything else is a group that is not there."""

_TIMEOUTS = {"rebalance": "rebalance", "sync": "pending sync"}


class CoordinatorWatch(RunNames):
    """Watches the coordinator of one group.

    ``at_work``: whether the owner of a member id is at work, which whoever moves the group knows.
    ``silent``: ids of static members that took no part in the join phase of this generation.
    """

    def __init__(self, setup: Setup, at_work: Callable[[str], bool] = lambda member_id: False) -> None:
        self.setup = setup
        self.at_work = at_work
        self.silent: frozenset[str] = frozenset()
        self._requests: dict[int, SimulationRequest] = {}

    def copied(self) -> CoordinatorWatch:
        """Return one that goes on by itself."""
        found = CoordinatorWatch(self.setup, self.at_work)
        found.silent, found._requests = self.silent, dict(self._requests)
        return found

    def views(self, coordinator: CoordinatorState) -> dict[str, Any]:
        """Return what the clauses about states ask of the coordinator."""
        values: dict[str, Any] = {"group": group_state(coordinator)}
        for slot in self.setup.slots:
            mine = [one for one in coordinator.members if slot_of(one) == slot]
            values[f"ids {letter(slot)}"] = len(mine)
            values[f"size {letter(slot)}"] = sum(one.id not in self.silent for one in mine)
        return values

    def sees(
        self,
        command: str,
        arguments: Mapping[str, Any],
        before: CoordinatorState,
        after: CoordinatorState,
        events: Iterable[SimulationEvent],
    ) -> Iterator[Any]:
        """Yield the observations of one command."""
        events = tuple(events)
        self._requests |= {one.id: one for one in events if isinstance(one, SimulationRequest)}
        request = self._requests.get(arguments["id"]) if command == "deliver" else None
        if request is not None and request.api == "JoinGroup":
            answer = next(
                (r for r in events if isinstance(r, SimulationResponse) and r.id == request.id), None
            )
            yield from self._joins(request, before, after, answer)
        cause = _TIMEOUTS.get(arguments.get("timer", "")) if command == "expire" else None
        if cause:
            yield from self._expelled(cause, before, after)
        if after.generation > before.generation and after.state == "COMPLETING_REBALANCE":
            came = {one.id for one in before.members if one.joining}
            came |= {request.member_id} if request is not None else set()
            old = {one.id for one in before.members}
            self.silent = frozenset(one.id for one in after.members if one.id in old - came and one.instance)
            if after.protocol is not None:
                yield Elected(after.protocol, tuple(assignors(one.claims) for one in after.members))

    def _joins(
        self,
        request: SimulationRequest,
        before: CoordinatorState,
        after: CoordinatorState,
        answer: SimulationResponse | None,
    ) -> Iterator[Any]:
        """Note that a JoinGroup arrived."""
        who = p.Slot(request.member)
        old = {one.id for one in before.members}
        rebalances = after.state == "PREPARING_REBALANCE" or after.generation > before.generation
        record = next((one for one in before.members if one.id == request.member_id), None)
        if answer is not None and answer.error == p.Error.GROUP_MAX_SIZE_REACHED.value:
            of_it = record is not None or self._replaces(request, before) is not None
            yield TurnedAway(who, of_it and before.state != "PREPARING_REBALANCE")
            return
        if record is not None:
            follows = before.state == "STABLE" and before.leader != record.id
            if (follows and record.claims == request.claims) or (
                before.state == "STABLE" and answer is not None and not rebalances
            ):
                yield Repeated(who, rebalances)
            return
        fresh = [one.id for one in after.members if one.id not in old and slot_of(one) == who]
        replaced = self._replaces(request, before)
        if replaced is not None and not request.member_id and fresh and replaced.id not in _ids(after):
            yield self._replaced(request, replaced, before, answer, rebalances=rebalances)
        elif fresh:
            shown = request.member_id in fresh or request.instance is not None
            yield Admitted(who, shown, len(after.members), self.setup.max_size)

    def _replaces(self, request: SimulationRequest, before: CoordinatorState) -> RegisteredMember | None:
        """Return the static member in whose name the request comes."""
        return next(
            (one for one in before.members if one.instance and one.instance == request.instance), None
        )

    def _replaced(
        self,
        request: SimulationRequest,
        old: RegisteredMember,
        before: CoordinatorState,
        answer: SimulationResponse | None,
        *,
        rebalances: bool,
    ) -> Replaced:
        others = [one.claims for one in before.members if one.id != old.id]
        metas = [Metadata(assignors(some), p.Topics(0)) for some in (request.claims, *others)]
        reselected = before.protocol not in select_protocol(metas)
        was, now = old.claims[0], request.claims[0]
        return Replaced(
            who=p.Slot(request.member),
            state=group_state(before),
            rebalances=rebalances,
            changed=sorted(was.topics) != sorted(now.topics) or reselected,
            owed=bool(self.bits(was.owned) & ~self.bits(old.assigned or ())),
            leader=before.leader == old.id,
            told_leader=answer is not None and answer.leader == answer.member_id,
        )

    def _expelled(self, cause: str, before: CoordinatorState, after: CoordinatorState) -> Iterator[Expelled]:
        for one in before.members:
            if one.id not in _ids(after):
                absent = not one.joining if cause == "rebalance" else one.id in self.silent
                away = one.instance is not None and absent
                yield Expelled(slot_of(one), cause, self.at_work(one.id), away)


def slot_of(one: RegisteredMember) -> p.Slot:
    """Return whose member id it is."""
    return p.Slot(ord(one.client[-1]) - ord("A"))


def group_state(coordinator: CoordinatorState) -> p.GroupState:
    """Return the state of the group in the model's terms."""
    return _STATES.get(coordinator.state or "", p.GroupState.DEAD)


def assignors(claims: Iterable[SimulationClaim]) -> tuple[str, ...]:
    """Return the list of assignors that a member sent."""
    return tuple(one.protocol for one in claims)


def _ids(coordinator: CoordinatorState) -> list[str]:
    return [one.id for one in coordinator.members]
