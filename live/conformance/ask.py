"""The search for a run of the model that explains a log, in stages; and the answer."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from rebalance_verifier.live.conformance.clients.table import BY_ID
from rebalance_verifier.live.conformance.mock import ENDS_UNHEARD
from rebalance_verifier.live.conformance.question import Choices, ConformanceQuestion, LogQuestion
from rebalance_verifier.live.conformance.search import Conformance, Progress, conforms
from rebalance_verifier.live.conformance.space import AGAINST

HIDDEN = ("disconnect", "slow network", "late request", "slow commit", "session timeout", "slow member")
"""Kinds of faults that nobody writes down, for ``budget``."""

SHARES = (0.2, 0.2, 0.7, 1.0)
"""Of the time that is left, what each stage of a search may take."""

NARROW = 0.1
"""Events further apart than this are nearly always in order, so this is asked first; in seconds."""


@dataclass(frozen=True)
class ConformanceAnswer:
    """``faults`` is how many hidden faults the explanation takes."""

    question: LogQuestion
    conformance: Conformance
    faults: int = 0

    @property
    def findings(self) -> dict[str, int]:
        """Ids of deviations that are findings, and clauses that leaders broke -> how often each was taken."""
        taken: dict[str, int] = {}
        for step in self.conformance.witness:
            if step.event is None:
                continue
            deviation = BY_ID.get(step.event.action)
            _, against, clause = step.event.choice.partition(AGAINST)
            name = clause if against else deviation.id if deviation and not deviation.benign else ""
            if name:
                taken[name] = taken.get(name, 0) + 1
        return taken


def ask(
    question: ConformanceQuestion, choices: Choices, progress: Progress | None = None
) -> ConformanceAnswer:
    """Search in stages: the narrowest window first, then all of it; then with what is found about clients.

    With no hidden fault, then with one, and so on to as many as may be. What explains the log is taken; a
    mismatch is one of the last stage.
    """
    clients = question.build.clients
    lenient = [slot for slot, client in enumerate(clients) if client.lenient_leader]
    several = bool(lenient) or any(not one.benign for client in clients for one in client.deviations)
    search = replace(
        question.search,
        faults=HIDDEN,
        silent={deviation.id: deviation.silent for deviation in BY_ID.values() if deviation.silent},
        penalised=(*BY_ID, ENDS_UNHEARD),
        unlogged=(ENDS_UNHEARD,),
    )
    windows = dict.fromkeys((min(NARROW, choices.window), choices.window))
    with_findings = (False, True) if several or question.build.mocked else (False,)
    stages = [(window, findings) for findings in with_findings for window in windows]
    ends = None if choices.seconds is None else time.process_time() + choices.seconds
    for faults in range(choices.faults + 1):
        for number, (window, findings) in enumerate(stages, len(SHARES) - len(stages)):
            share = SHARES[number if several else max(2, number)]
            found = conforms(
                replace(
                    search,
                    budget=faults,
                    build=replace(question.build, findings=findings),
                    lenient=lenient if findings else (),
                    window=window,
                    seconds=None if ends is None else (ends - time.process_time()) * share,
                ),
                progress,
            )
            if found.verdict == "explained":
                return ConformanceAnswer(question, found, faults)
    return ConformanceAnswer(question, found, faults)
