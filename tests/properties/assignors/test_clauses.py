"""Each clause: calls that break it, near misses that do not, and what a breach says."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import FunctionType
from typing import Any

import pytest
from rebalance_verifier.base.processes.failure import FailureKind
from rebalance_verifier.base.verdict import Level
from rebalance_verifier.model.assignor import LESSER, Limits, Promise, stated
from rebalance_verifier.model.values import Cluster, RebalanceProtocol, Subscription, TopicPartition
from rebalance_verifier.properties.assignors import clauses
from rebalance_verifier.properties.assignors.calls import (
    Answer,
    AssignorCall,
    AssignQuestion,
    Failure,
    StatedClaim,
    answered,
)
from rebalance_verifier.properties.assignors.clause import (
    Breach,
    Clause,
    History,
    Scope,
    Violation,
    violation,
)
from rebalance_verifier.properties.assignors.clauses import CLAUSES, TABLE, select
from rebalance_verifier.properties.assignors.scenarios import Scenario, ScenarioMember, uniform
from rebalance_verifier.properties.assignors.settling import bound
from rebalance_verifier.properties.assignors.task_clauses import TASK_CLAUSES

EAGER, COOPERATIVE = RebalanceProtocol.EAGER, RebalanceProtocol.COOPERATIVE


def tps(text: str) -> tuple[TopicPartition, ...]:
    split = [name.rpartition("-") for name in text.split()]
    return tuple(TopicPartition(topic, int(index)) for topic, _, index in split)


def call(
    given: Mapping[str, str],
    claimed: Mapping[str, tuple[str, int]] | None = None,
    *,
    topics: Mapping[str, int] | None = None,
    subscribed: Mapping[str, str] | None = None,
    cluster: Cluster | None = None,
    racks: Mapping[str, str] | None = None,
    protocol: RebalanceProtocol = COOPERATIVE,
    limits: Limits | None = None,
) -> AssignorCall:
    """``given`` and ``claimed`` by member; everybody subscribes to everything unless ``subscribed`` says."""
    cluster = cluster or Cluster.of({"t": 3} if topics is None else topics)
    claims = {m: StatedClaim(tps(owned), generation) for m, (owned, generation) in (claimed or {}).items()}
    topics_of = subscribed or dict.fromkeys([*given, *claims], " ".join(cluster.topics))
    group = {
        m: Subscription(
            topics=tuple(names.split()),
            owned_partitions=claims[m].partitions if m in claims else (),
            generation_id=claims[m].generation if m in claims else -1,
            rack_id=(racks or {}).get(m),
        )
        for m, names in topics_of.items()
    }
    full = {m: claims.get(m, StatedClaim((), -1)) for m in group}
    return AssignorCall(
        protocol=protocol,
        cluster=cluster,
        group=group,
        claims=full,
        assignment={m: tps(owned) for m, owned in given.items()},
        limits=limits or {},
    )


def shared(given: Mapping[str, str], **more: Any) -> AssignorCall:
    """Return a call of a share group."""
    return call(given, protocol=RebalanceProtocol.SHARE, **more)


Check = Callable[..., Any]  # a breach, or None: what is asked of it says which


def broken(clause_id: str, *shown: object) -> Breach:
    """The breach of a clause that must not hold."""
    breach: Breach | None = CLAUSES[clause_id].check(*shown)
    assert breach is not None
    return breach


def racked(**topics: str) -> Cluster:
    """Racks of the partitions of each topic: ``t="a b ab"`` is three partitions, the last in two racks."""
    return Cluster({t: tuple(tuple(sorted(rs)) for rs in racks.split()) for t, racks in topics.items()})


HELD = {"A": ("t-0 t-1 t-2 t-3 u-0 u-1 u-2 u-3", 5)}
THREE = {"A": ("t-0 t-1 t-2", 5)}
TWO = {"t": 4, "u": 4}
IN_RACK, AB = {"A": "t-0 t-1 t-2", "B": ""}, {"A": "a", "B": "b"}
BOTH_NEAR, ONE_NEAR = racked(t="a a a b", u="a a a b"), racked(t="a a a b", u="b b b a")
TWO_EACH: Limits = {Promise.PARTIAL: 2}
ONE_A_ROUND: Limits = {Promise.GRADUAL: 1}

# Clause id, what it is about, the call, and what the breach must say (None: it must not be one).
CASES: list[tuple[str, str, AssignorCall, str | None]] = [
    ("assign/1", "two members", call({"A": "t-0", "B": "t-1 t-0", "C": "t-2"}), "t-0 is assigned to A and B"),
    ("assign/1", "one member twice", call({"A": "t-0 t-1 t-1"}), "t-1 is assigned to A twice"),
    ("assign/1", "all different", call({"A": "t-0 t-2", "B": "t-1"}), None),
    ("assign/2", "a stranger", call({"A": "t-0", "X": "t-1"}, subscribed={"A": "t"}), "'X' is assigned 1"),
    (
        "assign/2",
        "another topic",
        call({"A": "t-0 t-1", "B": "t-2"}, topics={"t": 3, "u": 1}, subscribed={"A": "t", "B": "u"}),
        "t-2 is assigned to B, which does not subscribe to t",
    ),
    (
        "assign/2",
        "nothing for a subscriber",
        call({"A": "t-0 t-1 t-2"}, subscribed={"A": "t", "B": ""}),
        None,
    ),
    (
        "assign/2",
        "given back, but not subscribed any more",
        call({"A": "gone-0"}, {"A": ("gone-0", 5)}, subscribed={"A": "t"}),
        "gone-0 is assigned to A, which does not subscribe to gone",
    ),
    ("assign/3", "an index too many", call({"A": "t-0 t-3"}), "t-3 is assigned to A and does not exist"),
    ("assign/3", "an unknown topic", call({"A": "gone-0"}), "gone-0 is assigned to A and does not exist"),
    (
        "assign/3",
        "an index that only a claim knows",
        call({"A": "t-7"}, {"A": ("t-7", 5)}),
        "t-7 is assigned to A and does not exist",
    ),
    (
        "assign/3",
        "an unknown topic to a superseded claimant",
        call({"A": "gone-0"}, {"A": ("gone-0", 4), "B": ("gone-0", 5)}),
        "gone-0 is assigned to A and does not exist",
    ),
    ("assign/3", "an unknown topic given back", call({"A": "gone-0"}, {"A": ("gone-0", 5)}), None),
    ("assign/3", "the last index", call({"A": "t-2"}), None),
    ("kip429/leader/5", "unclaimed", call({"A": "t-0", "B": "t-2"}), "t-1 is not assigned"),
    (
        "kip429/leader/5",
        "EAGER has nothing to wait for",
        call({"A": "t-1 t-2", "B": ""}, {"A": ("t-0", 5)}, subscribed={"A": "t", "B": "t"}, protocol=EAGER),
        "t-0 is not assigned",
    ),
    (
        "kip429/leader/5",
        "another's, to be revoked",
        call({"A": "t-0", "B": "t-1"}, {"A": ("t-0 t-2", 5)}),
        None,
    ),
    ("kip429/leader/5", "a tie", call({"A": "", "B": "t-1 t-2"}, {"A": ("t-0", 5), "B": ("t-0", 5)}), None),
    (
        "kip429/leader/5",
        "nobody subscribes",
        call({"A": "t-0"}, topics={"t": 1, "u": 2}, subscribed={"A": "t"}),
        None,
    ),
    (
        "kip429/leader/5",
        "no metadata",
        call({"A": "t-0"}, topics={"t": 1}, subscribed={"A": "t gone"}),
        None,
    ),
    ("assign/8", "left out", call({"A": "t-0"}, {"A": ("t-0", 5), "B": ("", 5)}), "B left out of the answer"),
    ("assign/8", "nothing for B", call({"A": "t-0", "B": ""}, {"A": ("t-0", 5), "B": ("", 5)}), None),
    ("assign/2", "nothing for a stranger", call({"A": "t-0", "X": ""}, subscribed={"A": "t"}), None),
    (
        "kip429/leader/4",
        "handed over",
        call({"A": "t-1", "B": "t-0 t-2"}, {"A": ("t-0 t-1", 5)}),
        "t-0 is granted to B while A still owns it",
    ),
    (
        "kip429/leader/4",
        "the only claim is old",
        call({"A": "", "B": "t-0"}, {"A": ("t-0", 1), "B": ("t-1", 9)}),
        "t-0 is granted to B while A still owns it",
    ),
    (
        "kip429/leader/4",
        "the claimant left the topic",
        call({"B": "t-0"}, {"A": ("t-0", 5)}, topics={"t": 1, "u": 1}, subscribed={"A": "u", "B": "t"}),
        "t-0 is granted to B while A still owns it",
    ),
    (
        "kip429/leader/4",
        "neither of two claimants",
        call({"C": "t-0"}, {"A": ("t-0", 4), "B": ("t-0", 5), "C": ("", 5)}),
        "t-0 is granted to C while B still owns it",
    ),
    (
        "kip429/leader/4",
        "neither of two equal claimants",
        call({"C": "t-0"}, {"A": ("t-0", 5), "B": ("t-0", 5), "C": ("", 5)}),
        "t-0 is granted to C while A, B still own it",
    ),
    (
        "kip429/leader/4",
        "an old claim honoured",
        call({"A": "t-0"}, {"A": ("t-0", 1), "B": ("t-1", 9)}),
        None,
    ),
    (
        "kip429/leader/4",
        "to the older claimant is kip792/claim/1",
        call({"A": "t-0"}, {"A": ("t-0", 5), "B": ("t-0", 6)}),
        None,
    ),
    ("kip429/leader/4", "withheld", call({"A": "", "B": "t-1"}, {"A": ("t-0", 5)}), None),
    ("kip429/leader/4", "one of two equals", call({"A": "t-0"}, {"A": ("t-0", 5), "B": ("t-0", 5)}), None),
    (
        "kip792/claim/1",
        "the older one wins",
        call({"A": "t-0"}, {"A": ("t-0", 5), "B": ("t-0", 6)}),
        "t-0 is granted to A, whose claim is of generation 5, over the newer claim of B",
    ),
    (
        "kip792/claim/1",
        "no generation is the oldest",
        call({"A": "t-0"}, {"A": ("t-0", -1), "B": ("t-0", 0)}),
        "t-0 is granted to A, whose claim is of no generation, over the newer claim of B",
    ),
    ("kip792/claim/1", "the newer one wins", call({"B": "t-0"}, {"A": ("t-0", 5), "B": ("t-0", 6)}), None),
    ("kip792/claim/1", "nobody wins", call({"A": "", "B": ""}, {"A": ("t-0", 5), "B": ("t-0", 6)}), None),
    ("kip792/claim/1", "a tie", call({"A": "t-0"}, {"A": ("t-0", 5), "B": ("t-0", 5)}), None),
    ("kip792/claim/1", "a claim repeated", call({"A": "t-0"}, {"A": ("t-0 t-0", 5)}), None),
    (
        "kip54/balance/1",
        "two more",
        call({"A": "t-0 t-1 t-2", "B": ""}),
        "A has 3 partitions and B, which could take one of t, 0",
    ),
    ("kip54/balance/1", "one more", call({"A": "t-0 t-1", "B": "t-2"}), None),
    (
        "kip54/balance/1",
        "only one may have them",
        call({"A": "t-0 t-1 t-2", "B": ""}, topics={"t": 3, "u": 0}, subscribed={"A": "t", "B": "u"}),
        None,
    ),
    (
        "kip54/balance/1",
        "not before the revocation",
        call({"A": "t-0 t-1", "B": ""}, {"A": ("t-0 t-1 t-2", 5)}),
        None,
    ),
    (
        "kip54/balance/1",
        "what is given back is no load",
        call({"A": "t-0 t-1 gone-0", "B": "t-2"}, {"A": ("gone-0", 5)}),
        None,
    ),
    (
        "kip54/sticky/1",
        "all swapped",
        call(
            {"A": "t-2 t-3", "B": "t-0 t-1"},
            {"A": ("t-0 t-1", 5), "B": ("t-2 t-3", 5)},
            topics={"t": 4},
            protocol=EAGER,
        ),
        "4 partitions moved more than needed: 0 of 4 valid claims kept, 4 possible",
    ),
    (
        "kip54/sticky/1",
        "balance needs it",
        call(
            {"A": "t-0 t-1", "B": "t-2 t-3"}, {"A": ("t-0 t-1 t-2 t-3", 5)}, topics={"t": 4}, protocol=EAGER
        ),
        None,
    ),
    (
        "kip54/sticky/1",
        "no valid claim",
        call({"A": "t-0", "B": "t-1"}, {"A": ("t-1", 5), "B": ("t-1", 5)}, topics={"t": 2}, protocol=EAGER),
        None,
    ),
    (
        "kip54/sticky/1",
        "not subscribed any more",
        call(
            {"A": "u-0", "B": "t-0"},
            {"A": ("t-0", 5)},
            topics={"t": 1, "u": 1},
            subscribed={"A": "u", "B": "t"},
            protocol=EAGER,
        ),
        None,
    ),
    (
        "kip54/sticky/1",
        "not sound",
        call({"A": "t-1", "B": "t-1"}, {"A": ("t-0", 5)}, topics={"t": 2}, protocol=EAGER),
        None,
    ),
    (
        "kip881/rack/1",
        "crossed",
        call({"A": "t-1", "B": "t-0"}, cluster=racked(t="a b"), racks={"A": "a", "B": "b"}),
        "0 partitions are with a member in a replica's rack, 2 could be",
    ),
    (
        "kip881/rack/1",
        "aligned",
        call({"A": "t-0", "B": "t-1"}, cluster=racked(t="a b"), racks={"A": "a", "B": "b"}),
        None,
    ),
    (
        "kip881/rack/1",
        "balance comes first",
        call({"A": "t-0", "B": "t-1"}, cluster=racked(t="a a"), racks={"A": "a", "B": "b"}),
        None,
    ),
    (
        "kip881/rack/1",
        "given back, in no rack",
        call(
            {"A": "t-0 gone-0", "B": "t-1"},
            {"A": ("gone-0", 5)},
            cluster=racked(t="a b"),
            racks={"A": "a", "B": "b"},
            subscribed={"A": "t gone", "B": "t"},
        ),
        None,
    ),
    ("range/balance/1", "three and none", call({"A": "t-0 t-1 t-2", "B": ""}), "t is spread A 3, B 0"),
    ("range/balance/1", "two and one", call({"A": "t-0 t-1", "B": "t-2"}), None),
    (
        "range/balance/1",
        "uneven over all topics",
        call({"A": "t-0 u-0", "B": ""}, topics={"t": 1, "u": 1}),
        None,
    ),
    (
        "range/balance/1",
        "not before the revocation",
        call({"A": "t-0 t-1", "B": ""}, {"A": ("t-0 t-1 t-2", 5)}),
        None,
    ),
    (
        "range/copartition/1",
        "crossed",
        call({"A": "t-0 u-1", "B": "t-1 u-0"}, topics={"t": 2, "u": 2}),
        "t-0 and u-0 are with A and B",
    ),
    (
        "range/copartition/1",
        "three topics, one astray",
        call({"A": "t-0 u-0", "B": "v-0"}, topics={"t": 1, "u": 1, "v": 1}),
        "t-0 and v-0 are with A and B",
    ),
    (
        "range/copartition/1",
        "aligned",
        call({"A": "t-0 u-0", "B": "t-1 u-1"}, topics={"t": 2, "u": 2}),
        None,
    ),
    (
        "range/copartition/1",
        "other sizes",
        call({"A": "t-0 u-1", "B": "t-1 u-0 u-2"}, topics={"t": 2, "u": 3}),
        None,
    ),
    (
        "range/copartition/1",
        "other subscribers",
        call({"A": "t-0", "B": "u-0"}, topics={"t": 1, "u": 1}, subscribed={"A": "t u", "B": "u"}),
        None,
    ),
    (
        "range/copartition/1",
        "not before the revocation",
        call({"A": "t-0", "B": ""}, {"A": ("u-0", 5)}, topics={"t": 1, "u": 1}),
        None,
    ),
    (
        "roundrobin/balance/1",
        "equal subscriptions",
        call({"A": "t-0 t-1 t-2", "B": ""}),
        "A has 3 partitions",
    ),
    (
        "roundrobin/balance/1",
        "unequal subscriptions",
        call({"A": "t-0 t-1 t-2", "B": ""}, topics={"t": 3, "u": 0}, subscribed={"A": "t", "B": "t u"}),
        None,
    ),
    *(
        ("sticky/spread/1", about, call(given, HELD, topics=TWO, subscribed=subscribed), says)
        for about, given, subscribed, says in (
            ("one of two", {"A": "t-0 t-1 t-2 t-3", "B": ""}, None, "A keeps 4 partitions of t and 0 of u"),
            ("half of both", {"A": "t-0 t-1 u-0 u-1", "B": ""}, None, None),
            ("two more of one", {"A": "t-0 t-1 t-2 u-0", "B": ""}, None, None),
            ("for others only", {"A": "t-0 t-1 t-2 t-3", "B": ""}, {"A": "t u", "B": "u"}, None),
            ("what is unsound is reported as that", {"A": "t-0 t-1 t-2 t-3", "B": "t-3"}, None, None),
        )
    ),
    (
        "sticky/spread/1",
        "not held alike",
        call({"A": "t-0 t-1 t-2 t-3"}, HELD, topics={"t": 4, "u": 3}),
        None,
    ),
    (
        "sticky/spread/1",
        "one of two, in its rack",
        call(IN_RACK, HELD, cluster=BOTH_NEAR, racks=AB),
        "3 partitio",
    ),
    ("sticky/spread/1", "u is elsewhere", call(IN_RACK, HELD, cluster=ONE_NEAR, racks=AB), None),
    (
        "partial/limit/1",
        "one too many",
        call({"A": "t-0 t-1 t-2"}, limits=TWO_EACH),
        "A has 3",
    ),
    ("partial/limit/1", "as many as it may", call({"A": "t-0 t-1"}, limits=TWO_EACH), None),
    ("kip429/leader/5", "nobody has room", call({"A": "t-0 t-1"}, limits=TWO_EACH), None),
    ("kip429/leader/5", "A has room", call({"A": "t-0"}, limits=TWO_EACH), "t-1 is not assigned"),
    (  # B has to wait for t-0 and t-1: that is what its room is for
        "kip429/leader/5",
        "room is kept",
        call({"A": "t-2 t-3", "B": ""}, {"A": ("t-0 t-1 t-2 t-3", 5)}, topics={"t": 5}, limits=TWO_EACH),
        None,
    ),
    (
        "gradual/moves/1",
        "two",
        call({"A": "t-0", "B": ""}, THREE, limits=ONE_A_ROUND),
        "2 valid cl",
    ),
    ("gradual/moves/1", "one", call({"A": "t-0 t-1", "B": ""}, THREE, limits=ONE_A_ROUND), None),
    ("gradual/moves/1", "not valid", call({"A": ""}, {"A": ("u-0 u-1", 5)}, limits=ONE_A_ROUND), None),
    # A claims three, B is new.
    ("stop-the-world/revoke/1", "one is kept", call({"A": "t-0", "B": ""}, THREE), "t-1, t-2 given back"),
    ("stop-the-world/revoke/1", "none is kept", call({"A": "", "B": ""}, THREE), None),
    ("stop-the-world/revoke/1", "all are kept", call({"A": "t-0 t-1 t-2", "B": ""}, THREE), None),
    ("stop-the-world/revoke/1", "all but what is not valid", call({"A": "t-0"}, {"A": ("t-0 u-1", 5)}), None),
    ("stop-the-world/assign/1", "all is given back", call({"A": "", "B": ""}, THREE), None),
    (
        "stop-the-world/assign/1",
        "what nobody claims waits too",
        call({"A": "", "B": ""}, {"A": ("t-0", 5)}, topics={"t": 2}),
        None,
    ),
    (
        "stop-the-world/assign/1",
        "nobody revokes",
        call({"A": "t-0", "B": ""}, {"A": ("t-0", 5)}, topics={"t": 2}),
        "t-1 is not assigned",
    ),
    (
        "stop-the-world/assign/1",
        "an EAGER group has no round after it",
        call({"A": "", "B": ""}, THREE, protocol=EAGER),
        "t-0 is not assigned",
    ),
    (
        "kip54/balance/1",
        "at rest",
        call({"A": "t-0 t-1 t-2", "B": ""}, limits=ONE_A_ROUND),
        "A has 3 partitions",
    ),
    (
        "kip54/balance/1",
        "under way",
        call({"A": "t-0 t-1 t-2", "B": ""}, limits=ONE_A_ROUND, protocol=EAGER),
        None,
    ),
    (
        "weighted/idle/1",
        "nothing",
        call({"A": "t-0 t-1 t-2", "B": ""}),
        "B has nothing, and A 3",
    ),
    ("weighted/idle/1", "whatever they weigh", call({"A": "t-0 t-1", "B": "t-2"}), None),
    ("weighted/idle/1", "there is only one", call({"A": "t-0", "B": ""}, topics={"t": 1}), None),
    (
        "weighted/idle/1",
        "none that it could take",
        call({"A": "t-0 t-1 t-2", "B": ""}, subscribed={"A": "t", "B": "u"}),
        None,
    ),
    (
        "kip932/complete/1",
        "nobody has one",
        shared({"A": "t-0 t-1", "B": "t-1"}),
        "t-2 is not assigned",
    ),
    ("kip932/complete/1", "all have somebody", shared({"A": "t-0 t-1", "B": "t-1 t-2"}), None),
    ("kip932/once/1", "twice", shared({"A": "t-0 t-1 t-0", "B": "t-2"}), "t-0 is assigned to A 2 times"),
    ("kip932/once/1", "to two members", shared({"A": "t-0 t-1", "B": "t-0 t-2"}), None),
    ("kip932/idle/1", "nothing", shared({"A": "t-0 t-1 t-2", "B": ""}), "B subscribes to t and is assigned"),
    (
        "kip932/idle/1",
        "nothing there is",
        shared({"A": "t-0 t-1 t-2", "B": ""}, subscribed={"A": "t", "B": "gone"}),
        None,
    ),
    (
        "kip932/balance/1",
        "three and one",
        shared({"A": "t-0 t-1", "B": "t-0 t-2", "C": "t-0"}),
        "t-0 has 3 members and t-1 1",
    ),
    ("kip932/balance/1", "two and one", shared({"A": "t-0 t-1", "B": "t-0 t-2", "C": "t-1"}), None),
    (
        "kip932/balance/2",
        "three and one",
        shared({"A": "t-0 t-1 t-2", "B": "t-0"}),
        "3 partitions and another 1",
    ),
    ("kip932/balance/2", "two and one", shared({"A": "t-0 t-1", "B": "t-2"}), None),
    (
        "kip932/balance/2",
        "another topic that does not exist",
        shared({"A": "t-0 t-1 t-2", "B": "t-0"}, subscribed={"A": "t", "B": "t gone"}),
        None,
    ),
]


@pytest.mark.parametrize(
    ("clause_id", "judged", "says"),
    [(c, k, s) for c, _, k, s in CASES],
    ids=[f"{c}: {n}" for c, n, _, _ in CASES],
)
def test_one_call(clause_id: str, judged: AssignorCall, says: str | None):
    clause = CLAUSES[clause_id]
    assert clause.scope is Scope.CALL
    breach = clause.check(judged)
    if says is None:
        assert breach is None
    else:
        assert breach is not None
        assert says in breach.summary
        assert set(breach.partitions) <= {*judged.granted, *judged.withheld}
        assert breach.expected
        assert breach.actual


def test_every_clause_of_one_call_has_a_breach_and_a_near_miss():
    calls = {c.id for c in TABLE if c.scope is Scope.CALL and c not in TASK_CLAUSES}
    assert {c for c, _, _, says in CASES if says} == calls
    assert {c for c, _, _, says in CASES if says is None} == calls


def test_because_lines_tell_who_claimed_what():
    breach = broken("kip429/leader/4", call({"A": "", "B": "t-0 t-1"}, {"A": ("t-0", 5), "B": ("t-1", -1)}))
    assert breach.because == (
        "A joined claiming t-0, generation 5",
        "assign() returned A: {}  B: {t-0, t-1}",
        "no revocation of t-0 by A comes before it: two owners from here",
    )
    assert breach.partitions == tps("t-0")


def test_gap_is_the_distance_from_the_optimum():
    sticky = broken(
        "kip54/sticky/1",
        call({"A": "t-1", "B": "t-0"}, {"A": ("t-0", 5), "B": ("t-1", 5)}, topics={"t": 2}, protocol=EAGER),
    )
    rack = broken(
        "kip881/rack/1", call({"A": "t-1", "B": "t-0"}, cluster=racked(t="a b"), racks={"A": "a", "B": "b"})
    )
    assert (sticky.gap, rack.gap) == (2, 2)


@pytest.mark.parametrize("racks", ["a a", "b a"], ids=["more matches", "fewer matches"])
def test_racks_are_only_compared_at_the_best_balance(racks: str):
    uneven = call({"A": "t-0 t-1", "B": ""}, cluster=racked(t=racks), racks={"A": "a", "B": "b"})
    assert CLAUSES["kip881/rack/1"].check(uneven) is None


def test_valid_claims():
    """The newest sole claimant, if the partition exists and it subscribes; whatever else it is, it is not."""
    judged = call(
        {},
        {"A": ("t-0 t-1 u-0 t-9 gone-0 t-2", 5), "B": ("t-1 t-2", 6), "C": ("t-1", 6), "D": ("t-3 t-3", -1)},
        topics={"t": 4, "u": 1},
        subscribed={"A": "t gone", "B": "t", "C": "t", "D": "t u"},
    )
    assert judged.valid == {tps("t-0")[0]: "A", tps("t-2")[0]: "B", tps("t-3")[0]: "D"}
    assert judged.holders[tps("t-1")[0]] == ("B", "C")
    assert judged.revoked == {m: tuple(sorted(set(c.partitions))) for m, c in judged.claims.items()}


# --- replies --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [k for k in FailureKind if k is not FailureKind.SKIPPED])
def test_a_failure_is_a_breach_of_assign_4_only(kind: FailureKind):
    reply = Failure(kind, "ValueError: 3", "\n".join(f"line {i}" for i in range(20)))
    breach = broken("assign/4", reply)
    assert "ValueError: 3" in breach.summary
    shown = range(6) if kind in (FailureKind.TIMEOUT, FailureKind.ERRORED) else range(14, 20)
    assert breach.because == tuple(f"| line {i}" for i in shown), "a quotation, which is no line of ours"
    assert breach.actual == str(kind)
    assert CLAUSES["assign/5"].check(reply) is None


@pytest.mark.parametrize(
    ("kind", "first", "shown"),
    [
        (FailureKind.ERRORED, "Traceback (most recent call last):", range(14, 20)),  # the innermost call last
        (FailureKind.ERRORED, "java.lang.IllegalStateException: no", range(6)),
        (FailureKind.TIMEOUT, '"main" #1 prio=5', range(6)),
    ],
)
def test_what_is_shown_of_a_stack_is_where_it_happened(kind: FailureKind, first: str, shown: range):
    lines = [first, *(f"line {i}" for i in range(1, 20))]
    before = ["Full thread dump", ""] if kind is FailureKind.TIMEOUT else []
    breach = broken("assign/4", Failure(kind, "ValueError: 3", "\n".join([*before, *lines])))
    assert breach.because == tuple(f"| {lines[i]}" for i in shown)


def test_a_skip_or_an_answer_is_none():
    assert CLAUSES["assign/4"].check(Failure(FailureKind.SKIPPED, "no racks")) is None
    assert CLAUSES["assign/4"].check(Answer({})) is None
    assert CLAUSES["assign/5"].check(Answer({})) is None


def test_a_changed_input_is_a_breach():
    breach = broken("assign/5", Answer({}, mutated="topics of A became []"))
    assert "topics of A became []" in breach.summary


# --- relations ------------------------------------------------------------------------------------


class Asked:
    """Answers every question alike and remembers it."""

    def __init__(self, given: Mapping[str, str] | Failure) -> None:
        self.reply = given if isinstance(given, Failure) else Answer({m: tps(p) for m, p in given.items()})
        self.questions: list[AssignQuestion] = []

    def __call__(self, question: AssignQuestion) -> Answer | Failure:
        self.questions.append(question)
        return self.reply


def asking(clause_id: str) -> Check:
    """A clause with further questions, and who answers them."""
    return lambda call, ask: answered(CLAUSES[clause_id].check(call), ask)


class ByOrder(Asked):
    """Answers a group in this order as ``first`` was answered."""

    def __init__(self, first: AssignorCall, reply: Mapping[str, str] | Failure) -> None:
        super().__init__(reply)
        self.first = first

    def __call__(self, question: AssignQuestion) -> Answer | Failure:
        other = super().__call__(question)
        return Answer(self.first.assignment) if [*question.group] == [*self.first.group] else other


def test_another_answer_in_another_order():
    first = call({"A": "t-0 t-1", "B": "t-2"})
    who = ByOrder(first, {"A": "t-0", "B": "t-2 t-1"})
    breach = asking("assign/7")(first, who)
    assert breach.partitions == tps("t-1")
    assert breach.because == ("once A: {t-0}  B: {t-1, t-2}", "once A: {t-0, t-1}  B: {t-2}")
    assert [[*question.group] for question in who.questions] == [["B", "A"], ["A", "B"], ["B", "A"]]
    assert asking("assign/7")(first, ByOrder(first, {"B": "t-2", "A": "t-1 t-0"})) is None
    assert asking("assign/7")(first, ByOrder(first, Failure(FailureKind.CRASH, "gone"))) is None


@pytest.mark.parametrize("changing", [2, 3])
def test_who_answers_at_random_does_not_answer_by_order(changing: int):
    first = call({"A": "t-0", "B": ""})
    replies = {True: Answer(first.assignment), False: Answer({"A": (), "B": tps("t-0")})}
    seen = []

    def ask(question: AssignQuestion) -> Answer:
        seen.append(question)
        usual = [*question.group] == [*first.group]
        return replies[usual != (len(seen) >= changing)]

    assert asking("assign/7")(first, ask) is None
    assert len(seen) == changing


def test_another_answer_to_the_same_question():
    check = asking("assign/6")
    first = call({"A": "t-0 t-1", "B": "t-2"})
    breach = check(first, Asked({"A": "t-0", "B": "t-2 t-1"}))
    assert breach.partitions == tps("t-1")
    assert "1 partition with another owner (t-1)" in breach.summary
    assert breach.because == ("once A: {t-0}  B: {t-1, t-2}", "once A: {t-0, t-1}  B: {t-2}")
    assert check(first, Asked({"B": "t-2", "A": "t-1 t-0"})) is None, "the order in the answer means nothing"
    assert check(call({"A": "t-0", "B": ""}), Asked({"A": "t-0"})) is None, "absent is empty"
    assert check(first, Asked(Failure(FailureKind.CRASH, "gone"))) is None, "that is assign/4"
    assert check(call({"A": "t-0"}), Asked({"A": "t-0 t-0"})) is not None


def test_the_same_question_is_the_same_and_the_other_is_reversed():
    first = call({"A": "t-0", "B": "u-0"}, {"A": ("t-0 t-1", 5)}, topics={"t": 2, "u": 1})
    same, other = Asked({"A": "t-0", "B": "u-0"}), Asked({"A": "t-0", "B": "u-0"})
    asking("assign/6")(first, same)
    asking("assign/7")(first, other)
    assert same.questions == [(first.protocol, first.cluster, first.group, True, 0)]
    [(protocol, cluster, group, again, _)] = other.questions
    assert not again
    assert protocol is first.protocol
    assert list(cluster.topics) == ["u", "t"]
    assert list(group) == ["B", "A"]
    assert group["A"].topics == ("u", "t")
    assert group["A"].owned_partitions == tps("t-1 t-0")
    assert replace(group["A"], topics=("t", "u"), owned_partitions=tps("t-0 t-1")) == first.group["A"]


def test_superseded_claims_that_cost_something():
    check = asking("kip792/claim/2")
    claims = {"A": ("t-0 t-1", 5), "B": ("t-0 t-2", 6)}
    ask = Asked({"A": "t-1", "B": "t-0 t-2"})
    breach = check(call({"A": "t-1", "B": "t-2"}, claims), ask)
    assert "cost 1 valid ones and withhold 1 more" in breach.summary
    assert breach.partitions == tps("t-0")
    assert "superseded: A: t-0" in breach.because[0]
    [(_, _, group, *_)] = ask.questions
    assert group["A"].owned_partitions == tps("t-1")
    assert group["B"].owned_partitions == tps("t-0 t-2")


def test_superseded_claims_that_cost_nothing():
    check = asking("kip792/claim/2")
    claims = {"A": ("t-0 t-1", 5), "B": ("t-0 t-2", 6)}
    fair = call({"A": "t-1", "B": "t-0 t-2"}, claims)
    assert check(fair, Asked({"A": "t-1", "B": "t-0 t-2"})) is None
    assert check(fair, Asked({"A": "", "B": "t-0"})) is None, "better with them than without"
    assert check(fair, Asked(Failure(FailureKind.CRASH, "gone"))) is None
    tie = {"A": ("t-0", 5), "B": ("t-0", 5)}
    for nothing in (call({"A": ""}, tie), call({"A": ""}, {**tie, "C": ("t-0", 4)}), call({"A": "t-0"})):
        ask = Asked({})
        assert check(nothing, ask) is None
        assert not ask.questions, "a tie supersedes nobody"


# --- histories ------------------------------------------------------------------------------------


def history(*rounds: AssignorCall, settled: int | None = None, settling: int = 0) -> History:
    return History(rounds, settling, settled)


STILL = call({"A": "t-0 t-1", "B": "t-2"}, {"A": ("t-0 t-1", 5), "B": ("t-2", 5)})
MOVES = call({"A": "t-0 t-1", "B": ""}, {"A": ("t-0 t-1 t-2", 5)})


def test_bound_by_protocol_subscriptions_and_racks():
    def of(one: AssignorCall) -> int:
        return bound(history(one))

    assert of(call({"A": "t-0", "B": ""})) == 2
    assert of(call({"A": "t-0", "B": ""}, subscribed={"A": "t", "B": ""})) == 3
    assert of(call({"A": "t-0", "B": ""}, cluster=racked(t="a"), racks={"A": "a"})) == 3
    assert of(call({"A": "t-0", "B": ""}, cluster=racked(t="a"), racks={"A": "b"})) == 2
    hiding = call({"A": "t-0", "B": "t-1"}, {"B": ("t-1", 5)})
    assert bound(history(hiding, hiding)) == 3, "A does not say that it was given t-0"


def test_settles():
    check: Check = CLAUSES["kip429/converge/1"].check
    assert check(history(STILL, STILL, settled=0)) is None
    assert check(history(MOVES, STILL, STILL, settled=1)) is None
    assert check(history(MOVES, MOVES, STILL, STILL, settled=2, settling=1)) is None, (
        "rounds count from settling"
    )
    late = check(history(MOVES, MOVES, STILL, STILL, settled=2))
    assert "still revokes in undisturbed round 2: t-2" in late.summary
    assert late.actual == "settled in round 3"
    assert late.because[:3] == ("round 1: A revokes t-2", "round 2: A revokes t-2", "round 3: -")
    assert late.partitions == tps("t-2")
    never = check(history(*[MOVES] * 6))
    assert never.actual == "not settled in 6 rounds"


def test_a_settled_group_leaves_nothing_stranded():
    stranded = call({"A": "t-0", "B": "t-2"}, {"A": ("t-0", 5), "B": ("t-2", 5)})
    breach = broken("kip429/converge/1", history(stranded, stranded, settled=0))
    assert "settles without an owner of t-1" in breach.summary
    assert breach.partitions == tps("t-1")


def test_who_promises_less_settles_otherwise():
    settles: Check = CLAUSES["kip429/converge/1"].check
    full = call({"A": "t-0 t-1"}, limits=TWO_EACH)
    room = call({"A": "t-0"}, limits=TWO_EACH)
    assert settles(history(full, full, settled=0)) is None
    assert "without an owner of t-1, t-2" in settles(history(room, room, settled=0)).summary
    final: Check = CLAUSES["kip429/converge/2"].check
    other = replace(full, assignment=call({"A": "t-1 t-2"}).assignment)
    assert final(history(full, other, settled=0)), "waiting is no reason to change"
    assert bound(history(call({"A": "t-0", "B": ""}, limits=ONE_A_ROUND))) == 2 + 3
    assert bound(history(call({"A": "t-0", "B": ""}, limits={Promise.GRADUAL: 2}))) == 2 + 2


def test_settled_is_final():
    check: Check = CLAUSES["kip429/converge/2"].check
    other = replace(STILL, assignment=call({"A": "t-0", "B": "t-1 t-2"}).assignment)
    assert check(history(STILL, STILL, settled=0)) is None
    assert check(history(STILL, settled=0)) is None, "nothing follows"
    assert check(history(MOVES, STILL)) is None, "not settled is another clause's"
    breach = check(history(MOVES, STILL, other, settled=1))
    assert breach.partitions == tps("t-1")
    stranded = call({"A": "t-0"}, {"A": ("t-0", 5)})
    assert check(history(stranded, STILL, settled=0)) is None, "that is converge/1"


def test_what_members_without_claims_exchange_is_not_held_against_a_settled_group():
    check: Check = CLAUSES["kip429/converge/2"].check
    before = call({"A": "t-0", "B": "t-1", "C": "t-2"}, {"C": ("", 5)})
    swapped = {"A": "t-1", "B": "t-0", "C": "t-2"}
    claimed_since = call(swapped, {"C": ("t-2", 6)})
    assert check(history(before, claimed_since, settled=0)) is None, "A and B say nothing, C claims more"
    same_input = replace(claimed_since, claims=before.claims)
    assert check(history(before, same_input, settled=0)), "no reason for another answer"
    seen = {"A": ("t-0", 6), "B": ("t-1", 6), "C": ("t-2", 6)}
    assert check(history(before, call(swapped, seen), settled=0)), "nobody hides anything"


def test_settles_in_two():
    check: Check = CLAUSES["kip429/converge/3"].check
    assert check(history(MOVES, STILL, STILL, settled=1)) is None
    assert check(history(*[MOVES] * 6)) is None, "never settling is converge/1"
    unequal = [
        replace(c, group={**c.group, "C": Subscription(topics=())}) for c in (MOVES, MOVES, STILL, STILL)
    ]
    late = history(*unequal, settled=2)
    assert CLAUSES["kip429/converge/1"].check(late) is None
    breach = check(late)
    assert breach.summary == "the group needs 3 undisturbed rounds to settle"
    assert breach.actual == "settled in round 3"
    assert breach.partitions == tps("t-2")


# --- the table ------------------------------------------------------------------------------------


def test_ids_are_unique_and_well_formed():
    assert len(CLAUSES) == len(TABLE)
    for clause in TABLE:
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*\d*(/[a-z]+)?/\d+", clause.id), clause.id


def test_rows_are_complete():
    for clause in TABLE:
        assert isinstance(clause.level, Level)
        assert isinstance(clause.scope, Scope)
        assert clause.link.startswith("https://"), clause.id
        assert clause.rule, clause.id
        assert clause.sentence[0].islower(), clause.id
        assert not clause.sentence.endswith("."), clause.id
        assert clause.protocols, clause.id
        assert set(clause.promises) <= set(Promise), clause.id
        if clause.promises:
            instead = clause.promises <= set(LESSER)  # of a clause that is asked of everybody else
            assert clause.level is Level.QUALITY or instead, f"{clause.id}: what is promised is a quality"


def test_the_link_goes_with_the_rule():
    for clause in TABLE:
        for kip in re.findall(r"KIP-\d+", clause.rule):
            assert kip in clause.link, clause.id
        if family := re.fullmatch(r"kip(\d+)", clause.id.split("/")[0]):
            assert f"KIP-{family[1]}" in clause.rule, clause.id


def test_every_clause_function_is_in_the_table_once():
    functions = [clause.check for clause in TABLE if clause not in TASK_CLAUSES]
    assert len(set(functions)) == len(functions)
    returns_breach = {
        f
        for f in vars(clauses).values()
        if isinstance(f, FunctionType)
        and not f.__name__.startswith("_")
        and f.__annotations__.get("return") in ("Breach | None", "Asking")
    }
    assert returns_breach == set(functions)


def test_applies_by_protocol_and_promise():
    hand_over, sticky = CLAUSES["kip429/leader/4"], CLAUSES["kip54/sticky/1"]
    assert hand_over.applies(COOPERATIVE, ())
    assert not hand_over.applies(EAGER, tuple(Promise))
    assert sticky.applies(EAGER, (Promise.STICKY, Promise.BALANCED))
    assert not sticky.applies(EAGER, (Promise.BALANCED,))
    assert not CLAUSES["kip881/rack/1"].applies(COOPERATIVE, (Promise.RACK_AWARE,)), "needs both promises"
    assert not sticky.applies(EAGER, (Promise.STICKY, Promise.WEIGHTED)), "claims are counted, not weighed"
    assert not CLAUSES["kip429/converge/3"].applies(COOPERATIVE, (Promise.GRADUAL,))


@pytest.mark.parametrize(
    ("promises", "limits", "wrong"),
    [
        ({Promise.PARTIAL}, {}, "partial is promised with a limit"),
        (set(), {"gradual": 2}, "gradual is promised with a limit"),
        ({Promise.STICKY}, {"sticky": 2}, "sticky is promised with a limit"),
        ({Promise.PARTIAL}, {"partial": 0}, "a number from 1 on, not 0"),
        ({Promise.PARTIAL}, {"partial": True}, "a number from 1 on, not True"),
        (set(), {"slow": 1}, "'slow' is not a valid Promise"),
    ],
)
def test_limits_are_stated_with_their_promises(promises: set[Promise], limits: dict[str, object], wrong: str):
    both = {Promise.PARTIAL: 3, Promise.GRADUAL: 1}
    assert stated(set(both), {"partial": 3, "gradual": 1}) == both
    with pytest.raises(ValueError, match=wrong):
        stated(promises, limits)


def ids(found: Iterable[Clause]) -> list[str]:
    return [clause.id for clause in found]


def test_select():
    everything = ids(TABLE)
    assert ids(select(())) == everything
    assert ids(select(("kip429/leader/4",))) == ["kip429/leader/4"]
    assert ids(select(("kip429/leader",))) == [i for i in everything if i.startswith("kip429/leader/")]
    assert ids(select(("kip54", "assign/1"))) == ["assign/1", "kip54/balance/1", "kip54/sticky/1"], (
        "table order"
    )
    assert ids(select(("/kip54/",))) == ["kip54/balance/1", "kip54/sticky/1"]


@pytest.mark.parametrize(
    ("pattern", "hint"),
    [
        ("kip4", "did you mean kip429"),
        ("kip429/lead", "did you mean kip429/leader"),
        ("assign/1/2", "did you mean assign/1"),
        ("", "`rebalance list clauses` has them"),
        ("/", "`rebalance list clauses` has them"),
        ("kip429/leader/44", "did you mean kip429/leader/4"),
    ],
)
def test_select_names_what_selects_nothing(pattern: str, hint: str):
    with pytest.raises(ValueError, match=re.escape(f"no clause is called {pattern!r}: {hint}")):
        select(("assign/1", pattern))


def test_violations_of_two_clauses_are_two_types():
    scenario = Scenario(
        protocol=EAGER, topics=uniform({"t": 1}), members=(ScenarioMember(id="A", topics=("t",)),)
    )
    one, other = CLAUSES["assign/1"], CLAUSES["kip429/leader/4"]
    breach = Breach(summary="t-0 is assigned to A twice", because=("assign() returned A: {t-0, t-0}",))
    error = violation(one, breach, scenario)
    assert isinstance(error, Violation)
    assert isinstance(error, AssertionError)
    assert type(error) is type(violation(one, breach, scenario))
    assert type(error) is not type(violation(other, breach, scenario))
    assert type(error).__name__ == "Assign1Violation"
    assert (error.clause, error.breach, error.scenario) == (one, breach, scenario)
    assert str(error).splitlines() == [
        "assign/1 t-0 is assigned to A twice",
        f"  rule     {one.sentence}",
        "  because  assign() returned A: {t-0, t-0}",
    ]


def test_a_partition_of_a_topic_that_is_not_subscribed_is_no_question_of_safety_in_a_share_group():
    """The coordinator does not send it since 4.2.0 (KAFKA-19431), and several members may have it anyway."""
    levels = {str(protocol): CLAUSES["assign/2"].under(protocol).level for protocol in RebalanceProtocol}
    assert levels.pop("share") is Level.LIVENESS
    assert set(levels.values()) == {Level.SAFETY}
