"""For every switch of the protocol a group that shows it: the smallest that was found.

The catalogue (``model.catalogue``) says what happened, this says where to look: a scenario, its size, and
which faults it takes. ``clause`` is the clause that has to catch it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rebalance.explore.scenarios import SCENARIOS, Size
from rebalance.model.protocol.setup import Setup
from rebalance.properties.protocol import CLAUSES

LASSO = "group/converges"


@dataclass(frozen=True)
class Shown:
    """A group in which ``switch`` breaks ``clause``; ``also`` are switches that it takes besides.

    ``client`` is a release that has what the bug needs from its surroundings, such as older metadata.
    """

    switch: str
    clause: str
    scenario: str
    members: int = 2
    partitions: int = 2
    faults: tuple[str, ...] = ()
    budget: int | None = None
    also: tuple[str, ...] = ()
    client: str = "as-specified"

    def setup(self, *, on: bool = True) -> Setup:
        """The group; with ``on`` false everything is the same but the switch."""
        switches = (*((self.switch,) if on else ()), *self.also)
        budget = len(self.faults) if self.budget is None else self.budget
        size = Size(
            members=self.members,
            partitions=self.partitions,
            profiles=(self.client,),
            faults=self.faults,
            budget=budget,
            switches=switches,
        )
        return SCENARIOS[self.scenario].setup(size)


_TABLE = (
    # -- what a member claims --
    Shown("claims_always_empty", "group/owner", "dynamic"),
    Shown("keep_owned_on_sync_rip", "leader/label", "dynamic", 3),
    Shown("unsorted_metadata", "coordinator/repeat", "dynamic", 2, 1, ("disconnect",)),
    # -- how it gives up a membership --
    Shown("prepare_not_repeated_after_reset", "group/owner", "dynamic", 2, 1, ("pause",)),
    Shown("prepare_once_per_rebalance", "group/owner", "dynamic", 2, 1, ("pause",)),
    Shown("clear_member_id_on_illegal_generation", "error/id", "failover", 2, 1, ("failover",)),
    Shown("reset_on_sync_rip", "error/retriable", "dynamic", 3, 1),
    Shown("reset_on_retriable", "error/retriable", "dynamic", 1, 1, ("disconnect",)),
    Shown("no_sent_generation_check", "error/old", "dynamic", 2, 1, ("late request",)),
    Shown("late_commit_resets", "error/old", "dynamic", 2, 1, ("late request",)),
    Shown("commit_illegal_generation_always_lost", "error/old", "dynamic", 2, 1, ("late request",)),
    Shown("commit_error_no_rejoin", "error/membership", "dynamic", 2, 1, ("late request", "session timeout")),
    Shown("no_rejoin_after_illegal_generation", "error/membership", "failover", 2, 1, ("failover",)),
    Shown("join_rip_fatal", "poll/throws", "dynamic", 1, 1, ("append fails",)),
    Shown("static_forgets_id", "poll/throws", "static", 1, 1, ("slow network", "unsubscribe")),
    # -- how it rejoins --
    Shown("rejoin_flag_not_latched", LASSO, "growing-eager", 1, 1,
           ("topic grows", "topic shrinks", "disconnect")),
    Shown("joinfuture_not_cleared", LASSO, "dynamic", 1, 1, ("slow network", "max poll")),
    Shown("no_rejoin_after_revoke", "callback/rejoin", "dynamic"),
    Shown("protocol_flag_inconsistent", "group/owner", "default"),
    Shown("no_revoke_on_protocol_downgrade", "group/owner", "downgrade"),
    Shown("leave_on_empty_assignment", LASSO, "dynamic", 2, 1),
    Shown("no_leave_on_unsubscribe", "leave/sent", "dynamic", 1, 1, ("unsubscribe",)),
    Shown("assign_during_close_hangs", LASSO, "dynamic", 1, 1, ("slow network", "close")),
    Shown("no_heartbeat_in_completing", LASSO, "dynamic", 1, 1),
    # -- what its listener is told --
    Shown("assign_before_revoke_cb", "callback/owned", "dynamic"),
    Shown("skip_empty_assigned_cb", "callback/assigned", "dynamic", 2, 1),
    Shown("assigned_cb_repeated", "callback/assigned", "dynamic"),
    Shown("lost_as_revoked", "callback/lost", "dynamic", 1, 1, ("max poll",)),
    Shown("clear_before_leave_prepare", "leave/callback", "dynamic", 1, 1, ("close",)),
    Shown("abort_on_callback_exception", "callback/assigned", "dynamic", 2, 2, ("listener throws",)),
    Shown("no_snapshot_before_callback", "callback/generation", "dynamic", 1, 1,
           ("slow network", "max poll")),
    Shown("metadata_after_revoke", "callback/generation", "dynamic"),
    Shown("prepare_commit_never_done", LASSO, "dynamic", 2, 1, ("slow commit",)),
    Shown("fetch_while_pending_revocation", "callback/fetch", "eager", 2, 1, ("slow commit",)),
    Shown("eager_revoke_keeps_last_assigned", "callback/told", "eager"),
    Shown("offset_fetch_not_resumed", LASSO, "dynamic", 2, 1),
    # -- the leader --
    Shown("validate_raw_claims", "poll/throws", "dynamic", 3, 3, also=("max_generation_only",)),
    Shown("leader_watches_own_topics", LASSO, "apart", 2, 2, ("topic grows",)),
    Shown("no_withhold", "group/owner", "dynamic"),
    Shown("max_generation_only", "group/owner", "dynamic", 3, 3),
    Shown("trust_all_claims", "leader/grant", "dynamic", 3, 2, ("pause",),
           also=("prepare_not_repeated_after_reset",)),
    # -- the coordinator --
    Shown("persist_selected_protocol_only", "poll/throws", "mixed-failover", 2, 1, ("failover",)),
    Shown("static_replace_not_persisted", "poll/throws", "static-failover", 1, 1, ("crash", "failover")),
    Shown("static_removal_not_persisted", "poll/throws", "static-failover", 1, 1, ("crash", "failover")),
    Shown("sync_load_error_raw", "poll/throws", "failover", 1, 1, ("failover",)),
    Shown("silent_static_claims_stale", "group/owner", "static", 2, 1, ("pause",)),
    Shown("pending_sync_evicts_static", "coordinator/keep", "static", 2, 1, ("crash",)),
    Shown("evict_static_on_rebalance_timeout", "coordinator/keep", "static", 2, 1, ("crash",)),
    Shown("static_rejoin_ignores_subscription", "coordinator/static", "static-topics", 1, 2,
           ("resubscribe", "crash")),
    Shown("static_replace_drops_revocation", LASSO, "static", 2, 2, ("crash",)),
    Shown("static_leader_returns_as_follower", "coordinator/leader", "static", 1, 1, ("crash",)),
    Shown("static_replace_in_completing_no_rebalance", "coordinator/static", "static", 1, 1, ("crash",)),
    Shown("static_replace_only_stable", "group/instance", "static", 2, 1, ("crash",)),
    Shown("new_member_never_expires", LASSO, "dynamic", 1, 1, ("crash",)),
    Shown("no_pending_sync_expiry", LASSO, "dynamic", 2, 1, ("hang",)),
    Shown("ghost_on_retry", "coordinator/admit", "dynamic", 1, 1, ("disconnect",)),
    Shown("pending_blocks_join", LASSO, "dynamic", 2, 1, ("crash",)),
    Shown("rebalance_timeout_zero", LASSO, "dynamic", 2, 1),
    Shown("max_size_counts_members", "group/size", "crowded", 2, 1),
)  # fmt: skip

SHOWN: Mapping[str, Shown] = {shown.switch: shown for shown in _TABLE}
"""Where each switch shows, by switch."""

assert all(shown.clause in CLAUSES for shown in _TABLE)
