"""What any client does, or has done to it by the mock cluster."""

from __future__ import annotations

from collections.abc import Iterator

from rebalance_verifier.live.conformance.clients.traits import FindingContext, read_deviations, read_diagnoses
from rebalance_verifier.model.classic.callbacks import join_prepare, works
from rebalance_verifier.model.classic.member import wants_to_join
from rebalance_verifier.model.classic.state import Member, Wire
from rebalance_verifier.model.group.setup import MemberContext
from rebalance_verifier.model.machine import Outcome

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
    """Check whether the earlier owner was stopped at some time, and has joined since with the member id from
    before."""
    earlier = seen.finding["consumers"][0]
    stopped = any(step["do"] == "stop" and step.get("member") == earlier for step in seen.run["steps"])
    known = [e.get("member") for e in seen.before(earlier, "assigned")][-1:]
    later = [
        e.get("member")
        for e in seen.events
        if e.get("consumer") == earlier and e["event"] == "joined" and e["at"] > seen.finding["began"]
    ]
    return stopped and known == later[:1]


DEVIATIONS = read_deviations(
    __file__,
    {BEFORE_JOIN: prepares, UNHEARD: _unheard},
)
(TAKEN_BACK,) = read_diagnoses(__file__, {"taken back under its old id": _stopped})
