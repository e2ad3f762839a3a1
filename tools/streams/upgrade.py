"""``python -m tools.streams.upgrade``: the upgrade of KIP-429 for Kafka Streams, on the code of releases.

Members of 2.3 are its own ``StreamsPartitionAssignor``, in a JVM of theirs. Those of the newer release, with
``upgrade.from`` and without, are in another. A group of both is restarted member by member. Consumers are
played here: an EAGER one gives everything up before it joins, a COOPERATIVE one what it is no longer given.
Counted are groups in which a partition is given to a member while another has it.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import random
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path

from rebalance_verifier.live.artifacts import jvm, maven

OLD, NEW = "2.3.1", "3.9.2"
STREAMS = "org.apache.kafka:kafka-streams"
PACKAGE = "org.apache.kafka.streams.processor.internals"
HOSTS = "rebalance_verifier.gate.targets.hosts.java"
MOST_REBALANCES = 12


class PeerError(Exception):
    """An assignor raised; the text is its message."""


@dataclass(slots=True)
class Peers:
    """The members of one release, in their JVM."""

    process: subprocess.Popen[str]

    def ask(self, *parts: str) -> list[str]:
        """Return the answer to a request. Raises PeerError."""
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write("\t".join(parts) + "\n")
        self.process.stdin.flush()
        kind, *answer = self.process.stdout.readline().rstrip("\n").split("\t")
        if kind != "ok":
            raise PeerError(*answer)
        return answer


@contextlib.contextmanager
def started(release: str, peer: str, *shared: str) -> Iterator[Peers]:
    """Start the JVM of a release."""
    jars = maven.classpath([f"{STREAMS}:{release}"])
    here = Path(__file__).parent
    texts = {name: (here / name).read_text() for name in ("Peer.java", f"{peer}.java")}
    texts |= {name: (resources.files(HOSTS) / name).read_text() for name in shared}
    classes = jvm.compiled_texts(texts, jars)
    command = [jvm.program(), *jvm.OPTIONS, "-cp", os.pathsep.join([classes, *jars])]
    command += [f"{PACKAGE}.Peer$Host", f"{PACKAGE}.{peer}"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, text=True, **pipes)  # type: ignore[call-overload]
    try:
        yield Peers(process)
    finally:
        process.stdin.close()
        process.wait(20)


Partitions = frozenset[int]
NOTHING: Partitions = frozenset()


@dataclass(slots=True)
class Member:
    """One member of the group while it is upgraded."""

    name: str
    peers: Peers
    cooperative: bool
    owned: Partitions = NOTHING


@dataclass(slots=True)
class Group:
    """A group whose members are restarted one by one."""

    partitions: int
    draw: random.Random
    members: dict[str, Member] = field(default_factory=dict)
    number: int = 0
    leader: str = ""
    log: list[str] = field(default_factory=list)
    owned_twice: list[str] = field(default_factory=list)

    def start(self, name: str, peers: Peers, upgrade_from: str) -> None:
        """Start a member anew; it is called otherwise each time, as by the coordinator."""
        self.number += 1
        unique = f"{name}{self.number}-{self.draw.randrange(1000):03}"  # ids of processes have any order
        [cooperative] = peers.ask("new", unique, upgrade_from)
        self.members[name] = Member(unique, peers, cooperative == "true")
        self.log.append(f"{unique} starts" + (f" with upgrade.from={upgrade_from}" if upgrade_from else ""))

    def settle(self, most: int = MOST_REBALANCES) -> bool:
        """Rebalance until nobody wants another; whether that came."""
        return any(not self.rebalance() for _ in range(most))

    def rebalance(self) -> bool:
        """Let all join, one of them lead, and all take what they are given; whether another is to follow."""
        by_name = {member.name: member for member in self.members.values()}
        request = []
        for member in by_name.values():
            member.owned = member.owned if member.cooperative else NOTHING
            [data] = member.peers.ask("join", member.name, _text(member.owned))
            request += [member.name, _text(member.owned), data]
        if self.leader not in by_name:  # it leads as long as it is there
            self.leader = self.draw.choice(sorted(by_name))
        leader = by_name[self.leader]
        answer = leader.peers.ask("lead", leader.name, str(self.partitions), *request)
        again = False
        given = {name: (_numbers(text), data) for name, text, data in _threes(answer)}
        self.log.append(
            f"{leader.name} leads: " + "  ".join(f"{name} {_text(p)}" for name, (p, _) in given.items())
        )
        for name, (partitions, _) in given.items():
            for other in by_name.values():
                if other.name != name and partitions & other.owned:
                    both = f"{name} and {other.name} have {_text(partitions & other.owned)}"
                    self.owned_twice.append(both)
                    self.log.append(both)
        for name, (partitions, data) in given.items():
            member = by_name[name]
            again |= bool(member.owned - partitions)
            member.owned = partitions
            [wants] = member.peers.ask("take", name, _text(partitions), data)
            again |= wants == "true"
        return again


def _text(partitions: Partitions) -> str:
    return ",".join(map(str, sorted(partitions)))


def _numbers(text: str) -> Partitions:
    return frozenset(map(int, filter(None, text.split(","))))


def _threes(parts: Sequence[str]) -> list[tuple[str, ...]]:
    return [tuple(parts[at : at + 3]) for at in range(0, len(parts), 3)]


@dataclass(slots=True)
class Tally:
    """What came of the groups of one path."""

    groups: int = 0
    owned_twice: int = 0
    unsettled: int = 0
    raised: int = 0
    shown: str = ""

    def line(self) -> str:
        """Return the row of the page."""
        return f"{self.groups} | {self.owned_twice} | {self.unsettled} | {self.raised}"


def upgraded(old: Peers, new: Peers, stages: Sequence[str], members: int, draw: random.Random) -> Group:
    """Return a group after an upgrade from 2.3: in each of the ``stages`` all start again with that
    ``upgrade.from``."""
    group = Group(partitions=members + 1, draw=draw)
    names = [chr(ord("a") + number) for number in range(members)]
    for name in names:
        group.start(name, old, "")
    group.settle()
    for upgrade_from in stages:
        for name in draw.sample(names, members):
            if draw.random() < 0.5:  # it leaves, which the others notice before it is back
                group.log.append(f"{group.members.pop(name).name} leaves")
                group.settle(draw.randint(0, 2))
            group.start(name, new, upgrade_from)
            group.settle(draw.choice((1, 2, MOST_REBALANCES)))
        group.settle()
    return group


def judged(old: Peers, new: Peers, stages: Sequence[str], members: int, groups: int) -> Tally:
    """Return the tally of so many groups."""
    tally = Tally()
    for seed in range(groups):
        tally.groups += 1
        try:
            group = upgraded(old, new, stages, members, random.Random(seed))
        except PeerError as error:
            tally.raised += 1
            tally.shown = tally.shown or str(error)
            continue
        if group.owned_twice:
            tally.owned_twice += 1
            log = "\n".join(group.log[: group.log.index(group.owned_twice[0]) + 1])
            if not tally.shown or len(log) < len(tally.shown):
                tally.shown = log
        everything = sorted(itertools.chain.from_iterable(m.owned for m in group.members.values()))
        tally.unsettled += everything != list(range(group.partitions))
    return tally


PATHS = (("two bounces, upgrade.from = 2.3 in the first", ("2.3", "")), ("one bounce, without", ("",)))


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.streams.upgrade", description=__doc__)
    parser.add_argument("--groups", type=int, default=200, help="groups of each path and size")
    options = parser.parse_args()
    member = ("StreamsMember.java",)
    with started(OLD, "OldPeer") as old, started(NEW, "NewPeer", *member) as new:
        print(f"| {OLD} to {NEW} | members | groups | two owners | not settled | an assignor raised |")
        print("| --- | --- | --- | --- | --- | --- |")
        shown = []
        for name, stages in PATHS:
            for members in (2, 3):
                tally = judged(old, new, stages, members, options.groups)
                print(f"| {name} | {members} | {tally.line()} |", flush=True)
                shown += [f"\n{name}, {members} members:\n\n{tally.shown}"] if tally.shown else []
        print(*shown, sep="\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
