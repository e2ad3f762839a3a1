"""The consumer protocol in logic: what is proved of it, and that it is about something."""

from __future__ import annotations

import pytest
from rebalance_verifier.specs.classic.necessity.vacuity import VacuityFinding, examined
from rebalance_verifier.specs.consumer.proof import WITNESSES, checks, proof
from rebalance_verifier.specs.consumer.safety import specification
from rebalance_verifier.specs.logic.limit import LIMIT, Budget
from rebalance_verifier.specs.logic.prover import ProofVerdict, prove, shows


def test_all_obligations_are_proved():
    theorems = proof()
    outcomes = [outcome for some in prove(theorems) for outcome in some]
    assert {outcome.verdict for outcome in outcomes} == {ProofVerdict.PROVED}
    assert len(outcomes) == sum(theorem.obligations for theorem in theorems) > 800


@pytest.mark.nightly
def test_nothing_is_vacuous():
    spec = specification()
    rows = [row for _, some in examined(checks(spec)) for row in some]
    assert not [row for row in rows if row.doubtful]
    assert [row.name for row in rows if row.finding is VacuityFinding.IMPLIED] == ["commit fencing"]
    reached = {row.name for row in rows if row.kind == "action"}
    assert reached == {action.name for action in spec.actions} == set(WITNESSES)


@pytest.mark.parametrize(
    ("name", "upon"),
    [
        ("exclusive ownership", ["held once", "what it has is held", "an epoch inside"]),
        ("commit fencing", ["held once", "what it has is held", "an epoch inside"]),
        ("order of epochs", ["previous before own", "own before target", "target before group"]),
    ],
)
def test_what_a_property_follows_from(name, upon):
    spec = specification()
    given = {invariant: spec.invariants[invariant] for invariant in upon}
    assert shows(given, spec.properties[name], Budget(LIMIT)) is ProofVerdict.PROVED
    for one in upon:
        fewer = {invariant: formula for invariant, formula in given.items() if invariant != one}
        assert shows(fewer, spec.properties[name], Budget(LIMIT)) is not ProofVerdict.PROVED


def test_an_action_in_the_place_of_none_is_refused():
    def teleport(s, t, m):
        t.when(s.runs(m))

    with pytest.raises(ValueError, match="no action 'teleport'"):
        specification(teleport)
