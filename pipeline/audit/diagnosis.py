"""From a finding to the mistakes of the catalogue that would show so, in the releases that the log names.

A mistake is ``shown`` where the log has what sets it apart. Of the others that break the same in the release
of whoever is concerned those may be it that a later release is without, and that no log can show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from rebalance_verifier.model.bugs.catalogue import CATALOGUE, Entry
from rebalance_verifier.model.bugs.observed import CONSUMER, OBSERVED
from rebalance_verifier.model.bugs.releases import Version, version
from rebalance_verifier.model.bugs.switches import SWITCHES
from rebalance_verifier.pipeline.audit.records import FindingOwner, LogEvent, LogFinding
from rebalance_verifier.pipeline.audit.sources.settling import LoggedClient

BREAKS = {
    "owned-twice": "DO",
    "granted-before-revoked": "DO",
    "stranded": "ST",
    "never-settles": "NC",
    "rebalance-storm": "NC",
    "needless-movement": "LS",
    "long-pause": "AV",
}
"""Check -> what an entry of the catalogue breaks that it finds. A zombie is no mistake of anybody's."""

PRODUCTS = {"java": "Java", "broker": "broker", "librdkafka": "librdkafka"}
"""Source of lines -> product of the catalogue. Python clients do not log their release."""

SINCE_CONSUMER_PROTOCOL: Version = (4, 0, 0)
"""Java clients from here on can speak the consumer protocol; of classic groups they log the assignor."""

MAX_SHOWN = 4


class BugLink(NamedTuple):
    """A mistake of the catalogue that a finding is, or may be.

    ``client``: whose release has it, a consumer or None for the coordinator; ``fixed``: the first release
    after this one without it, "" where there is none; ``why``: what in the log shows it, "" where nothing
    does.
    """

    bug: str
    client: str | None
    source: str
    release: str
    fixed: str
    why: str = ""

    @property
    def shown(self) -> bool:
        """Check whether the log has what distinguishes the bug."""
        return bool(self.why)


def diagnose(
    finding: LogFinding, events: Sequence[LogEvent], clients: Sequence[LoggedClient]
) -> tuple[BugLink, ...]:
    """Return the bugs that a finding is (all that are shown), or else may be; ``events`` are those around it,
    ``clients`` those of its group."""
    broken = BREAKS.get(finding.check)
    mine = [one for one in clients if one.release]
    found: dict[str, BugLink] = {}
    for entry in CATALOGUE.values() if broken and mine else ():
        if broken in entry.breaks:
            for client in _concerned(entry, finding, events, mine):
                why = EVIDENCE[entry.id](finding, events) if entry.id in EVIDENCE else ""
                if not why and (entry.id in EVIDENCE or not _fixed(entry, client)):
                    continue  # the log would show it; or it would be no help
                who = client.consumer, client.source, client.release or ""
                found.setdefault(entry.id, BugLink(entry.id, *who, _fixed(entry, client), why))
    shown = [one for one in found.values() if one.shown]
    return tuple(shown or sorted(found.values(), key=_last_of_all)[:MAX_SHOWN])


def _last_of_all(one: BugLink) -> tuple[bool, bool]:
    """Of those that may be it, first what is fixed, and what is in a ticket."""
    return not one.fixed, one.bug.startswith("U")


def sentences(diagnoses: Sequence[BugLink]) -> list[str]:
    """Return the sentences about a finding: a sentence for each that is shown, one for all that may be."""
    found = []
    for one in diagnoses:
        if one.shown:
            title = CATALOGUE[one.bug].title
            found.append(f"this is {one.bug}, {_until(one)}: {title} ({one.source} {one.release}; {one.why})")
    if not found and diagnoses:
        several = ", ".join(f"{one.bug} ({one.source} {one.release}, {_until(one)})" for one in diagnoses)
        found.append(f"may be {several}: rebalance bugs ID says what that is")
    return found


def _until(one: BugLink) -> str:
    return f"fixed in {one.fixed}" if one.fixed else "not fixed yet"


# -- whose release counts ------------------------------------------------------------------------------


def _concerned(
    entry: Entry, finding: LogFinding, events: Sequence[LogEvent], clients: Sequence[LoggedClient]
) -> Iterator[LoggedClient]:
    """Return the clients that have this bug and could have made it: of an assignor's the leader, of others
    the owners."""
    owners = {owner.consumer for owner in finding.owners} or {one.consumer for one in clients}
    leaders = _leaders(finding, events) or {one.consumer for one in clients}
    for client in clients:
        if client.consumer not in (leaders if "A" in entry.level else owners) and client.consumer is not None:
            continue
        if _has(entry, client) and _fits(entry, client):
            yield client


def _leaders(finding: LogFinding, events: Sequence[LogEvent]) -> set[str | None]:
    granted = max((o.generation for o in finding.owners if o.generation is not None), default=None)
    return {
        e.consumer for e in events if e.kind == "planned" and e.consumer and granted in (None, e.generation)
    }


def _has(entry: Entry, client: LoggedClient) -> bool:
    release, product = _version(client), PRODUCTS.get(client.source)
    return release is not None and product is not None and entry.releases.includes(product, release)


def _fits(entry: Entry, client: LoggedClient) -> bool:
    """Check whether it is of the protocol and the assignor that the client uses, as far as that is logged."""
    if client.consumer is None:
        return not entry.id.startswith("N")
    release = _version(client) or ()
    classic = client.assignor is not None or release < SINCE_CONSUMER_PROTOCOL
    if entry.id.startswith("N") is classic:
        return False
    fits = {name for switch in entry.switches if switch in SWITCHES for name in SWITCHES[switch].fits}
    return entry.level == "P" or not fits or client.assignor is None or client.assignor in fits


def _version(client: LoggedClient) -> Version | None:
    try:
        return version(client.release or "")
    except ValueError:
        return None


def _fixed(entry: Entry, client: LoggedClient) -> str:
    """The first release after the client's that does not have the mistake; "" where none is known."""
    product, release = PRODUCTS[client.source], _version(client) or ()
    span = next(s for s in entry.releases.spans if s.product == product and s.includes(release))
    if span.end is None:
        return ""
    last = span.end[:-1]
    if (*last, 0) != span.end or len(last) < 3:  # the end itself is without it, and not only what follows
        return ".".join(map(str, span.end))
    known = OBSERVED[CONSUMER].releases if product in ("Java", "broker") else ()
    after = next((one for one in known if version(one) >= span.end), "")
    return after or f"a release after {'.'.join(map(str, last))}"


# -- what in the log shows it --------------------------------------------------------------------------

Evidence = Callable[[LogFinding, Sequence[LogEvent]], str]


def _late(finding: LogFinding, events: Sequence[LogEvent]) -> str:
    """The owner missed the generation before the one in which its partition was given away."""
    owner, granted = _older(finding)
    if owner is None or granted is None or owner.generation is None:
        return ""
    members = [e for e in events if e.kind == "synced" and e.generation is not None]
    before = max((e.generation for e in members if e.generation and e.generation < granted), default=None)
    mine = {e.generation for e in members if e.consumer == owner.consumer}
    if before is None or before <= owner.generation or before in mine or granted not in mine:
        return ""
    return f"{owner.name} missed generation {before}, and its claim did not count in {granted}"


def _reset(finding: LogFinding, events: Sequence[LogEvent]) -> str:
    """The owner lost its membership, and went on owning and claiming."""
    owner, granted = _older(finding)
    if owner is None or granted is None:
        return ""
    taken = [e for e in finding.places if e.kind == "assigned" and e.consumer != owner.consumer]
    had = [e for e in finding.places if e.kind == "assigned" and e.consumer == owner.consumer]
    own = [e for e in events if e.consumer == owner.consumer and taken and e.at <= taken[0].at]
    own = [e for e in own if not had or e.at >= had[0].at]
    lost = next((e for e in own if e.kind == "reset"), None)
    if lost is None or not any(e.kind in ("joined", "synced") and e.at > lost.at for e in own):
        return ""
    return f"{owner.name} had lost its membership at {lost.at:%H:%M:%S}, and joined with what it had"


def _older(finding: LogFinding) -> tuple[FindingOwner | None, int | None]:
    """The owner of the earlier grant, and the generation of the later one."""
    if len(finding.owners) != 2:
        return None, None
    first, second = sorted(finding.owners, key=lambda owner: owner.generation or -1)
    return first, second.generation


EVIDENCE: dict[str, Evidence] = {"J4": _late, "J1": _reset, "U13": _reset}
"""Id of an entry -> what in the log shows it, "" where nothing does."""
