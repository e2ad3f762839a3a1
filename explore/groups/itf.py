"""Traces in the Informal Trace Format, for viewers and test generators that were written for TLA+.

The format is ADR-015 of Apalache (``docs/src/adr/015adr-trace.md`` there); Quint and itf-rs read it too.
Values become: numbers {"#bigint": "7"}, so that no parser rounds them; tuples {"#tup": [...]}; named tuples
and dataclasses records; sets {"#set": [...]} in a fixed order; mappings {"#map": [[key, value], ...]}; lists,
strings and booleans themselves; members of an enumeration their names; None the variant of tag Nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from rebalance_verifier.explore.groups.runs import SavedRun
from rebalance_verifier.model.machine import NOBODY, Event, Machine, State
from rebalance_verifier.model.protocols import machine

ABOUT = "https://apalache-mc.org/docs/adr/015adr-trace.html"
NO_NAMES: Mapping[str, str] = {}
ABSENT = {"tag": "Nothing", "value": "U_OF_UNIT"}
"""No value: a variant with Apalache's unit. itf-py makes a class of the tag, and none can be called None; it
takes an object in place of the unit, as Quint writes it, for a record."""


def of_run(run: SavedRun) -> dict[str, Any]:
    """Return a run of the group as an ITF object. Raises CannotHappenError when the model does not allow a
    step."""
    built = machine(run.setup)
    for _ in built.replay(run.events):
        pass  # which says what is wrong with a run that cannot happen
    names = {name: name.replace(" ", "_") for name in built.components}
    about = {"description": run.sentence, "source": run.clause}
    return trace(built, built.initial[0], run.events, run.loop, names, **about)


def trace(
    built: Machine,
    initial: State,
    events: tuple[Event, ...],
    loop: int | None = None,
    names: Mapping[str, str] = NO_NAMES,
    **meta: str,
) -> dict[str, Any]:
    """Return a run as an ITF object, for ``json.dumps``.

    ``names``: component -> name of the variable, its own name where there is none. ``meta`` goes into the
    object's ``#meta`` (``description``, ``source``). ``#meta`` of each state but the first says which event
    led there. ``loop``: after so many events those begin that come again and again. Then the object has the
    field ``loop``: the step after the last state leads to that state; its states are normal forms, since only
    as such do they come again. Without events in it the loop is of the last state.

    Raises ValueError when an event cannot happen, or two variables would have one name.
    """
    variables = [names.get(component, component) for component in built.components]
    if len(set(variables)) < len(variables):
        raise ValueError(f"two components of one name among {variables}")
    states, closed = _states(built, initial, events), loop is not None and loop < len(events)
    if loop is not None:
        states = [built.normal(state) for state in states]
    result: dict[str, Any] = {
        "#meta": {"format": "ITF", "format-description": ABOUT, **meta},
        "vars": variables,
        "states": [
            {"#meta": {"index": index} | (_described(events[index - 1]) if index else {})}
            | {name: value(one) for name, one in zip(variables, state, strict=True)}
            # The last event of a loop leads back to the first state of it, which is there already.
            for index, state in enumerate(states[: len(states) - closed])
        ],
    }
    if loop is not None:
        result["loop"] = loop
    if closed:
        result["#meta"]["closed-by"] = _described(events[-1])
    return result


def _states(built: Machine, initial: State, events: tuple[Event, ...]) -> list[State]:
    states = [initial]
    for event in events:
        states.append(built.step(states[-1], event))
    return states


def _described(event: Event) -> dict[str, Any]:
    """Return an event, without what it does not have."""
    described: dict[str, Any] = {"action": event.action}
    if event.who != NOBODY:
        described["who"] = event.who
    if event.choice:
        described["choice"] = event.choice
    return described


def value(one: object) -> Any:
    """``one`` as an ITF expression.

    >>> value((1, "a", frozenset({True}), None))
    {'#tup': [{'#bigint': '1'}, 'a', {'#set': [True]}, {'tag': 'Nothing', 'value': 'U_OF_UNIT'}]}

    Raises TypeError for what the format has no word for.
    """
    if isinstance(one, Enum):
        return one.name
    if isinstance(one, bool | str):
        return one
    if isinstance(one, int):
        return {"#bigint": str(one)}
    if one is None:
        return dict(ABSENT)
    if isinstance(one, tuple):
        if hasattr(one, "_fields"):
            return _record(dict(zip(one._fields, one, strict=True)))
        return {"#tup": [value(item) for item in one]}
    if isinstance(one, list):
        return [value(item) for item in one]
    if isinstance(one, set | frozenset):
        return {"#set": sorted((value(item) for item in one), key=_order)}
    if isinstance(one, Mapping):
        return {"#map": sorted(([value(key), value(item)] for key, item in one.items()), key=_order)}
    if is_dataclass(one):
        return _record({field.name: getattr(one, field.name) for field in fields(one)})
    raise TypeError(f"ITF has no word for {one!r} of {type(one).__name__}")


def _record(items: Mapping[str, object]) -> dict[str, Any]:
    return {name: value(item) for name, item in items.items()}


def _order(expression: Any) -> tuple[int, int, str]:
    """Return a fixed order, of numbers by size: a number's text alone would put 10 before 9."""
    if isinstance(expression, dict) and "#bigint" in expression:
        return 0, int(expression["#bigint"]), ""
    return 1, 0, json.dumps(expression, sort_keys=True)
