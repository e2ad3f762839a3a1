"""Hypothesis plays the group: the same machine, the same rules, sizes that no exhaustive search reaches.

Three ways in. ``runs`` is a strategy of whole runs, for tests with ``@given``. ``find`` searches with it,
deterministic under its seed, and gives back the smallest run that Hypothesis came to. ``group_machine`` is
the same group as a state machine for ``run_state_machine_as_test`` or as a test case; it is slower, since
Hypothesis keeps books at every step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis import strategies as st
from hypothesis.internal.conjecture.data import ConjectureData
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from rebalance_verifier.explore.random.swarm import (
    DENSITIES,
    SWARM_SEEDS,
    PlayedRun,
    RandomRun,
    RulesOf,
    RunConfig,
    RunContext,
    described,
    run_context,
    swarm_config,
)
from rebalance_verifier.model.classic.group import FAULTS
from rebalance_verifier.model.group.parts import Parts, Topics
from rebalance_verifier.model.group.setup import Consumer, ConsumerConfig, Setup
from rebalance_verifier.properties.group import clauses

STEPS = 60
"""How many numbers are drawn for one run at most, where nothing else is said."""


EXAMPLES = 5_000
"""How many examples ``find`` plays at most, where nothing else is said: up to some fifteen seconds."""


class StatefulFinding(NamedTuple):
    """The smallest run that breaks a clause, and how many examples were played until the first did."""

    run: PlayedRun
    examples: int


class BreachError(AssertionError):
    """A run breaks a clause; its text says which, how, and after which events."""

    def __init__(self, run: PlayedRun) -> None:
        super().__init__(str(run))
        self.run = run


@st.composite
def swarm_configs(draw: st.DrawFn, context: RunContext) -> RunConfig:
    """Return how one run of ``context`` is drawn; the simplest has every fault, and nothing is put off."""
    return swarm_config(context, draw(st.sampled_from(DENSITIES)), draw(st.integers(0, SWARM_SEEDS)))


class _Played(st.SearchStrategy[None]):
    """Plays on by drawn numbers, to a breach, to the end of what can happen, or to two zeros in a row.

    A zero does nothing, so that the shrinker can try to leave a step out by it. Hypothesis knows nothing of
    the steps: where every number is a draw of its own it spends five of six examples on copies of the one
    before, with one number put in the place of another. Then most clauses take several times as many examples
    to find (measured on the nineteen rarest), and an example takes longer. For that this class overrides
    ``do_draw``, which is not documented: nothing public draws several values as one.
    """

    def __init__(self, random_run: RandomRun, steps: int) -> None:
        super().__init__()
        self.random_run, self.steps = random_run, steps

    def do_draw(self, data: ConjectureData) -> None:
        random_run, before = self.random_run, 1
        top = random_run.top
        for _ in range(self.steps):
            number = data.draw_integer(0, top)
            if random_run.broken or number == before == 0 or (number and not random_run.step(number)):
                return
            before = number


@st.composite
def runs(
    draw: st.DrawFn,
    setup: Setup | st.SearchStrategy[Setup],
    steps: int = STEPS,
    clause: str | None = None,
    rules_of: RulesOf = clauses.rules,
) -> PlayedRun:
    """Whole runs of at most ``steps`` drawn events, judged; with ``clause`` by that one only.

    A run ends with its first breach, and else after the group was left alone for as long as it needed.
    """
    context = run_context(setup if isinstance(setup, Setup) else draw(setup), rules_of, clause)
    random_run = RandomRun(context, draw(swarm_configs(context)))
    draw(_Played(random_run, steps))
    random_run.settle()
    return random_run.run


def find(
    setup: Setup | st.SearchStrategy[Setup],
    *,
    clause: str | None = None,
    seed: int = 0,
    max_examples: int = EXAMPLES,
    steps: int = STEPS,
    rules_of: RulesOf = clauses.rules,
) -> StatefulFinding | None:
    """Search for a run that breaks ``clause``, or any; None when no example does.

    The same under the same arguments, unless shrinking takes so long that Hypothesis gives up on it (some
    minutes). ``PlayedRun.events`` of what is found replay on ``machine(setup)`` from its initial state.
    """
    smallest: list[PlayedRun] = []
    played = [0, 0]  # until the first breach, in all

    @settings(
        max_examples=max_examples, database=None, derandomize=False, deadline=None, print_blob=False,
        phases=(Phase.generate, Phase.shrink), suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False, verbosity=Verbosity.quiet,
    )  # fmt: skip
    @given(runs(setup, steps, clause, rules_of))
    def test(run: PlayedRun) -> None:
        played[1] += 1
        if run.clause:
            played[0] = played[0] or played[1]
            smallest[:] = [run]
            raise BreachError(run)

    try:
        _seeded(seed, test)()
    except BreachError:
        return StatefulFinding(smallest[-1], played[0])
    return None


def _seeded(number: int, test: Callable[[], None]) -> Callable[[], None]:
    seeded: Callable[[], None] = seed(number)(test)
    return seeded


class _DrawnSetup(NamedTuple):
    """A setup that Hypothesis prints in one line."""

    setup: Setup

    def __repr__(self) -> str:
        return f"<{described(self.setup)}>"


@st.composite
def _drawn(draw: st.DrawFn, setups: st.SearchStrategy[Setup]) -> _DrawnSetup:
    """Return one of the setups; of a strategy that is mapped Hypothesis would print the call, with all of
    it."""
    return _DrawnSetup(draw(setups))


def group_machine(
    setup: Setup | st.SearchStrategy[Setup], clause: str | None = None, rules_of: RulesOf = clauses.rules
) -> type[RuleBasedStateMachine]:
    """Return the group as a Hypothesis state machine; ``settings.stateful_step_count`` is the length of its
    runs.

    Fails with ``BreachError``, whose ``run`` has the events.
    """

    class GroupMachine(RuleBasedStateMachine):
        random_run: RandomRun | None = None

        @initialize(data=st.data())
        def begin(self, data: st.DataObject) -> None:
            given = setup if isinstance(setup, Setup) else data.draw(_drawn(setup), "group").setup
            context = run_context(given, rules_of, clause)
            self.random_run = RandomRun(context, data.draw(swarm_configs(context), "mood"))

        @rule(number=st.runner().flatmap(lambda self: st.integers(1, self.top)))
        def step(self, number: int) -> None:
            assert self.random_run is not None
            self.random_run.step(number)
            self._judge()

        @property
        def top(self) -> int:
            assert self.random_run is not None
            return self.random_run.top

        def teardown(self) -> None:
            if self.random_run is not None and not self.random_run.broken:
                self.random_run.settle()
                self._judge()

        def _judge(self) -> None:
            assert self.random_run is not None
            if self.random_run.broken:
                raise BreachError(self.random_run.run)

    return GroupMachine


@st.composite
def setups(
    draw: st.DrawFn,
    members: int = 12,
    partitions: int = 40,
    topics: int = 4,
    faults: tuple[str, ...] = FAULTS,
) -> Setup:
    """Setups of up to so many members, partitions and topics: as specified, both kinds of protocol, some
    members static, both granularities of steps. The assignor sees one naming: asking it under every one is
    factorial."""
    count = draw(st.integers(1, members))
    width = draw(st.integers(1, topics))
    sizes = [draw(st.integers(1, max(1, partitions // width))) for _ in range(width)]
    names = draw(st.sampled_from(("cooperative-sticky", "range", "sticky", "roundrobin")))
    every = Topics((1 << width) - 1)
    choices = st.lists(st.integers(1, every), max_size=2, unique=True)
    consumers = []
    for slot in range(count):
        some = draw(choices)
        consumers.append(
            Consumer(
                stages=(ConsumerConfig(assignors=(names,)),),
                subscriptions=tuple(Topics(t) for t in (some or [every])),
                instance=slot if draw(st.integers(0, 3)) == 3 else None,
            )
        )
    parts, first = [], 0
    for size in sizes:
        parts.append(Parts(((1 << size) - 1) << first))
        first += size
    everything = Parts((1 << first) - 1)
    return Setup(
        consumers=tuple(consumers), topics=tuple(parts), exist=everything, faults=faults,
        budget=draw(st.integers(0, 24)),
        naming="given", steps=draw(st.sampled_from(("atomic", "fine"))),
    )  # fmt: skip
