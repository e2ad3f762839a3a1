"""A run of a group that breaks a clause: what it is, and playing it again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rebalance_verifier.explore.liveness.lasso import Lasso, confirm
from rebalance_verifier.explore.random.judge import Judge, quiet
from rebalance_verifier.model.group.setup import Setup
from rebalance_verifier.model.machine import Event
from rebalance_verifier.model.protocols import machine
from rebalance_verifier.model.steps import Step, StepView, owner_text, views
from rebalance_verifier.properties.group.clauses import CONVERGES, PROBING_ENDS, ROUNDS
from rebalance_verifier.properties.group.own import rules_about
from rebalance_verifier.properties.group.rules import Bounded, Finally

ENDINGS = {
    CONVERGES.id: "nothing goes wrong any more, and the group does not settle",
    PROBING_ENDS.id: "nothing goes wrong any more, and some task does not come to run where it belongs",
}
"""What a run does wrong that never comes to its goal, by the clause that says which."""

FOR_EVER = {**ENDINGS, ROUNDS.id: "nothing goes wrong any more, and the group rebalances again and again"}
"""What a run with a loop does wrong, by its clause."""


@dataclass(frozen=True, kw_only=True)
class SavedRun:
    """One run. ``loop``: after how many events those begin that come again and again; None where it ends.

    ``origin`` says where it came from: scenario, size, how it was searched for; ``path`` where it was read.
    ``on``: the releases of Kafka's code that it is a run of, as ``--on`` has them, "" for one of the model;
    then ``recorded`` is what was seen, and after ``peace`` events, if given, nothing went wrong any more.
    """

    setup: Setup
    clause: str
    events: tuple[Event, ...]
    loop: int | None = None
    sentence: str = ""
    origin: Mapping[str, Any] = field(default_factory=dict)
    suite_version: str = ""
    path: Path | None = None
    on: str = ""
    recorded: tuple[Step, ...] = ()
    peace: int | None = None


@dataclass(frozen=True, slots=True)
class Played:
    """Result of a run: the ``sentence`` that says how it breaks its clause, after how many events.

    None: it does not break it, and ``why`` may say what is wrong with the loop.
    """

    sentence: str | None
    after: int = 0
    why: str = ""


def of_lasso(setup: Setup, lasso: Lasso, clause: str = CONVERGES.id) -> SavedRun:
    """Return the run that never settles, or rebalances for ever."""
    return SavedRun(
        setup=setup,
        clause=clause,
        events=lasso.stem + lasso.cycle,
        loop=len(lasso.stem),
        sentence=FOR_EVER[clause],
    )


def run_views(run: SavedRun, most: int) -> Iterator[StepView]:
    """Yield the start and the first ``most`` steps of a run, for who steps through it: played again on the
    model, or of a run of Kafka's code what was seen. Raises CannotHappenError."""
    if not run.on:
        yield from views(machine(run.setup), run.events[:most])
        return
    yield StepView(label="0", what="the start")
    for step in run.recorded[:most]:
        yield StepView(
            label=f"{step.number}",
            what=step.what,
            seen=step.seen,
            fault=step.fault,
            parties=tuple(
                (one.name, f"{one.life}, " * bool(one.life) + owner_text(one)) for one in step.owners
            ),
        )


def play(run: SavedRun) -> Played:
    """Replay ``run`` on the model, step by step, and ask its clause.

    A run of a situation shows it. Raises CannotHappenError when the model does not allow an event, and
    InvariantError for an invariant that cannot be asked.
    """
    built, required = machine(run.setup), rules_about(run.setup, run.clause)
    if run.loop is not None:
        for _ in built.replay(run.events):
            pass
        about = required.about(run.clause)
        goals: tuple[Finally | Bounded, ...] = (*about.finally_, *about.bounded)
        if not goals:
            return Played(None, why=f"{run.clause} is not asked of this group")
        try:
            confirm(built, goals[0], Lasso(built.initial[0], run.events[: run.loop], run.events[run.loop :]))
        except ValueError as error:
            return Played(None, why=str(error))
        return Played(FOR_EVER[run.clause], len(run.events))
    judge = Judge(built, required, run.clause)
    state, after = built.initial[0], 0
    for broken in judge.state(state):  # an invariant of one's own may fail before anything happens
        return Played(broken.sentence, after)
    for after, (reached, outcome) in enumerate(built.replay(run.events), 1):
        before, state = state, reached
        since = quiet(built, run.events[:after]) if judge.rules.bounded else ()
        if any(judge.rules.shown(run.events[after - 1], outcome.seen)):
            return Played("the run shows it", after)
        step = judge.step(before, run.events[after - 1], outcome)
        for broken in (*step, *judge.state(state), *judge.run(since)):
            return Played(broken.sentence, after)
    normal = built.normal(state)
    for broken in judge.rest(normal, built.outcomes(normal)):
        return Played(broken.sentence, after)
    return Played(None)
