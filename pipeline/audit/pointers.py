"""Say where a log itself points: what stands in it about the cause of a finding.

That is evidence, where an entry of the catalogue would be a guess. Nothing is said that no line says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rebalance_verifier.pipeline.audit.records import LogEvent, LogFinding

Pointer = Callable[[LogFinding, Sequence[LogEvent]], str]


def pointer(finding: LogFinding, events: Sequence[LogEvent]) -> str:
    """Return what the log says of the cause of a finding, "" where it says nothing."""
    read = POINTERS.get(finding.check)
    return read(finding, sorted(events, key=lambda event: event.at)) if read else ""


def _given_twice(finding: LogFinding, events: Sequence[LogEvent]) -> str:
    """Return the leader whose plan gives the partition to one member while another has it."""
    if len(finding.owners) != 2:
        return ""
    older, newer = sorted(finding.owners, key=lambda owner: owner.generation or -1)
    plans = [one for one in events if one.kind == "planned" and one.generation == newer.generation]
    mine = [one for one in plans if (one.topic, one.partition) == (finding.topic, finding.partition)]
    if any(one.consumer and one.member != older.member for one in mine):
        leader = next(one.consumer for one in mine if one.consumer)
        return (
            f"the plan of {leader}, which led generation {newer.generation}, gives {finding.about} to "
            f"{newer.name} while {older.name} had it: its assignor, or the claim that it was sent"
        )
    return _ended(older.consumer, finding, events) or (
        "" if plans else "the log of the leader, which has its plan, is not among these"
    )


def _ended(consumer: str | None, finding: LogFinding, events: Sequence[LogEvent]) -> str:
    """When and why somebody lost its membership, by its own log or that of the coordinator."""
    members = {owner.member for owner in finding.owners if owner.consumer == consumer}
    for event in events:
        own = event.consumer == consumer and event.kind in ("reset", "leaving")
        if (own or (event.kind == "removed" and event.member in members)) and event.detail:
            speaker = f"{consumer} says" if own else "the coordinator says"
            return f"{speaker} at {event.at:%H:%M:%S} why {consumer} is no member: {event.detail}"
    return ""


def _zombie(finding: LogFinding, events: Sequence[LogEvent]) -> str:
    older = min(finding.owners, key=lambda owner: owner.generation or -1, default=None)
    return _ended(older.consumer, finding, events) if older else ""


def _waiting(finding: LogFinding, events: Sequence[LogEvent]) -> str:
    """Return the member that asked to join, or had to, and heard nothing more: of a rebalance that does not
    end."""
    if finding.ended or "did not end" not in finding.sentence:
        return ""
    last: dict[str, LogEvent] = {}
    for event in events:
        if event.consumer and event.kind in (
            "joining",
            "rebalancing",
            "joined",
            "synced",
            "leaving",
            "closed",
        ):
            last[event.consumer] = event
    open_ = [one for one in last.values() if one.kind in ("joining", "rebalancing", "joined")]
    if not open_:
        return ""
    first = min(open_, key=lambda one: one.at)
    what = {
        "joining": "has sent JoinGroup and got no answer",
        "rebalancing": "learned that the group rebalances, and has not joined",
        "joined": "has joined and got no assignment",
    }[first.kind]
    return f"{first.consumer} {what} since {first.at:%H:%M:%S} ({first.where})"


POINTERS: dict[str, Pointer] = {
    "owned-twice": _given_twice,
    "granted-before-revoked": _given_twice,
    "owned-by-zombie": _zombie,
    "never-settles": _waiting,
}
"""Check -> what looks for its cause."""
