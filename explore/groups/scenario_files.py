"""A scenario of one's own, from a file in TOML: the fields of `NamedScenario`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from rebalance_verifier.base.names import unknown
from rebalance_verifier.base.reading import Unreadable, toml_of
from rebalance_verifier.base.text import cut
from rebalance_verifier.explore.groups.scenarios import SCENARIOS, UNIFORM, NamedScenario, ScenarioError
from rebalance_verifier.model.assignors import NAMES
from rebalance_verifier.model.group.setup import CLASSIC, MIGRATION, POLICIES
from rebalance_verifier.model.protocols import FAULTS

BASE = "like"
"""The key that names the scenario of which everything is that the file does not say."""

_FIELDS = {field.name: str(field.type) for field in fields(NamedScenario) if field.name != "name"}
_USUAL = {field.name: field.default for field in fields(NamedScenario)}
_TYPES: dict[str, type] = {"str": str, "int": int, "bool": bool}


def scenario_in(path: Path) -> NamedScenario:
    """Return the scenario that a file describes; its name is that of the file.

    ``lists`` has for each member the assignors that it lists, as names, or as lists of names that it goes
    through one after the other as it is upgraded. Raises ScenarioError, which names the key, and OSError.
    """
    try:
        read = toml_of(path)
    except Unreadable as error:
        raise ScenarioError(str(error)) from error
    like = read.pop(BASE, "dynamic")
    if not isinstance(like, str) or like not in SCENARIOS:
        raise ScenarioError(f"{path}: {BASE}: {unknown('scenario', str(like), SCENARIOS)}")
    base = {name: getattr(SCENARIOS[like], name) for name in _FIELDS}
    given = {name: _value(path, name, value) for name, value in read.items()}
    made = NamedScenario(name=path.stem, **(base | {"sentence": f"as {path.name} says"} | given))
    if "all" in made.faults:
        made = replace(made, faults=made.protocol.faults)
    for name, why in _without_effect(made, given):
        whose = "" if name in given else f" (of {BASE} = {like!r})"
        raise ScenarioError(f"{path}: {name}{whose}: {why}")
    return made


_CLASSIC = ("lowers", "racks", "leaves", "warmups")
"""Keys of which only the model of the classic protocol knows."""


def _without_effect(made: NamedScenario, given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Keys that would be passed over in silence, and what to write instead."""
    group = made.protocol.group
    listed, members = len(made.lists), made.members
    for name in () if made.protocol.name == CLASSIC else _CLASSIC:
        usual = _USUAL[name]
        if getattr(made, name) != usual:
            yield (
                name,
                f"{group} has none in the model: write {name} = {_toml(usual)}, or lists without uniform",
            )
    if made.protocol.name != MIGRATION and made.policy != _USUAL["policy"]:
        both = "lists with uniform and other assignors"
        yield (
            "policy",
            f"of groups between the protocols only: write {both}, or policy = {_toml(_USUAL['policy'])}",
        )
    kinds = made.protocol.faults
    for fault in made.faults:
        if fault not in kinds:
            yield "faults", f"{fault!r} does not happen to {group}; there are {', '.join(kinds)}"
    if made.lowers and not made.crowded:
        yield "lowers", "lowers group.max.size, which there is with crowded = 1 or more"
    if made.crowded >= max(made.members, 1):
        yield "crowded", f"{made.crowded} of {made.members} members: one at least has to fit in"
    if made.appears and not (made.topics > 1 and made.spare):
        yield "patterns", "a topic is not there at first: write topics = 2 or more, and spare = 1 or more"
    if made.apart and made.topics < 2:
        yield "apart", "each member subscribes to a topic of its own first: write topics = 2 or more"
    if "lists" in given and listed > members:
        yield "lists", f"{listed} members are listed, there are {members}: write members = {listed}"


def _toml(value: Any) -> str:
    """Return a value as the file has it, cut where it is long."""
    if isinstance(value, list):
        return cut(f"[{', '.join(map(_toml, value[:9]))}]", 60)
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, str):
        return cut(json.dumps(value, ensure_ascii=False), 60)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _value(path: Path, name: str, value: Any) -> Any:
    where = f"{path}: {name}"
    if name not in _FIELDS:
        raise ScenarioError(f"{path}: {unknown('key', name, [BASE, *_FIELDS])}")
    if name == "faults":
        if value in ("all", "none"):
            value = [value]
        names = _texts(where, value)
        for fault in names:
            if fault not in (*FAULTS, "all", "none"):
                raise ScenarioError(f"{where}: {unknown('fault', fault, [*FAULTS, 'all', 'none'])}")
        if "none" in names and len(names) > 1:
            raise ScenarioError(f"{where}: none stands alone")
        return tuple(dict.fromkeys(fault for fault in names if fault != "none"))
    if name == "lists":
        if not isinstance(value, list) or not value:
            raise ScenarioError(f"{where}: a list with the assignors of each member is expected")
        return tuple(_stages(f"{where}[{index}]", one) for index, one in enumerate(value))
    kind = _TYPES[_FIELDS[name]]
    if type(value) is not kind or (isinstance(value, int) and value < 0):
        expected = {str: "a text", int: "a number from 0", bool: "true or false"}[kind]
        raise ScenarioError(f"{where}: {expected} is expected, not {_toml(value)}")
    if name == "policy" and value not in POLICIES:
        raise ScenarioError(f"{where}: {unknown('policy', str(value), POLICIES)}")
    return value


def _stages(where: str, value: Any) -> tuple[tuple[str, ...], ...]:
    """Return what one member lists, stage by stage."""
    stages = value if isinstance(value, list) and value and isinstance(value[0], list) else [value]
    found = []
    for stage in stages:
        names = _texts(where, stage)
        if not names:
            raise ScenarioError(f"{where}: a member lists one assignor at least")
        if len(set(names)) < len(names):
            raise ScenarioError(f"{where}: a member lists an assignor once, not {', '.join(names)}")
        if len(names) > 1 and set(UNIFORM) & set(names):
            raise ScenarioError(
                f"{where}: uniform is the coordinator's and stands alone, not {', '.join(names)}"
            )
        for name in names:
            if name not in (*NAMES, *UNIFORM):
                raise ScenarioError(f"{where}: {unknown('assignor', name, [*NAMES, *UNIFORM])}")
        found.append(tuple(names))
    return tuple(found)


def _texts(where: str, value: Any) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise ScenarioError(f"{where}: a list of names is expected, not {_toml(value)}")
    return value
