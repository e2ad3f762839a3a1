"""Each guard is needed: without it Z3 refutes obligations, and a run breaks what was proved."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import jsonschema
import pytest
from rebalance_verifier.explore.engine import fast
from rebalance_verifier.explore.engine.search import Limits
from rebalance_verifier.explore.groups.bugs import SHOWN
from rebalance_verifier.model.consumer.group import consumer_machine
from rebalance_verifier.properties.group.clauses import rules
from rebalance_verifier.specs.classic.necessity.examine import data
from rebalance_verifier.specs.consumer.necessity import GUARDS, run_along
from rebalance_verifier.specs.consumer.safety import specification
from rebalance_verifier.specs.protocols import PROOFS

from tests.tiers import tiered

ROOT = Path(__file__).parents[3]

CLAUSES = {"exclusive ownership": "group/owner", "commit fencing": "group/commit"}
"""What a property is called in the model."""


BY_DAY = {"epoch_falls"}


@cache
def variation(name):
    return PROOFS["consumer"].variations[name]()


@pytest.mark.slow
@pytest.mark.parametrize("name", tiered(GUARDS, BY_DAY))
def test_without_the_guard_obligations_are_refuted_and_a_run_breaks_a_property(name):
    found = variation(name)
    assert found.refuted
    assert found.run is not None
    assert [step[0] for step in found.run.steps] == GUARDS[name].path.split()
    assert found.verdict == "needed"
    assert found.deviates


@pytest.mark.covering
@pytest.mark.parametrize("name", ["given_while_pending", "commit_any_at_epoch"])
def test_with_the_guard_no_run_along_the_path_does(name):
    guard = GUARDS[name]
    assert run_along(specification(), guard) is None


@pytest.mark.slow
@pytest.mark.covering
@pytest.mark.parametrize("name", [name for name, guard in GUARDS.items() if guard.switch])
def test_a_run_of_the_model_breaks_the_same(name):
    setup = SHOWN[name].setup()
    search = fast.explore(consumer_machine(setup), rules(setup), Limits(go_on=True))
    clauses = {breach.clause for breach in search.breaches}
    assert CLAUSES[GUARDS[name].breaks] in clauses


def test_a_finding_is_as_the_schema_of_its_file_has_it():
    schema = json.loads((ROOT / "traces/schemas/necessity.schema.json").read_text())
    written = json.loads(json.dumps([data(variation("epoch_falls"))]))
    jsonschema.validate(written, schema)
    assert written[0]["run"][0]["action"] == "start"


def test_enough_guards_and_those_of_the_catalogue():
    assert len(GUARDS) >= 8
    assert all(name in SHOWN for name, guard in GUARDS.items() if guard.switch)
