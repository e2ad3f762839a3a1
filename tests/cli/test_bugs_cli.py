"""``rebalance bugs``: every entry is listed with how it is shown, and shown when asked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rebalance_verifier.explore.engine import fast
from rebalance_verifier.explore.groups import matrix, reproduction
from rebalance_verifier.explore.groups.bugs import SHOWN, shown_by
from rebalance_verifier.explore.groups.reproduction import reproduce
from rebalance_verifier.explore.groups.runs import play
from rebalance_verifier.model.bugs import observed
from rebalance_verifier.model.bugs.catalogue import CATALOGUE
from rebalance_verifier.model.bugs.decisions import DECISIONS
from rebalance_verifier.model.bugs.profiles import BROKERS, CLIENTS
from rebalance_verifier.model.bugs.releases import CURRENT, NEWEST

from tests.live.code.played import needs_java
from tests.tiers import tiered


@pytest.mark.parametrize("entry", CATALOGUE.values(), ids=lambda entry: entry.id)
def test_every_entry_is_shown_or_says_why_not(entry):
    shown = list(shown_by(entry))
    assert shown
    assert {switch for switch, _, _ in shown} >= set(entry.switches)


def test_ctrl_c_keeps_what_was_made_again(rebalance, here, monkeypatch):
    runs = iter([reproduce(SHOWN["keep_owned_on_sync_rip"])])

    def once(shown):
        try:
            return next(runs)
        except StopIteration:
            raise KeyboardInterrupt from None

    monkeypatch.setattr(reproduction, "reproduce", once)
    ran = rebalance("bugs", "J6", "J9", "--report", "json", "--report-dir", "page")
    assert (ran.code, ran.err.splitlines()[-1]) == (130, "interrupted")
    (path,) = (here / "page").rglob("*.json")
    document = json.loads(path.read_text())
    assert (document["interrupted"], document["verdict"]) == (True, "inconclusive")
    assert [case["variant"] for case in document["cases"]] == ["keep_owned_on_sync_rip"]


def test_the_list_in_three_formats(rebalance):
    text = rebalance("bugs")
    assert text.code == 0
    document = json.loads(rebalance("bugs", "--format", "json").out)
    assert [entry["id"] for entry in document] == list(CATALOGUE)
    table = rebalance("bugs", "--format", "md").out
    for entry in CATALOGUE.values():
        assert f"\n{entry.id:<4} {entry.level:<4} {entry.title}\n" in f"\n{text.out}"
        assert f"| {entry.id} | {entry.level} | " in table
    assert max(map(len, text.out.splitlines())) <= 110
    newest = ".".join(map(str, CURRENT))
    for first in (text.out, rebalance("bugs", "J7", "--story").out):
        about = " ".join(first.split())[:240]
        assert "one bug at a time, in a group that is otherwise as specified" in about
        assert f"--matrix --release {newest},broker-{newest}" in about


def test_one_is_reproduced_on_the_model(rebalance):
    ran = rebalance("bugs", "j1", "--out", "runs")
    assert ran.code == 0
    for part in (
        "Claims survive",
        "KAFKA-12983",
        "Java 2.4.0 to 2.7.1",
        "group/owner",
        "t-0 is owned by A and by B",
    ):
        assert part in ran.out
    assert "--switch prepare_not_repeated_after_reset --go-on" in ran.out.replace("\n           ", " ")
    (saved,) = Path("runs").glob("*.json")
    assert rebalance("replay", saved).code == 1


@pytest.mark.slow
def test_the_command_that_it_names_finds_the_same(rebalance):
    argv = "explore dynamic --members 2 --partitions 1 --faults pause --max-faults 1"
    ran = rebalance(
        *argv.split(), "--switch", "prepare_not_repeated_after_reset", "--go-on", "--format", "json"
    )
    found = {v["clause"]: len(v["traces"][0]["steps"]) for v in json.loads(ran.out)["violations"]}
    shown = reproduce(SHOWN["prepare_not_repeated_after_reset"])
    assert shown is not None
    assert found["group/owner"] == len(shown.events)


@pytest.mark.slow
def test_one_of_an_assignor_is_found_by_the_check(rebalance):
    ran = rebalance("bugs", "Q3")
    assert ran.code == 0
    assert "+assign_leader_topics_only --level quality --profile smoke" in ran.out
    assert "VIOLATION assign/2" in ran.out


def test_a_switch_names_its_entry_and_a_story_runs_nothing(rebalance, monkeypatch, expected):
    monkeypatch.setattr(fast, "explore", None)
    ran = rebalance("bugs", "static_replace_drops_revocation", "J22", "--story")
    assert ran.code == 0
    expected(ran.out)


def test_the_matrix_runs_its_cells(rebalance):
    ran = rebalance("bugs", "Q2", "--matrix", "--release", "java-current", "--format", "json")
    assert ran.code == 0
    assert json.loads(ran.out) == [
        {
            "switch": "leave_on_empty_assignment",
            "release": "java-current",
            "kind": "client",
            "mark": "fine",
            "expected": False,
            "agrees": True,
            "observed": "open",
        }
    ]


def test_the_matrix_as_a_grid(rebalance, monkeypatch, expected):
    rows = [
        matrix.Cell("leave_on_empty_assignment", CLIENTS["java-3.5"], matrix.Mark.FINE, False),
        matrix.Cell("leave_on_empty_assignment", CLIENTS["kafka-python"], matrix.Mark.OTHERWISE, False),
        matrix.Cell("persist_selected_protocol_only", BROKERS["broker-3.0"], matrix.Mark.BREAKS, True),
    ]
    monkeypatch.setattr(matrix, "cells", lambda switches, profiles: iter(rows))
    ran = rebalance("bugs", "--matrix")
    assert ran.code == 0
    expected(ran.out)
    expected(rebalance("bugs", "--matrix", "--format", "md").out, "md")


def test_a_cell_that_differs_is_named_and_fails(rebalance, monkeypatch, expected):
    wrong = matrix.Cell("leave_on_empty_assignment", CLIENTS["java-3.5"], matrix.Mark.BREAKS, False)
    monkeypatch.setattr(matrix, "cells", lambda switches, profiles: iter([wrong]))
    ran = rebalance("bugs", "Q2", "--matrix")
    assert ran.code == 1
    expected(ran.out)


def test_what_was_observed_stands_behind_what_the_model_says(rebalance, monkeypatch):
    j1, u3 = "prepare_not_repeated_after_reset", "persist_selected_protocol_only"
    rows = [
        matrix.Cell(j1, CLIENTS["java-2.8.0"], matrix.Mark.BREAKS, True),
        matrix.Cell(j1, CLIENTS["java-2.8.1"], matrix.Mark.FINE, False),
        matrix.Cell(u3, BROKERS["broker-3.0"], matrix.Mark.BREAKS, True),
        matrix.Cell(u3, BROKERS["broker-current"], matrix.Mark.BREAKS, True),
    ]
    monkeypatch.setattr(matrix, "cells", lambda switches, profiles: iter(rows))
    ran = rebalance("bugs", "J1", "U3", "--matrix")
    assert ran.code == 0
    assert f"J1 {j1}  XX ..\n" in ran.out
    assert f"U3 {u3}  X  XX\n" in ran.out
    assert f"consumer {j1}: shown in 2.4.0 to 2.7.1, 2.8.0; absent in 2.7.2, 2.8.1 to {NEWEST}" in ran.out
    found = json.loads(rebalance("bugs", "J1", "U3", "--matrix", "--format", "json").out)
    assert [row["observed"] for row in found] == ["shown", "absent", None, "shown"]


def test_what_is_otherwise_is_explained_or_fails(rebalance, monkeypatch, expected):
    fine = matrix.Cell("sync_load_error_raw", BROKERS["broker-current"], matrix.Mark.BREAKS, True)
    hidden = matrix.Cell("unsorted_metadata", CLIENTS["java-2.8.0"], matrix.Mark.FINE, True)
    monkeypatch.setattr(matrix, "cells", lambda switches, profiles: iter([fine, hidden]))
    ran = rebalance("bugs", "U4", "J13", "--matrix")
    assert ran.code == 0
    expected(ran.out)
    monkeypatch.setattr(observed, "EXPLANATIONS", ())
    ran = rebalance("bugs", "U4", "J13", "--matrix")
    assert ran.code == 1
    assert "sync_load_error_raw is shown in coordinator 3.8.0 to 3.9.2\n" in ran.out
    expected(ran.out, "unexplained")


@needs_java
@pytest.mark.slow
def test_what_is_observed_now(rebalance):
    ran = rebalance("bugs", "J9", "--matrix", "--on", "code:2.8.0,2.8.1", "--format", "json")
    assert ran.code == 0
    assert {row["release"]: (row["mark"], row["observed"]) for row in json.loads(ran.out)} == {
        "java-2.8.0": ("breaks", "shown"),
        "java-2.8.1": ("fine", "absent"),
    }


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("Z9",), "no bug or switch is called 'Z9': `rebalance bugs` has them"),
        (("--release", "java-2.4"), "--release goes with --matrix"),
        (("--on", "code:newest"), "--on goes with --matrix"),
        (("--matrix", "--release", "x"), "no release of a client is called 'x'"),
        (("--matrix", "--on", "java:newest"), "code:RELEASE[,RELEASE...]"),
        (("--matrix", "--on", "code:4.x"), "--on: "),
        (("U2", "--matrix"), "nothing of that is shown on the model"),
        (("J1", "--story", "--format", "json"), "--format does not go with --story"),
    ],
)
def test_wrong_use_is_one_message(rebalance, argv, message):
    ran = rebalance("bugs", *argv)
    assert ran.code == 2
    assert message in ran.err
    assert ran.out == ""


FIRST = {shown.scenario: switch for switch, shown in reversed(list(SHOWN.items()))}
"""The first switch of each scenario; that all are found is a test of the explorer."""


@pytest.mark.slow
@pytest.mark.covering(by=lambda switch: SHOWN[switch].protocol)
@pytest.mark.parametrize("switch", tiered(DECISIONS, set(FIRST.values())))
def test_every_switch_gives_a_run_that_replays(switch):
    found = reproduce(SHOWN[switch])
    assert found is not None
    assert play(found).after == len(found.events)
