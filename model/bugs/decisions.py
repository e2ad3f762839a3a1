"""Design switches of the protocol: what a member, a leader or a coordinator was made to do wrongly.

A decision is only a name and a sentence here; the state machine (``rebalance.model.protocol``) asks whether
it is on. Which bug it stands for and where it was shipped is told by ``rebalance.model.bugs.catalogue``.
Mistakes inside an assignor are in ``rebalance.model.bugs.switches``; ``claims_always_empty`` and
``validate_raw_claims`` are in both, because member and leader can make them whatever the assignor does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rebalance.model.bugs import catalogue
from rebalance.model.bugs.releases import CURRENT, parse

Where = Literal["member", "leader", "coordinator"]


@dataclass(frozen=True, slots=True)
class Decision:
    """One named decision: who makes it, and what is done (of ``faithful`` ones: how it behaves)."""

    id: str
    where: Where
    sentence: str

    @property
    def entry(self) -> str:
        """The entry of the catalogue that it stands for, ``none`` for one that was never shipped."""
        entries = catalogue.entries_of(self.id)
        return entries[0].id if entries else "none"

    @property
    def shipped(self) -> str:
        """The releases that have it, in the form of ``rebalance.model.bugs.releases``."""
        return catalogue.shipped(self.id)

    @property
    def faithful(self) -> bool:
        """Whether the current release of Apache Kafka, client or broker, behaves so."""
        releases = parse(self.shipped)
        return any(releases.includes(product, CURRENT) for product in ("Java", "broker"))


_TABLE = (
    # -- member: what it claims and under which generation --
    Decision("claims_always_empty", "member", "JoinGroup claims nothing, whatever is owned"),
    Decision(
        "keep_owned_on_sync_rip", "member",
        "partitions kept through a refused SyncGroup are claimed under the generation just joined, "
        "not the one that assigned them",
    ),
    Decision("unsorted_metadata", "member", "equal claims are written in another order at each join"),
    # -- member: when its membership ends --
    Decision(
        "prepare_not_repeated_after_reset", "member",
        "expelled by an answer to JoinGroup or SyncGroup, it loses nothing and claims the old partitions",
    ),
    Decision(
        "prepare_once_per_rebalance", "member",
        "it prepares once per rebalance: whatever expels it before the join completes, it loses nothing",
    ),
    Decision(
        "clear_member_id_on_illegal_generation", "member",
        "ILLEGAL_GENERATION makes it forget its member id, which stays in the group",
    ),
    Decision("reset_on_sync_rip", "member", "REBALANCE_IN_PROGRESS from SyncGroup resets its membership"),
    Decision(
        "reset_on_retriable", "member",
        "an error of JoinGroup or SyncGroup that a retry would cure resets its membership",
    ),
    Decision(
        "no_sent_generation_check", "member", "a late error for an older generation resets the new one"
    ),
    Decision(
        "late_commit_resets", "member",
        "an error for a commit of an old generation resets the new one, unless JoinGroup is unanswered",
    ),
    Decision(
        "commit_illegal_generation_always_lost", "member",
        "a commit refused with ILLEGAL_GENERATION resets its membership, even while it waits for JoinGroup",
    ),
    Decision(
        "commit_error_no_rejoin", "member",
        "a commit refused because the membership has ended changes nothing; it goes on reading",
    ),
    Decision(
        "no_rejoin_after_illegal_generation", "member", "after ILLEGAL_GENERATION it does not join again"
    ),
    Decision("join_rip_fatal", "member", "REBALANCE_IN_PROGRESS from JoinGroup ends the consumer"),
    Decision(
        "static_forgets_id", "member",
        "a static member forgets its id on unsubscribe and on a late poll, though it does not leave",
    ),
    # -- member: when and whether it rejoins --
    Decision(
        "rejoin_flag_not_latched", "member",
        "a rejoin that changed metadata called for is dropped when the change goes away",
    ),
    Decision(
        "joinfuture_not_cleared", "member",
        "reset between the answer to SyncGroup and the callbacks, it waits for that old join for ever",
    ),
    Decision(
        "no_rejoin_after_revoke", "member",
        "partitions revoked after an assignment are not followed by another rebalance",
    ),
    Decision(
        "protocol_flag_inconsistent", "member",
        "it revokes by the protocol of its list and rejoins by the selected one, which may differ",
    ),
    Decision(
        "no_revoke_on_protocol_downgrade", "member",
        "when the group falls back to EAGER, it keeps what it owned before the join",
    ),
    Decision("leave_on_empty_assignment", "member", "assigned nothing, it stops taking part in the group"),
    Decision("no_leave_on_unsubscribe", "member", "unsubscribe does not send LeaveGroup"),
    Decision("assign_during_close_hangs", "member", "an assignment that arrives during close is waited for"),
    Decision(
        "no_heartbeat_in_completing", "member",
        "it sends no heartbeat between JoinGroup's answer and SyncGroup's",
    ),
    # -- member: its listener --
    Decision(
        "assign_before_revoke_cb", "member",
        "it owns the new assignment before the listener hears of the old",
    ),
    Decision("skip_empty_assigned_cb", "member", "onPartitionsAssigned is left out when nothing is added"),
    Decision("assigned_cb_repeated", "member", "kept partitions are announced again as newly assigned"),
    Decision("lost_as_revoked", "member", "partitions lost with the membership are announced as revoked"),
    Decision(
        "clear_before_leave_prepare", "member",
        "on leaving, its partitions go before the listener is asked",
    ),
    Decision(
        "abort_on_callback_exception", "member",
        "an exception of the listener skips the other callbacks and the new assignment",
    ),
    Decision(
        "no_snapshot_before_callback", "member",
        "the join completes with whatever the generation is then, even if it was reset meanwhile",
    ),
    Decision(
        "metadata_after_revoke", "member",
        "while onPartitionsRevoked runs, group metadata shows the generation before",
    ),
    # -- member: what it reads and commits --
    Decision(
        "prepare_commit_never_done", "member",
        "the commit before the join starts again at every poll, and never ends",
    ),
    Decision(
        "fetch_while_pending_revocation", "member",
        "partitions are read while the commit before their revocation runs",
    ),
    Decision(
        "eager_revoke_keeps_last_assigned", "member",
        "an EAGER revocation does not empty what the next assignment is compared with",
    ),
    Decision(
        "offset_fetch_not_resumed", "member",
        "a rebalance cancels the fetching of offsets, kept partitions stay unread",
    ),
    # -- leader --
    Decision(
        "validate_raw_claims", "leader",
        "the assignment is checked against all claims, stale ones too, and rejected",
    ),
    Decision("leader_watches_own_topics", "leader", "it watches the topics of its own subscription only"),
    # -- coordinator: what survives a failover --
    Decision(
        "persist_selected_protocol_only", "coordinator",
        "after a failover it knows each member's metadata for the selected protocol only",
    ),
    Decision(
        "static_removal_not_persisted", "coordinator",
        "a static id that was removed or replaced since the last append comes back with a failover, and the "
        "process that has the new one is fenced",
    ),
    Decision(
        "static_replace_drops_revocation", "coordinator",
        "a static member that returns while it had something to revoke starts no rebalance, and nobody gets "
        "what the old process held",
    ),
    Decision(
        "static_replace_not_persisted", "coordinator",
        "a failover undoes the replacement of a static id",
    ),
    Decision(
        "sync_load_error_raw", "coordinator",
        "SyncGroup during load is answered with COORDINATOR_LOAD_IN_PROGRESS, which ends the client",
    ),
    # -- coordinator: static members --
    Decision(
        "silent_static_claims_stale", "coordinator",
        "a static member that is silent through the join phase claims what it sent last, not what it was "
        "assigned since",
    ),
    Decision(
        "pending_sync_evicts_static", "coordinator",
        "a static member that is away is expelled one rebalance timeout after the join phase",
    ),
    Decision(
        "evict_static_on_rebalance_timeout", "coordinator",
        "static members that miss the join phase are expelled at its end",
    ),
    Decision(
        "static_rejoin_ignores_subscription", "coordinator",
        "a static member that returns to a stable group gets its old assignment, whatever it subscribes to",
    ),
    Decision(
        "static_leader_returns_as_follower", "coordinator",
        "a static leader that returns is told its old id as the leader's; decided by broker or client",
    ),
    Decision(
        "static_replace_in_completing_no_rebalance", "coordinator",
        "a static id is replaced while the leader assigns, and the new id is left without an assignment",
    ),
    Decision(
        "static_replace_only_stable", "coordinator",
        "a static id is replaced in a stable group only; before that both instances are members",
    ),
    # -- coordinator: members that do not come --
    Decision(
        "new_member_never_expires", "coordinator",
        "a member that vanished during its first join stays for ever",
    ),
    Decision("no_pending_sync_expiry", "coordinator", "members that heartbeat but never sync are waited for"),
    Decision(
        "ghost_on_retry", "coordinator",
        "each JoinGroup without an id that is sent again makes another member",
    ),
    Decision("pending_blocks_join", "coordinator", "ids handed out and never used keep the join phase open"),
    Decision(
        "rebalance_timeout_zero", "coordinator",
        "the join phase ends at once, without the members that have yet to join",
    ),
    Decision(
        "max_size_counts_members", "coordinator",
        "group.max.size is compared with the wrong count of members",
    ),
)  # fmt: skip

DECISIONS: dict[str, Decision] = {decision.id: decision for decision in _TABLE}
"""All decisions by id, grouped by who makes them."""

NOT_EXPRESSED: dict[str, str] = {
    "J22": "racks do not change in the model; what the assignor makes of them is checked by the gate",
    "B9, KAFKA-8715": "a member id is a slot and a count in the model, so two slots cannot get the same one",
    "B9, KAFKA-8896": "the coordinator itself crashes; the model has no exceptions inside it",
    "B9, KAFKA-14009": "timeouts have no length in the model, so a changed one cannot be told apart",
    "B12": "the model has the classic protocol only, not the upgrade to KIP-848",
    "L5, librdkafka#4312": "a crash in memory that was never set, before any step of the protocol",
    "L8": "the model knows whether a partition is read, not at which position",
    "L9": "the consumer refuses to start; its profile has no list that mixes protocols",
    "K1": "user data is a value in the model, nothing is encoded; see the switch user_data_once",
    "K3": "the consumer refuses to start, as in L9",
    "X1": "what an application does in its callbacks; the model ends at the callback",
    "X2": "Connect assigns connectors and tasks with rules of its own",
}
"""Entries, or parts of them, that the state machine cannot show, with the reason."""
