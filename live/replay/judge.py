"""What the clients of a replay show, put into the model's observations and judged by its clauses."""

from __future__ import annotations

from typing import Any

from rebalance.live.replay.client import ReplayClient
from rebalance.live.replay.replay_plan import ReplayStep
from rebalance.live.replay.scene import ReplayScene
from rebalance.live.replay.verdict import OBSERVABLE_CLAUSES, BrokenClause
from rebalance.model.protocol.describe import event_text, observation_text
from rebalance.model.protocol.state import Life, MemberState, Parts
from rebalance.properties.group.clauses import CONVERGES, rules


class ReplayJudge:
    """Asks the clauses after each step, and notes what was seen."""

    def __init__(self, scene: ReplayScene) -> None:
        self.scene = scene
        self.rules = rules(scene.setup).about(*OBSERVABLE_CLAUSES)

    def judge(self, step: ReplayStep, seen: tuple[Any, ...]) -> None:
        """Ask the clauses about ``seen`` and about what each client has now; a sentence counts once."""
        result = self.scene.result
        values: dict[str, Any] = {}
        for client in self.scene.clients:
            values |= self._views(step, client)
        found = (*self.rules.at_step(step.event, seen), *self.rules.in_state(values.__getitem__))
        known = {(one.clause, one.sentence) for one in result.broken}
        result.broken += [
            BrokenClause(clause, step.number, sentence)
            for clause, sentence in found
            if (clause, sentence) not in known
        ]
        result.shown.append(
            {
                "step": step.number,
                "event": event_text(step.event),
                "seen": [observation_text(self.scene.setup, one) for one in seen],
                "owned": {
                    client.name: self.scene.spell(client.owned)
                    for client in self.scene.clients
                    if client.member
                },
            }
        )

    def never_settles(self, step: ReplayStep, how: str) -> None:
        """Note that the group comes to no rest although nothing goes wrong any more."""
        self.scene.result.broken.append(
            BrokenClause(CONVERGES.id, step.number, f"{how}, and nothing goes wrong any more")
        )

    def _views(self, step: ReplayStep, client: ReplayClient) -> dict[str, Any]:
        """What the clauses about states ask of a member, as the client has it."""
        known = [record.id for record in step.records(after=True, name=client.name) if record.meta]
        inside = client.incarnation in known and not client.gone
        # In the middle of a rebalance some clients still list what the listener was told is gone.
        me = step.member(after=True, name=client.name)
        settled = me.state is MemberState.STABLE and me.received is None and not client.waiting
        listed = client.owned if settled else client.believed
        return {
            f"held {client.name}": Parts(client.owned if inside else 0),
            f"listener {client.name}": (Parts(client.believed), Parts(listed), Life.UP),
            f"reads {client.name}": (client.eager, client.commit is not None, Parts(client.reads)),
        }
