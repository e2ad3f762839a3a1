"""What members and coordinators behave like, and which faults may happen, on the command line."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from rebalance_verifier.base.names import unknown
from rebalance_verifier.cli.console.terminal import UsageError, usage_errors
from rebalance_verifier.cli.shared.values import comma_separated

if TYPE_CHECKING:
    from rebalance_verifier.live.code.replay.group import CodeReleases

AS_SPECIFIED = "as-specified"


def releases(options: argparse.Namespace, usual: str = AS_SPECIFIED) -> tuple[str, ...]:
    """Return the profiles that ``--release`` names, in order; the ``usual`` one where it is not given.

    ``--broker`` becomes the name of its profile. Raises UsageError for a release that is not known.
    """
    from rebalance_verifier.model.bugs.profiles import broker, client

    named = tuple(name for several in options.release for name in several)
    if options.release and not named:
        raise UsageError("--release names no release")
    with usage_errors(ValueError, option="--release"):
        profiles = tuple(client(name).name for name in named)
    with usage_errors(ValueError, option="--broker"):
        options.broker = broker(options.broker).name
    return profiles or (usual,)


def faults(text: str | None) -> tuple[str, ...] | None:
    """Return the kinds of faults that ``--faults`` names; None where it is not given. Raises UsageError."""
    from rebalance_verifier.model.protocols import FAULTS

    if text is None:
        return None
    wanted = [word.replace("-", " ") for word in comma_separated(text)]
    if not wanted:
        raise UsageError("--faults names no fault: write all, none, or some of `rebalance list faults`")
    if wanted == ["none"]:
        return ()
    if "none" in wanted:
        raise UsageError(f"--faults {text}: none stands alone")
    if "all" in wanted:
        wanted = [*FAULTS, *(word for word in wanted if word != "all")]
    if others := [word for word in wanted if word not in FAULTS]:
        every = [*FAULTS, "all", "none"]
        raise UsageError(f"--faults: {unknown('fault', others[0], every, 'rebalance list faults')}")
    return tuple(fault for fault in FAULTS if fault in wanted)


def of_code(options: argparse.Namespace) -> CodeReleases:
    """Return the releases of Kafka's code that ``--code`` names. Raises UsageError."""
    from rebalance_verifier.live.code.replay.attempts import code_releases

    with usage_errors(ValueError, option="--code"):
        return code_releases(options.code if ":" in options.code else f"code:{options.code}")
