"""Every command on a group of every protocol, and on all that a command writes of one.

What a command does with a group is in ``model/protocols.toml``: each line of it is driven here, and a refusal
is one line that says why.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from rebalance_verifier.base import saved
from rebalance_verifier.cli import main
from rebalance_verifier.explore.groups.bugs import SHOWN
from rebalance_verifier.explore.groups.reproduction import reproduce
from rebalance_verifier.model.protocols import COMMANDS, PROTOCOLS
from rebalance_verifier.traces import runs

from tests.live.code.played import RELEASE, needs_java

SCENARIO = {"classic": "dynamic", "consumer": "consumer", "migration": "migration"}
BUG = {"classic": "J1", "consumer": "N1", "migration": "N13"}
SWITCH = {
    "classic": "prepare_not_repeated_after_reset",
    "consumer": "claims_reconciled_only",
    "migration": "no_barrier_for_withheld",
}
WAYS = {
    "classic": ("range", "cooperative-sticky"),
    "consumer": ("consumer", "range"),
    "migration": ("range", "consumer"),
}
CLAUSE = {"classic": "once", "consumer": "exclusive", "migration": "exclusive"}
GUARD = {"classic": "no_sent_generation_check", "consumer": "epoch_falls", "migration": "waits_for_nobody"}

RECORD = {
    "classic": "--scenario scale-out",
    "consumer": "--group-protocol consumer",
    "migration": "--scenario migration",
}

SIZE = "--members 2 --partitions 2 --max-faults 1"
SMALL = f"{SIZE} --faults crash"
LED = "--members 2 --partitions 2 --faults none --target cooperative-sticky"
PROVE = "prove --group-protocol PROTOCOL --jobs 1 --solver-units 1"
ROWS = "--scenarios 2 --slice 1 --out rows --jobs 1"
REPORTS = "--report all --report-dir reports"

TYPED = {
    "explore": f"explore SCENARIO {SMALL}",
    "explore --swarm": f"explore SCENARIO {SMALL} --swarm --walks 5",
    "explore --invariant": f"explore SCENARIO {SMALL} --invariant test_protocol_matrix_own:holds",
    "explore --target": f"explore SCENARIO {LED}",
    "explore --on": f"explore SCENARIO {SMALL} --on code:{RELEASE} --walks 1 --jobs 1",
    "upgrade": "upgrade --from OLD --to NEW --faults none",
    "prove": f"{PROVE} --theorem commit-fencing --model-steps 200",
    "prove --necessity": f"{PROVE} --necessity GUARD",
    "prove --without": f"{PROVE} --without CLAUSE --theorem commit-fencing --model-steps 0",
    "prove --release": f"{PROVE} --release {RELEASE} --theorem monotone-generations",
    "list obligations": "list obligations --of PROTOCOL",
    "list obligations --without": "list obligations --of PROTOCOL --without CLAUSE",
    "bugs": "bugs BUG --out bugs",
    "bugs --report": f"bugs BUG {REPORTS}",
    "bugs --matrix": f"bugs BUG --matrix --release {RELEASE},broker-{RELEASE}",
    "bugs --matrix --on": f"bugs BUG --matrix --on code:{RELEASE}",
    "conform --code": f"conform --code {RELEASE} --scenario SCENARIO --walks 1 --depth 10 --jobs 1",
    "campaign": f"campaign SCENARIO {SIZE} {ROWS}",
    "campaign --code": f"campaign SCENARIO --code {RELEASE} --depth 10 {ROWS}",
    "record --cluster mock": "record --cluster mock --clients confluent:2 --out recorded RECORD",
    "show": "show TRACE",
    "show --format svg": "show TRACE --format svg",
    "show --format mermaid": "show TRACE --format mermaid",
    "show --format itf": "show TRACE --format itf",
    "show --format json": "show TRACE --format json",
    "show --report": f"show TRACE {REPORTS}",
    "show --step": "show TRACE --step",
    "show --metrics": "show TRACE --metrics",
    "replay": "replay TRACE",
    "replay --report": f"replay TRACE {REPORTS}",
    "replay --on code:RELEASE": f"replay TRACE --on code:{RELEASE} --attempts 1 --out replays",
    "replay --on CLIENT": "replay TRACE --on confluent --attempts 1 --out replays",
}
"""How each line of the table is typed here."""

SLOW = ("upgrade", "explore --target", "bugs --matrix", "campaign")
"""Those that take some seconds; those on Kafka's code do, too."""

NIGHTLY = (
    *("prove", "prove --necessity", "prove --without", "prove --release"),
    *("replay --on CLIENT", "record --cluster mock"),
)
"""Those that take minutes for classic groups, or real clients; the refusals of the others cost nothing."""


def _is_code(command: str) -> bool:
    return "--on" in command.split() or "--code" in command


def _cases() -> Iterator[pytest.ParameterSet]:
    for command, refused in COMMANDS.items():
        for protocol in PROTOCOLS:
            marks = []
            if protocol not in refused and (command in (*SLOW, *NIGHTLY) or _is_code(command)):
                marks.append(pytest.mark.nightly)
            if protocol not in refused and _is_code(command) and "CLIENT" not in command:
                marks.append(needs_java)
            yield pytest.param(command, protocol, marks=marks)


@pytest.fixture(scope="module")
def traces(tmp_path_factory) -> dict[str, Path]:
    """A run of each protocol that breaks a clause, as ``bugs`` and ``explore`` save it."""
    folder, found = tmp_path_factory.mktemp("traces"), {}
    for protocol, switch in SWITCH.items():
        run = reproduce(SHOWN[switch])
        assert run is not None
        assert run.setup.protocol == protocol
        found[protocol] = runs.save(run, folder)
    return found


def _words(command: str, protocol: str, traces: dict[str, Path]) -> list[str]:
    old, new = WAYS[protocol]
    named = {
        "SCENARIO": SCENARIO[protocol], "PROTOCOL": protocol, "BUG": BUG[protocol], "OLD": old, "NEW": new,
        "CLAUSE": CLAUSE[protocol], "GUARD": GUARD[protocol], "TRACE": str(traces[protocol]),
        "RECORD": RECORD[protocol],
    }  # fmt: skip
    return [word for typed in TYPED[command].split() for word in named.get(typed, typed).split()]


@pytest.mark.parametrize(("command", "protocol"), list(_cases()))
def test_a_command_takes_a_group_or_says_in_a_line_why_not(command, protocol, traces, rebalance, monkeypatch):
    Path("test_protocol_matrix_own.py").write_text("def holds(group):\n    return bool(group.members)\n")
    monkeypatch.setattr("builtins.input", lambda _: (_ for _ in ()).throw(EOFError))
    ran = rebalance(*_words(command, protocol, traces))
    refusal = PROTOCOLS[protocol].refusal(command)
    if refusal and command.startswith("record "):  # which reports what it could not record
        assert (ran.code, ran.err) == (3, "")
        assert refusal in ran.out
    elif refusal:
        assert (ran.code, ran.out, ran.err.splitlines()[0]) == (2, "", f"rebalance: {refusal}")
        assert len(ran.err.splitlines()) <= 2  # with the usage
    else:
        assert ran.code in (0, 1, 3), ran.err
        assert ran.out.strip()
        assert "Error" not in ran.out + ran.err  # of a worker, say
        if "--report" in command:
            assert {path.name for path in Path("reports").iterdir()} == {*saved.REPORTS.values()} - {
                "report.txt"
            }
            assert ran.err == "reports: reports\n"


def test_every_line_of_the_table_is_driven_and_every_command_of_groups_is_there():
    assert TYPED.keys() == COMMANDS.keys()
    of_groups = {command.split()[0] for command in COMMANDS}
    others = {"check", "compare", "audit", "init"}  # of assignors, and of logs whatever is in them
    assert of_groups | others == {*main.COMMANDS}
    assert not of_groups & others


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_steps_of_a_run_can_be_left_and_written(protocol, traces, rebalance, monkeypatch):
    """Forward, back, another step than the run's, and the run from there as a file that replays."""
    other = {"classic": "2", "consumer": "2", "migration": "1"}[protocol]  # than the run's second step
    typed = iter(["", "", "b", "c", other, "w other.json", "q"])
    monkeypatch.setattr("builtins.input", lambda _: next(typed))
    ran = rebalance("show", traces[protocol], "--step")
    assert ran.code == 0, ran.err
    written = json.loads(Path("other.json").read_text())
    assert len(written["events"]) == 2
    assert rebalance("replay", "other.json").code in (0, 1)


@pytest.mark.slow
@needs_java
@pytest.mark.parametrize("protocol", ["consumer", "migration"])
def test_kafkas_coordinator_breaks_the_clause_of_the_run(protocol, traces, rebalance):
    """N1 and N13 are open in the newest release: its coordinator goes every step of the run."""
    ran = rebalance("replay", traces[protocol], "--on", f"code:{RELEASE}", "--out", "replays")
    assert ran.code == 1, ran.err
    assert ran.out.startswith("same ")
    assert f"coordinator {RELEASE}, clients of the model" in ran.out
    assert "unforced" not in ran.out
