"""Every assumption of the theorems has a run in which a promise breaks without it; here they are played."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from rebalance_verifier.cli.main import build_parser
from rebalance_verifier.explore.engine import fast
from rebalance_verifier.explore.engine.search import Limits
from rebalance_verifier.explore.groups.bugs import LASSO, SHOWN
from rebalance_verifier.explore.groups.scenarios import SCENARIOS, ScenarioSize
from rebalance_verifier.explore.liveness import liveness
from rebalance_verifier.model.assignors import reference
from rebalance_verifier.model.group.parts import Parts, each, union
from rebalance_verifier.model.group.setup import Setup
from rebalance_verifier.model.protocols import machine
from rebalance_verifier.properties.group.clauses import rules
from rebalance_verifier.report.terminal.assumptions import PLAYED, command
from rebalance_verifier.specs.classic.necessity.necessity import NECESSITY
from rebalance_verifier.specs.consumer.necessity import GUARDS as CONSUMER
from rebalance_verifier.specs.logic.assumptions import Premise
from rebalance_verifier.specs.migration.necessity import GUARDS as MIGRATION
from rebalance_verifier.specs.protocols import PROOFS

PREMISES = {f"{one.protocol}-{one.name}": one for proof in PROOFS.values() for one in proof.assumptions}
BY_SWITCH = {one.switch: one for one in PREMISES.values() if one.switch}


def broken(setup: Setup) -> set[str]:
    """The clauses that break in a group, of its end too."""
    built, clauses = machine(setup), rules(setup)
    search = fast.explore(built, clauses, Limits(go_on=True))
    assert search.complete
    found = {one.clause for one in search.breaches}
    if not liveness.judge(built, clauses, search).holds:
        found.add(LASSO)
    return found


# -- assignors that no option names ------------------------------------------------------------------------


class Spoilt:
    """Kafka's assignor of this name, whose answer is changed."""

    def __init__(self, name: str, change: Callable[[Any, Any, dict[str, list[Any]]], None]) -> None:
        self.inner, self.change = reference(name), change

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def assign(self, cluster: Any, group: Any) -> Any:
        parts = {member: list(some) for member, some in self.inner.assign(cluster, group).items()}
        self.change(cluster, group, parts)
        return {member: tuple(some) for member, some in parts.items()}


def _leaves_one(_: Any, group: Any, parts: dict[str, list[Any]]) -> None:
    """What nobody claims is offered to nobody."""
    claimed = {p for member in group for p in group[member].owned_partitions}
    for some in parts.values():
        some[:] = [p for p in some if p in claimed or p.partition]


def _gives_to_others(_: Any, group: Any, parts: dict[str, list[Any]]) -> None:
    """The member with the last name is offered everything that nobody else claims."""
    last = max(group)
    for member in group:
        if member != last:
            parts[last] += [p for p in parts[member] if p not in group[member].owned_partitions]
            parts[member] = [p for p in parts[member] if p in group[member].owned_partitions]


def _takes_one(_: Any, group: Any, parts: dict[str, list[Any]]) -> None:
    """At every rebalance a partition is taken from its owner."""
    hot = min((p for member in group for p in group[member].owned_partitions), default=None)
    for some in parts.values():
        some[:] = [p for p in some if p != hot]


def _everything(members: Sequence[Any]) -> Iterable[tuple[Parts, ...]]:
    return [tuple(member.subscribed for member in members)]


def _all_but_one(members: Sequence[Any]) -> Iterator[tuple[Parts, ...]]:
    there = each(union([member.subscribed for member in members]))
    rest = union([Parts(1 << number) for number in there[1:]])
    yield tuple(rest if at == 0 else Parts(0) for at in range(len(members)))


def _spoilt(change: Callable[..., None]) -> Any:
    return lambda name, switches: Spoilt(name, change)


ASSIGNORS: dict[str, tuple[str, int, dict[str, Any]]] = {
    "classic-subscribers": ("apart", 2, {"factory": _spoilt(_gives_to_others)}),
    "classic-complete": ("dynamic", 2, {"factory": _spoilt(_leaves_one)}),
    "classic-stays": ("dynamic", 3, {"factory": _spoilt(_takes_one)}),
    "consumer-exclusive": ("consumer", 2, {"targets": _everything}),
    "consumer-complete": ("consumer", 2, {"targets": _all_but_one}),
}
"""Premise -> the scenario, its partitions, and what is otherwise in it."""


@pytest.mark.slow
@pytest.mark.parametrize("name", ASSIGNORS)
def test_a_group_does_not_settle_with_an_assignor_that_breaks_it(name: str) -> None:
    scenario, partitions, otherwise = ASSIGNORS[name]
    setup = SCENARIOS[scenario].setup(ScenarioSize(members=2, partitions=partitions, faults=(), budget=0))
    assert broken(setup) == set()
    assert LASSO in broken(replace(setup, **otherwise))


# -- the others --------------------------------------------------------------------------------------------


NO_RUN = {"member_only"}
"""Clauses that no theorem needs: all is proved without them, as their variation says."""


def test_each_clause_of_a_contract_is_among_them() -> None:
    for protocol, proof in PROOFS.items():
        named = {one.name for one in proof.assumptions}
        assert {*proof.every, *proof.converging} - named == (NO_RUN if protocol == "classic" else set())
        assert set(proof.assumed(proof.kept())) - NO_RUN <= named
    assert all(NECESSITY[name].refutation is None for name in NO_RUN)


def test_each_has_a_run() -> None:
    played = {name for name, one in PREMISES.items() if command(one).startswith(PLAYED)}
    assert played == set(ASSIGNORS)
    assert not [name for name, one in PREMISES.items() if one.variation and one.switch]
    assert all(one.sentence for one in PREMISES.values())


@pytest.mark.parametrize("name", [name for name, one in PREMISES.items() if one.variation])
def test_the_run_of_a_variation_ends_where_a_property_breaks(name: str) -> None:
    """That it does is tested where the variations are (test_necessity.py and its siblings)."""
    one: Premise = PREMISES[name]
    assert one.variation in PROOFS[one.protocol].variations
    if one.protocol == "classic":
        refutation = NECESSITY[one.variation].refutation
        assert refutation is not None
        assert refutation.path
    else:
        assert (CONSUMER if one.protocol == "consumer" else MIGRATION)[one.variation].path


@pytest.mark.slow
@pytest.mark.parametrize("switch", BY_SWITCH)
def test_the_model_breaks_a_clause_with_the_switch_and_not_without(switch: str) -> None:
    shown = SHOWN[switch]
    assert shown.clause in broken(shown.setup())
    assert broken(shown.setup(on=False)) == set()


@pytest.mark.parametrize("name", PREMISES)
def test_its_command_can_be_typed(name: str) -> None:
    words = shlex.split(command(PREMISES[name]))
    if words[0] == "rebalance":
        build_parser().parse_args(words[1:])
    else:
        assert shlex.join(words[:-1]) == PLAYED
        assert words[-1] == name
