"""Single lines, good and bad: which row they become, or why they become none."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from itertools import groupby
from operator import itemgetter

import pytest
from rebalance_verifier.pipeline.audit.sources import local
from rebalance_verifier.pipeline.audit.sources.parsing import UNDATED, UNLIKE, LineParser
from rebalance_verifier.pipeline.audit.sources.reading import NoInput
from rebalance_verifier.pipeline.audit.sources.settling import settle

JAVA = "[Consumer clientId=app-1, groupId=billing] Adding newly assigned partitions: a.b-c_d-0, orders-11"
AT = datetime(2024, 1, 2, 3, 4, 5, 678000, UTC)

LAYOUTS = {
    "kafka": f"[2024-01-02 03:04:05,678] INFO {JAVA} (org.apache.kafka.clients.consumer.internals.C)",
    "short logger": f"[2024-01-02 03:04:05,678] INFO {JAVA} (ConsumerCoordinator)",
    "iso": f"2024-01-02T03:04:05.678Z INFO [main] o.a.k.C : {JAVA}",
    "nanoseconds": f"2024-01-02T03:04:05.678901234Z {JAVA}",
    "offset": f"2024-01-02 04:34:05.678 +0130 [main] {JAVA}",
    "offset with colon": f"2024-01-02T04:34:05.678+01:30 [main] {JAVA}",
    "slashes": f"2024/01/02 03:04:05.678 [main] {JAVA}",
    "basic": f"20240102T030405,678 {JAVA}",
    "date": f"02 Jan 2024 03:04:05,678 {JAVA}",
    "millis": f"1704164645678 main INFO {JAVA}",
    "seconds": f"1704164645.678 main INFO {JAVA}",
    "kubernetes": f"2024-01-02T03:04:05.678123456Z stdout F {JAVA}",
    "kubernetes, time only": f"2024-01-02T03:04:05.678Z stdout F 03:04:05.676 [main] {JAVA}",
    "compose": f"app-1  | 2024-01-02 03:04:05,678 {JAVA}",
    "colours": f"\x1b[32m2024-01-02 03:04:05,678 INFO {JAVA}\x1b[m",
    "logstash": json.dumps({"@timestamp": "2024-01-02T03:04:05.678Z", "message": JAVA}),
    "log4j2 json": json.dumps(
        {"instant": {"epochSecond": 1704164645, "nanoOfSecond": 678000000}, "message": JAVA}
    ),
    "millis in json": json.dumps({"timeMillis": 1704164645678, "message": JAVA}),
    "docker": json.dumps(
        {"log": f"03:04:05.678 [main] {JAVA}\n", "stream": "stdout", "time": "2024-01-02T03:04:05.678Z"}
    ),
}

ORIGINS = {"compose": "app-1"}

GOOD = {
    "iso": {
        "at": "2024-01-02T03:04:05.678Z",
        "event": "joined",
        "group": "g",
        "consumer": "c",
        "generation": 7,
    },
    "number": {
        "at": 1704164645.678,
        "event": "revoked",
        "group": "g",
        "consumer": "c",
        "partitions": ["t-0"],
    },
    "broker's": {"at": "2024-01-02 03:04:05.678", "event": "stable", "group": "g", "generation": 2, "x": 1},
    "topics": {
        "at": 1704164645.678,
        "event": "subscribed",
        "group": "g",
        "consumer": "c",
        "topics": ["a-1", "b"],
    },
}

GOOD_LINE = json.dumps(GOOD["iso"])
BAD = {
    GOOD_LINE[:-20]: "not JSON",
    json.dumps(GOOD["iso"] | {"event": "assignd"}): "no such event: assignd",
    json.dumps(GOOD["iso"] | {"at": "yesterday"}): "at is neither ISO 8601 nor seconds since 1970: yesterday",
    json.dumps(GOOD["iso"] | {"at": "12:00"}): "at is neither ISO 8601 nor seconds since 1970: 12:00",
    json.dumps(
        GOOD["iso"] | {"at": 17 * 10**17}
    ): f"at is neither ISO 8601 nor seconds since 1970: {17 * 10**17}",
    json.dumps(GOOD["iso"] | {"at": 1e20}): "at is neither ISO 8601 nor seconds since 1970: 1e+20",
    json.dumps(GOOD["iso"] | {"at": "9999-12-31T23:59:59-12:00"}): (
        "at is neither ISO 8601 nor seconds since 1970: 9999-12-31T23:59:59-12:00"
    ),
    json.dumps(GOOD["iso"] | {"at": None}): "at is missing",
    json.dumps(GOOD["iso"] | {"group": ""}): "group is missing",
    json.dumps({**GOOD["iso"], "consumer": None}): "consumer is missing",
    json.dumps(GOOD["iso"] | {"generation": "seven"}): "a field is not of its type",
    json.dumps(GOOD["number"] | {"partitions": ["t-0", "t"]}): "a partition that is not topic-number",
    json.dumps(GOOD["number"] | {"partitions": ["t-99999999999"]}): "a partition that is not topic-number",
    "2024-01-02 03:04:05,678 " + JAVA + ", orders": UNLIKE,
    "03:04:05.678 [main] " + JAVA: UNDATED,
    JAVA: "no date and time that we understand",
    "2024-13-02 03:04:05,678 " + JAVA: "no date and time that we understand",
    "2024-01-02 03:04:05,678 [Consumer clientId=a, groupId=g] Successfully joined group with generation x": (
        "begins like a line of this source that we know, and goes on otherwise"
    ),
}

NOBODY = [
    "2024-01-02 03:04:05,678 INFO nothing to see",
    '{"level": "info", "message": "an order"}',
    '{"truncated',
    "",
    "   ",
    "2024-01-02 03:04:05,678 [Consumer clientId=a, groupId=null] Cluster ID: manual assignment has no group",
    "2024-01-02 03:04:05,678 [Consumer clientId=a, groupId=g] Found no committed offset for partition t-0",
]


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    texts = [*LAYOUTS.values(), *map(json.dumps, GOOD.values()), *BAD, *NOBODY]
    log = tmp_path_factory.mktemp("lines") / "app.log"
    log.write_bytes("\r\n".join(texts).encode())
    logs = local.read([str(log)])
    events = sorted(logs.events, key=lambda row: (row.line, row.topic or "", row.partition or 0))
    return texts, events, logs.malformed, logs.lines


def stamp(row):
    """To the millisecond."""
    return datetime.fromtimestamp(row.at // 1000 / 1000, UTC)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_any_layout_with_a_date(found, layout):
    texts, events, *_ = found
    rows = [row for row in events if row.line == texts.index(LAYOUTS[layout]) + 1]
    assert [(row.topic, row.partition) for row in rows] == [("a.b-c_d", 0), ("orders", 11)]
    assert {(stamp(row), row.kind, row.group, row.consumer) for row in rows} == {
        (AT, "assigned", "billing", f"app-1@{ORIGINS.get(layout, 'app.log')}")
    }


@pytest.mark.parametrize("name", GOOD)
def test_our_own_log(found, name):
    texts, events, *_ = found
    line = GOOD[name]
    rows = [row for row in events if row.line == texts.index(json.dumps(line)) + 1]
    assert {(stamp(row), row.kind, row.group, row.source) for row in rows} == {
        (AT, line["event"], "g", "events")
    }
    assert [row.topic for row in rows] == {"topics": ["a-1", "b"], "number": ["t"]}.get(name, [None])
    assert {(row.generation, row.consumer) for row in rows} == {
        (line.get("generation"), line.get("consumer"))
    }


def test_malformed_lines_say_why_and_where(found):
    texts, _, malformed, _ = found
    assert {(row.line, row.why) for row in malformed} == {
        (texts.index(line) + 1, why) for line, why in BAD.items()
    }
    assert {row.line: row.text.rstrip("\r") for row in malformed} == {
        texts.index(line) + 1: line for line in BAD
    }


def test_every_line_is_counted(found):
    texts, _, _, lines = found
    counts = {row.source: (row.lines, row.recognised) for row in lines}
    assert sum(of_source for of_source, _ in counts.values()) == len(texts)
    assert counts["events"][1] == len(GOOD)
    assert counts["java"][1] == len(LAYOUTS)
    assert counts[None] == (len(NOBODY) - 2, 0)


def test_kinds_zones_dates_rotation_and_long_lists():
    members = ", ".join(
        f"m{i}=Assignment(partitions=[{', '.join(f't-{p}' for p in range(i))}])" for i in range(3)
    )
    prefix = "[Consumer clientId=c, groupId=g] "
    many = ", ".join(f"t-{p}" for p in range(9999))
    rows = [
        ("/logs/h1/app.log.2", 1, f"03:04:05.678 {prefix}Successfully joined group with generation 4"),
        ("/logs/h1/app.log", 1, f"03:04:06.678 {prefix}Revoke previously assigned partitions t-0"),
        (
            "/logs/h1/app.log",
            2,
            f"03:04:07.678 {prefix}Finished assignment for group at generation 5: {{{members}}}",
        ),
        (
            "/logs/h2/app-2024-01-02.0.log.gz",
            1,
            f"03:04:05.678 {prefix}Lost previously assigned partitions t-0",
        ),
        ("/logs/h2/app-2024-01-02.0.log.gz", 2, f"03:04:08.678 {prefix}Cluster ID: x"),
        ("/logs/h2/app-2024-01-02.0.log.gz", 3, f"03:04:09.678 {prefix}Rebootstrapping with [a]"),
        ("/logs/h2/app-2024-01-02.0.log.gz", 4, f"03:04:10.678 {prefix}Cluster ID: x"),
        (
            "/logs/h3/a.log",
            1,
            f"03:04:05.678 {prefix}Setting newly assigned partitions: [{many}]",
        ),
    ]
    parser = LineParser("java", zone="Europe/Berlin", date="2024-01-02", parent="/logs/")
    for file, several in groupby(rows, key=itemgetter(0)):
        parser.content(file, [(number, text) for _, number, text in several])
    assert parser.malformed == []
    events = sorted(settle(parser.rows).events)
    assert {hour(row) for row in events} == {2}
    assert {row.consumer for row in events} == {"c@h1/app.log", "c@h2/app.log", "c@h3/a.log"}
    assert [row.generation for row in events if row.kind == "revoked"] == [4], "of the file before"
    assert [row.generation for row in events if row.kind == "lost"] == [None], "another host"
    plan = [(row.member, row.partition, row.generation) for row in events if row.kind == "planned"]
    assert sorted(plan, key=str) == [("m0", None, 5), ("m1", 0, 5), ("m2", 0, 5), ("m2", 1, 5)]
    assert [row.line for row in events if row.kind == "started"] == [2], "who rebootstraps does not start"
    assert len([row for row in events if row.kind == "assigned"]) == 9999
    other = LineParser("broker", date="2024-01-02")
    other.content("a.log", [(number, text) for _, number, text in rows])
    assert not other.rows
    assert not other.malformed


def hour(row):
    return datetime.fromtimestamp(row.at / 1e6, UTC).hour


def test_paths_and_kinds_that_there_are_not(tmp_path):
    log = tmp_path / "a.log"
    log.write_text("\n".join([GOOD_LINE, "oops", ""]))
    logs = local.read([str(log)], "events")
    assert [(row.line, row.why) for row in logs.malformed] == [(2, "not JSON")]
    with pytest.raises(ValueError, match="no kind of log is called 'jawa'"):
        local.read([str(log)], "jawa")
    with pytest.raises(NoInput, match=r"nothing-.*: no such file"):
        local.read([str(tmp_path / "nothing-*")])
    with pytest.raises(NoInput, match="no paths given"):
        local.read([])
