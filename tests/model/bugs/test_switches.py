"""Every design switch is wrong, and visibly so, on the smallest scenario that shows its bug."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from rebalance_verifier.model.assignors import NAMES, reference
from rebalance_verifier.model.assignors.shipped import IllegalStateError
from rebalance_verifier.model.bugs.switches import NOT_EXPRESSED, SWITCHES, switched
from rebalance_verifier.model.values import (
    Cluster,
    GroupAssignment,
    GroupSubscription,
    Partitions,
    Racks,
    Subscription,
    TopicPartition,
)
from rebalance_verifier.model.wire import encode_sticky_user_data

from tests.tiers import tiered
from tests.work import TooMuchWork, lines


def tps(text: str) -> Partitions:
    """``"t-0 u-1"`` -> partitions."""
    names = (word.rsplit("-", 1) for word in text.split())
    return tuple(TopicPartition(topic, int(index)) for topic, index in names)


def member(topics: str, own: str = "", generation: int = -1, rack: str | None = None) -> Subscription:
    """Claims go into the field and, for sticky, into the user data alike."""
    return Subscription(
        topics=tuple(topics.split()),
        user_data=encode_sticky_user_data(tps(own), generation),
        owned_partitions=tps(own),
        generation_id=generation,
        rack_id=rack,
    )


def show(assignment: GroupAssignment) -> dict[str, str]:
    return {m: " ".join(map(str, assignment[m])) for m in sorted(assignment)}


def after(group: GroupSubscription, assignment: GroupAssignment, generation: int) -> dict[str, Subscription]:
    return {m: replace(s, owned_partitions=assignment[m], generation_id=generation) for m, s in group.items()}


Wants = dict[str, int | tuple[Racks, ...]]
Scenario = tuple[Wants, dict[str, Subscription], dict[str, str] | type[Exception], dict[str, str]]

# Switch -> topics, group, what it makes of them, what the reference does. Groups are in map order.
SHOWN: dict[str, Scenario] = {
    "last_claim_wins": (
        {"t": 2},
        {"A": member("t", "t-0", 9), "B": member("t", "t-0", 1)},
        {"A": "t-1", "B": "t-0"},
        {"A": "t-0", "B": "t-1"},
    ),
    "trust_all_claims": (
        {"t": 3},
        {"A": member("t", "t-0 t-1", 1), "B": member("t", "t-1 t-2", 1)},
        {"A": "t-0 t-1", "B": "t-1 t-2"},
        {"A": "t-0", "B": "t-2"},
    ),
    "max_generation_only": (
        {"t": 3},
        {"A": member("t", "t-0 t-1", 5), "B": member("t"), "C": member("t", "t-2", 6)},
        {"A": "t-0", "B": "t-1", "C": "t-2"},
        {"A": "t-0", "B": "", "C": "t-2"},
    ),
    "validate_raw_claims": (
        {"t": 3},
        {"S": member("t", "t-0", 5), "A": member("t", "t-1", 6), "C": member("t")},
        IllegalStateError,
        {"A": "t-1", "C": "t-2", "S": "t-0"},
    ),
    "no_generation": (
        {"t": 6},
        {
            "B": member("t", "t-0 t-1 t-4", 2),
            "C": member("t", "t-2 t-3 t-5", 2),
            "A": member("t", "t-0 t-3", 1),
        },
        {"A": "t-0 t-3", "B": "t-1 t-4", "C": "t-2 t-5"},
        {"A": "t-4 t-5", "B": "t-0 t-1", "C": "t-2 t-3"},
    ),
    "duplicate_claims_counted": (
        {"t": 3},
        {"A": member("t", "t-0 t-0 t-1", 1), "B": member("t")},
        {"A": "t-0 t-0", "B": "t-2"},
        {"A": "t-0 t-1", "B": "t-2"},
    ),
    "duplicate_claims_cancel": (
        {"t": 3},
        {"A": member("t", "t-0 t-0 t-1", 1), "B": member("t")},
        {"A": "t-1", "B": "t-2"},
        {"A": "t-0 t-1", "B": "t-2"},
    ),
    "claims_always_empty": (
        {"t": 2},
        {"A": member("t", "t-1", 1), "B": member("t", "t-0", 1)},
        {"A": "", "B": ""},
        {"A": "t-1", "B": "t-0"},
    ),
    "no_withhold": (
        {"t": 2},
        {"A": member("t", "t-0 t-1", 1), "B": member("t")},
        {"A": "t-0", "B": "t-1"},
        {"A": "t-0", "B": ""},
    ),
    "steal_once": (
        {"t": 9},
        {
            "A": member("t"),
            "B": member("t", "t-0 t-1 t-2", 1),
            "C": member("t", "t-3 t-4 t-5", 1),
            "D": member("t", "t-6 t-7 t-8", 1),
        },
        {"A": "", "B": "t-1 t-2", "C": "t-3 t-4 t-5", "D": "t-6 t-7 t-8"},
        {"A": "", "B": "t-0 t-1 t-2", "C": "t-3 t-4", "D": "t-6 t-7"},
    ),
    "minquota_still_unfilled": (
        {"t": 7},
        {"A": member("t", "t-0 t-1", 1), "B": member("t", "t-2 t-3 t-4", 1), "C": member("t")},
        {"A": "t-0 t-1 t-5", "B": "t-2 t-3 t-4", "C": "t-6"},
        {"A": "t-0 t-1", "B": "t-2 t-3 t-4", "C": "t-5 t-6"},
    ),
    "steal_chain_other_partition": (
        {"t": 4},
        {"A": member("t", "t-0 t-1 t-2", 1), "B": member("t", "t-3", 1), "C": member("t")},
        {"A": "t-0 t-1", "B": "", "C": ""},
        {"A": "t-0 t-1", "B": "t-3", "C": ""},
    ),
    "single_known_topic_shortcut": (
        {"t1": 2},
        {"0": member("t0"), "1": member("t1")},
        {"0": "t1-0", "1": "t1-1"},
        {"0": "", "1": "t1-0 t1-1"},
    ),
    "npe_on_missing_topic": (
        {"t": 1},
        {"A": member("deleted t")},
        IllegalStateError,
        {"A": "t-0"},
    ),
    "rack_breaks_copartition": (
        {"t": (("a",), ("b",)), "u": (("b",), ("a",))},
        {"A": member("t u", rack="a"), "B": member("t u", rack="b")},
        {"A": "t-0 u-1", "B": "t-1 u-0"},
        {"A": "t-0 u-0", "B": "t-1 u-1"},
    ),
    "roundrobin_modulo_eligible": (
        {"t0": 1, "t1": 4},
        {"A": member("t0"), "B": member("t1"), "C": member("t1")},
        {"A": "t0-0", "B": "t1-0 t1-1 t1-2 t1-3", "C": ""},
        {"A": "t0-0", "B": "t1-0 t1-2", "C": "t1-1 t1-3"},
    ),
    "topics_beyond_members_ignored": (
        {"t0": 1, "t1": 1},
        {"A": member("t0 t1")},
        {"A": "t0-0"},
        {"A": "t0-0 t1-0"},
    ),
    "members_unsorted": (
        {"t": 2},
        {"B": member("t"), "A": member("t")},
        {"A": "t-1", "B": "t-0"},
        {"A": "t-0", "B": "t-1"},
    ),
    "assign_leader_topics_only": (
        {"t0": 2, "t1": 1},
        {"A": member("t0"), "B": member("t1")},
        {"A": "t0-0", "B": "t0-1"},
        {"A": "t0-0 t0-1", "B": "t1-0"},
    ),
}

SHOWN_BELOW = {
    "cache_across_calls",
    "user_data_once",
    "third_round_general",
    "quadratic_general",
    "is_balanced_off_by_one",
}


def test_every_switch_is_shown() -> None:
    assert set(SWITCHES) == set(SHOWN) | SHOWN_BELOW
    assert all(SWITCHES[id_].id == id_ for id_ in SWITCHES)


@pytest.mark.parametrize("id_", SHOWN)
def test_wrong_where_the_reference_is_right(id_: str) -> None:
    topics, group, wrong, right = SHOWN[id_]
    cluster = Cluster(
        {topic: ((),) * racks if isinstance(racks, int) else racks for topic, racks in topics.items()}
    )
    name = SWITCHES[id_].assignor
    assert show(reference(name).assign(cluster, group)) == right
    broken = switched(name, [id_])
    if isinstance(wrong, type):
        with pytest.raises(wrong):
            broken.assign(cluster, group)
    else:
        assert show(broken.assign(cluster, group)) == wrong


def test_last_claim_wins_holds_nothing_back_from_who_claims_it() -> None:
    """``adjustAssignment`` of Java 2.4 asks what each member says, not whose claim counts; StickyAssignor of
    EAGER members holds nothing back at all."""
    cluster = Cluster.of({"t": 3})
    group = {"A": member("t", "t-0 t-1 t-2", 1), "B": member("t", "t-0 t-1 t-2", 3)}
    wrong = switched("cooperative-sticky", ["last_claim_wins"]).assign(cluster, group)
    assert sorted(map(len, wrong.values())) == [1, 2]
    assert sorted(map(len, reference("cooperative-sticky").assign(cluster, group).values())) == [0, 2]
    fresh = {"A": member("t"), "B": member("t", "t-0 t-1 t-2", 3)}
    assert sorted(map(len, switched("sticky", ["last_claim_wins"]).assign(cluster, fresh).values())) == [1, 2]


def test_cache_across_calls() -> None:
    cluster, name = Cluster.of({"t": 2}), SWITCHES["cache_across_calls"].assignor
    claiming = {"A": member("t", "t-1", 1), "B": member("t", "t-0", 1)}
    silent = {"A": member("t"), "B": member("t")}
    broken, right = switched(name, ["cache_across_calls"]), reference(name)
    assert broken.assign(cluster, silent) == right.assign(cluster, silent)
    assert broken.assign(cluster, claiming) == right.assign(cluster, claiming)
    assert broken.assign(cluster, silent) == right.assign(cluster, claiming)  # it should have forgotten
    another = switched(name, ["cache_across_calls"])
    assert another.assign(cluster, silent) == right.assign(cluster, silent)  # one memory per assignor


@pytest.mark.parametrize("name", ["sticky", "cooperative-sticky"])
def test_user_data_once(name: str) -> None:
    broken = switched(name, ["user_data_once"])
    assert broken.user_data(tps("t-0"), 1) == reference(name).user_data(tps("t-0"), 1)
    with pytest.raises(IllegalStateError):
        broken.user_data(tps("t-0"), 2)


def test_third_round_general() -> None:
    """The group of J23: settled after two rounds at best, after three by pairwise moves."""
    cluster = Cluster.of({"t0": 4, "t1": 4, "t2": 1, "t3": 6})
    start = {
        "m0": member("t0 t1", "t0-1 t0-2 t0-3 t1-0 t1-1 t1-2 t1-3", 5),
        "m1": member("t0 t1 t2", "t0-0 t2-0", 5),
        "m2": member("t0 t1 t3", " ".join(f"t3-{n}" for n in range(6)), 5),
        "m3": member("t1 t2"),
    }

    def rounds(*switches: str) -> int:
        """Rebalances until one changes nothing, that one not counted."""
        assignor, group = switched("cooperative-sticky", switches), dict(start)
        for count in range(10):
            result = assignor.assign(cluster, group)
            if all(result[m] == group[m].owned_partitions for m in group):
                return count
            group = after(group, result, 6 + count)
        raise AssertionError("never settles")

    assert rounds() == 2
    assert rounds("third_round_general") == 3


# -- runtime: right, but not in time -----------------------------------------------------------------------


def crowd() -> tuple[Cluster, dict[str, Subscription]]:
    """As many partitions as members, and one member more (KAFKA-9987)."""
    return Cluster.of({"t": 2100}), {f"m{n:04d}": Subscription(topics=("t",)) for n in range(2101)}


@pytest.mark.parametrize("id_", ["quadratic_general", "is_balanced_off_by_one"])
def test_small_groups_do_not_notice(id_: str) -> None:
    rng = random.Random(1)
    for _ in range(40):
        names = [f"t{n}" for n in range(rng.randint(1, 4))]
        cluster = Cluster.of({name: rng.randint(1, 4) for name in names})
        group = {
            f"m{n}": Subscription(topics=tuple(rng.sample(names, rng.randint(1, len(names)))))
            for n in range(4)
        }
        name = SWITCHES[id_].assignor
        assert switched(name, [id_]).assign(cluster, group) == reference(name).assign(cluster, group)


@pytest.mark.slow
@pytest.mark.parametrize(
    "id_", tiered(["quadratic_general", "is_balanced_off_by_one"], {"is_balanced_off_by_one"})
)
@pytest.mark.parametrize("most", [200_000, pytest.param(2_000_000, marks=pytest.mark.nightly)])
def test_large_groups_wait_in_vain(id_: str, most: int) -> None:
    """The correct one takes 88,420 lines of Python."""
    cluster, group = crowd()
    name = SWITCHES[id_].assignor
    lines(lambda: reference(name).assign(cluster, group), 100_000)
    with pytest.raises(TooMuchWork):
        lines(lambda: switched(name, [id_]).assign(cluster, group), most)


# -- how switches are applied ------------------------------------------------------------------------------


def test_switches_fit_what_they_say() -> None:
    for switch in SWITCHES.values():
        assert switch.assignor == switch.fits[0]
        for name in NAMES:
            if name in switch.fits:
                assert switched(name, [switch.id]).name == name
            else:
                with pytest.raises(ValueError, match=f"'{switch.id}' does not fit {name}"):
                    switched(name, [switch.id])


def test_unknown_switch_lists_those_that_fit() -> None:
    with pytest.raises(ValueError, match=r"no switch of range is called 'nope': there are rack_breaks_"):
        switched("range", ["nope"])


def test_switches_add_up() -> None:
    cluster = Cluster.of({"t": 2})
    group = {"A": member("t", "t-0 t-1", 1), "B": member("t")}
    both = switched("cooperative-sticky", ("claims_always_empty", "no_withhold"))
    assert show(both.assign(cluster, {"B": group["B"], "A": group["A"]})) == {"A": "t-0", "B": "t-1"}


def test_texts_are_for_people() -> None:
    for switch in SWITCHES.values():
        assert switch.sentence
        assert not switch.sentence.endswith(".")
        assert switch.shipped
    assert all(NOT_EXPRESSED.values())
