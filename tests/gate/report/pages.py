"""HTML pages for tests: what a browser would make of one, and results that are worth a page."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser

from rebalance.explore.scenarios import SCENARIOS, Size
from rebalance.gate.check import check, describe
from rebalance.gate.plan import Plan, Profile
from rebalance.gate.result import (
    Along,
    ClauseResult,
    Exit,
    Finding,
    Result,
    Sample,
    Status,
    TargetInfo,
    Verdict,
)
from rebalance.gate.runs import SavedRun
from rebalance.gate.session import InProcess
from rebalance.model.assignors import reference
from rebalance.model.machine import Event
from rebalance.model.protocol.group import machine
from rebalance.model.values import Cluster, Partitions, RebalanceProtocol, Subscription, TopicPartition
from rebalance.properties.calls import Call, Claim
from rebalance.properties.clauses import CLAUSES, TABLE, Breach
from rebalance.properties.scenarios import Fault, FaultKind, Member, Scenario, uniform

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
TINY = Profile("tiny", each=1, mixed=3, large=0, crowd=0, shrink=30)
VOID = {"meta", "br", "hr"}


class Page(HTMLParser):
    """Tags with their attributes, the text, the headings in order; elements have to be closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.headings: list[int] = []
        self.said: list[str] = []
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
        self.said.append(data)

    @property
    def text(self) -> str:
        """All that is to be read."""
        return " ".join(self.said)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        """The attributes of every element of a kind."""
        return [attributes for name, attributes in self.tags if name == tag]

    def values(self, attribute: str) -> list[str]:
        """Every value of an attribute."""
        return [found for _, attributes in self.tags if (found := attributes.get(attribute)) is not None]


def sound(text: str) -> Page:
    """The page, which is well formed, asks for nothing, runs nothing, and is in order for a screen reader."""
    page = Page(text)
    names = {tag for tag, _ in page.tags}
    assert not names & {"script", "link", "img", "iframe", "object", "embed", "form", "base", "image", "use"}
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
    assert "script-src" not in policy[0]
    assert all(char.isprintable() or char == "\n" for char in text)
    return page


@cache
def checked(*switches: str) -> Result:
    """A tiny check of the reference assignor, with mistakes or with none, in this process."""
    session = InProcess(reference("cooperative-sticky", switches))
    name = "+".join(("cooperative-sticky", *switches))
    return check(Plan(profile=TINY), session, describe(name, session.hello))


def hostile(rounds: int = 4, members: int = 3, clauses: int = len(TABLE) - 4) -> Result:
    """A result in which every name is hostile, with a counterexample of this size of so many clauses."""
    names = [f"{HOSTILE[number % len(HOSTILE)]}{number}" for number in range(members)]
    topic = HOSTILE[0]
    partitions = [TopicPartition(topic, number) for number in range(members)]
    group = {
        name: Subscription((topic,), owned_partitions=(p,)) for name, p in zip(names, partitions, strict=True)
    }
    claims = {name: Claim((p,), 5) for name, p in zip(names, partitions, strict=True)}
    given: dict[str, Partitions] = {name: (p,) for name, p in zip(names, partitions, strict=True)}
    given |= {name: (*given[name], partitions[0]) for name in names}
    cluster = Cluster.of({topic: members})
    calls = tuple(Call(COOPERATIVE, cluster, group, claims, given) for _ in range(rounds))
    events = [(Fault(FaultKind.MISSED_SYNC, names[number % members]),) for number in range(rounds - 1)]
    joining = tuple(
        Member(name, (topic,), owned=(p,), generation=5) for name, p in zip(names, partitions, strict=True)
    )
    scenario = Scenario(COOPERATIVE, uniform({topic: members}), joining, ((), *events), (HOSTILE[0],))
    breach = Breach(HOSTILE[0], HOSTILE, HOSTILE[1], HOSTILE[2], (partitions[0],))
    found = Finding(
        CLAUSES["assign/1"], COOPERATIVE, breach, scenario, rounds, calls, 0, 1, (9, 9, 9, 9), True,
        "0123abcd", HOSTILE[1],
    )  # fmt: skip
    rows = [
        ClauseResult(
            clause, protocol, Status.VIOLATED, 10, 1, replace(found, clause=clause, protocol=protocol)
        )
        for clause in TABLE[:clauses]
        for protocol in clause.protocols
    ]
    apart = (Status.KNOWN, Status.FLAKY, Status.FIXED, Status.UNTESTED)
    rows += [
        ClauseResult(clause, COOPERATIVE, status, 10, note=HOSTILE[0])
        for clause, status in zip(TABLE[-4:], apart, strict=True)
    ]
    target = TargetInfo(
        HOSTILE[0], HOSTILE[1], HOSTILE[2], HOSTILE[3], HOSTILE[:3], HOSTILE[:3], "javascript:alert(1)", "https://x/?<b>"
    )  # fmt: skip
    witnesses = dict.fromkeys(HOSTILE, 3)
    return Result(
        "0.1.0", target, HOSTILE[0], 7, "liveness", tuple(rows), 10, 100, 1.0, witnesses, HOSTILE,
        coverage=(Along(COOPERATIVE, HOSTILE[0], 10, {"assign/1": 1}, witnesses),),
        samples=(Sample(HOSTILE[0], scenario, calls[:3], 1),),
        stale_known=HOSTILE, verdict=Verdict.VIOLATION, exit=Exit.VIOLATION,
    )  # fmt: skip


def long_run(length: int, members: int = 3) -> SavedRun:
    """A run of so many steps, in which consumers crash and come back all the time."""
    size = Size(members=members, partitions=2, faults=("crash",), budget=length)
    setup = SCENARIOS["dynamic"].setup(size)
    built, events = machine(setup), list[Event]()
    state = built.initial[0]
    while len(events) < length:
        outcomes = list(built.outcomes(state))
        event, outcome = outcomes[7 * len(events) % len(outcomes)]
        events.append(event)
        state = built.apply(state, event, outcome)
    return SavedRun(setup, "group/owner", tuple(events))
