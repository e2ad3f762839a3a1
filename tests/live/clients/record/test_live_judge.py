"""The judge of a recording, on histories made by hand, and beside the plain audit of the same events."""

from __future__ import annotations

import random
from datetime import datetime

import pytest
from rebalance_verifier.live.clients.consumers.clients.recorder import stamp
from rebalance_verifier.live.clients.record.judge import (
    CHECKS,
    CheckFinding,
    QuiescencePoint,
    hand_overs,
    history,
    judge,
    seconds,
)
from rebalance_verifier.live.clients.record.run import AUDITED as WRITTEN
from rebalance_verifier.pipeline.audit.kernel.findings import CHECKS as AUDITED
from rebalance_verifier.pipeline.audit.sources.events import AT_CONSUMER, Kind

from tests.pipeline.audit import plain_audit

BEGAN = 1_800_000_000 * 10**9


def at(tick: float) -> str:
    return stamp(BEGAN + int(tick * 10**9))


def event_line(tick: float, consumer: str, event: str, generation: int | None = None, *names: str, **more):
    line = {"at": at(tick), "event": event, "group": "g", "consumer": consumer, **more}
    if generation is not None:
        line["generation"] = generation
    if names or event in ("assigned", "revoked", "lost"):
        line["partitions"] = list(names)
    return line


def both(generation: int, tick: float):
    return [event_line(tick, who, "synced", generation) for who in ("a", "b")]


def found(lines, rests=()) -> list[tuple[str, str]]:
    return [(one.check, one.partition) for one in judge(lines, rests)]


ORDERLY = [
    event_line(0, "a", "started"),
    event_line(1, "a", "synced", 1),
    event_line(1, "a", "assigned", 1, "t-0", "t-1"),
    event_line(2, "b", "started"),
    *both(2, 3),
    event_line(4, "a", "revoked", 2, "t-1"),
    event_line(4, "a", "assigned", 2),
    event_line(4, "b", "assigned", 2),
    *both(3, 5),
    event_line(6, "b", "assigned", 3, "t-1"),
]


def test_an_orderly_hand_over_is_no_finding() -> None:
    assert found(ORDERLY) == []


def test_a_hand_over_within_one_instant_is_no_overlap() -> None:
    lines = [line for line in ORDERLY if line["event"] != "revoked"]
    assert found([*lines, event_line(6, "a", "lost", 3, "t-1")]) == []


def test_two_members_own_a_partition() -> None:
    lines = [line for line in ORDERLY if line["event"] != "revoked"]
    (one,) = judge([*lines, event_line(9, "a", "revoked", 3, "t-1")], [])
    assert (one.check, one.partition, one.consumers, one.seconds) == ("owned-twice", "t-1", ("a", "b"), 3.0)
    assert one.generations == (1, 3)


def test_granted_in_the_generation_in_which_it_is_still_to_be_revoked() -> None:
    lines = [*ORDERLY[:-4], event_line(4.5, "b", "assigned", 2, "t-1")]
    assert found(lines) == [("granted-before-revoked", "t-1")]


def test_a_member_that_was_removed_is_a_zombie_until_it_notices() -> None:
    lines = [
        *ORDERLY,
        event_line(7, "a", "synced", 4),  # without b, which is stopped
        event_line(7, "a", "assigned", 4, "t-1"),
        event_line(9, "b", "lost", 3, "t-1"),
    ]
    assert found(lines) == [("owned-by-zombie", "t-1")]


def test_a_killed_consumer_owns_nothing_any_more() -> None:
    lines = [
        *ORDERLY,
        event_line(6.5, "b", "closed", detail="killed"),
        event_line(7, "a", "assigned", 4, "t-1"),
    ]
    assert found(lines) == []


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (event_line(7, "b", "assigned", 3, "t-1"), "b: assigned t-1, which it owned already"),
        (event_line(7, "b", "revoked", 3, "t-0"), "b: revoked t-0, which it did not own"),
        (event_line(7, "b", "lost", 3, "t-0"), "b: lost t-0, which it did not own"),
    ],
)
def test_callbacks_that_do_not_follow_from_those_before(line, text: str) -> None:
    (one,) = judge([*ORDERLY, line], [])
    assert (one.check, one.detail) == ("callback-order", text)


def rest(
    settled: bool = True, why: str = "", agreed: bool = True, **owned: tuple[str, ...]
) -> QuiescencePoint:
    return QuiescencePoint(
        number=1,
        at=at(8),
        settled=settled,
        live=("a", "b"),
        wanted=("t-0", "t-1"),
        owned=owned,
        why=why,
        agreed=agreed,
    )


def test_what_the_client_says_it_owns_is_compared_with_its_callbacks() -> None:
    assert found(ORDERLY, [rest(a=("t-0",), b=("t-1",))]) == []
    (one,) = judge(ORDERLY, [rest(a=("t-0", "t-1"), b=())])[:1]
    assert one.check == "assignment-differs"
    assert "a owns t-1 that no callback reported" in one.detail


@pytest.mark.parametrize("kind", ["revoked", "joining", "joined"])
def test_who_is_asked_during_a_rebalance_is_not_at_rest(kind: str) -> None:
    answer = event_line(7.5, "b", "owns", 3, "t-1")
    lines = [*ORDERLY, event_line(7, "b", "revoked", 3, "t-1"), event_line(7.1, "b", kind, 3), answer]
    assert ("assignment-differs", "t-1") not in found(lines, [rest(a=("t-0",), b=("t-1",))])
    over = [*lines[:-1], event_line(7.2, "b", "synced", 4), event_line(7.3, "b", "assigned", 4), answer]
    assert ("assignment-differs", "t-1") in found(over, [rest(a=("t-0",), b=("t-1",))])


def test_an_owner_that_is_not_polled_is_named() -> None:
    lines = [*ORDERLY, event_line(7, "c", "assigned", 3, "t-2")]
    away = QuiescencePoint(
        number=1,
        at=at(8),
        settled=False,
        live=("a", "b"),
        wanted=("t-0", "t-1", "t-2", "t-3"),
        owned={},
        why="",
        agreed=True,
    )
    (one,) = judge(lines, [away])
    detail = "nobody that is polled owns t-2, t-3 (c, which is not polled, owns t-2), and the members agree"
    assert (one.check, one.detail) == ("stranded", f"{detail} on their generation")


def test_a_group_at_rest_without_an_owner_is_stranded_and_a_restless_one_never_settles() -> None:
    lines = [*ORDERLY, event_line(7, "b", "revoked", 3, "t-1")]
    assert found(lines, [rest(False, "nobody owns t-1")]) == [("stranded", "t-1")]
    assert found(lines, [rest(False, "b rejoins", agreed=False)]) == [("never-settles", "")]


def polled(tick: float, who: str, first: int, last: int):
    return {**event_line(tick, who, "polled"), "ranges": {"t-0": [first, last]}}


def test_records_that_are_read_again_or_by_nobody() -> None:
    lines = [polled(1, "a", 0, 9), polled(2, "b", 5, 12), polled(3, "a", 13, 15), polled(4, "b", 18, 20)]
    assert [one.offsets for one in hand_overs(lines)] == [5, 0, -2]
    (one,) = judge(lines, [])
    assert (one.check, one.partition) == ("skipped-records", "t-0")
    assert "offsets from 16 on were read by nobody" in one.detail
    # What a killed one read last may not have been told.
    assert found([*lines, event_line(3.5, "a", "closed", detail="killed")]) == []
    # And what somebody else read is not skipped.
    assert found([*lines, polled(5, "c", 16, 17)]) == []


@pytest.mark.parametrize(("ticks", "excused"), [((2,), True), ((2, 5), True), ((0,), False), ((5,), False)])
def test_only_a_kill_between_the_two_owners_excuses_a_gap(ticks: tuple[float, ...], excused: bool) -> None:
    """It may have been killed before, and come back, or after."""
    lines = [polled(1, "a", 0, 9), polled(3, "b", 12, 15)]
    lines += [event_line(tick, "a", "closed", detail="killed") for tick in ticks]
    assert [one.killed for one in hand_overs(lines)] == [excused]
    assert found(lines) == ([] if excused else [("skipped-records", "t-0")])


def test_the_event_log_is_what_the_audit_knows_of_consumers() -> None:
    only_logged = {Kind.PLANNED, Kind.CHANGED, Kind.UNWANTED, Kind.REBALANCING}
    assert {*WRITTEN, *only_logged} == set(AT_CONSUMER)


def test_a_consumer_that_ends_by_itself() -> None:
    assert found([*ORDERLY, event_line(7, "b", "closed", detail="ended with status 1")]) == [("died", "")]


def test_checks_of_both_judges_are_the_same() -> None:
    shared = set(CHECKS) & set(AUDITED)
    assert {"owned-twice", "granted-before-revoked", "owned-by-zombie", "stranded", "never-settles"} <= shared
    # A recording stops consumers itself: a zombie is no news there. In a log it is what a user has to know.
    differ = {name for name in shared if CHECKS[name].level != AUDITED[name].level}
    assert differ == {"owned-by-zombie"}


def lives(draw: random.Random):
    """The events of a group whose members hear of their generations or not, and revoke or not."""
    lines, owned, tick = [], {who: set[str]() for who in "abc"}, 0.0
    for generation in range(1, draw.randint(3, 7)):
        tick += 1
        there = [who for who in "abc" if draw.random() < 0.8] or ["a"]
        lines += [event_line(tick, who, "synced", generation) for who in there]
        for who in draw.sample(there, len(there)):
            tick += 0.25
            gone = {name for name in owned[who] if draw.random() < 0.6}
            new = {name for name in ("t-0", "t-1") if draw.random() < 0.4} - owned[who]
            if gone:
                lines.append(
                    event_line(
                        tick, who, draw.choice(("revoked", "revoked", "lost")), generation, *sorted(gone)
                    )
                )
            owned[who] = (owned[who] - gone) | new
            if new:
                lines.append(event_line(tick + 0.125, who, "assigned", generation, *sorted(new)))
    return lines


def plain(lines) -> set[tuple[str, str, str, tuple[str, ...]]]:
    events = []
    for number, line in enumerate(lines):
        for name in line.get("partitions") or [None]:
            topic, _, partition = (name or "").rpartition("-")
            events.append(
                plain_audit.Event(
                    *(datetime.fromisoformat(line["at"]), line["event"], "g", line["consumer"], None),
                    *(
                        line.get("generation"),
                        topic or None,
                        int(partition) if partition else None,
                        "f",
                        number,
                    ),
                )
            )
    return {
        (one.check, f"{one.topic}-{one.partition}", one.began.isoformat(), one.consumers)
        for one in plain_audit.audit(events, plain_audit.Limits())
        if one.check in ("owned-twice", "owned-by-zombie")
    }


def ours(several: list[CheckFinding]) -> set[tuple[str, str, str, tuple[str, ...]]]:
    return {
        (one.check, one.partition, datetime.fromisoformat(one.began).isoformat(), one.consumers)
        for one in several
        if one.check in ("owned-twice", "owned-by-zombie")
    }


def test_the_judge_agrees_with_the_plain_audit_on_drawn_lives() -> None:
    kinds = set[str]()
    for seed in range(300):
        lines = lives(random.Random(seed))
        # The audit compares an interval with the three before it.
        if max((len(several) for several in history(lines).intervals.values()), default=0) > 4:
            continue
        expected = plain(lines)
        assert ours(judge(lines, [])) == expected, seed
        kinds |= {check for check, *_ in expected}
    assert kinds == {"owned-twice", "owned-by-zombie"}


def test_seconds_between_two_times() -> None:
    assert seconds(at(1), at(3.5)) == 2.5
