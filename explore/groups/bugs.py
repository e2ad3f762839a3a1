"""For every switch of the protocol a group that shows it: the smallest that was found.

The catalogue (``model.bugs.catalogue``) says what happened, this says where to look: a scenario, its size,
and which faults it takes. ``clause`` is the clause that has to catch it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rebalance.explore.groups.scenarios import SCENARIOS, ScenarioSize
from rebalance.model.bugs.profiles import AS_SPECIFIED
from rebalance.model.protocol.setup import Setup
from rebalance.properties.group.clauses import CLAUSES

LASSO = "group/converges"


@dataclass(frozen=True, kw_only=True)
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
    client: str = AS_SPECIFIED

    def setup(self, *, on: bool = True) -> Setup:
        """The group; with ``on`` false everything is the same but the switch."""
        return self.run_by(self.client, AS_SPECIFIED, (*((self.switch,) if on else ()), *self.also))

    def run_by(self, member: str, coordinator: str, switches: tuple[str, ...] = ()) -> Setup:
        """The group with members and a coordinator of these releases, and ``switches`` besides."""
        size = ScenarioSize(
            members=self.members,
            partitions=self.partitions,
            profiles=(member,),
            broker=coordinator,
            faults=self.faults,
            budget=len(self.faults) if self.budget is None else self.budget,
            switches=switches,
        )
        return SCENARIOS[self.scenario].setup(size)


_TABLE = (
    # -- what a member claims --
    Shown(switch="claims_always_empty", clause="group/owner", scenario="dynamic"),
    Shown(switch="keep_owned_on_sync_rip", clause="leader/label", scenario="dynamic", members=3),
    Shown(switch="unsorted_metadata", clause="coordinator/repeat", scenario="dynamic", members=2,
        partitions=1, faults=("disconnect",)),
    # -- how it gives up a membership --
    Shown(switch="prepare_not_repeated_after_reset", clause="group/owner", scenario="dynamic", members=2,
        partitions=1, faults=("pause",)),
    Shown(switch="prepare_once_per_rebalance", clause="group/owner", scenario="dynamic", members=2,
        partitions=1, faults=("pause",)),
    Shown(switch="clear_member_id_on_illegal_generation", clause="error/id", scenario="failover", members=2,
        partitions=1, faults=("failover",)),
    Shown(switch="reset_on_sync_rip", clause="error/retriable", scenario="dynamic", members=3, partitions=1),
    Shown(switch="reset_on_retriable", clause="error/retriable", scenario="dynamic", members=1, partitions=1,
        faults=("disconnect",)),
    Shown(switch="no_sent_generation_check", clause="error/old", scenario="dynamic", members=2, partitions=1,
        faults=("late request",)),
    Shown(switch="late_commit_resets", clause="error/old", scenario="dynamic", members=2, partitions=1,
        faults=("late request",)),
    Shown(switch="commit_illegal_generation_always_lost", clause="error/old", scenario="dynamic", members=2,
        partitions=1, faults=("late request",)),
    Shown(switch="commit_error_no_rejoin", clause="error/membership", scenario="dynamic", members=2,
        partitions=1, faults=("late request", "session timeout")),
    Shown(switch="no_rejoin_after_illegal_generation", clause="error/membership", scenario="failover",
        members=2, partitions=1, faults=("failover",)),
    Shown(switch="join_rip_fatal", clause="poll/throws", scenario="dynamic", members=1, partitions=1,
        faults=("append fails",)),
    Shown(switch="static_forgets_id", clause="poll/throws", scenario="static", members=1, partitions=1,
        faults=("slow network", "unsubscribe")),
    # -- how it rejoins --
    Shown(switch="rejoin_flag_not_latched", clause=LASSO, scenario="growing-eager", members=1, partitions=1,
           faults=("topic grows", "topic shrinks", "disconnect")),
    Shown(switch="joinfuture_not_cleared", clause=LASSO, scenario="dynamic", members=1, partitions=1,
        faults=("slow network", "max poll")),
    Shown(switch="no_rejoin_after_revoke", clause="callback/rejoin", scenario="dynamic"),
    Shown(switch="protocol_flag_inconsistent", clause="group/owner", scenario="default"),
    Shown(switch="no_revoke_on_protocol_downgrade", clause="group/owner", scenario="downgrade"),
    Shown(switch="leave_on_empty_assignment", clause=LASSO, scenario="dynamic", members=2, partitions=1),
    Shown(switch="no_leave_on_unsubscribe", clause="leave/sent", scenario="dynamic", members=1, partitions=1,
        faults=("unsubscribe",)),
    Shown(switch="assign_during_close_hangs", clause=LASSO, scenario="dynamic", members=1, partitions=1,
        faults=("slow network", "close")),
    Shown(switch="no_heartbeat_in_completing", clause=LASSO, scenario="dynamic", members=1, partitions=1),
    # -- what its listener is told --
    Shown(switch="assign_before_revoke_cb", clause="callback/owned", scenario="dynamic"),
    Shown(switch="skip_empty_assigned_cb", clause="callback/assigned", scenario="dynamic", members=2,
        partitions=1),
    Shown(switch="assigned_cb_repeated", clause="callback/assigned", scenario="dynamic"),
    Shown(switch="lost_as_revoked", clause="callback/lost", scenario="dynamic", members=1, partitions=1,
        faults=("max poll",)),
    Shown(switch="clear_before_leave_prepare", clause="leave/callback", scenario="dynamic", members=1,
        partitions=1, faults=("close",)),
    Shown(switch="abort_on_callback_exception", clause="callback/assigned", scenario="dynamic", members=2,
        partitions=2, faults=("listener throws",)),
    Shown(switch="no_snapshot_before_callback", clause="callback/generation", scenario="dynamic", members=1,
        partitions=1,
           faults=("slow network", "max poll")),
    Shown(switch="metadata_after_revoke", clause="callback/generation", scenario="dynamic"),
    Shown(switch="prepare_commit_never_done", clause=LASSO, scenario="dynamic", members=2, partitions=1,
        faults=("slow commit",)),
    Shown(switch="fetch_while_pending_revocation", clause="callback/fetch", scenario="eager", members=2,
        partitions=1, faults=("slow commit",)),
    Shown(switch="eager_revoke_keeps_last_assigned", clause="callback/told", scenario="eager"),
    Shown(switch="offset_fetch_not_resumed", clause=LASSO, scenario="dynamic", members=2, partitions=1),
    # -- the leader --
    Shown(switch="validate_raw_claims", clause="poll/throws", scenario="dynamic", members=3, partitions=3,
        also=("max_generation_only",)),
    Shown(switch="leader_watches_own_topics", clause=LASSO, scenario="apart", members=2, partitions=2,
        faults=("topic grows",)),
    Shown(switch="no_withhold", clause="group/owner", scenario="dynamic"),
    Shown(switch="max_generation_only", clause="group/owner", scenario="dynamic", members=3, partitions=3),
    Shown(switch="trust_all_claims", clause="leader/grant", scenario="dynamic", members=3, partitions=2,
        faults=("pause",),
           also=("prepare_not_repeated_after_reset",)),
    # -- the coordinator --
    Shown(switch="persist_selected_protocol_only", clause="poll/throws", scenario="mixed-failover", members=2,
        partitions=1, faults=("failover",)),
    Shown(switch="static_replace_not_persisted", clause="poll/throws", scenario="static-failover", members=1,
        partitions=1, faults=("crash", "failover")),
    Shown(switch="static_removal_not_persisted", clause="poll/throws", scenario="static-failover", members=1,
        partitions=1, faults=("crash", "failover")),
    Shown(switch="sync_load_error_raw", clause="poll/throws", scenario="failover", members=1, partitions=1,
        faults=("failover",)),
    Shown(switch="silent_static_claims_stale", clause="group/owner", scenario="static", members=2,
        partitions=1, faults=("pause",)),
    Shown(switch="pending_sync_evicts_static", clause="coordinator/keep", scenario="static", members=2,
        partitions=1, faults=("crash",)),
    Shown(switch="evict_static_on_rebalance_timeout", clause="coordinator/keep", scenario="static", members=2,
        partitions=1, faults=("crash",)),
    Shown(switch="static_rejoin_ignores_subscription", clause="coordinator/static", scenario="static-topics",
        members=1, partitions=2,
           faults=("resubscribe", "crash")),
    Shown(switch="static_replace_drops_revocation", clause=LASSO, scenario="static", members=2, partitions=2,
        faults=("crash",)),
    Shown(switch="static_leader_returns_as_follower", clause="coordinator/leader", scenario="static",
        members=1, partitions=1, faults=("crash",)),
    Shown(switch="static_replace_in_completing_no_rebalance", clause="coordinator/static", scenario="static",
        members=1, partitions=1, faults=("crash",)),
    Shown(switch="static_replace_only_stable", clause="group/instance", scenario="static", members=2,
        partitions=1, faults=("crash",)),
    Shown(switch="new_member_never_expires", clause=LASSO, scenario="dynamic", members=1, partitions=1,
        faults=("crash",)),
    Shown(switch="no_pending_sync_expiry", clause=LASSO, scenario="dynamic", members=2, partitions=1,
        faults=("hang",)),
    Shown(switch="ghost_on_retry", clause="coordinator/admit", scenario="dynamic", members=1, partitions=1,
        faults=("disconnect",)),
    Shown(switch="pending_blocks_join", clause=LASSO, scenario="dynamic", members=2, partitions=1,
        faults=("crash",)),
    Shown(switch="rebalance_timeout_zero", clause=LASSO, scenario="dynamic", members=2, partitions=1),
    Shown(switch="max_size_counts_members", clause="group/size", scenario="crowded", members=2, partitions=1),
)  # fmt: skip

SHOWN: Mapping[str, Shown] = {shown.switch: shown for shown in _TABLE}
"""Where each switch shows, by switch."""

assert all(shown.clause in CLAUSES for shown in _TABLE)
