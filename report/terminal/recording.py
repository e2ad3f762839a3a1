"""A recording of real consumers for a terminal."""

from __future__ import annotations

from rebalance_verifier.live.clients.record.judge import CHECKS, CheckFinding
from rebalance_verifier.live.clients.record.record import Recorded, data

MAX_FINDINGS = 10
"""Findings of one check that the text shows."""


def headline(made: Recorded) -> str:
    """Return the verdict, in one line."""
    request = made.request
    what = "steps of an earlier run" if request.steps else f"{request.scenario}, seed {request.seed}"
    return f"{str(made.verdict).upper()}  {what}, on {request.cluster} {made.version}".rstrip()


def render(made: Recorded) -> str:
    """Return the report for people."""
    report = data(made)
    verdict = str(made.verdict).upper()
    request = made.request
    lines = [headline(made)]
    if made.unsupported:
        lines.append(f"  unsupported  {made.unsupported}")
    if made.interrupted:
        lines.append(f"  interrupted after step {len(made.played)}: judged is what happened until then")
    lines += [f"  note       {text}" for text in report["notes"]]
    several: dict[str, int] = {}
    for name in made.versions:
        several[made.versions[name]] = several.get(made.versions[name], 0) + 1
    lines += [f"  client     {count} x {version}" for version, count in several.items()]
    stages = zip(request.stages, request.protocols, strict=True)
    listed = (",".join(one) + " of the broker" * (spoken == "consumer") for one, spoken in stages)
    lines.append(f"  assignors  {', then '.join(listed)}")
    settled = sum(rest.settled for rest in made.rests)
    lines.append(
        f"  played     {len(made.played)} steps, {report['events']} events, {settled} of {len(made.rests)} "
        f"times at rest, {made.seconds:.1f} s"
    )
    offsets = report["offsets"]
    lines.append(
        f"  records    {offsets['hand_overs']} hand-overs, {offsets['with_duplicates']} of them read "
        f"{offsets['duplicates']} records again; skipped {offsets['skipped']}, unread {offsets['unread']}"
    )
    if made.errors:
        total = sum(made.errors.values())
        worst = max(made.errors, key=lambda text: made.errors[text])
        lines.append(f"  errors     {total} of members, most often: {worst[:90]}")
    for check in CHECKS.values():
        found = [one for one in made.findings if one.check == check.id]
        if not found:
            continue
        lines += ["", f"{check.id}: {check.sentence} [{check.level}]  {len(found)} x"]
        for one in found[:MAX_FINDINGS]:
            lines.append(f"  {line(one)}")
        if len(found) > MAX_FINDINGS:
            lines.append(f"  ... and {len(found) - MAX_FINDINGS} more in report.json")
    lines += ["", *([f"  saved      {made.out}"] if made.saved else []), f"{verdict}, exit {int(made.exit)}"]
    return "\n".join(lines)


def line(one: CheckFinding) -> str:
    """Return a finding in one line."""
    lasted = f" for {one.seconds:.3f} s" if one.seconds else ""
    return f"{one.began[11:23]} {one.partition:<12}{lasted} {one.detail}".rstrip()
