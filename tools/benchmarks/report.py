"""``python -m tools.benchmarks.report``: what HTML reports take, how large they are, how soon a browser shows
them, into report.md.

The counterexamples are hostile: markup in every name, and far larger than any that a search leaves behind.
Each row is a process of its own; with arguments (KIND STEPS MEMBERS), one row as JSON.
"""

from __future__ import annotations

import json
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

HERE = Path(__file__).parent

# what, steps, members
ROWS = (
    ("check", 100, 5),
    ("check", 10_000, 500),
    ("check", 100_000, 5_000),
    ("run", 100, 3),
    ("run", 10_000, 3),
    ("run", 100_000, 3),
    ("recording", 100, 5),
    ("recording", 10_000, 500),
    ("recording", 100_000, 5_000),
)
"""A run of the model has as many members as the model has letters for; 3 is what is searched."""

TARGET_SECONDS, TARGET_BYTES, TARGET_OPENS = 5.0, 5_000_000, 2.0

HEAD = """# HTML reports of hostile size

Made by `python -m tools.benchmarks.report` ({machine}, Python {python}). Markup in every name. *check*: one
broken clause; *run*: a run of the model, which has letters for names; *recording*: an audited log, its trace
read from disk. The targets are 5 s of a processor, 5 MB, and 2 s until Chromium has opened the page; *to the
end*: from the key to the last step of what can be stepped through. These two are seconds of the clock, of a
browser that runs.

| what | steps | members | CPU s | KB | peak memory MB | opens s | to the end s |
|---|---|---|---|---|---|---|---|"""


def check(steps: int, members: int) -> Callable[[], str]:
    """A check with one broken clause, whose counterexample has so many rounds."""
    from rebalance_verifier.report.html import check as html

    from tests.report.pages import hostile

    result = hostile(steps, members, clauses=1)
    return lambda: html.render(replace(result, clauses=result.clauses[1:]))


def run(steps: int, members: int) -> Callable[[], str]:
    """An exploration that found one run of so many steps."""
    from rebalance_verifier.explore.engine.search import merge
    from rebalance_verifier.explore.groups.exploration import ExplorationPlan, ExplorationViolation, Explored
    from rebalance_verifier.model.classic.group import machine
    from rebalance_verifier.report.html import exploration

    from tests.report.pages import HOSTILE, long_run

    one = long_run(steps, members)
    plan = ExplorationPlan(setup=one.setup, origin={"scenario": HOSTILE[0]})
    violation = ExplorationViolation(clause=one.clause, sentence=HOSTILE[1], runs=(one,), shortest=True)
    found = Explored(
        plan=plan, built=machine(one.setup), coverage=merge(()), violations=(violation,), unasked="not asked"
    )
    return lambda: exploration.render(found, {})


def recording(steps: int, members: int) -> Callable[[], str]:
    """An audit with one finding, among so many events of the group; its trace is read from disk."""
    from rebalance_verifier.pipeline.audit.records import FindingOwner, LogEvent, LogFinding, Recording
    from rebalance_verifier.pipeline.audit.result import Audited, AuditPlan, AuditSource
    from rebalance_verifier.report.html import audit
    from rebalance_verifier.traces import recordings

    from tests.report.pages import HOSTILE

    start, topic = datetime(2026, 1, 1, tzinfo=UTC), HOSTILE[0]
    names = [f"{HOSTILE[number % len(HOSTILE)]}{number}" for number in range(members)]
    events = tuple(
        LogEvent(
            at=start + timedelta(seconds=number),
            kind="assigned" if number // members % 2 == 0 else "revoked",
            file=HOSTILE[1],
            line=number,
            consumer=names[number % members],
            member=names[number % members],
            generation=number // members,
            topic=topic,
            partition=0,
        )
        for number in range(steps)
    )
    finding = LogFinding(
        id="0123456789ab", check="owned-twice", level="safety", group=HOSTILE[2], topic=topic, partition=0,
        began=start, ended=start + timedelta(seconds=9),
        seconds=9.0, owners=tuple(FindingOwner(name) for name in names[:2]), skew=None, certain=True,
        places=events[:2], sentence=HOSTILE[0],
    )  # fmt: skip
    directory = Path(tempfile.mkdtemp())
    path = recordings.save(
        Recording(finding=finding, rule=HOSTILE[0], source=HOSTILE[1], events=events), directory / "traces"
    )
    found = Audited(
        plan=AuditPlan(paths=(HOSTILE[0],), out=directory),
        sources=(AuditSource(source="java", files=1, lines=steps, recognised=steps, events=1),),
        findings=(finding,),
        traces={finding.id: str(path)},
    )
    return lambda: audit.render(found)


def measure(kind: str, steps: int, members: int) -> dict[str, float]:
    """CPU seconds of rendering, bytes of the page, peak memory with everything that was made before."""
    render = {"check": check, "run": run, "recording": recording}[kind](steps, members)
    began = time.process_time()
    written = render()
    spent = time.process_time() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": spent, "bytes": len(written.encode()), "memory": peak, **opened(written)}


LAST = """new Promise(async done => {
    const stepper = document.querySelector('.stepper'), slider = stepper?.querySelector('input[type=range]');
    if (!stepper) return done(false);
    slider.value = slider.max;
    slider.dispatchEvent(new Event('input'));
    while (!stepper.querySelector('dd')) await new Promise(then => setTimeout(then, 5));
    done(true)})"""


def opened(written: str) -> dict[str, float]:
    """Seconds until Chromium has loaded the page, and until it shows the last step; nothing without one."""
    from tests.report import chromium

    if chromium.found() is None:
        return {}
    with tempfile.TemporaryDirectory() as directory:
        page = Path(directory) / "page.html"
        page.write_text(written, encoding="utf-8")
        with chromium.browser(Path(directory) / "profile") as browser:
            began = time.monotonic()
            browser.open(page, 1280)
            loaded = time.monotonic()
            stepped = browser.run(LAST)
            return {"opens": loaded - began, **({"end": time.monotonic() - loaded} if stepped else {})}


def main() -> None:
    """All rows, into report.md."""
    if len(sys.argv) > 1:
        print(json.dumps(measure(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
        return
    lines = [HEAD.format(machine=platform.machine(), python=platform.python_version())]
    for kind, steps, members in ROWS:
        argv = [sys.executable, "-m", "tools.benchmarks.report", kind, str(steps), str(members)]
        got = subprocess.run(argv, capture_output=True, text=True, check=True, cwd=HERE.parent)
        one = json.loads(got.stdout)
        limits = {"seconds": TARGET_SECONDS, "bytes": TARGET_BYTES, "opens": TARGET_OPENS}
        missed = " (missed)" * any(one.get(name, 0) > most for name, most in limits.items())
        seen = " | ".join(f"{one[name]:.2f}" if name in one else "-" for name in ("opens", "end"))
        lines.append(
            f"| {kind} | {steps:,} | {members:,} | {one['seconds']:.2f}{missed} | {one['bytes'] / 1000:,.0f} "
            f"| {one['memory']:,.0f} | {seen} |"
        )
        print(lines[-1], flush=True)
    (HERE / "report.md").write_text("\n".join([*lines, ""]))


if __name__ == "__main__":
    main()
