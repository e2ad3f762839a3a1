"""Which releases a mistake was shipped in: one text that people read and that profiles are computed from.

The text lists products, each with its ranges, separated by ", "; a product without a range means all of
its releases. ``Java`` is the Java client, ``broker`` the broker of Apache Kafka::

    Java 2.4.0 to 2.7.1, 2.8.0         broker since 2.3.0, Java to 3.1.1
    Java 3.5 in development            (in no release)
    never                              (nowhere)

Both ends of ``A to B`` belong to the range, B of ``before B`` does not. A fix that went to several branches
ends several ranges: fixed in 2.7.2, 2.8.1 and 3.0.0 is ``to 2.7.1, 2.8.0``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from rebalance_verifier.base.tables import table

Version = tuple[int, ...]
"""2.8.1 as (2, 8, 1); compared as tuples are."""

_VERSION = r"(\d+(?:\.\d+)+)"
_PRODUCT = re.compile(r"(?!(?:to|before|since|never)\b)([A-Za-z][\w-]*)(?: (.+))?")


@dataclass(frozen=True, slots=True)
class Span:
    """The releases of ``product`` from ``first`` on, those from ``end`` on excepted (None: to this day)."""

    product: str
    first: Version = ()
    end: Version | None = None

    def includes(self, release: Version) -> bool:
        """Check whether ``release`` lies in it."""
        return self.first <= release and (self.end is None or release < self.end)


@dataclass(frozen=True, slots=True)
class Releases:
    """A set of releases, as spans in the order of the text."""

    spans: tuple[Span, ...] = ()

    def includes(self, product: str, release: Version) -> bool:
        """Check whether ``release`` of ``product`` is among them."""
        return any(span.product == product and span.includes(release) for span in self.spans)


def version(text: str) -> Version:
    """Return a release as numbers. Raises ValueError for anything but numbers and dots.

    >>> version("2.8.1") < version("2.10.0")
    True
    """
    if not re.fullmatch(_VERSION, text):
        raise ValueError(f"{text!r} is no release: write numbers and dots, such as 2.8.1")
    return tuple(map(int, text.split(".")))


KAFKA: tuple[str, ...] = table(__file__, "observed")["consumer"]["releases"]
"""The releases of Apache Kafka since 2.4.0, the oldest first: those that ``make code`` found in the registry
and observed."""

NEWEST = KAFKA[-1]
"""The newest release of Apache Kafka: `make code` changes it, and nothing else names it
(tests/test_newest_release.py)."""

CURRENT: Version = version(NEWEST)
"""The same as numbers."""


def spelled(release: str) -> str:
    """Return a release as it is written, `newest` as the number that it has.

    >>> spelled("3.9.2"), spelled("newest") == NEWEST
    ('3.9.2', True)
    """
    return NEWEST if release == "newest" else release


def kafka(text: str) -> Version:
    """Return the release of Apache Kafka that ``text`` names; X.Y is the last release of that minor series.

    Raises ValueError for one that is not among ``KAFKA``, and says what to write.

    >>> kafka("2.8"), kafka("2.8.0")
    ((2, 8, 2), (2, 8, 0))
    """
    named = version(spelled(text))
    series = [release for release in map(version, KAFKA) if release[:2] == named[:2]]
    if named in series:
        return named
    if series and len(named) == 2:
        return series[-1]
    nearest = max((release for release in KAFKA if version(release) < named), key=version, default=KAFKA[0])
    raise ValueError(f"Kafka {text} is not known, {KAFKA[0]} to {KAFKA[-1]} are: write {nearest}")


def dotted(release: Version) -> str:
    """Return a release as text.

    >>> dotted((2, 8, 1))
    '2.8.1'
    """
    return ".".join(map(str, release))


def released(versions: Iterable[str]) -> tuple[str, ...]:
    """Return those that are releases, not previews of one, as numbers and dots; each once, the oldest first.

    >>> released(["v1.10.0", "v1.9.0", "2.0.0-beta.1", "2.0.0rc1", "1.9.0"])
    ('1.9.0', '1.10.0')
    """
    found = {}
    for release in versions:
        text = release.removeprefix("v")
        try:
            found[version(text)] = text
        except ValueError:
            continue
    return tuple(found[number] for number in sorted(found))


def newest_of_minors(releases: Iterable[str], first: str) -> tuple[str, ...]:
    """Of each minor series from that of ``first`` on its newest release.

    >>> newest_of_minors(["2.3.1", "2.4.0", "2.4.1", "2.10.0"], "2.4")
    ('2.4.1', '2.10.0')
    """
    newest = {
        version(release)[:2]: release for release in released(releases) if version(release) >= version(first)
    }
    return tuple(newest.values())


def ranges(labels: Sequence[str], chosen: Sequence[bool]) -> str:
    """Return the labels that are chosen; neighbours are put together if they are releases.

    >>> ranges(["1.0", "1.1", "2.0", "3.0"], [True, True, False, True])
    '1.0 to 1.1, 3.0'
    >>> ranges(["sticky", "range"], [True, True])
    'sticky, range'
    """
    if not all(label[:1].isdigit() for label in labels):
        return ", ".join(label for label, is_chosen in zip(labels, chosen, strict=True) if is_chosen)
    parts: list[str] = []
    start: int | None = None
    for index, is_chosen in enumerate([*chosen, False]):
        if is_chosen and start is None:
            start = index
        elif not is_chosen and start is not None:
            last = index - 1
            parts.append(labels[start] if last == start else f"{labels[start]} to {labels[last]}")
            start = None
    return ", ".join(parts)


@cache
def parse(text: str) -> Releases:
    """Return the releases that ``text`` names. Raises ValueError for what is not of the form above.

    >>> parse("Java 2.4.0 to 2.7.1, 2.8.0").includes("Java", (2, 7, 2))
    False
    """
    if text == "never":
        return Releases()
    spans: list[Span] = []
    product = ""
    for part in text.split(", "):
        named = _PRODUCT.fullmatch(part)
        if named:
            product, part = named[1], named[2]
        if not product:
            raise ValueError(f"{text!r} does not begin with a product, such as Java or broker")
        if part is None:
            spans.append(Span(product))
        else:
            spans += _spans(product, part)
    return Releases(tuple(spans))


def _spans(product: str, part: str) -> list[Span]:
    for pattern, span in _FORMS:
        match = re.fullmatch(pattern, part)
        if match:
            first, end = span(*map(version, match.groups()))
            if end is not None and end <= first:
                raise ValueError(f"{part!r} ends before it begins")
            return [Span(product, first, end)]
    if re.fullmatch(rf"{_VERSION} in development", part):
        return []
    raise ValueError(
        f"{part!r} is no range: write 'A to B', 'to B', 'before B', 'since A', 'A' or 'A in development'"
    )


def _after(release: Version) -> Version:
    """Return the smallest tuple above ``release``, so that a range that includes its end is half open too."""
    return (*release, 0)


_FORMS: tuple[tuple[str, Callable[..., tuple[Version, Version | None]]], ...] = (
    (_VERSION, lambda one: (one, _after(one))),
    (f"{_VERSION} to {_VERSION}", lambda first, last: (first, _after(last))),
    (f"to {_VERSION}", lambda last: ((), _after(last))),
    (f"before {_VERSION}", lambda end: ((), end)),
    (f"since {_VERSION}", lambda first: (first, None)),
)
"""What a range looks like, and from which release to before which it goes."""
