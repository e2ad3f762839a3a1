"""Tries against the limits of time and memory."""

import ctypes
import itertools
import mmap
import multiprocessing.shared_memory
import os
import resource
import signal
import subprocess
import sys
import threading
import time

from legion_tries import MIB, detached, everything, try_  # type: ignore[import-not-found]

# --- time ---------------------------------------------------------------------------------------------------


@try_("time", "timeout")
def hangs(cluster, group):
    """waits for ever"""
    threading.Event().wait()


@try_("time", "timeout")
def spins(cluster, group):
    """spins"""
    while True:
        pass


@try_("time", "timeout")
def spins_in_c(cluster, group):
    """spins in C, where no handler of Python runs"""
    return sum(range(10**12))


@try_("time", "timeout")
def spins_in_a_child(cluster, group):
    """lets a child spin, and waits"""
    subprocess.run([sys.executable, "-c", "while True: pass"], check=False)


@try_("time", "timeout")
def spins_in_a_thread(cluster, group):
    """lets threads spin, and waits"""
    for _ in range(4):
        threading.Thread(target=lambda: sum(range(10**12)), daemon=True).start()
    time.sleep(600)


@try_("time", "timeout")
def deadlocks(cluster, group):
    """takes a lock twice"""
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


@try_("time", "timeout")
def sleeps_in_bits(cluster, group):
    """sleeps in bits, with a little work between them"""
    while True:
        sum(range(20_000))
        time.sleep(0.005)


@try_("time", "timeout")
def turns_the_clock_back(cluster, group):
    """patches time in its process, and hangs"""
    time.monotonic = time.time = time.perf_counter = lambda: 0.0
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.setitimer(signal.ITIMER_PROF, 0)
    while True:
        pass


@try_("time", "timeout")
def endless_iterator(cluster, group):
    """returns partitions from an endless iterator of one partition, in little memory"""

    def slowly():
        while True:
            time.sleep(0.001)
            yield "t", 0

    return {"A": slowly()}


@try_("time", "timeout")
def endless_mapping(cluster, group):
    """returns a mapping whose items never end"""

    class Endless(dict):  # type: ignore[type-arg]
        def items(self):
            while True:
                yield "A", []

    return Endless()


@try_("time", "timeout")
def lowest_priority(cluster, group):
    """takes the lowest priority, and spins"""
    os.nice(19)
    while True:
        pass


@try_("time", "crash")
def limits_its_own_time(cluster, group):
    """limits its own CPU time, so that the kernel ends it"""
    used = int(time.process_time())
    resource.setrlimit(resource.RLIMIT_CPU, (used + 1, used + 1))
    while True:
        pass


@try_("time", "timeout")
def closes_stdin(cluster, group):
    """closes everything but what it answers with, and hangs"""
    os.closerange(5, 100)
    while True:
        time.sleep(60)


@try_("time", "crash")
def closes_everything(cluster, group):
    """closes all files, and hangs"""
    os.closerange(0, 1000)
    time.sleep(600)


@try_("time", "timeout")
def opens_a_fifo(cluster, group):
    """opens a FIFO that nobody writes to"""
    path = os.path.join(os.environ["TMPDIR"], "fifo")
    os.mkfifo(path)
    open(path)  # noqa: SIM115


# --- memory -------------------------------------------------------------------------------------------------


@try_("memory", "memory")
def eats_memory(cluster, group):
    """takes memory"""
    eaten = [bytearray(b"x") * MIB for _ in range(300)]
    time.sleep(60 + len(eaten))


@try_("memory", "memory")
def eats_memory_in_a_child(cluster, group):
    """lets a child take it"""
    subprocess.run(
        [sys.executable, "-c", f"x = bytearray(b'x') * {300 * MIB}; input()"],
        stdin=subprocess.PIPE,
        check=False,
    )
    time.sleep(60)


@try_("memory", "memory")
def eats_memory_in_a_daemon(cluster, group):
    """lets a daemon take it"""
    detached(f"x = bytearray(b'x') * {300 * MIB}; import time; time.sleep(600)")
    time.sleep(60)


@try_("memory", "memory")
def shared_memory_open(cluster, group):
    """fills shared memory in /dev/shm, without mapping it"""
    number = os.open("/dev/shm/rebalance-legion", os.O_CREAT | os.O_RDWR)
    os.unlink("/dev/shm/rebalance-legion")
    for _ in range(300):
        os.write(number, b"x" * MIB)
    time.sleep(60)


@try_("memory", "memory")
def shared_memory_mapped(cluster, group):
    """fills shared memory of multiprocessing"""
    memory = multiprocessing.shared_memory.SharedMemory(create=True, size=300 * MIB)
    memory.unlink()
    for at in range(0, 300 * MIB, 4096):
        memory.buf[at] = 1  # type: ignore[index]
    time.sleep(60)


@try_("memory", "memory")
def memory_file(cluster, group):
    """fills a file that has no name (memfd)"""
    number = os.memfd_create("legion")
    for _ in range(300):
        os.write(number, b"x" * MIB)
    time.sleep(60)


@try_("memory", "memory")
def anonymous_shared_mapping(cluster, group):
    """fills a mapping that children share"""
    shared = mmap.mmap(-1, 300 * MIB)
    for at in range(0, 300 * MIB, 4096):
        shared[at] = 1
    time.sleep(60)


@try_("memory", "memory")
def system_v_segment(cluster, group):
    """fills a segment of System V, and lets it go"""
    libc = ctypes.CDLL(None)
    libc.shmat.restype = ctypes.c_void_p
    number = libc.shmget(0, ctypes.c_size_t(300 * MIB), 0o1600)
    address = libc.shmat(number, None, 0)
    ctypes.memset(address, 1, 300 * MIB)
    libc.shmdt(ctypes.c_void_p(address))
    time.sleep(60)


@try_("memory", "answer")
def system_v_segment_left(cluster, group):
    """leaves a small segment of System V"""
    ctypes.CDLL(None).shmget(0, ctypes.c_size_t(MIB), 0o1600)
    time.sleep(0.1)
    return everything(cluster, group)


@try_("memory", "errored")
def memory_error(cluster, group):
    """asks for more than there is"""
    return {"A": bytearray(2**62)}


@try_("memory", "memory|timeout")
def endless_list(cluster, group):
    """returns partitions from an endless iterator"""
    return {"A": zip(itertools.repeat("t"), itertools.count())}
