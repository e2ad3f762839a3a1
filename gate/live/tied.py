"""Run a program that dies with its parent, however that dies: ``python tied.py PARENT COMMAND...``.

A program that reads its stdin ends with its parent by itself, unless it is stopped (SIGSTOP) or hangs. Where
the system offers it (Linux) the kernel kills it then. The link is to the thread that started it.
"""

import contextlib
import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    """Tie, then become the command."""
    parent, *command = sys.argv[1:]
    with contextlib.suppress(OSError, AttributeError):  # not Linux
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL))
    if os.getppid() != int(parent):  # it died before we asked
        os._exit(1)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
