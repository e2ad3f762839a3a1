"""A hundred hostile targets: what comes of each, and that nothing is left of any of them."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import pytest
from rebalance_verifier.base.processes.supervision import marked
from rebalance_verifier.gate.targets.resolve import resolve
from rebalance_verifier.gate.targets.session import Session
from rebalance_verifier.model.values import Cluster, RebalanceProtocol, Subscription, TopicPartition
from rebalance_verifier.properties.assignors.calls import Answer, Failure

from tests.processes import LINUX
from tests.tiers import tiered

HOSTILE = Path(__file__).parent / "hostile"

PATIENCE = 60
"""Seconds in which files have to be gone, on a busy machine."""
sys.path.insert(0, str(HOSTILE))
try:
    legion = importlib.import_module("legion")
finally:
    sys.path.remove(str(HOSTILE))
FORGED, SECRET, TRIES = legion.FORGED, legion.SECRET, legion.TRIES

TOKEN = "hunter2-of-the-judge"
MARK = "REBALANCE_LEGION"
PRECIOUS = "REBALANCE_PRECIOUS"
CLUSTER = Cluster.of({"t": 2})
KEEPS_NOTHING = ("environment", "output", "answers")
"""Areas whose tries leave the process of the target as it was."""

pytestmark = [
    pytest.mark.slow,  # a hundred processes, and a dozen that hang for a second of CPU time
    pytest.mark.skipif(not LINUX, reason="what is kept is known on Linux only"),
]


@pytest.fixture(scope="module")
def temporary(tmp_path_factory):
    directory = tmp_path_factory.mktemp("temporary")
    before, tempfile.tempdir = tempfile.tempdir, str(directory)
    yield directory
    tempfile.tempdir = before


@contextlib.contextmanager
def legion_of(temporary, kind, **how):
    """A session, and the mark that its processes have."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(HOSTILE)
        patch.setenv(SECRET, TOKEN)
        patch.setenv(MARK, mark := f"{kind} of {os.getpid()}")
        precious = temporary.with_name("precious")
        patch.setenv(PRECIOUS, str(precious))
        precious.mkdir(exist_ok=True)
        (precious / "file").write_text("of the user")
        target = replace(resolve("legion:Legion"), variables=(MARK, PRECIOUS), **how)
        with Session(target, call_seconds=1.0, memory_mib=200, start_seconds=60.0) as opened:
            yield opened, mark


@pytest.fixture(scope="module")
def session(temporary):
    """One session for as many of them as leave it usable."""
    with legion_of(temporary, "legion") as opened:
        yield opened


@pytest.fixture(scope="module")
def boxed(temporary):
    """The same in a sandbox."""
    with legion_of(temporary, "boxed", sandbox=True) as opened:
        yield opened


def asked(session, member):
    group = {member: Subscription(topics=("t",))}
    return session.assign(RebalanceProtocol.COOPERATIVE, CLUSTER, group)


LARGE = {"many_members_of_one_partition", "many_topics", "many_partitions"}
"""As many as many_members, of something else."""


@pytest.mark.parametrize("name", tiered(TRIES, set(TRIES) - LARGE))
def test_a_hostile_target_has_the_verdict_that_it_deserves(session, temporary, name):
    opened, mark = session
    area, outcome, _ = TRIES[name]
    reply = asked(opened, f"BAD {name}")
    assert ("answer" if isinstance(reply, Answer) else reply.kind) in outcome.split("|"), reply
    if isinstance(reply, Failure):
        assert TOKEN not in reply.message + reply.detail
        assert FORGED not in reply.message.splitlines()[0] or name == "prints_a_verdict_on_stderr"
        assert len(reply.message) + len(reply.detail) < 200_000
    if area not in KEEPS_NOTHING:
        opened.close()
        assert not left(mark), "processes left"
        assert not list(temporary.iterdir()), "files left"
        assert [path.read_text() for path in temporary.with_name("precious").iterdir()] == ["of the user"]
    good = asked(opened, "A")
    assert isinstance(good, Answer), good
    assert good.assignment == {"A": (TopicPartition("t", 0), TopicPartition("t", 1))}


IN_A_SANDBOX = {
    # What is at a distance is out of reach: another file system, a socket, its parent, and that one's.
    **dict.fromkeys(
        ("another_directory_in_place_of_its_own", "a_socket_in_place_of_its_directory"), "errored"
    ),
    # Its folder is full, or the watch of its memory and files was first.
    **dict.fromkeys(("writes_for_ever", "writes_to_a_file_without_a_name"), "errored|memory"),
    **dict.fromkeys(("kills_both_parents", "kills_both_parents_and_hides"), "timeout"),
    "sigkill_to_parent": "answer",
    "stops_its_grandparent": "errored",
}
"""Outcomes that differ in a sandbox."""


REACHING = [name for name in TRIES if TRIES[name][0] not in KEEPS_NOTHING]


@pytest.mark.parametrize("name", tiered(REACHING, {*IN_A_SANDBOX, "leaves_a_deep_tree"}))
def test_a_hostile_target_in_a_sandbox_leaves_nothing_either(session, boxed, temporary, name):
    session[0].close()  # what that one has in the directory of temporary files is not left by this one
    opened, mark = boxed
    reply = asked(opened, f"BAD {name}")
    outcome = IN_A_SANDBOX.get(name, TRIES[name][1])
    assert ("answer" if isinstance(reply, Answer) else reply.kind) in outcome.split("|"), reply
    opened.close()
    assert not left(mark), "processes left"
    ends = time.monotonic() + PATIENCE  # the keeper removes what is left after its program has ended
    while list(temporary.iterdir()) and time.monotonic() < ends:
        time.sleep(0.05)
    assert not list(temporary.iterdir()), "files left"
    assert [path.read_text() for path in temporary.with_name("precious").iterdir()] == ["of the user"]
    assert isinstance(asked(opened, "A"), Answer)
    opened.close()


def left(mark):
    """Processes that have seen the mark, of those that have not just been killed."""
    until = time.monotonic() + 60
    while (found := [pid for pid in marked(mark) if pid != os.getpid()]) and time.monotonic() < until:
        time.sleep(0.02)
    return found


def test_there_are_a_hundred_of_them():
    assert len(TRIES) >= 100
    assert all(function.__doc__ for _, _, function in TRIES.values())
