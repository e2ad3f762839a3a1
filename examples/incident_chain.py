"""Seven incidents, one story: how each repair of the Java client's rebalance opened the next hole.

KAFKA-12983, 12984, 13406, 13419, 13891, 14016 and 14639, 2021 to 2023. Every chapter is a group of the
model with the behaviour of its time, explored to the end: the shortest run that breaks a clause, found
and not written down. Run it with `python examples/incident_chain.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from textwrap import wrap
from typing import Any

from rebalance_verifier import explore


@dataclass(frozen=True, kw_only=True)
class Chapter:
    """One incident: what the group ran, the clause that broke, and what was done about it."""

    ticket: str
    story: str
    clause: str
    members: int
    partitions: int
    switches: tuple[str, ...]
    faults: tuple[str, ...] = ()
    """Each may happen once."""
    scenario: str = "dynamic"


STORY = (
    Chapter(
        ticket="KAFKA-12983",
        story="A member learns from its JoinGroup that it was expelled. onJoinPrepare has run, so nothing is "
        "given up: it comes back under a new id with its old partitions.",
        clause="group/owner",
        members=2,
        partitions=1,
        switches=("prepare_not_repeated_after_reset",),
        faults=("pause",),
    ),
    Chapter(
        ticket="KAFKA-12984",
        story="Its claim now competes with that of the rightful owner, and the assignor of the time "
        "trusts both.",
        clause="leader/grant",
        members=3,
        partitions=2,
        switches=("prepare_not_repeated_after_reset", "trust_all_claims"),
        faults=("pause",),
    ),
    Chapter(
        ticket="KAFKA-13406",
        story="The repair lets only claims of the newest generation count. A member that missed a SyncGroup "
        "claims as of the one before; the assignor ignores that, the leader's validation does not, and "
        "throws.",
        clause="poll/throws",
        members=3,
        partitions=3,
        switches=("max_generation_only", "validate_raw_claims"),
    ),
    Chapter(
        ticket="KAFKA-13419",
        story="ILLEGAL_GENERATION clears the member id too: the member rejoins as a stranger, and its old id "
        "is waited for.",
        clause="error/id",
        members=2,
        partitions=1,
        switches=("clear_member_id_on_illegal_generation",),
        faults=("failover",),
        scenario="failover",
    ),
    Chapter(
        ticket="KAFKA-13891",
        story="A SyncGroup that fails leaves the old partitions under the new generation's number: from now "
        "on a claim looks younger than it is.",
        clause="leader/label",
        members=3,
        partitions=2,
        switches=("keep_owned_on_sync_rip",),
    ),
    Chapter(
        ticket="KAFKA-14016",
        story="The repair of that resets the generation instead. Every member that is late for a SyncGroup "
        "now loses all that it has.",
        clause="error/retriable",
        members=3,
        partitions=1,
        switches=("reset_on_sync_rip",),
    ),
    Chapter(
        ticket="KAFKA-14639",
        story="It is taken back, and what was left from 2021 shows: where only the newest generation counts, "
        "the partition of a member that missed a round goes to somebody else while it still has it.",
        clause="group/owner",
        members=3,
        partitions=3,
        switches=("max_generation_only",),
    ),
)


def narrate(chapter: Chapter) -> str:
    """The chapter as text: the story, the clause that breaks, the shortest run to it."""
    answer = explore(
        chapter.scenario,
        members=chapter.members,
        partitions=chapter.partitions,
        switches=chapter.switches,
        faults=chapter.faults,
        max_faults=len(chapter.faults),
        go_on=True,
        liveness=False,
    )
    finding = next(one for one in answer.findings if one.clause == chapter.clause)
    steps = finding.trace["steps"]
    states = answer.to_json()["states"]["distinct"]
    lines = [
        chapter.ticket,
        *(f"  {line}" for line in wrap(chapter.story, 98)),
        f"  breaks  {finding.clause}: {finding.rule}",
        f"  shown   after {len(steps)} steps, the shortest of {states:,} states: {finding.summary}",
        f"  owned   {' -> '.join(owner for owner, _ in groupby(map(owners, steps)))}",
    ]
    return "\n".join(lines)


def owners(step: dict[str, Any]) -> str:
    """Who owns what after a step of a trace."""
    owned = {name: " ".join(member["owns"]) for name, member in step["members"].items()}
    return ", ".join(f"{name}: {partitions}" for name, partitions in owned.items() if partitions) or "nobody"


if __name__ == "__main__":
    print("\n\n".join(narrate(chapter) for chapter in STORY))
