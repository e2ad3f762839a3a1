"""``make hour``: a random hour of recorded runs per client, judged, and asked of the model.

``python -m tools.hour`` plays ``rebalance record --scenario random`` with one seed after the other, for
``--seconds`` for each client on each cluster, into ``--into``; what is there already counts, so it goes on
where it was stopped. Then ``rebalance conform`` is asked of each recording, and everything is written to
docs/results/recorded-hour.md. ``python -m tools.hour DIR`` does that with recordings made before, in
directories CLIENT-CLUSTER-SEED. Exit 1 if something has no reviewed cause (``live/conformance/clients``),
of which the page says UNEXPLAINED, or was not decided; or if a run left
no recording.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rebalance_verifier.live.clients.record.judge import QuiescencePoint, judge
from rebalance_verifier.live.clients.record.request import Request
from rebalance_verifier.live.clients.record.request import clients as parsed
from rebalance_verifier.live.conformance.ask import ask
from rebalance_verifier.live.conformance.clients.table import DEVIATIONS, DIAGNOSES, diagnosis
from rebalance_verifier.live.conformance.clients.traits import Diagnosis, FindingContext
from rebalance_verifier.live.conformance.log import LogError, read
from rebalance_verifier.live.conformance.question import Choices, build_question
from rebalance_verifier.report.terminal import conformance

CLIENTS = ("confluent", "kafka-python", "aiokafka", "java:4.1.0")
CLUSTERS = ("mock", "kafka")
FIRST_SEED = {"kafka": 1000, "mock": 2000}
STEPS, MEMBERS, LONGEST = 16, 3, 300
"""Steps and members of a run; seconds after which one is given up."""

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "results" / "recorded-hour.md"
EXAMPLES = ROOT / "examples" / "recordings"
UNEXPLAINED = "UNEXPLAINED"


@dataclass(frozen=True, kw_only=True)
class HourRun:
    """One recording: who, where, which seed; ``report.json``, ``run.json`` and the events, as JSON.

    ``findings``: what the judge of today says.
    """

    path: Path
    client: str
    cluster: str
    seed: int
    report: Mapping[str, Any]
    run: Mapping[str, Any]
    events: Sequence[Mapping[str, Any]]
    findings: Sequence[Mapping[str, Any]]

    @property
    def kind(self) -> str:
        """The client without its version."""
        return self.client.partition(":")[0]

    @property
    def gating(self) -> list[Mapping[str, Any]]:
        """Its violations."""
        return [one for one in self.findings if one["level"] != "quality"]

    @property
    def rebalances(self) -> int:
        """Generations that some consumer joined."""
        return len({e["generation"] for e in self.events if e["event"] == "joined"})

    @property
    def command(self) -> str:
        """What plays its steps again."""
        return (
            f"rebalance record --cluster {self.cluster} --clients {self.client}:{MEMBERS} --scenario random "
            f"--seed {self.seed} --steps {STEPS}"
        )


# -- playing -------------------------------------------------------------------------------------------


def lane(client: str, cluster: str) -> str:
    """The beginning of the names of its directories."""
    return f"{client.replace(':', '_')}-{cluster}"


def refused(client: str, cluster: str) -> str:
    """Why a client is not recorded on a cluster, "" if it is."""
    return Request(cluster=cluster, clients=parsed(f"{client}:{MEMBERS}"), scenario="random").problem()


def play(clients: Sequence[str], clusters: Sequence[str], seconds: float, into: Path) -> None:
    """Record until each lane has ``seconds``; the lane with the fewest first, so that all grow alike."""
    lanes = [(one, cluster) for one in clients for cluster in clusters if not refused(one, cluster)]
    done = {one: _played(into, *one) for one in lanes}
    while True:
        short = {one: sum(times) for one, times in done.items() if sum(times) < seconds}
        if not short:
            return
        client, cluster = min(short, key=lambda one: (short[one], one))
        seed = FIRST_SEED[cluster] + len(done[client, cluster])
        left = sum(seconds - had for had in short.values())
        print(f"{client} on {cluster}, seed {seed}; about {left / 60:.0f} min to go", flush=True)
        done[client, cluster].append(_record(client, cluster, seed, into))


def _played(into: Path, client: str, cluster: str) -> list[float]:
    """Seconds of each run that is there, from the first seed on."""
    times = []
    for number in range(100_000):
        log = into / f"{lane(client, cluster)}-{FIRST_SEED[cluster] + number}.txt"
        if not log.exists():
            break
        times.append(float(log.read_text(encoding="utf-8").rpartition("seconds ")[2] or 0))
    return times


def _record(client: str, cluster: str, seed: int, into: Path) -> float:
    out = into / f"{lane(client, cluster)}-{seed}"
    argv = [sys.executable, "-c", "import sys; from rebalance_verifier.cli import main; sys.exit(main())"]
    argv += ["record", "--cluster", cluster, "--clients", f"{client}:{MEMBERS}", "--scenario", "random"]
    argv += ["--seed", str(seed), "--steps", str(STEPS), "--out", str(out)]
    began = time.monotonic()
    try:
        ran = subprocess.run(
            argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LONGEST
        )
        output = ran.stdout
    except subprocess.TimeoutExpired as error:
        output = (error.stdout or b"").decode(errors="replace") + f"\ngiven up after {LONGEST} s\n"
    took = time.monotonic() - began
    out.with_name(out.name + ".txt").write_text(f"{output}\nseconds {took:.1f}", encoding="utf-8")
    return took


# -- reading and asking --------------------------------------------------------------------------------


def recordings(roots: Iterable[Path]) -> Iterator[HourRun]:
    """The recordings in directories, in the order of their names; those without a report are left out."""
    for root in roots:
        for path in sorted(report.parent for report in root.glob("*/report.json")):
            name, cluster, seed = path.name.rsplit("-", 2)
            report, run = _json(path / "report.json"), _json(path / "run.json")
            lines = (path / "events.jsonl").read_text(encoding="utf-8").splitlines()
            events = [json.loads(line) for line in lines]
            found = _judged(path, events, run["rests"])
            findings = report["findings"] if found is None else found
            yield HourRun(
                path=path,
                client=name.replace("_", ":"),
                cluster=cluster,
                seed=int(seed),
                report=report,
                run=run,
                events=events,
                findings=findings,
            )


def unrecorded(roots: Iterable[Path]) -> list[str]:
    """Names of runs that were played and left no report: given up, or nothing could start."""
    return [
        log.stem
        for root in roots
        for log in sorted(root.glob("*-*-*.txt"))
        if not (root / log.stem / "report.json").exists()
    ]


def _judged(path: Path, events: list[Any], rests: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]] | None:
    """What the judge of today finds; None where what was read was not kept."""
    reads = path / "reads.jsonl"
    if not reads.exists():
        return None
    lines = [*events, *(json.loads(line) for line in reads.read_text(encoding="utf-8").splitlines())]
    found = judge(lines, [QuiescencePoint(**rest) for rest in rests])
    return [{**asdict(one), "level": one.level} for one in found]


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def answers(runs: Sequence[HourRun], seconds: float, kept: Path) -> dict[str, dict[str, Any]]:
    """What `rebalance conform` says of each, by name; kept as JSON in a directory, and not asked again."""
    kept.mkdir(parents=True, exist_ok=True)
    found: dict[str, dict[str, Any]] = {}
    began, fresh = time.monotonic(), 0
    for number, run in enumerate(runs, 1):
        file = kept / f"{run.path.name}.json"
        if not file.exists():
            choices = Choices(seconds=seconds)
            try:
                answer = conformance.data(ask(build_question(read(run.path), choices), choices))
            except LogError as error:
                answer = {"verdict": "inconclusive", "why": str(error), "events": 0, "findings": {}}
            answer.pop("witness", None)
            file.write_text(json.dumps(answer, indent=1) + "\n", encoding="utf-8")
            fresh += 1
            left = (time.monotonic() - began) / fresh * (len(runs) - number)
            progress = f"{run.path.name}: {answer['verdict']} ({number} of {len(runs)}"
            print(f"{progress}, about {left / 60:.0f} min to go)", flush=True)
        found[run.path.name] = json.loads(file.read_text(encoding="utf-8"))
    return found


# -- the page ------------------------------------------------------------------------------------------


def diagnoses(run: HourRun) -> Iterator[tuple[Mapping[str, Any], Diagnosis | None]]:
    """Each violation of a run with its cause."""
    for finding in run.gating:
        yield (
            finding,
            diagnosis(
                FindingContext(
                    client=run.kind, cluster=run.cluster, finding=finding, events=run.events, run=run.run
                )
            ),
        )


def page(
    runs: Sequence[HourRun], answered: Mapping[str, Mapping[str, Any]], out: Sequence[HourRun] = ()
) -> tuple[str, int]:
    """The page, and how much in it is unexplained; ``out``: recordings that do not count."""
    lanes: dict[tuple[str, str], list[HourRun]] = defaultdict(list)
    for run in runs:
        lanes[run.client, run.cluster].append(run)
    open_ = 0
    rows, kinds = [], defaultdict[tuple[str, str, str, str], list[tuple[HourRun, Mapping[str, Any]]]](list)
    for (client, cluster), several in lanes.items():
        minutes = sum(run.report["seconds"] for run in several) / 60
        verdicts = Counter(answered[run.path.name]["verdict"] for run in several)
        found = sum(bool(answered[run.path.name].get("findings")) for run in several)
        cells = [client, cluster, len(several), f"{minutes:.1f}", sum(run.rebalances for run in several)]
        cells += [sum(bool(run.gating) for run in several), verdicts["conformant"] - found, found]
        cells += [verdicts["violation"], verdicts["inconclusive"]]
        rows.append(f"| {' | '.join(map(str, cells))} |")
        for run in several:
            for finding, why in diagnoses(run):
                kinds[client, cluster, finding["check"], why.id if why else UNEXPLAINED].append(
                    (run, finding)
                )
                open_ += why is None
    mismatches = [run for run in runs if answered[run.path.name]["verdict"] != "conformant"]
    open_ += len(mismatches)
    text = [_HEAD, *rows, "", *_left_out(out), "## Violations", "", _VIOLATIONS, *_violations(kinds), ""]
    text += ["## Their causes", "", *_diagnoses({key[3] for key in kinds}), ""]
    text += ["## What the model needs to explain them", "", _CONFORMANCE, *_deviations(runs, answered), ""]
    text += ["## Runs that are not explained, or not yet", "", *_mismatches(mismatches, answered), ""]
    text += ["## Every run with a violation", "", *_runs(run for run in runs if run.gating)]
    return "\n".join(text) + "\n", open_


_HEAD = """# A random hour of recorded runs per client

Made by `make hour` (`python -m tools.hour`): three consumers run `--scenario random` with 16 steps a run. They run on librdkafka's mock cluster and on Apache Kafka 4.1.0, for the minutes in the table. Each recording was judged by [`rebalance record`](../how-to/record-real-clients.md) and asked of the model by [`rebalance conform`](../explanation/conformance.md). The steps of a seed are always the same, the timing of the clients is not. So a violation that is a race may take several runs to come again.

| client | cluster | runs | minutes | rebalances | runs with violations | explained by the profile | explained with findings | no run of the model | inconclusive |
|---|---|---|---|---|---|---|---|---|---|"""  # noqa: E501
_VIOLATIONS = """Violations of safety and liveness that `rebalance record` reports, by kind. The file plays the smallest run of its kind again; `rebalance record --again FILE`.

| client | cluster | check | cause | findings | runs | smallest | file |
|---|---|---|---|---|---|---|---|"""  # noqa: E501
_CONFORMANCE = """The model's member is the Java client's. Where a client does something else, `rebalance conform` has it as a step of its own, with its reason (`live/conformance/clients/`). A run that needs one is explained, and says so.

| client | finding | what it does | what shows it | runs | times |
|---|---|---|---|---|---|"""  # noqa: E501


def _left_out(runs: Sequence[HourRun]) -> Iterator[str]:
    """Why recordings do not count: what they ask for is refused by now."""
    for (client, cluster), count in Counter((run.client, run.cluster) for run in runs).items():
        yield f"Left out: {client} on {cluster}, {count} runs ({refused(client, cluster)})."
        yield ""


def example(client: str, cluster: str, check: str, why: str) -> str:
    """The name of the file that plays the smallest run of a kind of violation."""
    text = why if why != UNEXPLAINED else check
    slug = "".join(c if c.isalnum() else "-" for c in text.lower())
    return f"hour-{client.partition(':')[0]}-{cluster}-{check}-{'-'.join(filter(None, slug.split('-')))}.json"


def _smallest(found: Sequence[tuple[HourRun, Mapping[str, Any]]]) -> HourRun:
    return min((run for run, _ in found), key=lambda run: (len(run.run["steps"]), len(run.events), run.seed))


def _violations(kinds: Mapping[tuple[str, str, str, str], Sequence[tuple[HourRun, Any]]]) -> Iterator[str]:
    for (client, cluster, check, why), found in sorted(kinds.items()):
        smallest, runs = _smallest(found), {run.path for run, _ in found}
        name = example(client, cluster, check, why)
        linked = f"[{name}](../../examples/recordings/{name})" if (EXAMPLES / name).exists() else "-"
        yield (
            f"| {client} | {cluster} | {check} | {why} | {len(found)} | {len(runs)} "
            f"| seed {smallest.seed} | {linked} |"
        )
    if not kinds:
        yield "| - | - | - | - | 0 | 0 | - | - |"


def _diagnoses(used: set[str]) -> Iterator[str]:
    yield "| cause | whose | what happens | what shows it |"
    yield "|---|---|---|---|"
    for one in DIAGNOSES:
        if one.id in used:
            yield f"| {one.id} | {one.blame} | {one.sentence}. | {one.evidence} |"
    if UNEXPLAINED in used:
        yield f"| {UNEXPLAINED} | ? | nobody has looked at it yet | - |"


def _deviations(runs: Sequence[HourRun], answered: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    taken: dict[str, list[int]] = defaultdict(list)
    for run in runs:
        for name, times in answered[run.path.name].get("findings", {}).items():
            taken[name].append(times)
    known = {deviation.id: deviation for deviation in DEVIATIONS}
    for name, times in sorted(taken.items(), key=lambda item: (-len(item[1]), item[0])):
        deviation = known.get(name)
        what = deviation.sentence if deviation else "a leader's decision that breaks this clause"
        shows = deviation.evidence if deviation else "`rebalance check kafka-python:cooperative-sticky`"
        whose = deviation.client if deviation else "kafka-python"
        yield f"| {whose} | {name} | {what} | {shows} | {len(times)} | {sum(times)} |"


def _mismatches(runs: Sequence[HourRun], answered: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    if not runs:
        yield "None."
        return
    yield "| run | verdict | explained | stops at | cause |"
    yield "|---|---|---|---|---|"
    for run in runs:
        answer = answered[run.path.name]
        where = answer.get("mismatch", {}).get("event") or answer.get("why", "")
        explained = f"{answer.get('longest', 0)} of {answer['events']}"
        why = UNEXPLAINED if answer["verdict"] == "violation" else "not decided: the search met its limit"
        yield f"| {run.path.name} | {answer['verdict']} | {explained} | {where} | {why} |"


def _runs(runs: Iterable[HourRun]) -> Iterator[str]:
    yield "| run | findings |"
    yield "|---|---|"
    for run in runs:
        counted = Counter((one["check"], why.id if why else UNEXPLAINED) for one, why in diagnoses(run))
        violations = "; ".join(f"{n} x {check} ({why})" for (check, why), n in sorted(counted.items()))
        yield f"| `{run.command}` | {violations} |"


def write_examples(runs: Sequence[HourRun]) -> None:
    """The smallest run of each kind of violation, as a file for ``record --again``; none of false alarms."""
    kinds: dict[tuple[str, str, str, str], list[tuple[HourRun, Any]]] = defaultdict(list)
    for run in runs:
        for finding, why in diagnoses(run):
            if why is None or why.blame in ("client", "mock cluster"):
                name = why.id if why else UNEXPLAINED
                kinds[run.client, run.cluster, finding["check"], name].append((run, finding))
    for key, found in sorted(kinds.items()):
        smallest = _smallest(found)
        kept = {name: smallest.run[name] for name in ("request", "steps")}
        text = json.dumps(kept, indent=1) + "\n"
        (EXAMPLES / example(*key)).write_text(text, encoding="utf-8")


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "made", nargs="*", type=Path, metavar="DIR", help="recordings made before; none are played"
    )
    parser.add_argument("--seconds", type=float, default=1800, help="for each client on each cluster (1800)")
    parser.add_argument("--clients", nargs="+", default=CLIENTS)
    parser.add_argument("--clusters", nargs="+", default=CLUSTERS)
    parser.add_argument("--into", type=Path, default=ROOT / ".rebalance" / "hour", metavar="DIR")
    parser.add_argument(
        "--answers", type=Path, metavar="DIR", help="where the model's answers are kept (INTO)"
    )
    parser.add_argument("--asking", type=float, default=60, metavar="SECONDS", help="for each recording (60)")
    parser.add_argument("--examples", action="store_true", help="write examples/recordings too")
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args()
    try:
        if not options.made:
            options.into.mkdir(parents=True, exist_ok=True)
            play(options.clients, options.clusters, options.seconds, options.into)
        made = list(recordings(options.made or [options.into]))
        runs = [run for run in made if not refused(run.client, run.cluster)]
        answered = answers(runs, options.asking, options.answers or options.into / "answers")
    except KeyboardInterrupt:
        print("interrupted; what was recorded and answered is kept, the next call goes on", file=sys.stderr)
        return 130
    if options.examples:
        write_examples(runs)
    text, open_ = page(runs, answered, [run for run in made if run not in runs])
    for name in unrecorded(options.made or [options.into]):
        print(f"{name} left no report: see {name}.txt", file=sys.stderr)
        open_ += 1
    if not runs:
        print("no recordings: nothing was shown", file=sys.stderr)
        open_ += 1
    options.page.parent.mkdir(parents=True, exist_ok=True)
    options.page.write_text(text, encoding="utf-8")
    print(f"{options.page}: {len(runs)} runs; {open_} things have no cause, or were not decided")
    return int(open_ > 0)


if __name__ == "__main__":
    sys.exit(main())
