"""Results of a check that nobody ran, for tests of the reports."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rebalance_verifier.base.verdict import Exit, Verdict
from rebalance_verifier.gate.search.result import ClauseResult, Finding, Result, Status, TargetInfo
from rebalance_verifier.model.values import Cluster, RebalanceProtocol, Subscription, TopicPartition
from rebalance_verifier.properties.assignors.calls import AssignorCall, StatedClaim
from rebalance_verifier.properties.assignors.clause import Breach
from rebalance_verifier.properties.assignors.clauses import CLAUSES
from rebalance_verifier.properties.assignors.scenarios import (
    AddMember,
    Leave,
    Scenario,
    ScenarioMember,
    uniform,
)

BROKEN_GROUP = (
    *("explore", "dynamic", "--members", "2", "--partitions", "1"),
    *("--switch", "prepare_not_repeated_after_reset"),
)
"""A command that finds a broken clause of a group within a second."""

EAGER, COOPERATIVE = RebalanceProtocol.EAGER, RebalanceProtocol.COOPERATIVE
HOSTILE = [
    "<b>&amp;\"'</b>]]>",
    "two\nlines\r\n::error::injected",
    "\x1b[31mred\x1b[0m\x00\x08\ufffe",
    "x" * 5000,
    "`" * 40 + "```",
    "| a | b |",
    "[click](javascript:alert(1)) https://evil.example @team <!--",
    "\u202egnirts\u2066",
    "lone \udc80 surrogate",
    "消費者" * 30,
    "##[error]old style",
    "%0A%25,:",
]


def tps(text):
    """``"t-0 u-1"`` -> partitions."""
    pairs = (word.rpartition("-") for word in text.split())
    return tuple(TopicPartition(topic, int(index)) for topic, _, index in pairs)


def call(counts, members, protocol=COOPERATIVE):
    """``members``: id -> (claims, generation, given); without ``given`` the member is not in the group."""
    group = {
        m: Subscription(topics=tuple(counts), owned_partitions=tps(claims), generation_id=generation)
        for m, (claims, generation, _) in members.items()
    }
    claims = {m: StatedClaim(tps(claims), generation) for m, (claims, generation, _) in members.items()}
    return AssignorCall(
        protocol=protocol,
        cluster=Cluster.of(counts),
        group=group,
        claims=claims,
        assignment={m: tps(g) for m, (_, _, g) in members.items()},
    )


def finding(clause_id, calls, at, breach, scenario=None, **fields):
    protocol = calls[0].protocol if calls else COOPERATIVE
    scenario = scenario or Scenario(
        protocol=protocol,
        topics=uniform({"t": 2}),
        members=(ScenarioMember(id="A", topics=("t",)),),
        rounds=((),) * max(1, len(calls)),
    )
    values: dict[str, Any] = {
        "seed": 7712,
        "number": 37,
        "found_size": (5, 9, 1, 7),
        "confirmed": True,
    } | fields
    return Finding(
        clause=CLAUSES[clause_id],
        protocol=protocol,
        breach=breach,
        scenario=scenario,
        round=at,
        calls=tuple(calls),
        **values,
    )


def granted_while_owned(**fields):
    """B is given t-1 in round 2 while A still owns it."""
    calls = (
        call({"t": 2}, {"A": ("", -1, "t-0 t-1")}),
        call({"t": 2}, {"A": ("t-0 t-1", 1, "t-0"), "B": ("", -1, "t-1")}),
        call({"t": 2}, {"A": ("t-0", 2, "t-0"), "B": ("t-1", 2, "t-1")}),
    )
    breach = Breach(
        summary="t-1 is granted to B while A still owns it",
        because=("A joined claiming t-1, generation 1", "assign() returned A: {t-0}  B: {t-1}"),
        expected="B without t-1; a second rebalance gives it",
        actual="B: t-1",
        partitions=tps("t-1"),
    )
    a, b = ScenarioMember(id="A", topics=("t",)), ScenarioMember(id="B", topics=("t",))
    scenario = Scenario(
        protocol=COOPERATIVE, topics=uniform({"t": 2}), members=(a,), rounds=((), (AddMember(b),))
    )
    saved = {"trace_id": "f3a91c22", "path": ".rebalance/failures/f3a91c22.json"}
    return finding("kip429/leader/4", calls, 2, breach, scenario, **saved | fields)


def row(clause_id, protocol=COOPERATIVE, status=Status.PASSED, **fields):
    return ClauseResult(
        clause=CLAUSES[clause_id], protocol=protocol, status=status, **{"scenarios": 300} | fields
    )


def result(*rows, **fields):
    target = TargetInfo(
        spec="acme:sticky",
        name="acme",
        version="1.4.2",
        language="python",
        protocols=("eager", "cooperative"),
        promises=("sticky",),
    )
    values: dict[str, Any] = {
        "suite_version": "0.1.0",
        "target": target,
        "profile": "ci",
        "seed": 7712,
        "level": "liveness",
        "clauses": rows,
        "scenarios": 300,
        "questions": 12345,
        "seconds": 12.34,
        "verdict": Verdict.CONFORMANT,
        "exit": Exit.CONFORMANT,
    }
    return Result(**values | fields)


def violated(**fields):
    broken = row("kip429/leader/4", status=Status.VIOLATED, broken=12, finding=granted_while_owned())
    return result(
        broken,
        row("assign/1"),
        row("kip429/converge/1", status=Status.KNOWN, note="https://example.org/1", broken=2),
        row("kip54/sticky/1", status=Status.UNSUPPORTED, note="not promised: sticky"),
        **{"verdict": Verdict.VIOLATION, "exit": Exit.VIOLATION} | fields,
    )


def hostile(name):
    """A result in which every text that a target can choose is ``name``."""
    calls = (call({name: 1}, {name: ("", -1, "")}), call({name: 1}, {name: ("", -1, "")}))
    calls[1].assignment[name] = calls[0].assignment["other" + name] = (TopicPartition(name, 0),) * 2
    breach = Breach(
        summary=name, because=(name, name), expected=name, actual=name, partitions=(TopicPartition(name, 0),)
    )
    scenario = Scenario(
        protocol=COOPERATIVE,
        topics=uniform({name: 1}),
        members=(ScenarioMember(id=name, topics=(name,)),),
        rounds=((Leave(name),), ()),
    )
    found = finding("assign/1", calls, 1, breach, scenario, trace_id="f3a91c22", path=name)
    return result(
        row("assign/1", status=Status.VIOLATED, finding=found),
        row("assign/6", status=Status.VIOLATED, finding=replace(found, clause=CLAUSES["assign/6"])),
        row("assign/2", status=Status.FIXED, note=name),
        row("assign/4", status=Status.UNTESTED, note=name),
        row("assign/5", status=Status.KNOWN, note=name),
        target=TargetInfo(
            spec=name,
            name=name,
            version=name,
            language=name,
            protocols=(name,),
            promises=(name,),
            homepage=name,
            issues=name,
        ),
        witnesses={name: 3},
        missed=(name,),
        stale_known=(name,),
        run_dir=name,
        verdict=Verdict.VIOLATION,
        exit=Exit.VIOLATION,
    )
