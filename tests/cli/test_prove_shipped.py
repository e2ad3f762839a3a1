"""``rebalance prove --release``: verdicts, what is shown of them, errors of use."""

from __future__ import annotations

import json
import signal
from dataclasses import replace
from typing import Any

import pytest
from rebalance_verifier.model.machine import Event
from rebalance_verifier.specs.classic.necessity import repairs
from rebalance_verifier.specs.classic.necessity.repairs import (
    Repair,
    ShippedFindings,
    ShippedRun,
    ShippedTheorem,
)
from rebalance_verifier.specs.classic.necessity.replay import Replay
from rebalance_verifier.specs.classic.vocabulary import VOCABULARY
from rebalance_verifier.specs.logic.bounded import SpecRun
from rebalance_verifier.specs.logic.prover import ProofVerdict
from rebalance_verifier.specs.logic.specification import Theorem

PAIR = "java-current,broker-current"
NOTHING: Any = None  # neither report looks at it

PLAYED = Replay(
    setup=NOTHING,
    events=(Event("start", 0, ""), Event("crash", 0, "")),
    clause="group/owner",
    sentence="t-0 is owned by A and by B",
    without="holds",
)
RUN = ShippedRun(
    variation="silent_static_claims_stale",
    mended=(),
    breaks=("invariants",),
    run=SpecRun(NOTHING, NOTHING, ()),
    replay=PLAYED,
)


def about(name: str, verdict: ProofVerdict, **more: Any) -> ShippedTheorem:
    theorem = Theorem(name=name, sentence="so it is", source="", vocabulary=VOCABULARY, cases=())
    return ShippedTheorem(theorem=theorem, verdict=verdict, **more)


def put(monkeypatch, static: ShippedTheorem, *, interrupted: bool = False) -> None:
    """The command finds this with static members, and everything proved without them."""

    def examine(protocol, *_: Any) -> ShippedFindings:
        one = about(static.theorem.name, ProofVerdict.PROVED) if protocol.dynamic else static
        return ShippedFindings(protocol=protocol, theorems=(one,), idle=("x",), interrupted=interrupted)

    monkeypatch.setattr(repairs, "examine_shipped", examine)


FALLS = about(
    "exclusive ownership",
    ProofVerdict.REFUTED,
    run=RUN,
    repair=Repair(
        mended=("static_forgets_id", "silent_static_claims_stale"),
        needed={"silent_static_claims_stale": RUN},
    ),
)


@pytest.mark.slow
def test_a_run_refutes_it_and_the_repair_is_named(rebalance, monkeypatch, expected):
    put(monkeypatch, FALLS)
    ran = rebalance("prove", "--release", PAIR)
    assert ran.code == 1
    expected(ran.out)


@pytest.mark.slow
@pytest.mark.parametrize(("verdict", "code"), [(ProofVerdict.PROVED, 0), (ProofVerdict.UNKNOWN, 3)])
def test_it_is_proved_or_open(rebalance, monkeypatch, expected, verdict, code):
    put(monkeypatch, about("callbacks", verdict))
    ran = rebalance("prove", "--release", PAIR)
    assert ran.code == code
    expected(ran.out)


@pytest.mark.slow
def test_interrupted(rebalance, monkeypatch):
    put(monkeypatch, FALLS, interrupted=True)
    ran = rebalance("prove", "--release", PAIR)
    assert (ran.code, ran.err) == (130, "interrupted\n")
    assert "dynamic members" in ran.out
    assert "any members" not in ran.out  # nothing was asked of them yet


@pytest.mark.slow
def test_ctrl_c_comes_between_two_obligations(rebalance, monkeypatch):
    came: list[bool] = []

    def examine(protocol, limit, spread, report, names) -> ShippedFindings:
        signal.raise_signal(signal.SIGINT)
        came.append(False)  # nothing is broken off where it is
        with pytest.raises(KeyboardInterrupt):
            report(1)
        return ShippedFindings(protocol=protocol, theorems=(), idle=(), interrupted=True)

    before = signal.getsignal(signal.SIGINT)
    monkeypatch.setattr(repairs, "examine_shipped", examine)
    assert rebalance("prove", "--release", PAIR).code == 130
    assert came == [False]
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.slow
def test_as_json(rebalance, monkeypatch):
    put(monkeypatch, FALLS)
    document = json.loads(rebalance("prove", "--release", PAIR, "--format", "json").out)
    assert (document["verdict"], document["exit"]) == ("refuted", 1)
    assert [group["members"] for group in document["groups"]] == ["dynamic", "any"]
    (theorem,) = document["groups"][1]["theorems"]
    assert theorem["run"]["clause"] == "group/owner"
    assert len(theorem["run"]["events"]) == 2
    assert list(theorem["repair"]["needed"]) == ["silent_static_claims_stale"]
    why = {row["switch"]: row["why"] for row in document["beside"]}
    assert why["pending_sync_evicts_static"].startswith("coordinator/keep: ")
    assert "held_back" in [row["name"] for row in document["variations"]]


@pytest.mark.slow
def test_any_release_may_be_named(rebalance, monkeypatch):
    put(monkeypatch, replace(FALLS, run=None))
    newest = rebalance("prove", "--release", PAIR, "--format", "json").out
    named = rebalance("prove", "--release", "java-newest,broker-newest", "--format", "json").out
    assert json.loads(named)["variations"] == json.loads(newest)["variations"]
    old = rebalance("prove", "--release", "java-2.8.1,broker-3.0", "--format", "json").out
    assert "max_generation_only" in [row["name"] for row in json.loads(old)["variations"]]
    first = rebalance("prove", "--release", "java-2.8.0,broker-2.8.0", "--format", "json").out
    assert "prepare_not_repeated_after_reset" in [row["name"] for row in json.loads(first)["variations"]]
    last = rebalance("prove", "--release", "2.8,broker-2.8", "--format", "json").out  # the last of 2.8
    assert "prepare_not_repeated_after_reset" not in [row["name"] for row in json.loads(last)["variations"]]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (("--release", "java-current"), "name one client and one broker"),
        (("--release", f"{PAIR},java-2.4"), "name one client and one broker"),
        (("--release", "java-9,broker-current"), "no release of a client is called 'java-9'"),
        (("--release", PAIR, "--without", "once"), "--without does not go with --release"),
        (("--release", PAIR, "--necessity"), "--necessity does not go with --release"),
        (("--release", PAIR, "--model-steps", "5"), "--model-steps does not go with --release"),
        (("--release", PAIR, "--report", "html"), "--report does not go with --release"),
        (("--release", PAIR, "--theorem", "fermat"), "no theorem is called 'fermat'"),
    ],
)
def test_wrong_usage(rebalance, given, why):
    ran = rebalance("prove", *given)
    assert ran.code == 2
    assert why in ran.err


@pytest.mark.nightly
@pytest.mark.parametrize("jobs", [1, 2])
def test_the_newest_release_in_any_number_of_processes(rebalance, jobs):
    ran = rebalance("prove", "--release", PAIR, "--theorem", "exclusive-ownership", "--jobs", jobs)
    assert ran.code == 1
    assert "  exclusive ownership  refuted          refuted" in ran.out
    dynamic, static = ran.out.split("FIX for invariants, exclusive ownership: ")[1:]
    mended = {line.split(":")[0].strip() for line in dynamic.splitlines()[1:3]}
    assert mended == {"lost_generation_believed", "overtaken_join_believed"}
    assert "held_back: needed, a run breaks it with the others fixed" in static
