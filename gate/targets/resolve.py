"""From what a user writes to what is run: every target is a command that speaks the stdio protocol.

    cooperative-sticky            a reference assignor (`rebalance_verifier.model.assignors`)
    cooperative-sticky+SWITCH     the same with design switches on
    package.module:attribute      a Python assignor: an object, a class or a function assign(cluster, group)
    NAME:SPEC                     what the adapter NAME loads (entry points ``rebalance_verifier.assignors``)
    NAME==RELEASE:SPEC            the same on another release of the distribution NAME, which pip fetches
    java:CLASS@WHERE              a Java assignor (`gate.targets.hosts.java`)
    streams:RELEASE               the whole StreamsPartitionAssignor of a release, likewise
    client:NAME==RELEASE:ASSIGNOR a real client that leads its group (`live.clients.leaders`)
    wire -- CMD ARG ...           any program that starts a consumer, likewise
    -- CMD ARG ...                any program that speaks the protocol

All but the last five are hosted by ``python -m ...host``. `resolve` runs in the driver
and imports nothing of the target's; `rebalance_verifier.gate.targets.hosts.hosted.load` runs in the host.
"""

from __future__ import annotations

import ast
import contextlib
import importlib.machinery
import importlib.util
import os
import re
import shlex
import shutil
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rebalance_verifier.base.names import meant
from rebalance_verifier.gate.targets.hosts.hosted import (
    TargetError,
    adapter,
    adapters,
    looked_up,
    reference,
    references,
    target_errors,
)

_COMMAND = "-- "
"""How the spec of a program begins, so that a trace can name one."""

_JAVA, _CLIENT, _WIRE = ("java:", "streams:"), "client:", "wire"
"""How specs begin, as ``gate.targets.hosts.java`` and ``live.clients.leaders.targets`` write them."""

_FORMS = (
    "a reference name, module:attribute, ADAPTER:SPEC, ADAPTER==RELEASE:SPEC, java:CLASS@WHERE, "
    "client:NAME:ASSIGNOR, `wire -- COMMAND ...` for a consumer, or `-- COMMAND ...` for any program"
)


@dataclass(frozen=True, kw_only=True)
class Target:
    """Target to run: ``spec`` is what the user wrote, ``command`` the program and its arguments.

    ``hosted`` is true for Python targets, which run inside our own host. ``heap`` is the beginning of an
    option for the size of the heap, where the program has one. ``stack_signal`` is the signal upon which it
    writes its stacks to stderr; a program that has one is our own, and says itself why it does not start.
    ``variables`` of our environment are passed on besides the usual ones; ``sandbox``: it runs in one.
    ``lags``: it asks a broker for offsets, which it is to be given.
    """

    spec: str
    command: tuple[str, ...]
    label: str
    hosted: bool = False
    heap: str = ""
    stack_signal: int | None = None
    variables: tuple[str, ...] = ()
    sandbox: bool = False
    lags: bool = False

    def sized(self, memory_mib: int) -> tuple[str, ...]:
        """Return the command, with a heap that leaves room in ``memory_mib`` for what else the program
        needs."""
        if not self.heap:
            return self.command
        return (self.command[0], f"{self.heap}{max(16, memory_mib * 5 // 8)}m", *self.command[1:])


@contextlib.contextmanager
def shared_path() -> Iterator[None]:
    """Let the target's process find what this one finds: pytest adds the folders of the tests to the path,
    and what its ``pythonpath`` names."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


@target_errors()
def resolve(spec: str | None = None, command: Sequence[str] = ()) -> Target:
    """Return the target that ``spec`` or ``command`` names.

    Raises TargetError without either, and for what is wrong as far as that can be told without running
    anything of the target's.
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
    if spec is None:  # a verdict on what nobody named would be taken for one on the user's own
        raise TargetError(
            "which TARGET?",
            "module:attribute of yours, cooperative-sticky or another name of `rebalance list targets`, or "
            "`-- COMMAND ...`",
        )
    if spec.startswith(_COMMAND):
        return _program(tuple(shlex.split(spec.removeprefix(_COMMAND))))
    if spec.startswith((_CLIENT, f"{_WIRE} -- ")):
        return _led(spec)
    if spec.startswith(_JAVA):  # what Java needs is loaded for Java only
        from rebalance_verifier.gate.targets.hosts import java

        return Target(
            spec=spec,
            command=java.command(spec),
            label=f"{spec} (Java)",
            heap="-Xmx",
            stack_signal=signal.SIGQUIT,
            lags=java.parse(spec).lags,
        )
    prefix, colon, rest = spec.partition(":")
    if not colon:
        _check_reference(spec)
        kind = "reference"
    elif named := adapter(prefix):
        found, release = named
        if not rest:
            raise TargetError(
                f"{spec!r} names no assignor", f"write {prefix}:NAME, for example {prefix}:sticky"
            )
        if release is not None:
            from rebalance_verifier.live.artifacts.pypi import installed

            installed(found.name, release)
        kind = f"adapter {found.value}"
    else:
        _check_module(spec, prefix, rest)
        kind = "python"
    host = (sys.executable, "-P", "-m", "rebalance_verifier.gate.targets.hosts.host", spec)
    return Target(spec=spec, command=host, label=f"{spec} ({kind})", hosted=True, stack_signal=signal.SIGUSR1)


def known() -> list[str]:
    """Return the targets that have a name: reference assignors, adapters as ``NAME:...``, clients
    likewise."""
    from rebalance_verifier.live.clients.leaders.targets import NAMES as CLIENTS

    return [*references(), *(f"{name}:..." for name in sorted(adapters())), *CLIENTS]


# --- the kinds of target ---------------------------------------------------------------------------------


def _program(command: tuple[str, ...]) -> Target:
    if shutil.which(command[0]) is None:
        hint = "is it executable (chmod +x)?" if os.path.exists(command[0]) else "a relative path needs a ./"
        raise TargetError(f"cannot run {command[0]!r}: no such program", hint)
    line = shlex.join(command)
    return Target(spec=f"{_COMMAND}{line}", command=command, label=line)


def _led(spec: str) -> Target:
    from rebalance_verifier.live.clients.leaders.targets import command

    return Target(spec=spec, command=command(spec), label=spec)


def _check_reference(spec: str) -> None:
    name = spec.split("+")[0]
    if name not in references():
        raise TargetError(f"no target is called {name!r}", _hint(name))
    reference(spec)


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
        here = importlib.machinery.PathFinder.find_spec(parts[0], looked_up(os.getcwd()))
        found = here or importlib.util.find_spec(parts[0])
    except (ImportError, ValueError):
        found = None
    if found is None:
        raise TargetError(
            f"{spec!r}: no module and no adapter is called {parts[0]!r}",
            meant(module, [*known(), *adapters()])
            or f"modules are looked up in {os.getcwd()}, its src, and on PYTHONPATH; of adapters there are "
            + (", ".join(sorted(adapters())) or "none"),
        )


# --- helpers ---------------------------------------------------------------------------------------------


def _hint(name: str) -> str:
    """Return what whoever calls a target so has meant."""
    path = f"{name.removesuffix('.py').replace('.', os.sep)}.py"
    if os.path.exists(path):
        module = path.removesuffix(".py").replace(os.sep, ".")
        return f"did you mean {module}:{next(_assignors(path), 'ATTRIBUTE')}?"
    if re.fullmatch(r"([a-z_]\w*\.)+[A-Z]\w*", name):
        return f"a Java class is java:{name}, with --classpath my.jar or --maven GROUP:ARTIFACT:VERSION"
    return meant(name, known()) or f"`rebalance list targets` has the names; else {_FORMS}"


def _assignors(path: str) -> Iterator[str]:
    """Yield what in a file looks like an assignor: classes with a method ``assign``, functions of two
    arguments."""
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
