"""The catalogue of rebalance bugs that were shipped: what happens, where, what breaks, which switches.

This is the one place that says in which releases a mistake lives and which entry a switch stands for.
Switches are of two kinds: those of an assignor (``rebalance.model.switches``, stages that are replaced)
and those of the protocol (``rebalance.model.decisions``). An id that is in both stands for the same
mistake, asked at two levels. Profiles (``rebalance.model.profiles``) are computed from the ranges here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from rebalance.model.releases import Releases, parse

Level = Literal["A", "P", "A+P"]
"""A: one call of an assignor shows it. P: it takes members, coordinator and network. A+P: both."""

PROPERTIES: dict[str, str] = {
    "DO": "a partition has two owners, or changes hands before its old owner gave it up",
    "NC": "the group does not settle, or somebody is stuck",
    "ST": "a partition is owned or read by nobody",
    "IM": "work is distributed worse than promised",
    "LS": "members lose partitions that they could have kept",
    "TR": "a claim that is no longer true is believed",
    "CB": "the listener is not told what happened, or in the wrong order",
    "RT": "the result comes too late",
    "CR": "an input that is legal ends in an exception",
    "AV": "the rebalance is delayed, or a healthy member is shut out",
}
"""What an entry can break, by code."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One mistake. ``affected`` follows ``rebalance.model.releases``.

    ``trackers`` are KAFKA-nnnnn, ``project#number``, or ``project@commit`` where there is no ticket.
    ``breaks`` are keys of ``PROPERTIES``; none where records are only read again. ``switches`` are ids of
    either kind; ``narrower`` gives the releases of those that were not in all of ``affected``.
    """

    id: str
    title: str
    level: Level
    project: str
    affected: str
    trackers: tuple[str, ...]
    breaks: tuple[str, ...]
    switches: tuple[str, ...]
    story: str
    narrower: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def releases(self) -> Releases:
        """``affected``, to be asked."""
        return parse(self.affected)

    def shipped(self, switch: str) -> str:
        """The releases in which this entry shows as ``switch``."""
        return self.narrower.get(switch, self.affected)


JAVA = "Kafka client"
BROKER = "Kafka broker"

_TABLE = (
    # -- found while reading the code, without a public issue --
    Entry(
        "U1", "Positions go before the callback, and membership lost while joining goes unnoticed", "P",
        "kafka-python", "kafka-python", (), ("CB", "TR", "DO"),
        ("assign_before_revoke_cb", "skip_empty_assigned_cb", "prepare_once_per_rebalance"),
        "The new assignment is installed before the listener hears what was revoked, so it cannot commit "
        "any more; an empty set of new partitions is not announced. What precedes a join runs once per "
        "rebalance: a member that is expelled in between keeps its partitions and claims them again.",
    ),
    Entry(
        "U2", "Whoever is short steals only once", "A", "KIP draft", "never", (), ("IM",), ("steal_once",),
        "The rejected draft of the constrained sticky algorithm takes one partition for each member below "
        "its quota. Nine partitions held 0, 3, 3, 3 end as 1, 2, 3, 3.",
    ),
    Entry(
        "U3", "Failover forgets the protocols that were not selected", "P",
        BROKER, "broker", (), ("AV",), ("persist_selected_protocol_only",),
        "The group's record keeps metadata of the selected protocol alone. When the coordinator moves "
        "between the two bounces of an upgrade, a member that offers only cooperative-sticky is turned away "
        "for good, although everybody in the group could speak it.",
    ),
    Entry(
        "U4", "SyncGroup to a coordinator that loads kills the client", "P",
        BROKER, "broker since 4.0.0", (), ("AV",), ("sync_load_error_raw",),
        "The rewritten coordinator answers COORDINATOR_LOAD_IN_PROGRESS as it is. No client expects that "
        "from SyncGroup; the old coordinator answered REBALANCE_IN_PROGRESS instead.",
    ),
    Entry(
        "U5", "A stopped static member is expelled long before its session ends", "P",
        BROKER, "broker since 2.8.1", (), ("LS",), ("pending_sync_evicts_static",),
        "A static member keeps its seat through a join phase it misses, but is then expected to sync. It "
        "does not, is removed after the rebalance timeout, and its partitions move: what static membership "
        "is there to prevent.",
    ),
    Entry(
        "U6", "A silent static member is represented by claims one assignment too old", "P",
        BROKER, "broker", (), ("DO", "TR"), ("silent_static_claims_stale",),
        "For a static member that misses the join phase the leader sees the subscription of its last "
        "JoinGroup. What it was assigned since looks free and goes to somebody else at once, while it still "
        "reads it.",
    ),
    Entry(
        "U7", "A late answer to a commit resets the membership that came after it", "P",
        JAVA, "Java", (), ("LS", "CB"), ("late_commit_resets",),
        "An error for a commit of the previous generation is ignored while the member prepares to join. Once "
        "JoinGroup is answered it counts again: the new membership is reset and all partitions are lost.",
    ),
    Entry(
        "U8", "A failover brings back a static id that was gone", "P",
        BROKER, "broker", (), ("AV",), ("static_removal_not_persisted",),
        "The removal of a static member is not written to the log before the next assignment is. When the "
        "coordinator moves in between, the old id is back, and the restarted process is fenced for good.",
    ),
    Entry(
        "U9", "A static member returns with a revocation pending", "P",
        BROKER, "broker", (), ("ST",), ("static_replace_drops_revocation",),
        "A partition is withheld because a static member claims it, and that member restarts before it could "
        "revoke. The new process is let in without a rebalance and has nothing to revoke, so the round that "
        "would hand the partition over never comes.",
    ),
    # -- Java client: claims and generations --
    Entry(
        "J1", "Claims survive the loss of the membership", "P",
        JAVA, "Java 2.4.0 to 2.7.1, 2.8.0", ("KAFKA-12983",), ("TR", "DO", "CB"),
        ("prepare_not_repeated_after_reset",),
        "A member that learns from JoinGroup or SyncGroup that it was expelled has already run its "
        "preparation and does not run it again. Nothing is lost in its own eyes: under a new id it claims "
        "what others were given meanwhile.",
    ),
    Entry(
        "J2", "Two claimants of a partition both receive it", "A",
        JAVA, "Java 2.4.0 to 2.8.0", ("KAFKA-12984",), ("DO", "CR"),
        ("last_claim_wins", "trust_all_claims", "minquota_still_unfilled"),
        "The constrained algorithm believes every claim; the general one before it believed the last it "
        "read. Two owners, or an exception that counts to the wrong number.",
        {
            "last_claim_wins": "Java 2.4.0 to 2.5.0",
            "trust_all_claims": "Java 2.5.1 to 2.8.0",
            "minquota_still_unfilled": "Java 3.0 in development",
        },
    ),
    Entry(
        "J3", "The leader rejects a good assignment because of a stale claim", "A+P",
        JAVA, "Java 2.4.0 to 2.8.1, 3.0.0", ("KAFKA-13406",), ("NC",), ("validate_raw_claims",),
        "The assignor leaves a stale claim aside and gives the partition away; the check behind it takes the "
        "claim at face value and throws. The claimant goes on claiming, so every rebalance fails. Before "
        "2.8.1 it took two claimants.",
    ),
    Entry(
        "J4", "A member that is late by one generation loses every claim", "A+P",
        JAVA, "Java 2.8.1 to 3.4.0", ("KAFKA-14639",), ("DO",), ("max_generation_only",),
        "Only claims of the newest generation in the group count. What a late member still holds looks free "
        "and is handed over in the very round that takes it away.",
    ),
    Entry(
        "J5", "ILLEGAL_GENERATION leaves a ghost behind", "P",
        JAVA, "Java before 3.2.0", ("KAFKA-13419",), ("AV",), ("clear_member_id_on_illegal_generation",),
        "The client also forgets its member id and joins as somebody new. The old id stays in the group, and "
        "the rebalance waits for it until a timeout.",
    ),
    Entry(
        "J6", "Old partitions are claimed under a new generation", "P",
        JAVA, "Java before 3.3.0, since 3.3.2", ("KAFKA-13891",), ("TR",), ("keep_owned_on_sync_rip",),
        "A SyncGroup refused for another rebalance leaves the member with the generation it has just joined "
        "and the partitions of an earlier one. Its next claim carries the wrong age; leaders that settle "
        "each partition by itself can live with it.",
    ),
    Entry(
        "J7", "Whoever is slow to sync loses everything", "P",
        JAVA, "Java 3.3.0 to 3.3.1", ("KAFKA-14016",), ("LS", "CB"), ("reset_on_sync_rip",),
        "The remedy for J6 resets the membership. A fast member that has to revoke rejoins before the slow "
        "one has synced, and the slow one is told that all its partitions are lost.",
    ),
    Entry(
        "J8", "Sticky claims have no age", "A",
        JAVA, "Java before 2.3.0", ("KAFKA-7026",), ("TR", "LS"), ("no_generation",),
        "User data names partitions without a generation, so what a returning member once had competes with "
        "what others have now.",
    ),
    Entry(
        "J9", "A lost connection costs the membership", "P",
        JAVA, "Java to 2.7.1, 2.8.0", ("KAFKA-13214",), ("AV", "LS"), ("reset_on_retriable",),
        "Any error of JoinGroup or SyncGroup that a retry would cure clears id and generation. The old id "
        "holds up the next rebalance, and a cooperative member loses all it owns.",
    ),
    Entry(
        "J10", "The answer to an old request resets the new membership", "P",
        JAVA, "Java before 2.6.0", ("KAFKA-9823",), ("NC", "LS", "TR"), ("no_sent_generation_check",),
        "A heartbeat of generation 5 is refused after the member has joined generation 6, and the refusal is "
        "applied to what it is now.",
    ),
    Entry(
        "J11", "The heartbeat thread interferes between the answer and the callback", "P",
        JAVA, "Java before 2.4.0", ("KAFKA-8104", "KAFKA-9140"), ("CB", "NC"),
        ("no_snapshot_before_callback", "joinfuture_not_cleared"),
        "Reset in that moment, a member completes its join with generation -1. The guard against it left the "
        "old join pending: the member waits for it for ever and sends no new one.",
    ),
    Entry(
        "J12", "A reason to rejoin is forgotten when it goes away", "P",
        JAVA, "Java before 2.5.0", ("KAFKA-9815",), ("ST",), ("rejoin_flag_not_latched",),
        "Changed metadata starts a rejoin that is noted nowhere. Everything is revoked, JoinGroup fails, "
        "the metadata changes back, and nothing asks for a rejoin any more.",
    ),
    Entry(
        "J13", "Equal claims are written in different order", "P",
        JAVA, "Java before 2.8.1", ("KAFKA-12898", "KAFKA-12896"), ("NC",), ("unsorted_metadata",),
        "Owned partitions go out in the order of a hash set. The coordinator compares bytes, finds a change "
        "where there is none, and rebalances.",
    ),
    Entry(
        "J14", "Unsubscribing skips the listener", "P",
        JAVA, "Java 2.4 in development", ("KAFKA-8972",), ("CB",), ("clear_before_leave_prepare",),
        "The assignment is cleared before the step that would announce its end, which then finds nothing.",
    ),
    Entry(
        "J15", "An exception of the listener leaves the join half done; its generation is the old one", "P",
        JAVA, "Java before 2.6.0", ("KAFKA-9620", "KAFKA-9741"), ("CB",),
        ("abort_on_callback_exception", "metadata_after_revoke"),
        "What one callback throws skips the others and the rest of the state. And while partitions are "
        "revoked, group metadata still shows the generation before, so a transactional commit is refused.",
        {"metadata_after_revoke": "Java before 2.5.0"},
    ),
    Entry(
        "J16", "The commit before the join starts again at every poll", "P",
        JAVA, "Java 3.2.0", ("KAFKA-14024",), ("AV", "ST"), ("prepare_commit_never_done",),
        "A short poll ends before the asynchronous commit does, and the next one sends another. JoinGroup is "
        "never sent, and the member is expelled after the rebalance timeout.",
    ),
    Entry(
        "J17", "Records are read while their partition is given up", "P",
        JAVA, "Java 3.2.1 to 3.2.2", ("KAFKA-14196",), (), ("fetch_while_pending_revocation",),
        "Fetching continues while the commit before a revocation is under way. The position passes what is "
        "committed, and the next owner reads the difference again.",
    ),
    Entry(
        "J18", "No heartbeat while the leader thinks", "P",
        JAVA, "Java before 2.7.0", ("KAFKA-10122", "KAFKA-10134"), ("NC",), ("no_heartbeat_in_completing",),
        "Between the answers of JoinGroup and SyncGroup no heartbeat is sent. A leader whose assignor takes "
        "longer than the session timeout is expelled, and the rebalance starts again.",
    ),
    Entry(
        "J19", "A returning static leader does not know that it leads", "P",
        JAVA, "broker before 3.2.0, Java before 3.2.0", ("KAFKA-13435",), ("ST",),
        ("static_leader_returns_as_follower",),
        "The coordinator answers with the id the leader had before its restart, so it acts as a follower. "
        "Nobody watches the topics, and partitions added later stay unassigned.",
    ),
    Entry(
        "J20", "A static member's new subscription is ignored", "P",
        BROKER, "broker", ("KAFKA-12759",), ("ST",), ("static_rejoin_ignores_subscription",),
        "Restarted into a stable group, a static member gets its old assignment back without a rebalance, "
        "whatever it subscribes to now.",
    ),
    Entry(
        "J21", "A static member forgets an id that the coordinator keeps", "P",
        JAVA, "Java", ("KAFKA-20985", "KAFKA-20983"), ("AV",), ("static_forgets_id",),
        "On unsubscribe or a poll that comes too late no LeaveGroup is sent, but the id is dropped. Two "
        "attempts to rejoin replace each other, and the abandoned one fences the one that is alive.",
    ),
    Entry(
        "J22", "Moved replicas do not reach a rack-aware leader", "P",
        JAVA, "Java 3.5 in development", ("KAFKA-14867",), ("IM",), (),
        "The leader compares numbers of partitions with what it assigned, not racks. Replicas that move do "
        "not start a rebalance.",
    ),
    # -- Java assignors --
    Entry(
        "J23", "A third round with unequal subscriptions", "A",
        JAVA, "Java since 2.4.0", ("KAFKA-8767",), ("NC",), ("third_round_general",),
        "Balanced pair by pair, the result depends on where it starts: what two rounds should settle needs "
        "three, a few times in a hundred thousand.",
    ),
    Entry(
        "J24", "Minutes for an assignment", "A",
        JAVA, "Java to 3.5.1, kafka-python", ("KAFKA-9987", "KAFKA-12675", "KAFKA-15106"), ("RT",),
        ("quadratic_general", "is_balanced_off_by_one"),
        "Three causes, one effect: the general algorithm recounts too much, holds too much, or takes a group "
        "that is balanced for one that is not. In large groups the rebalance timeout strikes first.",
        {"quadratic_general": "Java 2.4.0 to 2.5.0"},
    ),
    Entry(
        "J25", "Larger quotas first, thefts afterwards", "A",
        JAVA, "Java 2.5.1 to 2.8.2", ("KAFKA-12464",), ("LS",), (),
        "Everybody keeps up to the larger quota, and what is missing elsewhere is taken from the front of "
        "the fullest hands.",
    ),
    Entry(
        "J28", "Racks part partitions that belong together", "A",
        JAVA, "Java 3.5 in development", ("KAFKA-14891",), ("IM",), ("rack_breaks_copartition",),
        "The range assignor matches racks in each topic by itself, so equal indexes of joined topics go to "
        "different members.",
    ),
    Entry(
        "J29", "Deleted topics and remembered calls", "A",
        JAVA, "Java before 2.2", ("KAFKA-7962", "KAFKA-3661", "KAFKA-5277"), ("CR", "LS"),
        ("npe_on_missing_topic", "cache_across_calls"),
        "A subscribed topic without metadata ends sticky and roundrobin with a null pointer; an early sticky "
        "kept the assignment of one call for the next.",
        {"cache_across_calls": "Java before 0.11.0.1"},
    ),
    Entry(
        "J30", "A partition that is claimed twice by one member", "A",
        JAVA, "Java since 2.5.1", (), ("CR", "LS"), ("duplicate_claims_counted", "duplicate_claims_cancel"),
        "First it fills two places and pushes another partition out; later the member is its own rival, and "
        "the partition is revoked.",
        {"duplicate_claims_counted": "Java 2.5.1 to 2.8.0", "duplicate_claims_cancel": "Java since 2.8.1"},
    ),
    # -- broker --
    Entry(
        "B1", "A new member that never expires", "P",
        BROKER, "broker before 2.5.0", ("KAFKA-9752",), ("NC",), ("new_member_never_expires",),
        "The time limit for members that joined with an old JoinGroup is not applied after the rebalance. "
        "One that vanished is waited for without end.",
    ),
    Entry(
        "B2", "A static restart during the sync loses its assignment", "P",
        BROKER, "broker before 2.5.0", ("KAFKA-9801",), ("ST",),
        ("static_replace_in_completing_no_rebalance",),
        "The id is replaced after the leader saw the member list, and no rebalance follows. The assignment "
        "names the old id; the new one gets nothing, and its partitions go unread.",
    ),
    Entry(
        "B3", "A leader that never syncs holds the group for ever", "P",
        BROKER, "broker 2.7.0 to 2.7.2, 2.8.0", ("KAFKA-12890",), ("NC",), ("no_pending_sync_expiry",),
        "Heartbeats, sent between join and sync since J18, keep a member alive that will not sync. Nothing "
        "else ends the phase.",
    ),
    Entry(
        "B4", "Failover brings back the id of a dead static member", "P",
        BROKER, "broker before 2.6.1", ("KAFKA-10284",), ("AV", "DO"), ("static_replace_not_persisted",),
        "The replacement is only in memory. After a failover the old id is valid again, the live member is "
        "fenced, and two instances are let in by turns.",
    ),
    Entry(
        "B5", "group.max.size counts the wrong members", "P",
        BROKER, "broker before 2.6.0", ("KAFKA-9844", "KAFKA-9885"), ("AV",), ("max_size_counts_members",),
        "Members that have not joined yet bypass the limit, and when it is enforced those are turned away "
        "who come back first.",
    ),
    Entry(
        "B6", "Ids that nobody uses", "P",
        BROKER, "broker before 2.2.0", ("KAFKA-7610", "KAFKA-7909"), ("NC",),
        ("ghost_on_retry", "pending_blocks_join"),
        "Every retry of a JoinGroup that waits makes another member. The cure, ids handed out before the "
        "join, at first kept the join phase open for those who never came back with theirs.",
        {"pending_blocks_join": "broker 2.2 in development"},
    ),
    Entry(
        "B7", "One instance id, two live members", "P",
        BROKER, "broker 2.3 in development", ("KAFKA-8500",), ("DO",), ("static_replace_only_stable",),
        "The old id gives way to the new one only in a stable group. During a rebalance both are members.",
    ),
    Entry(
        "B8", "A rebalance timeout of zero", "P",
        BROKER, "broker 2.3.0", ("KAFKA-8653",), ("NC",), ("rebalance_timeout_zero",),
        "JoinGroup version 0 has no rebalance timeout, and the default that takes its place is none at all. "
        "Each rebalance expels all who are not there yet, who start the next.",
    ),
    Entry(
        "B9", "Static member ids that are not unique, and details of heartbeat and timeout", "P",
        BROKER, "broker before 3.3.2", ("KAFKA-8715", "KAFKA-8896", "KAFKA-14009"), ("AV",),
        (),
        "The id of a static member is made from a time that stands still or was never set, so a restart gets "
        "the id it had. Heartbeats of removed members crash; new timeouts of a returning one are ignored.",
    ),
    Entry(
        "B10", "Static members are expelled for missing a join phase", "P",
        BROKER, "broker before 2.3.0", ("KAFKA-8220",), ("LS",), ("evict_static_on_rebalance_timeout",),
        "The rebalance timeout removes them as if they were dynamic, long before their session ends.",
    ),
    Entry(
        "B11", "A slow log append is fatal to the client", "P",
        JAVA, "Java before 2.8.0", ("KAFKA-10870",), ("AV",), ("join_rip_fatal",),
        "JoinGroup may be answered with REBALANCE_IN_PROGRESS when the coordinator's own write times out. "
        "The client took it for an error it cannot know.",
    ),
    Entry(
        "B12", "Upgrade to the new protocol misses a static replacement", "P",
        BROKER, "broker 4.0 in development", ("KAFKA-17317",), ("AV",), (),
        "When a static member is replaced, the group is not checked again for the way back to the classic "
        "protocol.",
    ),
    # -- librdkafka --
    Entry(
        "L4", "A late commit costs the assignment", "P",
        "librdkafka", "librdkafka 1.6.0 to 2.9.0", ("librdkafka#4059",), ("LS", "CB"),
        ("commit_illegal_generation_always_lost",),
        "Between the two joins of a cooperative rebalance the generation grows; a commit sent before is "
        "refused and taken as the end of the membership.",
    ),
    Entry(
        "L5", "An assignment that arrives during close", "P",
        "librdkafka", "librdkafka before 2.4.0", ("librdkafka#4527", "librdkafka#4312"), ("NC", "CR"),
        ("assign_during_close_hangs",),
        "The consumer waits for the application to take partitions that it will not take any more. Closed "
        "before its first assignment, it crashed instead.",
    ),
    Entry(
        "L6", "Round robin in the wrong modulus", "A",
        "librdkafka", "librdkafka before 1.6.0", ("librdkafka#3159", "librdkafka@57da62532"),
        ("RT", "IM", "ST"), ("roundrobin_modulo_eligible", "topics_beyond_members_ignored"),
        "With unequal subscriptions the next seat is searched among too few: an endless loop, or one member "
        "gets all. Earlier, topics beyond the number of members were not looked at.",
        {"topics_beyond_members_ignored": "librdkafka before 1.5.0"},
    ),
    Entry(
        "L7", "A cooperative unsubscribe does not leave", "P",
        "librdkafka", "librdkafka before 1.7.0", (), ("AV",), ("no_leave_on_unsubscribe",),
        "LeaveGroup is not sent, and the partitions wait for the session timeout.",
    ),
    Entry(
        "L8", "Resuming from an older position", "P",
        "librdkafka", "librdkafka before 2.4.0", ("librdkafka#4686",), (), (),
        "After a subscription change under the cooperative protocol a partition that was kept could be read "
        "again from where it was once before.",
    ),
    Entry(
        "L9", "No rolling path to the cooperative protocol", "P",
        "librdkafka", "librdkafka",
        ("librdkafka#4368", "librdkafka#3589", "confluent-kafka-go#605"), ("AV",), (),
        "A list with eager and cooperative assignors is refused, so the first bounce of an upgrade cannot be "
        "made.",
    ),
    # -- franz-go --
    Entry(
        "F1", "An eager revocation is forgotten by the next comparison", "P",
        "franz-go", "franz-go before 1.17.0", ("franz-go#686",), ("ST",),
        ("eager_revoke_keeps_last_assigned",),
        "A member that can do both revokes everything, but what it compares the next assignment with still "
        "lists it. What comes back does not count as new and is never read.",
    ),
    Entry(
        "F2", "Kept partitions whose offsets never arrive", "P",
        "franz-go", "franz-go before 1.17.0",
        ("franz-go@4f2e7fe", "franz-go@02560c7", "franz-go@55dc7a0"), ("ST", "CB"),
        ("offset_fetch_not_resumed", "assigned_cb_repeated"),
        "A rebalance cancels the request for offsets of partitions that stay, and nobody repeats it: owned, "
        "not read. The repair announced them a second time.",
        {"offset_fetch_not_resumed": "franz-go before 1.3.4"},
    ),
    Entry(
        "F3", "Two opinions on which protocol is in use", "P",
        "franz-go", "franz-go before 1.13.0", ("franz-go#366",), ("ST",), ("protocol_flag_inconsistent",),
        "Some code asks whether any assignor is eager, some what was selected. Partitions are given up in "
        "the eager way without the second rebalance of the cooperative one, or the other way round.",
    ),
    Entry(
        "F4", "Claims from a map that was cleared before", "A+P",
        "franz-go", "franz-go before 1.10.0", ("franz-go@dcfcacb",), ("LS",), ("claims_always_empty",),
        "Members claim nothing, so each rebalance is a new distribution.",
    ),
    Entry(
        "F5", "Shortcuts and chains of the sticky balancer", "A",
        "franz-go", "franz-go before 0.7.0", ("franz-go@e168855", "franz-go@d1341ae"), ("IM", "LS"),
        ("single_known_topic_shortcut", "steal_chain_other_partition"),
        "With metadata for one topic only, all members are taken to want it. Along a chain of moves another "
        "partition comes out than went in.",
        {"single_known_topic_shortcut": "franz-go before 0.6.10"},
    ),
    Entry(
        "F6", "The leader watches only what it subscribes to", "P",
        "franz-go", "franz-go before 1.4.0", ("franz-go@0bfaf64f",), ("ST",), ("leader_watches_own_topics",),
        "A topic that only others subscribe to grows, and nobody rebalances.",
    ),
    Entry(
        "F10", "Nothing is revoked when the group falls back to eager", "P",
        "franz-go", "franz-go to 1.21.6", ("franz-go#1365",), ("DO",), ("no_revoke_on_protocol_downgrade",),
        "A member joins that knows only range, and the group changes its protocol. The client keeps its "
        "partitions, as if it were cooperative, and adds what it is assigned.",
    ),
    Entry(
        "F11", "A refused commit does not lead to a rejoin", "P",
        "franz-go", "franz-go before 1.21.3", ("franz-go@ee709306", "franz-go@824e34d2"), ("DO",),
        ("commit_error_no_rejoin",),
        "The error that says that the membership has ended is passed on and forgotten. Until the next "
        "heartbeat the member reads what belongs to others.",
    ),
    Entry(
        "F12", "A restarted static leader with other interests", "P",
        "franz-go", "franz-go since 1.9.0", ("franz-go@b18341d6",), ("ST",),
        ("static_rejoin_ignores_subscription",),
        "The restart of a leader under KIP-814 is supported, a changed subscription at that restart is not; "
        "the coordinator ignores it, as in J20.",
    ),
    # -- sarama, kafka-python, kafkajs, applications --
    Entry(
        "S1", "Members in the order of arrival", "A",
        "sarama", "sarama before 1.35.0", ("sarama@6750d926",), ("IM",), ("members_unsorted",),
        "Members are not sorted, so two leaders disagree; an id that appears twice counts twice.",
    ),
    Entry(
        "S2", "Added partitions start no rebalance", "P",
        "sarama", "sarama before 1.41.0", ("sarama@f35d2121",), ("ST",), ("leader_watches_own_topics",),
        "The leader misses that a topic of the group has grown, and the new partitions stay unassigned.",
    ),
    Entry(
        "S4", "A cooperative strategy that never claims", "P",
        "sarama", "sarama", ("sarama#3671",), ("LS",), ("claims_always_empty",),
        "The session ends before the next join, which then has nothing to claim. Safe, and eager in all but "
        "name.",
    ),
    Entry(
        "K1", "User data can be encoded only once", "A+P",
        "kafka-python", "kafka-python 2.0.2", ("kafka-python#2305",), ("CR",), ("user_data_once",),
        "The sticky encoder reads from an iterator. At the second rebalance it is empty, and the join fails.",
    ),
    Entry(
        "K2", "A rebalance in progress counts as lost membership", "P",
        "kafka-python", "kafka-python before 2.2.4", ("kafka-python#2610", "kafka-python#2614"), ("LS", "CB"),
        ("reset_on_sync_rip",),
        "As in J7 the generation is reset, and the listener hears of a loss instead of a revocation.",
    ),
    Entry(
        "K3", "A sticky assignor that is cooperative only", "P",
        "kafka-python", "kafka-python since 3.0.0", (), ("AV",), (),
        "It cannot be listed beside an eager assignor, so a running group cannot change to it member by "
        "member.",
    ),
    Entry(
        "Q1", "Version 1 without its new field", "A",
        "kafkajs, kafka-go", "kafkajs before 2.2.2, kafka-go", ("kafkajs#1449", "kafka-go#1156"), ("CR",), (),
        "Subscriptions say version 1 and end where owned partitions should follow. The leader, if it is "
        "another client, cannot read them.",
    ),
    Entry(
        "Q2", "Nothing to do is a reason to leave", "P",
        "kafkajs", "kafkajs 2.0.0", ("kafkajs#1361",), ("AV",), ("leave_on_empty_assignment",),
        "A member that is assigned no partition stops, and is not there when others fail.",
    ),
    Entry(
        "Q3", "The leader's topics, to everybody", "A",
        "kafkajs", "kafkajs", ("kafkajs#1679",), ("ST",), ("assign_leader_topics_only",),
        "The leader hands out the topics it subscribes to itself, to members that do not want them, and no "
        "others.",
    ),
    Entry(
        "Q4", "No way back after ILLEGAL_GENERATION", "P",
        "kafkajs", "kafkajs before 2.2.4", ("kafkajs#1474",), ("ST",),
        ("no_rejoin_after_illegal_generation",),
        "The member learns that its generation has passed and does nothing about it.",
    ),
    Entry(
        "X1", "Listeners that remember too much or expect too much", "P",
        "applications", "pekko-connectors-kafka, spring-kafka",
        ("pekko-connectors-kafka#616", "spring-kafka#1448"), ("CB",), (),
        "One keeps the last revocation for the next call, which in the cooperative protocol may follow "
        "without any; one takes the partitions that were added for all there are.",
    ),
    Entry(
        "X2", "The same questions in Connect", "P",
        "Kafka Connect", "connect", ("KAFKA-10763", "KAFKA-12495"), ("DO", "IM"), (),
        "A second revocation is skipped while the first rebalance is open, so tasks run twice; without "
        "revocations in a row an imbalance stays for good.",
    ),
)  # fmt: skip

CATALOGUE: dict[str, Entry] = {entry.id: entry for entry in _TABLE}
"""All entries by id, in the order of the projects."""


def entries_of(switch: str) -> tuple[Entry, ...]:
    """The entries that ``switch`` stands for, the one that names it first in front; none is possible."""
    return tuple(entry for entry in _TABLE if switch in entry.switches)


def shipped(switch: str) -> str:
    """The releases that have ``switch``, over all its entries; ``never`` if it has none."""
    texts = [entry.shipped(switch) for entry in entries_of(switch)]
    return ", ".join(text for text in texts if text != "never") or "never"
