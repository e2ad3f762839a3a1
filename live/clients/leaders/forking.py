"""``python forking.py PROGRAM MODULE...``: starts a client again and again, each time in a fork of this
process, which has loaded the modules: what takes longest of a start is done once.

stdin is a socket. A message is JSON, the arguments of PROGRAM, with a file for what it writes; the answer is
a line, ``+PID``. ``-PID CODE`` says that one has ended, with a negative code for a signal.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import os
import runpy
import select
import signal
import socket
import sys
import traceback
from collections.abc import Callable

PR_SET_PDEATHSIG = 1
LONGEST = 2**16


def main() -> None:
    """The program."""
    path, *modules = sys.argv[1:]
    program = runpy.run_path(path)["main"]
    for module in modules:
        importlib.import_module(module)
    libc = ctypes.CDLL(None)
    requests = socket.socket(fileno=0)
    ended, ending = os.pipe()
    os.set_blocking(ending, False)
    signal.set_wakeup_fd(ending)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    while True:
        ready = select.select([requests.fileno(), ended], [], [])[0]
        if ended in ready:
            os.read(ended, LONGEST)
            with contextlib.suppress(ChildProcessError):
                while (one := os.waitpid(-1, os.WNOHANG))[0]:
                    requests.sendall(b"-%d %d\n" % (one[0], os.waitstatus_to_exitcode(one[1])))
        if requests.fileno() in ready:
            message, [output], _, _ = socket.recv_fds(requests, LONGEST, 1)
            parent = os.getpid()
            if (pid := os.fork()) == 0:
                if sys.platform == "linux":
                    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
                if os.getppid() == parent:
                    _become(program, [path, *json.loads(message)], output)
                os._exit(1)
            os.close(output)
            requests.sendall(b"+%d\n" % pid)


def _become(program: Callable[[], None], argv: list[str], output: int) -> None:
    """Run the program, in a session of its own."""
    os.setsid()
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number in (1, 2):
        os.dup2(output, number)
    sys.argv = argv
    try:
        program()
        code = 0
    except BaseException:
        traceback.print_exc()
        code = 1
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
