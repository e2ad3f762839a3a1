"""Kafka Streams in the model of the classic group: warm-ups, probing rebalances, and their mistakes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rebalance_verifier.explore.engine import fast
from rebalance_verifier.explore.groups.scenarios import SCENARIOS, ScenarioError, ScenarioSize
from rebalance_verifier.explore.liveness.liveness import judge
from rebalance_verifier.model.classic import probing, warmups
from rebalance_verifier.model.classic.state import Group, Member, MemberRecord, Metadata
from rebalance_verifier.model.group.parts import (
    Ask,
    Copies,
    Generation,
    GroupState,
    Life,
    MemberState,
    Parts,
    Slot,
)
from rebalance_verifier.model.group.setup import MemberContext
from rebalance_verifier.model.protocols import machine
from rebalance_verifier.properties.group.clauses import PROBING_ENDS, rules

SETUP = SCENARIOS["streams"].setup()
ME = MemberContext(Slot(0), SETUP)
STABLE = Group(state=GroupState.STABLE, generation=Generation(1))
T0, T1, BOTH = Parts(0b01), Parts(0b10), Parts(0b11)
NO = Copies()


def meta(owned: int = 0, caught_up: int = 0, label: int = 1) -> Metadata:
    return Metadata(("cooperative-sticky",), SETUP.consumers[0].subscriptions[0], Parts(owned),
                    label=Generation(label), caught_up=Parts(caught_up))  # fmt: skip


def member(**fields: object) -> Member:
    return Member(
        life=Life.UP, state=MemberState.STABLE, id=1, generation=Generation(1), rejoin=False
    )._replace(
        **fields  # type: ignore[arg-type]
    )


def planned(
    target: tuple[int, ...], *metas: Metadata, most: int = 2, at_once: bool = False
) -> list[warmups.Plan]:
    return list(warmups.plans([Parts(one) for one in target], metas, most, at_once=at_once))


# -- the assignment ----------------------------------------------------------------------------------------


def test_a_task_whose_store_is_nowhere_runs_where_it_belongs() -> None:
    assert planned((T0, T1), meta(), meta()) == [warmups.Plan((T0, T1), (NO, NO))]


def test_a_task_stays_with_its_store_and_warms_up_where_it_belongs() -> None:
    for number, plan in enumerate(planned((T0, T1), meta(BOTH, BOTH), meta())):
        assert plan.shares == (BOTH, 0)
        assert [one.warmups for one in plan.copies] == [0, T1]
        assert [one.asks for one in plan.copies] == [
            Ask.LATER if number == asker else Ask.NEVER for asker in range(2)
        ]
        assert plan.asker == number


def test_a_task_that_its_owner_still_has_is_withheld_and_its_store_kept() -> None:
    [plan] = planned((T0, T1), meta(BOTH, BOTH), meta(0, T1))
    assert plan == warmups.Plan((T0, Parts(0)), (NO, Copies(T1)))


def test_who_waits_for_a_task_is_told_to_ask_at_once_only_where_that_is_done() -> None:
    [plan] = planned((T0, T1), meta(BOTH, BOTH), meta(0, T1), at_once=True)
    assert [one.asks for one in plan.copies] == [Ask.NEVER, Ask.NOW]


def test_no_more_is_warmed_up_than_may_be_and_the_rest_is_waited_for() -> None:
    for plan in planned((0, BOTH), meta(BOTH, BOTH), meta(), most=1):
        assert [one.warmups for one in plan.copies] == [0, T0]
        assert plan.asker is not None


def test_a_claim_that_is_older_than_another_holds_nothing_back() -> None:
    [plan] = planned((T0, T1), meta(T1, T0, label=1), meta(T1, T1, label=2))
    assert plan.shares == (T0, T1)


def test_a_task_with_two_stores_stays_with_its_owner() -> None:
    for plan in planned((0, 0, T0), meta(0, T0), meta(T0, T0), meta()):
        assert plan.shares == (0, T0, 0)


# -- the process -------------------------------------------------------------------------------------------


def test_active_tasks_and_warm_ups_catch_up_one_by_one() -> None:
    me = member(owned=T0, copies=Copies(T1))
    assert [outcome.choice for outcome in probing.catch_up(ME, me)] == ["t-0", "t-1"]
    [(after,), *_] = [outcome.values for outcome in probing.catch_up(ME, me)]
    assert after == me._replace(caught_up=T0)
    assert list(probing.catch_up(ME, me._replace(caught_up=BOTH))) == []
    assert list(probing.catch_up(ME, me._replace(life=Life.PAUSED))) == []


@pytest.mark.parametrize(
    ("change", "group", "synced", "asks"),
    [
        ({}, STABLE, True, True),
        ({}, STABLE, False, False),
        ({}, STABLE._replace(state=GroupState.PREPARING), True, False),
        ({"state": MemberState.COMPLETING}, STABLE, True, False),
        ({"received": T0}, STABLE, True, False),
        ({"copies": NO}, STABLE, True, False),
        ({"copies": Copies(T1, Ask.NOW)}, STABLE._replace(state=GroupState.PREPARING), False, True),
        ({"copies": Copies(T1, Ask.NOW), "received": T0}, STABLE, True, False),
        ({"life": Life.HUNG}, STABLE, True, False),
    ],
)
def test_a_follow_up_is_asked_for_once_when_it_is_due(
    change: dict[str, object], group: Group, synced: bool, asks: bool
) -> None:
    me = member(copies=Copies(T1, Ask.LATER))._replace(**change)  # type: ignore[arg-type]
    record = MemberRecord(1, meta(), synced=synced)
    outcomes = list(probing.ask_again(ME, me, group, (record,), ()))
    assert [outcome.values for outcome in outcomes] == [(me._replace(copies=Copies(T1), rejoin=True),)] * asks


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({}, ""),
        ({"copies": Copies(asks=Ask.LATER)}, "has to ask for a rebalance"),
        ({"owned": T0}, "its stores have to catch up"),
        ({"owned": T0, "caught_up": T0}, ""),
        (
            {"copies": Copies(T1), "caught_up": T1},
            "its warm-up has caught up, and nobody asks for a rebalance",
        ),
        ({"copies": Copies(T1), "life": Life.DOWN}, ""),
    ],
)
def test_a_process_says_what_it_has_to_do(change: dict[str, object], word: str) -> None:
    assert probing.unfinished(member(**change)) == word


# -- the group ---------------------------------------------------------------------------------------------


def settles(name: str, **size: object) -> dict[str, bool]:
    setup = SCENARIOS[name].setup(ScenarioSize(**size))  # type: ignore[arg-type]
    built, asked = machine(setup), rules(setup)
    search = fast.explore(built, asked)
    assert search.complete
    assert not search.breaches
    return {one.clause: one.holds for one in judge(built, asked, search).settling}


@pytest.mark.covering
@pytest.mark.parametrize("name", ["streams", "streams-eager"])
def test_probing_ends_and_a_task_moves_to_its_warm_up(name: str) -> None:
    assert settles(name, faults=(), budget=0) == {"group/converges": True, PROBING_ENDS.id: True}
    setup = SCENARIOS[name].setup(ScenarioSize(faults=(), budget=0))
    search = fast.explore(machine(setup), rules(setup))
    assert search.coverage.witnesses["task moves to its warm-up"]


def test_a_deadline_without_a_rebalance_and_an_assignor_that_always_asks_are_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Probing that is forgotten, and probing that never ends, break the clause by themselves."""
    real = warmups.plans

    def never(*args: object, **kwargs: object) -> object:
        for plan in real(*args, **kwargs):  # type: ignore[arg-type]
            yield plan._replace(copies=tuple(one._replace(asks=Ask.NEVER) for one in plan.copies))

    def always(*args: object, **kwargs: object) -> object:
        for plan in real(*args, **kwargs):  # type: ignore[arg-type]
            yield plan._replace(copies=(plan.copies[0]._replace(asks=Ask.LATER), *plan.copies[1:]))

    for wrong in (never, always):
        monkeypatch.setattr(warmups, "plans", wrong)
        assert settles("streams", faults=(), budget=0)[PROBING_ENDS.id] is False


def test_the_order_of_the_processes_is_kept_and_other_clients_run_no_streams() -> None:
    assert SCENARIOS["streams"].setup(ScenarioSize(naming="every")).naming == "given"
    with pytest.raises(ValueError, match="naming is given"):
        machine(replace(SETUP, naming="every"))
    for release in ("librdkafka", "java-2.4", "2.5.1"):
        with pytest.raises(ScenarioError, match="runs no Kafka Streams with probing rebalances"):
            SCENARIOS["streams"].setup(ScenarioSize(profiles=(release,)))
    for command in ("explore --on", "conform --code"):
        with pytest.raises(ScenarioError, match=f"{command} plays Kafka's consumers, and no stores of Kafka"):
            SCENARIOS["streams"].refuse_stores(command)
    SCENARIOS["dynamic"].refuse_stores("explore --on")


def test_what_streams_of_a_release_does_wrong_is_of_the_group_and_of_no_consumer() -> None:
    def has(name: str, release: str) -> bool:
        setup = SCENARIOS[name].setup(ScenarioSize(profiles=(release,)))
        return "follow_up_at_once" in setup.consumers[0].stages[0].decisions

    assert [has("streams", one) for one in ("as-specified", "2.6.0", "newest")] == [False, True, True]
    assert not has("dynamic", "newest")
