"""The catalogue of rebalance bugs that were shipped: what happens, where, what breaks, which switches.

This is the one place that says in which releases a mistake lives and which entry a switch stands for.
Switches are of two kinds: those of an assignor (``rebalance.model.bugs.switches``, stages that are replaced)
and those of the protocol (``rebalance.model.bugs.decisions``). An id that is in both stands for the same
mistake, asked at two levels. Profiles (``rebalance.model.bugs.profiles``) are computed from the ranges here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from rebalance.model.bugs.releases import Releases, parse

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One mistake. ``affected`` follows ``rebalance.model.bugs.releases``.

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
        id="U1", title="Positions go before the callback, and membership lost while joining goes unnoticed",
        level="P",
        project="kafka-python", affected="kafka-python", trackers=(), breaks=("CB", "TR", "DO"),
        switches=("assign_before_revoke_cb", "skip_empty_assigned_cb", "prepare_once_per_rebalance"),
        story="The new assignment is installed before the listener hears what was revoked, so it cannot "
        "commit any more; an empty set of new partitions is not announced. What precedes a join runs once "
        "per rebalance: a member that is expelled in between keeps its partitions and claims them again.",
    ),
    Entry(
        id="U2", title="Whoever is short steals only once", level="A", project="KIP draft", affected="never",
        trackers=(), breaks=("IM",), switches=("steal_once",),
        story="The rejected draft of the constrained sticky algorithm takes one partition for each member "
        "below its quota. Nine partitions held 0, 3, 3, 3 end as 1, 2, 3, 3.",
    ),
    Entry(
        id="U3", title="Failover forgets the protocols that were not selected", level="P",
        project=BROKER, affected="broker", trackers=(), breaks=("AV",),
        switches=("persist_selected_protocol_only",),
        story="The group's record keeps metadata of the selected protocol alone. When the coordinator moves "
        "between the two bounces of an upgrade, a member that offers only cooperative-sticky is turned away "
        "for good, although everybody in the group could speak it.",
    ),
    Entry(
        id="U4", title="SyncGroup to a coordinator that loads kills the client", level="P",
        project=BROKER, affected="broker since 4.0.0", trackers=(), breaks=("AV",),
        switches=("sync_load_error_raw",),
        story="The rewritten coordinator answers COORDINATOR_LOAD_IN_PROGRESS as it is. No client expects "
        "that from SyncGroup; the old coordinator answered REBALANCE_IN_PROGRESS instead.",
    ),
    Entry(
        id="U5", title="A stopped static member is expelled long before its session ends", level="P",
        project=BROKER, affected="broker since 2.8.1", trackers=(), breaks=("LS",),
        switches=("pending_sync_evicts_static",),
        story="A static member keeps its seat through a join phase it misses, but is then expected to sync. "
        "It does not, is removed after the rebalance timeout, and its partitions move: what static "
        "membership is there to prevent.",
    ),
    Entry(
        id="U6", title="A silent static member is represented by claims one assignment too old", level="P",
        project=BROKER, affected="broker", trackers=(), breaks=("DO", "TR"),
        switches=("silent_static_claims_stale",),
        story="For a static member that misses the join phase the leader sees the subscription of its last "
        "JoinGroup. What it was assigned since looks free and goes to somebody else at once, while it still "
        "reads it.",
    ),
    Entry(
        id="U7", title="A late answer to a commit resets the membership that came after it", level="P",
        project=JAVA, affected="Java", trackers=(), breaks=("LS", "CB"), switches=("late_commit_resets",),
        story="An error for a commit of the previous generation is ignored while the member prepares to "
        "join. Once JoinGroup is answered it counts again: the new membership is reset and all partitions "
        "are lost.",
    ),
    Entry(
        id="U8", title="A failover brings back a static id that was gone", level="P",
        project=BROKER, affected="broker", trackers=(), breaks=("AV",),
        switches=("static_removal_not_persisted",),
        story="The removal of a static member is not written to the log before the next assignment is. When "
        "the coordinator moves in between, the old id is back, and the restarted process is fenced for good.",
    ),
    Entry(
        id="U9", title="A static member returns with a revocation pending", level="P",
        project=BROKER, affected="broker", trackers=(), breaks=("ST",),
        switches=("static_replace_drops_revocation",),
        story="A partition is withheld because a static member claims it, and that member restarts before it "
        "could revoke. The new process is let in without a rebalance and has nothing to revoke, so the round "
        "that would hand the partition over never comes.",
    ),
    # -- Java client: claims and generations --
    Entry(
        id="J1", title="Claims survive the loss of the membership", level="P",
        project=JAVA, affected="Java 2.4.0 to 2.7.1, 2.8.0", trackers=("KAFKA-12983",),
        breaks=("TR", "DO", "CB"),
        switches=("prepare_not_repeated_after_reset",),
        story="A member that learns from JoinGroup or SyncGroup that it was expelled has already run its "
        "preparation and does not run it again. Nothing is lost in its own eyes: under a new id it claims "
        "what others were given meanwhile.",
    ),
    Entry(
        id="J2", title="Two claimants of a partition both receive it", level="A",
        project=JAVA, affected="Java 2.4.0 to 2.8.0", trackers=("KAFKA-12984",), breaks=("DO", "CR"),
        switches=("last_claim_wins", "trust_all_claims", "minquota_still_unfilled"),
        story="The constrained algorithm believes every claim; the general one before it believed the last "
        "it read. Two owners, or an exception that counts to the wrong number.",
        narrower={
            "last_claim_wins": "Java 2.4.0 to 2.5.0",
            "trust_all_claims": "Java 2.5.1 to 2.8.0",
            "minquota_still_unfilled": "Java 3.0 in development",
        },
    ),
    Entry(
        id="J3", title="The leader rejects a good assignment because of a stale claim", level="A+P",
        project=JAVA, affected="Java 2.4.0 to 2.8.1, 3.0.0", trackers=("KAFKA-13406",), breaks=("NC",),
        switches=("validate_raw_claims",),
        story="The assignor leaves a stale claim aside and gives the partition away; the check behind it "
        "takes the claim at face value and throws. The claimant goes on claiming, so every rebalance fails. "
        "Before 2.8.1 it took two claimants.",
    ),
    Entry(
        id="J4", title="A member that is late by one generation loses every claim", level="A+P",
        project=JAVA, affected="Java 2.8.1 to 3.4.0", trackers=("KAFKA-14639",), breaks=("DO",),
        switches=("max_generation_only",),
        story="Only claims of the newest generation in the group count. What a late member still holds looks "
        "free and is handed over in the very round that takes it away.",
    ),
    Entry(
        id="J5", title="ILLEGAL_GENERATION leaves a ghost behind", level="P",
        project=JAVA, affected="Java before 3.2.0", trackers=("KAFKA-13419",), breaks=("AV",),
        switches=("clear_member_id_on_illegal_generation",),
        story="The client also forgets its member id and joins as somebody new. The old id stays in the "
        "group, and the rebalance waits for it until a timeout.",
    ),
    Entry(
        id="J6", title="Old partitions are claimed under a new generation", level="P",
        project=JAVA, affected="Java before 3.3.0, since 3.3.2", trackers=("KAFKA-13891",), breaks=("TR",),
        switches=("keep_owned_on_sync_rip",),
        story="A SyncGroup refused for another rebalance leaves the member with the generation it has just "
        "joined and the partitions of an earlier one. Its next claim carries the wrong age; leaders that "
        "settle each partition by itself can live with it.",
    ),
    Entry(
        id="J7", title="Whoever is slow to sync loses everything", level="P",
        project=JAVA, affected="Java 3.3.0 to 3.3.1", trackers=("KAFKA-14016",), breaks=("LS", "CB"),
        switches=("reset_on_sync_rip",),
        story="The remedy for J6 resets the membership. A fast member that has to revoke rejoins before the "
        "slow one has synced, and the slow one is told that all its partitions are lost.",
    ),
    Entry(
        id="J8", title="Sticky claims have no age", level="A",
        project=JAVA, affected="Java before 2.3.0", trackers=("KAFKA-7026",), breaks=("TR", "LS"),
        switches=("no_generation",),
        story="User data names partitions without a generation, so what a returning member once had competes "
        "with what others have now.",
    ),
    Entry(
        id="J9", title="A lost connection costs the membership", level="P",
        project=JAVA, affected="Java to 2.7.1, 2.8.0", trackers=("KAFKA-13214",), breaks=("AV", "LS"),
        switches=("reset_on_retriable",),
        story="Any error of JoinGroup or SyncGroup that a retry would cure clears id and generation. The old "
        "id holds up the next rebalance, and a cooperative member loses all it owns.",
    ),
    Entry(
        id="J10", title="The answer to an old request resets the new membership", level="P",
        project=JAVA, affected="Java before 2.6.0", trackers=("KAFKA-9823",), breaks=("NC", "LS", "TR"),
        switches=("no_sent_generation_check",),
        story="A heartbeat of generation 5 is refused after the member has joined generation 6, and the "
        "refusal is applied to what it is now.",
    ),
    Entry(
        id="J11", title="The heartbeat thread interferes between the answer and the callback", level="P",
        project=JAVA, affected="Java before 2.4.0", trackers=("KAFKA-8104", "KAFKA-9140"),
        breaks=("CB", "NC"),
        switches=("no_snapshot_before_callback", "joinfuture_not_cleared"),
        story="Reset in that moment, a member completes its join with generation -1. The guard against it "
        "left the old join pending: the member waits for it for ever and sends no new one.",
    ),
    Entry(
        id="J12", title="A reason to rejoin is forgotten when it goes away", level="P",
        project=JAVA, affected="Java before 2.5.0", trackers=("KAFKA-9815",), breaks=("ST",),
        switches=("rejoin_flag_not_latched",),
        story="Changed metadata starts a rejoin that is noted nowhere. Everything is revoked, JoinGroup "
        "fails, the metadata changes back, and nothing asks for a rejoin any more.",
    ),
    Entry(
        id="J13", title="Equal claims are written in different order", level="P",
        project=JAVA, affected="Java before 2.8.1", trackers=("KAFKA-12898", "KAFKA-12896"), breaks=("NC",),
        switches=("unsorted_metadata",),
        story="Owned partitions go out in the order of a hash set. The coordinator compares bytes, finds a "
        "change where there is none, and rebalances.",
    ),
    Entry(
        id="J14", title="Unsubscribing skips the listener", level="P",
        project=JAVA, affected="Java 2.4 in development", trackers=("KAFKA-8972",), breaks=("CB",),
        switches=("clear_before_leave_prepare",),
        story="The assignment is cleared before the step that would announce its end, which then finds "
        "nothing.",
    ),
    Entry(
        id="J15",
        title="An exception of the listener leaves the join half done; its generation is the old one",
        level="P",
        project=JAVA, affected="Java before 2.6.0", trackers=("KAFKA-9620", "KAFKA-9741"), breaks=("CB",),
        switches=("abort_on_callback_exception", "metadata_after_revoke"),
        story="What one callback throws skips the others and the rest of the state. And while partitions are "
        "revoked, group metadata still shows the generation before, so a transactional commit is refused.",
        narrower={"metadata_after_revoke": "Java before 2.5.0"},
    ),
    Entry(
        id="J16", title="The commit before the join starts again at every poll", level="P",
        project=JAVA, affected="Java 3.2.0", trackers=("KAFKA-14024",), breaks=("AV", "ST"),
        switches=("prepare_commit_never_done",),
        story="A short poll ends before the asynchronous commit does, and the next one sends another. "
        "JoinGroup is never sent, and the member is expelled after the rebalance timeout.",
    ),
    Entry(
        id="J17", title="Records are read while their partition is given up", level="P",
        project=JAVA, affected="Java 3.2.1 to 3.2.2", trackers=("KAFKA-14196",), breaks=(),
        switches=("fetch_while_pending_revocation",),
        story="Fetching continues while the commit before a revocation is under way. The position passes "
        "what is committed, and the next owner reads the difference again.",
    ),
    Entry(
        id="J18", title="No heartbeat while the leader thinks", level="P",
        project=JAVA, affected="Java before 2.7.0", trackers=("KAFKA-10122", "KAFKA-10134"), breaks=("NC",),
        switches=("no_heartbeat_in_completing",),
        story="Between the answers of JoinGroup and SyncGroup no heartbeat is sent. A leader whose assignor "
        "takes longer than the session timeout is expelled, and the rebalance starts again.",
    ),
    Entry(
        id="J19", title="A returning static leader does not know that it leads", level="P",
        project=JAVA, affected="broker before 3.2.0, Java before 3.2.0", trackers=("KAFKA-13435",),
        breaks=("ST",),
        switches=("static_leader_returns_as_follower",),
        story="The coordinator answers with the id the leader had before its restart, so it acts as a "
        "follower. Nobody watches the topics, and partitions added later stay unassigned.",
    ),
    Entry(
        id="J20", title="A static member's new subscription is ignored", level="P",
        project=BROKER, affected="broker", trackers=("KAFKA-12759",), breaks=("ST",),
        switches=("static_rejoin_ignores_subscription",),
        story="Restarted into a stable group, a static member gets its old assignment back without a "
        "rebalance, whatever it subscribes to now.",
    ),
    Entry(
        id="J21", title="A static member forgets an id that the coordinator keeps", level="P",
        project=JAVA, affected="Java", trackers=("KAFKA-20985", "KAFKA-20983"), breaks=("AV",),
        switches=("static_forgets_id",),
        story="On unsubscribe or a poll that comes too late no LeaveGroup is sent, but the id is dropped. "
        "Two attempts to rejoin replace each other, and the abandoned one fences the one that is alive.",
    ),
    Entry(
        id="J22", title="Moved replicas do not reach a rack-aware leader", level="P",
        project=JAVA, affected="Java 3.5 in development", trackers=("KAFKA-14867",), breaks=("IM",),
        switches=(),
        story="The leader compares numbers of partitions with what it assigned, not racks. Replicas that "
        "move do not start a rebalance.",
    ),
    # -- Java assignors --
    Entry(
        id="J23", title="A third round with unequal subscriptions", level="A",
        project=JAVA, affected="Java since 2.4.0", trackers=("KAFKA-8767",), breaks=("NC",),
        switches=("third_round_general",),
        story="Balanced pair by pair, the result depends on where it starts: what two rounds should settle "
        "needs three, a few times in a hundred thousand.",
    ),
    Entry(
        id="J24", title="Minutes for an assignment", level="A",
        project=JAVA, affected="Java to 3.5.1, kafka-python",
        trackers=("KAFKA-9987", "KAFKA-12675", "KAFKA-15106"), breaks=("RT",),
        switches=("quadratic_general", "is_balanced_off_by_one"),
        story="Three causes, one effect: the general algorithm recounts too much, holds too much, or takes a "
        "group that is balanced for one that is not. In large groups the rebalance timeout strikes first.",
        narrower={"quadratic_general": "Java 2.4.0 to 2.5.0"},
    ),
    Entry(
        id="J25", title="Larger quotas first, thefts afterwards", level="A",
        project=JAVA, affected="Java 2.5.1 to 2.8.2", trackers=("KAFKA-12464",), breaks=("LS",), switches=(),
        story="Everybody keeps up to the larger quota, and what is missing elsewhere is taken from the front "
        "of the fullest hands.",
    ),
    Entry(
        id="J28", title="Racks part partitions that belong together", level="A",
        project=JAVA, affected="Java 3.5 in development", trackers=("KAFKA-14891",), breaks=("IM",),
        switches=("rack_breaks_copartition",),
        story="The range assignor matches racks in each topic by itself, so equal indexes of joined topics "
        "go to different members.",
    ),
    Entry(
        id="J29", title="Deleted topics and remembered calls", level="A",
        project=JAVA, affected="Java before 2.2", trackers=("KAFKA-7962", "KAFKA-3661", "KAFKA-5277"),
        breaks=("CR", "LS"),
        switches=("npe_on_missing_topic", "cache_across_calls"),
        story="A subscribed topic without metadata ends sticky and roundrobin with a null pointer; an early "
        "sticky kept the assignment of one call for the next.",
        narrower={"cache_across_calls": "Java before 0.11.0.1"},
    ),
    Entry(
        id="J30", title="A partition that is claimed twice by one member", level="A",
        project=JAVA, affected="Java since 2.5.1", trackers=(), breaks=("CR", "LS"),
        switches=("duplicate_claims_counted", "duplicate_claims_cancel"),
        story="First it fills two places and pushes another partition out; later the member is its own "
        "rival, and the partition is revoked.",
        narrower={
            "duplicate_claims_counted": "Java 2.5.1 to 2.8.0",
            "duplicate_claims_cancel": "Java since 2.8.1",
        },
    ),
    # -- broker --
    Entry(
        id="B1", title="A new member that never expires", level="P",
        project=BROKER, affected="broker before 2.5.0", trackers=("KAFKA-9752",), breaks=("NC",),
        switches=("new_member_never_expires",),
        story="The time limit for members that joined with an old JoinGroup is not applied after the "
        "rebalance. One that vanished is waited for without end.",
    ),
    Entry(
        id="B2", title="A static restart during the sync loses its assignment", level="P",
        project=BROKER, affected="broker before 2.5.0", trackers=("KAFKA-9801",), breaks=("ST",),
        switches=("static_replace_in_completing_no_rebalance",),
        story="The id is replaced after the leader saw the member list, and no rebalance follows. The "
        "assignment names the old id; the new one gets nothing, and its partitions go unread.",
    ),
    Entry(
        id="B3", title="A leader that never syncs holds the group for ever", level="P",
        project=BROKER, affected="broker 2.7.0 to 2.7.2, 2.8.0", trackers=("KAFKA-12890",), breaks=("NC",),
        switches=("no_pending_sync_expiry",),
        story="Heartbeats, sent between join and sync since J18, keep a member alive that will not sync. "
        "Nothing else ends the phase.",
    ),
    Entry(
        id="B4", title="Failover brings back the id of a dead static member", level="P",
        project=BROKER, affected="broker before 2.6.1", trackers=("KAFKA-10284",), breaks=("AV", "DO"),
        switches=("static_replace_not_persisted",),
        story="The replacement is only in memory. After a failover the old id is valid again, the live "
        "member is fenced, and two instances are let in by turns.",
    ),
    Entry(
        id="B5", title="group.max.size counts the wrong members", level="P",
        project=BROKER, affected="broker before 2.6.0", trackers=("KAFKA-9844", "KAFKA-9885"), breaks=("AV",),
        switches=("max_size_counts_members",),
        story="Members that have not joined yet bypass the limit, and when it is enforced those are turned "
        "away who come back first.",
    ),
    Entry(
        id="B6", title="Ids that nobody uses", level="P",
        project=BROKER, affected="broker before 2.2.0", trackers=("KAFKA-7610", "KAFKA-7909"), breaks=("NC",),
        switches=("ghost_on_retry", "pending_blocks_join"),
        story="Every retry of a JoinGroup that waits makes another member. The cure, ids handed out before "
        "the join, at first kept the join phase open for those who never came back with theirs.",
        narrower={"pending_blocks_join": "broker 2.2 in development"},
    ),
    Entry(
        id="B7", title="One instance id, two live members", level="P",
        project=BROKER, affected="broker 2.3 in development", trackers=("KAFKA-8500",), breaks=("DO",),
        switches=("static_replace_only_stable",),
        story="The old id gives way to the new one only in a stable group. During a rebalance both are "
        "members.",
    ),
    Entry(
        id="B8", title="A rebalance timeout of zero", level="P",
        project=BROKER, affected="broker 2.3.0", trackers=("KAFKA-8653",), breaks=("NC",),
        switches=("rebalance_timeout_zero",),
        story="JoinGroup version 0 has no rebalance timeout, and the default that takes its place is none at "
        "all. Each rebalance expels all who are not there yet, who start the next.",
    ),
    Entry(
        id="B9", title="Static member ids that are not unique, and details of heartbeat and timeout",
        level="P",
        project=BROKER, affected="broker before 3.3.2", trackers=("KAFKA-8715", "KAFKA-8896", "KAFKA-14009"),
        breaks=("AV",),
        switches=(),
        story="The id of a static member is made from a time that stands still or was never set, so a "
        "restart gets the id it had. Heartbeats of removed members crash; new timeouts of a returning one "
        "are ignored.",
    ),
    Entry(
        id="B10", title="Static members are expelled for missing a join phase", level="P",
        project=BROKER, affected="broker before 2.3.0", trackers=("KAFKA-8220",), breaks=("LS",),
        switches=("evict_static_on_rebalance_timeout",),
        story="The rebalance timeout removes them as if they were dynamic, long before their session ends.",
    ),
    Entry(
        id="B11", title="A slow log append is fatal to the client", level="P",
        project=JAVA, affected="Java before 2.8.0", trackers=("KAFKA-10870",), breaks=("AV",),
        switches=("join_rip_fatal",),
        story="JoinGroup may be answered with REBALANCE_IN_PROGRESS when the coordinator's own write times "
        "out. The client took it for an error it cannot know.",
    ),
    Entry(
        id="B12", title="Upgrade to the new protocol misses a static replacement", level="P",
        project=BROKER, affected="broker 4.0 in development", trackers=("KAFKA-17317",), breaks=("AV",),
        switches=(),
        story="When a static member is replaced, the group is not checked again for the way back to the "
        "classic protocol.",
    ),
    # -- librdkafka --
    Entry(
        id="L4", title="A late commit costs the assignment", level="P",
        project="librdkafka", affected="librdkafka 1.6.0 to 2.9.0", trackers=("librdkafka#4059",),
        breaks=("LS", "CB"),
        switches=("commit_illegal_generation_always_lost",),
        story="Between the two joins of a cooperative rebalance the generation grows; a commit sent before "
        "is refused and taken as the end of the membership.",
    ),
    Entry(
        id="L5", title="An assignment that arrives during close", level="P",
        project="librdkafka", affected="librdkafka before 2.4.0",
        trackers=("librdkafka#4527", "librdkafka#4312"), breaks=("NC", "CR"),
        switches=("assign_during_close_hangs",),
        story="The consumer waits for the application to take partitions that it will not take any more. "
        "Closed before its first assignment, it crashed instead.",
    ),
    Entry(
        id="L6", title="Round robin in the wrong modulus", level="A",
        project="librdkafka", affected="librdkafka before 1.6.0",
        trackers=("librdkafka#3159", "librdkafka@57da62532"),
        breaks=("RT", "IM", "ST"), switches=("roundrobin_modulo_eligible", "topics_beyond_members_ignored"),
        story="With unequal subscriptions the next seat is searched among too few: an endless loop, or one "
        "member gets all. Earlier, topics beyond the number of members were not looked at.",
        narrower={"topics_beyond_members_ignored": "librdkafka before 1.5.0"},
    ),
    Entry(
        id="L7", title="A cooperative unsubscribe does not leave", level="P",
        project="librdkafka", affected="librdkafka before 1.7.0", trackers=(), breaks=("AV",),
        switches=("no_leave_on_unsubscribe",),
        story="LeaveGroup is not sent, and the partitions wait for the session timeout.",
    ),
    Entry(
        id="L8", title="Resuming from an older position", level="P",
        project="librdkafka", affected="librdkafka before 2.4.0", trackers=("librdkafka#4686",), breaks=(),
        switches=(),
        story="After a subscription change under the cooperative protocol a partition that was kept could be "
        "read again from where it was once before.",
    ),
    Entry(
        id="L9", title="No rolling path to the cooperative protocol", level="P",
        project="librdkafka", affected="librdkafka",
        trackers=("librdkafka#4368", "librdkafka#3589", "confluent-kafka-go#605"), breaks=("AV",),
        switches=(),
        story="A list with eager and cooperative assignors is refused, so the first bounce of an upgrade "
        "cannot be made.",
    ),
    # -- franz-go --
    Entry(
        id="F1", title="An eager revocation is forgotten by the next comparison", level="P",
        project="franz-go", affected="franz-go before 1.17.0", trackers=("franz-go#686",), breaks=("ST",),
        switches=("eager_revoke_keeps_last_assigned",),
        story="A member that can do both revokes everything, but what it compares the next assignment with "
        "still lists it. What comes back does not count as new and is never read.",
    ),
    Entry(
        id="F2", title="Kept partitions whose offsets never arrive", level="P",
        project="franz-go", affected="franz-go before 1.17.0",
        trackers=("franz-go@4f2e7fe", "franz-go@02560c7", "franz-go@55dc7a0"), breaks=("ST", "CB"),
        switches=("offset_fetch_not_resumed", "assigned_cb_repeated"),
        story="A rebalance cancels the request for offsets of partitions that stay, and nobody repeats it: "
        "owned, not read. The repair announced them a second time.",
        narrower={"offset_fetch_not_resumed": "franz-go before 1.3.4"},
    ),
    Entry(
        id="F3", title="Two opinions on which protocol is in use", level="P",
        project="franz-go", affected="franz-go before 1.13.0", trackers=("franz-go#366",), breaks=("ST",),
        switches=("protocol_flag_inconsistent",),
        story="Some code asks whether any assignor is eager, some what was selected. Partitions are given up "
        "in the eager way without the second rebalance of the cooperative one, or the other way round.",
    ),
    Entry(
        id="F4", title="Claims from a map that was cleared before", level="A+P",
        project="franz-go", affected="franz-go before 1.10.0", trackers=("franz-go@dcfcacb",), breaks=("LS",),
        switches=("claims_always_empty",),
        story="Members claim nothing, so each rebalance is a new distribution.",
    ),
    Entry(
        id="F5", title="Shortcuts and chains of the sticky balancer", level="A",
        project="franz-go", affected="franz-go before 0.7.0",
        trackers=("franz-go@e168855", "franz-go@d1341ae"), breaks=("IM", "LS"),
        switches=("single_known_topic_shortcut", "steal_chain_other_partition"),
        story="With metadata for one topic only, all members are taken to want it. Along a chain of moves "
        "another partition comes out than went in.",
        narrower={"single_known_topic_shortcut": "franz-go before 0.6.10"},
    ),
    Entry(
        id="F6", title="The leader watches only what it subscribes to", level="P",
        project="franz-go", affected="franz-go before 1.4.0", trackers=("franz-go@0bfaf64f",), breaks=("ST",),
        switches=("leader_watches_own_topics",),
        story="A topic that only others subscribe to grows, and nobody rebalances.",
    ),
    Entry(
        id="F10", title="Nothing is revoked when the group falls back to eager", level="P",
        project="franz-go", affected="franz-go to 1.21.6", trackers=("franz-go#1365",), breaks=("DO",),
        switches=("no_revoke_on_protocol_downgrade",),
        story="A member joins that knows only range, and the group changes its protocol. The client keeps "
        "its partitions, as if it were cooperative, and adds what it is assigned.",
    ),
    Entry(
        id="F11", title="A refused commit does not lead to a rejoin", level="P",
        project="franz-go", affected="franz-go before 1.21.3",
        trackers=("franz-go@ee709306", "franz-go@824e34d2"), breaks=("DO",),
        switches=("commit_error_no_rejoin",),
        story="The error that says that the membership has ended is passed on and forgotten. Until the next "
        "heartbeat the member reads what belongs to others.",
    ),
    Entry(
        id="F12", title="A restarted static leader with other interests", level="P",
        project="franz-go", affected="franz-go since 1.9.0", trackers=("franz-go@b18341d6",), breaks=("ST",),
        switches=("static_rejoin_ignores_subscription",),
        story="The restart of a leader under KIP-814 is supported, a changed subscription at that restart is "
        "not; the coordinator ignores it, as in J20.",
    ),
    # -- sarama, kafka-python, kafkajs, applications --
    Entry(
        id="S1", title="Members in the order of arrival", level="A",
        project="sarama", affected="sarama before 1.35.0", trackers=("sarama@6750d926",), breaks=("IM",),
        switches=("members_unsorted",),
        story="Members are not sorted, so two leaders disagree; an id that appears twice counts twice.",
    ),
    Entry(
        id="S2", title="Added partitions start no rebalance", level="P",
        project="sarama", affected="sarama before 1.41.0", trackers=("sarama@f35d2121",), breaks=("ST",),
        switches=("leader_watches_own_topics",),
        story="The leader misses that a topic of the group has grown, and the new partitions stay "
        "unassigned.",
    ),
    Entry(
        id="S4", title="A cooperative strategy that never claims", level="P",
        project="sarama", affected="sarama", trackers=("sarama#3671",), breaks=("LS",),
        switches=("claims_always_empty",),
        story="The session ends before the next join, which then has nothing to claim. Safe, and eager in "
        "all but name.",
    ),
    Entry(
        id="K1", title="User data can be encoded only once", level="A+P",
        project="kafka-python", affected="kafka-python 2.0.2", trackers=("kafka-python#2305",),
        breaks=("CR",), switches=("user_data_once",),
        story="The sticky encoder reads from an iterator. At the second rebalance it is empty, and the "
        "join fails.",
    ),
    Entry(
        id="K2", title="A rebalance in progress counts as lost membership", level="P",
        project="kafka-python", affected="kafka-python before 2.2.4",
        trackers=("kafka-python#2610", "kafka-python#2614"), breaks=("LS", "CB"),
        switches=("reset_on_sync_rip",),
        story="As in J7 the generation is reset, and the listener hears of a loss instead of a revocation.",
    ),
    Entry(
        id="K3", title="A sticky assignor that is cooperative only", level="P",
        project="kafka-python", affected="kafka-python since 3.0.0", trackers=(), breaks=("AV",), switches=(),
        story="It cannot be listed beside an eager assignor, so a running group cannot change to it member "
        "by member.",
    ),
    Entry(
        id="Q1", title="Version 1 without its new field", level="A",
        project="kafkajs, kafka-go", affected="kafkajs before 2.2.2, kafka-go",
        trackers=("kafkajs#1449", "kafka-go#1156"), breaks=("CR",), switches=(),
        story="Subscriptions say version 1 and end where owned partitions should follow. The leader, if it "
        "is another client, cannot read them.",
    ),
    Entry(
        id="Q2", title="Nothing to do is a reason to leave", level="P",
        project="kafkajs", affected="kafkajs 2.0.0", trackers=("kafkajs#1361",), breaks=("AV",),
        switches=("leave_on_empty_assignment",),
        story="A member that is assigned no partition stops, and is not there when others fail.",
    ),
    Entry(
        id="Q3", title="The leader's topics, to everybody", level="A",
        project="kafkajs", affected="kafkajs", trackers=("kafkajs#1679",), breaks=("ST",),
        switches=("assign_leader_topics_only",),
        story="The leader hands out the topics it subscribes to itself, to members that do not want them, "
        "and no others.",
    ),
    Entry(
        id="Q4", title="No way back after ILLEGAL_GENERATION", level="P",
        project="kafkajs", affected="kafkajs before 2.2.4", trackers=("kafkajs#1474",), breaks=("ST",),
        switches=("no_rejoin_after_illegal_generation",),
        story="The member learns that its generation has passed and does nothing about it.",
    ),
    Entry(
        id="X1", title="Listeners that remember too much or expect too much", level="P",
        project="applications", affected="pekko-connectors-kafka, spring-kafka",
        trackers=("pekko-connectors-kafka#616", "spring-kafka#1448"), breaks=("CB",), switches=(),
        story="One keeps the last revocation for the next call, which in the cooperative protocol may follow "
        "without any; one takes the partitions that were added for all there are.",
    ),
    Entry(
        id="X2", title="The same questions in Connect", level="P",
        project="Kafka Connect", affected="connect", trackers=("KAFKA-10763", "KAFKA-12495"),
        breaks=("DO", "IM"), switches=(),
        story="A second revocation is skipped while the first rebalance is open, so tasks run twice; without "
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
