"""A session survives whatever a target does, says what it was, and leaves nothing running."""

import contextlib
import itertools
import os
import signal
import sys
import time
from importlib import import_module
from pathlib import Path

import pytest
from rebalance_verifier.base.processes.child import Child, ProcessGone
from rebalance_verifier.gate.targets.hosts.hosted import TargetError
from rebalance_verifier.gate.targets.hosts.inside import InProcess
from rebalance_verifier.gate.targets.resolve import resolve
from rebalance_verifier.gate.targets.session import Session, TargetLost
from rebalance_verifier.model.values import Cluster, RebalanceProtocol, Subscription, TopicPartition
from rebalance_verifier.properties.assignors.calls import (
    Answer,
    Asker,
    AssignQuestion,
    Failure,
    UserDataQuestion,
)

from tests.processes import alive

HOSTILE = Path(__file__).parent / "hostile"
COOPERATIVE = RebalanceProtocol.COOPERATIVE
CLUSTER = Cluster.of({"t": 2})
GOOD = {"A": Subscription(topics=("t",))}
BAD = {"A": Subscription(topics=("t",)), "BAD": Subscription(topics=("t",))}
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture(autouse=True)
def in_hostile_directory(monkeypatch):
    monkeypatch.chdir(HOSTILE)


@pytest.fixture
def session():
    """Opens sessions and afterwards looks for processes that any of them left."""
    groups, opened = set(), []

    def open_session(spec=None, *command, **limits):
        new = Session(resolve(spec, command), **{"call_seconds": 10.0, "memory_mib": 1024, **limits})
        start = new._start

        def remember():
            outcome = start()
            if new._child:
                groups.add(new._child.pid)
            return outcome

        new._start = remember  # type: ignore[method-assign]
        opened.append(new.__enter__())
        return new

    yield open_session
    for one in opened:
        one.close()
    until = time.monotonic() + 60  # a killed process takes a moment to go
    while (left := [s for s in running() if s[1] in groups]) and time.monotonic() < until:
        time.sleep(0.01)
    assert not left, "processes left"


def python(name, **limits):
    return f"hostile_assignors:{name}", limits


def program(mode, *more):
    return None, sys.executable, str(HOSTILE / "hostile_program.py"), mode, *more


def running():
    """(pid, process group, command) of all processes that are not zombies."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command, _, rest = (entry / "stat").read_text().rpartition(")")
            except OSError:
                continue
            if rest.split()[0] != "Z":
                yield int(entry.name), int(rest.split()[2]), command


def ask(opened, group):
    return opened.assign(COOPERATIVE, CLUSTER, group)


def check(opened, kind, text="", detail="", starts=2):
    """A good answer, the failure, and a good answer again."""
    before = ask(opened, GOOD)
    assert isinstance(before, Answer), before
    failure = ask(opened, BAD)
    assert isinstance(failure, Failure), failure
    assert (failure.kind, text in failure.message, detail in failure.detail) == (kind, True, True), failure
    after = ask(opened, GOOD)
    assert isinstance(after, Answer), after
    assert after.assignment == before.assignment
    assert opened.starts == starts


# --- the good case ---------------------------------------------------------------------------------------


def test_answer_and_hello(session):
    opened = session("hostile_assignors:hang")
    assert opened.hello.name == "hostile_assignors"
    assert opened.hello.protocols == (RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER)
    assert sorted(opened.hello.promises) == ["balanced", "sticky"]
    assert opened.hello.promises_assumed
    assert not opened.hello.user_data
    reply = ask(opened, GOOD)
    assert reply.assignment == {"A": (T0, T1)}
    assert reply.mutated is None
    assert opened.user_data((), 1) is None


def test_all_of_the_input_arrives(session, tmp_path):
    """Order, repetitions, bytes, racks: the target sees exactly the values that were asked."""
    target = tmp_path / "echo_input.py"
    target.write_text(
        "def assign(cluster, group):\n"
        "    raise ValueError(ascii((dict(cluster.topics), list(group.items()))))\n"
    )
    os.chdir(tmp_path)
    cluster = Cluster({"ü": (("r2", "r1"), ()), "t": (), "a": ((),)})
    group = {
        "z": Subscription(
            topics=("t", "a", "t"),
            user_data=b"\x00\xff",
            owned_partitions=(T1, T0, TopicPartition("a", 0), T1),
            generation_id=7,
            rack_id="r",
            group_instance_id="i",
            version=1,
        ),
        "a": Subscription(
            topics=(),
            user_data=b"",
            owned_partitions=(),
            generation_id=-1,
            rack_id="",
            group_instance_id=None,
            version=0,
        ),
    }
    reply = session("echo_input:assign").assign(RebalanceProtocol.EAGER, cluster, group)
    assert reply.message == "ValueError: " + ascii((dict(cluster.topics), list(group.items())))


def test_user_data_and_reported_mutation(session):
    opened = session("hostile_assignors:Reporting")
    assert opened.hello.user_data
    assert (opened.hello.name, opened.hello.version, opened.hello.promises) == ("reporting", "7", frozenset())
    assert not opened.hello.promises_assumed
    assert opened.user_data((T0, T1), 3) == b"\x02\x03"
    assert opened.user_data((), -1) == b"\x00\xff"
    failure = opened.user_data((), 13)
    assert (failure.kind, failure.message) == ("garbage", "user_data returned 'text', expected bytes or None")
    assert ask(opened, BAD).mutated == "owned partitions of BAD sorted"
    assert ask(opened, GOOD).mutated is None


def test_not_started():
    with pytest.raises(RuntimeError, match="use it as `with"):
        _ = Session(resolve("hostile_assignors:hang")).hello


# --- Python targets --------------------------------------------------------------------------------------

KEPT = [  # the process answers, so it lives on
    ("raises", "errored", "ValueError: no luck", "in raises"),
    ("raises_unprintable", "errored", "Unprintable", ""),
    ("raises_late", "errored", "ZeroDivisionError", ""),
    ("sys_exit", "errored", "SystemExit: bye", ""),
    ("interrupt", "errored", "KeyboardInterrupt", ""),
    ("recurse", "errored", "RecursionError", "_deep"),
    ("memory_error", "errored", "MemoryError", ""),
    ("flood_stderr", "errored", "KeyError: 'after the flood'", ""),
    ("skip", "skipped", "no BAD members here", "https://example.org/1"),
    ("returns_none", "garbage", "assign returned None, expected a dict", ""),
    ("returns_list", "garbage", "assign returned [('t', 0)]", ""),
    ("returns_string", "garbage", "assignment of 'BAD': expected an iterable of partitions, got 't0'", ""),
    (
        "returns_partition_strings",
        "garbage",
        "assignment of 'BAD': expected (topic, partition), got 't0'",
        "",
    ),
    ("returns_bad_index", "garbage", "partition must be an integer >= 0, got 'x'", ""),
    ("returns_negative", "garbage", "partition must be an integer >= 0, got -1", ""),
    ("returns_bool_index", "garbage", "partition must be an integer >= 0, got True", ""),
    ("returns_huge_index", "garbage", "partition must fit an int32", ""),
    ("returns_bad_member", "garbage", "assign returned a member id: expected a string, got 7", ""),
    ("returns_surrogate", "garbage", "not valid Unicode", ""),
]


@pytest.mark.slow  # the quick ones of them run in process, below
@pytest.mark.parametrize(("name", "kind", "text", "detail"), KEPT, ids=[k[0] for k in KEPT])
def test_python_target_kept(session, name, kind, text, detail):
    check(session(f"hostile_assignors:{name}"), kind, text, detail, starts=1)


ENDED = [
    ("os_exit", "crash", "ended with exit status 3", ""),
    ("segfault", "crash", "ended by SIGSEGV", "in segfault"),
    ("abort", "crash", "ended by SIGABRT", "about to abort"),
    pytest.param("close_everything", "crash", "closed its stdout", "", marks=pytest.mark.slow),
    ("spawn_and_exit", "crash", "ended with exit status 0", ""),
]


@pytest.mark.parametrize(("name", "kind", "text", "detail"), ENDED)
def test_python_target_ended(session, name, kind, text, detail):
    check(session(f"hostile_assignors:{name}"), kind, text, detail)


@pytest.mark.covering
@pytest.mark.parametrize(
    ("name", "detail"),
    [
        ("hang", "in hang"),
        pytest.param("spin_in_c", "in spin_in_c", marks=pytest.mark.slow),
        pytest.param("ignore_sigterm", "", marks=pytest.mark.slow),
    ],
)
def test_python_target_hangs(session, name, detail):
    """The time limit holds, and the failure tells where the target hung."""
    check(session(f"hostile_assignors:{name}", call_seconds=0.4), "timeout", "no reply within 0.4 s", detail)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["eat_memory", "eat_memory_in_child"])
def test_python_target_eats_memory(session, name):
    check(session(f"hostile_assignors:{name}", memory_mib=200), "memory", "limit 200 MiB")


def test_descendants_in_other_sessions_are_ended(session):
    check(session("hostile_assignors:spawn_in_new_session_and_hang", call_seconds=0.4), "timeout")
    mark = f"60.{os.getpid()}".encode()
    assert not [pid for pid, _, _ in running() if mark in Path(f"/proc/{pid}/cmdline").read_bytes()]


def test_descendants_of_a_target_that_ends_well_are_ended_too(monkeypatch):
    """Also where it has ended before anybody looks again."""
    send = Child.send

    def sent(child, data):
        send(child, data)
        until = time.monotonic() + 60
        while b"bye" in data and alive(child.pid) and time.monotonic() < until:
            time.sleep(0.01)

    monkeypatch.setattr(Child, "send", sent)
    with Session(resolve("hostile_assignors:spawn_in_new_session")) as opened:
        assert isinstance(ask(opened, BAD), Answer)
    mark = f"61.{os.getpid()}".encode()

    def left():
        found = []
        for pid, _, _ in running():
            with contextlib.suppress(OSError):  # it has ended since it was listed
                found += [pid] if mark in Path(f"/proc/{pid}/cmdline").read_bytes() else []
        return found

    until = time.monotonic() + 60  # a killed process takes a moment to go
    while left() and time.monotonic() < until:
        time.sleep(0.02)
    assert not left()


def test_a_target_that_cannot_run_twice_at_once_is_asked_in_its_one_process(session, tmp_path):
    lock = tmp_path / "lock"
    opened = session(*program("alone", str(lock)))
    first = opened.assign(COOPERATIVE, CLUSTER, GOOD)
    again = opened.again(COOPERATIVE, CLUSTER, GOOD)
    assert isinstance(again, Answer), again
    assert isinstance(first, Answer)
    assert again.assignment == first.assignment
    assert opened.starts == 1


def test_a_second_process_hashes_differently_whatever_the_environment_says(session, monkeypatch):
    monkeypatch.setenv("PYTHONHASHSEED", "1")
    opened = session("hostile_assignors:hash_seed")
    seeds = [
        answer.assignment["A"]
        for answer in (ask(opened, GOOD), opened.again(COOPERATIVE, CLUSTER, GOOD))
        if isinstance(answer, Answer)
    ]
    assert seeds == [(TopicPartition("t", 0),), (TopicPartition("t", 1),)]


def test_printing_does_not_reach_the_protocol(session):
    opened = session("hostile_assignors:print_things")
    for _ in range(3):
        assert ask(opened, BAD).assignment == {"BAD": ()}
    assert opened.starts == 1


def test_target_cannot_read_the_protocol(session):
    assert ask(session("hostile_assignors:read_stdin"), BAD).assignment == {"BAD": (T0,)}


@pytest.mark.parametrize(
    ("name", "assignment"),
    [
        ("returns_unknown_member", {"BAD": (), "nobody": (T0, T0)}),
        ("returns_set", {"BAD": tuple(TopicPartition("t", p) for p in range(20))}),
        ("returns_objects", {"BAD": (TopicPartition("t", 5), TopicPartition("t", 6))}),
    ],
)
def test_unusual_but_well_formed_results(session, name, assignment):
    """Whether members and partitions exist is for the clauses to judge."""
    assert ask(session(f"hostile_assignors:{name}"), BAD).assignment == assignment


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("mutates_group", "group: removed 'BAD', added 'new'"),
        ("mutates_order", "group: order changed"),
        ("mutates_cluster", "cluster topics: changed 't'"),
    ],
)
def test_mutation_of_the_input_is_seen(session, name, text):
    group = {"BAD": GOOD["A"], "A": GOOD["A"]} if name == "mutates_order" else BAD
    for opened in (session(f"hostile_assignors:{name}"), InProcess(hostile(name))):
        assert ask(opened, GOOD).mutated is None
        assert text in ask(opened, group).mutated or name == "mutates_order"
    assert list(BAD) == ["A", "BAD"]


# --- programs --------------------------------------------------------------------------------------------

PROGRAMS = [  # mode, kind, message, processes started; slow are those that test_messages covers too
    ("invalid_json", "garbage", "not one line of JSON", 2),
    pytest.param("invalid_utf8", "garbage", "not one line of JSON", 2, marks=pytest.mark.slow),
    pytest.param("nan", "garbage", "NaN is not JSON", 2, marks=pytest.mark.slow),
    pytest.param("deep", "garbage", "not one line of JSON", 2, marks=pytest.mark.slow),
    pytest.param(
        "not_object", "garbage", "a message must be a JSON object, got [1]", 2, marks=pytest.mark.slow
    ),
    ("wrong_seq", "garbage", "reply: expected the reply to request 2, got", 2),
    pytest.param("no_seq", "garbage", "'seq' is missing", 2, marks=pytest.mark.slow),
    pytest.param("bool_seq", "garbage", "seq: expected an integer, got True", 2, marks=pytest.mark.slow),
    pytest.param("duplicate_member", "garbage", "key 'A' appears twice", 2, marks=pytest.mark.slow),
    pytest.param(
        "two_kinds",
        "garbage",
        "exactly one of result, skipped, errored, crash, garbage",
        1,
        marks=pytest.mark.slow,
    ),
    pytest.param("no_assignment", "garbage", "unknown key 'asignment'", 1, marks=pytest.mark.slow),
    ("bad_index", "garbage", "reply: assignment of 'A': partition must be an integer >= 0, got 'x'", 1),
    ("skipped", "skipped", "not here", 1),
    ("errored", "errored", "oops", 1),
    pytest.param(
        "close_stdout", "crash", "closed its stdout and is still running", 2, marks=pytest.mark.slow
    ),
    ("half_line_and_exit", "crash", "ended with exit status 5", 2),
    ("grandchild_keeps_pipes", "crash", "ended with exit status 0", 2),
]


@pytest.mark.parametrize(("mode", "kind", "text", "starts"), PROGRAMS)
def test_program(session, mode, kind, text, starts):
    check(session(*program(mode)), kind, text, starts=starts)


@pytest.mark.parametrize(
    ("mode", "text"),
    [
        ("endless_trickle", "no complete line within"),
        pytest.param("stopped", "no reply", marks=pytest.mark.slow),
        pytest.param("close_stdin", "no reply", marks=pytest.mark.slow),
    ],
)
def test_program_hangs(session, mode, text):
    check(session(*program(mode), call_seconds=0.4), "timeout", text)


@pytest.mark.slow
def test_endless_line(session):
    check(session(*program("endless_line")), "garbage", "wrote 8 MiB without a newline")


@pytest.mark.parametrize("mode", ["twice", "endless_lines"])
def test_unsolicited_line_is_garbage_for_the_next_request(session, mode):
    opened = session(*program(mode))
    assert isinstance(ask(opened, BAD), Answer)
    failure = ask(opened, GOOD)
    assert failure.kind == "garbage"
    assert isinstance(ask(opened, GOOD), Answer)


def test_last_words_count(session):
    """An answer that was written before the end is an answer; the end belongs to the next request."""
    opened = session(*program("answer_and_exit"))
    assert isinstance(ask(opened, BAD), Answer)
    assert ask(opened, GOOD).kind == "crash"
    assert isinstance(ask(opened, GOOD), Answer)


def test_last_words_between_two_looks():
    """Written after the last poll and before the end is noticed: still an answer."""
    child = Child(["echo", "last words"], memory_mib=100)

    class Deaf:
        def poll(self, timeout):
            child._process.wait()
            return []

        def unregister(self, pipe):
            pass

    child._poll, child._next_look = Deaf(), 0.0  # type: ignore[assignment]
    assert child.line(time.monotonic() + 60) == b"last words"
    with pytest.raises(ProcessGone, match="ended with exit status 0"):
        child.line(time.monotonic() + 60)
    child.kill()
    child.kill()
    assert child.stderr() == ""


def test_slow_pieces_make_one_line(session):
    assert isinstance(ask(session(*program("slow_in_pieces")), BAD), Answer)


def test_killed_between_requests(session):
    opened = session(*program("none"))
    os.kill(opened._child.pid, signal.SIGKILL)
    failure = ask(opened, GOOD)
    assert (failure.kind, "ended by SIGKILL" in failure.message) == ("crash", True)
    assert isinstance(ask(opened, GOOD), Answer)


def test_cannot_be_started_again(session, tmp_path):
    """Not an exception either: every further request fails, at once."""
    opened = session(*program("once", str(tmp_path / "ran")))
    assert isinstance(ask(opened, GOOD), Answer)
    assert ask(opened, BAD).message == "ended with exit status 6 instead of answering"
    failure, again = ask(opened, GOOD), ask(opened, GOOD)
    assert failure == again
    assert (failure.kind, "cannot be started again: ended with exit" in failure.message) == ("crash", True)
    assert opened.starts == 2


def test_interrupt_leaves_no_reply_behind(session, monkeypatch):
    opened = session(*program("none"))

    def interrupted(deadline):
        raise KeyboardInterrupt

    monkeypatch.setattr(opened._child, "line", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ask(opened, {"B": GOOD["A"]})
    assert ask(opened, GOOD).assignment == {"A": (T0,)}


@pytest.mark.nightly
@pytest.mark.parametrize("used", [0.5, 2.0])
def test_limit_is_the_same_on_a_busy_machine(session, tmp_path, monkeypatch, used):
    """Twenty loops beside it: a call that may run for a second gets it, and no more."""
    (tmp_path / "slow.py").write_text(
        "import os\n"
        "def assign(cluster, group):\n"
        f"    until = sum(os.times()[:2]) + {used}\n"
        "    while sum(os.times()[:2]) < until: pass\n"
        "    return {'A': [('t', 0), ('t', 1)]}\n"
    )
    monkeypatch.chdir(tmp_path)
    opened = session("slow:assign", call_seconds=1.0, start_seconds=60.0)
    loops = [Child([sys.executable, "-c", "while True: pass"]) for _ in range(20)]
    try:
        began = time.monotonic()
        reply = ask(opened, GOOD)
        assert time.monotonic() - began > 1.0  # by the clock it would be too long
    finally:
        for loop in loops:
            loop.kill()
    assert isinstance(reply, Answer) == (used < 1), reply


@pytest.mark.slow
def test_program_that_does_not_leave(session):
    """It would sleep for ever."""
    session(*program("ignores_bye")).close()


# --- starting --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "texts"),
    [
        ("slow_start", ["no reply within 0.4 s"]),
        ("start_exit", ["ended with exit status 4", "| cannot find my configuration"]),
        ("hello_garbage", ["not one line of JSON", "Welcome to the shell", "protocol.schema.json"]),
        ("hello_typo", ["hello: unknown key 'promisses'; known are name, protocols"]),
        (
            "hello_no_protocols",
            ["protocols must name some of eager, cooperative, consumer, share, tasks, streams; got []"],
        ),
    ],
)
def test_does_not_start(session, mode, texts):
    limits = {"start_seconds": 0.4} if mode == "slow_start" else {}
    with pytest.raises(TargetError) as error:
        session(*program(mode), **limits)
    assert "does not start" in str(error.value)
    for text in texts:
        assert text in str(error.value)


# --- several at once -------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("spec", ["hostile_assignors:os_exit", "hostile_assignors:returns_none"])
def test_only_the_bad_question_fails(session, spec):
    opened = session(spec)
    groups = [{f"m{i}": GOOD["A"]} for i in range(9)]
    for index in (2, 6):
        groups[index] = BAD
    replies = [ask(opened, group) for group in groups]
    assert [isinstance(reply, Failure) for reply in replies] == [group is BAD for group in groups]
    for group, reply in zip(groups, replies, strict=True):
        if group is not BAD:
            assert reply.assignment == {next(iter(group)): (T0, T1)}
    assert opened.starts == (3 if spec.endswith("exit") else 1)


def test_user_data_of_several_members_ends_at_a_failure(session):
    opened = session("hostile_assignors:Reporting")
    first, failure = opened.user_data_of(
        [UserDataQuestion((T0,), 3), UserDataQuestion((), 13), UserDataQuestion((), 4)]
    )
    assert (first, failure.kind) == (b"\x01\x03", "garbage")
    questions = [UserDataQuestion((T0,), 3, Asker(m, ("t",))) for m in "AB"] + [UserDataQuestion((), 4)]
    assert opened.user_data_of(questions) == [b"\x01\x03", b"\x01\x03", b"\x00\x04"]
    assert opened.starts == 1


def test_one_process_of_a_python_assignor_is_asked_once_for_the_same_user_data(session, tmp_path):
    (tmp_path / "counting.py").write_text(
        "import os\n"
        "class Counting:\n"
        "    count = 0\n"
        "    def assign(self, cluster, group):\n"
        "        os._exit(3)\n"
        "    def user_data(self, owned, generation):\n"
        "        self.count += 1\n"
        "        return bytes([self.count])\n"
    )
    os.chdir(tmp_path)
    opened = session("counting:Counting")
    assert opened.user_data_of([UserDataQuestion((), 1), UserDataQuestion((), 2)]) == [b"\1", b"\2"]
    assert opened.user_data_of([UserDataQuestion((), 3), UserDataQuestion((), 1)]) == [b"\3", b"\1"]
    assert isinstance(ask(opened, GOOD), Failure)
    assert opened.user_data((), 3) == b"\1", "another process, another count"


OTHER_PROGRAM = """
import json, os, sys
def reply(seq, result):
    os.write(1, b'{"seq":%d,"result":%s}\\n' % (seq, json.dumps(result).encode()))
last = 0
while chunk := os.read(0, 2**16):
    request = json.loads(chunk)  # fails when two lines come at once
    seq, members = request["seq"], [m["id"] for m in request.get("members", ())]
    if request["cmd"] == "hello":
        reply(0, {"name": "one by one", "protocols": ["eager"], "user_data": True})
    elif request["cmd"] == "user_data":
        reply(seq, {"user_data": "%02x" % len(request["owned"])})
    else:
        last = last if "BAD" in members else seq
        reply(last, {"assignment": {}})
"""


def test_other_programs_get_one_request_at_a_time(session):
    opened = session(None, sys.executable, "-c", OTHER_PROGRAM)
    questions = [UserDataQuestion((T0,), 1), UserDataQuestion((), 2), UserDataQuestion((T0,), 1)]
    assert opened.user_data_of(questions) == [b"\x01", b"\x00", b"\x01"]
    assert opened.starts == 1


def test_an_answer_given_again_to_another_request_is_no_answer(session):
    """What replies mean is remembered; a number that was right once is not right for ever."""
    opened = session(None, sys.executable, "-c", OTHER_PROGRAM)
    for _ in range(3):
        assert ask(opened, GOOD).assignment == {}
    failure = ask(opened, BAD)
    assert failure.kind == "garbage"
    assert "expected the reply to request 4, got" in failure.message


@pytest.mark.slow
def test_requests_larger_than_the_pipes(session):
    """Requests of more than a pipe holds, and as many replies as are awaited at once."""
    big = Cluster.of({"t": 50_000})
    assert isinstance(session("hostile_assignors:hang").assign(COOPERATIVE, big, GOOD), Answer)
    many = tuple(TopicPartition("t", index) for index in range(200))
    questions = [UserDataQuestion(many, generation) for generation in range(14, 214)]
    assert len(session("hostile_assignors:Reporting").user_data_of(questions)) == 200


# --- in this process -------------------------------------------------------------------------------------


def hostile(name):
    sys.path.insert(0, str(HOSTILE))
    try:
        return getattr(import_module("hostile_assignors"), name)
    finally:
        sys.path.remove(str(HOSTILE))


@pytest.mark.parametrize(
    ("name", "kind", "text", "detail"), [k for k in KEPT if k[0] not in ("interrupt", "flood_stderr")]
)
def test_in_process_says_the_same(name, kind, text, detail):
    with InProcess(hostile(name)) as opened:
        failure = ask(opened, BAD)
        assert (failure.kind, text in failure.message, detail in failure.detail) == (kind, True, True), (
            failure
        )
        reply = ask(opened, GOOD)
        assert isinstance(reply, Answer), reply
        assert reply.assignment == {"A": (T0, T1)}


def test_in_process_lets_the_user_interrupt():
    with InProcess(hostile("interrupt")) as opened, pytest.raises(KeyboardInterrupt):
        ask(opened, BAD)


def test_in_process_hello_and_user_data():
    opened = InProcess(hostile("Reporting"))
    assert opened.hello.name == "reporting"
    assert opened.user_data((T0,), 3) == b"\x01\x03"
    with pytest.raises(TargetError, match="a int is no assignor"):
        InProcess(42)


# --- many questions at once ------------------------------------------------------------------------------

LOUD = """
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    reply = {"assignment": {"A" * 30_000: []}}
    if request["cmd"] == "hello":
        reply = {"name": "loud", "protocols": ["eager"], "user_data": True, "user_data_from": ["generation"]}
    if request["cmd"] == "user_data":
        reply = {"user_data": "%02x" % request["generation"]}
    print(json.dumps({"seq": request["seq"], "result": reply}), flush=True)
"""
"""It reads nothing while it writes, and writes more than a pipe holds."""


def test_more_than_two_pipes_hold_is_asked_and_answered_at_once(session):
    opened = session(None, sys.executable, "-c", LOUD)
    asked = [(n, AssignQuestion(COOPERATIVE, CLUSTER, {"B" * 30_000: GOOD["A"]})) for n in range(1, 41)]
    assert opened.answers(asked) == [Answer({"A" * 30_000: ()})] * 40


def test_user_data_is_asked_as_often_as_it_can_differ(session):
    seen = []
    opened = session(None, sys.executable, "-c", LOUD, observe=lambda direction, line: seen.append(line))
    questions = tuple(
        UserDataQuestion(owned, generation, Asker(member, ("t",)))
        for owned, generation, member in itertools.product([(), (T0,), (T1,)], [1, 2, 3], "AB")
    )
    expected = [bytes([question.generation]) for question in questions]
    assert opened.answers([(1, questions), (2, questions[:2])]) == [expected, expected[:2]]
    opened.renew()
    assert opened.user_data_of(questions) == expected
    assert sum(b'"cmd":"user_data"' in line for line in seen) == 3


def test_a_target_that_ends_among_many_questions_is_asked_one_by_one(session):
    """Nobody is blamed before that."""
    opened = session("hostile_assignors:os_exit")
    good, bad = (AssignQuestion(COOPERATIVE, CLUSTER, group) for group in (GOOD, BAD))
    with pytest.raises(TargetLost):
        opened.answers([(1, good), (2, bad), (3, good)])
    kinds = [type(opened.assign(*question[:3])) for question in (good, bad, good)]
    assert kinds == [Answer, Failure, Answer]
