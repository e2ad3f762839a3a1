"""HTML pages for tests: what a browser would make of one, and results that are worth a page."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from importlib.resources import files
from typing import Any

from rebalance_verifier.base.verdict import Exit, Verdict
from rebalance_verifier.explore.groups.runs import SavedRun
from rebalance_verifier.explore.groups.scenarios import SCENARIOS, ScenarioSize
from rebalance_verifier.gate.search.plan import CheckPlan, SearchProfile
from rebalance_verifier.gate.search.result import (
    Along,
    ClauseResult,
    Finding,
    Result,
    Sample,
    Status,
    TargetInfo,
)
from rebalance_verifier.gate.search.search import check, describe
from rebalance_verifier.gate.targets.hosts.inside import InProcess
from rebalance_verifier.model.bugs.switches import switched
from rebalance_verifier.model.machine import Event
from rebalance_verifier.model.protocols import machine
from rebalance_verifier.model.values import (
    Cluster,
    Partitions,
    RebalanceProtocol,
    Subscription,
    TopicPartition,
)
from rebalance_verifier.properties.assignors.calls import AssignorCall, StatedClaim
from rebalance_verifier.properties.assignors.clause import Breach
from rebalance_verifier.properties.assignors.clauses import CLAUSES, TABLE
from rebalance_verifier.properties.assignors.scenarios import (
    Fault,
    FaultKind,
    Scenario,
    ScenarioMember,
    uniform,
)

HOSTILE = (
    "<script>alert(1)</script>",
    "\"'><img src=x onerror=alert(1)>",
    "</style></svg></main><h1>mine</h1>",
    "javascript:alert(1)",
    "a\nb\r\n\x1b[31m\x00",
    "\u202egnirts\u2066",
    "消費者" * 40,
    "x" * 3000,
    "&lt;b&gt;&amp;",
    "<section><h2 id=broken>mine</h2>",
)
"""Names that a member, a topic, a target or a message may have."""

COOPERATIVE = RebalanceProtocol.COOPERATIVE
TINY = SearchProfile(name="tiny", each=1, mixed=3, large=0, crowd=0, shrink=30)
STEPS = "application/octet-stream"
"""Kind of the script elements that hold steps, which no browser runs."""
VOID = {"meta", "br", "hr"}


class Page(HTMLParser):
    """Tags with their attributes, the text, the headings in order; elements have to be closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.headings: list[int] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        """All that is to be read."""
        return " ".join(self.texts)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        """The attributes of every element of a kind."""
        return [attributes for name, attributes in self.tags if name == tag]

    def values(self, attribute: str) -> list[str]:
        """Every value of an attribute."""
        return [found for _, attributes in self.tags if (found := attributes.get(attribute)) is not None]


def sound(text: str) -> Page:
    """The page, which is well formed, asks for nothing, runs nothing but its own script, and is in order for
    a screen reader."""
    page = Page(text)
    names = {tag for tag, _ in page.tags}
    assert not names & {"link", "img", "iframe", "object", "embed", "form", "base", "image", "use"}
    attributes = {name for _, found in page.tags for name in found}
    assert not [name for name in attributes if name.startswith("on")]
    assert not attributes & {"src", "srcset", "action", "xlink:href"}
    assert all(re.match(r"https?://|#", url) for url in page.values("href"))
    assert not re.search(r"@import|url\((?!#)", text)
    assert page.headings[0] == 1
    assert page.headings.count(1) == 1
    assert all(after - before <= 1 for before, after in zip(page.headings, page.headings[1:], strict=False))
    assert len(ids := page.values("id")) == len(set(ids))
    assert set(re.findall(r'href="?#([^"> ]+)', text)) <= set(ids)
    assert all(found.get("scope") in ("col", "row") for found in page.all("th"))
    regions = [found for _, found in page.tags if found.get("role") == "region"]
    assert all(found.get("tabindex") == "0" for found in regions)
    assert len(labels := [found["aria-label"] for found in regions]) == len(set(labels))
    assert page.all("html") == [{"lang": "en"}]
    assert len(page.all("main")) == 1
    policy = [
        m["content"] or "" for m in page.all("meta") if m.get("http-equiv") == "Content-Security-Policy"
    ]
    assert len(policy) == 1
    assert policy[0].startswith("default-src 'none'; ")
    own = re.findall("<script>(.*?)</script>", text, re.DOTALL)
    assert own == ["\n" + files("rebalance_verifier.report.html").joinpath("page.js").read_text("utf-8")]
    digest = base64.b64encode(hashlib.sha256(own[0].encode()).digest()).decode()
    assert re.findall("script-src ([^;]*)", policy[0]) == [f"'sha256-{digest}'"]
    assert [script.get("type") for script in page.all("script")][-1:] == [None]
    assert {script.get("type") for script in page.all("script")} <= {None, STEPS}
    assert all(char.isprintable() or char == "\n" for char in text)
    return page


def stepped(text: str) -> list[list[list[Any]]]:
    """The steps of each run in a page that can be stepped through."""
    packed = re.findall(rf"<script type={STEPS}>([^<]*)</script>", text)
    return [json.loads(zlib.decompress(base64.b64decode(one))) for one in packed]


@cache
def checked(*switches: str) -> Result:
    """A tiny check of the reference assignor, with mistakes or with none, in this process."""
    session = InProcess(switched("cooperative-sticky", switches))
    name = "+".join(("cooperative-sticky", *switches))
    return check(CheckPlan(profile=TINY), session, describe(name, session.hello))


def hostile(rounds: int = 4, members: int = 3, clauses: int = len(TABLE) - 4) -> Result:
    """A result in which every name is hostile, with a counterexample of this size of so many clauses."""
    names = [f"{HOSTILE[number % len(HOSTILE)]}{number}" for number in range(members)]
    topic = HOSTILE[0]
    partitions = [TopicPartition(topic, number) for number in range(members)]
    group = {
        name: Subscription(topics=(topic,), owned_partitions=(p,))
        for name, p in zip(names, partitions, strict=True)
    }
    claims = {name: StatedClaim((p,), 5) for name, p in zip(names, partitions, strict=True)}
    given: dict[str, Partitions] = {name: (p,) for name, p in zip(names, partitions, strict=True)}
    given |= {name: (*given[name], partitions[0]) for name in names}
    cluster = Cluster.of({topic: members})
    calls = tuple(
        AssignorCall(protocol=COOPERATIVE, cluster=cluster, group=group, claims=claims, assignment=given)
        for _ in range(rounds)
    )
    events = [(Fault(FaultKind.MISSED_SYNC, names[number % members]),) for number in range(rounds - 1)]
    joining = tuple(
        ScenarioMember(id=name, topics=(topic,), owned=(p,), generation=5)
        for name, p in zip(names, partitions, strict=True)
    )
    scenario = Scenario(
        protocol=COOPERATIVE,
        topics=uniform({topic: members}),
        members=joining,
        rounds=((), *events),
        dimensions=(HOSTILE[0],),
    )
    breach = Breach(
        summary=HOSTILE[0],
        because=HOSTILE,
        expected=HOSTILE[1],
        actual=HOSTILE[2],
        partitions=(partitions[0],),
    )
    found = Finding(
        clause=CLAUSES["assign/1"], protocol=COOPERATIVE, breach=breach, scenario=scenario, round=rounds,
        calls=calls, seed=0, number=1, found_size=(9, 9, 9, 9), confirmed=True,
        trace_id="0123abcd", path=HOSTILE[1],
    )  # fmt: skip
    rows = [
        ClauseResult(
            clause=clause,
            protocol=protocol,
            status=Status.VIOLATED,
            scenarios=10,
            broken=1,
            finding=replace(found, clause=clause, protocol=protocol),
        )
        for clause in TABLE[:clauses]
        for protocol in clause.protocols
    ]
    apart = (Status.KNOWN, Status.FLAKY, Status.FIXED, Status.UNTESTED)
    rows += [
        ClauseResult(clause=clause, protocol=COOPERATIVE, status=status, scenarios=10, note=HOSTILE[0])
        for clause, status in zip(TABLE[-4:], apart, strict=True)
    ]
    target = TargetInfo(
        spec=HOSTILE[0], name=HOSTILE[1], version=HOSTILE[2], language=HOSTILE[3], protocols=HOSTILE[:3],
        promises=HOSTILE[:3], homepage="javascript:alert(1)", issues="https://x/?<b>"
    )  # fmt: skip
    witnesses = dict.fromkeys(HOSTILE, 3)
    return Result(
        suite_version="0.1.0", target=target, profile=HOSTILE[0], seed=7, level="liveness",
        clauses=tuple(rows), scenarios=10, questions=100, seconds=1.0, witnesses=witnesses, missed=HOSTILE,
        coverage=(Along(protocol=COOPERATIVE, dimension=HOSTILE[0], scenarios=10, broken={"assign/1": 1},
        witnesses=witnesses),),
        samples=(Sample(HOSTILE[0], scenario, calls[:3], 1),),
        stale_known=HOSTILE, verdict=Verdict.VIOLATION, exit=Exit.VIOLATION,
    )  # fmt: skip


def long_run(length: int, members: int = 3) -> SavedRun:
    """A run of so many steps, in which consumers crash and come back all the time."""
    size = ScenarioSize(members=members, partitions=2, faults=("crash",), budget=length)
    setup = SCENARIOS["dynamic"].setup(size)
    built, events = machine(setup), list[Event]()
    state = built.initial[0]
    while len(events) < length:
        outcomes = list(built.outcomes(state))
        event, outcome = outcomes[7 * len(events) % len(outcomes)]
        events.append(event)
        state = built.apply(state, event, outcome)
    return SavedRun(setup=setup, clause="group/owner", events=tuple(events))
