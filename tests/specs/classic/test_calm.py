"""From faults to calm: once they stop, every fair run of the model comes to where convergence begins.

The theorem of convergence starts from a calm state. That a group becomes calm is not proved; here it is
searched for, in small groups with every kind of fault: no fair run stays outside for ever, or leaves again.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from rebalance_verifier.explore.engine import fast
from rebalance_verifier.explore.engine.search import Limits
from rebalance_verifier.explore.groups.scenarios import ALWAYS_POSSIBLE, SCENARIOS, ScenarioSize
from rebalance_verifier.explore.liveness.liveness import Settling, settles
from rebalance_verifier.model.classic import state as s
from rebalance_verifier.model.classic.group import machine
from rebalance_verifier.model.group.parts import Life
from rebalance_verifier.model.group.setup import CONNECTION_FAULTS, Setup, letter
from rebalance_verifier.model.machine import State, View
from rebalance_verifier.properties.group.rules import Finally, Rules
from rebalance_verifier.specs.classic import convergence
from rebalance_verifier.specs.classic.refinement.refinement import Refinement
from rebalance_verifier.specs.classic.safety import INVARIANTS
from rebalance_verifier.specs.classic.vocabulary import VOCABULARY, M
from z3 import And, Not

from tests.specs.classic.test_convergence import with_calm

EVERY_FAULT = tuple(
    fault for fault in (*ALWAYS_POSSIBLE, "failover", *CONNECTION_FAULTS) if not fault.startswith("topic")
)
"""Topics stay: in the logic every partition exists."""

ANSWERS = (s.JoinOk, s.SyncOk, s.Refused)


def excused(member: s.Member) -> bool:
    """Of a thread that hangs for ever, or a consumer that never subscribes again, nothing is said: that none
    is left is assumed."""
    return member.life is Life.HUNG or (member.life is Life.UP and not member.topics)


def becomes_calm(setup: Setup) -> Settling:
    """Whether every fair run of the setup becomes calm, and stays so, once faults stop."""
    spec = with_calm()
    calm = {name: formula for name, formula in spec.invariants.items() if name not in INVARIANTS}
    refinement = Refinement(setup, replace(spec, properties=calm))
    built = machine(setup)

    def is_calm(state: State) -> bool:
        for slot in setup.slots:
            member = built.value(state, f"member {letter(slot)}")
            if excused(member):
                return True
            if member.life is Life.DOWN and isinstance(built.value(state, f"wire {letter(slot)}"), ANSWERS):
                state = built.put(state, f"wire {letter(slot)}", None)  # nobody hears it
        return refinement.breach(refinement.numbered.numbers(state)) is None

    whole = View("whole", built.components, lambda *values: values)
    rule = Finally("calm", ("whole",), is_calm)
    seen = replace(built, views=(*built.views, whole))
    found = fast.explore(seen, Rules(finally_=(rule,)), Limits(go_on=True))
    assert found.complete
    return settles(seen, rule, found)


def becomes_calm_in(name: str, members: int, partitions: int, faults: int) -> Settling:
    size = ScenarioSize(
        members=members, partitions=partitions, budget=faults, faults=EVERY_FAULT, naming="given"
    )
    return becomes_calm(SCENARIOS[name].setup(size))


@pytest.mark.slow
@pytest.mark.covering
@pytest.mark.parametrize(
    ("name", "members", "partitions", "faults"),
    [
        ("dynamic", 1, 1, 2),
        ("dynamic", 2, 1, 1),
        ("static", 1, 1, 2),
        ("static", 2, 1, 1),
        ("mixed", 2, 1, 1),
        ("eager", 2, 2, 1),
        pytest.param("dynamic", 1, 1, 3, marks=pytest.mark.nightly),
        pytest.param("dynamic", 2, 1, 2, marks=pytest.mark.nightly),
        pytest.param("static", 2, 1, 2, marks=pytest.mark.nightly),
    ],
)
def test_every_fair_run_becomes_calm(name: str, members: int, partitions: int, faults: int):
    verdict = becomes_calm_in(name, members, partitions, faults)
    assert verdict.holds, verdict.lasso
    assert verdict.checked > 10  # states in which a run may stay


@pytest.mark.nightly
def test_a_group_that_never_becomes_calm_is_noticed(monkeypatch):
    """Without the word for members that came back too late, as it was once, a static one stays in its way."""
    name, silent = "nobody is given up", VOCABULARY.state().silent(M)
    monkeypatch.setitem(convergence.CALM, name, And(convergence.CALM[name], Not(silent)))
    verdict = becomes_calm_in("static", 2, 1, 1)
    assert not verdict.holds
    assert verdict.lasso is not None
    assert [event.action for event in verdict.lasso.stem if event.action == "slow member"]
