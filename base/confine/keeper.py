"""Keep a program that is not trusted: ``python keeper.py PARENT STATUS SCRATCH SANDBOX COMMAND...``.

Two processes stand between us and the program. The outer one adopts whatever the program leaves behind
(``PR_SET_CHILD_SUBREAPER``), so that a daemon in a session of its own is still below it; when the program has
ended, or the thread that started it has, it ends all that is below and removes ``SCRATCH``. The inner one is
the parent that the program sees: who kills or stops that has not touched the outer one, and the program
itself dies with it. Each resumes its parent when somebody has stopped that, and the outer one the inner one,
too. Both end as the program did.

``STATUS`` is the number of a pipe: it ends when the command runs, or says with which errno it cannot, and of
a sandbox why.
``SANDBOX``: empty, or what `sandbox.confine` is told besides ``SCRATCH``, as JSON. Linux only.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]  # the least: this runs before each target
import ctypes
import os
import sys

TYPE_CHECKING = False  # typing is not loaded for it
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

POLL_SECONDS = 0.25
"""Seconds between two looks at who may have been stopped."""

ROUNDS = 100
"""How often those that have been forked meanwhile are looked for, before what is known of is killed."""

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36


def prctl(option: int, value: int) -> None:
    """Ask the kernel for something that concerns this process."""
    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def below(pid: int) -> list[int]:
    """Return the descendants of a process, parents first."""
    found = [pid]
    for one in found:
        try:
            for thread in os.listdir(f"/proc/{one}/task"):
                with open(f"/proc/{one}/task/{thread}/children", "rb") as children:
                    found += map(int, children.read().split())
        except OSError:
            continue
    return found[1:]


def send(number: int, pids: list[int]) -> None:
    """Send a signal to processes, those that are gone by now among them."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except OSError:
            continue


def end_below(pid: int) -> None:
    """Stop all descendants of this process, which is ``pid``, until none is new; then kill and reap them.

    The kernel's lists miss a process now and then that gets another parent meanwhile; it is found again.
    """
    for _ in range(ROUNDS):
        stopped: set[int] = set()
        while new := [one for one in below(pid) if one not in stopped]:
            send(signal.SIGSTOP, new)
            stopped.update(new)
            if len(stopped) > 100_000:
                break
        send(signal.SIGKILL, [*stopped])
        if reaped():
            return


def reaped() -> bool:
    """Wait for all children of this process, but not for long for one that goes on. Return whether all have
    ended."""
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return True
        if not pid and signal.sigtimedwait({signal.SIGCHLD}, POLL_SECONDS) is None:
            return False


def stopped(pid: int) -> bool:
    """Check whether a process was stopped, and no shell knows of it: with the terminal's keys the shell has
    taken the terminal back, and says so itself."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            state, _, group, _, terminal, foreground, *_ = stat.read().rpartition(b")")[2].split()
    except (OSError, ValueError):
        return False
    return state == b"T" and (terminal == b"0" or foreground == group)


def watch(parent: int, child: int, *, resume: bool) -> int:
    """Wait until ``child`` has ended, and return how; or that it was killed, once ``parent`` is gone.

    ``resume``: the child too, as the parent always.
    """
    seen = 0
    ending = {signal.SIGTERM, signal.SIGHUP, signal.SIGINT}
    while True:
        arrived = signal.sigtimedwait({signal.SIGCHLD, *ending}, POLL_SECONDS)
        # Stopped and resumed after its time, Python 3.11 returns what was in memory: no signal at all.
        if os.getppid() != parent or (arrived and arrived.si_signo in ending):
            return int(signal.SIGKILL)
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return int(signal.SIGKILL)
            if pid == child:
                return status
            if not pid:
                break
        if resume and stopped(child):
            send(signal.SIGCONT, [child])
        seen = seen + 1 if stopped(parent) else 0
        if seen > 1:
            send(signal.SIGCONT, [parent])


def end_as(status: int) -> None:
    """End as a process of this ``status`` of ``waitpid`` has."""
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        if -code not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(-code, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {-code})
        os.kill(os.getpid(), -code)
    os._exit(code)


def become(command: list[str]) -> None:
    """Run the command in this process, with the signals that programs expect."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, set())
    os.execvp(command[0], command)


def attempt(status: int, action: Callable[[], None], *, sandbox: bool = False) -> None:
    """Do it, or say into the pipe ``status`` with which errno it fails, and of a sandbox why, and end."""
    try:
        action()
    except OSError as error:
        why = f" {error.strerror}" if sandbox else ""
        os.write(status, os.fsencode(f"{error.errno}{why}"))
        os._exit(1)


def beside(name: str) -> dict[str, Any]:
    """Return what a module of this distribution holds, as a path from here: there are no packages here."""
    import runpy

    return runpy.run_path(os.path.join(os.path.dirname(os.path.abspath(__file__)), f"{name}.py"))


def confine(scratch: str, settings: str) -> None:
    """Confine this process to its sandbox. Raises OSError."""
    import json

    given = json.loads(settings)
    beside("sandbox")["confine"](scratch, **given)
    beside("refused")["refuse"]()


def tie(parent: int) -> None:
    """Let the kernel kill this process when its parent ends; at once if it has."""
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def let_go(status: int) -> None:
    """Leave the pipes of the program, and ``status``, to it."""
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)
    os.close(null)
    os.close(status)


def main() -> None:
    """Keep the command until it ends, or whoever started it does."""
    parent, pipe, scratch, confined, *command = sys.argv[1:]
    status = int(pipe)
    os.set_inheritable(status, False)
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != int(parent):
        os._exit(1)
    outer = os.getpid()
    if confined:
        attempt(status, lambda: beside("sandbox")["enter"](), sandbox=True)
    inner = os.fork()
    if not inner:
        os.setsid()
        tie(0 if confined else outer)  # whose parent is in another PID namespace sees none
        if confined:
            attempt(status, lambda: confine(scratch, confined), sandbox=True)
        above = os.getpid()
        program = os.fork()
        if not program:
            os.setsid()
            tie(above)
            attempt(status, lambda: become(command))
        let_go(status)
        end_as(watch(os.getppid(), program, resume=False))
    let_go(status)
    remove = beside("../../base/removal")["remove"]  # as it is before the program could change it
    ended = watch(int(parent), inner, resume=True)
    end_below(outer)
    remove(scratch)
    end_as(ended)


if __name__ == "__main__":
    main()
