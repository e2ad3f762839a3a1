"""What may have happened to consumers without a line in the log, and when."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

from rebalance_verifier.live.conformance.clients.every import BEFORE_JOIN, UNHEARD
from rebalance_verifier.live.conformance.clients.table import BY_ID
from rebalance_verifier.live.conformance.listing import ConsumerSlot
from rebalance_verifier.live.conformance.log import LogLine, RecordedLog, seconds_of
from rebalance_verifier.live.conformance.observed import CALLBACKS, Observed, Spans, UnloggedAction


@dataclass
class Absences:
    """Actions of the driver on consumers that leave no line in the log.

    ``lines``: stops and continuations where ``run.json`` tells when; ``when``: what may happen unseen, and
    in which times.
    """

    lines: list[LogLine] = field(default_factory=list)
    when: dict[UnloggedAction, Spans] = field(default_factory=dict)

    def may(self, actions: Iterable[str], slot: int, span: tuple[float, float]) -> None:
        """Each of ``actions`` may happen to ``slot`` in ``span``; what it does about it, some time after."""
        for action in actions:
            until = span[1] + AFTERWARDS if action in BY_ID else span[1]
            self.when[action, slot] = (*self.when.get((action, slot), ()), (span[0], until))


def absences_of(recorded: RecordedLog, owners: Mapping[str, Sequence[int]]) -> Absences:
    """Stops, continuations, and times without polls.

    A step that follows a rest happens right after it. Of another one it is known before and after which
    events it came, and it may have happened at any time between.
    """
    made = Absences()
    unseen = {
        what: (*actions, *(one.id for one in BY_ID.values() if one.timed == what))
        for what, actions in _UNSEEN.items()
    }
    logged = {line.event for line in recorded.lines}
    lives: dict[str, int] = {}
    began: dict[tuple[str, int], float] = {}
    stops: list[tuple[int, LogLine]] = []
    untimed: set[int] = set()
    steps = recorded.run.get("steps", ())
    for number, (step, (earliest, latest)) in enumerate(zip(steps, _times(recorded), strict=True), 1):
        name, does = str(step.get("member", "")), str(step.get("do"))
        if name not in owners:
            continue
        lives[name] = lives.get(name, 0) + (does == "start")
        slot = owners[name][min(max(0, lives[name] - 1), len(owners[name]) - 1)]
        if does in unseen:
            began[does, slot] = earliest
        for what in _ENDS.get(does, ()):
            if (what, slot) in began:
                made.may(unseen[what], slot, (began.pop((what, slot)), latest))
        if does not in ("stop", "cont") or "paused" in logged:
            continue
        if earliest < latest:
            untimed.add(slot)
            made.may(("pause", "resume"), slot, (earliest, latest))
        else:
            kind, detail = "paused" if does == "stop" else "resumed", f"step {number} of run.json"
            line = LogLine(number=0, at=earliest, event=kind, consumer=name, detail=detail)
            stops.append((slot, line))
    for (what, slot), start in began.items():
        made.may(unseen[what], slot, (start, inf))
    for slot, line in stops:
        if slot in untimed:
            made.may(("pause", "resume"), slot, (line.at, line.at))
        else:
            made.lines.append(line)
    return made


def between(slots: Sequence[ConsumerSlot], events: Sequence[Observed]) -> dict[UnloggedAction, Spans]:
    """When consumers were killed right after a callback, and when they may notice a subscription."""
    spans: dict[UnloggedAction, Spans] = {}
    last: dict[int, Observed] = {}
    for event in events:
        before, found = last.get(event.who), dict[str, tuple[float, float]]()
        if event.kind == "killed" and before is not None:
            found[BEFORE_JOIN if before.kind in CALLBACKS else UNHEARD] = before.at, event.at
        if event.kind == "subscribed":
            for deviation in slots[event.who].client.deviations:
                if deviation.after_subscribe:
                    found[deviation.id] = event.at, event.at + deviation.after_subscribe
        for name, span in found.items():
            spans[name, event.who] = (*spans.get((name, event.who), ()), span)
        last[event.who] = event
    return spans


AFTERWARDS = 5.0
"""Seconds after a consumer goes on in which it may act as if it had not been away."""

_UNSEEN = {
    "pause": ("max poll", "callback late", "slow member"),
    "stop": ("join late", "sync late"),
}
"""Step of a run -> what may happen to its member from then on until it goes on, beside its deviations."""
_ENDS = {"resume": ("pause",), "cont": ("stop",), "close": ("pause", "stop"), "kill": ("pause", "stop")}


def _times(recorded: RecordedLog) -> list[tuple[float, float]]:
    """For each step of ``run.json`` when it was done: at the earliest, at the latest; equal after a rest."""
    steps = list(recorded.run.get("steps", ()))
    rests = {rest.get("number"): rest.get("at") for rest in recorded.run.get("rests", ())}
    shown = {
        "start": ("started",),
        "close": ("leaving", "closed"),
        "kill": ("closed",),
        "subscribe": ("subscribed",),
    }
    known: list[float | None] = []
    left = recorded.lines
    for number, step in enumerate(steps, 1):
        does, who = str(step.get("do")), step.get("member")
        at = None
        if rests.get(number) is not None:
            at = seconds_of(rests[number], f"{recorded.path.parent / 'run.json'}")
        for index, line in enumerate(left if does in shown else ()):
            if line.consumer == who and line.event in shown[does]:
                at, left = line.at, left[index + 1 :]
                break
        known.append(at)
    times = []
    for number in range(len(steps)):
        before = next((at for at in reversed(known[:number]) if at is not None), -inf)
        after = next((at for at in known[number:] if at is not None), inf)
        rested = number > 0 and rests.get(number) is not None
        times.append((before, before) if rested else (before, after))
    return times
