"""An assignor of one's own inside the model, in place of the reference one.

It runs in this process, is called once per distinct question and remembered, so it has to be a function of
what it is asked. Programs that speak JSON lines are too slow for this and are judged by ``rebalance check``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from rebalance_verifier.explore.groups.scenarios import NamedScenario, ScenarioError, ScenarioSize
from rebalance_verifier.gate.targets.hosts.host import ask, ask_user_data
from rebalance_verifier.gate.targets.hosts.hosted import TargetError, describe, load, look_here
from rebalance_verifier.gate.targets.resolve import resolve
from rebalance_verifier.model.assignor import Assignor
from rebalance_verifier.model.assignors import NAMES
from rebalance_verifier.model.bugs.switches import SWITCHES, switched
from rebalance_verifier.model.values import (
    OF_TASKS,
    Cluster,
    GroupAssignment,
    GroupSubscription,
    Partitions,
    RebalanceProtocol,
)


class UserDataError(Exception):
    """The assignor's ``user_data`` failed, so that nobody can join; the text says how."""


@dataclass(frozen=True)
class Plugged:
    """The plug of a setup: ``target`` wherever the group speaks of ``replaces``, the references elsewhere."""

    target: str
    replaces: str

    def __call__(self, name: str, switches: tuple[str, ...]) -> Assignor:
        return _hosted(self.target) if name == self.replaces else switched(name, switches)


def plugged(spec: str) -> Plugged:
    """Return the plug for ``spec``, with the place that fits what the assignor can do.

    A reference assignor takes its own place, another one that of cooperative-sticky if it is COOPERATIVE,
    else that of sticky if it writes user data, else that of range. Raises TargetError.
    """
    target = resolve(spec)
    if not target.hosted:
        raise TargetError(f"{spec!r} is a program of its own; in the model only Python assignors can run")
    name = spec.partition("+")[0]
    if name in NAMES:
        _hosted(spec)
        return Plugged(spec, name)
    assignor = _hosted(spec)
    if any(protocol in OF_TASKS for protocol in assignor.protocols):
        raise TargetError(f"{spec!r} assigns tasks, which a group of consumers has none of")
    if RebalanceProtocol.COOPERATIVE in assignor.protocols:
        return Plugged(spec, "cooperative-sticky")
    return Plugged(spec, "sticky" if assignor.writes else "range")


def led_by(spec: str, scenario: NamedScenario, size: ScenarioSize) -> tuple[NamedScenario, ScenarioSize]:
    """Return the scenario and its size with the target wherever it lists an assignor of the same protocol.

    Raises TargetError, and ScenarioError where the two do not go together.
    """
    plug = plugged(spec)
    if on := [switch for switch in size.switches if switch in SWITCHES]:
        raise ScenarioError(
            f"--switch {on[0]} is one of assignors: write --target NAME+{on[0]}, or leave one out"
        )
    try:
        return scenario.led_by(plug.replaces), replace(size, factory=plug)
    except ScenarioError as error:
        raise ScenarioError(f"--target {spec} {error}") from error


@cache
def _hosted(spec: str) -> _Hosted:
    look_here(spec)
    return _Hosted(load(spec))


class _Hosted:
    """A target with its hands held: what it returns is checked, what it is given is a copy."""

    def __init__(self, target: Any) -> None:
        self._target = target
        hello = describe(target)
        self.name, self.protocols, self.promises = hello.name, hello.protocols, hello.promises
        self.writes = hello.user_data

    def assign(self, cluster: Cluster, group: GroupSubscription) -> GroupAssignment:
        answer: Mapping[str, Partitions] = ask(self._target, cluster, group)[0]
        return answer

    def user_data(self, owned: Partitions, generation: int) -> bytes | None:
        try:
            return ask_user_data(self._target, owned, generation)
        except Exception as error:  # code of the target's
            raise UserDataError(f"{self.name}: user_data: {type(error).__name__}: {error}") from error
