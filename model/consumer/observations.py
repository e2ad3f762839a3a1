"""What can be observed of a consumer group while it steps, beside the callbacks of the classic protocol."""

from __future__ import annotations

from typing import NamedTuple

from rebalance_verifier.model.consumer.state import BeatError, BeatKind
from rebalance_verifier.model.group.parts import Error, Generation, Parts, Slot


class Granted(NamedTuple):
    """The coordinator gave ``parts`` to ``who``; others held ``held``, ``foreign`` is not subscribed."""

    who: Slot
    parts: Parts
    held: Parts
    foreign: Parts


class Advanced(NamedTuple):
    """A heartbeat was accepted: epochs of its member, of the target and of the group, before and after."""

    who: Slot
    before: tuple[Generation, Generation, Generation]
    after: tuple[Generation, Generation, Generation]


class Acknowledged(NamedTuple):
    """A heartbeat that gives its sender's assignment as ``claim``; ``owned`` is what the client consumes."""

    who: Slot
    claim: Parts
    owned: Parts


class BeatAnswered(NamedTuple):
    """A heartbeat was refused. ``inside``: its member id is one of the group, and no other has its name.
    ``classic``: one that speaks the classic protocol has its name."""

    who: Slot
    kind: BeatKind
    error: BeatError
    inside: bool
    classic: bool = False


class Ended(NamedTuple):
    """The client cannot go on: poll throws ``error`` at the application."""

    who: Slot
    error: BeatError | Error


class Committed(NamedTuple):
    """A late commit for ``parts`` arrived; ``accepted`` of them were stored, ``held`` are its sender's."""

    who: Slot
    parts: Parts
    accepted: Parts
    held: Parts


class Targeted(NamedTuple):
    """A target that a heartbeat of ``who`` called for gives members these partitions, to which they do not
    subscribe."""

    who: Slot
    foreign: Parts
