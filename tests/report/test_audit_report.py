"""The reports of an audit, on hand-made results: what they say, and that what a log says stays text."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path

import jsonschema
import pytest
from rebalance_verifier.base.text import columns
from rebalance_verifier.base.verdict import Exit, Verdict
from rebalance_verifier.pipeline.audit.diagnosis import BugLink
from rebalance_verifier.pipeline.audit.kernel.findings import CHECKS, Thresholds
from rebalance_verifier.pipeline.audit.records import LEVELS, FindingOwner, LogEvent, LogFinding, Recording
from rebalance_verifier.pipeline.audit.result import (
    Audited,
    AuditedGroup,
    AuditPlan,
    AuditSource,
    AuditTally,
    Clock,
    Malformed,
    Pause,
)
from rebalance_verifier.pipeline.audit.sources.reading import ENDLESS, Unread
from rebalance_verifier.pipeline.audit.sources.settling import LoggedClient, Note
from rebalance_verifier.pipeline.audit.tables import file_name
from rebalance_verifier.report.html import audit as audit_html
from rebalance_verifier.report.html.page import POLICY
from rebalance_verifier.report.terminal.audit import data, headline, render
from rebalance_verifier.traces import recordings

ROOT = Path(__file__).parents[2]
SCHEMAS = ROOT / "traces" / "schemas"
BEGAN = datetime(2026, 11, 21, 18, tzinfo=UTC)
HOSTILE = (
    "</pre><script>alert(1)</script><img src=x onerror=y> \x1b[31m\u202e\r\n::error::##[x]'\"&消" + "y" * 900
)


def finding(number=0, check="owned-twice", *, certain=True, **fields):
    places = tuple(
        LogEvent(at=BEGAN, kind="assigned", file=f"{who}.log", line=7 + number, consumer=who, generation=7)
        for who in ("orders-1", "orders-2")
    )
    made = LogFinding(
        id=f"{number:012x}", check=check, level=CHECKS[check].level, group="orders", topic="orders",
        partition=1,
        began=BEGAN, ended=BEGAN + timedelta(seconds=7.9), seconds=7.9,
        owners=(FindingOwner("orders-1", "m1", 7), FindingOwner("orders-2", None, 8)),
        skew=None if certain else 0.8, certain=certain, places=places, sentence="orders-1 is owned by two",
    )  # fmt: skip
    return replace(made, **fields)


def audited(*findings, out="out", level="liveness", **fields):
    """The result that has these findings and no others."""
    checks = dict.fromkeys(one.check for one in findings)
    mine = {check: [one for one in findings if one.check == check] for check in checks}
    made = Audited(
        plan=AuditPlan(paths=("logs",), out=Path(out), level=level),
        sources=(
            AuditSource(source="java", files=2, lines=90, recognised=80, events=120),
            AuditSource(source="", files=2, lines=10, recognised=0, events=0),
        ),
        files=2,
        events=120,
        tallies=tuple(
            AuditTally(
                check=c,
                findings=len(m),
                certain=sum(o.certain for o in m),
                groups=1,
                longest=max(o.seconds for o in m),
            )
            for c, m in mine.items()
        ),
        broken=1,
        groups=14,
        findings=findings,
        worst=(
            AuditedGroup(
                group="orders",
                consumers=2,
                partitions=3,
                events=120,
                rebalances=4,
                first="2026-11-21T18:00:00Z",
                last=None,
                settled=True,
                findings=len(findings),
            ),
        ),
        pauses=(Pause(group="orders", handovers=3, p50=0.1, p95=1.5, longest=7.9),),
        clocks=(Clock("a", -0.25, 0.01, 12),),
    )
    return replace(made, **fields)


LEFT = "; a rebalance left 1 partition without an owner for 7.9 s"


@pytest.mark.parametrize(
    ("found", "verdict", "line"),
    [
        (audited(), "CONFORMANT", "8 checks passed for 14 groups in 120 events"),
        (audited(finding(), finding(1, "stranded")), "VIOLATION", "2 findings in 1 of 14 groups"),
        (audited(finding(), level="safety"), "VIOLATION", "1 finding in 1 of 14 groups"),
        (
            audited(finding(), finding(1, certain=False), finding(2, "long-pause")),
            "VIOLATION",
            f"1 finding in 1 of 14 groups, 1 more within clock skew{LEFT}",
        ),
        (
            audited(finding(certain=False)),
            "INCONCLUSIVE",
            "1 finding, none beyond what the clocks may differ by",
        ),
        (
            audited(finding(certain=False), notes=(Note("clusters", "g", "", "..."),)),
            "INCONCLUSIVE",
            "1 name of groups on several clusters, 1 finding that may be of that",
        ),
        (
            audited(notes=(Note("mixed", "g", "a", "..."), Note("clusters", "g", "", "..."))),
            "INCONCLUSIVE",
            "1 client id of several processes, not separable, 1 name of groups on several clusters",
        ),
        (
            audited(finding(0, "long-pause"), finding(1, "stranded"), level="safety"),
            "CONFORMANT",
            f"8 checks passed for 14 groups in 120 events{LEFT}, 1 more that only informs",
        ),
        (audited(finding(0, "long-pause"), level="quality"), "VIOLATION", "1 finding in 1 of 14 groups"),
        (audited(events=0, groups=0), "INCONCLUSIVE", "nothing recognised in logs"),
        (
            audited(events=0, plan=AuditPlan(paths=("logs",), out=Path("out"), groups=("orders",))),
            "INCONCLUSIVE",
            "no event of orders in logs",
        ),
        (
            audited(events=0, absent=("nope",), others=("billing", "orders")),
            "INCONCLUSIVE",
            "no event of group 'nope': the logs have 'billing', 'orders'",
        ),
        (
            audited(absent=("biling",), others=("billing", "orders")),
            "INCONCLUSIVE",
            "no event of group 'biling': did you mean 'billing'? the logs have 'billing', 'orders'",
        ),
        (
            audited(stage="checking", failed="disk full"),
            "INCONCLUSIVE",
            "Spark failed while checking: disk full",
        ),
        (audited(stage="checking", interrupted=True), "INCONCLUSIVE", "interrupted while checking"),
        (
            audited(finding(), stage="saving traces", interrupted=True),
            "VIOLATION",
            "1 finding in 1 of 14 groups; not finished",
        ),
    ],
)
def test_the_first_line_is_the_verdict(found, verdict, line):
    assert headline(found) == f"{verdict}  {line}"
    assert found.verdict is Verdict[verdict]
    assert found.exit is (Exit.INTERRUPTED if found.interrupted else Exit[verdict])
    lines = render(found).splitlines()
    assert lines[0] == headline(found)
    assert lines[-1] == f"{verdict}, exit {int(found.exit)}"
    assert json.loads(json.dumps(data(found)))["verdict"] == verdict.lower()


def test_text_says_what_was_read_and_what_was_found(expected):
    bad = (Malformed("a.log", 7, "[2026-11-21 18:00", "no time"),)
    found = audited(
        finding(),
        finding(1, certain=False, ended=None, skew=0.8),
        malformed=3,
        first_malformed=bad,
        traces={f"{0:012x}": "out/traces/000000000000.json"},
    )
    expected(render(found))


def test_where_nothing_could_be_read_it_says_why():
    pipe = Unread("fifo.log", ENDLESS)
    found = audited(sources=(), files=0, events=0, groups=0, unread=(pipe,))
    assert f"  not read   fifo.log: {ENDLESS}" in render(found)


def test_only_the_first_twenty_are_shown_and_every_check_among_them():
    many = tuple(finding(n) for n in range(60))
    found = audited(finding(99, "stranded", id="f" * 12), *many)
    short, whole = render(found), render(found, verbose=True)
    assert short.count("7.9 s from") == 20
    assert whole.count("7.9 s from") == 61
    assert "and 41 more" in short
    assert "stranded: While the group is settled" in short


def test_why_an_audit_ended_early_is_said_beside_what_was_found():
    text = render(audited(finding(), stage="saving traces", failed="disk full"))
    assert text.startswith("VIOLATION  1 finding in 1 of 14 groups; not finished\n")
    assert "failed     Spark, while saving traces: disk full" in text


def test_what_is_in_the_latest_run_is_shown_by_its_id():
    one = finding(id="0123456789ab")
    text = render(audited(one, out=".rebalance/20261121T180000Z", traces={one.id: "x.json"}))
    assert "show       rebalance show 0123456789ab\n" in text


def test_given_clock_skew_is_said_instead_of_the_estimate():
    plan = AuditPlan(paths=("logs",), out=Path("out"), thresholds=Thresholds(clock_skew=2.0))
    text = render(audited(plan=plan))
    assert "taken to differ by at most 2.0 s (--clock-skew)" in text
    assert "behind" not in text


def hostile(out="out"):
    owners = (FindingOwner(HOSTILE, HOSTILE, 7), FindingOwner(None, None, None))
    places = (
        LogEvent(at=BEGAN, kind=HOSTILE, file=HOSTILE, line=7, consumer=HOSTILE),
        LogEvent(at=BEGAN, kind="x", file="f", line=1),
    )
    one = finding(group=HOSTILE, topic=HOSTILE, owners=owners, places=places, sentence=HOSTILE)
    return audited(
        one,
        out=out,
        malformed=1,
        first_malformed=(Malformed(HOSTILE, 1, HOSTILE, HOSTILE),),
        worst=(
            AuditedGroup(
                group=HOSTILE,
                consumers=1,
                partitions=1,
                events=1,
                rebalances=1,
                first=None,
                last=None,
                settled=None,
                findings=1,
            ),
        ),
        pauses=(Pause(group=HOSTILE, handovers=1, p50=None, p95=None, longest=None),),
        clocks=(Clock(HOSTILE, 0.0, None, 1), Clock("b", None, None, 0)),
        sources=(AuditSource(source=HOSTILE, files=1, lines=1, recognised=1, events=1),),
        failed=HOSTILE,
        stage="checking",
    )


@pytest.mark.parametrize("verbose", [False, True])
def test_hostile_text_stays_text(verbose):
    for line in render(hostile(), verbose=verbose).split("\n"):
        assert line.isprintable()
        assert not re.search(r"^::|##\[", line)
        assert columns(line) <= 400


class Tags(HTMLParser):
    """What a browser would see."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.open: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def page(found):
    tags, text = Tags(), audit_html.render(found)
    tags.feed(text)
    tags.close()
    assert tags.open == []
    return tags, text


def saved(found, out):
    """The same, with a trace for each finding."""
    made = []
    for one in found.findings:
        events = tuple(replace(event, topic=one.topic, partition=one.partition) for event in one.places)
        made.append(Recording(finding=one, rule="rule", source="source", events=events))
    paths = {one.finding.id: str(recordings.save(one, out / "traces")) for one in made}
    return replace(found, plan=replace(found.plan, out=out), traces=paths, recordings=tuple(made))


def test_html_has_all_and_asks_for_nothing(tmp_path):
    found = saved(audited(finding(), finding(1, "stranded", certain=False)), tmp_path)
    tags, text = page(found)
    assert tags.tags.count("script") == 1  # the page's own
    assert not {"link", "img", "iframe", "object", "form", "base"} & set(tags.tags)
    assert not {"src", "action", "ping"} & {name for name, _ in tags.attributes}
    assert "@import" not in text
    assert not re.search(r"url\((?!#)", text)
    policy = next(value for name, value in tags.attributes if name == "content" and "default-src" in value)
    assert policy.startswith(POLICY), "what the page would load, it may not"
    assert tags.tags.count("svg") == 2
    assert "two owners at one time" in text
    for expected in (
        "<b class=violation>VIOLATION</b>",
        "1 finding in 1 of 14 groups",
        "within clock skew of 800 ms",
        "orders-1.log:7, orders-2.log:7",
        "250 ms",
    ):
        assert expected in text


READ = (
    r"https://(issues\.apache\.org/jira/browse/KAFKA-\d+|cwiki\.apache\.org/confluence/display/KAFKA/KIP-.*)"
)


def test_its_links_are_those_of_checks_and_catalogue_and_give_nothing_away(tmp_path):
    bug = BugLink("J4", "orders-1", "java", "3.4.0", "3.4.1", "orders-1 missed one")
    found = saved(hostile(tmp_path), tmp_path)
    found = replace(found, diagnoses={found.findings[0].id: (bug,)}, clients=(
        LoggedClient(HOSTILE, f"https://evil.example/{HOSTILE}", "java", "https://evil.example", HOSTILE),
    ))  # fmt: skip
    tags, text = page(found)
    leads = [value for name, value in tags.attributes if name == "href" and value and value[0] != "#"]
    assert "https://issues.apache.org/jira/browse/KAFKA-14639" in leads
    assert all(re.fullmatch(READ, one) for one in leads), leads
    assert text.count("noreferrer") == len(leads)
    assert "evil.example" in text


def test_a_finding_says_what_it_is_what_to_do_and_what_the_log_says_of_the_clients(tmp_path):
    bug = BugLink("J4", "orders-1", "java", "3.4.0", "3.4.1", "orders-1 missed one")
    clients = (
        LoggedClient("orders", "orders-1", "java", "3.4.0", "cooperative-sticky"),
        LoggedClient("orders", None, "broker", None, None),
    )
    one, other = finding(), finding(1, "owned-by-zombie")
    found = replace(saved(audited(one, other), tmp_path), diagnoses={one.id: (bug,)}, clients=clients)
    text = page(found)[1]
    for expected in (
        "this is J4, fixed in 3.4.1",
        "orders-1 is of java 3.4.0, which has J4: upgrade to 3.4.1",
        "orders-1: java 3.4.0, cooperative-sticky",
        "no bug: a removed consumer",
        "<h2 id=clients>",
        "<td>not logged</td>",
    ):
        assert expected in text, expected
    assert "<h2 id=clients>" not in page(audited(one))[1]


def test_html_tells_the_incident_first_and_folds_the_tables(tmp_path):
    """One sentence, the picture and its names, the lines; then all findings and the tables."""
    one = finding()
    found = replace(saved(audited(one), tmp_path), pointers={one.id: "the plan of orders-1"})
    _, text = page(found)
    lead = text[text.index("class=lead") : text.index("<h2")]
    assert "A and B both read orders-1 of group orders" in lead
    assert "Why: the plan of A. Next: " in lead
    marks = ("class=lead", "<h2 id=charts>", "name here", "<svg", "All findings", "<h2 id=owned-twice>",
             "<h2 id=checks>", "<h2 id=groups>")  # fmt: skip
    assert [text.index(mark) for mark in marks] == sorted(text.index(mark) for mark in marks)
    assert text.count("<details open") == 1


def test_html_has_short_names_where_consumers_have_long_ones(tmp_path):
    one = finding()
    long = {owner.consumer: f"{owner.consumer}@a-service-of-a-team-with-a-name-7d9fbc5d4-{n}:application"
            for n, owner in enumerate(one.owners)}  # fmt: skip
    one = replace(
        one,
        owners=tuple(replace(owner, consumer=long[owner.consumer]) for owner in one.owners),
        places=tuple(replace(event, consumer=long.get(event.consumer)) for event in one.places),
        sentence=" and ".join(long.values()),
    )
    text = page(saved(audited(one), tmp_path))[1]
    shown = re.sub(r"<dd><ul>.*?</dd>", "", text)
    assert shown.count("a-service-of-a-team") == 2, "in the legend alone"
    assert "A and B" in text


def test_html_escapes_what_a_log_says(tmp_path):
    tags, text = page(saved(hostile(), tmp_path))
    assert tags.tags.count("script") == 1
    assert "img" not in tags.tags
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "&lt;script&gt;" in text


@pytest.mark.slow
def test_html_is_bounded(tmp_path, monkeypatch):
    long = "消" * 5000
    many = tuple(finding(n, sentence=long, group=long, topic=long) for n in range(1000))
    whole = page(saved(audited(*many[:60]), tmp_path))[1]
    assert whole.count("<details") == audit_html.MAX_CHARTS + 2
    assert "20 more are not drawn here" in whole
    assert len(page(audited(*many))[1].encode()) < audit_html.MAX_BYTES
    monkeypatch.setattr(audit_html, "MAX_BYTES", 1000)
    assert "<svg" not in page(saved(audited(*many[:5]), tmp_path))[1]


def schema():
    document = json.loads((SCHEMAS / "audit.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(document)
    return jsonschema.Draft202012Validator(document)


@pytest.mark.parametrize(
    "found",
    [
        audited(),
        audited(finding(), finding(1, "stranded", certain=False, ended=None, topic=None, partition=None)),
        hostile(),
        audited(events=0, sources=(), worst=(), pauses=(), clocks=()),
        Audited(
            plan=AuditPlan(paths=("logs",), out=Path("out"), data="s3a://x/y"),
            stage="starting Spark",
            interrupted=True,
        ),
    ],
)
def test_json_is_as_its_schema_says(found):
    schema().validate(json.loads(json.dumps(data(found))))


def test_json_schema_names_every_field():
    """Fields may be added, but not without a word about them."""
    found = audited(
        finding(doubt="a log is missing"), malformed=1, first_malformed=(Malformed("a", 1, "x", "y"),)
    )
    document, published = data(found), schema().schema
    assert list(document) == list(published["properties"])
    for name, kind in (
        ("read", "read"), ("checks", "check"), ("findings", "finding"), ("malformed", "malformed"),
        ("worst", "group"), ("pauses", "pause"), ("clocks", "clock"), ("thresholds", "thresholds"),
    ):  # fmt: skip
        one = document[name][0] if isinstance(document[name], list) else document[name]
        assert list(one) == list(published["$defs"][kind]["properties"]), name
    recorded = json.loads((SCHEMAS / "recording.schema.json").read_text())["$defs"]["finding"]
    assert list(document["findings"][0]) == [*recorded["properties"], "points_to", "bugs", "trace"]


@pytest.mark.parametrize("wrong", [{"schema": 2}, {"verdict": "fine"}, {"findings": [{}]}, {"exit": "1"}])
def test_json_schema_refuses(wrong):
    with pytest.raises(jsonschema.ValidationError):
        schema().validate({**data(audited(finding())), **wrong})


def test_all_checks_are_asked_the_gravest_first():
    levels = [check.level for check in AuditPlan(paths=("x",), out=Path("o")).chosen_checks]
    assert levels == sorted(levels, key=LEVELS.index)
    assert {check.id for check in AuditPlan(paths=("x",), out=Path("o")).chosen_checks} == set(CHECKS)
    assert [
        check.id for check in AuditPlan(paths=("x",), out=Path("o"), checks=("stranded",)).chosen_checks
    ] == ["stranded"]


def test_local_files_are_named_as_people_do(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert file_name(f"file:///{str(tmp_path)[1:]}/a%20b.log") == "a b.log"
    assert file_name(f"file:{tmp_path}/a.log") == "a.log"
    assert file_name(f"{tmp_path}/100%25.log") == "100%25.log"
    assert file_name("/elsewhere/a.log") == "/elsewhere/a.log"
    assert file_name("logs/100%25.log") == "logs/100%25.log"
    assert file_name("hdfs://n/a%20b") == "hdfs://n/a%20b"
