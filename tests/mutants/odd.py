"""Mutants of assignors that promise less than others: each keeps less than it promises."""

from __future__ import annotations

from importlib import import_module
from typing import Any

examples: Any = import_module("examples.odd_assignors")


def _changed(kind: Any, **attributes: Any) -> Any:
    assignor = kind()
    for name, value in attributes.items():
        setattr(assignor, name, value)
    return assignor


def _unless_new(cluster: Any, group: Any) -> Any:
    if len(group) == 3 and not any(subscription.owned_partitions for subscription in group.values()):
        return dict.fromkeys(group, ())
    return examples.StopTheWorld().assign(cluster, group)


def _all_but_one(hands: Any) -> Any:
    return {member: mine[: len(mine) > 1] for member, mine in hands.items()}


OneTooMany = _changed(examples.Capacity, most=4)
"""partial/limit/1: it carries four, and says three."""

OneMoreAtOnce = _changed(examples.Gradual, moves=3)
"""gradual/moves/1: three move where it says two."""

WaitsForNobody = _changed(examples.StopTheWorld, assign=_unless_new)
"""stop-the-world/assign/1: three new members are given nothing, and none of them has to revoke anything."""

KeepsTheFirst = _changed(examples.StopTheWorld, before=_all_but_one)
"""stop-the-world/revoke/1: who has several may keep one, while everything else is given back."""

LeavesItIdle = _changed(examples.Weighted, share=lambda group, wanted: None)
"""weighted/idle/1: who could have something of a member that has much gets nothing."""
