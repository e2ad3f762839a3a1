"""What any client does, or has done to it by the mock cluster."""

from __future__ import annotations

from collections.abc import Iterator

from rebalance.live.conformance.clients.traits import Deviation, Diagnosis, FindingContext
from rebalance.model.machine import Outcome
from rebalance.model.protocol.callbacks import join_prepare, works
from rebalance.model.protocol.member import wants_to_join
from rebalance.model.protocol.setup import MemberContext
from rebalance.model.protocol.state import Member, Wire

UNHEARD, BEFORE_JOIN = "joins unheard", "is killed before it joins"


def prepares(me: MemberContext, member: Member, wire: Wire) -> Iterator[Outcome]:
    ready = works(member) and wire is None and member.received is None and member.prepare
    if ready and wants_to_join(me, member):
        after, seen = join_prepare(me, member)
        yield Outcome((after, wire), seen=seen)


def _unheard(me: MemberContext) -> Iterator[Outcome]:
    """The model's join, of which nothing was written down: ``with_deviations`` knows it."""
    return iter(())


def _stopped(seen: FindingContext) -> bool:
    """The earlier owner was stopped at some time, and has joined since with the member id from before."""
    earlier = seen.finding["consumers"][0]
    stopped = any(step["do"] == "stop" and step.get("member") == earlier for step in seen.run["steps"])
    known = [e.get("member") for e in seen.before(earlier, "assigned")][-1:]
    later = [
        e.get("member")
        for e in seen.events
        if e.get("consumer") == earlier and e["event"] == "joined" and e["at"] > seen.finding["began"]
    ]
    return stopped and known == later[:1]


DEVIATIONS: tuple[Deviation, ...] = (
    Deviation(
        id=BEFORE_JOIN, benign=True,
        sentence="a consumer is killed between the callback before a JoinGroup and the JoinGroup",
        evidence="any client; the model does both at once",
        parts=("member", "wire"), run=prepares,
        timed="kill",
    ),
    Deviation(
        id=UNHEARD, benign=True,
        sentence="a consumer is killed before the line is written that tells of its last JoinGroup",
        evidence="any client: what a process has not written when it is killed is lost",
        parts=(), run=_unheard,
        timed="kill",
    ),
)  # fmt: skip

TAKEN_BACK = Diagnosis(
    id="taken back under its old id", on_mock=True,
    sentence="A member that is stopped for longer than its session, and goes on, is taken back by the "
    "mock cluster under its old member id: it does not learn that its partitions were given away",
    evidence="its joined after the stop has the member id from before; no reset, no lost",
    checks=("granted-before-revoked",), fits=_stopped,
)  # fmt: skip
