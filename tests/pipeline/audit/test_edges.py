"""Each limit of a check, met exactly and missed by a little: `<` in place of `<=` turns one of these red."""

from __future__ import annotations

import pytest

pytest.importorskip("duckdb")

from rebalance_verifier.pipeline.audit.kernel.events import COLUMNS
from rebalance_verifier.pipeline.audit.kernel.findings import Thresholds

from tests.pipeline.audit.logs_at_hand import events, judged
from tests.pipeline.audit.test_audit import FOLLOW_UP, TWO

GIVEN_BACK = TWO + "11.2 a revoked 2 t-1" + FOLLOW_UP
"""Nobody has t-1 from 11.2 on, and the group is at rest from 13.1 on."""


def found(text, end, **limits):
    """The checks that find something in a log that goes on until then."""
    connection = judged(events(f"{text}\n{end} z assigned other-0"), Thresholds(**limits))
    listed = connection.execute('SELECT "check", certain FROM findings ORDER BY ALL').fetchall()
    return [check for check, _ in listed], [certain for _, certain in listed]


def joins(second, generation):
    return "".join(f"\n{second} {who} {kind} {generation}" for who in "ab" for kind in ("joined", "synced"))


AFTER = {
    # text, end of the log, what is found
    "at rest for a minute": (GIVEN_BACK + "\n73.1 a joining" + joins(74, 4), 75, ["stranded"]),
    "at rest for less": (GIVEN_BACK + "\n73 a joining" + joins(74, 4), 75, []),
    "at rest for a minute, and somebody takes it": (
        GIVEN_BACK + "\n73.1 a joining" + joins(74, 4) + "\n74 b assigned 4 t-1",
        75,
        ["stranded"],
    ),
    "nobody for five minutes": (
        TWO
        + "11.2 a revoked 2 t-1"
        + "".join(f"\n{12 + 50 * i} a joining" for i in range(6))
        + joins(311, 3)
        + "\n311.2 b assigned 3 t-1",
        312,
        ["long-pause"],
    ),
    "nobody for less": (
        TWO
        + "11.2 a revoked 2 t-1"
        + "".join(f"\n{12 + 50 * i} a joining" for i in range(6))
        + joins(311, 3)
        + "\n311.1 b assigned 3 t-1",
        312,
        [],
    ),
    "a rebalance that has begun five minutes ago": (
        "1 a joined 1\n1 a synced 1\n10 a joining",
        310,
        ["never-settles"],
    ),
    "a rebalance that has begun a little less ago": ("1 a joined 1\n1 a synced 1\n10 a joining", 309.9, []),
    "ten generations within ten minutes": (
        "".join(f"{100 * i / 1.5} a joined {i + 1}\n{100 * i / 1.5} a synced {i + 1}\n" for i in range(10)),
        1000,
        ["rebalance-storm"],
    ),
    "ten generations within a little more": (
        "".join(f"{66.7 * i} a joined {i + 1}\n{66.7 * i} a synced {i + 1}\n" for i in range(10)),
        1000,
        [],
    ),
    "revoked and closed at one instant, in this order": (
        TWO + "11.2 a revoked 2 t-1\n11.2 a closed\n11.3 b assigned 2 t-1\n11.4 b joined 3",
        12,
        ["granted-before-revoked"],
    ),
    "closed and revoked at one instant, in this order": (
        TWO + "11.2 a closed\n11.2 a revoked 2 t-1\n11.3 b assigned 2 t-1\n11.4 b joined 3",
        12,
        ["granted-before-revoked"],
    ),
    "assigned at the instant at which it starts": (
        "1 a started\n1 a assigned t-0\n5 b assigned t-0\n9 a revoked t-0",
        10,
        ["owned-twice"],
    ),
    "told for five seconds, so it may be COOPERATIVE": (
        joins(1, 1) + "\n1.2 a assigned 1 t-0\n6 a revoked 1 t-0" + joins(7, 2) + "\n7.2 b assigned 2 t-0",
        8,
        [],
    ),
    "told for longer, so it is EAGER": (
        joins(1, 1) + "\n1.2 a assigned 1 t-0\n6.1 a revoked 1 t-0" + joins(7, 2) + "\n7.2 b assigned 2 t-0",
        8,
        ["needless-movement"],
    ),
    "one generation for which nobody came": (
        joins(1, 1) + joins(100, 2) + joins(200, 3) + joins(310, 4).replace("310 b", "312 c"),
        320,
        [],
    ),
    "removed at the instant at which it is assigned": (
        joins(1, 1) + "\n2 c joined 2\n2 c synced 2\n2.5 a assigned 1 t-0\n2.6 c assigned 2 t-0",
        3,
        [],
    ),
    "removed before another is granted what it owns": (
        joins(1, 1) + "\n2 a assigned 1 t-0\n3 - removed a:\n4 b assigned 1 t-0\n9 a revoked 1 t-0",
        10,
        ["owned-by-zombie"],
    ),
    "removed after another was granted what it owns": (
        joins(1, 1) + "\n2 a assigned 1 t-0\n4 b assigned 1 t-0\n5 - removed a:\n9 a revoked 1 t-0",
        10,
        ["owned-twice"],
    ),
}


@pytest.mark.parametrize(("text", "end", "expected"), AFTER.values(), ids=AFTER)
def test_a_limit_is_where_the_check_says(text, end, expected):
    assert found(text, end)[0] == expected


@pytest.mark.parametrize(("said", "missing"), [(1, False), (2, True)])
def test_a_member_is_missing_where_more_are_said_to_be_there_than_the_log_has(said, missing):
    lines = "1 a joined 1\n1 a synced 1\n1.1 a assigned 1 t-1\n2 a revoked 1 t-1\n70 z assigned other-0"
    named = [dict(zip(COLUMNS, row, strict=True)) for row in events(lines)]
    rows = [tuple((row | {"members": said if row["kind"] == "joined" else None}).values()) for row in named]
    doubts = judged(rows).execute('SELECT "check", doubt FROM findings').fetchall()
    assert doubts == [("stranded", "a member whose log is not here may own it" if missing else None)]


TWICE = "1 a assigned t-0\n5 b assigned t-0\n9 a revoked t-0"


@pytest.mark.parametrize(("skew", "certain"), [(3.9, True), (4.0, False), (4.1, False)])
def test_certain_is_only_what_lasts_longer_than_clocks_differ(skew, certain):
    assert found(TWICE, 10, clock_skew=skew) == (["owned-twice"], [certain])


def test_two_hosts_show_how_far_their_clocks_are_apart():
    connection = judged(events("1 a joined 1\n3 b joined 1\n11 a joined 2\n13 b joined 2"))
    clocks = connection.execute("SELECT host, ahead, spread, samples FROM clocks ORDER BY host").fetchall()
    assert clocks == [("a", -1.0, 0.0, 2), ("b", 1.0, 0.0, 2)]


def test_half_of_the_pauses_are_within_the_median():
    connection = judged(
        events("1 a assigned t-0 t-1\n2 a revoked t-0 t-1\n3 b assigned t-0\n5 b assigned t-1")
    )
    assert connection.execute("SELECT handovers, p50, p95, longest FROM pauses").fetchall() == [
        (2, 1.0, 3.0, 3.0)
    ]


@pytest.mark.parametrize(("quiet", "certain"), [(50, True), (51, False)])
def test_a_storm_that_is_over_does_not_go_on_with_certainty(quiet, certain):
    """Every 25 s for five minutes, and then a rest; at its end somebody goes."""
    joined = "".join(joins(25 * number, number + 1) for number in range(13))
    plans = "".join(f"\n{25 * number} a planned {number + 1} a:t-0" for number in range(13))
    plans += "".join(f"\n{25 * number} a planned {number + 1} b:t-1" for number in range(13))
    text = f"{joined}{plans}\n{300 + quiet} a leaving"
    assert found(text, 300 + quiet, storm=14) == (["never-settles"], [certain])
