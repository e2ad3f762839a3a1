"""Something that can happen in a group that is searched, and what it is, whatever it is called."""

from __future__ import annotations

from dataclasses import dataclass

from rebalance_verifier.model.machine import NOBODY, Event

_ACTS = {
    **dict.fromkeys(("join", "complete", "poll"), "poll"),
    **dict.fromkeys(("receive", "assign", "late answer"), "receive"),
    **dict.fromkeys(
        (
            *("join request", "sync request", "leader sync", "leave request", "late request arrives"),
            "heartbeat arrives",
        ),
        "arrive",
    ),
    **dict.fromkeys(("session expires", "session timeout"), "session"),
}
_PHASE = {"join phase ends": "rebalance", "rebalance timeout": "sync", "slow member": "sync"}
ARRIVES = "arrives"
"""The choice of an end of a connection: what was sent on it still arrives."""

OF_ID = "id "
"""How the choice of a step about one member id begins."""


@dataclass(frozen=True, slots=True)
class CodeChoice:
    """Something that can happen. ``act``: what is done; ``fault``: whether it draws on the budget."""

    act: str
    event: Event
    fault: bool = False

    @property
    def key(self) -> tuple[str, int, str]:
        """Return what it is, whatever it is called."""
        return key(self.event)


def key(event: Event) -> tuple[str, int, str]:
    """Return what an event is, whatever it is called: a run of one release is played on another by it."""
    if event.action in _PHASE and not event.choice.startswith(OF_ID):
        return ("rebalance" if event.choice != "sync" else "sync"), NOBODY, ""
    act = _ACTS.get(event.action, event.action)
    act = "slow" if event.action in _PHASE else act
    return act, event.who, "" if act in ("receive", "arrive", "poll") else event.choice
