"""Tries against what is around the process of a target."""

import ctypes
import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time

from legion_tries import FORGED, MIB, SECRET, ancestors, detached, everything, try_  # type: ignore[import-not-found]

# --- what it may see ----------------------------------------------------------------------------------------


@try_("environment", "errored")
def reads_its_environment(cluster, group):
    """reads all variables that it has"""
    raise ValueError(json.dumps(dict(os.environ)))


@try_("environment", "errored")
def reads_proc_environ(cluster, group):
    """reads them from /proc/self/environ"""
    with open("/proc/self/environ") as environ:
        raise ValueError(environ.read())


@try_("environment", "errored")
def reads_environment_by_c(cluster, group):
    """asks the C library for one"""
    getenv = ctypes.CDLL(None).getenv
    getenv.restype = ctypes.c_char_p
    raise ValueError(str(getenv(SECRET.encode())))


@try_("environment", "errored")
def reads_environment_in_a_child(cluster, group):
    """lets a child read them"""
    raise ValueError(subprocess.run(["env"], capture_output=True, text=True, check=False).stdout)


@try_("environment", "errored")
def reads_environment_in_a_shell(cluster, group):
    """lets a login shell read them"""
    raise ValueError(subprocess.run("set", shell=True, capture_output=True, text=True, check=False).stdout)


@try_("environment", "errored")
def reads_its_parents_environment(cluster, group):
    """reads those of its parent and of its parent's parent"""
    texts = []
    for pid in ancestors()[:2]:
        with open(f"/proc/{pid}/environ") as environ:
            texts.append(environ.read())
    raise ValueError(str(texts))


@try_("environment", "errored")
def searches_its_memory(cluster, group):
    """looks through all objects in its memory for the token"""
    wanted = [
        str(one) for one in gc.get_objects() if isinstance(one, dict) and SECRET in one and len(one) < 500
    ]
    raise ValueError(str(wanted)[:10_000])


@try_("environment", "errored")
def reads_open_files(cluster, group):
    """lists the files that it was started with"""
    found = [
        os.readlink(f"/proc/self/fd/{number}")
        for number in range(3, 50)
        if os.path.exists(f"/proc/self/fd/{number}")
    ]
    raise ValueError(str([one for one in found if not one.startswith(("pipe:", "socket:"))]))


# --- what it prints -----------------------------------------------------------------------------------------


@try_("output", "answer")
def prints_a_verdict_on_stdout(cluster, group):
    """prints a verdict on stdout"""
    print(FORGED, flush=True)  # noqa: T201
    return everything(cluster, group)


@try_("output", "errored")
def prints_a_verdict_on_stderr(cluster, group):
    """prints a verdict on stderr, and fails"""
    sys.stderr.write(f"\n{FORGED}\n")
    raise ValueError(FORGED)


@try_("output", "errored")
def prints_annotations(cluster, group):
    """raises an error that is commands of GitHub's runner"""
    raise ValueError("x\n::error file=a.py::forged\n::set-output name=a::b\n##[group]x\n::stop-commands::t")


@try_("output", "errored")
def prints_escapes(cluster, group):
    """raises an error that steers the terminal: clears it, sets its title, writes links and right to left"""
    raise ValueError("\x1b[2J\x1b]0;title\x07\x1b]8;;http://x\x07link\x9b31m\u202egnorw\r\b\b\b\x1bP+q\x1b\\")


@try_("output", "errored")
def raises_markup(cluster, group):
    """raises an error that is HTML, Markdown, XML and SVG"""
    raise ValueError("</pre><script>alert(1)</script>]]><![CDATA[ `` [x](javascript:1) | <svg onload=1> &#0;")


@try_("output", "errored")
def raises_many_lines(cluster, group):
    """raises an error of ten million characters"""
    raise ValueError("line\n" * 2_000_000)


@try_("output", "crash")
def floods_stderr_and_dies(cluster, group):
    """writes 64 MiB to stderr and dies"""
    for _ in range(1024):
        os.write(2, b"CONFORMANT\n" * 5957)
    os._exit(1)


@try_("output", "answer")
def floods_stdout(cluster, group):
    """writes 16 MiB to what it takes for stdout"""
    for _ in range(256):
        os.write(1, b'{"seq":1,"result":{"assignment":{}}}\n' * 1771)
    return everything(cluster, group)


@try_("output", "answer")
def writes_to_its_parents_output(cluster, group):
    """opens what its parents have as stdout and stderr, and the terminal"""
    paths = [f"/proc/{pid}/fd/{number}" for pid in ancestors()[:2] for number in (1, 2)]
    for path in (*paths, "/dev/tty", "/dev/console"):
        try:
            with open(path, "w") as file:
                file.write(f"{FORGED}\n")
        except OSError:
            continue
    return everything(cluster, group)


@try_("output", "errored")
def logs_and_warns(cluster, group):
    """lets logging, warnings and the hook for errors print the verdict"""
    import logging
    import warnings

    logging.basicConfig(stream=sys.stderr)
    logging.getLogger().error(FORGED)
    warnings.warn(FORGED, stacklevel=1)
    sys.excepthook = lambda *_: print(FORGED)  # noqa: T201
    raise RuntimeError("after that")


# --- whom it kills ------------------------------------------------------------------------------------------


def _signals_parent(number):
    def kill(cluster, group):
        os.kill(os.getppid(), number)
        time.sleep(0.5)
        return everything(cluster, group)

    return kill


for _number, _text, _outcome in (
    (signal.SIGKILL, "kills its parent", "crash"),
    (signal.SIGSTOP, "stops its parent", "answer"),
    (signal.SIGTERM, "ends its parent (SIGTERM)", "answer"),
    (signal.SIGINT, "interrupts its parent", "answer"),
    (signal.SIGHUP, "hangs up on its parent", "answer"),
    (signal.SIGSEGV, "sends SIGSEGV to its parent", "answer"),
    (signal.SIGUSR1, "sends SIGUSR1 to its parent", "answer"),
):
    _function = _signals_parent(_number)
    _function.__doc__ = _text
    _function.__name__ = f"{_number.name.lower()}_to_parent"
    try_(
        "signals",
        "crash" if _number in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP) else "answer",
    )(_function)


@try_("signals", "crash")
def kills_both_parents(cluster, group):
    """kills its parent's parent, and then its parent"""
    for pid in reversed(ancestors()[:2]):
        os.kill(pid, signal.SIGKILL)
    time.sleep(60)


@try_("signals", "crash")
def kills_both_parents_and_hides(cluster, group):
    """the same with a daemon that the death of a parent does not end"""
    detached("import time; time.sleep(600)")
    ctypes.CDLL(None).prctl(1, 0, 0, 0, 0)
    for pid in reversed(ancestors()[:2]):
        os.kill(pid, signal.SIGKILL)
    time.sleep(60)


@try_("signals", "answer")
def stops_its_grandparent(cluster, group):
    """stops its parent's parent"""
    os.kill(ancestors()[1], signal.SIGSTOP)
    time.sleep(0.3)
    return everything(cluster, group)


@try_("signals", "timeout|crash")  # by which of the two is woken first
def stops_both_parents_and_itself(cluster, group):
    """stops both and itself"""
    for pid in (*ancestors()[:2], os.getpid()):
        os.kill(pid, signal.SIGSTOP)


@try_("signals", "crash")
def kills_its_group(cluster, group):
    """kills its process group"""
    os.kill(0, signal.SIGKILL)


@try_("signals", "timeout")
def stops_itself(cluster, group):
    """stops itself"""
    os.kill(os.getpid(), signal.SIGSTOP)


@try_("signals", "timeout")
def ignores_all_signals(cluster, group):
    """ignores every signal that can be, and hangs"""
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_IGN)
    while True:
        time.sleep(60)


@try_("signals", "crash")
def alarm(cluster, group):
    """lets an alarm end it"""
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    time.sleep(60)


@try_("signals", "crash")
def aborts(cluster, group):
    """aborts"""
    os.abort()


@try_("signals", "crash")
def segfaults(cluster, group):
    """reads from address 0"""
    ctypes.string_at(0)


# --- what it leaves running ---------------------------------------------------------------------------------


@try_("processes", "answer")
def daemon(cluster, group):
    """starts a daemon in a session of its own"""
    detached("import time; time.sleep(600)")
    return everything(cluster, group)


@try_("processes", "answer")
def double_forked_daemon(cluster, group):
    """forks twice, so that the daemon's parent is gone"""
    if not os.fork():
        os.setsid()
        if os.fork():
            os._exit(0)
        os.closerange(0, 100)
        time.sleep(600)
        os._exit(0)
    return everything(cluster, group)


@try_("processes", "answer")
def daemon_without_environment(cluster, group):
    """starts a daemon with an empty environment and another name"""
    null = subprocess.DEVNULL
    subprocess.Popen(["sleep", "600"], start_new_session=True, env={}, stdin=null, stdout=null, stderr=null)
    return everything(cluster, group)


@try_("processes", "answer")
def daemon_with_memory(cluster, group):
    """starts a daemon with 64 MiB"""
    detached(f"x = bytearray({64 * MIB}); import time; time.sleep(600)")
    return everything(cluster, group)


@try_("processes", "answer")
def daemon_that_ignores(cluster, group):
    """starts a daemon that ignores every signal that can be"""
    detached(
        "import signal, time\nfor n in signal.valid_signals() - {9, 19}: signal.signal(n, 1)\ntime.sleep(600)"
    )
    return everything(cluster, group)


@try_("processes", "answer")
def daemon_that_respawns(cluster, group):
    """starts a daemon that starts itself anew all the time"""
    detached("import os, time\nwhile os.fork() == 0: time.sleep(0.01)")
    return everything(cluster, group)


@try_("processes", "crash")
def daemon_and_exit(cluster, group):
    """starts a daemon and ends"""
    detached("import time; time.sleep(600)")
    os._exit(0)


@try_("processes", "crash")
def daemon_holds_pipes(cluster, group):
    """starts one that holds all files open, and ends"""
    subprocess.Popen(["sleep", "600"], start_new_session=True, close_fds=False)
    os._exit(0)


@try_("processes", "answer|memory")
def many_children(cluster, group):
    """starts a hundred processes"""
    for _ in range(100):
        if not os.fork():
            time.sleep(600)
            os._exit(0)
    return everything(cluster, group)


@try_("processes", "answer")
def many_threads(cluster, group):
    """starts a hundred threads that never end"""
    for _ in range(100):
        threading.Thread(target=time.sleep, args=(600,)).start()
    return everything(cluster, group)


@try_("processes", "crash")
def becomes_another_program(cluster, group):
    """becomes another program, which closes stdout and sleeps"""
    os.closerange(0, 100)
    os.execvp("sleep", ["sleep", "600"])


@try_("processes", "answer")
def traces_itself(cluster, group):
    """asks to be traced by its parent"""
    ctypes.CDLL(None).ptrace(0, 0, 0, 0)
    return everything(cluster, group)


@try_("processes", "timeout|memory")
def vfork_bomb(cluster, group):
    """forks until there are two hundred, each of which hangs"""
    for _ in range(200):
        if not os.fork():
            while True:
                time.sleep(60)
    time.sleep(60)
