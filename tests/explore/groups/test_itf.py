"""Traces for other tools: ITF as ADR-015 defines it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, IntEnum
from keyword import iskeyword
from random import Random
from typing import Any, NamedTuple

import pytest
from rebalance_verifier.explore.engine.plain import explore
from rebalance_verifier.explore.groups import itf
from rebalance_verifier.explore.groups.scenarios import SCENARIOS
from rebalance_verifier.explore.liveness.lasso import Lasso
from rebalance_verifier.explore.liveness.liveness import settles
from rebalance_verifier.model.machine import Event, Machine
from rebalance_verifier.model.protocols import machine
from rebalance_verifier.properties.group.rules import Rules

from tests.explore.liveness.toys_live import Row, lock, restless, table


class Claim(NamedTuple):
    generation: int
    partitions: frozenset[str]


@dataclass(frozen=True)
class Group:
    leader: int | None
    up: bool


class Phase(IntEnum):
    STABLE = 3


class Kind(Enum):
    COOPERATIVE = "c"


def test_values():
    assert itf.value(2**70) == {"#bigint": "1180591620717411303424"}
    assert itf.value(-1) == {"#bigint": "-1"}
    assert itf.value((True, ())) == {"#tup": [True, {"#tup": []}]}
    assert itf.value(Claim(3, frozenset("ba"))) == {
        "generation": {"#bigint": "3"},
        "partitions": {"#set": ["a", "b"]},
    }
    assert itf.value(Group(None, False)) == {"leader": {"tag": "Nothing", "value": "U_OF_UNIT"}, "up": False}
    assert itf.value((Phase.STABLE, Kind.COOPERATIVE)) == {"#tup": ["STABLE", "COOPERATIVE"]}
    assert itf.value([{"b": 1, "a": 2}]) == [{"#map": [["a", {"#bigint": "2"}], ["b", {"#bigint": "1"}]]}]
    with pytest.raises(TypeError, match=r"no word for 1\.5"):
        itf.value(1.5)


def test_sets_are_in_the_order_of_numbers():
    assert itf.value(frozenset({10, 9, -2})) == {
        "#set": [{"#bigint": "-2"}, {"#bigint": "9"}, {"#bigint": "10"}]
    }
    assert itf.value(frozenset({(10,), (9,)})) == {
        "#set": sorted([itf.value((10,)), itf.value((9,))], key=str)
    }


def well_formed(trace: dict[str, Any]) -> None:
    """What ADR-015 asks of a trace object."""
    assert json.loads(json.dumps(trace)) == trace
    assert set(trace) <= {"#meta", "params", "vars", "states", "loop"}
    for state in trace["states"]:
        assert set(state) == {"#meta", *trace["vars"]}
    assert 0 <= trace.get("loop", 0) < len(trace["states"])


def test_a_finite_trace():
    machine, _ = lock()
    run = (0, 1), (Event("hum", -1, "2"), Event("turn", 0))
    trace = itf.trace(machine, *run, names={"entered": "digits"}, description="by hand")
    well_formed(trace)
    assert trace == {
        "#meta": {"format": "ITF", "format-description": itf.ABOUT, "description": "by hand"},
        "vars": ["digits", "noise"],
        "states": [
            {"#meta": {"index": 0}, "digits": {"#bigint": "0"}, "noise": {"#bigint": "1"}},
            {
                "#meta": {"index": 1, "action": "hum", "choice": "2"},
                "digits": {"#bigint": "0"},
                "noise": {"#bigint": "3"},
            },
            {
                "#meta": {"index": 2, "action": "turn", "who": 0},
                "digits": {"#bigint": "1"},
                "noise": {"#bigint": "3"},
            },
        ],
    }
    with pytest.raises(ValueError, match="one name"):
        itf.trace(machine, *run, names={"entered": "noise"})
    with pytest.raises(ValueError, match="not enabled"):
        itf.trace(machine, (0, 1), (Event("shake"),))


def closes(machine: Machine, lasso: Lasso) -> dict[str, Any]:
    """The lasso as a trace; its loop, played once more by hand, ends where it began."""
    trace = itf.trace(machine, lasso.initial, lasso.stem + lasso.cycle, len(lasso.stem))
    well_formed(trace)
    assert trace["loop"] == len(lasso.stem)
    assert len(trace["states"]) == len(lasso.stem) + max(1, len(lasso.cycle))
    state = lasso.initial
    for event in lasso.stem + lasso.cycle:
        state = machine.step(state, event)
    last = {name: itf.value(one) for name, one in zip(machine.components, machine.normal(state), strict=True)}
    first = trace["states"][trace["loop"]]
    assert last == {name: first[name] for name in machine.components}
    return trace


def test_a_lasso_loops():
    machine, goal, _ = restless()
    lasso = settles(machine, goal, explore(machine, Rules())).lasso
    assert lasso is not None
    assert closes(machine, lasso)["#meta"]["closed-by"]["action"] == "join"
    joins = tuple(Event("join", who) for who in (0, 1, 0))
    crash = Lasso((1, 1, 1), (Event("crash"), joins[0]), joins[1:])
    assert closes(machine, crash)["states"][1]["group"] == {"#bigint": "1"}  # 2 as it was given
    spin = table(Row("spin", {0: (1,), 1: (2,), 2: (1,)}))
    turn = tuple(Event("spin", 0, choice) for choice in ("1", "2", "1"))
    trace = closes(spin, Lasso((0,), turn[:1], turn[1:]))
    assert [state["at"]["#bigint"] for state in trace["states"]] == ["0", "1", "2"]


def test_resting_loops_on_the_last_state():
    machine = table(Row("go", {0: (1,)}))
    trace = closes(machine, Lasso((0,), (Event("go", 0, "1"),), ()))
    assert trace["loop"] == 1


def objects(expression: Any) -> Iterator[dict[str, Any]]:
    """Every JSON object in an expression."""
    if isinstance(expression, dict):
        yield expression
    inner = expression.values() if isinstance(expression, dict) else expression
    for one in inner if isinstance(expression, dict | list) else ():
        yield from objects(one)


@pytest.mark.parametrize("name", ["dynamic", "consumer", "migration"])
def test_itf_py_can_make_a_class_of_each_record(name: str) -> None:
    """itf-py 0.5.0 makes a named tuple of each record and variant: names are its fields and its class, and no
    object stands for the value of a variant."""
    built = machine(SCENARIOS[name].setup())
    random, state = Random(0), built.initial[0]
    events: list[Event] = []
    while len(events) < 60 and (possible := list(built.outcomes(state))):
        event, outcome = random.choice(possible)
        events.append(event)
        state = built.apply(state, event, outcome)
    names = {name: name.replace(" ", "_") for name in built.components}
    found = list(objects(itf.trace(built, built.initial[0], tuple(events), names=names)["states"]))
    variants = [one for one in found if set(one) == {"tag", "value"}]
    assert variants
    assert not [one for one in variants if isinstance(one["value"], dict)]
    used = {key for one in found for key in one if not key.startswith("#")} | {one["tag"] for one in variants}
    assert [one for one in sorted(used) if not one.isidentifier() or iskeyword(one)] == []
