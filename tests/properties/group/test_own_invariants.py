"""Invariants of one's own are asked as the clauses are, and what is wrong with one is said of it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from rebalance_verifier.explore.groups.scenarios import ScenarioSize, scenario
from rebalance_verifier.model.protocols import machine
from rebalance_verifier.properties.group.own import (
    MAX_LETTERS,
    OWN,
    GroupView,
    InvariantError,
    clause_named,
    load,
    rules,
)

MODULE = '''
seen = []
def keeps(group):
    """Everything exists."""
    seen.append(group)
    return True
def wrong(group):
    """Nobody is ever down.

    And more."""
    return all(member.life == "up" for member in group.members.values())
def sentence(group):
    return f"{sorted(group.members)} {sorted(group.partitions)} {group.state}"
def fails(group):
    raise LookupError("lost")
def odd(group):
    return 3
def ends(group):
    raise SystemExit(0)
def fails_at_length(group):
    raise BaseException("lost\\n" * 1_000_000)
def many(group):
    return [0] * 1_000_000
def long(group):
    return "x" * 1_000_000
value = 4
'''


@pytest.fixture(autouse=True)
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    name = f"own_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [one for one in sys.path if one])
    return name


def at_start(reference: str, name: str = "dynamic") -> list[tuple[str, str]]:
    """What an invariant says of the initial state of a group of two members and two partitions."""
    setup = scenario(name).setup(ScenarioSize(members=2, partitions=2))
    built, asked = machine(setup), rules(setup, [reference]).about(f"{OWN}{reference}")
    return list(asked.in_state(lambda view: built.look(built.initial[0], view)))


def test_it_is_asked_of_a_state(module: str) -> None:
    assert at_start(f"{module}:keeps") == []
    (group,) = load(f"{module}:keeps").__globals__["seen"]
    assert isinstance(group, GroupView)
    assert group.partitions == {"t-0", "t-1"}
    assert group.state == "Dead"
    assert {name: (one.life, one.owns, one.holds) for name, one in group.members.items()} == {
        "A": ("down", frozenset(), frozenset()),
        "B": ("down", frozenset(), frozenset()),
    }


def test_owning_is_one_thing_and_holding_another(module: str) -> None:
    """A was removed and has not noticed."""
    setup = scenario("dynamic").setup(ScenarioSize(members=2, partitions=2))
    views = {"cluster": 0b11, "group": "Stable", "life A": "up", "owned A": 0b01, "held A": 0}
    views |= {"life B": "up", "owned B": 0b10, "held B": 0b10}
    asked = rules(setup, [f"{module}:keeps"]).about(f"{OWN}{module}:keeps")
    assert list(asked.in_state(views.__getitem__)) == []
    (group,) = load(f"{module}:keeps").__globals__["seen"]
    assert [(one.owns, one.holds) for one in group.members.values()] == [({"t-0"}, set()), ({"t-1"}, {"t-1"})]


def test_false_is_said_by_the_first_line_of_its_docstring(module: str) -> None:
    assert at_start(f"{module}:wrong") == [(f"own/{module}:wrong", "Nobody is ever down.")]


@pytest.mark.parametrize(("name", "state"), [("dynamic", "Dead"), ("consumer", "")])
def test_a_sentence_is_what_is_wrong(module: str, name: str, state: str) -> None:
    assert at_start(f"{module}:sentence", name)[0][1] == f"['A', 'B'] ['t-0', 't-1'] {state}"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("keep", "no function is called 'keep': did you mean keeps?"),
        ("value", "is no function"),
        ("fails", "fails: LookupError: lost"),
        ("odd", "returns 3: write True, False, None or a sentence"),
        ("ends", "fails: SystemExit: 0"),
        ("fails_at_length", "fails: BaseException: lost$"),
        ("many", r"returns \[0, 0, 0, 0, 0, 0, \.\.\.\]: write"),
    ],
)
def test_one_that_cannot_be_asked(module: str, name: str, message: str) -> None:
    with pytest.raises(InvariantError, match=message):
        at_start(f"{module}:{name}")


def test_a_long_sentence_is_cut(module: str) -> None:
    assert at_start(f"{module}:long")[0][1] == "x" * MAX_LETTERS


def test_a_module_that_ends_the_process_is_an_error(tmp_path: Path, module: str) -> None:
    """It would look like a conformant group: exit 0."""
    (tmp_path / f"ends_{module}.py").write_text("raise SystemExit(0)\n")
    with pytest.raises(InvariantError, match="SystemExit: 0"):
        load(f"ends_{module}:rule")


def test_a_module_that_is_not_there() -> None:
    with pytest.raises(InvariantError, match="ModuleNotFoundError: No module named 'no_such'"):
        load("no_such:thing")
    with pytest.raises(InvariantError, match="is not module:function"):
        load("no_such")


def test_clauses_by_name_and_nothing_is_imported() -> None:
    assert clause_named("group/owner").kind == "always"
    assert clause_named("follow-up rebalance").kind == "sometimes"
    assert clause_named("own/no_such:thing").source == "no_such:thing"
    with pytest.raises(KeyError):
        clause_named("no such")
