"""Assignors that each break one clause of the contract, and only in a corner: the suite has to name it.

``MUTANTS`` is the table; every clause of ``properties.assignors.clauses.TABLE`` has at least one
entry. From the root of the project a mutant is a target like any other: ``rebalance check
tests.mutants.safety:BothKeepIt``.
"""

from __future__ import annotations

from dataclasses import dataclass

EAGER, COOPERATIVE = "eager", "cooperative"
TASKS, STREAMS = "tasks", "streams"


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """One mutant. ``implies``: clauses that cannot hold where ``clause`` is broken in this way.

    ``members`` and ``partitions`` bound the minimised counterexample, wherever the search came upon it:
    minimising is greedy and may end beside the smallest one. ``hangs``: it takes calls that do
    not return; ``apart``: it takes two processes. Both show only outside of this process.
    """

    clause: str
    target: str
    protocol: str
    members: int
    partitions: int
    implies: frozenset[str] = frozenset()
    hangs: bool = False
    apart: bool = False

    @property
    def name(self) -> str:
        return f"{self.clause}-{self.target.rpartition(':')[2]}"


def _mutant(clause: str, target: str, protocol: str, size: str, *implies: str, **more: bool) -> Mutant:
    members, partitions = map(int, size.split("x"))
    return Mutant(
        clause=clause,
        target=f"tests.mutants.{target}",
        protocol=protocol,
        members=members,
        partitions=partitions,
        implies=frozenset(implies),
        **more,
    )


IN_VAIN = ("kip54/sticky/1", "kip429/leader/3")
"""What is broken when an owner revokes a valid claim for nobody."""

MUTANTS: tuple[Mutant, ...] = (
    _mutant("assign/1", "safety:BothKeepIt", COOPERATIVE, "4x4"),
    _mutant("assign/2", "safety:KeepsWhatItLeft", COOPERATIVE, "1x1"),
    _mutant("assign/3", "safety:KeepsWhatIsGone", COOPERATIVE, "1x1"),
    _mutant("assign/4", "liveness:MissesMetadata", COOPERATIVE, "1x1"),
    _mutant("assign/4", "liveness:NeverComesBack", COOPERATIVE, "3x1", hangs=True),
    _mutant("assign/5", "safety:TidiesTheInput", COOPERATIVE, "1x1"),
    _mutant("assign/6", "quality:LowestHashFirst", COOPERATIVE, "2x1", apart=True),
    _mutant("assign/7", "quality:FirstComeFirstServed", COOPERATIVE, "2x1"),
    _mutant("assign/8", "liveness:ForgetsTheIdle", COOPERATIVE, "2x1"),
    # What is revoked in vain is a valid claim that the best balance would have kept, with or without
    # older claims beside it.
    _mutant(
        "kip429/leader/3", "quality:HoldsBackOneMore", COOPERATIVE, "3x6", "kip54/sticky/1", "kip792/claim/2"
    ),
    _mutant("kip429/leader/4", "safety:WaitsOnlyForTheYoung", COOPERATIVE, "3x3"),
    _mutant("kip429/leader/5", "liveness:WaitsForNobody", COOPERATIVE, "1x1"),
    _mutant("kip792/claim/1", "safety:LastButOneWins", COOPERATIVE, "2x3"),
    # What is withheld from its owner, or moved, is a valid claim that the best balance would have kept.
    _mutant("kip792/claim/2", "quality:SupersededClaimsCount", COOPERATIVE, "3x1", *IN_VAIN),
    # It settles at last, in more than two rounds.
    _mutant("kip429/converge/1", "liveness:RevokesOneByOne", COOPERATIVE, "1x3", "kip429/converge/3"),
    # A group that never settles has in every round an owner that revokes what it could have kept. One
    # in which nobody claims anything settles at once, and is disturbed by the next rebalance.
    _mutant(
        "kip429/converge/1", "liveness:NeverSatisfied", COOPERATIVE, "3x18", *IN_VAIN, "kip429/converge/2"
    ),
    # What it takes it may well give back, and a group that it disturbs needs longer to settle.
    _mutant(
        "kip429/converge/2",
        "liveness:TurnsTheTable",
        COOPERATIVE,
        "2x2",
        "kip429/leader/3",
        "kip429/converge/1",
        "kip429/converge/3",
    ),
    _mutant("kip429/converge/3", "quality:OneAfterTheOther", COOPERATIVE, "5x6"),
    _mutant("kip54/balance/1", "quality:CloseEnough", COOPERATIVE, "3x3"),
    _mutant("kip54/sticky/1", "quality:SwapsForNothing", EAGER, "3x2"),
    _mutant("kip881/rack/1", "quality:ForgetsRacks", COOPERATIVE, "3x3"),
    _mutant("range/balance/1", "simple:WideRange", EAGER, "3x2"),
    _mutant("range/copartition/1", "simple:ThirdTopicApart", EAGER, "2x8"),
    _mutant("roundrobin/balance/1", "simple:StartsAnew", EAGER, "2x2"),
    _mutant("sticky/spread/1", "quality:KeepsTopicByTopic", COOPERATIVE, "3x10"),
    _mutant("partial/limit/1", "odd:OneTooMany", COOPERATIVE, "2x5"),
    _mutant("gradual/moves/1", "odd:OneMoreAtOnce", COOPERATIVE, "3x8"),
    # What waits for nobody waits for ever.
    _mutant("stop-the-world/assign/1", "odd:WaitsForNobody", COOPERATIVE, "3x1", "kip429/converge/1"),
    # A member may keep what it has to give up, and does so a round later.
    _mutant(
        "stop-the-world/revoke/1",
        "odd:KeepsTheFirst",
        COOPERATIVE,
        "2x3",
        "kip429/converge/1",
        "kip429/converge/3",
    ),
    _mutant("weighted/idle/1", "odd:LeavesItIdle", COOPERATIVE, "4x8"),
    # What nobody is given in one round nobody is given in any.
    _mutant("kip429/leader/5", "keys:KeyedByText", COOPERATIVE, "1x12", "kip429/converge/1"),
    _mutant("kip429/leader/5", "keys:KeyedByIndex", COOPERATIVE, "2x2", "kip429/converge/1"),
    _mutant("task/1", "tasks:Forgets", TASKS, "1x3", "task/11"),
    _mutant("task/1", "tasks:RunsTwice", TASKS, "2x3", "task/12"),
    _mutant("task/2", "tasks:ListsTwice", TASKS, "2x1", "task/11"),
    _mutant("task/2", "tasks:LeavesOutTheIdle", TASKS, "2x1"),
    _mutant("task/2", "tasks:RemembersTheGone", TASKS, "3x1"),
    _mutant("task/3", "tasks:OneTaskMore", TASKS, "1x3"),
    _mutant("task/4", "tasks:StandbyBesideTheActive", TASKS, "1x1"),
    _mutant("task/4", "tasks:StandbyOfNothing", TASKS, "2x1"),
    # A standby where the active is, is none.
    _mutant("task/4", "tasks:StandbyOfTheSameProcess", STREAMS, "2x1", "task/7"),
    _mutant("task/5", "tasks:DividesByZero", TASKS, "1x1"),
    _mutant("task/5", "tasks:SortsByUnknownLags", TASKS, "1x1"),
    _mutant("task/5", "tasks:TidiesLags", TASKS, "1x1"),
    _mutant("task/6", "tasks:FirstProcessFirst", TASKS, "2x1"),
    _mutant("task/7", "tasks:OneStandbyAtMost", TASKS, "3x1", "task/13"),
    _mutant("task/7", "tasks:OneStandbyMore", TASKS, "4x1"),
    _mutant("task/7", "tasks:StandbyInMemory", TASKS, "2x1"),
    _mutant("task/8", "tasks:WarmsUpEverything", TASKS, "4x6"),
    _mutant("task/9", "tasks:CopiesAreNotLookedAt", TASKS, "3x3"),
    _mutant("task/10", "tasks:ProbesForEver", TASKS, "2x1"),
    _mutant("task/10", "tasks:TurnsAround", TASKS, "2x2"),
    # It never comes to rest where it is asked again and again.
    _mutant("task/11", "tasks:MovesStandbys", TASKS, "4x4"),
    _mutant("task/12", "tasks:OneTooMany", TASKS, "2x6", "task/11", "task/10"),
    _mutant("task/13", "tasks:ForgetsTags", TASKS, "4x2"),
    _mutant("task/14", "tasks:RacksTheWrongWayRound", TASKS, "2x3"),
    _mutant("task/15", "tasks:StartsWhereNothingIs", TASKS, "2x1"),
)
