"""Design switches of assignors: each reproduces one mistake that was shipped, by replacing a stage.

Applying one to a reference assignor is a mutation; the suite must find it. ``entry`` is the id in the
catalogue of bugs. ``NOT_EXPRESSED`` lists the entries that no stage of an assignor can show, and why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from rebalance_verifier.base.names import unknown
from rebalance_verifier.model.assignor import Assignor
from rebalance_verifier.model.assignors import reference, shipped
from rebalance_verifier.model.assignors.design import Design, withhold_nothing

STICKY = ("cooperative-sticky", "sticky")


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """One decision that was made wrongly somewhere: which, where, and the stage it replaces.

    ``fits`` names the reference assignors it can be applied to; the first is the one to judge it by.
    """

    id: str
    entry: str
    shipped: str
    fits: tuple[str, ...]
    sentence: str
    apply: Callable[[Design], Design]

    @property
    def assignor(self) -> str:
        """The reference assignor that shows the mistake best."""
        return self.fits[0]


_TABLE = (
    # -- which claims count --
    Switch(
        id="last_claim_wins", entry="J2", shipped="Java 2.4.0 to 2.5.0", fits=STICKY,
        sentence="of several claims on a partition, the one of the member seen last counts, and who claims "
        "it does not wait for it",
        apply=lambda d: replace(d, resolve=shipped.last_claim, withhold=shipped.by_claims(d.withhold)),
    ),
    Switch(
        id="trust_all_claims", entry="J2", shipped="Java 2.5.1 to 2.8.0", fits=("cooperative-sticky",),
        sentence="every claim is trusted, and two claimants of a partition both receive it",
        apply=lambda d: replace(d, allocate=shipped.trust_everybody, withhold=shipped.withhold_revoked),
    ),
    Switch(
        id="max_generation_only", entry="J4", shipped="Java 2.8.1 to 3.4.0", fits=STICKY,
        sentence="only claims of the newest generation in the group count, so a late member loses all at "
        "once",
        apply=lambda d: replace(d, resolve=shipped.claims_of_newest_generation),
    ),
    Switch(
        id="validate_raw_claims", entry="J3", shipped="Java 2.8.1, 3.0.0", fits=("cooperative-sticky",),
        sentence="the leader checks the result against stale claims that the assignor rightly ignored, "
        "and throws",
        apply=lambda d: replace(
            d, resolve=shipped.claims_of_newest_generation, validate=shipped.validate_raw
        ),
    ),
    Switch(
        id="no_generation", entry="J8", shipped="Java before 2.3.0", fits=("sticky",),
        sentence="user data carries no generation, so the assignment of a member that was away competes",
        apply=lambda d: replace(
            d,
            read=shipped.without_generation,
            resolve=shipped.last_claim,
            encode=shipped.encode_without_generation,
        ),
    ),
    Switch(
        id="cache_across_calls", entry="J29", shipped="Java before 0.11.0.1",
        fits=("sticky", "cooperative-sticky"),
        sentence="the assignor remembers the claims of earlier calls and adds them to those of this one",
        apply=lambda d: replace(d, resolve=shipped.remembering(d.resolve)),
    ),
    Switch(
        id="duplicate_claims_counted", entry="J30", shipped="Java 2.5.1 to 2.8.0", fits=STICKY,
        sentence="a partition that appears twice in one claim fills two places, and another one is dropped",
        apply=lambda d: replace(d, allocate=shipped.count_repeats),
    ),
    Switch(
        id="duplicate_claims_cancel", entry="J30", shipped="Java since 2.8.1", fits=STICKY,
        sentence="a partition that appears twice in one claim counts as claimed by two members and is "
        "revoked",
        apply=lambda d: replace(d, resolve=shipped.repeats_are_rivals),
    ),
    Switch(
        id="claims_always_empty", entry="F4", shipped="franz-go before 1.10.0", fits=STICKY,
        sentence="the placement sees no claims, so nothing is sticky",
        apply=lambda d: replace(d, allocate=shipped.without_claims(d.allocate)),
    ),
    Switch(
        id="user_data_once", entry="K1", shipped="kafka-python, issue 2305",
        fits=("sticky", "cooperative-sticky"),
        sentence="user data can be encoded only once, the second rebalance fails",
        apply=lambda d: replace(d, encode=shipped.only_once(d.encode)),
    ),
    # -- withholding --
    Switch(
        id="no_withhold", entry="none", shipped="never; the step of KIP-429 left out",
        fits=("cooperative-sticky",),
        sentence="a partition goes to its new owner in the round that revokes it from the old one",
        apply=lambda d: replace(d, withhold=withhold_nothing),
    ),
    # -- placing with equal subscriptions --
    Switch(
        id="steal_once", entry="U2", shipped="pseudo-code of the constrained sticky KIP", fits=STICKY,
        sentence="a member that is short steals one partition and stays short",
        apply=lambda d: replace(d, allocate=shipped.steal_once),
    ),
    Switch(
        id="minquota_still_unfilled", entry="J2", shipped="Java trunk before 3.0.0", fits=STICKY,
        sentence="members at the smaller quota still get one more when all larger places are taken",
        apply=lambda d: replace(d, allocate=shipped.quota_still_open),
    ),
    # -- placing in general --
    Switch(
        id="third_round_general", entry="J23", shipped="Java since 2.4.0", fits=STICKY,
        sentence="unequal subscriptions are balanced pair by pair, and may need a third round to settle",
        apply=lambda d: replace(d, allocate=shipped.pairwise),
    ),
    Switch(
        id="quadratic_general", entry="J24", shipped="Java 2.4.0 to 2.5.0", fits=STICKY,
        sentence="the right result, after minutes or hours in a large group",
        apply=lambda d: replace(d, allocate=shipped.recounting),
    ),
    Switch(
        id="is_balanced_off_by_one", entry="J24", shipped="Java to 3.5.1, kafka-python", fits=STICKY,
        sentence="a difference of one counts as unbalanced: the right result, after one useless sweep per "
        "partition",
        apply=lambda d: replace(d, allocate=shipped.sweeping),
    ),
    Switch(
        id="steal_chain_other_partition", entry="F5", shipped="franz-go before 0.7.0", fits=STICKY,
        sentence="a partition that changes hands goes through a third member, which hands on another one",
        apply=lambda d: replace(d, allocate=shipped.by_detour),
    ),
    Switch(
        id="single_known_topic_shortcut", entry="F5", shipped="franz-go before 0.6.10", fits=STICKY,
        sentence="if only one topic has metadata, all members are taken to subscribe to it",
        apply=lambda d: replace(d, allocate=shipped.alike_if_one_topic(d.allocate)),
    ),
    # -- topics and members --
    Switch(
        id="npe_on_missing_topic", entry="J29", shipped="Java before 2.2", fits=("sticky", "roundrobin"),
        sentence="a subscribed topic that was deleted ends the assignment with an exception",
        apply=lambda d: replace(d, allocate=shipped.without_null_check(d.allocate)),
    ),
    Switch(
        id="rack_breaks_copartition", entry="J28", shipped="Java 3.5 in development", fits=("range",),
        sentence="racks are matched topic by topic, so equal indexes of equal topics part",
        apply=lambda d: replace(d, allocate=shipped.topic_by_topic),
    ),
    Switch(
        id="roundrobin_modulo_eligible", entry="L6", shipped="librdkafka before 1.6.0", fits=("roundrobin",),
        sentence="the next member is counted modulo the subscribers of the topic, not modulo all members",
        apply=lambda d: replace(d, allocate=shipped.modulo_eligible),
    ),
    Switch(
        id="topics_beyond_members_ignored", entry="L6", shipped="librdkafka before 1.5.0",
        fits=("roundrobin", "range"),
        sentence="when there are more topics than members, the last topics are not assigned",
        apply=lambda d: replace(d, allocate=shipped.as_many_topics_as_members(d.allocate)),
    ),
    Switch(
        id="members_unsorted", entry="S1", shipped="sarama before 1.35.0", fits=("range", "roundrobin"),
        sentence="members are taken in the order of the leader's map, so two leaders disagree",
        apply=lambda d: replace(d, allocate=shipped.in_order_of_arrival(d.allocate)),
    ),
    Switch(
        id="assign_leader_topics_only", entry="Q3", shipped="kafkajs, issue 1679", fits=("roundrobin",),
        sentence="only the leader's topics are assigned, and to members that do not subscribe to them",
        apply=lambda d: replace(d, allocate=shipped.topics_of_the_leader(d.allocate)),
    ),
)  # fmt: skip

SWITCHES: dict[str, Switch] = {switch.id: switch for switch in _TABLE}
"""All switches by id, grouped by the stage they replace."""

NOT_EXPRESSED: dict[str, str] = {
    "J4, label=own_gen|join_gen": "which generation a member writes is up to the member, not the assignor",
    "J25": "loads and claims kept are those of the reference (40,000 random groups); what differs is which "
    "of a member's partitions moves, and nothing is promised about that",
    "S1, duplicate member ids": "a group is a mapping: one member id has one subscription",
    "T3": "a task assignor; `check streams:RELEASE` judges it",
    "T4": "a task assignor of the broker; see docs/results/task-assignors-of-a-broker.md",
    "Q6": "its algorithm is not Kafka's, of which the stages are: `check client:@platformatic/kafka:"
    "cooperative-sticky` finds it",
    "Q1": "the bytes cannot be parsed, no assignor is called: see rebalance_verifier.model.wire",
}
"""Entries of level A that no stage of an assignor can show, with the reason."""


def switched(name: str, switches: Iterable[str] = ()) -> Assignor:
    """Return the reference assignor ``name`` with the design ``switches`` applied in order.

    Raises ValueError for an unknown assignor, and for a switch that is unknown or does not fit it; the
    message lists those that do.
    """
    assignor = reference(name)
    design = assignor.design
    fitting = [switch.id for switch in SWITCHES.values() if name in switch.fits]
    for id_ in switches:
        if id_ not in fitting:
            if id_ in SWITCHES:
                raise ValueError(f"switch {id_!r} does not fit {name}; these do: {', '.join(fitting)}")
            raise ValueError(unknown(f"switch of {name}", id_, fitting, "rebalance list targets"))
        design = SWITCHES[id_].apply(design)
    return replace(assignor, design=design)
