"""Each check on the smallest log that shows it, beside logs that look like it and are in order.

All logs are judged together, a group each.
"""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("duckdb")

from rebalance_verifier.pipeline.audit.tables import FINDING, rows

from tests.pipeline.audit.logs_at_hand import events, judged

TWO = """
    0 a joining
    1 a joined 1
    1 a synced 1
    1.5 a assigned 1 t-0 t-1
    10 b joining
    10.5 a joining
    11 a joined 2
    11 b joined 2
    11.1 a synced 2
    11.1 b synced 2
"""
"""Consumer a owns both partitions, b joins; what follows differs."""

FOLLOW_UP = """
    12 a joining
    12.1 b joining
    13 a joined 3
    13 b joined 3
    13.1 a synced 3
    13.1 b synced 3
"""

LOGS = {
    # -- in order
    "cooperative": TWO + "11.2 a revoked 2 t-1" + FOLLOW_UP + "13.2 b assigned 3 t-1",
    "eager": """
        1 a joined 1
        1 a synced 1
        1.5 a assigned 1 t-0 t-1
        10 b joining
        10.5 a revoked 1 t-0 t-1
        10.6 a joining
        11 a joined 2
        11 b joined 2
        11.1 a synced 2
        11.1 b synced 2
        11.2 a assigned 2 t-0
        11.2 b assigned 2 t-1
    """,
    "same instant": TWO + "13.2 a revoked 2 t-1" + FOLLOW_UP + "13.2 b assigned 3 t-1",
    "log begins in the middle": """
        5 a revoked 7 t-0
        6 a joined 8
        6 b joined 8
        6.1 a synced 8
        6.1 b synced 8
        6.2 b assigned 8 t-0
    """,
    "killed": TWO
    + """
        11.2 a revoked 2 t-1
        13 b joined 3
        13.1 b synced 3
        13.2 b assigned 3 t-0 t-1
    """,
    "killed and started again": TWO
    + """
        11.2 a revoked 2 t-1
        13 b joined 3
        13.1 b synced 3
        13.2 b assigned 3 t-0 t-1
        60 a started
        61 a joined 4
        61 b joined 4
        61.1 a synced 4
        61.1 b synced 4
    """,
    "everybody leaves": TWO
    + """
        11.2 a revoked 2 t-1
        20 b leaving
        21 a revoked 2 t-0
        21 a leaving
    """,
    "another topic from now on": """
        1 a subscribed t
        2 a joined 1
        2 a synced 1
        3 a assigned 1 t-0
        300 a subscribed u
        301 a revoked 1 t-0
        302 a joined 2
        302 a synced 2
        303 a assigned 2 u-0
    """,
    "down for an hour": """
        1 a joined 1
        1 a synced 1
        2 a assigned 1 t-0
        100 a revoked 1 t-0
        100 a leaving
        3700 b joined 1
        3700 b synced 1
        3701 b assigned 2 t-0
    """,
    "a member more": TWO + "11.2 a revoked 2 t-1" + FOLLOW_UP + "13.2 b assigned 3 t-1",
    "waits for a slow member": TWO
    + "11.2 a revoked 2 t-1\n 12 a joining\n 250 b joining\n"
    + "251 a joined 3\n 251 b joined 3\n 251 a synced 3\n 251 b synced 3\n 251.1 b assigned 3 t-1",
    "of a release that logs no SyncGroup": "1 a joined 1\n 2 a assigned 1 t-0",
    "hosts whose logs begin apart": """
        1 a joined 1
        1 a synced 1
        2 a assigned 1 t-0
        60 a revoked 1 t-0
        61 a joined 2
        61 a synced 2
        200 b joined 3
        200 a joined 3
        200 b synced 3
        200 a synced 3
        200.1 b revoked 3 t-0
        201 b joined 4
        201 a joined 4
        201 b synced 4
        201 a synced 4
        201.1 a assigned 4 t-0
    """,
    "callbacks without partitions": TWO
    + "11.2 a revoked 2 t-1\n 11.2 b assigned 2"
    + FOLLOW_UP
    + "13.2 b assigned 3 t-1\n 20 a revoked 3\n 20 b assigned 3",
    "restarts": "".join(
        f"{50 * i} a started\n{50 * i + 1} a joined {i + 1}\n{50 * i + 1} a synced {i + 1}\n"
        for i in range(9)
    ),
    "a plan that waits for the owner": TWO
    + "11.05 a planned 2 a:t-0\n 11.2 a revoked 2 t-1"
    + FOLLOW_UP
    + "13.05 a planned 3 a:t-0 b:t-1\n 13.2 b assigned 3 t-1",
    "a plan for members that are EAGER": """
        1 a joined 1
        1 a synced 1
        1.5 a assigned 1 t-0 t-1
        10.5 a revoked 1 t-0 t-1
        11 a joined 2
        11.05 a planned 2 a:t-0 b:t-1
        11.1 a synced 2
        11.1 b synced 2
        11.2 a assigned 2 t-0
        11.2 b assigned 2 t-1
    """,
    "a plan that was never in force": TWO.replace("11.1 a synced 2", "").replace("11.1 b synced 2", "")
    + "11.05 a planned 2 a:t-0 b:t-1"
    + FOLLOW_UP
    + """
        13.05 a planned 3 a:t-0
        13.2 a revoked 3 t-1
        14 a joined 4
        14 b joined 4
        14.1 a synced 4
        14.1 b synced 4
        14.2 b assigned 4 t-1
    """,
    "a plan without a member that was removed": TWO
    + "12.9 b joined 3\n 13 b planned 3 b:t-0 b:t-1\n 13.1 b synced 3\n 13.2 b assigned 3 t-0 t-1",
    # -- broken
    "owned twice": TWO + "11.2 b assigned 2 t-1\n 11.9 a revoked 2 t-1",
    "owned twice for ever": TWO + "11.2 b assigned 2 t-1",
    "callbacks alone": "1 a assigned t-0\n 5 b assigned t-0\n 9 a revoked t-0",
    "the first owner's log begins late": """
        5 a joined 8
        5 b joined 8
        5.1 a synced 8
        5.1 b synced 8
        6 b assigned 8 t-0
        9 a revoked 8 t-0
    """,
    "granted early": TWO + "11.2 a revoked 2 t-1\n 11.3 b assigned 2 t-1",
    "granted early, the log begins in the middle": """
        5 a joined 8
        5 b joined 8
        5.1 a synced 8
        5.1 b synced 8
        5.2 a revoked 8 t-0
        6 b assigned 8 t-0
    """,
    "granted early by the plan, the log of the new owner is missing": TWO
    + "11.05 a planned 2 a:t-0 b:t-1\n 11.2 a revoked 2 t-1",
    "granted early by the plan, and never revoked": TWO + "11.05 a planned 2 a:t-0 c:t-1",
    "granted early by the plan, the log begins in the middle": """
        5 a joined 8
        5.05 a planned 8 b:t-0
        5.1 a synced 8
        5.2 a revoked 8 t-0
    """,
    "zombie": TWO
    + """
        11.2 a revoked 2 t-1
        13 b joined 3
        13.1 b synced 3
        13.2 b assigned 3 t-0 t-1
        40 a lost 2 t-0
        41 a joined 4
        41 b joined 4
        41.1 a synced 4
        41.1 b synced 4
    """,
    "a late callback of a zombie": TWO
    + """
        11.2 a revoked 2 t-1
        13 a joined 3
        13.1 a synced 3
        13.2 a assigned 3 t-1
        14 b assigned 2 t-1
        20 b lost 2 t-1
    """,
    "stranded": TWO + "11.2 a revoked 2 t-1" + FOLLOW_UP,
    "stranded for a while": TWO
    + "11.2 a revoked 2 t-1"
    + FOLLOW_UP
    + "213 a joined 4\n 213 b joined 4\n 213 a synced 4\n 213 b synced 4\n 214 b assigned 4 t-1",
    "stranded with the dead": TWO
    + """
        11.2 a revoked 2 t-1
        13 b joined 3
        13.1 b synced 3
        13.2 b assigned 3 t-1
    """,
    "stranded twice, the log begins in the middle": """
        1 a joined 8
        1.1 a synced 8
        1.2 a revoked 8 t-0
        200 a joined 9
        200 c joined 9
        200.1 a synced 9
        200.1 c synced 9
        200.2 c assigned 9 t-0
        399.9 c revoked 9 t-0
        400 a joined 10
        400 b joined 10
        400 c joined 10
        400.1 a synced 10
        400.1 b synced 10
        400.1 c synced 10
        401 b revoked 10 t-0
    """,
    "paused": TWO
    + "11.2 a revoked 2 t-1\n"
    + "".join(f"{12 + 50 * i} a joining\n" for i in range(8))
    + "400 a joined 3\n 400 b joined 3\n 400.1 a synced 3\n 400.1 b synced 3\n 400.2 b assigned 3 t-1",
    "moved for nothing": TWO
    + "11.2 a revoked 2 t-1"
    + FOLLOW_UP
    + """
        13.2 b assigned 3 t-1
        113 a joined 4
        113 b joined 4
        113.1 a synced 4
        113.1 b synced 4
        113.2 b revoked 4 t-1
        114 a joined 5
        114 b joined 5
        114.1 a synced 5
        114.1 b synced 5
        114.2 a assigned 5 t-1
    """,
    "moved for nothing by EAGER": """
        1 a joined 1
        1 b joined 1
        1.1 a synced 1
        1.1 b synced 1
        1.2 a assigned 1 t-0
        50 a revoked 1 t-0
        51 a joined 2
        51 b joined 2
        51.1 a synced 2
        51.1 b synced 2
        51.2 b assigned 2 t-0
    """,
    "moved for nothing, between clocks that differ": TWO
    + "11.2 a revoked 2 t-1"
    + FOLLOW_UP
    + """
        13.2 b assigned 3 t-1
        113 a joined 4
        113 b joined 4
        113.1 a synced 4
        113.1 b synced 4
        114.3 b revoked 4 t-1
        114 a joined 5
        114.4 b joined 5
        114.1 a synced 5
        114.5 b synced 5
        114.2 a assigned 5 t-1
    """,
    "stranded at one instant": TWO
    + "11.2 a revoked 2 t-1"
    + FOLLOW_UP
    + "13.2 b assigned 3 t-1\n13.2 b revoked 3 t-1",
    "storm": "".join(
        f"{50 * i} a joined {i + 1}\n{50 * i} a synced {i + 1}\n{50 * i + 1} b joined {i + 1}\n"
        for i in range(12)
    )
    + "600 a synced 12",
    "waits": TWO + "11.2 a revoked 2 t-1\n 12 a joining",
    "restless": "".join(f"{50 * i} a joined {i}\n{50 * i + 25} a synced {i}\n" for i in range(60, 80, 4)),
}
END = "4000 z assigned t-0"
"""The log goes on for the other groups."""

FOUND = {
    "owned twice": ["owned-twice"],
    "owned twice for ever": ["owned-twice"],
    "callbacks alone": ["owned-twice"],
    "the first owner's log begins late": ["owned-twice"],
    "granted early": ["granted-before-revoked"],
    "granted early, the log begins in the middle": ["granted-before-revoked"],
    "granted early by the plan, the log of the new owner is missing": ["granted-before-revoked", "stranded"],
    "granted early by the plan, and never revoked": ["granted-before-revoked"],
    # The plan names the owner, whose log is missing: it is not stranded.
    "granted early by the plan, the log begins in the middle": ["granted-before-revoked"],
    "zombie": ["owned-by-zombie"],
    "a late callback of a zombie": ["owned-by-zombie"],
    "stranded": ["stranded"],
    "stranded for a while": ["stranded"],
    "stranded with the dead": ["stranded"],
    "stranded twice, the log begins in the middle": ["stranded", "stranded"],
    "paused": ["long-pause"],
    "moved for nothing": ["needless-movement"],
    "moved for nothing, between clocks that differ": ["needless-movement", "owned-twice"],
    "moved for nothing by EAGER": ["needless-movement"],
    "stranded at one instant": ["stranded"],
    "storm": ["rebalance-storm"],
    "waits": ["never-settles"],
    "restless": ["never-settles"],
}


@pytest.fixture(scope="module")
def audited():
    """Findings by group, and the database."""
    logs = {**LOGS, "end": END}
    connection = judged(row for group, text in logs.items() for row in events(text, group))
    by_group: dict[str, list[Any]] = {}
    for row in rows(connection, f'SELECT {FINDING} FROM findings ORDER BY "group", "check"'):
        by_group.setdefault(row["group"], []).append(row)
    return by_group, connection


def test_each_log_shows_what_is_wrong_with_it_and_nothing_else(audited):
    by_group, _ = audited
    assert {group: [row["check"] for row in rows] for group, rows in by_group.items()} == FOUND


def test_no_two_findings_have_one_id(audited):
    ids = [row["id"] for rows in audited[0].values() for row in rows]
    assert len(set(ids)) == len(ids)


def test_an_overlap_is_told_with_its_members_and_places(audited):
    (row,) = audited[0]["owned twice"]
    assert (row["topic"], row["partition"], row["consumers"], row["generations"]) == (
        "t",
        1,
        ["a", "b"],
        [1, 2],
    )
    assert row["seconds"] == pytest.approx(0.7)
    assert [(p["kind"], p["file"], p["line"]) for p in row["places"]] == [
        ("assigned", "a.jsonl", 4),
        ("assigned", "b.jsonl", 11),
        ("revoked", "a.jsonl", 12),
    ]
    assert row["certain"]


def test_what_has_not_ended_lasts_to_the_end_of_the_log(audited):
    (row,) = audited[0]["owned twice for ever"]
    assert row["ended"] is None
    assert row["seconds"] == pytest.approx(4000 - 11.2)
    (row,) = audited[0]["stranded for a while"]
    assert row["seconds"] == pytest.approx(213 - 13.1)
    (row,) = audited[0]["paused"]
    assert row["seconds"] == pytest.approx(400.2 - 11.2)
    assert row["consumers"] == ["a", "b"]


def test_groups_and_pauses(audited):
    _, connection = audited
    groups = {row["group"]: row for row in rows(connection, "FROM groups")}
    assert groups.keys() == {*LOGS, "end"}
    row = groups["cooperative"]
    assert (row["consumers"], row["partitions"], row["rebalances"], row["settled"]) == (2, 2, 3, True)
    assert {group for group, row in groups.items() if not row["settled"]} == {"waits", "restless"}
    pauses = {row["group"]: row for row in rows(connection, "FROM pauses")}
    assert (pauses["cooperative"]["handovers"], pauses["cooperative"]["longest"]) == (1, pytest.approx(2.0))
    assert pauses["same instant"]["longest"] == 0.0
