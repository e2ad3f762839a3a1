"""The logs that audits are measured with: what is planted is there, and nothing depends on who runs it."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import datetime, timedelta
from typing import Any

import pytest

pytest.importorskip("pyspark")

from rebalance_verifier.pipeline.audit.kernel.findings import CHECKS
from rebalance_verifier.pipeline.audit.sources.events import AT_COORDINATOR, Kind

from tools.planted.logs import BEGIN, NEAR, SECOND, PlantedGroup, Recipe, balanced, places

RECIPE = Recipe(seed=7, rebalances=20)
GROUPS = 12
EACH = dict.fromkeys(CHECKS, 3)


@pytest.fixture(scope="module")
def groups():
    plan = places(GROUPS, RECIPE.seed, EACH)
    return [PlantedGroup.lived(number, RECIPE, plan.get(number, ())) for number in range(GROUPS)]


def rows(group):
    return group.table().to_pylist()


def test_the_load_is_even_and_nobody_moves_who_need_not():
    before = [1, 1, 1, 1, 2, -1, 3]
    after = balanced(before, [1, 2, 4])
    assert sorted(Counter(after).values()) == [2, 2, 3]
    assert sum(was == now for was, now in zip(before, after, strict=True)) == 4


def test_each_violation_and_near_miss_has_a_place():
    plan = places(GROUPS, 1, EACH)
    wanted = Counter({**EACH, **{NEAR + check: count for check, count in EACH.items()}})
    assert Counter(what for some in plan.values() for what in some) == wanted
    assert "never-settles" not in plan.get(0, ())


def test_each_violation_is_in_the_truth(groups):
    marks = Counter(mark[0] for group in groups for mark in group.marks)
    assert set(marks) == set(CHECKS)
    # A consumer loses all that it owns at once; of the others a violation is one row.
    assert marks.pop("owned-by-zombie") >= 3
    assert set(marks.values()) == {3}


def test_the_same_seed_is_the_same_log_and_another_is_not():
    plan = ("stranded", "owned-twice")
    one = PlantedGroup.lived(3, RECIPE, plan).table()
    assert one.equals(PlantedGroup.lived(3, RECIPE, plan).table())
    assert not one.equals(PlantedGroup.lived(3, Recipe(seed=8, rebalances=20), plan).table())
    assert not one.equals(PlantedGroup.lived(4, RECIPE, plan).table())


def test_groups_differ_in_kind_and_size(groups):
    assert {group.cooperative for group in groups} == {True, False}
    assert {group.begins_late for group in groups} == {True, False}
    assert len({len(group.topics) for group in groups}) > 2
    assert all(group.generation >= RECIPE.rebalances for group in groups)


ONLY_LOGGED = {Kind.CHANGED, Kind.UNWANTED, Kind.REBALANCING, Kind.GRANTED}
"""What clients write about the same events in further words."""


def test_every_kind_of_event_occurs(groups):
    kinds = {row["kind"] for group in groups for row in rows(group)}
    plain = PlantedGroup.lived(1, Recipe(seed=0, rebalances=5), ())
    plain.stop()
    kinds |= {row["kind"] for row in rows(plain)}
    assert kinds == set(map(str, Kind)) - ONLY_LOGGED


def test_a_file_is_in_order_and_a_line_is_one_event(groups):
    for group in groups:
        last: dict[Any, Any] = {}
        lines = defaultdict(set)
        for row in rows(group):
            where = row["file"]
            assert last.get(where, (row["at"], 0)) <= (row["at"], row["line"])
            last[where] = row["at"], row["line"]
            lines[where, row["line"]].add((row["at"], row["kind"], row["consumer"]))
        assert all(len(events) == 1 for events in lines.values())


def test_events_say_what_their_kind_says(groups):
    for group in groups:
        for row in rows(group):
            assert (row["consumer"] is None) == (row["kind"] in AT_COORDINATOR)
            owned = row["kind"] in (Kind.ASSIGNED, Kind.REVOKED, Kind.LOST)
            if row["kind"] != Kind.PLANNED:
                assert (row["partition"] is not None) == owned
                assert (row["topic"] is not None) == (owned or row["kind"] == Kind.SUBSCRIBED)
            if row["kind"] in (Kind.JOINED, Kind.SYNCED, Kind.ASSIGNED, Kind.REVOKED):
                assert row["generation"] is not None


def test_a_leader_names_all_members(groups):
    for group in groups:
        planned: dict[int, set[str]] = defaultdict(set)
        joined: dict[int, set[str]] = defaultdict(set)
        for row in rows(group):
            if row["kind"] in (Kind.PLANNED, Kind.JOINED):
                named = planned if row["kind"] == Kind.PLANNED else joined
                named[row["generation"]].add(row["member"])
        assert planned
        assert all(planned[generation] == joined[generation] for generation in planned)


def test_a_log_may_begin_in_the_middle(groups):
    """Somebody gives away what the log does not say that he got."""
    for group in groups:
        held: set[Any] = set()
        found = False
        for row in rows(group):
            key = row["consumer"], row["topic"], row["partition"]
            if row["kind"] == Kind.ASSIGNED:
                held.add(key)
            elif row["kind"] in (Kind.REVOKED, Kind.LOST):
                found |= key not in held
                held.discard(key)
        assert found == group.begins_late


def overlaps(group):
    """Times in which two owned a partition, by the true clock: slot, from when, until when."""
    group.recipe = Recipe(seed=group.recipe.seed, rebalances=group.recipe.rebalances, skew=0.0)
    held: dict[Any, Any] = defaultdict(dict)
    found: list[Any] = []
    # Within an instant, what ends goes first.
    changes = [row for row in rows(group) if row["kind"] in (Kind.ASSIGNED, Kind.REVOKED, Kind.LOST)]
    seen: set[Any] = set()
    for row in changes:
        # Who gives away what he never got, had it before the log began.
        slot, who = (row["topic"], row["partition"]), row["consumer"]
        if (slot, who) not in seen and row["kind"] != Kind.ASSIGNED:
            held[slot][who] = datetime.min.replace(tzinfo=row["at"].tzinfo)
        seen.add((slot, who))
    for row in sorted(changes, key=lambda row: (row["at"], row["kind"] == Kind.ASSIGNED)):
        slot = row["topic"], row["partition"]
        if row["kind"] == Kind.ASSIGNED:
            held[slot][row["consumer"]] = row["at"]
        elif (began := held[slot].pop(row["consumer"], None)) is not None:
            found += [(*slot, max(began, other), row["at"]) for other in held[slot].values()]
    return found


def test_two_own_a_partition_only_where_that_is_planted():
    """By one clock. By clocks that differ, hand-overs look like overlaps too."""
    plan = places(GROUPS, 5, EACH)
    for number in range(GROUPS):
        group = PlantedGroup.lived(number, Recipe(seed=5, rebalances=20), plan.get(number, ()))
        group.recipe = Recipe(seed=5, rebalances=20, skew=0.0)
        recorded = {
            (row["topic"], row["partition"], row["began"], row["ended"])
            for row in group.truth().to_pylist()
            if row["check"] in ("owned-twice", "owned-by-zombie")
        }
        seen = overlaps(group)
        assert {(topic, partition, began) for topic, partition, began, _ in recorded} == {
            (topic, partition, began) for topic, partition, began, _ in seen
        }


def test_a_hand_over_within_one_microsecond_is_a_near_miss():
    group = PlantedGroup.lived(2, Recipe(seed=1, rebalances=10), ("near owned-twice",))
    gave, got = defaultdict(set), defaultdict(set)
    for row in rows(group):
        slot = row["topic"], row["partition"], row["at"]
        if row["kind"] == Kind.REVOKED:
            gave[slot].add(row["consumer"])
        elif row["kind"] == Kind.ASSIGNED:
            got[slot].add(row["consumer"])
    assert any(got[slot] - gave[slot] for slot in gave)
    assert not overlaps(group)


def generations(group):
    return sorted({(row["generation"], row["at"]) for row in rows(group) if row["kind"] == Kind.STABLE})


def densest(group, within=600):
    """The most generations that began within so many seconds."""
    at = [when for _, when in generations(group)]
    return max(sum(start <= one <= start + timedelta(seconds=within) for one in at) for start in at)


def test_a_storm_is_one_and_nearly_one_is_not():
    assert densest(PlantedGroup.lived(2, RECIPE, ("rebalance-storm",))) >= 10
    assert densest(PlantedGroup.lived(2, RECIPE, ("near rebalance-storm",))) < 10
    assert all(densest(PlantedGroup.lived(number, RECIPE, ())) < 10 for number in range(8))


def unowned(group):
    """The longest time that a partition was without an owner between two; seconds."""
    free: dict[Any, Any] = {}
    longest = 0.0
    for row in rows(group):
        slot = row["topic"], row["partition"]
        if row["kind"] in (Kind.REVOKED, Kind.LOST):
            free[slot] = row["at"]
        elif row["kind"] == Kind.ASSIGNED and slot in free:
            longest = max(longest, (row["at"] - free.pop(slot)).total_seconds())
    return longest


@pytest.mark.parametrize(("check", "least"), [("stranded", 60), ("long-pause", 300)])
def test_a_partition_is_without_an_owner_as_long_as_is_planted(check, least):
    for number in range(6):
        assert unowned(PlantedGroup.lived(number, RECIPE, (check,))) > least
        assert 0.4 * least < unowned(PlantedGroup.lived(number, RECIPE, (NEAR + check,))) < least


def test_what_never_settles_has_the_time_to_show(groups):
    """The log goes on for long after the last rebalance of each such group began."""
    end = max(row["at"] for row in rows(groups[0]))
    began = [
        row["began"]
        for group in groups
        for row in group.truth().to_pylist()
        if row["check"] == "never-settles"
    ]
    assert len(began) == 3
    assert all(end - one > timedelta(hours=1) for one in began)


def test_clocks_of_hosts_differ_and_some_are_exact():
    offsets = [RECIPE.offset(host) for host in range(RECIPE.hosts)]
    assert offsets[::4] == [0] * 16
    assert len(set(offsets)) > 40
    assert 0.02 * SECOND < max(map(abs, offsets)) <= SECOND
    assert BEGIN % SECOND == 0


# With Spark.


def content(frame):
    return sorted(map(tuple, frame.collect()), key=str)


@pytest.mark.nightly  # of the logs for benchmarks, which are made by night and on request
def test_the_tables_do_not_depend_on_how_the_work_is_divided(spark):
    from tools.planted.logs import planted

    one = planted(spark, 5, 8, 3, {"stranded": 2, "owned-twice": 1}, partitions=1)
    more = planted(spark, 5, 8, 3, {"stranded": 2, "owned-twice": 1}, partitions=4)
    assert content(one[0]) == content(more[0])
    assert content(one[1]) == content(more[1])
    assert Counter(row["check"] for row in one[1].collect()) == {"stranded": 2, "owned-twice": 1}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("groups", "violations", "why"),
    [(5, {"strandd": 1}, "strandd"), (0, {}, "at least one"), (3, {"never-settles": 3}, "too few")],
)
def test_what_cannot_be_planted_is_refused(spark, groups, violations, why):
    from tools.planted.logs import planted

    with pytest.raises(ValueError, match=why):
        planted(spark, groups, 8, 3, violations)


SILENT: dict[str, set[str]] = {
    "events": set(),
    "java-2.4": {"synced", "closed"},
    "java-4.0": {"closed"},
}
"""What each form does not say, or says otherwise."""


@pytest.mark.nightly
def test_the_text_says_what_the_events_say(spark, tmp_path):
    from rebalance_verifier.pipeline.audit.sources.local import read

    from tools.planted.logs import planted
    from tools.planted.text import FORMS, lines

    events = planted(spark, 2, 5, 11, {"owned-by-zombie": 1}, partitions=2)[0].persist()
    for form in FORMS:
        lines(events, form).write.partitionBy("file").text(str(tmp_path / form))
    # All at once: sources may be mixed.
    got = read([str(tmp_path / form) for form in FORMS])
    columns = ("date_trunc('millisecond', at)", "kind", "`group`", "topic", "partition")
    expected = [tuple(row) for row in events.selectExpr(*columns).collect()]
    counts: dict[str, Counter[tuple[Any, ...]]] = defaultdict(Counter)
    for event in got.events:
        at = datetime.fromtimestamp(event.at // 1_000_000) + timedelta(milliseconds=event.at // 1000 % 1000)
        row = (at, event.kind, event.group, event.topic, event.partition)
        counts[next(form for form in FORMS if f"/{form}/" in event.file)][row] += 1
    events.unpersist()
    for form in FORMS:
        silent = SILENT[form] | {"planned"}
        for one in list(counts[form]):
            if one[1] in silent:
                del counts[form][one]
        assert counts[form] == Counter(one for one in expected if one[1] not in silent)
    assert not got.malformed


@pytest.mark.slow
def test_a_form_that_does_not_exist_is_refused(spark):
    from rebalance_verifier.pipeline.audit.sources.schema import EVENTS

    from tools.planted.text import lines

    with pytest.raises(ValueError, match=r"java-1\.0"):
        lines(spark.createDataFrame([], EVENTS), "java-1.0")
