"""Run a program that dies with its parent: ``python parent_death.py PARENT STATUS COMMAND...``.

A program that reads its stdin ends with its parent by itself, unless it is stopped (SIGSTOP) or hangs. Where
the system offers it (Linux) the kernel kills it then. The link is to the thread that started it.

``STATUS`` is the number of a pipe: it ends when the command runs, or says with which errno it cannot.
"""

import _signal as signal  # type: ignore[import-not-found]  # the least: this runs before each program
import ctypes
import os
import sys

PR_SET_PDEATHSIG = 1


def tie(parent: int) -> None:
    """Let the kernel kill this process when the thread that started it ends; at once if it has."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before we asked
        os._exit(1)


def main() -> None:
    """Tie, then become the command, with the signals that Python ignores as they were."""
    parent, status, *command = sys.argv[1:]
    tie(int(parent))
    os.set_inheritable(int(status), False)
    for name in ("SIGPIPE", "SIGXFSZ"):
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        os.write(int(status), str(error.errno).encode())
        os._exit(1)


if __name__ == "__main__":
    main()
