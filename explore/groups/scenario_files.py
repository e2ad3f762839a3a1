"""A scenario of one's own, from a file in TOML: the fields of `NamedScenario`."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

from rebalance.explore.groups.scenarios import SCENARIOS, UNIFORM, NamedScenario, ScenarioError
from rebalance.model.assignors import NAMES
from rebalance.model.consumer.migration.either import FAULTS
from rebalance.model.names import unknown
from rebalance.model.protocol.setup import POLICIES
from rebalance.model.reading import Unreadable, toml_of

BASE = "like"
"""The key that names the scenario of which everything is that the file does not say."""

_FIELDS = {field.name: str(field.type) for field in fields(NamedScenario) if field.name != "name"}
_TYPES: dict[str, type] = {"str": str, "int": int, "bool": bool}


def scenario_in(path: Path) -> NamedScenario:
    """The scenario that a file describes; its name is that of the file.

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
    return NamedScenario(name=path.stem, **(base | {"sentence": f"as {path.name} says"} | given))


def _value(path: Path, name: str, value: Any) -> Any:
    where = f"{path}: {name}"
    if name not in _FIELDS:
        raise ScenarioError(f"{path}: {unknown('key', name, [BASE, *_FIELDS])}")
    if name == "faults":
        for fault in _texts(where, value):
            if fault not in FAULTS:
                raise ScenarioError(f"{where}: {unknown('fault', fault, FAULTS)}")
        return tuple(value)
    if name == "lists":
        if not isinstance(value, list) or not value:
            raise ScenarioError(f"{where}: a list with the assignors of each member is expected")
        return tuple(_stages(f"{where}[{index}]", one) for index, one in enumerate(value))
    kind = _TYPES[_FIELDS[name]]
    if type(value) is not kind or (isinstance(value, int) and value < 0):
        expected = {str: "a text", int: "a number from 0", bool: "true or false"}[kind]
        raise ScenarioError(f"{where}: {expected} is expected, not {value!r}")
    if name == "policy" and value not in POLICIES:
        raise ScenarioError(f"{where}: {unknown('policy', str(value), POLICIES)}")
    return value


def _stages(where: str, value: Any) -> tuple[tuple[str, ...], ...]:
    """What one member lists, stage by stage."""
    stages = value if isinstance(value, list) and value and isinstance(value[0], list) else [value]
    found = []
    for stage in stages:
        names = _texts(where, stage)
        if not names:
            raise ScenarioError(f"{where}: a member lists one assignor at least")
        for name in names:
            if name not in (*NAMES, *UNIFORM):
                raise ScenarioError(f"{where}: {unknown('assignor', name, [*NAMES, *UNIFORM])}")
        found.append(tuple(names))
    return tuple(found)


def _texts(where: str, value: Any) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise ScenarioError(f"{where}: a list of names is expected, not {value!r}")
    return value
