"""Verification of Kafka consumer group rebalancing: judge an assignor, explore a group, audit its logs.

    from rebalance_verifier import audit, check, explore

    assert check("my_module:MyAssignor", profile="smoke")
    assert explore("static", members=2)
    assert audit(["a.log", "b.log"])

These names are the public API; docs/reference/api.md has their docstrings. Each is loaded when it is used.
Any other module of the package is private and may move. PYTEST_DONT_REWRITE
"""

# pytest rewrites the top-level packages of every distribution that has a plugin. Where it finds none with an
# __init__.py, it leaves out the first folder of each path and looks again: it found our `__main__`, `model`,
# `gate` and so on, and warned in every run that __main__ was imported already. The docstring's last word is
# for a program that imports us and then calls pytest.main(): there pytest would warn of this package.

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rebalance_verifier.api.auditing import audit
    from rebalance_verifier.api.checking import assert_conforms, check, play
    from rebalance_verifier.api.groups import (
        SizedScenario,
        code_machine,
        explore,
        find_run,
        group_machine,
        runs,
        scenario,
    )
    from rebalance_verifier.api.judgement import CannotJudge, JudgedFinding, Judgement
    from rebalance_verifier.base.verdict import Verdict
    from rebalance_verifier.cli.pytest_plugin import conformance
    from rebalance_verifier.explore.random.group_machine import setups
    from rebalance_verifier.gate.scenarios.strategies import histories
    from rebalance_verifier.live.clients.proxy.proxy import Proxy
    from rebalance_verifier.live.clients.proxy.rules import ProxyRule
    from rebalance_verifier.model.assignor import Assignor
    from rebalance_verifier.model.values import (
        Cluster,
        GroupAssignment,
        GroupSubscription,
        Subscription,
        TopicPartition,
    )

    __version__: str

_HOMES = {
    "api.auditing": ("audit",),
    "api.checking": ("assert_conforms", "check", "play"),
    "api.groups": (
        "SizedScenario",
        "code_machine",
        "explore",
        "find_run",
        "group_machine",
        "runs",
        "scenario",
    ),
    "api.judgement": ("CannotJudge", "JudgedFinding", "Judgement"),
    "base.verdict": ("Verdict",),
    "cli.pytest_plugin": ("conformance",),
    "explore.random.group_machine": ("setups",),
    "gate.scenarios.strategies": ("histories",),
    "live.clients.proxy.proxy": ("Proxy",),
    "live.clients.proxy.rules": ("ProxyRule",),
    "model.assignor": ("Assignor",),
    "model.values": ("Cluster", "GroupAssignment", "GroupSubscription", "Subscription", "TopicPartition"),
}
"""Module -> the public names that it defines; the imports above say the same to type checkers."""

_MODULES = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "Assignor",
    "CannotJudge",
    "Cluster",
    "GroupAssignment",
    "GroupSubscription",
    "JudgedFinding",
    "Judgement",
    "Proxy",
    "ProxyRule",
    "SizedScenario",
    "Subscription",
    "TopicPartition",
    "Verdict",
    "__version__",
    "assert_conforms",
    "audit",
    "check",
    "code_machine",
    "conformance",
    "explore",
    "find_run",
    "group_machine",
    "histories",
    "play",
    "runs",
    "scenario",
    "setups",
]


def __getattr__(name: str) -> object:
    """Load a public name when it is first used (PEP 562)."""
    if name == "__version__":
        from importlib.metadata import version

        return version("rebalance-verifier")
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    found = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return [*__all__]


class _Package(ModuleType):
    """This package, whose public names stay what they are when a private package of one name is imported.

    Whoever imports `rebalance_verifier.explore.engine` has Python set `explore` here to that package, also
    behind our back: a check loads it, and `explore("static")` would then call a module.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _MODULES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
