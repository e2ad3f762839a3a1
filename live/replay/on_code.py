"""A run of the model forced on Kafka's own code: each step of the trace is some commands to a cell.

Consumers and coordinator are both real here, so the coordinator is not the trace's: the caller decides which
message arrives when and which timer fires, and what Kafka makes of that is compared with the trace. What the
consumers show is put into the model's own observations and judged by the same clauses.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice, permutations
from typing import Any

from rebalance.explore.groups.runs import SavedRun
from rebalance.live.code.cell import CellBroken, CellDied, CellRefused, KafkaCell
from rebalance.live.replay.client import WentAnotherWay
from rebalance.live.replay.code_group import POLLS, CodeGroup, CodeReleases
from rebalance.live.replay.code_steps import CodeSteps
from rebalance.live.replay.judge import ClauseJudge
from rebalance.live.replay.replay_plan import Due, ReplayStep, due, replay_plan
from rebalance.live.replay.scene import CannotForce
from rebalance.live.replay.verdict import LEADER, OBSERVABLE_CLAUSES, Replayed
from rebalance.model.protocol.setup import letter

SHOWN_BY_CODE = OBSERVABLE_CLAUSES - {"callback/fetch"}
"""Nobody fetches in a cell."""


class CodeReplayer:
    """One replay on a cell. ``order``: the slots in the order in which their member ids sort."""

    def __init__(self, cell: KafkaCell, run: SavedRun, releases: CodeReleases, order: Sequence[int]) -> None:
        self.run, (self.setup, self.steps) = run, replay_plan(run)
        self.result = Replayed(
            clause=run.clause,
            client=str(releases),
            version=releases.sentence,
            naming=tuple(letter(slot) for slot in order),
            steps=len(run.events),
            observable_clauses=SHOWN_BY_CODE,
        )
        self.judge = ClauseJudge(self.setup, self.result)
        commits = any(event.action == "slow commit" for event in run.events)
        self.group = CodeGroup(cell, self.setup, releases, order, commits=commits)
        self.code = CodeSteps(self.group, self.result)

    # -- the run -----------------------------------------------------------------------------------------

    def play(self) -> Replayed:
        """Step by step until the end, or until Kafka goes another way. Raises CellBroken, CellDied."""
        self.group.begin()
        for step in self.steps:
            self.group.seen = []
            try:
                self.code.take(step)
            except CannotForce as why:
                self.result.unforced.append(f"{step.title}: {why}")
            except (WentAnotherWay, CellRefused) as why:
                self.result.stopped = f"{step.title}: {why}"
                self._judge(step)
                return self.result
            self.result.done = step.number
            self._judge(step)
        self._stands_still()
        return self.result

    def _stands_still(self) -> None:
        """The model's group does nothing any more: do the consumers what is due?"""
        owed = due(self.run, self.steps)
        self.result.due = tuple(f"{name} has to {what}" for name, what in owed.items() if what is Due.JOIN)
        for member in self.group.members:
            if owed.get(letter(member.slot)) is not Due.JOIN:
                continue
            for _ in range(POLLS):
                self.group.commit_arrives(member)
                self.group.do("poll", member=member.slot)
            if "JoinGroup" not in member.open:
                self.judge.never_settles(self.steps[-1], f"{letter(member.slot)} asks for nothing")

    def _judge(self, step: ReplayStep) -> None:
        """Ask the clauses about what was seen and what each consumer has now."""
        values: dict[str, Any] = {}
        for member in self.group.members:
            values |= self.group.views(member)
        slots = (member.slot for member in self.group.members)
        owned = {letter(slot): self.group.spell(self.group.owned(slot)) for slot in slots}
        self.judge.ask(step, tuple(self.group.seen), values, owned)


def replay_on_code(
    run: SavedRun, releases: CodeReleases, cell: KafkaCell, *, attempts: int | None = None
) -> Replayed:
    """Play ``run`` on Kafka's own code; the best of the attempts, each with the member ids in another order.

    Raises CannotHappenError when the model does not allow the trace.
    """
    results: list[Replayed] = []
    for order in islice(permutations(run.setup.slots), attempts):
        replayer = CodeReplayer(cell, run, releases, order)
        try:
            replayer.play()
        except (CellBroken, CellDied) as error:
            replayer.result.stopped = str(error)
        results.append(replayer.result)
        best = min(results, key=lambda result: result.rank)
        why = " ".join((*best.unforced, best.stopped))
        if best.verdict in ("same", "none") or LEADER not in why:
            break
    return min(results, key=lambda result: result.rank)
