"""The executable model against the logic: each of its steps is one there, and a wrong one is not."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test
from rebalance_verifier.explore.engine import fast
from rebalance_verifier.explore.engine.search import Limits
from rebalance_verifier.explore.groups import upgrade_paths, upgrades
from rebalance_verifier.explore.groups.bugs import CLASSIC_SHOWN as SHOWN
from rebalance_verifier.explore.groups.sampled import CLASSIC as CLASSIC_SAMPLED
from rebalance_verifier.explore.groups.scenarios import SCENARIOS, ScenarioSize
from rebalance_verifier.explore.random.group_machine import group_machine, setups
from rebalance_verifier.model.classic import state as values
from rebalance_verifier.model.classic.group import machine
from rebalance_verifier.model.group import observations, parts
from rebalance_verifier.model.group.parts import Slot
from rebalance_verifier.model.group.setup import Setup
from rebalance_verifier.properties.group.rules import Rules
from rebalance_verifier.specs.classic.refinement import abstraction, correspondence, listeners
from rebalance_verifier.specs.classic.refinement.abstraction import Abstraction, Local, NoCounterpartError
from rebalance_verifier.specs.classic.refinement.refinement import Refinement, RefinementFailure, Report
from rebalance_verifier.specs.classic.safety import specification
from rebalance_verifier.specs.classic.vocabulary import UP
from rebalance_verifier.specs.logic.specification import Specification
from rebalance_verifier.specs.logic.transitions import NumberedMachine

from tests.specs.classic.refinement.explorations import check_exploration, failures, reachable
from tests.specs.classic.refinement.walks import check_walks, no_rules
from tests.tiers import tiered

GO_ON = Limits(go_on=True)
state: Any = values  # so that plain numbers do for partitions and generations
shared: Any = parts

CLASSIC = [name for name, one in SCENARIOS.items() if one.protocol.name == "classic"]
"""Groups of the consumer protocol are no refinement of the logic, which is of the classic one."""


def group(
    name: str,
    members: int,
    partitions: int,
    budget: int | None = None,
    faults: tuple[str, ...] | None = None,
    naming: str = "every",
) -> Setup:
    size = ScenarioSize(members=members, partitions=partitions, budget=budget, faults=faults, naming=naming)
    return SCENARIOS[name].setup(size)


class Nonsense:
    """An assignor that always throws."""

    def assign(self, *_):
        raise RuntimeError("no idea")

    def user_data(self, *_):
        return None


def nonsense(*_: Any) -> Any:
    return Nonsense()


def holds(report: Report) -> Report:
    assert report.failure is None, str(report.failure)
    return report


def failed(setup: Setup, spec: Specification | None = None) -> RefinementFailure:
    failure = check_exploration(setup, spec, limit=3000).failure
    assert failure is not None
    return failure


# -- everything reachable --------------------------------------------------------------------------------

LATE = ("late request", "crash", "max poll", "unsubscribe", "session timeout", "failover")
SMALL = {
    "dynamic": group("dynamic", 2, 2, 0),
    "one fault": group("dynamic", 2, 1, 1, ("crash", "disconnect", "pause")),
    "alone": group("dynamic", 1, 1, 1),
    "static alone": group("static", 1, 1, 2),
    "crowded": group("crowded", 2, 1, 0),
    "one moves": group("topics", 1, 2, 1),
    "downgrade": group("downgrade", 2, 1, 0),
    "static, connections": group("static-connections", 1, 1, 2),
    "static, appends": group("static-appends", 1, 1, 2),
    "unsent leave": group("unsent-leave", 1, 1, 2),
    "midway": group("midway", 1, 1, 2),
    "warm-ups": group("streams", 2, 2, 0),
    "warm-ups, EAGER": group("streams-eager", 2, 1, 0),
    "racks": group("racks", 1, 1, 2),
    "topics that change, slow commits": group(
        "growing", 1, 1, 2, ("topic shrinks", "topic grows", "slow commit")
    ),
    "other topics, slow commits": group("topics", 1, 2, 2, ("resubscribe", "slow commit")),
}
BY_DAY = {"alone", "static alone", "crowded", "one moves", "downgrade", "midway", "warm-ups, EAGER"}
"""All faults of one member, and one group for each thing that changes what a step is."""
COVERING = {
    "alone, two faults": group("dynamic", 1, 1, 2),
    "failover, two faults": group("failover", 1, 1, 2),
    "static, three faults": group("static", 1, 1, 3, LATE),
    "connections": group("connections", 1, 1, 2, ("left behind", "crash", "late leave", "failover")),
    "connections of two": group("connections", 2, 1, 1, ("left behind", "late leave")),
    "appends": group("appends", 2, 1, 1),
    "leaving": group("leaving", 2, 1, 1),
    "careless": group("careless", 2, 1, 1),
    "shrinking": group("shrinking", 2, 1, 1),
    "topics": group("topics", 2, 2, 1),
    "throws": replace(group("dynamic", 1, 1, 0), factory=nonsense),
    "upgrade at once": upgrades.setup(upgrade_paths.paths("range", "cooperative-sticky")[-1], 2, 1),
    "upgrade": upgrades.setup(upgrade_paths.paths("range", "cooperative-sticky")[0], 2, 1),
}
"""Together with the small ones they need every action of the logic that the model can ever need."""

NEVER = (  # test_by_hand.py takes each of them
    # Every consumer of the model says what it owns.
    "join_with_any_claim",
    # A process that starts there waits for nothing that the one before it sent.
    "id_given_too_late",
    # Two processes with one group.instance.id, which the model does not have.
    "heartbeat_of_fenced",
    "late_answer_fails",
    "join_of_fenced",
    "join_of_replaced",
    "sync_of_fenced",
)


@pytest.mark.slow
@pytest.mark.parametrize("name", tiered(SMALL, BY_DAY))
def test_every_step_of_a_small_group(name):
    report = holds(check_exploration(SMALL[name]))
    assert 0 < report.distinct <= report.transitions


@pytest.mark.nightly
@pytest.mark.parametrize("static", [False, True])
def test_every_two_kinds_of_faults(static):
    """Everything that one consumer reaches when each of them may happen once, or one of them twice."""
    alone = [group for group in CLASSIC_SAMPLED if group.members == 1]
    like = next(group for group in alone if ("static" in group.title) is static)
    setup = replace(like.setup(), budget=2)
    for pair in combinations(setup.faults, 2):
        report = check_exploration(replace(setup, faults=pair))
        assert report.failure is None, (pair, str(report.failure))


@pytest.mark.nightly
def test_every_action_of_the_logic_is_needed():
    taken: Counter[str] = Counter()
    for setup in (*SMALL.values(), *COVERING.values()):
        taken.update(holds(check_exploration(setup)).taken)
    assert tuple(name for name, count in taken.items() if not count) == NEVER


@pytest.mark.nightly
@pytest.mark.parametrize("name", CLASSIC)
def test_every_step_of_every_scenario(name):
    holds(check_exploration(group(name, 2, 2, 1)))


@pytest.mark.nightly
def test_three_members_two_partitions():
    report = holds(check_exploration(group("dynamic", 3, 2, 0)))
    assert (report.states, report.transitions) == (3291, 7631)


@pytest.mark.nightly
def test_three_members_two_partitions_one_fault_of_any_kind():
    report = holds(check_exploration(group("dynamic", 3, 2, 1)))
    assert (report.states, report.transitions) == (743863, 2393603)


@pytest.mark.slow
@pytest.mark.covering
@pytest.mark.parametrize("name", ["alone", "dynamic", "static alone"])
def test_the_explorer_finds_as_many_states_and_steps(name):
    """The engines of ``explore`` share nothing with this search but the model."""
    setup = replace(SMALL[name], steps="fine")
    search = fast.explore(machine(setup), Rules(), GO_ON, symmetry=True)
    report = check_exploration(setup, judged=False)
    assert (report.states, report.transitions) == (search.distinct, search.generated)


@pytest.mark.slow
def test_an_id_that_something_late_names_is_not_given_again():
    holds(check_exploration(group("dynamic", 1, 1, 2, ("late request", "max poll", "session timeout"))))


# -- random runs -----------------------------------------------------------------------------------------


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["dynamic", "static", "mixed-failover"])
def test_random_runs(name):
    holds(check_walks(group(name, 3, 3, 6, naming="given"), seed=1, count=1000))


@pytest.mark.nightly
@pytest.mark.parametrize("name", CLASSIC)
def test_more_random_runs(name):
    holds(check_walks(group(name, 3, 4, 8, naming="given"), seed=2, count=400))


@pytest.mark.nightly
@pytest.mark.parametrize("name", CLASSIC)
def test_a_million_random_steps(name):
    """Of all scenarios together."""
    for number, (members, partitions, budget) in enumerate([(2, 3, 12), (3, 4, 8), (4, 4, 24)]):
        holds(
            check_walks(group(name, members, partitions, budget, naming="given"), seed=number, count=21_000)
        )


@pytest.mark.nightly
def test_random_runs_are_the_same_again():
    reports = [check_walks(group("dynamic", 2, 2, 4, naming="given"), seed=7, count=300) for _ in range(2)]
    assert reports[0] == reports[1]


def fine(setup: Setup) -> Setup:
    return replace(setup, steps="fine")


Machine: Any = group_machine(setups(members=4, partitions=6, topics=2).map(fine), rules_of=no_rules)


class RefinedMachine(Machine):  # type: ignore[misc]
    """The Hypothesis machine, every step of which is checked."""

    refinement: Refinement | None = None

    def _judge(self):
        run = self.random_run
        if self.refinement is None:
            self.refinement = Refinement(run.context.setup)
            self.before, self.steps = run.context.machine.initial[0], 0
            assert self.refinement.begin() is None
        if len(run.events) > self.steps:
            failure = self.refinement.step(self.before, run.events[-1], run.state)
            assert failure is None, str(failure)
        self.before, self.steps = run.state, len(run.events)


@pytest.mark.nightly
def test_groups_that_hypothesis_makes_up():
    run_state_machine_as_test(
        RefinedMachine, settings=settings(max_examples=6, stateful_step_count=60, derandomize=True)
    )


# -- teeth -----------------------------------------------------------------------------------------------

SAMPLE = {
    "no_withhold": "lead",
    "claims_always_empty": "join",
    "prepare_not_repeated_after_reset": "expelled",
    "silent_static_claims_stale": "join_answered",
    "static_removal_not_persisted": "failover",
    "assign_before_revoke_cb": "partitions_assigned",
    "no_leave_on_unsubscribe": "unsubscribe",
    "ghost_on_retry": "join_of_static",
}


@pytest.mark.slow
@pytest.mark.covering
@pytest.mark.parametrize("switch", SAMPLE)
def test_a_wrong_step_is_none_of_the_logic(switch):
    failure = failed(SHOWN[switch].setup())
    assert failure.name == SAMPLE[switch]
    assert failure.name in str(failure)


@pytest.mark.slow
def test_a_wrong_state_breaks_an_invariant():
    """After the wrong step the search goes on, and what came of it shows."""
    found = list(failures(Refinement(SHOWN["no_withhold"].setup())))
    assert "no two rights" in {failure.name for failure in found if failure.invariant}
    assert all("=" in failure.why for failure in found if failure.invariant)


UNSEEN = {
    "unsorted_metadata": "the order of bytes is not in the logic, where a member may always join anew",
    "prepare_commit_never_done": "a consumer that waits for ever: it only leaves steps out",
    "new_member_never_expires": "a timeout that never comes: it only leaves steps out",
    "no_pending_sync_expiry": "a timeout that never comes: it only leaves steps out",
    "pending_blocks_join": "a join phase that never ends: it only leaves steps out",
    "leader_watches_own_topics": "a leader that does not rejoin: it only leaves steps out",
    "members_watch_own_topics": "a leader that does not rejoin: it only leaves steps out",
    "skipped_assignment_noted": "a leader that does not rejoin: it only leaves steps out",
    "metadata_after_revoke": "what a callback reads in the group metadata is not in the logic",
    "fetch_while_pending_revocation": "what is read is not in the logic, only what is owned",
    "offset_fetch_not_resumed": "what is read is not in the logic, only what is owned",
    "validate_raw_claims": "the leader refuses a lawful assignment; in the logic any assignor may throw",
    "static_leader_returns_as_follower": "whether who skips the assignment leads is not in the logic",
    "max_size_counts_members": "in the logic the coordinator may always say that the group is full",
    "full_classic_refuses_static": "in the logic the coordinator may always say that the group is full",
    "probing_subscription_repeated": "metadata has no bytes in the logic",
    "follow_up_at_once": "in the logic a member may ask for a rebalance at any time",
}
"""The switches that the logic does not see, each with the reason."""


def first_failure(on: Setup, off: Setup) -> RefinementFailure | None:
    """What a switch breaks: the first failure ``on`` of a kind that is not among those ``off``.

    ``off`` is the same group without the switch; it has failures only where it needs another one.
    """
    known = {failure.name for failure in failures(Refinement(off))}
    return next((failure for failure in failures(Refinement(on)) if failure.name not in known), None)


ALONE = {name: shown for name, shown in SHOWN.items() if not shown.also}
"""The switches that show without another one."""


@pytest.mark.nightly
def test_every_switch_breaks_something_or_there_is_a_reason():
    unseen = [name for name, shown in ALONE.items() if check_exploration(shown.setup()).failure is None]
    assert unseen == [name for name in ALONE if name in UNSEEN]


@pytest.mark.nightly
def test_what_a_switch_breaks_is_whole_without_it():
    rows = {name: first_failure(shown.setup(), shown.setup(on=False)) for name, shown in SHOWN.items()}
    assert [name for name, row in rows.items() if row is None] == [name for name in SHOWN if name in UNSEEN]
    named = {name: row.name for name, row in rows.items() if row is not None}
    assert named["max_generation_only"] == named["trust_all_claims"] == "lead"
    for shown in ALONE.values():
        holds(check_exploration(shown.setup(on=False)))


def test_the_listener_is_part_of_the_step():
    failure = failed(SHOWN["lost_as_revoked"].setup())
    assert "told revoked t-0" in failure.why
    assert "should be lost t-0" in failure.why


def test_a_callback_too_few_or_too_many():
    assigned = ((observations.Call.ASSIGNED,), 0b01, 0b01, 0)
    setup = SMALL["dynamic"]
    assert listeners.differs(setup, [assigned], [assigned]) is None
    assert "was not told assigned t-0" in str(listeners.differs(setup, [], [assigned]))
    assert "was also told assigned t-0" in str(listeners.differs(setup, [assigned], []))
    either = (listeners.ENDS, 0b01, 0b01, 0b01)
    lost = ((observations.Call.LOST,), 0b01, 0b01, 0b01)
    assert listeners.differs(setup, [lost], [either]) is None
    assert listeners.differs(setup, [assigned], [either]) is not None


@pytest.mark.slow
def test_a_stricter_logic_does_not_allow_the_model():
    def refresh(s, t, c):
        t.when(s.life(c) == UP, s.unseen(c), s.subscribes(c))
        t.unseen[c] = False

    spec = specification(refresh)
    assert failed(group("growing", 1, 1, 1), spec).name == "refresh"


def test_a_stutter_changes_nothing(monkeypatch):
    monkeypatch.setitem(correspondence.COUNTERPARTS, "pause", lambda move: ())
    failure = failed(group("dynamic", 1, 1, 1, ("pause",)))
    assert failure.name == "a stutter"
    assert "life(0) is PAUSED, should be UP" in failure.why


def test_an_action_without_a_counterpart_is_a_failure(monkeypatch):
    monkeypatch.delitem(correspondence.COUNTERPARTS, "pause")
    failure = failed(group("dynamic", 1, 1, 1, ("pause",)))
    assert failure.event == "A pause"
    assert failure.name == ""


# -- the map ---------------------------------------------------------------------------------------------


def local(**parts):
    here = {
        "member": state.Member(),
        "wire": None,
        "stray": None,
        "records": (),
        "log": (),
        "cluster": shared.ClusterState(3),
    }
    return Local(slot=Slot(0), **{**here, **parts})


def pictured(**parts):
    return Abstraction(group("failover", 2, 2), abstraction.StructureSize(2, 4)).local(local(**parts))


def test_a_claim_is_since_the_generation_that_it_says():
    meta = state.Metadata(("cooperative-sticky",), 1, owned=0b10, label=2, own_gen=1)
    assert pictured(wire=state.Join(1, meta))["sent"] == (0, 3)
    assert pictured(wire=state.Join(1, meta._replace(label=shared.NONE)))["sent"] == (0, 2)
    assert pictured(records=(state.MemberRecord(2, meta),))["claim"] == (0, 0, 0, 3)
    assert pictured(wire=state.Join(0, meta))["wire"] == ("join_new",)


def test_an_error_that_costs_nothing_names_nobody():
    unknown = pictured(wire=state.Refused("sync", shared.Error.UNKNOWN_MEMBER_ID, 2, 3))
    again = pictured(wire=state.Refused("sync", shared.Error.NOT_COORDINATOR, 2, 3))
    assert (unknown["names"], unknown["wire_generation"]) == ((False, True), (4,))
    assert (again["names"], again["wire_generation"]) == ((False, False), (0,))
    given = pictured(wire=state.Refused("join", shared.Error.MEMBER_ID_REQUIRED, 0, given=2))
    assert given["names"] == (False, True)


def test_a_process_that_is_gone_is_told_of_no_disconnect():
    lost = state.Refused("join", shared.Error.DISCONNECT, 1)
    assert pictured(member=state.Member(life=shared.Life.UP), wire=lost)["wire"] == ("join_refused",)
    assert pictured(member=state.Member(life=shared.Life.FAILED), wire=lost)["wire"] == ("idle",)


def test_a_join_that_its_sender_gave_up_on_is_left_behind():
    meta = state.Metadata(("cooperative-sticky",), 1, owned=0b10, label=2, own_gen=1)
    named, new = pictured(stray=state.Join(1, meta)), pictured(stray=state.Join(0, meta))
    assert (named["left"], named["left_claim"], named["left_new"]) == ((True, False), (0, 3, 0, 0), (False,))
    assert (new["left"], new["left_new"], new["stray"]) == ((False, False), (True,), ("no_stray",))


def test_what_has_no_picture():
    with pytest.raises(NoCounterpartError, match="waits for ever"):
        pictured(member=state.Member(life=shared.Life.UP, stuck=True))
    with pytest.raises(ValueError, match="no id number 3"):
        pictured(member=state.Member(life=shared.Life.UP, id=3))
    with pytest.raises(ValueError, match="no generation 4"):
        pictured(member=state.Member(life=shared.Life.UP, generation=4))


def test_how_large_a_universe_has_to_be():
    assert abstraction.needed(
        [state.Group(generation=2), state.MemberRecord(3, None), None, 7]
    ) == abstraction.StructureSize(3, 3)
    assert abstraction.needed([shared.Late("commit", 2, 5)]) == abstraction.StructureSize(2, 6)
    assert abstraction.needed(
        [state.Sync(1, 0, (shared.Grant(shared.Id(0, 4), 1),))]
    ) == abstraction.StructureSize(4, 1)


# -- values as numbers -----------------------------------------------------------------------------------


def test_values_of_two_kinds_have_two_numbers():
    """Also where they are equal as tuples."""
    numbered = NumberedMachine(machine(SMALL["alone"]))
    assert state.JoinParked(1) == state.LeaveGroup(1)
    assert numbered.number(state.JoinParked(1)) != numbered.number(state.LeaveGroup(1))
    assert numbered.number(state.Sync(1, 2)) == numbered.number(state.Sync(1, 2))


def test_states_before_and_after_are_renamed_alike():
    setup = fine(group("dynamic", 1, 1, 0))
    built = machine(setup)
    numbered, index = NumberedMachine(built), built.position["group"]

    def of(generation):
        return numbered.numbers(
            (*built.initial[0][:index], state.Group(generation=generation), *built.initial[0][index + 1 :])
        )

    one, other = numbered.normal(of(3), of(5))
    renamed: Any = [numbered.values[numbers[index]] for numbers in (one, other)]
    assert [value.generation for value in renamed] == [0, 2]


def test_exploring_ends_at_the_limit():
    numbered = NumberedMachine(machine(fine(group("dynamic", 2, 2, 1))))
    states = reachable(numbered, limit=500)
    assert 500 < len(states) < 600
    assert len(set(states)) == len(states)
