"""Release profiles: how a client or a broker behaves as shipped, as a set of design switches.

What belongs to a profile is computed from the catalogue: a decision is in it when the release lies among
those that have the decision. By hand are only the releases, and what was read in a client's own code
without being a bug that it has an entry for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rebalance_verifier.base.names import unknown
from rebalance_verifier.model.bugs import catalogue
from rebalance_verifier.model.bugs.decisions import DECISIONS
from rebalance_verifier.model.bugs.releases import CURRENT, Version, dotted, kafka, parse, version
from rebalance_verifier.model.bugs.switches import SWITCHES

Kind = Literal["client", "broker"]

AS_SPECIFIED = "as-specified"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseProfile:
    """One release. ``decisions`` are ids of ``model.bugs.decisions``.

    ``switches`` are those of ``model.bugs.switches`` for its cooperative-sticky assignor, in the
    order to apply them. ``release`` is the one it was computed for. ``metadata_version`` is the highest
    subscription version it writes (0 of a broker: none); ``user_data_generation`` whether its
    CooperativeStickyAssignor writes one there (KAFKA-12984). ``lacks`` are Kafka's assignors that the client
    has not; ``mixes`` tells whether it takes a list of EAGER and COOPERATIVE ones (L9, K3).
    """

    name: str
    kind: Kind
    notes: str
    release: Version = ()
    decisions: frozenset[str] = frozenset()
    switches: tuple[str, ...] = ()
    default_assignors: tuple[str, ...] = ()
    metadata_version: Literal[0, 1, 3] = 0
    user_data_generation: bool = False
    lacks: frozenset[str] = frozenset()
    mixes: bool = True

    @property
    def title(self) -> str:
        """Return how people call it: the product and its release, or "as specified"."""
        if self.name == AS_SPECIFIED:
            return "as specified"
        return f"{'coordinator' if self.kind == 'broker' else self._product} {dotted(self.release)}"

    @property
    def project(self) -> str:
        """Return how ``model.bugs.releases`` calls the product."""
        return "Java" if self._product == "java" else self._product

    @property
    def _product(self) -> str:
        return re.sub(r"-(current|[\d.]+)$", "", self.name)


INERT: dict[str, str] = {
    "validate_raw_claims": "the leader of the model validates; the decision of this name is in the profile",
    "claims_always_empty": "the member of the model claims; the decision of this name is in the profile",
    "quadratic_general": "the same result, later",
    "is_balanced_off_by_one": "the same result, later",
    "duplicate_claims_counted": "no member of the model claims a partition twice",
    "duplicate_claims_cancel": "no member of the model claims a partition twice",
}
"""Assignor-level switches that are left out of every profile, and why nothing is lost by that."""

YIELDS: dict[str, str] = {"third_round_general": "trust_all_claims"}
"""Of two switches that replace the same stage, the first gives way where a release has the second too."""


def decisions_in(product: str, release: Version) -> frozenset[str]:
    """Return the decisions that ``release`` of ``product`` has."""
    return frozenset(_in(DECISIONS, product, release))


def switches_in(product: str, release: Version) -> tuple[str, ...]:
    """Return the switches of cooperative-sticky in ``release`` of ``product``, as far as they can be told
    apart."""
    fitting = (id_ for id_, switch in SWITCHES.items() if "cooperative-sticky" in switch.fits)
    found = [id_ for id_ in _in(fitting, product, release) if id_ not in INERT]
    return tuple(id_ for id_ in found if YIELDS.get(id_) not in found)


def _in(ids: Iterable[str], product: str, release: Version) -> list[str]:
    return [id_ for id_ in ids if parse(catalogue.shipped(id_)).includes(product, release)]


# -- clients -----------------------------------------------------------------------------------------------

RANGE_FIRST = ("range", "cooperative-sticky")
"""The default list of Java since 3.0.0 (KAFKA-12487); by its first entry it is EAGER."""


def _java(name: str, release: Version, notes: str) -> ReleaseProfile:
    return ReleaseProfile(
        name=name,
        kind="client",
        release=release,
        decisions=decisions_in("Java", release),
        switches=switches_in("Java", release),
        default_assignors=RANGE_FIRST if release >= (3, 0, 0) else ("range",),
        metadata_version=3 if release >= (3, 4, 0) else 1,
        user_data_generation=release >= (2, 8, 1),
        notes=notes,
    )


def _other(
    name: str,
    product: str,
    release: Version,
    metadata_version: Literal[0, 1, 3],
    notes: str,
    also: Mapping[str, str] | None = None,
    default_assignors: tuple[str, ...] = ("range", "roundrobin"),
    lacks: str = "",
) -> ReleaseProfile:
    """Return a client that is not Java: its own entries, and ``also`` (id -> how it was found to have it)."""
    read = also or {}
    return ReleaseProfile(
        name=name,
        kind="client",
        release=release,
        decisions=decisions_in(product, release) | {id_ for id_ in read if id_ in DECISIONS},
        switches=(*switches_in(product, release), *(id_ for id_ in read if id_ not in DECISIONS)),
        default_assignors=default_assignors,
        metadata_version=metadata_version,
        lacks=frozenset(filter(None, [lacks])),
        mixes=False,
        notes="; ".join([notes, *(f"{id_}: {reason}" for id_, reason in read.items())]),
    )


LIBRDKAFKA_READ: dict[str, str] = {
    "static_leader_returns_as_follower": "JoinGroup is sent in version 5 at most, KIP-814 needs 9",
}
"""What librdkafka's bytes show (model/written.toml), as below."""

KAFKA_PYTHON_READ: dict[str, str] = {
    "no_sent_generation_check": "base.py, _handle_heartbeat_response resets without looking at what was sent",
    "no_heartbeat_in_completing": "base.py, the heartbeat is off from JoinGroup until SyncGroup's answer",
    "commit_illegal_generation_always_lost": "consumer.py, a refused commit resets in whatever state",
    "static_forgets_id": "base.py, maybe_leave_group_async resets, and sends LeaveGroup if dynamic",
    "static_leader_returns_as_follower": "base.py, JoinGroup is sent in version 7 at most, KIP-814 needs 9",
    "last_claim_wins": "claims have no generation, and of several on a partition one counts (here the first, "
    "and only the last does not wait for it)",
}
"""What kafka-python 3.0.12 was found to do in its own code, each by the id of a switch that others have an
entry for."""

AIOKAFKA_READ: dict[str, str] = {
    "lost_as_revoked": "a listener has no on_partitions_lost; _on_join_prepare revokes what was owned",
    "clear_before_leave_prepare": "close and unsubscribe call no listener",
    "no_heartbeat_in_completing": "ensure_active_group, the heartbeat is off from JoinGroup until the "
    "callbacks",
    "commit_illegal_generation_always_lost": "_do_commit_offsets, a refused commit resets in whatever state",
    "static_forgets_id": "_maybe_leave_group resets, and sends LeaveGroup if dynamic",
    "static_leader_returns_as_follower": "JoinGroup is sent in version 5 at most, KIP-814 needs 9",
}
"""What aiokafka 0.14.0 was found to do in its own code (consumer/group_coordinator.py), as above."""

_CLIENTS = (
    ReleaseProfile(name=AS_SPECIFIED, kind="client", default_assignors=RANGE_FIRST, metadata_version=3,
        user_data_generation=True, notes="the KIPs, after correction"),
    _java("java-2.4", version("2.4.1"), "the first with KIP-429; 2.4.1 was run"),
    _java("java-2.6", version("2.6.0"), "constrained sticky algorithm, enforceRebalance"),
    _java("java-2.8.0", version("2.8.0"), "the last with KAFKA-12983 and KAFKA-12984"),
    _java("java-2.8.1", version("2.8.1"), "claims have a generation, and only the newest counts"),
    _java("java-3.0", version("3.0.0"), "cooperative-sticky is in the default list"),
    _java("java-3.3.1", version("3.3.1"), "a refused SyncGroup resets (with 3.3.0 only)"),
    _java("java-3.4.0", version("3.4.0"), "KIP-792: the generation is a field of the subscription"),
    _java("java-3.5", version("3.5.0"), "claims are settled partition by partition"),
    _java("java-current", CURRENT, f"{dotted(CURRENT)}, the newest release"),
    _other(
        "librdkafka-1.6", "librdkafka", version("1.6.0"), 1,
        "the first that is cooperative, with most of the bugs repaired since; the subscription version "
        "is inferred from its age", LIBRDKAFKA_READ, lacks="sticky",
    ),
    _other(
        "librdkafka", "librdkafka", version("2.10.0"), 3,
        "of the entries before L10 all but its design limit L9 end before it, by the releases that they "
        "name, and L11 is of all releases; its JoinGroups of 2.3.0 and 2.16.1 are alike; user data is that "
        "of StickyAssignor, with a generation that cooperative-sticky does not read; cannot mix eager and "
        "cooperative assignors",
        LIBRDKAFKA_READ, lacks="sticky",
    ),
    _other(
        "kafka-python", "kafka-python", version("3.0.12"), 1,
        "cooperative-sticky is COOPERATIVE only (K3)", KAFKA_PYTHON_READ,
    ),
    _other(
        "aiokafka", "aiokafka", version("0.14.0"), 0,
        "EAGER only: range, roundrobin and sticky, no claims", AIOKAFKA_READ, ("roundrobin",),
        "cooperative-sticky",
    ),
)  # fmt: skip

CLIENTS: dict[str, ReleaseProfile] = {profile.name: profile for profile in _CLIENTS}
"""Client profiles by name, the specification first, then by release."""

# -- brokers -----------------------------------------------------------------------------------------------


def _broker(name: str, release: Version, notes: str) -> ReleaseProfile:
    return ReleaseProfile(
        name=name,
        kind="broker",
        release=release,
        decisions=decisions_in("broker", release),
        notes=notes,
    )


_BROKERS = (
    ReleaseProfile(name=AS_SPECIFIED, kind="broker", notes="the KIPs, after correction"),
    _broker("broker-2.4", version("2.4.1"), "static membership as of KIP-345"),
    _broker("broker-2.6", version("2.6.0"), "a static replacement is not persisted yet"),
    _broker("broker-2.8.0", version("2.8.0"), "heartbeats between join and sync, and no expiry"),
    _broker("broker-3.0", version("3.0.0"), "pending syncs expire"),
    _broker("broker-3.2", version("3.2.0"), "KIP-814: a returning static leader knows that it leads"),
    _broker("broker-current", CURRENT, f"{dotted(CURRENT)}, the newest release"),
)

BROKERS: dict[str, ReleaseProfile] = {profile.name: profile for profile in _BROKERS}
"""Broker profiles by name, the specification first, then by release."""


NEWEST_CLIENT, NEWEST_BROKER = "java-current", "broker-current"
"""The profiles of the newest release."""


def client(name: str) -> ReleaseProfile:
    """Return the client profile ``name``; a release of Kafka is one of Java: 4.1.0, 4.1, java-4.1.0.

    Raises ValueError that says what to write.
    """
    if name in CLIENTS:
        return CLIENTS[name]
    release = _release(name, "client", "java|kafka-clients", CLIENTS)
    return _java(f"java-{dotted(release)}", release, "computed from the catalogue")


def broker(name: str) -> ReleaseProfile:
    """Return the broker profile ``name``; a release of Kafka is one: 4.1.0, 4.1, broker-4.1.0.

    Raises ValueError that says what to write.
    """
    if name in BROKERS:
        return BROKERS[name]
    release = _release(name, "broker", "broker|kafka", BROKERS)
    return _broker(f"broker-{dotted(release)}", release, "computed from the catalogue")


def _release(name: str, kind: Kind, products: str, profiles: Mapping[str, ReleaseProfile]) -> Version:
    """Return the release of Kafka that ``name`` spells, X.Y being the last of X.Y. Raises ValueError."""
    match = re.fullmatch(rf"(?:(?:{products})[-: ]?)?v?(\d+(?:\.\d+)+|newest)", name, re.IGNORECASE)
    if match is None:
        raise ValueError(unknown(f"release of a {kind}", name, profiles, "rebalance list releases"))
    return kafka(match[1].lower())


def profile_of_code(kind: Kind, release: str) -> str:
    """Return the name of the profile by which code of Kafka, or a recording of it, is judged.

    Code newer than what is known is judged as the newest that is: so it is where a release is new.

    >>> profile_of_code("client", "3.9.1"), profile_of_code("broker", "999.0.0")
    ('java-3.9.1', 'broker-current')
    """
    if version(release) > CURRENT:
        return NEWEST_CLIENT if kind == "client" else NEWEST_BROKER
    return f"{'java' if kind == 'client' else 'broker'}-{release}"


CONSUMER_SINCE: Version = (4, 0)
"""The first release of Kafka with the consumer protocol (KIP-848); what 3.7 to 3.9 had was a preview."""


def consumer_protocol_trouble(profile: ReleaseProfile) -> str:
    """Say why nothing is known of ``profile`` in the consumer protocol, "" where it is.

    The catalogue says nothing of a preview, which would make it look faultless.
    """
    of_kafka = profile.name.startswith(("java-", "broker-"))
    if profile.name == AS_SPECIFIED or (of_kafka and profile.release >= CONSUMER_SINCE):
        return ""
    return (
        f"{profile.title} is not known to speak the consumer protocol (KIP-848): Kafka does since "
        f"{dotted(CONSUMER_SINCE)}; write {dotted(CURRENT)} or {AS_SPECIFIED}"
    )


def list_trouble(profile: ReleaseProfile, assignors: Sequence[str]) -> str:
    """Say why no member of ``profile`` runs with this list of assignors, "" where one does."""
    lacking = [name for name in assignors if name in profile.lacks]
    if lacking:
        return f"{profile.title} has no {lacking[0]} assignor"
    if not profile.mixes and "cooperative-sticky" in assignors and len(assignors) > 1:
        return f"{profile.title} refuses a list of EAGER and COOPERATIVE assignors"
    return ""


WARMS_UP_SINCE = version("2.6.0")
"""The first release of Kafka Streams with warm-ups and probing rebalances (KIP-441)."""


def streams_trouble(profile: ReleaseProfile) -> str:
    """Say why no Kafka Streams with probing rebalances runs on the client ``profile``, "" where it does."""
    if profile.name == AS_SPECIFIED or (
        profile.name.startswith("java-") and profile.release >= WARMS_UP_SINCE
    ):
        return ""
    return (
        f"{profile.title} runs no Kafka Streams with probing rebalances (KIP-441): it runs on the Java "
        f"client, since {dotted(WARMS_UP_SINCE)}; write {dotted(CURRENT)} or {AS_SPECIFIED}"
    )


def group_title(clients: Sequence[str], coordinator: str) -> str:
    """Say of which coordinator and clients a group is, by the names of their profiles.

    >>> group_title(["as-specified"], "as-specified"), group_title(["as-specified"], "broker-2.8.0")
    ('as specified', 'coordinator 2.8.0, clients as specified')
    """
    titles = list(dict.fromkeys(client(one).title for one in clients))
    title = broker(coordinator).title
    if titles == [title]:
        return title
    return f"{'coordinator ' * (coordinator == AS_SPECIFIED)}{title}, clients {' and '.join(titles)}"


def group_options(clients: Sequence[str], coordinator: str) -> str:
    """Say how to ask for the other group: the newest release where one is as specified, and else that.

    >>> group_options(["java-2.8.0"], "broker-2.8.0")
    'as specified: --broker as-specified --release as-specified'
    """
    wanted = [option for option, names in (("--broker", [coordinator]), ("--release", clients))
              if AS_SPECIFIED in names]  # fmt: skip
    title, value = ("as released", dotted(CURRENT)) if wanted else ("as specified", AS_SPECIFIED)
    options = wanted or ("--broker", "--release")
    return f"{title}: {' '.join(f'{option} {value}' for option in options)}"
