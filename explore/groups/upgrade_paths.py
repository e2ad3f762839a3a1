"""Ways from one assignor list to another: the lists and releases that every member is restarted with.

Whether a way is safe says the search of ``upgrades``, not its reputation. Kafka Streams has ways of its own,
which follow the releases before and after.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from rebalance_verifier.base.names import unknown
from rebalance_verifier.explore.groups.scenarios import COOPERATIVE, UNIFORM, ScenarioError, runs
from rebalance_verifier.model.assignors import NAMES
from rebalance_verifier.model.bugs.profiles import (
    AS_SPECIFIED,
    client,
    consumer_protocol_trouble,
    list_trouble,
)
from rebalance_verifier.model.bugs.releases import CURRENT, Version, dotted, kafka, version
from rebalance_verifier.model.group.setup import CONSUMER, ConsumerConfig

STREAMS = "streams"
"""A Kafka Streams application: one assignor name for ever, EAGER before 2.4 and COOPERATIVE after."""

CHOICES = (*NAMES, "default", STREAMS, CONSUMER)
"""What ``rebalance upgrade`` takes for ``--from`` and ``--to``; ``default`` is the list of the release,
``consumer`` the consumer protocol (KIP-848). Besides, lists of assignors: ``range,cooperative-sticky``."""

COOPERATIVE_SINCE: Version = (2, 4)
"""Kafka Streams since this release lists COOPERATIVE beside EAGER; ``upgrade.from`` keeps it EAGER."""

COOPERATIVE_ALONE: Version = (4, 0)
"""Since this release it lists COOPERATIVE alone. ``upgrade.from`` of 2.3 or older is a ConfigException: of
the assignor in 4.0 and 4.1, of StreamsConfig since 4.2 (read in all jars since 4.0.0)."""

BRIDGE = "3.9"
"""The last minor release that an EAGER application can go to while it runs."""


@dataclass(frozen=True, kw_only=True)
class Path:
    """One way to upgrade: the configurations one after the other, and what to do in each round.

    ``rollout``: when members are stopped and started (``Setup``). ``shows_with``: a group of fewer members
    or partitions cannot show what is known to break this way.
    """

    name: str
    sentence: str
    stages: tuple[ConsumerConfig, ...]
    plan: tuple[str, ...]
    rollout: str = "any"
    shows_with: tuple[int, int] = (1, 1)

    def shown_by(self, members: int, partitions: int) -> bool:
        """Check whether a group of this size can show what is known to break this way."""
        return members >= self.shows_with[0] and partitions >= self.shows_with[1]

    @property
    def converts(self) -> bool:
        """Check whether it goes from one group protocol to the other."""
        return len({stage.group_protocol for stage in self.stages}) > 1

    @property
    def agrees(self) -> bool:
        """Check whether each round shares an assignor with the one before: a legal upgrade of KIP-429."""
        return all(set(a.assignors) & set(b.assignors) for a, b in pairwise(self.stages))


@dataclass(frozen=True, kw_only=True)
class Hop:
    """The ways from ``old`` to ``new``, the recommended one first; ``notes`` are for those who follow it."""

    old: str
    new: str
    paths: tuple[Path, ...]
    notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """Return where it goes from and to."""
        return f"{self.old} to {self.new}"


def hops(old: str, new: str, via: Sequence[str] = (), profile: str = AS_SPECIFIED) -> tuple[Hop, ...]:
    """Return the hops from ``old`` by way of ``via`` to ``new`` (of ``CHOICES``; Streams with a release too).

    Raises ScenarioError for names that are unknown or equal, or of which only one is Streams.
    """
    names = tuple(map(_checked, (old, *via, new)))
    if any(map(_is_streams, names)):
        if not all(map(_is_streams, names)) or via:
            raise ScenarioError("a Streams application keeps its own assignor: --from streams --to streams")
        return _numbered(_streams(old, new, profile))
    for first, last in pairwise(names):
        if _list(first, profile) == _list(last, profile):
            both = f"both {first}" if first == last else f"{first} and {last}, one list"
            raise ScenarioError(f"--from and --to are {both}: nothing changes")
    return _numbered(
        Hop(old=first, new=last, paths=paths(first, last, profile), notes=_notes(first, last, profile))
        for first, last in pairwise(names)
    )


def _checked(name: str) -> str:
    """Return a name of ``CHOICES``, a release of Streams, or a list without blanks. Raises ScenarioError."""
    if name in CHOICES or _is_streams(name):
        return name
    parts = [part.strip() for part in name.strip("[] ").split(",")]
    among = CHOICES if len(parts) == 1 else NAMES
    for part in parts:
        if part not in among:
            raise ScenarioError(unknown("assignor to upgrade from or to", part, among))
        if parts.count(part) > 1:
            raise ScenarioError(f"{name}: {part} is in the list twice")
    return ",".join(parts)


def _notes(old: str, new: str, profile: str) -> tuple[str, ...]:
    """Say what to do where no member runs with the list that a double bounce goes through."""
    first, last = _list(old, profile), _list(new, profile)
    trouble = "" if CONSUMER in (old, new) else list_trouble(client(profile), _both(first, last))
    if not trouble or set(first) & set(last):
        return ()
    text = (
        f"{trouble}, so there is no double bounce: stop all members, wait until the group is empty, and "
        f"start them with {_spelled(last)}; an empty group takes any list"
    )
    return (text,)


def _numbered(found: Iterable[Hop]) -> tuple[Hop, ...]:
    """Return hops whose paths have names of their own: 1/double-bounce, 2/offline, where they are several."""
    hops = tuple(found)
    if len(hops) == 1:
        return hops
    return tuple(
        replace(hop, paths=tuple(replace(path, name=f"{number}/{path.name}") for path in hop.paths))
        for number, hop in enumerate(hops, 1)
    )


def paths(old: str, new: str, profile: str = AS_SPECIFIED) -> tuple[Path, ...]:
    """Return the ways from one assignor list to another, the recommended one first."""
    first, last = _list(old, profile), _list(new, profile)
    for name, listed in ((old, first), (new, last)):
        if trouble := list_trouble(client(profile), listed):
            raise ScenarioError(f"--release: {trouble}: no group of it goes from or to {name}")
    start, end = runs(profile, first), runs(profile, last)
    if CONSUMER in (old, new):
        if trouble := consumer_protocol_trouble(client(profile)):
            raise ScenarioError(f"--release: {trouble}")
        return tuple(_between_protocols(start, end))
    single = Path(
        name="single-bounce",
        sentence="every member goes from the old list to the new one at once",
        stages=(start, end),
        plan=(f"restart the members one by one with {_spelled(last)}",),
    )
    both, reverse = _both(first, last), _both(last, first)
    if set(first) & set(last) or list_trouble(client(profile), both):
        return (single,)
    return (
        _double("double-bounce", start, runs(profile, both), end, "old assignors first"),
        _double("double-bounce-new-first", start, runs(profile, reverse), end, "new assignors first"),
        single,
    )


def _list(name: str, profile: str) -> tuple[str, ...]:
    """Return the list of a name; what is the default depends on the client and its release."""
    if name == CONSUMER:
        return UNIFORM
    return client(profile).default_assignors if name == "default" else tuple(name.split(","))


def _both(first: tuple[str, ...], last: tuple[str, ...]) -> tuple[str, ...]:
    """Return the list that a double bounce goes through."""
    return tuple(dict.fromkeys((*first, *last)))


def _spelled(assignors: tuple[str, ...]) -> str:
    if assignors == UNIFORM:
        return "group.protocol = consumer"
    return f"partition.assignment.strategy = [{', '.join(assignors)}]"


def _between_protocols(start: ConsumerConfig, end: ConsumerConfig) -> Iterator[Path]:
    """From the classic protocol to the consumer protocol, or back; as specified there is no need to wait."""
    config = _spelled(end.assignors)
    if start.group_protocol == CONSUMER:
        config = f"group.protocol = classic and {config}"
    yield Path(
        name="online", sentence="members go over one by one, at any time", stages=(start, end),
        plan=(f"restart the members one by one with {config}",),
    )  # fmt: skip
    yield Path(
        name="online-settled", sentence="the same, and everybody waits until the group is stable",
        stages=(start, end),
        plan=(
            "wait until the group is stable; nobody else joins or leaves meanwhile",
            "stop one member, and wait until the group is stable",
            f"start it with {config}, and go on with the next",
        ),
        rollout="settled",
    )  # fmt: skip
    yield Path(
        name="offline", sentence="all members are stopped before the first goes over", stages=(start, end),
        plan=("stop all members, and wait until the group is empty", f"start them with {config}"),
        rollout="stopped",
    )  # fmt: skip


def _double(
    name: str, start: ConsumerConfig, middle: ConsumerConfig, end: ConsumerConfig, order: str
) -> Path:
    return Path(
        name=name,
        sentence=f"through a list with both, {order}",
        stages=(start, middle, end),
        plan=(
            f"restart the members one by one with {_spelled(middle.assignors)}",
            "wait until all of them run with it and the group is stable",
            f"restart the members one by one with {_spelled(end.assignors)}",
        ),
    )


# -- Kafka Streams ---------------------------------------------------------------------------------------


def _is_streams(name: str) -> bool:
    return re.fullmatch(rf"{STREAMS}([-: ].*)?", name) is not None


def eager_alone(old: str, release: str) -> str:
    """Say what to write where somebody gives the EAGER ``release`` of an application as the one to go to."""
    match = re.fullmatch(r"(?:java[-: ]?)?(\d+(?:\.\d+)+)", release)
    if not _is_streams(old) or match is None or version(match[1]) >= COOPERATIVE_SINCE:
        return ""
    return (
        f"{match[1]} is EAGER alone, and no release to go to; an application of it goes over {BRIDGE}: "
        f"write --from streams-{match[1]} --to streams"
    )


def _release(name: str, usual: Version) -> Version:
    """Return the release of ``streams-X.Y``, the ``usual`` one without any. Raises ScenarioError."""
    text = name.removeprefix(STREAMS).lstrip("-: ")
    try:
        found = version(text) if text else usual
        return found if found < COOPERATIVE_SINCE else kafka(dotted(found))
    except ValueError as error:
        raise ScenarioError(f"{name}: {error}") from error


def _streams(old: str, new: str, profile: str) -> Iterator[Hop]:
    """From one release of Kafka Streams to another. Raises ScenarioError."""
    of = client(profile)
    if of.name != AS_SPECIFIED and not of.name.startswith("java-"):
        raise ScenarioError(
            f"--release {profile}: Kafka Streams runs on the Java client: write a release of Kafka, such as "
            f"{dotted(CURRENT)}"
        )
    last = _release(new, of.release or CURRENT)
    first = _release(old, last)
    if last < COOPERATIVE_SINCE:
        raise ScenarioError(f"--to {new}: no way to a release before 2.4 is known; write 2.4 or newer")
    specified = profile == AS_SPECIFIED
    if first >= COOPERATIVE_SINCE:
        yield _cooperative_streams(old, first, last, specified=specified)
    elif last < COOPERATIVE_ALONE:
        yield _first_cooperative(old, first, last, specified=specified)
    else:
        bridge = kafka(BRIDGE)
        yield _first_cooperative(old, first, bridge, specified=specified)
        yield _cooperative_streams(f"{STREAMS}-{dotted(bridge)}", bridge, last, specified=specified)


def _instances(release: Version, *, specified: bool) -> ConsumerConfig:
    return runs(AS_SPECIFIED if specified else dotted(release), COOPERATIVE)


def _cooperative_streams(old: str, first: Version, last: Version, *, specified: bool) -> Hop:
    """Between releases that are COOPERATIVE nothing is to be agreed upon."""
    path = Path(
        name="single-bounce",
        sentence="every instance goes to the new release at once; both are COOPERATIVE",
        stages=(_instances(first, specified=specified), _instances(last, specified=specified)),
        plan=(f"restart the instances one by one with Kafka Streams {dotted(last)}",),
    )
    notes = []
    if old == STREAMS:
        bridge = (
            f"over {BRIDGE}, which can still be EAGER" if last >= COOPERATIVE_ALONE else "by upgrade.from"
        )
        notes.append(
            f"an application of 2.3 or older goes {bridge}: "
            f"rebalance upgrade --from streams-2.3 --to streams-{dotted(last)}"
        )
    if old == STREAMS or first < (3, 5):
        notes.append(
            "an application of 3.4 or older that aggregates tables, or of 3.3 or older that joins them by a "
            "foreign key, sets upgrade.from to its release in a first round, and leaves it out in a second: "
            "what it writes to its own topics has another form since"
        )
    return Hop(old=old, new=f"{STREAMS}-{dotted(last)}", paths=(path,), notes=tuple(notes))


def _first_cooperative(old: str, first: Version, last: Version, *, specified: bool) -> Hop:
    """KIP-429's path for Streams. Before 2.4 its assignor did not withhold what a member still owns."""
    eager = ConsumerConfig(
        assignors=COOPERATIVE, switches=("no_withhold",), version=1, tells=False, upgrade_from=True
    )
    new = _instances(last, specified=specified)
    setting = f"and upgrade.from = {dotted(first[:2])}"
    paths = (
        Path(
            name="upgrade.from",
            sentence="the new release stays EAGER in the first round, because upgrade.from is set",
            stages=(eager, replace(new, upgrade_from=True), new),
            plan=(
                f"restart the instances one by one with Kafka Streams {dotted(last)} {setting}",
                "wait until all of them run with it and the group is stable",
                "restart the instances one by one without upgrade.from",
            ),
        ),
        Path(
            name="single-bounce",
            sentence="every instance goes to the new release at once, without upgrade.from",
            stages=(eager, new),
            plan=(f"restart the instances one by one with Kafka Streams {dotted(last)}",),
            # An old leader that does not withhold, two new members, and of one of them a partition to take.
            shows_with=(3, 3),
        ),
    )
    return Hop(old=old, new=f"{STREAMS}-{dotted(last)}", paths=paths)
