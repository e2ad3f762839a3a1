"""The incident behind a finding in one sentence, and short names for those who are in it.

Consumers are called after client and process, in names of fifty characters and more: pictures and tables have
letters, and a legend.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from rebalance_verifier.base.text import count, span
from rebalance_verifier.pipeline.audit import advice
from rebalance_verifier.pipeline.audit.diagnosis import sentences
from rebalance_verifier.pipeline.audit.records import LogEvent, LogFinding, Recording
from rebalance_verifier.pipeline.audit.result import Audited
from rebalance_verifier.report.times import moment

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

Names = Mapping[str, str]
"""Consumer -> its short name."""


def short_names(consumers: Iterable[str | None]) -> dict[str, str]:
    """Return A, B, ... for consumers, in the order in which they come; then A2, B2, ...

    >>> short_names(["orders-1@pod-a", None, "orders-1@pod-b", "orders-1@pod-a"])
    {'orders-1@pod-a': 'A', 'orders-1@pod-b': 'B'}
    """
    found: dict[str, str] = {}
    for consumer in consumers:
        if consumer and consumer not in found:
            turn, letter = divmod(len(found), len(LETTERS))
            found[consumer] = LETTERS[letter] + (str(turn + 1) if turn else "")
    return found


def shortened(text: str, names: Names) -> str:
    """Return a text with short names."""
    if not names:
        return text
    longest_first = sorted(map(re.escape, names), key=len, reverse=True)
    return re.sub(rf"(?<![\w.-])(?:{'|'.join(longest_first)})(?![\w-])", lambda found: names[found[0]], text)


def with_short_names(recording: Recording, names: Names) -> Recording:
    """Return a recording whose consumers have short names."""

    def named(event: LogEvent) -> LogEvent:
        return replace(event, consumer=names.get(event.consumer or "", event.consumer))

    finding = recording.finding
    owners = tuple(
        replace(one, consumer=names.get(one.consumer or "", one.consumer)) for one in finding.owners
    )
    places = tuple(map(named, finding.places))
    sentence = shortened(finding.sentence, names)
    return replace(
        recording,
        finding=replace(finding, owners=owners, places=places, sentence=sentence),
        events=tuple(map(named, recording.events)),
    )


def legend(consumer: str) -> tuple[str, str]:
    """Return client id and process of a consumer.

    >>> legend("orders-1@orders-6d9c-aaaaa:app"), legend("orders-1")
    (('orders-1', 'orders-6d9c-aaaaa:app'), ('orders-1', ''))
    """
    client, _, process = consumer.partition("@")
    return client, process


def story(audit: Audited, one: LogFinding, names: Names) -> str:
    """Return who read what, how long, why, and what to do about it."""
    what = f"{_what(audit, one, names)}, from {moment(one.began)}"
    if not one.certain:
        what = f"Perhaps: {what}; not certain, {one.doubt or 'the clocks may differ by as much'}"
    why = (*sentences(audit.diagnoses.get(one.id, ())), audit.pointers.get(one.id, ""))
    known = next(filter(None, why), "") or advice.unknown(one)
    return f"{what}. Why: {shortened(known, names)}. Next: {advice.STEPS[one.check]}"


def _what(audit: Audited, one: LogFinding, names: Names) -> str:
    owners = [names.get(owner.consumer or "", owner.name) for owner in one.owners]
    first, second = (*owners, "a consumer", "another")[:2]
    alike = {other.about for other in audit.findings if (other.check, other.group) == (one.check, one.group)}
    others = f" and {count(len(alike) - 1, 'more partition')}" if len(alike) > 1 else ""
    where = f"{one.about}{others} of group {one.group}" if one.about else f"group {one.group}"
    long = span(one.seconds) + ("" if one.ended else " and to the end of the log")
    return {
        "owned-twice": f"{first} and {second} both read {where} for {long}",
        "granted-before-revoked": f"{second} was given {where} while {first} had it, for {long}",
        "owned-by-zombie": f"{first}, no longer a member, read {where} beside {second} for {long}",
        "stranded": f"nobody read {where} for {long}",
        "never-settles": f"{where} has not settled for {long}",
        "rebalance-storm": f"{where} rebalanced again and again for {long}",
        "needless-movement": f"{where} moved from {first} to {second} although no member joined or left",
        "long-pause": f"during a rebalance no consumer read {where} for {long}",
    }[one.check]
