#!/bin/sh
# Python 3.11.7: signal.sigtimedwait() of a process that is stopped and resumed after its time returns a signal that never came.
#
# Guess before the run: none; a keeper of ours ended a healthy program now and then, and this was why.
# Seen: it returns a struct_siginfo of uninitialised memory, with a signal number that is none that was waited for. The
# documentation promises None once the time is over. A caller that asks `is None` takes it for a signal.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
cat >"$work/waits.py" <<'PYTHON'
import signal, sys

signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
print("waits", flush=True)
arrived = signal.sigtimedwait({signal.SIGTERM}, 0.5)
print("none" if arrived is None else "SIGTERM" if arrived.si_signo == signal.SIGTERM else "another one")
PYTHON
cat >"$work/stops.py" <<'PYTHON'
import signal, subprocess, sys, time

for resumed_after in (0.1, 1.0):
    with subprocess.Popen([sys.executable, sys.argv[1]], stdout=subprocess.PIPE, text=True) as waits:
        waits.stdout.readline()
        time.sleep(0.1)
        waits.send_signal(signal.SIGSTOP)
        time.sleep(resumed_after)
        waits.send_signal(signal.SIGCONT)
        print(f"resumed after {resumed_after} s of 0.5: {waits.stdout.read().strip()}")
PYTHON
python3 "$work/stops.py" "$work/waits.py" >"$work/seen"
python3 --version
cat "$work/seen"
cat >"$work/expected" <<'TEXT'
resumed after 0.1 s of 0.5: none
resumed after 1.0 s of 0.5: another one
TEXT
diff "$work/expected" "$work/seen"
