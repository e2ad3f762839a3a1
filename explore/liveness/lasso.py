"""A run that never ends, written down: a stem, then a cycle for ever; and the replay that confirms it.

``confirm`` knows the machine and the definition of fairness in ``model.machine``, and shares no
code with the search in ``explore.liveness.liveness``: what the search claims is looked at from
scratch.
"""

from __future__ import annotations

from typing import NamedTuple

from rebalance_verifier.explore.engine.search import ModelTrace
from rebalance_verifier.model.machine import Event, Fairness, Machine, State
from rebalance_verifier.properties.group.rules import Bounded, Finally


class Lasso(NamedTuple):
    """``stem`` leads from ``initial`` to a state; ``cycle`` from there back to it, labels apart.

    An empty cycle: the run stays in that state for ever, nothing fair being possible.
    """

    initial: State
    stem: tuple[Event, ...]
    cycle: tuple[Event, ...]

    @property
    def trace(self) -> ModelTrace:
        """Return the stem and the cycle once."""
        return ModelTrace(self.initial, self.stem + self.cycle)


def confirm(machine: Machine, rule: Finally | Bounded, lasso: Lasso) -> None:
    """Replay ``lasso`` on the machine, and return if it does break ``rule``.

    Every event is taken by ``Machine.step``, labels as they come. Against ``Finally`` the cycle has no
    fault, ends where it began (in normal form), is fair, and visits a state in which the goal fails. It is
    fair when each weakly fair action is taken in it or not enabled in one of its states, and each strongly
    fair one is taken in it or enabled in none of its states. Against ``Bounded`` the cycle has no fault,
    ends where it began, and takes a step that counts; it need not be fair.

    Raises ValueError that says what is wrong with it.
    """
    if lasso.initial not in machine.initial:
        raise ValueError("the lasso does not begin in an initial state")
    state = lasso.initial
    for event in lasso.stem:
        state = machine.step(state, event)
    states = [state]
    for event in lasso.cycle:
        if machine.by_name[event.action, event.who].fault:
            raise ValueError(f"{event} is a fault, and faults have stopped in the cycle")
        states.append(machine.step(states[-1], event))
    if machine.normal(states[0]) != machine.normal(states[-1]):
        raise ValueError("the cycle does not end in the state in which it began")
    if isinstance(rule, Bounded):
        if not any(rule.counts(event) for event in lasso.cycle):
            raise ValueError(f"no step of the cycle counts for {rule.clause}")
        return
    if all(rule.holds(*[machine.look(state, view) for view in rule.views]) for state in states):
        raise ValueError(f"the goal of {rule.clause} holds in every state of the cycle")
    _confirm_fair(machine, states, lasso.cycle)


def _confirm_fair(machine: Machine, states: list[State], cycle: tuple[Event, ...]) -> None:
    """Raises ValueError when the run that repeats ``cycle`` is unfair to some action."""
    taken = {(event.action, event.who) for event in cycle}
    enabled = [{(event.action, event.who) for event in machine.enabled(state)} for state in states]
    for action in machine.actions:
        name = (action.name, action.who)
        if action.fault or name in taken:
            continue
        if action.fairness is Fairness.WEAK and all(name in here for here in enabled):
            raise ValueError(f"unfair: {name} is weakly fair, enabled all the time and never taken")
        if action.fairness is Fairness.STRONG and any(name in here for here in enabled):
            raise ValueError(f"unfair: {name} is strongly fair, enabled again and again and never taken")
