"""Python assignors by name, in the process that hosts them: they are imported here, and their code runs.

``rebalance_verifier.gate.targets.resolve`` has the names, and says what of them can be said before that.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from rebalance_verifier.base.names import meant
from rebalance_verifier.base.processes.tools import ToolError
from rebalance_verifier.gate.targets.hosts.messages import Hello
from rebalance_verifier.model.assignor import PARTITION_PROMISES, TASK_PROMISES, Promise, stated
from rebalance_verifier.model.values import (
    CLASSIC,
    OF_PARTITIONS,
    OF_TASKS,
    Cluster,
    GroupAssignment,
    GroupSubscription,
    RebalanceProtocol,
)

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "rebalance_verifier.assignors"
"""Entry point group in which adapters register a ``load(spec) -> assignor``."""


class TargetError(ToolError):
    """A target that cannot be found, loaded or started; ``str()`` says what, where and what to do.

    ``detail`` holds more (a traceback, stderr) for those who want it.
    """


@contextlib.contextmanager
def target_errors() -> Iterator[None]:
    """Where a tool of the user's machine fails there is no target. Raises TargetError."""
    try:
        yield
    except TargetError:
        raise
    except ToolError as error:
        raise TargetError(str(error), detail=error.detail) from error


@target_errors()
def load(spec: str) -> Any:
    """Return the assignor that ``spec`` names: an object with ``assign(cluster, group)``, or of tasks with
    ``assign_tasks(application)``. Imports and runs code of the target's. Raises TargetError."""
    prefix, colon, rest = spec.partition(":")
    if not colon:
        return reference(spec)
    named = adapter(prefix)
    found = _adapted(*named, rest) if named else _attribute(prefix, rest)
    return adopt(found, spec)


def describe(assignor: Any) -> Hello:
    """Return what a Python assignor says of itself by its attributes, all optional: ``name``, ``protocols``
    (default: the classic ones), ``promises`` (default: balanced and sticky), ``limits``, ``user_data`` (a
    method), ``one_process``, ``version``, ``homepage``, ``issues``. Raises TargetError."""
    name = getattr(assignor, "name", None) or type(assignor).__module__.rpartition(".")[2]
    of_tasks = callable(getattr(assignor, "assign_tasks", None))
    usual = (RebalanceProtocol.TASKS,) if of_tasks else tuple(reversed(CLASSIC))
    mine, known = (OF_TASKS, TASK_PROMISES) if of_tasks else (OF_PARTITIONS, PARTITION_PROMISES)
    assumed = [Promise.BALANCED, Promise.STICKY, *([Promise.STANDBYS] if of_tasks else [])]
    try:
        protocols = tuple(RebalanceProtocol(p) for p in getattr(assignor, "protocols", usual))
        promises = frozenset(Promise(p) for p in getattr(assignor, "promises", assumed))
        limits = stated(promises, getattr(assignor, "limits", {}))
    except (TypeError, ValueError) as error:
        raise TargetError(
            f"{name}: wrong protocols or promises: {error}",
            f"protocols are of {', '.join(mine)}; promises of {', '.join(known)}",
        ) from error
    if not protocols:
        raise TargetError(f"{name}: protocols is empty", f"name some of {', '.join(mine)}")
    if other := [protocol for protocol in protocols if protocol not in mine]:
        method = "assign_tasks(application)" if of_tasks else "assign(cluster, group)"
        raise TargetError(
            f"{name}: {method} does not go with the protocol {other[0]}", f"name some of {', '.join(mine)}"
        )
    return Hello(
        name=str(name),
        protocols=protocols,
        version=_optional(assignor, "version"),
        language="Python {}.{}.{}".format(*sys.version_info[:3]),
        promises=promises,
        promises_assumed=not hasattr(assignor, "promises"),
        limits=limits,
        user_data=callable(getattr(assignor, "user_data", None)),
        homepage=_optional(assignor, "homepage"),
        issues=_optional(assignor, "issues"),
        one_process=getattr(assignor, "one_process", False) is True,
    )


def reference(spec: str) -> Any:
    """Return a reference assignor, with the switches that its name has. Raises TargetError."""
    from rebalance_verifier.model.assignors.tasks import TASK_ASSIGNORS
    from rebalance_verifier.model.bugs.switches import switched

    name, *switches = spec.split("+")
    if name not in (known := references()):
        raise TargetError(f"no target is called {name!r}", meant(name, known) or "")
    if name in TASK_ASSIGNORS:
        if switches:
            raise TargetError(f"{spec!r}: {name} has no switches")
        return TASK_ASSIGNORS[name]
    try:
        return switched(name, tuple(switches))
    except (LookupError, ValueError) as error:
        raise TargetError(f"{spec!r}: {error.args[0] if error.args else error}") from error


def references() -> tuple[str, ...]:
    """Return the names of the reference assignors, those of tasks last."""
    from rebalance_verifier.model.assignors import NAMES
    from rebalance_verifier.model.assignors.tasks import TASK_ASSIGNORS

    return *NAMES, *TASK_ASSIGNORS


def is_ours(spec: str) -> bool:
    """Check that a target comes with this distribution, as it is installed here: a reference assignor, or
    what one of our adapters loads of a client."""
    prefix, colon, _ = spec.partition(":")
    if not colon:
        return spec.partition("+")[0] in references()
    found, release = adapter(prefix) or (None, None)
    return found is not None and release is None and found.value.startswith("rebalance_verifier.")


def looked_up(directory: str) -> list[str]:
    """Return where a project in this directory has its modules: there, and in its ``src``, if it has one, as
    pip, hatch and setuptools take it."""
    src = os.path.join(directory, "src")
    return [directory, src] if os.path.isdir(src) else [directory]


def look_here(spec: str) -> None:
    """Let the modules of the current directory come first for a target that may be one of them, and those of
    its ``src`` behind all that is installed. For one of ours they do not: its own imports would find them
    too."""
    if is_ours(spec):
        return
    here, *src = looked_up(os.getcwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    sys.path += [one for one in src if one not in sys.path]


def adapters() -> dict[str, EntryPoint]:
    """Return the adapters that are installed, by name."""
    from importlib.metadata import entry_points

    return {entry.name: entry for entry in entry_points(group=GROUP)}


def adapter(prefix: str) -> tuple[EntryPoint, str | None] | None:
    """Return the adapter that ``NAME`` or ``NAME==RELEASE`` names, and the release; None if there is none."""
    name, pinned, release = prefix.partition("==")
    adapter = adapters().get(name)
    return (adapter, release if pinned else None) if adapter else None


def _adapted(adapter: EntryPoint, release: str | None, rest: str) -> Any:
    """Return what an adapter loads, from the release that is named. Raises TargetError."""
    if release is not None:
        from rebalance_verifier.live.artifacts.pypi import installed

        sys.path.insert(0, str(installed(adapter.name, release)))
    found = _guard(
        lambda: adapter.load()(rest), f"adapter {adapter.name!r} ({adapter.value}) cannot load {rest!r}"
    )
    if release is not None and (other := getattr(found, "version", release)) != release:
        raise TargetError(
            f"{adapter.name}=={release}: {other} is imported instead",
            f"another release came first, or {sys.path[0]} is not complete: delete it",
        )
    return found


def _attribute(module_name: str, path: str) -> Any:
    found: Any = _guard(lambda: importlib.import_module(module_name), f"cannot import {module_name!r}")
    for name in path.split("."):
        try:
            found = getattr(found, name)
        except AttributeError:
            public = [n for n in dir(found) if not n.startswith("_")]
            where = getattr(found, "__file__", None)
            raise TargetError(
                f"{module_name}:{path}: there is no {name!r}",
                (meant(name, public) or f"it has: {', '.join(public[:20]) or 'nothing public'}")
                + (f" ({where})" if where else ""),
            ) from None
    return found


def adopt(found: Any, spec: str) -> Any:
    """``found`` as an object with an ``assign`` method: classes are instantiated, functions wrapped.

    ``spec`` is what messages call it. Raises TargetError.
    """
    if isinstance(found, type):
        kind = found
        found = _guard(lambda: kind(), f"{spec}: cannot make a {kind.__name__} without arguments")
    if any(callable(getattr(found, method, None)) for method in ("assign", "assign_tasks")):
        return found
    if callable(found):
        return _Function(found)
    raise TargetError(
        f"{spec}: a {type(found).__name__} is no assignor",
        "give an object or a class with a method assign(cluster, group), or such a function; of tasks "
        "with a method assign_tasks(application)",
    )


class _Function:
    """A bare function as an assignor."""

    def __init__(self, assign: Callable[[Cluster, GroupSubscription], GroupAssignment]) -> None:
        self.assign = assign
        self.name = getattr(assign, "__module__", "function").rpartition(".")[2]


def _guard(action: Callable[[], Any], failure: str) -> Any:
    """Return the result of ``action``, which runs code of the target's; its exceptions as TargetError."""
    try:
        return action()
    except TargetError:
        raise
    except (Exception, SystemExit) as error:
        reason = "".join(traceback.format_exception_only(error)).strip()
        raise TargetError(f"{failure}: {reason}", detail=traceback.format_exc()) from error


def _optional(assignor: Any, name: str) -> str | None:
    value = getattr(assignor, name, None)
    return None if value is None or callable(value) else str(value)
