"""``replay``: a saved run against real clients or Kafka's own code, as often as it takes to know."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice, permutations
from pathlib import Path

from rebalance_verifier.base.names import unknown
from rebalance_verifier.explore.groups.runs import SavedRun
from rebalance_verifier.live.clients.clusters.defaults import PATIENCE
from rebalance_verifier.live.clients.consumers.member import ClientProfile
from rebalance_verifier.live.clients.replay.replay_plan import replay_plan
from rebalance_verifier.live.clients.replay.replayer import TraceReplayer
from rebalance_verifier.live.clients.replay.scene import ReplayScene
from rebalance_verifier.live.clients.replay.verdict import LEADER, Replayed
from rebalance_verifier.live.code.replay.group import CodeReleases
from rebalance_verifier.live.conformance.clients.table import BY_RECORDER
from rebalance_verifier.model.bugs.releases import spelled

TRIES = 3
"""How often a trace is played at most when a client went another way."""


def peer(name: str) -> ClientProfile | CodeReleases:
    """Return what ``--on`` names: a client, or releases of Kafka's code: ``code:newest``, or its parts,
    ``coordinator:4.1.0,consumer:2.8.1``. Raises ValueError.
    """
    if name.startswith(("code:", "coordinator:", "consumer:")):
        return code_releases(name)
    client, _, version = name.partition(":")
    if client not in BY_RECORDER:
        raise ValueError(unknown("client", client, [*BY_RECORDER, "code:RELEASE"]))
    if version and client != "java":
        raise ValueError(f"{client} runs in the release that is installed, not in {version!r}")
    if client == "java" and not version:
        raise ValueError("which release of kafka-clients? --on java:newest, for instance")
    return ClientProfile(client, spelled(version))


def code_releases(name: str) -> CodeReleases:
    """Return what ``code:newest`` or a release names, or its parts: in ``coordinator:4.1.0,consumer:2.8.1,
    consumer:3.9.2`` members have two releases in turn. Raises ValueError.
    """
    parts = [part.partition(":")[::2] for part in name.split(",")]
    known = {
        kind: tuple(spelled(release) for one, release in parts if one == kind and release)
        for kind in ("code", "coordinator", "consumer")
    }
    coordinators = known["coordinator"] or known["code"]
    consumers = known["consumer"] or known["code"]
    if len(parts) != sum(map(len, known.values())) or len(coordinators) != 1 or not consumers:
        raise ValueError(f"{name!r}: write code:RELEASE or coordinator:RELEASE,consumer:RELEASE")
    return CodeReleases(coordinator=coordinators[0], consumers=consumers)


def replay(
    run: SavedRun,
    profile: ClientProfile,
    *,
    patience: float = PATIENCE,
    attempts: int | None = None,
    log_dir: Path | None = None,
    report_progress: Callable[[str], None] = lambda text: None,
) -> Replayed:
    """Play ``run`` against clients of ``profile``, until one of several attempts tells for certain.

    Member ids are the coordinator's to give, and assignors sort by them: under another order the leader
    may decide as the trace has it. ``attempts`` bounds how many orders are tried (None: all), each up to
    ``TRIES`` times where a client went another way, since clients have threads of their own.
    Ctrl-C ends it with what is known (``interrupted``).
    Raises ToolError when a client cannot be started, Unsupported when it cannot run as the trace has
    it, CannotHappenError when the model does not allow the trace.
    """
    setup, steps = replay_plan(run)
    results: list[Replayed] = []
    for order in islice(permutations(setup.slots), attempts):
        for _ in range(TRIES):
            scene = ReplayScene(
                run=run, setup=setup, profile=profile, order=order, patience=patience, log_dir=log_dir
            )
            with TraceReplayer(scene) as replayer:
                try:
                    replayer.play(steps)
                except KeyboardInterrupt:
                    replayer.result.stopped, replayer.result.interrupted = "interrupted", True
            results.append(replayer.result)
            if replayer.result.interrupted:
                return replayer.result
            if not replayer.result.stopped:
                break
            report_progress(f"once more: {replayer.result.stopped}")
        best = min(results, key=lambda result: result.rank)
        if best.verdict in ("same", "none") or not any(LEADER in reason for reason in best.unforced):
            break
        report_progress(f"member ids in another order: {best.unforced[0]}")
    else:
        if attempts is None:
            why = "no order of member ids makes it decide as in the trace"
            for result in results:  # that is how this client is
                own = [reason for reason in result.unforced if LEADER in reason]
                result.unforced = [reason for reason in result.unforced if reason not in own]
                result.differs += [f"{reason}, and {why}" for reason in own]
    return min(results, key=lambda result: result.rank)
