"""One run on Kafka's own code: step after step judged by the clauses, and in the end left in peace."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from rebalance_verifier.live.code.replay.group import CodeReleases
from rebalance_verifier.live.code.replay.on_code import SHOWN_BY_CODE
from rebalance_verifier.live.code.search.choice import CodeChoice
from rebalance_verifier.live.code.search.enabled import choices, faults_of
from rebalance_verifier.live.code.search.group import GroupAssignor, SearchedGroup
from rebalance_verifier.live.code.search.quiescence import Ending, Peace
from rebalance_verifier.live.code.search.served import MixedGroup
from rebalance_verifier.live.code.search.steps import SearchSteps
from rebalance_verifier.live.code.simulation import Simulation, SimulationBroken, SimulationDied
from rebalance_verifier.model.classic.describe import event_text, observation_text
from rebalance_verifier.model.consumer.describe import observation_text as served_text
from rebalance_verifier.model.consumer.observations import (
    Acknowledged,
    Advanced,
    BeatAnswered,
    Committed,
    Ended,
    Granted,
)
from rebalance_verifier.model.group.observations import (
    Admitted,
    Callback,
    Completed,
    Elected,
    Repeated,
    Replaced,
    TurnedAway,
)
from rebalance_verifier.model.group.parts import NONE, each
from rebalance_verifier.model.group.setup import CLASSIC, CONSUMER, Setup, letter
from rebalance_verifier.model.machine import Event, StepOwner
from rebalance_verifier.model.steps import Step
from rebalance_verifier.properties.group.clauses import CLAUSES, CONVERGES, TABLE, rules

ASKED = (*sorted(SHOWN_BY_CODE - {CONVERGES.id, "callback/generation"}), "group/commit")
"""The clauses that are asked of every step. To which generation a callback belongs only a trace says."""

NOT_ASKED = tuple(one.id for one in TABLE if one.id not in (*ASKED, CONVERGES.id))
"""Those that do not show in a simulation, or of which a simulation does not tell enough."""

OF_CLIENTS = ("callback/", "member/runs", "epoch/acknowledged")
"""How the clauses begin that the model's client keeps or breaks by itself."""

OF_ITSELF = Callback | Acknowledged
"""What the model's client does by itself."""

OF_SERVED = BeatAnswered | Committed | Ended
"""What is seen of a consumer group alone."""

PLAIN = Admitted | Elected | Repeated | Replaced | TurnedAway | Advanced | Granted | Acknowledged
"""What is asked about and says nothing to who reads a run."""

BROKEN = "cell"
"""Instead of a clause: Kafka's code threw where no application sees it."""


def asked_clauses(setup: Setup) -> tuple[str, ...]:
    """Return the clauses that a search asks of a group of ``setup``. Those of callbacks are of Kafka's own
    consumers alone."""
    if setup.protocol == CLASSIC:
        return (*ASKED, CONVERGES.id, BROKEN)
    without = OF_CLIENTS if setup.protocol == CONSUMER else OF_CLIENTS[1:]
    known = (one for one in rules(setup).safety if not one.startswith(without))
    return (*dict.fromkeys(known), CONVERGES.id, BROKEN)


def not_asked(setup: Setup, clauses: Sequence[str]) -> list[str]:
    """Return the clauses of a group of ``setup`` that are not among ``clauses``."""
    known = CLAUSES if setup.protocol == CLASSIC else dict.fromkeys(rules(setup).broken_by)
    return [one for one in known if one not in clauses]


@dataclass(frozen=True, slots=True)
class CodeBreach:
    """A clause that a run breaks, and how."""

    clause: str
    sentence: str

    @property
    def cause(self) -> str:
        """The sentence without names and numbers, which differ from run to run.

        >>> CodeBreach("group/owner", "t-0 t-2 is owned by A and by C").cause
        'P is owned by X and by X'
        """
        text = re.sub(r"\bt\d*-\d+( t\d*-\d+)*", "P", self.sentence)
        text = re.sub(r"@[0-9a-f]+\b", "@N", text)  # hashCode of an object, in the message of an exception
        return re.sub(r"\d+", "N", re.sub(r"\b[A-L]\b", "X", text))


@dataclass(kw_only=True)
class PlayedOnCode:
    """Steps of a run that was played: ``events`` as they were taken, from number ``peace`` on left in peace;
    ``breaches`` with the number of events after which each showed first.

    An event that changed nothing that can be seen is among them: it may have changed what cannot.
    """

    events: list[Event] = field(default_factory=list)
    breaches: dict[CodeBreach, int] = field(default_factory=dict)
    peace: int | None = None
    ending: Ending | None = None
    steps: list[Step] = field(default_factory=list)


class CodePlaying:
    """Runs of one group on a simulation, one after the other: create once, `begin` for each.

    ``keeps``: steps are kept to be shown. ``clauses``: those that are asked. ``dead``: the JVM has ended or
    hangs, and nothing more can be played.
    """

    def __init__(
        self,
        simulation: Simulation,
        setup: Setup,
        releases: CodeReleases,
        *,
        keeps: bool = False,
        assignor: GroupAssignor | None = None,
        clauses: Sequence[str] | None = None,
    ) -> None:
        self.setup, self.keeps = setup, keeps
        self.faults = faults_of(setup)
        made = SearchedGroup if setup.protocol == CLASSIC else MixedGroup
        self.group = made(simulation, setup, releases, assignor)
        self.clauses = asked_clauses(setup) if clauses is None else clauses
        self.dead = False
        self.steps = SearchSteps(self.group)
        step_clauses = (one for one in asked_clauses(setup) if one in self.clauses and one != CONVERGES.id)
        self.rules = rules(setup).about(*step_clauses)
        self.played = PlayedOnCode()
        self._causes: set[tuple[str, str]] = set()
        self.faults_left = setup.budget

    def begin(self) -> None:
        """Begin a new run. Raises NotEnabled, SimulationBroken, SimulationDied."""
        self.group.begin()
        self.played = PlayedOnCode()
        self._causes = set()
        self.faults_left = self.setup.budget

    def copied(self) -> PlayedOnCode:
        """Return what was played so far, to `resume` it."""
        run = self.played
        return replace(run, events=list(run.events), breaches=dict(run.breaches), steps=list(run.steps))

    def resume(self, run: PlayedOnCode) -> None:
        """Go on after ``run``; the group stands where it ends."""
        self.played = run
        self.played = self.copied()
        self._causes = {(one.clause, one.cause) for one in run.breaches}

    @property
    def events(self) -> Sequence[Event]:
        return self.played.events

    @property
    def over(self) -> bool:
        """Check whether Kafka's code has failed where nobody sees it: nothing that follows says anything."""
        return any(one.clause == BROKEN for one in self.played.breaches)

    @property
    def breaches(self) -> Mapping[Hashable, int]:
        """Return each clause and cause with the number of events that show it, before the group rests."""
        run = self.played
        return {
            (one.clause, one.cause): run.peace or 0 if one.clause == CONVERGES.id else at
            for one, at in run.breaches.items()
        }

    def choices(self) -> list[CodeChoice]:
        """Return what can happen now, however many faults there were."""
        return [] if self.over else choices(self.group, self.faults)

    def possible(self) -> list[CodeChoice]:
        """Return what can happen now, with no more faults than the budget has."""
        return [one for one in self.choices() if self.faults_left or not one.fault]

    def is_fault(self, choice: CodeChoice) -> bool:
        return choice.fault

    def found(self, event: Event) -> CodeChoice | None:
        return self.steps.found(event, self.faults)

    def step(self, choice: CodeChoice) -> bool:
        """Take one; whether anything changed that can be seen. Raises SimulationDied."""
        changed = self._take(choice)
        self.faults_left -= changed and choice.fault
        return changed

    def _take(self, choice: CodeChoice) -> bool:
        self.played.events.append(choice.event)
        try:
            changed = self.steps.take(choice)
        except (SimulationBroken, SimulationDied) as error:
            self.dead = isinstance(error, SimulationDied)
            self._note(CodeBreach(BROKEN, error.why))
            return True
        if changed:
            self._judge(choice.event)
        if self.keeps:
            self._keep(choice)
        return changed

    def gather(self) -> None:
        """Start all consumers and let the group settle: a run may begin there. Raises SimulationDied."""
        Peace(self.group, self.steps, self._take, lambda: not self.over).come()

    def rest(self) -> Ending:
        """Check whether the group settles once nothing goes wrong any more."""
        if self.over:
            return Ending.STILL
        self.played.peace = len(self.played.events)
        ending = Peace(self.group, self.steps, self._take, lambda: not self.over).come()
        if self.over:
            return Ending.STILL
        self.played.ending = ending
        if ending is not Ending.SETTLED:
            self._note(CodeBreach(CONVERGES.id, f"nothing goes wrong any more, and the group {ending.value}"))
        return ending

    def _judge(self, event: Event) -> None:
        group = self.group
        of_code = [one for one in group.seen if not self._is_of_model(one)]
        for part in rebalances(of_code):
            for clause, sentence in self.rules.at_step(event, part):
                self._note(CodeBreach(clause, sentence))
        for clause, sentence in self.rules.in_state(group.seen_by_clauses(self.steps.arrived)):
            self._note(CodeBreach(clause, sentence))

    def _is_of_model(self, seen: object) -> bool:
        return isinstance(seen, OF_ITSELF) and self.group.is_played(seen.who)

    def _note(self, breach: CodeBreach) -> None:
        if breach.clause in self.clauses and (breach.clause, breach.cause) not in self._causes:
            self._causes.add((breach.clause, breach.cause))
            self.played.breaches[breach] = len(self.played.events)

    def _keep(self, choice: CodeChoice) -> None:
        group = self.group
        seen = tuple(_text(self.setup, one) for one in group.seen if self._says(one))
        owners = tuple(self._owner(slot) for slot in self.setup.slots)
        number = len(self.played.events)
        self.played.steps.append(
            Step(
                number=number, event=choice.event, fault=choice.fault, what=event_text(choice.event),
                seen=seen, owners=owners,
            )
        )  # fmt: skip

    def _says(self, seen: object) -> bool:
        """Check whether it says anything to who reads a run: of Kafka's own consumer `Threw` says more."""
        if isinstance(seen, Ended):
            return self.group.is_played(seen.who)
        return not isinstance(seen, PLAIN)

    def _owner(self, slot: int) -> StepOwner:
        if not self.group.is_up(slot):
            return StepOwner(letter(slot), "down", None, ())
        if self.group.is_played(slot):
            client = self.group.memory.clients[slot]
            epoch = None if client.epoch == NONE else client.epoch
            owned = tuple(str(self.setup.partition(number)) for number in each(client.owned))
            return StepOwner(letter(slot), "", epoch, owned)
        consumer = self.group.state.members[slot]
        assert consumer is not None
        generation = None if consumer.generation == NONE else consumer.generation
        return StepOwner(letter(slot), "", generation, tuple(sorted(consumer.owned)))


def _text(setup: Setup, seen: object) -> str:
    """Return one observation as text; those of heartbeats are the consumer protocol's."""
    describe = served_text if isinstance(seen, OF_SERVED) else observation_text
    return describe(setup, seen)


def rebalances(seen: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Return what was seen, apart where one poll ends a rebalance and prepares for the next one."""
    ends = [at for at, one in enumerate(seen, 1) if isinstance(one, Completed)]
    parts = [tuple(seen[begin:end]) for begin, end in pairwise([0, *ends, len(seen)])]
    return [part for part in parts if part]
