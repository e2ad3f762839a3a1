"""From what a user writes to what is run: every target is a command that speaks the stdio protocol.

    cooperative-sticky            a reference assignor (`rebalance.model.assignors`)
    cooperative-sticky+SWITCH     the same with design switches on
    package.module:attribute      a Python assignor: an object, a class or a function assign(cluster, group)
    NAME:SPEC                     whatever the adapter NAME (entry point group ``rebalance.assignors``) loads
    NAME==RELEASE:SPEC            the same on another release of the distribution NAME, which pip fetches
    java:CLASS@WHERE              a Java assignor (`rebalance.live.assignors.java`)
    client:NAME==RELEASE:ASSIGNOR a real client that leads its group (`rebalance.live.leaders`)
    wire -- CMD ARG ...           any program that starts a consumer, likewise
    -- CMD ARG ...                any program that speaks the protocol

All but the last four are hosted by ``python -m rebalance.gate.targets.host``. `resolve` runs in the driver
and imports nothing of the target's; `load` runs in the host.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import importlib.machinery
import importlib.util
import os
import re
import shlex
import shutil
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rebalance.live.assignors.messages import Hello
from rebalance.live.processes.tools import ToolError
from rebalance.model.assignor import Promise, stated
from rebalance.model.names import meant
from rebalance.model.values import CLASSIC, Cluster, GroupAssignment, GroupSubscription, RebalanceProtocol

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

DEFAULT = "cooperative-sticky"
"""The target when none is named."""

GROUP = "rebalance.assignors"
"""Entry point group in which adapters register a ``load(spec) -> assignor``."""

_COMMAND = "-- "
"""How the spec of a program begins, so that a trace can name one."""

_JAVA, _CLIENT, _WIRE = "java:", "client:", "wire"
"""How specs begin, as ``rebalance.live.assignors.java`` and ``rebalance.live.leaders.targets`` write them."""

_FORMS = (
    "a reference name, module:attribute, ADAPTER:SPEC, ADAPTER==RELEASE:SPEC, java:CLASS@WHERE, "
    "client:NAME:ASSIGNOR, `wire -- COMMAND ...` for a consumer, or `-- COMMAND ...` for any program"
)


class TargetError(ToolError):
    """A target that cannot be found, loaded or started; ``str()`` says what, where and what to do.

    ``detail`` holds more (a traceback, stderr) for those who want it.
    """


@contextlib.contextmanager
def _tools() -> Iterator[None]:
    """Where a tool of the user's machine fails there is no target. Raises TargetError."""
    try:
        yield
    except TargetError:
        raise
    except ToolError as error:
        raise TargetError(str(error), detail=error.detail) from error


@dataclass(frozen=True, kw_only=True)
class Target:
    """What to run: ``spec`` is what the user wrote, ``command`` the program and its arguments.

    ``hosted`` is true for Python targets, which run inside our own host. ``heap`` is the beginning of an
    option for the size of the heap, where the program has one. ``stack_signal`` is the signal upon which it
    writes its stacks to stderr; a program that has one is our own, and says itself why it does not start.
    ``variables`` of our environment are passed on besides the usual ones; ``sandbox``: it runs in one.
    """

    spec: str
    command: tuple[str, ...]
    label: str
    hosted: bool = False
    heap: str = ""
    stack_signal: int | None = None
    variables: tuple[str, ...] = ()
    sandbox: bool = False

    def sized(self, memory_mib: int) -> tuple[str, ...]:
        """The command, with a heap that leaves room in ``memory_mib`` for what else the program needs."""
        if not self.heap:
            return self.command
        return (self.command[0], f"{self.heap}{max(16, memory_mib * 5 // 8)}m", *self.command[1:])


@_tools()
def resolve(spec: str | None = None, command: Sequence[str] = ()) -> Target:
    """The target that ``spec`` or ``command`` names, the default reference assignor without either.

    Raises TargetError as far as that can be told without running anything of the target's.
    """
    if command:
        if spec == _WIRE:
            return _led(f"{_WIRE} -- {shlex.join(command)}")
        if spec:
            raise TargetError(
                f"two targets: {spec!r} and the command {shlex.join(command)!r}",
                "give either a TARGET or `-- COMMAND ...`",
            )
        return _program(tuple(command))
    spec = DEFAULT if spec is None else spec
    if spec.startswith(_COMMAND):
        return _program(tuple(shlex.split(spec.removeprefix(_COMMAND))))
    if spec.startswith((_CLIENT, f"{_WIRE} -- ")):
        return _led(spec)
    if spec.startswith(_JAVA):  # what Java needs is loaded for Java only
        from rebalance.live.assignors import java

        return Target(
            spec=spec,
            command=java.command(spec),
            label=f"{spec} (Java)",
            heap="-Xmx",
            stack_signal=signal.SIGQUIT,
        )
    prefix, colon, rest = spec.partition(":")
    if not colon:
        _reference(spec)
        kind = "reference"
    elif found := _adapter(prefix):
        adapter, release = found
        if not rest:
            raise TargetError(
                f"{spec!r} names no assignor", f"write {prefix}:NAME, for example {prefix}:sticky"
            )
        if release is not None:
            from rebalance.live.processes.pypi import installed

            installed(adapter.name, release)
        kind = f"adapter {adapter.value}"
    else:
        _check_module(spec, prefix, rest)
        kind = "python"
    host = (sys.executable, "-P", "-m", "rebalance.gate.targets.host", spec)
    return Target(spec=spec, command=host, label=f"{spec} ({kind})", hosted=True, stack_signal=signal.SIGUSR1)


@_tools()
def load(spec: str) -> Any:
    """The assignor that ``spec`` names: an object with ``assign(cluster, group)``. Imports and runs code
    of the target's. Raises TargetError."""
    prefix, colon, rest = spec.partition(":")
    if not colon:
        return _reference(spec)
    named = _adapter(prefix)
    found = _adapted(*named, rest) if named else _attribute(prefix, rest)
    return adopt(found, spec)


def describe(assignor: Any) -> Hello:
    """What a Python assignor says of itself by its attributes, all optional: ``name``, ``protocols``
    (default: the classic ones), ``promises`` (default: balanced and sticky), ``limits``, ``user_data`` (a
    method), ``version``, ``homepage``, ``issues``. Raises TargetError."""
    name = getattr(assignor, "name", None) or type(assignor).__module__.rpartition(".")[2]
    try:
        protocols = tuple(RebalanceProtocol(p) for p in getattr(assignor, "protocols", reversed(CLASSIC)))
        promises = frozenset(
            Promise(p) for p in getattr(assignor, "promises", (Promise.BALANCED, Promise.STICKY))
        )
        limits = stated(promises, getattr(assignor, "limits", {}))
    except (TypeError, ValueError) as error:
        raise TargetError(
            f"{name}: wrong protocols or promises: {error}",
            f"protocols are of {', '.join(RebalanceProtocol)}; promises of {', '.join(Promise)}",
        ) from error
    if not protocols:
        raise TargetError(f"{name}: protocols is empty", f"name some of {', '.join(RebalanceProtocol)}")
    return Hello(
        name=str(name),
        protocols=protocols,
        version=_optional(assignor, "version"),
        language="Python {}.{}.{}".format(*sys.version_info[:3]),
        promises=promises,
        limits=limits,
        user_data=callable(getattr(assignor, "user_data", None)),
        homepage=_optional(assignor, "homepage"),
        issues=_optional(assignor, "issues"),
    )


def named_here(spec: str) -> bool:
    """Whether the present project names a target anyway, or it is ours: a reference assignor, an adapter that
    is installed, a client that is known, a module of the current directory. What a file from elsewhere names
    may be any command, module or jar."""
    module, colon, _ = spec.partition(":")
    if not colon or spec.startswith((_CLIENT, _JAVA)):
        return not spec.startswith((_COMMAND, _WIRE, _JAVA))
    if module in _adapters():
        return True
    top, *more = module.split(".")
    named = all(part.isidentifier() for part in (top, *more))
    return named and importlib.machinery.PathFinder.find_spec(top, [os.getcwd()]) is not None


def known() -> list[str]:
    """The targets that have a name: reference assignors, adapters as ``NAME:...``, clients likewise."""
    from rebalance.live.leaders.targets import NAMES as CLIENTS
    from rebalance.model.assignors import NAMES

    return [*NAMES, *(f"{name}:..." for name in sorted(_adapters())), *CLIENTS]


# --- the kinds of target ---------------------------------------------------------------------------------


def _program(command: tuple[str, ...]) -> Target:
    if shutil.which(command[0]) is None:
        hint = "is it executable (chmod +x)?" if os.path.exists(command[0]) else "a relative path needs a ./"
        raise TargetError(f"cannot run {command[0]!r}: no such program", hint)
    line = shlex.join(command)
    return Target(spec=f"{_COMMAND}{line}", command=command, label=line)


def _led(spec: str) -> Target:
    from rebalance.live.leaders.targets import command

    return Target(spec=spec, command=command(spec), label=spec)


def _reference(spec: str) -> Any:
    from rebalance.model.assignors import NAMES
    from rebalance.model.bugs.switches import switched

    name, *switches = spec.split("+")
    if name not in NAMES:
        raise TargetError(f"no target is called {name!r}", _hint(name))
    try:
        return switched(name, tuple(switches))
    except (LookupError, ValueError) as error:
        raise TargetError(f"{spec!r}: {error.args[0] if error.args else error}") from error


def _adapters() -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points

    return {entry.name: entry for entry in entry_points(group=GROUP)}


def _adapter(prefix: str) -> tuple[EntryPoint, str | None] | None:
    """The adapter that ``NAME`` or ``NAME==RELEASE`` names, and the release; None if there is none."""
    name, pinned, release = prefix.partition("==")
    adapter = _adapters().get(name)
    return (adapter, release if pinned else None) if adapter else None


def _adapted(adapter: EntryPoint, release: str | None, rest: str) -> Any:
    """What an adapter loads, from the release that is named. Raises TargetError."""
    if release is not None:
        from rebalance.live.processes.pypi import installed

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


def _check_module(spec: str, module: str, attribute: str) -> None:
    """Refuse what is no ``module:attribute`` or whose top-level module does not exist; imports nothing."""
    if module.endswith(".py") or os.sep in module:
        name = os.path.splitext(os.path.basename(module))[0]
        where = f" in {os.path.dirname(module)}" if os.path.dirname(module) else ""
        raise TargetError(
            f"{spec!r}: expected the name of a module, got a file",
            f"write {name}:{attribute or next(_assignors(module), 'ATTRIBUTE')}{where}",
        )
    parts = [*module.split("."), *attribute.split(".")]
    if not all(part.isidentifier() for part in parts):
        raise TargetError(f"{spec!r} is no target", meant(module, known()) or f"a target is {_FORMS}")
    try:
        here = importlib.machinery.PathFinder.find_spec(parts[0], [os.getcwd()])
        found = here or importlib.util.find_spec(parts[0])
    except (ImportError, ValueError):
        found = None
    if found is None:
        raise TargetError(
            f"{spec!r}: no module and no adapter is called {parts[0]!r}",
            meant(module, [*known(), *_adapters()])
            or f"modules are looked up in {os.getcwd()} and on PYTHONPATH, and of adapters there are "
            + (", ".join(sorted(_adapters())) or "none"),
        )


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
    if callable(getattr(found, "assign", None)):
        return found
    if callable(found):
        return _Function(found)
    raise TargetError(
        f"{spec}: a {type(found).__name__} is no assignor",
        "give an object or a class with a method assign(cluster, group), or such a function",
    )


class _Function:
    """A bare function as an assignor."""

    def __init__(self, assign: Callable[[Cluster, GroupSubscription], GroupAssignment]) -> None:
        self.assign = assign
        self.name = getattr(assign, "__module__", "function").rpartition(".")[2]


# --- helpers ---------------------------------------------------------------------------------------------


def _guard(action: Callable[[], Any], failure: str) -> Any:
    """The result of ``action``, which runs code of the target's; its exceptions as TargetError."""
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


def _hint(name: str) -> str:
    """What whoever calls a target so has meant."""
    path = f"{name.removesuffix('.py').replace('.', os.sep)}.py"
    if os.path.exists(path):
        module = path.removesuffix(".py").replace(os.sep, ".")
        return f"did you mean {module}:{next(_assignors(path), 'ATTRIBUTE')}?"
    if re.fullmatch(r"([a-z_]\w*\.)+[A-Z]\w*", name):
        return f"a Java class is java:{name}, with --classpath my.jar or --maven GROUP:ARTIFACT:VERSION"
    return meant(name, known()) or f"`rebalance list targets` has the names; else {_FORMS}"


def _assignors(path: str) -> Iterator[str]:
    """What in a file looks like an assignor: classes with a method ``assign``, functions of two arguments."""
    top: list[ast.stmt] = []
    with contextlib.suppress(OSError, SyntaxError, ValueError), open(path, "rb") as file:
        top = ast.parse(file.read()).body
    functions = ast.FunctionDef | ast.AsyncFunctionDef
    yield from (
        node.name
        for node in top
        if isinstance(node, ast.ClassDef)
        and any(isinstance(one, functions) and one.name == "assign" for one in node.body)
    )
    yield from (n.name for n in top if isinstance(n, ast.FunctionDef) and len(n.args.args) == 2)
