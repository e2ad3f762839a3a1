"""Python targets that misbehave when a member called BAD is in the group, and answer properly otherwise."""

import ctypes
import os
import signal
import subprocess
import sys
import time

from rebalance_verifier.gate.targets.hosts.messages import Skipped


def hostile(misbehave):
    """A function that deals every partition to the first member, unless BAD is there."""

    def assign(cluster, group):
        if "BAD" in group:
            return misbehave(cluster, group)
        first = next(iter(group))
        return {first: [(t, p) for t in cluster.topics for p in range(cluster.partition_count(t))]}

    assign.__module__ = __name__
    return assign


@hostile
def hang(cluster, group):
    while True:
        time.sleep(1)


@hostile
def spin_in_c(cluster, group):
    return sum(range(10**12))


@hostile
def ignore_sigterm(cluster, group):
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
        signal.signal(number, signal.SIG_IGN)
    time.sleep(60)


@hostile
def os_exit(cluster, group):
    os._exit(3)


@hostile
def segfault(cluster, group):
    ctypes.string_at(0)


@hostile
def abort(cluster, group):
    sys.stderr.write("about to abort\n")
    os.abort()


@hostile
def eat_memory(cluster, group):
    eaten = []
    for _ in range(256):  # 1 GiB: enough for the limit, and no danger to the machine should it not work
        eaten.append(bytearray(b"x") * (4 * 2**20))
        time.sleep(0.0005)
    time.sleep(60)


@hostile
def eat_memory_in_child(cluster, group):
    code = "x = []\nimport time\nfor _ in range(256): x.append(bytearray(b'x') * 2**22); time.sleep(0.0005)"
    subprocess.run([sys.executable, "-c", code], check=False)


@hostile
def close_everything(cluster, group):
    os.closerange(0, 1000)
    time.sleep(60)


@hostile
def spawn_and_exit(cluster, group):
    subprocess.Popen(["sleep", "60"])
    os._exit(0)


@hostile
def spawn_in_new_session(cluster, group):
    subprocess.Popen(["sleep", f"61.{os.getppid()}"], start_new_session=True)
    return {}


@hostile
def spawn_in_new_session_and_hang(cluster, group):
    subprocess.Popen(["sleep", f"60.{os.getppid()}"], start_new_session=True)
    time.sleep(60)


@hostile
def print_things(cluster, group):
    print("hello on stdout")  # noqa: T201
    os.write(1, b'{"seq":1,"result":{"assignment":{}}}\n')
    os.system("echo from a child")
    return {"BAD": []}


@hostile
def read_stdin(cluster, group):
    return {"BAD": [("t", len(sys.stdin.read()))]}


@hostile
def flood_stderr(cluster, group):
    for _ in range(64):
        sys.stderr.write("x" * 2**16 + "\n")
    sys.stderr.write("the end\n")
    raise KeyError("after the flood")


@hostile
def raises(cluster, group):
    raise ValueError("no luck\nwith two lines")


@hostile
def raises_unprintable(cluster, group):
    class Unprintable(Exception):
        def __str__(self):
            raise RuntimeError("not even this")

    raise Unprintable


@hostile
def sys_exit(cluster, group):
    sys.exit("bye")


@hostile
def interrupt(cluster, group):
    raise KeyboardInterrupt


@hostile
def recurse(cluster, group):
    return _deep(0)


def _deep(n):
    return _deep(n + 1)


@hostile
def memory_error(cluster, group):
    raise MemoryError


@hostile
def skip(cluster, group):
    raise Skipped("no BAD members here", "https://example.org/1")


@hostile
def raises_late(cluster, group):
    return {"BAD": (1 // 0 for _ in range(3))}


@hostile
def returns_none(cluster, group):
    return None


@hostile
def returns_list(cluster, group):
    return [("t", 0)]


@hostile
def returns_partition_strings(cluster, group):
    return {"BAD": ["t0"]}


@hostile
def returns_string(cluster, group):
    return {"BAD": "t0"}


@hostile
def returns_bad_index(cluster, group):
    return {"BAD": [("t", "x")]}


@hostile
def returns_negative(cluster, group):
    return {"BAD": [("t", -1)]}


@hostile
def returns_bool_index(cluster, group):
    return {"BAD": [("t", True)]}


@hostile
def returns_huge_index(cluster, group):
    return {"BAD": [("t", 2**31)]}


@hostile
def returns_bad_member(cluster, group):
    return {7: []}


@hostile
def returns_surrogate(cluster, group):
    return {"BAD": [("\ud800", 0)]}


@hostile
def returns_unknown_member(cluster, group):
    return {"BAD": [], "nobody": [("t", 0), ("t", 0)]}


@hostile
def returns_set(cluster, group):
    return {"BAD": {("t", p) for p in range(20)}}


@hostile
def returns_objects(cluster, group):
    class Partition:
        topic, partition = "t", 5

    return {"BAD": iter([Partition(), ["t", 6]])}


@hostile
def mutates_group(cluster, group):
    del group["BAD"]
    group["new"] = None
    return {"BAD": []}


@hostile
def mutates_order(cluster, group):
    group["BAD"] = group.pop("BAD") if len(group) < 2 else group.pop(next(iter(group)))
    return {"BAD": []}


@hostile
def mutates_cluster(cluster, group):
    cluster.topics["t"] = ()
    return {"BAD": []}


class Reporting:
    """An adapter's assignor: its library gets its own objects, so it reports itself what was changed."""

    name = "reporting"
    version = 7
    protocols = ("eager",)
    promises = ()
    mutated = None

    def assign(self, cluster, group):
        self.mutated = "owned partitions of BAD sorted" if "BAD" in group else None
        return {}

    def user_data(self, owned, generation):
        if generation == 13:
            return "text"
        return bytes([len(owned), generation & 0xFF])


class NeedsArguments:
    def __init__(self, needed):
        pass

    def assign(self, cluster, group):
        return {}


class WrongProtocols(Reporting):
    protocols = ("lazy",)


not_an_assignor = 42


def hash_seed(cluster, group):
    """Gives away the seed that the process was started with."""
    return {"A": [("t", int(os.environ["PYTHONHASHSEED"]))]}
