"""Files that somebody else wrote: nothing of them is run that was not asked for, none gets further than an
error in one line, and what they say stays text."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from rebalance_verifier.gate.search import counterexamples

from tests.command import Rebalance

SAVED = Path(__file__).parent / "saved"
ROOT = Path(__file__).parents[2]
TRACE = json.loads((ROOT / "docs" / "results" / "known" / "1b2e1d48.json").read_text("utf-8"))
TRACE["target"]["spec"] = "cooperative-sticky"
RUN = json.loads((SAVED / "two-owners.json").read_text("utf-8"))

ESCAPES = (
    "\x1b[2J\x1b]0;title\x07\x9b31m\u202e\r\n::error::forged\n##[error]"
    "\u2028CONFORMANT </script><svg onload=1>"
)
WHOLE = (
    "show",
    "show --format svg",
    "show --format mermaid",
    "show --format json",
    "replay",
    "replay --as-pytest out.py",
)


def changed(document: dict[str, Any], path: str, value: Any) -> str:
    """A document with another value at a path, as a file."""
    copy = json.loads(json.dumps(document))
    at, *keys = copy, *path.split(".")
    for key in keys[:-1]:
        at = at[int(key)] if isinstance(at, list) else at[key]
    at[int(keys[-1]) if isinstance(at, list) else keys[-1]] = value
    return json.dumps(copy)


def trace(path: str, value: Any) -> str:
    return changed(TRACE, path, value)


def run(path: str, value: Any) -> str:
    return changed(RUN, path, value)


FILES: dict[str, str | bytes] = {
    "empty": "",
    "null": "null",
    "list": "[]",
    "text": '"x"',
    "number": "1e999999",
    "no-number": trace("seed", 0).replace('"seed": 0', '"seed": NaN'),
    "infinite": trace("number", 0).replace('"number": 0', '"number": -Infinity'),
    "many-digits": trace("seed", 0).replace('"seed": 0', '"seed": ' + "9" * 5000),
    "deep": "[" * 100_000,
    "deep-object": '{"schema":' * 10_000,
    "deep-inside": trace("calls", 0).replace('"calls": 0', '"calls": ' + "[" * 10_000 + "]" * 10_000),
    "not-utf-8": b"\xff\xfe\x00",
    "binary": b"\x80\x04\x95cos\nsystem\n(S'touch run'\ntR.",
    "half": json.dumps(TRACE)[:500],
    "schema-negative": trace("schema", -1),
    "schema-true": trace("schema", True),
    "schema-huge": trace("schema", 10**30),
    "kind-is-a-list": json.dumps({**RUN, "kind": ["group run"]}),
    "clause-unknown": trace("clause", ESCAPES),
    "clause-is-a-list": trace("clause", ["assign/1"]),
    "target-none": trace("target", None),
    "spec-none": trace("target.spec", None),
    "spec-escapes": trace("target.spec", ESCAPES),
    "name-escapes": trace("target.name", ESCAPES),
    "summary-escapes": trace("summary", ESCAPES),
    "because-escapes": trace("because", [ESCAPES] * 3),
    "surrogate": trace("summary", "\ud800"),
    "member-escapes": trace("scenario.members.0.id", ESCAPES),
    "topic-escapes": trace("scenario.topics", {ESCAPES: 2}),
    "topics-list": trace("scenario.topics", [1]),
    "partitions-many": trace("scenario.topics", {"t": 10**12}),
    "partitions-negative": trace("scenario.topics", {"t": -1}),
    "partitions-true": trace("scenario.topics", {"t": True}),
    "owned-huge": trace("scenario.members.0.owned", [["t", 10**400]]),
    "members-none": trace("scenario.members", None),
    "members-twice": trace("scenario.members", TRACE["scenario"]["members"][:1] * 2),
    "rounds-numbers": trace("scenario.rounds", [[1]]),
    "protocol-unknown": trace("scenario.protocol", "lazy"),
    "calls-numbers": trace("calls", [1, 2]),
    "run-topics-many": run("setup.topics", {"t": 10**9}),
    "run-budget-text": run("setup.budget", "1"),
    "run-events-unknown": run("events", [{"action": ESCAPES, "who": "A", "choice": ""}]),
    "run-events-many": run("events", [RUN["events"][0]] * 10_000),
    "run-loop": run("loop", 10**20),
    "run-sentence": run("sentence", ESCAPES),
    "run-origin": run("origin", {"scenario": ESCAPES, ESCAPES: ESCAPES}),
    "run-setup-none": run("setup", None),
    "run-assignor-list": run("setup.assignor", ["x"]),
}


def harmless(text: str) -> bool:
    """Whether a terminal shows it and does nothing else, and no CI log obeys a line of it."""
    lines = text.split("\n")
    obeyed = [line for line in lines if line.startswith(("::", "CONFORMANT")) or "##[" in line]
    return not obeyed and all(line.isprintable() for line in lines)


@pytest.mark.parametrize("name", FILES)
def test_a_hostile_file_is_an_error_in_one_line_or_text(rebalance: Rebalance, here: Path, name: str) -> None:
    content = FILES[name]
    file = here / f"{name}.json"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    for command in WHOLE:
        ran = rebalance(*command.split(), file)
        assert ran.code in (0, 1, 2), (command, ran)
        assert "Traceback" not in ran.err
        assert harmless(ran.out), (command, ran.out)
        assert harmless(ran.err), (command, ran.err)
        assert {path.name for path in here.iterdir()} <= {file.name, "out.py", ".rebalance"}
        if (made := here / "out.py").exists():
            compile(made.read_bytes(), "out.py", "exec")
            made.unlink()


def test_there_are_forty_of_them() -> None:
    assert len(FILES) >= 40


# -- what a file names is not run ------------------------------------------------------------------------

FOREIGN = (
    "-- touch run",
    "-- ./evil",
    "wire -- touch run {address} {group}",
    "os:system",
    "json:loads",
    "tests.traces.published:hold_printed",
    "java:Evil@evil.jar",
    "kafka-python==1.4.7:sticky",
    "../evil:assign",
    "mine:assign",
    "client:kafka-python==0.0.1:sticky",
    "client:kafka-python:sticky",
)


@pytest.mark.parametrize("command", ["replay foreign.json", "replay foreign.json --as-pytest out.py"])
@pytest.mark.parametrize("spec", FOREIGN)
def test_what_a_trace_from_elsewhere_names_is_not_run(
    rebalance: Rebalance, here: Path, spec: str, command: str
) -> None:
    (here / "foreign.json").write_text(trace("target.spec", spec))
    (here / "mine.py").write_text("open('run', 'w')\n")
    ran = rebalance(*command.split())
    assert ran.code == 2
    assert "which no run of yours has signed here: if you know it, --target " in ran.out + ran.err
    assert {path.name for path in here.iterdir()} == {"foreign.json", "mine.py"}


@pytest.mark.parametrize("target", ["setup.assignor", "clause"])
@pytest.mark.parametrize("command", [("show",), ("replay",), ("replay", "--on", "confluent")])
def test_what_a_run_from_elsewhere_names_is_not_imported(
    rebalance: Rebalance, here: Path, command: tuple[str, ...], target: str
) -> None:
    (here / "evil_of_a_run.py").write_text(f"open({str(here / 'run')!r}, 'w')\n")
    named = "evil_of_a_run:assign"
    value: Any = f"own/{named}" if target == "clause" else {"target": named}
    saved = here / ".rebalance" / "failures"
    saved.mkdir(parents=True)
    (saved / "foreign.json").write_text(run(target, value))
    ran = rebalance(*command, saved / "foreign.json")
    assert ran.code == 2
    assert "which no run of yours has signed here: if you know it, --trust runs it" in ran.out + ran.err
    assert not (here / "run").exists()


def test_a_place_is_not_trusted_and_the_user_is(rebalance: Rebalance, here: Path) -> None:
    saved = here / ".rebalance" / "failures"
    saved.mkdir(parents=True)
    (saved / "0123abcd.json").write_text(trace("target.spec", "-- touch run"))
    ran = rebalance("replay")
    assert (ran.code, (here / "run").exists()) == (2, False)
    assert "--target '-- touch run' or --trust runs it" in ran.out
    for knowingly in (("--trust",), ("--target", "-- touch run")):
        assert "does not start" in rebalance("replay", "0123abcd", *knowingly).out
        assert (here / "run").exists()
        (here / "run").unlink()


@pytest.mark.parametrize(
    "text",
    [
        "[replay]\ntrust = true\n",
        "[replay]\ntarget = '-- touch run'\n",
        "[replay]\n'target=-- touch run' = true\n",
        "[replay]\ntraces = ['--trust']\n",
        "[replay]\ntraces = ['--target=-- touch run']\n",
    ],
)
def test_a_file_of_options_does_not_trust_for_the_user(rebalance: Rebalance, here: Path, text: str) -> None:
    saved = here / ".rebalance" / "failures"
    saved.mkdir(parents=True)
    (saved / "0123abcd.json").write_text(trace("target.spec", "-- touch run"))
    (here / "rebalance.toml").write_text(text)
    ran = rebalance("replay")
    assert (ran.code, (here / "run").exists()) == (2, False)
    assert "rebalance.toml: --" in ran.err
    assert "lets a file name what is run: type it" in ran.err


# -- no path leaves its directory, and no file is waited for ---------------------------------------------


def test_a_fifo_a_device_and_a_giant_are_no_traces(rebalance: Rebalance, here: Path) -> None:
    (here / "many").mkdir()
    os.mkfifo(here / "many" / "fifo.json")
    (here / "many" / "zero.json").symlink_to("/dev/zero")
    (here / "many" / "loop.json").symlink_to("loop.json")
    with (here / "many" / "giant.json").open("wb") as giant:
        giant.truncate(2**40)
    ran = rebalance("replay", "many")
    assert ran.code == 2
    assert ran.out.count("error    ") == 4
    assert rebalance("show", here / "many" / "fifo.json").code == 2


@pytest.mark.parametrize("name", ["../../evil", "/etc/passwd", "a/b", "..", "", "*", "\0", "x" * 5000, "~"])
def test_a_name_that_is_no_id_finds_nothing(rebalance: Rebalance, here: Path, name: str) -> None:
    ran = rebalance("show", name)
    assert ran.code == 2
    assert "Traceback" not in ran.err


def test_the_name_of_a_file_follows_from_what_is_in_it_alone(here: Path) -> None:
    (here / "trace.json").write_text(trace("target.name", "../../evil"))
    read = counterexamples.load(here / "trace.json")
    assert counterexamples.save(read, here / "kept").parent == here / "kept"
    assert len(read.id) == 8


LISTS = [
    "\x00",
    "**/**/**/**/**/**/**/**/**/**/**/**/x # slow",
    f"{ESCAPES} # x",
    "assign/1 # until=9999999999-01-01",
    "assign/1@" + "a+" * 5000 + " # x",
    "\n" * 100_000,
    "assign/1 # " + "x" * 10**6,
]


@pytest.mark.parametrize("text", LISTS)
def test_a_hostile_list_of_known_failures(rebalance: Rebalance, here: Path, text: str) -> None:
    (here / "known.txt").write_text(text, encoding="utf-8", newline="\n")
    ran = rebalance(
        "check",
        "range",
        "--profile",
        "smoke",
        "--clause",
        "assign/1",
        "--known-failing",
        "@known.txt",
        "--report",
        "",
    )
    assert ran.code in (0, 1, 2)
    assert "Traceback" not in ran.err
    assert all(line.isprintable() for line in (ran.out + ran.err).split("\n"))
