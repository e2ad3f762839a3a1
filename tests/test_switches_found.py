"""The gate against history: every assignor-level bug of the catalogue, found by the clause that names it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rebalance_verifier.base.verdict import Level
from rebalance_verifier.gate.search.plan import PROFILES, CheckPlan
from rebalance_verifier.gate.search.result import Status
from rebalance_verifier.gate.search.search import check, describe
from rebalance_verifier.gate.targets.resolve import resolve
from rebalance_verifier.gate.targets.session import Session
from rebalance_verifier.model.bugs.switches import SWITCHES
from rebalance_verifier.properties.assignors.clauses import CLAUSES

from tests.tiers import tiered

NAMED_BY = {
    "last_claim_wins": "kip792/claim/1",
    "trust_all_claims": "assign/1",
    "max_generation_only": "kip429/leader/4",
    "validate_raw_claims": "assign/4",
    "no_generation": "kip54/sticky/1",
    "cache_across_calls": "assign/6",
    "duplicate_claims_counted": "assign/1",
    "duplicate_claims_cancel": "kip54/sticky/1",
    "claims_always_empty": "kip54/sticky/1",
    "user_data_once": "assign/4",
    "no_withhold": "kip429/leader/4",
    "steal_once": "kip429/converge/1",
    "minquota_still_unfilled": "kip54/balance/1",
    "third_round_general": "kip429/converge/3",
    "quadratic_general": "assign/4",
    "is_balanced_off_by_one": "assign/4",
    "steal_chain_other_partition": "kip54/sticky/1",
    "single_known_topic_shortcut": "assign/2",
    "npe_on_missing_topic": "assign/4",
    "rack_breaks_copartition": "range/copartition/1",
    "roundrobin_modulo_eligible": "assign/4",
    "topics_beyond_members_ignored": "kip429/leader/5",
    "members_unsorted": "assign/7",
    "assign_leader_topics_only": "assign/2",
}
SLOW = {"quadratic_general", "is_balanced_off_by_one"}
"""They have to run into the time limit of a call, and only the last scenario of the profile makes them."""

DEEP = {"third_round_general", "steal_once"}
"""Found by one of some thousand scenarios, or made small for most of a minute."""

CROWD = replace(PROFILES["ci"], each=0, mixed=0, large=0)
"""That scenario; those before it are played for the other switches."""


def test_every_switch_is_here():
    assert NAMED_BY.keys() == SWITCHES.keys()


@pytest.mark.slow
@pytest.mark.parametrize("name", tiered(NAMED_BY, set(NAMED_BY) - SLOW - DEEP))
def test_found_in_profile_ci(name):
    clause = CLAUSES[NAMED_BY[name]]
    spec = f"{SWITCHES[name].assignor}+{name}"
    profile, seconds = (CROWD, 3.0) if name in SLOW else (PROFILES["ci"], 10.0)
    plan = CheckPlan(clauses=(clause,), profile=profile, level=Level.QUALITY, fail_fast=True)
    with Session(resolve(spec), call_seconds=seconds) as session:
        result = check(plan, session, describe(spec, session.hello), fresh=session.close)
    # What an assignor remembers of another scenario is gone in the fresh process that confirms.
    found = Status.UNCONFIRMED if name == "cache_across_calls" else Status.VIOLATED
    broken = [row for row in result.clauses if row.status is found]
    assert broken, f"{clause.id} does not find {name} in {result.scenarios} scenarios"
    confirmed = [row.finding is not None and row.finding.confirmed for row in broken]
    assert all(one is (found is Status.VIOLATED) for one in confirmed)


@pytest.mark.slow
@pytest.mark.covering
@pytest.mark.parametrize("spec", sorted({switch.assignor for switch in SWITCHES.values()}))
def test_the_assignor_without_the_switch_is_clean(spec):
    plan = CheckPlan(profile=PROFILES["smoke"], level=Level.QUALITY)
    with Session(resolve(spec)) as session:
        result = check(plan, session, describe(spec, session.hello), fresh=session.close)
    assert not [row.id for row in result.clauses if row.status is Status.VIOLATED]
