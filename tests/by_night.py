"""Which tests run at night: of the day's tier those that take longest and repeat, larger, what others hold.

A test of its own has the mark `nightly` in its file. Of a test with many cases ``covering`` keeps by day as
few as show each value of the arguments that it names: ``@pytest.mark.covering("client", "layout")``. A pair
of names stands for the pairs of their values. ``by`` computes a value of all arguments, or a frozenset of
them. With neither it keeps one case. ``also`` names cases, by the beginning of their ids, that stay by day
whatever they cover: say one that was red once for a wrong verdict.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

import pytest

BY_NIGHT: Mapping[str, tuple[str, ...]] = {
    "tests/cli/test_bugs_cli.py": ("test_one_of_an_assignor_is_found_by_the_check",),
    "tests/cli/test_cli.py": ("test_the_hash_seed_changes_nothing",),
    "tests/cli/test_explore_spark.py": ("test_a_violation_is_that_of_the_local_engine",),
    "tests/cli/test_init_cli.py": ("test_the_job_of_a_python_project_runs_as_it_is_written[gitlab]",),
    "tests/cli/test_upgrade_cli.py": ("test_two_hops_are_one_plan", "test_a_group_of_any_size_has_an_answer"),
    "tests/explore/groups/test_consumer_scenarios.py": ("test_connections_that_break_do_no_harm",),
    "tests/explore/groups/test_matrix.py": ("test_what_hides_a_bug_is_said",),
    "tests/explore/groups/test_migration_scenarios.py": ("test_a_run_is_put_in_words",),
    "tests/explore/groups/test_named_scenarios.py": (
        "test_orbits_add_up",
        "test_as_specified_nothing_breaks[unsent-leave]",
        "test_the_bound_on_rebalances_is_met[dynamic-2-2-1-6]",
    ),
    "tests/explore/groups/test_upgrades.py": (
        "test_there_is_no_plan_where_one_hop_has_none",
        "test_what_a_release_claims_wrongly_anyway_is_not_held_against_a_path",
        "test_two_owners_are_held_against_a_path_although_a_restart_has_them_too",
        "test_a_group_of_any_size_is_answered_by_one_that_can_be_searched",
    ),
    "tests/explore/groups/test_worst_first.py": ("test_walks_go_on_after_a_mild_breach",),
    "tests/explore/random/test_stateful.py": ("test_as_specified_nothing_breaks_in_any_scenario[dynamic]",),
    "tests/gate/search/test_jobs.py": (
        "test_the_result_does_not_depend_on_how_many_histories_are_played_at_once[dies]",
    ),
    "tests/gate/targets/test_java_tasks.py": (
        "test_sticky_of_a_broker[4.1.0-task/6]",
        "test_one_that_is_right_passes[field]",
    ),
    "tests/gate/compare/test_compare.py": ("test_the_cells_are_what_playing_shows",),
    "tests/live/conformance/test_conformance.py": (
        "test_a_run_of_the_model_is_explained[eager-kafka-python-capabilities3-True-0]",
    ),
    "tests/model/classic/test_protocol_group.py": (
        "test_a_rolling_upgrade_of_static_members_breaks_nothing",
        "test_a_group_whose_members_all_hang_settles",
    ),
    "tests/pipeline/audit/test_both_drives.py": ("test_spark_hands_to_tasks_what_they_cannot_open",),
    "tests/report/test_cases.py": ("test_an_upgrade_says_the_same_in_every_format[argv2-statuses2]",),
    "tests/specs/classic/necessity/test_necessity.py": (
        "test_a_finding_is_told",
        "test_the_obligations_that_fail_are_those_of_the_table[static_forgets_id]",
        "test_the_obligations_that_fail_are_those_of_the_table[no_sent_generation_check]",
        "test_the_obligations_that_fail_are_those_of_the_table[clear_member_id_on_illegal_generation]",
    ),
    "tests/specs/classic/refinement/test_seeds.py": (
        "test_some_seeds[classic]",
        "test_some_seeds[migration]",
    ),
    "tests/specs/classic/refinement/test_sampling.py": (
        "test_a_wrong_claim_is_none_of_the_logic[claims_of_the_last_generation]",
    ),
    "tests/specs/classic/test_boundary.py": (
        "test_an_older_claim_displaces_an_owner_where_the_gate_does_not_ask_for_the_newest",
        "test_a_second_round_that_revokes_is_what_the_clauses_of_convergence_forbid",
    ),
    "tests/specs/classic/test_instances.py": (
        "test_an_instance_that_is_known_and_becomes_another_member_is_noticed",
    ),
    "tests/specs/logic/test_spec_concrete.py": tuple(
        f"test_random_formulas_mean_what_z3_says[{number}]" for number in range(2, 8)
    ),
    "tests/test_installation.py": (
        "test_both_work_beside_another_project_called_rebalance[installed after it]",
    ),
    "tests/tools/tla/test_spec_tla.py": (
        "test_tlc_and_our_own_search_find_what_is_pinned[consumer_two_partitions]",
        "test_tlc_and_our_own_search_find_what_is_pinned[broken_consumer_given]",
    ),
    "tests/test_mutants.py": ("test_profile_ci_names_what_hangs[assign/4-NeverComesBack]",),
    "tests/tools/test_alone.py": ("test_a_judge_imports_the_copy_and_judges_what_is_wrong_in_it",),
    "tests/cli/test_pytest_plugin.py": (
        "test_with_xdist",
        "test_clauses_can_be_chosen[choice0-chosen0]",
    ),
    "tests/gate/targets/test_languages.py": ("test_platformatic_forgets_the_claims_of_an_older_generation",),
    "tests/specs/consumer/test_consumer_necessity.py": (
        "test_without_the_guard_obligations_are_refuted_and_a_run_breaks_a_property[epoch_falls]",
    ),
    "tests/live/code/search/test_search.py": (
        "test_a_topic_that_is_made_again_smaller_has_two_owners[2.8.2-inconclusive]",
    ),
    "tests/live/code/test_simulation_consumer_groups.py": (
        "test_a_heartbeat_that_was_overtaken_releases_what_its_sender_consumes[4.0.2]",
    ),
    "tests/test_wheel.py": ("test_the_wheel_runs_from_an_index_of_its_own",),
}
"""File -> tests, each with all its cases or with one."""


@pytest.hookimpl(tryfirst=True)  # before those of the night are left out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark them."""
    ids = {f"{path}::{name}" for path, names in BY_NIGHT.items() for name in names}
    cases: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        test = item.nodeid.partition("[")[0]
        if item.nodeid in ids or test in ids:
            item.add_marker(pytest.mark.nightly)
        elif item.get_closest_marker("covering") and not item.get_closest_marker("nightly"):
            cases[test].append(item)
    for several in cases.values():
        leave_to_the_night(several)


def leave_to_the_night(cases: Sequence[pytest.Item]) -> None:
    """Mark the cases of one test that ``covering`` does not keep by day."""
    mark = cases[0].get_closest_marker("covering")
    assert mark
    parameters = [item.callspec.params for item in cases]  # type: ignore[attr-defined]
    by_day = cover([shown(one, mark.args, mark.kwargs.get("by")) for one in parameters])
    also = tuple(mark.kwargs.get("also", ()))
    for number, item in enumerate(cases):
        name = item.callspec.id  # type: ignore[attr-defined]
        if number not in by_day and not name.startswith(also):
            item.add_marker(pytest.mark.nightly)


def shown(
    parameters: Mapping[str, Any],
    names: Iterable[str | tuple[str, ...]],
    by: Callable[..., Hashable] | None = None,
) -> set[Hashable]:
    """Return what a case shows: the value of each name, of each pair of names, and what ``by`` computes.

    >>> sorted(shown({"client": "java", "layout": "plain"}, ["client", ("client", "layout")]))
    [(('client',), ('java',)), (('client', 'layout'), ('java', 'plain'))]
    """
    several = [(name,) if isinstance(name, str) else name for name in names]
    values: set[Hashable] = {(group, tuple(_known(parameters[name]) for name in group)) for group in several}
    if by:
        value = by(**parameters)
        values |= value if isinstance(value, frozenset) else {value}
    return values


def _known(value: Any) -> Hashable:
    try:
        hash(value)
    except TypeError:
        return repr(value)
    return value  # type: ignore[no-any-return]


def cover(shown: Sequence[set[Hashable]]) -> set[int]:
    """Return the positions of few sets that have together what all have: the one that adds most comes next.

    >>> sorted(cover([{"a", 1}, {"a", 2}, {"b", 1}, {"b", 2}]))
    [0, 3]
    >>> cover([set(), set()])
    {0}
    """
    missing = set().union(*shown)
    taken: set[int] = set()
    while missing:
        best = max(range(len(shown)), key=lambda number: len(shown[number] & missing))
        taken.add(best)
        missing -= shown[best]
    return taken or {0}
