"""An action that is asked again only when what it reads has changed says what it would have said."""

from __future__ import annotations

from random import Random

from rebalance_verifier.explore.groups.scenarios import SCENARIOS, ScenarioSize
from rebalance_verifier.model.classic.group import machine
from rebalance_verifier.model.machine import NOBODY, Options


def test_options_are_the_outcomes_of_each_state_of_a_run() -> None:
    built = machine(SCENARIOS["dynamic"].setup(ScenarioSize(members=2, partitions=2, budget=300)))
    options, random, state = Options(built), Random(3), built.initial[0]
    actions = set()
    for number in range(80):
        every = list(built.outcomes(state))
        options.move(state)
        if number % 3:  # what nobody wants to know is asked later
            faults = {event for event, _ in every} - {
                event for event, _ in built.outcomes(state, faults=False)
            }
            assert list(options.among(faults=True)) == [one for one in every if one[0] in faults]
            assert list(options.among(faults=False)) == [one for one in every if one[0] not in faults]
        for action in built.actions[:: 1 + number % 5]:
            possible = (action.name, action.who) in {(event.action, event.who) for event, _ in every}
            assert options.can(action.name, action.who) is possible
        event, outcome = every[random.randrange(len(every))]
        actions.add(event.action)
        state = built.apply(state, event, outcome)
    assert len(actions) > 12
    assert not options.can("no such action", NOBODY)
