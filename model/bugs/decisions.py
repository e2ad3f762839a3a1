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

Where = Literal["member", "leader", "coordinator"]


@dataclass(frozen=True, slots=True)
class Decision:
    """One named decision: who makes it, and what is done."""

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


_SENTENCES: dict[Where, dict[str, str]] = {
    "member": {
        # -- what it claims and under which generation --
        "claims_always_empty": "JoinGroup claims nothing, whatever is owned",
        "keep_owned_on_sync_rip":
            "partitions kept through a refused SyncGroup are claimed under the generation just joined, not "
            "the one that assigned them",
        "unsorted_metadata": "equal claims are written in another order at each join",
        # -- when its membership ends --
        "prepare_not_repeated_after_reset":
            "expelled by an answer to JoinGroup or SyncGroup, it loses nothing and claims the old partitions",
        "prepare_once_per_rebalance":
            "it prepares once per rebalance: whatever expels it before the join completes, it loses nothing",
        "clear_member_id_on_illegal_generation":
            "ILLEGAL_GENERATION makes it forget its member id, which stays in the group",
        "reset_on_sync_rip": "REBALANCE_IN_PROGRESS from SyncGroup resets its membership",
        "reset_on_retriable":
            "an error of JoinGroup or SyncGroup that a retry would cure resets its membership",
        "no_sent_generation_check": "a late error for an older generation resets the new one",
        "late_commit_resets":
            "an error for a commit of an old generation resets the new one, unless JoinGroup is unanswered",
        "commit_illegal_generation_always_lost":
            "a commit refused with ILLEGAL_GENERATION resets its membership, even while it waits for "
            "JoinGroup",
        "commit_error_no_rejoin":
            "a commit refused because the membership has ended changes nothing; it goes on reading",
        "no_rejoin_after_illegal_generation": "after ILLEGAL_GENERATION it does not join again",
        "join_rip_fatal": "REBALANCE_IN_PROGRESS from JoinGroup ends the consumer",
        "static_forgets_id":
            "a static member forgets its id on unsubscribe and on a late poll, though it does not leave",
        # -- when and whether it rejoins --
        "rejoin_flag_not_latched":
            "a rejoin that changed metadata called for is dropped when the change goes away",
        "joinfuture_not_cleared":
            "reset between the answer to SyncGroup and the callbacks, it waits for that old join for ever",
        "no_rejoin_after_revoke":
            "partitions revoked after an assignment are not followed by another rebalance",
        "protocol_flag_inconsistent":
            "it revokes by the protocol of its list and rejoins by the selected one, which may differ",
        "no_revoke_on_protocol_downgrade":
            "when the group falls back to EAGER, it keeps what it owned before the join",
        "leave_on_empty_assignment": "assigned nothing, it stops taking part in the group",
        "no_leave_on_unsubscribe": "unsubscribe does not send LeaveGroup",
        "assign_during_close_hangs": "an assignment that arrives during close is waited for",
        "no_heartbeat_in_completing": "it sends no heartbeat between JoinGroup's answer and SyncGroup's",
        # -- its listener --
        "assign_before_revoke_cb": "it owns the new assignment before the listener hears of the old",
        "skip_empty_assigned_cb": "onPartitionsAssigned is left out when nothing is added",
        "assigned_cb_repeated": "kept partitions are announced again as newly assigned",
        "lost_as_revoked": "partitions lost with the membership are announced as revoked",
        "clear_before_leave_prepare": "on leaving, its partitions go before the listener is asked",
        "abort_on_callback_exception":
            "an exception of the listener skips the other callbacks and the new assignment",
        "no_snapshot_before_callback":
            "the join completes with whatever the generation is then, even if it was reset meanwhile",
        "metadata_after_revoke": "while onPartitionsRevoked runs, group metadata shows the generation before",
        # -- what it reads and commits --
        "prepare_commit_never_done": "the commit before the join starts again at every poll, and never ends",
        "fetch_while_pending_revocation": "partitions are read while the commit before their revocation runs",
        "eager_revoke_keeps_last_assigned":
            "an EAGER revocation does not empty what the next assignment is compared with",
        "offset_fetch_not_resumed":
            "a rebalance cancels the fetching of offsets, kept partitions stay unread",
    },
    "leader": {
        "validate_raw_claims": "the assignment is checked against all claims, stale ones too, and rejected",
        "leader_watches_own_topics": "it watches the topics of its own subscription only",
    },
    "coordinator": {
        # -- what survives a failover --
        "persist_selected_protocol_only":
            "after a failover it knows each member's metadata for the selected protocol only",
        "static_removal_not_persisted":
            "a static id that was removed or replaced since the last append comes back with a failover, and "
            "the process that has the new one is fenced",
        "static_replace_drops_revocation":
            "a static member that returns while it had something to revoke starts no rebalance, and nobody "
            "gets what the old process held",
        "static_replace_not_persisted": "a failover undoes the replacement of a static id",
        "sync_load_error_raw":
            "SyncGroup during load is answered with COORDINATOR_LOAD_IN_PROGRESS, which ends the client",
        # -- static members --
        "silent_static_claims_stale":
            "a static member that is silent through the join phase claims what it sent last, not what it was "
            "assigned since",
        "pending_sync_evicts_static":
            "a static member that is away is expelled one rebalance timeout after the join phase",
        "evict_static_on_rebalance_timeout":
            "static members that miss the join phase are expelled at its end",
        "static_rejoin_ignores_subscription":
            "a static member that returns to a stable group gets its old assignment, whatever it subscribes "
            "to",
        "static_leader_returns_as_follower":
            "a static leader that returns is told its old id as the leader's; decided by broker or client",
        "static_replace_in_completing_no_rebalance":
            "a static id is replaced while the leader assigns, and the new id is left without an assignment",
        "static_replace_only_stable":
            "a static id is replaced in a stable group only; before that both instances are members",
        # -- members that do not come --
        "new_member_never_expires": "a member that vanished during its first join stays for ever",
        "no_pending_sync_expiry": "members that heartbeat but never sync are waited for",
        "ghost_on_retry": "each JoinGroup without an id that is sent again makes another member",
        "pending_blocks_join": "ids handed out and never used keep the join phase open",
        "rebalance_timeout_zero": "the join phase ends at once, without the members that have yet to join",
        "max_size_counts_members": "group.max.size is compared with the wrong count of members",
    },
}  # fmt: skip

DECISIONS: dict[str, Decision] = {
    id_: Decision(id_, where, sentence)
    for where, sentences in _SENTENCES.items()
    for id_, sentence in sentences.items()
}
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
