"""What the clients of a replay show, put into the model's observations and judged by its clauses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rebalance_verifier.live.clients.replay.client import ReplayClient
from rebalance_verifier.live.clients.replay.replay_plan import ReplayStep
from rebalance_verifier.live.clients.replay.scene import ReplayScene
from rebalance_verifier.live.clients.replay.verdict import BrokenClause, Replayed
from rebalance_verifier.model.classic.describe import event_text, observation_text
from rebalance_verifier.model.group import parts as p
from rebalance_verifier.model.group.setup import Setup
from rebalance_verifier.properties.group.clauses import CONVERGES, rules


class ClauseJudge:
    """Asks some clauses of a run after each step, and notes in the result what was seen."""

    def __init__(self, setup: Setup, result: Replayed) -> None:
        self.setup, self.result = setup, result
        self.rules = rules(setup).about(*result.observable_clauses)

    def ask(
        self, step: ReplayStep, seen: tuple[Any, ...], values: Mapping[str, Any], owned: Mapping[str, str]
    ) -> None:
        """Ask about ``seen`` and about ``values``, the views of each member now; a sentence counts once.

        ``owned``: member -> what it has, as text.
        """
        known = {(one.clause, one.sentence) for one in self.result.broken}
        found = (*self.rules.at_step(step.event, seen), *self.rules.in_state(values.__getitem__))
        self.result.broken += [
            BrokenClause(clause, step.number, sentence)
            for clause, sentence in found
            if (clause, sentence) not in known
        ]
        self.result.shown.append(
            {
                "step": step.number,
                "event": event_text(step.event),
                "seen": [observation_text(self.setup, one) for one in seen],
                "owned": dict(owned),
            }
        )

    def never_settles(self, step: ReplayStep, how: str) -> None:
        """Note that the group comes to no rest although nothing goes wrong any more."""
        self.result.broken.append(
            BrokenClause(CONVERGES.id, step.number, f"{how}, and nothing goes wrong any more")
        )


class ReplayJudge(ClauseJudge):
    """The judge of real clients."""

    def __init__(self, scene: ReplayScene) -> None:
        super().__init__(scene.setup, scene.result)
        self.scene = scene

    def judge(self, step: ReplayStep, seen: tuple[Any, ...]) -> None:
        """Ask the clauses about ``seen`` and about what each client has now."""
        clients = self.scene.clients
        values: dict[str, Any] = {}
        for client in clients:
            values |= self._views(step, client)
        self.ask(step, seen, values, {one.name: self.scene.spell(one.owned) for one in clients if one.member})

    def _views(self, step: ReplayStep, client: ReplayClient) -> dict[str, Any]:
        """Return what the clauses about states ask of a member, as the client has it."""
        known = [record.id for record in step.records(after=True, name=client.name) if record.meta]
        inside = client.incarnation in known and not client.gone
        # In the middle of a rebalance some clients still list what the listener was told is gone.
        me = step.member(after=True, name=client.name)
        settled = me.state is p.MemberState.STABLE and me.received is None and not client.waiting
        listed = client.owned if settled else client.believed
        return {
            f"held {client.name}": p.Parts(client.owned if inside else 0),
            f"listener {client.name}": (p.Parts(client.believed), p.Parts(listed), p.Life.UP),
            f"reads {client.name}": (client.eager, client.commit is not None, p.Parts(client.reads)),
        }
