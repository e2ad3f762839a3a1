"""Each design switch of the model against the logic: which action of it the wrong step is not.

The logic is the protocol as specified, so a group with a switch on takes a step that it has no action for,
or comes into a state in which an invariant is broken. Where neither happens the reason is one of ``UNSEEN``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rebalance.model.protocol.setup import Setup
from rebalance.specs.refinement.refinement import Refinement, RefinementFailure, failures

UNSEEN: Mapping[str, str] = {
    "unsorted_metadata": "the order of bytes is not in the logic, where a member may always join anew",
    "prepare_commit_never_done": "a consumer that waits for ever: it only leaves steps out",
    "new_member_never_expires": "a timeout that never comes: it only leaves steps out",
    "no_pending_sync_expiry": "a timeout that never comes: it only leaves steps out",
    "pending_blocks_join": "a join phase that never ends: it only leaves steps out",
    "leader_watches_own_topics": "a leader that does not rejoin: it only leaves steps out",
    "metadata_after_revoke": "what a callback reads in the group metadata is not in the logic",
    "fetch_while_pending_revocation": "what is read is not in the logic, only what is owned",
    "offset_fetch_not_resumed": "what is read is not in the logic, only what is owned",
    "validate_raw_claims": "the leader refuses a lawful assignment; in the logic any assignor may throw",
    "static_leader_returns_as_follower": "whether who skips the assignment leads is not in the logic",
    "max_size_counts_members": "in the logic the coordinator may always say that the group is full",
}
"""The switches that the logic does not see, each with the reason."""


def first_failure(on: Setup, off: Setup) -> RefinementFailure | None:
    """What a switch breaks: the first failure ``on`` of a kind that is not among those ``off``.

    ``off`` is the same group without the switch; it has failures only where it needs another one.
    """
    known = {failure.name for failure in failures(Refinement(off))}
    return next((failure for failure in failures(Refinement(on)) if failure.name not in known), None)


def table(switches: Mapping[str, tuple[Setup, Setup]]) -> Iterable[tuple[str, RefinementFailure | str]]:
    """For each switch, given the group with and without it: what it breaks, or why the logic does not see it.

    Raises KeyError for one that breaks nothing for no known reason.
    """
    for switch, (on, off) in switches.items():
        yield switch, first_failure(on, off) or UNSEEN[switch]
