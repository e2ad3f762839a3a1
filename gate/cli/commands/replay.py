"""``rebalance replay TRACE --on CLIENT``: a run of the model played against real clients."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rebalance.gate.cli.console.terminal import ROOT, UsageError, positive, print_err, print_out, usage, whole
from rebalance.live.clusters.defaults import PATIENCE

if TYPE_CHECKING:
    from rebalance.explore.groups.runs import SavedRun
    from rebalance.live.consumers.member import ClientProfile
    from rebalance.live.replay.verdict import Replayed

REPLAYS = "replays"
KIND = "replay"
SCHEMA = 1

EXIT = {"same": 1, "another": 1, "none": 0, "inconclusive": 3}
"""The exit code of a verdict; of several the gravest counts, 1 before 3."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options to the parser of ``replay``."""
    live = parser.add_argument_group(
        "against real clients (runs of the group only)",
        "Plays the environment and the coordinator of a run that `rebalance explore` or `rebalance bugs` "
        "saved against real consumers, and asks whether they break the same clause: exit 1 if they break "
        "it or another one, 0 if none, 3 if the trace could not be forced to its end.",
    )
    live.add_argument("--on", metavar="CLIENT", help="confluent, kafka-python, aiokafka or java:VERSION")
    live.add_argument("--patience", type=positive, default=PATIENCE, metavar="S", help="how long a client "
                      f"gets for what the trace says that it does next ({PATIENCE:g})")  # fmt: skip
    live.add_argument("--attempts", type=whole, metavar="N", help="how many orders of member ids are tried "
                      "for the leader to decide as in the trace (all)")  # fmt: skip
    live.add_argument("--out", type=Path, metavar="DIR", help="where recordings go (.rebalance/replays)")


def run(options: argparse.Namespace, paths: Sequence[Path]) -> int:
    """Replay each of ``paths`` on real clients; the exit code."""
    from rebalance.gate.traces import runs

    profile = profile_of(options.on)
    codes = []
    for path in paths:
        try:
            codes.append(_one(runs.load(path), profile, options))
        except ValueError as error:
            raise usage(error) from error
    return next((code for code in (1, 3) if code in codes), 0)


def profile_of(name: str) -> ClientProfile:
    """The client that ``--on`` names. Raises UsageError."""
    from rebalance.live.consumers.member import PROFILES, ClientProfile

    client, _, version = name.partition(":")
    if client not in PROFILES:
        raise UsageError(f"--on: no client is called {client!r}; there are {', '.join(PROFILES)}")
    if version and client != "java":
        raise UsageError(f"--on: {client} runs in the release that is installed, not in {version!r}")
    if client == "java" and not version:
        raise UsageError("--on: which release of kafka-clients? --on java:4.1.0, for instance")
    return ClientProfile(client, version)


def _one(saved: SavedRun, profile: ClientProfile, options: argparse.Namespace) -> int:
    from rebalance.gate.cli.console.text import clean
    from rebalance.live.clusters.cluster import Unsupported
    from rebalance.live.processes.tools import ToolError
    from rebalance.live.replay.attempts import replay

    directory = options.out or ROOT / REPLAYS
    try:
        _make(directory)
    except OSError as error:
        raise UsageError(f"--out: {error}") from error
    try:
        result = replay(
            saved,
            profile,
            patience=options.patience,
            attempts=options.attempts,
            log_dir=directory,
            report_progress=print_err if options.verbose else lambda _: None,
        )
    except (ToolError, Unsupported) as error:
        raise UsageError(f"--on {profile}: {clean(str(error))}") from error
    try:
        path = save(saved, result, directory)
    except OSError as error:
        raise UsageError(f"--out: {error}") from error
    print_out("\n".join(describe(saved, result, verbose=options.verbose)))
    print_out(f"  saved    {path}")
    if result.interrupted:
        raise KeyboardInterrupt
    return EXIT[result.verdict]


def _make(directory: Path) -> None:
    from rebalance.gate.traces import files

    if directory.parent == ROOT:
        files.make_root(ROOT)
    directory.mkdir(parents=True, exist_ok=True)


def describe(saved: SavedRun, result: Replayed, *, verbose: int = 0) -> list[str]:
    """The verdict, and what it rests on."""
    from rebalance.gate.cli.console.text import clean, fold
    from rebalance.gate.traces.runs import run_id

    sentences = {
        "same": "breaks the same clause",
        "another": f"breaks {', '.join(dict.fromkeys(one.clause for one in result.broken))} instead",
        "none": "breaks nothing; every step of the trace was forced",
        "inconclusive": "breaks nothing that was asked, and not all of the trace could be forced or asked",
    }
    head = f"{result.verdict:<12} {run_id(saved)}  {saved.clause}  {result.version or result.client}"
    lines = [f"{head}: {sentences[result.verdict]}"]
    facts = [
        *(("breaks", f"{one.clause} at step {one.step}: {one.sentence}") for one in result.broken),
        *(("unforced", text) for text in result.unforced),
        *(("stopped", text) for text in [result.stopped] if text),
        *(("differs", text) for text in result.differs),
        *(("not asked", text) for text in [why_unobservable(result)] if text),
        (
            "forced",
            f"{result.done} of {result.steps} steps, member ids in the order {' '.join(result.naming)}",
        ),
    ]
    for label, text in facts:
        for index, line in enumerate(fold(clean(text), 98)):
            lines.append(f"  {label if index == 0 else '':<9} {line}")
    if verbose:
        lines.append("")
        for step in result.shown:
            lines.append(f"  {step['step']:>3} {clean(step['event'])}")
            lines += [f"        {clean(one)}" for one in step["seen"]]
        lines.append("")
    return lines


def why_unobservable(result: Replayed) -> str:
    """Why the trace's clause is none that a client can break here; "" for one that it can."""
    if result.observable:
        return ""
    if result.clause.startswith(("coordinator/", "group/size", "group/instance")):
        return f"{result.clause} is about the coordinator, which the trace plays"
    return f"{result.clause} does not show in what a client does during a run that ends"


def save(saved: SavedRun, result: Replayed, directory: Path) -> Path:
    """Write the recording as ``<id of the run>-<client>.json``. Raises OSError."""
    from rebalance.gate.traces.files import SUITE, dump, write
    from rebalance.gate.traces.runs import run_id

    document: dict[str, Any] = {
        "schema": SCHEMA,
        "kind": KIND,
        "suite": SUITE,
        "run": run_id(saved),
        "clause": saved.clause,
        "client": result.client,
        "version": result.version,
        "verdict": result.verdict,
        "naming": list(result.naming),
        "steps": result.steps,
        "done": result.done,
        "broken": [
            {"clause": one.clause, "step": one.step, "sentence": one.sentence} for one in result.broken
        ],
        "unforced": result.unforced,
        "stopped": result.stopped,
        "differs": result.differs,
        "shown": result.shown,
        "events": result.events,
        "frames": [json.loads(line) for line in result.frames],
    }
    name = f"{run_id(saved)}-{result.client.replace(':', '-')}.json"
    return write(directory / name, dump(document) + "\n")
