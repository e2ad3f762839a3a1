"""Design switches of assignors: each reproduces one mistake that was shipped, by replacing a stage.

Applying one to a reference assignor is a mutation; the suite must find it. ``entry`` is the id in the
catalogue of bugs. ``NOT_EXPRESSED`` lists the entries that no stage of an assignor can show, and why.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from rebalance.model.assignors import shipped
from rebalance.model.assignors.design import Design, withhold_nothing

STICKY = ("cooperative-sticky", "sticky")
ALL = ("cooperative-sticky", "sticky", "range", "roundrobin")


@dataclass(frozen=True, slots=True)
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
        "last_claim_wins", "J2", "Java 2.4.0 to 2.5.0", STICKY,
        "of several claims on a partition, the one of the member seen last counts",
        lambda d: replace(d, resolve=shipped.last_claim),
    ),
    Switch(
        "trust_all_claims", "J2", "Java 2.5.1 to 2.8.0", ("cooperative-sticky",),
        "every claim is trusted, and two claimants of a partition both receive it",
        lambda d: replace(d, place=shipped.trust_everybody, withhold=shipped.withhold_revoked),
    ),
    Switch(
        "max_generation_only", "J4", "Java 2.8.1 to 3.4.0", STICKY,
        "only claims of the newest generation in the group count, so a late member loses all at once",
        lambda d: replace(d, resolve=shipped.claims_of_newest_generation),
    ),
    Switch(
        "validate_raw_claims", "J3", "Java 2.8.1, 3.0.0", ("cooperative-sticky",),
        "the leader checks the result against stale claims that the assignor rightly ignored, and throws",
        lambda d: replace(
            d, resolve=shipped.claims_of_newest_generation, validate=shipped.validate_raw
        ),
    ),
    Switch(
        "no_generation", "J8", "Java before 2.3.0", ("sticky",),
        "user data carries no generation, so the assignment of a member that was away competes",
        lambda d: replace(
            d,
            read=shipped.without_generation,
            resolve=shipped.last_claim,
            encode=shipped.encode_without_generation,
        ),
    ),
    Switch(
        "cache_across_calls", "J29", "Java before 0.11.0.1", ("sticky", "cooperative-sticky"),
        "the assignor remembers the claims of earlier calls and adds them to those of this one",
        lambda d: replace(d, resolve=shipped.remembering(d.resolve)),
    ),
    Switch(
        "duplicate_claims_counted", "J30", "Java 2.5.1 to 2.8.0", STICKY,
        "a partition that appears twice in one claim fills two places, and another one is dropped",
        lambda d: replace(d, place=shipped.count_repeats),
    ),
    Switch(
        "duplicate_claims_cancel", "J30", "Java since 2.8.1", STICKY,
        "a partition that appears twice in one claim counts as claimed by two members and is revoked",
        lambda d: replace(d, resolve=shipped.repeats_are_rivals),
    ),
    Switch(
        "claims_always_empty", "F4", "franz-go before 1.10.0", STICKY,
        "the placement sees no claims, so nothing is sticky",
        lambda d: replace(d, place=shipped.without_claims(d.place)),
    ),
    Switch(
        "user_data_once", "K1", "kafka-python, issue 2305", ("sticky", "cooperative-sticky"),
        "user data can be encoded only once, the second rebalance fails",
        lambda d: replace(d, encode=shipped.only_once(d.encode)),
    ),
    # -- withholding --
    Switch(
        "no_withhold", "none", "never; the step of KIP-429 left out", ("cooperative-sticky",),
        "a partition goes to its new owner in the round that revokes it from the old one",
        lambda d: replace(d, withhold=withhold_nothing),
    ),
    # -- placing with equal subscriptions --
    Switch(
        "steal_once", "U2", "pseudo-code of the constrained sticky KIP", STICKY,
        "a member that is short steals one partition and stays short",
        lambda d: replace(d, place=shipped.steal_once),
    ),
    Switch(
        "minquota_still_unfilled", "J2", "Java trunk before 3.0.0", STICKY,
        "members at the smaller quota still get one more when all larger places are taken",
        lambda d: replace(d, place=shipped.quota_still_open),
    ),
    # -- placing in general --
    Switch(
        "third_round_general", "J23", "Java since 2.4.0", STICKY,
        "unequal subscriptions are balanced pair by pair, and may need a third round to settle",
        lambda d: replace(d, place=shipped.pairwise),
    ),
    Switch(
        "quadratic_general", "J24", "Java 2.4.0 to 2.5.0", STICKY,
        "the right result, after minutes or hours in a large group",
        lambda d: replace(d, place=shipped.recounting),
    ),
    Switch(
        "is_balanced_off_by_one", "J24", "Java to 3.5.1, kafka-python", STICKY,
        "a difference of one counts as unbalanced: the right result, after one useless sweep per partition",
        lambda d: replace(d, place=shipped.sweeping),
    ),
    Switch(
        "steal_chain_other_partition", "F5", "franz-go before 0.7.0", STICKY,
        "a partition that changes hands goes through a third member, which hands on another one",
        lambda d: replace(d, place=shipped.by_detour),
    ),
    Switch(
        "single_known_topic_shortcut", "F5", "franz-go before 0.6.10", STICKY,
        "if only one topic has metadata, all members are taken to subscribe to it",
        lambda d: replace(d, place=shipped.alike_if_one_topic(d.place)),
    ),
    # -- topics and members --
    Switch(
        "npe_on_missing_topic", "J29", "Java before 2.2", ("sticky", "roundrobin"),
        "a subscribed topic that was deleted ends the assignment with an exception",
        lambda d: replace(d, place=shipped.without_null_check(d.place)),
    ),
    Switch(
        "rack_breaks_copartition", "J28", "Java 3.5 in development", ("range",),
        "racks are matched topic by topic, so equal indexes of equal topics part",
        lambda d: replace(d, place=shipped.topic_by_topic),
    ),
    Switch(
        "roundrobin_modulo_eligible", "L6", "librdkafka before 1.6.0", ("roundrobin",),
        "the next member is counted modulo the subscribers of the topic, not modulo all members",
        lambda d: replace(d, place=shipped.modulo_eligible),
    ),
    Switch(
        "topics_beyond_members_ignored", "L6", "librdkafka before 1.5.0", ("roundrobin", "range"),
        "when there are more topics than members, the last topics are not assigned",
        lambda d: replace(d, place=shipped.as_many_topics_as_members(d.place)),
    ),
    Switch(
        "members_unsorted", "S1", "sarama before 1.35.0", ("range", "roundrobin"),
        "members are taken in the order of the leader's map, so two leaders disagree",
        lambda d: replace(d, place=shipped.in_order_of_arrival(d.place)),
    ),
    Switch(
        "assign_leader_topics_only", "Q3", "kafkajs, issue 1679", ("roundrobin",),
        "only the leader's topics are assigned, and to members that do not subscribe to them",
        lambda d: replace(d, place=shipped.topics_of_the_leader(d.place)),
    ),
)  # fmt: skip

SWITCHES: dict[str, Switch] = {switch.id: switch for switch in _TABLE}
"""All switches by id, grouped by the stage they replace."""

NOT_EXPRESSED: dict[str, str] = {
    "J4, label=own_gen|join_gen": "which generation a member writes is up to the member, not the assignor",
    "J25": "loads and claims kept are those of the reference (40,000 random groups); what differs is which "
    "of a member's partitions moves, and nothing is promised about that",
    "S1, duplicate member ids": "a group is a mapping: one member id has one subscription",
    "Q1": "the bytes cannot be parsed, no assignor is called: see rebalance.model.wire",
}
"""Entries of level A that no stage of an assignor can show, with the reason."""
