"""Seven incidents, one story: how each repair of the Java client's rebalance opened the next hole.

KAFKA-12983, 12984, 13406, 13419, 13891, 14016 and 14639, 2021 to 2023. Every chapter is a group of the
model with the behaviour of its time, explored to the end: the shortest run that breaks a clause, found
and not written down. Run it with `python examples/incident_chain.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import wrap

from rebalance_verifier.explore.engine import fast
from rebalance_verifier.explore.engine.search import Limits
from rebalance_verifier.explore.groups.scenarios import SCENARIOS, ScenarioSize
from rebalance_verifier.explore.random.judge import Judge
from rebalance_verifier.model.classic.group import machine
from rebalance_verifier.model.group.setup import Setup, letter
from rebalance_verifier.model.machine import Machine, State
from rebalance_verifier.properties.group.clauses import CLAUSES, rules


@dataclass(frozen=True, kw_only=True)
class Chapter:
    """One incident: what the group ran, the clause that broke, and what was done about it."""

    ticket: str
    story: str
    clause: str
    size: ScenarioSize
    scenario: str = "dynamic"

    def setup(self) -> Setup:
        return SCENARIOS[self.scenario].setup(self.size)


def group(members: int, partitions: int, *switches: str, faults: tuple[str, ...] = ()) -> ScenarioSize:
    """A group in which everybody has ``switches``, and each of ``faults`` may happen once."""
    return ScenarioSize(
        members=members, partitions=partitions, faults=faults, budget=len(faults), switches=switches
    )


STORY = (
    Chapter(
        ticket="KAFKA-12983",
        story="A member learns from its JoinGroup that it was expelled. onJoinPrepare has run, so nothing is "
        "given up: it comes back under a new id with its old partitions.",
        clause="group/owner",
        size=group(2, 1, "prepare_not_repeated_after_reset", faults=("pause",)),
    ),
    Chapter(
        ticket="KAFKA-12984",
        story="Its claim now competes with that of the rightful owner, and the assignor of the time "
        "trusts both.",
        clause="leader/grant",
        size=group(3, 2, "prepare_not_repeated_after_reset", "trust_all_claims", faults=("pause",)),
    ),
    Chapter(
        ticket="KAFKA-13406",
        story="The repair lets only claims of the newest generation count. A member that missed a SyncGroup "
        "claims as of the one before; the assignor ignores that, the leader's validation does not, and "
        "throws.",
        clause="poll/throws",
        size=group(3, 3, "max_generation_only", "validate_raw_claims"),
    ),
    Chapter(
        ticket="KAFKA-13419",
        story="ILLEGAL_GENERATION clears the member id too: the member rejoins as a stranger, and its old id "
        "is waited for.",
        clause="error/id",
        size=group(2, 1, "clear_member_id_on_illegal_generation", faults=("failover",)),
        scenario="failover",
    ),
    Chapter(
        ticket="KAFKA-13891",
        story="A SyncGroup that fails leaves the old partitions under the new generation's number: from now "
        "on a claim looks younger than it is.",
        clause="leader/label",
        size=group(3, 2, "keep_owned_on_sync_rip"),
    ),
    Chapter(
        ticket="KAFKA-14016",
        story="The repair of that resets the generation instead. Every member that is late for a SyncGroup "
        "now loses all that it has.",
        clause="error/retriable",
        size=group(3, 1, "reset_on_sync_rip"),
    ),
    Chapter(
        ticket="KAFKA-14639",
        story="It is taken back, and what was left from 2021 shows: where only the newest generation counts, "
        "the partition of a member that missed a round goes to somebody else while it still has it.",
        clause="group/owner",
        size=group(3, 3, "max_generation_only"),
    ),
)


def narrate(chapter: Chapter) -> str:
    """The chapter as text: the story, the clause that breaks, the shortest run to it."""
    setup = chapter.setup()
    built, required = machine(setup), rules(setup)
    search = fast.explore(built, required, Limits(go_on=True))
    trace = search.trace(chapter.clause)
    judge, state = Judge(built, required, chapter.clause), trace.initial
    owners, broken = [_owners(built, setup, state)], ""
    for event in trace.events:
        outcome = next(outcome for one, outcome in built.outcomes(state) if one == event)
        before, state = state, built.apply(state, event, outcome)
        found = (*judge.step(before, event, outcome), *judge.state(state))
        broken = next((one.sentence for one in found), "")
        if (now := _owners(built, setup, state)) != owners[-1]:
            owners.append(now)
    lines = [
        chapter.ticket,
        *(f"  {line}" for line in wrap(chapter.story, 98)),
        f"  breaks  {chapter.clause}: {CLAUSES[chapter.clause].sentence}",
        f"  shown   after {len(trace.events)} steps, the shortest of {search.distinct:,} states: {broken}",
        f"  owned   {' -> '.join(owners)}",
    ]
    return "\n".join(lines)


def _owners(built: Machine, setup: Setup, state: State) -> str:
    """Who owns what, of those that are members of the group."""
    held = [(letter(slot), built.look(state, f"held {letter(slot)}")) for slot in setup.slots]
    owned = [f"{who}: {setup.spell(parts)}" for who, parts in held if isinstance(parts, int) and parts]
    return ", ".join(owned) or "nobody"


if __name__ == "__main__":
    print("\n\n".join(narrate(chapter) for chapter in STORY))
